/* The kernel gradient of the depthwise convolution: dk[ky][kx][c] += sum over the output pixels of x dy, in their order.
 *
 * For one vector of channels the taps are accumulators in registers (all of them where they fit, else a kernel row) while a
 * row of dy passes; between rows they rest in a small array.
 */
#include "backend/cpu/family.h"

#include "backend/cpu/vec.h"

/* One row of dy against `rows` kernel rows that lie inside the image. Pointers are at the vector's first channel. */
typedef struct grad_row {
  const float *x; /* the row that the first kernel row reads, at column 0 */
  long x_row, pixel;
  int width, pad_left;
  const float *dy;
  int count; /* pixels of dy */
  float *sum; /* [rows][taps][TP__V] */
} grad_row;

/* One pixel of dy against all taps. */
#define EACH_TAP(TAPS, ROWS, load_input)                                                           \
  {                                                                                                \
    const tp__vec d = tp__load(dy);                                                                \
    TP__UNROLL for (int i = 0; i < ROWS; i++) TP__UNROLL for (int t = 0; t < TAPS; t++)            \
        sum[i][t] = tp__fma(load_input, d, sum[i][t]);                                             \
  }
#define INSIDE tp__load(x + i * x_row + t * pixel)
#define BORDER ((unsigned)(column + t) < (unsigned)width ? INSIDE : tp__zero())

#define GRAD_ROW(name, TAPS, ROWS, STRIDE)                                                         \
  static TP__NOINLINE void name(const grad_row *r)                                                 \
  {                                                                                                \
    const long x_row = r->x_row, pixel = r->pixel;                                                 \
    const int width = r->width;                                                                    \
    int column = -r->pad_left;                                                                     \
    const float *x = r->x + column * pixel, *dy = r->dy, *end = dy + r->count * pixel;             \
    tp__vec sum[ROWS][TAPS];                                                                       \
    TP__UNROLL for (int i = 0; i < ROWS; i++) TP__UNROLL for (int t = 0; t < TAPS; t++)            \
        sum[i][t] = tp__load(r->sum + (i * TAPS + t) * TP__V);                                     \
    for (; dy < end && column < 0; dy += pixel, x += STRIDE * pixel, column += STRIDE)             \
      EACH_TAP(TAPS, ROWS, BORDER)                                                                 \
    for (; dy < end && column + TAPS <= width; dy += pixel, x += STRIDE * pixel, column += STRIDE) \
      EACH_TAP(TAPS, ROWS, INSIDE)                                                                 \
    for (; dy < end; dy += pixel, x += STRIDE * pixel, column += STRIDE)                           \
      EACH_TAP(TAPS, ROWS, BORDER)                                                                 \
    TP__UNROLL for (int i = 0; i < ROWS; i++) TP__UNROLL for (int t = 0; t < TAPS; t++)            \
        tp__store(r->sum + (i * TAPS + t) * TP__V, sum[i][t]);                                     \
  }

GRAD_ROW(row_3_3_1, 3, 3, 1)
GRAD_ROW(row_3_1_1, 3, 1, 1)
GRAD_ROW(row_3_3_2, 3, 3, 2)
GRAD_ROW(row_3_1_2, 3, 1, 2)
GRAD_ROW(row_5_1_1, 5, 1, 1)
GRAD_ROW(row_5_1_2, 5, 1, 2)
#if TP__VECTOR == 16 || defined(__aarch64__)
GRAD_ROW(row_5_5_1, 5, 5, 1)
GRAD_ROW(row_5_5_2, 5, 5, 2)
#define ALL_5_1 row_5_5_1
#define ALL_5_2 row_5_5_2
#else
#define ALL_5_1 NULL
#define ALL_5_2 NULL
#endif

typedef struct grad_kernel {
  int k, stride;
  void (*all)(const grad_row *r); /* all kernel rows at once; NULL: too many registers */
  void (*one)(const grad_row *r);
} grad_kernel;

static const grad_kernel kernels[] = {{3, 1, row_3_3_1, row_3_1_1},
                                      {3, 2, row_3_3_2, row_3_1_2},
                                      {5, 1, ALL_5_1, row_5_1_1},
                                      {5, 2, ALL_5_2, row_5_1_2}};
enum { K_MAX = 5 };

static const grad_kernel *kernel_for(int k, int stride)
{
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
    if (kernels[i].k == k && kernels[i].stride == stride) return &kernels[i];
  return NULL;
}

/* All taps of one vector of channels; x and dy at its first channel. */
static void taps_at_once(const tp__depthwise *v, const grad_kernel *kernel, const float *x,
                         const float *dy, float *sum)
{
  const long pitch = tp__pitch(v->c);
  grad_row r = {.x_row = v->w * pitch, .pixel = pitch, .width = v->w, .pad_left = v->pad_left,
                .count = v->ow};
  for (int y = 0; y < v->oh; y++) {
    const int first = y * v->stride - v->pad_top;
    r.dy = dy + (long)y * v->ow * pitch;
    if (kernel->all != NULL && first >= 0 && first + v->k <= v->h) {
      r.x = x + first * r.x_row;
      r.sum = sum;
      kernel->all(&r);
      continue;
    }
    for (int ky = 0; ky < v->k; ky++) {
      if (first + ky < 0 || first + ky >= v->h) continue;
      r.x = x + (first + ky) * r.x_row;
      r.sum = sum + ky * v->k * TP__V;
      kernel->one(&r);
    }
  }
}

/* Any kernel and stride: tap by tap. */
static tp__vec one_tap(const tp__depthwise *v, int ky, int kx, const float *x, const float *dy,
                       tp__vec sum)
{
  const long pitch = tp__pitch(v->c);
  for (int y = 0; y < v->oh; y++)
    for (int o = 0; o < v->ow; o++) {
      int row = y * v->stride - v->pad_top + ky, column = o * v->stride - v->pad_left + kx;
      if (row < 0 || row >= v->h || column < 0 || column >= v->w) continue;
      sum = tp__fma(tp__load(x + ((long)row * v->w + column) * pitch),
                    tp__load(dy + ((long)y * v->ow + o) * pitch), sum);
    }
  return sum;
}

void TP__FN(depthwise_kernel_grad)(const tp__depthwise *v, const float *x, const float *dy,
                                   float *dk)
{
  const grad_kernel *kernel = kernel_for(v->k, v->stride);
  const int taps = v->k * v->k;
  for (long c = 0; c < v->c; c += TP__V) {
    const long left = v->c - c;
    float *to = dk + c;
    if (kernel == NULL) {
      for (int t = 0; t < taps; t++, to += v->c)
        tp__store_upto(
            to, one_tap(v, t / v->k, t % v->k, x + c, dy + c, tp__load_upto(to, left)), left);
      continue;
    }
    float sum[K_MAX * K_MAX * TP__V];
    for (int t = 0; t < taps; t++) tp__store(sum + t * TP__V, tp__load_upto(to + (long)t * v->c, left));
    taps_at_once(v, kernel, x + c, dy + c, sum);
    for (int t = 0; t < taps; t++)
      tp__store_upto(to + (long)t * v->c, tp__load(sum + t * TP__V), left);
  }
}
