/* net_layer - see net_layer.h */
#include "net_layer.h"

#include <stdlib.h>
#include <string.h>

/* Keeps the first failure. True while all is well. */
static bool ok(tp__net_builder *b, tp_status status)
{
  if (b->status == TP_OK) b->status = status;
  return b->status == TP_OK;
}

/* Room for one more item of an array that doubles. */
static void grow(tp__net_builder *b, void **items, int count, int *capacity, size_t size)
{
  if (b->status != TP_OK || count < *capacity) return;
  int wanted = *capacity > 0 ? 2 * *capacity : 64;
  void *grown = realloc(*items, (size_t)wanted * size);
  if (grown == NULL) {
    ok(b, tp__no_memory(b->err, (size_t)wanted * size));
    return;
  }
  *items = grown;
  *capacity = wanted;
}

/* ---- layers and parameters of the list ---- */

/* A layer whose value follows; its index, or -1. */
static int add_layer(tp__net_builder *b, const char *class_name, const char *name, int x, int y)
{
  if (b->status != TP_OK) return -1;
  tp__net *net = b->net;
  const char *full = tp__arena_format(&net->arena, "%s%s", b->prefix, name);
  if (full == NULL) ok(b, tp__no_memory(b->err, strlen(name)));
  grow(b, (void **)&net->layer, net->n_layers, &net->layer_capacity, sizeof *net->layer);
  if (b->status != TP_OK) return -1;
  net->layer[net->n_layers] = (tp__layer){
      .name = full,
      .class_name = class_name,
      .value = TP__NONE,
      .inbound = {x, y},
      .first_parameter = net->n_parameters,
      .trainable = true,
      .head = b->head,
  };
  return net->n_layers++;
}

/* A parameter of the layer added last: its line in the list. NULL after a failure. */
static tp__parameter *list_parameter(tp__net_builder *b, const char *variable)
{
  tp__net *net = b->net;
  grow(b, (void **)&net->parameter, net->n_parameters, &net->parameter_capacity,
       sizeof *net->parameter);
  if (b->status != TP_OK) return NULL;
  tp__layer *layer = &net->layer[net->n_layers - 1];
  const char *name = tp__arena_format(&net->arena, "%s/%s", layer->name, variable);
  if (name == NULL) {
    ok(b, tp__no_memory(b->err, strlen(variable)));
    return NULL;
  }
  tp__parameter *p = &net->parameter[net->n_parameters++];
  *p = (tp__parameter){.name = name, .dtype = TP__F32, .layer = net->n_layers - 1};
  layer->n_parameters++;
  return p;
}

/* The same with its node in the graph. */
static tp__value add_parameter(tp__net_builder *b, const char *variable, tp__shape shape,
                               enum tp__init init, bool statistic)
{
  tp__parameter *p = list_parameter(b, variable);
  if (p == NULL) return TP__NONE;
  p->shape = shape;
  p->init = init;
  p->statistic = statistic;
  tp__value value = TP__NONE;
  ok(b, tp__graph_param(b->net->graph, p->name, &shape, &value, b->err));
  return value;
}

static tp__shape vector_of(int64_t n)
{
  return tp__shape_make(1, &n);
}

/* ---- nodes ---- */

/* A node; after a failure nothing. */
static tp__value add_node(tp__net_builder *b, tp__op op, const tp__value *in, int n_in,
                          const tp__attr *attr)
{
  tp__value value = TP__NONE;
  if (b->status == TP_OK) ok(b, tp__graph_add(b->net->graph, op, in, n_in, attr, &value, b->err));
  return value;
}

/* The value that a layer gives is known: the layer is complete. On failure puts the layer's name
 * before the fact. */
static int finish(tp__net_builder *b, int layer, tp__value value)
{
  if (layer < 0) return -1;
  if (b->status != TP_OK) {
    b->status = tp__at(b->err, b->status, "layer %s", b->net->layer[layer].name);
    return -1;
  }
  b->net->layer[layer].value = value;
  return layer;
}

