/* rows - the inner loops over one row, compiled once per instruction set from the same source
 * (rows.c).
 *
 * All sets give the same bits: plain C loops that the compiler makes into vectors, no contraction,
 * no fast-math. The caller picks once per picture by tp__image_kernels_best(); tests compare the
 * sets with each other.
 */
#ifndef TP_ROWS_H
#define TP_ROWS_H

#include "image.h"

/* One output column of a bilinear resize: value offsets (3 a pixel) of its two input pixels and the
 * second's weight. */
typedef struct tp__tap {
  int32_t lower, upper;
  float weight;
} tp__tap;

typedef struct tp__image_kernels {
  const char *name;
  void (*widen)(const uint8_t *in, size_t count, float *out);
  void (*mirror)(const uint8_t *in, int w,
                 uint8_t *out); /* one row of w pixels; in and out are apart */
  /* Of a sampling whose coordinates are known to be tame: input at least 2x2, of 3 channels and
   * below 2^31 values, and every coordinate folded back at most once by the fill (see affine.c). */
  void (*warp_row)(const tp__warp *warp, int y, float *out);
  void (*stretch8)(const uint8_t *row, int w, const tp__tap *taps, int ow,
                   float *out); /* taps from left to right, or from right to left */
  void (*stretch)(const float *row, const tp__tap *taps, int ow, float *out);
  void (*blend)(const float *a, const float *b, float weight, size_t count,
                float *out); /* a + (b - a) * weight */
  void (*add_scaled8)(const uint8_t *in, float weight, size_t count, float *out);
  void (*add_scaled)(const float *in, float weight, size_t count, float *out);
  /* each pixel: k[0] of itself, k[1] of its grey, and k[2], held within 0...255; in place */
  void (*recolour)(float *rgb, size_t pixels, const float k[3]);
} tp__image_kernels;

/* level 0: what every processor of this kind has; upwards: more. NULL past the last that this
 * processor can run. */
const tp__image_kernels *tp__image_kernels_at(int level);
const tp__image_kernels *tp__image_kernels_best(void);

#endif
