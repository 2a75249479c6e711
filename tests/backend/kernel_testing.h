/* kernel_testing - what the kernel tests share: the tables this machine can run, inputs whose
 * padding channels are NaN, and comparison with plain loops.
 *
 * Expected numbers: a sum of products in double, with the sum of the products' magnitudes as the
 * measure of rounding; and the chain of single-precision multiply-adds in the order that kernels.h
 * promises, which must agree in every bit.
 */
#ifndef TP_KERNEL_TESTING_H
#define TP_KERNEL_TESTING_H

#include "../testing.h"

#include <math.h>

#include "backend/cpu/kernels.h"
#include "base/rng.h"

enum { TABLES_MAX = 4 };
typedef struct tables {
  const tp__kernels *table[TABLES_MAX];
  int count;
} tables;

/* Those of baseline, avx2, avx512 and its products of bfloat16 that run here; baseline always does.
 */
static inline tables usable_tables(void)
{
  static const char *const names[] = {"baseline", "avx2", "avx512"};
  tables t = {.count = 0};
  tp_error err;
  for (int i = 0; i < 3; i++)
    if (tp__kernels_choose(names[i], &t.table[t.count], &err) == TP_OK) t.count++;
  assert_true(t.count >= 1);
  t.table[t.count] = tp__kernels_bf16(t.table[t.count - 1]);
  if (t.table[t.count] != NULL) t.count++;
  return t;
}

static inline bool is_fused(const tp__kernels *k)
{
#if defined(__aarch64__)
  (void)k;
  return true;
#else
  return k->vector > 4;
#endif
}

/* Random numbers in (-1, 1), a function of (stream, index). */
static inline float random_at(uint32_t stream, size_t index)
{
  return 2 * tp__uniform((tp__key){{stream, 7}}, 100, (uint32_t)index) - 1;
}

static inline float *floats(size_t count)
{
  float *p = tp__calloc_aligned(count, sizeof(float), NULL);
  assert_non_null(p);
  return p;
}

/* count floats of the stream. */
static inline float *random_floats(uint32_t stream, size_t count)
{
  float *p = floats(count);
  for (size_t i = 0; i < count; i++) p[i] = random_at(stream, i);
  return p;
}

/* rows at `pitch` floats with `columns` random ones each; the others are NaN, or zero. */
static inline float *random_rows(uint32_t stream, long rows, long columns, long pitch,
                                 float padding)
{
  float *p = floats((size_t)(rows * pitch));
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < pitch; j++)
      p[i * pitch + j] = j < columns ? random_at(stream, (size_t)(i * columns + j)) : padding;
  return p;
}

static inline double act_of(tp__act act, double x)
{
  switch (act) {
  case TP__ACT_NONE:
    return x;
  case TP__ACT_SWISH:
    return x / (1 + exp(-x));
  case TP__ACT_RELU:
    return x > 0 ? x : 0;
  case TP__ACT_RELU6:
    return x > 6 ? 6 : x > 0 ? x : 0;
  case TP__ACT_SIGMOID:
    return 1 / (1 + exp(-x));
  }
  return NAN;
}

static inline double act_grad_of(tp__act act, double x)
{
  double s = 1 / (1 + exp(-x));
  switch (act) {
  case TP__ACT_NONE:
    return 1;
  case TP__ACT_SWISH:
    return s * (1 + x * (1 - s));
  case TP__ACT_RELU:
    return x > 0;
  case TP__ACT_RELU6:
    return x > 0 && x < 6;
  case TP__ACT_SIGMOID:
    return s * (1 - s);
  }
  return NAN;
}

/* The nearest bfloat16 number; ties to the one whose last bit is 0. x: finite. */
static inline float bf16_of(float x)
{
  if (x == 0) return x;
  int exponent;
  (void)frexpf(x, &exponent);
  return ldexpf(rintf(ldexpf(x, 8 - exponent)), exponent - 8);
}

/* One output as it is being summed. */
typedef struct chain {
  bool fused, bf16; /* factors are rounded to bfloat16 before */
  float rounded;    /* in single precision, in order */
  double sum, size; /* exact enough; magnitudes */
} chain;

static inline chain chain_from(bool fused, float start)
{
  return (chain){.fused = fused, .rounded = start, .sum = start, .size = fabs(start)};
}
/* ... by the products of a table. */
static inline chain chain_of(const tp__kernels *k, float start)
{
  chain c = chain_from(is_fused(k), start);
  c.bf16 = k->bf16;
  return c;
}
static inline void chain_add(chain *c, float a, float b)
{
  if (c->bf16) a = bf16_of(a), b = bf16_of(b);
  c->rounded = c->fused ? fmaf(a, b, c->rounded) : a * b + c->rounded;
  c->sum += (double)a * b;
  c->size += fabs((double)a * b);
}

/* Checks act(chain) + residual, or act(chain + residual); without activation also the bits. */
static inline void assert_chain_last(const chain *c, tp__act act, bool act_last,
                                     const float *residual, float got, const char *what, long row,
                                     long column)
{
  double more = residual != NULL ? *residual : 0;
  double want = act_last ? act_of(act, c->sum + more) : act_of(act, c->sum) + more;
  double slack = 1e-6 * c->size + 2e-6 * fabs(want) + 1e-30;
  if (!(fabs(got - want) <= slack))
    fail_msg("%s: row %ld column %ld: got %.9g, wanted %.9g", what, row, column, (double)got, want);
  if (act != TP__ACT_NONE) return;
  float exact = residual != NULL ? c->rounded + *residual : c->rounded;
  if (got != exact)
    fail_msg("%s: row %ld column %ld: got %a, the chain gives %a", what, row, column, (double)got,
             (double)exact);
}

static inline void assert_chain(const chain *c, tp__act act, const float *residual, float got,
                                const char *what, long row, long column)
{
  assert_chain_last(c, act, false, residual, got, what, row, column);
}

/* The results of the AVX2 and AVX-512 tables must agree in every bit; call for each table in turn.
 * Products of bfloat16 have bits of their own. */
typedef struct same_bits {
  float *first;
} same_bits;

static inline void assert_same_bits(same_bits *s, const tp__kernels *k, const float *values,
                                    long rows, long columns, long pitch, const char *what)
{
  if (!is_fused(k) || k->bf16) return;
  size_t row = (size_t)columns * sizeof(float);
  if (s->first == NULL) {
    s->first = floats((size_t)(rows * columns));
    for (long i = 0; i < rows; i++) memcpy(s->first + i * columns, values + i * pitch, row);
    return;
  }
  for (long i = 0; i < rows; i++)
    if (memcmp(s->first + i * columns, values + i * pitch, row) != 0)
      fail_msg("%s: row %ld of %s differs from the other instruction set", what, i, k->name);
}
static inline void same_bits_end(same_bits *s)
{
  free(s->first);
  s->first = NULL;
}

#endif
