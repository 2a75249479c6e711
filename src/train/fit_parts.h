/* fit_parts - what the files of fit share. Only fit*.c include it. */
#ifndef TP_FIT_PARTS_H
#define TP_FIT_PARTS_H

#include "class_weights.h"
#include "data_set.h"
#include "feature_memory.h"
#include "fit.h"
#include "learner.h"
#include "schedule.h"

/* A step, or a validation batch, whose results the device may not have given yet. */
typedef struct tp__flight {
  bool open;
  tp__pending *pending;
  int64_t n;
  int32_t *labels;        /* [batch] */
  float *weights;         /* [batch], used when weighted */
  float *losses, *scores; /* [batch], [batch, classes] */
  bool weighted;
  tp__metrics *metrics; /* that they count for */
} tp__flight;

typedef struct tp__fitter {
  const tp__job *job;
  tp__backend *backend;
  const tp__fit_options *options;
  const tp_train_options *o;
  /* data */
  tp__catalog *train, *val; /* val may be NULL */
  tp__pipeline *train_input, *val_input;
  /* network */
  tp__identity identity;
  tp__tensors weights;   /* all parameters, as of the last tp__fitter_sync */
  tp__tensors trained;   /* the parameters that this phase changes: names and memory of weights */
  tp__tensors stop_best; /* those early stopping would restore; empty: none */
  tp__tensors slots;     /* of a resumed checkpoint, taken by the first learner */
  tp__learner *learner;
  tp__feature_memory train_features, val_features; /* of a frozen backbone; empty: not kept */
  /* training */
  tp__progress_state state;
  tp__schedule schedule; /* of this phase */
  tp__quantity stop_monitor, plateau_monitor, best_monitor;
  tp__metrics metrics, val_metrics;
  float *class_weight; /* [classes] */
  bool weighted;
  tp__flight *flight;      /* [flights], a ring: some in flight while the next is prepared */
  int flights;             /* twice the steps of one call of the device */
  int turn;                /* the one to take next; it is not open */
  int batch;               /* of all replicas and processes */
  int rows;                /* most of this process */
  bool bytes;              /* pixels may cross to a device as 8 bits */
  tp__net_augment augment; /* that a device does; elsewhere the host does it all */
  /* several processes: what they agreed on in the last step */
  bool stop, save;
  size_t train_bad, val_bad; /* pictures left out that all know of */
  tp__judgement *judged;     /* [rows] */
  tp__buffer all_judged;
  double saved_at;   /* tp__now() of the last checkpoint */
  int saves;         /* checkpoints written by this process */
  double compute;    /* seconds in the device's run, this epoch */
  double busy, wall; /* summed over epochs, for the result */
} tp__fitter;

/* fit_setup.c: opens data, network, weights (or the checkpoint). What it made is freed by
 * tp__fitter_free also after a failure. */
tp_status tp__fitter_setup(tp__fitter *f, tp_error *err) TP_CHECKED;
void tp__fitter_free(tp__fitter *f);

/* fit_phase.c: runs the phase that state.phase names, from state.epoch and state.step, to its end.
 */
tp_status tp__fitter_phase(tp__fitter *f, tp_error *err) TP_CHECKED;
/* Makes learner, schedule and callbacks of the phase; fresh: callbacks start anew and the optimizer
 * at zero. */
tp_status tp__fitter_enter_phase(tp__fitter *f, bool fresh, tp_error *err) TP_CHECKED;
/* Two steps and one validation batch; says memory and expected time. */
tp_status tp__fitter_dry_run(tp__fitter *f, tp_error *err) TP_CHECKED;

/* fit_step.c: steps and validation. The results of a step may still be in flight after it. */
tp_status tp__fitter_make_flights(tp__fitter *f, tp_error *err) TP_CHECKED;
void tp__fitter_free_flights(tp__fitter *f);
/* One training step; n = 0 at the end of the epochs that were sought for. */
tp_status tp__fitter_step(tp__fitter *f, int64_t *n, tp_error *err) TP_CHECKED;
/* Waits for what is in flight: metrics and state are then those after the last step. */
tp_status tp__fitter_settle(tp__fitter *f, tp_error *err) TP_CHECKED;
tp_status tp__fitter_validate(tp__fitter *f, int64_t most_steps, tp_error *err) TP_CHECKED;
float tp__fitter_rate(const tp__fitter *f); /* of the next step */

/* fit_group.c: several processes; each of these does the plain thing where there is one. */
bool tp__fitter_reports(const tp__fitter *f); /* this one writes files */
bool tp__fitter_stopped(const tp__fitter *f);
bool tp__fitter_save_due(const tp__fitter *f);
/* After the next batch was read with that status: its total, what the others wish, and the first
 * failure of any of them. */
tp_status tp__fitter_meet(tp__fitter *f, tp__pipeline *input, tp_status status, tp__batch *b,
                          tp_error *err) TP_CHECKED;
/* Adds what has landed to its metrics, of all processes. */
tp_status tp__fitter_count(tp__fitter *f, const tp__flight *x, tp_error *err) TP_CHECKED;
/* They have the same data and options; they have come to the same weights. */
tp_status tp__fitter_same_start(tp__fitter *f, tp_error *err) TP_CHECKED;
tp_status tp__fitter_same_weights(tp__fitter *f, tp_error *err) TP_CHECKED;

/* fit_save.c */
tp_status tp__fitter_sync(tp__fitter *f, tp_error *err) TP_CHECKED; /* device -> weights */
tp_status tp__fitter_save(tp__fitter *f, tp_error *err) TP_CHECKED; /* last.safetensors */
/* RUN/bad-records.tsv, when max_bad let something pass; says how many. */
tp_status tp__fitter_list_bad(tp__fitter *f, tp_error *err) TP_CHECKED;
/* last.safetensors with the best epoch's weights and no optimizer: the run has ended. */
tp_status tp__fitter_save_finished(tp__fitter *f, tp_error *err) TP_CHECKED;
tp_status tp__fitter_save_best(tp__fitter *f, tp_error *err) TP_CHECKED;
tp_status tp__fitter_keep_stop_best(tp__fitter *f, tp_error *err) TP_CHECKED;
tp_status tp__fitter_restore_stop_best(tp__fitter *f, tp_error *err) TP_CHECKED;
char *tp__fitter_path(const tp__fitter *f,
                      const char *file); /* RUN/file; NULL: out of memory. Returns: caller frees */

#endif
