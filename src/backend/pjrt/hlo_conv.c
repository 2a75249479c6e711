/* hlo_conv - convolutions, matrix products and their gradients; see hlo.h
 *
 * A gradient of a convolution is a convolution: of dy, spread by the stride, with the kernel turned
 * round (input); of x with dy as the kernel, its pixels spread by the stride, and examples in the
 * place of channels (kernel). So all of them run where compilers for accelerators are best.
 */
#include "hlo_emitters.h"

static tp__hlo_window plain(const char *dims)
{
  return (tp__hlo_window){.stride = {1, 1},
                          .lhs_dilation = {1, 1},
                          .rhs_dilation = {1, 1},
                          .feature_groups = 1,
                          .batch_groups = 1,
                          .dims = dims};
}

tp__hlo_window tp__hlo_forward_window(const tp__attr *a)
{
  tp__hlo_window window = plain("[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]");
  for (int i = 0; i < 2; i++) {
    window.stride[i] = a->stride;
    window.low[i] = a->pad[2 * i];
    window.high[i] = a->pad[2 * i + 1];
  }
  return window;
}

/* x, dy, kernel: shapes. The last rows of x may have had no part in dy: then high is more than what
 * the window alone needs. */
tp__hlo_window tp__hlo_input_grad_window(const tp__attr *a, const tp__shape *x, const tp__shape *dy,
                                         const tp__shape *kernel)
{
  tp__hlo_window window = plain("[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]");
  window.reverse = true;
  for (int i = 0; i < 2; i++) {
    int64_t spread = (dy->dim[i + 1] - 1) * a->stride + 1;
    window.lhs_dilation[i] = a->stride;
    window.low[i] = kernel->dim[i] - 1 - a->pad[2 * i];
    window.high[i] = x->dim[i + 1] - spread - window.low[i] + kernel->dim[i] - 1;
  }
  return window;
}

tp__hlo_window tp__hlo_kernel_grad_window(const tp__attr *a, const tp__shape *x,
                                          const tp__shape *dy, const tp__shape *kernel)
{
  tp__hlo_window window = plain("[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]");
  for (int i = 0; i < 2; i++) {
    int64_t spread = (dy->dim[i + 1] - 1) * a->stride + 1;
    window.rhs_dilation[i] = a->stride;
    window.low[i] = a->pad[2 * i];
    window.high[i] = kernel->dim[i] - 1 - x->dim[i + 1] - window.low[i] + spread;
  }
  return window;
}

/* y + bias, then the activation, both optional. */
tp__hlo_value tp__hlo_bias_act(tp__hlo *w, const tp__node *n, tp__hlo_value y)
{
  if (tp__hlo_has(n, 2)) y = tp__hlo_add(w, y, tp__hlo_channels(w, tp__hlo_float(w, n, 2), y));
  return tp__hlo_act(w, n->attr.act, y);
}

tp__hlo_value tp__hlo_conv(tp__hlo *w, const tp__node *n)
{
  enum { X, KERNEL, BIAS, RESIDUAL, SCALE };
  tp__shape shape = tp__hlo_shape_of(w, &n->shape);
  tp__hlo_window window = tp__hlo_forward_window(&n->attr);
  tp__hlo_value x = tp__hlo_factor(w, n, X);
  if (tp__hlo_has(n, SCALE)) {
    tp__hlo_value scale = tp__hlo_factor(w, n, SCALE);
    x = tp__hlo_mul(w, x, tp__hlo_broadcast(w, scale, &x.shape, (int64_t[]){0, 1, 2, 3}));
  }
  tp__hlo_value y = tp__hlo_convolution(w, x, tp__hlo_factor(w, n, KERNEL), &shape, &window);
  if (!tp__hlo_has(n, RESIDUAL)) {
    w->zero = !tp__hlo_has(n, BIAS) && n->attr.act == TP__ACT_NONE && tp__hlo_zero_operand(w, n, X);
    return tp__hlo_bias_act(w, n, y);
  }
  tp__hlo_value residual = tp__hlo_float(w, n, RESIDUAL);
  if (!n->attr.flag) return tp__hlo_add(w, tp__hlo_bias_act(w, n, y), residual);
  if (tp__hlo_has(n, BIAS))
    y = tp__hlo_add(w, y, tp__hlo_channels(w, tp__hlo_float(w, n, BIAS), y));
  return tp__hlo_act(w, n->attr.act, tp__hlo_add(w, y, residual));
}

tp__hlo_value tp__hlo_conv_input_grad(tp__hlo *w, const tp__node *n)
{
  tp__shape x = tp__hlo_shape_of(w, &n->shape);
  tp__hlo_value dy = tp__hlo_factor(w, n, 0), kernel = tp__hlo_factor(w, n, 1);
  tp__hlo_window window = tp__hlo_input_grad_window(&n->attr, &x, &dy.shape, &kernel.shape);
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_convolution(w, dy, kernel, &x, &window);
}

tp__hlo_value tp__hlo_conv_kernel_grad(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value x = tp__hlo_factor(w, n, 0), dy = tp__hlo_factor(w, n, 1);
  tp__hlo_window window = tp__hlo_kernel_grad_window(&n->attr, &x.shape, &dy.shape, &n->shape);
  dy = tp__hlo_masked(w, dy, tp__hlo_zero_operand(w, n, 1));
  return tp__hlo_convolution(w, x, dy, &n->shape, &window);
}

tp__hlo_value tp__hlo_matmul(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value x = tp__hlo_factor(w, n, 0), kernel = tp__hlo_factor(w, n, 1);
  return tp__hlo_bias_act(w, n, tp__hlo_dot(w, x, 1, kernel, 0));
}

tp__hlo_value tp__hlo_matmul_input_grad(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value dy = tp__hlo_factor(w, n, 0), kernel = tp__hlo_factor(w, n, 1);
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_dot(w, dy, 1, kernel, 1);
}

tp__hlo_value tp__hlo_matmul_kernel_grad(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value x = tp__hlo_factor(w, n, 0), dy = tp__hlo_factor(w, n, 1);
  return tp__hlo_dot(w, x, 0, tp__hlo_masked(w, dy, tp__hlo_zero_operand(w, n, 1)), 0);
}
