/* infer_table - one row per operator; see infer.h */
#include "infer.h"

static const char *const op_name[TP__OP_COUNT] = {
#define TP__OP_NAME_(name, text) text,
    TP__OP_MAP(TP__OP_NAME_)
#undef TP__OP_NAME_
};

/* clang-format off */
static const tp__op_info op_info[TP__OP_COUNT] = {
  [TP__OP_INPUT] = {0, 0, false, NULL, {NULL}, 0, TP__F32},
  [TP__OP_PARAM] = {0, 0, false, NULL, {NULL}, 0, TP__F32},
#define ROW(name, low, high, joint, fn, ...)                                                       \
  [TP__OP_##name] = {low, high, joint, tp__infer_##fn, {__VA_ARGS__}, 0, TP__F32}
  ROW(CONSTANT, 0, 0, false, constant, NULL),
  ROW(AFFINE, 1, 1, false, affine, "x"),
  ROW(REVERSE, 1, 1, false, reverse, "x"),
  ROW(NORMALIZE, 3, 3, false, normalize, "x", "mean", "variance"),
  [TP__OP_RANDOM_FLIP] = {2, 2, false, tp__infer_random_flip, {"x", "keys"}, 1, TP__U32},
  [TP__OP_RANDOM_ROTATION] = {2, 2, false, tp__infer_random_rotation, {"x", "keys"}, 1, TP__U32},
  ROW(PAD, 1, 1, false, pad, "x"),
  ROW(CONV, 2, 5, false, conv, "x", "kernel", "bias", "residual", "scale"),
  ROW(DEPTHWISE, 2, 3, false, depthwise, "x", "kernel", "bias"),
  ROW(BIAS_ADD, 2, 2, false, bias_add, "x", "bias"),
  ROW(BATCH_NORM, 5, 5, false, batch_norm, "x", "gamma", "beta", "mean", "variance"),
  ROW(ACTIVATION, 1, 1, false, activation, "x"),
  ROW(ADD, 2, 2, false, add, "a", "b"),
  ROW(MUL, 2, 2, false, mul, "a", "b"),
  ROW(GLOBAL_POOL, 1, 1, false, global_pool, "x"),
  ROW(MAX_POOL, 1, 1, false, pool, "x"),
  ROW(AVG_POOL, 1, 1, false, pool, "x"),
  ROW(CONCAT, 2, 2, false, concat, "a", "b"),
  ROW(RESHAPE, 1, 1, false, reshape, "x"),
  ROW(MATMUL, 2, 3, false, matmul, "x", "kernel", "bias"),
  [TP__OP_DROPOUT] = {2, 2, false, tp__infer_dropout, {"x", "keys"}, 1, TP__U32},
  ROW(SOFTMAX, 1, 1, false, softmax, "x"),
  [TP__OP_CROSS_ENTROPY] = {2, 2, false, tp__infer_cross_entropy, {"logits", "labels"}, 1, TP__I32},
  ROW(WEIGHTED_SUM, 2, 2, true, weighted_sum, "values", "weights"),
  ROW(CONV_INPUT_GRAD, 2, 2, false, conv_input_grad, "dy", "kernel"),
  ROW(CONV_KERNEL_GRAD, 2, 2, true, conv_kernel_grad, "x", "dy"),
  ROW(DEPTHWISE_INPUT_GRAD, 2, 2, false, depthwise_input_grad, "dy", "kernel"),
  ROW(DEPTHWISE_KERNEL_GRAD, 2, 2, true, depthwise_kernel_grad, "x", "dy"),
  ROW(SUM_TO_LAST, 1, 1, true, sum_to_last, "dy"),
  ROW(BATCH_NORM_INPUT_GRAD, 3, 3, false, batch_norm_input_grad, "dy", "gamma", "variance"),
  ROW(BATCH_NORM_GAMMA_GRAD, 4, 4, true, batch_norm_gamma_grad, "x", "dy", "mean", "variance"),
  ROW(ACTIVATION_GRAD, 2, 2, false, activation_grad, "dy", "x"),
  ROW(SUM_SPATIAL, 1, 1, false, sum_spatial, "x"),
  ROW(BROADCAST_SPATIAL, 1, 1, false, broadcast_spatial, "x"),
  ROW(MATMUL_INPUT_GRAD, 2, 2, false, matmul_input_grad, "dy", "kernel"),
  ROW(MATMUL_KERNEL_GRAD, 2, 2, true, matmul_kernel_grad, "x", "dy"),
  [TP__OP_CROSS_ENTROPY_GRAD] = {3, 3, false, tp__infer_cross_entropy_grad,
                                 {"logits", "labels", "dloss"}, 1, TP__I32},
  ROW(SCALE_ROWS, 2, 2, false, scale_rows, "dsum", "weights"),
  ROW(CROP, 1, 1, false, crop, "x"),
  ROW(MAX_POOL_GRAD, 2, 2, false, max_pool_grad, "dy", "x"),
  ROW(AVG_POOL_GRAD, 1, 1, false, avg_pool_grad, "dy"),
  ROW(SLICE_CHANNELS, 1, 1, false, slice_channels, "x"),
  ROW(FOLD_KERNEL, 3, 3, false, fold_kernel, "kernel", "gamma", "variance"),
  ROW(FOLD_BIAS, 4, 5, false, fold_bias, "gamma", "beta", "mean", "variance", "bias"),
  ROW(ADAM_M, 2, 2, false, adam_m, "m", "g"),
  ROW(ADAM_V, 2, 2, false, adam_v, "v", "g"),
  ROW(ADAM_PARAM, 5, 5, false, adam_param, "p", "m", "v", "rate", "step"),
  ROW(SGD_MOMENTUM, 3, 3, false, sgd_momentum, "velocity", "g", "rate"),
  ROW(SGD_PARAM, 2, 4, false, sgd_param, "p", "velocity", "g", "rate"),
  ROW(BATCH_MOMENTS, 1, 1, true, batch_moments, "x"),
  ROW(ROW, 1, 1, false, row, "x"),
  ROW(BATCH_NORM_FULL_GRAD, 6, 6, false, batch_norm_full_grad, "x", "dy", "gamma", "moments",
      "beta_grad", "gamma_grad"),
  ROW(MOVING_AVERAGE, 2, 3, false, moving_average, "a", "x", "step"),
  ROW(SUM_SQUARES, 1, 6, false, sum_squares, "a", "b", "c", "d", "e", "f"),
  ROW(SUM_SCALARS, 1, 6, false, sum_scalars, "a", "b", "c", "d", "e", "f"),
  ROW(CLIP_FACTOR, 1, 1, false, clip_factor, "s"),
  ROW(SCALE, 2, 2, false, scale, "x", "factor"),
#undef ROW
};
/* clang-format on */

const tp__op_info *tp__op_info_of(tp__op op)
{
  return (unsigned)op < TP__OP_COUNT ? &op_info[op] : NULL;
}

const char *tp__op_name(tp__op op)
{
  return (unsigned)op < TP__OP_COUNT ? op_name[op] : "unknown operator";
}

bool tp__op_is_joint(tp__op op)
{
  return (unsigned)op < TP__OP_COUNT && op_info[op].joint;
}

const char *tp__act_name(tp__act act)
{
  switch (act) {
  case TP__ACT_NONE:
    return "none";
  case TP__ACT_SWISH:
    return "swish";
  case TP__ACT_RELU:
    return "relu";
  case TP__ACT_RELU6:
    return "relu6";
  case TP__ACT_SIGMOID:
    return "sigmoid";
  }
  return "unknown activation";
}
