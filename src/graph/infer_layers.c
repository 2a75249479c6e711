/* infer_layers - shapes of sources, layers and loss; see infer.h */
#include <float.h>
#include <math.h>

#include "infer.h"

tp_status tp__infer_constant(tp__typing *t)
{
  t->shape = (tp__shape){.rank = 0};
  return tp__want_number(t, 0, "the value", -FLT_MAX, FLT_MAX);
}

tp_status tp__infer_affine(tp__typing *t)
{
  TP__TRY(tp__want_number(t, 0, "the factor", -FLT_MAX, FLT_MAX));
  TP__TRY(tp__want_number(t, 1, "the offset", -FLT_MAX, FLT_MAX));
  t->shape = t->in[0]->shape;
  if (!t->attr.flag) return TP_OK;
  TP__TRY(tp__want_number(t, 2, "the factor", -FLT_MAX, FLT_MAX));
  for (int c = 0; c < 3; c++)
    if (!isfinite(t->attr.g[c])) return tp__bad(t, "an offset is %g", (double)t->attr.g[c]);
  if (tp__last_dim(t->in[0]) == 3) return TP_OK;
  return tp__bad(t, "%s must have 3 channels, for one factor each", tp__operand_text(t, 0));
}

tp_status tp__infer_reverse(tp__typing *t)
{
  TP__TRY(tp__want_examples(t, 0));
  t->shape = t->in[0]->shape;
  if (t->shape.rank >= 2) return TP_OK;
  return tp__bad(t, "%s has no channels", tp__operand_text(t, 0));
}

tp_status tp__infer_normalize(tp__typing *t)
{
  TP__TRY(tp__want_maps(t, 0));
  for (int i = 1; i <= 2; i++) TP__TRY(tp__want_channels(t, i, t->in[0]->shape.dim[3], 0));
  t->shape = t->in[0]->shape;
  return TP_OK;
}

tp_status tp__infer_pad(tp__typing *t)
{
  TP__TRY(tp__want_maps(t, 0));
  const int *pad = t->attr.pad;
  for (int i = 0; i < 4; i++)
    if (pad[i] < 0 || pad[i] > TP__SIZE_MAX)
      return tp__bad(t, "padding of %d is impossible", pad[i]);
  t->shape = t->in[0]->shape;
  t->shape.dim[1] += pad[0] + pad[1];
  t->shape.dim[2] += pad[2] + pad[3];
  return TP_OK;
}

static tp_status want_kernel(tp__typing *t, int i, bool depthwise)
{
  const tp__shape *k = &t->in[i]->shape;
  if (k->rank != 4 || k->dim[0] == TP__N || (depthwise && k->dim[3] != 1))
    return tp__bad(t, "%s must be [kh,kw,C,%s]", tp__operand_text(t, i), depthwise ? "1" : "K");
  if (t->in[0]->shape.dim[3] == k->dim[2]) return TP_OK;
  return tp__bad(t, "%s has %lld channels, %s wants %lld", tp__operand_text(t, 0),
                 (long long)t->in[0]->shape.dim[3], tp__operand_text(t, i), (long long)k->dim[2]);
}

tp_status tp__infer_conv(tp__typing *t)
{
  TP__TRY(tp__want_maps(t, 0));
  TP__TRY(want_kernel(t, 1, false));
  TP__TRY(tp__want_act(t));
  const tp__shape *x = &t->in[0]->shape, *k = &t->in[1]->shape;
  TP__TRY(tp__slide(t, tp__operand_text(t, 0), x, k->dim[0], k->dim[1], &t->shape));
  t->shape.dim[3] = k->dim[3];
  TP__TRY(tp__want_channels(t, 2, k->dim[3], 1));
  TP__TRY(tp__want_shape(t, 3, &t->shape));
  return tp__want_shape(t, 4, &(tp__shape){.rank = 4, .dim = {TP__N, 1, 1, x->dim[3]}});
}

