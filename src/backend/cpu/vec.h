/* vec - a vector of TP__VECTOR floats in plain C (GCC and Clang vector types): one source for
 * every instruction set.
 *
 * The build compiles the kernel sources once per instruction set with TP__VECTOR = 4 (baseline:
 * SSE2, NEON), 8 (AVX2+FMA) or 16 (AVX-512). What rounds once and what rounds twice is written,
 * never left to the compiler:
 *
 *   tp__fma(a, b, c)   a * b + c, rounded once where the machine has a fused multiply-add
 *   a * b + c          always rounded twice: these sources are compiled with -ffp-contract=off
 *
 * So AVX2 and AVX-512, gcc and clang give the same bits. -ffast-math would delete the rounding
 * trick in tp__exp_neg_plus1 (swish wrong by 41 %, measured): it is refused.
 *
 * TP__EACH(i, n) is a loop over 0...n-1 that is unrolled. It goes on every loop over a tile,
 * initialisation and stores included, with a literal n: only then do both compilers keep the tile
 * in registers (gcc otherwise: 690 moves to the stack in one kernel).
 */
#ifndef TP_VEC_H
#define TP_VEC_H

#ifdef __FAST_MATH__
#error "-ffast-math breaks the rounding of the exponential: compile the kernels without it"
#endif

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define TP__INLINE   static inline __attribute__((always_inline))
#define TP__NOINLINE __attribute__((noinline))
#if defined(__clang__)
#define TP__EACH(i, n) _Pragma("unroll") for (int i = 0; i < (n); i++)
#else
#define TP__EACH(i, n) _Pragma("GCC unroll 64") for (int i = 0; i < (n); i++)
#endif

enum { TP__V = TP__VECTOR };
typedef float tp__vec __attribute__((vector_size(TP__VECTOR * 4)));
typedef float tp__vec_any __attribute__((vector_size(TP__VECTOR * 4), aligned(4), may_alias));
typedef int32_t tp__ivec __attribute__((vector_size(TP__VECTOR * 4)));

/* ---- loads and stores; memory needs 4-byte alignment only ---- */

/* clang-format off */
TP__INLINE tp__vec tp__load(const float *p) { return *(const tp__vec_any *)p; }
TP__INLINE void tp__store(float *p, tp__vec v) { *(tp__vec_any *)p = v; }
TP__INLINE tp__vec tp__all(float a) { return a - (tp__vec){0}; }
TP__INLINE tp__vec tp__zero(void) { return (tp__vec){0}; }
/* clang-format on */

/* v, in a register from here on. gcc makes a load that several multiply-adds share an operand of
 * each of them; clang does not, and would keep too many at a time. */
TP__INLINE tp__vec tp__keep(tp__vec v)
{
#if defined(__clang__)
  /* as it is */
#elif TP__VECTOR == 16
  __asm__("" : "+v"(v));
#elif defined(__SSE2__)
  __asm__("" : "+x"(v));
#elif defined(__aarch64__)
  __asm__("" : "+w"(v));
#endif
  return v;
}

/* The first n < TP__V floats; the others are zero, and are neither read nor written. */
TP__INLINE tp__vec tp__load_part(const float *p, long n)
{
  float whole[TP__V] = {0};
  memcpy(whole, p, (size_t)n * sizeof(float));
  return tp__load(whole);
}
TP__INLINE void tp__store_part(float *p, tp__vec v, long n)
{
  float whole[TP__V];
  tp__store(whole, v);
  memcpy(p, whole, (size_t)n * sizeof(float));
}
/* Whole vectors where there are n >= TP__V floats left. */
TP__INLINE tp__vec tp__load_upto(const float *p, long n)
{
  return n >= TP__V ? tp__load(p) : tp__load_part(p, n);
}
TP__INLINE void tp__store_upto(float *p, tp__vec v, long n)
{
  if (n >= TP__V)
    tp__store(p, v);
  else
    tp__store_part(p, v, n);
}

