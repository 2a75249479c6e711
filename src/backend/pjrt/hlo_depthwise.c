/* hlo_depthwise - convolutions of each channel by itself, and their gradients; see hlo.h
 *
 * In two forms. As one convolution with as many groups as channels: what compilers for TPU and GPU
 * know best. As a sum over the kernel's positions of shifted x times one number per channel
 * (options.depthwise_shifts): a loop that compilers for the CPU make fast, where their grouped
 * convolution is slow. XLA on a CPU, 3x3 over [8,48,48,144]: forward 68 ms as groups, 4.8 ms as
 * shifts; kernel gradient 161 and 93 ms; input gradient 2.8 and 4.7 ms, so that one is always
 * groups.
 */
#include <stdlib.h>

#include "hlo_emitters.h"

/* [kh,kw,C,1] as [kh,kw,1,C], the form of grouped convolutions. */
static tp__hlo_value grouped_kernel(tp__hlo *w, tp__hlo_value kernel)
{
  const int64_t *dim = kernel.shape.dim;
  tp__shape shape = tp__shape_make(4, (int64_t[]){dim[0], dim[1], 1, dim[2]});
  return tp__hlo_reshape(w, kernel, &shape);
}

/* The number of each channel at one position of the kernel, as x. */
static tp__hlo_value tap(tp__hlo *w, tp__hlo_value kernel, int64_t ky, int64_t kx, tp__hlo_value x)
{
  const int64_t channels = kernel.shape.dim[2];
  tp__shape shape = tp__shape_make(1, &channels);
  tp__hlo_value one = tp__hlo_slice(w, kernel, (int64_t[]){ky, kx, 0, 0},
                                    (int64_t[]){ky + 1, kx + 1, channels, 1}, NULL);
  return tp__hlo_channels(w, tp__hlo_reshape(w, one, &shape), x);
}

/* The pixels of a padded x that position (ky, kx) meets: h x w of them, `stride` apart. */
static tp__hlo_value shifted(tp__hlo *w, tp__hlo_value x, int64_t ky, int64_t kx, int64_t height,
                             int64_t width, int64_t stride)
{
  const int64_t *dim = x.shape.dim;
  return tp__hlo_slice(
      w, x, (int64_t[]){0, ky, kx, 0},
      (int64_t[]){dim[0], ky + (height - 1) * stride + 1, kx + (width - 1) * stride + 1, dim[3]},
      (int64_t[]){1, stride, stride, 1});
}

/* x is padded. */
static tp__hlo_value sum_of_shifts(tp__hlo *w, tp__hlo_value x, tp__hlo_value kernel,
                                   const tp__shape *y, int64_t stride)
{
  const int64_t taps = kernel.shape.dim[0] * kernel.shape.dim[1];
  tp__hlo_value sum = tp__hlo_absent();
  for (int64_t i = 0; i < taps; i++) {
    int64_t ky = i / kernel.shape.dim[1], kx = i % kernel.shape.dim[1];
    tp__hlo_value part = shifted(w, x, ky, kx, y->dim[1], y->dim[2], stride);
    part = tp__hlo_mul(w, part, tap(w, kernel, ky, kx, part));
    sum = tp__hlo_is(sum) ? tp__hlo_add(w, sum, part) : part;
  }
  return sum;
}

static tp__hlo_value padded(tp__hlo *w, const tp__node *n, tp__hlo_value x)
{
  const int *pad = n->attr.pad;
  return tp__hlo_pad_pixels(w, x, (int64_t[]){pad[0], pad[1], pad[2], pad[3]}, 0);
}

static tp__hlo_value operand(tp__hlo *w, const tp__node *n, int i)
{
  return w->options->depthwise_shifts ? tp__hlo_float(w, n, i) : tp__hlo_factor(w, n, i);
}

tp__hlo_value tp__hlo_depthwise(tp__hlo *w, const tp__node *n)
{
  tp__shape shape = tp__hlo_shape_of(w, &n->shape);
  tp__hlo_value x = operand(w, n, 0), kernel = operand(w, n, 1), y;
  tp__hlo_window window = tp__hlo_forward_window(&n->attr);
  window.feature_groups = shape.dim[3];
  w->zero = !tp__hlo_has(n, 2) && n->attr.act == TP__ACT_NONE && tp__hlo_zero_operand(w, n, 0);
  if (w->options->depthwise_shifts)
    y = sum_of_shifts(w, padded(w, n, x), kernel, &shape, n->attr.stride);
  else
    y = tp__hlo_convolution(w, x, grouped_kernel(w, kernel), &shape, &window);
  return tp__hlo_bias_act(w, n, y);
}

tp__hlo_value tp__hlo_depthwise_input_grad(tp__hlo *w, const tp__node *n)
{
  tp__shape x = tp__hlo_shape_of(w, &n->shape);
  tp__hlo_value dy = tp__hlo_factor(w, n, 0), kernel = tp__hlo_factor(w, n, 1);
  tp__hlo_window window = tp__hlo_input_grad_window(&n->attr, &x, &dy.shape, &kernel.shape);
  window.feature_groups = x.dim[3];
  window.dims = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]";
  w->zero = tp__hlo_zero_operand(w, n, 0);
  return tp__hlo_convolution(w, dy, grouped_kernel(w, kernel), &x, &window);
}

static tp__hlo_value kernel_grad_of_shifts(tp__hlo *w, const tp__node *n, tp__hlo_value x,
                                           tp__hlo_value dy)
{
  const int64_t *k = n->shape.dim;
  tp__shape row = tp__shape_make(2, (int64_t[]){1, k[2]});
  tp__hlo_value *tap_grad = tp__calloc((size_t)(k[0] * k[1]), sizeof *tap_grad, w->err);
  if (tap_grad == NULL) {
    w->status = w->status == TP_OK ? TP_ERR_INTERNAL : w->status;
    return tp__hlo_absent();
  }
  x = padded(w, n, x);
  for (int64_t i = 0; i < k[0] * k[1]; i++) {
    tp__hlo_value part =
        shifted(w, x, i / k[1], i % k[1], dy.shape.dim[1], dy.shape.dim[2], n->attr.stride);
    tap_grad[i] = tp__hlo_reshape(w, tp__hlo_sum_to_last(w, tp__hlo_mul(w, part, dy)), &row);
  }
  tp__hlo_value all = tp__hlo_concat(w, tap_grad, (int)(k[0] * k[1]), 0);
  free(tap_grad);
  return tp__hlo_reshape(w, all, &n->shape);
}

tp__hlo_value tp__hlo_depthwise_kernel_grad(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value x = operand(w, n, 0), dy = operand(w, n, 1);
  tp__hlo_window window = tp__hlo_kernel_grad_window(&n->attr, &x.shape, &dy.shape, &n->shape);
  tp__shape shape = n->shape;
  dy = tp__hlo_masked(w, dy, tp__hlo_zero_operand(w, n, 1));
  if (w->options->depthwise_shifts) return kernel_grad_of_shifts(w, n, x, dy);
  window.batch_groups = n->shape.dim[2];
  shape.dim[2] = 1;
  shape.dim[3] = n->shape.dim[2];
  tp__hlo_value grad = tp__hlo_convolution(w, x, dy, &shape, &window);
  return tp__hlo_reshape(w, grad, &n->shape);
}
