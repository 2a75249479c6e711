/* A general convolution of one example as products of overlapping rows, without im2col.
 *
 * Zero-padded rows of the image are copied, densely, into the thread's scratch, a few output rows
 * at a time. Then output pixel (y, x) is a row of A that starts at scratch[y * stride][x * stride *
 * c] and has kh pieces of kw * c floats: see tp__product. Without padding the image itself serves.
 */
#include "backend/cpu/family.h"

#include "backend/cpu/vec.h"

/* A band: the rows of the padded image that `rows` rows of output need. */
typedef struct band {
  long row;  /* floats of a padded row */
  int rows;  /* of output */
  int lines; /* of input */
} band;

/* No output pixel reaches into the padding, so that rows of A can be read where they lie. */
static bool reads_inside(const tp__conv *v)
{
  return v->pad_top == 0 && v->pad_left == 0 && (v->oh - 1) * v->stride + v->kh <= v->h &&
         (v->ow - 1) * v->stride + v->kw <= v->w && (v->kw == 1 || v->x_pitch == v->c);
}

static band band_of(const tp__conv *v)
{
  enum { CACHED = 6000 }; /* floats: half of a first-level cache of 48 KB */
  long row = (long)((v->ow - 1) * v->stride + v->kw) * v->c;
  long more = (CACHED / row - v->kh) / v->stride;
  int rows = 1 + (int)(more < 0 ? 0 : more > v->oh - 1 ? v->oh - 1 : more);
  return (band){.row = row, .rows = rows, .lines = (rows - 1) * v->stride + v->kh};
}

size_t TP__FN(packed_conv)(int kh, int kw, int c, int n)
{
  return TP__FN(packed_gemm)((long)kh * kw * c, n);
}

void TP__FN(pack_conv)(const float *kernel, int kh, int kw, int c, int n, float *packed)
{
  TP__FN(pack_gemm)(kernel, n, 1, (long)kh * kw * c, n, packed);
}

size_t TP__FN(conv_scratch)(const tp__conv *v)
{
  if (reads_inside(v)) return 0;
  band b = band_of(v);
  return (size_t)(b.row * b.lines);
}

/* One row of the padded image: zeros outside, channels packed. */
static void copy_line(const tp__conv *v, int iy, long row, float *line)
{
  long pixels = row / v->c, first = v->pad_left < pixels ? v->pad_left : pixels;
  long end = first + v->w < pixels ? first + v->w : pixels;
  if (iy < 0 || iy >= v->h) first = end = 0;
  memset(line, 0, (size_t)(first * v->c) * sizeof(float));
  const float *x = v->x + (long)iy * v->w * v->x_pitch;
  if (v->x_pitch == v->c) {
    if (end > first) memcpy(line + first * v->c, x, (size_t)((end - first) * v->c) * sizeof(float));
  } else {
    for (long p = first; p < end; p++, x += v->x_pitch)
      memcpy(line + p * v->c, x, (size_t)v->c * sizeof(float));
  }
  memset(line + end * v->c, 0, (size_t)((pixels - end) * v->c) * sizeof(float));
}

void TP__FN(conv)(const tp__conv *v)
{
  const long out_row = v->ow * v->y_pitch;
  tp__product p = {.m = v->ow,
                   .n = v->n,
                   .segments = v->kh,
                   .length = (long)v->kw * v->c,
                   .packed = v->packed,
                   .bias = v->bias,
                   .ldc = v->y_pitch,
                   .act = v->act,
                   .act_last = v->act_last};
  if (reads_inside(v)) {
    p.lda = v->stride * v->x_pitch;
    p.step = v->w * v->x_pitch;
    bool one = v->kh == 1 && v->kw == 1 && v->stride == 1 && v->ow == v->w;
    if (one) p.m = (long)v->oh * v->ow;
    for (int y = 0; y < (one ? 1 : v->oh); y++) {
      p.a = v->x + (long)y * v->stride * p.step;
      p.c = v->y + y * out_row;
      p.residual = v->residual != NULL ? v->residual + y * out_row : NULL;
      TP__FN(product)(&p);
    }
    return;
  }
  const band b = band_of(v);
  p.lda = (long)v->stride * v->c;
  p.step = b.row;
  for (int y = 0; y < v->oh; y++) {
    int line = y % b.rows * v->stride;
    if (line == 0)
      for (int i = 0; i < b.lines; i++)
        copy_line(v, y * v->stride - v->pad_top + i, b.row, v->scratch + i * b.row);
    p.a = v->scratch + line * b.row;
    p.c = v->y + y * out_row;
    p.residual = v->residual != NULL ? v->residual + y * out_row : NULL;
    TP__FN(product)(&p);
  }
}
