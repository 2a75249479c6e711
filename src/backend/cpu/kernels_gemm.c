/* Matrix products: C = act(bias + A B) + residual, tiles of C in registers, B packed.
 *
 * Packed B is a row of panels of three vectors of columns (the last ones two or one, never 3 + 1):
 * within a panel, row k after row k. Vectors that hold no column of B are left out. Tiles: 8x3,
 * 12x2, 24x1 rows x vectors with 32 vector registers, 4x3, 6x2, 12x1 with 16; the rest of the rows
 * in tiles of 4, 2 and 1 rows.
 */
#include "backend/cpu/family.h"

#include "backend/cpu/tiles.h"

#if ROWS_3 > 4
#define ROWS_1 24
#else
#define ROWS_1 12
#endif

/* One pass over rows of A and C. Counts of k are words (words.h). */
typedef struct product {
  long m, n, k;
  const float *a;
  long lda;
  const float *packed;
  long rows;  /* of a panel of packed B, */
  long first; /* and the first of them that this pass meets */
  const float *bias;
  float *c;
  long ldc;
  const float *residual;
  tp__act act;
  bool act_last;
  bool more, unfinished; /* there was a pass over other rows of B before; there is one to come */
} product;

/* three vectors */
#define TILE_ROWS    1
#define TILE_VECTORS 3
#include "backend/cpu/gemm_tile.inc"
#define TILE_ROWS    2
#define TILE_VECTORS 3
#include "backend/cpu/gemm_tile.inc"
#if ROWS_3 > 4
#define TILE_ROWS    4
#define TILE_VECTORS 3
#include "backend/cpu/gemm_tile.inc"
#define REST_3 RUN_TILES(4, tile_4x3)
#else
#define REST_3 (void)0
#endif
#define TILE_ROWS    ROWS_3
#define TILE_VECTORS 3
#define TILE_REST                                                                                  \
  REST_3;                                                                                          \
  RUN_TILES(2, tile_2x3);                                                                          \
  RUN_TILES(1, tile_1x3)
#include "backend/cpu/gemm_tile.inc"

/* two vectors */
#define TILE_ROWS    1
#define TILE_VECTORS 2
#include "backend/cpu/gemm_tile.inc"
#define TILE_ROWS    2
#define TILE_VECTORS 2
#include "backend/cpu/gemm_tile.inc"
#define TILE_ROWS    4
#define TILE_VECTORS 2
#include "backend/cpu/gemm_tile.inc"
#define TILE_ROWS    ROWS_2
#define TILE_VECTORS 2
#define TILE_REST                                                                                  \
  RUN_TILES(4, tile_4x2);                                                                          \
  RUN_TILES(2, tile_2x2);                                                                          \
  RUN_TILES(1, tile_1x2)
#include "backend/cpu/gemm_tile.inc"

/* one vector */
#define TILE_ROWS    1
#define TILE_VECTORS 1
#include "backend/cpu/gemm_tile.inc"
#define TILE_ROWS    4
#define TILE_VECTORS 1
#include "backend/cpu/gemm_tile.inc"
#define TILE_ROWS    ROWS_1
#define TILE_VECTORS 1
#define TILE_REST                                                                                  \
  RUN_TILES(4, tile_4x1);                                                                          \
  RUN_TILES(1, tile_1x1)
#include "backend/cpu/gemm_tile.inc"

size_t TP__FN(packed_panels)(long pieces, long length, long n)
{
  return (size_t)(pieces * tp__words(length) * vectors_of(n) * TP__V);
}

void TP__FN(pack_panels)(const tp__panels *b, float *packed)
{
  for (long first = 0, width; first < b->n; first += width * TP__V) {
    width = panel_width(vectors_of(b->n - first));
    const long columns = b->n - first < width * TP__V ? b->n - first : width * TP__V;
    for (long piece = 0; piece < b->pieces; piece++) {
      const float *from = b->from + piece * b->piece + first * b->column;
      for (long i = 0; i < b->length; i += TP__IN_WORD, from += TP__IN_WORD * b->row) {
        long j = 0;
        for (; j < columns; j++) packed[j] = tp__word(from + j * b->column, b->row, b->length - i);
        for (; j < width * TP__V; j++) packed[j] = 0;
        packed += width * TP__V;
      }
    }
  }
}

