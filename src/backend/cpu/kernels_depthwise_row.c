/* The rows of depthwise convolutions: one function per number of kernel columns and stride, and one
 * for all others. */
#include "backend/cpu/depthwise_row.h"

#include "backend/cpu/vec.h"

#define TP__ACROSS 6 /* outputs that a tile holds beside each other */

#define TAPS   1
#define STRIDE 1
#include "backend/cpu/depthwise_row.inc"
#define TAPS   2
#define STRIDE 1
#include "backend/cpu/depthwise_row.inc"
#define TAPS   3
#define STRIDE 1
#include "backend/cpu/depthwise_row.inc"
#define TAPS   5
#define STRIDE 1
#include "backend/cpu/depthwise_row.inc"
#define TAPS   3
#define STRIDE 2
#include "backend/cpu/depthwise_row.inc"
#define TAPS   5
#define STRIDE 2
#include "backend/cpu/depthwise_row.inc"

static tp__vec apply(tp__act act, tp__vec v)
{
#define RETURN(f) return f(v)
  TP__FOR_ACT(act, RETURN)
#undef RETURN
  return v;
}

static void row_any(const tp__depthwise_row *r)
{
  tp__vec total = r->sum != NULL ? tp__load(r->sum) : tp__zero();
  for (int i = 0; i < r->count; i++) {
    tp__vec sum = r->bias != NULL ? tp__load(r->bias) : tp__zero();
    for (int ky = 0; ky < r->rows; ky++)
      for (int kx = 0; kx < r->taps; kx++) {
        int column = r->column + i * r->stride + kx;
        if (column < 0 || column >= r->width) continue;
        tp__vec in = tp__load(r->x + ky * r->x_row + column * r->x_pixel);
        sum = tp__fma(in, tp__load(r->w + ky * r->w_row + kx * r->w_column), sum);
      }
    sum = apply(r->act, sum);
    total += sum;
    tp__store(r->y + i * r->y_pixel, sum);
  }
  if (r->sum != NULL) tp__store(r->sum, total);
}

tp__depthwise_row_fn *TP__FN(depthwise_row_for)(int taps, int stride)
{
  static const struct {
    int taps, stride;
    tp__depthwise_row_fn *run;
  } rows[] = {{1, 1, row_1_1}, {2, 1, row_2_1}, {3, 1, row_3_1},
              {5, 1, row_5_1}, {3, 2, row_3_2}, {5, 2, row_5_2}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].taps == taps && rows[i].stride == stride) return rows[i].run;
  return row_any;
}
