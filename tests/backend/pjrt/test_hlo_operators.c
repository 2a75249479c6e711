/* Each operator as StableHLO on a CPU plugin, against the plain loops, which define them: odd
 * sizes, strides and paddings; one and four replicas, with padded rows that must not be seen and a
 * replica that has nothing else; rows in parts; both forms of depthwise convolutions. An operator
 * that no graph here holds is a failure. Hostile: ties in pools, logits of 80. Called with the
 * plugin's path inside site-packages. */
#include "hlo_client.h"

/* ---- the graphs: outputs are named after what they try ---- */

#define OUT(name, value) output(g, (name), (value))

/* The input of that name, made when it is asked for first. */
static tp__value fed_as(tp__graph *g, const char *name, tp__dtype dtype, const char *dims)
{
  for (tp__value v = 0; v < g->count; v++)
    if (g->node[v].op == TP__OP_INPUT && strcmp(g->node[v].name, name) == 0) return v;
  return typed_input(g, name, dtype, dims);
}

static tp__value fed(tp__graph *g, const char *name, const char *dims)
{
  return fed_as(g, name, TP__F32, dims);
}

static void pixels(tp__graph *g)
{
  tp__value x = fed(g, "x", "N,7,5,3");
  tp__value mean = param(g, "mean", "3"), variance = param(g, "variance", "3");
  OUT("affine", NODE(g, AFFINE, (.f = {0.5f, -1}), x));
  OUT("affine without offset", NODE(g, AFFINE, (.f = {0.3f}), x));
  OUT("affine by channel", NODE(g, AFFINE, (.f = {2, 3, -4}, .g = {1, 0, -1}, .flag = true), x));
  OUT("reverse", NODE(g, REVERSE, (0), x));
  OUT("normalize", NODE(g, NORMALIZE, (0), x, mean, variance));
  OUT("pad", NODE(g, PAD, (.pad = {1, 0, 2, 3}), x));
  OUT("crop", NODE(g, CROP, (.pad = {1, 2, 0, 3}), x));
  tp__value keys = fed_as(g, "keys", TP__U32, "N,2");
  tp__value mirrored = NODE(g, RANDOM_FLIP, (0), x, keys);
  OUT("random_flip", mirrored);
  OUT("random_rotation", NODE(g, RANDOM_ROTATION, (.f = {0.1f}), mirrored, keys));
  OUT("random_rotation into a constant",
      NODE(g, RANDOM_ROTATION, (.f = {0.125f, 0.5f}, .fill = TP__FILL_CONSTANT), x, keys));
  OUT("random_rotation into the nearest",
      NODE(g, RANDOM_ROTATION, (.f = {0.125f}, .fill = TP__FILL_NEAREST), x, keys));
  OUT("random_rotation of a line",
      NODE(g, RANDOM_ROTATION, (.f = {0.125f}), fed(g, "line", "N,1,23,2"), keys));
  OUT("padded conv", NODE(g, CONV, (.stride = 2), NODE(g, PAD, (.pad = {0, 1, 0, 1}), x),
                          param(g, "kernel", "3,3,3,4")));
}

