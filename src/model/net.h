/* net - building a network layer by layer; names, order, shapes and parameters are those of Keras.
 *
 *   a model function (nets_*.c) ──> tp__layer_… calls ──> nodes of a graph
 *                                                         a list of layers
 *                                                         a list of parameters
 *
 * The list of layers is what `tepal summary` prints, what "the last 20 layers" counts and what
 * freezing acts on. A net is built anew for each purpose (training, inference) from the same
 * specification; the weights live outside, under the parameters' names, so all of them share one
 * state.
 *
 * One layer may be several nodes (a convolution with bias and activation) or none (dropout outside
 * training gives the value it reads). Nodes are the plain ones: fusing them is the rewriting
 * passes' work, after the gradient was added.
 *
 * Files: net.c (build, freeze, count), net_layer.c (one function per kind of layer), net_init.c
 * (fresh weights), net_summary.c (the table), nets_*.c (the networks, see nets.h).
 *
 * Neighbours: graph (nodes), weights (files into a set of tensors), train (adds loss and update).
 */
#ifndef TP_NET_H
#define TP_NET_H

#include "base/rng.h"
#include "graph/graph.h"

/* What a network is. Everything a program needs to build the same one again; saved in recipe.ini
 * and checkpoints. */
typedef struct tp__model_spec {
  const char *name;  /* "efficientnet-b0", "resnet50"; borrows */
  int height, width; /* of the input pictures, 32 to 4096 */
  int classes;       /* of the head; 0: no top (the features of the last activation) */
  float dropout;     /* before the head, >= 0 and < 1. 0: no such layer, as in Keras */
  float width_coefficient, depth_coefficient; /* 0: the model's own */
  bool official_preprocessing; /* Keras' EfficientNet: weights="imagenet" graph, (x/255 - mean) /
                                  std (DESIGN 3) */
} tp__model_spec;

enum tp__init {
  TP__INIT_ZEROS,
  TP__INIT_ONES,
  TP__INIT_FAN_OUT, /* VarianceScaling(2, fan_out, truncated normal): convolution kernels */
  TP__INIT_GLOROT,  /* uniform: Keras' default, and the head's kernel */
  TP__INIT_NORMALIZATION_MEAN,      /* ImageNet's mean colour, of 0...1 */
  TP__INIT_NORMALIZATION_VARIANCE,  /* its squared deviation */
  TP__INIT_NORMALIZATION_DEVIATION, /* its deviation, where a variance belongs: the
                                       official_preprocessing graph */
};

typedef struct tp__parameter {
  const char *name; /* "stem_conv/kernel" */
  tp__shape shape;
  tp__dtype dtype; /* f32; I64 for normalization/count */
  int layer;       /* index into layers */
  bool statistic;  /* moving mean and variance, normalization: never trained */
  bool moves;      /* a statistic that this net's steps move along with the batches */
  enum tp__init init;
} tp__parameter;

typedef struct tp__layer {
  const char *name;       /* "block1a_dwconv" */
  const char *class_name; /* "DepthwiseConv2D" */
  tp__value value;        /* its output in the graph */
  int inbound[2];         /* the layers it reads, -1: none */
  int first_parameter, n_parameters;
  bool trainable; /* set by tp__net_freeze; all are trainable at first */
  bool head;      /* avg_pool, top_dropout, predictions: not part of the backbone */
} tp__layer;

typedef struct tp__net {
  const char *name; /* of the specification */
  tp__graph *graph;
  tp__layer *layer;
  int n_layers, layer_capacity;
  tp__parameter *parameter;
  int n_parameters, parameter_capacity;
  tp__value pixels; /* INPUT "pixels" f32 [N,H,W,3], 0...255 */
  tp__value keys; /* INPUT "keys" u32 [N,2], only when something draws in training, else TP__NONE */
  tp__value features;      /* [N,C] after the pooling; without top: the last activation [N,H,W,C] */
  tp__value logits;        /* [N,classes]; TP__NONE without top */
  tp__value probabilities; /* softmax of the logits; TP__NONE without top */
  bool training;
  tp__arena arena;
} tp__net;

/* Known names, for messages and --help; NULL after the last. count may be NULL. */
const char *const *tp__model_names(size_t *count);

/* Whether the network has a second graph for its official weight file
 * (spec.official_preprocessing); false for an unknown name. */
bool tp__model_has_official(const char *name);

/* The side of the square pictures that the network was made for, and the dropout before Keras' own
 * head (0: it has none); 0 for an unknown name. */
int tp__model_side(const char *name);
float tp__model_dropout(const char *name);

/* Builds the network. training: dropout is active; batch norm runs in inference mode, and
 * stochastic depth (Keras' block…_drop layers), which acts only together with batch statistics,
 * passes its input on. Errors: TP_ERR_USAGE, unknown name (with the nearest one), impossible size.
 * Returns: tp__net_free. */
tp_status tp__net_build(const tp__model_spec *spec, bool training, tp__net **net,
                        tp_error *err) TP_CHECKED;

/* What the training program does to its pictures by the examples' keys: as the host would
 * (tp__image_recipe), in that order. rotate 0: pictures are not turned. */
typedef struct tp__net_augment {
  bool flip;
  float rotate;
  tp__fill fill;
  float fill_value;
} tp__net_augment;

/* How a network is trained. */
typedef struct tp__net_training {
  int last_n;            /* as tp__net_freeze */
  bool batch_statistics; /* batch norm layers that are not frozen take mean and variance from the
                            batch and move their averages towards them (Keras 3's training=True);
                            frozen ones run in inference mode */
  float drop_connect; /* with batch statistics, when anything of the backbone trains: block i of n
                         is left out of an example with probability drop_connect i / n */
  tp__net_augment augment;
} tp__net_training;

/* The same for training: frozen as it says; assignments of the graph move the statistics. */
tp_status tp__net_build_training(const tp__model_spec *spec, const tp__net_training *how,
                                 tp__net **net, tp_error *err) TP_CHECKED;
void tp__net_free(tp__net *net);

/* The index of a layer, -1 when there is none of that name. */
int tp__net_find(const tp__net *net, const char *name);

/* Freezes the backbone except its last n layers, counted as Keras lists them (base.layers[-n:]);
 * the head stays trainable. n = 0: all frozen; n < 0: nothing frozen. Error: n larger than the
 * number of the backbone's layers (TP_ERR_USAGE). */
tp_status tp__net_freeze(tp__net *net, int last_n, tp_error *err) TP_CHECKED;

/* Is it changed by training as the net is frozen now? */
bool tp__net_trains(const tp__net *net, int parameter);

/* Fresh weights for all parameters: convolutions as Keras' initializers of that network, the head
 * glorot uniform with zero bias (a plain Dense layer on a pretrained network, as the notebook has;
 * Keras' own include_top head differs), the normalization that of ImageNet, so that every
 * EfficientNet sees (pixel/255 - mean) / std. A function of the seed and the parameter's name. Adds
 * to an empty set, in the order of the parameters. */
tp_status tp__net_init(const tp__net *net, uint64_t seed, tp__tensors *weights,
                       tp_error *err) TP_CHECKED;

/* Counts of numbers (statistics and count are non-trainable), as Keras' summary prints. */
void tp__net_count(const tp__net *net, int64_t *total, int64_t *trainable);

/* Keras' layer table at 100 columns: Layer (type), Output Shape, Param #, Connected to; then
 * totals. Adds to text. */
tp_status tp__net_summary(const tp__net *net, const tp__model_spec *spec, tp__buffer *text,
                          tp_error *err) TP_CHECKED;

#endif
