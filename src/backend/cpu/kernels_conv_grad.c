/* Gradients of the general convolution; see kernels.h.
 *
 * Input: dx[y][x] = sum over the taps of dy[(y + pad - ky) / stride][...] kernel[ky][kx]^T, where
 * that is a whole number. Pixels of the same remainder of y and x have the same taps: a product of
 * gathered rows for each (kernels_gather.c), in which a tap outside of dy is a row of zeros.
 *
 * Kernel: for each tap, the pixels of x that it meets, copied row below row, times dy; whole
 * windows where pixels have few channels, as the first layer's.
 */
#include "backend/cpu/gathering.h"

#include "backend/cpu/words.h"

/* B of tap t is kernel[t] transposed, [n, c]. */
void TP__FN(pack_conv_transposed)(const float *kernel, int kh, int kw, int c, int n, float *packed)
{
  const tp__panels panels = {.from = kernel,
                             .pieces = (long)kh * kw,
                             .piece = (long)c * n,
                             .length = n,
                             .n = c,
                             .row = 1,
                             .column = n};
  TP__FN(pack_panels)(&panels, packed);
}

/* Channels so few that rows of one tap would fill no tile. */
static bool takes_windows(const tp__conv *v)
{
  enum { FEW = 16 };
  return v->c < FEW;
}

static long row_length(const tp__conv *v)
{
  return takes_windows(v) ? (long)v->kh * v->kw * v->c : v->c;
}

/* Floats of dy whose examples are taken together for the input gradient, as words; 0 where it is
 * read in place. */
static long copied_outputs(const tp__conv *v, long *examples)
{
  enum { CACHED = 128 << 10, MOST = 8 };
  const long row = (long)v->oh * v->ow * tp__words(v->n);
  *examples = CACHED / row < 1 ? 1 : CACHED / row < MOST ? CACHED / row : MOST;
  return TP__IN_WORD > 1 ? *examples * row : 0;
}

/* Room for the tables of the input gradient and what it copies, or for the copied rows. */
size_t TP__FN(conv_grad_scratch)(const tp__conv *v)
{
  long examples;
  size_t tables =
      gathering_size(v->kh * v->kw, tp__words(v->n)) + (size_t)copied_outputs(v, &examples);
  size_t rows = (size_t)TP__GATHER_ROWS * (size_t)tp__pitch(row_length(v));
  return tables > rows ? tables : rows;
}

/* The taps of pixels whose y and x have these remainders. */
static int taps_of(const tp__conv *v, int py, int px, int *tap)
{
  int count = 0;
  for (int t = 0; t < v->kh * v->kw; t++)
    if ((py + v->pad_top - t / v->kw) % v->stride == 0 &&
        (px + v->pad_left - t % v->kw) % v->stride == 0)
      tap[count++] = t;
  return count;
}

static void gather_outputs(const tp__conv *v, const gathering *g, int taps, const float *dy, int y,
                           int x, long r)
{
  const float **from = g->from + r;
  for (int i = 0; i < taps; i++, from += TP__GATHER_ROWS) {
    const int oy = y + v->pad_top - g->tap[i] / v->kw, ox = x + v->pad_left - g->tap[i] % v->kw;
    const bool inside = oy >= 0 && ox >= 0 && oy / v->stride < v->oh && ox / v->stride < v->ow;
    *from = inside ? dy + ((long)(oy / v->stride) * v->ow + ox / v->stride) * v->y_pitch : g->zeros;
  }
}

static void input_grad_phase(const tp__conv *v, const gathering *g, tp__gather *p, const float *dy,
                             float *dx, int py, int px)
{
  const int images = v->images > 1 ? v->images : 1;
  p->taps = taps_of(v, py, px, g->tap);
  p->m = 0;
  for (int i = 0; i < images; i++) {
    for (int y = py; y < v->h; y += v->stride) {
      for (int x = px; x < v->w; x += v->stride) {
        g->to[p->m] = dx + i * v->x_row + ((long)y * v->w + x) * v->x_pitch;
        gather_outputs(v, g, p->taps, dy + i * v->y_row, y, x, p->m);
        if (++p->m < TP__GATHER_ROWS) continue;
        TP__FN(gather)(p);
        p->m = 0;
      }
    }
  }
  if (p->m > 0) TP__FN(gather)(p);
}

static void input_grad(const tp__conv *v, const gathering *g, const float *dy, float *dx)
{
  tp__gather p = {.n = v->c,
                  .length = tp__words(v->n),
                  .from = g->from,
                  .to = g->to,
                  .tap = g->tap,
                  .kernel_taps = v->kh * v->kw,
                  .packed = v->packed};
  for (int py = 0; py < v->stride && py < v->h; py++)
    for (int px = 0; px < v->stride && px < v->w; px++) input_grad_phase(v, g, &p, dy, dx, py, px);
}

