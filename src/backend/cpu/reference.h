/* reference - one plain loop per operator: the definition of what each operator of TP__OP_MAP
 * computes.
 *
 *   reference_layers.c   pixels and layers, forward
 *   reference_pools.c    pooling, channels put together, and their gradients
 *   reference_loss.c     softmax, cross-entropy, dropout, the weighted sum
 *   reference_grads.c    gradients of the layers
 *   reference_update.c   folding, Adam, SGD
 *   reference_statistics.c   batch statistics, batch norm's gradient through them, averages
 *   reference.c          the table of them
 *   reference_run.c      an executor that runs a whole graph with nothing else
 *
 * Sums are made in double and rounded once, so these functions are also the more exact ones. The
 * fast executor uses some of them directly, where an operator is too small or too rare to deserve
 * more (listed in plan.h).
 */
#ifndef TP_REFERENCE_H
#define TP_REFERENCE_H

#include "view.h"

typedef struct tp__ref {
  const tp__node *node;
  int64_t n;     /* examples (of per-example operands) */
  int64_t batch; /* examples of the whole run */
  tp__view in[TP__OPERANDS_MAX];
  tp__view out; /* joints add to it, everything else overwrites it */
} tp__ref;

typedef void (*tp__ref_fn)(const tp__ref *r);

/* NULL for the sources (INPUT, PARAM, CONSTANT). */
tp__ref_fn tp__reference(tp__op op);

/* The activation and its derivative at x. */
double tp__ref_act(tp__act act, double x);
double tp__ref_act_slope(tp__act act, double x);

static inline const float *tp__ref_f32(const tp__ref *r, int operand)
{
  return r->in[operand].data;
}

/* The functions, by file. */
void tp__ref_affine(const tp__ref *r);
void tp__ref_reverse(const tp__ref *r);
void tp__ref_normalize(const tp__ref *r);
void tp__ref_random_flip(const tp__ref *r);
void tp__ref_random_rotation(const tp__ref *r);
void tp__ref_pad(const tp__ref *r);
void tp__ref_conv(const tp__ref *r);
void tp__ref_depthwise(const tp__ref *r);
void tp__ref_bias_add(const tp__ref *r);
void tp__ref_batch_norm(const tp__ref *r);
void tp__ref_activation(const tp__ref *r);
void tp__ref_add(const tp__ref *r);
void tp__ref_mul(const tp__ref *r);
void tp__ref_global_pool(const tp__ref *r);
void tp__ref_max_pool(const tp__ref *r);
void tp__ref_avg_pool(const tp__ref *r);
void tp__ref_concat(const tp__ref *r);
void tp__ref_reshape(const tp__ref *r);
void tp__ref_matmul(const tp__ref *r);

void tp__ref_dropout(const tp__ref *r);
void tp__ref_softmax(const tp__ref *r);
void tp__ref_cross_entropy(const tp__ref *r);
void tp__ref_weighted_sum(const tp__ref *r);
void tp__ref_cross_entropy_grad(const tp__ref *r);
void tp__ref_scale_rows(const tp__ref *r);

void tp__ref_conv_input_grad(const tp__ref *r);
void tp__ref_conv_kernel_grad(const tp__ref *r);
void tp__ref_depthwise_input_grad(const tp__ref *r);
void tp__ref_depthwise_kernel_grad(const tp__ref *r);
void tp__ref_sum_to_last(const tp__ref *r);
void tp__ref_batch_norm_input_grad(const tp__ref *r);
void tp__ref_batch_norm_gamma_grad(const tp__ref *r);
void tp__ref_activation_grad(const tp__ref *r);
void tp__ref_sum_spatial(const tp__ref *r);
void tp__ref_broadcast_spatial(const tp__ref *r);
void tp__ref_matmul_input_grad(const tp__ref *r);
void tp__ref_matmul_kernel_grad(const tp__ref *r);
void tp__ref_crop(const tp__ref *r);
void tp__ref_max_pool_grad(const tp__ref *r);
void tp__ref_avg_pool_grad(const tp__ref *r);
void tp__ref_slice_channels(const tp__ref *r);

void tp__ref_fold_kernel(const tp__ref *r);
void tp__ref_fold_bias(const tp__ref *r);
void tp__ref_adam_m(const tp__ref *r);
void tp__ref_adam_v(const tp__ref *r);
void tp__ref_adam_param(const tp__ref *r);
void tp__ref_sgd_momentum(const tp__ref *r);
void tp__ref_sgd_param(const tp__ref *r);

void tp__ref_batch_moments(const tp__ref *r);
void tp__ref_row(const tp__ref *r);
void tp__ref_batch_norm_full_grad(const tp__ref *r);
void tp__ref_moving_average(const tp__ref *r);
void tp__ref_sum_squares(const tp__ref *r);
void tp__ref_sum_scalars(const tp__ref *r);
void tp__ref_clip_factor(const tp__ref *r);
void tp__ref_scale(const tp__ref *r);

#endif
