/* The depthwise convolution and the gradient to its input. Channels are the vector; a line of
 * TP__LANES channels goes through the whole image before the next, so that the rows it reads again
 * are still in the first-level cache.
 */
#include "backend/cpu/depthwise_row.h"

#include "backend/cpu/vec.h"

size_t TP__FN(packed_depthwise)(int k, int c)
{
  return (size_t)(k * k * tp__pitch(c));
}

void TP__FN(pack_depthwise)(const float *kernel, int k, int c, float *packed)
{
  const long pitch = tp__pitch(c);
  for (long tap = 0; tap < (long)k * k; tap++, kernel += c, packed += pitch) {
    memcpy(packed, kernel, (size_t)c * sizeof(float));
    memset(packed + c, 0, (size_t)(pitch - c) * sizeof(float));
  }
}

/* Borders are handled in registers: no scratch. */
size_t TP__FN(depthwise_scratch)(const tp__depthwise *v)
{
  (void)v;
  return 0;
}

void TP__FN(depthwise)(const tp__depthwise *v)
{
  const long pitch = tp__pitch(v->c);
  tp__depthwise_row_fn *run = TP__FN(depthwise_row_for)(v->k, v->stride);
  tp__depthwise_row r = {.x_row = v->w * pitch,
                         .x_pixel = pitch,
                         .width = v->w,
                         .column = -v->pad_left,
                         .w_row = v->k * pitch,
                         .w_column = pitch,
                         .taps = v->k,
                         .stride = v->stride,
                         .y_pixel = pitch,
                         .count = v->ow,
                         .act = v->act};
  if (v->sums != NULL) memset(v->sums, 0, (size_t)pitch * sizeof(float));
  for (long line = 0; line < v->c; line += TP__LANES)
    for (int y = 0; y < v->oh; y++)
      for (long c = line; c < line + TP__LANES && c < v->c; c += TP__V) {
        tp__depthwise_clip(&r, v->x + c, v->packed + c, y * v->stride - v->pad_top, v->k, v->h);
        r.bias = v->bias != NULL ? v->bias + c : NULL;
        r.y = v->y + (long)y * v->ow * pitch + c;
        r.sum = v->sums != NULL ? v->sums + c : NULL;
        run(&r);
      }
}

/* Which taps reach position t (counted in the padded input), every stride-th from the last
 * backwards: their number, the output that the last one belongs to, and the last tap itself. */
typedef struct reach {
  int taps, first, last_tap;
} reach;

static reach reach_of(int t, int k, int stride)
{
  int rest = t % stride, taps = rest < k ? (k - rest + stride - 1) / stride : 0;
  return (reach){
      .taps = taps, .first = t / stride - (taps - 1), .last_tap = rest + (taps - 1) * stride};
}

/* dx[t] = sum over taps k = t % s + j s of dy[t / s - j] w[k]: for the pixels of one phase (every
 * stride-th) this is a convolution of stride 1 with the phase's taps in reverse. */
void TP__FN(depthwise_input_grad)(const tp__depthwise *v, const float *dy, float *dx)
{
  const long pitch = tp__pitch(v->c);
  const int s = v->stride;
  tp__depthwise_row r = {.x_row = v->ow * pitch,
                         .x_pixel = pitch,
                         .width = v->ow,
                         .w_row = -s * v->k * pitch,
                         .w_column = -s * pitch,
                         .stride = 1,
                         .y_pixel = s * pitch};
  for (long line = 0; line < v->c; line += TP__LANES)
    for (int y = 0; y < v->h; y++) {
      const reach down = reach_of(y + v->pad_top, v->k, s);
      for (int phase = 0; phase < s && phase < v->w; phase++) {
        const reach across = reach_of(phase + v->pad_left, v->k, s);
        const float *w = v->packed;
        if (down.taps > 0 && across.taps > 0) w += (down.last_tap * v->k + across.last_tap) * pitch;
        r.taps = across.taps;
        r.column = across.first;
        r.count = (v->w - phase + s - 1) / s;
        tp__depthwise_row_fn *run = TP__FN(depthwise_row_for)(r.taps, 1);
        for (long c = line; c < line + TP__LANES && c < v->c; c += TP__V) {
          tp__depthwise_clip(&r, dy + c, w + c, down.first, down.taps, v->oh);
          r.y = dx + ((long)y * v->w + phase) * pitch + c;
          run(&r);
        }
      }
    }
}
