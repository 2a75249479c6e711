/* feature_memory - pooled features of a frozen backbone, kept from the first epoch on.
 *
 * While the backbone is frozen the features of a picture that is prepared the same way each time
 * never change: not those of the validation set, and not those of the training set without
 * augmentation. Then later epochs read, decode and compute nothing but the head. The features are
 * the same bits as when they are computed anew.
 */
#ifndef TP_FEATURE_MEMORY_H
#define TP_FEATURE_MEMORY_H

#include "learner.h"

typedef struct tp__feature_memory {
  size_t examples, width;
  int batch_size;
  float *row; /* [examples, width]; NULL: not started, nothing is kept */
  _Atomic uint8_t
      *known;         /* [examples]: its row is filled; the pipeline then leaves the pixels out */
  float *batch;       /* [batch, width], rows of one batch together */
} tp__feature_memory; /* born zeroed: remembers nothing */

/* Makes `known`, for a pipeline to borrow; nothing is kept yet. */
tp_status tp__feature_memory_init(tp__feature_memory *m, size_t examples, int batch,
                                  tp_error *err) TP_CHECKED;
/* From now on features of that width are kept. */
tp_status tp__feature_memory_start(tp__feature_memory *m, size_t width, tp_error *err) TP_CHECKED;
/* Forgets all rows; seek the pipeline before its next batch, which may lack pixels. */
void tp__feature_memory_stop(tp__feature_memory *m);
void tp__feature_memory_free(tp__feature_memory *m);

/* The features of a batch [n, width]: known ones from memory, the others computed and remembered.
 * Returns: *features is valid until the next call. */
tp_status tp__feature_memory_get(tp__feature_memory *m, tp__learner *learner,
                                 const tp__batch *batch, const float **features,
                                 tp_error *err) TP_CHECKED;

#endif
