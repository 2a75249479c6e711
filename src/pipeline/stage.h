/* stage - what the files of the pipeline share: the ring of batch slots and the unit of work that
 * fills it.
 *
 *   ring     first ── planned ──┐          one lock guards the ring, the plan and the order; pixels
 * are written [due][wip][wip][held]         without it, each row by the one thread that claimed it
 *
 * A batch is planned into a free slot (its examples are copied from the epoch's order, so that one
 * order at a time is enough), its rows are claimed one by one, and when the last is done the owner
 * of the pool is woken. The slot the consumer has got stays untouched until its next call.
 */
#ifndef TP_STAGE_H
#define TP_STAGE_H

#include <pthread.h>
#include <stdatomic.h>

#include "picture_cache.h"

/* Why one row has no pixels. */
struct tp__fault {
  tp_status status; /* TP_OK: it has */
  bool picture;     /* the picture itself is damaged: max_bad_pictures may let it pass */
  char *text;       /* owned; NULL when there was no memory for it */
};

struct tp__slot {
  uint32_t epoch;
  int64_t step;
  size_t n, claimed, left; /* rows in all, given to a thread, not done yet */
  size_t total;            /* rows of all processes */
  size_t extra; /* 1: a row of another process stands behind, the partner of the last (mix.c) */
  bool last;
  float *pixels;           /* [batch,H,W,3] */
  int32_t *labels;         /* [batch] */
  int32_t *labels_2;       /* [batch] */
  float *share;            /* [batch] */
  uint32_t *keys;          /* [batch,2] */
  uint32_t *example;       /* [batch] */
  struct tp__fault *fault; /* [batch] */
};

struct tp__hand { /* what one thread needs */
  tp__buffer bytes;
  tp__picture picture;
  tp__image_scratch scratch;
};

enum {
  TP__STAGE_READ,
  TP__STAGE_DECODE,
  TP__STAGE_FINISH,
  TP__STAGE_WAITING,
  TP__STAGE_IDLE,
  TP__STAGES
};

/* How one row is mixed with the row after it. */
struct tp__mixture {
  float share; /* of the row itself; 1: nothing is done */
  bool cut;    /* the rectangle is the other's, else all pixels are mixed */
  tp__rect part;
};

struct tp__pipeline {
  tp__pipeline_options options;
  tp__pool *pool;
  const tp__log *log;
  tp__picture_cache *cache;
  struct tp__hand *hand; /* one for each thread of the pool */
  int hands;
  size_t n;                              /* examples in the catalog */
  size_t row;                            /* floats of one example */
  int64_t steps, examples;               /* of an epoch */
  atomic_uint_fast64_t busy[TP__STAGES]; /* nanoseconds */
  atomic_int_fast64_t delivered;

  pthread_mutex_t lock;
  struct tp__slot *slot; /* [slots] */
  size_t slots, first,
      planned; /* ring: the batch that is due, and how many are planned from there */
  bool held;   /* the slot before `first` is the consumer's */
  uint32_t plan_epoch, epochs; /* what is planned next, and where it ends (0: never) */
  int64_t plan_step;
  bool ended;
  uint32_t *file_of, *order; /* [n] */
  bool ordered, ordering;    /* `order` is that of order_epoch; it is being made */
  uint32_t order_epoch;
  tp_error failure; /* of making an order; status TP_OK: none */

  /* the consumer's alone */
  struct tp__mixture *mixture; /* [batch] */
  float *unmixed;              /* [H,W,3]: a first row, before it is mixed */
  bool running;                /* the pool knows the source of work */
  tp__arena arena;
  tp__bad_record *bad;
  uint32_t *bad_example;
  size_t bad_count, bad_capacity;
};

/* The source of background work (tp__work_fn): plans, or makes an order, or fills one row. */
bool tp__stage_work(void *pipeline, int worker);

/* Adds seconds to the meter. */
void tp__stage_count(tp__pipeline *pipeline, int stage, double seconds);

/* mix.c: mixes the n rows of a slot that is about to be delivered, on the pool's threads. */
bool tp__mixes(const tp__pipeline_options *options);
void tp__mix(tp__pipeline *pipeline, struct tp__slot *slot);

/* Forgets a slot's faults. */
void tp__slot_clear(struct tp__slot *slot);

#endif
