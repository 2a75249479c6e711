/* planning_input - see planning_input.h */
#include "planning_input.h"

#include "transfer.h"

static tp_status count_classes(tp__plan_input *x, const tp__labels *names, tp_error *err)
{
  size_t folders = 0;
  int known = (int)names->count;
  if (x->train != NULL) {
    (void)tp__catalog_labels(x->train, &folders);
    known = folders > 0 ? (int)folders : tp__data_classes(x->train);
  }
  if (x->o->classes > 0 && known > 0 && x->o->classes != known)
    return tp__fail(err, TP_ERR_USAGE, "classes: %d are given, the data or labels have %d",
                    x->o->classes, known);
  x->plan->classes = known > 0 ? known : x->o->classes;
  if (x->plan->classes < 2)
    return tp__fail(err, TP_ERR_USAGE,
                    "classes: how many there are must be known: from the data (--train), a file of "
                    "their names (--labels), or as --classes 104");
  return TP_OK;
}

static tp_status open_sets(tp__plan_input *x, tp__labels *names, tp_error *err)
{
  const tp_train_options *t = x->o->train;
  if (t->data.labels != NULL) {
    tp_status status = tp__labels_read(t->data.labels, names, err);
    if (status != TP_OK) return tp__at(err, status, "labels");
  }
  const char *const *name = names->count > 0 ? names->name : NULL;
  if (t->train.count > 0)
    TP__TRY(tp__data_open(x->job, &t->data, &t->train, "training set", name, (int)names->count,
                          true, &x->train, err));
  if (t->val.count > 0)
    TP__TRY(tp__data_open(x->job, &t->data, &t->val, "validation set", name, (int)names->count,
                          true, &x->val, err));
  return TP_OK;
}

static tp_status only_one(const char *name, const tp__catalog *catalog, int64_t given,
                          int64_t *examples, tp_error *err)
{
  if (catalog != NULL && given > 0)
    return tp__fail(err, TP_ERR_USAGE,
                    "%s: is for plans without data; the data that are given have %zu", name,
                    tp__catalog_count(catalog));
  *examples = catalog != NULL ? (int64_t)tp__catalog_count(catalog) : given;
  return TP_OK;
}

tp_status tp__plan_input_open(tp__plan_input *x, const tp__job *job, const tp__plan_options *o,
                              tp__plan *plan, tp_error *err)
{
  tp__labels names = {0};
  *x = (tp__plan_input){.job = job, .o = o, .plan = plan};
  tp_status status = open_sets(x, &names, err);
  if (status == TP_OK) status = count_classes(x, &names, err);
  tp__labels_free(&names);
  if (status == TP_OK) status = only_one("examples", x->train, o->examples, &plan->examples, err);
  if (status == TP_OK)
    status = only_one("val_examples", x->val, o->val_examples, &plan->val_examples, err);
  return status;
}

static tp_status make_input(tp__plan_input *x, tp__pipeline_options *input, tp_error *err)
{
  const tp__plan *plan = x->plan;
  TP__TRY(tp__train_input(x->o->train, plan->height, plan->width, plan->batch * plan->replicas,
                          input, err));
  input->catalog = x->train;
  tp__augment_move(x->o->train, &input->recipe, &x->augment);
  return TP_OK;
}

tp_status tp__plan_input_transfer(tp__plan_input *x, tp_error *err)
{
  tp__pipeline_options input;
  TP__TRY(make_input(x, &input, err));
  x->varies = tp__input_varies(&input);
  return tp__transfer_bytes(x->o->train->transfer, x->job, &input,
                            (const tp__catalog *[]){x->train, x->val}, &x->plan->bytes, err);
}

static tp_status count_pictures(tp__pipeline *pipeline, double seconds, double *per_second,
                                tp_error *err)
{
  tp__batch batch;
  TP__TRY(tp__pipeline_seek(pipeline, 0, 0, 0, err));
  TP__TRY(tp__pipeline_next(pipeline, &batch, err)); /* files are open, threads awake */
  double start = tp__now(), now = start;
  int64_t pictures = 0;
  while (now - start < seconds) {
    TP__TRY(tp__pipeline_next(pipeline, &batch, err));
    pictures += batch.n;
    now = tp__now();
  }
  *per_second = (double)pictures / (now - start);
  return TP_OK;
}

tp_status tp__plan_input_measure(tp__plan_input *x, tp_error *err)
{
  tp__pipeline_options input;
  tp__pipeline *pipeline = NULL;
  if (x->train == NULL || x->o->measure <= 0) return TP_OK;
  TP__TRY(make_input(x, &input, err));
  TP__TRY(tp__data_pipeline(&x->o->train->data, x->train, &input, err));
  input.steps_per_epoch = 0;
  tp_status status = tp__pipeline_new(&input, x->job->pool, x->job->log, &pipeline, err);
  if (status == TP_OK) status = count_pictures(pipeline, x->o->measure, &x->plan->host, err);
  tp__pipeline_free(pipeline);
  if (status != TP_OK) return tp__at(err, status, "training set");
  x->plan->threads = tp__pool_threads(x->job->pool);
  x->plan->measured = true;
  return TP_OK;
}

void tp__plan_input_close(tp__plan_input *x)
{
  tp__catalog_free(x->train);
  tp__catalog_free(x->val);
}
