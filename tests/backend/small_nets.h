/* small_nets - networks of inverted-residual blocks as EfficientNet's, and of dense ones as
 * ResNet's, small and of odd sizes, for tests. */
#ifndef TP_SMALL_NETS_H
#define TP_SMALL_NETS_H

#include "rig.h"

struct block {
  int expand;                           /* 0: two dense convolutions instead */
  int kernel, stride, outputs, squeeze; /* squeeze: channels between, 0: none */
};

struct small_net {
  const char *name;
  int height, width, stem, top, classes;
  tp__act act;
  struct block block[4]; /* ends where outputs is 0 */
};

/* pixels -> their order, rescaling, normalization -> padded stem. */
static inline tp__value build_stem(tp__graph *g, const struct small_net *s)
{
  char text[64];
  snprintf(text, sizeof text, "N,%d,%d,3", s->height, s->width);
  tp__value x = NODE(g, REVERSE, (0), input(g, "pixels", text));
  x = NODE(g, AFFINE, (.f = {1.0f / 255, -0.1f}), x);
  x = NODE(g, NORMALIZE, (0), x, param(g, "normalization/mean", "3"),
           param(g, "normalization/variance", "3"));
  x = NODE(g, AFFINE, (.flag = true, .f = {2.0f, 1.5f, 3.0f}, .g = {0.1f, -0.2f, 0.3f}), x);
  x = NODE(g, PAD, (.pad = {0, 1, 0, 1}), x);
  snprintf(text, sizeof text, "3,3,3,%d", s->stem);
  x = conv(g, "stem", x, text, 2, 0);
  snprintf(text, sizeof text, "%d", s->stem);
  x = batch_norm(g, "stem_bn", x, text);
  return activation(g, "stem_act", x, s->act);
}

static inline tp__value normed(tp__graph *g, const char *block, const char *part, tp__value x,
                               int channels, tp__act act)
{
  char name[32], text[48];
  snprintf(name, sizeof name, "%s_%s_bn", block, part);
  snprintf(text, sizeof text, "%d", channels);
  x = batch_norm(g, name, x, text);
  snprintf(name, sizeof name, "%s_%s_act", block, part);
  return act == TP__ACT_NONE ? x : activation(g, name, x, act);
}

static inline tp__value pointwise(tp__graph *g, const char *block, const char *part, tp__value x,
                                  int in, int out)
{
  char name[32], text[48];
  snprintf(name, sizeof name, "%s_%s", block, part);
  snprintf(text, sizeof text, "1,1,%d,%d", in, out);
  return conv(g, name, x, text, 1, 0);
}

/* x times sigmoid(W2 swish(W1 mean(x) + b1) + b2) */
static inline tp__value squeeze_excite(tp__graph *g, const char *block, tp__value x, int channels,
                                       int squeeze)
{
  char name[32], text[48];
  int64_t dim[4] = {TP__N, 1, 1, channels};
  tp__value s = NODE(g, GLOBAL_POOL, (0), x);
  s = NODE(g, RESHAPE, (.shape = tp__shape_make(4, dim)), s);
  snprintf(name, sizeof name, "%s_reduce", block);
  snprintf(text, sizeof text, "%d", squeeze);
  s = bias_add(g, name, pointwise(g, block, "reduce", s, channels, squeeze), text);
  s = activation(g, "", s, TP__ACT_SWISH);
  snprintf(name, sizeof name, "%s_expand_se", block);
  snprintf(text, sizeof text, "%d", channels);
  s = bias_add(g, name, pointwise(g, block, "expand_se", s, squeeze, channels), text);
  s = activation(g, "", s, TP__ACT_SIGMOID);
  return NODE(g, MUL, (0), x, s);
}

/* Act(norm(conv(act(norm(conv x)))) + x). */
static inline tp__value convolutions(tp__graph *g, const struct small_net *s, int index,
                                     tp__value x)
{
  const struct block *b = &s->block[index];
  char name[8], part[12], text[32];
  snprintf(name, sizeof name, "block%d", index);
  int in = (int)g->node[x].shape.dim[3];
  tp__value y = x;
  for (int i = 0; i < 2; i++) {
    snprintf(part, sizeof part, "%s_%d", name, i);
    snprintf(text, sizeof text, "%d,%d,%d,%d", b->kernel, b->kernel, i == 0 ? in : b->outputs,
             b->outputs);
    y = conv(g, part, y, text, i == 0 ? b->stride : 1, b->kernel / 2);
    y = normed(g, part, "of", y, b->outputs, i == 0 ? s->act : TP__ACT_NONE);
  }
  if (b->stride == 1 && in == b->outputs) y = NODE(g, ADD, (0), y, x);
  return activation(g, "", y, s->act);
}

