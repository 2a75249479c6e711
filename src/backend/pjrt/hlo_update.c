/* hlo_update - folding of batch norm, Adam, SGD, averages, clipping; see hlo.h */
#include <math.h>

#include "hlo_emitters.h"

tp__hlo_value tp__hlo_fold_kernel(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value kernel = tp__hlo_float(w, n, 0);
  tp__hlo_value factor = tp__hlo_gamma_factor(w, n, 1, 2);
  int64_t along = n->attr.depthwise ? 2 : 3;
  return tp__hlo_mul(w, kernel, tp__hlo_broadcast(w, factor, &kernel.shape, &along));
}

tp__hlo_value tp__hlo_fold_bias(tp__hlo *w, const tp__node *n)
{
  enum { GAMMA, BETA, MEAN, VARIANCE, BIAS };
  tp__hlo_value centred = tp__hlo_unary(w, "negate", tp__hlo_float(w, n, MEAN));

  if (tp__hlo_has(n, BIAS)) centred = tp__hlo_add(w, tp__hlo_float(w, n, BIAS), centred);
  centred = tp__hlo_mul(w, centred, tp__hlo_gamma_factor(w, n, GAMMA, VARIANCE));
  return tp__hlo_add(w, tp__hlo_float(w, n, BETA), centred);
}

/* a + (b - a) share */
static tp__hlo_value towards(tp__hlo *w, tp__hlo_value a, tp__hlo_value b, double share)
{
  return tp__hlo_add(w, a, tp__hlo_times(w, tp__hlo_sub(w, b, a), share));
}

tp__hlo_value tp__hlo_adam_m(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value m = tp__hlo_float(w, n, 0), g = tp__hlo_float(w, n, 1);
  return towards(w, m, g, (double)(1 - n->attr.f[0]));
}

tp__hlo_value tp__hlo_adam_v(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value v = tp__hlo_float(w, n, 0), g = tp__hlo_float(w, n, 1);
  return towards(w, v, tp__hlo_mul(w, g, g), (double)(1 - n->attr.f[0]));
}

/* 1 - beta^step, without losing digits where that is near 0. */
static tp__hlo_value correction(tp__hlo *w, double beta, tp__hlo_value step)
{
  if (beta <= 0) return tp__hlo_like(w, step, 1);
  tp__hlo_value power = tp__hlo_times(w, step, log(beta));
  return tp__hlo_unary(w, "negate", tp__hlo_unary(w, "exponential_minus_one", power));
}

/* p without the decay: p - rate decay p. */
static tp__hlo_value decayed(tp__hlo *w, const tp__node *n, tp__hlo_value p, int rate)
{
  if (n->attr.g[0] == 0 || !tp__hlo_has(n, rate)) return p;
  tp__hlo_value decay = tp__hlo_times(w, tp__hlo_float(w, n, rate), (double)n->attr.g[0]);
  return tp__hlo_sub(w, p, tp__hlo_mul(w, p, tp__hlo_spread(w, decay, p)));
}

tp__hlo_value tp__hlo_adam_param(tp__hlo *w, const tp__node *n)
{
  enum { P, M, V, RATE, STEP };
  const float *f = n->attr.f;
  tp__hlo_value p = tp__hlo_float(w, n, P), m = tp__hlo_float(w, n, M);
  tp__hlo_value v = tp__hlo_float(w, n, V), step = tp__hlo_float(w, n, STEP);
  tp__hlo_value rate = tp__hlo_unary(w, "sqrt", correction(w, (double)f[1], step));
  rate = tp__hlo_mul(w, tp__hlo_float(w, n, RATE), rate);
  rate = tp__hlo_div(w, rate, correction(w, (double)f[0], step));
  tp__hlo_value below = tp__hlo_unary(w, "sqrt", v);
  below = tp__hlo_add(w, below, tp__hlo_like(w, v, (double)f[2]));
  tp__hlo_value move = tp__hlo_div(w, tp__hlo_mul(w, tp__hlo_spread(w, rate, m), m), below);
  return tp__hlo_sub(w, decayed(w, n, p, RATE), move);
}

