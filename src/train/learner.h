/* learner - a network on a device, with what one phase of training needs: a training program
 * (forward, loss, gradient, update) and a scoring program (inference, loss), both on one state.
 *
 *   weights (host) ──> state on the device <── training program, scoring program
 *
 * A phase is one choice of frozen layers with one fresh (or restored) optimizer. Frozen layers cost
 * no backward pass. With the whole backbone frozen the programs are cut at the pooled features: one
 * program gives features, which never change in the phase and may be kept, the others go on from
 * them. The numbers are the same bits either way. Neighbours: model builds the network, backend
 * runs it, fit feeds it batches.
 */
#ifndef TP_LEARNER_H
#define TP_LEARNER_H

#include "backend/backend.h"
#include "model/net.h"
#include "optimizer.h"
#include "pipeline/pipeline.h"

typedef struct tp__learner_options {
  tp__model_spec spec;
  int last_n; /* trainable layers at the end of the backbone (tp__net_freeze); the head always
                 trains */
  bool batch_statistics; /* as tp__net_training */
  float drop_connect;
  tp__optimizer optimizer;
  float head_factor;       /* the head learns at so many times the rate; 0: as the rest */
  float label_smoothing;   /* of the loss, in training and in scoring, as a Keras loss */
  tp__net_augment augment; /* by the training program; the pipeline then leaves it out */
  bool mixes;              /* batches of training have second labels and shares */
  int batch;               /* the most examples of one step or score */
  bool score_only;         /* no training program and no slots */
  bool whole; /* not cut at the features, though the backbone is frozen: they could not be
                 kept, and a remote device would send them back and forth */
  bool bytes; /* pixels are whole numbers, or may be rounded: a remote device gets them as
                 8 bits */
  bool bf16, local_statistics; /* as tp__compile_options, here and below */
  int accumulate, steps;
  uint64_t memory_limit; /* for state and programs together; 0: none */
  bool reference;        /* plain loops: for tests */
} tp__learner_options;

typedef struct tp__learner tp__learner;

/* A step or score in flight: its results are there after tp__learner_wait, which takes NULL, too.
 * Who gives no place for it (pending NULL) waits inside the call. */
tp_status tp__learner_wait(tp__learner *learner, tp__pending *pending, tp_error *err) TP_CHECKED;

/* weights: all parameters of the network by name (copied). slots: the optimizer's, or NULL or
 * empty: zeros. Errors also when a slot is missing or has another shape. Returns: tp__learner_free.
 */
tp_status tp__learner_new(tp__backend *backend, const tp__learner_options *options,
                          const tp__tensors *weights, const tp__tensors *slots,
                          tp__learner **learner, tp_error *err) TP_CHECKED;
void tp__learner_free(tp__learner *learner);

/* One update from a batch. weights [n]: factors of the examples' losses (class weights), NULL: 1.
 * The gradient is that of sum(weight x loss) / n, n over all processes. iteration: 0 for the
 * optimizer's first update. losses [n] (unweighted) and scores [n,classes] (logits) are those
 * before the update, and are there after tp__learner_wait; the batch and the weights may change at
 * once. */
tp_status tp__learner_step(tp__learner *learner, const tp__batch *batch, const float *weights,
                           float rate, int64_t iteration, float *losses, float *scores,
                           tp__pending **pending, tp_error *err) TP_CHECKED;

/* Numbers in the features of one example when the backbone is frozen as a whole, else 0. */
size_t tp__learner_features(const tp__learner *learner);
/* Numbers in the pixels of one example. */
size_t tp__learner_picture(const tp__learner *learner);
/* features [n, tp__learner_features()] of pixels [n,H,W,3]; n may be larger than the batch. */
tp_status tp__learner_extract(tp__learner *learner, const float *pixels, int64_t n, float *features,
                              tp_error *err) TP_CHECKED;
/* tp__learner_step and tp__learner_score from features; the batch's pixels are not read. */
tp_status tp__learner_step_on(tp__learner *learner, const float *features, const tp__batch *batch,
                              const float *weights, float rate, int64_t iteration, float *losses,
                              float *scores, tp__pending **pending, tp_error *err) TP_CHECKED;
tp_status tp__learner_score_on(tp__learner *learner, const float *features, const tp__batch *batch,
                               float *losses, float *scores, tp__pending **pending,
                               tp_error *err) TP_CHECKED;

/* Inference: losses [n] (NULL, or labels must be there) and scores [n,classes]: probabilities. */
tp_status tp__learner_score(tp__learner *learner, const tp__batch *batch, float *losses,
                            float *scores, tp__pending **pending, tp_error *err) TP_CHECKED;

/* The trained parameters' names, in the network's order. */
const char *const *tp__learner_trainable(const tp__learner *learner, size_t *count);
/* Those, then the moving statistics that steps change, too. */
const char *const *tp__learner_changing(const tp__learner *learner, size_t *count);

/* Reads back, or overwrites, tensors by name: weights and slots alike. */
tp_status tp__learner_read(tp__learner *learner, tp__tensors *into, tp_error *err) TP_CHECKED;
tp_status tp__learner_write(tp__learner *learner, const tp__tensors *from,
                            tp_error *err) TP_CHECKED;

/* The trained parameters change places with their averages: for validation and what is kept of it,
 * and back again. Does nothing when the optimizer has none. */
tp_status tp__learner_swap_averages(tp__learner *learner, tp_error *err) TP_CHECKED;

/* Copies of the optimizer's slots, added to an empty set. */
tp_status tp__learner_slots(tp__learner *learner, tp__tensors *slots, tp_error *err) TP_CHECKED;

/* Adds the training program's plan of memory, as a table for people; with a frozen backbone that of
 * the program that gives the features, then the head's. Errors: TP_ERR_USAGE, the device has none.
 */
tp_status tp__learner_plan(const tp__learner *learner, tp__buffer *text, tp_error *err) TP_CHECKED;

/* Either may be NULL. */
void tp__learner_info(const tp__learner *learner, tp__program_info *training,
                      tp__program_info *scoring);

#endif