static void layers(tp__graph *g)
{
  tp__value x = fed(g, "x", "N,5,7,6"), z = fed(g, "z", "N,5,7,6");
  tp__value s = fed(g, "s", "N,1,1,6"), row = fed(g, "row", "N,6");
  OUT("bias_add", bias_add(g, "b", x, "6"));
  OUT("bias_add of rows", bias_add(g, "b", row, "6"));
  OUT("batch_norm", batch_norm(g, "bn", x, "6"));
  OUT("batch_norm of rows", batch_norm(g, "bn", row, "6"));
  tp__value fused[5] = {x};
  static const char *const name[] = {"bn/gamma", "bn/beta", "bn/moving_mean", "bn/moving_variance"};
  for (int i = 0; i < 4; i++) fused[i + 1] = param(g, name[i], "6");
  OUT("batch_norm with activation",
      add(g, TP__OP_BATCH_NORM, &(tp__attr){.f = {0.001f}, .act = TP__ACT_RELU6}, 5, fused));
  static const char *const act[] = {"none", "swish", "relu", "relu6", "sigmoid"};
  tp__value wide = NODE(g, AFFINE, (.f = {9, 1}), x);
  for (int a = 0; a < 5; a++) OUT(act[a], NODE(g, ACTIVATION, (.act = (tp__act)a), wide));
  OUT("add", NODE(g, ADD, (0), x, z));
  OUT("mul", NODE(g, MUL, (0), x, z));
  OUT("mul by channel of example", NODE(g, MUL, (0), x, s));
  OUT("global_pool", NODE(g, GLOBAL_POOL, (0), x));
  OUT("concat", NODE(g, CONCAT, (0), x, fed(g, "more", "N,5,7,2")));
  OUT("slice_channels", NODE(g, SLICE_CHANNELS, (.first = 2, .shape = shape("N,5,7,3")), x));
  OUT("reshape", NODE(g, RESHAPE, (.shape = shape("N,1,1,6")), row));
  OUT("reshape of map", NODE(g, RESHAPE, (.shape = shape("N,210")), x));
  OUT("dropout", NODE(g, DROPOUT, (.f = {0.3f}, .draw = 5), x, fed_as(g, "keys", TP__U32, "N,2")));
  OUT("dropout of examples", NODE(g, DROPOUT, (.f = {0.5f}, .flag = true, .draw = 1), z,
                                  fed_as(g, "keys", TP__U32, "N,2")));
  OUT("dropout of rows",
      NODE(g, DROPOUT, (.f = {0.2f}, .draw = 0), row, fed_as(g, "keys", TP__U32, "N,2")));
  OUT("sum_spatial", NODE(g, SUM_SPATIAL, (.f = {0.5f}), x));
  OUT("broadcast_spatial",
      NODE(g, BROADCAST_SPATIAL, (.f = {0.25f}, .shape = shape("N,3,2,6")), row));
  OUT("broadcast_spatial of maps",
      NODE(g, BROADCAST_SPATIAL, (.f = {1}, .shape = shape("N,3,2,6")), s));
  for (int a = 0; a < 5; a++) {
    static const char *const grad[] = {"none'", "swish'", "relu'", "relu6'", "sigmoid'"};
    OUT(grad[a], NODE(g, ACTIVATION_GRAD, (.act = (tp__act)a), z, wide));
  }
  OUT("batch_norm_input_grad",
      NODE(g, BATCH_NORM_INPUT_GRAD, (.f = {0.001f}), x, fused[1], fused[4]));
  OUT("batch_norm_gamma_grad",
      NODE(g, BATCH_NORM_GAMMA_GRAD, (.f = {0.001f}), x, z, fused[3], fused[4]));
  OUT("sum_to_last", NODE(g, SUM_TO_LAST, (0), x));
}

/* Kernel, stride, padding; x is 9 x 8. */
struct sliding {
  const char *name;
  int height, width, stride, pad[4];
};
static const struct sliding windows[] = {
    {"3x3", 3, 3, 1, {1, 1, 1, 1}},
    {"3x3 by 2", 3, 3, 2, {0, 1, 0, 1}},
    {"1x1", 1, 1, 1, {0}},
    {"1x1 by 2", 1, 1, 2, {0}},
    {"5x4 by 2", 5, 4, 2, {2, 2, 1, 2}},
    {"3x2 by 3 without padding", 3, 2, 3, {0}},
};
enum { WINDOWS = sizeof windows / sizeof windows[0] };

static tp__attr window_attr(const struct sliding *s)
{
  tp__attr a = {.stride = s->stride};
  memcpy(a.pad, s->pad, sizeof a.pad);
  return a;
}

static const char *text(const char *a, const char *b)
{
  static char name[64];
  snprintf(name, sizeof name, "%s %s", a, b);
  return name;
}

