/* source - where bytes come from: a plain file that is read in pieces, or memory (a decompressed
 * shard).
 *
 * Files are read with pread, not mapped: a file that another program cuts short meanwhile must be
 * an error, and under a mapping it would be a signal. Errors here name no path; the caller, who
 * knows it, adds it.
 */
#ifndef TP_SOURCE_H
#define TP_SOURCE_H

#include <time.h>

#include "base/base.h"

typedef struct tp__source {
  int fd;                /* -1: memory */
  const uint8_t *memory; /* borrows */
  uint64_t size;         /* bytes, when it was opened */
  struct timespec changed;
} tp__source;

/* Opens a regular file. Error: TP_ERR_DATA. */
tp_status tp__source_open(tp__source *source, const char *path, tp_error *err) TP_CHECKED;
tp__source tp__source_memory(const void *data, size_t size);
void tp__source_close(tp__source *source);

/* Reads exactly size bytes. Error: TP_ERR_DATA when the source has fewer (it became shorter).
 * Thread-safe. */
tp_status tp__source_read(const tp__source *source, uint64_t offset, void *into, size_t size,
                          tp_error *err) TP_CHECKED;

/* What foreign bytes look like ("an HTML page", "a JPEG photo"); NULL: no idea. size may be short.
 */
const char *tp__looks_like(const uint8_t *bytes, size_t size);

#endif
