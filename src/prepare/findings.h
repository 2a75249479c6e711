/* findings - everything inspect learns about a data set, and the parts that gather and tell it.
 *
 *   inspect.c       opens, looks at every picture in parallel, counts
 *   inspect_count.c sizes, classes, ids
 *   duplicates.c    equal pictures, by bytes and by pixels
 *   inspect_text.c  the report for people; inspect_json.c the same for programs
 */
#ifndef TP_FINDINGS_H
#define TP_FINDINGS_H

#include "base/job.h"
#include "data/catalog.h"
#include "data/labels.h"
#include "image/image.h"
#include "prepare.h"

/* What one record's picture is. */
typedef struct tp__look {
  uint64_t bytes_hash, pixels_hash; /* pixels_hash: of size and pixels; only when decoded */
  int height, width;                /* 0: the header cannot be read */
  uint8_t format, orientation;
  bool decoded;
  const char *fault; /* NULL: none */
} tp__look;

/* A folder that shards (or class folders) lie in. */
typedef struct tp__split {
  const char *path,
      *name; /* name: the last part of the path, or the whole where that is not unique */
  int64_t files, records, labelled;
} tp__split;

typedef struct tp__size_count {
  int height, width;
  int64_t count;
} tp__size_count;

/* Records with the same picture. */
typedef struct tp__twins {
  size_t first, count; /* in findings.twin */
  bool across;         /* in more than one split */
  bool contradict;     /* with different labels */
  bool pixels;         /* equal only after decoding */
} tp__twins;

enum { TP__FORMATS = TP__FORMAT_JPEG_XL_OR_AVIF + 1 };

typedef struct tp__findings {
  tp__arena arena;
  tp__catalog *catalog;
  tp__labels labels;             /* of a labels file */
  const char *const *class_name; /* [n_names] or NULL */
  size_t n_names;
  size_t n;       /* records */
  tp__look *look; /* [n] */
  bool decode;
  tp__split *split;
  size_t n_splits;
  uint32_t *split_of; /* [files] */
  tp__bad_record *fault;
  size_t n_faults, faults_capacity;
  size_t n_classes;
  int64_t *class_count; /* [n_classes, n_splits] */
  tp__size_count *size; /* from the most frequent */
  size_t n_sizes;
  int64_t format[TP__FORMATS];
  int64_t turned; /* pictures with an EXIF orientation other than 1 */
  tp__twins *twins;
  size_t n_twins;
  uint32_t *twin;
  int64_t twin_faults;
  const char **note;
  size_t n_notes, notes_capacity;
} tp__findings;

/* Adds a line to the notes. */
tp_status tp__findings_note(tp__findings *f, tp_error *err, const char *format, ...)
    TP_PRINTF(3, 4) TP_CHECKED;

/* "3 (wild rose)" or "3": writes to text and returns it. */
const char *tp__findings_class(const tp__findings *f, int64_t label, char *text, size_t size);

/* What is counted once every picture has been looked at. */
tp_status tp__count_sizes(tp__findings *f, tp_error *err) TP_CHECKED;
tp_status tp__count_classes(tp__findings *f, tp_error *err) TP_CHECKED;
/* Notes: empty and unequal classes, partly labelled splits; ids that occur twice. */
tp_status tp__note_classes(tp__findings *f, tp_error *err) TP_CHECKED;
tp_status tp__note_ids(tp__findings *f, tp_error *err) TP_CHECKED;
tp_status tp__find_duplicates(const tp__job *job, tp__findings *f, tp_error *err) TP_CHECKED;
tp_status tp__report_text(const tp__findings *f, char **text, tp_error *err) TP_CHECKED;
tp_status tp__report_json(const tp__findings *f, const char *path, tp_error *err) TP_CHECKED;

#endif