tp_status tp__infer_depthwise(tp__typing *t)
{
  TP__TRY(tp__want_maps(t, 0));
  TP__TRY(want_kernel(t, 1, true));
  TP__TRY(tp__want_act(t));
  const tp__shape *x = &t->in[0]->shape, *k = &t->in[1]->shape;
  TP__TRY(tp__slide(t, tp__operand_text(t, 0), x, k->dim[0], k->dim[1], &t->shape));
  t->shape.dim[3] = x->dim[3];
  return tp__want_channels(t, 2, x->dim[3], 1);
}

tp_status tp__infer_bias_add(tp__typing *t)
{
  TP__TRY(tp__want_examples(t, 0));
  if (t->in[0]->shape.rank < 2) return tp__bad(t, "%s has no channels", tp__operand_text(t, 0));
  t->shape = t->in[0]->shape;
  return tp__want_channels(t, 1, tp__last_dim(t->in[0]), 0);
}

tp_status tp__infer_batch_norm(tp__typing *t)
{
  TP__TRY(tp__want_examples(t, 0));
  if (t->in[0]->shape.rank < 2) return tp__bad(t, "%s has no channels", tp__operand_text(t, 0));
  TP__TRY(tp__want_number(t, 0, "epsilon", 0, 1));
  TP__TRY(tp__want_act(t));
  for (int i = 1; i <= 4; i++) TP__TRY(tp__want_channels(t, i, tp__last_dim(t->in[0]), 0));
  t->shape = t->in[0]->shape;
  return TP_OK;
}

tp_status tp__infer_activation(tp__typing *t)
{
  t->shape = t->in[0]->shape;
  return tp__want_act(t);
}

tp_status tp__infer_add(tp__typing *t)
{
  t->shape = t->in[0]->shape;
  return tp__want_same(t, 0, 1);
}

tp_status tp__infer_mul(tp__typing *t)
{
  const tp__shape *a = &t->in[0]->shape, *b = &t->in[1]->shape;
  t->shape = *a;
  if (tp__shape_equal(a, b)) return TP_OK;
  if (a->rank == 4 && a->dim[0] == TP__N &&
      tp__shape_equal(b, &(tp__shape){.rank = 4, .dim = {TP__N, 1, 1, a->dim[3]}}))
    return TP_OK;
  return tp__bad(t, "%s and %s must have the same shape, or b be [N,1,1,C] of a's C",
                 tp__operand_text(t, 0), tp__operand_text(t, 1));
}

tp_status tp__infer_global_pool(tp__typing *t)
{
  TP__TRY(tp__want_maps(t, 0));
  t->shape = (tp__shape){.rank = 2, .dim = {TP__N, t->in[0]->shape.dim[3]}};
  return TP_OK;
}

/* MAX_POOL, AVG_POOL. */
tp_status tp__infer_pool(tp__typing *t)
{
  TP__TRY(tp__want_maps(t, 0));
  const int window = t->attr.window;
  if (window < 1 || window > TP__WINDOW_MAX)
    return tp__bad(t, "a window of %d is impossible", window);
  TP__TRY(tp__slide(t, tp__operand_text(t, 0), &t->in[0]->shape, window, window, &t->shape));
  t->shape.dim[3] = t->in[0]->shape.dim[3];
  return TP_OK;
}

tp_status tp__infer_concat(tp__typing *t)
{
  for (int i = 0; i < 2; i++) TP__TRY(tp__want_maps(t, i));
  const tp__shape *a = &t->in[0]->shape, *b = &t->in[1]->shape;
  if (a->dim[1] != b->dim[1] || a->dim[2] != b->dim[2])
    return tp__bad(t, "%s and %s must have the same height and width", tp__operand_text(t, 0),
                   tp__operand_text(t, 1));
  t->shape = *a;
  t->shape.dim[3] += b->dim[3];
  return TP_OK;
}

