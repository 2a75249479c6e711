/* Channel by channel over the pixels of one example: scaling, and sums in the order of the pixels.
 * scale, shift and sums have c floats; nothing behind them is touched.
 */
#include "backend/cpu/family.h"

#include "backend/cpu/vec.h"

void TP__FN(scale_channels)(long pixels, long c, const float *x, const float *scale, float *y)
{
  const long pitch = tp__pitch(c), whole = c / TP__V * TP__V;
  const tp__vec last = tp__load_part(scale + whole, c - whole);
  for (long p = 0; p < pixels; p++, x += pitch, y += pitch) {
    for (long i = 0; i < whole; i += TP__V) tp__store(y + i, tp__load(x + i) * tp__load(scale + i));
    if (whole < c) tp__store(y + whole, tp__load(x + whole) * last);
  }
}

void TP__FN(affine_channels)(long pixels, long c, const float *x, const float *scale,
                             const float *shift, float *y)
{
  const long pitch = tp__pitch(c), whole = c / TP__V * TP__V;
  const tp__vec last_scale = tp__load_part(scale + whole, c - whole),
                last_shift = tp__load_part(shift + whole, c - whole);
  for (long p = 0; p < pixels; p++, x += pitch, y += pitch) {
    for (long i = 0; i < whole; i += TP__V)
      tp__store(y + i, tp__fma(tp__load(x + i), tp__load(scale + i), tp__load(shift + i)));
    if (whole < c) tp__store(y + whole, tp__fma(tp__load(x + whole), last_scale, last_shift));
  }
}

void TP__FN(norm)(const tp__norm *v)
{
  const long whole = v->c / TP__V * TP__V, left = v->c - whole;
  const tp__vec last_scale = tp__load_part(v->scale + whole, left),
                last_shift = tp__load_part(v->shift + whole, left);
  const float *x = v->x;
  float *y = v->y;
#define PASS(f)                                                                                    \
  for (long p = 0; p < v->pixels; p++, x += v->x_pitch, y += v->y_pitch) {                         \
    for (long i = 0; i < whole; i += TP__V)                                                        \
      tp__store(y + i,                                                                             \
                f(tp__fma(tp__load(x + i), tp__load(v->scale + i), tp__load(v->shift + i))));      \
    if (left > 0) tp__store(y + whole, f(tp__fma(tp__load(x + whole), last_scale, last_shift)));   \
  }
  TP__FOR_ACT(v->act, PASS)
#undef PASS
}

/* Sums of COUNT neighbouring vectors: as many chains of additions as it takes to hide their
 * latency. sum is [COUNT]. */
#define SUMS(COUNT)                                                                                \
  static TP__NOINLINE void sums_##COUNT(long pixels, long pitch, const float *x, tp__vec *total)   \
  {                                                                                                \
    tp__vec sum[COUNT];                                                                            \
    TP__EACH(j, COUNT) sum[j] = tp__zero();                                                        \
    for (long p = 0; p < pixels; p++, x += pitch) {                                                \
      TP__EACH(j, COUNT) sum[j] += tp__load(x + j * TP__V);                                        \
    }                                                                                              \
    TP__EACH(j, COUNT) total[j] = sum[j];                                                          \
  }                                                                                                \
  static TP__NOINLINE void products_##COUNT(long pixels, long pitch, const float *x,               \
                                            const float *dy, tp__vec *total)                       \
  {                                                                                                \
    tp__vec sum[COUNT];                                                                            \
    TP__EACH(j, COUNT) sum[j] = total[j];                                                          \
    for (long p = 0; p < pixels; p++, x += pitch, dy += pitch) {                                   \
      TP__EACH(j, COUNT)                                                                           \
        sum[j] = tp__fma(tp__load(x + j * TP__V), tp__load(dy + j * TP__V), sum[j]);               \
    }                                                                                              \
    TP__EACH(j, COUNT) total[j] = sum[j];                                                          \
  }
enum { WIDE = 8 };
SUMS(8)
SUMS(2)
SUMS(1)

static int width_of(long vectors)
{
  return vectors >= WIDE ? WIDE : vectors >= 2 ? 2 : 1;
}

void TP__FN(sum_pixels)(long pixels, long c, const float *x, float factor, float *sums)
{
  const long pitch = tp__pitch(c);
  for (long i = 0, width; i < c; i += width * TP__V) {
    tp__vec total[WIDE];
    width = width_of((c - i + TP__V - 1) / TP__V);
    (width == WIDE ? sums_8 : width == 2 ? sums_2 : sums_1)(pixels, pitch, x + i, total);
    for (long j = 0; j < width; j++)
      tp__store_upto(sums + i + j * TP__V, total[j] * tp__all(factor), c - i - j * TP__V);
  }
}

void TP__FN(sum_products)(long pixels, long c, const float *x, const float *dy, float *sums)
{
  const long pitch = tp__pitch(c);
  for (long i = 0, width; i < c; i += width * TP__V) {
    tp__vec total[WIDE];
    width = width_of((c - i + TP__V - 1) / TP__V);
    for (long j = 0; j < width; j++)
      total[j] = tp__load_upto(sums + i + j * TP__V, c - i - j * TP__V);
    (width == WIDE ? products_8
     : width == 2  ? products_2
                   : products_1)(pixels, pitch, x + i, dy + i, total);
    for (long j = 0; j < width; j++)
      tp__store_upto(sums + i + j * TP__V, total[j], c - i - j * TP__V);
  }
}
