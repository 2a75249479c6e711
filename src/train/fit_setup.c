/* fit_setup - opens everything a training needs, and refuses what is provably wrong before the
 * first step; see fit_parts.h */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "fit_parts.h"
#include "model/weights_load.h"
#include "phase_options.h"
#include "transfer.h"

/* ---- monitors ---- */

/* A monitor of validation falls back to the training's own figure where there is no validation. */
static tp_status monitor_of(const tp__fitter *f, const char *option, const char *name,
                            tp__quantity *quantity, tp_error *err)
{
  bool has_val = f->o->val.count > 0;
  if (!has_val && strncmp(name, "val_", 4) == 0 &&
      tp__quantity_of(option, name + 4, false, quantity, NULL) == TP_OK) {
    tp__say(f->job->log, "%s: no validation data, so %s is watched instead of %s", option, name + 4,
            name);
    return TP_OK;
  }
  return tp__quantity_of(option, name, has_val, quantity, err);
}

static tp_status read_monitors(tp__fitter *f, tp_error *err)
{
  const tp_train_options *o = f->o;
  TP__TRY(
      monitor_of(f, "early_stopping_monitor", o->early_stopping_monitor, &f->stop_monitor, err));
  TP__TRY(monitor_of(f, "plateau_monitor", o->plateau_monitor, &f->plateau_monitor, err));
  return monitor_of(f, "best_monitor", o->best_monitor, &f->best_monitor, err);
}

/* ---- data ---- */

static tp_status open_data(tp__fitter *f, tp__labels *names, tp_error *err)
{
  const tp_train_options *o = f->o;
  const tp_data_options *d = &o->data;
  size_t known = 0;
  tp_status status = d->labels == NULL ? TP_OK : tp__labels_read(d->labels, names, err);
  if (status != TP_OK) return tp__at(err, status, "labels");
  known = names->count;
  TP__TRY(tp__data_open(f->job, d, &o->train, "training set", known > 0 ? names->name : NULL,
                        (int)known, true, &f->train, err));
  size_t folders = 0;
  const char *const *found = tp__catalog_labels(f->train, &folders);
  int classes = folders > 0 ? (int)folders : tp__data_classes(f->train);
  if (classes < 2)
    return tp__fail(err, TP_ERR_DATA,
                    "training set: all examples are of one class: nothing to learn");
  /* The largest label decides: one that is far off, or ids in place of classes, would ask for a
   * giant head. */
  if (folders == 0 && (size_t)classes > tp__catalog_count(f->train))
    return tp__fail(err, TP_ERR_DATA,
                    "training set: the labels run up to %d, but there are only %zu examples: say "
                    "how many classes there are with a file of their names (labels)",
                    classes - 1, tp__catalog_count(f->train));
  f->identity.spec.classes = classes;
  if (folders > 0) {
    const char **list = tp__arena_alloc(&f->identity.arena, folders * sizeof *list);
    for (size_t i = 0; list != NULL && i < folders; i++) {
      list[i] = tp__arena_strdup(&f->identity.arena, found[i]);
      if (list[i] == NULL) list = NULL;
    }
    if (list == NULL) return tp__no_memory(err, folders * 16);
    f->identity.labels = list;
  }
  if (o->val.count == 0) return TP_OK;
  return tp__data_open(f->job, d, &o->val, "validation set", f->identity.labels, classes, true,
                       &f->val, err);
}

static tp_status open_inputs(tp__fitter *f, tp_error *err)
{
  const tp_train_options *o = f->o;
  tp__pipeline_options p;
  TP__TRY(tp__train_input(o, f->identity.spec.height, f->identity.spec.width, f->batch, &p, err));
  p.catalog = f->train;
  if (f->backend->remote) tp__augment_move(o, &p.recipe, &f->augment);
  if (f->backend->remote)
    TP__TRY(tp__transfer_bytes(o->transfer, f->job, &p, (const tp__catalog *[]){f->train, f->val},
                               &f->bytes, err));
  size_t n = tp__catalog_count(f->train);
  p.process = tp__group_rank(f->backend->group);
  p.processes = tp__group_size(f->backend->group);
  p.replicas = f->backend->replicas / p.processes;
  TP__TRY(tp__feature_memory_init(&f->train_features, n, f->rows, err));
  p.known = f->train_features.known;
  TP__TRY(tp__data_pipeline(&o->data, f->train, &p, err));
  tp_status status = tp__pipeline_new(&p, f->job->pool, f->job->log, &f->train_input, err);
  if (status != TP_OK) return tp__at(err, status, "training set");
  if (f->val == NULL) return TP_OK;
  n = tp__catalog_count(f->val);
  TP__TRY(tp__feature_memory_init(&f->val_features, n, f->rows, err));
  p.known = f->val_features.known;
  p.catalog = f->val;
  p.prefetch = 1; /* memory; one batch ahead keeps all threads busy */
  p.training = false;
  p.recipe.crop = 0;
  if (o->data.fast_decode) tp__image_recipe_decode_less(&p.recipe);
  p.steps_per_epoch = o->validation_steps;
  TP__TRY(tp__data_pipeline(&o->data, f->val, &p, err));
  status = tp__pipeline_new(&p, f->job->pool, f->job->log, &f->val_input, err);
  return status == TP_OK ? TP_OK : tp__at(err, status, "validation set");
}

