/* Proves batch norm by the statistics of the batch as a trained network uses it: case B18 of
 * ../shared/cases/README.md (numbers by Keras), statistics that survive a large mean, one drop per
 * example, the same bits for any number of threads and on AVX2 and AVX-512, memory that does not
 * keep what can be made again. Gradients: test_gradients; whole networks: test_golden_full.
 */
#include "small_nets.h"

#include <stdlib.h>

#include "backend/cpu/kernels.h"

/* ---- one unit ---- */

/* y = batch norm of x [N,1]; momentum 0.99, as Keras. */
static tp__graph *unit(bool trains)
{
  tp_error err = {0};
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,1");
  tp__value mean = param(g, "bn/moving_mean", "1"), variance = param(g, "bn/moving_variance", "1");
  tp__value statistic[2] = {mean, variance};
  if (trains) {
    tp__value moments = NODE(g, BATCH_MOMENTS, (0), x);
    for (int i = 0; i < 2; i++) {
      tp__value row = NODE(g, ROW, (.row = i), moments);
      tp__value moved = NODE(g, MOVING_AVERAGE, (.f = {0.99f}), statistic[i], row);
      assert_ok(tp__graph_assign(g, statistic[i], moved, &err));
      statistic[i] = row;
    }
  }
  tp__value gamma = param(g, "bn/gamma", "1"), beta = param(g, "bn/beta", "1");
  output(g, "y", NODE(g, BATCH_NORM, (.f = {1e-3f}), x, gamma, beta, statistic[0], statistic[1]));
  return g;
}

static void set(rig *r, const char *name, float value)
{
  tp_error err = {0};
  tp__tensors one = {0};
  tp__tensor *t = NULL;
  tp__shape shape = tp__shape_make(1, (int64_t[]){1});
  assert_ok(tp__tensors_add(&one, name, TP__F32, &shape, &t, &err));
  *(float *)t->data = value;
  assert_ok(r->backend->state_write(r->state, &one, &err));
  tp__tensors_free(&one);
}

static float get(rig *r, const char *name)
{
  tp_error err = {0};
  tp__tensors one = {0};
  tp__tensor *t = NULL;
  tp__shape shape = tp__shape_make(1, (int64_t[]){1});
  assert_ok(tp__tensors_add(&one, name, TP__F32, &shape, &t, &err));
  assert_ok(r->backend->state_read(r->state, &one, &err));
  float value = *(float *)t->data;
  tp__tensors_free(&one);
  return value;
}

static void one_unit(void **state)
{
  (void)state;
  static const struct {
    bool trains;
    double y[2], mean, variance;
  } cases[] = {{false, {0, 9.995004}, 0, 1}, {true, {-0.99998, 0.99998}, 0.05, 1.24}};
  for (int i = 0; i < 4; i++) {
    tp__graph *g = unit(cases[i / 2].trains);
    rig r = rig_new(g, 1, 2, i % 2 == 1);
    set(&r, "bn/gamma", 1);
    set(&r, "bn/beta", 0);
    set(&r, "bn/moving_mean", 0);
    set(&r, "bn/moving_variance", 1);
    ((float *)r.input[0])[0] = 0;
    ((float *)r.input[0])[1] = 10;
    rig_run(&r);
    for (int k = 0; k < 2; k++) assert_true(fabs(r.output[0][k] - cases[i / 2].y[k]) < 1e-5);
    assert_true(fabs(get(&r, "bn/moving_mean") - cases[i / 2].mean) < 1e-6);
    assert_true(fabs(get(&r, "bn/moving_variance") - cases[i / 2].variance) < 1e-6);
    rig_free(&r);
    tp__graph_free(g);
  }
}

/* ---- precision ---- */

/* Values around 10000 with deviation 1: squares minus the square of the mean would leave nothing.
 */
static void large_means(void **state)
{
  (void)state;
  enum { N = 7, PIXELS = 9 * 11, C = 21 };
  tp__graph *g = new_graph();
  output(g, "moments", NODE(g, BATCH_MOMENTS, (0), input(g, "x", "N,9,11,21")));
  rig fast = rig_new(g, 2, N, false);
  float *x = fast.input[0];
  double sum[C] = {0}, squares[C] = {0};
  for (int i = 0; i < N * PIXELS * C; i++) {
    x[i] = 10000 + 2 * x[i];
    sum[i % C] += x[i];
  }
  for (int i = 0; i < N * PIXELS * C; i++)
    squares[i % C] += pow(x[i] - sum[i % C] / (N * PIXELS), 2);
  rig_run(&fast);
  for (int c = 0; c < C; c++) {
    double variance = squares[c] / (N * PIXELS);
    assert_true(fabs(fast.output[0][c] - sum[c] / (N * PIXELS)) < 2e-3);
    assert_true(fabs(fast.output[0][C + c] - variance) < 1e-3 * variance);
  }
  rig_free(&fast);
  tp__graph_free(g);
}

/* ---- stochastic depth ---- */

