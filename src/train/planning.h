/* planning - what a training would need on a machine that is not here: does each step compile and
 * fit, how long does it take at best, and can the pictures be made fast enough.
 *
 *   recipe ──learner──> planner backend ──> memory, FLOPs, bytes of each program ─┐
 *   recipe ──pipeline, for some seconds──> pictures per second of this machine ───┴──> plan
 *
 * The learner is the one that trains, on a backend that only compiles. Times are lower bounds: what
 * the arithmetic and the memory traffic of the program take at the chip's published peaks, or what
 * the compiler expects, whichever is longer. Nobody is promised them. Neighbours: report writes a
 * plan as text and JSON.
 */
#ifndef TP_PLANNING_H
#define TP_PLANNING_H

#include "backend/pjrt/planner.h"
#include "base/job.h"

typedef struct tp__plan_options {
  const tp_train_options *train; /* train.train may be empty */
  tp__target target;
  const char *plugin;             /* of the compiler; NULL: looked for */
  const char *cache;              /* folder of answers; NULL: none are kept */
  int replicas;                   /* 0: all devices */
  int classes;                    /* without data; 0: those of the data, or of their labels' file */
  int64_t examples, val_examples; /* without data; 0: not known */
  bool largest;                   /* look for the largest batch that fits */
  double measure;                 /* seconds that the pipeline is measured; 0: it is not */
  double patience;                /* seconds that one compilation may take */
} tp__plan_options;

/* How long a run of a program takes at best, on one device; seconds. */
typedef struct tp__bound {
  double arithmetic, traffic, compiler; /* 0: not told */
  double seconds;                       /* the longest of them; 0: not known */
} tp__bound;

typedef struct tp__phase_plan {
  bool fine_tune;
  int epochs;
  size_t trainable;                   /* arrays */
  bool kept;                          /* features are computed once, in the first epoch, and kept */
  tp__planned step, features, scores; /* rows 0: there is none */
  tp__bound step_bound, features_bound, scores_bound;
  double needs;     /* pictures per second that keep all devices busy; 0: not known */
  double seconds;   /* of all epochs, with validation; 0: not known */
  bool host_limits; /* ... and this machine's pipeline is slower than that */
} tp__phase_plan;

typedef struct tp__plan {
  const tp__plan_options *options;
  tp__machine machine;
  char plugin[256];
  char model[64];
  int height, width, classes;
  int batch, replicas;            /* per replica */
  bool bytes;                     /* pixels cross as 8 bits */
  bool augments, movable;         /* flips and turns are the device's; could be */
  int64_t examples, val_examples; /* 0: not known */
  int64_t steps, val_steps;       /* of an epoch */
  bool measured;
  double host; /* pictures per second */
  int threads; /* that made them */
  tp__phase_plan phase[2];
  size_t n_phases;
  bool fits; /* all of it */
} tp__plan;

/* A program that does not fit is part of the plan; the plan is complete when TP_OK is returned. */
tp_status tp__plan_make(const tp__job *job, const tp__plan_options *options, tp__plan *plan,
                        tp_error *err) TP_CHECKED;

#endif
