/* hlo_layers - pixels, batch norm in inference mode, activations and everything else that is done
 * element by element, with gradients; see hlo.h
 */
#include "hlo_emitters.h"

tp__hlo_value tp__hlo_act(tp__hlo *w, tp__act act, tp__hlo_value x)
{
  switch (act) {
  case TP__ACT_SWISH:
    return tp__hlo_mul(w, x, tp__hlo_unary(w, "logistic", x));
  case TP__ACT_RELU:
    return tp__hlo_binary(w, "maximum", x, tp__hlo_like(w, x, 0));
  case TP__ACT_RELU6:
    x = tp__hlo_binary(w, "maximum", x, tp__hlo_like(w, x, 0));
    return tp__hlo_binary(w, "minimum", x, tp__hlo_like(w, x, 6));
  case TP__ACT_SIGMOID:
    return tp__hlo_unary(w, "logistic", x);
  case TP__ACT_NONE:
    break;
  }
  return x;
}

tp__hlo_value tp__hlo_inverse_deviation(tp__hlo *w, tp__hlo_value variance, double epsilon)
{
  return tp__hlo_unary(w, "rsqrt", tp__hlo_add(w, variance, tp__hlo_like(w, variance, epsilon)));
}

tp__hlo_value tp__hlo_gamma_factor(tp__hlo *w, const tp__node *n, int gamma, int variance)
{
  tp__hlo_value factor = tp__hlo_float(w, n, gamma), v = tp__hlo_float(w, n, variance);
  return tp__hlo_mul(w, factor, tp__hlo_inverse_deviation(w, v, (double)n->attr.f[0]));
}

/* ---- pixels ---- */

/* One number for each of the three channels. */
static tp__hlo_value three(tp__hlo *w, const float *number, tp__hlo_value x)
{
  char pattern[128];
  tp__shape shape = tp__shape_make(1, (int64_t[]){3});
  snprintf(pattern, sizeof pattern, "stablehlo.constant dense<[%.9e, %.9e, %.9e]> : @r",
           (double)number[0], (double)number[1], (double)number[2]);
  return tp__hlo_channels(w, tp__hlo_emit(w, tp__hlo_typed(TP__HLO_F32, &shape), NULL, pattern), x);
}

tp__hlo_value tp__hlo_affine(tp__hlo *w, const tp__node *n)
{
  const tp__attr *a = &n->attr;
  tp__hlo_value x = tp__hlo_float(w, n, 0);
  if (a->flag) {
    x = tp__hlo_mul(w, x, three(w, a->f, x));
    return tp__hlo_add(w, x, three(w, a->g, x));
  }
  x = tp__hlo_times(w, x, a->f[0]);
  w->zero = a->f[1] == 0 && tp__hlo_zero_operand(w, n, 0);
  return a->f[1] == 0 ? x : tp__hlo_add(w, x, tp__hlo_like(w, x, a->f[1]));
}

tp__hlo_value tp__hlo_reverse(tp__hlo *w, const tp__node *n)
{
  char pattern[64];
  tp__hlo_value x = tp__hlo_operand(w, n, 0);
  snprintf(pattern, sizeof pattern, "stablehlo.reverse $0, dims = [%d] : @r", x.shape.rank - 1);
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_emit(w, x, &x, pattern);
}

tp__hlo_value tp__hlo_normalize(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value x = tp__hlo_float(w, n, 0), mean = tp__hlo_float(w, n, 1);
  tp__hlo_value deviation = tp__hlo_unary(w, "sqrt", tp__hlo_float(w, n, 2));
  deviation = tp__hlo_binary(w, "maximum", deviation, tp__hlo_like(w, deviation, 1e-7));
  x = tp__hlo_sub(w, x, tp__hlo_channels(w, mean, x));
  return tp__hlo_div(w, x, tp__hlo_channels(w, deviation, x));
}

static tp__hlo_value pad_by(tp__hlo *w, const tp__node *n, int sign)
{
  int64_t pad[4];
  for (int i = 0; i < 4; i++) pad[i] = sign * n->attr.pad[i];
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_pad_pixels(w, tp__hlo_operand(w, n, 0), pad, 0);
}

tp__hlo_value tp__hlo_pad_node(tp__hlo *w, const tp__node *n)
{
  return pad_by(w, n, 1);
}

tp__hlo_value tp__hlo_crop(tp__hlo *w, const tp__node *n)
{
  return pad_by(w, n, -1);
}

tp__hlo_value tp__hlo_reshape_node(tp__hlo *w, const tp__node *n)
{
  tp__shape shape = tp__hlo_shape_of(w, &n->shape);
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_reshape(w, tp__hlo_operand(w, n, 0), &shape);
}

tp__hlo_value tp__hlo_concat_node(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value a = tp__hlo_operand(w, n, 0), b = tp__hlo_operand(w, n, 1);
  if (a.type != b.type) {
    a = tp__hlo_convert(w, a, TP__HLO_F32);
    b = tp__hlo_convert(w, b, TP__HLO_F32);
  }
  w->zero = tp__hlo_zero_operand(w, n, 0) && tp__hlo_zero_operand(w, n, 1);
  return tp__hlo_concat(w, (tp__hlo_value[]){a, b}, 2, 3);
}

tp__hlo_value tp__hlo_slice_channels(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value x = tp__hlo_operand(w, n, 0);
  const int64_t *dim = x.shape.dim, first = n->attr.first;
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_slice(w, x, (int64_t[]){0, 0, 0, first},
                       (int64_t[]){dim[0], dim[1], dim[2], first + n->shape.dim[3]}, NULL);
}

