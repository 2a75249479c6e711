/* Proves that training gives Keras' numbers: losses, accuracies, learning rates and weights of
 * EfficientNet-B0 on 192x192 photos, from given weights, a given head and given batches.
 *
 * Expected: trajectories.npz of ../shared/golden, with the tolerances of its README (folder
 * TEPAL_GOLDEN; photos TEPAL_GOLDEN_DATA, default ../shared/data/tiny10-192). By the fast kernels,
 * and the first step of run a also by the plain loops.
 */
#include "train_testing.h"

#include <math.h>

#include "model/weights_load.h"
#include "npz.h"
#include "train/learner.h"
#include "train/schedule.h"

enum { SIDE = 192, BATCH = 16, LABELS = 10, FEATURES = 1280 };

/* What all runs share. */
typedef struct rig {
  tp__pool *pool;
  tp__backend *cpu;
  tp__catalog *catalog;
  uint32_t *by_id; /* indices into the catalog, sorted by id */
  npz *golden;
  tp__model_spec spec;
  tp__tensors weights;
  float *pixels; /* [BATCH,SIDE,SIDE,3] */
  tp__image_scratch scratch;
  tp__buffer bytes;
} rig;

static rig shared;
static bool have_golden;

/* ---- set-up ---- */

static int compare_ids(const void *a, const void *b)
{
  return strcmp(tp__catalog_record(shared.catalog, *(const uint32_t *)a)->id,
                tp__catalog_record(shared.catalog, *(const uint32_t *)b)->id);
}

static void open_photos(rig *r)
{
  tp_error err = {0};
  const char *set = getenv("TEPAL_GOLDEN_DATA");
  char *pattern =
      set != NULL
          ? tp__format("%s/tfrecords-jpeg-192x192/train/*.tfrec", set)
          : tp__format("%s/data/tiny10-192/tfrecords-jpeg-192x192/train/*.tfrec", shared_folder());
  const char *const patterns[] = {pattern};
  tp__catalog_options o = {.patterns = patterns, .n_patterns = 1, .need_labels = true};
  assert_ok(tp__catalog_open(&o, r->pool, NULL, &r->catalog, &err));
  free(pattern);
  size_t n = tp__catalog_count(r->catalog);
  r->by_id = calloc(n, sizeof *r->by_id);
  assert_non_null(r->by_id);
  for (size_t i = 0; i < n; i++) r->by_id[i] = (uint32_t)i;
  qsort(r->by_id, n, sizeof *r->by_id, compare_ids);
}

/* The backbone of the golden file, which xz has packed, and the initial head. */
static void read_weights(rig *r)
{
  tp_error err = {0};
  tp__net *net = NULL;
  r->spec =
      (tp__model_spec){.name = "efficientnet-b0", .height = SIDE, .width = SIDE, .classes = LABELS};
  assert_ok(tp__net_build(&r->spec, false, &net, &err));
  assert_ok(tp__net_init(net, 1, &r->weights, &err));
  const char *packed = golden_file("b0_notop.safetensors.xz");
  assert_non_null(packed);
  char folder[] = "/tmp/tepal-golden-XXXXXX", path[64], command[1400];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/b0.safetensors", folder);
  snprintf(command, sizeof command, "xz -dc '%s' > '%s'", packed, path);
  if (system(command) != 0) fail_msg("%s failed", command);
  assert_ok(tp__weights_load(path, net, &r->weights, false, NULL, &err));
  unlink(path);
  rmdir(folder);
  tp__net_free(net);
  npz_shape shape;
  const float *kernel = npz_f4(r->golden, "head_kernel0", &shape);
  assert_int_equal(shape.count, FEATURES * LABELS);
  memcpy(tp__tensors_find(&r->weights, "predictions/kernel")->data, kernel,
         shape.count * sizeof(float));
  memcpy(tp__tensors_find(&r->weights, "predictions/bias")->data,
         npz_f4(r->golden, "head_bias0", NULL), LABELS * sizeof(float));
}

