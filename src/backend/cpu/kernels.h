/* kernels - the fast loops of the CPU, one C source per family, compiled once per instruction set
 * (DESIGN D3).
 *
 *   kernels_baseline / _avx2 / _avx512: a table of the same functions; the executor picks one table
 * when it starts. kernels_avx512bf16: that of avx512, but matrix products, convolutions and their
 * gradients (not winograd) round what they multiply to bfloat16 (to nearest, ties to even);
 * products are exact and sums float32, chains as below
 *
 * Layout: an activation of one example is [H,W,C] with a channel pitch: pixel p, channel c at p *
 * pitch + c, pitch = C rounded up to TP__LANES. Kernels may write anything into the padding
 * channels of what they produce, and never let padding channels of their input reach a result.
 * Every output is one chain of fused multiply-adds in the order of k (ky, kx, c), starting from the
 * bias (winograd: a fixed sequence of them); divisions are IEEE: so AVX2 and AVX-512, gcc and clang
 * give the same bits, however rows are grouped. (The baseline has no fused multiply-add and differs
 * in the last bits.) Never compiled with -ffast-math.
 *
 * Weights are packed by the table's own pack functions, once while they are frozen, at each step
 * while they train. All pointers 64-byte aligned unless said otherwise. None of these functions
 * allocates or fails.
 */
#ifndef TP_KERNELS_H
#define TP_KERNELS_H

#include "graph/graph.h"

enum { TP__LANES = 16 };
static inline long tp__pitch(long channels)
{
  return (channels + TP__LANES - 1) / TP__LANES * TP__LANES;
}

/* C[i] = act(bias + A[i][0..K) B) + residual[i], or act(bias + A[i][0..K) B + residual[i]); rows of
 * A at lda, of C and residual at ldc floats. */
typedef struct tp__gemm {
  long m, n, k;
  const float *a; /* [m, lda], 4-byte alignment suffices */
  long lda;
  const float *packed; /* from pack_gemm(k, n) */
  const float *bias;   /* [pitch(n)], zero-padded; NULL: zeros */
  float *c;            /* [m, ldc], ldc >= pitch(n) */
  long ldc;
  const float *residual; /* as c, or NULL; added after the activation */
  tp__act act;
  bool act_last; /* ... before it */
  /* Tables without scale_packed only: numbers [k] that multiply row i of A, those at i / scale_rows
   * * scale_pitch; NULL: none. */
  const float *scale;
  long scale_rows, scale_pitch;
} tp__gemm;

/* A general k x k convolution of some examples, without im2col. */
typedef struct tp__conv {
  int images; /* x_row, y_row floats apart; 0: one */
  long x_row, y_row;
  int h, w, c, oh, ow, n, kh, kw, stride, pad_top, pad_left;
  const float *x; /* [h,w] at x_pitch floats a pixel (the first layer: 3) */
  long x_pitch;
  const float *packed; /* from pack_conv */
  const float *bias;   /* [pitch(n)] or NULL */
  float *y;            /* [oh,ow] at y_pitch >= pitch(n) */
  long y_pitch;
  const float *residual; /* as y, or NULL */
  tp__act act;
  bool act_last;  /* as in tp__gemm */
  int tile;       /* winograd: outputs along the side of a tile, 2 or 4; else not used */
  float *scratch; /* conv_scratch() or winograd_scratch() floats, this thread's */
} tp__conv;

typedef struct tp__depthwise {
  int h, w, c, oh, ow, k, stride, pad_top, pad_left;
  const float *x;      /* [h,w] at pitch(c) */
  const float *packed; /* from pack_depthwise: [k,k,pitch(c)] */
  const float *bias;   /* [pitch(c)] or NULL */
  float *y;            /* [oh,ow] at pitch(c) */
  tp__act act;
  float *sums; /* NULL, or [pitch(c)]: receives the sum over the pixels of y (for squeeze-excite) */
  float *scratch; /* depthwise_scratch() floats, this thread's */
} tp__depthwise;

