/* resize - bilinear, with the numbers of tf.image.resize (half-pixel centres).
 *
 * Without antialias (TensorFlow's ResizeBilinear): each output value mixes 2x2 input values at (out
 * + 0.5) * scale - 0.5, computed in float32 as TensorFlow does; rows are stretched once and mixed
 * in pairs. With antialias (ScaleAndTranslate with the triangle kernel): when shrinking, the
 * triangle covers all input pixels under it; columns first, then rows.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "rows.h"

typedef struct picture {
  const uint8_t *in8;
  const float *in_float;
  size_t row; /* values from one input row to the next */
  int h, w, oh, ow;
  bool mirror;
  float *out;
  const tp__image_kernels *k;
} picture;

/* ---- plain ---- */

/* Which input pixels each output pixel reads; in a mirror the last is the first. */
static tp__tap *make_taps(int in_size, int out_size, int step, bool mirror, tp_error *err)
{
  tp__tap *taps = tp__calloc((size_t)out_size, sizeof *taps, err);
  if (taps == NULL) return NULL;
  const float scale = (float)in_size / (float)out_size;
  for (int i = 0; i < out_size; i++) {
    float at = ((float)i + 0.5f) * scale - 0.5f, low = floorf(at), high = ceilf(at);
    int lower = low > 0 ? (int)low : 0,
        upper = high < (float)(in_size - 1) ? (int)high : in_size - 1;
    if (lower > in_size - 1) lower = in_size - 1;
    taps[mirror ? out_size - 1 - i : i] = (tp__tap){lower * step, upper * step, at - low};
  }
  return taps;
}

/* Row `row` stretched to the output's width, kept from before if it is one of the two at hand. */
static const float *stretched(const picture *p, int row, const tp__tap *columns, float *line[2],
                              int held[2], int keep)
{
  for (int i = 0; i < 2; i++)
    if (held[i] == row) return line[i];
  int slot = held[0] == keep ? 1 : 0;
  size_t at = (size_t)row * p->row;
  if (p->in8 != NULL)
    p->k->stretch8(p->in8 + at, p->w, columns, p->ow, line[slot]);
  else
    p->k->stretch(p->in_float + at, columns, p->ow, line[slot]);
  held[slot] = row;
  return line[slot];
}

static void resize_rows(const picture *p, const tp__tap *rows, const tp__tap *columns, float *lines)
{
  const size_t values = (size_t)p->ow * 3;
  float *line[2] = {lines, lines + values};
  int held[2] = {-1, -1};
  for (int y = 0; y < p->oh; y++) {
    const float *top = stretched(p, rows[y].lower, columns, line, held, rows[y].upper);
    const float *low = stretched(p, rows[y].upper, columns, line, held, rows[y].lower);
    p->k->blend(top, low, rows[y].weight, values, p->out + (size_t)y * values);
  }
}

static tp_status resize_plain(const picture *p, tp_error *err)
{
  tp__tap *rows = make_taps(p->h, p->oh, 1, false, err);
  tp__tap *columns = make_taps(p->w, p->ow, 3, p->mirror, err);
  float *lines = tp__calloc((size_t)p->ow * 6, sizeof *lines, err);
  bool ready = rows != NULL && columns != NULL && lines != NULL;
  if (ready) resize_rows(p, rows, columns, lines);
  free(rows);
  free(columns);
  free(lines);
  return ready ? TP_OK : TP_ERR_INTERNAL;
}

/* ---- antialias ---- */

/* The input pixels under each output pixel's triangle: `width` weights from pixel first[i] on,
 * zero-padded. */
typedef struct spans {
  int32_t *first;
  float *weight;
  int width;
} spans;

static void fill_span(spans *s, int i, int in_size, float step, float reach)
{
  const float at = ((float)i + 0.5f) * step;
  float *weight = s->weight + (size_t)i * (size_t)s->width, sum = 0;
  int64_t begin = (int64_t)ceilf(at - reach - 0.5f), end = (int64_t)floorf(at + reach - 0.5f);
  begin = begin < 0 ? 0 : begin > in_size - 1 ? in_size - 1 : begin;
  end = end < 0 ? 0 : end > in_size - 1 ? in_size - 1 : end;
  if (end - begin >= s->width) end = begin + s->width - 1;
  for (int64_t source = begin; source <= end; source++) {
    float distance = fabsf(((float)source + 0.5f - at) * (1.0f / reach));
    weight[source - begin] = distance < 1 ? 1 - distance : 0;
    sum += weight[source - begin];
  }
  float scale = sum > 0 ? 1.0f / sum : 0;
  for (int64_t source = begin; source <= end; source++) weight[source - begin] *= scale;
  s->first[i] = (int32_t)begin;
}