/* ---- element by element ---- */

tp__hlo_value tp__hlo_bias_add(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value x = tp__hlo_float(w, n, 0);
  return tp__hlo_add(w, x, tp__hlo_channels(w, tp__hlo_float(w, n, 1), x));
}

/* x by one factor and one offset of each channel, both made of [C] alone: cheap, and exact as long
 * as the mean is not far larger than the deviation. Statistics of the batch itself may be such, so
 * their mean is taken off first. */
tp__hlo_value tp__hlo_batch_norm(tp__hlo *w, const tp__node *n)
{
  enum { X, GAMMA, BETA, MEAN, VARIANCE };
  tp__hlo_value x = tp__hlo_float(w, n, X), mean = tp__hlo_float(w, n, MEAN);
  tp__hlo_value offset = tp__hlo_float(w, n, BETA);
  tp__hlo_value factor = tp__hlo_gamma_factor(w, n, GAMMA, VARIANCE);
  if (w->slot[n->in[MEAN]].varies)
    x = tp__hlo_sub(w, x, tp__hlo_channels(w, mean, x));
  else
    offset = tp__hlo_sub(w, offset, tp__hlo_mul(w, mean, factor));
  x = tp__hlo_mul(w, x, tp__hlo_channels(w, factor, x));
  return tp__hlo_act(w, n->attr.act, tp__hlo_add(w, x, tp__hlo_channels(w, offset, x)));
}

tp__hlo_value tp__hlo_batch_norm_input_grad(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value dy = tp__hlo_float(w, n, 0);
  tp__hlo_value factor = tp__hlo_gamma_factor(w, n, 1, 2);
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_mul(w, dy, tp__hlo_channels(w, factor, dy));
}

tp__hlo_value tp__hlo_activation(tp__hlo *w, const tp__node *n)
{
  return tp__hlo_act(w, n->attr.act, tp__hlo_float(w, n, 0));
}

/* s (1 + x (1 - s)), or s (1 - s): s = 1 / (1 + e^-x) */
static tp__hlo_value sigmoid_slope(tp__hlo *w, tp__hlo_value x, bool swish)
{
  tp__hlo_value s = tp__hlo_unary(w, "logistic", x), one = tp__hlo_like(w, x, 1);
  tp__hlo_value left = tp__hlo_sub(w, one, s);
  if (swish) left = tp__hlo_add(w, one, tp__hlo_mul(w, x, left));
  return tp__hlo_mul(w, s, left);
}

tp__hlo_value tp__hlo_activation_grad(tp__hlo *w, const tp__node *n)
{
  const tp__act act = n->attr.act;
  tp__hlo_value dy = tp__hlo_float(w, n, 0), x = tp__hlo_float(w, n, 1);
  w->zero = tp__hlo_zero_operand(w, n, 0);
  if (act == TP__ACT_NONE) return dy;
  if (act == TP__ACT_SWISH || act == TP__ACT_SIGMOID)
    return tp__hlo_mul(w, dy, sigmoid_slope(w, x, act == TP__ACT_SWISH));
  tp__hlo_value passes = tp__hlo_compare(w, "GT", x, tp__hlo_like(w, x, 0));
  if (act == TP__ACT_RELU6)
    passes = tp__hlo_binary(w, "and", passes, tp__hlo_compare(w, "LT", x, tp__hlo_like(w, x, 6)));
  return tp__hlo_select(w, passes, dy, tp__hlo_like(w, dy, 0));
}

tp__hlo_value tp__hlo_add_node(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value a = tp__hlo_float(w, n, 0), b = tp__hlo_float(w, n, 1);
  w->zero = tp__hlo_zero_operand(w, n, 0) && tp__hlo_zero_operand(w, n, 1);
  return tp__hlo_add(w, a, b);
}

tp__hlo_value tp__hlo_mul_node(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value a = tp__hlo_float(w, n, 0), b = tp__hlo_float(w, n, 1);
  w->zero = tp__hlo_zero_operand(w, n, 0) || tp__hlo_zero_operand(w, n, 1);
  return tp__hlo_mul(w, a, tp__hlo_broadcast(w, b, &a.shape, (int64_t[]){0, 1, 2, 3, 4, 5}));
}

/* ---- over pixels ---- */

tp__hlo_value tp__hlo_global_pool(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value x = tp__hlo_float(w, n, 0);
  double pixels = (double)x.shape.dim[1] * (double)x.shape.dim[2];
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_times(w, tp__hlo_reduce(w, "add", x, 1, 2), 1 / pixels);
}

tp__hlo_value tp__hlo_sum_spatial(tp__hlo *w, const tp__node *n)
{
  tp__shape shape = tp__hlo_shape_of(w, &n->shape);
  tp__hlo_value sum = tp__hlo_reduce(w, "add", tp__hlo_float(w, n, 0), 1, 2);
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_reshape(w, tp__hlo_times(w, sum, (double)n->attr.f[0]), &shape);
}

tp__hlo_value tp__hlo_broadcast_spatial(tp__hlo *w, const tp__node *n)
{
  tp__shape shape = tp__hlo_shape_of(w, &n->shape);
  tp__hlo_value x = tp__hlo_times(w, tp__hlo_float(w, n, 0), (double)n->attr.f[0]);
  const int64_t pair[] = {0, 3}, four[] = {0, 1, 2, 3};
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_broadcast(w, x, &shape, x.shape.rank == 2 ? pair : four);
}
