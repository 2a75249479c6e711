/* shard_writer - writes one shard in the Kaggle layout, "NN-WxH-COUNT.tfrec".
 *
 * NN is the shard's index, WxH the size of its pictures, COUNT its records: known only at the end,
 * so the file gets its name when it is whole and on disk. Until then it has a temporary name that
 * no *.tfrec pattern matches.
 */
#ifndef TP_SHARD_WRITER_H
#define TP_SHARD_WRITER_H

#include "base/base.h"
#include "example.h"

typedef struct tp__shard_writer {
  tp__writer writer;
  char *folder;
  int index, width, height;
  uint64_t count;
  tp__buffer payload; /* of the record that is being written */
} tp__shard_writer;

/* The folder must exist. width 0: pictures of several sizes, the name says "mixed" instead of WxH.
 * After a failure nothing is open. */
tp_status tp__shard_writer_open(tp__shard_writer *shard, const char *folder, int index, int width,
                                int height, tp_error *err) TP_CHECKED;
tp_status tp__shard_writer_add(tp__shard_writer *shard, const tp__example_fields *example,
                               tp_error *err) TP_CHECKED;

/* Ends the shard, also on failure. *path: its final name (the caller frees it), NULL when it has no
 * records and so was not made; path may be NULL. */
tp_status tp__shard_writer_commit(tp__shard_writer *shard, char **path, tp_error *err) TP_CHECKED;

/* Removes what was written; does nothing after commit, or on a zeroed writer. */
void tp__shard_writer_cancel(tp__shard_writer *shard);

/* The COUNT in the name of such a shard; false for other names. */
bool tp__shard_name_count(const char *path, uint64_t *count);

#endif
