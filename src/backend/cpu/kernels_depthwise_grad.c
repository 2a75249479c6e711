/* The kernel gradient of the depthwise convolution: dk[ky][kx][c] += sum over the output pixels of
 * x dy, in their order.
 *
 * For one vector of channels the taps are accumulators in registers (all of them where they fit,
 * else a kernel row) while a row of dy passes; between rows they rest in a small array.
 */
#include "backend/cpu/family.h"

#include "backend/cpu/vec.h"

/* One row of dy against `rows` kernel rows that lie inside the image. Pointers are at the vector's
 * first channel. */
typedef struct grad_row {
  const float *x; /* the row that the first kernel row reads, at column 0 */
  long x_row, pixel;
  int width, pad_left;
  const float *dy;
  int count;  /* pixels of dy */
  float *sum; /* [rows][taps][TP__V] */
} grad_row;

#define TAPS   3
#define ROWS   1
#define STRIDE 1
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   3
#define ROWS   2
#define STRIDE 1
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   3
#define ROWS   3
#define STRIDE 1
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   5
#define ROWS   1
#define STRIDE 1
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   5
#define ROWS   2
#define STRIDE 1
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   3
#define ROWS   1
#define STRIDE 2
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   3
#define ROWS   2
#define STRIDE 2
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   3
#define ROWS   3
#define STRIDE 2
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   5
#define ROWS   1
#define STRIDE 2
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   5
#define ROWS   2
#define STRIDE 2
#include "backend/cpu/depthwise_grad_row.inc"
#if TP__VECTOR == 16 || defined(__aarch64__) /* 32 registers */
#define TAPS   5
#define ROWS   3
#define STRIDE 1
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   5
#define ROWS   4
#define STRIDE 1
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   5
#define ROWS   5
#define STRIDE 1
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   5
#define ROWS   3
#define STRIDE 2
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   5
#define ROWS   4
#define STRIDE 2
#include "backend/cpu/depthwise_grad_row.inc"
#define TAPS   5
#define ROWS   5
#define STRIDE 2
#include "backend/cpu/depthwise_grad_row.inc"
#define FIVES(stride)                                                                              \
  {                                                                                                \
    row_5_1_##stride, row_5_2_##stride, row_5_3_##stride, row_5_4_##stride, row_5_5_##stride       \
  }
#else
#define FIVES(stride)                                                                              \
  {                                                                                                \
    row_5_1_##stride, row_5_2_##stride                                                             \
  }
#endif

enum { K_MAX = 5 };
typedef struct grad_kernel {
  int k, stride, most;                    /* kernel rows that fit the registers */
  void (*rows[K_MAX])(const grad_row *r); /* [rows - 1] */
} grad_kernel;

#if TP__VECTOR == 16 || defined(__aarch64__)
enum { MOST_5 = 5 };
#else
enum { MOST_5 = 2 };
#endif
static const grad_kernel kernels[] = {{3, 1, 3, {row_3_1_1, row_3_2_1, row_3_3_1}},
                                      {3, 2, 3, {row_3_1_2, row_3_2_2, row_3_3_2}},
                                      {5, 1, MOST_5, FIVES(1)},
                                      {5, 2, MOST_5, FIVES(2)}};

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
  grad_row r = {.x_row = v->w * pitch,
                .pixel = pitch,
                .width = v->w,
                .pad_left = v->pad_left,
                .count = v->ow};
  for (int y = 0; y < v->oh; y++) {
    const int first = y * v->stride - v->pad_top;
    const int end = first + v->k < v->h ? first + v->k : v->h; /* rows of x inside the image */
    r.dy = dy + (long)y * v->ow * pitch;
    for (int row = first < 0 ? 0 : first, rows; row < end; row += rows) {
      rows = end - row < kernel->most ? end - row : kernel->most;
      r.x = x + row * r.x_row;
      r.sum = sum + (row - first) * v->k * TP__V;
      kernel->rows[rows - 1](&r);
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
        tp__store_upto(to, one_tap(v, t / v->k, t % v->k, x + c, dy + c, tp__load_upto(to, left)),
                       left);
      continue;
    }
    float sum[K_MAX * K_MAX * TP__V];
    for (int t = 0; t < taps; t++)
      tp__store(sum + t * TP__V, tp__load_upto(to + (long)t * v->c, left));
    taps_at_once(v, kernel, x + c, dy + c, sum);
    for (int t = 0; t < taps; t++)
      tp__store_upto(to + (long)t * v->c, tp__load(sum + t * TP__V), left);
  }
}
