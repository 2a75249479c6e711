/* test_optimize - the rewritten form of small networks, as text, in inference and with a trained
 * tail; and what must not be rewritten: values that gradients, outputs or other layers read, and
 * batch norms that the graph trains. The expected texts are the rules of graph.h applied by hand.
 */
#include "building.h"

static void expect_optimized(const tp__graph *g, const char *expected)
{
  tp_error err = {0};
  tp__graph *better = NULL, *again = NULL;
  assert_ok(tp__graph_optimize(g, &better, &err));
  expect_text(better, expected);
  assert_ok(tp__graph_optimize(better, &again, &err));
  expect_text(again, expected);
  tp__graph_free(again);
  tp__graph_free(better);
}

/* An inverted residual block with squeeze-and-excite as Keras' EfficientNet names it (block2b), 4
 * channels. */
static tp__value mbconv(tp__graph *g, tp__value x)
{
  tp__value y = conv(g, "expand_conv", x, "1,1,4,8", 1, 0);
  y = activation(g, "expand_activation", batch_norm(g, "expand_bn", y, "8"), TP__ACT_SWISH);
  y = batch_norm(g, "bn", depthwise(g, "dwconv", y, "3,3,8,1", 1, 1), "8");
  y = activation(g, "activation", y, TP__ACT_SWISH);
  tp__value s = named(g, "se_squeeze", NODE(g, GLOBAL_POOL, (0), y));
  s = named(g, "se_reshape", NODE(g, RESHAPE, (.shape = shape("N,1,1,8")), s));
  s = bias_add(g, "se_reduce", conv(g, "se_reduce", s, "1,1,8,2", 1, 0), "2");
  s = activation(g, "se_reduce", s, TP__ACT_SWISH);
  s = bias_add(g, "se_expand", conv(g, "se_expand", s, "1,1,2,8", 1, 0), "8");
  s = activation(g, "se_expand", s, TP__ACT_SIGMOID);
  y = named(g, "se_excite", NODE(g, MUL, (0), y, s));
  y = batch_norm(g, "project_bn", conv(g, "project_conv", y, "1,1,8,4", 1, 0), "4");
  return named(g, "add", NODE(g, ADD, (0), y, x));
}

static void inference(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  output(g, "y", mbconv(g, input(g, "x", "N,6,6,4")));
  expect_optimized(
      g,
      "%0 = input x : (None, 6, 6, 4)\n"
      "%1 = param expand_conv/kernel : (1, 1, 4, 8)\n"
      "%2 = param expand_bn/gamma : (8,)\n"
      "%3 = param expand_bn/beta : (8,)\n"
      "%4 = param expand_bn/moving_mean : (8,)\n"
      "%5 = param expand_bn/moving_variance : (8,)\n"
      "%6 = fold_kernel(%1, %2, %5) epsilon 0.00100000005 : (1, 1, 4, 8)  # expand_bn\n"
      "%7 = fold_bias(%2, %3, %4, %5) epsilon 0.00100000005 : (8,)  # expand_bn\n"
      "%8 = conv(%0, %6, %7) stride 1 pad 0,0,0,0 act swish : (None, 6, 6, 8)  # "
      "expand_activation\n"
      "%9 = param dwconv/kernel : (3, 3, 8, 1)\n"
      "%10 = param bn/gamma : (8,)\n"
      "%11 = param bn/beta : (8,)\n"
      "%12 = param bn/moving_mean : (8,)\n"
      "%13 = param bn/moving_variance : (8,)\n"
      "%14 = fold_kernel(%9, %10, %13) depthwise epsilon 0.00100000005 : (3, 3, 8, 1)  # bn\n"
      "%15 = fold_bias(%10, %11, %12, %13) epsilon 0.00100000005 : (8,)  # bn\n"
      "%16 = depthwise(%8, %14, %15) stride 1 pad 1,1,1,1 act swish : (None, 6, 6, 8)  # "
      "activation\n"
      "%17 = global_pool(%16) : (None, 8)  # se_squeeze\n"
      "%18 = reshape(%17) : (None, 1, 1, 8)  # se_reshape\n"
      "%19 = param se_reduce/kernel : (1, 1, 8, 2)\n"
      "%20 = param se_reduce/bias : (2,)\n"
      "%21 = conv(%18, %19, %20) stride 1 pad 0,0,0,0 act swish : (None, 1, 1, 2)  # se_reduce\n"
      "%22 = param se_expand/kernel : (1, 1, 2, 8)\n"
      "%23 = param se_expand/bias : (8,)\n"
      "%24 = conv(%21, %22, %23) stride 1 pad 0,0,0,0 act sigmoid : (None, 1, 1, 8)  # se_expand\n"
      "%25 = param project_conv/kernel : (1, 1, 8, 4)\n"
      "%26 = param project_bn/gamma : (4,)\n"
      "%27 = param project_bn/beta : (4,)\n"
      "%28 = param project_bn/moving_mean : (4,)\n"
      "%29 = param project_bn/moving_variance : (4,)\n"
      "%30 = fold_kernel(%25, %26, %29) epsilon 0.00100000005 : (1, 1, 8, 4)  # project_bn\n"
      "%31 = fold_bias(%26, %27, %28, %29) epsilon 0.00100000005 : (4,)  # project_bn\n"
      "%32 = conv(%16, %30, %31, %0, %24) stride 1 pad 0,0,0,0 : (None, 6, 6, 4)  # add\n"
      "output y = %32\n");
  tp__graph_free(g);
}

