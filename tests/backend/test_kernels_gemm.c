/* Proves that matrix products and their kernel gradients equal plain loops for every shape of tile
 * and rest, for every instruction set, in every bit of the promised chain; that rows may be grouped
 * in any way; and that padding (NaN here) reaches no result. Expected numbers: see
 * kernel_testing.h.
 */
#include "kernel_testing.h"

typedef struct product_case {
  long m, n, k;
  bool bias, residual;
  tp__act act;
} product_case;

static void check_rows(const tp__kernels *k, const product_case *s, const tp__gemm *g,
                       const float *b, const char *what)
{
  for (long i = 0; i < s->m; i++)
    for (long j = 0; j < s->n; j++) {
      chain c = chain_of(k, s->bias ? g->bias[j] : 0);
      for (long q = 0; q < s->k; q++) chain_add(&c, g->a[i * g->lda + q], b[q * s->n + j]);
      assert_chain(&c, s->act, s->residual ? g->residual + i * g->ldc + j : NULL,
                   g->c[i * g->ldc + j], what, i, j);
    }
}

static void check_product(const tables *t, const product_case *s)
{
  char what[100];
  const long lda = s->k + 3, ldc = tp__pitch(s->n) + 16;
  float *a = random_rows(1, s->m, s->k, lda, NAN), *b = random_floats(2, (size_t)(s->k * s->n));
  float *bias = random_rows(3, 1, s->n, tp__pitch(s->n), 0);
  float *residual = random_rows(4, s->m, s->n, ldc, NAN);
  same_bits same = {NULL};
  for (int i = 0; i < t->count; i++) {
    const tp__kernels *k = t->table[i];
    snprintf(what, sizeof what, "gemm %s %ldx%ldx%ld act %d", k->name, s->m, s->n, s->k,
             (int)s->act);
    float *packed = floats(k->packed_gemm(s->k, s->n)), *c = floats((size_t)(s->m * ldc));
    k->pack_gemm(b, s->n, 1, s->k, s->n, packed);
    tp__gemm g = {.m = s->m,
                  .n = s->n,
                  .k = s->k,
                  .a = a,
                  .lda = lda,
                  .packed = packed,
                  .bias = s->bias ? bias : NULL,
                  .c = c,
                  .ldc = ldc,
                  .residual = s->residual ? residual : NULL,
                  .act = s->act};
    k->gemm(&g);
    check_rows(k, s, &g, b, what);
    assert_same_bits(&same, k, c, s->m, s->n, ldc, what);

    float *one = floats((size_t)ldc); /* the last row alone gives the same bits as in its group */
    tp__gemm last = g;
    last.m = 1;
    last.a += (s->m - 1) * lda;
    if (s->residual) last.residual += (s->m - 1) * ldc;
    last.c = one;
    k->gemm(&last);
    assert_memory_equal(one, c + (s->m - 1) * ldc, (size_t)s->n * sizeof(float));
    free(one);
    free(packed);
    free(c);
  }
  same_bits_end(&same);
  free(a);
  free(b);
  free(bias);
  free(residual);
}

static void products(void **state)
{
  (void)state;
  const tables t = usable_tables();
  static const long ms[] = {1, 2, 3, 7, 8, 9, 13, 24, 25, 36, 47};
  static const long ns[] = {1, 4, 7, 8, 16, 17, 24, 33, 48, 50, 64, 80, 104};
  static const long ks[] = {1, 3, 16, 27};
  long number = 0;
  for (size_t m = 0; m < sizeof ms / sizeof ms[0]; m++)
    for (size_t n = 0; n < sizeof ns / sizeof ns[0]; n++)
      for (size_t k = 0; k < sizeof ks / sizeof ks[0]; k++, number++) {
        product_case s = {.m = ms[m],
                          .n = ns[n],
                          .k = ks[k],
                          .bias = number % 3 != 0,
                          .residual = number / 3 % 2 != 0,
                          .act = (tp__act)(number % 5)};
        check_product(&t, &s);
      }
  check_product(&t,
                &(product_case){.m = 1000, .n = 20, .k = 300, .bias = true}); /* several blocks */
  check_product(&t, &(product_case){.m = 100, .n = 70, .k = 1101, .residual = true}); /* and pieces
                                                                                       */
}

/* A transposed kernel packs by its strides, and rows scaled while packed equal rows scaled before.
 */
static void packing(void **state)
{
  (void)state;
  const tables t = usable_tables();
  const long k = 37, n = 70;
  float *b = random_floats(5, (size_t)(k * n)), *transposed = floats((size_t)(k * n));
  float *scale = random_floats(6, (size_t)k), *scaled = floats((size_t)(k * n));
  for (long i = 0; i < k; i++)
    for (long j = 0; j < n; j++) {
      transposed[j * k + i] = b[i * n + j];
      scaled[i * n + j] = b[i * n + j] * scale[i];
    }
  for (int i = 0; i < t.count; i++) {
    const tp__kernels *kernels = t.table[i];
    size_t size = kernels->packed_gemm(k, n);
    assert_true(size >= (size_t)(k * n / (kernels->bf16 ? 2 : 1)));
    float *x = floats(size), *y = floats(size), *z = floats(size);
    kernels->pack_gemm(b, n, 1, k, n, x);
    kernels->pack_gemm(transposed, 1, k, k, n, y);
    assert_memory_equal(x, y, size * sizeof(float));
    if (kernels->scale_packed != NULL) {
      kernels->scale_packed(x, scale, k, n, z);
      kernels->pack_gemm(scaled, n, 1, k, n, y);
      for (size_t j = 0; j < size; j++) assert_true(z[j] == y[j]); /* padding may be -0 */
    }
    free(x);
    free(y);
    free(z);
  }
  free(b);
  free(transposed);
  free(scale);
  free(scaled);
}

