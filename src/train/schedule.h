/* schedule - the learning rate as a function of the optimizer's step, as Keras 3 defines its
 * schedules. */
#ifndef TP_SCHEDULE_H
#define TP_SCHEDULE_H

#include "base/base.h"

enum { TP__PIECES_MAX = 64 };

typedef enum tp__schedule_kind {
  TP__SCHEDULE_CONSTANT,
  TP__SCHEDULE_EXPONENTIAL,
  TP__SCHEDULE_COSINE,
  TP__SCHEDULE_PIECEWISE
} tp__schedule_kind;

typedef struct tp__schedule {
  tp__schedule_kind kind;
  double rate;  /* the initial rate; cosine: the rate after the warm-up */
  double decay; /* exponential: factor for each `steps`; cosine: fraction of the rate at the end */
  int64_t
      steps; /* exponential: steps of one factor; cosine: steps of the decay, after the warm-up */
  int64_t warmup;   /* cosine: steps of the linear warm-up from 0 */
  bool staircase;   /* exponential: whole factors only */
  int n_boundaries; /* piecewise: value[i] up to and including step boundary[i], then value[i + 1]
                     */
  int64_t boundary[TP__PIECES_MAX];
  double value[TP__PIECES_MAX + 1];
} tp__schedule;

/* The rate of the update with that number (0-based, Keras' `iterations`), rounded to float as Keras
 * keeps it. */
float tp__schedule_rate(const tp__schedule *schedule, int64_t step);

/* Makes the schedule of a training's phase: schedule and learning_rate, or those of fine-tuning;
 * the other options are shared. total_steps, of the phase, stands in for decay_steps = 0 of cosine.
 * Errors: TP_ERR_USAGE naming the option. */
tp_status tp__schedule_make(const tp_train_options *options, bool fine_tune, int64_t total_steps,
                            tp__schedule *schedule, tp_error *err) TP_CHECKED;

/* "exponential: 0.001 x 0.96 every 100 steps, staircase", for the log; writes to text and returns
 * it. */
char *tp__schedule_text(const tp__schedule *schedule, char text[160]);

#endif
