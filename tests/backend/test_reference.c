/* Proves each operator of TP__OP_MAP on tiny operands, in the plain and in the planned executor.
 * Expected numbers are worked out by hand (the sums are small enough to redo in the head;
 * logarithms are those of 1/8, 2/8 and 5/8); dropout's draws are those of tp__uniform, which
 * test_rng proves; flips and rotations are those of the host (tests/train/test_augment_on.c).
 * Hostile case: logits so large that a plain exponential overflows.
 */
#include "rig.h"

enum { VALUES = 24 };

/* kind: 'x' fed, 'l' labels fed, 'p' parameter; 0: no operand. */
struct tiny_operand {
  char kind;
  const char *dims;
  float value[VALUES];
};

struct tiny {
  const char *name;
  tp__op op;
  int64_t n;
  const char *shape; /* attr.shape, where the operator has it */
  tp__attr attr;
  struct tiny_operand in[TP__OPERANDS_MAX];
  int count; /* expected numbers */
  float expected[VALUES];
};

#define NINE                                                                                       \
  {                                                                                                \
    1, 2, 3, 4, 5, 6, 7, 8, 9                                                                      \
  }
#define LOGITS                                                                                     \
  {                                                                                                \
    0, 0.69314718f, 1.60943791f                                                                    \
  }

