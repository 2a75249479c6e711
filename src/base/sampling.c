/* sampling - see sampling.h */
#include "sampling.h"

#include <math.h>

bool tp__flip_of(tp__key key)
{
  return tp__uniform(key, TP__DRAW_FLIP, 0) < 0.5f;
}

float tp__turn_of(float most, tp__key key)
{
  return (2 * tp__uniform(key, TP__DRAW_ROTATE, 0) - 1) * most;
}

void tp__turn_matrix(float turn, int h, int w, float matrix[8])
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
  size_t at = ((size_t)y * (size_t)p->w + (size_t)x) * (size_t)p->pitch + (size_t)c;
  return p->in8 != NULL ? (float)p->in8[at] : p->in_float[at];
}

static float lerp_at(const tp__warp *p, float x, float y, int c)
{
  float x0 = floorf(x), y0 = floorf(y), x1 = x0 + 1, y1 = y0 + 1;
  float top = (x1 - x) * value_at(p, x0, y0, c) + (x - x0) * value_at(p, x1, y0, c);
  float low = (x1 - x) * value_at(p, x0, y1, c) + (x - x0) * value_at(p, x1, y1, c);
  return (y1 - y) * top + (y - y0) * low;
}

void tp__warp_pixel(const tp__warp *p, int x, int y, bool bilinear, float *out)
{
  const float *m = p->matrix, ox = (float)x, oy = (float)y;
  float ix = fold((m[0] * ox + m[1] * oy) + m[2], p->w, p->fill);
  float iy = fold((m[3] * ox + m[4] * oy) + m[5], p->h, p->fill);
  bool near = ix > -1 && ix < (float)p->w && iy > -1 && iy < (float)p->h; /* false for NaN */
  for (int c = 0; c < p->channels; c++) {
    if (!near)
      out[c] = p->fill_value;
    else if (bilinear)
      out[c] = lerp_at(p, ix, iy, c);
    else
      out[c] = value_at(p, roundf(ix), roundf(iy), c);
  }
}
