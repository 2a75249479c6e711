/* shards - see shards.h */
#include "shards.h"

#include <math.h>
#include <stdlib.h>

enum { GROUP = 64 }; /* records made at a time */

/* ---- progress ---- */

static void tell(tp__tally *t, bool done)
{
  double now = tp__now(), seconds = now - t->start;
  double rate = seconds > 0 ? (double)t->done / seconds : 0;
  tp_progress p = {.stage = t->stage,
                   .step = t->done,
                   .steps = t->total,
                   .images_per_s = rate,
                   .seconds = seconds,
                   .seconds_left = rate > 0 ? (double)(t->total - t->done) / rate : -1,
                   .loss = NAN,
                   .accuracy = NAN,
                   .val_loss = NAN,
                   .val_accuracy = NAN,
                   .learning_rate = NAN,
                   .done = done};
  t->told = now;
  tp__job_progress(t->job, &p);
}

void tp__tally_start(tp__tally *t, const tp__job *job, const char *stage, int64_t total)
{
  *t = (tp__tally){.job = job, .stage = stage, .total = total, .start = tp__now()};
}

void tp__tally_add(tp__tally *t, int64_t count)
{
  t->done += count;
  if (tp__now() - t->told >= 0.1) tell(t, false);
}

void tp__tally_end(tp__tally *t)
{
  tell(t, true);
}

/* ---- writing ---- */

struct group {
  tp__record_fn make;
  void *arg;
  size_t first; /* item of the group's first record */
  struct made {
    tp__buffer bytes;
    tp__example_fields fields;
    bool skip;
    tp_status status;
    tp_error err;
  } made[GROUP];
};

static void make_one(void *arg, size_t index, int worker)
{
  struct group *g = arg;
  struct made *m = &g->made[index];
  m->bytes.size = 0;
  m->fields = (tp__example_fields){.label = -1};
  m->skip = false;
  m->status = g->make(g->arg, g->first + index, worker, &m->bytes, &m->fields, &m->skip, &m->err);
  if (m->fields.image == NULL) {
    m->fields.image = m->bytes.data;
    m->fields.image_size = m->bytes.size;
  }
}

static tp_status write_group(tp__tally *tally, struct group *g, size_t n, tp__shard_writer *shard,
                             tp_error *err)
{
  if (tp__job_stopped(tally->job)) return tp__fail(err, TP_STOPPED, "stopped");
  tp__pool_for(tally->job->pool, n, make_one, g);
  for (size_t i = 0; i < n; i++) {
    struct made *m = &g->made[i];
    if (m->status != TP_OK) {
      if (err != NULL) *err = m->err;
      return m->status;
    }
    if (!m->skip) TP__TRY(tp__shard_writer_add(shard, &m->fields, err));
  }
  tp__tally_add(tally, (int64_t)n);
  return TP_OK;
}

static tp_status write_shard(tp__tally *tally, struct group *g, const char *folder, int index,
                             size_t first, size_t end, int width, int height, tp_error *err)
{
  tp__shard_writer shard;
  TP__TRY(tp__shard_writer_open(&shard, folder, index, width, height, err));
  for (size_t at = first; at < end; at += GROUP) {
    g->first = at;
    tp_status status = write_group(tally, g, end - at < GROUP ? end - at : GROUP, &shard, err);
    if (status != TP_OK) {
      tp__shard_writer_cancel(&shard);
      return status;
    }
  }
  return tp__shard_writer_commit(&shard, NULL, err);
}

tp_status tp__write_shards(tp__tally *tally, const char *folder, size_t count, size_t shards,
                           int width, int height, tp__record_fn make, void *arg, tp_error *err)
{
  struct group *g = tp__calloc(1, sizeof *g, err);
  if (g == NULL) return TP_ERR_INTERNAL;
  g->make = make;
  g->arg = arg;
  for (size_t i = 0; i < GROUP; i++) tp__buffer_init(&g->made[i].bytes, (size_t)UINT32_MAX);
  tp_status status = TP_OK;
  for (size_t i = 0; i < shards && status == TP_OK; i++)
    status = write_shard(tally, g, folder, (int)i, count * i / shards, count * (i + 1) / shards,
                         width, height, err);
  for (size_t i = 0; i < GROUP; i++) tp__buffer_free(&g->made[i].bytes);
  free(g);
  return status;
}
