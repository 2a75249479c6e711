/* catalog_shard - the records of all shards, checked in parallel over files; see catalog_build.h
 *
 * Each shard is read once from end to end: framing and checksums (tfrecord), then the three
 * features (example). Results lie in a slot per file, so that they do not depend on the threads.
 * Without max_bad a shard stops at its first fault and shards after the first faulty one are not
 * read: the fault that is reported is always the first in order.
 */
#include <stdlib.h>
#include <string.h>

#include "catalog_build.h"
#include "example.h"
#include "inflate.h"
#include "tfrecord.h"

enum { ID_MAX = 4096 };

static const uint64_t default_memory_limit = UINT64_C(4) << 30;

/* What one worker needs again and again. */
struct desk {
  tp__record_reader reader;
  tp__example example;
  tp_error err;
};

struct scanning {
  tp__build *build;
  tp__shard_scan *scans;
  struct desk *desks; /* one per worker */
  uint64_t memory_limit;
  atomic_ullong memory;       /* decompressed bytes so far, all shards together */
  atomic_size_t first_failed; /* index of the first file that failed; n_files: none */
};

/* Where one shard is worked on. */
struct work {
  struct scanning *all;
  tp__data_file *file;
  tp__shard_scan *scan;
  struct desk *desk;
  int64_t smallest; /* label number seen */
};

/* Adds to the text of an error. */
static void add_hint(tp_error *err, const char *hint)
{
  size_t used = strlen(err->text);
  snprintf(err->text + used, sizeof err->text - used, "%s", hint);
}

/* ---- one record ---- */

static tp_status take_label(struct work *w, int32_t *label, tp_error *err)
{
  const tp__build *b = w->all->build;
  const tp__example *e = &w->desk->example;
  tp__feature f = tp__example_find(e, b->class_feature);
  bool needed = b->options->need_labels;
  *label = -1;
  if (f.kind == TP__FEATURE_MISSING && !needed) return TP_OK;
  if (f.kind == TP__FEATURE_BYTES && f.count == 1 && b->catalog->n_labels > 0) {
    size_t at = 0;
    if (tp__label_index_find(&b->index, (const char *)f.bytes, f.size, &at)) {
      *label = (int32_t)at;
      return TP_OK;
    }
  }
  int64_t number = 0;
  tp_status status = tp__example_int64(e, b->class_feature, &number, err);
  if (status != TP_OK && f.kind == TP__FEATURE_BYTES && f.count == 1 && b->catalog->n_labels > 0)
    add_hint(err, ", and it is none of the class names");
  if (status != TP_OK) return status;
  if (number == -1 && !needed) return TP_OK; /* a customary "unknown" */
  if (number < w->smallest) w->smallest = number;
  return tp__catalog_number_label(b, number, w->smallest, label, err);
}

static const char *base_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static tp_status take_id(struct work *w, int64_t number, const char **id, tp_error *err)
{
  const char *key = w->all->build->id_feature;
  const tp__example *e = &w->desk->example;
  tp__arena *arena = &w->file->ids;
  tp__feature f = tp__example_find(e, key);
  char *text;
  if (f.kind == TP__FEATURE_INT64 && f.count == 1) {
    text = tp__arena_format(arena, "%lld", (long long)f.int64s[0]);
  } else if (f.kind == TP__FEATURE_MISSING ||
             (f.kind == TP__FEATURE_BYTES && f.count == 1 && f.size == 0)) {
    text = tp__arena_format(arena, "%s:%lld", base_name(w->file->path), (long long)number);
  } else {
    const uint8_t *bytes;
    size_t size = 0;
    TP__TRY(tp__example_bytes(e, key, &bytes, &size, err));
    if (size > ID_MAX || memchr(bytes, '\0', size) != NULL)
      return tp__fail(err, TP_ERR_DATA, "feature \"%s\": %s", key,
                      size > ID_MAX ? "longer than 4096 bytes" : "holds a zero byte");
    text = tp__arena_alloc(arena, size + 1);
    if (text != NULL) memcpy(text, bytes, size);
  }
  if (text == NULL) return tp__no_memory(err, 4096);
  *id = text;
  return TP_OK;
}

