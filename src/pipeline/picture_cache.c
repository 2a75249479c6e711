/* picture_cache - see picture_cache.h */
#include "picture_cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { ABSENT, STORING, PRESENT };

struct entry {
  uint64_t offset; /* in the block */
  uint64_t
      size; /* bytes foreseen; 0: never kept (its header cannot be read: decoding will say why) */
  int32_t height, width;
  atomic_int state;
};

struct tp__picture_cache {
  tp__cache kind;
  size_t count;
  struct entry *entry; /* [count] */
  uint8_t *block;
};

/* ---- the need ---- */

/* Reading every header, in parallel. */
struct survey {
  const tp__pipeline_options *options;
  tp__buffer *bytes; /* one for each worker */
  struct entry *entry;
};

static void survey_one(void *arg, size_t index, int worker)
{
  struct survey *s = arg;
  tp__buffer *bytes = &s->bytes[worker];
  const tp__decode_options *decode = &s->options->recipe.decode;
  int height, width;
  if (tp__catalog_read(s->options->catalog, index, bytes, NULL) != TP_OK) return;
  if (tp__image_decoded_size(bytes->data, bytes->size, decode, &height, &width, NULL) != TP_OK)
    return;
  uint64_t pixels = (uint64_t)height * (uint64_t)width;
  if (pixels > (decode->max_pixels > 0 ? decode->max_pixels : UINT64_C(178956970))) return;
  s->entry[index].size = pixels * 3;
}

static tp_status survey_pixels(const tp__pipeline_options *options, tp__pool *pool,
                               struct entry *entry, tp_error *err)
{
  size_t threads = (size_t)tp__pool_threads(pool);
  struct survey s = {.options = options, .entry = entry};
  s.bytes = tp__calloc(threads, sizeof *s.bytes, err);
  if (s.bytes == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < threads; i++) tp__buffer_init(&s.bytes[i], UINT32_MAX);
  tp__pool_for(pool, tp__catalog_count(options->catalog), survey_one, &s);
  for (size_t i = 0; i < threads; i++) tp__buffer_free(&s.bytes[i]);
  free(s.bytes);
  return TP_OK;
}

/* Memory that can be had without swapping, bytes; UINT64_MAX where unknown. */
static uint64_t free_memory(void)
{
  FILE *f = fopen("/proc/meminfo", "re");
  if (f == NULL) return UINT64_MAX;
  char line[128];
  unsigned long long kib = 0;
  bool found = false;
  while (!found && fgets(line, sizeof line, f) != NULL)
    found = sscanf(line, "MemAvailable: %llu", &kib) == 1;
  fclose(f);
  return found ? kib * 1024 : UINT64_MAX;
}

static tp_status check_need(const tp__pipeline_options *options, uint64_t need, const tp__log *log,
                            tp_error *err)
{
  uint64_t limit = options->cache_limit > 0 ? options->cache_limit : UINT64_C(4000000000);
  uint64_t available = free_memory(), encoded = 0;
  size_t n = tp__catalog_count(options->catalog);
  for (size_t i = 0; i < n; i++) encoded += tp__catalog_record(options->catalog, i)->image_size;
  bool pixels = options->cache == TP__CACHE_PIXELS;
  const char *kind = pixels ? "decoded pixels" : "encoded bytes";
  char a[32], b[32], c[32];
  if (need <= limit && need <= available) {
    tp__say(log, "cache: %zu pictures as %s need %s of memory (limit %s)", n, kind,
            tp__bytes_text(a, need), tp__bytes_text(b, limit));
    return TP_OK;
  }
  (void)tp__fail(err, TP_ERR_USAGE, "cache: %zu pictures as %s need %s, more than the %s %s", n,
                 kind, tp__bytes_text(a, need), need > limit ? "limit of" : "memory that is free:",
                 tp__bytes_text(b, need > limit ? limit : available));
  if (err == NULL) return TP_ERR_USAGE;
  size_t at = strlen(err->text);
  if (pixels && encoded <= limit && encoded <= available)
    snprintf(err->text + at, sizeof err->text - at, "; use --cache encoded (needs %s), none%s",
             tp__bytes_text(c, encoded), need > limit ? ", or a higher --cache-limit" : "");
  else
    snprintf(err->text + at, sizeof err->text - at, "; use --cache none%s",
             need > limit ? " or a higher --cache-limit" : "");
  return TP_ERR_USAGE;
}

