/* base - what every room stands on: status and error, checked sizes, arena, growable buffer, files,
 * clock.
 *
 *   error    tp__fail writes the fact (deepest frame), tp__at puts a place in front of it (each
 * frame on the way up) sizes    multiplications and additions of sizes that come from files are
 * checked arena    many small objects with one owner, freed together buffer   bytes that grow up to
 * a maximum it is born with files    read whole with a limit; write to a temporary name, sync,
 * rename
 *
 * Rules: includes nothing of the other rooms. No globals. Nothing exits, prints or aborts for an
 * outside cause. See also: pool.h (threads), rng.h (counter-based random numbers), log.h,
 * child.h (work that may crash), group.h (processes that work together), kv_store.h (what they
 * tell each other before).
 */
#ifndef TP_BASE_H
#define TP_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tepal.h"

/* ---- error ---- */

/* Writes the fact into err (may be NULL) and returns status, so that `return tp__fail(...)` is the
 * usual form. */
tp_status tp__fail(tp_error *err, tp_status status, const char *format, ...) TP_PRINTF(3, 4);

/* Puts "place: " in front of the text that err holds and returns err's status (TP_ERR_INTERNAL if
 * err is NULL). Only after a failure. */
tp_status tp__at(tp_error *err, tp_status status, const char *format, ...) TP_PRINTF(3, 4);

/* Out of memory, the same text everywhere. */
tp_status tp__no_memory(tp_error *err, size_t bytes);

/* Runs a call that returns tp_status; on failure returns from the caller with it. Only where
 * nothing needs clean-up. */
#define TP__TRY(call)                                                                              \
  do {                                                                                             \
    tp_status tp__try_ = (call);                                                                   \
    if (tp__try_ != TP_OK) return tp__try_;                                                        \
  } while (0)

/* ---- sizes ---- */

/* *out = a * b or a + b; false on overflow. */
static inline bool tp__mul_size(size_t a, size_t b, size_t *out)
{
  return !__builtin_mul_overflow(a, b, out);
}
static inline bool tp__add_size(size_t a, size_t b, size_t *out)
{
  return !__builtin_add_overflow(a, b, out);
}

/* calloc with an error that names the need. count or size of 0 gives a valid pointer. Returns:
 * caller frees. */
void *tp__calloc(size_t count, size_t size, tp_error *err);

/* 64-byte aligned, zeroed; free with free(). Returns: caller frees. */
void *tp__calloc_aligned(size_t count, size_t size, tp_error *err);

/* After much was freed: what the C library holds for later goes back to the system. */
void tp__give_memory_back(void);

/* strdup with an error. */
char *tp__strdup(const char *text, tp_error *err);

/* printf into a fresh string; NULL when out of memory. Returns: caller frees. */
char *tp__format(const char *format, ...) TP_PRINTF(1, 2);

/* "1.5 GB", "912 KB": writes at most 32 bytes to text and returns it. Decimal units. */
char *tp__bytes_text(char text[32], uint64_t bytes);

/* ---- arena: zeroed memory that is freed as one ---- */

typedef struct tp__arena {
  struct tp__arena_block *head;
} tp__arena; /* born zeroed: tp__arena a = {0}; */

/* 16-byte aligned, zeroed; NULL when out of memory. The arena keeps it. */
void *tp__arena_alloc(tp__arena *arena, size_t bytes);
char *tp__arena_strdup(tp__arena *arena, const char *text);
char *tp__arena_format(tp__arena *arena, const char *format, ...) TP_PRINTF(2, 3);
void tp__arena_free(tp__arena *arena);

/* ---- buffer: bytes that grow up to max ---- */

typedef struct tp__buffer {
  uint8_t *data;
  size_t size, capacity;
  size_t max; /* growing past it fails with TP_ERR_DATA */
} tp__buffer;

void tp__buffer_init(tp__buffer *buffer, size_t max);
tp_status tp__buffer_reserve(tp__buffer *buffer, size_t capacity, tp_error *err) TP_CHECKED;
tp_status tp__buffer_add(tp__buffer *buffer, const void *data, size_t size,
                         tp_error *err) TP_CHECKED;
tp_status tp__buffer_printf(tp__buffer *buffer, tp_error *err, const char *format, ...)
    TP_PRINTF(3, 4) TP_CHECKED;
void tp__buffer_free(tp__buffer *buffer); /* also takes one that was never used, if zeroed */

/* ---- files ---- */

/* Reads a whole file; an error names path and reason; larger than the buffer's max is an error. */
tp_status tp__file_read(const char *path, tp__buffer *into, tp_error *err) TP_CHECKED;

/* Writing that never leaves a half-written file under its final name: open, write..., commit
 * (flush, sync, rename, sync of the folder) or cancel (removes the temporary file). A target that
 * is not a regular file (/dev/stdout, /dev/full, a FIFO) is written directly. Errors are
 * TP_ERR_OUTPUT with path and the system's reason. */
typedef struct tp__writer {
  FILE *file;
  char *path, *temporary; /* temporary is NULL when written directly */
  uint64_t written;
} tp__writer;

tp_status tp__writer_open(tp__writer *w, const char *path, tp_error *err) TP_CHECKED;
/* Standard output; opening /dev/stdout by name comes here, too. */
tp_status tp__writer_stdout(tp__writer *w, tp_error *err) TP_CHECKED;
tp_status tp__writer_write(tp__writer *w, const void *data, size_t size, tp_error *err) TP_CHECKED;
tp_status tp__writer_printf(tp__writer *w, tp_error *err, const char *format, ...)
    TP_PRINTF(3, 4) TP_CHECKED;
tp_status tp__writer_commit(tp__writer *w,
                            tp_error *err) TP_CHECKED; /* ends the writer, also on failure */
/* Another final name, before commit; for names that hold a count known only at the end. Same
 * folder. */
tp_status tp__writer_rename(tp__writer *w, const char *path, tp_error *err) TP_CHECKED;
void tp__writer_cancel(tp__writer *w); /* does nothing after commit, or on a zeroed writer */

/* The three steps in one. */
tp_status tp__file_write(const char *path, const void *data, size_t size, tp_error *err) TP_CHECKED;

/* Makes a folder and its parents; an existing folder is fine. */
tp_status tp__make_folder(const char *path, tp_error *err) TP_CHECKED;
bool tp__is_file(const char *path);
bool tp__is_folder(const char *path);

/* ---- clock ---- */
double tp__now(void);        /* seconds, monotonic */
double tp__thread_cpu(void); /* seconds of processor time of this thread */

/* Resident memory of the process and its high-water mark, bytes (0 where unknown). */
uint64_t tp__resident_bytes(uint64_t *peak);

#endif
