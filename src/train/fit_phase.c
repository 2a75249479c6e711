/* fit_phase - the epochs of one phase; see fit_parts.h */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit_parts.h"
#include "phase_options.h"

/* ---- entering a phase ---- */

static int phase_epochs(const tp__fitter *f)
{
  return f->state.phase == 0 ? f->o->epochs : f->o->fine_tune_epochs;
}

static tp_status make_schedule(tp__fitter *f, tp_error *err)
{
  int64_t steps = tp__pipeline_steps(f->train_input) * phase_epochs(f);
  return tp__schedule_make(f->o, f->state.phase == 1, steps, &f->schedule, err);
}

static void make_callbacks(tp__fitter *f, bool fresh)
{
  const tp_train_options *o = f->o;
  tp__early_stopping *stop = &f->state.stopping;
  stop->mode = tp__quantity_mode(f->stop_monitor);
  stop->patience = o->early_stopping;
  stop->min_delta = o->early_stopping_min_delta;
  stop->baseline = NAN;
  tp__plateau *plateau = &f->state.plateau;
  plateau->mode = tp__quantity_mode(f->plateau_monitor);
  plateau->factor = o->plateau_factor;
  plateau->patience = o->plateau_patience;
  plateau->min_delta = 1e-4;
  plateau->cooldown = o->plateau_cooldown;
  plateau->min_rate = o->plateau_min_rate;
  f->state.best.mode = tp__quantity_mode(f->best_monitor);
  if (!fresh) return;
  tp__early_stopping_start(stop);
  tp__plateau_start(plateau);
}

/* The set of tensors that this phase changes: those of the weights, so that the device's values are
 * read into these. */
static tp_status make_trained(tp__fitter *f, tp_error *err)
{
  size_t n = 0;
  const char *const *name = tp__learner_changing(f->learner, &n);
  free(f->trained.item);
  f->trained = (tp__tensors){.item = tp__calloc(n, sizeof *f->trained.item, err)};
  if (f->trained.item == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < n; i++) {
    const tp__tensor *w = tp__tensors_find(&f->weights, name[i]);
    if (w == NULL) return tp__fail(err, TP_ERR_INTERNAL, "%s: has no weights", name[i]);
    f->trained.item[f->trained.count++] = *w;
  }
  return TP_OK;
}

/* Keeps the features of those examples that are prepared the same way in every epoch, while the
 * backbone is frozen and the cache's limit allows it. */
static tp_status start_features(tp__fitter *f, tp_error *err)
{
  size_t width = tp__learner_features(f->learner);
  uint64_t limit = 0, bytes = width * sizeof(float);
  tp__feature_memory_stop(&f->train_features);
  tp__feature_memory_stop(&f->val_features);
  if (width == 0) return TP_OK;
  TP__TRY(tp__bytes_parse("cache_limit", f->o->data.cache_limit, &limit, err));
  if (!tp__pipeline_varies(f->train_input) && f->train_features.examples <= limit / bytes)
    TP__TRY(tp__feature_memory_start(&f->train_features, width, err));
  if (f->val != NULL && f->val_features.examples <= limit / bytes)
    return tp__feature_memory_start(&f->val_features, width, err);
  return TP_OK;
}

/* What the learner may take: the process' limit less what is there already, what writing a
 * checkpoint takes (the slots once more), and what decoders and the C library take in between. */
static tp_status learner_limit(const tp__fitter *f, uint64_t *limit, tp_error *err)
{
  char whole[32], text[32];
  *limit = 0;
  if (f->o->memory_limit == NULL) return TP_OK;
  if (f->backend->remote) {
    tp__warn(f->job->log,
             "memory %s: is a limit for training on the CPU; the device takes what it has",
             f->o->memory_limit);
    return TP_OK;
  }
  const uint64_t between = 24000000;
  uint64_t all = 0, taken = tp__resident_bytes(NULL) + between;
  TP__TRY(tp__bytes_parse("memory", f->o->memory_limit, &all, err));
  for (size_t i = 0; i < f->weights.count; i++) taken += 2 * tp__tensor_bytes(&f->weights.item[i]);
  if (taken >= all)
    return tp__fail(err, TP_ERR_DEVICE,
                    "memory: the limit is %s, and pictures, weights and checkpoints take %s before "
                    "training: allow more, or take a smaller batch",
                    tp__bytes_text(whole, all), tp__bytes_text(text, taken));
  *limit = all - taken;
  return TP_OK;
}