static bool make_spans(spans *s, int in_size, int out_size, tp_error *err)
{
  const float step = (float)(1.0 / (double)((float)out_size / (float)in_size));
  const float reach = step > 1 ? step : 1;
  const int64_t width = 2 * (int64_t)ceilf(reach) + 1;
  size_t weights = 0;
  s->width = width < in_size ? (int)width : in_size;
  if (!tp__mul_size((size_t)out_size, (size_t)s->width, &weights)) weights = SIZE_MAX;
  s->first = tp__calloc((size_t)out_size, sizeof *s->first, err);
  s->weight = tp__calloc(weights, sizeof *s->weight, err);
  if (s->first == NULL || s->weight == NULL) return false;
  for (int i = 0; i < out_size; i++) fill_span(s, i, in_size, step, reach);
  return true;
}

static void free_spans(spans *s)
{
  free(s->first);
  free(s->weight);
}

static int span_width(const spans *s, int i, int in_size)
{
  int left = in_size - s->first[i];
  return left < s->width ? left : s->width;
}

static void squeeze_columns(const picture *p, const spans *rows, int y, float *line)
{
  const size_t values = (size_t)p->w * 3;
  const float *weight = rows->weight + (size_t)y * (size_t)rows->width;
  memset(line, 0, values * sizeof *line);
  for (int i = 0; i < span_width(rows, y, p->h); i++) {
    size_t at = (size_t)(rows->first[y] + i) * p->row;
    if (p->in8 != NULL)
      p->k->add_scaled8(p->in8 + at, weight[i], values, line);
    else
      p->k->add_scaled(p->in_float + at, weight[i], values, line);
  }
}

static void squeeze_row(const picture *p, const spans *columns, const float *line, float *out)
{
  for (int i = 0; i < p->ow; i++, out += 3) {
    const int x = p->mirror ? p->ow - 1 - i : i;
    const float *weight = columns->weight + (size_t)x * (size_t)columns->width;
    const float *in = line + 3 * (size_t)columns->first[x];
    float sum[3] = {0, 0, 0};
    for (int k = 0; k < span_width(columns, x, p->w); k++, in += 3)
      for (int c = 0; c < 3; c++) sum[c] += weight[k] * in[c];
    memcpy(out, sum, sizeof sum);
  }
}

static tp_status resize_antialias(const picture *p, tp_error *err)
{
  spans rows = {0}, columns = {0};
  float *line = tp__calloc((size_t)p->w * 3, sizeof *line, err);
  bool ready =
      line != NULL && make_spans(&rows, p->h, p->oh, err) && make_spans(&columns, p->w, p->ow, err);
  for (int y = 0; ready && y < p->oh; y++) {
    squeeze_columns(p, &rows, y, line);
    squeeze_row(p, &columns, line, p->out + (size_t)y * (size_t)p->ow * 3);
  }
  free_spans(&rows);
  free_spans(&columns);
  free(line);
  return ready ? TP_OK : TP_ERR_INTERNAL;
}

static tp_status resize(const picture *p, bool antialias, tp_error *err)
{
  const int limit = INT32_MAX / 3; /* value offsets within a row are 32 bits */
  if (p->h < 1 || p->w < 1 || p->oh < 1 || p->ow < 1 || p->w > limit || p->ow > limit)
    return tp__fail(err, TP_ERR_USAGE, "a picture of %d x %d cannot be resized to %d x %d", p->w,
                    p->h, p->ow, p->oh);
  return antialias ? resize_antialias(p, err) : resize_plain(p, err);
}

tp_status tp__image_resize(const uint8_t *in8, const float *in_float, int h, int w, float *out,
                           int oh, int ow, bool antialias, tp_error *err)
{
  const picture p = {.in8 = in8,
                     .in_float = in_float,
                     .row = (size_t)w * 3,
                     .h = h,
                     .w = w,
                     .oh = oh,
                     .ow = ow,
                     .out = out,
                     .k = tp__image_kernels_best()};
  return resize(&p, antialias, err);
}

tp_status tp__region_resize(const tp__region *r, float *out, int oh, int ow, bool antialias,
                            tp_error *err)
{
  const picture p = {.in8 = r->rgb + ((size_t)r->y * (size_t)r->columns + (size_t)r->x) * 3,
                     .row = (size_t)r->columns * 3,
                     .h = r->h,
                     .w = r->w,
                     .oh = oh,
                     .ow = ow,
                     .mirror = r->mirror,
                     .out = out,
                     .k = tp__image_kernels_best()};
  return resize(&p, antialias, err);
}
