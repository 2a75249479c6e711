/* fit_step - one step, one validation; see fit_parts.h
 *
 * A device works on one step while the next one's batch is read and sent: results are collected one
 * step later. On the CPU nothing is ever in flight.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit_parts.h"

tp_status tp__fitter_make_flights(tp__fitter *f, tp_error *err)
{
  size_t batch = (size_t)f->rows, classes = (size_t)f->identity.spec.classes;
  f->flights = 2 * (f->backend->remote ? f->o->steps_per_execution : 1);
  f->flight = tp__calloc((size_t)f->flights, sizeof *f->flight, err);
  if (f->flight == NULL) return TP_ERR_INTERNAL;
  for (int i = 0; i < f->flights; i++) {
    tp__flight *x = &f->flight[i];
    x->labels = tp__calloc(batch, sizeof *x->labels, err);
    x->weights = tp__calloc(batch, sizeof *x->weights, err);
    x->losses = tp__calloc(batch, sizeof *x->losses, err);
    x->scores = tp__calloc(batch * classes, sizeof *x->scores, err);
    if (!x->labels || !x->weights || !x->losses || !x->scores) return TP_ERR_INTERNAL;
  }
  return TP_OK;
}

/* What is in flight writes into these places: it has to land first. */
void tp__fitter_free_flights(tp__fitter *f)
{
  for (int i = 0; f->flight != NULL && i < f->flights; i++) {
    tp__flight *x = &f->flight[i];
    tp_error ignored;
    if (x->open) (void)!tp__learner_wait(f->learner, x->pending, &ignored);
    free(x->labels);
    free(x->weights);
    free(x->losses);
    free(x->scores);
  }
  free(f->flight);
  f->flight = NULL;
}

static tp_status land(tp__fitter *f, tp__flight *x, tp_error *err)
{
  if (!x->open) return TP_OK;
  x->open = false;
  TP__TRY(tp__learner_wait(f->learner, x->pending, err));
  return tp__fitter_count(f, x, err);
}

tp_status tp__fitter_settle(tp__fitter *f, tp_error *err)
{
  for (int i = 0; i < f->flights; i++)
    TP__TRY(land(f, &f->flight[(f->turn + i) % f->flights], err));
  return TP_OK;
}

/* Makes place for the next one: the results of the oldest are collected. */
static tp_status begun(tp__fitter *f, tp_error *err)
{
  tp__flight *x = &f->flight[f->turn];
  x->open = true;
  f->turn = (f->turn + 1) % f->flights;
  TP__TRY(land(f, &f->flight[f->turn], err));
  /* Not by x->pending: a process without rows has nothing in flight, but tells it with the others.
   */
  return f->backend->remote ? TP_OK : land(f, x, err);
}

static tp__flight *board(tp__fitter *f, const tp__batch *b, tp__metrics *metrics)
{
  tp__flight *x = &f->flight[f->turn];
  x->pending = NULL;
  x->n = b->n;
  x->metrics = metrics;
  memcpy(x->labels, b->labels, (size_t)b->n * sizeof *x->labels);
  return x;
}

float tp__fitter_rate(const tp__fitter *f)
{
  return tp__plateau_rate(&f->state.plateau, tp__schedule_rate(&f->schedule, f->state.iteration));
}

static tp_status learn(tp__fitter *f, const tp__batch *b, tp__flight *x, tp_error *err)
{
  const float *features = NULL, *weights = x->weighted ? x->weights : NULL;
  float rate = tp__fitter_rate(f);
  if (f->train_features.row == NULL)
    return tp__learner_step(f->learner, b, weights, rate, f->state.iteration, x->losses, x->scores,
                            &x->pending, err);
  TP__TRY(tp__feature_memory_get(&f->train_features, f->learner, b, &features, err));
  return tp__learner_step_on(f->learner, features, b, weights, rate, f->state.iteration, x->losses,
                             x->scores, &x->pending, err);
}

static tp_status score(tp__fitter *f, const tp__batch *b, tp__flight *x, tp_error *err)
{
  const float *features = NULL;
  if (f->val_features.row == NULL)
    return tp__learner_score(f->learner, b, x->losses, x->scores, &x->pending, err);
  TP__TRY(tp__feature_memory_get(&f->val_features, f->learner, b, &features, err));
  return tp__learner_score_on(f->learner, features, b, x->losses, x->scores, &x->pending, err);
}

tp_status tp__fitter_step(tp__fitter *f, int64_t *n, tp_error *err)
{
  tp__batch b = {0};
  tp_status status = tp__pipeline_next(f->train_input, &b, err);
  bool ended = b.total == 0; /* the epochs that were sought for */
  TP__TRY(tp__fitter_meet(f, f->train_input, status, &b, err));
  *n = b.total;
  if (ended) return TP_OK;
  /* A batch whose pictures are all damaged is passed over: the last one delivered ends the epoch.
   */
  f->state.step = b.last ? tp__pipeline_steps(f->train_input) : b.step + 1;
  if (b.total == 0) return TP_OK;
  tp__flight *x = board(f, &b, &f->metrics);
  x->weighted = f->weighted;
  for (int64_t i = 0; i < b.n; i++) x->weights[i] = f->class_weight[b.labels[i]];
  double since = tp__now();
  TP__TRY(learn(f, &b, x, err));
  f->state.iteration++;
  TP__TRY(begun(f, err));
  f->compute += tp__now() - since;
  return TP_OK;
}

static void send_progress(const tp__fitter *f, int64_t step, int64_t steps, double seconds)
{
  tp_progress p = {.stage = "validate",
                   .epoch = f->state.epoch + 1,
                   .step = step,
                   .steps = steps,
                   .images_per_s = (double)f->val_metrics.examples / seconds,
                   .seconds = seconds,
                   .seconds_left = seconds / (double)step * (double)(steps - step),
                   .loss = tp__metrics_loss(&f->val_metrics),
                   .accuracy = tp__metrics_accuracy(&f->val_metrics),
                   .val_loss = NAN,
                   .val_accuracy = NAN,
                   .learning_rate = NAN,
                   .done = step == steps};
  tp__job_progress(f->job, &p);
}

tp_status tp__fitter_validate(tp__fitter *f, int64_t most_steps, tp_error *err)
{
  TP__TRY(tp__fitter_settle(f, err));
  tp__metrics_reset(&f->val_metrics);
  TP__TRY(tp__pipeline_seek(f->val_input, 0, 0, 1, err));
  int64_t steps = tp__pipeline_steps(f->val_input);
  if (most_steps > 0 && steps > most_steps) steps = most_steps;
  double start = tp__now();
  for (int64_t s = 0; s < steps; s++) {
    tp__batch b = {0};
    tp_status status = tp__pipeline_next(f->val_input, &b, err);
    TP__TRY(tp__fitter_meet(f, f->val_input, status, &b, err));
    if (b.total > 0) {
      tp__flight *x = board(f, &b, &f->val_metrics);
      x->weighted = false;
      if (b.n > 0) TP__TRY(score(f, &b, x, err));
      TP__TRY(begun(f, err));
    }
    if (s + 1 == steps) TP__TRY(tp__fitter_settle(f, err));
    if (b.total > 0 || s + 1 == steps) send_progress(f, s + 1, steps, tp__now() - start);
    if (tp__fitter_stopped(f)) return TP_STOPPED;
  }
  return TP_OK;
}