static tp_status make_learner(tp__fitter *f, tp__learner_options *o, bool fresh, tp_error *err)
{
  TP__TRY(learner_limit(f, &o->memory_limit, err));
  tp_status status =
      tp__learner_new(f->backend, o, &f->weights, fresh ? NULL : &f->slots, &f->learner, err);
  if (status == TP_ERR_DEVICE && o->memory_limit > 0)
    return tp__at(err, status, "memory %s, pictures, weights and checkpoints taken off",
                  f->o->memory_limit);
  return status;
}

tp_status tp__fitter_enter_phase(tp__fitter *f, bool fresh, tp_error *err)
{
  tp__learner_options options;
  TP__TRY(tp__phase_learner(f->o, f->state.phase == 1, &options, err));
  options.spec = f->identity.spec;
  options.batch = f->rows;
  options.whole = f->backend->remote && tp__pipeline_varies(f->train_input);
  options.bytes = f->bytes;
  options.augment = f->augment;
  tp__learner_free(f->learner);
  f->learner = NULL;
  tp__give_memory_back();
  TP__TRY(make_schedule(f, err));
  TP__TRY(make_learner(f, &options, fresh, err));
  tp__tensors_free(&f->slots);
  make_callbacks(f, fresh);
  TP__TRY(make_trained(f, err));
  TP__TRY(start_features(f, err));
  char text[160];
  size_t trainable = 0;
  (void)tp__learner_trainable(f->learner, &trainable);
  tp__say(f->job->log, "phase %d, %s: %zu trainable arrays, rate %s", f->state.phase + 1,
          f->state.phase == 0 ? "head" : "fine-tuning", trainable,
          tp__schedule_text(&f->schedule, text));
  return TP_OK;
}

/* ---- one epoch ---- */

static void send_progress(const tp__fitter *f, double seconds, int64_t since_examples, bool done)
{
  const tp__progress_state *s = &f->state;
  int64_t steps = tp__pipeline_steps(f->train_input);
  double per_s = seconds > 0 ? (double)(f->metrics.examples - since_examples) / seconds : 0;
  double left = per_s > 0 ? (double)(steps - s->step) * f->batch / per_s : -1;
  tp_progress p = {.stage = "train",
                   .epoch = s->epoch + 1,
                   .epochs = s->phase_start + phase_epochs(f),
                   .step = s->step,
                   .steps = steps,
                   .images_per_s = per_s,
                   .seconds = s->seconds + seconds,
                   .seconds_left = left,
                   .loss = tp__metrics_loss(&f->metrics),
                   .accuracy = tp__metrics_accuracy(&f->metrics),
                   .val_loss = NAN,
                   .val_accuracy = NAN,
                   .learning_rate = (double)tp__fitter_rate(f),
                   .done = done};
  if (done && f->val != NULL) {
    p.val_loss = tp__metrics_loss(&f->val_metrics);
    p.val_accuracy = tp__metrics_accuracy(&f->val_metrics);
  }
  tp__job_progress(f->job, &p);
}

static tp_status not_a_number(tp__fitter *f, tp_error *err)
{
  return tp__fail(
      err, TP_ERR_DATA,
      "the loss is not a number any more (epoch %d, step %lld, rate %g): training ended; try "
      "a lower learning_rate",
      f->state.epoch + 1, (long long)f->state.step, (double)tp__fitter_rate(f));
}

/* Saves the epoch's sums with the checkpoint, so that a resumed epoch reports all of it. */
static tp_status save_inside_epoch(tp__fitter *f, double seconds, tp_error *err)
{
  tp__progress_state *s = &f->state;
  TP__TRY(tp__fitter_settle(f, err));
  if (!isfinite(f->metrics.loss_sum)) return not_a_number(f, err);
  s->examples = f->metrics.examples;
  s->right = f->metrics.right;
  s->right_5 = f->metrics.right_5;
  s->loss_sum = f->metrics.loss_sum;
  double before = s->seconds;
  s->seconds += seconds;
  tp_status status = tp__fitter_save(f, err);
  s->seconds = before;
  return status;
}

static tp_status stop_here(tp__fitter *f, double seconds, tp_error *err)
{
  TP__TRY(save_inside_epoch(f, seconds, err));
  TP__TRY(tp__fitter_list_bad(f, err));
  return tp__fail(
      err, TP_STOPPED,
      "stopped in epoch %d after step %lld, and saved; go on with: tepal train --resume %s",
      f->state.epoch + 1, (long long)f->state.step, f->o->run);
}

