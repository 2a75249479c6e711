/* affine - rotation matrices and sampling through them, with the numbers of Keras' RandomRotation.
 *
 * Keras 3 hands the work to TensorFlow's ImageProjectiveTransformV3, whose rules are these. An
 * output pixel (x, y) reads the input at (m0 x + m1 y + m2, m3 x + m4 y + m5). Outside, by fill:
 *
 *     reflect   d c b a | a b c d | d c b a     the half pixel beyond the edge gives the edge pixel
 *     wrap      a b c d | a b c d | a b c d     the gap between d and a is not interpolated over:
 * it gives d nearest   a a a a | a b c d | d d d d constant  k k k k | a b c d | k k k k everything
 * not between the centres of the edge pixels
 *
 * `sample` below is that rule for one pixel, for all cases; rows.c does it for whole rows where
 * coordinates are tame, with the same bits.
 */
#include <math.h>

#include "parts.h"
#include "rows.h"

void tp__image_rotation(float turn, int h, int w, float matrix[8])
{
  /* Keras goes through degrees in float32. cos and sin are rounded from double, so that all C
   * libraries agree. */
  float angle = (float)((double)turn * 360.0) * (float)(3.14159265358979323846 / 180.0);
  float c = (float)cos((double)angle), s = (float)sin((double)angle);
  float cx = 0.5f * (float)(w - 1), cy = 0.5f * (float)(h - 1);
  const float m[8] = {c, -s, cx - cx * c - cy * -s, s, c, cy - cx * s - cy * c, 0, 0};
  for (int i = 0; i < 8; i++) matrix[i] = m[i];
}

static float fold(float in, int size, tp__fill fill)
{
  const float len = (float)size, last = len - 1;
  if (fill == TP__FILL_CONSTANT) return in;
  if (size == 1) return in == in ? 0 : in;
  if (fill == TP__FILL_REFLECT && in < 0) {
    in = 2 * len * truncf(-in / (2 * len)) + in;
    in = in < -len ? in + 2 * len : -in - 1;
  } else if (fill == TP__FILL_REFLECT && in > last) {
    in -= 2 * len * truncf(in / (2 * len));
    if (in >= len) in = 2 * len - in - 1;
  } else if (fill == TP__FILL_WRAP && in < 0) {
    in += len * (truncf(-in / last) + 1);
  } else if (fill == TP__FILL_WRAP && in > last) {
    in -= len * truncf(in / last);
  }
  if (in < 0) in = 0;
  return in > last ? last : in;
}

/* The value of channel c at whole coordinates, at most one outside the picture. */
static float value_at(const tp__warp *p, float x, float y, int c)
{
  float right = (float)(p->w - 1), bottom = (float)(p->h - 1);
  if (p->fill == TP__FILL_CONSTANT && (x < 0 || x > right || y < 0 || y > bottom))
    return p->fill_value;
  x = x < right ? x : right;
  y = y < bottom ? y : bottom;
  size_t at = ((size_t)y * (size_t)p->w + (size_t)x) * 3 + (size_t)c;
  return p->in8 != NULL ? (float)p->in8[at] : p->in_float[at];
}

static float lerp_at(const tp__warp *p, float x, float y, int c)
{
  float x0 = floorf(x), y0 = floorf(y), x1 = x0 + 1, y1 = y0 + 1;
  float top = (x1 - x) * value_at(p, x0, y0, c) + (x - x0) * value_at(p, x1, y0, c);
  float low = (x1 - x) * value_at(p, x0, y1, c) + (x - x0) * value_at(p, x1, y1, c);
  return (y1 - y) * top + (y - y0) * low;
}

