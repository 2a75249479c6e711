/* Proves the gradients: autodiff's nodes, run by the plain and by the planned executor, against
 * central differences of the plain forward pass, (f(p + h) - f(p - h)) / 2h, for each kind of layer
 * and for a whole block with squeeze-excite. The loss is a random weighting of the layer's outputs;
 * a 1 x 1 convolution in front, or a bias, makes the layer's input gradient count.
 */
#include "small_nets.h"

static tp__value front(tp__graph *g, const char *dims, const char *kernel)
{
  return conv(g, "front", input(g, "x", dims), kernel, 1, 0);
}

static tp__value conv_plain(tp__graph *g)
{
  return conv(g, "conv", front(g, "N,5,6,3", "1,1,3,4"), "3,3,4,5", 1, 1);
}
static tp__value conv_strided(tp__graph *g)
{
  tp__value x = front(g, "N,7,6,2", "1,1,2,3");
  return NODE(g, CONV, (.stride = 2, .pad = {0, 1, 0, 1}), x, param(g, "conv/kernel", "3,3,3,4"));
}
static tp__value conv_pointwise(tp__graph *g)
{
  return bias_add(g, "conv", conv(g, "conv", front(g, "N,3,3,2", "1,1,2,20"), "1,1,20,18", 1, 0),
                  "18");
}
static tp__value conv_pointwise_strided(tp__graph *g)
{
  return conv(g, "conv", front(g, "N,5,5,2", "1,1,2,3"), "1,1,3,4", 2, 0);
}
static tp__value pad(tp__graph *g)
{
  return NODE(g, PAD, (.pad = {1, 0, 2, 1}), front(g, "N,3,4,2", "1,1,2,3"));
}
static tp__value depthwise_3_1(tp__graph *g)
{
  return depthwise(g, "dw", front(g, "N,6,5,2", "1,1,2,18"), "3,3,18,1", 1, 1);
}
static tp__value depthwise_3_2(tp__graph *g)
{
  tp__value x = front(g, "N,6,7,2", "1,1,2,4");
  return NODE(g, DEPTHWISE, (.stride = 2, .pad = {0, 1, 1, 1}), x,
              param(g, "dw/kernel", "3,3,4,1"));
}
static tp__value depthwise_5_1(tp__graph *g)
{
  return depthwise(g, "dw", front(g, "N,6,5,2", "1,1,2,4"), "5,5,4,1", 1, 2);
}
static tp__value depthwise_5_2(tp__graph *g)
{
  return depthwise(g, "dw", front(g, "N,7,8,2", "1,1,2,4"), "5,5,4,1", 2, 2);
}
static tp__value norm(tp__graph *g)
{
  return batch_norm(g, "bn", front(g, "N,4,3,2", "1,1,2,5"), "5");
}
static tp__value norm_full(tp__graph *g)
{
  return batch_norm_full(g, "bn", front(g, "N,4,3,2", "1,1,2,5"), "5");
}
/* Of rows, as behind a dense layer. */
static tp__value norm_full_rows(tp__graph *g)
{
  tp__value x = NODE(g, GLOBAL_POOL, (0), front(g, "N,2,3,2", "1,1,2,5"));
  return batch_norm_full(g, "bn", NODE(g, AFFINE, (.f = {9, 2}), x), "5");
}
/* Two stages, activations that both directions make anew, and a large layer. */
static tp__value norm_full_block(tp__graph *g)
{
  tp__value x = front(g, "N,9,8,2", "1,1,2,18");
  x = activation(g, "a", batch_norm_full(g, "bn", x, "18"), TP__ACT_SWISH);
  tp__value y = depthwise(g, "dw", x, "3,3,18,1", 1, 1);
  y = activation(g, "b", batch_norm_full(g, "dw_bn", y, "18"), TP__ACT_SWISH);
  y = squeeze_excite(g, "se", y, 18, 3);
  y = conv(g, "project", y, "1,1,18,18", 1, 0);
  y = batch_norm_full(g, "project_bn", y, "18");
  y = NODE(g, DROPOUT, (.f = {0.3f}, .draw = 5, .flag = true), y,
           typed_input(g, "keys", TP__U32, "N,2"));
  return activation(g, "c", NODE(g, ADD, (0), y, x), TP__ACT_SIGMOID);
}
/* Two norms of one sum: their gradients come from the same numbers. */
static tp__value norm_full_pair(tp__graph *g)
{
  tp__value x = front(g, "N,4,3,2", "1,1,2,5");
  tp__value y = batch_norm_full(g, "one", conv(g, "a", x, "1,1,5,4", 1, 0), "4");
  tp__value z = batch_norm_full(g, "two", conv(g, "b", x, "1,1,5,4", 1, 0), "4");
  return activation(g, "act", NODE(g, ADD, (0), y, z), TP__ACT_SWISH);
}
static tp__value swish(tp__graph *g)
{
  return activation(g, "act", front(g, "N,4,3,2", "1,1,2,5"), TP__ACT_SWISH);
}
static tp__value sigmoid(tp__graph *g)
{
  return activation(g, "act", front(g, "N,4,3,2", "1,1,2,5"), TP__ACT_SIGMOID);
}
static tp__value relu(tp__graph *g)
{
  tp__value x = NODE(g, AFFINE, (.f = {1, 0.11f}),
                     front(g, "N,4,3,2", "1,1,2,5")); /* no value near the kink */
  return activation(g, "act", x, TP__ACT_RELU);
}
static tp__value relu6(tp__graph *g)
{
  tp__value x = NODE(g, AFFINE, (.f = {8, 2}), front(g, "N,4,3,2", "1,1,2,5"));
  return activation(g, "act", x, TP__ACT_RELU6);
}
static tp__value affine(tp__graph *g)
{
  tp__value x = NODE(g, AFFINE, (.f = {2, -3}), front(g, "N,4,3,2", "1,1,2,3"));
  return NODE(g, AFFINE, (.f = {2, 3, 4}, .g = {5, 6, 7}, .flag = true), x);
}
static tp__value reverse(tp__graph *g)
{
  tp__value x = NODE(g, REVERSE, (0), front(g, "N,4,3,2", "1,1,2,3"));
  return NODE(g, AFFINE, (.f = {2, 3, 4}, .flag = true), x);
}
static tp__value residual(tp__graph *g)
{
  tp__value x = front(g, "N,4,3,2", "1,1,2,5");
  return NODE(g, ADD, (0), activation(g, "act", x, TP__ACT_SWISH), x);
}
static tp__value product(tp__graph *g)
{
  tp__value x = front(g, "N,4,3,2", "1,1,2,5");
  return NODE(g, MUL, (0), activation(g, "act", x, TP__ACT_SWISH), x);
}
static tp__value excite(tp__graph *g)
{
  return squeeze_excite(g, "se", front(g, "N,4,3,2", "1,1,2,6"), 6, 3);
}
static tp__value pool(tp__graph *g)
{
  return NODE(g, GLOBAL_POOL, (0), front(g, "N,4,3,2", "1,1,2,6"));
}
static tp__value dense(tp__graph *g)
{
  tp__value x = NODE(g, GLOBAL_POOL, (0), front(g, "N,4,3,2", "1,1,2,6"));
  x = bias_add(g, "hidden", NODE(g, MATMUL, (0), x, param(g, "hidden/kernel", "6,19")), "19");
  return NODE(g, MATMUL, (0), activation(g, "act", x, TP__ACT_SWISH),
              param(g, "last/kernel", "19,3"));
}
static tp__value dropped(tp__graph *g)
{
  return NODE(g, DROPOUT, (.f = {0.4f}, .draw = 1), front(g, "N,4,3,2", "1,1,2,6"),
              typed_input(g, "keys", TP__U32, "N,2"));
}
static tp__value reshaped(tp__graph *g)
{
  return NODE(g, RESHAPE, (.shape = shape("N,6,4")), front(g, "N,4,3,2", "1,1,2,2"));
}
static tp__value max_pool(tp__graph *g)
{
  tp__value x = NODE(g, PAD, (.pad = {1, 1, 1, 1}), front(g, "N,5,6,2", "1,1,2,5"));
  return NODE(g, MAX_POOL, (.window = 3, .stride = 2), x);
}
static tp__value max_pool_apart(tp__graph *g)
{
  return NODE(g, MAX_POOL, (.window = 2, .stride = 3), front(g, "N,6,7,2", "1,1,2,18"));
}
static tp__value avg_pool(tp__graph *g)
{
  return NODE(g, AVG_POOL, (.window = 2, .stride = 2), front(g, "N,5,6,2", "1,1,2,18"));
}
static tp__value avg_pool_padded(tp__graph *g)
{
  tp__value x = NODE(g, PAD, (.pad = {1, 0, 0, 2}), front(g, "N,5,6,2", "1,1,2,5"));
  return NODE(g, AVG_POOL, (.window = 3, .stride = 1), x);
}