static void convolutions_of(tp__graph *g, bool depthwise)
{
  tp__value x = fed(g, "x", "N,9,8,6");
  tp__shape x_shape = shape("N,9,8,6");
  for (int i = 0; i < WINDOWS; i++) {
    tp__attr a = window_attr(&windows[i]);
    char kernel_text[32], name[32], dy_name[32], dims[48];
    snprintf(kernel_text, sizeof kernel_text, "%d,%d,6,%d", windows[i].height, windows[i].width,
             depthwise ? 1 : 4);
    snprintf(name, sizeof name, "%d/kernel", i);
    tp__value kernel = param(g, name, kernel_text);
    tp__value y =
        add(g, depthwise ? TP__OP_DEPTHWISE : TP__OP_CONV, &a, 2, (tp__value[]){x, kernel});
    OUT(text("forward", windows[i].name), y);
    const int64_t *d = g->node[y].shape.dim;
    snprintf(dims, sizeof dims, "N,%d,%d,%d", (int)d[1], (int)d[2], (int)d[3]);
    snprintf(dy_name, sizeof dy_name, "dy%d", i);
    tp__value dy = fed(g, dy_name, dims);
    a.shape = x_shape;
    OUT(text("input_grad", windows[i].name),
        add(g, depthwise ? TP__OP_DEPTHWISE_INPUT_GRAD : TP__OP_CONV_INPUT_GRAD, &a, 2,
            (tp__value[]){dy, kernel}));
    a.shape = shape(kernel_text);
    OUT(text("kernel_grad", windows[i].name),
        add(g, depthwise ? TP__OP_DEPTHWISE_KERNEL_GRAD : TP__OP_CONV_KERNEL_GRAD, &a, 2,
            (tp__value[]){x, dy}));
  }
}

static void convolutions(tp__graph *g)
{
  convolutions_of(g, false);
  tp__value x = fed(g, "x", "N,9,8,6"), kernel = param(g, "k/kernel", "3,3,6,4");
  tp__value bias = param(g, "k/bias", "4"), residual = fed(g, "r", "N,7,6,4");
  tp__value scale = fed(g, "scale", "N,1,1,6");
  for (int last = 0; last < 2; last++) {
    tp__attr a = {.stride = 1, .act = TP__ACT_SWISH, .flag = last == 1};
    OUT(last ? "conv, activation last" : "conv with all",
        add(g, TP__OP_CONV, &a, 5, (tp__value[]){x, kernel, bias, residual, scale}));
  }
}

static void depthwise_convolutions(tp__graph *g)
{
  convolutions_of(g, true);
  OUT("depthwise with bias and activation",
      NODE(g, DEPTHWISE, (.stride = 1, .act = TP__ACT_RELU), fed(g, "x", "N,9,8,6"),
           param(g, "k/kernel", "3,3,6,1"), param(g, "k/bias", "6")));
}

/* Through a relu, so that many windows have several largest pixels, some of them padding. */
static void pools(tp__graph *g)
{
  tp__value x = NODE(g, ACTIVATION, (.act = TP__ACT_RELU), fed(g, "x", "N,9,8,3"));
  tp__value flat = NODE(g, AFFINE, (.f = {1, -0.5f}), x);
  static const struct {
    const char *name;
    tp__attr attr;
  } pool[] = {{"2 by 2", {.window = 2, .stride = 2}},
              {"3 by 2", {.window = 3, .stride = 2, .pad = {1, 1, 1, 1}}},
              {"3 by 1", {.window = 3, .stride = 1, .pad = {0, 2, 1, 0}}},
              {"2 by 3", {.window = 2, .stride = 3, .pad = {1, 0, 0, 0}}}};
  for (size_t i = 0; i < sizeof pool / sizeof pool[0]; i++) {
    tp__attr a = pool[i].attr;
    char dims[48], name[16];
    tp__value y = add(g, TP__OP_MAX_POOL, &a, 1, &flat);
    const int64_t *d = g->node[y].shape.dim;
    snprintf(dims, sizeof dims, "N,%d,%d,3", (int)d[1], (int)d[2]);
    snprintf(name, sizeof name, "dy%zu", i);
    tp__value dy = fed(g, name, dims);
    OUT(text("max", pool[i].name), y);
    OUT(text("max of zeros", pool[i].name), add(g, TP__OP_MAX_POOL, &a, 1, &x));
    OUT(text("mean", pool[i].name), add(g, TP__OP_AVG_POOL, &a, 1, &x));
    OUT(text("max'", pool[i].name), add(g, TP__OP_MAX_POOL_GRAD, &a, 2, (tp__value[]){dy, flat}));
    OUT(text("max of zeros'", pool[i].name),
        add(g, TP__OP_MAX_POOL_GRAD, &a, 2, (tp__value[]){dy, x}));
    a.shape = shape("N,9,8,3");
    OUT(text("mean'", pool[i].name), add(g, TP__OP_AVG_POOL_GRAD, &a, 1, &dy));
  }
}

