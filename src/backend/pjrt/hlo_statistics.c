/* hlo_statistics - batch statistics and the gradient of a batch norm through them; see hlo.h
 *
 * Mean and variance read x once: sums of x - s and its square, with an s near the mean, so that
 * nothing is lost (T. Chan, G. Golub, R. LeVeque: "Algorithms for computing the sample variance",
 * 1983). s is the moving mean where the graph has one: then nothing has to be known of x before,
 * and compilers make the sums while the convolution before writes x. Otherwise the mean of the
 * first example.
 */
#include "hlo_emitters.h"

/* [C]: row of [R,C] */
static tp__hlo_value row_of(tp__hlo *w, tp__hlo_value x, int64_t row)
{
  tp__shape shape = tp__shape_make(1, &x.shape.dim[1]);
  x = tp__hlo_slice(w, x, (int64_t[]){row, 0}, (int64_t[]){row + 1, x.shape.dim[1]}, NULL);
  return tp__hlo_reshape(w, x, &shape);
}

tp__hlo_value tp__hlo_row(tp__hlo *w, const tp__node *n)
{
  return row_of(w, tp__hlo_float(w, n, 0), n->attr.row);
}

static double pixels_of(tp__hlo_value x)
{
  double pixels = 1;
  for (int i = 1; i < x.shape.rank - 1; i++) pixels *= (double)x.shape.dim[i];
  return pixels;
}

/* [C]: 1 / how many numbers a channel has in the examples that count. */
static tp__hlo_value share(tp__hlo *w, tp__hlo_value x, tp__hlo_value channels)
{
  tp__hlo_value count = tp__hlo_times(w, tp__hlo_examples(w), pixels_of(x));
  return tp__hlo_spread(w, tp__hlo_div(w, tp__hlo_like(w, count, 1), count), channels);
}

static tp__hlo_value mean_of_first(tp__hlo *w, tp__hlo_value x)
{
  int64_t from[TP__RANK_MAX] = {0}, to[TP__RANK_MAX];
  for (int i = 0; i < x.shape.rank; i++) to[i] = i == 0 ? 1 : x.shape.dim[i];
  tp__hlo_value first = tp__hlo_slice(w, x, from, to, NULL);
  return tp__hlo_times(w, tp__hlo_sum_to_last(w, first), 1 / pixels_of(x));
}

/* The parameter that moves towards the mean of these moments; TP__NONE: there is none. */
static tp__value moving_mean_of(const tp__graph *g, const tp__node *moments)
{
  for (tp__value v = 0; v < g->count; v++) {
    const tp__node *n = &g->node[v];
    if (n->op != TP__OP_MOVING_AVERAGE || g->node[n->in[0]].op != TP__OP_PARAM) continue;
    const tp__node *row = &g->node[n->in[1]];
    if (row->op == TP__OP_ROW && row->attr.row == 0 && &g->node[row->in[0]] == moments)
      return n->in[0];
  }
  return TP__NONE;
}

/* [2,C] of this replica's rows. */
tp__hlo_value tp__hlo_batch_moments(tp__hlo *w, const tp__node *n)
{
  const bool own = w->own;
  w->own = true;
  const tp__value moving = moving_mean_of(w->g, n);
  tp__hlo_value x = tp__hlo_float(w, n, 0);
  tp__hlo_value shift = moving != TP__NONE ? w->argument[moving] : mean_of_first(w, x);
  tp__hlo_value d = tp__hlo_sub(w, x, tp__hlo_channels(w, shift, x));
  d = tp__hlo_masked(w, d, false);
  tp__hlo_value sum = tp__hlo_sum_to_last(w, d);
  tp__hlo_value squares = tp__hlo_sum_to_last(w, tp__hlo_mul(w, d, d));
  tp__hlo_value each = share(w, x, sum);
  tp__hlo_value mean = tp__hlo_mul(w, sum, each);
  tp__hlo_value variance = tp__hlo_mul(w, squares, each);
  variance = tp__hlo_sub(w, variance, tp__hlo_mul(w, mean, mean));
  variance = tp__hlo_binary(w, "maximum", variance, tp__hlo_like(w, variance, 0));
  tp__shape row = tp__shape_make(2, (int64_t[]){1, mean.shape.dim[0]});
  tp__hlo_value rows[2];
  rows[0] = tp__hlo_reshape(w, tp__hlo_add(w, shift, mean), &row);
  rows[1] = tp__hlo_reshape(w, variance, &row);
  w->own = own;
  return tp__hlo_concat(w, rows, 2, 0);
}

/* gamma / s (dy - mean of dy - u mean of (u dy)), u = (x - mean) / s, as three numbers of each
 * channel: a dy - b - c (x - mean). */
tp__hlo_value tp__hlo_batch_norm_full_grad(tp__hlo *w, const tp__node *n)
{
  enum { X, DY, GAMMA, MOMENTS, BETA_GRAD, GAMMA_GRAD };
  tp__hlo_value x = tp__hlo_float(w, n, X), dy = tp__hlo_float(w, n, DY);
  tp__hlo_value moments = tp__hlo_float(w, n, MOMENTS), mean = row_of(w, moments, 0);
  tp__hlo_value inverse = tp__hlo_inverse_deviation(w, row_of(w, moments, 1), (double)n->attr.f[0]);
  tp__hlo_value each = share(w, x, mean);
  tp__hlo_value a = tp__hlo_mul(w, tp__hlo_float(w, n, GAMMA), inverse);
  tp__hlo_value a_each = tp__hlo_mul(w, a, each);
  tp__hlo_value b = tp__hlo_mul(w, a_each, tp__hlo_float(w, n, BETA_GRAD));
  tp__hlo_value c = tp__hlo_mul(w, a_each, inverse);
  c = tp__hlo_mul(w, c, tp__hlo_float(w, n, GAMMA_GRAD));
  b = tp__hlo_sub(w, b, tp__hlo_mul(w, c, mean));
  tp__hlo_value dx = tp__hlo_mul(w, dy, tp__hlo_channels(w, a, x));
  dx = tp__hlo_sub(w, dx, tp__hlo_mul(w, x, tp__hlo_channels(w, c, x)));
  dx = tp__hlo_sub(w, dx, tp__hlo_channels(w, b, x));
  dx = tp__hlo_masked(w, dx, false);
  w->zero = true;
  return dx;
}

/* Sum of dy (x - mean) / sqrt(variance + epsilon). */
tp__hlo_value tp__hlo_batch_norm_gamma_grad(tp__hlo *w, const tp__node *n)
{
  enum { X, DY, MEAN, VARIANCE };
  tp__hlo_value x = tp__hlo_float(w, n, X), mean = tp__hlo_float(w, n, MEAN);
  tp__hlo_value dy = tp__hlo_masked(w, tp__hlo_float(w, n, DY), tp__hlo_zero_operand(w, n, DY));
  x = tp__hlo_sub(w, x, tp__hlo_channels(w, mean, x));
  tp__hlo_value sum = tp__hlo_sum_to_last(w, tp__hlo_mul(w, dy, x));
  tp__hlo_value variance = tp__hlo_float(w, n, VARIANCE);
  return tp__hlo_mul(w, sum, tp__hlo_inverse_deviation(w, variance, (double)n->attr.f[0]));
}