/* Trains the projection's kernel and gamma behind a frozen expansion: the projection's input, the
 * excited value, and its output are read by gradients, so excite and batch norm stay nodes; the
 * frozen part is as in inference. */
static void trained_tail(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,6,6,4");
  tp__value y = batch_norm(g, "bn", depthwise(g, "dwconv", x, "3,3,4,1", 1, 1), "4");
  y = activation(g, "activation", y, TP__ACT_SWISH);
  y = named(g, "se_excite", NODE(g, MUL, (0), y, input(g, "s", "N,1,1,4")));
  y = batch_norm(g, "project_bn", conv(g, "project_conv", y, "1,1,4,4", 1, 0), "4");
  y = named(g, "add", NODE(g, ADD, (0), y, x));
  y = named(g, "pool", NODE(g, GLOBAL_POOL, (0), y));
  y = named(g, "losses", NODE(g, CROSS_ENTROPY, (0), y, typed_input(g, "labels", TP__I32, "N")));
  y = named(g, "loss", NODE(g, WEIGHTED_SUM, (0), y, input(g, "weights", "N")));
  tp__value rate = input(g, "rate", "");
  tp__value wanted[] = {param(g, "project_conv/kernel", "1,1,4,4"),
                        param(g, "project_bn/gamma", "4")},
            grad[2];
  assert_ok(tp__graph_gradient(g, y, wanted, 2, grad, &err));
  static const char *const slot[] = {"vk", "vg"}, *const dims[] = {"1,1,4,4", "4"};
  for (int i = 0; i < 2; i++) {
    tp__value velocity = param(g, slot[i], dims[i]);
    tp__value v = NODE(g, SGD_MOMENTUM, (.f = {0.5f}), velocity, grad[i], rate);
    assign(g, velocity, v);
    assign(g, wanted[i], NODE(g, SGD_PARAM, (0), wanted[i], v));
  }
  output(g, "loss", y);
  expect_optimized(
      g,
      "%0 = input x : (None, 6, 6, 4)\n"
      "%1 = param dwconv/kernel : (3, 3, 4, 1)\n"
      "%2 = param bn/gamma : (4,)\n"
      "%3 = param bn/beta : (4,)\n"
      "%4 = param bn/moving_mean : (4,)\n"
      "%5 = param bn/moving_variance : (4,)\n"
      "%6 = fold_kernel(%1, %2, %5) depthwise epsilon 0.00100000005 : (3, 3, 4, 1)  # bn\n"
      "%7 = fold_bias(%2, %3, %4, %5) epsilon 0.00100000005 : (4,)  # bn\n"
      "%8 = depthwise(%0, %6, %7) stride 1 pad 1,1,1,1 act swish : (None, 6, 6, 4)  # activation\n"
      "%9 = input s : (None, 1, 1, 4)\n"
      "%10 = mul(%8, %9) : (None, 6, 6, 4)  # se_excite\n"
      "%11 = param project_conv/kernel : (1, 1, 4, 4)\n"
      "%12 = conv(%10, %11) stride 1 pad 0,0,0,0 : (None, 6, 6, 4)  # project_conv\n"
      "%13 = param project_bn/gamma : (4,)\n"
      "%14 = param project_bn/beta : (4,)\n"
      "%15 = param project_bn/moving_mean : (4,)\n"
      "%16 = param project_bn/moving_variance : (4,)\n"
      "%17 = batch_norm(%12, %13, %14, %15, %16) epsilon 0.00100000005 : (None, 6, 6, 4)"
      "  # project_bn\n"
      "%18 = add(%17, %0) : (None, 6, 6, 4)  # add\n"
      "%19 = global_pool(%18) : (None, 4)  # pool\n"
      "%20 = input labels : i32 (None,)\n"
      "%21 = cross_entropy(%19, %20) : (None,)  # losses\n"
      "%22 = input weights : (None,)\n"
      "%23 = weighted_sum(%21, %22) : ()  # loss\n"
      "%24 = input rate : ()\n"
      "%25 = constant 1 : ()\n"
      "%26 = scale_rows(%25, %22) : (None,)  # loss\n"
      "%27 = cross_entropy_grad(%19, %20, %26) : (None, 4)  # losses\n"
      "%28 = broadcast_spatial(%27) factor 0.027777778 : (None, 6, 6, 4)  # pool\n"
      "%29 = batch_norm_input_grad(%28, %13, %16) epsilon 0.00100000005 : (None, 6, 6, 4)"
      "  # project_bn\n"
      "%30 = batch_norm_gamma_grad(%12, %28, %15, %16) epsilon 0.00100000005 : (4,)"
      "  # project_bn\n"
      "%31 = conv_kernel_grad(%10, %29) stride 1 pad 0,0,0,0 : (1, 1, 4, 4)  # project_conv\n"
      "%32 = param vk : (1, 1, 4, 4)\n"
      "%33 = sgd_momentum(%32, %31, %24) momentum 0.5 : (1, 1, 4, 4)\n"
      "%34 = sgd_param(%11, %33) : (1, 1, 4, 4)\n"
      "%35 = param vg : (4,)\n"
      "%36 = sgd_momentum(%35, %30, %24) momentum 0.5 : (4,)\n"
      "%37 = sgd_param(%13, %36) : (4,)\n"
      "output loss = %23\n"
      "assign vk = %33\n"
      "assign project_conv/kernel = %34\n"
      "assign vg = %36\n"
      "assign project_bn/gamma = %37\n");
  tp__graph_free(g);
}

