/* net_layer - one function per kind of Keras layer, for the model functions (nets_*.c).
 *
 * Each adds a layer to the net: its nodes, its parameters, its line in the list; it returns the
 * layer's index, which later calls take as x. The builder keeps the first failure: after it every
 * call does nothing and returns -1, so that a model function reads like the model and checks once,
 * at its end.
 */
#ifndef TP_NET_LAYER_H
#define TP_NET_LAYER_H

#include "net.h"

typedef struct tp__net_builder {
  tp__net *net;
  const tp__model_spec *spec;
  double width, depth; /* coefficients, the model's own where the specification has none */
  bool centred;        /* EfficientNets: padded as PyTorch does; set by the model */
  int batch_from;      /* batch norm layers from this index on go by the batch */
  float momentum;      /* of their moving statistics; Keras' default unless the model sets it */
  float drop_connect;  /* of the last block; 0: no stochastic depth */
  const tp__net_augment *augment; /* NULL: none */
  int block, blocks;              /* number of the block at hand, of so many; set by the model */
  int drops;                      /* drop layers so far */
  const char *prefix;             /* put before every name: "block2a_"; "" outside blocks */
  const char *pool;               /* name of the head's pooling */
  enum tp__init kernel_init;      /* of convolutions */
  bool head;                      /* layers added from here on belong to the head */
  tp_status status;               /* of the first failure */
  tp_error *err;
} tp__net_builder;

typedef enum tp__padding {
  TP__VALID,
  TP__SAME,    /* TensorFlow's: the larger half below and to the right */
  TP__CENTRED, /* PyTorch's: kernel / 2 on all sides */
} tp__padding;

/* A convolution; depthwise ones ignore filters. */
typedef struct tp__conv {
  int filters, kernel, stride;
  tp__padding padding;
  bool bias;
  tp__act act;
} tp__conv;

/* What is done to pixels of 0...255 before the first layer, in networks where Keras leaves that to
 * a function beside the model (keras.applications.imagenet_utils.preprocess_input). */
typedef enum tp__prepare {
  TP__PREPARE_NONE,  /* the network has layers for it */
  TP__PREPARE_TF,    /* pixel / 127.5 - 1 */
  TP__PREPARE_CAFFE, /* blue, green, red, each less ImageNet's mean */
  TP__PREPARE_TORCH, /* (pixel / 255 - ImageNet's mean) / its deviation */
} tp__prepare;

/* Pictures [N,H,W,3] of the specification's size, prepared: nodes that are no layers of their own,
 * since Keras has none. */
int tp__layer_input(tp__net_builder *b, tp__prepare how);
/* x * scale + offset, and x * scale[c]. */
int tp__layer_rescaling(tp__net_builder *b, const char *name, int x, float scale, float offset);
int tp__layer_rescaling_rgb(tp__net_builder *b, const char *name, int x, const float scale[3]);
/* (x - mean) / sqrt(variance); deviation: its variance slot is born with ImageNet's standard
 * deviations. */
int tp__layer_normalization(tp__net_builder *b, const char *name, int x, bool deviation);
/* Zeros so that a TP__VALID convolution of that kernel and stride 2 gives what TensorFlow's "same"
 * would. */
int tp__layer_stride_pad(tp__net_builder *b, const char *name, int x, int kernel);
/* `size` zeros on all sides. */
int tp__layer_pad(tp__net_builder *b, const char *name, int x, int size);
int tp__layer_conv(tp__net_builder *b, const char *name, int x, const tp__conv *conv);
int tp__layer_depthwise(tp__net_builder *b, const char *name, int x, const tp__conv *conv);
int tp__layer_batch_norm(tp__net_builder *b, const char *name, int x, float epsilon);
int tp__layer_activation(tp__net_builder *b, const char *name, int x, tp__act act);
/* The same as Keras' ReLU class; act: TP__ACT_RELU or TP__ACT_RELU6. */
int tp__layer_relu(tp__net_builder *b, const char *name, int x, tp__act act);
/* [N,H,W,C] -> [N,C] */
int tp__layer_global_pool(tp__net_builder *b, const char *name, int x);
/* Windows that lie wholly inside: [N,H,W,C] -> [N,(H - window) / stride + 1, ...,C]. */
int tp__layer_max_pool(tp__net_builder *b, const char *name, int x, int window, int stride);
int tp__layer_average_pool(tp__net_builder *b, const char *name, int x, int window, int stride);
/* The channels of x, then those of y. */
int tp__layer_concatenate(tp__net_builder *b, const char *name, int x, int y);
/* [N,C] -> [N,1,1,C] */
int tp__layer_reshape_channels(tp__net_builder *b, const char *name, int x);
/* x [N,H,W,C] * gate [N,1,1,C] */
int tp__layer_multiply(tp__net_builder *b, const char *name, int x, int gate);
int tp__layer_add(tp__net_builder *b, const char *name, int x, int y);
/* Stochastic depth by the block's number (see tp__net_training); where it does not act, a layer of
 * the list without nodes. */
int tp__layer_drop(tp__net_builder *b, const char *name, int x);

/* The head: pooling, top_dropout (when the specification has a rate), predictions; sets features,
 * logits and probabilities of the net. Without classes only the features. */
void tp__layer_head(tp__net_builder *b, int x);

/* Channels of a layer's output, its last dimension; 1 after a failure. */
int tp__layer_channels(const tp__net_builder *b, int layer);

#endif
