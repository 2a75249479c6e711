/* tensor - typed, shaped numbers in host memory, and named sets of them (weights, optimizer state,
 * checkpoints).
 *
 * Row-major. A set keeps the order in which tensors were added; names are unique in it. Weight
 * names are Keras' paths, "layer/variable": block1a_dwconv/kernel, stem_bn/moving_mean,
 * predictions/bias. Layouts are Keras':
 *
 *   convolution kernel   [kh, kw, in, out]
 *   depthwise kernel     [kh, kw, channels, 1]
 *   dense kernel         [in, out]
 *   batch norm           gamma, beta, moving_mean, moving_variance [channels]
 *   normalization        mean, variance [channels], count [] i64
 */
#ifndef TP_TENSOR_H
#define TP_TENSOR_H

#include "base/base.h"

typedef enum tp__dtype {
  TP__F32,
  TP__I32,
  TP__U32,
  TP__U8,
  TP__I64,
  TP__F64,
  TP__F16,
  TP__BF16
} tp__dtype;

enum { TP__RANK_MAX = 6 };

/* A dimension of TP__N is the number of examples, known only when a program runs; only dim[0] may
 * be it. */
enum { TP__N = -1 };

typedef struct tp__shape {
  int rank; /* 0: a scalar */
  int64_t dim[TP__RANK_MAX];
} tp__shape;

typedef struct tp__tensor {
  const char *name; /* the set keeps it */
  tp__dtype dtype;
  tp__shape shape;
  void *data; /* 64-byte aligned; the set keeps it */
} tp__tensor;

typedef struct tp__tensors {
  tp__tensor *item;
  size_t count, capacity;
} tp__tensors; /* born zeroed */

size_t tp__dtype_size(tp__dtype dtype);
const char *tp__dtype_name(tp__dtype dtype); /* "f32" */

/* Number of elements; TP__N counts as n. Checked: SIZE_MAX when it overflows. */
size_t tp__shape_elements(const tp__shape *shape, int64_t n);
bool tp__shape_equal(const tp__shape *a, const tp__shape *b);
/* "(None, 96, 96, 32)" as Keras prints; writes to text and returns it. */
char *tp__shape_text(const tp__shape *shape, char text[96]);
tp__shape tp__shape_make(int rank, const int64_t *dim);

static inline size_t tp__tensor_bytes(const tp__tensor *t)
{
  return tp__shape_elements(&t->shape, 0) * tp__dtype_size(t->dtype);
}

/* Adds a zeroed tensor (copies the name). Errors: name taken, out of memory. The pointer is valid
 * until the next add. */
tp_status tp__tensors_add(tp__tensors *set, const char *name, tp__dtype dtype,
                          const tp__shape *shape, tp__tensor **tensor, tp_error *err) TP_CHECKED;
/* NULL when there is none. */
tp__tensor *tp__tensors_find(const tp__tensors *set, const char *name);
/* A deep copy of all tensors; to must be empty. */
tp_status tp__tensors_copy(const tp__tensors *from, tp__tensors *to, tp_error *err) TP_CHECKED;
void tp__tensors_free(tp__tensors *set);

#endif
