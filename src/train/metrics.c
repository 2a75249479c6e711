/* metrics - see metrics.h */
#include "metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

tp_status tp__metrics_init(tp__metrics *m, int classes, tp_error *err)
{
  *m = (tp__metrics){.classes = classes};
  m->support = tp__calloc((size_t)classes * 3, sizeof *m->support, err);
  if (m->support == NULL) return TP_ERR_INTERNAL;
  m->predicted = m->support + classes;
  m->hits = m->predicted + classes;
  return TP_OK;
}

void tp__metrics_free(tp__metrics *m)
{
  free(m->support);
  *m = (tp__metrics){0};
}

void tp__metrics_reset(tp__metrics *m)
{
  m->examples = m->right = m->right_5 = 0;
  m->loss_sum = 0;
  memset(m->support, 0, (size_t)m->classes * 3 * sizeof *m->support);
}

int tp__argmax(const float *scores, int classes)
{
  int best = 0;
  for (int c = 1; c < classes; c++)
    if (scores[c] > scores[best] || (isnan(scores[best]) && !isnan(scores[c]))) best = c;
  return best;
}

void tp__metrics_add_one(tp__metrics *m, int label, int prediction)
{
  m->examples++;
  m->support[label]++;
  m->predicted[prediction]++;
  if (label != prediction) return;
  m->hits[label]++;
  m->right++;
}

void tp__metrics_judge(const tp__metrics *m, const float *scores, int label, float loss,
                       float weight, tp__judgement *judgement)
{
  int before = 0; /* classes that would be named before the label */
  for (int c = 0; c < m->classes; c++)
    before += scores[c] > scores[label] || (scores[c] == scores[label] && c < label);
  *judgement = (tp__judgement){.loss = (double)loss * (double)weight,
                               .label = label,
                               .prediction = tp__argmax(scores, m->classes),
                               .in_5 = before < 5 && !isnan(scores[label])};
}

void tp__metrics_count(tp__metrics *m, const tp__judgement *j)
{
  tp__metrics_add_one(m, j->label, j->prediction);
  m->right_5 += j->in_5;
  m->loss_sum += j->loss;
}

void tp__metrics_add(tp__metrics *m, int64_t n, const float *scores, const int32_t *labels,
                     const float *losses, const float *weights)
{
  for (int64_t i = 0; i < n; i++) {
    tp__judgement j;
    tp__metrics_judge(m, scores + i * m->classes, labels[i], losses != NULL ? losses[i] : 0,
                      weights != NULL ? weights[i] : 1, &j);
    tp__metrics_count(m, &j);
  }
}

static double share(double part, int64_t whole)
{
  return whole > 0 ? part / (double)whole : NAN;
}

double tp__metrics_loss(const tp__metrics *m)
{
  return share(m->loss_sum, m->examples);
}

double tp__metrics_accuracy(const tp__metrics *m)
{
  return share((double)m->right, m->examples);
}

double tp__metrics_top_5(const tp__metrics *m)
{
  return share((double)m->right_5, m->examples);
}

double tp__metrics_macro_f1(const tp__metrics *m)
{
  double sum = 0;
  int64_t occurring = 0;
  for (int c = 0; c < m->classes; c++) {
    int64_t both = m->support[c] + m->predicted[c];
    if (both == 0) continue;
    occurring++;
    sum += 2.0 * (double)m->hits[c] / (double)both; /* 2 tp / (2 tp + fp + fn) */
  }
  return share(sum, occurring);
}

tp_status tp__metrics_evaluation(const tp__metrics *m, const char *const *names, bool has_scores,
                                 tp_evaluation *e, tp_error *err)
{
  *e = (tp_evaluation){
      .examples = m->examples,
      .loss = has_scores ? tp__metrics_loss(m) : NAN,
      .accuracy = tp__metrics_accuracy(m),
      .top_5 = has_scores ? tp__metrics_top_5(m) : NAN,
      .macro_f1 = tp__metrics_macro_f1(m),
      .n_classes = (size_t)m->classes,
  };
  e->classes = tp__calloc(e->n_classes, sizeof *e->classes, err);
  if (e->classes == NULL) return TP_ERR_INTERNAL;
  for (int c = 0; c < m->classes; c++) {
    char *name = names != NULL ? tp__strdup(names[c], err) : tp__format("%d", c);
    if (name == NULL) {
      tp_evaluation_free(e);
      return tp__no_memory(err, 16);
    }
    double hits = (double)m->hits[c];
    e->classes[c] = (tp_class_score){
        .name = name,
        .support = m->support[c],
        .predicted = m->predicted[c],
        .right = m->hits[c],
        .precision = share(hits, m->predicted[c]),
        .recall = share(hits, m->support[c]),
        .f1 = share(2 * hits, m->support[c] + m->predicted[c]),
    };
  }
  return TP_OK;
}

void tp_evaluation_free(tp_evaluation *e)
{
  if (e == NULL) return;
  for (size_t c = 0; c < e->n_classes && e->classes != NULL; c++)
    free((void *)(uintptr_t)e->classes[c].name);
  free(e->classes);
  *e = (tp_evaluation){0};
}
