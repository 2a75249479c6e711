/* Proves that programs compiled for products of bfloat16 compute what the plain loops do with
 * factors rounded to bfloat16; that bits don't depend on threads, on how examples come in batches
 * or on a memory limit; that products are all that is rounded (the mean of 4096 ones is 1; a
 * network's scaling and softmax are float32: ../shared/cases B25, B26); and that a processor
 * without such products says so.
 *
 * Tolerances: where batch norm is folded into kernels, the folded kernel is what is rounded, the
 * plain loops round the kernel as it is: each factor then differs by up to 2^-8 of itself. Where
 * nothing is folded only sums differ, in the order of their last bits (the plain loops sum in
 * double), and with them, rarely, the last bit of a rounded factor. Outputs are relative to the
 * largest, gradients (Adam's first moments) likewise. On a machine without the instructions only
 * the refusal runs.
 */
#include "small_nets.h"

#include <stdlib.h>

static rig bf16_rig(const tp__graph *g, int threads, int64_t n, bool reference, uint64_t limit)
{
  const tp__compile_options o = {
      .batch = n, .reference = reference, .bf16 = true, .memory_limit = limit};
  tp_error err = {0};
  rig r;
  assert_ok(rig_make(&r, g, threads, &o, NULL, &err));
  return r;
}

/* Does this machine have the products? Their speed is not asked for here. */
static bool is_refused(const char *cap, char text[sizeof(tp_error)])
{
  tp__graph *g = new_graph();
  output(g, "y", NODE(g, MATMUL, (0), input(g, "x", "N,5"), param(g, "w/kernel", "5,3")));
  const tp__compile_options o = {.batch = 2, .bf16 = true};
  tp_error err = {0};
  rig r;
  if (cap != NULL) setenv("TEPAL_CPU", cap, 1);
  tp_status status = rig_make(&r, g, 1, &o, NULL, &err);
  if (cap != NULL) unsetenv("TEPAL_CPU");
  assert_true(status == TP_OK || status == TP_ERR_USAGE);
  snprintf(text, sizeof err, "%s", err.text);
  rig_free(&r);
  tp__graph_free(g);
  return status != TP_OK;
}

static void need_products(void)
{
  char text[sizeof(tp_error)];
  if (is_refused(NULL, text)) skip();
}

static void refusal(void **state)
{
  (void)state;
  char text[sizeof(tp_error)];
  assert_true(is_refused("baseline", text));
  assert_non_null(strstr(text, "avx512_bf16"));
  assert_non_null(strstr(text, "TEPAL_CPU"));
  assert_non_null(strstr(text, "float32"));
}

static void compare(rig *fast, rig *plain, double outputs, double slots, const char *what)
{
  for (size_t o = 0; o < fast->graph->n_outputs; o++) {
    double d = difference(fast->output[o], plain->output[o], fast->elements[o], 1e-3);
    if (!(d < outputs))
      fail_msg("%s: output %s differs by %g", what, fast->graph->output[o].name, d);
  }
  tp__tensors a = {0}, b = {0};
  rig_read(fast, &a);
  rig_read(plain, &b);
  for (size_t i = 0; i < a.count; i++) {
    if (strncmp(a.item[i].name, "adam/m", 6) != 0) continue;
    size_t count = tp__shape_elements(&a.item[i].shape, 0);
    double d = difference(a.item[i].data, b.item[i].data, count, 1e-4);
    if (!(d < slots)) fail_msg("%s: %s differs by %g", what, a.item[i].name, d);
  }
  tp__tensors_free(&a);
  tp__tensors_free(&b);
}

static void check(tp__graph *g, double outputs, double slots, const char *what)
{
  rig fast = bf16_rig(g, 2, 6, false, 0), plain = bf16_rig(g, 1, 6, true, 0);
  rig_run(&fast);
  rig_run(&plain);
  compare(&fast, &plain, outputs, slots, what);
  rig_free(&fast);
  rig_free(&plain);
  tp__graph_free(g);
}

static void fast_equals_plain(void **state)
{
  (void)state;
  need_products();
  char what[128];
  for (int i = 0; i < SMALL_NETS; i++)
    for (int k = 0; k < KINDS; k++) {
      snprintf(what, sizeof what, "%s, %s", small_nets[i].name, kinds[k].name);
      check(build_kind(&small_nets[i], &kinds[k]), 0.015, 0.04, what);
    }
  check(build_dense(), 5e-3, 0.02, "a dense block by batch statistics");
}

static void same_bits(void **state)
{
  (void)state;
  need_products();
  for (int i = 0; i < SMALL_NETS; i++) {
    tp__graph *g = build_kind(&small_nets[i], &kinds[3]);
    rig one = bf16_rig(g, 1, 19, false, 0);
    tp__program_info info;
    one.backend->program_info(one.program, &info);
    const uint64_t limit = (info.activation_bytes + info.weight_bytes) * 9 / 10;
    for (int step = 0; step < 2; step++) rig_run(&one);
    for (int threads = 2; threads <= 8; threads += 3) {
      const tp__compile_options o = {
          .batch = 19, .bf16 = true, .memory_limit = threads == 2 ? limit : 0};
      tp_error err = {0};
      rig many;
      if (rig_make(&many, g, threads, &o, NULL, &err) == TP_OK) { /* a limit may be out of reach */
        for (int step = 0; step < 2; step++) rig_run(&many);
        expect_same_outputs(&many, &one, small_nets[i].name);
        expect_same_state(&many, &one, small_nets[i].name);
      } else {
        assert_int_equal(threads, 2);
      }
      rig_free(&many);
    }
    rig_free(&one);
    tp__graph_free(g);
  }
}

