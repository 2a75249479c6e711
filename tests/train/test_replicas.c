/* Proves that training on 8 devices of a PJRT plugin gives what the CPU's own executor gives on
 * one: losses of 20 steps within 1e-4 (some of them with batches that do not divide, or that leave
 * replicas without any example), weights and statistics at the end, for a frozen backbone, its last
 * layers, and all layers by statistics of the whole batch; that all replicas hold the same bits;
 * that gradients gathered in parts are the same, asked for or because memory is short, and that
 * batch statistics never are; pixels sent as bytes, and such that the devices mirror and turn,
 * which the CPU gets ready made by the host. Expected: the CPU's.
 */
#include <math.h>
#include <string.h>

#include "../backend/pjrt/pjrt_testing.h"
#include "backend/pjrt/pjrt.h"
#include "backend/pjrt/pjrt_state.h"
#include "image/image.h"
#include "train/learner.h"

enum { SIDE = 32, CLASSES = 6, BATCH = 32, STEPS = 20, REPLICAS = 8 };

/* A B0 of few and narrow blocks: all kinds of layers, little to compile. */
static const tp__model_spec spec = {.name = "efficientnet-b0",
                                    .height = SIDE,
                                    .width = SIDE,
                                    .classes = CLASSES,
                                    .dropout = 0.2f,
                                    .width_coefficient = 0.5f,
                                    .depth_coefficient = 0.3f};

static struct {
  tp__pool *pool;
  tp__backend *cpu, *devices;
  tp__state *state; /* the last one made on the devices */
  tp_status (*state_new)(tp__backend *, const tp__tensors *, tp__state **, tp_error *);
  float pixels[BATCH * SIDE * SIDE * 3], finished[BATCH * SIDE * SIDE * 3];
  int32_t labels[BATCH];
  uint32_t keys[BATCH * 2];
} shared;

static tp_status remember_state(tp__backend *b, const tp__tensors *t, tp__state **s, tp_error *e)
{
  tp_status status = shared.state_new(b, t, s, e);
  shared.state = *s;
  return status;
}

static int open_devices(void **state)
{
  (void)state;
  tp_error err = {0};
  const char *plugin = plugin_file(PJRT_CPU_106);
  if (plugin == NULL) return 0; /* each test skips by itself */
  tp__pjrt_options o = {.plugin = plugin, .kind = TP__CLASS_CPU, .replicas = REPLICAS};
  assert_ok(tp__pool_new(2, &shared.pool, &err));
  assert_ok(tp__backend_cpu(shared.pool, &shared.cpu, &err));
  assert_ok(tp__backend_pjrt(&o, &shared.devices, &err));
  assert_int_equal(shared.devices->replicas, REPLICAS);
  shared.state_new = shared.devices->state_new;
  shared.devices->state_new = remember_state;
  return 0;
}

static int close_devices(void **state)
{
  (void)state;
  if (shared.devices == NULL) return 0;
  shared.devices->free(shared.devices);
  shared.cpu->free(shared.cpu);
  tp__pool_free(shared.pool);
  return 0;
}

/* Sizes of batches: whole ones, one that does not divide, fewer examples than replicas. */
static int64_t size_of(int step)
{
  static const int64_t sizes[] = {BATCH, 29, BATCH, 5, 17};
  return sizes[step % 5];
}

/* Whole numbers, so that bytes hold them. */
static tp__batch batch_of(int step)
{
  tp__key key = tp__key_of(7, (uint32_t)step, 0);
  int64_t n = size_of(step);
  for (int64_t i = 0; i < n; i++) {
    shared.labels[i] = (int32_t)tp__below(key, TP__DRAW_SPLIT, (uint64_t)i, CLASSES);
    tp__key own = tp__key_of(7, (uint32_t)step, (uint64_t)i);
    memcpy(&shared.keys[2 * i], own.word, sizeof own.word);
    for (uint32_t k = 0; k < SIDE * SIDE * 3; k++) {
      float wave = sinf(0.05f * (float)k * (float)(shared.labels[i] + 1));
      shared.pixels[(size_t)i * SIDE * SIDE * 3 + k] =
          floorf(127.5f + 90 * wave + 30 * tp__uniform(own, TP__DRAW_PICTURE, k));
    }
  }
  return (tp__batch){.n = n, .pixels = shared.pixels, .labels = shared.labels, .keys = shared.keys};
}

