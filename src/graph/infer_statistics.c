/* infer_statistics - shapes of batch statistics and averages, and of the norm of all gradients; see
 * infer.h */
#include <float.h>

#include "infer.h"

static tp_status want_channelled(tp__typing *t, int i)
{
  TP__TRY(tp__want_examples(t, i));
  if (t->in[i]->shape.rank < 2) return tp__bad(t, "%s has no channels", tp__operand_text(t, i));
  return TP_OK;
}

tp_status tp__infer_batch_moments(tp__typing *t)
{
  TP__TRY(want_channelled(t, 0));
  t->shape = (tp__shape){.rank = 2, .dim = {2, tp__last_dim(t->in[0])}};
  return TP_OK;
}

tp_status tp__infer_row(tp__typing *t)
{
  const tp__shape *x = &t->in[0]->shape;
  TP__TRY(tp__want_shared(t, 0));
  if (x->rank != 2) return tp__bad(t, "%s must be [R,C]", tp__operand_text(t, 0));
  if (t->attr.row < 0 || t->attr.row >= x->dim[0])
    return tp__bad(t, "%s has no row %d", tp__operand_text(t, 0), t->attr.row);
  t->shape = (tp__shape){.rank = 1, .dim = {x->dim[1]}};
  return TP_OK;
}

tp_status tp__infer_batch_norm_full_grad(tp__typing *t)
{
  enum { X, DY, GAMMA, MOMENTS, BETA_GRAD, GAMMA_GRAD };
  TP__TRY(want_channelled(t, X));
  TP__TRY(tp__want_same(t, X, DY));
  TP__TRY(tp__want_number(t, 0, "epsilon", 0, 1));
  int64_t channels = tp__last_dim(t->in[X]);
  TP__TRY(tp__want_channels(t, GAMMA, channels, X));
  TP__TRY(tp__want_channels(t, BETA_GRAD, channels, X));
  TP__TRY(tp__want_channels(t, GAMMA_GRAD, channels, X));
  t->shape = t->in[X]->shape;
  return tp__want_shape(t, MOMENTS, &(tp__shape){.rank = 2, .dim = {2, channels}});
}

tp_status tp__infer_moving_average(tp__typing *t)
{
  TP__TRY(tp__want_number(t, 0, "momentum", 0, 1));
  TP__TRY(tp__want_shared(t, 0));
  if (t->in[2] != NULL) TP__TRY(tp__want_scalar(t, 2));
  t->shape = t->in[0]->shape;
  return tp__want_same(t, 0, 1);
}

tp_status tp__infer_sum_squares(tp__typing *t)
{
  for (int i = 0; i < TP__OPERANDS_MAX; i++)
    if (t->in[i] != NULL) TP__TRY(tp__want_shared(t, i));
  t->shape = (tp__shape){.rank = 0};
  return TP_OK;
}

tp_status tp__infer_sum_scalars(tp__typing *t)
{
  for (int i = 0; i < TP__OPERANDS_MAX; i++)
    if (t->in[i] != NULL) TP__TRY(tp__want_scalar(t, i));
  t->shape = (tp__shape){.rank = 0};
  return TP_OK;
}

tp_status tp__infer_clip_factor(tp__typing *t)
{
  TP__TRY(tp__want_number(t, 0, "the norm", FLT_MIN, FLT_MAX));
  t->shape = (tp__shape){.rank = 0};
  return tp__want_scalar(t, 0);
}

tp_status tp__infer_scale(tp__typing *t)
{
  TP__TRY(tp__want_shared(t, 0));
  t->shape = t->in[0]->shape;
  return tp__want_scalar(t, 1);
}
