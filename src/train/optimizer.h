/* optimizer - adds the update of parameters to a graph: Adam and SGD with momentum, as Keras 3
 * defines them.
 *
 * Slots (moments, velocities) are parameters of the state like the weights, under "adam/m/NAME",
 * "adam/v/NAME" or "sgd/velocity/NAME", so that a checkpoint stores them by name.
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
} tp__optimizer;

tp_status tp__optimizer_make(const tp_train_options *options, tp__optimizer *optimizer,
                             tp_error *err) TP_CHECKED;

/* rate: shared scalar; step: shared scalar, 1 for the first update (SGD: TP__NONE will do). Adds
 * the new slots' names and shapes, zeroed, to slots. */
tp_status tp__optimizer_add(const tp__optimizer *optimizer, tp__graph *graph, tp__value param,
                            tp__value gradient, tp__value rate, tp__value step, tp__tensors *slots,
                            tp_error *err) TP_CHECKED;

#endif
