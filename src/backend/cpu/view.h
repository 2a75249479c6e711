/* view - how a value lies in memory, the same for plain and fast operators.
 *
 * A per-example value is n examples of h x w pixels of c channels: pixel (y, x) of example i starts
 * at i * row + (y * w + x) * pitch. [N,H,W,C] is that; [N,C] has one pixel; [N] has one pixel of
 * one channel; other ranks count their middle dimensions as h. A shared value is dense: n = 1, h =
 * 1, w = 1, c = its elements; kernels are read by their shape. What lies between c and pitch is
 * padding: written freely, never read into a result.
 */
#ifndef TP_VIEW_H
#define TP_VIEW_H

#include "graph/graph.h"

typedef struct tp__view {
  void *data; /* NULL: operand absent. f32 except labels (i32) and keys (u32) */
  const tp__shape *shape;
  int64_t n, h, w, c;
  int64_t pitch; /* elements from one pixel to the next */
  int64_t row;   /* elements from one example to the next */
} tp__view;

/* The geometry of a value for n examples; pitch <= 0: dense. data is left NULL. */
static inline tp__view tp__view_of(const tp__shape *shape, int64_t n, int64_t pitch)
{
  tp__view v = {.shape = shape, .n = 1, .h = 1, .w = 1, .c = 1};
  if (shape->rank == 0 || shape->dim[0] != TP__N) {
    for (int i = 0; i < shape->rank; i++) v.c *= shape->dim[i];
    v.pitch = v.row = v.c;
    return v;
  }
  v.n = n;
  if (shape->rank == 4) v.h = shape->dim[1], v.w = shape->dim[2];
  if (shape->rank == 3) v.h = shape->dim[1];
  for (int i = 1; shape->rank > 4 && i < shape->rank - 1; i++) v.h *= shape->dim[i];
  if (shape->rank > 1) v.c = shape->dim[shape->rank - 1];
  v.pitch = pitch > 0 ? pitch : v.c;
  v.row = v.h * v.w * v.pitch;
  return v;
}

static inline int64_t tp__pixels(const tp__view *v)
{
  return v->h * v->w;
}

/* Channel 0 of pixel p (row-major in h, w) of example i. */
static inline float *tp__pixel(const tp__view *v, int64_t i, int64_t p)
{
  return (float *)v->data + i * v->row + p * v->pitch;
}

#endif
