/* Proves that the planned executor computes what the plain one does on small networks of residual
 * blocks (activation behind the sum, or before the convolutions) and of dense blocks, for inference
 * and for training the head or everything; and that bits don't depend on threads or on how examples
 * come in batches. Expected numbers: the plain executor's, which test_reference and test_gradients
 * prove. Hostile case: channels and sizes that divide by nothing.
 */
#include "small_nets.h"

typedef struct net net;
struct net {
  const char *name;
  tp__value (*build)(tp__graph *g, const net *n, tp__value x);
  int height, width, channels, growth;
};

static tp__value conv_norm(tp__graph *g, const char *name, tp__value x, int kernel, int stride,
                           int outputs, tp__act act)
{
  char text[48];
  int in = (int)g->node[x].shape.dim[3];
  snprintf(text, sizeof text, "%d,%d,%d,%d", kernel, kernel, in, outputs);
  x = conv(g, name, x, text, stride, kernel / 2);
  return normed(g, name, "n", x, outputs, act);
}

/* 1 x 1, 3 x 3, 1 x 1, the shortcut added, then the activation. */
static tp__value residual_block(tp__graph *g, const char *block, tp__value x, int stride, int wide,
                                bool project)
{
  char name[4][16];
  for (int i = 0; i < 4; i++) snprintf(name[i], sizeof name[i], "%s_%d", block, i);
  tp__value shortcut = x;
  if (project) shortcut = conv_norm(g, name[0], x, 1, stride, 4 * wide, TP__ACT_NONE);
  x = conv_norm(g, name[1], x, 1, stride, wide, TP__ACT_RELU);
  x = conv_norm(g, name[2], x, 3, 1, wide, TP__ACT_RELU);
  x = conv_norm(g, name[3], x, 1, 1, 4 * wide, TP__ACT_NONE);
  return activation(g, block, NODE(g, ADD, (0), shortcut, x), TP__ACT_RELU);
}

static tp__value residual_net(tp__graph *g, const net *n, tp__value x)
{
  x = residual_block(g, "r1", x, 1, n->channels / 2, true);
  x = residual_block(g, "r2", x, 1, n->channels / 2, false);
  return residual_block(g, "r3", x, 2, n->channels, true);
}

/* Batch norm and activation first; the shortcut is taken behind them, or a pool of x. */
static tp__value first_block(tp__graph *g, const char *block, tp__value x, int stride, int wide)
{
  char name[4][16], text[48];
  for (int i = 0; i < 4; i++) snprintf(name[i], sizeof name[i], "%s_%d", block, i);
  int in = (int)g->node[x].shape.dim[3];
  tp__value y = normed(g, block, "first", x, in, TP__ACT_RELU);
  tp__value shortcut = x;
  snprintf(text, sizeof text, "1,1,%d,%d", in, 4 * wide);
  if (in != 4 * wide)
    shortcut = bias_add(g, name[0], conv(g, name[0], y, text, stride, 0), strrchr(text, ',') + 1);
  else if (stride > 1)
    shortcut = NODE(g, MAX_POOL, (.window = 1, .stride = stride), x);
  y = conv_norm(g, name[1], y, 1, 1, wide, TP__ACT_RELU);
  y = conv_norm(g, name[2], y, 3, stride, wide, TP__ACT_RELU);
  snprintf(text, sizeof text, "1,1,%d,%d", wide, 4 * wide);
  return NODE(g, ADD, (0), shortcut, conv(g, name[3], y, text, 1, 0));
}

static tp__value first_net(tp__graph *g, const net *n, tp__value x)
{
  x = first_block(g, "f1", x, 1, n->channels / 2);
  x = first_block(g, "f2", x, 2, n->channels / 2);
  return normed(g, "f", "last", x, (int)g->node[x].shape.dim[3], TP__ACT_RELU);
}

static tp__value dense_block(tp__graph *g, const char *block, tp__value x, int layers, int growth)
{
  for (int i = 0; i < layers; i++) {
    char name[2][16], text[48];
    int in = (int)g->node[x].shape.dim[3];
    for (int k = 0; k < 2; k++) snprintf(name[k], sizeof name[k], "%s_%d_%d", block, i, k);
    tp__value y = normed(g, name[0], "a", x, in, TP__ACT_RELU);
    y = conv_norm(g, name[0], y, 1, 1, 4 * growth, TP__ACT_RELU);
    snprintf(text, sizeof text, "3,3,%d,%d", 4 * growth, growth);
    x = NODE(g, CONCAT, (0), x, conv(g, name[1], y, text, 1, 1));
  }
  return x;
}

static tp__value dense_net(tp__graph *g, const net *n, tp__value x)
{
  char text[48];
  x = dense_block(g, "d1", x, 3, n->growth);
  int in = (int)g->node[x].shape.dim[3], half = in / 2;
  x = normed(g, "d1", "pool", x, in, TP__ACT_RELU);
  snprintf(text, sizeof text, "1,1,%d,%d", in, half);
  x = NODE(g, AVG_POOL, (.window = 2, .stride = 2), conv(g, "d1_pool", x, text, 1, 0));
  x = dense_block(g, "d2", x, 4, n->growth);
  return normed(g, "d2", "last", x, (int)g->node[x].shape.dim[3], TP__ACT_RELU);
}

