/* rows - the row loops of rows.h; built once per instruction set with TP__ISA as its name.
 *
 * Affine sampling works on tiles of `tile` pixels in three passes, each a loop that the compiler
 * can make into vectors: coordinates and weights, then plain loads (one 4-byte word per tap), then
 * arithmetic. Taps of the last row and column are taken from the pixel before with weights 0 and 1,
 * which gives the same value as the first tap alone and needs no test.
 */
#include <string.h>

#include "rows.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)
#define TEXT_(a)     #a
#define TEXT(a)      TEXT_(a)

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the loads below take bytes out of words in little-endian order"
#endif

#define INLINE static inline __attribute__((always_inline))

static void widen(const uint8_t *restrict in, size_t count, float *restrict out)
{
  for (size_t i = 0; i < count; i++) out[i] = (float)in[i];
}

/* Without an instruction that shuffles bytes the compiler would take them apart one by one. */
#if defined(__x86_64__) && !defined(__SSSE3__)
#define TP__NO_SHUFFLE
#endif

typedef uint8_t bytes16 __attribute__((vector_size(16)));

/* Five pixels a step: 15 bytes reversed in threes, written behind one byte that the next step
 * overwrites. */
static void mirror(const uint8_t *restrict in, int w, uint8_t *restrict out)
{
  int x = 0;
#ifndef TP__NO_SHUFFLE
  for (; x + 6 <= w; x += 5) {
    bytes16 v;
    memcpy(&v, in + 3 * x, 16);
    v = __builtin_shufflevector(v, v, 0, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2);
    memcpy(out + 3 * (w - 5 - x) - 1, &v, 16);
  }
#endif
  for (; x < w; x++)
    for (int c = 0; c < 3; c++) out[3 * (w - 1 - x) + c] = in[3 * x + c];
}

/* ---- affine sampling ---- */

enum { tile = 64 };

typedef struct places {
  int32_t at[tile]; /* value offset of the upper left tap */
  float x0[tile], x1[tile], y0[tile], y1[tile];
  int32_t inside[tile]; /* for the constant fill: 0 where a tap may be outside */
} places;

/* A coordinate folded into the picture as TensorFlow's ImageProjectiveTransformV3 does it (after
 * scipy), in the same float steps, for coordinates that need at most one fold. len is the size,
 * last = len - 1. */
INLINE float fold(float in, float len, float last, tp__fill fill)
{
  if (fill == TP__FILL_REFLECT) {
    float below = in < -len ? in + 2 * len : -in - 1;
    float above = (2 * len - in) - 1;
    in = in < 0 ? below : in >= len ? above : in;
  } else if (fill == TP__FILL_WRAP) {
    in = in < 0 ? in + len : in > last ? in - len : in;
  }
  in = in < 0 ? 0 : in;
  return in > last ? last : in;
}

INLINE void find_places(const tp__warp *warp, int x, int y, int n, tp__fill fill, places *p)
{
  const float *m = warp->matrix;
  const float my = (float)y, w = (float)warp->w, h = (float)warp->h, right = w - 1, bottom = h - 1;
  const float ax = m[1] * my, ay = m[4] * my, m0 = m[0], m2 = m[2], m3 = m[3], m5 = m[5];
  const int32_t stride = warp->w * 3, x_last = warp->w - 2, y_last = warp->h - 2;
  for (int i = 0; i < n; i++) {
    float mx = (float)(x + i);
    float ix = (m0 * mx + ax) + m2, iy = (m3 * mx + ay) + m5;
    float fx = fold(ix, w, right, fill), fy = fold(iy, h, bottom, fill);
    int32_t left = (int32_t)fx, top = (int32_t)fy;
    left = left > x_last ? x_last : left;
    top = top > y_last ? y_last : top;
    float floor_x = (float)left, floor_y = (float)top;
    p->at[i] = top * stride + left * 3;
    p->x0[i] = (floor_x + 1) - fx;
    p->x1[i] = fx - floor_x;
    p->y0[i] = (floor_y + 1) - fy;
    p->y1[i] = fy - floor_y;
    if (fill == TP__FILL_CONSTANT)
      p->inside[i] = ((ix >= 0) & (ix <= right) & (iy >= 0) & (iy <= bottom));
  }
}

/* Keeps gcc from collecting words in vector registers, one by one: resizing a picture took 54 us
 * instead of 35. */
#define KEEP_SCALAR(index) __asm__("" : "+r"(index))

INLINE uint32_t load32(const uint8_t *from)
{
  uint32_t word;
  memcpy(&word, from, 4);
  return word;
}

INLINE uint64_t load64(const uint8_t *from)
{
  uint64_t word;
  memcpy(&word, from, 8);
  return word;
}

