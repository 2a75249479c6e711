/* nets_resnet - ResNet50 of three kinds: layers, names and order as keras.applications builds them.
 *
 *   pixels ─> 7x7 stem ─> max pooling ─> 3 + 4 + 6 + 3 blocks ─> head
 *             /2          /2             /1  /2  /2  /2
 *
 * A block: 1x1 convolution to fewer channels, 3x3, 1x1 to four times as many, and its input added:
 * as it is, or (first block of a stage) by a 1x1 convolution of its own.
 *
 *   resnet50        batch norm after each convolution, the stride in the first 1x1. K. He et al.:
 *                   "Deep Residual Learning for Image Recognition", CVPR 2016
 *   resnet50-v1.5   the same names, but the stride in the 3x3, padded alike on all sides, and
 *                   convolutions without bias: what torchvision and timm call resnet50
 *   resnet50-v2     batch norm and activation before each convolution, the stride in a stage's last
 *                   block. K. He et al.: "Identity Mappings in Deep Residual Networks", ECCV 2016
 *
 * Names and order by Keras 3.15 (keras.applications.ResNet50, ResNet50V2). Keras lists layers by
 * their distance from the output, so the branch beside a block comes after the longer one's start.
 */
#include "nets.h"

enum { STAGES = 4 };
static const int blocks_of[STAGES] = {3, 4, 6, 3};

typedef struct kind {
  float epsilon;
  bool bias;       /* of convolutions that a batch norm follows */
  bool stride_3x3; /* not in the first 1x1 */
} kind;

static const kind keras = {.epsilon = 1.001e-5f, .bias = true},
                  torch = {.epsilon = 1e-5f, .stride_3x3 = true};

static int norm(tp__net_builder *b, const char *bn, const char *relu, int x, float epsilon)
{
  x = tp__layer_batch_norm(b, bn, x, epsilon);
  return tp__layer_activation(b, relu, x, TP__ACT_RELU);
}

static int conv(tp__net_builder *b, const char *name, int x, int filters, int kernel, int stride,
                bool bias)
{
  return tp__layer_conv(b, name, x,
                        &(tp__conv){.filters = filters,
                                    .kernel = kernel,
                                    .stride = stride,
                                    .padding = kernel > 1 ? TP__CENTRED : TP__VALID,
                                    .bias = bias});
}

/* 7x7, padded by a layer. */
static int stem(tp__net_builder *b, int x, bool bias)
{
  x = tp__layer_pad(b, "conv1_pad", x, 3);
  return tp__layer_conv(
      b, "conv1_conv", x,
      &(tp__conv){.filters = 64, .kernel = 7, .stride = 2, .padding = TP__VALID, .bias = bias});
}

static int stem_pool(tp__net_builder *b, int x)
{
  return tp__layer_max_pool(b, "pool1_pool", tp__layer_pad(b, "pool1_pad", x, 1), 3, 2);
}

/* ---- batch norm behind the convolution ---- */

static int block_v1(tp__net_builder *b, int input, int filters, int stride, bool first,
                    const kind *k)
{
  int s1 = k->stride_3x3 ? 1 : stride, s2 = k->stride_3x3 ? stride : 1, beside = input;
  int x = conv(b, "1_conv", input, filters, 1, s1, k->bias);
  x = norm(b, "1_bn", "1_relu", x, k->epsilon);
  x = conv(b, "2_conv", x, filters, 3, s2, k->bias);
  x = norm(b, "2_bn", "2_relu", x, k->epsilon);
  if (first) beside = conv(b, "0_conv", input, 4 * filters, 1, stride, k->bias);
  x = conv(b, "3_conv", x, 4 * filters, 1, 1, k->bias);
  if (first) beside = tp__layer_batch_norm(b, "0_bn", beside, k->epsilon);
  x = tp__layer_batch_norm(b, "3_bn", x, k->epsilon);
  x = tp__layer_add(b, "add", beside, x);
  return tp__layer_activation(b, "out", x, TP__ACT_RELU);
}

static void resnet50(tp__net_builder *b, tp__prepare prepare, const kind *k)
{
  char prefix[32];
  b->kernel_init = TP__INIT_GLOROT;
  int x = stem(b, tp__layer_input(b, prepare), k->bias);
  x = stem_pool(b, norm(b, "conv1_bn", "conv1_relu", x, k->epsilon));
  b->prefix = prefix;
  for (int s = 0; s < STAGES; s++)
    for (int i = 0; i < blocks_of[s]; i++) {
      snprintf(prefix, sizeof prefix, "conv%d_block%d_", s + 2, i + 1);
      x = block_v1(b, x, 64 << s, s > 0 && i == 0 ? 2 : 1, i == 0, k);
    }
  b->prefix = "";
  tp__layer_head(b, x);
}

void tp__nets_resnet50(tp__net_builder *b)
{
  resnet50(b, TP__PREPARE_CAFFE, &keras);
}

void tp__nets_resnet50_v1_5(tp__net_builder *b)
{
  resnet50(b, TP__PREPARE_TORCH, &torch);
}

/* ---- batch norm before the convolution ---- */

/* number: of the pooling layers so far, which Keras leaves unnamed. */
static int pool_unnamed(tp__net_builder *b, int x, int number)
{
  char name[32] = "max_pooling2d";
  const char *prefix = b->prefix;
  if (number > 0) snprintf(name, sizeof name, "max_pooling2d_%d", number);
  b->prefix = "";
  x = tp__layer_max_pool(b, name, x, 1, 2);
  b->prefix = prefix;
  return x;
}

static int block_v2(tp__net_builder *b, int input, int filters, int stride, bool first, int stage)
{
  float epsilon = keras.epsilon;
  int before = norm(b, "preact_bn", "preact_relu", input, epsilon), beside = input;
  int x = conv(b, "1_conv", before, filters, 1, 1, false);
  x = norm(b, "1_bn", "1_relu", x, epsilon);
  x = tp__layer_pad(b, "2_pad", x, 1);
  x = tp__layer_conv(b, "2_conv", x,
                     &(tp__conv){.filters = filters, .kernel = 3, .stride = stride});
  x = norm(b, "2_bn", "2_relu", x, epsilon);
  if (first)
    beside = conv(b, "0_conv", before, 4 * filters, 1, stride, true);
  else if (stride > 1)
    beside = pool_unnamed(b, input, stage);
  x = conv(b, "3_conv", x, 4 * filters, 1, 1, true);
  return tp__layer_add(b, "out", beside, x);
}

void tp__nets_resnet50_v2(tp__net_builder *b)
{
  char prefix[32];
  b->kernel_init = TP__INIT_GLOROT;
  int x = stem_pool(b, stem(b, tp__layer_input(b, TP__PREPARE_TF), true));
  b->prefix = prefix;
  for (int s = 0; s < STAGES; s++)
    for (int i = 0; i < blocks_of[s]; i++) {
      bool last = i == blocks_of[s] - 1;
      snprintf(prefix, sizeof prefix, "conv%d_block%d_", s + 2, i + 1);
      x = block_v2(b, x, 64 << s, last && s < STAGES - 1 ? 2 : 1, i == 0, s);
    }
  b->prefix = "";
  tp__layer_head(b, norm(b, "post_bn", "post_relu", x, keras.epsilon));
}