size_t TP__FN(packed_gemm)(long k, long n)
{
  return TP__FN(packed_panels)(1, k, n);
}

void TP__FN(pack_gemm)(const float *b, long row, long column, long k, long n, float *packed)
{
  const tp__panels panels = {
      .from = b, .pieces = 1, .length = k, .n = n, .row = row, .column = column};
  TP__FN(pack_panels)(&panels, packed);
}

/* All panels for one block of rows. */
static void row_block(product p)
{
  for (long left = vectors_of(p.n), width; left > 0; left -= width) {
    width = panel_width(left);
    if (width == 3)
      TILE_NAME(panel, ROWS_3, 3)(&p);
    else if (width == 2)
      TILE_NAME(panel, ROWS_2, 2)(&p);
    else
      TILE_NAME(panel, ROWS_1, 1)(&p);
    p.packed += p.rows * width * TP__V;
    p.c += width * TP__V;
    if (p.bias != NULL) p.bias += width * TP__V;
    if (p.residual != NULL) p.residual += width * TP__V;
  }
}

/* The product of rows first... alone, without its A. */
static product rows_of(const tp__gemm *g, long first, long most)
{
  product p = {.m = g->m - first < most ? g->m - first : most,
               .n = g->n,
               .k = tp__words(g->k),
               .packed = g->packed,
               .rows = tp__words(g->k),
               .bias = g->bias,
               .c = g->c + first * g->ldc,
               .ldc = g->ldc,
               .act = g->act,
               .act_last = g->act_last};
  if (g->residual != NULL) p.residual = g->residual + first * g->ldc;
  return p;
}

#ifdef TP__PAIRS

enum { LEAST = 96, PIECE = 256 }; /* rows of A, a multiple of all tiles; words of a row */

/* Rows of A, k words first..., as pairs. */
static void copy_block(const tp__gemm *g, long row, const product *p, float *words)
{
  const long from = p->first * TP__IN_WORD,
             count = g->k - from < p->k * TP__IN_WORD ? g->k - from : p->k * TP__IN_WORD;
  for (long end = row + p->m; row < end; row++, words += p->k) {
    const float *scale =
        g->scale != NULL ? g->scale + row / g->scale_rows * g->scale_pitch + from : NULL;
    tp__copy_words(words, g->a + row * g->lda + from, scale, count);
  }
}

/* A block of rows of A becomes pairs before the panels pass, a piece of k at a time: sums are
 * stored and loaded between, which changes no bit. */
void TP__FN(gemm)(const tp__gemm *g)
{
  float words[LEAST * PIECE] __attribute__((aligned(64)));
  const long length = tp__words(g->k);
  long block = LEAST;
  while (2 * block * length <= LEAST * PIECE && block < g->m) block *= 2;
  for (long i = 0; i < g->m; i += block) {
    product p = rows_of(g, i, block);
    do {
      p.k = length - p.first < PIECE ? length - p.first : PIECE;
      p.more = p.first > 0;
      p.unfinished = p.first + p.k < length;
      copy_block(g, i, &p, words);
      p.a = words;
      p.lda = p.k;
      row_block(p);
      p.first += p.k;
    } while (p.first < length);
  }
}

#else

void TP__FN(scale_packed)(const float *packed, const float *scale, long k, long n, float *scaled)
{
  for (long left = vectors_of(n), width; left > 0; left -= width) {
    width = panel_width(left);
    for (long i = 0; i < k; i++) {
      const tp__vec factor = tp__all(scale[i]);
      for (long j = 0; j < width; j++, packed += TP__V, scaled += TP__V)
        tp__store(scaled, tp__load(packed) * factor);
    }
  }
}

/* Rows are taken in blocks whose part of A stays in the second-level cache while the panels pass.
 */
void TP__FN(gemm)(const tp__gemm *g)
{
  enum { CACHED = 1 << 16, LEAST = 96 }; /* floats of A; rows, a multiple of all tiles */
  long block = LEAST;
  while (block * g->lda < CACHED && block < g->m) block *= 2;
  for (long i = 0; i < g->m; i += block) {
    product p = rows_of(g, i, block);
    p.a = g->a + i * g->lda;
    p.lda = g->lda;
    row_block(p);
  }
}

#endif