/* clang-format off */
static const struct tiny cases[] = {
    {"affine", TP__OP_AFFINE, 1, NULL, {.f = {0.5f, -1}}, {{'x', "N,1,1,3", {2, 4, 6}}}, 3,
     {0, 1, 2}},
    {"affine per channel", TP__OP_AFFINE, 1, NULL, {.f = {2, 3, 4}, .flag = true},
     {{'x', "N,2,1,3", {1, 2, 3, 4, 5, 6}}}, 6, {2, 6, 12, 8, 15, 24}},
    {"affine per channel with offsets", TP__OP_AFFINE, 1, NULL,
     {.f = {2, 3, 4}, .g = {1, 0, -1}, .flag = true}, {{'x', "N,1,1,3", {1, 2, 3}}}, 3,
     {3, 6, 11}},
    {"reverse", TP__OP_REVERSE, 2, NULL, {0}, {{'x', "N,1,1,3", {1, 2, 3, 4, 5, 6}}}, 6,
     {3, 2, 1, 6, 5, 4}},
    {"normalize, the deviation is at least 1e-7", TP__OP_NORMALIZE, 1, NULL, {0},
     {{'x', "N,1,1,3", {1, 2, 3}}, {'p', "3", {1, 1, 1}}, {'p', "3", {4, 1, 0}}}, 3, {0, 1, 2e7f}},
    {"pad", TP__OP_PAD, 2, NULL, {.pad = {1, 0, 0, 2}}, {{'x', "N,1,1,1", {5, 6}}}, 12,
     {0, 0, 0, 5, 0, 0, 0, 0, 0, 6, 0, 0}},
    {"crop", TP__OP_CROP, 1, NULL, {.pad = {1, 0, 0, 1}}, {{'x', "N,3,3,1", NINE}}, 4,
     {4, 5, 7, 8}},
    {"conv with bias, activation, residual", TP__OP_CONV, 1, NULL,
     {.stride = 1, .act = TP__ACT_RELU},
     {{'x', "N,3,3,1", NINE}, {'p', "2,2,1,1", {1, 0, 0, -1}}, {'p', "1", {5}},
      {'x', "N,2,2,1", {10, 20, 30, 40}}}, 4, {11, 21, 31, 41}},
    {"conv, the activation cuts before the residual is added", TP__OP_CONV, 1, NULL,
     {.stride = 1, .act = TP__ACT_RELU},
     {{'x', "N,3,3,1", NINE}, {'p', "2,2,1,1", {1, 0, 0, -1}}, {'p', "1", {3}},
      {'x', "N,2,2,1", {10, 20, 30, 40}}}, 4, {10, 20, 30, 40}},
    {"conv, the residual is added before the last activation", TP__OP_CONV, 1, NULL,
     {.stride = 1, .act = TP__ACT_RELU, .flag = true},
     {{'x', "N,3,3,1", NINE}, {'p', "2,2,1,1", {1, 0, 0, -1}}, {'p', "1", {3}},
      {'x', "N,2,2,1", {10, -20, 1.5f, 0.5f}}}, 4, {9, 0, 0.5f, 0}},
    {"conv with stride and padding", TP__OP_CONV, 1, NULL, {.stride = 2, .pad = {1, 1, 1, 1}},
     {{'x', "N,3,3,1", NINE}, {'p', "3,3,1,1", {1, 1, 1, 1, 1, 1, 1, 1, 1}}}, 4, {12, 16, 24, 28}},
    {"conv with more padding on the right", TP__OP_CONV, 1, NULL,
     {.stride = 2, .pad = {0, 1, 0, 1}}, {{'x', "N,2,2,1", {1, 2, 3, 4}}, {'p', "3,3,1,1", NINE}},
     1, {1 + 4 + 12 + 20}},
    {"conv 1x1 with scale", TP__OP_CONV, 2, NULL, {.stride = 1},
     {{'x', "N,1,1,2", {1, 2, 1, 2}}, {'p', "1,1,2,2", {1, 2, 3, 4}}, {0}, {0},
      {'x', "N,1,1,2", {10, 1, 0, 1}}}, 4, {16, 28, 6, 8}},
    {"conv 1x1 with scale, more pixels than outputs", TP__OP_CONV, 2, NULL, {.stride = 1},
     {{'x', "N,1,3,1", {1, 2, 3, 1, 2, 3}}, {'p', "1,1,1,1", {2}}, {0}, {0},
      {'x', "N,1,1,1", {10, 1}}}, 6, {20, 40, 60, 2, 4, 6}},
    {"depthwise", TP__OP_DEPTHWISE, 1, NULL, {.stride = 1, .act = TP__ACT_RELU},
     {{'x', "N,2,2,2", {1, 10, 2, 20, 3, 30, 4, 40}},
      {'p', "2,2,2,1", {1, 1, 0, 2, 0, 0, 1, 0}}, {'p', "2", {1, -60}}}, 2, {6, 0}},
    {"depthwise that is not square", TP__OP_DEPTHWISE, 1, NULL, {.stride = 1},
     {{'x', "N,2,2,1", {1, 2, 3, 4}}, {'p', "1,2,1,1", {10, 1}}}, 2, {12, 34}},
    {"bias_add", TP__OP_BIAS_ADD, 1, NULL, {0},
     {{'x', "N,2,2", {1, 2, 3, 4}}, {'p', "2", {10, 20}}}, 4, {11, 22, 13, 24}},
    {"batch_norm", TP__OP_BATCH_NORM, 2, NULL, {.f = {1}},
     {{'x', "N,2", {1, 1, 3, 3}}, {'p', "2", {2, 4}}, {'p', "2", {1, 0}}, {'p', "2", {1, 2}},
      {'p', "2", {3, 3}}}, 4, {1, -2, 3, 2}},
    {"batch_norm with activation", TP__OP_BATCH_NORM, 2, NULL, {.f = {1}, .act = TP__ACT_RELU},
     {{'x', "N,2", {1, 1, 3, 3}}, {'p', "2", {2, 4}}, {'p', "2", {1, 0}}, {'p', "2", {1, 2}},
      {'p', "2", {3, 3}}}, 4, {1, 0, 3, 2}},
    {"batch moments", TP__OP_BATCH_MOMENTS, 2, NULL, {0},
     {{'x', "N,2,2", {1, 10, 3, 10, 5, 10, 7, 30}}}, 4, {4, 15, 5, 75}},
    {"row", TP__OP_ROW, 1, NULL, {.row = 1}, {{'p', "2,3", {1, 2, 3, 4, 5, 6}}}, 3, {4, 5, 6}},
    {"batch norm's gradient through the batch", TP__OP_BATCH_NORM_FULL_GRAD, 2, NULL, {.f = {1}},
     {{'x', "N,2", {1, 0, 5, 0}}, {'x', "N,2", {6, 1, 0, 3}}, {'p', "2", {4, 2}},
      {'p', "2,2", {3, 0, 3, 3}}, {'p', "2", {6, 4}}, {'p', "2", {-6, 0}}}, 4, {0, -1, 0, 1}},
    {"moving average, first step", TP__OP_MOVING_AVERAGE, 1, NULL, {.f = {0.75f}},
     {{'p', "2", {4, 8}}, {'p', "2", {8, 0}}, {'p', "", {1}}}, 2, {8, 0}},
    {"sum of squares", TP__OP_SUM_SQUARES, 1, NULL, {0},
     {{'p', "2", {1, 2}}, {'p', "1,3", {3, 4, 5}}}, 1, {55}},
    {"sum of scalars", TP__OP_SUM_SCALARS, 1, NULL, {0}, {{'p', "", {3}}, {'p', "", {4}}}, 1, {7}},
    {"clip factor, over the norm", TP__OP_CLIP_FACTOR, 1, NULL, {.f = {2}}, {{'p', "", {64}}}, 1,
     {0.25f}},
    {"clip factor, under the norm", TP__OP_CLIP_FACTOR, 1, NULL, {.f = {2}}, {{'p', "", {1}}}, 1,
     {1}},
    {"scale", TP__OP_SCALE, 1, NULL, {0}, {{'p', "3", {1, 2, 3}}, {'p', "", {2}}}, 3, {2, 4, 6}},
    {"adam with weight decay", TP__OP_ADAM_PARAM, 1, NULL,
     {.f = {0.5f, 0.75f, 1}, .g = {0.5f}},
     {{'p', "1", {8}}, {'p', "1", {4}}, {'p', "1", {9}}, {'p', "", {0.5f}}, {'p', "", {1}}}, 1,
     {5.5f}},
    {"sgd with weight decay", TP__OP_SGD_PARAM, 1, NULL, {.g = {0.5f}},
     {{'p', "1", {8}}, {'p', "1", {1}}, {0}, {'p', "", {0.5f}}}, 1, {7}},
    {"moving average", TP__OP_MOVING_AVERAGE, 1, NULL, {.f = {0.75f}},
     {{'p', "2", {4, 8}}, {'p', "2", {8, 0}}}, 2, {5, 6}},
    {"activation swish", TP__OP_ACTIVATION, 1, NULL, {.act = TP__ACT_SWISH},
     {{'x', "N,3", {0, 1, -1}}}, 3, {0, 0.7310586f, -0.2689414f}},
    {"activation relu", TP__OP_ACTIVATION, 1, NULL, {.act = TP__ACT_RELU},
     {{'x', "N,3", {-1, 3, 7}}}, 3, {0, 3, 7}},
    {"activation relu6", TP__OP_ACTIVATION, 1, NULL, {.act = TP__ACT_RELU6},
     {{'x', "N,3", {-1, 3, 7}}}, 3, {0, 3, 6}},
    {"activation sigmoid", TP__OP_ACTIVATION, 1, NULL, {.act = TP__ACT_SIGMOID},
     {{'x', "N,2", {0, 1}}}, 2, {0.5f, 0.7310586f}},
    {"add", TP__OP_ADD, 1, NULL, {0}, {{'x', "N,2", {1, 2}}, {'x', "N,2", {10, 20}}}, 2, {11, 22}},
    {"mul", TP__OP_MUL, 1, NULL, {0}, {{'x', "N,2", {1, 2}}, {'x', "N,2", {10, 20}}}, 2, {10, 40}},
    {"mul over the pixels", TP__OP_MUL, 2, NULL, {0},
     {{'x', "N,1,2,2", {1, 2, 3, 4, 5, 6, 7, 8}}, {'x', "N,1,1,2", {10, 100, 1, 2}}}, 8,
     {10, 200, 30, 400, 5, 12, 7, 16}},
    {"global_pool", TP__OP_GLOBAL_POOL, 2, NULL, {0},
     {{'x', "N,2,1,2", {1, 10, 3, 30, 5, 50, 7, 70}}}, 4, {2, 20, 6, 60}},
    {"max_pool", TP__OP_MAX_POOL, 2, NULL, {.window = 2, .stride = 1},
     {{'x', "N,2,3,1", {1, 5, 2, 3, 4, 6, -1, -5, -2, -3, -4, -6}}}, 4, {5, 6, -1, -2}},
    {"max_pool, the padding's zeros take part", TP__OP_MAX_POOL, 1, NULL,
     {.window = 3, .stride = 2, .pad = {1, 1, 1, 1}},
     {{'x', "N,3,3,1", {-1, -2, 7, -4, -5, -6, -7, -8, -9}}}, 4, {0, 7, 0, 0}},
    {"max_pool, windows that leave pixels out", TP__OP_MAX_POOL, 1, NULL,
     {.window = 1, .stride = 2}, {{'x', "N,3,3,1", NINE}}, 4, {1, 3, 7, 9}},
    {"avg_pool", TP__OP_AVG_POOL, 1, NULL, {.window = 2, .stride = 2},
     {{'x', "N,3,4,1", {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9}}}, 2, {3.5f, 5.5f}},
    {"avg_pool, the padding's zeros take part", TP__OP_AVG_POOL, 1, NULL,
     {.window = 2, .stride = 2, .pad = {1, 0, 1, 0}}, {{'x', "N,3,3,1", NINE}}, 4,
     {0.25f, 1.25f, 2.75f, 7}},
    {"concat", TP__OP_CONCAT, 2, NULL, {0},
     {{'x', "N,1,2,1", {1, 2, 3, 4}}, {'x', "N,1,2,2", {5, 6, 7, 8, 9, 10, 11, 12}}}, 12,
     {1, 5, 6, 2, 7, 8, 3, 9, 10, 4, 11, 12}},
    {"slice_channels", TP__OP_SLICE_CHANNELS, 2, "N,1,1,2", {.first = 1},
     {{'x', "N,1,1,4", {1, 2, 3, 4, 5, 6, 7, 8}}}, 4, {2, 3, 6, 7}},
    {"max_pool_grad, the first of equal ones", TP__OP_MAX_POOL_GRAD, 1, NULL,
     {.window = 2, .stride = 1}, {{'x', "N,2,2,1", {1, 10, 100, 1000}},
      {'x', "N,3,3,1", {5, 5, 1, 2, 5, 6, 7, 5, 6}}}, 9, {1, 0, 0, 0, 0, 1010, 100, 0, 0}},
    {"max_pool_grad, what the padding wins is lost", TP__OP_MAX_POOL_GRAD, 1, NULL,
     {.window = 2, .stride = 2, .pad = {1, 0, 1, 0}}, {{'x', "N,2,2,1", {1, 10, 100, 1000}},
      {'x', "N,3,3,1", {0, -1, -2, -3, 2, 2, 1, 2, 2}}}, 9, {0, 0, 0, 0, 1000, 0, 100, 0, 0}},
    {"avg_pool_grad", TP__OP_AVG_POOL_GRAD, 1, "N,3,3,1", {.window = 2, .stride = 1},
     {{'x', "N,2,2,1", {4, 8, 0, 40}}}, 9, {1, 3, 2, 1, 13, 12, 0, 10, 10}},
    {"reshape", TP__OP_RESHAPE, 1, "N,3,2", {0}, {{'x', "N,2,3", {1, 2, 3, 4, 5, 6}}}, 6,
     {1, 2, 3, 4, 5, 6}},
    {"matmul", TP__OP_MATMUL, 2, NULL, {.act = TP__ACT_RELU},
     {{'x', "N,2", {1, 2, 0, 1}}, {'p', "2,3", {1, 2, 3, 4, 5, 6}}, {'p', "3", {0, 0, -20}}}, 6,
     {9, 12, 0, 4, 5, 0}},
    {"softmax", TP__OP_SOFTMAX, 2, NULL, {0},
     {{'x', "N,3", {0, 0.69314718f, 1.60943791f, 1000, 1000, 1000}}}, 6,
     {0.125f, 0.25f, 0.625f, 1 / 3.0f, 1 / 3.0f, 1 / 3.0f}},
    {"cross_entropy", TP__OP_CROSS_ENTROPY, 1, NULL, {0}, {{'x', "N,3", LOGITS}, {'l', "N", {2}}},
     1, {0.47000363f}},
    {"cross_entropy of huge logits", TP__OP_CROSS_ENTROPY, 2, NULL, {0},
     {{'x', "N,2", {1e4f, 0, -1e4f, 1e4f}}, {'l', "N", {0, 0}}}, 2, {0, 2e4f}},
    {"cross_entropy, smoothed", TP__OP_CROSS_ENTROPY, 1, NULL, {.f = {0.3f}},
     {{'x', "N,3", LOGITS}, {'l', "N", {2}}}, 1, {0.7225765f}},
    {"cross_entropy_grad", TP__OP_CROSS_ENTROPY_GRAD, 1, NULL, {.f = {0.3f}},
     {{'x', "N,3", LOGITS}, {'l', "N", {2}}, {'x', "N", {2}}}, 3, {0.05f, 0.3f, -0.35f}},
    {"weighted_sum", TP__OP_WEIGHTED_SUM, 3, NULL, {0},
     {{'x', "N", {1, 2, 3}}, {'x', "N", {1, 0.5f, 2}}}, 1, {8}},
    {"scale_rows", TP__OP_SCALE_ROWS, 2, NULL, {0}, {{'x', "", {3}}, {'x', "N", {1, 2}}}, 2,
     {3, 6}},
    {"conv_input_grad", TP__OP_CONV_INPUT_GRAD, 1, "N,3,3,1", {.stride = 1},
     {{'x', "N,2,2,1", {1, 0, 0, 10}}, {'p', "2,2,1,1", {1, 2, 3, 4}}}, 9,
     {1, 2, 0, 3, 14, 20, 0, 30, 40}},
    {"conv_input_grad with stride", TP__OP_CONV_INPUT_GRAD, 2, "N,3,3,1",
     {.stride = 2, .pad = {1, 1, 1, 1}},
     {{'x', "N,2,2,1", {1, 0, 0, 0, 0, 0, 0, 1}}, {'p', "3,3,1,1", NINE}}, 18,
     {5, 6, 0, 8, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 4, 5}},
    {"conv_input_grad 1x1", TP__OP_CONV_INPUT_GRAD, 1, "N,1,2,2", {.stride = 1},
     {{'x', "N,1,2,2", {1, 0, 1, 1}}, {'p', "1,1,2,2", {1, 2, 3, 4}}}, 4, {1, 3, 3, 7}},
    {"conv_kernel_grad", TP__OP_CONV_KERNEL_GRAD, 2, "2,2,1,1", {.stride = 1},
     {{'x', "N,3,3,1", {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
      {'x', "N,2,2,1", {1, 0, 0, 1, 0, 0, 100, 0}}}, 4, {106, 108, 112, 114}},
    {"conv_kernel_grad 1x1", TP__OP_CONV_KERNEL_GRAD, 2, "1,1,2,1", {.stride = 1},
     {{'x', "N,1,2,2", {1, 2, 3, 4, 1, 0, 0, 0}}, {'x', "N,1,2,1", {1, 10, 100, 0}}}, 2, {131, 42}},
    {"depthwise_input_grad", TP__OP_DEPTHWISE_INPUT_GRAD, 1, "N,3,3,1", {.stride = 1},
     {{'x', "N,2,2,1", {1, 0, 0, 10}}, {'p', "2,2,1,1", {1, 2, 3, 4}}}, 9,
     {1, 2, 0, 3, 14, 20, 0, 30, 40}},
    {"depthwise_input_grad with stride", TP__OP_DEPTHWISE_INPUT_GRAD, 1, "N,2,2,2",
     {.stride = 2, .pad = {0, 1, 0, 1}},
     {{'x', "N,1,1,2", {1, 10}},
      {'p', "3,3,2,1", {1, 1, 2, 1, 3, 1, 4, 1, 5, 2, 6, 1, 7, 1, 8, 1, 9, 1}}}, 8,
     {1, 10, 2, 10, 4, 10, 5, 20}},
    {"depthwise_kernel_grad", TP__OP_DEPTHWISE_KERNEL_GRAD, 1, "2,2,2,1", {.stride = 1},
     {{'x', "N,2,2,2", {1, 10, 2, 20, 3, 30, 4, 40}}, {'x', "N,1,1,2", {2, 3}}}, 8,
     {2, 30, 4, 60, 6, 90, 8, 120}},
    {"sum_to_last", TP__OP_SUM_TO_LAST, 2, NULL, {0},
     {{'x', "N,1,2,2", {1, 2, 3, 4, 5, 6, 7, 8}}}, 2, {16, 20}},
    {"batch_norm_input_grad", TP__OP_BATCH_NORM_INPUT_GRAD, 1, NULL, {.f = {1}},
     {{'x', "N,2", {1, 1}}, {'p', "2", {2, 5}}, {'p', "2", {3, 0}}}, 2, {1, 5}},
    {"batch_norm_gamma_grad", TP__OP_BATCH_NORM_GAMMA_GRAD, 2, NULL, {.f = {1}},
     {{'x', "N,2", {1, 5, 3, 5}}, {'x', "N,2", {1, 1, 10, 2}}, {'p', "2", {1, 1}},
      {'p', "2", {3, 0}}}, 2, {10, 12}},
    {"activation_grad swish", TP__OP_ACTIVATION_GRAD, 1, NULL, {.act = TP__ACT_SWISH},
     {{'x', "N,2", {2, 1}}, {'x', "N,2", {0, 1}}}, 2, {1, 0.9276706f}},
    {"activation_grad relu6", TP__OP_ACTIVATION_GRAD, 1, NULL, {.act = TP__ACT_RELU6},
     {{'x', "N,3", {2, 2, 2}}, {'x', "N,3", {-1, 1, 7}}}, 3, {0, 2, 0}},
    {"activation_grad relu", TP__OP_ACTIVATION_GRAD, 1, NULL, {.act = TP__ACT_RELU},
     {{'x', "N,3", {2, 2, 2}}, {'x', "N,3", {-1, 1, 7}}}, 3, {0, 2, 2}},
    {"activation_grad sigmoid", TP__OP_ACTIVATION_GRAD, 1, NULL, {.act = TP__ACT_SIGMOID},
     {{'x', "N,1", {4}}, {'x', "N,1", {0}}}, 1, {1}},
    {"sum_spatial", TP__OP_SUM_SPATIAL, 1, NULL, {.f = {0.5f}}, {{'x', "N,2,1,2", {1, 2, 3, 4}}},
     2, {2, 3}},
    {"broadcast_spatial", TP__OP_BROADCAST_SPATIAL, 2, "N,1,2,2", {.f = {2}},
     {{'x', "N,2", {1, 2, 3, 4}}}, 8, {2, 4, 2, 4, 6, 8, 6, 8}},
    {"matmul_input_grad", TP__OP_MATMUL_INPUT_GRAD, 1, NULL, {0},
     {{'x', "N,3", {1, 0, 10}}, {'p', "2,3", {1, 2, 3, 4, 5, 6}}}, 2, {31, 64}},
    {"matmul_kernel_grad", TP__OP_MATMUL_KERNEL_GRAD, 2, NULL, {0},
     {{'x', "N,2", {1, 2, 3, 4}}, {'x', "N,2", {1, 10, 0, 1}}}, 4, {1, 13, 2, 24}},
    {"fold_kernel", TP__OP_FOLD_KERNEL, 1, NULL, {.f = {1}},
     {{'p', "1,1,2,2", {1, 2, 3, 4}}, {'p', "2", {2, 4}}, {'p', "2", {3, 0}}}, 4, {1, 8, 3, 16}},
    {"fold_kernel, depthwise", TP__OP_FOLD_KERNEL, 1, NULL, {.f = {1}, .depthwise = true},
     {{'p', "2,1,2,1", {1, 2, 3, 4}}, {'p', "2", {2, 4}}, {'p', "2", {3, 0}}}, 4, {1, 8, 3, 16}},
    {"fold_bias", TP__OP_FOLD_BIAS, 1, NULL, {.f = {1}},
     {{'p', "1", {2}}, {'p', "1", {1}}, {'p', "1", {3}}, {'p', "1", {3}}}, 1, {-2}},
    {"fold_bias with a bias", TP__OP_FOLD_BIAS, 1, NULL, {.f = {1}},
     {{'p', "1", {2}}, {'p', "1", {1}}, {'p', "1", {3}}, {'p', "1", {3}}, {'p', "1", {5}}}, 1, {3}},
    {"adam_m", TP__OP_ADAM_M, 1, NULL, {.f = {0.75f}}, {{'p', "2", {1, 0}}, {'p', "2", {5, 4}}},
     2, {2, 1}},
    {"adam_v", TP__OP_ADAM_V, 1, NULL, {.f = {0.5f}}, {{'p', "2", {1, 0}}, {'p', "2", {3, 2}}}, 2,
     {5, 2}},
    {"adam_param", TP__OP_ADAM_PARAM, 1, NULL, {.f = {0.5f, 0.75f, 1}},
     {{'p', "2", {1, 2}}, {'p', "2", {3, 6}}, {'p', "2", {4, 25}}, {'x', "", {0.1f}},
      {'x', "", {1}}}, 2, {0.9f, 1.9f}},
    {"adam_param, second step", TP__OP_ADAM_PARAM, 1, NULL, {.f = {0.5f, 0.75f, 1}},
     {{'p', "1", {1}}, {'p', "1", {3}}, {'p', "1", {4}}, {'x', "", {0.1f}}, {'x', "", {2}}}, 1,
     {0.9118083f}},
    {"sgd_momentum", TP__OP_SGD_MOMENTUM, 1, NULL, {.f = {0.5f}},
     {{'p', "1", {4}}, {'p', "1", {10}}, {'x', "", {0.1f}}}, 1, {1}},
    {"sgd_param", TP__OP_SGD_PARAM, 1, NULL, {0}, {{'p', "1", {4}}, {'p', "1", {-1}}}, 1, {3}},
    {"sgd_param, Nesterov", TP__OP_SGD_PARAM, 1, NULL, {.f = {0.5f}, .flag = true},
     {{'p', "1", {4}}, {'p', "1", {2}}, {'p', "1", {10}}, {'x', "", {0.1f}}}, 1, {4}},
};
/* clang-format on */
enum { CASES = sizeof cases / sizeof cases[0] };

static tp__graph *build_tiny(const struct tiny *t)
{
  tp__graph *g = new_graph();
  tp__value in[TP__OPERANDS_MAX];
  tp__attr attr = t->attr;
  int n_in = 0;
  if (t->shape != NULL) attr.shape = shape(t->shape);
  for (int i = 0; i < TP__OPERANDS_MAX; i++) {
    const struct tiny_operand *o = &t->in[i];
    char name[] = "operand0";
    name[7] = (char)('0' + i);
    in[i] = TP__NONE;
    if (o->kind == 'p') in[i] = param(g, name, o->dims);
    if (o->kind == 'x' || o->kind == 'l')
      in[i] = typed_input(g, name, o->kind == 'l' ? TP__I32 : TP__F32, o->dims);
    if (o->kind != 0) n_in = i + 1;
  }
  output(g, "y", add(g, t->op, &attr, n_in, in));
  return g;
}

/* Operands' values go where rig_new put noise. */
static void set_operands(rig *r, const struct tiny *t)
{
  tp_error err = {0};
  tp__tensors set = {0};
  initial_parameters(r->graph, &set);
  for (tp__value v = 0; v < r->graph->count; v++) {
    const tp__node *n = &r->graph->node[v];
    if (n->op != TP__OP_PARAM && n->op != TP__OP_INPUT) continue;
    const float *value = t->in[n->name[7] - '0'].value;
    size_t count = tp__shape_elements(&n->shape, r->n);
    assert_true(count <= VALUES);
    float *to = n->op == TP__OP_INPUT ? r->input[v] : tp__tensors_find(&set, n->name)->data;
    for (size_t i = 0; i < count; i++) {
      if (n->dtype == TP__I32)
        ((int32_t *)to)[i] = (int32_t)value[i];
      else
        to[i] = value[i];
    }
  }
  assert_ok(r->backend->state_write(r->state, &set, &err));
  tp__tensors_free(&set);
}

static void each_operator(void **state)
{
  (void)state;
  for (int i = 0; i < CASES; i++) {
    const struct tiny *t = &cases[i];
    for (int reference = 0; reference < 2; reference++) {
      tp__graph *g = build_tiny(t);
      rig r = rig_new(g, 1, t->n, reference);
      set_operands(&r, t);
      rig_run(&r);
      if ((int)r.elements[0] != t->count)
        fail_msg("%s gives %zu numbers, not %d", t->name, r.elements[0], t->count);
      for (int j = 0; j < t->count; j++)
        if (!(fabsf(r.output[0][j] - t->expected[j]) <= 2e-6f * fmaxf(1, fabsf(t->expected[j]))))
          fail_msg("%s (%s): number %d is %.8g, not %.8g", t->name, reference ? "plain" : "planned",
                   j, r.output[0][j], t->expected[j]);
      rig_free(&r);
      tp__graph_free(g);
    }
  }
}

static void each_operator_has_a_case(void **state)
{
  (void)state;
  for (int op = 0; op < TP__OP_COUNT; op++) {
    bool there = op == TP__OP_INPUT || op == TP__OP_PARAM || op == TP__OP_CONSTANT ||
                 op == TP__OP_DROPOUT || op == TP__OP_RANDOM_FLIP || op == TP__OP_RANDOM_ROTATION;
    for (int i = 0; i < CASES; i++) there = there || (int)cases[i].op == op;
    if (!there) fail_msg("%s has no case", tp__op_name((tp__op)op));
  }
}

/* Kept where the draw of element j is at least the rate, and divided by the kept share; by example,
 * by layer. */
static void dropout(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  output(g, "y",
         NODE(g, DROPOUT, (.f = {0.25f}, .draw = 3), input(g, "x", "N,50"),
              typed_input(g, "keys", TP__U32, "N,2")));
  for (int reference = 0; reference < 2; reference++) {
    rig r = rig_new(g, 2, 7, reference);
    rig_run(&r);
    int kept = 0;
    for (size_t i = 0; i < 7; i++) {
      for (uint32_t j = 0; j < 50; j++) {
        tp__key key = {{(uint32_t)(2 * i) * 2654435761u, (uint32_t)(2 * i + 1) * 2654435761u}};
        bool keeps = tp__uniform(key, TP__DRAW_DROPOUT | 3u << 8, j) >= 0.25f;
        float expected = keeps ? noise("x", i * 50 + j) / 0.75f : 0;
        assert_true(fabsf(r.output[0][i * 50 + j] - expected) < 1e-6f);
        kept += keeps;
      }
    }
    assert_true(kept > 220 && kept < 300); /* of 350; the mean is 262 */
    rig_free(&r);
  }
  tp__graph_free(g);
}

/* Images, even in a wide batch, go through a constant and a pool of many ones: sums are not lost
 * (case B25). */
static void long_sums(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  output(g, "mean",
         NODE(g, GLOBAL_POOL, (0),
              NODE(g, BIAS_ADD, (0), input(g, "x", "N,64,64,3"), param(g, "b", "3"))));
  for (int reference = 0; reference < 2; reference++) {
    rig r = rig_new(g, 1, 2, reference);
    tp_error err = {0};
    tp__tensors set = {0};
    initial_parameters(g, &set);
    for (int c = 0; c < 3; c++) ((float *)set.item[0].data)[c] = 1;
    assert_ok(r.backend->state_write(r.state, &set, &err));
    tp__tensors_free(&set);
    for (tp__value v = 0; v < g->count; v++)
      if (g->node[v].op == TP__OP_INPUT) memset(r.input[v], 0, 2 * 64 * 64 * 3 * sizeof(float));
    rig_run(&r);
    for (int i = 0; i < 6; i++) assert_true(r.output[0][i] == 1);
    rig_free(&r);
  }
  tp__graph_free(g);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_operator),
      cmocka_unit_test(each_operator_has_a_case),
      cmocka_unit_test(dropout),
      cmocka_unit_test(long_sums),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
