/* fit_group - training by several processes: what they tell each other between steps; see
 * fit_parts.h
 *
 * All processes run the same loop on their own rows of each batch. Once a step they meet: who has
 * how many rows, whether somebody could not read on, wants to stop, or has left out a damaged
 * picture. After it each tells how its rows were judged, so that all have the same figures and take
 * the same decisions; process 0 writes the files. Between epochs they compare their weights.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "fit_parts.h"

bool tp__fitter_reports(const tp__fitter *f)
{
  return tp__group_rank(f->backend->group) == 0;
}

bool tp__fitter_stopped(const tp__fitter *f)
{
  return tp__group_size(f->backend->group) > 1 ? f->stop : tp__job_stopped(f->job);
}

static bool is_due(const tp__fitter *f)
{
  return f->o->checkpoint_minutes > 0 && tp__now() - f->saved_at > 60 * f->o->checkpoint_minutes;
}

bool tp__fitter_save_due(const tp__fitter *f)
{
  return tp__group_size(f->backend->group) > 1 ? f->save : is_due(f);
}

/* ---- damaged pictures ---- */

struct left_out {
  uint32_t example;
  char reason[252];
};

/* Everyone lists what the others have left out, so that all count the same. */
static tp_status share_bad(tp__fitter *f, tp__pipeline *input, size_t known, tp_error *err)
{
  tp__group *g = f->backend->group;
  size_t count = 0, bytes[TP__PROCESSES_MAX];
  const tp__bad_record *bad = tp__pipeline_bad(input, &count);
  struct left_out *own = tp__calloc(count - known, sizeof *own, err);
  if (own == NULL) return TP_ERR_INTERNAL;
  for (size_t i = known; i < count; i++) {
    own[i - known].example = tp__pipeline_bad_example(input, i);
    snprintf(own[i - known].reason, sizeof own[0].reason, "%.251s", bad[i].reason);
  }
  tp__buffer all;
  tp__buffer_init(&all, (size_t)1 << 30);
  tp_status status = tp__group_gather_any(g, own, (count - known) * sizeof *own, &all, bytes, err);
  const uint8_t *at = all.data;
  for (int r = 0; status == TP_OK && r < g->size; at += bytes[r++]) {
    for (size_t i = 0; status == TP_OK && r != g->rank && i < bytes[r] / sizeof *own; i++) {
      struct left_out other;
      memcpy(&other, at + i * sizeof other, sizeof other);
      other.reason[sizeof other.reason - 1] = '\0';
      status = tp__pipeline_add_bad(input, other.example, other.reason, err);
    }
  }
  tp__buffer_free(&all);
  free(own);
  return status;
}

/* ---- meeting ---- */

struct note {
  int64_t rows, bad; /* bad: pictures left out, those not yet shared */
  int32_t status, stop, save, padding;
};

tp_status tp__fitter_meet(tp__fitter *f, tp__pipeline *input, tp_status status, tp__batch *b,
                          tp_error *err)
{
  tp__group *g = f->backend->group;
  struct note all[TP__PROCESSES_MAX];
  size_t *known = input == f->train_input ? &f->train_bad : &f->val_bad, count = 0;
  b->total = b->n;
  if (tp__group_size(g) == 1) return status;
  (void)tp__pipeline_bad(input, &count);
  struct note own = {.rows = status == TP_OK ? b->n : 0,
                     .bad = (int64_t)(count - *known),
                     .status = (int32_t)status,
                     .stop = tp__job_stopped(f->job),
                     .save = is_due(f)};
  TP__TRY(tp__group_gather(g, &own, sizeof own, all, err));
  bool failed = false, bad = false;
  b->total = 0;
  f->stop = false;
  f->save = all[0].save != 0;
  for (int r = 0; r < g->size; r++) {
    failed |= all[r].status != TP_OK;
    bad |= all[r].bad > 0;
    f->stop |= all[r].stop != 0;
    b->total += all[r].rows;
  }
  if (!failed && bad) {
    status = share_bad(f, input, *known, err);
    (void)tp__pipeline_bad(input, known);
    failed = true; /* that there are not too many has to be agreed */
  }
  return failed ? tp__group_agree(g, status, err) : TP_OK;
}

tp_status tp__fitter_count(tp__fitter *f, const tp__flight *x, tp_error *err)
{
  tp__group *g = f->backend->group;
  tp__metrics *m = x->metrics;
  const float *weights = x->weighted ? x->weights : NULL;
  if (tp__group_size(g) == 1) {
    tp__metrics_add(m, x->n, x->scores, x->labels, x->losses, weights);
    return TP_OK;
  }
  size_t bytes[TP__PROCESSES_MAX];
  for (int64_t i = 0; i < x->n; i++)
    tp__metrics_judge(m, x->scores + i * m->classes, x->labels[i], x->losses[i],
                      weights != NULL ? weights[i] : 1, &f->judged[i]);
  TP__TRY(tp__group_gather_any(g, f->judged, (size_t)x->n * sizeof *f->judged, &f->all_judged,
                               bytes, err));
  const tp__judgement *all = (const tp__judgement *)(const void *)f->all_judged.data;
  for (size_t i = 0; i < f->all_judged.size / sizeof *all; i++) tp__metrics_count(m, &all[i]);
  return TP_OK;
}

/* ---- the same everywhere ---- */

static tp_status compare(tp__fitter *f, int64_t own, const char *what, tp_status status,
                         tp_error *err)
{
  tp__group *g = f->backend->group;
  int64_t all[TP__PROCESSES_MAX];
  TP__TRY(tp__group_gather(g, &own, sizeof own, all, err));
  for (int r = 1; r < g->size; r++) {
    if (all[r] == all[0]) continue;
    (void)tp__fail(err, status, "process %d of %d %s than process 0", r, g->size, what);
    return tp__group_agree(g, status, err);
  }
  return TP_OK;
}

tp_status tp__fitter_same_start(tp__fitter *f, tp_error *err)
{
  if (tp__group_size(f->backend->group) == 1) return TP_OK;
  const tp_train_options *o = f->o;
  const int64_t numbers[] = {f->batch,       o->epochs,     o->fine_tune_epochs, (int64_t)o->seed,
                             f->state.epoch, f->state.step, f->state.iteration};
  TP__TRY(compare(f, f->state.data, "sees other examples", TP_ERR_DATA, err));
  return compare(f, (int64_t)tp__hash_bytes(0, numbers, sizeof numbers),
                 "was given other options, or another run,", TP_ERR_USAGE, err);
}

tp_status tp__fitter_same_weights(tp__fitter *f, tp_error *err)
{
  if (tp__group_size(f->backend->group) == 1) return TP_OK;
  uint64_t hash = 0;
  for (size_t i = 0; i < f->trained.count; i++) {
    const tp__tensor *t = &f->trained.item[i];
    hash = tp__hash_bytes(hash, t->data, tp__tensor_bytes(t));
  }
  return compare(f, (int64_t)hash,
                 "has come to other weights (all need processors of one kind; TEPAL_CPU=avx2 makes "
                 "those with AVX-512 compute as those without)",
                 TP_ERR_DEVICE, err);
}
