/* infer_grad - shapes of gradient operators; see infer.h */
#include <float.h>

#include "infer.h"

/* dy [N,OH,OW,K] must be what the convolution of x (attr.shape or an operand) with a kernel gives.
 */
static tp_status want_conv_output(tp__typing *t, int dy, const tp__shape *x, const tp__shape *k,
                                  bool depthwise)
{
  char x_text[96], x_label[128], k_text[96], y_text[96];
  tp__shape_text(x, x_text);
  tp__shape_text(k, k_text);
  snprintf(x_label, sizeof x_label, "x %s", x_text);
  if (x->dim[0] != TP__N || k->dim[0] == TP__N || x->dim[3] != k->dim[2] ||
      (depthwise && k->dim[3] != 1))
    return tp__bad(t, "x %s and kernel %s don't fit", x_text, k_text);
  tp__shape y = {.rank = 4};
  TP__TRY(tp__slide(t, x_label, x, k->dim[0], k->dim[1], &y));
  y.dim[3] = depthwise ? x->dim[3] : k->dim[3];
  if (tp__shape_equal(&y, &t->in[dy]->shape)) return TP_OK;
  return tp__bad(t, "%s must be %s, which x %s and kernel %s give", tp__operand_text(t, dy),
                 tp__shape_text(&y, y_text), x_text, k_text);
}

static tp_status input_grad(tp__typing *t, bool depthwise)
{
  TP__TRY(tp__want_attr_shape(t, 4));
  if (t->in[1]->shape.rank != 4)
    return tp__bad(t, "%s must have 4 dimensions", tp__operand_text(t, 1));
  t->shape = t->attr.shape;
  return want_conv_output(t, 0, &t->attr.shape, &t->in[1]->shape, depthwise);
}

static tp_status kernel_grad(tp__typing *t, bool depthwise)
{
  TP__TRY(tp__want_maps(t, 0));
  TP__TRY(tp__want_attr_shape(t, 4));
  t->shape = t->attr.shape;
  return want_conv_output(t, 1, &t->in[0]->shape, &t->attr.shape, depthwise);
}

tp_status tp__infer_conv_input_grad(tp__typing *t)
{
  return input_grad(t, false);
}

tp_status tp__infer_conv_kernel_grad(tp__typing *t)
{
  return kernel_grad(t, false);
}

tp_status tp__infer_depthwise_input_grad(tp__typing *t)
{
  return input_grad(t, true);
}

tp_status tp__infer_depthwise_kernel_grad(tp__typing *t)
{
  return kernel_grad(t, true);
}

tp_status tp__infer_sum_to_last(tp__typing *t)
{
  TP__TRY(tp__want_examples(t, 0));
  if (t->in[0]->shape.rank < 2) return tp__bad(t, "%s has no channels", tp__operand_text(t, 0));
  t->shape = (tp__shape){.rank = 1, .dim = {tp__last_dim(t->in[0])}};
  return TP_OK;
}

tp_status tp__infer_batch_norm_input_grad(tp__typing *t)
{
  TP__TRY(tp__want_examples(t, 0));
  if (t->in[0]->shape.rank < 2) return tp__bad(t, "%s has no channels", tp__operand_text(t, 0));
  TP__TRY(tp__want_number(t, 0, "epsilon", 0, 1));
  for (int i = 1; i <= 2; i++) TP__TRY(tp__want_channels(t, i, tp__last_dim(t->in[0]), 0));
  t->shape = t->in[0]->shape;
  return TP_OK;
}

tp_status tp__infer_batch_norm_gamma_grad(tp__typing *t)
{
  TP__TRY(tp__want_examples(t, 0));
  if (t->in[0]->shape.rank < 2) return tp__bad(t, "%s has no channels", tp__operand_text(t, 0));
  TP__TRY(tp__want_number(t, 0, "epsilon", 0, 1));
  TP__TRY(tp__want_same(t, 0, 1));
  int64_t channels = tp__last_dim(t->in[0]);
  for (int i = 2; i <= 3; i++) TP__TRY(tp__want_channels(t, i, channels, 0));
  t->shape = (tp__shape){.rank = 1, .dim = {channels}};
  return TP_OK;
}

tp_status tp__infer_activation_grad(tp__typing *t)
{
  TP__TRY(tp__want_act(t));
  t->shape = t->in[0]->shape;
  return tp__want_same(t, 0, 1);
}

/* A forgotten factor would be a silent zero. */
static tp_status want_factor(tp__typing *t)
{
  TP__TRY(tp__want_number(t, 0, "the factor", -FLT_MAX, FLT_MAX));
  return t->attr.f[0] != 0 ? TP_OK : tp__bad(t, "the factor must not be 0");
}

tp_status tp__infer_sum_spatial(tp__typing *t)
{
  TP__TRY(tp__want_maps(t, 0));
  t->shape = (tp__shape){.rank = 4, .dim = {TP__N, 1, 1, t->in[0]->shape.dim[3]}};
  return want_factor(t);
}

