/* augment - which part of a picture is cut out, and how its colours change: draws, and the colours
 * themselves; see image.h */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "rows.h"

/* ---- random crop ---- */

/* The largest rectangle of a shape that is allowed, in the middle: where no try has fitted. */
static tp__rect middle(double ratio, int h, int w)
{
  tp__rect r = {.h = h, .w = w};
  double shape = (double)w / (double)h;
  if (shape < 1 / ratio) r.h = (int)((double)w * ratio + 0.5);
  if (shape > ratio) r.w = (int)((double)h * ratio + 0.5);
  r.y = (h - r.h) / 2;
  r.x = (w - r.w) / 2;
  return r;
}

static int below(float uniform, int count)
{
  return (int)((double)uniform * count);
}

tp__rect tp__image_crop_of(float least, float ratio, int h, int w, tp__key key)
{
  enum { TRIES = 10 };
  const double area = (double)h * (double)w, widest = log((double)ratio);
  for (uint32_t i = 0; i < TRIES; i++) {
    float u[4];
    for (uint32_t k = 0; k < 4; k++) u[k] = tp__uniform(key, TP__DRAW_CROP, 4 * i + k);
    double share = (double)least + (1 - (double)least) * (double)u[0];
    double shape = exp((2 * (double)u[1] - 1) * widest);
    tp__rect r = {.h = (int)(sqrt(share * area / shape) + 0.5),
                  .w = (int)(sqrt(share * area * shape) + 0.5)};
    if (r.h < 1 || r.w < 1 || r.h > h || r.w > w) continue;
    r.y = below(u[2], h - r.h + 1);
    r.x = below(u[3], w - r.w + 1);
    return r;
  }
  return middle((double)ratio, h, w);
}

/* ---- colours ---- */

tp__colours tp__image_colours_of(const tp__colours *range, tp__key key)
{
  const float most[3] = {range->brightness, range->contrast, range->saturation};
  float factor[3];
  for (uint32_t i = 0; i < 3; i++) {
    float low = most[i] < 1 ? 1 - most[i] : 0, high = 1 + most[i];
    factor[i] = low + (high - low) * tp__uniform(key, TP__DRAW_COLOUR, i);
  }
  return (tp__colours){factor[0], factor[1], factor[2]};
}

/* The mean grey, from the sums of columns: the same for all instruction sets. line: [w,3] */
static double mean_grey(const float *rgb, int h, int w, float *line)
{
  const tp__image_kernels *k = tp__image_kernels_best();
  const size_t values = (size_t)w * 3;
  double sum[3] = {0, 0, 0};
  memset(line, 0, values * sizeof *line);
  for (int y = 0; y < h; y++) k->add_scaled(rgb + (size_t)y * values, 1, values, line);
  for (size_t i = 0; i < values; i++) sum[i % 3] += (double)line[i];
  return (0.299 * sum[0] + 0.587 * sum[1] + 0.114 * sum[2]) / ((double)h * (double)w);
}

void tp__image_recolour(float *rgb, int h, int w, const tp__colours *by, float *line)
{
  const double b = (double)by->brightness, c = (double)by->contrast, s = (double)by->saturation;
  double grey = by->contrast != 1 ? mean_grey(rgb, h, w, line) : 0;
  const float k[3] = {(float)(b * c * s), (float)(b * c * (1 - s)), (float)(b * (1 - c) * grey)};
  tp__image_kernels_best()->recolour(rgb, (size_t)h * (size_t)w, k);
}
