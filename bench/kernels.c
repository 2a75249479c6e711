/* kernels - what share of the multiply-add peak each kernel reaches, for the layers of
 * EfficientNet-B0 and the convolutions of ResNet50 and DenseNet121 at 192 x 192.
 *
 *   build/bench/bench_kernels [TABLE [FAMILY]]      TABLE: baseline, avx2 or avx512; without it,
 * all that run here. FAMILY: only those whose name starts so
 *
 * One thread, its processor time, warm caches. Each round measures a burst of the peak and one of
 * the kernel; what is printed is the median of the rounds' ratios, since the clock of a shared
 * machine moves. Element-wise work (swish, sums) counts nothing, so that shares with swish are
 * lower by what it costs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/kernels.h"

enum { ROUNDS = 9, FLOATS = 9 << 19 }; /* the largest layer: 4 x 4 x 512 x 512 */
static const double burst = 0.002;     /* seconds */

typedef struct buffers {
  float *x, *y, *z, *w, *packed, *scratch, *bias;
} buffers;

typedef struct job job;
struct job {
  const char *family;
  long a, b, c, d; /* gemm: m, n, k; depthwise: size, channels, k, stride */
  double (*run)(const tp__kernels *k, const job *j,
                const buffers *b); /* returns multiply-adds x 2 */
};

static double gemm_with(const tp__kernels *k, const job *j, const buffers *b, tp__act act)
{
  tp__gemm g = {.m = j->a,
                .n = j->b,
                .k = j->c,
                .a = b->x,
                .lda = tp__pitch(j->c),
                .packed = b->packed,
                .bias = b->bias,
                .c = b->y,
                .ldc = tp__pitch(j->b),
                .act = act};
  k->gemm(&g);
  return 2.0 * (double)(j->a * j->b * j->c);
}
static double gemm(const tp__kernels *k, const job *j, const buffers *b)
{
  return gemm_with(k, j, b, TP__ACT_NONE);
}
static double gemm_swish(const tp__kernels *k, const job *j, const buffers *b)
{
  return gemm_with(k, j, b, TP__ACT_SWISH);
}
static double gemm_grad(const tp__kernels *k, const job *j, const buffers *b)
{
  k->gemm_kernel_grad(j->a, j->c, j->b, b->x, tp__pitch(j->c), b->y, tp__pitch(j->b), b->z);
  return 2.0 * (double)(j->a * j->b * j->c);
}

static double first_layer(const tp__kernels *k, const job *j, const buffers *b)
{
  int size = (int)j->a, out = size / 2, n = (int)j->b;
  tp__conv v = {.h = size,
                .w = size,
                .c = 3,
                .oh = out,
                .ow = out,
                .n = n,
                .kh = 3,
                .kw = 3,
                .stride = 2,
                .x = b->x,
                .x_pitch = 3,
                .packed = b->packed,
                .bias = b->bias,
                .y = b->y,
                .y_pitch = tp__pitch(n),
                .act = TP__ACT_SWISH,
                .scratch = b->scratch};
  k->conv(&v);
  return 2.0 * out * out * n * 27;
}

/* a: size of the image, b: channels, c: outputs, d: kernel x 10 + stride */
static tp__conv conv_of(const job *j, const buffers *b)
{
  int size = (int)j->a, kernel = (int)j->d / 10, stride = (int)j->d % 10, c = (int)j->b;
  int pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  return (tp__conv){.h = size,
                    .w = size,
                    .c = c,
                    .oh = out,
                    .ow = out,
                    .n = (int)j->c,
                    .kh = kernel,
                    .kw = kernel,
                    .stride = stride,
                    .pad_top = pad,
                    .pad_left = pad,
                    .x = b->x,
                    .x_pitch = c == 3 ? 3 : tp__pitch(c),
                    .packed = b->packed,
                    .bias = b->bias,
                    .y = b->y,
                    .y_pitch = tp__pitch(j->c),
                    .act = TP__ACT_RELU,
                    .scratch = b->scratch};
}
static double conv_flops(const tp__conv *v)
{
  return 2.0 * v->oh * v->ow * v->n * v->kh * v->kw * v->c;
}
static double conv(const tp__kernels *k, const job *j, const buffers *b)
{
  tp__conv v = conv_of(j, b);
  k->conv(&v);
  return conv_flops(&v);
}