static const net nets[] = {
    {"residual blocks", residual_net, 40, 40, 16, 0},
    {"residual blocks, odd", residual_net, 37, 51, 10, 0},
    {"activation first", first_net, 40, 44, 16, 0},
    {"activation first, odd", first_net, 35, 29, 6, 0},
    {"dense blocks", dense_net, 40, 36, 32, 16},
    {"dense blocks, odd", dense_net, 29, 43, 12, 5},
    {"dense blocks, parts of vectors", dense_net, 33, 32, 16, 12},
};
enum { NETS = sizeof nets / sizeof nets[0] };

static tp__graph *build(const net *n, const struct kind *kind)
{
  char text[64];
  tp__graph *g = new_graph();
  snprintf(text, sizeof text, "N,%d,%d,3", n->height, n->width);
  tp__value x = NODE(g, PAD, (.pad = {3, 3, 3, 3}), input(g, "pixels", text));
  x = NODE(g, AFFINE, (.f = {1.0f / 128, -1}), x);
  snprintf(text, sizeof text, "7,7,3,%d", n->channels);
  x = normed(g, "stem", "n", conv(g, "stem", x, text, 2, 0), n->channels, TP__ACT_RELU);
  x = NODE(g, PAD, (.pad = {1, 1, 1, 1}), x);
  x = n->build(g, n, NODE(g, MAX_POOL, (.window = 3, .stride = 2), x));
  snprintf(text, sizeof text, "%d,5", (int)g->node[x].shape.dim[3]);
  tp__value logits =
      NODE(g, MATMUL, (0), NODE(g, GLOBAL_POOL, (0), x), param(g, "predictions/kernel", text));
  if (kind->trained != NULL)
    add_training(g, logits, kind->trained);
  else
    output(g, "probabilities", NODE(g, SOFTMAX, (0), logits));
  return g;
}

static const struct kind parts[] = {
    {"inference", NULL}, {"the head", "predictions"}, {"everything", ""}};
enum { PARTS = sizeof parts / sizeof parts[0] };

static void fast_equals_plain(void **state)
{
  (void)state;
  for (int i = 0; i < NETS * PARTS; i++) {
    char what[128];
    snprintf(what, sizeof what, "%s, %s", nets[i / PARTS].name, parts[i % PARTS].name);
    tp__graph *g = build(&nets[i / PARTS], &parts[i % PARTS]);
    rig fast = rig_new(g, 2, 6, false), plain = rig_new(g, 1, 6, true);
    rig_run(&fast);
    rig_run(&plain);
    compare_outputs(&fast, &plain, what);
    compare_states(&fast, &plain, what);
    rig_free(&fast);
    rig_free(&plain);
    tp__graph_free(g);
  }
}

static void same_bits_for_any_threads(void **state)
{
  (void)state;
  for (int i = 0; i < NETS * PARTS; i++) {
    tp__graph *g = build(&nets[i / PARTS], &parts[i % PARTS]);
    rig one = rig_new(g, 1, 11, false), many = rig_new(g, 3, 11, false);
    for (int step = 0; step < 2; step++) rig_run(&one);
    for (int step = 0; step < 2; step++) rig_run(&many);
    expect_same_outputs(&many, &one, nets[i / PARTS].name);
    expect_same_state(&many, &one, nets[i / PARTS].name);
    rig_free(&many);
    rig_free(&one);
    tp__graph_free(g);
  }
}

static void same_bits_for_any_batch(void **state)
{
  (void)state;
  for (int i = 0; i < NETS; i++) {
    tp__graph *g = build(&nets[i], &parts[0]);
    rig whole = rig_new(g, 2, 9, false), pieces = rig_new(g, 2, 9, false);
    rig_run(&whole);
    for (int64_t from = 0, n = 1; from < 9; from += n, n = from + 4 <= 9 ? 4 : 9 - from)
      rig_run_part(&pieces, from, n);
    expect_same_outputs(&pieces, &whole, nets[i].name);
    rig_free(&whole);
    rig_free(&pieces);
    tp__graph_free(g);
  }
}

static uint64_t bytes_of_dense_block(int growth)
{
  tp__program_info info;
  const net n = {.name = "memory",
                 .build = dense_net,
                 .height = 64,
                 .width = 64,
                 .channels = 64,
                 .growth = growth};
  tp__graph *g = build(&n, &parts[2]);
  rig r = rig_new(g, 1, 1, false);
  r.backend->program_info(r.program, &info);
  rig_free(&r);
  tp__graph_free(g);
  return info.activation_bytes;
}

/* Training, all inputs of a dense block's layers are kept. Where parts begin at whole vectors they
 * are one memory, else each concat is a copy: more of it, although there are fewer channels. */
static void parts_are_one_memory(void **state)
{
  (void)state;
  const uint64_t joined = bytes_of_dense_block(32), copied = bytes_of_dense_block(31);
  if (joined >= copied)
    fail_msg("%llu bytes, not less than %llu", (unsigned long long)joined,
             (unsigned long long)copied);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fast_equals_plain),
      cmocka_unit_test(same_bits_for_any_threads),
      cmocka_unit_test(same_bits_for_any_batch),
      cmocka_unit_test(parts_are_one_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
