/* infer - operands against the table, and the checks that its functions share; see infer.h */
#include "infer.h"

#include <math.h>
#include <string.h>

tp_status tp__bad(tp__typing *t, const char *format, ...)
{
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tp__fail(t->err, TP_ERR_INTERNAL, "%s: %s", tp__op_name(t->op), text);
}

const char *tp__operand_text(tp__typing *t, int i)
{
  char shape[96];
  snprintf(t->text[i], sizeof t->text[i], "%s %s", tp__op_info_of(t->op)->operand[i],
           tp__shape_text(&t->in[i]->shape, shape));
  return t->text[i];
}

tp_status tp__check_shape(const char *what, const tp__shape *shape, tp_error *err)
{
  char text[96];
  if (shape->rank < 0 || shape->rank > TP__RANK_MAX)
    return tp__fail(err, TP_ERR_INTERNAL, "%s: %d dimensions, at most %d are possible", what,
                    shape->rank, TP__RANK_MAX);
  for (int i = 0; i < shape->rank; i++)
    if (shape->dim[i] < 1 && !(i == 0 && shape->dim[i] == TP__N))
      return tp__fail(
          err, TP_ERR_INTERNAL,
          "%s: shape %s: each dimension must be at least 1 (only the first may be None)", what,
          tp__shape_text(shape, text));
  if (tp__shape_elements(shape, 1) > INT32_MAX)
    return tp__fail(err, TP_ERR_INTERNAL, "%s: shape %s has more than %d elements", what,
                    tp__shape_text(shape, text), INT32_MAX);
  return TP_OK;
}

static tp_status check_operand(tp__typing *t, const tp__op_info *info, int i)
{
  if (t->in[i] == NULL)
    return i < info->required ? tp__bad(t, "operand %s is missing", info->operand[i]) : TP_OK;
  tp__dtype want = info->other == i && i > 0 ? info->other_dtype : TP__F32;
  if (t->in[i]->dtype == want) return TP_OK;
  return tp__bad(t, "%s is %s, must be %s", tp__operand_text(t, i), tp__dtype_name(t->in[i]->dtype),
                 tp__dtype_name(want));
}

tp_status tp__infer(const tp__graph *g, tp__op op, const tp__value *in, int n_in,
                    const tp__attr *attr, tp__shape *shape, tp_error *err)
{
  const tp__op_info *info = tp__op_info_of(op);
  if (info == NULL || info->infer == NULL)
    return tp__fail(err, TP_ERR_INTERNAL, "%s can't be added as a node of operands",
                    tp__op_name(op));
  tp__typing t = {.op = op, .attr = *attr, .err = err};
  if (n_in > info->allowed)
    return tp__bad(&t, "has %d operands, at most %d are possible", n_in, info->allowed);
  for (int i = 0; i < n_in; i++)
    if (in[i] != TP__NONE) t.in[i] = &g->node[in[i]];
  for (int i = 0; i < info->allowed; i++) TP__TRY(check_operand(&t, info, i));
  TP__TRY(info->infer(&t));
  TP__TRY(tp__check_shape(tp__op_name(op), &t.shape, err));
  *shape = t.shape;
  return TP_OK;
}

/* ---- shapes of operands ---- */

static bool is_examples(const tp__node *n, int rank)
{
  return n->shape.rank == rank && n->shape.dim[0] == TP__N;
}

tp_status tp__want_maps(tp__typing *t, int i)
{
  if (is_examples(t->in[i], 4)) return TP_OK;
  return tp__bad(t, "%s must be [N,H,W,C]", tp__operand_text(t, i));
}

tp_status tp__want_rows(tp__typing *t, int i)
{
  if (is_examples(t->in[i], 2)) return TP_OK;
  return tp__bad(t, "%s must be [N,C]", tp__operand_text(t, i));
}

tp_status tp__want_examples(tp__typing *t, int i)
{
  if (tp__per_example(t->in[i])) return TP_OK;
  return tp__bad(t, "%s must have a row for each example", tp__operand_text(t, i));
}

tp_status tp__want_shared(tp__typing *t, int i)
{
  if (!tp__per_example(t->in[i])) return TP_OK;
  return tp__bad(t, "%s must be shared by all examples, without None", tp__operand_text(t, i));
}

tp_status tp__want_scalar(tp__typing *t, int i)
{
  if (t->in[i]->shape.rank == 0) return TP_OK;
  return tp__bad(t, "%s must be a scalar", tp__operand_text(t, i));
}

tp_status tp__want_channels(tp__typing *t, int i, int64_t channels, int of)
{
  if (t->in[i] == NULL) return TP_OK;
  const tp__shape *s = &t->in[i]->shape;
  if (s->rank == 1 && s->dim[0] == channels) return TP_OK;
  return tp__bad(t, "%s must be (%lld,), as %s has %lld channels", tp__operand_text(t, i),
                 (long long)channels, tp__operand_text(t, of), (long long)channels);
}

tp_status tp__want_same(tp__typing *t, int i, int j)
{
  if (tp__shape_equal(&t->in[i]->shape, &t->in[j]->shape)) return TP_OK;
  return tp__bad(t, "%s and %s must have the same shape", tp__operand_text(t, i),
                 tp__operand_text(t, j));
}

tp_status tp__want_shape(tp__typing *t, int i, const tp__shape *shape)
{
  char text[96];
  if (t->in[i] == NULL || tp__shape_equal(&t->in[i]->shape, shape)) return TP_OK;
  return tp__bad(t, "%s must be %s", tp__operand_text(t, i), tp__shape_text(shape, text));
}

/* ---- attributes ---- */

tp_status tp__want_attr_shape(tp__typing *t, int rank)
{
  char text[96];
  TP__TRY(tp__check_shape(tp__op_name(t->op), &t->attr.shape, t->err));
  if (t->attr.shape.rank == rank) return TP_OK;
  return tp__bad(t, "the given shape %s must have %d dimensions",
                 tp__shape_text(&t->attr.shape, text), rank);
}

tp_status tp__want_number(tp__typing *t, int f, const char *what, double low, double high)
{
  double value = (double)t->attr.f[f];
  if (isfinite(value) && value >= low && value <= high) return TP_OK;
  return tp__bad(t, "%s %g must be between %g and %g", what, value, low, high);
}

tp_status tp__want_act(tp__typing *t)
{
  if ((unsigned)t->attr.act <= TP__ACT_SIGMOID) return TP_OK;
  return tp__bad(t, "unknown activation %d", (int)t->attr.act);
}

tp_status tp__slide(tp__typing *t, const char *x_text, const tp__shape *x, int64_t kh, int64_t kw,
                    tp__shape *y)
{
  const tp__attr *a = &t->attr;
  if (a->stride < 1 || a->stride > TP__SIZE_MAX)
    return tp__bad(t, "stride %d must be at least 1", a->stride);
  for (int i = 0; i < 4; i++)
    if (a->pad[i] < 0 || a->pad[i] > TP__SIZE_MAX)
      return tp__bad(t, "padding of %d is impossible", a->pad[i]);
  int64_t h = x->dim[1] + a->pad[0] + a->pad[1], w = x->dim[2] + a->pad[2] + a->pad[3];
  if (kh > h || kw > w)
    return tp__bad(t, "%s with padding is %lld x %lld, smaller than the kernel's %lld x %lld",
                   x_text, (long long)h, (long long)w, (long long)kh, (long long)kw);
  y->rank = 4;
  y->dim[0] = TP__N;
  y->dim[1] = (h - kh) / a->stride + 1;
  y->dim[2] = (w - kw) / a->stride + 1;
  return TP_OK;
}
