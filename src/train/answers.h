/* answers - what trained networks are asked: predict (a CSV in the records' order) and evaluate
 * (figures of a run, or of one CSV against another). */
#ifndef TP_ANSWERS_H
#define TP_ANSWERS_H

#include "backend/backend.h"
#include "base/job.h"

/* Writes id,label, or id and one column for each class; atomically. Errors: ids that occur twice, a
 * number of records other than options->expect. */
tp_status tp__predict(const tp__job *job, tp__backend *backend, const tp_predict_options *options,
                      tp_error *err) TP_CHECKED;

tp_status tp__evaluate(const tp__job *job, tp__backend *backend, const tp_evaluate_options *options,
                       tp_evaluation *evaluation, tp_error *err) TP_CHECKED;

/* One CSV of labels against another, matched by id. Errors: TP_ERR_DATA: a column that is not
 * there, ids that are missing, twice or too many, labels that are no whole numbers (or, in both
 * files, names). */
tp_status tp__evaluate_files(const tp__job *job, const tp_evaluate_options *options,
                             tp_evaluation *evaluation, tp_error *err) TP_CHECKED;

#endif
