/* jobs - the public functions that do a whole job: each checks what only it knows and hands on to
 * its room */
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "options.h"
#include "prepare/prepare.h"
#include "run_files.h"
#include "train/answers.h"

/* ---- training ---- */

static tp_status fit(tp_context *c, const tp_train_options *o, bool resume, tp_train_result *result,
                     tp_error *error)
{
  tp_error own;
  tp__run_files files;
  if (error == NULL) error = &own; /* log.txt tells how it ended */
  tp__run_files_open(&files, o, resume, &c->log);
  tp__job job = c->job;
  job.log = &files.both;
  tp__observer observer = tp__run_files_observer(&files);
  tp__fit_options fo = {.train = o, .resume = resume, .observer = &observer};
  char *weights = NULL;
  tp_status status = TP_OK;
  tp__backend *backend = NULL;
  status = tp__context_backend(c, &backend, error);
  if (status == TP_OK && !resume)
    status = tp__weights_find(c, o->weights, o->model, &weights, &fo.pretrained, error);
  fo.weights = weights;
  if (status == TP_OK) status = tp__fit(&job, backend, &fo, result, error);
  free(weights);
  status = tp__run_files_close(&files, status, error);
  if (status == TP_STOPPED) c->stop = 0; /* the wish is fulfilled: the next job runs */
  return status;
}

tp_status tp_train(tp_context *c, const tp_train_options *options, tp_train_result *result,
                   tp_error *error)
{
  if (options->train.count == 0)
    return tp__fail(error, TP_ERR_USAGE,
                    "train: no training data are given; wanted as --train 'DIR/train/*.tfrec'");
  if (!options->dry_run) TP__TRY(tp__run_folder_check(options, error));
  return fit(c, options, false, result, error);
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
  tp__backend *backend = NULL;
  TP__TRY(tp__context_backend(c, &backend, error));
  return tp__predict(&c->job, backend, options, error);
}

tp_status tp_evaluate(tp_context *c, const tp_evaluate_options *options, tp_evaluation *evaluation,
                      tp_error *error)
{
  tp__backend *backend = NULL;
  bool files = options->predictions != NULL || options->truth != NULL;
  if (!files) TP__TRY(tp__context_backend(c, &backend, error));
  return tp__evaluate(&c->job, backend, options, evaluation, error);
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