static void losses(tp__graph *g)
{
  tp__value x = fed(g, "x", "N,6"), dy = fed(g, "dy", "N,5"), weights = fed(g, "w", "N");
  tp__value kernel = param(g, "kernel", "6,5"), bias = param(g, "bias", "5");
  tp__value labels = fed_as(g, "labels", TP__I32, "N");
  tp__value logits = NODE(g, AFFINE, (.f = {80}), NODE(g, MATMUL, (0), x, kernel));
  OUT("matmul", NODE(g, MATMUL, (0), x, kernel));
  OUT("matmul with all", NODE(g, MATMUL, (.act = TP__ACT_SIGMOID), x, kernel, bias));
  OUT("matmul_input_grad", NODE(g, MATMUL_INPUT_GRAD, (0), dy, kernel));
  OUT("matmul_kernel_grad", NODE(g, MATMUL_KERNEL_GRAD, (0), x, dy));
  OUT("softmax", NODE(g, SOFTMAX, (0), logits));
  tp__value plain = NODE(g, CROSS_ENTROPY, (0), logits, labels);
  tp__value smooth = NODE(g, CROSS_ENTROPY, (.f = {0.2f}), dy, labels);
  OUT("cross_entropy", plain);
  OUT("cross_entropy, smoothed", smooth);
  OUT("weighted_sum", NODE(g, WEIGHTED_SUM, (0), smooth, weights));
  tp__value rows = NODE(g, SCALE_ROWS, (0), param(g, "factor", ""), weights);
  OUT("scale_rows", rows);
  OUT("cross_entropy_grad", NODE(g, CROSS_ENTROPY_GRAD, (0), logits, labels, rows));
  OUT("cross_entropy_grad, smoothed",
      NODE(g, CROSS_ENTROPY_GRAD, (.f = {0.1f}), dy, labels, weights));
}