/* Small late layers: four examples together. */
static double conv4(const tp__kernels *k, const job *j, const buffers *b)
{
  tp__conv v = conv_of(j, b);
  v.images = 4;
  v.x_row = (long)v.h * v.w * v.x_pitch;
  v.y_row = (long)v.oh * v.ow * v.y_pitch;
  k->conv(&v);
  return 4 * conv_flops(&v);
}
/* d: side of a tile x 10 + examples; shares count the multiplications of a direct convolution. */
static double winograd(const tp__kernels *k, const job *j, const buffers *b)
{
  const job direct = {.a = j->a, .b = j->b, .c = j->c, .d = 31};
  tp__conv v = conv_of(&direct, b);
  v.tile = (int)j->d / 10;
  v.images = (int)j->d % 10;
  v.x_row = (long)v.h * v.w * v.x_pitch;
  v.y_row = (long)v.oh * v.ow * v.y_pitch;
  k->winograd(&v);
  return v.images * conv_flops(&v);
}
static double conv_input_grad(const tp__kernels *k, const job *j, const buffers *b)
{
  tp__conv v = conv_of(j, b);
  v.images = v.h > 16 ? 1 : 4;
  v.x_row = (long)v.h * v.w * v.x_pitch;
  v.y_row = (long)v.oh * v.ow * v.y_pitch;
  k->conv_input_grad(&v, b->y, b->x);
  return v.images * conv_flops(&v);
}
static double conv_kernel_grad(const tp__kernels *k, const job *j, const buffers *b)
{
  tp__conv v = conv_of(j, b);
  v.images = v.h > 16 ? 1 : 4;
  v.x_row = (long)v.h * v.w * v.x_pitch;
  v.y_row = (long)v.oh * v.ow * v.y_pitch;
  k->conv_kernel_grad(&v, b->x, b->y, b->packed);
  return v.images * conv_flops(&v);
}

static tp__depthwise depthwise_of(const job *j, const buffers *b)
{
  int size = (int)j->a, c = (int)j->b, k = (int)j->c, s = (int)j->d,
      pad = s == 1 ? k / 2 : k / 2 - 1;
  return (tp__depthwise){.h = size,
                         .w = size,
                         .c = c,
                         .oh = size / s,
                         .ow = size / s,
                         .k = k,
                         .stride = s,
                         .pad_top = pad,
                         .pad_left = pad,
                         .x = b->x,
                         .packed = b->w,
                         .bias = b->bias,
                         .y = b->y,
                         .scratch = b->scratch};
}
static double depthwise_flops(const tp__depthwise *v)
{
  return 2.0 * v->oh * v->ow * v->c * v->k * v->k;
}
static double depthwise(const tp__kernels *k, const job *j, const buffers *b)
{
  tp__depthwise v = depthwise_of(j, b);
  k->depthwise(&v);
  return depthwise_flops(&v);
}
static double depthwise_swish(const tp__kernels *k, const job *j, const buffers *b)
{
  tp__depthwise v = depthwise_of(j, b);
  v.act = TP__ACT_SWISH;
  v.sums = b->z;
  k->depthwise(&v);
  return depthwise_flops(&v);
}
static double depthwise_input_grad(const tp__kernels *k, const job *j, const buffers *b)
{
  tp__depthwise v = depthwise_of(j, b);
  k->depthwise_input_grad(&v, b->x, b->y);
  return depthwise_flops(&v);
}
static double depthwise_kernel_grad(const tp__kernels *k, const job *j, const buffers *b)
{
  tp__depthwise v = depthwise_of(j, b);
  k->depthwise_kernel_grad(&v, b->x, b->y, b->z);
  return depthwise_flops(&v);
}

/* Element by element: a multiply-add slot for each element stands for the work, so that 5 % means
 * 20 slots an element. */
enum { ELEMENTS = 4096 };
static double swish(const tp__kernels *k, const job *j, const buffers *b)
{
  (void)j;
  k->act(TP__ACT_SWISH, ELEMENTS, b->x, b->y);
  return 2.0 * ELEMENTS;
}
static double swish_grad(const tp__kernels *k, const job *j, const buffers *b)
{
  (void)j;
  k->act_grad(TP__ACT_SWISH, ELEMENTS, b->x, b->y, b->z);
  return 2.0 * ELEMENTS;
}
static double sum_products(const tp__kernels *k, const job *j, const buffers *b)
{
  k->sum_products(j->a, j->b, b->x, b->y, b->z);
  return 2.0 * (double)(j->a * j->b);
}

