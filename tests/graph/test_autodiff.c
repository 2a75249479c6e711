/* test_autodiff - which gradient nodes are made, and which are not: each operator's rule, sums
 * where a value has several readers, nothing below the lowest wanted parameter, an error where
 * there is no gradient. The expected texts are the chain rule written out by hand; that the
 * operators compute what they say is proved beside their kernels, against finite differences. */
#include "building.h"

static void gradient(tp__graph *g, tp__value loss, const tp__value *wanted, size_t n,
                     tp__value *grad)
{
  tp_error err = {0};
  assert_ok(tp__graph_gradient(g, loss, wanted, n, grad, &err));
  for (size_t i = 0; i < n; i++)
    if (grad[i] != TP__NONE)
      assert_true(tp__shape_equal(&g->node[grad[i]].shape, &g->node[wanted[i]].shape));
}

/* Any per-example value becomes a scalar whose gradient reaches all of it: mean over pixels, dense
 * layer, loss. */
static tp__value loss_of(tp__graph *g, tp__value x, const char *kernel)
{
  if (g->node[x].shape.rank == 4) x = NODE(g, GLOBAL_POOL, (0), x);
  tp__value logits = NODE(g, MATMUL, (0), x, param(g, "head/kernel", kernel));
  tp__value losses =
      NODE(g, CROSS_ENTROPY, (.f = {0.1f}), logits, typed_input(g, "labels", TP__I32, "N"));
  return NODE(g, WEIGHTED_SUM, (0), losses, input(g, "weights", "N"));
}

static void head(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x =
      bias_add(g, "dense", NODE(g, MATMUL, (0), input(g, "x", "N,6"), param(g, "k", "6,3")), "3");
  tp__value losses = NODE(g, CROSS_ENTROPY, (0), x, typed_input(g, "labels", TP__I32, "N"));
  tp__value loss = NODE(g, WEIGHTED_SUM, (0), losses, input(g, "weights", "N"));
  tp__value wanted[] = {param(g, "dense/bias", "3"), param(g, "k", "6,3"), param(g, "other", "3")};
  tp__value grad[3];
  gradient(g, loss, wanted, 3, grad);
  assert_int_equal(grad[2], TP__NONE);
  output(g, "bias", grad[0]);
  output(g, "kernel", grad[1]);
  expect_text(g, "%0 = input x : (None, 6)\n"
                 "%1 = param k : (6, 3)\n"
                 "%2 = matmul(%0, %1) : (None, 3)\n"
                 "%3 = param dense/bias : (3,)\n"
                 "%4 = bias_add(%2, %3) : (None, 3)  # dense\n"
                 "%5 = input labels : i32 (None,)\n"
                 "%6 = cross_entropy(%4, %5) : (None,)\n"
                 "%7 = input weights : (None,)\n"
                 "%8 = weighted_sum(%6, %7) : ()\n"
                 "%9 = param other : (3,)\n"
                 "%10 = constant 1 : ()\n"
                 "%11 = scale_rows(%10, %7) : (None,)\n"
                 "%12 = cross_entropy_grad(%4, %5, %11) : (None, 3)\n"
                 "%13 = sum_to_last(%12) : (3,)  # dense\n"
                 "%14 = matmul_kernel_grad(%0, %12) : (6, 3)\n"
                 "output bias = %13\n"
                 "output kernel = %14\n");
  tp__graph_free(g);
}

