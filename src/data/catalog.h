/* catalog - every example of a data set, found and checked before the first step.
 *
 *   patterns ──> files ──> records (file, number, byte, label, id, where the encoded image lies)
 *
 * A data set is one of: TFRecord shards (glob patterns), a folder per class, or a CSV of
 * path,label. Opening it reads every file once (in parallel, framing and checksums verified), so
 * that the number of examples, their labels and ids are exact, faults are known before any device
 * time is spent, and any example can later be read alone, from any thread, in any order. Plain
 * files are read again with pread; compressed shards are kept decompressed in memory, up to a
 * limit.
 *
 * Order: the files in the order of the patterns, sorted (bytewise, by path) within each pattern, no
 * file twice; records as they lie.
 *
 * Ids: a shard's id feature (bytes or int64), else "FILE:NUMBER" with the shard's name; a photo of
 * a class folder: its path; of a CSV: the path as written there; without label: its name without
 * folder and extension.
 *
 * Labels: an int64 less label_base, or the bytes of a class name. In a CSV: a class name, else a
 * number. Class names that are not given are those of the folders, or of the CSV.
 *
 * Neighbours: the pipeline decides the order of examples and calls tp__catalog_read; image decodes.
 */
#ifndef TP_CATALOG_H
#define TP_CATALOG_H

#include "base/base.h"
#include "base/log.h"
#include "base/pool.h"

typedef struct tp__record {
  uint32_t file;         /* which file, see tp__catalog_file */
  uint32_t number;       /* 0-based record in the file; 0 for a photo of a folder or CSV */
  uint64_t offset;       /* byte at which the record starts (in the decompressed stream) */
  uint64_t image_offset; /* byte at which the encoded image starts */
  uint32_t image_size;   /* its bytes */
  int32_t label;         /* class index; -1: has none */
  const char *id;        /* never NULL; the catalog keeps it; see "Ids" above */
} tp__record;

typedef struct tp__catalog_options {
  const char *const *patterns; /* borrows */
  size_t n_patterns;
  const char *image_feature, *class_feature, *id_feature; /* NULL: image, class, id */
  /* Class names, borrows; NULL: not known. A label >= n_labels is an error, when that is not 0;
   * classes that are known by number only have n_labels without labels. */
  const char *const *labels;
  size_t n_labels;
  /* Subtracted from integer labels: 1 for shards that count classes from 1 (TF-Slim). */
  int64_t label_base;
  bool need_labels; /* an example without a label is an error (training, validation) */
  /* So many bad records are skipped and listed: "N" or "P%"; NULL or "0": none. */
  const char *max_bad;
  uint64_t memory_limit; /* for decompressed shards, bytes; 0: 4 GiB */
} tp__catalog_options;

/* One record (or file) that was left out under max_bad. */
typedef struct tp__bad_record {
  const char *file;
  int64_t number; /* -1: the file as a whole */
  uint64_t offset;
  const char *reason; /* one line */
} tp__bad_record;

typedef struct tp__catalog tp__catalog;

/* Errors: TP_ERR_DATA: nothing matched a pattern, damaged file, wrong feature, label out of
 * range... with file, record, byte. Returns: tp__catalog_free. The pool is used while opening and
 * not kept; log may be NULL. */
tp_status tp__catalog_open(const tp__catalog_options *options, tp__pool *pool, const tp__log *log,
                           tp__catalog **catalog, tp_error *err) TP_CHECKED;
void tp__catalog_free(tp__catalog *catalog);

size_t tp__catalog_count(const tp__catalog *catalog);
const tp__record *tp__catalog_record(const tp__catalog *catalog, size_t index);

/* Files in order, with the number of (good) records in each. */
size_t tp__catalog_files(const tp__catalog *catalog);
const char *tp__catalog_file(const tp__catalog *catalog, size_t file, size_t *n_records);

/* Class names: those given, or the folders' (sorted bytewise); NULL and 0 when unknown. The catalog
 * keeps them. */
const char *const *tp__catalog_labels(const tp__catalog *catalog, size_t *count);

/* What max_bad let pass. */
const tp__bad_record *tp__catalog_bad(const tp__catalog *catalog, size_t *count);

/* Replaces bytes' content by the encoded image of one example. Thread-safe. A file that has changed
 * or vanished since is an error. */
tp_status tp__catalog_read(const tp__catalog *catalog, size_t index, tp__buffer *bytes,
                           tp_error *err) TP_CHECKED;

/* "03-192x192-433.tfrec: record 12 at byte 91204", or the photo's path; for messages. */
void tp__catalog_where(const tp__catalog *catalog, size_t index, char *text, size_t size);

#endif
