/* test_infer - each operator accepts the shapes it is defined for and gives the shape that follows;
 * each kind of misfit is refused with a text that names operator, operand and shapes. Expected
 * shapes: the definitions in graph.h worked out by hand (convolution: (size + padding - kernel) /
 * stride + 1, rounded down, as Keras documents). */
#include <math.h>

#include "building.h"

/* Operands as text, separated by "|": "-" absent; "i32 " or "u32 " before a shape that is not f32.
 */
struct row {
  tp__op op;
  const char *operands;
  tp__attr attr;
  const char *expected; /* the shape as printed, or a part of the error */
};

#define S(...)                                                                                     \
  {                                                                                                \
    .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ }             \
  }
#define N TP__N

static tp__value operand(tp__graph *g, const char *text, int index)
{
  char name[16];
  snprintf(name, sizeof name, "v%d", index);
  if (text[0] == '-') return TP__NONE;
  if (text[0] == '.') return param(g, name, "");
  if (strncmp(text, "i32 ", 4) == 0) return typed_input(g, name, TP__I32, text + 4);
  if (strncmp(text, "u32 ", 4) == 0) return typed_input(g, name, TP__U32, text + 4);
  return text[0] == 'N' ? input(g, name, text) : param(g, name, text);
}

static tp_status try_row(const struct row *row, tp__shape *result, tp_error *err)
{
  tp__graph *g = new_graph();
  tp__value in[TP__OPERANDS_MAX + 1], v = TP__NONE;
  int n = 0;
  char copy[256];
  snprintf(copy, sizeof copy, "%s", row->operands);
  char *rest = copy[0] != '\0' ? copy : NULL;
  for (; rest != NULL; n++) in[n] = operand(g, strsep(&rest, "|"), n);
  int32_t before = g->count;
  tp_status status = tp__graph_add(g, row->op, in, n, &row->attr, &v, err);
  assert_int_equal(g->count, status == TP_OK ? before + 1 : before);
  if (status == TP_OK) {
    assert_int_equal(g->node[v].dtype, TP__F32);
    *result = g->node[v].shape;
  }
  tp__graph_free(g);
  return status;
}

static void check_good(const struct row *row)
{
  tp_error err = {0};
  tp__shape result = {0};
  char text[96];
  tp_status status = try_row(row, &result, &err);
  if (status != TP_OK) fail_msg("%s(%s): %s", tp__op_name(row->op), row->operands, err.text);
  if (strcmp(tp__shape_text(&result, text), row->expected) != 0)
    fail_msg("%s(%s) gives %s, expected %s", tp__op_name(row->op), row->operands, text,
             row->expected);
}

static void check_bad(const struct row *row)
{
  tp_error err = {0};
  tp__shape result = {0};
  tp_status status = try_row(row, &result, &err);
  if (status == TP_OK) fail_msg("%s(%s) was accepted", tp__op_name(row->op), row->operands);
  if (strstr(err.text, row->expected) == NULL || strstr(err.text, tp__op_name(row->op)) == NULL)
    fail_msg("%s(%s): \"%s\", expected \"%s\" in it", tp__op_name(row->op), row->operands, err.text,
             row->expected);
}

#define CHECK(rows, check)                                                                         \
  for (size_t i = 0; i < sizeof(rows) / sizeof((rows)[0]); i++) check(&(rows)[i])

