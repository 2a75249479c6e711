/* ensemble - probabilities of one or several trained networks, averaged over test-time views, in
 * the records' order.
 *
 *   checkpoints ──> for each network: for each view: pipeline, scores ──> weighted mean of
 * probabilities [N, classes]
 *
 * The networks are loaded one after the other, so that memory holds one. Each brings its own
 * preprocessing. The views: as it is, mirrored (flip), turned by +DEGREES and -DEGREES (rotate);
 * with both, every turn also mirrored. One view equals plain prediction.
 */
#ifndef TP_ENSEMBLE_H
#define TP_ENSEMBLE_H

#include "backend/backend.h"
#include "base/job.h"
#include "checkpoint.h"
#include "data/catalog.h"

enum { TP__VIEWS_MAX = 6 };

typedef struct tp__view {
  bool flip;
  float turn; /* fraction of a turn */
} tp__view;

/* "flip", "rotate=DEGREES", "flip,rotate=DEGREES"; NULL: the plain view. Errors: TP_ERR_USAGE. */
tp_status tp__views_parse(const char *text, tp__view view[TP__VIEWS_MAX], int *n,
                          tp_error *err) TP_CHECKED;

/* Where a run's best network lies: a file itself, or best.safetensors, else last.safetensors, in a
 * folder. Errors: TP_ERR_DATA: neither. Returns: caller frees *path. */
tp_status tp__run_checkpoint(const char *run, char **path, tp_error *err) TP_CHECKED;

typedef struct tp__ensemble_options {
  tp_strings runs;
  const tp_data_options *data; /* borrows; pixels are prepared as each network was trained */
  const char *combine;         /* "mean", "val-accuracy" */
  const char *tta;
  const char *precision; /* "float32", "bf16" */
  int batch;
} tp__ensemble_options;

typedef struct tp__ensemble_result {
  float *probabilities; /* [examples, classes] */
  int64_t examples;
  int classes;
  const char *const *labels; /* NULL: unknown; kept by identity */
  tp__identity identity;     /* of the first network */
  double *vote;              /* of each network, together 1 */
} tp__ensemble_result;

/* What the networks agree on (classes, labels), before any work: fills classes, labels, identity
 * and votes. Errors: TP_ERR_DATA naming two runs that disagree. */
tp_status tp__ensemble_open(const tp__ensemble_options *options, tp__ensemble_result *result,
                            tp_error *err) TP_CHECKED;
/* Scores all examples of a catalog. A picture that cannot be read is an error: every record has its
 * row. */
tp_status tp__ensemble_run(const tp__job *job, tp__backend *backend,
                           const tp__ensemble_options *options, const tp__catalog *catalog,
                           tp__ensemble_result *result, tp_error *err) TP_CHECKED;
void tp__ensemble_free(tp__ensemble_result *result);

#endif