/* A kernel that is trained while its batch norm is not is folded all the same. */
static void trained_kernel_frozen_norm(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value y = batch_norm(g, "b", conv(g, "c", input(g, "x", "N,2,2,3"), "1,1,3,3", 1, 0), "3");
  tp__value k = param(g, "c/kernel", "1,1,3,3");
  assign(g, k, NODE(g, SGD_PARAM, (0), k, param(g, "v", "1,1,3,3")));
  output(g, "y", y);
  tp_error err = {0};
  tp__graph *better = NULL;
  assert_ok(tp__graph_optimize(g, &better, &err));
  assert_int_equal(count_op(better, TP__OP_BATCH_NORM), 0);
  assert_int_equal(count_op(better, TP__OP_FOLD_KERNEL), 1);
  tp__graph_free(better);
  tp__graph_free(g);
}

/* Padding of its own, a bias before the batch norm, a dense layer, reshapes in a row, nodes that do
 * nothing. */
static void small_rules(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x = named(g, "pad", NODE(g, PAD, (.pad = {0, 1, 0, 1}), input(g, "x", "N,4,4,3")));
  tp__value keys = typed_input(g, "keys", TP__U32, "N,2");
  x = NODE(g, PAD, (0), x);
  x = conv(g, "c", x, "3,3,3,2", 2, 0);
  x = batch_norm(g, "b", bias_add(g, "c", x, "2"), "2");
  x = NODE(g, DROPOUT, (.f = {0}), activation(g, "none", x, TP__ACT_NONE), keys);
  x = NODE(g, RESHAPE, (.shape = shape("N,4,2,1")), x);
  x = NODE(g, RESHAPE, (.shape = shape("N,2,2,2")), x);
  x = NODE(g, RESHAPE, (.shape = shape("N,2,4")), x);
  x = NODE(g, RESHAPE, (.shape = shape("N,8")), x);
  x = named(g, "dense", NODE(g, MATMUL, (0), x, param(g, "dense/kernel", "8,2")));
  x = activation(g, NULL, bias_add(g, "dense", x, "2"), TP__ACT_RELU);
  output(g, "y", x);
  expect_optimized(g, "%0 = input x : (None, 4, 4, 3)\n"
                      "%1 = input keys : u32 (None, 2)\n"
                      "%2 = param c/kernel : (3, 3, 3, 2)\n"
                      "%3 = param c/bias : (2,)\n"
                      "%4 = param b/gamma : (2,)\n"
                      "%5 = param b/beta : (2,)\n"
                      "%6 = param b/moving_mean : (2,)\n"
                      "%7 = param b/moving_variance : (2,)\n"
                      "%8 = fold_kernel(%2, %4, %7) epsilon 0.00100000005 : (3, 3, 3, 2)  # b\n"
                      "%9 = fold_bias(%4, %5, %6, %7, %3) epsilon 0.00100000005 : (2,)  # b\n"
                      "%10 = conv(%0, %8, %9) stride 2 pad 0,1,0,1 : (None, 2, 2, 2)  # b\n"
                      "%11 = reshape(%10) : (None, 8)\n"
                      "%12 = param dense/kernel : (8, 2)\n"
                      "%13 = param dense/bias : (2,)\n"
                      "%14 = matmul(%11, %12, %13) act relu : (None, 2)  # dense\n"
                      "output y = %14\n");
  tp__graph_free(g);
}