/* ---- arithmetic that the vector types do not have. max and min give b if a or b is NaN ---- */

#if TP__VECTOR > 4 || defined(__aarch64__)
#define TP__FUSED 1
#else
#define TP__FUSED 0
#endif

/* clang-format off */
#if TP__VECTOR == 16
TP__INLINE tp__vec tp__fma(tp__vec a, tp__vec b, tp__vec c) { return _mm512_fmadd_ps(a, b, c); }
TP__INLINE tp__vec tp__max(tp__vec a, tp__vec b) { return _mm512_max_ps(a, b); }
TP__INLINE tp__vec tp__min(tp__vec a, tp__vec b) { return _mm512_min_ps(a, b); }
TP__INLINE tp__vec tp__sqrt(tp__vec a) { return _mm512_sqrt_ps(a); }
#elif TP__VECTOR == 8
TP__INLINE tp__vec tp__fma(tp__vec a, tp__vec b, tp__vec c) { return _mm256_fmadd_ps(a, b, c); }
TP__INLINE tp__vec tp__max(tp__vec a, tp__vec b) { return _mm256_max_ps(a, b); }
TP__INLINE tp__vec tp__min(tp__vec a, tp__vec b) { return _mm256_min_ps(a, b); }
TP__INLINE tp__vec tp__sqrt(tp__vec a) { return _mm256_sqrt_ps(a); }
#elif defined(__SSE2__)
TP__INLINE tp__vec tp__fma(tp__vec a, tp__vec b, tp__vec c) { return a * b + c; }
TP__INLINE tp__vec tp__max(tp__vec a, tp__vec b) { return _mm_max_ps(a, b); }
TP__INLINE tp__vec tp__min(tp__vec a, tp__vec b) { return _mm_min_ps(a, b); }
TP__INLINE tp__vec tp__sqrt(tp__vec a) { return _mm_sqrt_ps(a); }
#else
TP__INLINE tp__vec tp__max(tp__vec a, tp__vec b)
{
  tp__ivec take = a > b;
  return (tp__vec)(((tp__ivec)a & take) | ((tp__ivec)b & ~take));
}
TP__INLINE tp__vec tp__min(tp__vec a, tp__vec b)
{
  tp__ivec take = a < b;
  return (tp__vec)(((tp__ivec)a & take) | ((tp__ivec)b & ~take));
}
#if defined(__aarch64__)
TP__INLINE tp__vec tp__fma(tp__vec a, tp__vec b, tp__vec c) { return vfmaq_f32(c, a, b); }
TP__INLINE tp__vec tp__sqrt(tp__vec a) { return vsqrtq_f32(a); }
#else
TP__INLINE tp__vec tp__fma(tp__vec a, tp__vec b, tp__vec c) { return a * b + c; }
TP__INLINE tp__vec tp__sqrt(tp__vec a)
{
  for (int i = 0; i < TP__V; i++) a[i] = sqrtf(a[i]);
  return a;
}
#endif
#endif
/* clang-format on */

/* ---- activations ---- */

/* 1 + exp(-x), with |x| held to 87 so that it stays a normal number; NaN stays NaN.
 * exp(-x) = 2^n 2^f with n + f = -x log2(e), |f| <= 1/2: n by rounding near 1.5 * 2^23, 2^f by a
 * polynomial of degree 5 with the least relative error (9.2e-8, constant term held to 1). Error of
 * the whole: 1.3e-6 at |x| = 87, 4e-7 above x = -20. */
