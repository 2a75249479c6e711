/* reference - the table of plain functions; see reference.h */
#include "reference.h"

static const tp__ref_fn table[TP__OP_COUNT] = {
    [TP__OP_AFFINE] = tp__ref_affine,
    [TP__OP_REVERSE] = tp__ref_reverse,
    [TP__OP_NORMALIZE] = tp__ref_normalize,
    [TP__OP_PAD] = tp__ref_pad,
    [TP__OP_CONV] = tp__ref_conv,
    [TP__OP_DEPTHWISE] = tp__ref_depthwise,
    [TP__OP_BIAS_ADD] = tp__ref_bias_add,
    [TP__OP_BATCH_NORM] = tp__ref_batch_norm,
    [TP__OP_ACTIVATION] = tp__ref_activation,
    [TP__OP_ADD] = tp__ref_add,
    [TP__OP_MUL] = tp__ref_mul,
    [TP__OP_GLOBAL_POOL] = tp__ref_global_pool,
    [TP__OP_RESHAPE] = tp__ref_reshape,
    [TP__OP_MATMUL] = tp__ref_matmul,
    [TP__OP_DROPOUT] = tp__ref_dropout,
    [TP__OP_SOFTMAX] = tp__ref_softmax,
    [TP__OP_CROSS_ENTROPY] = tp__ref_cross_entropy,
    [TP__OP_WEIGHTED_SUM] = tp__ref_weighted_sum,
    [TP__OP_CONV_INPUT_GRAD] = tp__ref_conv_input_grad,
    [TP__OP_CONV_KERNEL_GRAD] = tp__ref_conv_kernel_grad,
    [TP__OP_DEPTHWISE_INPUT_GRAD] = tp__ref_depthwise_input_grad,
    [TP__OP_DEPTHWISE_KERNEL_GRAD] = tp__ref_depthwise_kernel_grad,
    [TP__OP_SUM_TO_LAST] = tp__ref_sum_to_last,
    [TP__OP_BATCH_NORM_INPUT_GRAD] = tp__ref_batch_norm_input_grad,
    [TP__OP_BATCH_NORM_GAMMA_GRAD] = tp__ref_batch_norm_gamma_grad,
    [TP__OP_ACTIVATION_GRAD] = tp__ref_activation_grad,
    [TP__OP_SUM_SPATIAL] = tp__ref_sum_spatial,
    [TP__OP_BROADCAST_SPATIAL] = tp__ref_broadcast_spatial,
    [TP__OP_MATMUL_INPUT_GRAD] = tp__ref_matmul_input_grad,
    [TP__OP_MATMUL_KERNEL_GRAD] = tp__ref_matmul_kernel_grad,
    [TP__OP_CROSS_ENTROPY_GRAD] = tp__ref_cross_entropy_grad,
    [TP__OP_SCALE_ROWS] = tp__ref_scale_rows,
    [TP__OP_CROP] = tp__ref_crop,
    [TP__OP_FOLD_KERNEL] = tp__ref_fold_kernel,
    [TP__OP_FOLD_BIAS] = tp__ref_fold_bias,
    [TP__OP_ADAM_M] = tp__ref_adam_m,
    [TP__OP_ADAM_V] = tp__ref_adam_v,
    [TP__OP_ADAM_PARAM] = tp__ref_adam_param,
    [TP__OP_SGD_MOMENTUM] = tp__ref_sgd_momentum,
    [TP__OP_SGD_PARAM] = tp__ref_sgd_param,
};

tp__ref_fn tp__reference(tp__op op)
{
  return op >= 0 && op < TP__OP_COUNT ? table[op] : NULL;
}