/* A "." stands for a scalar. */
static void good_shapes(void **state)
{
  (void)state;
  static const struct row rows[] = {
      {TP__OP_CONSTANT, "", {.f = {3}}, "()"},
      {TP__OP_AFFINE, "N,8,8,3", {.f = {2, 1}}, "(None, 8, 8, 3)"},
      {TP__OP_AFFINE, "N,8,8,3", {.f = {2, 1, 3}, .flag = true}, "(None, 8, 8, 3)"},
      {TP__OP_REVERSE, "N,8,8,3", {0}, "(None, 8, 8, 3)"},
      {TP__OP_NORMALIZE, "N,8,8,3|3|3", {0}, "(None, 8, 8, 3)"},
      {TP__OP_RANDOM_FLIP, "N,8,8,7|u32 N,2", {0}, "(None, 8, 8, 7)"},
      {TP__OP_RANDOM_ROTATION, "N,8,9,3|u32 N,2", {.f = {0.125f}}, "(None, 8, 9, 3)"},
      {TP__OP_PAD, "N,8,8,3", {.pad = {0, 1, 2, 3}}, "(None, 9, 13, 3)"},
      {TP__OP_CONV,
       "N,192,192,3|3,3,3,32",
       {.stride = 2, .pad = {0, 1, 0, 1}},
       "(None, 96, 96, 32)"},
      {TP__OP_CONV, "N,7,9,4|1,1,4,6", {.stride = 1}, "(None, 7, 9, 6)"},
      {TP__OP_CONV, "N,7,9,4|3,5,4,6|6", {.stride = 2}, "(None, 3, 3, 6)"},
      {TP__OP_CONV, "N,5,5,4|1,1,4,6|-|N,5,5,6|N,1,1,4", {.stride = 1}, "(None, 5, 5, 6)"},
      {TP__OP_CONV, "N,5,5,4|1,1,4,6|-|-|-", {.stride = 1}, "(None, 5, 5, 6)"},
      {TP__OP_DEPTHWISE,
       "N,12,12,80|5,5,80,1|80",
       {.stride = 2, .pad = {2, 2, 2, 2}},
       "(None, 6, 6, 80)"},
      {TP__OP_BIAS_ADD, "N,6|6", {0}, "(None, 6)"},
      {TP__OP_BATCH_NORM, "N,4,4,6|6|6|6|6", {.f = {0.001f}}, "(None, 4, 4, 6)"},
      {TP__OP_ACTIVATION, "N,4", {.act = TP__ACT_RELU6}, "(None, 4)"},
      {TP__OP_ADD, "3,4|3,4", {0}, "(3, 4)"},
      {TP__OP_MUL, "N,4,4,6|N,4,4,6", {0}, "(None, 4, 4, 6)"},
      {TP__OP_MUL, "N,4,4,6|N,1,1,6", {0}, "(None, 4, 4, 6)"},
      {TP__OP_GLOBAL_POOL, "N,4,4,6", {0}, "(None, 6)"},
      {TP__OP_MAX_POOL,
       "N,112,112,64",
       {.window = 3, .stride = 2, .pad = {1, 1, 1, 1}},
       "(None, 56, 56, 64)"},
      {TP__OP_AVG_POOL, "N,7,9,6", {.window = 2, .stride = 2}, "(None, 3, 4, 6)"},
      {TP__OP_CONCAT, "N,7,9,6|N,7,9,1", {0}, "(None, 7, 9, 7)"},
      {TP__OP_RESHAPE, "N,6", {.shape = S(N, 1, 1, 6)}, "(None, 1, 1, 6)"},
      {TP__OP_MATMUL, "N,6|6,10|10", {.act = TP__ACT_SWISH}, "(None, 10)"},
      {TP__OP_DROPOUT, "N,6|u32 N,2", {.f = {0.2f}}, "(None, 6)"},
      {TP__OP_SOFTMAX, "N,6", {0}, "(None, 6)"},
      {TP__OP_CROSS_ENTROPY, "N,6|i32 N", {.f = {0.1f}}, "(None,)"},
      {TP__OP_WEIGHTED_SUM, "N|N", {0}, "()"},
      {TP__OP_CONV_INPUT_GRAD,
       "N,96,96,32|3,3,3,32",
       {.stride = 2, .pad = {0, 1, 0, 1}, .shape = S(N, 192, 192, 3)},
       "(None, 192, 192, 3)"},
      {TP__OP_CONV_KERNEL_GRAD,
       "N,192,192,3|N,96,96,32",
       {.stride = 2, .pad = {0, 1, 0, 1}, .shape = S(3, 3, 3, 32)},
       "(3, 3, 3, 32)"},
      {TP__OP_DEPTHWISE_INPUT_GRAD,
       "N,6,6,8|5,5,8,1",
       {.stride = 2, .pad = {2, 2, 2, 2}, .shape = S(N, 12, 12, 8)},
       "(None, 12, 12, 8)"},
      {TP__OP_DEPTHWISE_KERNEL_GRAD,
       "N,12,12,8|N,6,6,8",
       {.stride = 2, .pad = {2, 2, 2, 2}, .shape = S(5, 5, 8, 1)},
       "(5, 5, 8, 1)"},
      {TP__OP_SUM_TO_LAST, "N,4,4,6", {0}, "(6,)"},
      {TP__OP_BATCH_NORM_INPUT_GRAD, "N,4,4,6|6|6", {0}, "(None, 4, 4, 6)"},
      {TP__OP_BATCH_NORM_GAMMA_GRAD, "N,4,4,6|N,4,4,6|6|6", {0}, "(6,)"},
      {TP__OP_ACTIVATION_GRAD, "N,6|N,6", {.act = TP__ACT_SWISH}, "(None, 6)"},
      {TP__OP_SUM_SPATIAL, "N,4,4,6", {.f = {1}}, "(None, 1, 1, 6)"},
      {TP__OP_BROADCAST_SPATIAL,
       "N,6",
       {.f = {0.0625f}, .shape = S(N, 4, 4, 6)},
       "(None, 4, 4, 6)"},
      {TP__OP_BROADCAST_SPATIAL, "N,1,1,6", {.f = {1}, .shape = S(N, 4, 4, 6)}, "(None, 4, 4, 6)"},
      {TP__OP_MATMUL_INPUT_GRAD, "N,10|6,10", {0}, "(None, 6)"},
      {TP__OP_MATMUL_KERNEL_GRAD, "N,6|N,10", {0}, "(6, 10)"},
      {TP__OP_CROSS_ENTROPY_GRAD, "N,6|i32 N|N", {0}, "(None, 6)"},
      {TP__OP_SCALE_ROWS, ".|N", {0}, "(None,)"},
      {TP__OP_CROP, "N,9,13,3", {.pad = {0, 1, 2, 3}}, "(None, 8, 8, 3)"},
      {TP__OP_MAX_POOL_GRAD,
       "N,56,56,64|N,112,112,64",
       {.window = 3, .stride = 2, .pad = {1, 1, 1, 1}},
       "(None, 112, 112, 64)"},
      {TP__OP_AVG_POOL_GRAD,
       "N,3,4,6",
       {.window = 2, .stride = 2, .shape = S(N, 7, 9, 6)},
       "(None, 7, 9, 6)"},
      {TP__OP_SLICE_CHANNELS, "N,3,4,6", {.first = 2, .shape = S(N, 3, 4, 4)}, "(None, 3, 4, 4)"},
      {TP__OP_FOLD_KERNEL, "3,3,4,6|6|6", {0}, "(3, 3, 4, 6)"},
      {TP__OP_FOLD_KERNEL, "3,3,4,1|4|4", {.depthwise = true}, "(3, 3, 4, 1)"},
      {TP__OP_FOLD_BIAS, "6|6|6|6", {0}, "(6,)"},
      {TP__OP_FOLD_BIAS, "6|6|6|6|6", {0}, "(6,)"},
      {TP__OP_ADAM_M, "3,4|3,4", {.f = {0.9f}}, "(3, 4)"},
      {TP__OP_ADAM_V, "3,4|3,4", {.f = {0.999f}}, "(3, 4)"},
      {TP__OP_ADAM_PARAM, "3,4|3,4|3,4|.|.", {.f = {0.9f, 0.999f, 1e-7f}}, "(3, 4)"},
      {TP__OP_SGD_MOMENTUM, "5|5|.", {.f = {0.9f}}, "(5,)"},
      {TP__OP_SGD_PARAM, "5|5", {0}, "(5,)"},
      {TP__OP_SGD_PARAM, "5|5|5|.", {.f = {0.9f}, .flag = true}, "(5,)"},
      {TP__OP_BATCH_MOMENTS, "N,4,4,6", {0}, "(2, 6)"},
      {TP__OP_ROW, "2,6", {.row = 1}, "(6,)"},
      {TP__OP_BATCH_NORM_FULL_GRAD,
       "N,4,4,6|N,4,4,6|6|2,6|6|6",
       {.f = {0.001f}},
       "(None, 4, 4, 6)"},
      {TP__OP_MOVING_AVERAGE, "6|6", {.f = {0.99f}}, "(6,)"},
      {TP__OP_MOVING_AVERAGE, "6|6|.", {.f = {0.99f}}, "(6,)"},
      {TP__OP_SGD_PARAM, "5|5|-|.", {.g = {0.1f}}, "(5,)"},
      {TP__OP_SUM_SQUARES, "6|3,4|.", {0}, "()"},
      {TP__OP_SUM_SCALARS, ".|.|.|.|.|.", {0}, "()"},
      {TP__OP_CLIP_FACTOR, ".", {.f = {1}}, "()"},
      {TP__OP_SCALE, "3,4|.", {0}, "(3, 4)"},
  };
  bool seen[TP__OP_COUNT] = {[TP__OP_INPUT] = true, [TP__OP_PARAM] = true};
  CHECK(rows, check_good);
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) seen[rows[i].op] = true;
  for (int op = 0; op < TP__OP_COUNT; op++)
    if (!seen[op]) fail_msg("no case for %s", tp__op_name((tp__op)op));
}

