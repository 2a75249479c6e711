/* checkpoint - one safetensors file that holds everything a run needs to go on, or to predict
 * (DESIGN D7).
 *
 *   tensors    weights under their names; "adam/..." slots; "stop_best/NAME": the weights early
 * stopping would restore metadata   JSON text under the key "tepal": model, labels, preprocessing,
 * recipe, cursor, callbacks' state, history
 *
 * Numbers in the metadata that must come back bit for bit are written as C99 hexadecimal floats.
 * The file is written to a temporary name, synced and renamed. A finished run keeps two:
 * last.safetensors and best.safetensors (the latter without optimizer).
 */
#ifndef TP_CHECKPOINT_H
#define TP_CHECKPOINT_H

#include "callbacks.h"
#include "metrics.h"
#include "model/net.h"

/* What predicting needs to know besides the weights: a network never meets pixels prepared in
 * another way (DESIGN D6). */
typedef struct tp__identity {
  tp__model_spec spec;       /* name points into the arena */
  const char *const *labels; /* [spec.classes], or NULL: unknown */
  bool accurate_dct, exif_rotate, antialias, fast_decode;
  tp__arena arena; /* keeps the strings */
} tp__identity;

void tp__identity_free(tp__identity *identity);

/* One line of history.csv. epoch is 0-based over both phases. */
typedef struct tp__history_row {
  int epoch, phase;
  double rate, seconds, images_per_s;
  double value[TP__QUANTITIES]; /* NaN: not measured */
} tp__history_row;

/* Where training is, and all that changes from epoch to epoch. */
typedef struct tp__progress_state {
  int phase;         /* 0: head, 1: fine-tuning */
  int phase_start;   /* the phase's first epoch, counted over both */
  int epoch;         /* 0-based, over both phases */
  int64_t step;      /* steps done in this epoch */
  int64_t iteration; /* updates of this phase's optimizer */
  int64_t data;      /* fingerprint of the examples: a run goes on with what it began with */
  bool finished;     /* nothing is left to do */
  int64_t batch;     /* examples of a step over all replicas; 0: not told, by older versions */
  tp__early_stopping stopping;
  tp__plateau plateau;
  tp__best best;
  double best_value[TP__QUANTITIES]; /* the history row of the best epoch; NaN before */
  /* sums over the epoch so far; the metrics' counts are rebuilt from them */
  int64_t examples, right, right_5;
  double loss_sum;
  double seconds; /* spent in this epoch before an interruption */
  tp__history_row *history;
  size_t n_history, history_capacity;
} tp__progress_state;

void tp__progress_state_free(tp__progress_state *state);
tp_status tp__history_add(tp__progress_state *state, const tp__history_row *row,
                          tp_error *err) TP_CHECKED;

/* Writes weights (and slots, stop_best: may be NULL) with identity and, when it is not NULL,
 * progress. */
tp_status tp__checkpoint_write(const char *path, const tp__identity *identity,
                               const tp__progress_state *progress, const tp__tensors *weights,
                               const tp__tensors *slots, const tp__tensors *stop_best,
                               tp_error *err) TP_CHECKED;

/* Reads them back; every set must be empty and may be NULL (its tensors are then dropped). progress
 * may be NULL; where wanted, the file must have it. Errors: TP_ERR_DATA, also for a safetensors
 * file that is no checkpoint of tepal. */
tp_status tp__checkpoint_read(const char *path, tp__identity *identity,
                              tp__progress_state *progress, tp__tensors *weights,
                              tp__tensors *slots, tp__tensors *stop_best, tp_error *err) TP_CHECKED;

#endif
