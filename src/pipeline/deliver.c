/* deliver - the consumer's side: waiting for a batch, judging its damaged pictures, handing it
 * over; see stage.h
 *
 * Faults are judged here, in the order of batches and rows, and not where they occur: so which
 * error is reported, and which pictures max_bad_pictures lets pass, does not depend on threads.
 */
#include <stdlib.h>
#include <string.h>

#include "stage.h"

/* ---- damaged pictures ---- */

static bool is_listed(const tp__pipeline *p, uint32_t example)
{
  for (size_t i = 0; i < p->bad_count; i++)
    if (p->bad_example[i] == example) return true;
  return false;
}

static tp_status list_bad(tp__pipeline *p, uint32_t example, const char *reason, tp_error *err)
{
  if (p->bad_count == p->bad_capacity) {
    size_t capacity = p->bad_capacity * 2 + 16;
    void *bad = realloc(p->bad, capacity * sizeof *p->bad);
    if (bad != NULL) p->bad = bad;
    void *ids = bad != NULL ? realloc(p->bad_example, capacity * sizeof *p->bad_example) : NULL;
    if (ids == NULL) return tp__no_memory(err, capacity * sizeof *p->bad);
    p->bad_example = ids;
    p->bad_capacity = capacity;
  }
  const tp__record *r = tp__catalog_record(p->options.catalog, example);
  char *text = tp__arena_strdup(&p->arena, reason);
  if (text == NULL) return tp__no_memory(err, strlen(reason) + 1);
  size_t records;
  const char *file = tp__catalog_file(p->options.catalog, r->file, &records);
  p->bad_example[p->bad_count] = example;
  p->bad[p->bad_count++] = (tp__bad_record){file, r->number, r->offset, text};
  char where[1024];
  tp__catalog_where(p->options.catalog, example, where, sizeof where);
  tp__warn(p->log, "%s: left out: %s", where, reason);
  return TP_OK;
}

static tp_status row_error(const tp__pipeline *p, const struct tp__slot *s, size_t row,
                           tp_error *err)
{
  char where[1024];
  const struct tp__fault *f = &s->fault[row];
  tp__catalog_where(p->options.catalog, s->example[row], where, sizeof where);
  const char *text = f->text != NULL ? f->text : "out of memory";
  if (strstr(text, where) == NULL)
    (void)tp__fail(err, f->status, "%s: %s", where, text);
  else
    (void)tp__fail(err, f->status, "%s", text);
  if (f->picture && p->options.max_bad_pictures > 0 && err != NULL) {
    size_t at = strlen(err->text);
    snprintf(err->text + at, sizeof err->text - at,
             "; more than the %lld damaged pictures that max_bad allows",
             (long long)p->options.max_bad_pictures);
  }
  return f->status;
}

static void move_row(const tp__pipeline *p, struct tp__slot *s, size_t from, size_t to)
{
  memcpy(s->pixels + to * p->row, s->pixels + from * p->row, p->row * sizeof(float));
  memcpy(&s->keys[2 * to], &s->keys[2 * from], 2 * sizeof *s->keys);
  s->labels[to] = s->labels[from];
  s->example[to] = s->example[from];
}

/* Judges the rows of a finished batch in their order and closes the gaps of those left out. */
static tp_status settle(tp__pipeline *p, struct tp__slot *s, tp_error *err)
{
  for (size_t i = 0; i < s->n; i++) {
    const struct tp__fault *f = &s->fault[i];
    if (f->status == TP_OK || (f->picture && is_listed(p, s->example[i]))) continue;
    if (!f->picture || (int64_t)p->bad_count >= p->options.max_bad_pictures)
      return row_error(p, s, i, err);
    TP__TRY(list_bad(p, s->example[i], f->text != NULL ? f->text : "damaged", err));
  }
  size_t good = 0;
  for (size_t i = 0; i < s->n; i++) {
    if (s->fault[i].status != TP_OK) continue;
    if (good != i) move_row(p, s, i, good);
    good++;
  }
  if (s->extra > 0 && s->fault[s->n - 1].status != TP_OK) s->extra = 0;
  tp__slot_clear(s);
  pthread_mutex_lock(&p->lock); /* who looks for rows to claim reads them */
  s->n = s->claimed = good - s->extra;
  pthread_mutex_unlock(&p->lock);
  return TP_OK;
}

/* ---- the consumer ---- */

struct due {
  tp__pipeline *p;
  size_t ahead;          /* 0: the batch that is due, 1: the one after it */
  struct tp__slot *slot; /* NULL: there is none */
};

static bool is_due(void *arg)
{
  struct due *d = arg;
  tp__pipeline *p = d->p;
  bool ready = false;
  pthread_mutex_lock(&p->lock);
  if (p->planned > d->ahead) {
    d->slot = &p->slot[(p->first + d->ahead) % p->slots];
    ready = d->slot->left == 0;
  } else {
    d->slot = NULL;
    ready = p->ended && !p->ordering;
  }
  pthread_mutex_unlock(&p->lock);
  return ready;
}

