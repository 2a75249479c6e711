/* test_print - the text of a graph: each operator's own settings, absent operands, types, layers,
 * outputs, assignments. Expected texts: the form that graph.h describes. */
#include "building.h"

static void sources_and_results(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x = input(g, "pixels", "N,4,4,3"), k = param(g, "c/kernel", "1,1,3,3");
  typed_input(g, "keys", TP__U32, "N,2");
  NODE(g, CONSTANT, (.f = {0.5f}), TP__NONE);
  tp__value y = NODE(g, CONV, (.stride = 1, .act = TP__ACT_SWISH), x, k, TP__NONE, x);
  output(g, "y", named(g, "block2b_add", y));
  assign(g, k, param(g, "new", "1,1,3,3"));
  expect_text(g, "%0 = input pixels : (None, 4, 4, 3)\n"
                 "%1 = param c/kernel : (1, 1, 3, 3)\n"
                 "%2 = input keys : u32 (None, 2)\n"
                 "%3 = constant 0.5 : ()\n"
                 "%4 = conv(%0, %1, -, %0) stride 1 pad 0,0,0,0 act swish : (None, 4, 4, 3)"
                 "  # block2b_add\n"
                 "%5 = param new : (1, 1, 3, 3)\n"
                 "output y = %4\n"
                 "assign c/kernel = %5\n");
  tp__graph_free(g);
}

