/* metrics - loss, accuracy, top-5 and macro F1 over examples, added up in the examples' order in
 * double precision.
 *
 * Per-example sums, never means of batches: the last, smaller batch weighs what it should. A tie
 * goes to the lowest class index.
 */
#ifndef TP_METRICS_H
#define TP_METRICS_H

#include "base/base.h"

typedef struct tp__metrics {
  int classes;
  int64_t examples;
  double loss_sum; /* of the (weighted) losses */
  int64_t right, right_5;
  int64_t *support, *predicted, *hits; /* [classes] each: labels, predictions, both */
} tp__metrics;

/* Returns: tp__metrics_free. */
tp_status tp__metrics_init(tp__metrics *m, int classes, tp_error *err) TP_CHECKED;
void tp__metrics_free(tp__metrics *m);
void tp__metrics_reset(tp__metrics *m);

/* The class with the largest score, the lowest index on a tie; NaN scores never win (all NaN: 0).
 */
int tp__argmax(const float *scores, int classes);

/* n rows: scores [n,classes] (probabilities or logits), labels [n] in 0...classes-1, losses [n] or
 * NULL, weights [n] or NULL (1 each; they act on the loss only). */
void tp__metrics_add(tp__metrics *m, int64_t n, const float *scores, const int32_t *labels,
                     const float *losses, const float *weights);
/* What one row of them comes to, and adding that up: rows of other processes come as this. */
typedef struct tp__judgement {
  double loss; /* weighted */
  int32_t label, prediction, in_5, padding;
} tp__judgement;
void tp__metrics_judge(const tp__metrics *m, const float *scores, int label, float loss,
                       float weight, tp__judgement *judgement);
void tp__metrics_count(tp__metrics *m, const tp__judgement *judgement);

/* One prediction alone, for CSV files. */
void tp__metrics_add_one(tp__metrics *m, int label, int prediction);

double tp__metrics_loss(const tp__metrics *m); /* mean; NaN without examples */
double tp__metrics_accuracy(const tp__metrics *m);
double tp__metrics_top_5(const tp__metrics *m);
/* Mean of the F1 of the classes that occur in labels or predictions. */
double tp__metrics_macro_f1(const tp__metrics *m);

/* Fills a public evaluation; names may be NULL. loss and top_5 are NaN when there were none. */
tp_status tp__metrics_evaluation(const tp__metrics *m, const char *const *names, bool has_scores,
                                 tp_evaluation *e, tp_error *err) TP_CHECKED;

#endif
