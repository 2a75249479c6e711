/* infer_update - shapes of shared arithmetic: folded batch norm, optimizer updates; see infer.h */
#include <float.h>

#include "infer.h"

tp_status tp__infer_fold_kernel(tp__typing *t)
{
  const tp__shape *k = &t->in[0]->shape;
  TP__TRY(tp__want_shared(t, 0));
  TP__TRY(tp__want_number(t, 0, "epsilon", 0, 1));
  if (k->rank != 4 || (t->attr.depthwise && k->dim[3] != 1))
    return tp__bad(t, "%s must be [kh,kw,C,%s]", tp__operand_text(t, 0),
                   t->attr.depthwise ? "1" : "K");
  for (int i = 1; i <= 2; i++)
    TP__TRY(tp__want_channels(t, i, k->dim[t->attr.depthwise ? 2 : 3], 0));
  t->shape = *k;
  return TP_OK;
}

tp_status tp__infer_fold_bias(tp__typing *t)
{
  const tp__shape *gamma = &t->in[0]->shape;
  TP__TRY(tp__want_number(t, 0, "epsilon", 0, 1));
  TP__TRY(tp__want_shared(t, 0));
  if (gamma->rank != 1) return tp__bad(t, "%s must be [C]", tp__operand_text(t, 0));
  for (int i = 1; i <= 4; i++) TP__TRY(tp__want_channels(t, i, gamma->dim[0], 0));
  t->shape = *gamma;
  return TP_OK;
}

/* Operands 0...n-1 are shared and of one shape, which is the result's. */
static tp_status want_alike(tp__typing *t, int n)
{
  TP__TRY(tp__want_shared(t, 0));
  for (int i = 1; i < n; i++) TP__TRY(tp__want_same(t, 0, i));
  t->shape = t->in[0]->shape;
  return TP_OK;
}

tp_status tp__infer_adam_m(tp__typing *t)
{
  TP__TRY(tp__want_number(t, 0, "beta1", 0, 1));
  return want_alike(t, 2);
}

tp_status tp__infer_adam_v(tp__typing *t)
{
  TP__TRY(tp__want_number(t, 0, "beta2", 0, 1));
  return want_alike(t, 2);
}

static tp_status want_decay(tp__typing *t)
{
  if (t->attr.g[0] >= 0 && t->attr.g[0] <= FLT_MAX) return TP_OK; /* false for NaN, too */
  return tp__bad(t, "a weight decay of %g", (double)t->attr.g[0]);
}

tp_status tp__infer_adam_param(tp__typing *t)
{
  TP__TRY(tp__want_number(t, 0, "beta1", 0, 1));
  TP__TRY(tp__want_number(t, 1, "beta2", 0, 1));
  TP__TRY(tp__want_number(t, 2, "epsilon", 0, FLT_MAX));
  TP__TRY(want_decay(t));
  for (int i = 3; i <= 4; i++) TP__TRY(tp__want_scalar(t, i));
  return want_alike(t, 3);
}

tp_status tp__infer_sgd_momentum(tp__typing *t)
{
  TP__TRY(tp__want_number(t, 0, "momentum", 0, 1));
  TP__TRY(tp__want_scalar(t, 2));
  return want_alike(t, 2);
}

tp_status tp__infer_sgd_param(tp__typing *t)
{
  bool decays = t->attr.g[0] != 0;
  TP__TRY(want_decay(t));
  if (!t->attr.flag) {
    if (t->in[2] != NULL || (!decays && t->in[3] != NULL))
      return tp__bad(t, "g and rate are only for Nesterov momentum");
    if (decays && t->in[3] == NULL) return tp__bad(t, "weight decay needs operand rate");
    if (decays) TP__TRY(tp__want_scalar(t, 3));
    return want_alike(t, 2);
  }
  TP__TRY(tp__want_number(t, 0, "momentum", 0, 1));
  if (t->in[2] == NULL || t->in[3] == NULL)
    return tp__bad(t, "Nesterov momentum needs operands g and rate");
  TP__TRY(tp__want_scalar(t, 3));
  return want_alike(t, 3);
}
