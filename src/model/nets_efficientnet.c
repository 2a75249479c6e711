/* nets_efficientnet - EfficientNet-B0...B7 as keras.applications builds them: layers, names, order.
 *
 *   pixels ─> colour statistics ─> stem ─> blocks in 7 stages    ─> top ─> head
 *                                  /2      /1 /2 /2 /2 /1 /2 /1
 *
 * A block: 1x1 expansion, depthwise convolution, squeeze and excitation, 1x1 projection, and the
 * input added where shape and stride allow; every convolution is followed by batch norm.
 *
 * M. Tan, Q. Le: "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", ICML
 * 2019; names and order by Keras 3.15 (keras.applications.EfficientNetB0...B7). The larger
 * ones have more channels and more blocks a stage, by two coefficients (net.c).
 *
 * As timm's efficientnet_b0...b4 (PyTorch Image Models 1.0.31, without "tf_") the same layers pad
 * alike on all sides and have another epsilon.
 */
#include <math.h>

#include "nets.h"

/* Table 1 of the paper. */
const tp__stage tp__efficientnet_stage[TP__EFFICIENTNET_STAGES] = {
    {.kernel = 3, .repeats = 1, .filters = 16, .expand = 1, .stride = 1},
    {.kernel = 3, .repeats = 2, .filters = 24, .expand = 6, .stride = 2},
    {.kernel = 5, .repeats = 2, .filters = 40, .expand = 6, .stride = 2},
    {.kernel = 3, .repeats = 3, .filters = 80, .expand = 6, .stride = 2},
    {.kernel = 5, .repeats = 3, .filters = 112, .expand = 6, .stride = 1},
    {.kernel = 5, .repeats = 4, .filters = 192, .expand = 6, .stride = 2},
    {.kernel = 3, .repeats = 1, .filters = 320, .expand = 6, .stride = 1},
};

/* Keras' and TensorFlow's, or PyTorch's: the same layers and arrays, other padding and epsilon. */
static float bn_epsilon(const tp__net_builder *b)
{
  return b->centred ? 1e-5f : 1e-3f;
}

/* A convolution of stride 2: Keras has a padding layer before it, PyTorch pads inside, alike on all
 * sides. */
static int stride_pad(tp__net_builder *b, const char *name, int x, int kernel)
{
  return b->centred ? x : tp__layer_stride_pad(b, name, x, kernel);
}

static tp__padding stride_padding(const tp__net_builder *b)
{
  return b->centred ? TP__CENTRED : TP__VALID;
}

int tp__efficientnet_filters(int filters, double width)
{
  double exact = filters * width;
  int rounded = (int)(exact + 4) / 8 * 8;
  if (rounded < 8) rounded = 8;
  return rounded < 0.9 * exact ? rounded + 8 : rounded;
}

int tp__efficientnet_repeats(int repeats, double depth)
{
  return (int)ceil(depth * repeats);
}

/* Keras divides by 255 as a multiplication with float32(1/255). The official weight file has
 * standard deviations where the normalization layer expects variances; the graph that reads it
 * divides by their square root once more (tensorflow issue 49930). */
static int preprocessing(tp__net_builder *b, int x)
{
  static const double deviation[3] = {0.229, 0.224, 0.225};
  bool official = b->spec->official_preprocessing;
  x = tp__layer_rescaling(b, "rescaling", x, (float)(1.0 / 255.0), 0);
  x = tp__layer_normalization(b, "normalization", x, official);
  if (!official) return x;
  float scale[3];
  for (int c = 0; c < 3; c++) scale[c] = (float)(1.0 / sqrt(deviation[c]));
  return tp__layer_rescaling_rgb(b, "rescaling_1", x, scale);
}

/* Channels are weighed by a gate computed from their means. The narrow layer has a quarter of the
 * block's input channels (not of the expanded ones). */
static int squeeze_excite(tp__net_builder *b, int x, int channels_in)
{
  int reduced = channels_in / 4 > 1 ? channels_in / 4 : 1;
  int gate = tp__layer_global_pool(b, "se_squeeze", x);
  gate = tp__layer_reshape_channels(b, "se_reshape", gate);
  gate = tp__layer_conv(b, "se_reduce", gate,
                        &(tp__conv){.filters = reduced,
                                    .kernel = 1,
                                    .stride = 1,
                                    .padding = TP__SAME,
                                    .bias = true,
                                    .act = TP__ACT_SWISH});
  gate = tp__layer_conv(b, "se_expand", gate,
                        &(tp__conv){.filters = tp__layer_channels(b, x),
                                    .kernel = 1,
                                    .stride = 1,
                                    .padding = TP__SAME,
                                    .bias = true,
                                    .act = TP__ACT_SIGMOID});
  return tp__layer_multiply(b, "se_excite", x, gate);
}

