/* h5_wire - what the HDF5 child and its parent say to each other through the pipe.
 *
 * A message is a fixed head, `text_size` bytes of text, `bytes` bytes of payload. Reading: one
 * FORMAT, TENSORs, END. Writing: one IMAGE (the whole file), END. ERROR (text: the fact) may come
 * at any time and is the last. The child's memory may have been overwritten by a hostile file, so
 * the parent checks each field before it uses it.
 */
#ifndef TP_H5_WIRE_H
#define TP_H5_WIRE_H

#include "weights_formats.h"

enum { TP__H5_MAGIC = 0x35487054, TP__H5_TEXT_MAX = 1500 };

typedef enum tp__h5_kind {
  TP__H5_FORMAT,
  TP__H5_TENSOR,
  TP__H5_IMAGE,
  TP__H5_ERROR,
  TP__H5_END
} tp__h5_kind;

typedef struct tp__h5_head {
  uint32_t magic, kind, text_size, dtype;
  int32_t rank, zero;
  int64_t dim[TP__RANK_MAX];
  uint64_t bytes;
} tp__h5_head;

/* In the child. False: the parent is gone. */
bool tp__h5_send(int out, tp__h5_kind kind, const char *text, const tp__tensor *tensor,
                 const void *payload, uint64_t bytes);

/* In the child: the library silent, no filter plugins loaded. */
void tp__h5_quiet(void);

/* The bodies of the two children (tp__child_fn). arg: tp__h5_reading, tp__h5_writing. */
typedef struct tp__h5_reading {
  const tp__h5_source *source; /* its fd is the child's `in` */
  uint64_t max_bytes;          /* of one array */
} tp__h5_reading;
int tp__h5_read_body(void *arg, int in, int out);

typedef struct tp__h5_writing {
  const tp__tensors *set;
  const char *const *layers;
  size_t n_layers;
} tp__h5_writing;
int tp__h5_write_body(void *arg, int in, int out);

#endif