static void bad_layers(void **state)
{
  (void)state;
  static const struct row rows[] = {
      {TP__OP_INPUT, "", {0}, "can't be added"},
      {TP__OP_CONSTANT, "", {.f = {INFINITY}}, "inf must be between"},
      {TP__OP_AFFINE, "N,4", {.f = {1, 1, 1}, .flag = true}, "x (None, 4) must have 3 channels"},
      {TP__OP_AFFINE, "N,3", {.f = {1, 1, 1}, .g = {0, NAN}, .flag = true}, "an offset is nan"},
      {TP__OP_REVERSE, "N", {0}, "x (None,) has no channels"},
      {TP__OP_REVERSE, "8,3", {0}, "x (8, 3)"},
      {TP__OP_NORMALIZE, "N,8,8,3|4|3", {0}, "mean (4,) must be (3,), as x (None, 8, 8, 3) has 3"},
      {TP__OP_RANDOM_FLIP, "N,8,8|u32 N,2", {0}, "x (None, 8, 8) must be [N,H,W,C]"},
      {TP__OP_RANDOM_FLIP, "N,8,8,3|N,2", {0}, "keys (None, 2) is f32, must be u32"},
      {TP__OP_RANDOM_ROTATION,
       "N,8,8,3|u32 N,3",
       {.f = {0.1f}},
       "keys (None, 3) must be (None, 2)"},
      {TP__OP_RANDOM_ROTATION, "N,8,8,5|u32 N,2", {.f = {0.1f}}, "must have at most 4 channels"},
      {TP__OP_RANDOM_ROTATION, "N,8,8,3|u32 N,2", {0}, "a turn of 0 must be above 0"},
      {TP__OP_RANDOM_ROTATION, "N,8,8,3|u32 N,2", {.f = {0.2f}}, "at most 0.125"},
      {TP__OP_RANDOM_ROTATION, "N,8,8,3|u32 N,2", {.f = {0.1f, 300}}, "value of the fill 300"},
      {TP__OP_RANDOM_ROTATION,
       "N,8,8,3|u32 N,2",
       {.f = {0.1f}, .fill = TP__FILL_WRAP},
       "fill 3 is none of reflect, constant, nearest"},
      {TP__OP_PAD, "N,8,8", {0}, "x (None, 8, 8) must be [N,H,W,C]"},
      {TP__OP_PAD, "N,8,8,3", {.pad = {0, -1}}, "padding of -1"},
      {TP__OP_CONV,
       "N,12,12,80|1,1,96,24",
       {.stride = 1},
       "conv: x (None, 12, 12, 80) has 80 channels, kernel (1, 1, 96, 24) wants 96"},
      {TP__OP_CONV, "N,12,12,80", {.stride = 1}, "operand kernel is missing"},
      {TP__OP_CONV, "N,12,12,80|-|24", {.stride = 1}, "operand kernel is missing"},
      {TP__OP_CONV, "12,12,12,80|1,1,80,24", {.stride = 1}, "x (12, 12, 12, 80) must be [N,H,W,C]"},
      {TP__OP_CONV, "N,12,12,80|1,1,80", {.stride = 1}, "kernel (1, 1, 80) must be [kh,kw,C,K]"},
      {TP__OP_CONV, "N,12,12,8|1,1,8,4", {0}, "stride 0 must be at least 1"},
      {TP__OP_CONV,
       "N,2,2,8|3,3,8,4",
       {.stride = 1, .pad = {0, 1, 0, 0}},
       "x (None, 2, 2, 8) with padding is 3 x 2, smaller than the kernel's 3 x 3"},
      {TP__OP_CONV, "N,4,4,8|1,1,8,4", {.stride = 1, .pad = {-1}}, "padding of -1"},
      {TP__OP_CONV, "N,4,4,8|1,1,8,4|8", {.stride = 1}, "bias (8,) must be (4,)"},
      {TP__OP_CONV,
       "N,4,4,8|1,1,8,4|4|N,4,4,8",
       {.stride = 1},
       "residual (None, 4, 4, 8) must be (None, 4, 4, 4)"},
      {TP__OP_CONV,
       "N,4,4,8|1,1,8,4|-|-|N,8",
       {.stride = 1},
       "scale (None, 8) must be (None, 1, 1, 8)"},
      {TP__OP_CONV, "N,4,4,8|1,1,8,4|-|-|-|N,8", {.stride = 1}, "6 operands, at most 5"},
      {TP__OP_CONV, "i32 N,4,4,8|1,1,8,4", {.stride = 1}, "x (None, 4, 4, 8) is i32, must be f32"},
      {TP__OP_CONV, "N,4,4,8|1,1,8,4", {.stride = 1, .act = (tp__act)9}, "unknown activation 9"},
      {TP__OP_DEPTHWISE,
       "N,4,4,8|3,3,8,2",
       {.stride = 1},
       "kernel (3, 3, 8, 2) must be [kh,kw,C,1]"},
      {TP__OP_DEPTHWISE,
       "N,4,4,8|3,3,4,1",
       {.stride = 1},
       "has 8 channels, kernel (3, 3, 4, 1) wants 4"},
      {TP__OP_DEPTHWISE, "N,4,4,8|3,3,8,1|1", {.stride = 1}, "bias (1,) must be (8,)"},
      {TP__OP_BIAS_ADD, "6,4|4", {0}, "x (6, 4) must have a row for each example"},
      {TP__OP_BIAS_ADD, "N|4", {0}, "x (None,) has no channels"},
      {TP__OP_BATCH_NORM, "N,6|6|6|6|5", {0}, "variance (5,) must be (6,)"},
      {TP__OP_BATCH_NORM, "N,6|6|6|6|6", {.f = {-1}}, "epsilon -1 must be between 0 and 1"},
      {TP__OP_ADD, "N,4|N,5", {0}, "a (None, 4) and b (None, 5) must have the same shape"},
      {TP__OP_MUL, "N,1,1,6|N,4,4,6", {0}, "must have the same shape, or b be [N,1,1,C]"},
      {TP__OP_MUL, "N,4,4,6|N,1,1,5", {0}, "b (None, 1, 1, 5)"},
      {TP__OP_GLOBAL_POOL, "N,6", {0}, "x (None, 6) must be [N,H,W,C]"},
      {TP__OP_MAX_POOL, "N,6", {.window = 1, .stride = 1}, "x (None, 6) must be [N,H,W,C]"},
      {TP__OP_MAX_POOL, "N,6,6,1", {.stride = 1}, "a window of 0 is impossible"},
      {TP__OP_MAX_POOL, "N,6,6,1", {.window = 1 << 15, .stride = 1}, "a window of 32768"},
      {TP__OP_AVG_POOL, "N,6,6,1", {.window = 2}, "stride 0 must be at least 1"},
      {TP__OP_AVG_POOL, "N,3,3,1", {.window = 4, .stride = 1}, "smaller than the kernel's 4 x 4"},
      {TP__OP_CONCAT,
       "N,3,3,1|N,3,2,1",
       {0},
       "a (None, 3, 3, 1) and b (None, 3, 2, 1) must have the same height and width"},
      {TP__OP_CONCAT, "N,3,3,1|N,3", {0}, "b (None, 3) must be [N,H,W,C]"},
      {TP__OP_BATCH_NORM, "N,6|6|6|6|6", {.act = (tp__act)9}, "unknown activation 9"},
      {TP__OP_RESHAPE, "N,6", {.shape = S(N, 1, 1, 5)}, "x (None, 6) can't become (None, 1, 1, 5)"},
      {TP__OP_RESHAPE, "N,6", {.shape = S(1, 6)}, "can't become (1, 6)"},
      {TP__OP_RESHAPE, "N,6", {.shape = S(N, N)}, "each dimension must be at least 1"},
      {TP__OP_MATMUL, "N,6|5,10", {0}, "x (None, 6) has 6 columns, kernel (5, 10) wants 5"},
      {TP__OP_MATMUL, "N,6|6,10|9", {0}, "bias (9,) must be (10,)"},
      {TP__OP_MATMUL, "N,6|6", {0}, "kernel (6,) must be [I,O]"},
      {TP__OP_DROPOUT, "N,6|N,2", {0}, "keys (None, 2) is f32, must be u32"},
      {TP__OP_DROPOUT, "N,6|u32 N,3", {0}, "keys (None, 3) must be (None, 2)"},
      {TP__OP_DROPOUT, "N,6|u32 N,2", {.f = {1}}, "rate 1 must be at least 0 and below 1"},
      {TP__OP_DROPOUT, "N,6|u32 N,2", {.draw = 1u << 24}, "draw 16777216"},
      {TP__OP_SOFTMAX, "N,1,1,6", {0}, "must be [N,C]"},
      {TP__OP_CROSS_ENTROPY, "N,6|N", {0}, "labels (None,) is f32, must be i32"},
      {TP__OP_CROSS_ENTROPY, "N,6|i32 N,6", {0}, "labels (None, 6) must be (None,)"},
      {TP__OP_CROSS_ENTROPY, "N,6|i32 N", {.f = {2}}, "label smoothing 2"},
      {TP__OP_WEIGHTED_SUM, "N|5", {0}, "weights (5,) must be (None,)"},
  };
  CHECK(rows, check_bad);
}