static tp_status take_image(struct work *w, const tp__span *span, tp__record *record, tp_error *err)
{
  const char *key = w->all->build->image_feature;
  const tp__example *e = &w->desk->example;
  const uint8_t *image;
  size_t size = 0;
  tp_status status = tp__example_bytes(e, key, &image, &size, err);
  if (status == TP_OK) {
    record->image_offset = span->payload_offset + (uint64_t)(image - span->payload);
    record->image_size = (uint32_t)size; /* within TP__RECORD_MAX */
    return TP_OK;
  }
  if (tp__example_find(e, key).kind == TP__FEATURE_MISSING &&
      tp__example_find(e, "image/encoded").kind != TP__FEATURE_MISSING)
    add_hint(err, "; did you mean image feature image/encoded, class feature image/class/label?");
  return status;
}

static tp_status take_record(struct work *w, const tp__span *span, tp_error *err)
{
  tp__shard_scan *scan = w->scan;
  if (span->number > UINT32_MAX) return tp__fail(err, TP_ERR_DATA, "more than 2^32 records");
  tp__record record = {.file = (uint32_t)(w->file - w->all->build->catalog->files),
                       .number = (uint32_t)span->number,
                       .offset = span->offset};
  TP__TRY(tp__example_parse(&w->desk->example, span->payload, span->size, err));
  TP__TRY(take_image(w, span, &record, err));
  TP__TRY(take_label(w, &record.label, err));
  TP__TRY(take_id(w, span->number, &record.id, err));
  TP__TRY(tp__list_grow(&scan->records, scan->n_records, &scan->records_capacity,
                        sizeof *scan->records, err));
  scan->records[scan->n_records++] = record;
  return TP_OK;
}

/* ---- one shard ---- */

/* A fault of a record, or of the whole shard (span NULL): noted where max_bad may allow it, else
 * final. */
static tp_status fault(struct work *w, tp_status status, const tp__span *span, tp_error *err)
{
  tp__shard_scan *scan = w->scan;
  if (status == TP_ERR_DATA && tp__catalog_may_skip(w->all->build)) {
    TP__TRY(tp__list_grow(&scan->bad, scan->n_bad, &scan->bad_capacity, sizeof *scan->bad, err));
    char *reason = tp__arena_strdup(&w->file->ids, err->text);
    if (reason == NULL) return tp__no_memory(err, 4096);
    scan->bad[scan->n_bad++] = (tp__bad_record){.file = w->file->path,
                                                .number = span != NULL ? span->number : -1,
                                                .offset = span != NULL ? span->offset : 0,
                                                .reason = reason};
    return TP_OK;
  }
  char where[64];
  if (span == NULL) return status;
  tp__span_where(span, where, sizeof where);
  return tp__at(err, status, "%s", where);
}

static tp_status scan_records(struct work *w, const tp__source *source, tp_error *err)
{
  tp__record_reader *reader = &w->desk->reader;
  tp__record_reader_start(reader, source, TP__RECORD_MAX);
  for (;;) {
    tp__span span;
    bool end = false;
    tp_status status = tp__record_next(reader, &span, &end, err);
    if (end) return TP_OK;
    bool stuck = status != TP_OK && reader->offset == span.offset, nothing = false;
    if (status == TP_OK) status = take_record(w, &span, err);
    if (stuck && tp__catalog_may_skip(w->all->build)) {
      TP__TRY(tp__record_resync(reader, NULL));
      nothing = span.offset == 0 && reader->offset == source->size;
    }
    if (status != TP_OK) TP__TRY(fault(w, status, nothing ? NULL : &span, err));
  }
}

/* All shards together must fit, whatever the order in which they were decompressed. */
static tp_status over_limit(const struct scanning *all, tp_error *err)
{
  char text[32];
  return tp__fail(err, TP_ERR_DATA,
                  "the compressed shards need more than %s of memory when decompressed: decompress "
                  "the files on disk (gunzip), or raise memory_limit",
                  tp__bytes_text(text, all->memory_limit));
}