/* conv, batch norm, swish, dropout, pad, depthwise with everything trained: the rules in a row. */
static void layers(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,4,4,3"), keys = typed_input(g, "keys", TP__U32, "N,2");
  x = NODE(g, AFFINE, (.f = {2, -1}), x);
  x = conv(g, "c", x, "1,1,3,5", 1, 0);
  x = batch_norm(g, "b", x, "5");
  x = activation(g, "a", x, TP__ACT_SWISH);
  x = NODE(g, PAD, (.pad = {1, 2, 1, 2}), x);
  x = NODE(g, DEPTHWISE, (.stride = 2), x, param(g, "d/kernel", "3,3,5,1"),
           param(g, "d/bias", "5"));
  x = NODE(g, DROPOUT, (.f = {0.2f}, .draw = 3), x, keys);
  tp__value loss = loss_of(g, x, "5,2");
  int32_t first = g->count;
  tp__value wanted[] = {param(g, "c/kernel", "1,1,3,5"), param(g, "b/gamma", "5"),
                        param(g, "b/beta", "5"), param(g, "d/kernel", "3,3,5,1"),
                        param(g, "d/bias", "5")};
  tp__value grad[5];
  gradient(g, loss, wanted, 5, grad);
  static const tp__op expected[] = {TP__OP_CONSTANT,
                                    TP__OP_SCALE_ROWS,
                                    TP__OP_CROSS_ENTROPY_GRAD,
                                    TP__OP_MATMUL_INPUT_GRAD,
                                    TP__OP_BROADCAST_SPATIAL,
                                    TP__OP_DROPOUT,
                                    TP__OP_DEPTHWISE_INPUT_GRAD,
                                    TP__OP_DEPTHWISE_KERNEL_GRAD,
                                    TP__OP_SUM_TO_LAST,
                                    TP__OP_CROP,
                                    TP__OP_ACTIVATION_GRAD,
                                    TP__OP_BATCH_NORM_INPUT_GRAD,
                                    TP__OP_BATCH_NORM_GAMMA_GRAD,
                                    TP__OP_SUM_TO_LAST,
                                    TP__OP_CONV_KERNEL_GRAD};
  assert_int_equal(g->count - first, sizeof expected / sizeof expected[0]);
  for (int32_t i = first; i < g->count; i++)
    assert_string_equal(tp__op_name(g->node[i].op), tp__op_name(expected[i - first]));
  const tp__node *spread = &g->node[first + 4], *dropout = &g->node[first + 5];
  assert_true(spread->attr.f[0] == (float)(1.0 / 9)); /* 3 x 3 pixels */
  assert_int_equal(dropout->in[1], keys);
  assert_int_equal(dropout->attr.draw, 3);
  assert_string_equal(g->node[grad[1]].name, "b");
  tp__graph_free(g);
}

/* Squeeze-and-excite and a skip connection: x is read three times, so its gradient is a sum of
 * three. */
static void fan_in(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x = conv(g, "c", input(g, "x", "N,4,4,3"), "1,1,3,3", 1, 0);
  tp__value s = NODE(g, RESHAPE, (.shape = shape("N,1,1,3")), NODE(g, GLOBAL_POOL, (0), x));
  tp__value y = NODE(g, ADD, (0), NODE(g, MUL, (0), x, s), x);
  tp__value loss = loss_of(g, y, "3,2"), wanted = param(g, "c/kernel", "1,1,3,3"), grad;
  int32_t first = g->count;
  gradient(g, loss, &wanted, 1, &grad);
  output(g, "grad", grad);
  assert_int_equal(first, 14);
  expect_text(g, "%0 = input x : (None, 4, 4, 3)\n"
                 "%1 = param c/kernel : (1, 1, 3, 3)\n"
                 "%2 = conv(%0, %1) stride 1 pad 0,0,0,0 : (None, 4, 4, 3)  # c\n"
                 "%3 = global_pool(%2) : (None, 3)\n"
                 "%4 = reshape(%3) : (None, 1, 1, 3)\n"
                 "%5 = mul(%2, %4) : (None, 4, 4, 3)\n"
                 "%6 = add(%5, %2) : (None, 4, 4, 3)\n"
                 "%7 = global_pool(%6) : (None, 3)\n"
                 "%8 = param head/kernel : (3, 2)\n"
                 "%9 = matmul(%7, %8) : (None, 2)\n"
                 "%10 = input labels : i32 (None,)\n"
                 "%11 = cross_entropy(%9, %10) smoothing 0.100000001 : (None,)\n"
                 "%12 = input weights : (None,)\n"
                 "%13 = weighted_sum(%11, %12) : ()\n"
                 "%14 = constant 1 : ()\n"
                 "%15 = scale_rows(%14, %12) : (None,)\n"
                 "%16 = cross_entropy_grad(%9, %10, %15) smoothing 0.100000001 : (None, 2)\n"
                 "%17 = matmul_input_grad(%16, %8) : (None, 3)\n"
                 "%18 = broadcast_spatial(%17) factor 0.0625 : (None, 4, 4, 3)\n"
                 "%19 = mul(%18, %4) : (None, 4, 4, 3)\n"
                 "%20 = add(%18, %19) : (None, 4, 4, 3)\n"
                 "%21 = mul(%18, %2) : (None, 4, 4, 3)\n"
                 "%22 = sum_spatial(%21) : (None, 1, 1, 3)\n"
                 "%23 = reshape(%22) : (None, 3)\n"
                 "%24 = broadcast_spatial(%23) factor 0.0625 : (None, 4, 4, 3)\n"
                 "%25 = add(%20, %24) : (None, 4, 4, 3)\n"
                 "%26 = conv_kernel_grad(%0, %25) stride 1 pad 0,0,0,0 : (1, 1, 3, 3)  # c\n"
                 "output grad = %26\n");
  tp__graph_free(g);
}

