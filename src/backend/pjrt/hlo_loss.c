/* hlo_loss - softmax, cross-entropy from logits, sums over the examples; see hlo.h
 *
 * Always float32, with the largest logit taken off before the exponential.
 */
#include "hlo_emitters.h"

/* [...,K]: x without its row's largest. */
static tp__hlo_value below_top(tp__hlo *w, tp__hlo_value x)
{
  const int last = x.shape.rank - 1;
  tp__hlo_value top = tp__hlo_reduce(w, "maximum", x, last, last);
  return tp__hlo_sub(w, x, tp__hlo_broadcast(w, top, &x.shape, (int64_t[]){0, 1, 2, 3, 4}));
}

static tp__hlo_value sum_last(tp__hlo *w, tp__hlo_value x)
{
  return tp__hlo_reduce(w, "add", x, x.shape.rank - 1, x.shape.rank - 1);
}

static tp__hlo_value softmax_of(tp__hlo *w, tp__hlo_value x)
{
  tp__hlo_value e = tp__hlo_unary(w, "exponential", below_top(w, x));
  return tp__hlo_div(w, e,
                     tp__hlo_broadcast(w, sum_last(w, e), &e.shape, (int64_t[]){0, 1, 2, 3, 4}));
}

tp__hlo_value tp__hlo_softmax(tp__hlo *w, const tp__node *n)
{
  return softmax_of(w, tp__hlo_float(w, n, 0));
}

/* i1 [N,K]: this class is the label. */
static tp__hlo_value is_label(tp__hlo *w, const tp__node *n, const tp__shape *shape)
{
  tp__hlo_value label = tp__hlo_broadcast(w, tp__hlo_operand(w, n, 1), shape, (int64_t[]){0});
  return tp__hlo_compare(w, "EQ", tp__hlo_iota(w, TP__HLO_I32, shape, 1), label);
}

/* Targets add up to 1: log sum exp z - sum_k t_k z_k, z = logits - top. */
tp__hlo_value tp__hlo_cross_entropy(tp__hlo *w, const tp__node *n)
{
  double smoothing = n->attr.f[0];
  tp__hlo_value z = below_top(w, tp__hlo_float(w, n, 0));
  tp__hlo_value log_sum = tp__hlo_unary(w, "log", sum_last(w, tp__hlo_unary(w, "exponential", z)));
  tp__hlo_value label = is_label(w, n, &z.shape);
  tp__hlo_value at_label = sum_last(w, tp__hlo_select(w, label, z, tp__hlo_like(w, z, 0)));
  tp__hlo_value loss = tp__hlo_sub(w, log_sum, tp__hlo_times(w, at_label, 1 - smoothing));
  if (smoothing == 0) return loss;
  double share = smoothing / (double)z.shape.dim[1];
  return tp__hlo_sub(w, loss, tp__hlo_times(w, sum_last(w, z), share));
}

tp__hlo_value tp__hlo_cross_entropy_grad(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value p = softmax_of(w, tp__hlo_float(w, n, 0)), dloss = tp__hlo_float(w, n, 2);
  double smoothing = n->attr.f[0], share = smoothing / (double)p.shape.dim[1];
  tp__hlo_value label = is_label(w, n, &p.shape), others = tp__hlo_like(w, p, share);
  tp__hlo_value target =
      tp__hlo_select(w, label, tp__hlo_like(w, p, 1 - smoothing + share), others);
  w->zero = tp__hlo_zero_operand(w, n, 2);
  p = tp__hlo_sub(w, p, target);
  return tp__hlo_mul(w, p, tp__hlo_per_row(w, dloss, p));
}

tp__hlo_value tp__hlo_weighted_sum(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value values = tp__hlo_float(w, n, 0), weights = tp__hlo_float(w, n, 1);
  bool zero = tp__hlo_zero_operand(w, n, 0) && tp__hlo_zero_operand(w, n, 1);
  return tp__hlo_sum_all(w, tp__hlo_masked(w, tp__hlo_mul(w, values, weights), zero));
}

/* Where the gradient of each example begins: padded rows get none. */
tp__hlo_value tp__hlo_scale_rows(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value weights = tp__hlo_float(w, n, 1);
  tp__hlo_value rows = tp__hlo_mul(w, tp__hlo_spread(w, tp__hlo_float(w, n, 0), weights), weights);
  rows = tp__hlo_masked(w, rows, tp__hlo_zero_operand(w, n, 1));
  w->zero = true;
  return rows;
}

tp__hlo_value tp__hlo_sum_to_last_node(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value dy = tp__hlo_masked(w, tp__hlo_float(w, n, 0), tp__hlo_zero_operand(w, n, 0));
  return tp__hlo_sum_to_last(w, dy);
}