/* Two pixels that are neighbours, in the low six bytes. */
typedef struct pairs {
  uint64_t top[tile], low[tile];
} pairs;

/* One load of eight bytes for two pixels, except where it would reach past the picture's end. */
INLINE void load_pairs(const tp__warp *warp, const places *p, int n, pairs *v)
{
  const size_t stride = (size_t)warp->w * 3;
  const uint8_t *top = warp->in8, *low = top + stride;
  const int32_t last = (int32_t)(stride * (size_t)(warp->h - 1)) - 8;
  int32_t most = 0;
  for (int i = 0; i < n; i++) most = p->at[i] > most ? p->at[i] : most;
  if (most <= last) {
    for (int i = 0; i < n; i++) {
      ptrdiff_t at = p->at[i];
      KEEP_SCALAR(at);

      v->top[i] = load64(top + at);
      v->low[i] = load64(low + at);
    }
    return;
  }
  for (int i = 0; i < n; i++) {
    const uint8_t *a = top + p->at[i], *b = low + p->at[i];
    v->top[i] = load32(a) | (uint64_t)(load32(a + 2) >> 16) << 32;
    v->low[i] = load32(b) | (uint64_t)(load32(b + 2) >> 16) << 32;
  }
}

INLINE float byte_of(uint32_t word, int shift)
{
  return (float)(int32_t)(word >> shift & 255);
}

INLINE float mix(float a0, float a1, float b0, float b1, const places *p, int i)
{
  float top = p->x0[i] * a0 + p->x1[i] * a1;
  float low = p->x0[i] * b0 + p->x1[i] * b1;
  return p->y0[i] * top + p->y1[i] * low;
}

/* Three planes to pixels. */
INLINE void weave(float plane[3][tile], int n, float *restrict out)
{
  for (int i = 0; i < n; i++) {
    out[3 * i] = plane[0][i];
    out[3 * i + 1] = plane[1][i];
    out[3 * i + 2] = plane[2][i];
  }
}

INLINE void warp_tile8(const tp__warp *warp, const places *p, int n, float *restrict out)
{
  pairs v;
  float plane[3][tile];
  load_pairs(warp, p, n, &v);
  for (int i = 0; i < n; i++) {
    uint32_t a0 = (uint32_t)v.top[i], a1 = (uint32_t)(v.top[i] >> 24);
    uint32_t b0 = (uint32_t)v.low[i], b1 = (uint32_t)(v.low[i] >> 24);
    for (int c = 0; c < 3; c++)
      plane[c][i] =
          mix(byte_of(a0, 8 * c), byte_of(a1, 8 * c), byte_of(b0, 8 * c), byte_of(b1, 8 * c), p, i);
  }
  weave(plane, n, out);
}

INLINE void warp_tile(const tp__warp *warp, const places *p, int n, float *restrict out)
{
  const float *top = warp->in_float, *low = top + (size_t)warp->w * 3;
  for (int i = 0; i < n; i++, out += 3) {
    const float *a = top + p->at[i], *b = low + p->at[i];
    for (int c = 0; c < 3; c++) out[c] = mix(a[c], a[c + 3], b[c], b[c + 3], p, i);
  }
}

/* Whether pixels x...x+n-1 of the row read only inside the picture; coordinates are monotonic, so
 * the ends tell. */
INLINE bool is_inside(const tp__warp *warp, int x, int y, int n)
{
  const float *m = warp->matrix, right = (float)(warp->w - 1), bottom = (float)(warp->h - 1);
  for (int end = 0; end < 2; end++) {
    float mx = (float)(end == 0 ? x : x + n - 1), my = (float)y;
    float ix = (m[0] * mx + m[1] * my) + m[2], iy = (m[3] * mx + m[4] * my) + m[5];
    if (!(ix >= 0 && ix <= right && iy >= 0 && iy <= bottom)) return false;
  }
  return true;
}

INLINE void warp_row_with(const tp__warp *warp, int y, tp__fill fill, float *out)
{
  places p;
  for (int x = 0; x < warp->ow; x += tile, out += 3 * tile) {
    const int n = warp->ow - x < tile ? warp->ow - x : tile;
    const bool inside = is_inside(warp, x, y, n);
    if (inside)
      find_places(warp, x, y, n, TP__FILL_NEAREST, &p); /* the cheapest fold, and none happens */
    else
      find_places(warp, x, y, n, fill, &p);
    if (warp->in8 != NULL)
      warp_tile8(warp, &p, n, out);
    else
      warp_tile(warp, &p, n, out);
    if (fill == TP__FILL_CONSTANT && !inside)
      for (int i = 0; i < n; i++)
        if (!p.inside[i]) tp__warp_pixel(warp, x + i, y, true, out + 3 * i);
  }
}