/* One value read twice by one node: x * x and x + x; a shared parameter read by two layers. */
static void same_operand_twice(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value k = param(g, "k", "4,4"), x = NODE(g, MATMUL, (0), input(g, "x", "N,4"), k);
  x = NODE(g, MUL, (0), x, x);
  x = NODE(g, ADD, (0), x, x);
  x = NODE(g, MATMUL, (0), x, k);
  tp__value loss = loss_of(g, x, "4,2"), grad;
  gradient(g, loss, &k, 1, &grad);
  assert_int_equal(count_op(g, TP__OP_MUL), 3);
  assert_int_equal(count_op(g, TP__OP_ADD), 4); /* forward, x + x, x * x, k */
  assert_int_equal(g->node[grad].op, TP__OP_ADD);
  assert_int_equal(g->node[g->node[grad].in[0]].op, TP__OP_MATMUL_KERNEL_GRAD);
  assert_int_equal(g->node[g->node[grad].in[1]].op, TP__OP_MATMUL_KERNEL_GRAD);
  tp__graph_free(g);
}

/* Nothing is made for layers below the lowest wanted parameter, whatever they are. */
static void frozen_prefix(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,8,8,3");
  x = NODE(g, NORMALIZE, (0), x, param(g, "mean", "3"), param(g, "variance", "3"));
  x = batch_norm(g, "b1", conv(g, "c1", x, "3,3,3,4", 1, 1), "4");
  x = NODE(g, SOFTMAX, (0), NODE(g, GLOBAL_POOL, (0), x)); /* has no gradient, and needs none */
  tp__value loss = loss_of(g, x, "4,2"), wanted = param(g, "head/kernel", "4,2"), grad;
  int32_t first = g->count;
  gradient(g, loss, &wanted, 1, &grad);
  assert_int_equal(g->count - first, 4); /* 1, rows, logits, kernel */
  assert_int_equal(g->node[grad].op, TP__OP_MATMUL_KERNEL_GRAD);
  tp__value alone = param(g, "unused", "2");
  first = g->count;
  gradient(g, loss, &alone, 1, &grad);
  assert_int_equal(grad, TP__NONE);
  assert_int_equal(g->count, first);
  tp__graph_free(g);
}

/* The gradient of the loss itself, of an input and of a value in between. */
static void any_value(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,4"), y = activation(g, "a", x, TP__ACT_RELU);
  y = activation(g, "none", y, TP__ACT_NONE);
  tp__value loss = loss_of(g, y, "4,2"), wanted[] = {loss, x, y}, grad[3];
  gradient(g, loss, wanted, 3, grad);
  assert_int_equal(g->node[grad[0]].op, TP__OP_CONSTANT);
  assert_int_equal(g->node[grad[1]].op, TP__OP_ACTIVATION_GRAD);
  assert_int_equal(g->node[grad[2]].op, TP__OP_MATMUL_INPUT_GRAD);
  assert_int_equal(g->node[grad[1]].in[0], grad[2]);
  tp__graph_free(g);
}

