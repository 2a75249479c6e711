/* Proves that training every layer by batch statistics gives Keras' numbers: a forward pass of
 * EfficientNet-B0 in training mode with the moving statistics after it, and runs of five steps by
 * SGD and Adam at 96x96: losses, gradients of the first step, all weights and statistics.
 *
 * Expected: forward.npz (train:...) and trajectories.npz (d_sgd, d_adam) of ../shared/golden, with
 * the tolerances of its README. By the fast kernels, and a forward pass and a step by plain loops.
 */
#include "golden_rig.h"

enum { SMALL = 96, PICTURES = 8, STEPS = 5 };

/* ---- forward ---- */

/* Runs the network in training mode on 8 pictures; its features, and the state afterwards. */
static void run_forward(const float *pixels, bool reference, float *features, tp__tensors *moved)
{
  tp_error err = {0};
  tp__net *net = NULL;
  tp__state *state = NULL;
  tp__program *program = NULL;
  tp__backend *cpu = shared.cpu;
  tp__net_training how = {.last_n = -1, .batch_statistics = true};
  assert_ok(tp__net_build_training(&shared.spec, &how, &net, &err));
  assert_ok(tp__graph_output(net->graph, "features", net->features, &err));
  tp__tensors floats = {0};
  for (int i = 0; i < net->n_parameters; i++) {
    const tp__tensor *w = tp__tensors_find(&shared.weights, net->parameter[i].name);
    tp__tensor *copy = NULL;
    if (w->dtype != TP__F32) continue;
    assert_ok(tp__tensors_add(&floats, w->name, TP__F32, &w->shape, &copy, &err));
    memcpy(copy->data, w->data, tp__tensor_bytes(w));
    if (net->parameter[i].moves)
      assert_ok(tp__tensors_add(moved, w->name, TP__F32, &w->shape, NULL, &err));
  }
  assert_ok(cpu->state_new(cpu, &floats, &state, &err));
  tp__compile_options options = {.batch = PICTURES, .reference = reference};
  assert_ok(cpu->compile(cpu, net->graph, state, &options, &program, &err));
  tp__feed feed = {"pixels", pixels};
  tp__fetch fetch = {"features", features};
  assert_ok(cpu->run(program, &feed, 1, &fetch, 1, PICTURES, &err));
  assert_ok(cpu->state_read(state, moved, &err));
  cpu->program_free(program);
  cpu->state_free(state);
  tp__tensors_free(&floats);
  tp__net_free(net);
}

static void compare_statistic(npz *z, const tp__tensors *moved, const char *name)
{
  char array[96];
  npz_shape shape;
  snprintf(array, sizeof array, "train:%s", name);
  const float *wanted = npz_f4(z, array, &shape);
  const float *mine = tp__tensors_find(moved, name)->data;
  double most = 0;
  for (size_t i = 0; i < shape.count; i++) most = fmax(most, fabs((double)wanted[i]));
  worst w = {0};
  for (size_t i = 0; i < shape.count; i++)
    compare(&w, name, i, (double)mine[i], (double)wanted[i], 1e-5 * most);
  print_message("%s: within %.2g of the tolerance\n", name, w.share);
}

static void forward(bool reference)
{
  static const char *const statistic[] = {"stem_bn/moving_mean",    "stem_bn/moving_variance",
                                          "block4a_bn/moving_mean", "block4a_bn/moving_variance",
                                          "top_bn/moving_mean",     "top_bn/moving_variance"};
  need_golden();
  npz *z = npz_open(golden_file("forward.npz")), *images = npz_open(golden_file("images8.npz"));
  npz_shape shape;
  const uint8_t *rgb = npz_u1(images, "rgb", &shape);
  assert_int_equal(shape.count, PICTURES * SIDE * SIDE * 3);
  for (size_t i = 0; i < shape.count; i++) shared.pixels[i] = rgb[i];
  float *features = calloc((size_t)PICTURES * FEATURES, sizeof *features);
  assert_non_null(features);
  tp__tensors moved = {0};
  run_forward(shared.pixels, reference, features, &moved);
  assert_int_equal(moved.count, 98);
  const float *wanted = npz_f4(z, "train:pooled", NULL);
  double most = 0;
  for (size_t i = 0; i < PICTURES * FEATURES; i++) most = fmax(most, fabs((double)wanted[i]));
  worst w = {0};
  for (size_t i = 0; i < PICTURES * FEATURES; i++)
    compare(&w, "pooled", i, (double)features[i], (double)wanted[i], 1e-4 * most);
  print_message("pooled: within %.2g of the tolerance\n", w.share);
  for (size_t i = 0; i < sizeof statistic / sizeof statistic[0]; i++)
    compare_statistic(z, &moved, statistic[i]);
  tp__tensors_free(&moved);
  free(features);
  npz_close(images);
  npz_close(z);
}

static void forward_fast(void **state)
{
  (void)state;
  forward(false);
}

static void forward_by_plain_loops(void **state)
{
  (void)state;
  forward(true);
}

/* ---- runs ---- */

