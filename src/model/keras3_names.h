/* keras3_names - the layers' names of a .keras file from its config.json, for files whose .h5 lacks
 * them (Keras 2.12 to the first releases of Keras 3).
 *
 * The .h5 calls a layer by its class and number, layers/conv2d_3; so does Keras while it walks the
 * model's layers in order, which are listed with class and name in the configuration.
 */
#ifndef TP_KERAS3_NAMES_H
#define TP_KERAS3_NAMES_H

#include "base/base.h"

typedef struct tp__keras3_name {
  const char *path; /* in the .h5: "layers/functional/layers/conv2d_3" */
  const char *name; /* "block1a_se_reduce" */
} tp__keras3_name;

typedef struct tp__keras3_names {
  tp__arena arena;
  tp__keras3_name *item; /* in the arena */
  size_t count, capacity;
} tp__keras3_names; /* born zeroed */

/* json: config.json, of size bytes. Error: TP_ERR_DATA. Free it also after a failure. */
tp_status tp__keras3_names_read(tp__keras3_names *names, const char *json, size_t size,
                                tp_error *err) TP_CHECKED;

/* NULL: not listed. names may be NULL. */
const char *tp__keras3_name_at(const tp__keras3_names *names, const char *path);

void tp__keras3_names_free(tp__keras3_names *names);

#endif