/* A 1x1 convolution without bias. */
static int pointwise(tp__net_builder *b, const char *name, int x, int filters)
{
  return tp__layer_conv(
      b, name, x, &(tp__conv){.filters = filters, .kernel = 1, .stride = 1, .padding = TP__SAME});
}

static int depthwise(tp__net_builder *b, int x, int kernel, int stride)
{
  tp__conv conv = {.kernel = kernel, .stride = stride, .padding = TP__SAME};
  if (stride == 2) {
    x = stride_pad(b, "dwconv_pad", x, kernel);
    conv.padding = stride_padding(b);
  }
  x = tp__layer_depthwise(b, "dwconv", x, &conv);
  x = tp__layer_batch_norm(b, "bn", x, bn_epsilon(b));
  return tp__layer_activation(b, "activation", x, TP__ACT_SWISH);
}

/* The stage gives kernel and expansion; filters and stride are those of this block. first: the
 * network's first block, whose survival probability is 1 and which therefore has no drop layer. */
static int block(tp__net_builder *b, int input, const tp__stage *s, int filters, int stride,
                 bool first)
{
  int x = input, channels_in = tp__layer_channels(b, input);
  if (s->expand != 1) {
    x = pointwise(b, "expand_conv", x, channels_in * s->expand);
    x = tp__layer_batch_norm(b, "expand_bn", x, bn_epsilon(b));
    x = tp__layer_activation(b, "expand_activation", x, TP__ACT_SWISH);
  }
  x = depthwise(b, x, s->kernel, stride);
  x = squeeze_excite(b, x, channels_in);
  x = pointwise(b, "project_conv", x, filters);
  x = tp__layer_batch_norm(b, "project_bn", x, bn_epsilon(b));
  if (stride != 1 || channels_in != filters) return x;
  if (!first) x = tp__layer_drop(b, "drop", x);
  return tp__layer_add(b, "add", x, input);
}

static int repeats_of(const tp__net_builder *b, int stage)
{
  return tp__efficientnet_repeats(tp__efficientnet_stage[stage].repeats, b->depth);
}

static int count_blocks(const tp__net_builder *b)
{
  int count = 0;
  for (int i = 0; i < TP__EFFICIENTNET_STAGES; i++) count += repeats_of(b, i);
  return count;
}

static int all_blocks(tp__net_builder *b, int x)
{
  char prefix[32];
  bool first = true;
  b->prefix = prefix;
  b->blocks = count_blocks(b);
  for (int i = 0; i < TP__EFFICIENTNET_STAGES; i++) {
    const tp__stage *s = &tp__efficientnet_stage[i];
    int filters = tp__efficientnet_filters(s->filters, b->width);
    for (int j = 0; j < repeats_of(b, i); j++, b->block++) {
      snprintf(prefix, sizeof prefix, "block%d%c_", i + 1, 'a' + j);
      x = block(b, x, s, filters, j == 0 ? s->stride : 1, first);
      first = false;
    }
  }
  b->prefix = "";
  return x;
}

void tp__nets_efficientnet(tp__net_builder *b)
{
  int x = preprocessing(b, tp__layer_input(b, TP__PREPARE_NONE));
  x = stride_pad(b, "stem_conv_pad", x, 3);
  x = tp__layer_conv(b, "stem_conv", x,
                     &(tp__conv){.filters = tp__efficientnet_filters(32, b->width),
                                 .kernel = 3,
                                 .stride = 2,
                                 .padding = stride_padding(b)});
  x = tp__layer_batch_norm(b, "stem_bn", x, bn_epsilon(b));
  x = tp__layer_activation(b, "stem_activation", x, TP__ACT_SWISH);
  x = all_blocks(b, x);
  x = pointwise(b, "top_conv", x, tp__efficientnet_filters(1280, b->width));
  x = tp__layer_batch_norm(b, "top_bn", x, bn_epsilon(b));
  x = tp__layer_activation(b, "top_activation", x, TP__ACT_SWISH);
  tp__layer_head(b, x);
}

void tp__nets_efficientnet_timm(tp__net_builder *b)
{
  b->centred = true;
  b->momentum = 0.9f; /* PyTorch's 0.1 */
  tp__nets_efficientnet(b);
}
