/* example - the payload of a record: tf.train.Example, a map from feature names to lists of values.
 *
 * Parsed by protobuf-c (example.proto) into memory of the parser that is reused from record to
 * record, within a limit. Semantics are protobuf's: the order of keys means nothing, the last of
 * several equal keys wins, an Example given in several pieces is merged, packed and unpacked
 * numbers are the same, unknown fields are skipped.
 *
 * Errors are TP_ERR_DATA and name the key, what is wanted and what was found; the caller adds file
 * and record.
 *
 * Neighbours: tfrecord gives payloads, catalog decides which features it needs.
 */
#ifndef TP_EXAMPLE_H
#define TP_EXAMPLE_H

#include "base/base.h"

typedef enum tp__feature_kind {
  TP__FEATURE_MISSING, /* no such key */
  TP__FEATURE_EMPTY,   /* the key is there, without any list */
  TP__FEATURE_MIXED,   /* lists of several kinds, which no sound writer makes */
  TP__FEATURE_BYTES,
  TP__FEATURE_INT64,
  TP__FEATURE_FLOAT
} tp__feature_kind;

/* The list of one key. */
typedef struct tp__feature {
  tp__feature_kind kind;
  size_t count;          /* values in the list */
  const int64_t *int64s; /* INT64 */
  const float *floats;   /* FLOAT */
  const uint8_t *bytes;  /* BYTES: the first byte string */
  size_t size;
} tp__feature;

/* Born zeroed; one thread at a time. What it gives is valid until the next parse. */
typedef struct tp__example {
  struct tp__example_chunk *chunk;
  size_t used, limit;     /* bytes given to the current message, and its limit */
  const uint8_t *payload; /* borrows */
  size_t payload_size;
  void *message;
} tp__example;

tp_status tp__example_parse(tp__example *example, const uint8_t *payload, size_t size,
                            tp_error *err) TP_CHECKED;
void tp__example_free(tp__example *example);

/* The list of a key; kind TP__FEATURE_MISSING when it is not there. */
tp__feature tp__example_find(const tp__example *example, const char *key);

/* Exactly one byte string; *data points into the payload itself. */
tp_status tp__example_bytes(const tp__example *example, const char *key, const uint8_t **data,
                            size_t *size, tp_error *err) TP_CHECKED;

/* Exactly one whole number. */
tp_status tp__example_int64(const tp__example *example, const char *key, int64_t *value,
                            tp_error *err) TP_CHECKED;

/* What a record of a data set holds, for writing. */
typedef struct tp__example_fields {
  const char *image_feature, *class_feature, *id_feature; /* NULL: image, class, id */
  const uint8_t *image;                                   /* borrows */
  size_t image_size;
  int64_t label;  /* < 0: no class feature is written */
  const char *id; /* NULL: no id feature */
} tp__example_fields;

/* Adds the serialised Example to out. */
tp_status tp__example_pack(const tp__example_fields *fields, tp__buffer *out,
                           tp_error *err) TP_CHECKED;

#endif
