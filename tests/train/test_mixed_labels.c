/* Proves that a step on mixed labels has the loss share x loss(label) + (1 - share) x loss(other
 * label) for each example, and the same mixture of the two gradients, with weights and smoothing,
 * for a frozen backbone and for all layers, fast and by plain loops. Expected: steps on each of the
 * two labels alone. */
#include "train_testing.h"

#include <math.h>

#include "train/learner.h"

enum { N = 5, SIDE = 32, PIXELS = SIDE * SIDE * 3 };

static float pixels[N * PIXELS];
static const int32_t one[N] = {0, 1, 2, 0, 1}, two[N] = {2, 0, 2, 1, 0};
static const float weights[N] = {1, 0.5f, 2, 1, 3};

typedef struct outcome {
  float losses[N], scores[N * CLASSES];
  tp__tensors after;
} outcome;

static outcome step(tp__backend *cpu, bool reference, int last_n, const tp__tensors *start,
                    const tp__batch *batch)
{
  tp_error err = {0};
  outcome o = {.after = {0}};
  tp__learner *l = NULL;
  const tp__learner_options lo = {
      .spec = {.name = "efficientnet-lite0", .height = SIDE, .width = SIDE, .classes = CLASSES},
      .last_n = last_n,
      .optimizer = {.kind = TP__OPTIMIZER_SGD},
      .label_smoothing = 0.1f,
      .mixes = batch->share != NULL,
      .batch = N,
      .reference = reference};
  assert_ok(tp__learner_new(cpu, &lo, start, NULL, &l, &err));
  assert_ok(tp__learner_step(l, batch, weights, 0.5f, 0, o.losses, o.scores, NULL, &err));
  assert_ok(tp__tensors_copy(start, &o.after, &err));
  assert_ok(tp__learner_read(l, &o.after, &err));
  tp__learner_free(l);
  return o;
}

/* change = share x change of one + (1 - share) x change of two, where all shares are the same. */
static void check_change(const tp__tensors *start, const outcome *a, const outcome *b,
                         const outcome *m, double share)
{
  double largest = 0;
  for (size_t i = 0; i < start->count; i++) {
    const float *from = start->item[i].data, *x = a->after.item[i].data;
    const float *y = b->after.item[i].data, *z = m->after.item[i].data;
    for (size_t k = 0; start->item[i].dtype == TP__F32 && k < tp__tensor_bytes(&start->item[i]) / 4;
         k++) {
      double wanted = share * (double)(x[k] - from[k]) + (1 - share) * (double)(y[k] - from[k]);
      largest = fmax(largest, fabs(wanted));
      if (!(fabs((double)(z[k] - from[k]) - wanted) < 1e-5))
        fail_msg("%s[%zu] changes by %g, wanted %g", start->item[i].name, k,
                 (double)(z[k] - from[k]), wanted);
    }
  }
  assert_true(largest > 1e-3);
}

static void run(bool reference, int last_n)
{
  tp_error err = {0};
  tp__pool *pool = NULL;
  tp__backend *cpu = NULL;
  tp__net *net = NULL;
  tp__tensors start = {0};
  assert_ok(tp__pool_new(2, &pool, &err));
  assert_ok(tp__backend_cpu(pool, &cpu, &err));
  const tp__model_spec spec = {
      .name = "efficientnet-lite0", .height = SIDE, .width = SIDE, .classes = CLASSES};
  assert_ok(tp__net_build(&spec, false, &net, &err));
  assert_ok(tp__net_init(net, 3, &start, &err));
  for (int i = 0; i < N * PIXELS; i++) pixels[i] = (float)((unsigned)i * 2654435761u >> 24);
  const float same[N] = {0.7f, 0.7f, 0.7f, 0.7f, 0.7f}, mixed[N] = {0.5f, 0.6f, 0.75f, 0.9f, 1};
  tp__batch batch = {.n = N, .pixels = pixels, .labels = one};
  outcome a = step(cpu, reference, last_n, &start, &batch);
  batch.labels = two;
  outcome b = step(cpu, reference, last_n, &start, &batch);
  batch.labels = one;
  batch.labels_2 = two;
  for (int k = 0; k < 2; k++) {
    batch.share = k == 0 ? same : mixed;
    outcome m = step(cpu, reference, last_n, &start, &batch);
    for (int i = 0; i < N; i++) {
      float wanted = batch.share[i] * a.losses[i] + (1 - batch.share[i]) * b.losses[i];
      if (!(fabsf(m.losses[i] - wanted) < 1e-5f))
        fail_msg("example %d: loss %g, wanted %g", i, (double)m.losses[i], (double)wanted);
    }
    assert_memory_equal(m.scores, a.scores, sizeof m.scores);
    if (k == 0) check_change(&start, &a, &b, &m, 0.7);
    tp__tensors_free(&m.after);
  }
  tp__tensors_free(&a.after);
  tp__tensors_free(&b.after);
  tp__tensors_free(&start);
  tp__net_free(net);
  cpu->free(cpu);
  tp__pool_free(pool);
}

static void frozen_backbone(void **state)
{
  (void)state;
  run(true, 0);
  run(false, 0);
}

static void all_layers(void **state)
{
  (void)state;
  run(true, -1);
  run(false, -1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(frozen_backbone),
      cmocka_unit_test(all_layers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
