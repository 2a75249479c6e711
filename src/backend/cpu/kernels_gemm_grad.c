/* The kernel gradient of a matrix product: dB[k][n] += sum over rows i of A[i][k] dC[i][n], in the
 * order of i.
 *
 * A tile of dB stays in registers while the rows of A and dC stream past as they lie: nothing is
 * packed. Rows are taken in blocks that stay in cache; a tile is stored and loaded between blocks,
 * which changes no bit.
 */
#include "backend/cpu/family.h"

#include "backend/cpu/vec.h"

typedef struct tile_job {
  long m;
  const float *a;
  long lda;
  const float *dc;
  long ldc;
  float *db;
  long row; /* floats from row to row of db */
} tile_job;

#define GRAD_TILE(rows, vectors)                                                                   \
  static TP__NOINLINE void grad_##rows##x##vectors(const tile_job *t)                              \
  {                                                                                                \
    const float *a = t->a, *dc = t->dc;                                                            \
    const long lda = t->lda, ldc = t->ldc, row = t->row;                                           \
    tp__vec sum[rows][vectors];                                                                    \
    TP__EACH(i, rows)                                                                              \
      TP__EACH(j, vectors) sum[i][j] = tp__load(t->db + i * row + j * TP__V);                      \
    for (long left = t->m; left > 0; left--, a += lda, dc += ldc) {                                \
      tp__vec d[vectors];                                                                          \
      TP__EACH(j, vectors) d[j] = tp__load(dc + j * TP__V);                                        \
      TP__EACH(i, rows) {                                                                          \
        tp__vec factor = tp__all(a[i]);                                                            \
        TP__EACH(j, vectors) sum[i][j] = tp__fma(factor, d[j], sum[i][j]);                         \
      }                                                                                            \
    }                                                                                              \
    TP__EACH(i, rows)                                                                              \
      TP__EACH(j, vectors) tp__store(t->db + i * row + j * TP__V, sum[i][j]);                      \
  }

GRAD_TILE(1, 1)
GRAD_TILE(1, 2)
GRAD_TILE(1, 3)
#if TP__VECTOR == 16 || defined(__aarch64__)
GRAD_TILE(8, 3)
GRAD_TILE(12, 2)
GRAD_TILE(24, 1)
GRAD_TILE(4, 3)
GRAD_TILE(4, 2)
GRAD_TILE(4, 1)
#define BIG_3 8, grad_8x3
#define BIG_2 12, grad_12x2
#define BIG_1 24, grad_24x1
#else
GRAD_TILE(4, 3)
GRAD_TILE(6, 2)
GRAD_TILE(12, 1)
GRAD_TILE(4, 2)
GRAD_TILE(4, 1)
#define BIG_3 4, grad_4x3
#define BIG_2 6, grad_6x2
#define BIG_1 12, grad_12x1
#endif

typedef struct tile_size {
  int rows;
  void (*run)(const tile_job *t);
} tile_size;

/* [vectors - 1], by falling number of rows */
static const tile_size sizes[3][3] = {
    {{BIG_1}, {4, grad_4x1}, {1, grad_1x1}},
    {{BIG_2}, {4, grad_4x2}, {1, grad_1x2}},
    {{BIG_3}, {4, grad_4x3}, {1, grad_1x3}},
};

/* All k rows of dB for `vectors` vectors of columns. */
static void column_strip(tile_job t, long k, int vectors)
{
  for (int s = 0; s < 3; s++) {
    const tile_size *size = &sizes[vectors - 1][s];
    for (; k >= size->rows; k -= size->rows) {
      size->run(&t);
      t.a += size->rows;
      t.db += size->rows * t.row;
    }
  }
}

/* The last n < TP__V columns: through a small copy, so that nothing behind a row of dB is touched.
 */
static void last_columns(tile_job t, long k, long n)
{
  enum { ROWS = 24 };
  float copy[ROWS][TP__V];
  for (long first = 0; first < k; first += ROWS) {
    long rows = k - first < ROWS ? k - first : ROWS;
    for (long i = 0; i < rows; i++)
      tp__store(copy[i], tp__load_part(t.db + (first + i) * t.row, n));
    tile_job part = t;
    part.a += first;
    part.db = copy[0];
    part.row = TP__V;
    column_strip(part, rows, 1);
    for (long i = 0; i < rows; i++)
      tp__store_part(t.db + (first + i) * t.row, tp__load(copy[i]), n);
  }
}

void TP__FN(gemm_kernel_grad)(long m, long k, long n, const float *a, long lda, const float *dc,
                              long ldc, float *db)
{
  enum { CACHED = 1 << 16 }; /* floats of dC in a block of rows */
  long block = CACHED / ldc > 64 ? CACHED / ldc : 64;
  for (long i = 0; i < m; i += block) {
    tile_job t = {
        .m = m - i < block ? m - i : block, .a = a + i * lda, .lda = lda, .ldc = ldc, .row = n};
    long vectors = n / TP__V, first = 0;
    for (int width; vectors > 0; vectors -= width, first += width * TP__V) {
      width = vectors >= 3 && vectors != 4 ? 3 : vectors >= 2 ? 2 : 1;
      t.dc = dc + i * ldc + first;
      t.db = db + first;
      column_strip(t, k, width);
    }
    t.dc = dc + i * ldc + first;
    t.db = db + first;
    if (first < n) last_columns(t, k, n - first);
  }
}
