/* h5_strings - lists of strings kept as HDF5 attributes, as Keras keeps them. Only used in the HDF5
 * child. */
#ifndef TP_H5_STRINGS_H
#define TP_H5_STRINGS_H

#include <hdf5.h>

#include "base/base.h"

/* The largest attribute Keras writes in one piece, bytes (HDF5_OBJECT_HEADER_LIMIT). */
enum { TP__H5_ATTRIBUTE_MAX = 64512 };

typedef struct tp__h5_strings {
  const char **item; /* in the arena */
  size_t count;
} tp__h5_strings;

/* True when the object has the list, whole or split. */
bool tp__h5_has_strings(hid_t object, const char *name);

/* Reads attribute `name`, or name0, name1, ... joined. Strings of fixed length (null or space
 * padded) or variable length, ASCII or UTF-8; one string, a list, or Keras' empty list (float64 of
 * shape (0,)). The arena keeps them. */
tp_status tp__h5_read_strings(hid_t object, const char *name, tp__arena *arena,
                              tp__h5_strings *into, tp_error *err) TP_CHECKED;

/* Writes a list of fixed-length strings, split into name0, name1, ... as numpy.array_split does
 * when it is longer than TP__H5_ATTRIBUTE_MAX; an empty list as Keras does. */
tp_status tp__h5_write_strings(hid_t object, const char *name, const char *const *item,
                               size_t count, tp_error *err) TP_CHECKED;

/* One string as a scalar. */
tp_status tp__h5_write_string(hid_t object, const char *name, const char *text,
                              tp_error *err) TP_CHECKED;

#endif