/* f[0] velocity - rate g */
static tp__hlo_value momentum(tp__hlo *w, const tp__node *n, int velocity, int gradient, int rate)
{
  tp__hlo_value v = tp__hlo_float(w, n, velocity), g = tp__hlo_float(w, n, gradient);
  tp__hlo_value step = tp__hlo_mul(w, tp__hlo_spread(w, tp__hlo_float(w, n, rate), g), g);
  return tp__hlo_sub(w, tp__hlo_times(w, v, (double)n->attr.f[0]), step);
}

tp__hlo_value tp__hlo_sgd_momentum(tp__hlo *w, const tp__node *n)
{
  return momentum(w, n, 0, 1, 2);
}

tp__hlo_value tp__hlo_sgd_param(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value p = decayed(w, n, tp__hlo_float(w, n, 0), 3);
  return tp__hlo_add(w, p, n->attr.flag ? momentum(w, n, 1, 2, 3) : tp__hlo_float(w, n, 1));
}

tp__hlo_value tp__hlo_moving_average(tp__hlo *w, const tp__node *n)
{
  const double share = (double)n->attr.f[0], rest = (double)(1 - n->attr.f[0]);
  tp__hlo_value a = tp__hlo_float(w, n, 0), x = tp__hlo_float(w, n, 1);
  tp__hlo_value moved = tp__hlo_times(w, a, share);
  moved = tp__hlo_add(w, moved, tp__hlo_times(w, x, rest));
  if (!tp__hlo_has(n, 2)) return moved;
  tp__hlo_value step = tp__hlo_float(w, n, 2);
  tp__hlo_value first = tp__hlo_compare(w, "EQ", step, tp__hlo_like(w, step, 1));
  return tp__hlo_select(w, tp__hlo_broadcast(w, first, &x.shape, NULL), x, moved);
}

tp__hlo_value tp__hlo_sum_squares(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value sum = tp__hlo_absent();
  for (int i = 0; i < n->n_in; i++) {
    if (!tp__hlo_has(n, i)) continue;
    tp__hlo_value x = tp__hlo_float(w, n, i);
    x = tp__hlo_sum_all(w, tp__hlo_mul(w, x, x));
    sum = tp__hlo_is(sum) ? tp__hlo_add(w, sum, x) : x;
  }
  return sum;
}

tp__hlo_value tp__hlo_sum_scalars(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value sum = tp__hlo_absent();
  for (int i = 0; i < n->n_in; i++) {
    if (!tp__hlo_has(n, i)) continue;
    tp__hlo_value x = tp__hlo_float(w, n, i);
    sum = tp__hlo_is(sum) ? tp__hlo_add(w, sum, x) : x;
  }
  return sum;
}

/* What is not finite stays visible. */
tp__hlo_value tp__hlo_clip_factor(tp__hlo *w, const tp__node *n)
{
  const double most = (double)n->attr.f[0];
  tp__hlo_value norm = tp__hlo_unary(w, "sqrt", tp__hlo_float(w, n, 0));
  tp__hlo_value inverse = tp__hlo_div(w, tp__hlo_like(w, norm, 1), norm);
  tp__hlo_value factor = tp__hlo_times(
      w, tp__hlo_binary(w, "minimum", inverse, tp__hlo_like(w, norm, 1 / most)), most);
  tp__hlo_value finite = tp__hlo_emit(w, tp__hlo_typed(TP__HLO_I1, &norm.shape), &norm,
                                      "stablehlo.is_finite $0 : (@0) -> @r");
  return tp__hlo_select(w, finite, factor, tp__hlo_like(w, norm, (double)NAN));
}

tp__hlo_value tp__hlo_scale(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value x = tp__hlo_float(w, n, 0);
  return tp__hlo_mul(w, x, tp__hlo_spread(w, tp__hlo_float(w, n, 1), x));
}
