/* A general convolution as a product of gathered rows, without im2col; see tp__gather.
 *
 * Images of many channels are read where they lie: the pieces of an output pixel's row are the
 * pixels of its window, a row of zeros for those in the padding. Images of few channels (the first
 * layer's three), and all that become pairs of bfloat16, have zero-padded rows copied, densely,
 * into the thread's scratch, a band of output rows at a time: then a piece is a whole row of the
 * window, kw pixels. A band may have the same rows of several small images.
 */
#include "backend/cpu/gathering.h"

#include "backend/cpu/words.h"

/* A band: the rows of the padded image that `rows` rows of output need. */
typedef struct band {
  long row;   /* words of a padded row */
  int rows;   /* of output */
  int lines;  /* of input */
  int images; /* at a time */
} band;

static bool is_dense(const tp__conv *v)
{
  enum { FEW = 16 };
  return TP__IN_WORD > 1 || v->c < FEW;
}

static band band_of(const tp__conv *v)
{
  enum { CACHED = TP__IN_WORD > 1 ? 96 << 10 : 16 << 10, MOST = 8 }; /* words; images */
  const long row = (long)((v->ow - 1) * v->stride + v->kw) * tp__words(v->c);
  const long more = (CACHED / row - v->kh) / v->stride;
  const int rows = 1 + (int)(more < 0 ? 0 : more > v->oh - 1 ? v->oh - 1 : more);
  band b = {.row = row, .rows = rows, .lines = (rows - 1) * v->stride + v->kh, .images = 1};
  const long whole = CACHED / (row * b.lines);
  if (TP__IN_WORD > 1 && rows == v->oh && whole > 1) b.images = (int)(whole < MOST ? whole : MOST);
  return b;
}

size_t TP__FN(packed_conv)(int kh, int kw, int c, int n)
{
  return TP__FN(packed_panels)((long)kh * kw, c, n);
}

void TP__FN(pack_conv)(const float *kernel, int kh, int kw, int c, int n, float *packed)
{
  const tp__panels panels = {.from = kernel,
                             .pieces = (long)kh * kw,
                             .piece = (long)c * n,
                             .length = c,
                             .n = n,
                             .row = n,
                             .column = 1};
  TP__FN(pack_panels)(&panels, packed);
}

size_t TP__FN(conv_scratch)(const tp__conv *v)
{
  if (!is_dense(v)) return gathering_size(v->kh * v->kw, v->c);
  band b = band_of(v);
  return gathering_size(v->kh, 0) + (size_t)(b.row * b.lines * b.images);
}

/* What all rows have in common. */
static tp__gather product_of(const tp__conv *v, const gathering *g)
{
  tp__gather p = {.n = v->n,
                  .from = g->from,
                  .to = g->to,
                  .tap = g->tap,
                  .packed = v->packed,
                  .bias = v->bias,
                  .residual = v->residual != NULL,
                  .act = v->act,
                  .act_last = v->act_last};
  if (p.residual) p.to_residual = v->residual - v->y;
  return p;
}

/* The window of output pixel (oy, ox), as column r of the table. */
static void gather_window(const tp__conv *v, const gathering *g, const float *x, int oy, int ox,
                          long r)
{
  const int top = oy * v->stride - v->pad_top, left = ox * v->stride - v->pad_left;
  const float **from = g->from + r;
  for (int ky = 0; ky < v->kh; ky++) {
    const bool inside = top + ky >= 0 && top + ky < v->h;
    const float *line = x + ((long)(top + ky) * v->w + left) * v->x_pitch;
    for (int kx = 0; kx < v->kw; kx++, from += TP__GATHER_ROWS)
      *from = inside && left + kx >= 0 && left + kx < v->w ? line + kx * v->x_pitch : g->zeros;
  }
}