#ifdef TP__PAIRS

/* dy as words, some examples at a time. */
void TP__FN(conv_input_grad)(const tp__conv *v, const float *dy, float *dx)
{
  const gathering g = gathering_at(v->scratch, v->kh * v->kw, tp__words(v->n));
  float *words = v->scratch + gathering_size(v->kh * v->kw, tp__words(v->n));
  const long pixels = (long)v->oh * v->ow, images = v->images > 1 ? v->images : 1;
  long most;
  (void)copied_outputs(v, &most);
  tp__conv part = *v;
  part.y_pitch = tp__words(v->n);
  part.y_row = pixels * part.y_pitch;
  for (long i = 0; i < images; i += part.images) {
    part.images = (int)(images - i < most ? images - i : most);
    for (long j = 0; j < part.images; j++)
      for (long p = 0; p < pixels; p++)
        tp__copy_words(words + j * part.y_row + p * part.y_pitch,
                       dy + (i + j) * v->y_row + p * v->y_pitch, NULL, v->n);
    input_grad(&part, &g, words, dx + i * v->x_row);
  }
}

#else

void TP__FN(conv_input_grad)(const tp__conv *v, const float *dy, float *dx)
{
  const gathering g = gathering_at(v->scratch, v->kh * v->kw, v->n);
  input_grad(v, &g, dy, dx);
}

#endif

/* Pixels x0...x1 of row iy of an image, densely; zeros outside. */
static void copy_pixels(const tp__conv *v, const float *image, int iy, int x0, int x1, float *to)
{
  const int first = x0 < 0 ? (x1 < 0 ? x1 : 0) : x0, end = x1 > v->w ? (x0 > v->w ? x0 : v->w) : x1;
  const size_t piece = (size_t)v->c * sizeof(float);
  if (iy < 0 || iy >= v->h || first >= end) {
    memset(to, 0, (size_t)(x1 - x0) * piece);
    return;
  }
  const float *from = image + ((long)iy * v->w + first) * v->x_pitch;
  memset(to, 0, (size_t)(first - x0) * piece);
  to += (long)(first - x0) * v->c;
  if (v->x_pitch == v->c) {
    memcpy(to, from, (size_t)(end - first) * piece);
    to += (long)(end - first) * v->c;
  } else {
    for (int x = first; x < end; x++, from += v->x_pitch, to += v->c) memcpy(to, from, piece);
  }
  memset(to, 0, (size_t)(x1 - end) * piece);
}

/* What tap t, or all taps (t < 0), see of x for outputs first...first + m of all examples', row
 * below row. */
static void copy_rows(const tp__conv *v, const float *x, int t, long first, long m, float *rows)
{
  const long outputs = (long)v->oh * v->ow, pitch = tp__pitch(row_length(v));
  const int ky0 = t < 0 ? 0 : t / v->kw, ky1 = t < 0 ? v->kh : ky0 + 1;
  const int kx0 = t < 0 ? 0 : t % v->kw, kx1 = t < 0 ? v->kw : kx0 + 1;
  int oy = (int)(first % outputs / v->ow), ox = (int)(first % v->ow);
  const float *image = x + first / outputs * v->x_row;
  for (; m > 0; m--, rows += pitch) {
    const int top = oy * v->stride - v->pad_top, left = ox * v->stride - v->pad_left;
    for (int ky = ky0; ky < ky1; ky++)
      copy_pixels(v, image, top + ky, left + kx0, left + kx1,
                  rows + (long)(ky - ky0) * (kx1 - kx0) * v->c);
    if (++ox < v->ow) continue;
    ox = 0;
    if (++oy < v->oh) continue;
    oy = 0;
    image += v->x_row;
  }
}

void TP__FN(conv_kernel_grad)(const tp__conv *v, const float *x, const float *dy, float *dk)
{
  const long length = row_length(v), outputs = (long)v->oh * v->ow;
  const long total = (v->images > 1 ? v->images : 1) * outputs;
  const int taps = v->kh * v->kw, together = takes_windows(v) ? taps : 1;
  /* Examples that follow each other without a gap are one; else blocks end with them. */
  const bool joined = v->y_row == outputs * v->y_pitch;
  for (long first = 0, m; first < total; first += m) {
    m = total - first < TP__GATHER_ROWS ? total - first : TP__GATHER_ROWS;
    if (!joined && outputs - first % outputs < m) m = outputs - first % outputs;
    const float *d = dy + first / outputs * v->y_row + first % outputs * v->y_pitch;
    for (int t = 0; t < taps; t += together) {
      copy_rows(v, x, together > 1 ? -1 : t, first, m, v->scratch);
      TP__FN(gemm_kernel_grad)
      (m, length, v->n, v->scratch, tp__pitch(length), d, v->y_pitch, dk + (long)t * v->c * v->n);
    }
  }
}