/* clang-format off */
#define PRODUCTS(X, name, run)                                                                     \
  X(name, 9216, 96, 16, 0, run)                                                                    \
  X(name, 2304, 144, 24, 0, run)                                                                   \
  X(name, 576, 240, 40, 0, run)                                                                    \
  X(name, 144, 480, 80, 0, run)                                                                    \
  X(name, 144, 672, 112, 0, run)                                                                   \
  X(name, 36, 1152, 192, 0, run)                                                                   \
  X(name, 36, 1280, 320, 0, run)
#define PROJECTIONS(X, name, run)                                                                  \
  X(name, 9216, 16, 32, 0, run)                                                                    \
  X(name, 2304, 24, 96, 0, run)                                                                    \
  X(name, 576, 40, 240, 0, run)                                                                    \
  X(name, 144, 80, 480, 0, run)                                                                    \
  X(name, 144, 112, 672, 0, run)                                                                   \
  X(name, 36, 192, 1152, 0, run)                                                                   \
  X(name, 36, 320, 1152, 0, run)                                                                   \
  X(name, 1, 48, 1152, 0, run)                                                                     \
  X(name, 1, 1152, 48, 0, run)                                                                     \
  X(name, 32, 104, 1280, 0, run)
#define DEPTHWISE(X, name, run)                                                                    \
  X(name, 96, 32, 3, 1, run)                                                                       \
  X(name, 96, 96, 3, 2, run)                                                                       \
  X(name, 48, 144, 3, 1, run)                                                                      \
  X(name, 48, 144, 5, 2, run)                                                                      \
  X(name, 24, 240, 5, 1, run)                                                                      \
  X(name, 24, 240, 3, 2, run)                                                                      \
  X(name, 12, 480, 3, 1, run)                                                                      \
  X(name, 12, 672, 5, 1, run)                                                                      \
  X(name, 12, 672, 5, 2, run)                                                                      \
  X(name, 6, 1152, 5, 1, run)                                                                      \
  X(name, 6, 1152, 3, 1, run)
#define CONVOLUTIONS(X, name, run)                                                                 \
  X(name, 48, 64, 64, 31, run)                                                                     \
  X(name, 24, 128, 128, 31, run)                                                                   \
  X(name, 12, 256, 256, 31, run)                                                                   \
  X(name, 6, 512, 512, 31, run)                                                                    \
  X(name, 48, 128, 128, 32, run)                                                                   \
  X(name, 12, 512, 512, 32, run)                                                                   \
  X(name, 48, 128, 32, 31, run)                                                                    \
  X(name, 12, 128, 32, 31, run)                                                                    \
  X(name, 48, 256, 512, 12, run)                                                                   \
  X(name, 24, 512, 1024, 12, run)
#define WINOGRAD(X, name, run)                                                                     \
  X(name, 48, 64, 64, 41, run)                                                                     \
  X(name, 24, 128, 128, 41, run)                                                                   \
  X(name, 12, 256, 256, 44, run)                                                                   \
  X(name, 12, 256, 256, 41, run)                                                                   \
  X(name, 6, 512, 512, 24, run)                                                                    \
  X(name, 48, 128, 32, 41, run)                                                                    \
  X(name, 24, 128, 32, 41, run)                                                                    \
  X(name, 12, 128, 32, 44, run)                                                                    \
  X(name, 6, 128, 32, 24, run)
#define ROW(name, a, b, c, d, run) {name, a, b, c, d, run},

