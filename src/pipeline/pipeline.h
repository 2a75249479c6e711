/* pipeline - from a catalog to batches, in an order that is a function of (seed, epoch) alone.
 *
 *   order (seed, epoch) ──> read ──> decode ──> resize, flip, rotate ──> batch slot, mixed ──>
 * consumer
 *                            \__ cache (encoded bytes or 8-bit pixels) __/
 *
 * The order is worked out before anything is read: interleaved shards through a shuffle buffer, on
 * indices. Then each example is a unit of work with a fixed place (batch, row), done by whichever
 * thread of the pool is free: batches are the same for any number of threads, and a run continues
 * from any (epoch, step) without reading what came before (DESIGN D5).
 *
 * Work is done in the background of the pool (pool.h) while the consumer computes, at most
 * `prefetch` batches ahead, also across the end of an epoch. Several pipelines may share a pool.
 * Neighbours: data (bytes), image (pixels), train (consumer).
 */
#ifndef TP_PIPELINE_H
#define TP_PIPELINE_H

#include "base/group.h"
#include "base/log.h"
#include "base/pool.h"
#include "data/catalog.h"
#include "image/image.h"

typedef enum tp__cache { TP__CACHE_NONE, TP__CACHE_ENCODED, TP__CACHE_PIXELS } tp__cache;

typedef struct tp__pipeline_options {
  const tp__catalog *catalog; /* borrows */
  tp__image_recipe recipe;
  int batch;              /* examples in a batch; the last of an epoch may be smaller */
  int process, processes; /* of a batch's rows, those of this process are made (group.h), which may
                             be none; processes 0: all */
  int replicas;           /* that deal the rows of each process among them; 0: 1 */
  bool training;          /* augmentation and shuffling; else the records' order, no augmentation */
  uint64_t seed;
  int64_t shuffle; /* size of the shuffle buffer; 0: order of the files, -1: whole set. Only when
                      training */
  int interleave;  /* shards read in turn, 1 or more. Only when training */
  float mixup, cutmix; /* 0: off; above 0, up to 100: the alpha of the mixing of each example with
                          the next one of its batch (mix.c). Only when training */
  int steps_per_epoch; /* 0: every example once. More than there are: TP_ERR_USAGE saying how many
                          there are */
  int prefetch;        /* batches ahead; 0: 2 */
  tp__cache cache;
  const _Atomic uint8_t *known; /* NULL, or [examples]: where it is set the consumer needs no
                                   pixels, and the row is left as it is. Borrows; the consumer may
                                   set more at any time, never unset */
  uint64_t cache_limit;     /* bytes; 0: 4 GB. The need is said before; over the limit: TP_ERR_USAGE
                               with need and advice */
  int64_t max_bad_pictures; /* so many different pictures may be damaged: they are left out of their
                               batches; 0: error */
} tp__pipeline_options;

/* One batch; everything is borrowed until the next call on the pipeline. */
typedef struct tp__batch {
  int64_t n;
  int64_t total;           /* rows of all processes; 0 after the last batch */
  const float *pixels;     /* [n,height,width,3], 0...255 */
  const int32_t *labels;   /* [n]; -1: none */
  const int32_t *labels_2; /* [n], where examples are mixed: of the part with the smaller share */
  const float *share;      /* [n]: that of the larger part, 0.5 to 1. Both NULL: nothing is mixed */
  const uint32_t *keys;    /* [n,2]: tp__key_of(seed, epoch, example) for dropout */
  const uint32_t *example; /* [n]: index into the catalog */
  uint32_t epoch;          /* 0-based */
  int64_t step;            /* 0-based in the epoch */
  bool last;               /* of its epoch */
} tp__batch;

/* Where the time goes, summed over threads since the last reset, seconds. */
typedef struct tp__meter {
  double read, decode, finish; /* busy: reading bytes, decoding, resize + flip + rotate */
  double waiting;              /* the consumer had to wait for a batch (idle or helping) */
  double idle;                 /* ... of it with nothing to do at all */
  int64_t examples;
} tp__meter;

typedef struct tp__pipeline tp__pipeline;

/* Errors: see options. The pool is borrowed. Returns: tp__pipeline_free. */
tp_status tp__pipeline_new(const tp__pipeline_options *options, tp__pool *pool, const tp__log *log,
                           tp__pipeline **pipeline, tp_error *err) TP_CHECKED;
void tp__pipeline_free(tp__pipeline *pipeline);

int64_t tp__pipeline_steps(const tp__pipeline *pipeline);    /* batches in an epoch */
int64_t tp__pipeline_examples(const tp__pipeline *pipeline); /* examples in an epoch */

/* Pixels or labels of an example differ from epoch to epoch. */
bool tp__input_varies(const tp__pipeline_options *options);
bool tp__pipeline_varies(const tp__pipeline *pipeline);

/* Goes to a place: the next batch is (epoch, step). This pair is the whole cursor: saving it is
 * enough to continue. epochs: stop prefetching at the end of epoch `epochs - 1` (0: never). */
tp_status tp__pipeline_seek(tp__pipeline *pipeline, uint32_t epoch, int64_t step, uint32_t epochs,
                            tp_error *err) TP_CHECKED;

/* The next batch; after the last one of the last epoch: n = 0. A damaged picture: error with file,
 * record and byte (TP_ERR_DATA), the first in the order of the rows; the same error again on the
 * next call. With max_bad_pictures the example is left out instead, rows keep their order, and it
 * is listed (tp__pipeline_bad). A batch is never empty: one without a good picture is passed over,
 * and if it was the epoch's last, the one before it is marked as the last; but with several
 * processes every batch is delivered, for the others may have rows of it. */
tp_status tp__pipeline_next(tp__pipeline *pipeline, tp__batch *batch, tp_error *err) TP_CHECKED;

/* What max_bad_pictures let pass in batches that were delivered, each picture once, in the order
 * they were met. Borrowed until the next call on the pipeline. */
const tp__bad_record *tp__pipeline_bad(const tp__pipeline *pipeline, size_t *count);
uint32_t tp__pipeline_bad_example(const tp__pipeline *pipeline, size_t index);
/* Lists what another process has met, unless it is listed. Errors: more than max_bad_pictures. */
tp_status tp__pipeline_add_bad(tp__pipeline *pipeline, uint32_t example, const char *reason,
                               tp_error *err) TP_CHECKED;

/* Adds up since the last reset. */
void tp__pipeline_meter(tp__pipeline *pipeline, tp__meter *meter, bool reset);

/* The order of one epoch: n indices into the catalog. file_of: which shard each example lies in
 * (nondecreasing). Interleaving takes one example in turn from `interleave` open shards (shards in
 * an order shuffled by the epoch), then a shuffle buffer of `shuffle` examples gives a random one
 * each time (tf.data's semantics; 1 keeps the interleaved order, -1 holds the whole set). shuffle
 * 0: the records' order in every epoch, without interleaving. A pure function. */
tp_status tp__order_make(const uint32_t *file_of, size_t n, int64_t shuffle, int interleave,
                         uint64_t seed, uint32_t epoch, uint32_t *order, tp_error *err) TP_CHECKED;

#endif
