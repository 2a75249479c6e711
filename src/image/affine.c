/* affine - sampling whole pictures through a matrix, by the rule of base/sampling.h: row by row
 * where coordinates are tame (rows.c, the same bits), else pixel by pixel
 */
#include <math.h>

#include "parts.h"
#include "rows.h"

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
                .channels = 3,
                .pitch = 3,
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
                .channels = 3,
                .pitch = 3,
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
