/* plan_make - the step of one node: which fast operator computes it, and what it needs besides.
 * plan_make.c has the layers, plan_make_grads.c their gradients.
 */
#ifndef TP_PLAN_MAKE_H
#define TP_PLAN_MAKE_H

#include "exec.h"

typedef struct tp__making {
  tp__plan *plan;
  tp__step step; /* of one node, with its operands; what computes it is still open */
  tp_error *err;
} tp__making;

/* Adds the step, after steps that bring operands into form; nothing for a node that another one
 * does. */
tp_status tp__make_step(tp__making *m) TP_CHECKED;

/* ---- parts ---- */

const tp__node *tp__make_operand(const tp__making *m, int i);
tp_status tp__make_finish(tp__making *m, tp__step_fn run) TP_CHECKED;
/* Makes sure that operand i, or all of the first so many, lie at the kernels' pitch: only fed
 * values may not. */
tp_status tp__make_pitched(tp__making *m, int i) TP_CHECKED;
/* ... at any pitch of whole vectors: a part of a concat serves as it is. */
tp_status tp__make_wide(tp__making *m, int i) TP_CHECKED;
tp_status tp__make_all_pitched(tp__making *m, int operands) TP_CHECKED;
/* kind is GEMM or GEMM_TRANSPOSED; in: which operand is the kernel. */
tp_status tp__make_packed(tp__making *m, tp__derive kind, int in, long k, long n) TP_CHECKED;
/* Per-channel numbers made of operands first, first + 1...: factor and shift, each [pitch(c)]. */
tp_status tp__make_factors(tp__making *m, tp__derive kind, int first, int count) TP_CHECKED;

/* What of its operands is not already in its place is copied (plan_concat.c). */
tp_status tp__make_concat(tp__making *m) TP_CHECKED;

/* x * factor + shift, both derived from `count` operands after x. */
tp_status tp__make_with_factors(tp__making *m, tp__derive kind, int count) TP_CHECKED;

/* plan_winograd.c: v: the convolution to be done, forward or backwards; run: its step. */
tp_status tp__make_winograd(tp__making *m, const tp__conv *v, tp__step_fn run) TP_CHECKED;

tp_status tp__make_conv_input_grad(tp__making *m) TP_CHECKED;
tp_status tp__make_conv_kernel_grad(tp__making *m) TP_CHECKED;

/* plan_statistics.c */
tp_status tp__make_moments(tp__making *m) TP_CHECKED;
tp_status tp__make_gamma_grad(tp__making *m) TP_CHECKED;
tp_status tp__make_norm_grad(tp__making *m) TP_CHECKED;
/* Batch norm that only activations and their gradients read is part of each of those steps. */
tp_status tp__make_batch_norm(tp__making *m) TP_CHECKED;
/* ACTIVATION and ACTIVATION_GRAD; x: which operand the activation is of. */
tp_status tp__make_activation(tp__making *m, int x) TP_CHECKED;
/* BATCH_NORM_GAMMA_GRAD that sums the same dy on its way, or TP__NONE. */
tp__value tp__sums_with(const tp__plan *plan, tp__value sum);
tp_status tp__make_sum_to_last(tp__making *m) TP_CHECKED;
tp_status tp__make_matmul_input_grad(tp__making *m) TP_CHECKED;

/* Merges the last two steps when they are a 1 x 1 and a depthwise convolution of a large layer
 * (plan_bands.c). */
tp_status tp__plan_bands(tp__plan *plan, tp_error *err) TP_CHECKED;

#endif