void tp__warp_pixel(const tp__warp *p, int x, int y, bool bilinear, float out[3])
{
  const float *m = p->matrix, ox = (float)x, oy = (float)y;
  float ix = fold((m[0] * ox + m[1] * oy) + m[2], p->w, p->fill);
  float iy = fold((m[3] * ox + m[4] * oy) + m[5], p->h, p->fill);
  bool near = ix > -1 && ix < (float)p->w && iy > -1 && iy < (float)p->h; /* false for NaN */
  for (int c = 0; c < 3; c++) {
    if (!near)
      out[c] = p->fill_value;
    else if (bilinear)
      out[c] = lerp_at(p, ix, iy, c);
    else
      out[c] = value_at(p, roundf(ix), roundf(iy), c);
  }
}

/* Whether low...high needs at most one fold at either side, with room for rounding. */
static bool tame(float low, float high, int size, tp__fill fill)
{
  float len = (float)size;
  switch (fill) {
  case TP__FILL_REFLECT:
    return low > 1 - 2 * len && high < 2 * len - 1;
  case TP__FILL_WRAP:
    return low > 2 - len && high < 2 * len - 4;
  case TP__FILL_CONSTANT:
  case TP__FILL_NEAREST:
    return low > -1e9f && high < 1e9f;
  }
  return false;
}

/* Coordinates are monotonic in x and y, so the corners bound them. */
static bool all_tame(const tp__warp *p, int oh)
{
  if (p->w < 2 || p->h < 2 || (int64_t)p->w * p->h > INT32_MAX / 3) return false;
  const int size[2] = {p->w, p->h};
  for (int axis = 0; axis < 2; axis++) {
    const float *m = p->matrix + 3 * axis;
    float low = INFINITY, high = -INFINITY;
    for (int corner = 0; corner < 4; corner++) {
      float x = corner & 1 ? (float)(p->ow - 1) : 0, y = corner & 2 ? (float)(oh - 1) : 0;
      float at = (m[0] * x + m[1] * y) + m[2];
      if (!(at - at == 0)) return false;
      low = at < low ? at : low;
      high = at > high ? at : high;
    }
    if (!tame(low, high, size[axis], p->fill)) return false;
  }
  return true;
}

static void warp(tp__warp *p, const float matrix[8], bool bilinear, int oh, float *out)
{
  for (int i = 0; i < 6; i++) p->matrix[i] = matrix[i];
  if (bilinear && all_tame(p, oh)) {
    const tp__image_kernels *k = tp__image_kernels_best();
    for (int y = 0; y < oh; y++) k->warp_row(p, y, out + (size_t)y * (size_t)p->ow * 3);
    return;
  }
  for (int y = 0; y < oh; y++)
    for (int x = 0; x < p->ow; x++, out += 3) tp__warp_pixel(p, x, y, bilinear, out);
}

void tp__image_affine(const uint8_t *in8, const float *in_float, int h, int w,
                      const float matrix[8], tp__fill fill, float fill_value, bool bilinear,
                      float *out)
{
  tp__warp p = {.in8 = in8,
                .in_float = in_float,
                .h = h,
                .w = w,
                .ow = w,
                .fill = fill,
                .fill_value = fill_value};
  warp(&p, matrix, bilinear, h, out);
}

void tp__region_warp(const tp__region *r, const float matrix[8], tp__fill fill, float fill_value,
                     int oh, int ow, float *out)
{
  const float sx = (float)r->w / (float)ow, sy = (float)r->h / (float)oh;
  const float *m = matrix;
  tp__warp p = {.in8 = r->rgb,
                .h = r->rows,
                .w = r->columns,
                .ow = ow,
                .fill = fill,
                .fill_value = fill_value};
  /* Column u of the upright output reads column (u + 0.5) sx - 0.5 of the rectangle; mirrored, that
   * is column ow - 1 - u. */
  float x0 = m[0], x1 = m[1], x2 = m[2];
  if (r->mirror) {
    x0 = -x0;
    x1 = -x1;
    x2 = (float)(ow - 1) - x2;
  }
  const float through[8] = {sx * x0,   sx * x1,   sx * (x2 + 0.5f) - 0.5f + (float)r->x,
                            sy * m[3], sy * m[4], sy * (m[5] + 0.5f) - 0.5f + (float)r->y,
                            0,         0};
  warp(&p, through, true, oh, out);
}
