/* hlo_window - convolutions, pools and padding of pixels as text; see hlo.h */
#include "hlo.h"

tp__hlo_value tp__hlo_convolution(tp__hlo *w, tp__hlo_value x, tp__hlo_value kernel,
                                  const tp__shape *result, const tp__hlo_window *a)
{
  char pattern[512];
  snprintf(pattern, sizeof pattern,
           "stablehlo.convolution($0, $1) dim_numbers = %s, window = {stride = [%lld, %lld], "
           "pad = [[%lld, %lld], [%lld, %lld]], lhs_dilate = [%lld, %lld], "
           "rhs_dilate = [%lld, %lld], reverse = [%s, %s]} {batch_group_count = %lld : i64, "
           "feature_group_count = %lld : i64} : (@0, @1) -> @r",
           a->dims, (long long)a->stride[0], (long long)a->stride[1], (long long)a->low[0],
           (long long)a->high[0], (long long)a->low[1], (long long)a->high[1],
           (long long)a->lhs_dilation[0], (long long)a->lhs_dilation[1],
           (long long)a->rhs_dilation[0], (long long)a->rhs_dilation[1],
           a->reverse ? "true" : "false", a->reverse ? "true" : "false", (long long)a->batch_groups,
           (long long)a->feature_groups);
  return tp__hlo_emit(w, tp__hlo_typed(TP__HLO_F32, result), (tp__hlo_value[]){x, kernel}, pattern);
}

tp__hlo_value tp__hlo_reduce_window(tp__hlo *w, const char *op, tp__hlo_value x, int window,
                                    int stride)
{
  char pattern[512];
  tp__hlo_value y = x;
  for (int i = 1; i < 3; i++) y.shape.dim[i] = (x.shape.dim[i] - window) / stride + 1;
  tp__hlo_value start = tp__hlo_constant(w, x.type, NULL, op[0] == 'a' ? 0 : -1.0 / 0.0);
  snprintf(pattern, sizeof pattern,
           "\"stablehlo.reduce_window\"($0, $1) ({\n    ^bb0($a: @e, $b: @e):\n"
           "      $c = stablehlo.%s $a, $b : @e\n      stablehlo.return $c : @e\n"
           "    }) {window_dimensions = array<i64: 1, %d, %d, 1>, "
           "window_strides = array<i64: 1, %d, %d, 1>} : (@0, @1) -> @r",
           op, window, window, stride, stride);
  return tp__hlo_emit(w, y, (tp__hlo_value[]){x, start}, pattern);
}

/* GE keeps the one that was chosen before: the first. */
tp__hlo_value tp__hlo_scatter_to_largest(tp__hlo *w, tp__hlo_value x, tp__hlo_value dy, int window,
                                         int stride)
{
  char pattern[800];
  tp__hlo_value zero = tp__hlo_constant(w, x.type, NULL, 0);
  snprintf(pattern, sizeof pattern,
           "\"stablehlo.select_and_scatter\"($0, $1, $2) ({\n    ^bb0($a: @e, $b: @e):\n"
           "      $c = stablehlo.compare GE, $a, $b : (@e, @e) -> tensor<i1>\n"
           "      stablehlo.return $c : tensor<i1>\n    }, {\n    ^bb0($d: @e, $f: @e):\n"
           "      $g = stablehlo.add $d, $f : @e\n      stablehlo.return $g : @e\n"
           "    }) {window_dimensions = array<i64: 1, %d, %d, 1>, "
           "window_strides = array<i64: 1, %d, %d, 1>} : (@0, @1, @2) -> @r",
           window, window, stride, stride);
  return tp__hlo_emit(w, x, (tp__hlo_value[]){x, dy, zero}, pattern);
}

tp__hlo_value tp__hlo_pad_pixels(tp__hlo *w, tp__hlo_value x, const int64_t pad[4], int64_t between)
{
  return tp__hlo_pad(w, x, (int64_t[]){0, pad[0], pad[2], 0}, (int64_t[]){0, pad[1], pad[3], 0},
                     (int64_t[]){0, between, between, 0});
}