typedef struct plan {
  const char *run, *optimizer, *slot; /* slot: gradient of the first step times `factor` */
  double rate, factor;
  double loss[STEPS];
  tensor_limits tensors;
  size_t steps;
  bool reference;
} plan;

/* The first step's gradients, as the optimizer has kept them. */
static void compare_gradients(const plan *p, tp__learner *l)
{
  tp_error err = {0};
  tp__tensors slots = {0};
  npz_shape shape;
  char array[64], mine[160], text[96];
  assert_ok(tp__learner_slots(l, &slots, &err));
  snprintf(array, sizeof array, "%s:grad_meaningful", p->run);
  const uint8_t *meaningful = npz_u1(shared.golden, array, &shape);
  snprintf(array, sizeof array, "%s:grad_names", p->run);
  worst w = {0};
  size_t prefix = strlen(p->slot);
  for (size_t k = 0; k < shape.count; k++) {
    const char *name = npz_string(shared.golden, array, k);
    const tp__tensor *t = NULL;
    for (size_t i = 0; i < slots.count && t == NULL; i++)
      if (strncmp(slots.item[i].name, p->slot, prefix) == 0 &&
          strcmp(golden_name(slots.item[i].name + prefix, text), name) == 0)
        t = &slots.item[i];
    if (t == NULL) fail_msg("%s has no gradient", name);
    if (!meaningful[k]) continue;
    const float *g = t->data;
    size_t n = tp__shape_elements(&t->shape, 0);
    double norm = 0, wanted = golden(p->run, "grad_norm", k);
    for (size_t i = 0; i < n; i++) norm += (double)g[i] * (double)g[i];
    snprintf(mine, sizeof mine, "%s: gradient of %s", p->run, name);
    compare(&w, mine, k, sqrt(norm) * fabs(p->factor), wanted, 2e-4 * wanted);
    for (size_t i = 0; i < 16 && i < n; i++)
      compare(&w, mine, i, (double)g[i] * p->factor, golden(p->run, "grad_first16", k * 16 + i),
              2e-4 * wanted);
  }
  assert_true(w.compared > 1000);
  print_message("%s: gradients within %.2g of the tolerance\n", p->run, w.share);
  tp__tensors_free(&slots);
}

static void follow(const plan *p)
{
  need_golden();
  tp_error err = {0};
  tp__learner *l = NULL;
  tp_train_options o = default_train();
  o.optimizer = p->optimizer;
  o.momentum = 0.9;
  tp__learner_options lo = {.spec = shared.spec,
                            .last_n = -1,
                            .batch_statistics = true,
                            .batch = BATCH,
                            .reference = p->reference};
  lo.spec.height = lo.spec.width = SMALL;
  assert_ok(tp__optimizer_make(&o, &lo.optimizer, &err));
  assert_ok(tp__learner_new(shared.cpu, &lo, &shared.weights, NULL, &l, &err));
  worst loss = {0};
  for (size_t s = 0; s < p->steps; s++) {
    int32_t labels[BATCH];
    float losses[BATCH], scores[BATCH * LABELS];
    tp__batch batch;
    read_batch(p->run, s, SMALL, labels, &batch);
    assert_ok(
        tp__learner_step(l, &batch, NULL, (float)p->rate, (int64_t)s, losses, scores, NULL, &err));
    compare_step(p->run, s, losses, NULL, scores, labels, p->loss[s], &loss);
    if (s == 0) compare_gradients(p, l);
  }
  print_message("%s: losses within %.2g of the tolerance\n", p->run, loss.share);
  tp__tensors after = read_changed(l);
  if (p->steps == STEPS) compare_tensors(p->run, &after, &p->tensors);
  tp__tensors_free(&after);
  tp__learner_free(l);
}

/* The first velocity is -rate times the gradient. */
static const plan sgd = {.run = "d_sgd",
                         .optimizer = "sgd",
                         .slot = "sgd/velocity/",
                         .rate = 0.01,
                         .factor = -1 / 0.01,
                         .loss = {2e-5, 1e-4, 5e-4, 3e-3, 2e-2},
                         .tensors = {1e-1, 3e-3, 1e-3, 5e-3},
                         .steps = STEPS};

static void sgd_run(void **state)
{
  (void)state;
  follow(&sgd);
}

static void sgd_step_by_plain_loops(void **state)
{
  (void)state;
  plan p = sgd;
  p.steps = 1;
  p.reference = true;
  follow(&p);
}

/* The first moment is 1 - beta_1 of the gradient. */
static void adam_run(void **state)
{
  (void)state;
  follow(&(plan){.run = "d_adam",
                 .optimizer = "adam",
                 .slot = "adam/m/",
                 .rate = 1e-3,
                 .factor = 1 / 0.1,
                 .loss = {2e-5, 3e-4, 5e-4, 1e-3, 2e-3},
                 .tensors = {1e-1, 3e-4, 4e-4, 5e-4},
                 .steps = STEPS});
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forward_fast), cmocka_unit_test(forward_by_plain_loops),
      cmocka_unit_test(sgd_run),      cmocka_unit_test(sgd_step_by_plain_loops),
      cmocka_unit_test(adam_run),
  };
  return cmocka_run_group_tests(tests, open_rig, close_rig);
}
