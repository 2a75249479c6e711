/* Batch norm by the statistics of the batch: moments, and the gradients of the norm and of the
 * activation behind it, over the pixels of one example. Numbers of a channel (scale, mean...)
 * have c floats; nothing behind them is touched.
 */
#include "backend/cpu/family.h"

#include "backend/cpu/vec.h"

/* ---- moments ---- */

/* Pixels whose mean is taken before their deviations: few enough that WIDE vectors of them stay in
 * the first-level cache, which makes two passes cost one. */
enum { BLOCK = 64, WIDE = 4 };

/* COUNT neighbouring vectors. Blocks are joined by T. Chan, G. Golub, R. LeVeque: "Updating
 * Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979. */
#define MOMENTS(COUNT)                                                                             \
  static TP__NOINLINE void moments_##COUNT(long pixels, long pitch, const float *x, tp__vec *mean, \
                                           tp__vec *squares)                                       \
  {                                                                                                \
    TP__EACH(j, COUNT) mean[j] = squares[j] = tp__zero();                                          \
    for (long done = 0, n; done < pixels; done += n, x += n * pitch) {                             \
      tp__vec sum[COUNT], square[COUNT];                                                           \
      n = pixels - done < BLOCK ? pixels - done : BLOCK;                                           \
      TP__EACH(j, COUNT) sum[j] = square[j] = tp__zero();                                          \
      for (long p = 0; p < n; p++) {                                                               \
        TP__EACH(j, COUNT) sum[j] += tp__load(x + p * pitch + j * TP__V);                          \
      }                                                                                            \
      TP__EACH(j, COUNT) sum[j] *= tp__all(1.0f / (float)n);                                       \
      for (long p = 0; p < n; p++) {                                                               \
        TP__EACH(j, COUNT) {                                                                       \
          tp__vec d = tp__load(x + p * pitch + j * TP__V) - sum[j];                                \
          square[j] = tp__fma(d, d, square[j]);                                                    \
        }                                                                                          \
      }                                                                                            \
      const float share = (float)n / (float)(done + n);                                            \
      const tp__vec part = tp__all(share), weight = tp__all(share * (float)done);                  \
      TP__EACH(j, COUNT) {                                                                         \
        tp__vec d = sum[j] - mean[j];                                                              \
        mean[j] = tp__fma(d, part, mean[j]);                                                       \
        squares[j] = tp__fma(d * d, weight, squares[j] + square[j]);                               \
      }                                                                                            \
    }                                                                                              \
  }
MOMENTS(4)
MOMENTS(2)
MOMENTS(1)

static int width_of(long vectors)
{
  return vectors >= WIDE ? WIDE : vectors >= 2 ? 2 : 1;
}

void TP__FN(moments)(long pixels, long c, const float *x, long x_pitch, float *mean, float *squares)
{
  for (long i = 0, width; i < c; i += width * TP__V) {
    tp__vec m[WIDE], s[WIDE];
    width = width_of((c - i + TP__V - 1) / TP__V);
    (width == WIDE ? moments_4 : width == 2 ? moments_2 : moments_1)(pixels, x_pitch, x + i, m, s);
    for (long j = 0; j < width; j++) {
      tp__store_upto(mean + i + j * TP__V, m[j], c - i - j * TP__V);
      tp__store_upto(squares + i + j * TP__V, s[j], c - i - j * TP__V);
    }
  }
}

/* ---- gradient of the activation behind it ---- */

void TP__FN(norm_act_grad)(tp__act act, long pixels, long c, const float *dy, const float *x,
                           long x_pitch, const float *scale, const float *shift, float *dx)
{
  const long pitch = tp__pitch(c), whole = c / TP__V * TP__V;
  const tp__vec last_scale = tp__load_part(scale + whole, c - whole),
                last_shift = tp__load_part(shift + whole, c - whole);
#define LOOP(f)                                                                                    \
  for (long p = 0; p < pixels; p++, dy += pitch, x += x_pitch, dx += pitch) {                      \
    for (long i = 0; i < whole; i += TP__V)                                                        \
      tp__store(dx + i, f(tp__load(dy + i),                                                        \
                          tp__fma(tp__load(x + i), tp__load(scale + i), tp__load(shift + i))));    \
    if (whole < c)                                                                                 \
      tp__store(dx + whole,                                                                        \
                f(tp__load(dy + whole), tp__fma(tp__load(x + whole), last_scale, last_shift)));    \
  }
  TP__FOR_ACT_GRAD(act, LOOP)
#undef LOOP
}