static void bad_gradients(void **state)
{
  (void)state;
  static const struct row rows[] = {
      {TP__OP_CONV_INPUT_GRAD,
       "N,4,4,8|3,3,3,8",
       {.stride = 1, .shape = S(N, 5, 5, 3)},
       "dy (None, 4, 4, 8) must be (None, 3, 3, 8)"},
      {TP__OP_CONV_INPUT_GRAD, "N,4,4,8|3,3,3,8", {.stride = 1}, "shape () must have 4 dimensions"},
      {TP__OP_CONV_INPUT_GRAD,
       "N,4,4,8|3,3,3,8",
       {.stride = 1, .shape = S(N, 6, 6, 4)},
       "x (None, 6, 6, 4) and kernel (3, 3, 3, 8) don't fit"},
      {TP__OP_CONV_INPUT_GRAD,
       "N,4,4,8|8",
       {.stride = 1, .shape = S(N, 6, 6, 4)},
       "kernel (8,) must have 4 dimensions"},
      {TP__OP_CONV_KERNEL_GRAD,
       "N,6,6,3|N,4,4,8",
       {.stride = 1, .shape = S(3, 3, 3, 9)},
       "dy (None, 4, 4, 8) must be (None, 4, 4, 9)"},
      {TP__OP_DEPTHWISE_INPUT_GRAD,
       "N,4,4,8|3,3,8,2",
       {.stride = 1, .shape = S(N, 6, 6, 8)},
       "don't fit"},
      {TP__OP_DEPTHWISE_KERNEL_GRAD,
       "N,6,6,8|N,4,4,7",
       {.stride = 1, .shape = S(3, 3, 8, 1)},
       "dy (None, 4, 4, 7) must be (None, 4, 4, 8)"},
      {TP__OP_SUM_TO_LAST, "4,6", {0}, "must have a row for each example"},
      {TP__OP_BATCH_NORM_INPUT_GRAD, "N,6|5|6", {0}, "gamma (5,) must be (6,)"},
      {TP__OP_BATCH_NORM_GAMMA_GRAD, "N,6|N,5|6|6", {0}, "must have the same shape"},
      {TP__OP_ACTIVATION_GRAD, "N,6|N,5", {0}, "must have the same shape"},
      {TP__OP_SUM_SPATIAL, "N,4,4,6", {0}, "factor must not be 0"},
      {TP__OP_BROADCAST_SPATIAL,
       "N,6",
       {.f = {1}, .shape = S(N, 4, 4, 5)},
       "x (None, 6) can't be spread over (None, 4, 4, 5)"},
      {TP__OP_BROADCAST_SPATIAL, "N,2,2,6", {.f = {1}, .shape = S(N, 4, 4, 6)}, "can't be spread"},
      {TP__OP_MATMUL_INPUT_GRAD,
       "N,10|10,6",
       {0},
       "dy (None, 10) has 10 columns, kernel (10, 6) doesn't"},
      {TP__OP_MATMUL_KERNEL_GRAD, "N,6|10", {0}, "dy (10,) must be [N,C]"},
      {TP__OP_CROSS_ENTROPY_GRAD, "N,6|i32 N|.", {0}, "dloss () must be (None,)"},
      {TP__OP_SCALE_ROWS, "1|N", {0}, "dsum (1,) must be a scalar"},
      {TP__OP_CROP, "N,3,3,1", {.pad = {2, 1, 0, 0}}, "too small for a crop of 2,1,0,0"},
      {TP__OP_MAX_POOL_GRAD,
       "N,3,3,2|N,7,7,3",
       {.window = 3, .stride = 2},
       "dy (None, 3, 3, 2) must be (None, 3, 3, 3), as x (None, 7, 7, 3) is pooled"},
      {TP__OP_MAX_POOL_GRAD, "N,3,3,2|N,7,7,2", {.window = -1, .stride = 2}, "a window of -1"},
      {TP__OP_AVG_POOL_GRAD,
       "N,3,3,2",
       {.window = 3, .stride = 2, .shape = S(1, 7, 7, 2)},
       "has no row for each example"},
      {TP__OP_SLICE_CHANNELS,
       "N,3,3,4",
       {.first = 2, .shape = S(N, 3, 3, 3)},
       "x (None, 3, 3, 4) has no channels 2 to 5 as (None, 3, 3, 3)"},
      {TP__OP_SLICE_CHANNELS,
       "N,3,3,4",
       {.first = -1, .shape = S(N, 3, 3, 3)},
       "has no channels -1 to 2"},
      {TP__OP_SLICE_CHANNELS,
       "N,3,3,4",
       {.shape = S(N, 3, 2, 3)},
       "has no channels 0 to 3 as (None, 3, 2, 3)"},
      {TP__OP_FOLD_KERNEL, "3,3,4,6|4|4", {0}, "gamma (4,) must be (6,), as kernel (3, 3, 4, 6)"},
      {TP__OP_FOLD_KERNEL, "3,3,4,6|4|4", {.depthwise = true}, "must be [kh,kw,C,1]"},
      {TP__OP_FOLD_BIAS, "6|6|6|6|5", {0}, "bias (5,) must be (6,)"},
      {TP__OP_ADAM_M, "3,4|4,3", {.f = {0.9f}}, "m (3, 4) and g (4, 3)"},
      {TP__OP_ADAM_M, "N,4|N,4", {.f = {0.9f}}, "m (None, 4) must be shared"},
      {TP__OP_ADAM_V, "3|3", {.f = {1.5f}}, "beta2 1.5"},
      {TP__OP_ADAM_PARAM, "3|3|3|1|.", {0}, "rate (1,) must be a scalar"},
      {TP__OP_SGD_MOMENTUM, "3|4|.", {0}, "velocity (3,) and g (4,)"},
      {TP__OP_SGD_PARAM, "3|3", {.flag = true}, "needs operands g and rate"},
      {TP__OP_SGD_PARAM, "3|3|3|.", {0}, "only for Nesterov"},
      {TP__OP_BATCH_MOMENTS, "N", {0}, "x (None,) has no channels"},
      {TP__OP_ROW, "2,6", {.row = 2}, "x (2, 6) has no row 2"},
      {TP__OP_ROW, "6", {0}, "x (6,) must be [R,C]"},
      {TP__OP_BATCH_NORM_FULL_GRAD, "N,6|N,5|6|2,6|6|6", {0}, "must have the same shape"},
      {TP__OP_BATCH_NORM_FULL_GRAD, "N,6|N,6|6|6|6|6", {0}, "moments (6,) must be (2, 6)"},
      {TP__OP_BATCH_NORM_FULL_GRAD, "N,6|N,6|6|2,6|6|5", {0}, "gamma_grad (5,) must be (6,)"},
      {TP__OP_MOVING_AVERAGE, "6|5", {0}, "a (6,) and x (5,)"},
      {TP__OP_MOVING_AVERAGE, "6|6", {.f = {1.5f}}, "momentum 1.5"},
      {TP__OP_SGD_PARAM, "3|3", {.g = {0.1f}}, "weight decay needs operand rate"},
      {TP__OP_ADAM_PARAM, "3|3|3|.|.", {.g = {-1}}, "a weight decay of -1"},
      {TP__OP_SUM_SQUARES, "6|N,4", {0}, "b (None, 4) must be shared"},
      {TP__OP_SUM_SCALARS, ".|3", {0}, "b (3,) must be a scalar"},
      {TP__OP_CLIP_FACTOR, ".", {0}, "the norm 0"},
      {TP__OP_SCALE, "3|3", {0}, "factor (3,) must be a scalar"},
  };
  CHECK(rows, check_bad);
}