/* A dense layer: BN, swish, 1 x 1, BN, swish, 3 x 3, put behind what it read. */
static tp__value dense_layer(tp__graph *g, int index, tp__value x, int between, int growth)
{
  char name[16], text[48];
  int in = (int)g->node[x].shape.dim[3];
  snprintf(name, sizeof name, "d%d", index);
  tp__value y = normed(g, name, "in", x, in, TP__ACT_SWISH);
  y = normed(g, name, "mid", pointwise(g, name, "narrow", y, in, between), between, TP__ACT_SWISH);
  snprintf(text, sizeof text, "3,3,%d,%d", between, growth);
  return NODE(g, CONCAT, (0), x, conv(g, name, y, text, 1, 1));
}
static tp__value concat_of(tp__graph *g, const char *first, int growth)
{
  tp__value x = conv(g, "stem", front(g, "N,5,4,2", "1,1,2,3"), first, 1, 0);
  x = NODE(g, AVG_POOL, (.window = 2, .stride = 1), x);
  for (int i = 0; i < 3; i++) x = dense_layer(g, i, x, 4, growth);
  return normed(g, "top", "out", x, (int)g->node[x].shape.dim[3], TP__ACT_SWISH);
}
static tp__value concats(tp__graph *g)
{
  return concat_of(g, "1,1,3,16", 16);
}
static tp__value concats_odd(tp__graph *g)
{
  return concat_of(g, "1,1,3,5", 3);
}
static tp__value concats_mixed(tp__graph *g)
{
  tp__value x = concat_of(g, "1,1,3,32", 10);
  return NODE(g, CONCAT, (0), x, x);
}
/* Every way in which parts of a concat may be read. */
static tp__value concat_readers(tp__graph *g)
{
  tp__value a = conv(g, "a", front(g, "N,4,3,2", "1,1,2,3"), "1,1,3,16", 1, 0);
  tp__value b = conv(g, "b", a, "1,1,16,16", 1, 0), ab = NODE(g, CONCAT, (0), a, b);
  tp__value c = conv(g, "c", ab, "3,3,32,16", 1, 1), y = NODE(g, CONCAT, (0), ab, c);
  tp__value sum = NODE(g, ADD, (0), NODE(g, MUL, (0), a, b), activation(g, "s", c, TP__ACT_SWISH));
  sum = NODE(g, ADD, (0), sum, b);
  sum = NODE(g, ADD, (0), NODE(g, AFFINE, (.f = {2, 1}), b), sum);
  sum = bias_add(g, "d", NODE(g, ADD, (0), depthwise(g, "d", c, "3,3,16,1", 1, 1), sum), "16");
  tp__value flat = NODE(g, RESHAPE, (.shape = shape("N,12,16")), b);
  flat = activation(g, "flat", flat, TP__ACT_SWISH);
  flat = NODE(g, RESHAPE, (.shape = shape("N,4,3,16")), flat);
  y = NODE(g, CONCAT, (0), y, NODE(g, ADD, (0), sum, flat));
  return squeeze_excite(g, "se", y, 64, 3);
}
static tp__value block_residual(tp__graph *g)
{
  tp__value x = front(g, "N,5,4,2", "1,1,2,5");
  tp__value y = normed(g, "b", "a", conv(g, "b_a", x, "3,3,5,5", 1, 1), 5, TP__ACT_NONE);
  return activation(g, "last", NODE(g, ADD, (0), y, x), TP__ACT_SWISH);
}
static tp__value block(tp__graph *g)
{
  static const struct small_net net = {.act = TP__ACT_SWISH, .block = {{3, 3, 1, 4, 2}}};
  return build_block(g, &net, 0, front(g, "N,5,5,2", "1,1,2,4"));
}
static tp__value block_strided(tp__graph *g)
{
  static const struct small_net net = {.act = TP__ACT_SWISH, .block = {{2, 5, 2, 7, 3}}};
  return build_block(g, &net, 0, front(g, "N,7,7,2", "1,1,2,5"));
}

