/* fit_rig - trainings of EfficientNet-Lite0 on a tiny set of 32x32 patterns, fresh weights, and
 * comparison of the run folders they leave; for tests. Whatever fails, fails the running test. */
#ifndef TP_FIT_RIG_H
#define TP_FIT_RIG_H

#include "train/fit.h"
#include "train_testing.h"

enum { TRAIN = 24, VAL = 9, BATCH = 5, STEPS = 5 };

/* Files of the data set, made once in a box. */
typedef struct tiny {
  const char *train[2], *val[1];
} tiny;

tiny tiny_make(box *b);
/* 3 epochs of the head, 2 of the last 20 layers, all augmentation on. The folder is made. */
tp_train_options tiny_options(box *b, const tiny *data, const char *run);

/* One call of tp__fit. */
typedef struct attempt {
  int threads; /* 0: 2 */
  bool resume;
  int stop_after; /* questions whether to stop that are answered with no; 0: never stops, -1: at
                     once */
  const tp__observer *observer;
  /* filled */
  tp_train_result result;
  heard log;
  int train_messages; /* of progress, stage "train" */
  int64_t val_steps;  /* largest of stage "validate" */
  tp_error err;
} attempt;

tp_status attempt_run(attempt *a, const tp_train_options *o);
/* The same; fails, with the error's text, unless the training ends well. */
void assert_trains(attempt *a, const tp_train_options *o);
/* Fails unless it ends with that status and the part in the error's text. */
void assert_ends(attempt *a, const tp_train_options *o, tp_status status, const char *part);

/* What is left in a run's folder. */
typedef struct remains {
  tp__identity identity;
  tp__progress_state progress;
  tp__tensors weights, slots, stop_best;
} remains;

remains remains_read(const char *run, const char *file);
void remains_free(remains *r);
void assert_same_weights(const tp__tensors *a, const tp__tensors *b);
/* Both runs left the same: weights, slots, state and history (but for times) of last.safetensors;
 * best.safetensors and best.h5 byte for byte. */
void assert_same_run(const char *a, const char *b);
void assert_same_file(const char *a, const char *b);
int count_files(const char *folder);

#endif