static inline tp__value build_block(tp__graph *g, const struct small_net *s, int index, tp__value x)
{
  const struct block *b = &s->block[index];
  if (b->expand == 0) return convolutions(g, s, index, x);
  char name[16], part[32], text[32];
  snprintf(name, sizeof name, "block%d", index);
  int in = (int)g->node[x].shape.dim[3], wide = in * b->expand, pad = b->kernel / 2;
  tp__value y = x;
  if (b->expand > 1)
    y = normed(g, name, "expand", pointwise(g, name, "expand", y, in, wide), wide, s->act);
  snprintf(part, sizeof part, "%s_dw", name);
  snprintf(text, sizeof text, "%d,%d,%d,1", b->kernel, b->kernel, wide);
  y = depthwise(g, part, y, text, b->stride, pad);
  y = normed(g, name, "dw", y, wide, s->act);
  if (b->squeeze > 0) y = squeeze_excite(g, name, y, wide, b->squeeze);
  y = normed(g, name, "project", pointwise(g, name, "project", y, wide, b->outputs), b->outputs,
             TP__ACT_NONE);
  return b->stride == 1 && in == b->outputs ? NODE(g, ADD, (0), y, x) : y;
}

/* Logits [N,classes]. training: with dropout. */
static inline tp__value build_net(tp__graph *g, const struct small_net *s, bool training)
{
  char text[32];
  tp__value x = build_stem(g, s);
  for (int i = 0; i < 4 && s->block[i].outputs > 0; i++) x = build_block(g, s, i, x);
  x = normed(g, "top", "conv", pointwise(g, "top", "conv", x, (int)g->node[x].shape.dim[3], s->top),
             s->top, s->act);
  x = NODE(g, GLOBAL_POOL, (0), x);
  if (training)
    x = NODE(g, DROPOUT, (.f = {0.3f}, .draw = 2), x, typed_input(g, "keys", TP__U32, "N,2"));
  snprintf(text, sizeof text, "%d,%d", s->top, s->classes);
  x = NODE(g, MATMUL, (0), x, param(g, "predictions/kernel", text));
  snprintf(text, sizeof text, "%d", s->classes);
  return bias_add(g, "predictions", x, text);
}

/* A training step by Adam of the parameters whose names start with prefix (statistics never);
 * outputs "logits", "losses", "loss". */
static inline void add_training(tp__graph *g, tp__value logits, const char *prefix)
{
  tp_error err = {0};
  tp__value labels = typed_input(g, "labels", TP__I32, "N"), weights = input(g, "weights", "N");
  tp__value losses = NODE(g, CROSS_ENTROPY, (.f = {0.1f}), logits, labels);
  tp__value loss = NODE(g, WEIGHTED_SUM, (0), losses, weights);
  tp__value rate = input(g, "rate", ""), step = input(g, "step", "");
  tp__value trained[256], gradient[256];
  size_t count = 0;
  for (tp__value v = 0; v < g->count; v++) {
    const tp__node *n = &g->node[v];
    if (n->op != TP__OP_PARAM || ends_with(n->name, "mean") || ends_with(n->name, "variance"))
      continue;
    if (strncmp(n->name, prefix, strlen(prefix)) == 0) trained[count++] = v;
  }
  assert_true(count > 0 && count <= 256);
  assert_ok(tp__graph_gradient(g, loss, trained, count, gradient, &err));
  for (size_t i = 0; i < count; i++) {
    char name[2][96];
    tp__value slot[2], m, v;
    snprintf(name[0], sizeof name[0], "adam/m/%s", g->node[trained[i]].name);
    snprintf(name[1], sizeof name[1], "adam/v/%s", g->node[trained[i]].name);
    for (int k = 0; k < 2; k++)
      assert_ok(tp__graph_param(g, name[k], &g->node[trained[i]].shape, &slot[k], &err));
    m = NODE(g, ADAM_M, (.f = {0.9f}), slot[0], gradient[i]);
    v = NODE(g, ADAM_V, (.f = {0.999f}), slot[1], gradient[i]);
    assign(g, slot[0], m);
    assign(g, slot[1], v);
    assign(g, trained[i],
           NODE(g, ADAM_PARAM, (.f = {0.9f, 0.999f, 1e-7f}), trained[i], m, v, rate, step));
  }
  output(g, "logits", logits);
  output(g, "losses", losses);
  output(g, "loss", loss);
}