static tp__value value_of(const tp__net_builder *b, int layer)
{
  return b->status == TP_OK && layer >= 0 ? b->net->layer[layer].value : TP__NONE;
}

/* A scalar shape after a failure. */
static tp__shape shape_of(const tp__net_builder *b, int layer)
{
  tp__value v = value_of(b, layer);
  return v == TP__NONE ? (tp__shape){0} : b->net->graph->node[v].shape;
}

int tp__layer_channels(const tp__net_builder *b, int layer)
{
  tp__shape shape = shape_of(b, layer);
  return shape.rank > 0 ? (int)shape.dim[shape.rank - 1] : 1;
}

/* A layer that is one node reading one layer. */
static int one_node(tp__net_builder *b, const char *class_name, const char *name, int x, tp__op op,
                    const tp__attr *attr)
{
  int layer = add_layer(b, class_name, name, x, -1);
  return finish(b, layer, add_node(b, op, (tp__value[]){value_of(b, x)}, 1, attr));
}

static int two_nodes_in(tp__net_builder *b, const char *class_name, const char *name, int x, int y,
                        tp__op op)
{
  int layer = add_layer(b, class_name, name, x, y);
  return finish(b, layer, add_node(b, op, (tp__value[]){value_of(b, x), value_of(b, y)}, 2, NULL));
}

/* The keys of the examples, for what draws. */
static tp__value keys_of(tp__net_builder *b)
{
  tp__net *net = b->net;
  tp__shape shape = {.rank = 2, .dim = {TP__N, 2}};
  if (net->keys == TP__NONE)
    ok(b, tp__graph_input(net->graph, "keys", TP__U32, &shape, &net->keys, b->err));
  return net->keys;
}

/* ---- pixels ---- */

static tp__value augmented(tp__net_builder *b, tp__value x)
{
  const tp__net_augment *a = b->augment;
  if (a != NULL && a->flip)
    x = add_node(b, TP__OP_RANDOM_FLIP, (tp__value[]){x, keys_of(b)}, 2, NULL);
  if (a != NULL && a->rotate > 0)
    x = add_node(b, TP__OP_RANDOM_ROTATION, (tp__value[]){x, keys_of(b)}, 2,
                 &(tp__attr){.f = {a->rotate, a->fill_value}, .fill = a->fill});
  return x;
}

static tp__value prepare_torch(tp__net_builder *b, tp__value x)
{
  static const double mean[3] = {0.485, 0.456, 0.406}, deviation[3] = {0.229, 0.224, 0.225};
  tp__attr attr = {.flag = true};
  for (int c = 0; c < 3; c++) {
    attr.f[c] = (float)(1 / (255 * deviation[c]));
    attr.g[c] = (float)(-mean[c] / deviation[c]);
  }
  return add_node(b, TP__OP_AFFINE, &x, 1, &attr);
}

static tp__value prepare(tp__net_builder *b, tp__value x, tp__prepare how)
{
  switch (how) {
  case TP__PREPARE_TF:
    return add_node(b, TP__OP_AFFINE, &x, 1, &(tp__attr){.f = {(float)(1 / 127.5), -1}});
  case TP__PREPARE_CAFFE:
    x = add_node(b, TP__OP_REVERSE, &x, 1, NULL);
    return add_node(
        b, TP__OP_AFFINE, &x, 1,
        &(tp__attr){.flag = true, .f = {1, 1, 1}, .g = {-103.939f, -116.779f, -123.68f}});
  case TP__PREPARE_TORCH:
    return prepare_torch(b, x);
  case TP__PREPARE_NONE:
    break;
  }
  return x;
}

int tp__layer_input(tp__net_builder *b, tp__prepare how)
{
  int layer = add_layer(b, "InputLayer", "input_layer", -1, -1);
  if (layer < 0) return -1;
  tp__shape shape = {.rank = 4, .dim = {TP__N, b->spec->height, b->spec->width, 3}};
  ok(b, tp__graph_input(b->net->graph, "pixels", TP__F32, &shape, &b->net->pixels, b->err));
  return finish(b, layer, prepare(b, augmented(b, b->net->pixels), how));
}

