/* nets_densenet - DenseNet121, 169 and 201 as keras.applications builds them: layers, names, order.
 *
 *   pixels ─> 7x7 stem ─> max pooling ─> dense block ─> transition ─> ... ─> dense block ─> head
 *             /2          /2                            /2       (three times)
 *
 * A layer of a dense block makes 32 new channels (batch norm, 1x1, batch norm, 3x3) and appends
 * them to those it read; a transition halves the channels by a 1x1 convolution and the size by
 * average pooling. The names' numbers count the layers that have weights.
 *
 * G. Huang et al.: "Densely Connected Convolutional Networks", CVPR 2017; names and order by Keras
 * 3.15 (keras.applications.DenseNet121, 169, 201).
 */
#include "nets.h"

enum { BLOCKS = 4, GROWTH = 32 };
static const float bn_epsilon = 1.001e-5f;

static int norm(tp__net_builder *b, const char *bn, const char *relu, int x)
{
  x = tp__layer_batch_norm(b, bn, x, bn_epsilon);
  return tp__layer_activation(b, relu, x, TP__ACT_RELU);
}

static int dense_block(tp__net_builder *b, int x, int block, int layers)
{
  char prefix[32];
  b->prefix = prefix;
  for (int i = 1; i <= layers; i++) {
    snprintf(prefix, sizeof prefix, "conv%d_block%d_", block, i);
    int y = norm(b, "0_bn", "0_relu", x);
    y = tp__layer_conv(b, "1_conv", y,
                       &(tp__conv){.filters = 4 * GROWTH, .kernel = 1, .stride = 1});
    y = norm(b, "1_bn", "1_relu", y);
    y = tp__layer_conv(
        b, "2_conv", y,
        &(tp__conv){.filters = GROWTH, .kernel = 3, .stride = 1, .padding = TP__SAME});
    x = tp__layer_concatenate(b, "concat", x, y);
  }
  b->prefix = "";
  return x;
}

static int transition(tp__net_builder *b, int x, int block)
{
  char prefix[32];
  snprintf(prefix, sizeof prefix, "pool%d_", block);
  b->prefix = prefix;
  x = norm(b, "bn", "relu", x);
  x = tp__layer_conv(
      b, "conv", x, &(tp__conv){.filters = tp__layer_channels(b, x) / 2, .kernel = 1, .stride = 1});
  x = tp__layer_average_pool(b, "pool", x, 2, 2);
  b->prefix = "";
  return x;
}

static void densenet(tp__net_builder *b, const int layers[BLOCKS])
{
  b->kernel_init = TP__INIT_GLOROT;
  int x = tp__layer_input(b, TP__PREPARE_TORCH);
  x = tp__layer_pad(b, "zero_padding2d", x, 3); /* Keras leaves the paddings unnamed */
  x = tp__layer_conv(b, "conv1_conv", x, &(tp__conv){.filters = 64, .kernel = 7, .stride = 2});
  x = norm(b, "conv1_bn", "conv1_relu", x);
  x = tp__layer_pad(b, "zero_padding2d_1", x, 1);
  x = tp__layer_max_pool(b, "pool1", x, 3, 2);
  for (int i = 0; i < BLOCKS; i++) {
    x = dense_block(b, x, i + 2, layers[i]);
    if (i < BLOCKS - 1) x = transition(b, x, i + 2);
  }
  tp__layer_head(b, norm(b, "bn", "relu", x));
}

void tp__nets_densenet121(tp__net_builder *b)
{
  densenet(b, (const int[]){6, 12, 24, 16});
}

void tp__nets_densenet169(tp__net_builder *b)
{
  densenet(b, (const int[]){6, 12, 32, 32});
}

void tp__nets_densenet201(tp__net_builder *b)
{
  densenet(b, (const int[]){6, 12, 48, 32});
}