static void conv_in_place(const tp__conv *v)
{
  const int taps = v->kh * v->kw;
  const gathering g = gathering_at(v->scratch, taps, v->c);
  tp__gather p = product_of(v, &g);
  p.taps = p.kernel_taps = taps;
  p.length = v->c;
  for (int t = 0; t < taps; t++) g.tap[t] = t;
  const int images = v->images > 1 ? v->images : 1;
  for (int i = 0; i < images; i++) {
    for (int oy = 0; oy < v->oh; oy++) {
      for (int ox = 0; ox < v->ow; ox++) {
        g.to[p.m] = v->y + i * v->y_row + ((long)oy * v->ow + ox) * v->y_pitch;
        gather_window(v, &g, v->x + i * v->x_row, oy, ox, p.m);
        if (++p.m < TP__GATHER_ROWS) continue;
        TP__FN(gather)(&p);
        p.m = 0;
      }
    }
  }
  if (p.m > 0) TP__FN(gather)(&p);
}

/* One row of the padded image: zeros outside, pixels of whole words one behind the other. */
static void copy_line(const tp__conv *v, const float *image, int iy, long row, float *line)
{
  const long pixel = tp__words(v->c), pixels = row / pixel;
  long first = v->pad_left < pixels ? v->pad_left : pixels;
  long end = first + v->w < pixels ? first + v->w : pixels;
  if (iy < 0 || iy >= v->h) first = end = 0;
  memset(line, 0, (size_t)(first * pixel) * sizeof(float));
  const float *x = image + (long)iy * v->w * v->x_pitch;
  if (v->x_pitch == pixel * TP__IN_WORD) {
    if (end > first) tp__copy_words(line + first * pixel, x, NULL, (end - first) * v->x_pitch);
  } else {
    for (long p = first; p < end; p++, x += v->x_pitch)
      tp__copy_words(line + p * pixel, x, NULL, v->c);
  }
  memset(line + end * pixel, 0, (size_t)((pixels - end) * pixel) * sizeof(float));
}

/* Adds the output rows of one image, -> y, whose padded lines lie in the band. */
static void conv_band(const tp__conv *v, const gathering *g, tp__gather *p, const band *b,
                      const float *lines, float *y, int rows)
{
  const long pixel = tp__words(v->c);
  for (int r = 0; r < rows; r++) {
    for (int ox = 0; ox < v->ow; ox++) {
      const float *at = lines + (long)r * v->stride * b->row + (long)ox * v->stride * pixel;
      for (int ky = 0; ky < v->kh; ky++)
        g->from[(long)ky * TP__GATHER_ROWS + p->m] = at + ky * b->row;
      g->to[p->m] = y + ((long)r * v->ow + ox) * v->y_pitch;
      if (++p->m < TP__GATHER_ROWS) continue;
      TP__FN(gather)(p);
      p->m = 0;
    }
  }
}

/* Output rows oy... of images first...end. */
static void conv_bands(const tp__conv *v, const gathering *g, tp__gather *p, const band *b,
                       int first, int end, int oy)
{
  float *lines = v->scratch + gathering_size(v->kh, 0);
  const int rows = v->oh - oy < b->rows ? v->oh - oy : b->rows;
  p->m = 0;
  for (int i = first; i < end; i++, lines += b->lines * b->row) {
    for (int k = 0; k < b->lines; k++)
      copy_line(v, v->x + i * v->x_row, oy * v->stride - v->pad_top + k, b->row,
                lines + k * b->row);
    conv_band(v, g, p, b, lines, v->y + i * v->y_row + (long)oy * v->ow * v->y_pitch, rows);
  }
  if (p->m > 0) TP__FN(gather)(p);
}

static void conv_dense(const tp__conv *v)
{
  const gathering g = gathering_at(v->scratch, v->kh, 0);
  const band b = band_of(v);
  tp__gather p = product_of(v, &g);
  p.taps = p.kernel_taps = v->kh;
  p.length = (long)v->kw * tp__words(v->c);
  for (int t = 0; t < v->kh; t++) g.tap[t] = t;
  const int images = v->images > 1 ? v->images : 1;
  for (int i = 0; i < images; i += b.images) {
    const int end = images - i < b.images ? images : i + b.images;
    for (int oy = 0; oy < v->oh; oy += b.rows) conv_bands(v, &g, &p, &b, i, end, oy);
  }
}

void TP__FN(conv)(const tp__conv *v)
{
  if (is_dense(v))
    conv_dense(v);
  else
    conv_in_place(v);
}
