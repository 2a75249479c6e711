/* family - what the kernel sources share: names that carry the instruction set, and the matrix
 * product that gemm and conv both are. Each kernels_*.c is compiled once per instruction set with
 * TP__ISA (baseline, avx2, avx512, avx512bf16) and TP__VECTOR; kernels_table.c gathers the
 * functions of one set into its tp__kernels.
 */
#ifndef TP_FAMILY_H
#define TP_FAMILY_H

#include "backend/cpu/kernels.h"

#define TP__JOIN_(a, b) tp__##a##_##b
#define TP__JOIN(a, b)  TP__JOIN_(a, b)
#define TP__FN(name)    TP__JOIN(name, TP__ISA)

/* A set of products alone (TP__PAIRS: they take bfloat16, see words.h) has its other functions from
 * the set TP__REST. */
#ifndef TP__REST
#define TP__REST TP__ISA
#endif
#define TP__FN_REST(name) TP__JOIN(name, TP__REST)

/* B as it lies: `pieces` matrices, `piece` floats apart, of length x n numbers; k runs through the
 * pieces' rows. Any of row and column may be 1. Packed, a piece has whole words. */
typedef struct tp__panels {
  const float *from;
  long pieces, piece, length, n, row, column;
} tp__panels;

size_t TP__FN(packed_panels)(long pieces, long length, long n);
void TP__FN(pack_panels)(const tp__panels *b, float *packed);

/* A product whose rows of A are pieces that lie anywhere, as those of a convolution do: k runs
 * through the pieces. */
enum { TP__GATHER_ROWS = 192 };
typedef struct tp__gather {
  long m; /* <= TP__GATHER_ROWS */
  long n;
  int taps;                 /* pieces of a row */
  long length;              /* words of a piece */
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
size_t TP__FN_REST(packed_winograd)(int tile, int c, int n);
void TP__FN_REST(pack_winograd)(const float *kernel, int tile, int c, int n, bool transposed,
                                float *packed);
size_t TP__FN_REST(winograd_scratch)(const tp__conv *v);
void TP__FN_REST(winograd)(const tp__conv *v);
size_t TP__FN_REST(packed_depthwise)(int k, int c);
void TP__FN_REST(pack_depthwise)(const float *kernel, int k, int c, float *packed);
size_t TP__FN_REST(depthwise_scratch)(const tp__depthwise *v);
void TP__FN_REST(depthwise)(const tp__depthwise *v);
void TP__FN_REST(depthwise_input_grad)(const tp__depthwise *v, const float *dy, float *dx);
void TP__FN_REST(depthwise_kernel_grad)(const tp__depthwise *v, const float *x, const float *dy,
                                        float *dk);
void TP__FN_REST(max_pool)(const tp__pooling *v);
void TP__FN_REST(avg_pool)(const tp__pooling *v);
void TP__FN_REST(max_pool_grad)(const tp__pooling *v, const float *dy, float *dx);
void TP__FN_REST(avg_pool_grad)(const tp__pooling *v, const float *dy, float *dx);
void TP__FN_REST(norm)(const tp__norm *v);
void TP__FN_REST(act)(tp__act act, long count, const float *x, float *y);
void TP__FN_REST(act_grad)(tp__act act, long count, const float *dy, const float *x, float *dx);
void TP__FN_REST(add)(long count, const float *a, const float *b, float *y);
void TP__FN_REST(scale_channels)(long pixels, long c, const float *x, const float *scale, float *y);
void TP__FN_REST(affine_channels)(long pixels, long c, const float *x, const float *scale,
                                  const float *shift, float *y);
void TP__FN_REST(sum_pixels)(long pixels, long c, const float *x, float factor, float *sums);
void TP__FN_REST(sum_products)(long pixels, long c, const float *x, const float *dy, float *sums);
void TP__FN_REST(moments)(long pixels, long c, const float *x, long x_pitch, float *mean,
                          float *squares);
void TP__FN_REST(norm_act_grad)(tp__act act, long pixels, long c, const float *dy, const float *x,
                                long x_pitch, const float *scale, const float *shift, float *dx);
void TP__FN_REST(norm_grad)(long pixels, long c, const float *dy, const float *x, long x_pitch,
                            const float *scale, const float *mean, const float *slope,
                            const float *shift, float *dx);
void TP__FN_REST(norm_sums)(long pixels, long c, const float *dy, const float *x, long x_pitch,
                            const float *mean, const float *scale, float *sums, float *products);
void TP__FN_REST(adam)(long count, float *p, float *m, float *v, const float *g,
                       float rate_corrected, float beta1, float beta2, float epsilon, float decay);
double TP__FN(peak)(double seconds);

#endif
