/* pipeline - making one and going to a place; see pipeline.h and stage.h. deliver.c gives the
 * batches. */
#include "pipeline.h"

#include <stdlib.h>

#include "stage.h"

/* ---- life ---- */

static tp_status check_options(const tp__pipeline_options *o, tp_error *err)
{
  const tp__image_recipe *r = &o->recipe;
  if (o->batch < 1) return tp__fail(err, TP_ERR_USAGE, "batch must be 1 or more, not %d", o->batch);
  if (o->prefetch < 0 || o->prefetch > 1024)
    return tp__fail(err, TP_ERR_USAGE, "prefetch must be 0 to 1024 batches, not %d", o->prefetch);
  if (r->height < 1 || r->width < 1)
    return tp__fail(err, TP_ERR_USAGE, "image size must be 1x1 or more, not %dx%d", r->height,
                    r->width);
  if (!(r->rotate >= 0 && r->rotate <= 1))
    return tp__fail(err, TP_ERR_USAGE, "rotate is a fraction of a turn, 0 to 1, not %g",
                    (double)r->rotate);
  const tp__colours *c = &r->colours;
  const float colour[] = {c->brightness, c->contrast, c->saturation};
  for (int i = 0; i < 3; i++)
    if (!(colour[i] >= 0 && colour[i] <= 10))
      return tp__fail(err, TP_ERR_USAGE, "colours may change by 0 to 10, not %g",
                      (double)colour[i]);
  if (!(r->crop >= 0 && r->crop <= 1) || !(r->crop == 0 || r->crop_ratio >= 1))
    return tp__fail(err, TP_ERR_USAGE,
                    "a crop takes a share of 0 to 1 of the area, of sides 1 or more to 1, not %g "
                    "of %g",
                    (double)r->crop, (double)r->crop_ratio);
  if (!(o->mixup >= 0 && o->mixup <= 100 && o->cutmix >= 0 && o->cutmix <= 100))
    return tp__fail(err, TP_ERR_USAGE, "mixup and cutmix are 0 to 100, not %g and %g",
                    (double)o->mixup, (double)o->cutmix);
  if (o->training && o->interleave < 1)
    return tp__fail(err, TP_ERR_USAGE, "interleave must be 1 or more, not %d", o->interleave);
  if (o->training && o->shuffle < -1)
    return tp__fail(err, TP_ERR_USAGE, "shuffle must be -1 or more, not %lld",
                    (long long)o->shuffle);
  if (o->steps_per_epoch < 0 || o->max_bad_pictures < 0)
    return tp__fail(err, TP_ERR_USAGE, "steps per epoch and bad pictures cannot be negative");
  return TP_OK;
}

/* Steps and examples of an epoch; every example once unless fewer steps are asked for. */
static tp_status count_steps(tp__pipeline *p, tp_error *err)
{
  const tp__pipeline_options *o = &p->options;
  if (p->n == 0) return tp__fail(err, TP_ERR_DATA, "the data set has no examples");
  int64_t n = (int64_t)p->n, available = (n + o->batch - 1) / o->batch;
  if (o->steps_per_epoch > available)
    return tp__fail(
        err, TP_ERR_USAGE,
        "%d steps per epoch are asked for, %lld are available (%lld examples, batch %d); "
        "ask for fewer, or for 0: every example once",
        o->steps_per_epoch, (long long)available, (long long)n, o->batch);
  p->steps = o->steps_per_epoch > 0 ? o->steps_per_epoch : available;
  p->examples = p->steps * o->batch < n ? p->steps * o->batch : n;
  if (o->batch > n) p->options.batch = (int)n;
  return TP_OK;
}

static tp_status make_slots(tp__pipeline *p, tp_error *err)
{
  const tp__pipeline_options *o = &p->options;
  size_t batch = (size_t)tp__group_rows_most(o->processes, o->replicas, o->batch), floats;
  if (o->processes > 1 && tp__mixes(&p->options)) batch++; /* slot.extra */
  size_t h = (size_t)p->options.recipe.height, w = (size_t)p->options.recipe.width;
  if (!tp__mul_size(h, w, &p->row) || !tp__mul_size(p->row, 3, &p->row) ||
      !tp__mul_size(p->row, batch, &floats))
    return tp__fail(err, TP_ERR_USAGE, "batches of %zu pictures of %zux%zu are too large", batch, h,
                    w);
  p->slots = (size_t)p->options.prefetch + 1;
  if ((p->slot = tp__calloc(p->slots, sizeof *p->slot, err)) == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < p->slots; i++) {
    struct tp__slot *s = &p->slot[i];
    if ((s->pixels = tp__calloc_aligned(floats, sizeof(float), err)) == NULL ||
        (s->labels = tp__calloc(batch, sizeof *s->labels, err)) == NULL ||
        (s->labels_2 = tp__calloc(batch, sizeof *s->labels_2, err)) == NULL ||
        (s->share = tp__calloc(batch, sizeof *s->share, err)) == NULL ||
        (s->keys = tp__calloc(batch, 2 * sizeof *s->keys, err)) == NULL ||
        (s->example = tp__calloc(batch, sizeof *s->example, err)) == NULL ||
        (s->fault = tp__calloc(batch, sizeof *s->fault, err)) == NULL)
      return TP_ERR_INTERNAL;
  }
  return TP_OK;
}