static void warp_row(const tp__warp *warp, int y, float *out)
{
  switch (warp->fill) {
  case TP__FILL_REFLECT:
    warp_row_with(warp, y, TP__FILL_REFLECT, out);
    break;
  case TP__FILL_CONSTANT:
    warp_row_with(warp, y, TP__FILL_CONSTANT, out);
    break;
  case TP__FILL_NEAREST:
    warp_row_with(warp, y, TP__FILL_NEAREST, out);
    break;
  case TP__FILL_WRAP:
    warp_row_with(warp, y, TP__FILL_WRAP, out);
    break;
  }
}

/* ---- resizing ---- */

INLINE void stretch_tile8(const uint8_t *row, const tp__tap *taps, int n, float *restrict out)
{
  uint32_t a[tile], b[tile];
  float weight[tile], plane[3][tile];
  for (int i = 0; i < n; i++) {
    ptrdiff_t lower = taps[i].lower, upper = taps[i].upper;
    KEEP_SCALAR(lower);
    KEEP_SCALAR(upper);
    a[i] = load32(row + lower);
    b[i] = load32(row + upper);
    weight[i] = taps[i].weight;
  }
  for (int i = 0; i < n; i++)
    for (int c = 0; c < 3; c++) {
      float left = byte_of(a[i], 8 * c);
      plane[c][i] = left + (byte_of(b[i], 8 * c) - left) * weight[i];
    }
  weave(plane, n, out);
}

static void stretch_some8(const uint8_t *restrict row, const tp__tap *restrict taps, int from,
                          int end, float *restrict out)
{
  for (int x = from; x < end; x++)
    for (int c = 0; c < 3; c++) {
      float left = (float)row[taps[x].lower + c], right = (float)row[taps[x].upper + c];
      out[3 * x + c] = left + (right - left) * taps[x].weight;
    }
}

/* The words of a tile reach one byte past their pixel, so columns that use the row's last pixel, at
 * one end or the other, are done one by one. */
static void stretch8(const uint8_t *restrict row, int w, const tp__tap *restrict taps, int ow,
                     float *restrict out)
{
  int begin = 0, end = ow;
  while (end > 0 && taps[end - 1].upper > 3 * w - 4) end--;
  while (begin < end && taps[begin].upper > 3 * w - 4) begin++;
  stretch_some8(row, taps, 0, begin, out);
  for (int x = begin; x < end; x += tile)
    stretch_tile8(row, taps + x, end - x < tile ? end - x : tile, out + 3 * x);
  stretch_some8(row, taps, end, ow, out);
}

static void stretch(const float *restrict row, const tp__tap *restrict taps, int ow,
                    float *restrict out)
{
  for (int x = 0; x < ow; x++, out += 3) {
    const float *a = row + taps[x].lower, *b = row + taps[x].upper;
    for (int c = 0; c < 3; c++) out[c] = a[c] + (b[c] - a[c]) * taps[x].weight;
  }
}

static void blend(const float *restrict a, const float *restrict b, float weight, size_t count,
                  float *restrict out)
{
  for (size_t i = 0; i < count; i++) out[i] = a[i] + (b[i] - a[i]) * weight;
}

static void add_scaled8(const uint8_t *restrict in, float weight, size_t count, float *restrict out)
{
  for (size_t i = 0; i < count; i++) out[i] += weight * (float)in[i];
}

static void add_scaled(const float *restrict in, float weight, size_t count, float *restrict out)
{
  for (size_t i = 0; i < count; i++) out[i] += weight * in[i];
}

/* ---- colours ---- */

INLINE float held(float v)
{
  v = v < 0 ? 0 : v;
  return v > 255 ? 255 : v;
}

/* The weights are those of ITU-R BT.601, as in everyone's grey. */
static void recolour(float *rgb, size_t pixels, const float k[3])
{
  const float itself = k[0], grey = k[1], more = k[2];
  for (size_t i = 0; i < pixels; i++) {
    float r = rgb[3 * i], g = rgb[3 * i + 1], b = rgb[3 * i + 2];
    float shift = ((0.299f * r + 0.587f * g) + 0.114f * b) * grey + more;
    rgb[3 * i] = held(r * itself + shift);
    rgb[3 * i + 1] = held(g * itself + shift);
    rgb[3 * i + 2] = held(b * itself + shift);
  }
}

extern const tp__image_kernels PASTE(tp__image_kernels_, TP__ISA);
const tp__image_kernels PASTE(tp__image_kernels_, TP__ISA) = {
    .name = TEXT(TP__ISA),
    .widen = widen,
    .mirror = mirror,
    .warp_row = warp_row,
    .stretch8 = stretch8,
    .stretch = stretch,
    .blend = blend,
    .add_scaled8 = add_scaled8,
    .add_scaled = add_scaled,
    .recolour = recolour,
};