static void same_bits_for_any_batch(void **state)
{
  (void)state;
  need_products();
  const int64_t sizes[] = {1, 3, 4, 31};
  for (int i = 0; i < SMALL_NETS; i++) {
    tp__graph *g = build_kind(&small_nets[i], &kinds[0]);
    rig whole = bf16_rig(g, 2, 32, false, 0), parts = bf16_rig(g, 2, 32, false, 0);
    rig_run(&whole);
    expect_same_in_parts(&parts, &whole, sizes, 4, small_nets[i].name);
    rig_free(&whole);
    rig_free(&parts);
    tp__graph_free(g);
  }
}

/* B25: sums are float32's: 64 x 64 ones have the mean 1, and a product of 700 ones is 700. */
static void sums(void **state)
{
  (void)state;
  need_products();
  tp__graph *g = new_graph();
  tp__value one = NODE(g, AFFINE, (.f = {0, 1}), input(g, "x", "N,64,64,16"));
  output(g, "mean", NODE(g, GLOBAL_POOL, (0), one));
  tp__value row = NODE(g, AFFINE, (.f = {0, 1}), input(g, "y", "N,1,1,700"));
  int64_t dim[2] = {TP__N, 700};
  row = NODE(g, RESHAPE, (.shape = tp__shape_make(2, dim)), row);
  tp__value gram = NODE(g, MATMUL_KERNEL_GRAD, (0), row, row); /* ones, n of them added */
  output(g, "product", NODE(g, MATMUL, (0), row, gram));
  rig r = bf16_rig(g, 2, 3, false, 0);
  rig_run(&r);
  for (size_t i = 0; i < r.elements[0]; i++) assert_true(r.output[0][i] == 1);
  for (size_t i = 0; i < r.elements[1]; i++) assert_true(r.output[1][i] == 3 * 700);
  rig_free(&r);
  tp__graph_free(g);
}

/* A row of each program's output must sum to 1, with no zeros. */
static void check_probabilities(const float *row, size_t classes)
{
  double sum = 0;
  for (size_t c = 0; c < classes; c++) {
    assert_true(row[c] > 0);
    sum += (double)row[c];
  }
  assert_true(fabs(sum - 1) <= 1e-6);
}

/* B26: white pictures; scaling has the bits of the float32 program, scores are float32's softmax.
 */
static void scaling_and_softmax(void **state)
{
  (void)state;
  need_products();
  tp__graph *g = new_graph();
  tp__value x = NODE(g, AFFINE, (.f = {1.0f / 255, 0}), input(g, "pixels", "N,32,30,3"));
  x = NODE(g, NORMALIZE, (0), x, param(g, "normalization/mean", "3"),
           param(g, "normalization/variance", "3"));
  output(g, "scaled", x);
  x = batch_norm(g, "stem_bn", conv(g, "stem", x, "3,3,3,32", 2, 1), "32");
  x = NODE(g, GLOBAL_POOL, (0), activation(g, "stem_act", x, TP__ACT_SWISH));
  x = NODE(g, MATMUL, (0), x, param(g, "predictions/kernel", "32,104"));
  output(g, "probabilities", NODE(g, SOFTMAX, (0), x));
  rig bf16 = bf16_rig(g, 2, 3, false, 0), plain = rig_new(g, 2, 3, false),
      *rigs[] = {&bf16, &plain};
  for (int i = 0; i < 2; i++) {
    for (tp__value v = 0; v < g->count; v++)
      for (size_t j = 0; g->node[v].op == TP__OP_INPUT && j < (size_t)3 * 32 * 30 * 3; j++)
        ((float *)rigs[i]->input[v])[j] = 255;
    rig_run(rigs[i]);
    for (size_t row = 0; row < 3; row++) check_probabilities(rigs[i]->output[1] + row * 104, 104);
  }
  assert_memory_equal(bf16.output[0], plain.output[0], bf16.elements[0] * sizeof(float));
  assert_true(difference(bf16.output[1], plain.output[1], bf16.elements[1], 0) < 0.01);
  assert_memory_not_equal(bf16.output[1], plain.output[1], bf16.elements[1] * sizeof(float));
  rig_free(&bf16);
  rig_free(&plain);
  tp__graph_free(g);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refusal),   cmocka_unit_test(fast_equals_plain),
      cmocka_unit_test(same_bits), cmocka_unit_test(same_bits_for_any_batch),
      cmocka_unit_test(sums),      cmocka_unit_test(scaling_and_softmax),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
