/* The kernel gradient of a matrix product: dB[k][n] += sum over rows i of A[i][k] dC[i][n], in the
 * order of i.
 *
 * A tile of dB stays in registers while the rows of A and dC stream past as they lie: nothing is
 * packed. Rows are taken in blocks that stay in cache; a tile is stored and loaded between blocks,
 * which changes no bit. Pairs of bfloat16 are of two rows, and made of a block's A, a piece of its
 * columns at a time, and of dC for each strip of columns.
 */
#include "backend/cpu/tiles.h"

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
        tp__vec factor = tp__all_words(a + i);                                                     \
        TP__EACH(j, vectors) sum[i][j] = tp__multiply(factor, d[j], sum[i][j]);                    \
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

#ifdef TP__PAIRS

/* Pairs of rows, one below the other. */
static void zip_rows(const float *from, long from_row, long rows, long n, float *words, long row)
{
  for (long i = 0; i < rows; i += 2, words += row)
    tp__zip_words(words, from + i * from_row, i + 1 < rows ? from + (i + 1) * from_row : NULL, n);
}

/* The columns of dC that t's strip meets. */
static void take_columns(tile_job *t, const float *dc, long ldc, long vectors, float *words)
{
  zip_rows(dc, ldc, t->m, vectors * TP__V, words, vectors * TP__V);
  t->m = tp__words(t->m);
  t->dc = words;
  t->ldc = vectors * TP__V;
}

#else

static void take_columns(tile_job *t, const float *dc, long ldc, long vectors, float *words)
{
  (void)vectors;
  (void)words;
  t->dc = dc;
  t->ldc = ldc;
}

#endif

/* All strips of columns for t's rows, of which dc at ldc is the whole. words: room for a strip of
 * dC as pairs. */
static void all_strips(tile_job t, long k, long n, const float *dc, long ldc, float *words)
{
  for (long first = 0, width; first < n; first += width * TP__V) {
    const long whole = (n - first) / TP__V;
    width = whole > 0 ? panel_width(whole) : 1;
    tile_job strip = t;
    strip.db += first;
    take_columns(&strip, dc + first, ldc, width, words);
    if (whole > 0)
      column_strip(strip, k, (int)width);
    else
      last_columns(strip, k, n - first);
  }
}

#ifdef TP__PAIRS

/* Pairs of rows; words of a row of A, at a pitch that is not in step with the cache's sets. */
enum { ROWS = 96, COLUMNS = 256, PITCH = COLUMNS + TP__V };

void TP__FN(gemm_kernel_grad)(long m, long k, long n, const float *a, long lda, const float *dc,
                              long ldc, float *db)
{
  float words[ROWS * PITCH] __attribute__((aligned(64))),
      strip[ROWS * 3 * TP__V] __attribute__((aligned(64)));
  for (long i = 0; i < m; i += 2 * ROWS) {
    const long rows = m - i < 2 * ROWS ? m - i : 2 * ROWS;
    for (long first = 0; first < k; first += COLUMNS) {
      const long columns = k - first < COLUMNS ? k - first : COLUMNS;
      zip_rows(a + i * lda + first, lda, rows, columns, words, PITCH);
      const tile_job t = {.m = rows, .a = words, .lda = PITCH, .db = db + first * n, .row = n};
      all_strips(t, columns, n, dc + i * ldc, ldc, strip);
    }
  }
}

#else

void TP__FN(gemm_kernel_grad)(long m, long k, long n, const float *a, long lda, const float *dc,
                              long ldc, float *db)
{
  enum { CACHED = 1 << 16 }; /* floats of dC in a block of rows */
  const long block = CACHED / ldc > 64 ? CACHED / ldc : 64;
  for (long i = 0; i < m; i += block) {
    const tile_job t = {
        .m = m - i < block ? m - i : block, .a = a + i * lda, .lda = lda, .db = db, .row = n};
    all_strips(t, k, n, dc + i * ldc, ldc, NULL);
  }
}

#endif