static const struct {
  const char *name;
  tp__value (*build)(tp__graph *g);
} layers[] = {
    {"conv", conv_plain},
    {"conv, stride 2", conv_strided},
    {"conv 1x1 with bias", conv_pointwise},
    {"conv 1x1, stride 2", conv_pointwise_strided},
    {"pad", pad},
    {"depthwise 3, stride 1", depthwise_3_1},
    {"depthwise 3, stride 2", depthwise_3_2},
    {"depthwise 5, stride 1", depthwise_5_1},
    {"depthwise 5, stride 2", depthwise_5_2},
    {"batch norm", norm},
    {"batch norm by the batch", norm_full},
    {"batch norm of rows by the batch", norm_full_rows},
    {"two batch norms by the batch", norm_full_pair},
    {"block by batch statistics", norm_full_block},
    {"swish", swish},
    {"sigmoid", sigmoid},
    {"relu", relu},
    {"relu6", relu6},
    {"affine", affine},
    {"reverse", reverse},
    {"add", residual},
    {"mul", product},
    {"squeeze-excite", excite},
    {"pool", pool},
    {"dense", dense},
    {"dropout", dropped},
    {"reshape", reshaped},
    {"max pool", max_pool},
    {"max pool that leaves pixels out", max_pool_apart},
    {"average pool", avg_pool},
    {"average pool with padding", avg_pool_padded},
    {"concats, in one memory", concats},
    {"concats of odd channels", concats_odd},
    {"concats, partly in one memory", concats_mixed},
    {"readers of parts of a concat", concat_readers},
    {"residual, then activation", block_residual},
    {"block", block},
    {"block, stride 2", block_strided},
};
enum { LAYERS = sizeof layers / sizeof layers[0] };

