/* hlo_emitters - the functions of the table, by file; see hlo.h */
#ifndef TP_HLO_EMITTERS_H
#define TP_HLO_EMITTERS_H

#include "hlo.h"

/* hlo_layers.c */
tp__hlo_value tp__hlo_affine(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_reverse(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_normalize(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_pad_node(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_crop(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_reshape_node(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_concat_node(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_slice_channels(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_bias_add(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_batch_norm(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_batch_norm_input_grad(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_activation(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_activation_grad(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_add_node(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_mul_node(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_global_pool(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_sum_spatial(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_broadcast_spatial(tp__hlo *w, const tp__node *n);
/* hlo_conv.c */
tp__hlo_value tp__hlo_conv(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_conv_input_grad(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_conv_kernel_grad(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_matmul(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_matmul_input_grad(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_matmul_kernel_grad(tp__hlo *w, const tp__node *n);
/* hlo_depthwise.c */
tp__hlo_value tp__hlo_depthwise(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_depthwise_input_grad(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_depthwise_kernel_grad(tp__hlo *w, const tp__node *n);
/* hlo_pools.c */
tp__hlo_value tp__hlo_max_pool(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_avg_pool(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_max_pool_grad(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_avg_pool_grad(tp__hlo *w, const tp__node *n);
/* hlo_loss.c */
tp__hlo_value tp__hlo_softmax(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_cross_entropy(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_cross_entropy_grad(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_weighted_sum(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_scale_rows(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_sum_to_last_node(tp__hlo *w, const tp__node *n);
/* hlo_random.c */
/* u32 [N,4 blocks]: the words of counters (0, draw, 0, 0)...(blocks - 1, draw, 0, 0). */
tp__hlo_value tp__hlo_words(tp__hlo *w, tp__hlo_value keys, uint32_t draw, int64_t blocks);
/* u32 [N]: the first of them. */
tp__hlo_value tp__hlo_word(tp__hlo *w, tp__hlo_value keys, uint32_t draw);
tp__hlo_value tp__hlo_dropout(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_random_flip(tp__hlo *w, const tp__node *n);
/* hlo_turn.c */
tp__hlo_value tp__hlo_random_rotation(tp__hlo *w, const tp__node *n);
/* hlo_statistics.c */
tp__hlo_value tp__hlo_row(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_batch_moments(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_batch_norm_full_grad(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_batch_norm_gamma_grad(tp__hlo *w, const tp__node *n);
/* hlo_update.c */
tp__hlo_value tp__hlo_fold_kernel(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_fold_bias(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_adam_m(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_adam_v(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_adam_param(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_sgd_momentum(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_sgd_param(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_moving_average(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_sum_squares(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_sum_scalars(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_clip_factor(tp__hlo *w, const tp__node *n);
tp__hlo_value tp__hlo_scale(tp__hlo *w, const tp__node *n);

/* ---- what they share ---- */
tp__hlo_window tp__hlo_forward_window(const tp__attr *a);
tp__hlo_window tp__hlo_input_grad_window(const tp__attr *a, const tp__shape *x, const tp__shape *dy,
                                         const tp__shape *kernel);
tp__hlo_window tp__hlo_kernel_grad_window(const tp__attr *a, const tp__shape *x,
                                          const tp__shape *dy, const tp__shape *kernel);
/* gamma / sqrt(variance + attr.f[0]), by the operands' numbers. */
tp__hlo_value tp__hlo_gamma_factor(tp__hlo *w, const tp__node *n, int gamma, int variance);
/* y + operand 2 (where there is one), then the activation. */
tp__hlo_value tp__hlo_bias_act(tp__hlo *w, const tp__node *n, tp__hlo_value y);

#endif