static void updates(tp__graph *g)
{
  tp__value p = param(g, "p", "3,2"), m = param(g, "m", "3,2"), v = param(g, "variance", "3,2");
  tp__value rate = fed(g, "rate", ""), step = fed(g, "step", "");
  tp__value grad = NODE(g, MATMUL_KERNEL_GRAD, (0), fed(g, "x", "N,3"), fed(g, "dy", "N,2"));
  tp__value kernel = param(g, "kernel", "3,3,4,5"), deep = param(g, "deep/kernel", "3,3,4,1");
  OUT("fold_kernel", NODE(g, FOLD_KERNEL, (.f = {0.001f}), kernel, param(g, "gamma", "5"),
                          param(g, "k/variance", "5")));
  OUT("fold_kernel of depthwise", NODE(g, FOLD_KERNEL, (.f = {0.001f}, .depthwise = true), deep,
                                       param(g, "d/gamma", "4"), param(g, "d/variance", "4")));
  tp__value fold[] = {param(g, "gamma", "5"), param(g, "beta", "5"), param(g, "mean", "5"),
                      param(g, "k/variance", "5"), param(g, "bias", "5")};
  OUT("fold_bias", add(g, TP__OP_FOLD_BIAS, &(tp__attr){.f = {0.001f}}, 5, fold));
  OUT("fold_bias without bias", add(g, TP__OP_FOLD_BIAS, &(tp__attr){.f = {0.001f}}, 4, fold));
  tp__value new_m = NODE(g, ADAM_M, (.f = {0.9f}), m, grad);
  tp__value new_v = NODE(g, ADAM_V, (.f = {0.999f}), v, grad);
  assign(g, m, new_m);
  assign(g, v, new_v);
  assign(g, p, NODE(g, ADAM_PARAM, (.f = {0.9f, 0.999f, 1e-7f}), p, new_m, new_v, rate, step));
  OUT("adam_param with decay",
      NODE(g, ADAM_PARAM, (.f = {0.9f, 0.999f, 1e-7f}, .g = {0.3f}), p, new_m, new_v, rate, step));
  tp__value velocity = NODE(g, SGD_MOMENTUM, (.f = {0.9f}), m, grad, rate);
  OUT("sgd_momentum", velocity);
  OUT("sgd_param", NODE(g, SGD_PARAM, (0), p, velocity));
  OUT("sgd_param of Nesterov with decay",
      NODE(g, SGD_PARAM, (.f = {0.9f}, .flag = true, .g = {0.1f}), p, velocity, grad, rate));
  OUT("sgd_param with decay", NODE(g, SGD_PARAM, (.g = {0.1f}), p, velocity, TP__NONE, rate));
  OUT("moving_average", NODE(g, MOVING_AVERAGE, (.f = {0.9f}), p, grad));
  OUT("moving_average, first", NODE(g, MOVING_AVERAGE, (.f = {0.9f}), p, grad, step));
  tp__value squares = NODE(g, SUM_SQUARES, (0), grad, kernel, rate);
  OUT("sum_squares", squares);
  OUT("sum_scalars", NODE(g, SUM_SCALARS, (0), squares, rate, step));
  OUT("clip_factor", NODE(g, CLIP_FACTOR, (.f = {0.7f}), squares));
  OUT("clip_factor of little", NODE(g, CLIP_FACTOR, (.f = {0.7f}), rate));
  OUT("clip_factor of nothing finite",
      NODE(g, ADD, (0), rate, NODE(g, CLIP_FACTOR, (.f = {1e30f}), rate)));
  OUT("scale", NODE(g, SCALE, (0), grad, squares));
  OUT("constant", add(g, TP__OP_CONSTANT, &(tp__attr){.f = {2.5f}}, 0, NULL));
}

static void statistics_of(tp__graph *g, const char *name, tp__value x, tp__value dy, int channels,
                          bool moving)
{
  char dims[8], text_of[4][32];
  static const char *const variable[] = {"gamma", "beta", "moving_mean", "moving_variance"};
  snprintf(dims, sizeof dims, "%d", channels);
  for (int i = 0; i < 4; i++) snprintf(text_of[i], 32, "%s/%s", name, variable[i]);
  tp__value gamma = param(g, text_of[0], dims), beta = param(g, text_of[1], dims);
  tp__value moments = NODE(g, BATCH_MOMENTS, (0), x);
  tp__value mean = NODE(g, ROW, (0), moments), variance = NODE(g, ROW, (.row = 1), moments);
  tp__value y = NODE(g, BATCH_NORM, (.f = {0.001f}), x, gamma, beta, mean, variance);
  tp__value beta_grad = NODE(g, SUM_TO_LAST, (0), dy);
  tp__value gamma_grad = NODE(g, BATCH_NORM_GAMMA_GRAD, (.f = {0.001f}), x, dy, mean, variance);
  tp__value in[] = {x, dy, gamma, moments, beta_grad, gamma_grad};
  OUT(text(name, "moments"), moments);
  OUT(text(name, "y"), y);
  OUT(text(name, "dx"), add(g, TP__OP_BATCH_NORM_FULL_GRAD, &(tp__attr){.f = {0.001f}}, 6, in));
  OUT(text(name, "gamma'"), gamma_grad);
  OUT(text(name, "beta'"), beta_grad);
  for (int i = 2; i < 4 && moving; i++) {
    tp__value p = param(g, text_of[i], dims);
    assign(g, p, NODE(g, MOVING_AVERAGE, (.f = {0.99f}), p, i == 2 ? mean : variance));
  }
}