/* Pooling of one example. Zeros around the image take part. */
typedef struct tp__pooling {
  int h, w, c, oh, ow, window, stride, pad_top, pad_left;
  const float *x; /* [h,w] at x_pitch */
  long x_pitch;
  float *y; /* [oh,ow] at y_pitch */
  long y_pitch;
} tp__pooling;

/* y = act(x * scale[c] + shift[c]): batch norm before a convolution, in one pass. */
typedef struct tp__norm {
  long pixels, c;
  const float *x;
  long x_pitch;
  const float *scale, *shift; /* [c] */
  float *y;
  long y_pitch;
  tp__act act;
} tp__norm;

typedef struct tp__kernels {
  const char *name; /* "baseline", "avx2", "avx512", "avx512bf16" */
  int vector;       /* floats in a vector */
  bool bf16;        /* products take bfloat16 */

  /* ---- matrix products ---- */
  size_t (*packed_gemm)(long k, long n); /* floats */
  /* B[k][n] at b[k * row + n * column]: any of the two may be 1, so that a transposed kernel packs
   * as well. scale (may be NULL): [k], multiplies row k (squeeze-excite folded into the
   * projection's weights). */
  void (*pack_gemm)(const float *b, long row, long column, long k, long n, float *packed);
  /* The same with rows scaled, from an already packed B (K*N multiplications, no reordering). NULL
   * where A is copied anyway: there tp__gemm has the scale. */
  void (*scale_packed)(const float *packed, const float *scale, long k, long n, float *scaled);
  void (*gemm)(const tp__gemm *g);
  /* dB[k][n] += sum_i A[i][k] dC[i][n]: rows of A at lda, of dC at ldc; dB dense [k,n] (row pitch
   * n), in order of i. */
  void (*gemm_kernel_grad)(long m, long k, long n, const float *a, long lda, const float *dc,
                           long ldc, float *db);

  /* ---- convolutions ---- */
  size_t (*packed_conv)(int kh, int kw, int c, int n);
  void (*pack_conv)(const float *kernel /* [kh,kw,c,n] */, int kh, int kw, int c, int n,
                    float *packed);
  size_t (*conv_scratch)(const tp__conv *v);
  void (*conv)(const tp__conv *v);
  /* Gradients of the convolution. v: the forward geometry, scratch as forward; its other pointers
   * are not used, but for packed, here from pack_conv_transposed and packed_conv(kh, kw, n, c)
   * floats large. dx at x_pitch = pitch(c) and dy at y_pitch >= pitch(n), x_row and y_row for each
   * example. The scratch of conv_kernel_grad serves both. */
  void (*pack_conv_transposed)(const float *kernel /* [kh,kw,c,n] */, int kh, int kw, int c, int n,
                               float *packed);
  size_t (*conv_grad_scratch)(const tp__conv *v);
  void (*conv_input_grad)(const tp__conv *v, const float *dy, float *dx);
  void (*conv_kernel_grad)(const tp__conv *v, const float *x, const float *dy,
                           float *dk /* [kh,kw,c,n] +=, in order of examples and pixels */);
  /* The same for kernels of 3 x 3 and stride 1 by fewer multiplications (kernels_winograd.c), with
   * rounding of its own; x_pitch in whole vectors. transposed: for the gradient of the input, a
   * convolution of dy (n channels) -> dx (c) with padding 2 - pad_top, 2 - pad_left. */
  size_t (*packed_winograd)(int tile, int c, int n);
  void (*pack_winograd)(const float *kernel /* [3,3,c,n] */, int tile, int c, int n,
                        bool transposed, float *packed);
  size_t (*winograd_scratch)(const tp__conv *v); /* grows with images */
  void (*winograd)(const tp__conv *v);
  size_t (*packed_depthwise)(int k, int c);
  void (*pack_depthwise)(const float *kernel /* [k,k,c,1] */, int k, int c, float *packed);
  size_t (*depthwise_scratch)(const tp__depthwise *v);
  void (*depthwise)(const tp__depthwise *v);

  /* ---- gradients of the depthwise convolution. v: the forward geometry; x and y fields are not
   * used ---- */
  void (*depthwise_input_grad)(const tp__depthwise *v, const float *dy, float *dx);
  void (*depthwise_kernel_grad)(const tp__depthwise *v, const float *x, const float *dy,
                                float *dk /* [k,k,c] += */);

  /* ---- pooling. The gradients write dx whole: at pitch(c), dy as well; v: the forward geometry,
   * its y fields are not used. Equal pixels: the first has the gradient. ---- */
  void (*max_pool)(const tp__pooling *v);
  void (*avg_pool)(const tp__pooling *v);
  void (*max_pool_grad)(const tp__pooling *v, const float *dy, float *dx);
  void (*avg_pool_grad)(const tp__pooling *v, const float *dy, float *dx); /* v->x is not used */

  /* ---- element by element, over count floats (any count) or pixels x pitch ---- */
  void (*act)(tp__act act, long count, const float *x, float *y); /* y may be x */
  void (*act_grad)(tp__act act, long count, const float *dy, const float *x,
                   float *dx); /* x before the activation */
  void (*add)(long count, const float *a, const float *b, float *y);
  void (*scale_channels)(long pixels, long c, const float *x, const float *scale,
                         float *y); /* y = x * scale[c] */
  void (*affine_channels)(long pixels, long c, const float *x, const float *scale,
                          const float *shift, float *y); /* x*scale + shift */
  void (*norm)(const tp__norm *v);
  void (*sum_pixels)(long pixels, long c, const float *x, float factor,
                     float *sums); /* sums[c] = factor * sum x */
  void (*sum_products)(long pixels, long c, const float *x, const float *dy,
                       float *sums); /* sums[c] += sum x * dy */
  /* Mean and sum of squared deviations from it, over the pixels of one example, in one pass. x at
   * x_pitch, here and below; dy and dx at pitch(c). */
  void (*moments)(long pixels, long c, const float *x, long x_pitch, float *mean, float *squares);
  /* dx = dy act'(x * scale + shift): the gradient of norm, but for the factor scale. */
  void (*norm_act_grad)(tp__act act, long pixels, long c, const float *dy, const float *x,
                        long x_pitch, const float *scale, const float *shift, float *dx);
  /* dx = dy * scale + ((x - mean) * slope + shift): batch norm through its statistics. */
  void (*norm_grad)(long pixels, long c, const float *dy, const float *x, long x_pitch,
                    const float *scale, const float *mean, const float *slope, const float *shift,
                    float *dx);
  /* sums[c] = sum dy, products[c] = scale * sum dy * (x - mean): the gradients of beta and gamma.
   */
  void (*norm_sums)(long pixels, long c, const float *dy, const float *x, long x_pitch,
                    const float *mean, const float *scale, float *sums, float *products);
  /* Optimizers over whole parameters. */
  void (*adam)(long count, float *p, float *m, float *v, const float *g, float rate_corrected,
               float beta1, float beta2, float epsilon, float decay); /* p - p decay before */
  double (*peak)(double seconds); /* GFLOP/s of this thread: the products' multiply-adds, none
                                     waiting for another */
} tp__kernels;

/* The same functions with products of bfloat16, where the processor has them; else NULL. */
const tp__kernels *tp__kernels_bf16(const tp__kernels *kernels);

/* The best table for this processor, capped by name ("baseline", "avx2", "avx512", NULL: no cap).
 * Errors: TP_ERR_DEVICE. */
tp_status tp__kernels_choose(const char *cap, const tp__kernels **kernels,
                             tp_error *err) TP_CHECKED;

#endif
