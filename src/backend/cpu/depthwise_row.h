/* depthwise_row - one row of outputs of a depthwise convolution, for one vector of channels.
 *
 * The forward convolution and the gradient to its input are the same loop: the gradient walks the
 * kernel backwards, and with stride s it splits into s * s convolutions of stride 1 with every s-th
 * tap, each giving every s-th pixel. Hence the separate steps of kernel rows, columns and outputs.
 */
#ifndef TP_DEPTHWISE_ROW_H
#define TP_DEPTHWISE_ROW_H

#include "backend/cpu/family.h"

/* Pointers are at the vector's first channel; steps are in floats. */
typedef struct tp__depthwise_row {
  const float *x; /* the first row that a tap reads, at column 0 */
  long x_row, x_pixel;
  int width;      /* columns of x: what lies outside counts as zero */
  int column;     /* the column of x that output 0 reads with tap 0, possibly outside */
  const float *w; /* the tap for that row and column */
  long w_row, w_column;
  int rows, taps; /* kernel rows inside the image; kernel columns */
  int stride;
  const float *bias; /* or NULL */
  float *y;
  long y_pixel;
  int count; /* outputs */
  tp__act act;
  float *sum; /* or NULL: [TP__V], to which the outputs are added in order */
} tp__depthwise_row;

typedef void tp__depthwise_row_fn(const tp__depthwise_row *r);

/* The fastest function for that number of kernel columns and stride. */
tp__depthwise_row_fn *TP__FN(depthwise_row_for)(int taps, int stride);

/* The kernel reads rows first ... first + rows - 1 of an image of `height` rows at x: leaves out
 * those that lie outside. w is the first row's tap; r's steps are set. */
static inline void tp__depthwise_clip(tp__depthwise_row *r, const float *x, const float *w,
                                      int first, int rows, int height)
{
  int from = first < 0 ? 0 : first;
  int end = first + rows < height ? first + rows : height;
  r->rows = end > from ? end - from : 0;
  r->x = r->rows > 0 ? x + from * r->x_row : x;
  r->w = r->rows > 0 ? w + (from - first) * r->w_row : w;
}

#endif
