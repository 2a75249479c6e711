/* Matrix products whose rows of A are pieces that lie anywhere: convolutions without a copy of the
 * image; see family.h. The pieces' addresses are a table, so that tiles go across the rows and the
 * examples of the output, and padding is a row of zeros.
 *
 * Panels of B are those of kernels_gemm.c. A panel that is too large to stay in the second-level
 * cache while the rows pass is taken piece by piece: sums are stored and loaded between, which
 * changes no bit.
 */
#include "backend/cpu/family.h"

#include "backend/cpu/tiles.h"

#define ROWS_1 12

/* three vectors */
#define TILE_ROWS    1
#define TILE_VECTORS 3
#include "backend/cpu/gather_tile.inc"
#if ROWS_3 > 4
#define TILE_ROWS    4
#define TILE_VECTORS 3
#include "backend/cpu/gather_tile.inc"
#define REST_3 RUN_TILES(4, tile_4x3)
#else
#define REST_3 (void)0
#endif
#define TILE_ROWS    ROWS_3
#define TILE_VECTORS 3
#define TILE_REST                                                                                  \
  REST_3;                                                                                          \
  RUN_TILES(1, tile_1x3)
#include "backend/cpu/gather_tile.inc"

/* two vectors */
#define TILE_ROWS    1
#define TILE_VECTORS 2
#include "backend/cpu/gather_tile.inc"
#define TILE_ROWS    4
#define TILE_VECTORS 2
#include "backend/cpu/gather_tile.inc"
#define TILE_ROWS    ROWS_2
#define TILE_VECTORS 2
#define TILE_REST                                                                                  \
  RUN_TILES(4, tile_4x2);                                                                          \
  RUN_TILES(1, tile_1x2)
#include "backend/cpu/gather_tile.inc"

/* one vector */
#define TILE_ROWS    1
#define TILE_VECTORS 1
#include "backend/cpu/gather_tile.inc"
#define TILE_ROWS    ROWS_1
#define TILE_VECTORS 1
#define TILE_REST    RUN_TILES(1, tile_1x1)
#include "backend/cpu/gather_tile.inc"

static void run_panel(const tp__gather *p, long width)
{
  if (width == 3)
    TILE_NAME(panel, ROWS_3, 3)(p);
  else if (width == 2)
    TILE_NAME(panel, ROWS_2, 2)(p);
  else
    TILE_NAME(panel, ROWS_1, 1)(p);
}

void TP__FN(gather)(const tp__gather *g)
{
  enum { CACHED = 48 << 10, WHOLE = 96 << 10 }; /* floats of a panel: pieces; when all at once */
  tp__gather p = *g;
  for (long left = vectors_of(g->n), width; left > 0; left -= width) {
    width = panel_width(left);
    const long piece = p.length * width * TP__V;
    int step = p.taps * piece <= WHOLE ? p.taps : piece < CACHED ? (int)(CACHED / piece) : 1;
    for (p.first = 0, p.more = false; p.first == 0 || p.first < p.taps; p.first += step) {
      if (step == 0) step = 1; /* no piece at all: the bias alone */
      p.end = p.taps - p.first < step ? p.taps : p.first + step;
      run_panel(&p, width);
      p.more = true;
    }
    p.packed += p.kernel_taps * piece;
    p.column += width * TP__V;
  }
}