/* The same batch as the host augments it. */
static tp__batch finished(tp__batch b, const tp__net_augment *augment)
{
  enum { VALUES = SIDE * SIDE * 3 };
  tp_error err = {0};
  tp__image_scratch scratch = {0};
  const tp__image_recipe recipe = {.height = SIDE,
                                   .width = SIDE,
                                   .flip = augment->flip,
                                   .rotate = augment->rotate,
                                   .fill = augment->fill};
  for (int64_t i = 0; i < b.n; i++) {
    uint8_t rgb[VALUES];
    tp__key key = {{b.keys[2 * i], b.keys[2 * i + 1]}};
    for (int k = 0; k < VALUES; k++) rgb[k] = (uint8_t)b.pixels[i * VALUES + k];
    assert_ok(tp__image_finish(&recipe, rgb, SIDE, SIDE, true, key, &scratch,
                               shared.finished + i * VALUES, &err));
  }
  tp__image_scratch_free(&scratch);
  b.pixels = shared.finished;
  return b;
}

static tp_status try_learner(tp__backend *backend, tp__learner_options o, tp__learner **learner,
                             tp_error *err)
{
  tp__net *net = NULL;
  tp__tensors weights = {0};
  o.spec = spec;
  o.batch = BATCH;
  if (o.optimizer.kind == TP__OPTIMIZER_ADAM && o.optimizer.beta_1 == 0)
    o.optimizer = (tp__optimizer){
        .kind = TP__OPTIMIZER_ADAM, .beta_1 = 0.9f, .beta_2 = 0.999f, .epsilon = 1e-3f};
  assert_int_equal(tp__net_build(&o.spec, false, &net, err), TP_OK);
  assert_int_equal(tp__net_init(net, 3, &weights, err), TP_OK);
  tp_status status = tp__learner_new(backend, &o, &weights, NULL, learner, err);
  tp__net_free(net);
  tp__tensors_free(&weights);
  return status;
}

static tp__learner *learner_on(tp__backend *backend, tp__learner_options o)
{
  tp_error err = {0};
  tp__learner *learner = NULL;
  assert_ok(try_learner(backend, o, &learner, &err));
  return learner;
}

static void read_changing(tp__learner *l, const tp__tensors *shapes, tp__tensors *into)
{
  tp_error err = {0};
  size_t n = 0;
  const char *const *name = tp__learner_changing(l, &n);
  for (size_t i = 0; i < n; i++) {
    const tp__tensor *t = tp__tensors_find(shapes, name[i]);
    assert_non_null(t);
    assert_ok(tp__tensors_add(into, name[i], TP__F32, &t->shape, NULL, &err));
  }
  assert_ok(tp__learner_read(l, into, &err));
}

static void compare_tensors(const tp__tensors *a, const tp__tensors *b, double tolerance)
{
  assert_int_equal(a->count, b->count);
  for (size_t i = 0; i < a->count; i++) {
    const float *x = a->item[i].data, *y = tp__tensors_find(b, a->item[i].name)->data;
    size_t count = tp__shape_elements(&a->item[i].shape, 0);
    double scale = 1e-3, worst = 0;
    for (size_t k = 0; k < count; k++) scale = fmax(scale, fabs((double)x[k]));
    for (size_t k = 0; k < count; k++) worst = fmax(worst, fabs((double)x[k] - (double)y[k]));
    if (!(worst <= tolerance * scale))
      fail_msg("%s differs by %g of its largest value", a->item[i].name, worst / scale);
  }
}

static void replicas_agree(void)
{
  tp_error err = {0};
  const tp__state *s = shared.state;
  for (size_t i = 0; i < s->count; i++) {
    size_t bytes = tp__shape_elements(&s->entry[i].shape, 0) * sizeof(float);
    char *first = malloc(bytes), *other = malloc(bytes);
    assert_true(first != NULL && other != NULL);
    for (int d = 0; d < REPLICAS; d++) {
      tp__event *event = NULL;
      char *to = d == 0 ? first : other;
      assert_ok(tp__device_buffer_read(s->entry[i].buffer[d], to, bytes, &event, &err));
      assert_ok(tp__event_wait(event, &err));
      if (d > 0 && memcmp(first, other, bytes) != 0)
        fail_msg("%s is not the same on replica %d", s->entry[i].name, d);
    }
    free(first);
    free(other);
  }
}