static void statistics(tp__graph *g)
{
  statistics_of(g, "maps", fed(g, "x", "N,5,7,6"), fed(g, "dy", "N,5,7,6"), 6, true);
  statistics_of(g, "rows", fed(g, "row", "N,3"), fed(g, "drow", "N,3"), 3, true);
}

/* A variance that is the difference of two sums would be lost. */
static void statistics_far_from_0(tp__graph *g)
{
  tp__value x = NODE(g, AFFINE, (.f = {1, 100}), fed(g, "x", "N,5,7,6"));
  statistics_of(g, "far", x, fed(g, "dy", "N,5,7,6"), 6, false);
}

static const struct {
  const char *name;
  void (*build)(tp__graph *g);
  bool moments;     /* cannot go in parts */
  double tolerance; /* 0: 1e-5. Numbers of 100 have only so many digits behind the point */
} families[] = {
    {"pixels", pixels, false, 0},
    {"layers", layers, false, 0},
    {"convolutions", convolutions, false, 0},
    {"depthwise convolutions", depthwise_convolutions, false, 0},
    {"pools", pools, false, 0},
    {"losses", losses, false, 0},
    {"updates", updates, false, 0},
    {"statistics", statistics, true, 0},
    {"statistics far from 0", statistics_far_from_0, true, 1e-4},
};
enum { FAMILIES = sizeof families / sizeof families[0] };

/* ---- the tests ---- */

struct way {
  const char *name;
  int64_t n;
  tp__hlo_options options;
};
static const struct way ways[] = {
    {"one replica", 5, {.rows = 5, .replicas = 1, .accumulate = 1}},
    {"padded rows", 3, {.rows = 5, .replicas = 1, .accumulate = 1, .depthwise_shifts = true}},
    {"four replicas, one without examples", 5, {.rows = 2, .replicas = 4, .accumulate = 1}},
    {"two replicas and parts", 5, {.rows = 4, .replicas = 2, .accumulate = 2}},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void compare(size_t family, const struct way *way)
{
  char what[128];
  tp__graph *g = new_graph();
  families[family].build(g);
  snprintf(what, sizeof what, "%s, %s", families[family].name, way->name);
  rig plain = rig_new(g, 1, way->n, true);
  rig_run(&plain);
  hlo_rig h = hlo_run(client, &plain, &way->options);
  double tolerance = families[family].tolerance;
  expect_plain(&h, &plain, tolerance > 0 ? tolerance : 1e-5, what);
  hlo_rig_free(&h);
  rig_free(&plain);
  tp__graph_free(g);
}

static void test_operators(void **state)
{
  (void)state;
  if (client == NULL) skip();
  for (size_t f = 0; f < FAMILIES; f++)
    for (size_t i = 0; i < WAYS; i++)
      if (ways[i].options.accumulate == 1 || !families[f].moments) compare(f, &ways[i]);
}

static void test_every_operator_is_tried(void **state)
{
  (void)state;
  bool tried[TP__OP_COUNT] = {0};
  for (size_t f = 0; f < FAMILIES; f++) {
    tp__graph *g = new_graph();
    families[f].build(g);
    for (tp__value v = 0; v < g->count; v++) tried[g->node[v].op] = true;
    tp__graph_free(g);
  }
  for (int op = 0; op < TP__OP_COUNT; op++)
    if (!tried[op]) fail_msg("operator %s is in no graph here", tp__op_name((tp__op)op));
}

int main(int argc, char **argv)
{
  if (argc > 1) plugin_name = argv[1];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_operator_is_tried),
      cmocka_unit_test(test_operators),
  };
  return cmocka_run_group_tests(tests, open_client, close_client);
}
