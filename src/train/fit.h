/* fit - the training loop: two phases, epochs, validation, callbacks, checkpoints, resuming.
 *
 *   options ──> set-up (data, network, weights) ──> phase head ──> phase fine-tuning ──>
 * last.safetensors, best.safetensors, best.h5 │ each epoch: steps, validation, callbacks,
 * checkpoint, observer
 *
 * Phases as DESIGN 3 settles them: stop and plateau watch val_loss, the best checkpoint
 * val_accuracy; fine-tuning starts from the restored best weights with a new optimizer at a
 * rate and schedule of its own; stop and plateau start afresh; epochs count on. What is reported
 * (history.csv, event files, diagnosis) is the observer's: this room only tells what happened.
 *
 * Files: fit_setup.c opens everything, fit_phase.c runs epochs, fit_save.c writes and restores,
 * fit.c ties them together.
 */
#ifndef TP_FIT_H
#define TP_FIT_H

#include "backend/backend.h"
#include "base/job.h"
#include "checkpoint.h"

/* Where the time of an epoch's training went. */
typedef struct tp__cost {
  double wall, compute;        /* seconds of training steps in all; inside the device's run */
  double waiting;              /* for the input, this thread */
  double idle;                 /* ... of it with nothing to do */
  double read, decode, finish; /* busy seconds of the input's stages, over all threads */
  double validation;           /* seconds */
  int threads;
  bool cached;  /* the input has a cache */
  bool movable; /* the device could do flips and turns, which the host does */
} tp__cost;

/* Told at moments of a run; each may be NULL. A failure (disk full) ends the run with it. */
typedef struct tp__observer {
  void *user;
  /* Before the first step; resumed says whether the history has rows already. */
  tp_status (*started)(void *user, const tp__progress_state *state, bool resumed, tp_error *err);
  /* After validation and callbacks; the last row of the history is this epoch's. */
  tp_status (*epoch)(void *user, const tp__progress_state *state, const tp__cost *cost,
                     tp_error *err);
} tp__observer;

typedef struct tp__fit_options {
  const tp_train_options *train; /* borrows */
  const char *weights;           /* file to start from, or NULL: fresh, or what `fetch` gives */
  /* Called once the data are found to be good, for it may take minutes; or NULL. Caller frees
   * *path.
   */
  tp_status (*fetch)(void *user, char **path, tp_error *err);
  void *user;
  bool pretrained; /* that file is the model's official one: its head is not wanted, its statistics
                      may be special */
  bool resume;     /* go on from train->run/last.safetensors */
  const tp__observer *observer; /* may be NULL */
} tp__fit_options;

/* Errors: TP_STOPPED (saved, resumable), and all others. result may be NULL. */
tp_status tp__fit(const tp__job *job, tp__backend *backend, const tp__fit_options *options,
                  tp_train_result *result, tp_error *err) TP_CHECKED;

#endif