tp_status tp__infer_reshape(tp__typing *t)
{
  const tp__shape *x = &t->in[0]->shape, *y = &t->attr.shape;
  char text[96];
  TP__TRY(tp__check_shape("reshape", y, t->err));
  bool examples = y->rank > 0 && y->dim[0] == TP__N;
  if (examples != tp__per_example(t->in[0]) || tp__shape_elements(x, 1) != tp__shape_elements(y, 1))
    return tp__bad(t, "%s can't become %s", tp__operand_text(t, 0), tp__shape_text(y, text));
  t->shape = *y;
  return TP_OK;
}

tp_status tp__infer_matmul(tp__typing *t)
{
  TP__TRY(tp__want_rows(t, 0));
  TP__TRY(tp__want_act(t));
  const tp__shape *x = &t->in[0]->shape, *k = &t->in[1]->shape;
  if (k->rank != 2 || k->dim[0] == TP__N)
    return tp__bad(t, "%s must be [I,O]", tp__operand_text(t, 1));
  if (x->dim[1] != k->dim[0])
    return tp__bad(t, "%s has %lld columns, %s wants %lld", tp__operand_text(t, 0),
                   (long long)x->dim[1], tp__operand_text(t, 1), (long long)k->dim[0]);
  t->shape = (tp__shape){.rank = 2, .dim = {TP__N, k->dim[1]}};
  return tp__want_channels(t, 2, k->dim[1], 1);
}

static tp_status want_keys(tp__typing *t, int i)
{
  return tp__want_shape(t, i, &(tp__shape){.rank = 2, .dim = {TP__N, 2}});
}

tp_status tp__infer_random_flip(tp__typing *t)
{
  TP__TRY(tp__want_maps(t, 0));
  t->shape = t->in[0]->shape;
  return want_keys(t, 1);
}

tp_status tp__infer_random_rotation(tp__typing *t)
{
  TP__TRY(tp__infer_random_flip(t));
  if (t->shape.dim[3] > 4)
    return tp__bad(t, "%s must have at most 4 channels", tp__operand_text(t, 0));
  if (!(t->attr.f[0] > 0 && t->attr.f[0] <= 0.125f))
    return tp__bad(t, "a turn of %g must be above 0, and at most 0.125", (double)t->attr.f[0]);
  TP__TRY(tp__want_number(t, 1, "value of the fill", 0, 255));
  if (t->attr.fill != TP__FILL_REFLECT && t->attr.fill != TP__FILL_CONSTANT &&
      t->attr.fill != TP__FILL_NEAREST)
    return tp__bad(t, "fill %d is none of reflect, constant, nearest", (int)t->attr.fill);
  return TP_OK;
}

tp_status tp__infer_dropout(tp__typing *t)
{
  TP__TRY(tp__want_examples(t, 0));
  TP__TRY(want_keys(t, 1));
  if (!(t->attr.f[0] >= 0 && t->attr.f[0] < 1))
    return tp__bad(t, "rate %g must be at least 0 and below 1", (double)t->attr.f[0]);
  if (t->attr.draw >= 1u << 24) return tp__bad(t, "draw %u must be below 2^24", t->attr.draw);
  t->shape = t->in[0]->shape;
  return TP_OK;
}

tp_status tp__infer_softmax(tp__typing *t)
{
  t->shape = t->in[0]->shape;
  return tp__want_rows(t, 0);
}

tp_status tp__infer_cross_entropy(tp__typing *t)
{
  TP__TRY(tp__want_rows(t, 0));
  TP__TRY(tp__want_number(t, 0, "label smoothing", 0, 1));
  t->shape = (tp__shape){.rank = 1, .dim = {TP__N}};
  return tp__want_shape(t, 1, &t->shape);
}

tp_status tp__infer_weighted_sum(tp__typing *t)
{
  const tp__shape examples = {.rank = 1, .dim = {TP__N}};
  t->shape = (tp__shape){.rank = 0};
  TP__TRY(tp__want_shape(t, 0, &examples));
  return tp__want_shape(t, 1, &examples);
}