static tp_status decompress(struct work *w, const tp__source *source, tp_error *err)
{
  struct scanning *all = w->all;
  tp__buffer out;
  tp__buffer_init(&out,
                  all->memory_limit < SIZE_MAX / 2 ? (size_t)all->memory_limit : SIZE_MAX / 2);
  tp_status status = TP_OK;
  if (atomic_load(&all->memory) <= all->memory_limit) status = tp__inflate(source, &out, err);
  bool full = status != TP_OK && out.size >= out.max;
  unsigned long long added = full ? all->memory_limit + 1 : out.size;
  if (atomic_fetch_add(&all->memory, added) + added > all->memory_limit) {
    tp__buffer_free(&out);
    return over_limit(all, err);
  }
  if (status != TP_OK) {
    tp__buffer_free(&out);
    return fault(w, status, NULL, err);
  }
  uint8_t *fitted = realloc(out.data, out.size > 0 ? out.size : 1);
  w->file->memory = fitted != NULL ? fitted : out.data;
  w->file->memory_size = out.size;
  tp__source memory = tp__source_memory(w->file->memory, out.size);
  if (out.size == 0)
    return fault(w, tp__fail(err, TP_ERR_DATA, "the file is empty (compressed)"), NULL, err);
  return scan_records(w, &memory, err);
}

static tp_status scan_source(struct work *w, const tp__source *source, tp_error *err)
{
  if (source->size == 0)
    return fault(w, tp__fail(err, TP_ERR_DATA, "the file is empty"), NULL, err);
  uint8_t start[12];
  size_t size = source->size < sizeof start ? (size_t)source->size : sizeof start;
  TP__TRY(tp__source_read(source, 0, start, size, err));
  if (tp__compression_of(start, size) == TP__PLAIN) return scan_records(w, source, err);
  return decompress(w, source, err);
}

static void lower_to(atomic_size_t *place, size_t value)
{
  size_t now = atomic_load(place);
  while (value < now && !atomic_compare_exchange_weak(place, &now, value)) {
  }
}

static void scan_file(void *arg, size_t index, int worker)
{
  struct scanning *all = arg;
  tp__data_file *file = &all->build->catalog->files[index];
  if (file->photo || index > atomic_load(&all->first_failed)) return;
  struct work w = {.all = all,
                   .file = file,
                   .scan = &all->scans[index],
                   .desk = &all->desks[worker],
                   .smallest = INT64_MAX};
  tp_error *err = &w.desk->err;
  tp__source source;
  tp_status status = tp__source_open(&source, file->path, err);
  if (status == TP_OK) {
    file->size = source.size;
    file->changed = source.changed;
    status = scan_source(&w, &source, err);
    tp__source_close(&source);
  } else {
    status = fault(&w, status, NULL, err);
  }
  file->n_records = w.scan->n_records;
  w.scan->status = status;
  if (status == TP_OK) return;
  w.scan->text = tp__strdup(err->text, NULL);
  lower_to(&all->first_failed, index);
}

/* ---- all shards ---- */

static tp_status first_failure(const struct scanning *all, tp_error *err)
{
  if (atomic_load(&all->memory) > all->memory_limit) return over_limit(all, err);
  const tp__catalog *c = all->build->catalog;
  size_t i = atomic_load(&all->first_failed);
  if (i == c->n_files) return TP_OK;
  const tp__shard_scan *scan = &all->scans[i];
  if (scan->text == NULL) return tp__no_memory(err, 4096);
  return tp__fail(err, scan->status, "%s: %s", c->files[i].path, scan->text);
}

tp_status tp__catalog_scan_shards(tp__build *build, tp__shard_scan **scans, tp_error *err)
{
  const tp__catalog *c = build->catalog;
  int threads = tp__pool_threads(build->pool);
  struct scanning all = {.build = build, .memory_limit = build->options->memory_limit};
  if (all.memory_limit == 0) all.memory_limit = default_memory_limit;
  atomic_init(&all.memory, 0);
  atomic_init(&all.first_failed, c->n_files);
  all.scans = tp__calloc(c->n_files, sizeof *all.scans, err);
  all.desks = tp__calloc((size_t)threads, sizeof *all.desks, err);
  tp_status status = TP_ERR_INTERNAL;
  if (all.scans != NULL && all.desks != NULL) {
    tp__pool_for(build->pool, c->n_files, scan_file, &all);
    status = first_failure(&all, err);
  }
  for (int i = 0; all.desks != NULL && i < threads; i++) {
    tp__record_reader_free(&all.desks[i].reader);
    tp__example_free(&all.desks[i].example);
  }
  free(all.desks);
  *scans = all.scans;
  return status;
}

void tp__catalog_scans_free(tp__shard_scan *scans, size_t count)
{
  for (size_t i = 0; scans != NULL && i < count; i++) {
    free(scans[i].records);
    free(scans[i].bad);
    free(scans[i].text);
  }
  free(scans);
}
