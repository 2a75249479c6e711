/* optimizer - adds the update of parameters to a graph: Adam and SGD with momentum, as Keras 3
 * defines them.
 *
 * Slots (moments, velocities, averages) are parameters of the state like the weights, under
 * "adam/m/NAME", "adam/v/NAME", "sgd/velocity/NAME" or "ema/NAME", so that a checkpoint stores them
 * by name. Keras' names: weight_decay, global_clipnorm, use_ema with ema_momentum.
 */
#ifndef TP_OPTIMIZER_H
#define TP_OPTIMIZER_H

#include "graph/graph.h"

typedef enum tp__optimizer_kind { TP__OPTIMIZER_ADAM, TP__OPTIMIZER_SGD } tp__optimizer_kind;

typedef struct tp__optimizer {
  tp__optimizer_kind kind;
  float beta_1, beta_2, epsilon; /* Adam */
  float momentum;                /* SGD; 0: plain */
  bool nesterov;
  float weight_decay; /* p - rate weight_decay p before each update, of all parameters: AdamW */
  float clip_norm; /* gradients are scaled so that the norm of all of them is at most this; 0: off
                    */
  float ema_momentum; /* an average of each parameter is kept; 0: none */
} tp__optimizer;

tp_status tp__optimizer_make(const tp_train_options *options, tp__optimizer *optimizer,
                             tp_error *err) TP_CHECKED;

/* The update has to know the number of the step. */
bool tp__optimizer_counts(const tp__optimizer *optimizer);

/* Puts the clipped gradients in the place of the gradients (TP__NONE: has none). */
tp_status tp__optimizer_clip(const tp__optimizer *optimizer, tp__graph *graph, tp__value *gradient,
                             size_t n, tp_error *err) TP_CHECKED;

/* rate: shared scalar; step: shared scalar, 1 for the first update (TP__NONE where it does not
 * count). Adds
 * the new slots' names and shapes, zeroed, to slots. */
tp_status tp__optimizer_add(const tp__optimizer *optimizer, tp__graph *graph, tp__value param,
                            tp__value gradient, tp__value rate, tp__value step, tp__tensors *slots,
                            tp_error *err) TP_CHECKED;

#endif
