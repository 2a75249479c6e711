/* geometry - a convolution's node and slots as the kernels' structs; pointers are left NULL. */
#ifndef TP_GEOMETRY_H
#define TP_GEOMETRY_H

#include "plan.h"

/* A 1 x 1 convolution of stride 1 is a matrix product over the pixels. kernel: [kh,kw,C,K]. */
static inline bool tp__is_product(const tp__node *n, const int64_t *kernel)
{
  const int *pad = n->attr.pad;
  return kernel[0] == 1 && kernel[1] == 1 && n->attr.stride == 1 && pad[0] == 0 && pad[1] == 0 &&
         pad[2] == 0 && pad[3] == 0;
}

/* plan_winograd.c: the side of the tiles of a convolution or of its input's gradient by Winograd's
 * algorithm; 0: it takes another, as all other nodes do. */
int tp__winograd_tile(const tp__graph *g, const tp__node *n);

/* Elements after which the factors of dense pixels repeat in whole vectors; pitched ones repeat
 * from pixel to pixel. */
static inline int64_t tp__pixel_period(const tp__shape *shape, int64_t pitch)
{
  int64_t c = tp__view_of(shape, 1, 0).c, period = c;
  if (pitch != c) return pitch;
  while (period % TP__LANES != 0) period += c;
  return period;
}

/* A convolution's step or one of its gradients. */
tp__conv tp__conv_geometry(const tp__plan *plan, const tp__step *s);
/* The input's gradient by Winograd's kernels: the convolution of dy that gives dx. */
tp__conv tp__conv_backwards(const tp__conv *v);
/* A depthwise convolution's step or one of its gradients; kernel: [k,k,C,1]. */
tp__depthwise tp__depthwise_geometry(const tp__plan *plan, const tp__step *s,
                                     const tp__shape *kernel);

#endif