static tp_status train_epoch(tp__fitter *f, double *seconds, tp_error *err)
{
  tp__progress_state *s = &f->state;
  int64_t steps = tp__pipeline_steps(f->train_input);
  double start = tp__now(), told = 0;
  f->compute = 0;
  if (f->backend->idle != NULL) (void)f->backend->idle(f->backend, true);
  tp__metrics_reset(&f->metrics);
  f->metrics.examples = s->examples;
  f->metrics.right = s->right;
  f->metrics.right_5 = s->right_5;
  f->metrics.loss_sum = s->loss_sum;
  while (s->step < steps) {
    int64_t n = 0;
    TP__TRY(tp__fitter_step(f, &n, err));
    double now = tp__now();
    if (!isfinite(f->metrics.loss_sum)) return not_a_number(f, err);
    if (now - told >= 0.1) {
      send_progress(f, now - start, s->examples, false);
      told = now;
    }
    if (tp__fitter_stopped(f)) return stop_here(f, now - start, err);
    if (s->step < steps && tp__fitter_save_due(f)) TP__TRY(save_inside_epoch(f, now - start, err));
  }
  TP__TRY(tp__fitter_settle(f, err));
  if (!isfinite(f->metrics.loss_sum)) return not_a_number(f, err);
  *seconds = tp__now() - start;
  if (f->backend->idle != NULL) f->compute = *seconds - f->backend->idle(f->backend, false);
  return TP_OK;
}

static void fill_row(const tp__fitter *f, double seconds, tp__history_row *row)
{
  const tp__progress_state *s = &f->state;
  *row = (tp__history_row){.epoch = s->epoch, .phase = s->phase, .seconds = s->seconds + seconds};
  row->rate = (double)tp__plateau_rate(
      &s->plateau, tp__schedule_rate(&f->schedule, s->iteration > 0 ? s->iteration - 1 : 0));
  row->images_per_s = seconds > 0 ? (double)(f->metrics.examples - s->examples) / seconds : 0;
  for (int q = 0; q < TP__QUANTITIES; q++) row->value[q] = NAN;
  row->value[TP__LOSS] = tp__metrics_loss(&f->metrics);
  row->value[TP__ACCURACY] = tp__metrics_accuracy(&f->metrics);
  row->value[TP__TOP_5] = tp__metrics_top_5(&f->metrics);
  if (f->val == NULL) return;
  row->value[TP__VAL_LOSS] = tp__metrics_loss(&f->val_metrics);
  row->value[TP__VAL_ACCURACY] = tp__metrics_accuracy(&f->val_metrics);
  row->value[TP__VAL_TOP_5] = tp__metrics_top_5(&f->val_metrics);
  row->value[TP__VAL_MACRO_F1] = tp__metrics_macro_f1(&f->val_metrics);
}

/* Plateau, early stopping, best checkpoint: in Keras' users' order. */
static tp_status run_callbacks(tp__fitter *f, const tp__history_row *row, bool *stop, tp_error *err)
{
  tp__progress_state *s = &f->state;
  double scheduled = (double)tp__schedule_rate(&f->schedule, s->iteration);
  if (tp__plateau_epoch(&s->plateau, row->value[f->plateau_monitor], scheduled))
    tp__say(f->job->log,
            "epoch %d: %s has not improved for %d epochs: rate %g (schedule %g x plateau %g)",
            s->epoch + 1, tp__quantity_name(f->plateau_monitor), s->plateau.patience,
            (double)tp__plateau_rate(&s->plateau, (float)scheduled), scheduled,
            s->plateau.multiplier);
  tp__verdict verdict = tp__early_stopping_epoch(&s->stopping, s->epoch - s->phase_start,
                                                 row->value[f->stop_monitor]);
  if (verdict.is_best) TP__TRY(tp__fitter_keep_stop_best(f, err));
  if (verdict.stop)
    tp__say(f->job->log, "epoch %d: %s has not improved since epoch %d: the phase ends",
            s->epoch + 1, tp__quantity_name(f->stop_monitor),
            s->phase_start + s->stopping.best_epoch + 1);
  *stop = verdict.stop;
  if (!tp__best_epoch(&s->best, s->epoch, row->value[f->best_monitor])) return TP_OK;
  memcpy(s->best_value, row->value, sizeof s->best_value);
  return tp__fitter_save_best(f, err);
}

/* Where the optimizer keeps averages, they are what is validated and kept as the best, as with
 * Keras' SwapEMAWeights; training goes on from the plain weights. */
