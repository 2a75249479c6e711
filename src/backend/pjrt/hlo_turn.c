/* hlo_turn - pictures turned by their keys; see hlo.h
 *
 * Reading every pixel from a computed place is what accelerators are slow at: by the TPU compiler's
 * estimate a gather takes a hundred times as long as the network. Moving whole rows is what they
 * are fast at. So a turn is made of three shears, along rows, columns and rows (A. W. Paeth: "A
 * fast algorithm for general raster rotation", Graphics Interface 1986), by whole pixels. Each line
 * moves by a distance of its own, digit by digit to base 4, and a digit is a choice of four copies.
 *
 * Shears by whole pixels move every pixel of the picture to one place: less than 1.07 columns and
 * 0.86 rows, seen in the picture, from where it belongs, by the roundings of three shears of at
 * most 1/8 of a turn. The four pixels that the host interpolates between, less than 1 column and 1
 * row away, are thus less than |(2.07, 1.86)| = 2.79 from there: in the 5 x 5 pixels around the
 * output's place, without the corners. From where each has come is known, so they are added up with
 * weights max(0, 1 - |columns away|) max(0, 1 - |rows away|), which are the bilinear ones for these
 * four, and 0 for all others.
 */
#include <math.h>

#include "base/rng.h"
#include "hlo_emitters.h"

enum { AROUND = 2, ROW_AXIS = 2, COLUMN_AXIS = 3 }; /* axes of [N,C,H,W] */

typedef struct turn {
  tp__hlo *w;
  tp__hlo_value cosine, sine; /* f32 [N] */
  tp__hlo_value slope;        /* of the shears along rows: columns a row, f32 [N] */
  int64_t h, width;
  double middle_x, middle_y;
  /* what one shear needs of the one before it, on all sides */
  int64_t margin_x, margin_y; /* of the picture */
  int64_t inner_x;            /* of the columns after the first shear */
  int64_t most[3];            /* distance of each shear */
} turn;

/* ---- geometry ---- */

/* How far the corner (x, y), seen from the middle, gets along x by turns of up to `angle`. */
static double reach(double x, double y, double angle)
{
  return atan2(y, x) < angle ? hypot(x, y) : x * cos(angle) + y * sin(angle);
}

/* One more than needed, for roundings of float32. */
static int64_t farthest(double slope, double lines)
{
  return (int64_t)floor(slope * lines + 0.5) + 1;
}

static void measure(turn *t, double angle)
{
  const double x = t->middle_x, y = t->middle_y;
  t->margin_x = (int64_t)ceil(reach(x, y, angle) - x + 1.01);
  t->margin_y = (int64_t)ceil(reach(y, x, angle) - y + 1.01);
  t->most[2] = farthest(tan(angle / 2), y + AROUND);
  t->inner_x = AROUND + t->most[2];
  t->most[1] = farthest(sin(angle), x + (double)t->inner_x);
  t->most[0] = farthest(tan(angle / 2), y + (double)t->margin_y);
}

/* Turn, cosine, sine, slope. What shears move by and what is known of it must be the same bits: the
 * barriers keep compilers from computing it twice in different ways. */
static void draw(turn *t, tp__hlo_value keys, float most)
{
  static const char barrier[] = "stablehlo.optimization_barrier $0 : @r";
  tp__hlo *w = t->w;
  tp__hlo_value word = tp__hlo_word(w, keys, TP__DRAW_ROTATE);
  word = tp__hlo_binary(w, "shift_right_logical", word, tp__hlo_constant_u32(w, &word.shape, 8));
  tp__hlo_value angle = tp__hlo_times(w, tp__hlo_convert(w, word, TP__HLO_F32), 2.0 / 16777216);
  angle = tp__hlo_times(w, tp__hlo_sub(w, angle, tp__hlo_like(w, angle, 1)), (double)most);
  angle = tp__hlo_times(w, tp__hlo_times(w, angle, 360), 3.14159265358979323846 / 180);
  t->cosine = tp__hlo_unary(w, "cosine", angle);
  t->cosine = tp__hlo_emit(w, t->cosine, &t->cosine, barrier);
  t->sine = tp__hlo_unary(w, "sine", angle);
  t->sine = tp__hlo_emit(w, t->sine, &t->sine, barrier);
  tp__hlo_value over = tp__hlo_add(w, t->cosine, tp__hlo_like(w, t->cosine, 1));
  t->slope = tp__hlo_unary(w, "negate", tp__hlo_div(w, t->sine, over)); /* -tan(angle / 2) */
  t->slope = tp__hlo_emit(w, t->slope, &t->slope, barrier);
}

