/* catalog - the steps of opening, and questions about what was found; see catalog.h and
 * catalog_build.h */
#include "catalog.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalog_build.h"
#include "shard_writer.h"

/* Up to so many files are kept open for reading; more are opened for each read. */
enum { KEEP_OPEN_MAX = 512 };

tp_status tp__list_grow(void *list, size_t count, size_t *capacity, size_t item_size, tp_error *err)
{
  if (count < *capacity) return TP_OK;
  size_t grown = *capacity < 16 ? 16 : *capacity + *capacity / 2, bytes = SIZE_MAX;
  void *items;
  memcpy(&items, list, sizeof items);
  void *bigger = tp__mul_size(grown, item_size, &bytes) ? realloc(items, bytes) : NULL;
  if (bigger == NULL) return tp__no_memory(err, bytes);
  memcpy(list, &bigger, sizeof bigger);
  *capacity = grown;
  return TP_OK;
}

/* ---- joining ---- */

static tp_status add_photo_record(tp__build *build, size_t index, tp_error *err)
{
  tp__catalog *c = build->catalog;
  tp__data_file *f = &c->files[index];
  tp__record *r = &c->records[c->n_records];
  *r = (tp__record){.file = (uint32_t)index, .image_size = (uint32_t)f->size, .id = f->id};
  tp_status status = tp__catalog_photo_label(build, f, &r->label, err);
  if (status == TP_OK) {
    c->n_records++;
    return TP_OK;
  }
  f->n_records = 0;
  char place[40];
  snprintf(place, sizeof place, "line %zu", f->line);
  if (f->list != NULL) status = tp__at(err, status, "%s", place);
  return tp__catalog_skip(build, status, f->list != NULL ? f->list : f->path, NULL, err);
}

static tp_status join(tp__build *build, const tp__shard_scan *scans, tp_error *err)
{
  tp__catalog *c = build->catalog;
  size_t records = 0;
  for (size_t i = 0; i < c->n_files; i++) records += c->files[i].n_records;
  c->records = tp__calloc(records, sizeof *c->records, err);
  if (c->records == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < c->n_files; i++) {
    if (c->files[i].photo) {
      TP__TRY(add_photo_record(build, i, err));
      continue;
    }
    if (scans[i].n_records > 0)
      memcpy(c->records + c->n_records, scans[i].records, scans[i].n_records * sizeof *c->records);
    c->n_records += scans[i].n_records;
    for (size_t k = 0; k < scans[i].n_bad; k++) {
      TP__TRY(tp__list_grow(&c->bad, c->n_bad, &c->bad_capacity, sizeof *c->bad, err));
      c->bad[c->n_bad++] = scans[i].bad[k];
    }
  }
  return TP_OK;
}

/* A shard that was cut between two records is sound in itself; only its name can tell. */
static void compare_with_names(const tp__catalog *c, const tp__log *log)
{
  for (size_t i = 0; i < c->n_files && c->n_bad == 0; i++) {
    uint64_t count = 0;
    const tp__data_file *f = &c->files[i];
    if (!f->photo && tp__shard_name_count(f->path, &count) && count != f->n_records)
      tp__warn(log, "%s: has %zu records, its name says %llu: was it copied whole?", f->path,
               f->n_records, (unsigned long long)count);
  }
}

static tp_status nothing_found(const tp__catalog *c, const char *pattern, tp_error *err)
{
  if (c->n_bad == 0)
    return tp__fail(err, TP_ERR_DATA, "%s: no examples in %zu file%s", pattern, c->n_files,
                    c->n_files == 1 ? "" : "s");
  const tp__bad_record *b = &c->bad[0];
  char where[64] = "";
  if (b->number >= 0)
    snprintf(where, sizeof where, "record %lld at byte %llu: ", (long long)b->number,
             (unsigned long long)b->offset);
  return tp__fail(err, TP_ERR_DATA, "none of the %zu records can be used; the first: %s: %s%s",
                  c->n_bad, b->file, where, b->reason);
}