/* The padding of a convolution that is trained moves into both its gradients. */
static void padding_of_gradients(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__graph *g = new_graph();
  tp__value x = conv(g, "a", input(g, "x", "N,5,6,3"), "1,1,3,3", 1, 0);
  tp__value y = NODE(g, PAD, (.pad = {0, 1, 2, 3}), x);
  y = NODE(g, GLOBAL_POOL, (0), depthwise(g, "d", y, "3,3,3,1", 2, 0));
  y = NODE(g, CROSS_ENTROPY, (0), y, typed_input(g, "labels", TP__I32, "N"));
  tp__value loss = NODE(g, WEIGHTED_SUM, (0), y, input(g, "weights", "N"));
  tp__value wanted[] = {param(g, "a/kernel", "1,1,3,3"), param(g, "d/kernel", "3,3,3,1")}, grad[2];
  assert_ok(tp__graph_gradient(g, loss, wanted, 2, grad, &err));
  output(g, "a", grad[0]);
  output(g, "d", grad[1]);
  assert_int_equal(count_op(g, TP__OP_CROP), 1);
  expect_optimized(
      g, "%0 = input x : (None, 5, 6, 3)\n"
         "%1 = param a/kernel : (1, 1, 3, 3)\n"
         "%2 = conv(%0, %1) stride 1 pad 0,0,0,0 : (None, 5, 6, 3)  # a\n"
         "%3 = param d/kernel : (3, 3, 3, 1)\n"
         "%4 = depthwise(%2, %3) stride 2 pad 0,1,2,3 : (None, 2, 5, 3)  # d\n"
         "%5 = global_pool(%4) : (None, 3)\n"
         "%6 = input labels : i32 (None,)\n"
         "%7 = input weights : (None,)\n"
         "%8 = constant 1 : ()\n"
         "%9 = scale_rows(%8, %7) : (None,)\n"
         "%10 = cross_entropy_grad(%5, %6, %9) : (None, 3)\n"
         "%11 = broadcast_spatial(%10) factor 0.100000001 : (None, 2, 5, 3)\n"
         "%12 = depthwise_kernel_grad(%2, %11) stride 2 pad 0,1,2,3 : (3, 3, 3, 1)  # d\n"
         "%13 = depthwise_input_grad(%11, %3) stride 2 pad 0,1,2,3 : (None, 5, 6, 3)  # d\n"
         "%14 = conv_kernel_grad(%0, %13) stride 1 pad 0,0,0,0 : (1, 1, 3, 3)  # a\n"
         "output a = %14\n"
         "output d = %12\n");
  tp__graph_free(g);
}

