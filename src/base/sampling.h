/* sampling - from where a pixel of a turned picture is read, with the numbers of Keras'
 * RandomRotation: for pictures that are turned on the host (image) and by the graph's operator.
 *
 * Keras 3 hands the work to TensorFlow's ImageProjectiveTransformV3, whose rules are these. An
 * output pixel (x, y) reads the input at (m0 x + m1 y + m2, m3 x + m4 y + m5). Outside, by fill:
 *
 *     reflect    d c b a | a b c d | d c b a   the half pixel beyond the edge gives the edge pixel
 *     wrap       a b c d | a b c d | a b c d   the gap between d and a is not interpolated over:
 *                                              it gives d
 *     nearest    a a a a | a b c d | d d d d
 *     constant   k k k k | a b c d | k k k k   in the pixel before the edge, between both
 */
#ifndef TP_SAMPLING_H
#define TP_SAMPLING_H

#include <stdbool.h>
#include <stddef.h>

#include "rng.h"

typedef enum tp__fill {
  TP__FILL_REFLECT,
  TP__FILL_CONSTANT,
  TP__FILL_NEAREST,
  TP__FILL_WRAP
} tp__fill;

/* The draws of augmentation: is this example mirrored, and which fraction of a turn is it turned
 * by, of -most...most? */
bool tp__flip_of(tp__key key);
float tp__turn_of(float most, tp__key key);

/* The 8 coefficients (output pixel -> input pixel) of a rotation by turn (fraction of a full turn,
 * positive is counter-clockwise) about the centre ((w-1)/2, (h-1)/2), as Keras' RandomRotation
 * computes them in float32. */
void tp__turn_matrix(float turn, int h, int w, float matrix[8]);

typedef struct tp__warp {
  const uint8_t *in8; /* [h,w,channels], exactly one of the two */
  const float *in_float;
  int h, w, ow;        /* of the input; columns of the output */
  int channels, pitch; /* numbers from one pixel to the next, in the input */
  float matrix[6];
  tp__fill fill;
  float fill_value;
} tp__warp;

/* One output pixel, whatever the coordinates; out: [channels]. */
void tp__warp_pixel(const tp__warp *warp, int x, int y, bool bilinear, float *out);

#endif