int tp__layer_rescaling(tp__net_builder *b, const char *name, int x, float scale, float offset)
{
  return one_node(b, "Rescaling", name, x, TP__OP_AFFINE, &(tp__attr){.f = {scale, offset}});
}

int tp__layer_rescaling_rgb(tp__net_builder *b, const char *name, int x, const float scale[3])
{
  return one_node(b, "Rescaling", name, x, TP__OP_AFFINE,
                  &(tp__attr){.f = {scale[0], scale[1], scale[2]}, .flag = true});
}

int tp__layer_normalization(tp__net_builder *b, const char *name, int x, bool deviation)
{
  int layer = add_layer(b, "Normalization", name, x, -1);
  if (layer < 0) return -1;
  tp__shape c = vector_of(tp__layer_channels(b, x));
  tp__value mean = add_parameter(b, "mean", c, TP__INIT_NORMALIZATION_MEAN, true);
  tp__value variance = add_parameter(
      b, "variance", c,
      deviation ? TP__INIT_NORMALIZATION_DEVIATION : TP__INIT_NORMALIZATION_VARIANCE, true);
  tp__parameter *count = list_parameter(b, "count"); /* in files only: no node reads it */
  if (count != NULL) {
    count->dtype = TP__I64;
    count->statistic = true;
  }
  tp__value in[] = {value_of(b, x), mean, variance};
  return finish(b, layer, add_node(b, TP__OP_NORMALIZE, in, 3, NULL));
}

/* ---- convolutions ---- */

/* TensorFlow's "same": ceil(size / stride) outputs, the odd zero behind. pad: before, after. */
static void same_padding(int64_t size, int kernel, int stride, int pad[2])
{
  int64_t out = (size + stride - 1) / stride;
  int64_t total = (out - 1) * stride + kernel - size;
  if (total < 0) total = 0;
  pad[0] = (int)(total / 2);
  pad[1] = (int)(total - total / 2);
}

int tp__layer_stride_pad(tp__net_builder *b, const char *name, int x, int kernel)
{
  tp__shape shape = shape_of(b, x);
  tp__attr attr = {0};
  if (shape.rank == 4) {
    same_padding(shape.dim[1], kernel, 2, attr.pad);
    same_padding(shape.dim[2], kernel, 2, attr.pad + 2);
  }
  return one_node(b, "ZeroPadding2D", name, x, TP__OP_PAD, &attr);
}

int tp__layer_pad(tp__net_builder *b, const char *name, int x, int size)
{
  return one_node(b, "ZeroPadding2D", name, x, TP__OP_PAD,
                  &(tp__attr){.pad = {size, size, size, size}});
}

static tp__attr conv_attr(const tp__net_builder *b, int x, const tp__conv *conv)
{
  tp__shape shape = shape_of(b, x);
  tp__attr attr = {.stride = conv->stride};
  if (conv->padding == TP__SAME && shape.rank == 4) {
    same_padding(shape.dim[1], conv->kernel, conv->stride, attr.pad);
    same_padding(shape.dim[2], conv->kernel, conv->stride, attr.pad + 2);
  }
  for (int i = 0; conv->padding == TP__CENTRED && i < 4; i++) attr.pad[i] = conv->kernel / 2;
  return attr;
}

static tp__value add_activation(tp__net_builder *b, tp__value x, tp__act act)
{
  if (act == TP__ACT_NONE) return x;
  return add_node(b, TP__OP_ACTIVATION, &x, 1, &(tp__attr){.act = act});
}

/* Convolution, bias, activation: parameters and nodes of the layer added last, which reads x.
 * channels: of the output. */
