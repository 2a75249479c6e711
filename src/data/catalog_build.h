/* catalog_build - what the parts of the catalog share while it is opened; see catalog.h.
 *
 *   catalog_files.c     patterns -> files, in order, none twice
 *   catalog_folder.c    a folder -> photos (per class or without) or shards
 *   catalog_csv.c       a CSV -> photos with labels
 *   catalog_shard.c     shards -> records, in parallel over files
 *   catalog_label.c     class names, and the label of each example
 *   catalog_bad.c       what may be skipped under max_bad
 *   catalog.c           the steps in order; joins the records; questions about them
 *   catalog_read.c      the encoded image of one example
 */
#ifndef TP_CATALOG_BUILD_H
#define TP_CATALOG_BUILD_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "catalog.h"
#include "labels.h"

/* A shard, or one photo. */
typedef struct tp__data_file {
  const char *path;
  const char *class_name; /* a photo's folder or CSV label; NULL: none */
  const char *id;         /* a photo's */
  const char *list;       /* the CSV that names the photo; NULL: none */
  size_t line;            /* and the line there, from 1 */
  bool photo;
  uint64_t size;           /* when it was opened, to notice changes */
  struct timespec changed; /* likewise */
  uint8_t *memory; /* a compressed shard's decompressed bytes, which the catalog owns; else NULL */
  size_t memory_size;
  size_t n_records;
  tp__arena ids; /* of a shard's records; apart per file, as files are read in parallel */
} tp__data_file;

struct tp__catalog {
  tp__arena arena; /* paths, names, reasons */
  tp__data_file *files;
  size_t n_files, files_capacity;
  tp__record *records;
  size_t n_records;
  const char **labels; /* in the arena */
  size_t n_labels;
  tp__bad_record *bad;
  size_t n_bad, bad_capacity;
  pthread_mutex_t lock; /* guards the opening of shards for reading */
  atomic_int
      *handles; /* [n_files] descriptor + 1; 0: not open. NULL: too many files to keep open */
};

typedef struct tp__build {
  const tp__catalog_options *options;
  tp__catalog *catalog;
  tp__pool *pool;
  const char *image_feature, *class_feature, *id_feature;
  bool bad_by_share;        /* max_bad was given in per cent */
  double bad_allowed;       /* records, or per cent */
  const char **class_names; /* folders' names, empty folders too; the same one may come often */
  size_t n_class_names, class_names_capacity;
  tp__label_index index; /* of the catalog's class names */
} tp__build;

/* Makes room for one more item of item_size bytes in a list; the list itself is the caller's to
 * free. */
tp_status tp__list_grow(void *list, size_t count, size_t *capacity, size_t item_size,
                        tp_error *err) TP_CHECKED;

/* ---- files ---- */
tp_status tp__catalog_find_files(tp__build *build, tp_error *err) TP_CHECKED;
tp_status tp__catalog_add_folder(tp__build *build, const char *path, tp_error *err) TP_CHECKED;
tp_status tp__catalog_add_csv(tp__build *build, const char *path, tp_error *err) TP_CHECKED;
tp_status tp__catalog_add_shard(tp__build *build, const char *path, tp_error *err) TP_CHECKED;

/* Adds a photo (all but photo, size and changed are the caller's, copied where they lie); its size
 * and time are asked from the system. A missing or overlong one is bad. */
tp_status tp__catalog_add_photo(tp__build *build, const tp__data_file *photo,
                                tp_error *err) TP_CHECKED;

/* The name of a file without folder and extension: the id of a photo without label. NULL: out of
 * memory. */
char *tp__photo_stem(tp__arena *arena, const char *path);

/* By the end of the name, in any case. */
bool tp__is_photo_name(const char *name);
bool tp__is_shard_name(const char *name);
bool tp__is_csv_name(const char *name);

/* ---- labels ---- */
/* Class names given, or made of the photos'; then the photos' labels, as records. */
tp_status tp__catalog_name_classes(tp__build *build, tp_error *err) TP_CHECKED;
/* The class of a photo, -1 when it has none. */
tp_status tp__catalog_photo_label(const tp__build *build, const tp__data_file *photo,
                                  int32_t *label, tp_error *err) TP_CHECKED;
/* The class for a stored number; smallest is the smallest number seen so far (for the hint at
 * label_base). */
tp_status tp__catalog_number_label(const tp__build *build, int64_t number, int64_t smallest,
                                   int32_t *label, tp_error *err) TP_CHECKED;

/* ---- shards ---- */
/* Reads all shards; *scans is an array [n_files], results of shards in theirs. Returns:
 * tp__catalog_scans_free. */
typedef struct tp__shard_scan {
  tp__record *records;
  size_t n_records, records_capacity;
  tp__bad_record *bad;
  size_t n_bad, bad_capacity;
  tp_status status; /* of the shard as a whole */
  char *text;       /* of the error; NULL when out of memory */
} tp__shard_scan;
tp_status tp__catalog_scan_shards(tp__build *build, tp__shard_scan **scans,
                                  tp_error *err) TP_CHECKED;
void tp__catalog_scans_free(tp__shard_scan *scans, size_t count);

/* ---- bad records ---- */
tp_status tp__catalog_bad_limit(tp__build *build, tp_error *err) TP_CHECKED;
static inline bool tp__catalog_may_skip(const tp__build *build)
{
  return build->bad_allowed > 0;
}
/* After a failure with TP_ERR_DATA: notes it in the catalog and returns TP_OK where max_bad may
 * allow it, else returns the failure. err->text is the reason; place, when not NULL, is where in
 * the file ("line 3"). */
tp_status tp__catalog_skip(tp__build *build, tp_status status, const char *file, const char *place,
                           tp_error *err) TP_CHECKED;
/* In the end: not more than allowed? */
tp_status tp__catalog_check_bad(const tp__build *build, const tp__log *log,
                                tp_error *err) TP_CHECKED;

#endif