static tp_status make_mixing(tp__pipeline *p, tp_error *err)
{
  if (!tp__mixes(&p->options)) return TP_OK;
  p->mixture = tp__calloc((size_t)p->options.batch + 1, sizeof *p->mixture, err);
  p->unmixed = tp__calloc_aligned(p->row, sizeof *p->unmixed, err);
  return p->mixture != NULL && p->unmixed != NULL ? TP_OK : TP_ERR_INTERNAL;
}

static tp_status make_hands(tp__pipeline *p, tp_error *err)
{
  int count = tp__pool_threads(p->pool);
  p->hand = tp__calloc((size_t)count, sizeof *p->hand, err);
  if (p->hand == NULL) return TP_ERR_INTERNAL;
  p->hands = count;
  /* no limit of their own: catalog and image check sizes */
  for (int i = 0; i < count; i++) tp__buffer_init(&p->hand[i].bytes, UINT32_MAX);
  return TP_OK;
}

static tp_status make_order_tables(tp__pipeline *p, tp_error *err)
{
  if ((p->order = tp__calloc(p->n, sizeof *p->order, err)) == NULL) return TP_ERR_INTERNAL;
  if ((p->file_of = tp__calloc(p->n, sizeof *p->file_of, err)) == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < p->n; i++) p->file_of[i] = tp__catalog_record(p->options.catalog, i)->file;
  return TP_OK;
}

tp_status tp__pipeline_new(const tp__pipeline_options *options, tp__pool *pool, const tp__log *log,
                           tp__pipeline **pipeline, tp_error *err)
{
  TP__TRY(check_options(options, err));
  tp__pipeline *p = tp__calloc(1, sizeof *p, err);
  if (p == NULL) return TP_ERR_INTERNAL;
  p->options = *options;
  if (p->options.processes == 0) p->options.processes = 1;
  if (p->options.replicas == 0) p->options.replicas = 1;
  if (p->options.prefetch == 0) p->options.prefetch = 2;
  p->pool = pool;
  p->log = log;
  p->n = tp__catalog_count(options->catalog);
  pthread_mutex_init(&p->lock, NULL);
  tp_status status = count_steps(p, err);
  if (status == TP_OK) status = make_order_tables(p, err);
  if (status == TP_OK) status = make_hands(p, err);
  if (status == TP_OK && options->cache != TP__CACHE_NONE)
    status = tp__picture_cache_new(options, pool, log, &p->cache, err);
  if (status == TP_OK) status = make_slots(p, err);
  if (status == TP_OK) status = make_mixing(p, err);
  if (status != TP_OK) {
    tp__pipeline_free(p);
    return status;
  }
  *pipeline = p;
  return TP_OK;
}

void tp__pipeline_free(tp__pipeline *p)
{
  if (p == NULL) return;
  if (p->running) tp__pool_background_end(p->pool, tp__stage_work, p);
  for (size_t i = 0; p->slot != NULL && i < p->slots; i++) {
    struct tp__slot *s = &p->slot[i];
    tp__slot_clear(s);
    free(s->pixels);
    free(s->labels);
    free(s->labels_2);
    free(s->share);
    free(s->keys);
    free(s->example);
    free(s->fault);
  }
  for (int i = 0; i < p->hands; i++) {
    tp__buffer_free(&p->hand[i].bytes);
    tp__buffer_free(&p->hand[i].picture.rgb);
    tp__image_scratch_free(&p->hand[i].scratch);
  }
  tp__picture_cache_free(p->cache);
  tp__arena_free(&p->arena);
  pthread_mutex_destroy(&p->lock);
  free(p->mixture);
  free(p->unmixed);
  free(p->bad);
  free(p->bad_example);
  free(p->slot);
  free(p->hand);
  free(p->order);
  free(p->file_of);
  free(p);
}

int64_t tp__pipeline_steps(const tp__pipeline *p)
{
  return p->steps;
}

int64_t tp__pipeline_examples(const tp__pipeline *p)
{
  return p->examples;
}

bool tp__input_varies(const tp__pipeline_options *o)
{
  return o->training && (tp__image_recipe_varies(&o->recipe) || tp__mixes(o));
}

bool tp__pipeline_varies(const tp__pipeline *p)
{
  return tp__input_varies(&p->options);
}

/* ---- place ---- */

tp_status tp__pipeline_seek(tp__pipeline *p, uint32_t epoch, int64_t step, uint32_t epochs,
                            tp_error *err)
{
  if (step < 0 || step > p->steps)
    return tp__fail(err, TP_ERR_USAGE, "step %lld does not exist: an epoch has %lld steps",
                    (long long)step, (long long)p->steps);
  if (p->running) tp__pool_background_end(p->pool, tp__stage_work, p); /* waits for units at work */
  p->running = false;
  pthread_mutex_lock(&p->lock);
  for (size_t i = 0; i < p->slots; i++) {
    tp__slot_clear(&p->slot[i]);
    p->slot[i].n = 0;
  }
  p->first = p->planned = 0;
  p->held = false;
  p->plan_epoch = step == p->steps ? epoch + 1 : epoch;
  p->plan_step = step == p->steps ? 0 : step;
  p->epochs = epochs;
  p->ended = epochs > 0 && p->plan_epoch >= epochs;
  p->ordered = p->ordered && p->order_epoch == p->plan_epoch;
  p->failure = (tp_error){0};
  pthread_mutex_unlock(&p->lock);
  TP__TRY(tp__pool_background(p->pool, tp__stage_work, p, err));
  p->running = true;
  return TP_OK;
}