static tp_status build_all(tp__build *build, const tp__log *log, tp_error *err)
{
  tp__catalog *c = build->catalog;
  TP__TRY(tp__catalog_bad_limit(build, err));
  TP__TRY(tp__catalog_find_files(build, err));
  TP__TRY(tp__catalog_name_classes(build, err));
  tp__shard_scan *scans = NULL;
  tp_status status = tp__catalog_scan_shards(build, &scans, err);
  if (status == TP_OK) status = join(build, scans, err);
  tp__catalog_scans_free(scans, c->n_files);
  TP__TRY(status);
  TP__TRY(tp__catalog_check_bad(build, log, err));
  compare_with_names(c, log);
  if (c->n_records == 0) return nothing_found(c, build->options->patterns[0], err);
  if (c->n_files > KEEP_OPEN_MAX) return TP_OK;
  c->handles = tp__calloc(c->n_files, sizeof *c->handles, err);
  return c->handles != NULL ? TP_OK : TP_ERR_INTERNAL;
}

tp_status tp__catalog_open(const tp__catalog_options *options, tp__pool *pool, const tp__log *log,
                           tp__catalog **catalog, tp_error *err)
{
  tp_error own; /* the reasons of skipped records are made of error texts, wanted or not */
  if (err == NULL) err = &own;
  tp__build build = {.options = options, .pool = pool};
  build.image_feature = options->image_feature != NULL ? options->image_feature : "image";
  build.class_feature = options->class_feature != NULL ? options->class_feature : "class";
  build.id_feature = options->id_feature != NULL ? options->id_feature : "id";
  build.catalog = tp__calloc(1, sizeof *build.catalog, err);
  if (build.catalog == NULL) return TP_ERR_INTERNAL;
  pthread_mutex_init(&build.catalog->lock, NULL);
  tp_status status = build_all(&build, log, err);
  free(build.class_names);
  tp__label_index_free(&build.index);
  if (status == TP_OK)
    *catalog = build.catalog;
  else
    tp__catalog_free(build.catalog);
  return status;
}

void tp__catalog_free(tp__catalog *c)
{
  if (c == NULL) return;
  for (size_t i = 0; i < c->n_files; i++) {
    if (c->handles != NULL && atomic_load(&c->handles[i]) > 0)
      close(atomic_load(&c->handles[i]) - 1);
    free(c->files[i].memory);
    tp__arena_free(&c->files[i].ids);
  }
  free(c->handles);
  free(c->files);
  free(c->records);
  free(c->bad);
  tp__arena_free(&c->arena);
  pthread_mutex_destroy(&c->lock);
  free(c);
}

/* ---- questions ---- */

size_t tp__catalog_count(const tp__catalog *catalog)
{
  return catalog->n_records;
}

const tp__record *tp__catalog_record(const tp__catalog *catalog, size_t index)
{
  return &catalog->records[index];
}

size_t tp__catalog_files(const tp__catalog *catalog)
{
  return catalog->n_files;
}

const char *tp__catalog_file(const tp__catalog *catalog, size_t file, size_t *n_records)
{
  if (n_records != NULL) *n_records = catalog->files[file].n_records;
  return catalog->files[file].path;
}

const char *const *tp__catalog_labels(const tp__catalog *catalog, size_t *count)
{
  *count = catalog->n_labels;
  return catalog->labels;
}

const tp__bad_record *tp__catalog_bad(const tp__catalog *catalog, size_t *count)
{
  *count = catalog->n_bad;
  return catalog->bad;
}

void tp__catalog_where(const tp__catalog *catalog, size_t index, char *text, size_t size)
{
  const tp__record *r = &catalog->records[index];
  const tp__data_file *f = &catalog->files[r->file];
  if (f->photo)
    snprintf(text, size, "%s", f->path);
  else
    snprintf(text, size, "%s: record %u at byte %llu", f->path, r->number,
             (unsigned long long)r->offset);
}