static tp__value add_conv(tp__net_builder *b, int x, tp__op op, const tp__shape *kernel,
                          int64_t channels, const tp__conv *conv)
{
  tp__attr attr = conv_attr(b, x, conv);
  tp__value k = add_parameter(b, "kernel", *kernel, b->kernel_init, false);
  tp__value y = add_node(b, op, (tp__value[]){value_of(b, x), k}, 2, &attr);
  if (conv->bias) {
    tp__value bias = add_parameter(b, "bias", vector_of(channels), TP__INIT_ZEROS, false);
    y = add_node(b, TP__OP_BIAS_ADD, (tp__value[]){y, bias}, 2, NULL);
  }
  return add_activation(b, y, conv->act);
}

int tp__layer_conv(tp__net_builder *b, const char *name, int x, const tp__conv *conv)
{
  int layer = add_layer(b, "Conv2D", name, x, -1);
  if (layer < 0) return -1;
  tp__shape kernel = {.rank = 4,
                      .dim = {conv->kernel, conv->kernel, tp__layer_channels(b, x), conv->filters}};
  return finish(b, layer, add_conv(b, x, TP__OP_CONV, &kernel, conv->filters, conv));
}

int tp__layer_depthwise(tp__net_builder *b, const char *name, int x, const tp__conv *conv)
{
  int layer = add_layer(b, "DepthwiseConv2D", name, x, -1);
  if (layer < 0) return -1;
  int channels = tp__layer_channels(b, x);
  tp__shape kernel = {.rank = 4, .dim = {conv->kernel, conv->kernel, channels, 1}};
  return finish(b, layer, add_conv(b, x, TP__OP_DEPTHWISE, &kernel, channels, conv));
}

/* ---- the other layers of blocks ---- */

/* Mean and variance of x, and how the moving ones follow. */
static void add_statistics(tp__net_builder *b, tp__value x, tp__value statistic[2])
{
  tp__net *net = b->net;
  tp__value moments = add_node(b, TP__OP_BATCH_MOMENTS, &x, 1, NULL);
  for (int i = 0; i < 2; i++) {
    tp__value row = add_node(b, TP__OP_ROW, &moments, 1, &(tp__attr){.row = i});
    tp__value moved = add_node(b, TP__OP_MOVING_AVERAGE, (tp__value[]){statistic[i], row}, 2,
                               &(tp__attr){.f = {b->momentum}});
    if (b->status != TP_OK) return;
    ok(b, tp__graph_assign(net->graph, statistic[i], moved, b->err));
    net->parameter[net->n_parameters - 2 + i].moves = true;
    statistic[i] = row;
  }
}

int tp__layer_batch_norm(tp__net_builder *b, const char *name, int x, float epsilon)
{
  int layer = add_layer(b, "BatchNormalization", name, x, -1);
  if (layer < 0) return -1;
  tp__shape c = vector_of(tp__layer_channels(b, x));
  tp__value in[5] = {value_of(b, x)};
  in[1] = add_parameter(b, "gamma", c, TP__INIT_ONES, false);
  in[2] = add_parameter(b, "beta", c, TP__INIT_ZEROS, false);
  in[3] = add_parameter(b, "moving_mean", c, TP__INIT_ZEROS, true);
  in[4] = add_parameter(b, "moving_variance", c, TP__INIT_ONES, true);
  if (layer >= b->batch_from) add_statistics(b, in[0], &in[3]);
  return finish(b, layer, add_node(b, TP__OP_BATCH_NORM, in, 5, &(tp__attr){.f = {epsilon}}));
}

int tp__layer_activation(tp__net_builder *b, const char *name, int x, tp__act act)
{
  return one_node(b, "Activation", name, x, TP__OP_ACTIVATION, &(tp__attr){.act = act});
}

int tp__layer_relu(tp__net_builder *b, const char *name, int x, tp__act act)
{
  return one_node(b, "ReLU", name, x, TP__OP_ACTIVATION, &(tp__attr){.act = act});
}

int tp__layer_global_pool(tp__net_builder *b, const char *name, int x)
{
  return one_node(b, "GlobalAveragePooling2D", name, x, TP__OP_GLOBAL_POOL, NULL);
}