/* first, first + 1, ... along a dimension. */
static tp__hlo_value positions(tp__hlo *w, const tp__shape *shape, int dim, int64_t first)
{
  tp__hlo_value at = tp__hlo_iota(w, TP__HLO_F32, shape, dim);
  return first == 0 ? at : tp__hlo_add(w, at, tp__hlo_like(w, at, (double)first));
}

/* By how many whole pixels the lines at those positions are moved; slope [N]. */
static tp__hlo_value distance(tp__hlo *w, tp__hlo_value slope, tp__hlo_value at, double middle)
{
  at = tp__hlo_sub(w, at, tp__hlo_like(w, at, middle));
  return tp__hlo_unary(w, "round_nearest_even", tp__hlo_mul(w, tp__hlo_per_row(w, slope, at), at));
}

/* ---- around the picture ---- */

static tp__hlo_value cut(tp__hlo *w, tp__hlo_value x, int axis, int64_t first, int64_t count)
{
  int64_t from[4] = {0}, to[4];
  for (int i = 0; i < 4; i++) to[i] = x.shape.dim[i];
  from[axis] = first;
  to[axis] = first + count;
  return tp__hlo_slice(w, x, from, to, NULL);
}

static tp__hlo_value mirrored(tp__hlo *w, tp__hlo_value x, int axis)
{
  char pattern[64];
  snprintf(pattern, sizeof pattern, "stablehlo.reverse $0, dims = [%d] : @r", axis);
  return tp__hlo_emit(w, x, &x, pattern);
}

/* `count` more on either side, by the fill. */
static tp__hlo_value widened(tp__hlo *w, tp__hlo_value x, int axis, int64_t count,
                             const tp__attr *attr)
{
  while (count > 0) {
    const int64_t size = x.shape.dim[axis];
    int64_t part = count;
    tp__hlo_value side[3] = {x, x, x};
    if (attr->fill == TP__FILL_REFLECT) {
      if (part > size) part = size; /* and what is there then is mirrored again */
      side[0] = mirrored(w, cut(w, x, axis, 0, part), axis);
      side[2] = mirrored(w, cut(w, x, axis, size - part, part), axis);
    } else {
      tp__shape shape = x.shape;
      shape.dim[axis] = part;
      for (int i = 0; i < 3; i += 2) {
        const int64_t edge = i == 0 ? 0 : size - 1, dims[] = {0, 1, 2, 3};
        side[i] = attr->fill == TP__FILL_NEAREST
                      ? tp__hlo_broadcast(w, cut(w, x, axis, edge, 1), &shape, dims)
                      : tp__hlo_constant(w, x.type, &shape, (double)attr->f[1]);
      }
    }
    x = tp__hlo_concat(w, side, 3, axis);
    count -= part;
  }
  return x;
}

/* ---- shears ---- */

/* `count` places from `first` on along an axis, also beyond x, where there is 0. */
static tp__hlo_value window(tp__hlo *w, tp__hlo_value x, int axis, int64_t first, int64_t count)
{
  int64_t low[4] = {0}, high[4] = {0}, between[4] = {0};
  low[axis] = -first;
  high[axis] = first + count - x.shape.dim[axis];
  return tp__hlo_pad(w, x, low, high, between);
}

/* Along the axis, place i of each line gets what is at i + its distance, from -most to most, plus
 * `offset`; count places. distance: f32 [N,lines]. */