/* A random weighting of all numbers of y: [N,...] -> [N] -> scalar. */
static tp__value probe(tp__graph *g, tp__value y)
{
  char text[32];
  size_t count = tp__shape_elements(&g->node[y].shape, 1);
  tp__shape flat = tp__shape_make(2, (int64_t[]){TP__N, (int64_t)count});
  snprintf(text, sizeof text, "%zu,1", count);
  y = NODE(g, RESHAPE, (.shape = flat), y);
  y = NODE(g, MATMUL, (0), y, param(g, "probe", text));
  y = NODE(g, RESHAPE, (.shape = shape("N")), y);
  return NODE(g, WEIGHTED_SUM, (0), y, input(g, "each", "N"));
}

static bool is_trained(const tp__node *n)
{
  return n->op == TP__OP_PARAM && !ends_with(n->name, "mean") && !ends_with(n->name, "variance") &&
         strcmp(n->name, "probe") != 0;
}

/* Outputs: "loss", then the gradient of each trained parameter under its name. */
static void add_gradients(tp__graph *g, tp__value loss)
{
  tp_error err = {0};
  tp__value trained[64], gradient[64];
  size_t count = 0;
  for (tp__value v = 0; v < g->count; v++)
    if (is_trained(&g->node[v])) trained[count++] = v;
  assert_ok(tp__graph_gradient(g, loss, trained, count, gradient, &err));
  output(g, "loss", loss);
  for (size_t i = 0; i < count; i++) {
    assert_true(gradient[i] != TP__NONE);
    output(g, g->node[trained[i]].name, gradient[i]);
  }
}