static tp_status finish_epoch(tp__fitter *f, double train_seconds, bool *stop, tp_error *err)
{
  tp__progress_state *s = &f->state;
  double start = tp__now();
  TP__TRY(tp__learner_swap_averages(f->learner, err));
  if (f->val != NULL) {
    tp_status status = tp__fitter_validate(f, 0, err);
    if (status == TP_STOPPED) { /* validation is done again */
      TP__TRY(tp__learner_swap_averages(f->learner, err));
      return stop_here(f, train_seconds, err);
    }
    TP__TRY(status);
  }
  tp__history_row row;
  fill_row(f, train_seconds, &row);
  TP__TRY(tp__fitter_sync(f, err));
  TP__TRY(tp__fitter_same_weights(f, err));
  TP__TRY(tp__history_add(s, &row, err));
  TP__TRY(run_callbacks(f, &row, stop, err));
  TP__TRY(tp__learner_swap_averages(f->learner, err));
  send_progress(f, train_seconds, s->examples, true);
  tp__meter meter;
  tp__pipeline_meter(f->train_input, &meter, true);
  tp__cost cost = {.wall = train_seconds,
                   .compute = f->compute,
                   .waiting = meter.waiting,
                   .idle = meter.idle,
                   .read = meter.read,
                   .decode = meter.decode,
                   .finish = meter.finish,
                   .validation = tp__now() - start,
                   .threads = tp__pool_threads(f->job->pool),
                   .movable = f->backend->remote && tp__augment_movable(f->o),
                   .cached = strcmp(f->o->data.cache, "none") != 0};
  f->busy += f->compute;
  f->wall += train_seconds;
  const tp__observer *observer = f->options->observer;
  if (observer != NULL && observer->epoch != NULL)
    TP__TRY(observer->epoch(observer->user, s, &cost, err));
  s->epoch++;
  s->step = s->examples = s->right = s->right_5 = 0;
  s->loss_sum = s->seconds = 0;
  return TP_OK;
}

tp_status tp__fitter_phase(tp__fitter *f, tp_error *err)
{
  tp__progress_state *s = &f->state;
  int end = s->phase_start + phase_epochs(f);
  bool stop = false;
  TP__TRY(tp__pipeline_seek(f->train_input, (uint32_t)s->epoch, s->step, (uint32_t)end, err));
  while (s->epoch < end && !stop) {
    double seconds = 0;
    TP__TRY(train_epoch(f, &seconds, err));
    TP__TRY(finish_epoch(f, seconds, &stop, err));
    bool phase_ends = s->epoch == end || stop;
    if (!phase_ends) TP__TRY(tp__fitter_save(f, err));
  }
  if (f->o->early_stopping > 0 && f->stop_best.count > 0)
    return tp__fitter_restore_stop_best(f, err);
  TP__TRY(tp__learner_swap_averages(f->learner, err)); /* as Keras at the end of fit */
  return tp__fitter_sync(f, err);
}

/* ---- dry run ---- */

tp_status tp__fitter_dry_run(tp__fitter *f, tp_error *err)
{
  const tp__log *log = f->job->log;
  TP__TRY(tp__pipeline_seek(f->train_input, 0, 0, 1, err));
  double seconds[2] = {0}, val_seconds = 0;
  int64_t n = 0;
  int steps = tp__pipeline_steps(f->train_input) > 1 ? 2 : 1;
  for (int i = 0; i < steps; i++) {
    double start = tp__now();
    TP__TRY(tp__fitter_step(f, &n, err));
    TP__TRY(tp__fitter_settle(f, err));
    if (!isfinite(f->metrics.loss_sum)) return not_a_number(f, err);
    seconds[i] = tp__now() - start;
  }
  if (f->val != NULL) {
    double start = tp__now();
    TP__TRY(tp__fitter_validate(f, 1, err));
    val_seconds = tp__now() - start;
  }
  tp__program_info training = {0}, scoring = {0};
  tp__learner_info(f->learner, &training, &scoring);
  char a[32], w[32], r[32];
  uint64_t peak = 0;
  (void)tp__resident_bytes(&peak);
  double step = seconds[steps - 1];
  double epoch = step * (double)tp__pipeline_steps(f->train_input);
  if (f->val != NULL) epoch += val_seconds * (double)tp__pipeline_steps(f->val_input);
  tp__say(log, "dry run: memory: values %s, weights and sums %s, process %s at most so far",
          tp__bytes_text(a, training.activation_bytes + scoring.activation_bytes),
          tp__bytes_text(w, training.weight_bytes + scoring.weight_bytes), tp__bytes_text(r, peak));
  tp__say(
      log,
      "dry run: a step of %d pictures takes about %.3f s, an epoch with validation about %.0f s",
      f->batch, step, epoch);
  tp__say(log, "dry run: loss %.4f after %d steps; nothing was written",
          tp__metrics_loss(&f->metrics), steps);
  return TP_OK;
}
