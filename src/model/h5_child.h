/* h5_child - what the files that read HDF5 in the child process share: h5_child.c (the file, legacy
 * models), h5_keras3.c (Keras 3), h5_array.c (one array). */
#ifndef TP_H5_CHILD_H
#define TP_H5_CHILD_H

#include <hdf5.h>

#include "h5_wire.h"

/* What Keras 2.12 to 2.15 called the group "layers". */
#define TP__H5_OLD_LAYERS "_layer_checkpoint_dependencies"

typedef struct tp__h5_reader {
  int out;
  uint64_t max_bytes;                   /* of one array */
  hid_t group_access, dataset_access;   /* property lists that refuse external links */
  const struct tp__keras3_names *names; /* may be NULL */
  size_t groups;                        /* visited: hard links may make cycles */
  tp__arena arena;
} tp__h5_reader;

/* Reads the dataset at `path` in the group and sends it under a name. */
tp_status tp__h5_send_array(tp__h5_reader *r, hid_t group, const char *path, const char *name,
                            tp_error *err) TP_CHECKED;

/* Sends all arrays of a Keras 3 file. */
tp_status tp__h5_read_keras3(tp__h5_reader *r, hid_t root, tp_error *err) TP_CHECKED;

#endif