/* Each chain is fused when its middle value is not read elsewhere (how = 0), and left alone when it
 * is an output (how = 1) or another node reads it (how = 2). */
enum chain { BIAS, NORM, ACT, RESIDUAL, SCALE, CHAINS };

static tp__value chain(tp__graph *g, enum chain which, tp__value *middle)
{
  tp__value x = input(g, "x", "N,2,2,3"), s = input(g, "s", "N,1,1,3");
  if (which == SCALE) {
    *middle = NODE(g, MUL, (0), x, s);
    return conv(g, "c", *middle, "1,1,3,3", 1, 0);
  }
  *middle = conv(g, "c", x, "1,1,3,3", 1, 0);
  switch (which) {
  case BIAS:
    return bias_add(g, "b", *middle, "3");
  case NORM:
    return batch_norm(g, "b", *middle, "3");
  case ACT:
    return activation(g, "a", *middle, TP__ACT_RELU);
  default:
    return NODE(g, ADD, (0), x, *middle);
  }
}

static void several_readers(void **state)
{
  (void)state;
  static const tp__op op[CHAINS] = {TP__OP_BIAS_ADD, TP__OP_BATCH_NORM, TP__OP_ACTIVATION,
                                    TP__OP_ADD, TP__OP_MUL};
  for (int which = 0; which < CHAINS; which++) {
    for (int how = 0; how < 3; how++) {
      tp_error err = {0};
      tp__graph *g = new_graph(), *better = NULL;
      tp__value middle, y = chain(g, (enum chain)which, &middle);
      output(g, "y", y);
      if (how == 1) output(g, "middle", middle);
      if (how == 2) output(g, "pool", NODE(g, GLOBAL_POOL, (0), middle));
      assert_ok(tp__graph_optimize(g, &better, &err));
      assert_int_equal(count_op(better, op[which]), how == 0 ? 0 : 1);
      assert_int_equal(count_op(better, TP__OP_CONV), 1);
      tp__graph_free(better);
      tp__graph_free(g);
    }
  }
}

/* What comes after the end of a convolution: act(conv + r) is not act(conv) + r, a second residual
 * stays an add, a scale of a 3x3 convolution a mul. Of two convolutions that are added the later
 * one is fused. */
