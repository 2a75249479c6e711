/* shards - makes many records in parallel and writes them in order, so that the bytes do not depend
 * on threads. */
#ifndef TP_SHARDS_H
#define TP_SHARDS_H

#include "base/job.h"
#include "data/shard_writer.h"

/* How far a job is; tells the caller at most ten times a second. */
typedef struct tp__tally {
  const tp__job *job;
  const char *stage;
  int64_t done, total;
  double start, told;
} tp__tally;

void tp__tally_start(tp__tally *tally, const tp__job *job, const char *stage, int64_t total);
void tp__tally_add(tp__tally *tally, int64_t count);
void tp__tally_end(tp__tally *tally);

/* Makes one record: encoded image into bytes (empty when called; or fields->image set to memory
 * that stays), the rest into fields. Called from many threads. A record is left out when *skip is
 * set. */
typedef tp_status (*tp__record_fn)(void *arg, size_t item, int worker, tp__buffer *bytes,
                                   tp__example_fields *fields, bool *skip, tp_error *err);

/* Writes items 0...count-1 into `shards` files of nearly equal size in a folder that exists. width
 * 0: sizes are mixed. TP_STOPPED when the job is stopped. */
tp_status tp__write_shards(tp__tally *tally, const char *folder, size_t count, size_t shards,
                           int width, int height, tp__record_fn make, void *arg,
                           tp_error *err) TP_CHECKED;

#endif
