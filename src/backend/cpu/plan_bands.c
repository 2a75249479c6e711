/* plan_bands - a 1 x 1 convolution and the depthwise one that alone reads it become one step that
 * goes through the image in bands of rows, so that the expanded layer (the largest of a block)
 * never leaves the cache; see exec_bands.c */
#include "plan_make.h"

enum { BAND_FLOATS = 96 << 10 }; /* the rows of a band: 384 KiB, part of a second-level cache */

/* Rows of the expanded layer that `rows` rows of the result see. */
static int64_t rows_seen(const tp__step *depthwise, int64_t kernel, int64_t rows, int64_t height)
{
  int64_t seen = (rows - 1) * depthwise->node->attr.stride + kernel;
  return seen < height ? seen : height;
}

static bool is_pair(const tp__plan *plan, const tp__step *conv, const tp__step *depthwise)
{
  return conv->run == tp__step_gemm && conv->node->op == TP__OP_CONV && conv->in[3] == TP__NONE &&
         conv->in[4] == TP__NONE && conv->v == depthwise->in[0] &&
         conv->level == depthwise->level && plan->readers[conv->v] == 1 &&
         plan->slot[conv->v].home == TP__HOME_SCRATCH && depthwise->extra[1] == TP__NONE;
}

tp_status tp__plan_bands(tp__plan *plan, tp_error *err)
{
  if (plan->n_steps < 2) return TP_OK;
  tp__step *conv = &plan->step[plan->n_steps - 2], merged = plan->step[plan->n_steps - 1];
  if (!is_pair(plan, conv, &merged)) return TP_OK;
  const int64_t *dim = conv->node->shape.dim,
                kernel = tp__plan_node(plan, merged.node->in[1])->shape.dim[0];
  const int64_t row = dim[2] * tp__pitch(dim[3]);
  if (dim[1] * row <= BAND_FLOATS) return TP_OK;
  merged.band = 1;
  while (rows_seen(&merged, kernel, merged.band + 1, dim[1]) * row <= BAND_FLOATS) merged.band++;
  merged.inner = conv->node;
  merged.inner_derived = conv->derived;
  merged.in[0] = conv->in[0];
  merged.in[1] = TP__NONE;
  merged.in[3] = conv->in[2];
  merged.run = tp__step_expand_depthwise;
  int64_t size = rows_seen(&merged, kernel, merged.band, dim[1]) * row + tp__pitch(dim[3]);
  TP__TRY(tp__plan_extra(plan, size, true, &merged.extra[1], err));
  plan->n_steps--;
  plan->step[plan->n_steps - 1] = merged;
  return TP_OK;
}
