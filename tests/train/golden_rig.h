/* golden_rig - what tests against the golden training runs of ../shared/golden share: the photos of
 * tiny10-192 by their ids, the weights, comparing within a tolerance (folder TEPAL_GOLDEN; photos
 * TEPAL_GOLDEN_DATA). One rig per test program, opened once.
 */
#ifndef TP_GOLDEN_RIG_H
#define TP_GOLDEN_RIG_H

#include "train_testing.h"

#include <math.h>

#include "npz.h"
#include "train/learner.h"

enum { SIDE = 192, BATCH = 16, LABELS = 10, FEATURES = 1280 };

/* What all runs share. */
typedef struct rig {
  tp__pool *pool;
  tp__backend *cpu;
  tp__catalog *catalog;
  uint32_t *by_id; /* indices into the catalog, sorted by id */
  npz *golden;     /* trajectories.npz */
  tp__model_spec spec;
  tp__tensors weights;
  float *pixels; /* [BATCH,SIDE,SIDE,3] */
  tp__image_scratch scratch;
  tp__buffer bytes;
} rig;

extern rig shared;
extern bool have_golden;

/* Set-up and tear-down of a group of tests; without ../shared there is nothing, and have_golden is
 * false. */
int open_rig(void **state);
int close_rig(void **state);

#define need_golden()                                                                              \
  do {                                                                                             \
    if (!have_golden) {                                                                            \
      print_message("skipped: no ../shared\n");                                                    \
      skip();                                                                                      \
    }                                                                                              \
  } while (0)

/* The photos of one step of a run, side x side (at most SIDE). */
void read_batch(const char *run, size_t step, int side, int32_t labels[BATCH], tp__batch *batch);

/* Worst difference of several, as a share of what is allowed. */
typedef struct worst {
  double share;
  size_t compared;
} worst;

void compare(worst *w, const char *what, size_t i, double mine, double wanted, double allowed);

/* "run:name" as double, whichever float type it has. */
double golden(const char *run, const char *name, size_t i);

/* Mean loss of a step, and how many were right; compared. */
void compare_step(const char *run, size_t s, const float *losses, const float *weights,
                  const float *scores, const int32_t *labels, double allowed, worst *loss);

/* Parameters that the learner changes, as they are now. */
tp__tensors read_changed(tp__learner *l);

/* Tolerances for tensors after a run; relative but for first16. delta_median: of the median tensor,
 * 0: not looked at. */
typedef struct tensor_limits {
  double delta_norm, delta_median, norm, first16;
} tensor_limits;

/* All tensors of the run: how far they went, and where they are. Those whose gradient is rounding
 * noise ("meaningful" is false) are left out. */
void compare_tensors(const char *run, const tp__tensors *after, const tensor_limits *limits);

/* Keras' name of a parameter: its head is called head. */
const char *golden_name(const char *name, char text[96]);

#endif