/* Every setting that an operator has appears, and only when it says something. */
static void settings(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,4,4,3"), c = param(g, "c", "3"), s = param(g, "s", "");
  tp__value r = input(g, "r", "N,3"), keys = typed_input(g, "keys", TP__U32, "N,2");
  tp__value labels = typed_input(g, "labels", TP__I32, "N"), d = param(g, "d", "3,3,3,1");
  int32_t first = g->count;
  NODE(g, AFFINE, (.f = {0.25f, -1}), x);
  NODE(g, AFFINE, (.f = {1, 2, 3}, .flag = true), x);
  NODE(g, PAD, (.pad = {1, 2, 3, 4}), x);
  NODE(g, CROP, (.pad = {1, 0, 0, 1}), x);
  NODE(g, DEPTHWISE, (.stride = 2, .pad = {1, 1, 1, 1}, .act = TP__ACT_RELU6), x, d);
  NODE(g, BATCH_NORM, (.f = {0.5f}), x, c, c, c, c);
  NODE(g, ACTIVATION, (.act = TP__ACT_SIGMOID), x);
  NODE(g, DROPOUT, (.f = {0.5f}, .draw = 7), r, keys);
  NODE(g, CROSS_ENTROPY, (0), r, labels);
  NODE(g, CROSS_ENTROPY, (.f = {0.5f}), r, labels);
  NODE(g, DEPTHWISE_INPUT_GRAD, (.stride = 1, .shape = shape("N,6,6,3")), x, d);
  NODE(g, BATCH_NORM_INPUT_GRAD, (.f = {0.5f}), x, c, c);
  NODE(g, ACTIVATION_GRAD, (.act = TP__ACT_RELU), x, x);
  NODE(g, SUM_SPATIAL, (.f = {1}), x);
  NODE(g, BROADCAST_SPATIAL, (.f = {0.5f}, .shape = shape("N,4,4,3")), r);
  NODE(g, FOLD_KERNEL, (.f = {0.5f}, .depthwise = true), d, c, c);
  NODE(g, FOLD_BIAS, (.f = {0.5f}), c, c, c, c);
  NODE(g, ADAM_M, (.f = {0.5f}), c, c);
  NODE(g, ADAM_V, (.f = {0.25f}), c, c);
  NODE(g, ADAM_PARAM, (.f = {0.5f, 0.25f, 0.125f}), c, c, c, s, s);
  NODE(g, SGD_MOMENTUM, (.f = {0.5f}), c, c, s);
  NODE(g, SGD_PARAM, (0), c, c);
  NODE(g, SGD_PARAM, (.f = {0.5f}, .flag = true), c, c, c, s);
  NODE(g, AFFINE, (.f = {1, 2, 3}, .g = {0, 4, 0}, .flag = true), x);
  NODE(g, BATCH_NORM, (.f = {0.5f}, .act = TP__ACT_RELU), x, c, c, c, c);
  NODE(g, CONV, (.stride = 1, .act = TP__ACT_RELU, .flag = true), x, d, TP__NONE,
       input(g, "y", "N,2,2,1"));
  NODE(g, MAX_POOL, (.window = 3, .stride = 2, .pad = {1, 1, 1, 1}), x);
  NODE(g, AVG_POOL_GRAD, (.window = 4, .stride = 1, .shape = shape("N,7,7,3")), x);
  NODE(g, CONCAT, (0), x, x);
  NODE(g, SLICE_CHANNELS, (.first = 1, .shape = shape("N,4,4,2")), x);
  NODE(g, RANDOM_FLIP, (0), x, keys);
  NODE(g, RANDOM_ROTATION, (.f = {0.125f}, .fill = TP__FILL_NEAREST), x, keys);
  NODE(g, RANDOM_ROTATION, (.f = {0.125f, 0.5f}, .fill = TP__FILL_CONSTANT), x, keys);
  tp_error err = {0};
  tp__buffer text;
  tp__buffer_init(&text, 1 << 16);
  assert_ok(tp__graph_print(g, &text, &err));
  const char *start = strstr((const char *)text.data, "%7 = ");
  assert_int_equal(first, 7);
  assert_non_null(start);
  assert_string_equal(
      start, "%7 = affine(%0) factor 0.25 offset -1 : (None, 4, 4, 3)\n"
             "%8 = affine(%0) factors 1,2,3 : (None, 4, 4, 3)\n"
             "%9 = pad(%0) pad 1,2,3,4 : (None, 7, 11, 3)\n"
             "%10 = crop(%0) pad 1,0,0,1 : (None, 3, 3, 3)\n"
             "%11 = depthwise(%0, %6) stride 2 pad 1,1,1,1 act relu6 : (None, 2, 2, 3)\n"
             "%12 = batch_norm(%0, %1, %1, %1, %1) epsilon 0.5 : (None, 4, 4, 3)\n"
             "%13 = activation(%0) act sigmoid : (None, 4, 4, 3)\n"
             "%14 = dropout(%3, %4) rate 0.5 draw 7 : (None, 3)\n"
             "%15 = cross_entropy(%3, %5) : (None,)\n"
             "%16 = cross_entropy(%3, %5) smoothing 0.5 : (None,)\n"
             "%17 = depthwise_input_grad(%0, %6) stride 1 pad 0,0,0,0 : (None, 6, 6, 3)\n"
             "%18 = batch_norm_input_grad(%0, %1, %1) epsilon 0.5 : (None, 4, 4, 3)\n"
             "%19 = activation_grad(%0, %0) act relu : (None, 4, 4, 3)\n"
             "%20 = sum_spatial(%0) : (None, 1, 1, 3)\n"
             "%21 = broadcast_spatial(%3) factor 0.5 : (None, 4, 4, 3)\n"
             "%22 = fold_kernel(%6, %1, %1) depthwise epsilon 0.5 : (3, 3, 3, 1)\n"
             "%23 = fold_bias(%1, %1, %1, %1) epsilon 0.5 : (3,)\n"
             "%24 = adam_m(%1, %1) beta1 0.5 : (3,)\n"
             "%25 = adam_v(%1, %1) beta2 0.25 : (3,)\n"
             "%26 = adam_param(%1, %1, %1, %2, %2) beta1 0.5 beta2 0.25 epsilon 0.125 : (3,)\n"
             "%27 = sgd_momentum(%1, %1, %2) momentum 0.5 : (3,)\n"
             "%28 = sgd_param(%1, %1) : (3,)\n"
             "%29 = sgd_param(%1, %1, %1, %2) nesterov 0.5 : (3,)\n"
             "%30 = affine(%0) factors 1,2,3 offsets 0,4,0 : (None, 4, 4, 3)\n"
             "%31 = batch_norm(%0, %1, %1, %1, %1) epsilon 0.5 act relu : (None, 4, 4, 3)\n"
             "%32 = input y : (None, 2, 2, 1)\n"
             "%33 = conv(%0, %6, -, %32) stride 1 pad 0,0,0,0 act relu last : (None, 2, 2, 1)\n"
             "%34 = max_pool(%0) window 3 stride 2 pad 1,1,1,1 : (None, 2, 2, 3)\n"
             "%35 = avg_pool_grad(%0) window 4 stride 1 pad 0,0,0,0 : (None, 7, 7, 3)\n"
             "%36 = concat(%0, %0) : (None, 4, 4, 6)\n"
             "%37 = slice_channels(%0) first 1 : (None, 4, 4, 2)\n"
             "%38 = random_flip(%0, %4) : (None, 4, 4, 3)\n"
             "%39 = random_rotation(%0, %4) turn 0.125 fill nearest : (None, 4, 4, 3)\n"
             "%40 = random_rotation(%0, %4) turn 0.125 fill 0.5 : (None, 4, 4, 3)\n");
  tp__buffer_free(&text);
  tp__graph_free(g);
}

/* Every operator and activation has a name, and no two the same. */
static void every_name(void **state)
{
  (void)state;
  for (int a = 0; a < TP__OP_COUNT; a++)
    for (int b = 0; b < a; b++)
      assert_string_not_equal(tp__op_name((tp__op)a), tp__op_name((tp__op)b));
  assert_string_equal(tp__op_name(TP__OP_COUNT), "unknown operator");
  assert_string_equal(tp__act_name(TP__ACT_RELU6), "relu6");
  assert_string_equal(tp__act_name((tp__act)77), "unknown activation");
}

/* A buffer that is too small is an error, not a cut text. */
static void small_buffer(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__buffer text;
  tp__graph *g = new_graph();
  input(g, "a_name_that_is_rather_long", "N,4,4,3");
  tp__buffer_init(&text, 20);
  assert_fails(tp__graph_print(g, &text, &err), TP_ERR_DATA, "limit of 20 bytes");
  tp__buffer_free(&text);
  tp__graph_free(g);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sources_and_results),
      cmocka_unit_test(settings),
      cmocka_unit_test(every_name),
      cmocka_unit_test(small_buffer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