static void compare_losses(int step, int64_t n, const float *cpu, const float *devices,
                           double tolerance)
{
  double a = 0, b = 0;
  for (int64_t i = 0; i < n; i++) {
    a += (double)cpu[i] / (double)n;
    b += (double)devices[i] / (double)n;
  }
  if (!(fabs(a - b) <= tolerance * fabs(a)))
    fail_msg("step %d: loss %.9g on the CPU, %.9g on the devices", step, a, b);
}

struct run {
  tp__learner_options options;
  float rate;
  double loss, weights; /* tolerances */
};

/* 20 steps of the two side by side. */
static void train_both(tp__learner *ours, tp__learner *theirs, const struct run *r)
{
  tp_error err = {0};
  float loss[2][BATCH], scores[2][BATCH * CLASSES];
  for (int s = 0; s < STEPS; s++) {
    tp__batch b = batch_of(s), own = finished(b, &r->options.augment);
    assert_ok(tp__learner_step(ours, &own, NULL, r->rate, s, loss[0], scores[0], NULL, &err));
    assert_ok(tp__learner_step(theirs, &b, NULL, r->rate, s, loss[1], scores[1], NULL, &err));
    compare_losses(s, b.n, loss[0], loss[1], r->loss);
  }
}

/* The same with all steps in flight at once, so that calls of several steps are filled; 20 is no
 * multiple of 3. */
static void train_ahead(tp__learner *ours, tp__learner *theirs, const struct run *r)
{
  tp_error err = {0};
  static float loss[2][STEPS][BATCH], scores[STEPS][BATCH * CLASSES];
  tp__pending *pending[STEPS];
  for (int s = 0; s < STEPS; s++) {
    tp__batch b = batch_of(s);
    assert_ok(tp__learner_step(ours, &b, NULL, r->rate, s, loss[0][s], scores[s], NULL, &err));
    assert_ok(
        tp__learner_step(theirs, &b, NULL, r->rate, s, loss[1][s], scores[s], &pending[s], &err));
  }
  for (int s = 0; s < STEPS; s++) {
    assert_ok(tp__learner_wait(theirs, pending[s], &err));
    compare_losses(s, size_of(s), loss[0][s], loss[1][s], r->loss);
  }
}

static void same_as_cpu(void **state)
{
  const struct run *r = *state;
  const char *plugin = NULL;
  need_plugin(plugin, PJRT_CPU_106);
  tp__learner_options cpu = r->options;
  cpu.accumulate = 0;
  cpu.augment = (tp__net_augment){0};
  cpu.whole |= r->options.augment.flip; /* as the devices', whose pictures vary */
  tp__learner *ours = learner_on(shared.cpu, cpu), *theirs = learner_on(shared.devices, r->options);
  tp__net *net = NULL;
  tp_error err = {0};
  tp__tensors shapes = {0}, a = {0}, b = {0};
  (r->options.steps > 1 ? train_ahead : train_both)(ours, theirs, r);
  assert_ok(tp__net_build(&spec, false, &net, &err));
  assert_ok(tp__net_init(net, 3, &shapes, &err));
  read_changing(ours, &shapes, &a);
  read_changing(theirs, &shapes, &b);
  compare_tensors(&a, &b, r->weights);
  replicas_agree();
  tp__tensors_free(&a);
  tp__tensors_free(&b);
  tp__tensors_free(&shapes);
  tp__net_free(net);
  tp__learner_free(ours);
  tp__learner_free(theirs);
}

/* Each replica's own statistics: other numbers than the whole batch's, and still the same bits on
 * all replicas. */
static void local_statistics(void **state)
{
  (void)state;
  const char *plugin = NULL;
  need_plugin(plugin, PJRT_CPU_106);
  tp_error err = {0};
  float losses[BATCH], scores[BATCH * CLASSES];
  tp__learner_options o = {.last_n = -1, .batch_statistics = true, .local_statistics = true};
  tp__learner *l = learner_on(shared.devices, o);
  double first = 0, last = 0;
  for (int s = 0; s < STEPS; s++) {
    tp__batch b = batch_of(5 * (s / 2)); /* whole batches */
    assert_ok(tp__learner_step(l, &b, NULL, 1e-3f, s, losses, scores, NULL, &err));
    for (int i = 0; i < BATCH; i++) *(s < STEPS / 2 ? &first : &last) += (double)losses[i];
  }
  assert_true(isfinite(last) && last < first);
  replicas_agree();
  tp__learner_free(l);
}