static const job jobs[] = {
    PRODUCTS(ROW, "gemm", gemm)
    PRODUCTS(ROW, "gemm, swish", gemm_swish)
    PROJECTIONS(ROW, "gemm", gemm)
    PRODUCTS(ROW, "gemm_kernel_grad", gemm_grad)
    PROJECTIONS(ROW, "gemm_kernel_grad", gemm_grad)
    ROW("conv", 192, 3, 64, 72, conv)
    CONVOLUTIONS(ROW, "conv", conv)
    ROW("conv, 4 examples", 6, 512, 512, 31, conv4)
    ROW("conv, 4 examples", 12, 512, 512, 32, conv4)
    WINOGRAD(ROW, "winograd", winograd)
    ROW("conv_kernel_grad", 192, 3, 64, 72, conv_kernel_grad)
    CONVOLUTIONS(ROW, "conv_input_grad", conv_input_grad)
    CONVOLUTIONS(ROW, "conv_kernel_grad", conv_kernel_grad)
    ROW("first layer, swish", 192, 32, 0, 0, first_layer)
    DEPTHWISE(ROW, "depthwise", depthwise)
    DEPTHWISE(ROW, "depthwise, swish, sums", depthwise_swish)
    DEPTHWISE(ROW, "depthwise_input_grad", depthwise_input_grad)
    DEPTHWISE(ROW, "depthwise_kernel_grad", depthwise_kernel_grad)
    ROW("swish", ELEMENTS, 0, 0, 0, swish)
    ROW("swish gradient", ELEMENTS, 0, 0, 0, swish_grad)
    ROW("sum_products", 144, 480, 0, 0, sum_products)
};
/* clang-format on */
enum { JOBS = sizeof jobs / sizeof jobs[0], TABLES = 3 };

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Seconds of `runs` runs. */
static double time_of(const tp__kernels *k, const job *j, const buffers *b, long runs,
                      double *flops)
{
  double start = tp__thread_cpu();
  for (long i = 0; i < runs; i++) *flops = j->run(k, j, b);
  *flops *= (double)runs;
  return tp__thread_cpu() - start;
}

/* The median over the rounds of (the kernel's speed / the peak beside it). Reading the clock takes
 * as long as a small kernel: as many runs between two readings as take a burst. */
static double share(const tp__kernels *k, const job *j, const buffers *b)
{
  double ratio[ROUNDS], flops;
  long runs = 1;
  while (time_of(k, j, b, runs, &flops) < burst) runs *= 2;
  for (int r = 0; r < ROUNDS; r++) {
    double peak = k->peak(burst), seconds = time_of(k, j, b, runs, &flops);
    ratio[r] = flops / seconds * 1e-9 / peak;
  }
  qsort(ratio, ROUNDS, sizeof ratio[0], by_value);
  return ratio[ROUNDS / 2];
}

/* Buffers lie an odd number of cache lines further than a power of two apart, so that two of them
 * do not meet in the same sets of the cache. */
static float *all_floats(buffers *b)
{
  enum { BUFFERS = 7, DISTANCE = FLOATS + 37 * TP__LANES };
  float **const part[BUFFERS] = {&b->x, &b->y, &b->z, &b->w, &b->packed, &b->scratch, &b->bias};
  float *p = tp__calloc_aligned((size_t)BUFFERS * DISTANCE, sizeof(float), NULL);
  for (size_t i = 0; p != NULL && i < (size_t)BUFFERS * DISTANCE; i++)
    p[i] = (float)(i * 7919 % 1000) * 1e-3f - 0.5f;
  for (int i = 0; i < BUFFERS; i++) *part[i] = p + (ptrdiff_t)i * DISTANCE;
  return p;
}

int main(int argc, char **argv)
{
  static const char *const names[TABLES] = {"baseline", "avx2", "avx512"};
  const tp__kernels *table[TABLES];
  int tables = 0;
  tp_error err;
  for (int i = 0; i < TABLES; i++)
    if ((argc < 2 || strcmp(argv[1], names[i]) == 0) &&
        tp__kernels_choose(names[i], &table[tables], &err) == TP_OK)
      tables++;
  if (tables == 0) {
    fprintf(stderr, "bench_kernels: no such kernels on this machine\n");
    return 4;
  }
  buffers b;
  float *memory = all_floats(&b);
  if (memory == NULL) {
    fprintf(stderr, "bench_kernels: out of memory\n");
    return 1;
  }
  printf("%-24s %-22s", "share of peak, %", "shape");
  for (int i = 0; i < tables; i++) printf(" %8s", table[i]->name);
  printf("\n%-47s", "GFLOP/s of one thread");
  for (int i = 0; i < tables; i++) printf(" %8.0f", table[i]->peak(0.02));
  printf("\n");
  for (int n = 0; n < JOBS; n++) {
    const job *j = &jobs[n];
    if (argc > 2 && strncmp(j->family, argv[2], strlen(argv[2])) != 0) continue;
    printf("%-24s %5ld %5ld %5ld %3ld  ", j->family, j->a, j->b, j->c, j->d);
    for (int i = 0; i < tables; i++) printf(" %8.1f", 100 * share(table[i], j, &b));
    printf("\n");
    fflush(stdout);
  }
  free(memory);
  return 0;
}
