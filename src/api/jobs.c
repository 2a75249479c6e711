/* jobs - the public functions that do a whole job: each checks what only it knows and hands on to
 * its room */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "context.h"
#include "options.h"
#include "prepare/prepare.h"
#include "report/report.h"
#include "train/answers.h"

/* ---- the run's files: recipe.ini, history.csv, event files, log.txt ---- */

struct run_files {
  const char *run;
  tp__events *events;
  FILE *log;     /* log.txt, appended to */
  tp__log outer; /* the caller's sink */
  tp__log both;
};

static void log_line(void *user, tp__level level, const char *text)
{
  struct run_files *r = user;
  if (r->outer.line != NULL) r->outer.line(r->outer.user, level, text);
  if (r->log == NULL) return;
  char stamp[32];
  time_t now = time(NULL);
  struct tm tm;
  strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &tm));
  fprintf(r->log, "%s %s%s\n", stamp, level == TP__WARNING ? "warning: " : "", text);
  fflush(r->log);
}

static tp_status run_started(void *user, const tp__progress_state *state, bool resumed,
                             tp_error *err)
{
  (void)state;
  (void)resumed;
  struct run_files *r = user;
  return tp__events_open(r->run, &r->events, err);
}

static tp_status write_history(struct run_files *r, const tp__progress_state *state, tp_error *err)
{
  char *path = tp__format("%s/history.csv", r->run);
  tp_status status = path == NULL ? tp__no_memory(err, 64) : tp__history_write(path, state, err);
  free(path);
  return status;
}

static tp_status run_epoch(void *user, const tp__progress_state *state, const tp__cost *cost,
                           tp_error *err)
{
  struct run_files *r = user;
  const tp__history_row *row = &state->history[state->n_history - 1];
  char text[160];
  if (r->log != NULL) {
    fprintf(r->log, "epoch %d:", row->epoch + 1);
    for (int q = 0; q < TP__QUANTITIES; q++)
      if (!isnan(row->value[q]))
        fprintf(r->log, " %s %.4f", tp__quantity_name((tp__quantity)q), row->value[q]);
    fprintf(r->log, ", rate %g, %.1f s\n", row->rate, row->seconds);
  }
  TP__TRY(write_history(r, state, err));
  TP__TRY(tp__events_epoch(r->events, row, err));
  tp__say(&r->both, "epoch %d: %s", row->epoch + 1, tp__cost_text(cost, text));
  return TP_OK;
}

/* ---- the run's folder ---- */

static tp_status refuse_or_replace(const char *run, bool overwrite, tp_error *err)
{
  static const char *const file[] = {"recipe.ini", "last.safetensors", "best.safetensors",
                                     "best.h5", "history.csv"};
  for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
    char *path = tp__format("%s/%s", run, file[i]);
    if (path == NULL) return tp__no_memory(err, 64);
    bool there = tp__is_file(path);
    tp_status status = TP_OK;
    if (there && !overwrite)
      status = tp__fail(
          err, TP_ERR_USAGE,
          "%s: a run is there already: --resume %s goes on with it, --overwrite replaces it, "
          "or choose another --run",
          run, run);
    else if (there && unlink(path) != 0)
      status = tp__fail(err, TP_ERR_OUTPUT, "%s: cannot be removed: %s", path, strerror(errno));
    free(path);
    TP__TRY(status);
  }
  return TP_OK;
}

static tp_status make_run(const tp_train_options *o, tp_error *err)
{
  if (o->run == NULL || o->run[0] == '\0')
    return tp__fail(err, TP_ERR_USAGE, "run: a folder for the run is wanted, as --run runs/first");
  if (o->train.count == 0)
    return tp__fail(err, TP_ERR_USAGE,
                    "train: no training data are given; wanted as --train 'DIR/train/*.tfrec'");
  TP__TRY(tp__make_folder(o->run, err));
  TP__TRY(refuse_or_replace(o->run, o->overwrite, err));
  char *path = tp__format("%s/recipe.ini", o->run);
  tp_status status =
      path == NULL ? tp__no_memory(err, 64) : tp__options_write(TP_OPTIONS_TRAIN, o, path, err);
  free(path);
  return status;
}

/* Nothing was trained: takes back what make_run wrote, so that the same command can be given again.
 */
