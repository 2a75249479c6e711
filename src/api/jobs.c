/* jobs - the public functions that do a whole job: each checks what only it knows and hands on to
 * its room */
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "model/weights.h"
#include "options.h"
#include "prepare/prepare.h"
#include "run_files.h"
#include "train/answers.h"

/* ---- training ---- */

struct source {
  tp_context *context;
  const char *model;
};

/* Of several processes the first one fetches, the others find the file in the cache then. */
static tp_status fetch_weights(void *user, char **path, tp_error *err)
{
  const struct source *s = user;
  tp_context *c = s->context;
  bool first = tp__group_rank(c->group) == 0;
  tp_status status = first ? tp_pretrained_get(c, s->model, path, err) : TP_OK;
  status = tp__group_agree(c->group, status, err);
  return status == TP_OK && !first ? tp_pretrained_get(c, s->model, path, err) : status;
}

/* What is wrong with the weights that were named; where they are fetched from. */
static tp_status choose_weights(const tp_train_options *o, tp__fit_options *fo, tp_error *err)
{
  if (strcmp(o->weights, "none") == 0) return TP_OK;
  if (strcmp(o->weights, "imagenet") != 0) {
    fo->weights = o->weights;
    return tp__pretrained_recognize(o->weights, o->model, &fo->pretrained, err);
  }
  fo->fetch = fetch_weights;
  fo->pretrained = true;
  return tp__pretrained_check(o->model, err);
}

/* Of several processes the first one writes the files and tells how it goes. */
static tp_status fit_here(tp_context *c, const tp_train_options *o, bool resume,
                          tp_train_result *result, tp_error *error)
{
  tp__run_files files;
  bool first = tp__group_rank(c->group) == 0;
  tp__job job = c->job;
  tp__observer observer = {0};
  struct source source = {c, o->model};
  tp__fit_options fo = {.train = o, .resume = resume, .observer = &observer, .user = &source};
  if (first) {
    tp__run_files_open(&files, o, resume, &c->log);
    job.log = &files.both;
    observer = tp__run_files_observer(&files);
  }
  tp__backend *backend = NULL;
  tp_status status = tp__options_agree(TP_OPTIONS_TRAIN, o, c->group, error);
  if (status == TP_OK) status = tp__context_backend(c, &backend, error);
  if (status == TP_OK && !resume) status = choose_weights(o, &fo, error);
  status = tp__group_agree(c->group, status, error);
  if (status == TP_OK) status = tp__fit(&job, backend, &fo, result, error);
  return first ? tp__run_files_close(&files, status, error) : status;
}

static tp_status fit(tp_context *c, const tp_train_options *o, bool resume, tp_train_result *result,
                     tp_error *error)
{
  tp_error own;
  if (error == NULL) error = &own; /* log.txt tells how it ended */
  tp_status status = tp__context_group(c, error);
  if (status == TP_OK && !resume && !o->dry_run && tp__group_rank(c->group) == 0)
    status = tp__run_folder_check(o, error);
  if (status == TP_OK) status = fit_here(c, o, resume, result, error);
  status = tp__group_end(c->group, status, error);
  if (status == TP_STOPPED) c->stop = 0; /* the wish is fulfilled: the next job runs */
  return status;
}

tp_status tp_train(tp_context *c, const tp_train_options *options, tp_train_result *result,
                   tp_error *error)
{
  if (options->train.count == 0)
    return tp__fail(error, TP_ERR_USAGE,
                    "train: no training data are given; wanted as --train 'DIR/train/*.tfrec'");
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
  TP__TRY(tp__context_alone("predict", error));
  TP__TRY(tp__context_backend(c, &backend, error));
  return tp__predict(&c->job, backend, options, error);
}

tp_status tp_evaluate(tp_context *c, const tp_evaluate_options *options, tp_evaluation *evaluation,
                      tp_error *error)
{
  tp__backend *backend = NULL;
  TP__TRY(tp__context_alone("evaluate", error));
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
  TP__TRY(tp__context_alone("pack", error));
  return tp__pack(&c->job, options, error);
}

tp_status tp_draw(tp_context *c, const tp_draw_options *options, tp_error *error)
{
  TP__TRY(tp__context_alone("draw", error));
  return tp__draw(&c->job, options, error);
}
