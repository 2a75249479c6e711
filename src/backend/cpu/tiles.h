/* tiles - what the tiled products of kernels_gemm.c and kernels_gather.c share: rows of C that are
 * in registers at once, by the vectors of columns, the panels of packed B, and the names that
 * *_tile.inc gives. */
#ifndef TP_TILES_H
#define TP_TILES_H

#include "backend/cpu/words.h"

#if TP__VECTOR == 16 || defined(__aarch64__)
#define ROWS_3 8
#define ROWS_2 12
#else
#define ROWS_3 4
#define ROWS_2 6
#endif

/* The vectors of columns that n columns need, and the width of the next panel when `left` of them
 * are left. */
static inline long vectors_of(long n)
{
  return (n + TP__V - 1) / TP__V;
}
static inline long panel_width(long left)
{
  return left >= 3 && left != 4 ? 3 : left >= 2 ? 2 : 1;
}

#define TILE_NAME_(name, rows, vectors) name##_##rows##x##vectors
#define TILE_NAME(name, rows, vectors)  TILE_NAME_(name, rows, vectors)
#define TILE(name)                      TILE_NAME(name, TILE_ROWS, TILE_VECTORS)

#endif
