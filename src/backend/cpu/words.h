/* words - what the products multiply. A word of 32 bits is a float; in a set whose products take
 * bfloat16 (TP__PAIRS) it is two such numbers that follow each other in k, so that one source of
 * tiles serves both: a vector of words of B times a word of A.
 *
 * A pair's first number lies in the high half: the instruction (VDPBF16PS) adds the high halves'
 * product, then the low halves', each as a fused multiply-add rounded to nearest even, denormal
 * numbers taken and given as zero. So a sum is one chain in the order of k here too, and a pair
 * filled up with zeros adds nothing: how rows are grouped changes no bit.
 */
#ifndef TP_WORDS_H
#define TP_WORDS_H

#include "backend/cpu/family.h"
#include "backend/cpu/vec.h"

#ifdef TP__PAIRS
enum { TP__IN_WORD = 2 };
#else
enum { TP__IN_WORD = 1 };
#endif

/* Words of n numbers. */
static inline long tp__words(long n)
{
  return (n + TP__IN_WORD - 1) / TP__IN_WORD;
}

#ifdef TP__PAIRS

/* clang-format off */
TP__INLINE tp__vec tp__all_words(const float *word)
{
  int32_t bits;
  memcpy(&bits, word, sizeof bits);
  return (tp__vec)_mm512_set1_epi32(bits);
}
TP__INLINE tp__vec tp__multiply(tp__vec a, tp__vec b, tp__vec sum)
{
  return (tp__vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}
/* clang-format on */

/* To nearest, ties to even, as the machine does; NaN stays NaN. */
static inline uint32_t tp__half_word(float x)
{
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (x != x) return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* The word of the first of `left` numbers, `step` floats apart. */
static inline float tp__word(const float *x, long step, long left)
{
  uint32_t bits = tp__half_word(x[0]) << 16 | (left > 1 ? tp__half_word(x[step]) : 0);
  float word;
  memcpy(&word, &bits, sizeof word);
  return word;
}

/* n <= 2 TP__V numbers as words, each multiplied by its factor before (NULL: 1). */
TP__INLINE void tp__store_words(float *to, const float *from, const float *factor, long n)
{
  const uint32_t there = n < 32 ? (UINT32_C(1) << n) - 1 : UINT32_MAX;
  const __mmask16 low = (__mmask16)there, high = (__mmask16)(there >> 16);
  __m512 a = _mm512_maskz_loadu_ps(low, from), b = _mm512_maskz_loadu_ps(high, from + TP__V);
  if (factor != NULL) {
    a = _mm512_mul_ps(a, _mm512_maskz_loadu_ps(low, factor));
    b = _mm512_mul_ps(b, _mm512_maskz_loadu_ps(high, factor + TP__V));
  }
  const __m512i words = _mm512_rol_epi32((__m512i)_mm512_cvtne2ps_pbh(b, a), 16);
  _mm512_mask_storeu_epi32(to, (__mmask16)((UINT32_C(1) << tp__words(n)) - 1), words);
}

static inline void tp__copy_words(float *to, const float *from, const float *factor, long n)
{
  enum { PAIRS = 2 * TP__V };
  for (; n >= PAIRS; n -= PAIRS, from += PAIRS, to += TP__V) {
    tp__store_words(to, from, factor, PAIRS);
    if (factor != NULL) factor += PAIRS;
  }
  if (n > 0) tp__store_words(to, from, factor, n);
}

/* Two rows of n numbers (below may be NULL: zeros) as the words of their columns. */
static inline void tp__zip_words(float *to, const float *above, const float *below, long n)
{
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  for (long i = 0; i < n; i += TP__V) {
    const __mmask16 there = (__mmask16)(n - i < TP__V ? (1 << (n - i)) - 1 : 0xffff);
    const __m512 a = _mm512_maskz_loadu_ps(there, above + i),
                 b = below != NULL ? _mm512_maskz_loadu_ps(there, below + i) : _mm512_setzero_ps();
    const __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(a, b); /* of b, then of a */
    _mm512_mask_storeu_epi32(to + i, there, _mm512_permutexvar_epi16(order, halves));
  }
}

#else

/* clang-format off */
TP__INLINE tp__vec tp__all_words(const float *word) { return tp__all(*word); }
TP__INLINE tp__vec tp__multiply(tp__vec a, tp__vec b, tp__vec sum) { return tp__fma(a, b, sum); }
/* clang-format on */

static inline float tp__word(const float *x, long step, long left)
{
  (void)step;
  (void)left;
  return *x;
}

static inline void tp__copy_words(float *to, const float *from, const float *factor, long n)
{
  (void)factor;
  memcpy(to, from, (size_t)n * sizeof(float));
}

#endif

#endif