/* ---- life ---- */

static tp_status fill_entries(tp__picture_cache *c, const tp__pipeline_options *options,
                              tp__pool *pool, uint64_t *need, tp_error *err)
{
  if (c->kind == TP__CACHE_PIXELS) {
    TP__TRY(survey_pixels(options, pool, c->entry, err));
  } else {
    for (size_t i = 0; i < c->count; i++)
      c->entry[i].size = tp__catalog_record(options->catalog, i)->image_size;
  }
  *need = 0; /* at most 2^32 examples of 2^30 bytes: no overflow */
  for (size_t i = 0; i < c->count; i++) {
    c->entry[i].offset = *need;
    *need += c->entry[i].size;
  }
  return TP_OK;
}

tp_status tp__picture_cache_new(const tp__pipeline_options *options, tp__pool *pool,
                                const tp__log *log, tp__picture_cache **cache, tp_error *err)
{
  tp__picture_cache *c = tp__calloc(1, sizeof *c, err);
  if (c == NULL) return TP_ERR_INTERNAL;
  c->kind = options->cache;
  c->count = tp__catalog_count(options->catalog);
  uint64_t need;
  tp_status status = TP_ERR_INTERNAL;
  if ((c->entry = tp__calloc(c->count, sizeof *c->entry, err)) == NULL) goto failed;
  if ((status = fill_entries(c, options, pool, &need, err)) != TP_OK) goto failed;
  if ((status = check_need(options, need, log, err)) != TP_OK) goto failed;
  c->block = malloc(need > 0 ? (size_t)need : 1); /* the system gives pages as they are filled */
  if (c->block == NULL) {
    status = tp__at(err, tp__no_memory(err, (size_t)need), "cache");
    goto failed;
  }
  *cache = c;
  return TP_OK;
failed:
  tp__picture_cache_free(c);
  return status;
}

void tp__picture_cache_free(tp__picture_cache *c)
{
  if (c == NULL) return;
  free(c->block);
  free(c->entry);
  free(c);
}

/* ---- use ---- */

static struct entry *present(const tp__picture_cache *c, tp__cache kind, size_t example)
{
  if (c == NULL || c->kind != kind) return NULL;
  struct entry *e = &c->entry[example];
  return atomic_load_explicit(&e->state, memory_order_acquire) == PRESENT ? e : NULL;
}

const uint8_t *tp__picture_cache_bytes(const tp__picture_cache *c, size_t example, size_t *size)
{
  const struct entry *e = present(c, TP__CACHE_ENCODED, example);
  if (e == NULL) return NULL;
  *size = (size_t)e->size;
  return c->block + e->offset;
}

const uint8_t *tp__picture_cache_pixels(const tp__picture_cache *c, size_t example, int *height,
                                        int *width)
{
  const struct entry *e = present(c, TP__CACHE_PIXELS, example);
  if (e == NULL) return NULL;
  *height = e->height;
  *width = e->width;
  return c->block + e->offset;
}

static void put(tp__picture_cache *c, tp__cache kind, size_t example, const tp__buffer *content,
                int height, int width)
{
  if (c == NULL || c->kind != kind) return;
  struct entry *e = &c->entry[example];
  int was = ABSENT;
  if (e->size == 0 || e->size != content->size) return;
  if (!atomic_compare_exchange_strong(&e->state, &was, STORING)) return;
  memcpy(c->block + e->offset, content->data, content->size);
  e->height = height;
  e->width = width;
  atomic_store_explicit(&e->state, PRESENT, memory_order_release);
}

void tp__picture_cache_put_bytes(tp__picture_cache *c, size_t example, const tp__buffer *bytes)
{
  put(c, TP__CACHE_ENCODED, example, bytes, 0, 0);
}

void tp__picture_cache_put_pixels(tp__picture_cache *c, size_t example, const tp__picture *picture)
{
  put(c, TP__CACHE_PIXELS, example, &picture->rgb, picture->height, picture->width);
}
