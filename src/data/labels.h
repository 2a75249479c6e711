/* labels - names of classes: a text file with one per line, and the index of a name.
 *
 * The line's number (0-based) is the class. Names are kept byte for byte, spaces included; only a
 * line's CR is dropped, and a byte order mark. An empty line in the middle would silently shift all
 * classes after it, a name that is there twice would make two classes one: both are errors.
 */
#ifndef TP_LABELS_H
#define TP_LABELS_H

#include "base/base.h"

/* More classes than any classifier has: a larger label, or longer file, is a mistake. */
#define TP__CLASSES_MAX 1000000

typedef struct tp__labels {
  tp__arena arena;
  const char **name; /* [count] */
  size_t count;
} tp__labels;

/* Errors: TP_ERR_DATA with path and line. Returns: tp__labels_free. */
tp_status tp__labels_read(const char *path, tp__labels *labels, tp_error *err) TP_CHECKED;
void tp__labels_free(tp__labels *labels);

/* Names in bytewise order with their classes, to look names up. Born zeroed. */
typedef struct tp__label_index {
  struct tp__label_entry {
    const char *name; /* borrows */
    size_t label;
  } * entry;
  size_t count;
} tp__label_index;

/* Error: TP_ERR_DATA when two names are equal ("name X is there twice: class 3 and 7"). */
tp_status tp__label_index_build(tp__label_index *index, const char *const *names, size_t count,
                                tp_error *err) TP_CHECKED;
void tp__label_index_free(tp__label_index *index);

/* The class of a name of size bytes; false when there is none. */
bool tp__label_index_find(const tp__label_index *index, const char *name, size_t size,
                          size_t *label);

#endif