/* Weights and the program that scores fit, and most of what the step takes. */
static uint64_t too_little(tp__learner_options o)
{
  tp__learner *l = learner_on(shared.devices, o);
  tp__program_info training = {0}, scoring = {0};
  tp__learner_info(l, &training, &scoring);
  assert_int_equal(training.parts, 1);
  tp__learner_free(l);
  return scoring.activation_bytes + scoring.weight_bytes + 2 * training.weight_bytes +
         training.activation_bytes * 9 / 10;
}

/* The batch goes through in parts by itself, and nothing else changes. */
static void parts_by_memory(void **state)
{
  (void)state;
  const char *plugin = NULL;
  need_plugin(plugin, PJRT_CPU_106);
  tp__learner_options o = {.last_n = -1};
  tp__learner *ours = learner_on(shared.cpu, o);
  o.memory_limit = too_little(o);
  tp__learner *theirs = learner_on(shared.devices, o);
  tp__program_info info = {0};
  tp__learner_info(theirs, &info, NULL);
  assert_true(info.parts > 1);
  train_both(ours, theirs, &(struct run){.options = o, .rate = 1e-4f, .loss = 1e-4});
  replicas_agree();
  tp__learner_free(ours);
  tp__learner_free(theirs);
}

/* Batch statistics can't be had in parts: the error is that of memory, with its sizes; of parts
 * that were asked for, that they can't be. */
static void no_parts_of_statistics(void **state)
{
  (void)state;
  const char *plugin = NULL;
  need_plugin(plugin, PJRT_CPU_106);
  tp_error err = {0};
  tp__learner *l = NULL;
  tp__learner_options o = {.last_n = -1, .batch_statistics = true};
  o.memory_limit = too_little(o);
  assert_fails(try_learner(shared.devices, o, &l, &err), TP_ERR_DEVICE,
               "out of memory: take a smaller batch");
  assert_non_null(strstr(err.text, "a batch of 32, 4 on each of 8 replicas, needs"));
  o.memory_limit = 0;
  o.accumulate = 2;
  assert_fails(try_learner(shared.devices, o, &l, &err), TP_ERR_USAGE, "batch_norm = frozen");
}

#define RUN(name, ...)                                                                             \
  {                                                                                                \
    name, same_as_cpu, NULL, NULL, &(struct run)__VA_ARGS__                                        \
  }

int main(void)
{
  const struct CMUnitTest tests[] = {
      RUN("frozen", {.rate = 1e-3f, .loss = 1e-5, .weights = 1e-5}),
      RUN("frozen, not cut, bytes", {.options = {.whole = true, .bytes = true},
                                     .rate = 1e-3f,
                                     .loss = 1e-5,
                                     .weights = 1e-5}),
      RUN("frozen, 3 steps a call", {.options = {.whole = true, .bytes = true, .steps = 3},
                                     .rate = 1e-3f,
                                     .loss = 1e-5,
                                     .weights = 1e-5}),
      RUN("frozen, in 2 parts, mirrored and turned on the devices",
          {.options = {.bytes = true,
                       .accumulate = 2,
                       .augment = {.flip = true, .rotate = 0.1f, .fill = TP__FILL_NEAREST}},
           .rate = 1e-3f,
           .loss = 1e-4,
           .weights = 1e-4}),
      RUN("last layers", {.options = {.last_n = 20}, .rate = 1e-4f, .loss = 1e-4, .weights = 1e-4}),
      RUN("last layers in 2 parts", {.options = {.last_n = 20, .accumulate = 2},
                                     .rate = 1e-4f,
                                     .loss = 1e-4,
                                     .weights = 1e-4}),
      RUN("all layers, statistics of the whole batch",
          {.options = {.last_n = -1, .batch_statistics = true, .drop_connect = 0.2f},
           .rate = 1e-4f,
           .loss = 1e-4,
           .weights = 1e-3}),
      cmocka_unit_test(local_statistics),
      cmocka_unit_test(parts_by_memory),
      cmocka_unit_test(no_parts_of_statistics),
  };
  return cmocka_run_group_tests(tests, open_devices, close_devices);
}