static tp__hlo_value sheared(tp__hlo *w, tp__hlo_value x, int axis, tp__hlo_value distance,
                             int64_t most, int64_t offset, int64_t count)
{
  enum { BITS = 2, BASE = 1 << BITS };
  const int64_t lines[] = {0, axis == ROW_AXIS ? COLUMN_AXIS : ROW_AXIS};
  tp__hlo_value steps = tp__hlo_add(w, distance, tp__hlo_like(w, distance, (double)most));
  steps = tp__hlo_convert(w, steps, TP__HLO_I32);
  int64_t first = offset - most;
  int digits = 0;
  while (2 * most >> BITS * digits > 0) digits++;
  for (int d = digits - 1; d >= 0; d--) {
    const int64_t step = (int64_t)1 << BITS * d, wanted = count + step - 1;
    tp__hlo_value digit = steps, moved = window(w, x, axis, first, wanted);
    digit = tp__hlo_binary(w, "shift_right_logical", digit, tp__hlo_like(w, digit, BITS * d));
    digit = tp__hlo_binary(w, "and", digit, tp__hlo_like(w, digit, BASE - 1));
    for (int k = 1; k < BASE && k * step <= 2 * most; k++) {
      tp__hlo_value copy = window(w, x, axis, first + k * step, wanted);
      tp__hlo_value here = tp__hlo_compare(w, "EQ", digit, tp__hlo_like(w, digit, k));
      moved = tp__hlo_select(w, tp__hlo_broadcast(w, here, &copy.shape, lines), copy, moved);
    }
    x = moved;
    first = 0;
  }
  return x;
}

static tp__hlo_value distances(turn *t, tp__hlo_value slope, int64_t first, int64_t count,
                               double middle)
{
  tp__shape lines = tp__shape_make(2, (int64_t[]){slope.shape.dim[0], count});
  return distance(t->w, slope, positions(t->w, &lines, 1, first), middle);
}

/* [N,C,H,W] -> [N,C,H + 2 AROUND,W + 2 AROUND] */
static tp__hlo_value shear(turn *t, tp__hlo_value x, const tp__attr *attr)
{
  const int64_t out_h = t->h + 2 * AROUND, out_w = t->width + 2 * AROUND;
  const int64_t inner_w = t->width + 2 * t->inner_x;
  tp__hlo *w = t->w;
  x = widened(w, widened(w, x, ROW_AXIS, t->margin_y, attr), COLUMN_AXIS, t->margin_x, attr);
  tp__hlo_value by = distances(t, t->slope, -t->margin_y, t->h + 2 * t->margin_y, t->middle_y);
  x = sheared(w, x, COLUMN_AXIS, by, t->most[0], t->margin_x - t->inner_x, inner_w);
  by = distances(t, t->sine, -t->inner_x, inner_w, t->middle_x);
  x = sheared(w, x, ROW_AXIS, by, t->most[1], t->margin_y - AROUND, out_h);
  by = distances(t, t->slope, -AROUND, out_h, t->middle_y);
  return sheared(w, x, COLUMN_AXIS, by, t->most[2], t->inner_x - AROUND, out_w);
}

/* ---- sampling ---- */

/* max(0, 1 - |a - b|) */
static tp__hlo_value nearness(tp__hlo *w, tp__hlo_value a, tp__hlo_value b)
{
  tp__hlo_value away = tp__hlo_unary(w, "abs", tp__hlo_sub(w, a, b));
  away = tp__hlo_sub(w, tp__hlo_like(w, away, 1), away);
  return tp__hlo_binary(w, "maximum", away, tp__hlo_like(w, away, 0));
}

/* Where each output pixel is to be read, f32 [N,H,W] each: a x + b y + what keeps the middle. */
static tp__hlo_value place(turn *t, const tp__shape *shape, tp__hlo_value a, tp__hlo_value b,
                           double middle)
{
  tp__hlo *w = t->w;
  tp__hlo_value start = tp__hlo_like(w, a, middle);
  start = tp__hlo_sub(w, start, tp__hlo_times(w, a, t->middle_x));
  start = tp__hlo_sub(w, start, tp__hlo_times(w, b, t->middle_y));
  tp__hlo_value x = positions(w, shape, 2, 0), y = positions(w, shape, 1, 0);
  x = tp__hlo_mul(w, tp__hlo_per_row(w, a, x), x);
  x = tp__hlo_add(w, x, tp__hlo_mul(w, tp__hlo_per_row(w, b, y), y));
  return tp__hlo_add(w, x, tp__hlo_per_row(w, start, x));
}

