/* family - what the kernel sources share: names that carry the instruction set, and the matrix
 * product that gemm and conv both are. Each kernels_*.c is compiled once per instruction set with
 * TP__ISA (baseline, avx2, avx512) and TP__VECTOR; kernels_table.c gathers the functions of one set
 * into its tp__kernels.
 */
#ifndef TP_FAMILY_H
#define TP_FAMILY_H

#include "backend/cpu/kernels.h"

#define TP__JOIN_(a, b) tp__##a##_##b
#define TP__JOIN(a, b)  TP__JOIN_(a, b)
#define TP__FN(name)    TP__JOIN(name, TP__ISA)

/* A product whose rows of A are `segments` pieces of `length` floats, `step` floats apart; k runs
 * through the pieces. A 1 x 1 convolution has one piece; a k x k convolution over zero-padded rows
 * of an image has one for each kernel row, and rows of A that overlap (lda = stride * channels), so
 * that it needs no im2col. */
typedef struct tp__product {
  long m, n, segments, length, step;
  const float *a;
  long lda;
  const float *packed, *bias;
  float *c;
  long ldc;
  const float *residual;
  tp__act act;
  bool act_last;
} tp__product;

void TP__FN(product)(const tp__product *p);

/* A product whose rows of A are pieces that lie anywhere, as those of a convolution do: k runs
 * through the pieces. */
enum { TP__GATHER_ROWS = 192 };
typedef struct tp__gather {
  long m; /* <= TP__GATHER_ROWS */
  long n;
  int taps;                 /* pieces of a row */
  long length;              /* floats of a piece */
  const float *const *from; /* [taps][TP__GATHER_ROWS] */
  float *const *to;         /* [m]: rows of the result, pitch(n) each */
  const int *tap;           /* [taps]: which piece of packed B's rows meets it */
  int kernel_taps;          /* pieces of packed B's rows */
  const float *packed, *bias;
  bool residual;
  long to_residual; /* floats from `to` to the residual's row */
  tp__act act;
  bool act_last;
  int first, end; /* the pieces of this pass */
  bool more;      /* there was one before it */
  long column;
} tp__gather;

void TP__FN(gather)(const tp__gather *g);

/* ---- the functions of the table, see kernels.h ---- */
size_t TP__FN(packed_gemm)(long k, long n);
void TP__FN(pack_gemm)(const float *b, long row, long column, long k, long n, float *packed);
void TP__FN(scale_packed)(const float *packed, const float *scale, long k, long n, float *scaled);
void TP__FN(gemm)(const tp__gemm *g);
void TP__FN(gemm_kernel_grad)(long m, long k, long n, const float *a, long lda, const float *dc,
                              long ldc, float *db);
size_t TP__FN(packed_conv)(int kh, int kw, int c, int n);
void TP__FN(pack_conv)(const float *kernel, int kh, int kw, int c, int n, float *packed);
size_t TP__FN(conv_scratch)(const tp__conv *v);
void TP__FN(conv)(const tp__conv *v);
void TP__FN(pack_conv_transposed)(const float *kernel, int kh, int kw, int c, int n, float *packed);
size_t TP__FN(conv_grad_scratch)(const tp__conv *v);
void TP__FN(conv_input_grad)(const tp__conv *v, const float *dy, float *dx);
void TP__FN(conv_kernel_grad)(const tp__conv *v, const float *x, const float *dy, float *dk);
size_t TP__FN(packed_depthwise)(int k, int c);
void TP__FN(pack_depthwise)(const float *kernel, int k, int c, float *packed);
size_t TP__FN(depthwise_scratch)(const tp__depthwise *v);
void TP__FN(depthwise)(const tp__depthwise *v);
void TP__FN(depthwise_input_grad)(const tp__depthwise *v, const float *dy, float *dx);
void TP__FN(depthwise_kernel_grad)(const tp__depthwise *v, const float *x, const float *dy,
                                   float *dk);
void TP__FN(max_pool)(const tp__pooling *v);
void TP__FN(avg_pool)(const tp__pooling *v);
void TP__FN(max_pool_grad)(const tp__pooling *v, const float *dy, float *dx);
void TP__FN(avg_pool_grad)(const tp__pooling *v, const float *dy, float *dx);
void TP__FN(norm)(const tp__norm *v);
void TP__FN(act)(tp__act act, long count, const float *x, float *y);
void TP__FN(act_grad)(tp__act act, long count, const float *dy, const float *x, float *dx);
void TP__FN(add)(long count, const float *a, const float *b, float *y);
void TP__FN(scale_channels)(long pixels, long c, const float *x, const float *scale, float *y);
void TP__FN(affine_channels)(long pixels, long c, const float *x, const float *scale,
                             const float *shift, float *y);
void TP__FN(sum_pixels)(long pixels, long c, const float *x, float factor, float *sums);
void TP__FN(sum_products)(long pixels, long c, const float *x, const float *dy, float *sums);
void TP__FN(moments)(long pixels, long c, const float *x, long x_pitch, float *mean,
                     float *squares);
void TP__FN(norm_act_grad)(tp__act act, long pixels, long c, const float *dy, const float *x,
                           long x_pitch, const float *scale, const float *shift, float *dx);
void TP__FN(norm_grad)(long pixels, long c, const float *dy, const float *x, long x_pitch,
                       const float *scale, const float *mean, const float *slope,
                       const float *shift, float *dx);
void TP__FN(norm_sums)(long pixels, long c, const float *dy, const float *x, long x_pitch,
                       const float *mean, const float *scale, float *sums, float *products);
void TP__FN(adam)(long count, float *p, float *m, float *v, const float *g, float rate_corrected,
                  float beta1, float beta2, float epsilon, float decay);
double TP__FN(peak)(double seconds);

#endif