/* A dense block by batch statistics: norms of parts of one memory; and two norms of one sum. */
static inline tp__graph *build_dense(void)
{
  tp__graph *g = new_graph();
  tp__value x = conv(g, "stem", input(g, "x", "N,11,9,3"), "3,3,3,16", 1, 1);
  for (int i = 0; i < 3; i++) {
    char name[3][16], in[32], kernel[48];
    for (int k = 0; k < 3; k++) snprintf(name[k], sizeof name[k], "d%d%c", i, 'a' + k);
    snprintf(in, sizeof in, "%d", 16 + 12 * i);
    snprintf(kernel, sizeof kernel, "1,1,%d,20", 16 + 12 * i);
    tp__value y = activation(g, name[0], batch_norm_full(g, name[0], x, in), TP__ACT_SWISH);
    y = batch_norm_full(g, name[1], conv(g, name[1], y, kernel, 1, 0), "20");
    y = conv(g, name[2], activation(g, name[1], y, TP__ACT_SWISH), "3,3,20,12", 1, 1);
    x = NODE(g, CONCAT, (0), x, y);
  }
  tp__value a = batch_norm_full(g, "a", conv(g, "a", x, "1,1,52,24", 1, 0), "24");
  tp__value b = batch_norm_full(g, "b", conv(g, "b", x, "1,1,52,24", 1, 0), "24");
  x = activation(g, "t", NODE(g, ADD, (0), a, b), TP__ACT_SWISH);
  x = NODE(g, MATMUL, (0), NODE(g, GLOBAL_POOL, (0), x), param(g, "head/kernel", "24,4"));
  add_training(g, x, "");
  return g;
}

static const struct small_net small_nets[] = {
    {"EfficientNet's blocks",
     32,
     40,
     16,
     48,
     5,
     TP__ACT_SWISH,
     {{1, 3, 1, 16, 4}, {6, 3, 2, 24, 4}, {6, 5, 1, 24, 6}, {4, 5, 2, 32, 0}}},
    {"odd sizes and channels",
     23,
     37,
     10,
     37,
     3,
     TP__ACT_SWISH,
     {{3, 3, 1, 10, 3}, {2, 5, 2, 19, 5}, {3, 3, 1, 19, 0}, {0}}},
    {"Lite's blocks",
     48,
     48,
     32,
     64,
     104,
     TP__ACT_RELU6,
     {{1, 3, 1, 16, 0}, {6, 3, 2, 24, 0}, {6, 3, 1, 24, 0}, {0}}},
    {"many pixels and few channels, then the other way round",
     70,
     66,
     8,
     96,
     4,
     TP__ACT_RELU,
     {{6, 3, 2, 8, 2}, {6, 5, 2, 16, 2}, {6, 3, 2, 96, 24}, {2, 3, 1, 96, 8}}},
    {"layers so large that they go in bands of rows",
     109,
     90,
     16,
     32,
     4,
     TP__ACT_SWISH,
     {{6, 5, 1, 16, 4}, {6, 3, 2, 24, 4}, {0}}},
    {"dense blocks, by tiles of 4 and of 2",
     46,
     62,
     16,
     40,
     4,
     TP__ACT_RELU,
     {{0, 3, 1, 16, 0}, {0, 3, 2, 24, 0}, {0, 3, 1, 24, 0}, {0, 3, 2, 33, 0}}},
};
enum { SMALL_NETS = sizeof small_nets / sizeof small_nets[0] };

struct kind {
  const char *name, *trained; /* prefix of what trains; NULL: inference */
};
static const struct kind kinds[] = {
    {"inference", NULL}, {"the head", "predictions"}, {"top and head", "top"}, {"everything", ""}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static inline tp__graph *build_kind(const struct small_net *net, const struct kind *kind)
{
  tp__graph *g = new_graph();
  tp__value logits = build_net(g, net, kind->trained != NULL);
  if (kind->trained != NULL)
    add_training(g, logits, kind->trained);
  else
    output(g, "probabilities", NODE(g, SOFTMAX, (0), logits));
  return g;
}

static inline void compare_outputs(const rig *fast, const rig *plain, const char *what)
{
  for (size_t o = 0; o < fast->graph->n_outputs; o++) {
    double d = difference(fast->output[o], plain->output[o], fast->elements[o], 1e-3);
    if (!(d < 2e-5)) fail_msg("%s: output %s differs by %g", what, fast->graph->output[o].name, d);
  }
}

/* After one step Adam's first moments are the gradients / 10. The parameters themselves are
 * compared by the size of a step only: the first step is the gradient's sign, wherever the gradient
 * is. */
static inline void compare_states(rig *fast, rig *plain, const char *what)
{
  tp__tensors a = {0}, b = {0};
  rig_read(fast, &a);
  rig_read(plain, &b);
  for (size_t i = 0; i < a.count; i++) {
    bool slot = strncmp(a.item[i].name, "adam", 4) == 0;
    size_t count = tp__shape_elements(&a.item[i].shape, 0);
    double d = difference(a.item[i].data, b.item[i].data, count, slot ? 1e-7 : 1);
    if (!(d < (slot ? 1e-3 : 0.0201))) fail_msg("%s: %s differs by %g", what, a.item[i].name, d);
  }
  tp__tensors_free(&a);
  tp__tensors_free(&b);
}

#endif
