/* plan_winograd - which 3 x 3 convolutions take fewer multiplications, and their steps; see plan.h
 * and kernels_winograd.c */
#include "geometry.h"
#include "plan_make.h"

/* Tiles of an image [N,h,w,C]. */
static int64_t tiles_of(const tp__shape *y, int64_t side)
{
  return ((y->dim[1] + side - 1) / side) * ((y->dim[2] + side - 1) / side);
}

/* The side with fewer multiplications for an image, if they are less than three quarters of the
 * direct convolution's. Measured: images of 2 to 48 pixels a side, 16 to 512 channels, four
 * examples, AVX-512 and AVX2. Shares of the peak, direct convolution 0.9 to 1.0 (0.7 of 16
 * channels): tiles of 4 reach 2.5 to 3.3 where they fit (12 pixels), 2.3 at 7 pixels; tiles of 2
 * reach 1.8 to 2.1 at 6 pixels, 1.3 at 5; so the count tells which is faster. At 3 pixels, 0.79 of
 * the multiplications, it is 1.2 for 512 channels and 0.9 for 32: none. With fewer than four tiles
 * an image the products have too few rows for a kernel that is up to four times as large: one tile
 * of 4 with 512 channels, 0.3 at 2 pixels, and less than tiles of 2 at 4 pixels. Fewer channels
 * than a vector leave the transforms half empty. */
int tp__winograd_tile(const tp__graph *g, const tp__node *n)
{
  enum { FEWEST_CHANNELS = 16, FEWEST_TILES = 4 };
  if (n->op != TP__OP_CONV && n->op != TP__OP_CONV_INPUT_GRAD) return 0;
  const int64_t *kernel = g->node[n->in[1]].shape.dim, *y = n->shape.dim;
  if (kernel[0] != 3 || kernel[1] != 3 || n->attr.stride != 1) return 0;
  if (kernel[2] < FEWEST_CHANNELS || kernel[3] < FEWEST_CHANNELS) return 0;
  int64_t least = 9 * y[1] * y[2] * 3 / 4; /* multiplications for a pair of channels */
  int tile = 0;
  for (int side = 2; side <= 4; side += 2) {
    const int64_t tiles = tiles_of(&n->shape, side), window = (side + 2) * (side + 2);
    if (tiles < FEWEST_TILES || tiles * window >= least) continue;
    least = tiles * window;
    tile = side;
  }
  return tile;
}

/* An image of few tiles is taken together with the others of its chunk: each number of the packed
 * kernel is read once for all of them. */
tp_status tp__make_winograd(tp__making *m, const tp__conv *v, tp__step_fn run)
{
  enum { FEW_TILES = 32 };
  const bool forward = m->step.node->op == TP__OP_CONV;
  tp__derived d = {.kind = forward ? TP__DERIVE_WINOGRAD : TP__DERIVE_WINOGRAD_TRANSPOSED,
                   .node = m->step.node,
                   .in = {m->step.node->in[1]},
                   .n_in = 1,
                   .k = v->tile,
                   .size = m->plan->kernels->packed_winograd(v->tile, v->c, v->n)};
  TP__TRY(tp__make_wide(m, 0));
  TP__TRY(tp__plan_derive(m->plan, &d, &m->step.derived, m->err));
  tp__conv largest = *v;
  largest.images = TP__CHUNK;
  int64_t size = (int64_t)m->plan->kernels->winograd_scratch(&largest);
  TP__TRY(tp__plan_extra(m->plan, size, true, &m->step.extra[0], m->err));
  m->step.together = tiles_of(&m->step.node->shape, v->tile) < FEW_TILES;
  return tp__make_finish(m, run);
}
