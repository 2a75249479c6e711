/* hlo_pools - largest and mean of windows, and their gradients; see hlo.h
 *
 * The zeros around x take part, so they are put there first: the padding of a window operation
 * would be left out of a maximum.
 */
#include "hlo_emitters.h"

static tp__hlo_value with_zeros(tp__hlo *w, const tp__node *n, tp__hlo_value x)
{
  const int *pad = n->attr.pad;
  return tp__hlo_pad_pixels(w, x, (int64_t[]){pad[0], pad[1], pad[2], pad[3]}, 0);
}

static tp__hlo_value without_zeros(tp__hlo *w, const tp__node *n, tp__hlo_value x)
{
  const int *pad = n->attr.pad;
  return tp__hlo_pad_pixels(w, x, (int64_t[]){-pad[0], -pad[1], -pad[2], -pad[3]}, 0);
}

tp__hlo_value tp__hlo_max_pool(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value x = with_zeros(w, n, tp__hlo_operand(w, n, 0));
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_reduce_window(w, "maximum", x, n->attr.window, n->attr.stride);
}

tp__hlo_value tp__hlo_avg_pool(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value x = with_zeros(w, n, tp__hlo_float(w, n, 0));
  double taps = (double)n->attr.window * n->attr.window;
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_times(w, tp__hlo_reduce_window(w, "add", x, n->attr.window, n->attr.stride),
                       1 / taps);
}

tp__hlo_value tp__hlo_max_pool_grad(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value dy = tp__hlo_float(w, n, 0);
  tp__hlo_value x = with_zeros(w, n, tp__hlo_float(w, n, 1));
  w->zero = tp__hlo_zero_operand(w, n, 0);
  tp__hlo_value dx = tp__hlo_scatter_to_largest(w, x, dy, n->attr.window, n->attr.stride);
  return without_zeros(w, n, dx);
}

/* Each pixel of x gets the shares of all windows that hold it: the sum over windows of dy spread by
 * the stride. */
tp__hlo_value tp__hlo_avg_pool_grad(tp__hlo *w, const tp__node *n)
{
  tp__shape x = tp__hlo_shape_of(w, &n->shape);
  const int window = n->attr.window, stride = n->attr.stride;
  tp__hlo_value dy = tp__hlo_times(w, tp__hlo_float(w, n, 0), 1 / ((double)window * window));
  int64_t pad[4];
  for (int i = 0; i < 2; i++) {
    pad[2 * i] = window - 1 - n->attr.pad[2 * i];
    pad[2 * i + 1] =
        x.dim[i + 1] + window - 1 - pad[2 * i] - ((dy.shape.dim[i + 1] - 1) * stride + 1);
  }
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_reduce_window(w, "add", tp__hlo_pad_pixels(w, dy, pad, stride - 1), window, 1);
}