static int open_rig(void **state)
{
  (void)state;
  if (getenv("TEPAL_GOLDEN") == NULL && shared_folder() == NULL) return 0;
  const char *path = golden_file("trajectories.npz");
  if (path == NULL) return -1;
  tp_error err = {0};
  rig *r = &shared;
  assert_ok(tp__pool_new(2, &r->pool, &err));
  assert_ok(tp__backend_cpu(r->pool, &r->cpu, &err));
  r->golden = npz_open(path);
  open_photos(r);
  read_weights(r);
  r->pixels = calloc((size_t)BATCH * SIDE * SIDE * 3, sizeof(float));
  tp__buffer_init(&r->bytes, 1 << 24);
  have_golden = r->pixels != NULL;
  return have_golden ? 0 : -1;
}

static int close_rig(void **state)
{
  (void)state;
  rig *r = &shared;
  npz_close(r->golden);
  tp__tensors_free(&r->weights);
  tp__catalog_free(r->catalog);
  tp__image_scratch_free(&r->scratch);
  tp__buffer_free(&r->bytes);
  free(r->pixels);
  free(r->by_id);
  if (r->cpu != NULL) r->cpu->free(r->cpu);
  tp__pool_free(r->pool);
  return 0;
}

#define need_golden()                                                                              \
  do {                                                                                             \
    if (!have_golden) {                                                                            \
      print_message("skipped: no ../shared\n");                                                    \
      skip();                                                                                      \
    }                                                                                              \
  } while (0)

/* ---- batches ---- */

