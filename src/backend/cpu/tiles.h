/* tiles - what the tiled products of kernels_gemm.c and kernels_gather.c share: rows of C that are
 * in registers at once, by the vectors of columns, and the names that *_tile.inc gives. */
#ifndef TP_TILES_H
#define TP_TILES_H

#include "backend/cpu/family.h"

#if TP__VECTOR == 16 || defined(__aarch64__)
#define ROWS_3 8
#define ROWS_2 12
#else
#define ROWS_3 4
#define ROWS_2 6
#endif

#define TILE_NAME_(name, rows, vectors) name##_##rows##x##vectors
#define TILE_NAME(name, rows, vectors)  TILE_NAME_(name, rows, vectors)
#define TILE(name)                      TILE_NAME(name, TILE_ROWS, TILE_VECTORS)

#endif