static void order_of_epilogues(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,4,4,3");
  tp__value a = conv(g, "a", x, "1,1,3,3", 1, 0), b = conv(g, "b", x, "1,1,3,3", 1, 0);
  tp__value y = activation(g, "act", NODE(g, ADD, (0), b, a), TP__ACT_RELU);
  tp__value c = activation(g, "sig", conv(g, "c", y, "1,1,3,3", 1, 0), TP__ACT_SIGMOID);
  y = NODE(g, ADD, (0), NODE(g, ADD, (0), c, x), y);
  y = NODE(g, MUL, (0), y, input(g, "s", "N,1,1,3"));
  output(g, "y", conv(g, "d", y, "3,3,3,3", 1, 1));
  expect_optimized(
      g, "%0 = input x : (None, 4, 4, 3)\n"
         "%1 = param a/kernel : (1, 1, 3, 3)\n"
         "%2 = conv(%0, %1) stride 1 pad 0,0,0,0 : (None, 4, 4, 3)  # a\n"
         "%3 = param b/kernel : (1, 1, 3, 3)\n"
         "%4 = conv(%0, %3, -, %2) stride 1 pad 0,0,0,0 act relu last : (None, 4, 4, 3)  # act\n"
         "%5 = param c/kernel : (1, 1, 3, 3)\n"
         "%6 = conv(%4, %5, -, %0) stride 1 pad 0,0,0,0 act sigmoid : (None, 4, 4, 3)  # sig\n"
         "%7 = add(%6, %4) : (None, 4, 4, 3)\n"
         "%8 = input s : (None, 1, 1, 3)\n"
         "%9 = mul(%7, %8) : (None, 4, 4, 3)\n"
         "%10 = param d/kernel : (3, 3, 3, 3)\n"
         "%11 = conv(%9, %10) stride 1 pad 1,1,1,1 : (None, 4, 4, 3)  # d\n"
         "output y = %11\n");
  tp__graph_free(g);
}

/* Pre-activation: a batch norm that nothing before it can take keeps its node and takes the
 * activation, unless a gradient reads what is between. */
static void batch_norm_first(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,4,4,3"), y = batch_norm(g, "b", x, "3");
  y = activation(g, "a", y, TP__ACT_RELU);
  tp__value z = batch_norm(g, "b", x, "3");
  output(g, "z", activation(g, "c", z, TP__ACT_SWISH));
  output(g, "read", z);
  output(g, "y", conv(g, "d", y, "1,1,3,3", 1, 0));
  expect_optimized(
      g, "%0 = input x : (None, 4, 4, 3)\n"
         "%1 = param b/gamma : (3,)\n"
         "%2 = param b/beta : (3,)\n"
         "%3 = param b/moving_mean : (3,)\n"
         "%4 = param b/moving_variance : (3,)\n"
         "%5 = batch_norm(%0, %1, %2, %3, %4) epsilon 0.00100000005 act relu : (None, 4, 4, 3)  # "
         "a\n"
         "%6 = batch_norm(%0, %1, %2, %3, %4) epsilon 0.00100000005 : (None, 4, 4, 3)  # b\n"
         "%7 = activation(%6) act swish : (None, 4, 4, 3)  # c\n"
         "%8 = param d/kernel : (1, 1, 3, 3)\n"
         "%9 = conv(%5, %8) stride 1 pad 0,0,0,0 : (None, 4, 4, 3)  # d\n"
         "output z = %7\n"
         "output read = %6\n"
         "output y = %9\n");
  tp__graph_free(g);
}

/* Zeros around pooled pixels, and the crop of their gradient, become padding: but for a crop that
 * is not that of the padding. */
