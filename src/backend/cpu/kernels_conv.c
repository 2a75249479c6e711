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

/* A band: the rows of the padded image that `rows` rows of output need. A line of words is that
 * row; windows that begin in the middle of a pair have it a second time, one number further on. */
typedef struct band {
  long numbers; /* of a padded row */
  long row;     /* words of it */
  long line;    /* words of a line, once or twice */
  int rows;     /* of output */
  int lines;    /* of input */
  int images;   /* at a time */
} band;

static bool is_dense(const tp__conv *v)
{
  enum { FEW = 16 };
  return TP__IN_WORD > 1 || v->c < FEW;
}

static band band_of(const tp__conv *v)
{
  enum { CACHED = TP__IN_WORD > 1 ? 96 << 10 : 16 << 10, MOST = 8 }; /* words; images */
  band b = {.numbers = (long)((v->ow - 1) * v->stride + v->kw) * v->c, .images = 1};
  b.row = tp__words(b.numbers);
  b.line = (long)v->stride * v->c % TP__IN_WORD == 0 ? b.row : 2 * b.row;
  const long more = (CACHED / b.line - v->kh) / v->stride;
  b.rows = 1 + (int)(more < 0 ? 0 : more > v->oh - 1 ? v->oh - 1 : more);
  b.lines = (b.rows - 1) * v->stride + v->kh;
  const long whole = CACHED / (b.line * b.lines);
  if (TP__IN_WORD > 1 && b.rows == v->oh && whole > 1)
    b.images = (int)(whole < MOST ? whole : MOST);
  return b;
}

/* Of pack_conv and pack_conv_transposed: the latter's pieces are taps, which may need more words.
 */
size_t TP__FN(packed_conv)(int kh, int kw, int c, int n)
{
  return TP__FN(packed_panels)((long)kh * kw, c, n);
}

void TP__FN(pack_conv)(const float *kernel, int kh, int kw, int c, int n, float *packed)
{
  const tp__panels panels = {.from = kernel,
                             .pieces = kh,
                             .piece = (long)kw * c * n,
                             .length = (long)kw * c,
                             .n = n,
                             .row = n,
                             .column = 1};
  TP__FN(pack_panels)(&panels, packed);
}

size_t TP__FN(conv_scratch)(const tp__conv *v)
{
  if (!is_dense(v)) return gathering_size(v->kh * v->kw, v->c);
  band b = band_of(v);
  return gathering_size(v->kh, 0) + (size_t)(b.line * b.lines * b.images + b.numbers);
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

/* The pixels first...end of a padded row that row iy of the image has. */
static void find_image(const tp__conv *v, int iy, long pixels, long *first, long *end)
{
  *first = v->pad_left < pixels ? v->pad_left : pixels;
  *end = *first + v->w < pixels ? *first + v->w : pixels;
  if (iy < 0 || iy >= v->h) *first = *end = 0;
}

static void set_zero(float *from, const float *end)
{
  if (end > from) memset(from, 0, (size_t)(end - from) * sizeof(float));
}

/* One row of the padded image: zeros outside, pixels one behind the other. */
static void pad_row(const tp__conv *v, const float *image, int iy, long numbers, float *row)
{
  long first, end;
  find_image(v, iy, numbers / v->c, &first, &end);
  set_zero(row, row + first * v->c);
  const float *x = image + (long)iy * v->w * v->x_pitch;
  if (v->x_pitch == v->c) {
    if (end > first) memcpy(row + first * v->c, x, (size_t)((end - first) * v->c) * sizeof(float));
  } else {
    for (long p = first; p < end; p++, x += v->x_pitch)
      memcpy(row + p * v->c, x, (size_t)v->c * sizeof(float));
  }
  set_zero(row + end * v->c, row + numbers);
}

/* ... as a line of words; pixels of whole words go there at once. numbers: room for the row. */
static void make_line(const tp__conv *v, const band *b, const float *image, int iy, float *numbers,
                      float *line)
{
  if (TP__IN_WORD == 1) {
    pad_row(v, image, iy, b->numbers, line);
  } else if (v->x_pitch == v->c && v->c % TP__IN_WORD == 0) {
    const long pixel = tp__words(v->c);
    long first, end;
    find_image(v, iy, b->row / pixel, &first, &end);
    set_zero(line, line + first * pixel);
    tp__copy_words(line + first * pixel, image + (long)iy * v->w * v->c, NULL,
                   (end - first) * v->c);
    set_zero(line + end * pixel, line + b->row);
  } else {
    pad_row(v, image, iy, b->numbers, numbers);
    tp__copy_words(line, numbers, NULL, b->numbers);
    if (b->line > b->row) tp__copy_words(line + b->row, numbers + 1, NULL, b->numbers - 1);
  }
}

/* Adds the output rows of one image, -> y, whose padded lines lie in the band. The last pair of a
 * window's row may have a number of the pixel beside: it meets a zero. */
static void conv_band(const tp__conv *v, const gathering *g, tp__gather *p, const band *b,
                      const float *lines, float *y, int rows)
{
  for (int r = 0; r < rows; r++) {
    for (int ox = 0; ox < v->ow; ox++) {
      const long number = (long)ox * v->stride * v->c;
      const float *at = lines + (long)r * v->stride * b->line + number / TP__IN_WORD +
                        (number % TP__IN_WORD) * b->row;
      for (int ky = 0; ky < v->kh; ky++)
        g->from[(long)ky * TP__GATHER_ROWS + p->m] = at + ky * b->line;
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
  float *numbers = v->scratch + gathering_size(v->kh, 0), *lines = numbers + b->numbers;
  const int rows = v->oh - oy < b->rows ? v->oh - oy : b->rows;
  p->m = 0;
  for (int i = first; i < end; i++, lines += b->lines * b->line) {
    for (int k = 0; k < b->lines; k++)
      make_line(v, b, v->x + i * v->x_row, oy * v->stride - v->pad_top + k, numbers,
                lines + k * b->line);
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
  p.length = tp__words((long)v->kw * v->c);
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
