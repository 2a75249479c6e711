/* nets_mobilenet - MobileNetV2 as keras.applications builds it: layers, names and order.
 *
 *   pixels ─> stem ─> 17 blocks in 7 stages ─> top ─> head
 *             /2      /1 /2 /2 /2 /1 /2 /1
 *
 * A block: 1x1 expansion, depthwise convolution, 1x1 projection without activation (a linear
 * bottleneck), and the input added where shape and stride allow. Blocks are numbered through; the
 * first one, without expansion, is "expanded_conv". The stem pads inside its convolution, blocks of
 * stride 2 by a layer.
 *
 * M. Sandler et al.: "MobileNetV2: Inverted Residuals and Linear Bottlenecks", CVPR 2018; names and
 * order by Keras 3.15 (keras.applications.MobileNetV2, alpha 1).
 */
#include "nets.h"

/* Table 2 of the paper. */
static const struct stage {
  int expand, filters, repeats, stride;
} stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
              {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

static const float bn_epsilon = 1e-3f;

static int pointwise(tp__net_builder *b, const char *name, int x, int filters)
{
  return tp__layer_conv(
      b, name, x, &(tp__conv){.filters = filters, .kernel = 1, .stride = 1, .padding = TP__SAME});
}

static int depthwise(tp__net_builder *b, int x, int stride)
{
  tp__conv conv = {.kernel = 3, .stride = stride, .padding = TP__SAME};
  if (stride == 2) {
    x = tp__layer_stride_pad(b, "pad", x, 3);
    conv.padding = TP__VALID;
  }
  x = tp__layer_depthwise(b, "depthwise", x, &conv);
  x = tp__layer_batch_norm(b, "depthwise_BN", x, bn_epsilon);
  return tp__layer_relu(b, "depthwise_relu", x, TP__ACT_RELU6);
}

static int block(tp__net_builder *b, int input, const struct stage *s, int stride)
{
  int x = input, channels_in = tp__layer_channels(b, input);
  if (s->expand != 1) {
    x = pointwise(b, "expand", x, s->expand * channels_in);
    x = tp__layer_batch_norm(b, "expand_BN", x, bn_epsilon);
    x = tp__layer_relu(b, "expand_relu", x, TP__ACT_RELU6);
  }
  x = depthwise(b, x, stride);
  x = pointwise(b, "project", x, s->filters);
  x = tp__layer_batch_norm(b, "project_BN", x, bn_epsilon);
  return stride == 1 && channels_in == s->filters ? tp__layer_add(b, "add", input, x) : x;
}

static int all_blocks(tp__net_builder *b, int x)
{
  char prefix[32] = "expanded_conv_";
  int number = 0;
  b->prefix = prefix;
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
    for (int j = 0; j < stages[i].repeats; j++, number++) {
      if (number > 0) snprintf(prefix, sizeof prefix, "block_%d_", number);
      x = block(b, x, &stages[i], j == 0 ? stages[i].stride : 1);
    }
  }
  b->prefix = "";
  return x;
}

void tp__nets_mobilenet_v2(tp__net_builder *b)
{
  b->kernel_init = TP__INIT_GLOROT;
  b->momentum = 0.999f;
  b->pool = "global_average_pooling2d"; /* Keras leaves it unnamed */
  int x = tp__layer_input(b, TP__PREPARE_TF);
  x = tp__layer_conv(b, "Conv1", x,
                     &(tp__conv){.filters = 32, .kernel = 3, .stride = 2, .padding = TP__SAME});
  x = tp__layer_batch_norm(b, "bn_Conv1", x, bn_epsilon);
  x = tp__layer_relu(b, "Conv1_relu", x, TP__ACT_RELU6);
  x = all_blocks(b, x);
  x = tp__layer_conv(b, "Conv_1", x, &(tp__conv){.filters = 1280, .kernel = 1, .stride = 1});
  x = tp__layer_batch_norm(b, "Conv_1_bn", x, bn_epsilon);
  x = tp__layer_relu(b, "out_relu", x, TP__ACT_RELU6);
  tp__layer_head(b, x);
}