TP__INLINE tp__vec tp__exp_neg_plus1(tp__vec x)
{
  /* 1.5 * 2^23 + 127: the low bits of a sum with it are the biased exponent */
  const tp__vec shift = tp__all(12583039.0f);
  x = tp__min(tp__all(87.0f), tp__max(tp__all(-87.0f), x));
  tp__vec shifted = tp__fma(x, tp__all(-1.44269504f), shift), n = shifted - shift;
#if TP__FUSED
  tp__vec f = tp__fma(x, tp__all(-1.44269504f), -n);
#else
  /* x log2(e) would lose the bits behind the point: ln 2 in two parts, n times the first exact */
  const tp__vec ln2_high = tp__all(0.693359375f), ln2_low = tp__all(-2.12194440e-4f);
  tp__vec f = ((x + n * ln2_high) + n * ln2_low) * tp__all(-1.44269504f);
#endif
  tp__vec p = tp__fma(f, tp__all(1.326472731e-3f), tp__all(9.671512991e-3f));
  p = tp__fma(p, f, tp__all(5.550733581e-2f));
  p = tp__fma(p, f, tp__all(2.402224243e-1f));
  p = tp__fma(p, f, tp__all(6.931470037e-1f));
  p = tp__fma(p, f, tp__all(1.0f));
  return tp__fma(p, (tp__vec)((tp__ivec)shifted << 23), tp__all(1.0f));
}
/* clang-format off */
TP__INLINE tp__vec tp__swish(tp__vec x) { return x / tp__exp_neg_plus1(x); }
TP__INLINE tp__vec tp__sigmoid(tp__vec x) { return tp__all(1.0f) / tp__exp_neg_plus1(x); }
TP__INLINE tp__vec tp__relu(tp__vec x) { return tp__max(tp__zero(), x); }
TP__INLINE tp__vec tp__relu6(tp__vec x) { return tp__min(tp__all(6.0f), tp__relu(x)); }

TP__INLINE tp__vec tp__same(tp__vec x) { return x; }
/* clang-format on */

/* Expands DO(f) for the f of the activation that `act` says: chosen once for a tile, outside its
 * loops. */
/* clang-format off */
#define TP__FOR_ACT(act, DO)                                                                       \
  switch (act) {                                                                                   \
  case TP__ACT_NONE: { DO(tp__same); } break;                                                      \
  case TP__ACT_SWISH: { DO(tp__swish); } break;                                                    \
  case TP__ACT_RELU: { DO(tp__relu); } break;                                                      \
  case TP__ACT_RELU6: { DO(tp__relu6); } break;                                                    \
  case TP__ACT_SIGMOID: { DO(tp__sigmoid); } break;                                                \
  }
/* clang-format on */

/* ---- gradients of the activations: dy f'(x) ---- */

TP__INLINE tp__vec tp__keep_where(tp__ivec mask, tp__vec v)
{
  return (tp__vec)((tp__ivec)v & mask);
}

TP__INLINE tp__vec tp__grad_none(tp__vec dy, tp__vec x)
{
  (void)x;
  return dy;
}
TP__INLINE tp__vec tp__grad_swish(tp__vec dy, tp__vec x)
{
  tp__vec s = tp__sigmoid(x);
  return dy * (s * tp__fma(x, tp__all(1.0f) - s, tp__all(1.0f)));
}
TP__INLINE tp__vec tp__grad_relu(tp__vec dy, tp__vec x)
{
  return tp__keep_where(x > tp__zero(), dy);
}
TP__INLINE tp__vec tp__grad_relu6(tp__vec dy, tp__vec x)
{
  return tp__keep_where((x > tp__zero()) & (x < tp__all(6.0f)), dy);
}
TP__INLINE tp__vec tp__grad_sigmoid(tp__vec dy, tp__vec x)
{
  tp__vec s = tp__sigmoid(x);
  return dy * (s * (tp__all(1.0f) - s));
}

/* clang-format off */
#define TP__FOR_ACT_GRAD(act, DO)                                                                  \
  switch (act) {                                                                                   \
  case TP__ACT_NONE: { DO(tp__grad_none); } break;                                                 \
  case TP__ACT_SWISH: { DO(tp__grad_swish); } break;                                               \
  case TP__ACT_RELU: { DO(tp__grad_relu); } break;                                                 \
  case TP__ACT_RELU6: { DO(tp__grad_relu6); } break;                                               \
  case TP__ACT_SIGMOID: { DO(tp__grad_sigmoid); } break;                                           \
  }
/* clang-format on */

#endif
