/* Matrix products: C = act(bias + A B) + residual, tiles of C in registers, B packed.
 *
 * Packed B is a row of panels of three vectors of columns (the last ones two or one, never 3 + 1):
 * within a panel, row k after row k. Vectors that hold no column of B are left out. Tiles: 8x3,
 * 12x2, 24x1 rows x vectors with 32 vector registers, 4x3, 6x2, 12x1 with 16; the rest of the rows
 * in tiles of 4, 2 and 1 rows.
 */
#include "backend/cpu/family.h"

#include "backend/cpu/tiles.h"
#include "backend/cpu/vec.h"

#if ROWS_3 > 4
#define ROWS_1 24
#else
#define ROWS_1 12
#endif

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

/* The vectors of columns that n columns need, and the width of the next panel when `left` of them
 * are left. */
static long vectors_of(long n)
{
  return (n + TP__V - 1) / TP__V;
}
static long panel_width(long left)
{
  return left >= 3 && left != 4 ? 3 : left >= 2 ? 2 : 1;
}

size_t TP__FN(packed_gemm)(long k, long n)
{
  return (size_t)(k * vectors_of(n) * TP__V);
}

void TP__FN(pack_gemm)(const float *b, long row, long column, long k, long n, float *packed)
{
  for (long first = 0, width; first < n; first += width * TP__V) {
    width = panel_width(vectors_of(n - first));
    long columns = n - first < width * TP__V ? n - first : width * TP__V;
    for (long i = 0; i < k; i++, packed += width * TP__V) {
      const float *from = b + i * row + first * column;
      long j = 0;
      for (; j < columns; j++) packed[j] = from[j * column];
      for (; j < width * TP__V; j++) packed[j] = 0;
    }
  }
}

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

/* All panels for one block of rows. */
static void row_block(tp__product p)
{
  for (long left = vectors_of(p.n), width; left > 0; left -= width) {
    width = panel_width(left);
    if (width == 3)
      TILE_NAME(panel, ROWS_3, 3)(&p);
    else if (width == 2)
      TILE_NAME(panel, ROWS_2, 2)(&p);
    else
      TILE_NAME(panel, ROWS_1, 1)(&p);
    p.packed += p.segments * p.length * width * TP__V;
    p.c += width * TP__V;
    if (p.bias != NULL) p.bias += width * TP__V;
    if (p.residual != NULL) p.residual += width * TP__V;
  }
}

/* Rows are taken in blocks whose part of A stays in the second-level cache while the panels pass.
 */
void TP__FN(product)(const tp__product *p)
{
  enum { CACHED = 1 << 16, LEAST = 96 }; /* floats of A; rows, a multiple of all tiles */
  long block = LEAST;
  while (block * p->lda < CACHED && block < p->m) block *= 2;
  for (long i = 0; i < p->m; i += block) {
    tp__product part = *p;
    part.m = p->m - i < block ? p->m - i : block;
    part.a += i * p->lda;
    part.c += i * p->ldc;
    if (part.residual != NULL) part.residual += i * p->ldc;
    row_block(part);
  }
}

void TP__FN(gemm)(const tp__gemm *g)
{
  const tp__product p = {.m = g->m,
                         .n = g->n,
                         .segments = 1,
                         .length = g->k,
                         .a = g->a,
                         .lda = g->lda,
                         .packed = g->packed,
                         .bias = g->bias,
                         .c = g->c,
                         .ldc = g->ldc,
                         .residual = g->residual,
                         .act = g->act,
                         .act_last = g->act_last};
  TP__FN(product)(&p);
}