int tp__layer_max_pool(tp__net_builder *b, const char *name, int x, int window, int stride)
{
  return one_node(b, "MaxPooling2D", name, x, TP__OP_MAX_POOL,
                  &(tp__attr){.window = window, .stride = stride});
}

int tp__layer_average_pool(tp__net_builder *b, const char *name, int x, int window, int stride)
{
  return one_node(b, "AveragePooling2D", name, x, TP__OP_AVG_POOL,
                  &(tp__attr){.window = window, .stride = stride});
}

int tp__layer_concatenate(tp__net_builder *b, const char *name, int x, int y)
{
  return two_nodes_in(b, "Concatenate", name, x, y, TP__OP_CONCAT);
}

int tp__layer_reshape_channels(tp__net_builder *b, const char *name, int x)
{
  tp__attr attr = {.shape = {.rank = 4, .dim = {TP__N, 1, 1, tp__layer_channels(b, x)}}};
  return one_node(b, "Reshape", name, x, TP__OP_RESHAPE, &attr);
}

int tp__layer_multiply(tp__net_builder *b, const char *name, int x, int gate)
{
  return two_nodes_in(b, "Multiply", name, x, gate, TP__OP_MUL);
}

int tp__layer_add(tp__net_builder *b, const char *name, int x, int y)
{
  return two_nodes_in(b, "Add", name, x, y, TP__OP_ADD);
}

/* Draw 0 is the head's dropout. */
int tp__layer_drop(tp__net_builder *b, const char *name, int x)
{
  int layer = add_layer(b, "Dropout", name, x, -1);
  double rate = b->blocks > 0 ? (double)b->drop_connect * b->block / b->blocks : 0;
  b->drops++;
  if (layer < 0 || rate == 0) return finish(b, layer, value_of(b, x));
  tp__attr attr = {.f = {(float)rate}, .draw = (uint32_t)b->drops, .flag = true};
  return finish(b, layer,
                add_node(b, TP__OP_DROPOUT, (tp__value[]){value_of(b, x), keys_of(b)}, 2, &attr));
}

/* ---- the head ---- */

/* Active only in training, where the program is fed one key per example. */
static int layer_dropout(tp__net_builder *b, const char *name, int x)
{
  int layer = add_layer(b, "Dropout", name, x, -1);
  if (layer < 0 || !b->net->training) return finish(b, layer, value_of(b, x));
  return finish(b, layer,
                add_node(b, TP__OP_DROPOUT, (tp__value[]){value_of(b, x), keys_of(b)}, 2,
                         &(tp__attr){.f = {b->spec->dropout}, .draw = 0}));
}

static int layer_dense_softmax(tp__net_builder *b, const char *name, int x, int units)
{
  int layer = add_layer(b, "Dense", name, x, -1);
  if (layer < 0) return -1;
  tp__shape shape = {.rank = 2, .dim = {tp__layer_channels(b, x), units}};
  tp__value kernel = add_parameter(b, "kernel", shape, TP__INIT_GLOROT, false);
  tp__value bias = add_parameter(b, "bias", vector_of(units), TP__INIT_ZEROS, false);
  tp__value y = add_node(b, TP__OP_MATMUL, (tp__value[]){value_of(b, x), kernel}, 2, NULL);
  y = add_node(b, TP__OP_BIAS_ADD, (tp__value[]){y, bias}, 2, NULL);
  b->net->logits = y;
  b->net->probabilities = add_node(b, TP__OP_SOFTMAX, &y, 1, NULL);
  return finish(b, layer, b->net->probabilities);
}

void tp__layer_head(tp__net_builder *b, int x)
{
  b->net->features = value_of(b, x);
  if (b->spec->classes == 0) return;
  b->head = true;
  x = tp__layer_global_pool(b, b->pool, x);
  b->net->features = value_of(b, x);
  if (b->spec->dropout > 0) x = layer_dropout(b, "top_dropout", x);
  layer_dense_softmax(b, "predictions", x, b->spec->classes);
}