static void unmake_run(const tp_train_options *o)
{
  char *last = tp__format("%s/last.safetensors", o->run);
  char *recipe = tp__format("%s/recipe.ini", o->run), *log = tp__format("%s/log.txt", o->run);
  if (last != NULL && recipe != NULL && log != NULL && !tp__is_file(last)) {
    unlink(recipe);
    unlink(log);
    rmdir(o->run); /* only when it is empty */
  }
  free(last);
  free(recipe);
  free(log);
}

/* ---- training ---- */

static tp_status fit(tp_context *c, const tp_train_options *o, bool resume, tp_train_result *result,
                     tp_error *error)
{
  struct run_files r = {.run = o->run, .outer = c->log};
  r.both = (tp__log){.line = log_line, .user = &r};
  tp__job job = c->job;
  job.log = &r.both;
  tp__observer observer = {.user = &r, .started = run_started, .epoch = run_epoch};
  tp__fit_options fo = {.train = o, .resume = resume, .observer = &observer};
  char *weights = NULL, *log_path = tp__format("%s/log.txt", o->run != NULL ? o->run : ".");
  tp_status status = log_path == NULL ? tp__no_memory(error, 64) : TP_OK;
  if (status == TP_OK && !o->dry_run) r.log = fopen(log_path, "ae");
  if (status == TP_OK && !resume)
    status = tp__weights_find(c, o->weights, o->model, &weights, &fo.pretrained, error);
  fo.weights = weights;
  if (status == TP_OK) status = tp__fit(&job, c->backend, &fo, result, error);
  if (status != TP_OK && error != NULL && r.log != NULL) fprintf(r.log, "ended: %s\n", error->text);
  tp_status closed = tp__events_close(r.events, status == TP_OK ? error : NULL);
  if (r.log != NULL) fclose(r.log);
  free(weights);
  free(log_path);
  return status != TP_OK ? status : closed;
}

tp_status tp_train(tp_context *c, const tp_train_options *options, tp_train_result *result,
                   tp_error *error)
{
  if (options->dry_run) return fit(c, options, false, result, error);
  TP__TRY(make_run(options, error));
  tp_status status = fit(c, options, false, result, error);
  if (status != TP_OK && status != TP_STOPPED) unmake_run(options);
  return status;
}

tp_status tp_train_resume(tp_context *c, const char *run, tp_train_result *result, tp_error *error)
{
  tp_train_options o;
  tp_options_default(TP_OPTIONS_TRAIN, &o);
  char *recipe = tp__format("%s/recipe.ini", run);
  tp_status status = recipe == NULL ? tp__no_memory(error, 64) : TP_OK;
  if (status == TP_OK && !tp__is_file(recipe))
    status = tp__fail(error, TP_ERR_DATA, "%s: is no run: it holds no recipe.ini", run);
  if (status == TP_OK) status = tp_options_read(TP_OPTIONS_TRAIN, &o, recipe, error);
  o.run = run;
  if (status == TP_OK) status = fit(c, &o, true, result, error);
  tp_options_free(TP_OPTIONS_TRAIN, &o);
  free(recipe);
  return status;
}

/* ---- the other jobs ---- */

tp_status tp_predict(tp_context *c, const tp_predict_options *options, tp_error *error)
{
  return tp__predict(&c->job, c->backend, options, error);
}

tp_status tp_evaluate(tp_context *c, const tp_evaluate_options *options, tp_evaluation *evaluation,
                      tp_error *error)
{
  return tp__evaluate(&c->job, c->backend, options, evaluation, error);
}

tp_status tp_inspect(tp_context *c, const tp_inspect_options *options, tp_inspection *inspection,
                     tp_error *error)
{
  return tp__inspect(&c->job, options, inspection, error);
}

void tp_inspection_free(tp_inspection *inspection)
{
  if (inspection == NULL) return;
  free(inspection->text);
  *inspection = (tp_inspection){0};
}

tp_status tp_pack(tp_context *c, const tp_pack_options *options, tp_error *error)
{
  return tp__pack(&c->job, options, error);
}

tp_status tp_draw(tp_context *c, const tp_draw_options *options, tp_error *error)
{
  return tp__draw(&c->job, options, error);
}