/* Rows of A scaled on their way, each group of rows by its own numbers. */
static void scaled_rows(void **state)
{
  (void)state;
  const tables t = usable_tables();
  const long m = 250, k = 700, n = 40, rows = 49, pitch = tp__pitch(k);
  float *a = random_rows(10, m, k, k + 1, NAN), *b = random_floats(11, (size_t)(k * n));
  float *scale = random_rows(12, (m + rows - 1) / rows, k, pitch, NAN);
  for (int i = 0; i < t.count; i++) {
    const tp__kernels *kernels = t.table[i];
    if (kernels->scale_packed != NULL) continue;
    float *packed = floats(kernels->packed_gemm(k, n)), *c = floats((size_t)(m * tp__pitch(n)));
    kernels->pack_gemm(b, n, 1, k, n, packed);
    kernels->gemm(&(tp__gemm){.m = m,
                              .n = n,
                              .k = k,
                              .a = a,
                              .lda = k + 1,
                              .packed = packed,
                              .c = c,
                              .ldc = tp__pitch(n),
                              .scale = scale,
                              .scale_rows = rows,
                              .scale_pitch = pitch});
    for (long r = 0; r < m; r++)
      for (long j = 0; j < n; j++) {
        chain s = chain_of(kernels, 0);
        for (long q = 0; q < k; q++)
          chain_add(&s, a[r * (k + 1) + q] * scale[r / rows * pitch + q], b[q * n + j]);
        assert_chain(&s, TP__ACT_NONE, NULL, c[r * tp__pitch(n) + j], "scaled rows", r, j);
      }
    free(packed);
    free(c);
  }
  free(a);
  free(b);
  free(scale);
}

/* Numbers that rounding to bfloat16 treats in a way of its own, through A and through B: one row
 * times one column. */
static void rounding(void **state)
{
  (void)state;
  const tables t = usable_tables();
  static const float numbers[] = {0x1.01p0f,  0x1.03p0f,  0x1.010002p0f, 0x1.00fffep0f,
                                  -0x1.01p0f, -0x1.03p0f, 0x1.ffp0f,     0x1.ff0002p-9f,
                                  3e38f,      INFINITY,   NAN,           -0.0f};
  for (int i = 0; i < t.count; i++) {
    const tp__kernels *k = t.table[i];
    if (!k->bf16) continue;
    for (size_t j = 0; j < 2 * sizeof numbers / sizeof numbers[0]; j++) {
      float x = numbers[j / 2], one = 1, packed[3 * TP__LANES], c[TP__LANES];
      bool in_a = j % 2 != 0;
      assert_true(k->packed_gemm(1, 1) <= sizeof packed / sizeof packed[0]);
      k->pack_gemm(in_a ? &one : &x, 1, 1, 1, 1, packed);
      k->gemm(&(tp__gemm){.m = 1,
                          .n = 1,
                          .k = 1,
                          .a = in_a ? &x : &one,
                          .lda = 1,
                          .packed = packed,
                          .c = c,
                          .ldc = TP__LANES});
      if (x != x)
        assert_true(c[0] != c[0]);
      else
        assert_true(c[0] == (isinf(x) ? x : bf16_of(x)));
    }
  }
}

static void check_kernel_grad(const tables *t, long m, long k, long n)
{
  char what[100];
  const long lda = k + 5, ldc = tp__pitch(n);
  float *a = random_rows(7, m, k, lda, NAN), *dc = random_rows(8, m, n, ldc, NAN);
  same_bits same = {NULL};
  for (int i = 0; i < t->count; i++) {
    const tp__kernels *kernels = t->table[i];
    snprintf(what, sizeof what, "gemm_kernel_grad %s %ldx%ldx%ld", kernels->name, m, k, n);
    float *db = random_floats(9, (size_t)(k * n));
    kernels->gemm_kernel_grad(m, k, n, a, lda, dc, ldc, db);
    for (long r = 0; r < k; r++)
      for (long j = 0; j < n; j++) {
        chain c = chain_of(kernels, random_at(9, (size_t)(r * n + j)));
        for (long q = 0; q < m; q++) chain_add(&c, a[q * lda + r], dc[q * ldc + j]);
        assert_chain(&c, TP__ACT_NONE, NULL, db[r * n + j], what, r, j);
      }
    assert_same_bits(&same, kernels, db, k, n, n, what);
    free(db);
  }
  same_bits_end(&same);
  free(a);
  free(dc);
}

static void kernel_grads(void **state)
{
  (void)state;
  const tables t = usable_tables();
  static const long ks[] = {1, 3, 8, 13, 29, 40}, ns[] = {1, 7, 16, 21, 48, 64, 104};
  for (size_t k = 0; k < sizeof ks / sizeof ks[0]; k++)
    for (size_t n = 0; n < sizeof ns / sizeof ns[0]; n++)
      check_kernel_grad(&t, 5 + (long)(3 * n), ks[k], ns[n]);
  check_kernel_grad(&t, 1500, 9, 112);  /* several blocks of rows */
  check_kernel_grad(&t, 195, 520, 100); /* ... and pieces of them */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products), cmocka_unit_test(packing),      cmocka_unit_test(scaled_rows),
      cmocka_unit_test(rounding), cmocka_unit_test(kernel_grads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