/* Of both phases now: the second's fault is not to be found hours later. */
static tp_status check_schedules(const tp__fitter *f, tp_error *err)
{
  const int epochs[] = {f->o->epochs, f->o->fine_tune_epochs};
  tp__schedule schedule;
  for (int phase = 0; phase < 2; phase++)
    if (epochs[phase] > 0)
      TP__TRY(tp__schedule_make(
          f->o, phase == 1, tp__pipeline_steps(f->train_input) * epochs[phase], &schedule, err));
  return TP_OK;
}

/* ---- network ---- */

static tp_status load_weights(tp__fitter *f, const tp__net *net, tp_error *err)
{
  const tp__fit_options *options = f->options;
  char *fetched = NULL;
  TP__TRY(tp__net_init(net, f->o->seed, &f->weights, err));
  if (options->fetch != NULL) TP__TRY(options->fetch(options->user, &fetched, err));
  const char *path = fetched != NULL ? fetched : options->weights;
  tp_status status =
      path == NULL ? TP_OK
                   : tp__weights_load(path, net, &f->weights,
                                      options->pretrained || f->o->skip_mismatch, f->job->log, err);
  free(fetched);
  return status;
}

static tp_status open_network(tp__fitter *f, tp_error *err)
{
  tp__net *net = NULL;
  TP__TRY(tp__net_build(&f->identity.spec, false, &net, err));
  tp_status status = load_weights(f, net, err);
  if (status == TP_OK && f->o->fine_tune_epochs > 0) {
    status = tp__net_freeze(net, f->o->fine_tune_layers, err);
    if (status != TP_OK) status = tp__at(err, status, "fine_tune_layers");
  }
  tp__net_free(net);
  return status;
}

/* Over ids and labels of all examples, in order. */
static int64_t fingerprint(const tp__fitter *f)
{
  const tp__catalog *const set[] = {f->train, f->val};
  uint64_t hash = TP__HASH_BEGIN;
  for (int k = 0; k < 2 && set[k] != NULL; k++) {
    for (size_t i = 0; i < tp__catalog_count(set[k]); i++) {
      const tp__record *r = tp__catalog_record(set[k], i);
      hash = tp__hash_add_text(tp__hash_add(hash, (uint32_t)r->label), r->id);
    }
  }
  return (int64_t)hash;
}

static tp_status read_checkpoint(tp__fitter *f, tp_error *err)
{
  char *path = tp__fitter_path(f, "last.safetensors");
  if (path == NULL) return tp__no_memory(err, 64);
  tp__identity stored = {0};
  tp_status status =
      tp__checkpoint_read(path, &stored, &f->state, &f->weights, &f->slots, &f->stop_best, err);
  if (status == TP_OK && (stored.spec.classes != f->identity.spec.classes ||
                          strcmp(stored.spec.name, f->identity.spec.name) != 0))
    status = tp__fail(err, TP_ERR_DATA,
                      "%s: was made for %s with %d classes; the data and recipe now say %s with %d",
                      path, stored.spec.name, stored.spec.classes, f->identity.spec.name,
                      f->identity.spec.classes);
  if (status == TP_OK && f->state.data != fingerprint(f))
    status = tp__fail(
        err, TP_ERR_DATA,
        "%s: the run began with other examples than the data hold now (ids, labels or their "
        "order differ): it cannot go on as if nothing had changed",
        path);
  for (size_t i = 0; status == TP_OK && i < f->stop_best.count; i++) {
    const tp__tensor *kept = &f->stop_best.item[i];
    const tp__tensor *w = tp__tensors_find(&f->weights, kept->name);
    if (w == NULL || w->dtype != kept->dtype || !tp__shape_equal(&w->shape, &kept->shape))
      status = tp__fail(err, TP_ERR_DATA, "%s: %s is kept for early stopping but fits no weights",
                        path, kept->name);
  }
  if (status == TP_OK) f->identity.spec.official_preprocessing = stored.spec.official_preprocessing;
  tp__identity_free(&stored);
  free(path);
  return status;
}

