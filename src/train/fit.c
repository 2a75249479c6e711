/* fit - see fit.h */
#include "fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export.h"
#include "fit_parts.h"

static int compare_doubles(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void fill_result(const tp__fitter *f, tp_train_result *result)
{
  const tp__progress_state *s = &f->state;
  *result = (tp_train_result){
      .epochs = (int)s->n_history,
      .best_epoch = s->best.has_best ? s->best.epoch + 1 : 0,
      .best_val_loss = s->best_value[TP__VAL_LOSS],
      .best_val_accuracy = s->best_value[TP__VAL_ACCURACY],
      .busy_share = f->wall > 0 ? f->busy / f->wall : 0,
  };
  double *speed = calloc(s->n_history + 1, sizeof *speed);
  if (speed == NULL) return;
  for (size_t i = 0; i < s->n_history; i++) speed[i] = s->history[i].images_per_s;
  qsort(speed, s->n_history, sizeof *speed, compare_doubles);
  result->images_per_s = s->n_history > 0 ? speed[s->n_history / 2] : 0;
  free(speed);
}

/* best.h5 from best.safetensors, or from the weights as they are when no epoch was the best (a run
 * of 0 epochs, or only NaN). */
static tp_status export_best(tp__fitter *f, tp_error *err)
{
  if (!tp__fitter_reports(f)) return TP_OK;
  char *best = tp__fitter_path(f, "best.safetensors"), *out = tp__fitter_path(f, "best.h5");
  tp__identity identity = {0};
  tp__tensors weights = {0};
  tp_status status = best == NULL || out == NULL ? tp__no_memory(err, 64) : TP_OK;
  if (status == TP_OK && !f->state.best.has_best) status = tp__fitter_save_best(f, err);
  if (status == TP_OK)
    status = tp__checkpoint_read(best, &identity, NULL, &weights, NULL, NULL, err);
  if (status == TP_OK) status = tp__export(out, &identity, &weights, err);
  tp__identity_free(&identity);
  tp__tensors_free(&weights);
  free(best);
  free(out);
  return status;
}

/* A run that was killed after its last checkpoint but before best.h5 gets that file now. */
static tp_status finish_export(tp__fitter *f, tp_error *err)
{
  if (!tp__fitter_reports(f)) return TP_OK;
  char *path = tp__fitter_path(f, "best.h5");
  if (path == NULL) return tp__no_memory(err, 64);
  tp_status status = tp__is_file(path) ? TP_OK : export_best(f, err);
  free(path);
  return status;
}

/* Ends a phase: goes to the next one, or to the end, and saves where it now is. */
static tp_status leave_phase(tp__fitter *f, tp_error *err)
{
  tp__progress_state *s = &f->state;
  if (s->phase == 0 && f->o->fine_tune_epochs > 0) {
    s->phase = 1;
    s->phase_start = s->epoch;
    s->iteration = 0;
    TP__TRY(tp__fitter_enter_phase(f, true, err));
  } else {
    s->finished = true;
  }
  return tp__fitter_save(f, err);
}

static tp_status run_phases(tp__fitter *f, tp_error *err)
{
  tp__progress_state *s = &f->state;
  while (!s->finished) {
    TP__TRY(tp__fitter_phase(f, err));
    TP__TRY(leave_phase(f, err));
  }
  TP__TRY(tp__fitter_list_bad(f, err));
  tp__learner_free(f->learner); /* before the weights are there once more */
  f->learner = NULL;
  return export_best(f, err);
}

static void say_device(const tp__fitter *f)
{
  const tp__backend *b = f->backend;
  char replicas[64];
  const char *bytes = f->bytes ? "; pixels cross as 8 bits" : "";
  const bool bf16 = strcmp(f->options->train->precision, "bf16") == 0;
  const bool augments = f->augment.flip || f->augment.rotate > 0;
  const char *products = bf16 ? ", bfloat16 products" : "";
  const char *augment = augments ? "; flips and turns on the device" : "";
  if (b->replicas == 1)
    tp__say(f->job->log, "device %s: %s%s; batch %d%s%s", b->name, b->device, products, f->batch,
            bytes, augment);
  else
    tp__say(f->job->log, "device %s: %s%s; %s, batch %d on each, %d in all%s%s", b->name, b->device,
            products, tp__replicas_text(b, replicas), (f->batch + b->replicas - 1) / b->replicas,
            f->batch, bytes, augment);
}

static tp_status start(tp__fitter *f, tp_error *err)
{
  tp__progress_state *s = &f->state;
  const tp__observer *observer = f->options->observer;
  bool resume = f->options->resume;
  if (!resume) {
    s->best.epoch = -1;
    for (int q = 0; q < TP__QUANTITIES; q++) s->best_value[q] = NAN;
    if (f->o->epochs == 0) s->phase = 1;
  }
  tp__say(f->job->log, "%s %dx%d, %d classes; %lld training examples, %lld steps an epoch",
          f->identity.spec.name, f->identity.spec.height, f->identity.spec.width,
          f->identity.spec.classes, (long long)tp__pipeline_examples(f->train_input),
          (long long)tp__pipeline_steps(f->train_input));
  say_device(f);
  TP__TRY(tp__fitter_enter_phase(f, !resume, err));
  f->saved_at = tp__now();
  if (f->o->dry_run) return TP_OK;
  if (observer != NULL && observer->started != NULL)
    TP__TRY(observer->started(observer->user, s, resume, err));
  /* The first checkpoint is written before the first step: a folder that cannot be written is found
   * now. */
  return resume ? TP_OK : tp__fitter_save(f, err);
}

/* A loss that is not a number ends training; what was best before it is kept. */
static tp_status end_on_nan(tp__fitter *f, tp_error *err)
{
  if (!f->state.best.has_best) return TP_ERR_DATA;
  tp__warn(f->job->log, "%s; the best epoch before it, %d, is kept", err->text,
           f->state.best.epoch + 1);
  f->state.finished = true; /* going on would only meet it again */
  TP__TRY(tp__fitter_save_finished(f, err));
  return export_best(f, err);
}

/* Nothing was trained, and the first checkpoint would be in the way of the next try. */
static void forget_first_checkpoint(const tp__fitter *f)
{
  char *path = tp__fitter_path(f, "last.safetensors");
  if (path != NULL) unlink(path);
  free(path);
}

tp_status tp__fit(const tp__job *job, tp__backend *backend, const tp__fit_options *options,
                  tp_train_result *result, tp_error *err)
{
  tp_error own;
  tp__fitter f = {.job = job, .backend = backend, .options = options, .o = options->train};
  if (err == NULL) err = &own;
  tp__group *group = backend->group;
  tp_status status = tp__group_agree(group, tp__fitter_setup(&f, err), err);
  if (status == TP_OK) status = tp__fitter_same_start(&f, err);
  if (status == TP_OK && options->resume && f.state.finished) {
    tp__say(job->log, "%s: is finished after %zu epochs: nothing is left to do", f.o->run,
            f.state.n_history);
    status = finish_export(&f, err);
    if (status == TP_OK && result != NULL) fill_result(&f, result);
    goto out;
  }
  if (status == TP_OK) status = tp__group_agree(group, start(&f, err), err);
  if (status == TP_OK) status = f.o->dry_run ? tp__fitter_dry_run(&f, err) : run_phases(&f, err);
  if (status == TP_ERR_DATA && f.learner != NULL && !isfinite(f.metrics.loss_sum))
    status = tp__group_agree(group, end_on_nan(&f, err), err);
  if (status == TP_OK && result != NULL) fill_result(&f, result);
  if (status == TP_ERR_DEVICE && (options->resume || f.saves > 1))
    tp__warn(job->log, "the last checkpoint is whole: go on with tepal train --resume %s",
             f.o->run);
  if (status != TP_OK && status != TP_STOPPED && !options->resume && f.saves == 1)
    forget_first_checkpoint(&f);
out:
  tp__fitter_free(&f);
  return status;
}
