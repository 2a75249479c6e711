/* stage - planning batches and filling their rows; see stage.h */
#include "stage.h"

#include <stdlib.h>
#include <string.h>

void tp__stage_count(tp__pipeline *p, int stage, double seconds)
{
  if (seconds > 0)
    atomic_fetch_add_explicit(&p->busy[stage], (uint64_t)(seconds * 1e9), memory_order_relaxed);
}

void tp__slot_clear(struct tp__slot *slot)
{
  for (size_t i = 0; i < slot->n; i++) {
    free(slot->fault[i].text);
    slot->fault[i] = (struct tp__fault){0};
  }
}

/* ---- planning, with the lock held ---- */

static bool may_plan(const tp__pipeline *p)
{
  return !p->ended && !p->ordering && p->planned + (p->held ? 1 : 0) < p->slots;
}

/* Works out the next epoch's order. Called with the lock held; releases it meanwhile: nobody else
 * plans then. */
static void make_order(tp__pipeline *p)
{
  uint32_t epoch = p->plan_epoch;
  tp_error err = {0};
  p->ordering = true;
  pthread_mutex_unlock(&p->lock);
  const tp__pipeline_options *o = &p->options;
  tp_status status = tp__order_make(p->file_of, p->n, o->training ? o->shuffle : 0, o->interleave,
                                    o->seed, epoch, p->order, &err);
  if (status != TP_OK) (void)tp__at(&err, status, "order of epoch %lu", (unsigned long)epoch + 1);
  pthread_mutex_lock(&p->lock);
  p->ordering = false;
  p->ordered = status == TP_OK;
  p->order_epoch = epoch;
  if (status != TP_OK) {
    p->failure = err;
    p->ended = true;
  }
}

static void plan_batch(tp__pipeline *p)
{
  struct tp__slot *s = &p->slot[(p->first + p->planned) % p->slots];
  size_t start = (size_t)p->plan_step * (size_t)p->options.batch;
  size_t rest = (size_t)p->examples - start;
  int64_t first, end;
  tp__slot_clear(s);
  s->epoch = p->plan_epoch;
  s->step = p->plan_step;
  s->last = p->plan_step + 1 == p->steps;
  s->total = rest < (size_t)p->options.batch ? rest : (size_t)p->options.batch;
  tp__group_rows(p->options.process, p->options.processes, p->options.replicas, (int64_t)s->total,
                 &first, &end);
  s->extra = p->options.processes > 1 && end > first && tp__mixes(&p->options);
  s->n = s->left = (size_t)(end - first) + s->extra;
  s->claimed = 0;
  for (size_t i = 0; i < s->n; i++) {
    uint32_t example = p->order[start + ((size_t)first + i) % s->total];
    tp__key key = tp__key_of(p->options.seed, s->epoch, example);
    s->example[i] = example;
    s->labels[i] = tp__catalog_record(p->options.catalog, example)->label;
    memcpy(&s->keys[2 * i], key.word, sizeof key.word);
  }
  p->planned++;
  if (++p->plan_step == p->steps) {
    p->plan_step = 0;
    p->plan_epoch++;
    if (p->epochs > 0 && p->plan_epoch >= p->epochs) p->ended = true;
  }
}

/* ---- one example ---- */

/* The encoded bytes, from the cache or the file. */
static tp_status get_bytes(tp__pipeline *p, struct tp__hand *h, uint32_t example,
                           const uint8_t **bytes, size_t *size, tp_error *err)
{
  *bytes = tp__picture_cache_bytes(p->cache, example, size);
  if (*bytes != NULL) return TP_OK;
  double start = tp__now();
  tp_status status = tp__catalog_read(p->options.catalog, example, &h->bytes, err);
  tp__stage_count(p, TP__STAGE_READ, tp__now() - start);
  if (status != TP_OK) return status;
  tp__picture_cache_put_bytes(p->cache, example, &h->bytes);
  *bytes = h->bytes.data;
  *size = h->bytes.size;
  return TP_OK;
}

static tp_status get_pixels(tp__pipeline *p, struct tp__hand *h, uint32_t example,
                            const uint8_t **rgb, int *height, int *width, bool *picture,
                            tp_error *err)
{
  *rgb = tp__picture_cache_pixels(p->cache, example, height, width);
  if (*rgb != NULL) return TP_OK;
  const uint8_t *bytes;
  size_t size;
  TP__TRY(get_bytes(p, h, example, &bytes, &size, err));
  double start = tp__now();
  tp_status status = tp__image_decode(bytes, size, &p->options.recipe.decode, &h->picture, err);
  tp__stage_count(p, TP__STAGE_DECODE, tp__now() - start);
  if (status != TP_OK) {
    *picture = status == TP_ERR_DATA;
    return status;
  }
  tp__picture_cache_put_pixels(p->cache, example, &h->picture);
  *rgb = h->picture.rgb.data;
  *height = h->picture.height;
  *width = h->picture.width;
  return TP_OK;
}

static void fill_row(tp__pipeline *p, struct tp__slot *s, size_t row, int worker)
{
  const _Atomic uint8_t *known = p->options.known;
  if (known != NULL && atomic_load_explicit(&known[s->example[row]], memory_order_relaxed)) return;
  struct tp__hand *h = &p->hand[worker];
  tp_error err = {0};
  bool picture = false;
  const uint8_t *rgb;
  int height, width;
  tp__key key = {{s->keys[2 * row], s->keys[2 * row + 1]}};
  tp_status status = get_pixels(p, h, s->example[row], &rgb, &height, &width, &picture, &err);
  if (status == TP_OK) {
    double start = tp__now();
    status = tp__image_finish(&p->options.recipe, rgb, height, width, p->options.training, key,
                              &h->scratch, s->pixels + row * p->row, &err);
    tp__stage_count(p, TP__STAGE_FINISH, tp__now() - start);
  }
  if (status != TP_OK) /* kept for the moment the batch is due */
    s->fault[row] = (struct tp__fault){status, picture, tp__strdup(err.text, NULL)};
}

/* The first row that no thread has taken yet, in the order the batches are due. */
static struct tp__slot *claim(tp__pipeline *p, size_t *row)
{
  for (size_t i = 0; i < p->planned; i++) {
    struct tp__slot *s = &p->slot[(p->first + i) % p->slots];
    if (s->claimed < s->n) {
      *row = s->claimed++;
      return s;
    }
  }
  return NULL;
}

bool tp__stage_work(void *arg, int worker)
{
  tp__pipeline *p = arg;
  size_t row;
  bool planned = false;
  pthread_mutex_lock(&p->lock);
  struct tp__slot *s = claim(p, &row);
  if (s == NULL && may_plan(p)) {
    if (!p->ordered || (p->options.training && p->order_epoch != p->plan_epoch)) {
      make_order(p);
      pthread_mutex_unlock(&p->lock);
      tp__pool_wake(p->pool); /* those who found nothing meanwhile */
      return true;
    }
    plan_batch(p);
    planned = true;
    s = claim(p, &row);
    pthread_mutex_unlock(&p->lock);
    tp__pool_wake(p->pool);
  } else {
    pthread_mutex_unlock(&p->lock);
  }
  if (s == NULL) return planned; /* a batch without rows of this process */
  fill_row(p, s, row, worker);
  pthread_mutex_lock(&p->lock);
  bool done = --s->left == 0;
  pthread_mutex_unlock(&p->lock);
  if (done) tp__pool_wake(p->pool);
  return true;
}