tp_status tp__infer_broadcast_spatial(tp__typing *t)
{
  const tp__shape *x = &t->in[0]->shape, *y = &t->attr.shape;
  char text[96];
  TP__TRY(want_factor(t));
  TP__TRY(tp__want_attr_shape(t, 4));
  TP__TRY(tp__want_examples(t, 0));
  bool pixel = x->rank == 4 && x->dim[1] == 1 && x->dim[2] == 1;
  if ((x->rank != 2 && !pixel) || y->dim[0] != TP__N || tp__last_dim(t->in[0]) != y->dim[3])
    return tp__bad(t, "%s can't be spread over %s", tp__operand_text(t, 0),
                   tp__shape_text(y, text));
  t->shape = *y;
  return TP_OK;
}

tp_status tp__infer_matmul_input_grad(tp__typing *t)
{
  TP__TRY(tp__want_rows(t, 0));
  const tp__shape *dy = &t->in[0]->shape, *k = &t->in[1]->shape;
  if (k->rank != 2 || k->dim[0] == TP__N || k->dim[1] != dy->dim[1])
    return tp__bad(t, "%s has %lld columns, %s doesn't", tp__operand_text(t, 0),
                   (long long)dy->dim[1], tp__operand_text(t, 1));
  t->shape = (tp__shape){.rank = 2, .dim = {TP__N, k->dim[0]}};
  return TP_OK;
}

tp_status tp__infer_matmul_kernel_grad(tp__typing *t)
{
  for (int i = 0; i <= 1; i++) TP__TRY(tp__want_rows(t, i));
  t->shape = (tp__shape){.rank = 2, .dim = {t->in[0]->shape.dim[1], t->in[1]->shape.dim[1]}};
  return TP_OK;
}

tp_status tp__infer_cross_entropy_grad(tp__typing *t)
{
  const tp__shape examples = {.rank = 1, .dim = {TP__N}};
  TP__TRY(tp__want_rows(t, 0));
  TP__TRY(tp__want_number(t, 0, "label smoothing", 0, 1));
  for (int i = 1; i <= 2; i++) TP__TRY(tp__want_shape(t, i, &examples));
  t->shape = t->in[0]->shape;
  return TP_OK;
}

tp_status tp__infer_scale_rows(tp__typing *t)
{
  t->shape = (tp__shape){.rank = 1, .dim = {TP__N}};
  TP__TRY(tp__want_scalar(t, 0));
  return tp__want_shape(t, 1, &t->shape);
}

tp_status tp__infer_crop(tp__typing *t)
{
  TP__TRY(tp__want_maps(t, 0));
  const int *pad = t->attr.pad;
  for (int i = 0; i < 4; i++)
    if (pad[i] < 0 || pad[i] > TP__SIZE_MAX)
      return tp__bad(t, "a crop of %d is impossible", pad[i]);
  t->shape = t->in[0]->shape;
  t->shape.dim[1] -= pad[0] + pad[1];
  t->shape.dim[2] -= pad[2] + pad[3];
  if (t->shape.dim[1] >= 1 && t->shape.dim[2] >= 1) return TP_OK;
  return tp__bad(t, "%s is too small for a crop of %d,%d,%d,%d", tp__operand_text(t, 0), pad[0],
                 pad[1], pad[2], pad[3]);
}

/* dy must be what pooling gives for x. */
static tp_status want_pooled(tp__typing *t, const tp__shape *x)
{
  char x_text[96], x_label[128], y_text[96];
  tp__shape y = {.rank = 4};
  tp__shape_text(x, x_text);
  snprintf(x_label, sizeof x_label, "x %s", x_text);
  if (x->dim[0] != TP__N) return tp__bad(t, "%s has no row for each example", x_label);
  if (t->attr.window < 1 || t->attr.window > TP__WINDOW_MAX)
    return tp__bad(t, "a window of %d is impossible", t->attr.window);
  TP__TRY(tp__slide(t, x_label, x, t->attr.window, t->attr.window, &y));
  y.dim[3] = x->dim[3];
  t->shape = *x;
  if (tp__shape_equal(&y, &t->in[0]->shape)) return TP_OK;
  return tp__bad(t, "%s must be %s, as %s is pooled", tp__operand_text(t, 0),
                 tp__shape_text(&y, y_text), x_label);
}

tp_status tp__infer_max_pool_grad(tp__typing *t)
{
  TP__TRY(tp__want_maps(t, 1));
  return want_pooled(t, &t->in[1]->shape);
}

tp_status tp__infer_avg_pool_grad(tp__typing *t)
{
  TP__TRY(tp__want_attr_shape(t, 4));
  return want_pooled(t, &t->attr.shape);
}

tp_status tp__infer_slice_channels(tp__typing *t)
{
  char text[96];
  TP__TRY(tp__want_maps(t, 0));
  TP__TRY(tp__want_attr_shape(t, 4));
  tp__shape x = t->in[0]->shape;
  const int64_t channels = x.dim[3], first = t->attr.first, wanted = t->attr.shape.dim[3];
  x.dim[3] = wanted;
  if (!tp__shape_equal(&x, &t->attr.shape) || first < 0 || first + wanted > channels)
    return tp__bad(t, "%s has no channels %lld to %lld as %s", tp__operand_text(t, 0),
                   (long long)first, (long long)(first + wanted),
                   tp__shape_text(&t->attr.shape, text));
  t->shape = x;
  return TP_OK;
}