static void padding_of_pools(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,4,4,3"), p = NODE(g, PAD, (.pad = {1, 1, 0, 1}), x);
  tp__value m = NODE(g, MAX_POOL, (.window = 2, .stride = 2), p);
  tp__value a = NODE(g, AVG_POOL, (.window = 2, .stride = 2), p);
  output(g, "m", m);
  output(g, "a", a);
  output(g, "dm",
         NODE(g, CROP, (.pad = {1, 1, 0, 1}),
              NODE(g, MAX_POOL_GRAD, (.window = 2, .stride = 2), m, p)));
  output(g, "da",
         NODE(g, CROP, (.pad = {1, 1, 0, 1}),
              NODE(g, AVG_POOL_GRAD, (.window = 2, .stride = 2, .shape = g->node[p].shape), a)));
  expect_optimized(g, "%0 = input x : (None, 4, 4, 3)\n"
                      "%1 = max_pool(%0) window 2 stride 2 pad 1,1,0,1 : (None, 3, 2, 3)\n"
                      "%2 = avg_pool(%0) window 2 stride 2 pad 1,1,0,1 : (None, 3, 2, 3)\n"
                      "%3 = max_pool_grad(%1, %0) window 2 stride 2 pad 1,1,0,1 : (None, 4, 4, 3)\n"
                      "%4 = avg_pool_grad(%2) window 2 stride 2 pad 1,1,0,1 : (None, 4, 4, 3)\n"
                      "output m = %1\n"
                      "output a = %2\n"
                      "output dm = %3\n"
                      "output da = %4\n");
  tp__graph_free(g);
  tp__graph *other = new_graph(), *better = NULL;
  x = input(other, "x", "N,4,4,3");
  p = NODE(other, PAD, (.pad = {1, 1, 0, 1}), x);
  m = NODE(other, MAX_POOL, (.window = 2, .stride = 2), p);
  output(other, "y",
         NODE(other, CROP, (.pad = {1, 1, 1, 0}),
              NODE(other, MAX_POOL_GRAD, (.window = 2, .stride = 2), m, p)));
  assert_ok(tp__graph_optimize(other, &better, &err));
  assert_int_equal(count_op(better, TP__OP_CROP), 1);
  assert_int_equal(count_op(better, TP__OP_PAD), 1);
  tp__graph_free(other);
  tp__graph_free(better);
}

/* Batch norms that are trained, or whose statistics move, keep their node. */
static void assigned_norms(void **state)
{
  (void)state;
  static const char *const variable[] = {"b/gamma", "b/beta", "b/moving_mean", "b/moving_variance"};
  for (int i = 0; i < 4; i++) {
    tp_error err = {0};
    tp__graph *g = new_graph(), *better = NULL;
    output(g, "y",
           batch_norm(g, "b", conv(g, "c", input(g, "x", "N,2,2,3"), "1,1,3,3", 1, 0), "3"));
    assign(g, param(g, variable[i], "3"), param(g, "other", "3"));
    assert_ok(tp__graph_optimize(g, &better, &err));
    assert_int_equal(count_op(better, TP__OP_BATCH_NORM), 1);
    assert_int_equal(count_op(better, TP__OP_FOLD_KERNEL), 0);
    tp__graph_free(better);
    tp__graph_free(g);
  }
}

/* Dead nodes go, inputs stay (they are fed by name); a graph of nothing is one, too. */
static void dead_nodes(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__graph *g = new_graph(), *better = NULL;
  expect_text(g, "");
  assert_ok(tp__graph_optimize(g, &better, &err));
  assert_int_equal(better->count, 0);
  tp__graph_free(better);
  tp__value x = input(g, "x", "N,2,2,3"), unread = input(g, "unread", "N,3");
  activation(g, "dead", unread, TP__ACT_RELU);
  conv(g, "dead", x, "1,1,3,3", 1, 0);
  tp__value p = param(g, "p", "3");
  assign(g, p, NODE(g, ADD, (0), p, param(g, "q", "3")));
  output(g, "y", NODE(g, GLOBAL_POOL, (0), x));
  expect_optimized(g, "%0 = input x : (None, 2, 2, 3)\n"
                      "%1 = input unread : (None, 3)\n"
                      "%2 = param p : (3,)\n"
                      "%3 = param q : (3,)\n"
                      "%4 = add(%2, %3) : (3,)\n"
                      "%5 = global_pool(%0) : (None, 3)\n"
                      "output y = %5\n"
                      "assign p = %4\n");
  tp__graph_free(g);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inference),
      cmocka_unit_test(trained_tail),
      cmocka_unit_test(trained_kernel_frozen_norm),
      cmocka_unit_test(small_rules),
      cmocka_unit_test(padding_of_gradients),
      cmocka_unit_test(several_readers),
      cmocka_unit_test(order_of_epilogues),
      cmocka_unit_test(batch_norm_first),
      cmocka_unit_test(padding_of_pools),
      cmocka_unit_test(assigned_norms),
      cmocka_unit_test(dead_nodes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
