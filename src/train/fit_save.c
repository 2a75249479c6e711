/* fit_save - what training writes and restores; see fit_parts.h */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/bad_records.h"
#include "fit_parts.h"

char *tp__fitter_path(const tp__fitter *f, const char *file)
{
  return tp__format("%s/%s", f->o->run, file);
}

static void copy_by_name(const tp__tensors *from, tp__tensors *to)
{
  for (size_t i = 0; i < from->count; i++) {
    tp__tensor *t = tp__tensors_find(to, from->item[i].name);
    if (t != NULL) memcpy(t->data, from->item[i].data, tp__tensor_bytes(t));
  }
}

tp_status tp__fitter_sync(tp__fitter *f, tp_error *err)
{
  return tp__learner_read(f->learner, &f->trained, err);
}

tp_status tp__fitter_save(tp__fitter *f, tp_error *err)
{
  f->state.batch = f->batch;
  if (!tp__fitter_reports(f)) return tp__fitter_sync(f, err);
  tp__tensors slots = {0};
  char *path = tp__fitter_path(f, "last.safetensors");
  tp_status status = path == NULL ? tp__no_memory(err, 64) : tp__fitter_sync(f, err);
  if (status == TP_OK) status = tp__learner_slots(f->learner, &slots, err);
  if (status == TP_OK)
    status = tp__checkpoint_write(path, &f->identity, &f->state, &f->weights, &slots, &f->stop_best,
                                  err);
  tp__tensors_free(&slots);
  free(path);
  f->saved_at = tp__now();
  f->saves += status == TP_OK;
  return status;
}

/* Without history and sums of the epoch, which hold times and say where the run was interrupted:
 * the bytes of this file are a function of data, options and seed. */
tp_status tp__fitter_list_bad(tp__fitter *f, tp_error *err)
{
  const tp__catalog *const catalog[] = {f->train, f->val};
  const tp__pipeline *const input[] = {f->train_input, f->val_input};
  size_t count = 0, n = 0;
  tp__buffer text;
  tp__buffer_init(&text, SIZE_MAX);
  tp_status status = TP_OK;
  for (int i = 0; status == TP_OK && i < 2 && catalog[i] != NULL; i++) {
    const tp__bad_record *bad = tp__catalog_bad(catalog[i], &n);
    status = tp__bad_records_print(bad, n, &text, err);
    count += n;
    bad = tp__pipeline_bad(input[i], &n);
    if (status == TP_OK) status = tp__bad_records_print(bad, n, &text, err);
    count += n;
  }
  bool write = count > 0 && tp__fitter_reports(f);
  char *path = write ? tp__fitter_path(f, "bad-records.tsv") : NULL;
  if (status == TP_OK && path != NULL) status = tp__file_write(path, text.data, text.size, err);
  if (status == TP_OK && path != NULL)
    tp__warn(f->job->log, "%zu damaged records were left out; they are listed in %s", count, path);
  tp__buffer_free(&text);
  free(path);
  return status;
}

tp_status tp__fitter_save_best(tp__fitter *f, tp_error *err)
{
  if (!tp__fitter_reports(f)) return TP_OK;
  f->state.batch = f->batch;
  tp__progress_state s = f->state;
  s.history = NULL;
  s.n_history = s.history_capacity = 0;
  s.examples = s.right = s.right_5 = 0;
  s.loss_sum = s.seconds = 0;
  char *path = tp__fitter_path(f, "best.safetensors");
  tp_status status =
      path == NULL ? tp__no_memory(err, 64)
                   : tp__checkpoint_write(path, &f->identity, &s, &f->weights, NULL, NULL, err);
  free(path);
  return status;
}

tp_status tp__fitter_save_finished(tp__fitter *f, tp_error *err)
{
  if (!tp__fitter_reports(f)) return TP_OK;
  char *best = tp__fitter_path(f, "best.safetensors"),
       *last = tp__fitter_path(f, "last.safetensors");
  tp__identity identity = {0};
  tp__tensors weights = {0};
  tp_status status = best == NULL || last == NULL ? tp__no_memory(err, 64) : TP_OK;
  if (status == TP_OK)
    status = tp__checkpoint_read(best, &identity, NULL, &weights, NULL, NULL, err);
  if (status == TP_OK)
    status = tp__checkpoint_write(last, &f->identity, &f->state, &weights, NULL, NULL, err);
  tp__identity_free(&identity);
  tp__tensors_free(&weights);
  free(best);
  free(last);
  return status;
}

tp_status tp__fitter_keep_stop_best(tp__fitter *f, tp_error *err)
{
  tp__tensors_free(&f->stop_best);
  return tp__tensors_copy(&f->trained, &f->stop_best, err);
}

tp_status tp__fitter_restore_stop_best(tp__fitter *f, tp_error *err)
{
  if (f->stop_best.count == 0) return TP_OK;
  copy_by_name(&f->stop_best, &f->weights);
  tp_status status = tp__learner_write(f->learner, &f->stop_best, err);
  tp__tensors_free(&f->stop_best);
  return status;
}