static void whole_examples_drop(void **state)
{
  (void)state;
  enum { N = 400, ROW = 6 };
  tp__graph *g = new_graph();
  output(g, "y",
         NODE(g, DROPOUT, (.f = {0.25f}, .draw = 3, .flag = true), input(g, "x", "N,2,3"),
              typed_input(g, "keys", TP__U32, "N,2")));
  rig plain = rig_new(g, 1, N, true), fast = rig_new(g, 2, N, false);
  rig_run(&plain);
  rig_run(&fast);
  assert_memory_equal(plain.output[0], fast.output[0], N * ROW * sizeof(float));
  int dropped = 0;
  for (int i = 0; i < N; i++) {
    const float *x = (const float *)fast.input[0] + i * ROW, *y = fast.output[0] + i * ROW;
    bool gone = y[0] == 0;
    for (int j = 0; j < ROW; j++) assert_true(y[j] == (gone ? 0 : x[j] / 0.75f));
    dropped += gone;
  }
  assert_true(dropped > N / 4 - 40 && dropped < N / 4 + 40); /* 4.6 standard deviations */
  rig_free(&plain);
  rig_free(&fast);
  tp__graph_free(g);
}

/* ---- a network ---- */

/* Large and small layers, several blocks, each behind batch statistics. */
static tp__graph *network(void)
{
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,12,10,3");
  x = activation(g, "s", batch_norm_full(g, "stem_bn", conv(g, "stem", x, "3,3,3,20", 1, 1), "20"),
                 TP__ACT_SWISH);
  for (int i = 0; i < 3; i++) {
    char name[4][16];
    for (int k = 0; k < 4; k++) snprintf(name[k], sizeof name[k], "b%d%c", i, 'a' + k);
    tp__value y = conv(g, name[0], x, "1,1,20,40", 1, 0);
    y = activation(g, name[1], batch_norm_full(g, name[1], y, "40"), TP__ACT_SWISH);
    y = depthwise(g, name[2], y, "3,3,40,1", 1, 1);
    y = activation(g, name[2], batch_norm_full(g, name[2], y, "40"), TP__ACT_SWISH);
    y = squeeze_excite(g, name[2], y, 40, 5);
    y = batch_norm_full(g, name[3], conv(g, name[3], y, "1,1,40,20", 1, 0), "20");
    x = NODE(g, ADD, (0), y, x);
  }
  x = conv(g, "down", x, "3,3,20,24", 2, 0);
  x = activation(g, "t", batch_norm_full(g, "down_bn", x, "24"), TP__ACT_RELU);
  x = NODE(g, MATMUL, (0), NODE(g, GLOBAL_POOL, (0), x), param(g, "head/kernel", "24,4"));
  add_training(g, x, "");
  return g;
}

static void fast_equals_plain(void **state)
{
  (void)state;
  for (int i = 0; i < 2; i++) {
    tp__graph *g = i == 0 ? network() : build_dense();
    rig fast = rig_new(g, 2, 6, false), plain = rig_new(g, 1, 6, true);
    rig_run(&fast);
    rig_run(&plain);
    compare_outputs(&fast, &plain, i == 0 ? "blocks" : "dense");
    /* The blocks have gradients that are 0 but for rounding: a norm behind a norm. */
    if (i == 1) compare_states(&fast, &plain, "dense");
    rig_free(&fast);
    rig_free(&plain);
    tp__graph_free(g);
  }
}

static void same_bits_for_any_number_of_threads(void **state)
{
  (void)state;
  enum { N = 9 };
  tp__graph *g = network();
  const char *kept = getenv("TEPAL_CPU");
  char *old = kept != NULL ? strdup(kept) : NULL;
  rig first = rig_new(g, 1, N, false);
  rig_run(&first);
  rig_run(&first);
  const char *const set[] = {NULL, NULL, "avx2"};
  for (int i = 0; i < 3; i++) {
    const tp__kernels *k = NULL;
    if (set[i] != NULL && tp__kernels_choose(set[i], &k, NULL) != TP_OK) continue;
    if (set[i] != NULL) setenv("TEPAL_CPU", set[i], 1);
    rig r = rig_new(g, 2 + i, N, false);
    rig_run(&r);
    rig_run(&r);
    for (size_t o = 0; o < g->n_outputs; o++)
      assert_memory_equal(r.output[o], first.output[o], r.elements[o] * sizeof(float));
    rig_free(&r);
  }
  if (old != NULL)
    setenv("TEPAL_CPU", old, 1);
  else
    unsetenv("TEPAL_CPU");
  free(old);
  rig_free(&first);
  tp__graph_free(g);
}

/* What is kept for the batch grows with it by the outputs of the convolutions and little else. */
static void one_copy_is_kept(void **state)
{
  (void)state;
  tp__graph *g = network();
  rig few = rig_new(g, 1, 8, false), many = rig_new(g, 1, 16, false);
  tp__program_info a, b;
  few.backend->program_info(few.program, &a);
  many.backend->program_info(many.program, &b);
  double outputs = 0; /* floats of an example, channels padded to whole vectors */
  for (tp__value v = 0; v < g->count; v++) {
    const tp__node *n = &g->node[v];
    if (n->op != TP__OP_CONV && n->op != TP__OP_DEPTHWISE) continue;
    int64_t c = (n->shape.dim[3] + 15) / 16 * 16;
    outputs += (double)(n->shape.dim[1] * n->shape.dim[2] * c);
  }
  double growth = (double)(b.activation_bytes - a.activation_bytes) / 8 / 4;
  if (!(growth < 1.45 * outputs)) /* the sums of the blocks are kept, and one gradient */
    fail_msg("an example keeps %g floats, its convolutions give %g", growth, outputs);
  rig_free(&few);
  rig_free(&many);
  tp__graph_free(g);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_unit),
      cmocka_unit_test(large_means),
      cmocka_unit_test(whole_examples_drop),
      cmocka_unit_test(fast_equals_plain),
      cmocka_unit_test(same_bits_for_any_number_of_threads),
      cmocka_unit_test(one_copy_is_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