static double loss_with(rig *r, tp__tensors *set, float *at, float value)
{
  tp_error err = {0};
  float kept = *at;
  *at = value;
  assert_ok(r->backend->state_write(r->state, set, &err));
  *at = kept;
  rig_run(r);
  return r->output[0][0];
}

/* Up to 9 elements of each parameter. */
static void check_differences(const char *name, tp__graph *g, const tp__graph *forward,
                              const rig *gradients)
{
  const float h = 0.002f;
  rig r = rig_new(forward, 1, gradients->n, true);
  tp__tensors set = {0};
  initial_parameters(forward, &set);
  for (size_t o = 1; o < g->n_outputs; o++) {
    tp__tensor *p = tp__tensors_find(&set, g->output[o].name);
    size_t count = gradients->elements[o], step = count / 9 + 1;
    double size = 0;
    for (size_t i = 0; i < count; i++) size = fmax(size, fabs((double)gradients->output[o][i]));
    for (size_t i = 0; i < count; i += step) {
      float *at = (float *)p->data + i;
      double expected =
          (loss_with(&r, &set, at, *at + h) - loss_with(&r, &set, at, *at - h)) / (2 * h);
      if (!(fabs(gradients->output[o][i] - expected) < 0.01 * size + 1e-4))
        fail_msg("%s: d loss / d %s[%zu] is %g, the difference says %g", name, p->name, i,
                 gradients->output[o][i], expected);
    }
    assert_true(size > 1e-3);
  }
  tp__tensors_free(&set);
  rig_free(&r);
}

/* g and forward hold the same nodes; the gradient is added to g alone. */
static void check(const char *name, tp__graph *g, tp__graph *forward, tp__value loss)
{
  output(forward, "loss", loss);
  add_gradients(g, loss);
  rig plain = rig_new(g, 1, 3, true), fast = rig_new(g, 2, 3, false);
  rig_run(&plain);
  rig_run(&fast);
  for (size_t o = 0; o < g->n_outputs; o++) {
    double d = difference(fast.output[o], plain.output[o], plain.elements[o], 1e-3);
    if (!(d < 3e-5))
      fail_msg("%s: gradient of %s: planned and plain differ by %g", name, g->output[o].name, d);
  }
  check_differences(name, g, forward, &plain);
  rig_free(&plain);
  rig_free(&fast);
}

static void layers_match_differences(void **state)
{
  (void)state;
  for (int i = 0; i < LAYERS; i++) {
    tp__graph *g = new_graph(), *forward = new_graph();
    (void)probe(g, layers[i].build(g));
    check(layers[i].name, g, forward, probe(forward, layers[i].build(forward)));
    tp__graph_free(g);
    tp__graph_free(forward);
  }
}

static tp__value smoothed_loss(tp__graph *g)
{
  tp__value logits =
      bias_add(g, "logits",
               NODE(g, MATMUL, (0), input(g, "x", "N,6"), param(g, "dense/kernel", "6,5")), "5");
  tp__value losses =
      NODE(g, CROSS_ENTROPY, (.f = {0.1f}), logits, typed_input(g, "labels", TP__I32, "N"));
  return NODE(g, WEIGHTED_SUM, (0), losses, input(g, "weights", "N"));
}

static void loss_matches_differences(void **state)
{
  (void)state;
  tp__graph *g = new_graph(), *forward = new_graph();
  (void)smoothed_loss(g);
  check("cross-entropy with smoothing", g, forward, smoothed_loss(forward));
  tp__graph_free(g);
  tp__graph_free(forward);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layers_match_differences),
      cmocka_unit_test(loss_matches_differences),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