/* Pad and crop are each other's gradient, with the same sides. */
static void crop_and_pad(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,4,4,3");
  tp__value y = NODE(g, CROP, (.pad = {0, 1, 2, 0}), NODE(g, PAD, (.pad = {4, 3, 2, 1}), x));
  tp__value loss = loss_of(g, y, "3,2"), grad;
  gradient(g, loss, &x, 1, &grad);
  const tp__node *crop = &g->node[grad], *pad = &g->node[crop->in[0]];
  assert_int_equal(crop->op, TP__OP_CROP);
  assert_memory_equal(crop->attr.pad, ((int[]){4, 3, 2, 1}), sizeof crop->attr.pad);
  assert_int_equal(pad->op, TP__OP_PAD);
  assert_memory_equal(pad->attr.pad, ((int[]){0, 1, 2, 0}), sizeof pad->attr.pad);
  tp__graph_free(g);
}

static void refuse(tp__graph *g, tp__value x, const char *kernel, tp__value wanted,
                   const char *part)
{
  tp_error err = {0};
  tp__value grad = 77, loss = loss_of(g, x, kernel);
  int32_t count = g->count;
  assert_fails(tp__graph_gradient(g, loss, &wanted, 1, &grad, &err), TP_ERR_INTERNAL, part);
  assert_int_equal(grad, 77);
  assert_int_equal(g->count, count);
  tp__graph_free(g);
}

static void without_gradient(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value k = param(g, "k", "4,4"), x = NODE(g, MATMUL, (0), input(g, "x", "N,4"), k);
  refuse(g, NODE(g, SOFTMAX, (0), x), "4,2", k, "softmax: there is no gradient for its operand x");

  g = new_graph();
  x = batch_norm(g, "bn", input(g, "x", "N,4"), "4");
  refuse(g, x, "4,2", param(g, "bn/moving_mean", "4"),
         "in bn: batch_norm: there is no gradient for its operand mean");

  g = new_graph();
  k = param(g, "k", "1,1,3,3");
  x = NODE(g, CONV, (.stride = 1, .act = TP__ACT_SWISH), input(g, "x", "N,4,4,3"), k);
  refuse(g, x, "3,2", k, "conv with activation swish: no gradient");

  g = new_graph();
  k = param(g, "k", "1,1,3,3");
  x = input(g, "x", "N,4,4,3");
  x = NODE(g, CONV, (.stride = 1), x, k, TP__NONE, x);
  refuse(g, x, "3,2", k, "conv with residual or scale: no gradient");

  g = new_graph();
  k = param(g, "k", "4,4");
  x = NODE(g, MATMUL, (.act = TP__ACT_RELU), input(g, "x", "N,4"), k);
  refuse(g, x, "4,2", k, "matmul with activation relu");

  g = new_graph();
  x = input(g, "x", "N,4,4,3");
  refuse(g, NODE(g, NORMALIZE, (0), x, param(g, "m", "3"), param(g, "v", "3")), "3,2", x,
         "normalize: there is no gradient for its operand x");
}

/* A loss that is no scalar, values that do not exist, a gradient of integers. */
static void hostile(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,4"), grad = 77, loss = loss_of(g, x, "4,2"), bad = 999;
  tp__value labels = 3;
  assert_string_equal(g->node[labels].name, "labels");
  assert_fails(tp__graph_gradient(g, x, &x, 1, &grad, &err), TP_ERR_INTERNAL,
               "the loss, input (None, 4), must be a scalar");
  assert_fails(tp__graph_gradient(g, 999, &x, 1, &grad, &err), TP_ERR_INTERNAL, "no value %999");
  assert_fails(tp__graph_gradient(g, loss, &bad, 1, &grad, &err), TP_ERR_INTERNAL, "%999");
  assert_fails(tp__graph_gradient(g, loss, &labels, 1, &grad, &err), TP_ERR_INTERNAL, "%3");
  assert_int_equal(grad, 77);
  tp__graph_free(g);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(head),          cmocka_unit_test(layers),
      cmocka_unit_test(fan_in),        cmocka_unit_test(same_operand_twice),
      cmocka_unit_test(frozen_prefix), cmocka_unit_test(any_value),
      cmocka_unit_test(crop_and_pad),  cmocka_unit_test(without_gradient),
      cmocka_unit_test(hostile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