/* ---- gradient through the statistics ---- */

void TP__FN(norm_grad)(long pixels, long c, const float *dy, const float *x, long x_pitch,
                       const float *scale, const float *mean, const float *slope,
                       const float *shift, float *dx)
{
  const long pitch = tp__pitch(c), whole = c / TP__V * TP__V, rest = c - whole;
  const tp__vec last_scale = tp__load_part(scale + whole, rest),
                last_mean = tp__load_part(mean + whole, rest),
                last_slope = tp__load_part(slope + whole, rest),
                last_shift = tp__load_part(shift + whole, rest);
  for (long p = 0; p < pixels; p++, dy += pitch, x += x_pitch, dx += pitch) {
    for (long i = 0; i < whole; i += TP__V) {
      tp__vec part =
          tp__fma(tp__load(x + i) - tp__load(mean + i), tp__load(slope + i), tp__load(shift + i));
      tp__store(dx + i, tp__fma(tp__load(dy + i), tp__load(scale + i), part));
    }
    if (whole == c) continue;
    tp__vec part = tp__fma(tp__load(x + whole) - last_mean, last_slope, last_shift);
    tp__store(dx + whole, tp__fma(tp__load(dy + whole), last_scale, part));
  }
}

#define NORM_SUMS(COUNT)                                                                           \
  static TP__NOINLINE void norm_sums_##COUNT(long pixels, long pitch, const float *dy,             \
                                             const float *x, long x_pitch, const tp__vec *mean,    \
                                             tp__vec *sums, tp__vec *products)                     \
  {                                                                                                \
    tp__vec centre[COUNT], sum[COUNT], product[COUNT];                                             \
    TP__EACH(j, COUNT) centre[j] = mean[j];                                                        \
    TP__EACH(j, COUNT) sum[j] = product[j] = tp__zero();                                           \
    for (long p = 0; p < pixels; p++, dy += pitch, x += x_pitch) {                                 \
      TP__EACH(j, COUNT) {                                                                         \
        tp__vec d = tp__load(dy + j * TP__V);                                                      \
        sum[j] += d;                                                                               \
        product[j] = tp__fma(d, tp__load(x + j * TP__V) - centre[j], product[j]);                  \
      }                                                                                            \
    }                                                                                              \
    TP__EACH(j, COUNT) sums[j] = sum[j];                                                           \
    TP__EACH(j, COUNT) products[j] = product[j];                                                   \
  }
NORM_SUMS(4)
NORM_SUMS(2)
NORM_SUMS(1)

void TP__FN(norm_sums)(long pixels, long c, const float *dy, const float *x, long x_pitch,
                       const float *mean, const float *scale, float *sums, float *products)
{
  const long pitch = tp__pitch(c);
  for (long i = 0, width; i < c; i += width * TP__V) {
    tp__vec m[WIDE], s[WIDE], q[WIDE];
    width = width_of((c - i + TP__V - 1) / TP__V);
    for (long j = 0; j < width; j++) m[j] = tp__load_upto(mean + i + j * TP__V, c - i - j * TP__V);
    (width == WIDE ? norm_sums_4
     : width == 2  ? norm_sums_2
                   : norm_sums_1)(pixels, pitch, dy + i, x + i, x_pitch, m, s, q);
    for (long j = 0; j < width; j++) {
      const long at = i + j * TP__V;
      tp__store_upto(sums + at, s[j], c - at);
      tp__store_upto(products + at, q[j] * tp__load_upto(scale + at, c - at), c - at);
    }
  }
}