/* Values that no graph has, operators that are none, sizes that would overflow. */
static void hostile(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__graph *g = new_graph();
  tp__value v = 7, x = input(g, "x", "N,40000,40000,1");
  assert_fails(tp__graph_add(g, TP__OP_ADD, (tp__value[]){x, 99}, 2, NULL, &v, &err),
               TP_ERR_INTERNAL, "no value %99");
  assert_fails(tp__graph_add(g, TP__OP_ADD, (tp__value[]){x, -5}, 2, NULL, &v, &err),
               TP_ERR_INTERNAL, "no value %-5");
  assert_fails(tp__graph_add(g, TP__OP_COUNT, &x, 1, NULL, &v, &err), TP_ERR_INTERNAL, "unknown");
  assert_fails(tp__graph_add(g, (tp__op)-1, &x, 1, NULL, &v, &err), TP_ERR_INTERNAL, "unknown");
  assert_fails(tp__graph_add(g, TP__OP_ADD, &x, -1, NULL, &v, &err), TP_ERR_INTERNAL,
               "-1 operands");
  tp__value k = param(g, "k", "1,1,1,60000");
  assert_fails(
      tp__graph_add(g, TP__OP_CONV, (tp__value[]){x, k}, 2, &(tp__attr){.stride = 1}, &v, &err),
      TP_ERR_INTERNAL, "more than 2147483647 elements");
  tp__shape many = {.rank = 9};
  assert_fails(tp__graph_param(g, "many", &many, &v, &err), TP_ERR_INTERNAL, "9 dimensions");
  tp__shape huge = {.rank = 3, .dim = {INT64_MAX, INT64_MAX, 2}};
  assert_fails(tp__graph_param(g, "huge", &huge, &v, &err), TP_ERR_INTERNAL, "more than");
  assert_int_equal(v, 7);
  assert_int_equal(g->count, 2);
  tp__graph_free(g);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_shapes),
      cmocka_unit_test(bad_layers),
      cmocka_unit_test(bad_gradients),
      cmocka_unit_test(hostile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
