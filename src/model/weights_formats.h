/* weights_formats - the readers of the single formats, and the sink through which all of them add
 * tensors.
 *
 * Every size in a weight file is hostile until checked. The sink holds the limits once for all
 * formats: number of arrays, length and characters of names, and the total of bytes, which may not
 * exceed a multiple of the file's size (compressed and expanded arrays exist, endless ones do not).
 * Readers say facts; tp__weights_read adds the path. Files are little-endian, and so must the
 * machine be.
 */
#ifndef TP_WEIGHTS_FORMATS_H
#define TP_WEIGHTS_FORMATS_H

#include "weights.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weight files are read and written for little-endian machines only"
#endif

enum {
  TP__WEIGHTS_MAX_ARRAYS = 16384,
  TP__WEIGHTS_MAX_NAME = 512,
};

typedef struct tp__weights_sink {
  tp__tensors *into;
  uint64_t bytes_left;
} tp__weights_sink;

/* The largest total of array bytes that a file of this size may give: 64 MB + 20 times its size. */
uint64_t tp__weights_byte_limit(uint64_t file_bytes);

/* Adds a zeroed tensor. The name need not be terminated. Errors (TP_ERR_DATA): a limit, an odd
 * name, a name that is taken. */
tp_status tp__weights_add(tp__weights_sink *sink, const char *name, size_t name_size,
                          tp__dtype dtype, const tp__shape *shape, tp__tensor **tensor,
                          tp_error *err) TP_CHECKED;

/* Foreign text made fit for a message: at most 79 characters, others than printable ASCII as '?'.
 * Returns text. */
char *tp__printable(char text[80], const char *foreign, size_t size);

/* Reads size bytes at offset; a shorter file is an error with the byte at which it ends. */
tp_status tp__read_at(int fd, void *data, size_t size, uint64_t offset, tp_error *err) TP_CHECKED;

/* fd: open for reading; bytes: the file's size. The readers don't close it. */
tp_status tp__safetensors_read(int fd, uint64_t bytes, tp__weights_sink *sink, tp__buffer *metadata,
                               tp_error *err) TP_CHECKED;
/* Where an HDF5 file's bytes are: a descriptor, or memory (image, fd -1). */
typedef struct tp__h5_source {
  int fd;
  const void *image;
  uint64_t bytes;
  const struct tp__keras3_names *names; /* from config.json, where there is one; may be NULL */
} tp__h5_source;

tp_status tp__h5_read(const tp__h5_source *source, tp__weights_sink *sink, const char **format,
                      tp_error *err) TP_CHECKED;
tp_status tp__pth_read_legacy(int fd, uint64_t bytes, tp__weights_sink *sink,
                              tp_error *err) TP_CHECKED;

/* A zip file: PyTorch's (data.pkl and data/N) or Keras 3's (model.weights.h5), told apart by its
 * members. */
tp_status tp__zip_weights_read(int fd, uint64_t bytes, tp__weights_sink *sink, const char **format,
                               tp_error *err) TP_CHECKED;

#endif
