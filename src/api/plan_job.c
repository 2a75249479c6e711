/* plan_job - the public function that plans a training; see tepal.h */
#include <stdlib.h>

#include "context.h"
#include "model/weights.h"
#include "report/plan_report.h"
#include "train/phase_options.h"

static tp_status check(const tp_plan_options *o, tp_error *err)
{
  const tp__range range[] = {
      {"classes", o->classes, 0, 1000000},
      {"examples", (double)o->examples, 0, 1e12},
      {"val_examples", (double)o->val_examples, 0, 1e12},
      {"measure", o->measure, 0, 3600},
      {"patience", o->patience, 0, 1e6},
  };
  TP__TRY(tp__ranges_check(range, sizeof range / sizeof range[0], err));
  if (o->topology == NULL)
    return tp__fail(err, TP_ERR_USAGE,
                    "topology: which machine is the plan for? As --topology v3-8 or --topology "
                    "h200");
  return TP_OK;
}

static tp_status write_answer(const tp__plan *plan, bool json, char **text, tp_error *err)
{
  tp__buffer words;
  tp__buffer_init(&words, 1 << 20);
  tp_status status = json ? tp__plan_json(plan, &words, err) : tp__plan_text(plan, &words, err);
  if (status == TP_OK)
    *text = (char *)words.data; /* tp__buffer_printf ends it with a zero */
  else
    tp__buffer_free(&words);
  return status;
}

tp_status tp_plan(tp_context *c, const tp_train_options *train, const tp_plan_options *options,
                  char **text, bool *fits, tp_error *error)
{
  tp__plan plan;
  tp__plan_options o = {.train = train,
                        .plugin = options->compiler,
                        .replicas = c->replicas,
                        .classes = options->classes,
                        .examples = options->examples,
                        .val_examples = options->val_examples,
                        .largest = options->largest,
                        .measure = options->measure,
                        .patience = options->patience > 0 ? options->patience : 1800};
  TP__TRY(check(options, error));
  TP__TRY(tp__target_parse(options->topology, &o.target, error));
  char *folder = tp__cache_folder(c->cache, NULL);
  char *cache = folder != NULL ? tp__format("%s/programs", folder) : NULL;
  o.cache = cache;
  tp_status status = tp__plan_make(&c->job, &o, &plan, error);
  if (status == TP_OK) status = write_answer(&plan, options->json, text, error);
  if (status == TP_OK) *fits = plan.fits;
  if (status == TP_STOPPED) c->stop = 0; /* the wish is fulfilled: the next job runs */
  free(cache);
  free(folder);
  return status;
}