/* ---- scratch ---- */

static tp_status make_scratch(tp__fitter *f, tp_error *err)
{
  size_t classes = (size_t)f->identity.spec.classes;
  f->class_weight = tp__calloc(classes, sizeof(float), err);
  if (f->class_weight == NULL) return TP_ERR_INTERNAL;
  TP__TRY(tp__fitter_make_flights(f, err));
  TP__TRY(tp__metrics_init(&f->metrics, (int)classes, err));
  TP__TRY(tp__metrics_init(&f->val_metrics, (int)classes, err));
  f->judged = tp__calloc((size_t)f->rows, sizeof *f->judged, err);
  if (f->judged == NULL) return TP_ERR_INTERNAL;
  tp__buffer_init(&f->all_judged, SIZE_MAX);
  return tp__class_weights_make(f->o->class_weights, f->train, (int)classes, f->job->log,
                                f->class_weight, &f->weighted, err);
}

/* A run keeps the batch that it began with, whatever replicas and processes share it now: rates and
 * schedule were made for it. */
static void set_batch(tp__fitter *f)
{
  int processes = tp__group_size(f->backend->group), all = f->backend->replicas;
  f->batch = f->o->batch * all;
  if (f->state.batch > 0 && f->state.batch != f->batch) {
    tp__say(f->job->log,
            "the run's batch of %lld examples is kept, not %d for each of %d replica%s",
            (long long)f->state.batch, f->o->batch, all, all == 1 ? "" : "s");
    f->batch = (int)f->state.batch;
  }
  f->rows = (int)tp__group_rows_most(processes, all / processes, f->batch);
}

tp_status tp__fitter_setup(tp__fitter *f, tp_error *err)
{
  const tp_train_options *o = f->o;
  tp__model_spec *spec = &f->identity.spec;
  tp__labels names = {0};
  if (o->train.count == 0) return tp__fail(err, TP_ERR_USAGE, "train: no training data were given");
  TP__TRY(tp__train_check(o, err));
  TP__TRY(read_monitors(f, err));
  TP__TRY(tp__size_parse("image_size", o->image_size, &spec->height, &spec->width, err));
  TP__TRY(tp__dct_parse(o->data.dct, &f->identity.accurate_dct, err));
  f->identity.exif_rotate = o->data.exif_rotate;
  f->identity.antialias = o->data.antialias;
  f->identity.fast_decode = o->data.fast_decode;
  spec->name = o->model;
  spec->dropout = (float)o->dropout;
  spec->official_preprocessing = f->options->pretrained && tp__model_has_official(o->model);
  tp_status status = open_data(f, &names, err);
  tp__labels_free(&names);
  if (status == TP_OK && f->options->resume) status = read_checkpoint(f, err);
  if (status == TP_OK) set_batch(f);
  if (status == TP_OK) status = open_inputs(f, err);
  if (status == TP_OK) status = check_schedules(f, err);
  if (status == TP_OK) status = make_scratch(f, err);
  if (status == TP_OK && !f->options->resume) status = open_network(f, err);
  if (status == TP_OK) f->state.data = fingerprint(f);
  return status;
}

void tp__fitter_free(tp__fitter *f)
{
  tp__fitter_free_flights(f);
  tp__learner_free(f->learner);
  tp__pipeline_free(f->train_input);
  tp__pipeline_free(f->val_input);
  tp__feature_memory_free(&f->train_features);
  tp__feature_memory_free(&f->val_features);
  tp__catalog_free(f->train);
  tp__catalog_free(f->val);
  tp__tensors_free(&f->weights);
  free(f->trained.item);
  tp__tensors_free(&f->stop_best);
  tp__tensors_free(&f->slots);
  tp__metrics_free(&f->metrics);
  tp__metrics_free(&f->val_metrics);
  tp__progress_state_free(&f->state);
  tp__identity_free(&f->identity);
  free(f->class_weight);
  free(f->judged);
  tp__buffer_free(&f->all_judged);
}