static uint32_t find(const char *id)
{
  size_t low = 0, high = tp__catalog_count(shared.catalog);
  while (low < high) {
    size_t middle = (low + high) / 2;
    int order = strcmp(tp__catalog_record(shared.catalog, shared.by_id[middle])->id, id);
    if (order == 0) return shared.by_id[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  fail_msg("no photo with the id %s", id);
  return 0;
}

/* The photos of one step of a run. */
static void read_batch(const char *run, size_t step, int32_t labels[BATCH], tp__batch *batch)
{
  tp_error err = {0};
  rig *r = &shared;
  char array[64];
  snprintf(array, sizeof array, "%s:ids", run);
  tp__image_recipe recipe = {.height = SIDE, .width = SIDE};
  for (size_t i = 0; i < BATCH; i++) {
    uint32_t index = find(npz_string(r->golden, array, step * BATCH + i));
    labels[i] = tp__catalog_record(r->catalog, index)->label;
    assert_ok(tp__catalog_read(r->catalog, index, &r->bytes, &err));
    assert_ok(tp__image_prepare(&recipe, r->bytes.data, r->bytes.size, false, (tp__key){{0, 0}},
                                &r->scratch, r->pixels + i * SIDE * SIDE * 3, &err));
  }
  *batch = (tp__batch){.n = BATCH, .pixels = r->pixels, .labels = labels};
}

/* ---- comparing ---- */

/* Worst difference of several, as a share of what is allowed. */
typedef struct worst {
  double share;
  size_t compared;
} worst;

static void compare(worst *w, const char *what, size_t i, double mine, double wanted,
                    double allowed)
{
  double difference = fabs(mine - wanted);
  if (!(difference <= allowed))
    fail_msg("%s[%zu] is %.9g, wanted %.9g (within %.3g)", what, i, mine, wanted, allowed);
  if (difference / allowed > w->share) w->share = difference / allowed;
  w->compared++;
}

/* "run:name" as double, whichever float type it has. */
static double golden(const char *run, const char *name, size_t i)
{
  char array[96];
  npz_shape shape;
  npz_type type;
  snprintf(array, sizeof array, "%s:%s", run, name);
  const void *values = npz_get(shared.golden, array, &shape, &type);
  assert_true(i < shape.count);
  if (type == NPZ_F8) return ((const double *)values)[i];
  assert_int_equal(type, NPZ_F4);
  return (double)((const float *)values)[i];
}

/* ---- a run ---- */

typedef struct plan {
  const char *run;
  size_t steps;
  int last_n;
  double rate, smoothing;
  double first_loss, loss, head; /* tolerances; head 0: not compared */
  bool weighted, decays, reference, c;
} plan;

static tp__tensors read_trained(tp__learner *l)
{
  tp_error err = {0};
  tp__tensors read = {0};
  size_t n = 0;
  const char *const *name = tp__learner_trainable(l, &n);
  for (size_t i = 0; i < n; i++) {
    const tp__tensor *w = tp__tensors_find(&shared.weights, name[i]);
    assert_non_null(w);
    assert_ok(tp__tensors_add(&read, name[i], TP__F32, &w->shape, NULL, &err));
  }
  assert_ok(tp__learner_read(l, &read, &err));
  return read;
}

/* One step, compared. */
static void step(tp__learner *l, const plan *p, size_t s, const tp__schedule *schedule, worst *loss,
                 int *right)
{
  tp_error err = {0};
  int32_t labels[BATCH];
  float losses[BATCH], scores[BATCH * LABELS], weights[BATCH];
  tp__batch batch;
  read_batch(p->run, s, labels, &batch);
  for (int i = 0; i < BATCH; i++)
    weights[i] =
        p->weighted ? (float)npz_f8(shared.golden, "e_class_weight", NULL)[labels[i]] : 1.0f;
  float rate = tp__schedule_rate(schedule, (int64_t)s);
  if (p->decays) {
    worst w = {0};
    double wanted = golden(p->run, "lr", s);
    compare(&w, "rate", s, (double)rate, wanted, 1e-6 * wanted);
  }
  assert_ok(tp__learner_step(l, &batch, p->weighted ? weights : NULL, rate, (int64_t)s, losses,
                             scores, &err));
  double sum = 0;
  *right = 0;
  for (int i = 0; i < BATCH; i++) {
    sum += (double)losses[i] * (double)weights[i];
    int best = 0;
    for (int c = 1; c < LABELS; c++)
      if (scores[i * LABELS + c] > scores[i * LABELS + best]) best = c;
    *right += best == labels[i];
  }
  compare(loss, "loss", s, sum / BATCH, golden(p->run, "loss", s),
          s == 0 ? p->first_loss : p->loss);
  if (fabs(*right - BATCH * golden(p->run, "accuracy", s)) > 1.001)
    fail_msg("step %zu: %d right, wanted %g", s, *right, BATCH * golden(p->run, "accuracy", s));
}

static const char *head_name(const char *name, char text[96])
{
  bool head = strncmp(name, "predictions/", 12) == 0;
  snprintf(text, 96, "%s%s", head ? "head/" : "", head ? name + 12 : name);
  return text;
}

/* The 21 trained tensors of run c: how far they went, and where they are. */
static void compare_tensors(const plan *p, const tp__tensors *after)
{
  npz_shape shape;
  char array[64], mine[96];
  snprintf(array, sizeof array, "%s:names", p->run);
  npz_get(shared.golden, array, &shape, NULL);
  assert_int_equal(shape.count, after->count);
  worst w = {0};
  for (size_t k = 0; k < shape.count; k++) {
    const char *name = npz_string(shared.golden, array, k);
    const tp__tensor *t = NULL;
    for (size_t i = 0; i < after->count && t == NULL; i++)
      if (strcmp(head_name(after->item[i].name, mine), name) == 0) t = &after->item[i];
    if (t == NULL) fail_msg("%s is not trained", name);
    const float *now = t->data, *then = tp__tensors_find(&shared.weights, t->name)->data;
    size_t n = tp__shape_elements(&t->shape, 0);
    double norm = 0, moved = 0;
    for (size_t i = 0; i < n; i++) {
      norm += (double)now[i] * (double)now[i];
      double d = (double)now[i] - (double)then[i];
      moved += d * d;
    }
    double wanted = golden(p->run, "delta_norm", k);
    compare(&w, "delta_norm", k, sqrt(moved), wanted, 3e-4 * wanted);
    wanted = golden(p->run, "norm", k);
    compare(&w, "norm", k, sqrt(norm), wanted, 1e-5 * wanted);
    for (size_t i = 0; i < 16 && i < n; i++)
      compare(&w, name, i, (double)now[i], golden(p->run, "first16", k * 16 + i), 3e-5);
  }
  print_message("%s: tensors within %.2g of the tolerance\n", p->run, w.share);
}

static void follow(const plan *p)
{
  need_golden();
  tp_error err = {0};
  tp__learner *l = NULL;
  tp_train_options o = default_train();
  o.schedule = p->decays ? "exponential" : "constant";
  o.learning_rate = p->rate;
  o.decay_steps = 10;
  tp__schedule schedule;
  assert_ok(tp__schedule_make(&o, (int64_t)p->steps, &schedule, &err));
  tp__learner_options lo = {.spec = shared.spec,
                            .last_n = p->last_n,
                            .label_smoothing = (float)p->smoothing,
                            .batch = BATCH,
                            .reference = p->reference};
  assert_ok(tp__optimizer_make(&o, &lo.optimizer, &err));
  assert_ok(tp__learner_new(shared.cpu, &lo, &shared.weights, NULL, &l, &err));
  worst loss = {0}, head = {0};
  int right = 0;
  for (size_t s = 0; s < p->steps; s++) step(l, p, s, &schedule, &loss, &right);
  tp__tensors after = read_trained(l);
  if (p->head > 0) {
    const float *kernel = tp__tensors_find(&after, "predictions/kernel")->data;
    const float *bias = tp__tensors_find(&after, "predictions/bias")->data;
    for (size_t i = 0; i < FEATURES * LABELS; i++)
      compare(&head, "head kernel", i, (double)kernel[i], golden(p->run, "head_kernel", i),
              p->head);
    for (size_t i = 0; i < LABELS; i++)
      compare(&head, "head bias", i, (double)bias[i], golden(p->run, "head_bias", i), p->head);
  }
  print_message("%s: losses within %.2g, head within %.2g of the tolerance\n", p->run, loss.share,
                head.share);
  if (p->c) compare_tensors(p, &after);
  tp__tensors_free(&after);
  tp__learner_free(l);
}

static void frozen(void **state)
{
  (void)state;
  follow(&(plan){
      .run = "a", .steps = 40, .rate = 1e-3, .first_loss = 3e-5, .loss = 2e-4, .head = 3e-4});
}

static void first_step_by_plain_loops(void **state)
{
  (void)state;
  follow(&(plan){.run = "a", .steps = 1, .rate = 1e-3, .first_loss = 3e-5, .reference = true});
}

static void decaying_rate(void **state)
{
  (void)state;
  follow(&(plan){.run = "b",
                 .steps = 25,
                 .rate = 1e-3,
                 .first_loss = 5e-5,
                 .loss = 5e-5,
                 .head = 1e-4,
                 .decays = true});
}

static void label_smoothing(void **state)
{
  (void)state;
  follow(&(plan){.run = "e_smooth",
                 .steps = 5,
                 .rate = 1e-3,
                 .smoothing = 0.1,
                 .first_loss = 5e-5,
                 .loss = 5e-5,
                 .head = 1e-4});
}

static void class_weights(void **state)
{
  (void)state;
  follow(&(plan){.run = "e_weight",
                 .steps = 5,
                 .rate = 1e-3,
                 .weighted = true,
                 .first_loss = 5e-5,
                 .loss = 5e-5,
                 .head = 1e-4});
}

static void smoothing_and_weights(void **state)
{
  (void)state;
  follow(&(plan){.run = "e_both",
                 .steps = 5,
                 .rate = 1e-3,
                 .smoothing = 0.1,
                 .weighted = true,
                 .first_loss = 5e-5,
                 .loss = 5e-5,
                 .head = 1e-4});
}

static void last_20_layers(void **state)
{
  (void)state;
  follow(&(plan){.run = "c",
                 .steps = 12,
                 .last_n = 20,
                 .rate = 1e-4,
                 .first_loss = 3e-5,
                 .loss = 3e-5,
                 .c = true});
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(frozen),         cmocka_unit_test(first_step_by_plain_loops),
      cmocka_unit_test(decaying_rate),  cmocka_unit_test(label_smoothing),
      cmocka_unit_test(class_weights),  cmocka_unit_test(smoothing_and_weights),
      cmocka_unit_test(last_20_layers),
  };
  return cmocka_run_group_tests(tests, open_rig, close_rig);
}