/* The pixel dx, dy away from each output's place: its weight there, from where it has come. */
static tp__hlo_value weight(turn *t, tp__hlo_value at_x, tp__hlo_value at_y, int dx, int dy)
{
  tp__hlo *w = t->w;
  tp__hlo_value x = positions(w, &at_x.shape, 2, dx), y = positions(w, &at_x.shape, 1, dy);
  x = tp__hlo_add(w, x, distance(w, t->slope, y, t->middle_y));
  y = tp__hlo_add(w, y, distance(w, t->sine, x, t->middle_x));
  x = tp__hlo_add(w, x, distance(w, t->slope, y, t->middle_y));
  x = nearness(w, at_x, x);
  return tp__hlo_mul(w, x, nearness(w, at_y, y));
}

/* Pixels [N,C,H + 2 AROUND,W + 2 AROUND] to [N,H,W,C]. Channel by channel, so that a weight is made
 * once for all of them. */
static tp__hlo_value sample(turn *t, tp__hlo_value pixels)
{
  tp__hlo *w = t->w;
  enum { CHANNELS = 4 };
  const int64_t n = pixels.shape.dim[0], channels = pixels.shape.dim[1];
  const tp__shape map = tp__shape_make(3, (int64_t[]){n, t->h, t->width});
  const tp__shape one = tp__shape_make(4, (int64_t[]){n, t->h, t->width, 1});
  tp__hlo_value minus = tp__hlo_unary(w, "negate", t->sine), sum[CHANNELS];
  tp__hlo_value at_x = place(t, &map, t->cosine, minus, t->middle_x);
  tp__hlo_value at_y = place(t, &map, t->sine, t->cosine, t->middle_y);
  for (int64_t c = 0; c < channels; c++) sum[c] = tp__hlo_like(w, at_x, 0);
  for (int dy = -AROUND; dy <= AROUND; dy++) {
    for (int dx = -AROUND; dx <= AROUND; dx++) {
      if (dx * dx + dy * dy == 2 * AROUND * AROUND) continue;
      tp__hlo_value share = weight(t, at_x, at_y, dx, dy);
      for (int64_t c = 0; c < channels; c++) {
        const int64_t y = AROUND + dy, x = AROUND + dx;
        tp__hlo_value part = tp__hlo_slice(w, pixels, (int64_t[]){0, c, y, x},
                                           (int64_t[]){n, c + 1, y + t->h, x + t->width}, NULL);
        part = tp__hlo_convert(w, tp__hlo_reshape(w, part, &map), TP__HLO_F32);
        sum[c] = tp__hlo_add(w, sum[c], tp__hlo_mul(w, share, part));
      }
    }
  }
  for (int64_t c = 0; c < channels; c++) sum[c] = tp__hlo_reshape(w, sum[c], &one);
  return tp__hlo_concat(w, sum, (int)channels, 3);
}

tp__hlo_value tp__hlo_random_rotation(tp__hlo *w, const tp__node *n)
{
  const tp__attr *attr = &n->attr;
  tp__hlo_value x = tp__hlo_operand(w, n, 0);
  const int64_t *dim = x.shape.dim;
  turn t = {.w = w,
            .h = dim[1],
            .width = dim[2],
            .middle_x = 0.5 * (double)(dim[2] - 1),
            .middle_y = 0.5 * (double)(dim[1] - 1)};
  tp__hlo_value planes = x;
  planes.shape = tp__shape_make(4, (int64_t[]){dim[0], dim[3], dim[1], dim[2]});
  if (attr->fill == TP__FILL_CONSTANT && attr->f[1] != floorf(attr->f[1]))
    planes.type = TP__HLO_F32; /* bytes can't hold it */
  x = tp__hlo_convert(w, x, planes.type);
  x = tp__hlo_emit(w, planes, &x, "stablehlo.transpose $0, dims = [0, 3, 1, 2] : (@0) -> @r");
  measure(&t, 2 * 3.14159265358979323846 * (double)attr->f[0]);
  draw(&t, tp__hlo_operand(w, n, 1), attr->f[0]);
  return sample(&t, shear(&t, x, attr));
}