/* Waits for a batch, working meanwhile. */
static struct tp__slot *wait_for(tp__pipeline *p, size_t ahead)
{
  struct due d = {.p = p, .ahead = ahead};
  double start = tp__now();
  double idle = is_due(&d) ? 0 : tp__pool_wait(p->pool, is_due, &d);
  tp__stage_count(p, TP__STAGE_WAITING, tp__now() - start);
  tp__stage_count(p, TP__STAGE_IDLE, idle);
  return d.slot;
}

/* The first `count` batches leave the ring; the last of them may stay in the consumer's hands. */
static void advance(tp__pipeline *p, size_t count, bool hold)
{
  pthread_mutex_lock(&p->lock);
  p->first = (p->first + count) % p->slots;
  p->planned -= count;
  p->held = hold;
  pthread_mutex_unlock(&p->lock);
  tp__pool_wake(p->pool);
}

/* True when the batch after the one that is due ends its epoch without one good picture: then it is
 * dropped. It is looked at only where pictures may be left out. */
static tp_status drop_empty_end(tp__pipeline *p, const struct tp__slot *s, bool *dropped,
                                tp_error *err)
{
  *dropped = false;
  if (p->options.max_bad_pictures == 0 || s->last || s->step + 2 != p->steps) return TP_OK;
  if (p->options.processes > 1) return TP_OK;
  struct tp__slot *after = wait_for(p, 1);
  if (after == NULL) return TP_OK;
  for (size_t i = 0; i < after->n; i++)
    if (!after->fault[i].picture) return TP_OK;
  TP__TRY(settle(p, after, err));
  after->last = false; /* passed over on the next call */
  *dropped = true;
  return TP_OK;
}

tp_status tp__pipeline_next(tp__pipeline *p, tp__batch *batch, tp_error *err)
{
  if (!p->running) TP__TRY(tp__pipeline_seek(p, 0, 0, 0, err));
  if (p->held) advance(p, 0, false);
  struct tp__slot *s;
  for (;;) {
    s = wait_for(p, 0);
    if (s == NULL && p->failure.status != TP_OK) {
      if (err != NULL) *err = p->failure;
      return p->failure.status;
    }
    if (s == NULL) {
      *batch = (tp__batch){0};
      return TP_OK;
    }
    TP__TRY(settle(p, s, err));
    if (s->n > 0 || p->options.processes > 1) break;
    if (s->last)
      return tp__fail(err, TP_ERR_DATA,
                      "no picture of the last batches of epoch %lu can be decoded",
                      (unsigned long)s->epoch + 1);
    advance(p, 1, false);
  }
  bool dropped;
  TP__TRY(drop_empty_end(p, s, &dropped, err));
  const bool mixes = tp__mixes(&p->options);
  if (mixes) tp__mix(p, s);
  *batch = (tp__batch){.n = (int64_t)s->n,
                       .total = p->options.processes > 1 ? (int64_t)s->total : (int64_t)s->n,
                       .pixels = s->pixels,
                       .labels = s->labels,
                       .labels_2 = mixes ? s->labels_2 : NULL,
                       .share = mixes ? s->share : NULL,
                       .keys = s->keys,
                       .example = s->example,
                       .epoch = s->epoch,
                       .step = s->step,
                       .last = s->last || dropped};
  atomic_fetch_add_explicit(&p->delivered, (int64_t)s->n, memory_order_relaxed);
  advance(p, 1, true);
  return TP_OK;
}

const tp__bad_record *tp__pipeline_bad(const tp__pipeline *p, size_t *count)
{
  *count = p->bad_count;
  return p->bad;
}

uint32_t tp__pipeline_bad_example(const tp__pipeline *p, size_t index)
{
  return p->bad_example[index];
}

tp_status tp__pipeline_add_bad(tp__pipeline *p, uint32_t example, const char *reason, tp_error *err)
{
  if (is_listed(p, example)) return TP_OK;
  if (example >= p->n)
    return tp__fail(err, TP_ERR_INTERNAL, "another process has left out example %lu, there are %zu",
                    (unsigned long)example, p->n);
  if ((int64_t)p->bad_count < p->options.max_bad_pictures) return list_bad(p, example, reason, err);
  char where[1024];
  tp__catalog_where(p->options.catalog, example, where, sizeof where);
  return tp__fail(err, TP_ERR_DATA,
                  "%s: %s; more than the %lld damaged pictures that max_bad allows", where, reason,
                  (long long)p->options.max_bad_pictures);
}

/* ---- meter ---- */

static double take(atomic_uint_fast64_t *value, bool reset)
{
  uint64_t v = reset ? atomic_exchange_explicit(value, 0, memory_order_relaxed)
                     : atomic_load_explicit(value, memory_order_relaxed);
  return (double)v * 1e-9;
}

void tp__pipeline_meter(tp__pipeline *p, tp__meter *meter, bool reset)
{
  meter->read = take(&p->busy[TP__STAGE_READ], reset);
  meter->decode = take(&p->busy[TP__STAGE_DECODE], reset);
  meter->finish = take(&p->busy[TP__STAGE_FINISH], reset);
  meter->waiting = take(&p->busy[TP__STAGE_WAITING], reset);
  meter->idle = take(&p->busy[TP__STAGE_IDLE], reset);
  meter->examples = reset ? atomic_exchange_explicit(&p->delivered, 0, memory_order_relaxed)
                          : atomic_load_explicit(&p->delivered, memory_order_relaxed);
}
