/* autodiff_rules - the gradient of each operator, in terms of the operators of graph.h; see
 * autodiff.h
 *
 * Forward operators as the builder makes them, before fusing: a fused activation hides the value
 * that its gradient reads. Batch norm in inference mode: the statistics are constants; by batch
 * statistics: the gradient goes through them, too, which makes one formula of three
 * (S. Ioffe, C. Szegedy: "Batch Normalization", ICML 2015).
 */
#include <string.h>

#include "autodiff.h"

static const tp__shape *shape_of(const tp__gradient *c, int i)
{
  return &c->g->node[c->node.in[i]].shape;
}

static tp_status refuse_fused(tp__gradient *c)
{
  if (c->node.attr.act == TP__ACT_NONE) return TP_OK;
  return tp__fail(c->err, TP_ERR_INTERNAL,
                  "%s with activation %s: no gradient, its input is not kept; use an activation "
                  "of its own and optimize afterwards",
                  tp__op_name(c->node.op), tp__act_name(c->node.attr.act));
}

/* x, kernel, bias: the same for both kinds of convolution. */
static tp_status window(tp__gradient *c, tp__value dy, tp__op input_grad, tp__op kernel_grad)
{
  const tp__value *in = c->node.in;
  tp__attr attr = c->node.attr;
  TP__TRY(refuse_fused(c));
  attr.shape = *shape_of(c, 0);
  TP__TRY(tp__gradient_emit(c, 0, input_grad, (tp__value[]){dy, in[1]}, 2, &attr));
  attr.shape = *shape_of(c, 1);
  TP__TRY(tp__gradient_emit(c, 1, kernel_grad, (tp__value[]){in[0], dy}, 2, &attr));
  return tp__gradient_emit(c, 2, TP__OP_SUM_TO_LAST, &dy, 1, NULL);
}

static tp_status conv(tp__gradient *c, tp__value dy)
{
  if (c->node.n_in > 3)
    return tp__fail(c->err, TP_ERR_INTERNAL,
                    "conv with residual or scale: no gradient; use add and mul and optimize "
                    "afterwards");
  return window(c, dy, TP__OP_CONV_INPUT_GRAD, TP__OP_CONV_KERNEL_GRAD);
}

static tp_status depthwise(tp__gradient *c, tp__value dy)
{
  return window(c, dy, TP__OP_DEPTHWISE_INPUT_GRAD, TP__OP_DEPTHWISE_KERNEL_GRAD);
}

static tp_status matmul(tp__gradient *c, tp__value dy)
{
  const tp__value *in = c->node.in;
  TP__TRY(refuse_fused(c));
  TP__TRY(tp__gradient_emit(c, 0, TP__OP_MATMUL_INPUT_GRAD, (tp__value[]){dy, in[1]}, 2, NULL));
  TP__TRY(tp__gradient_emit(c, 1, TP__OP_MATMUL_KERNEL_GRAD, (tp__value[]){in[0], dy}, 2, NULL));
  return tp__gradient_emit(c, 2, TP__OP_SUM_TO_LAST, &dy, 1, NULL);
}

static tp_status affine(tp__gradient *c, tp__value dy)
{
  tp__attr attr = c->node.attr;
  if (!attr.flag) attr.f[1] = 0; /* with flag all three are factors */
  memset(attr.g, 0, sizeof attr.g);
  return tp__gradient_emit(c, 0, TP__OP_AFFINE, &dy, 1, &attr);
}

static tp_status reverse(tp__gradient *c, tp__value dy)
{
  return tp__gradient_emit(c, 0, TP__OP_REVERSE, &dy, 1, NULL);
}

static tp_status pad(tp__gradient *c, tp__value dy)
{
  return tp__gradient_emit(c, 0, TP__OP_CROP, &dy, 1, &c->node.attr);
}

static tp_status crop(tp__gradient *c, tp__value dy)
{
  return tp__gradient_emit(c, 0, TP__OP_PAD, &dy, 1, &c->node.attr);
}

static tp_status bias_add(tp__gradient *c, tp__value dy)
{
  TP__TRY(tp__gradient_give(c, 0, dy));
  return tp__gradient_emit(c, 1, TP__OP_SUM_TO_LAST, &dy, 1, NULL);
}

/* The moments whose two rows are the mean and the variance of a batch norm of the same x;
 * TP__NONE: its statistics are something else. */
static tp__value moments_of(const tp__gradient *c, tp__value x, tp__value mean, tp__value variance)
{
  const tp__node *m = &c->g->node[mean], *v = &c->g->node[variance];
  if (m->op != TP__OP_ROW || v->op != TP__OP_ROW || m->in[0] != v->in[0] || m->attr.row != 0 ||
      v->attr.row != 1)
    return TP__NONE;
  const tp__node *moments = &c->g->node[m->in[0]];
  return moments->op == TP__OP_BATCH_MOMENTS && moments->in[0] == x ? m->in[0] : TP__NONE;
}

static tp_status batch_norm_full(tp__gradient *c, tp__value dy, tp__value moments)
{
  enum { X, GAMMA, BETA, MEAN, VARIANCE };
  const tp__value *in = c->node.in;
  tp__value beta = TP__NONE, gamma = TP__NONE;
  TP__TRY(tp__gradient_node(c, TP__OP_SUM_TO_LAST, &dy, 1, NULL, &beta));
  TP__TRY(tp__gradient_node(c, TP__OP_BATCH_NORM_GAMMA_GRAD,
                            (tp__value[]){in[X], dy, in[MEAN], in[VARIANCE]}, 4, &c->node.attr,
                            &gamma));
  TP__TRY(tp__gradient_give(c, BETA, beta));
  TP__TRY(tp__gradient_give(c, GAMMA, gamma));
  c->given |= 1u << MEAN | 1u << VARIANCE; /* their part is in the gradient of x */
  return tp__gradient_emit(c, X, TP__OP_BATCH_NORM_FULL_GRAD,
                           (tp__value[]){in[X], dy, in[GAMMA], moments, beta, gamma}, 6,
                           &c->node.attr);
}

static tp_status batch_norm(tp__gradient *c, tp__value dy)
{
  enum { X, GAMMA, BETA, MEAN, VARIANCE };
  const tp__value *in = c->node.in;
  TP__TRY(refuse_fused(c));
  tp__value moments = moments_of(c, in[X], in[MEAN], in[VARIANCE]);
  if (moments != TP__NONE) return batch_norm_full(c, dy, moments);
  TP__TRY(tp__gradient_emit(c, X, TP__OP_BATCH_NORM_INPUT_GRAD,
                            (tp__value[]){dy, in[GAMMA], in[VARIANCE]}, 3, &c->node.attr));
  TP__TRY(tp__gradient_emit(c, GAMMA, TP__OP_BATCH_NORM_GAMMA_GRAD,
                            (tp__value[]){in[X], dy, in[MEAN], in[VARIANCE]}, 4, &c->node.attr));
  return tp__gradient_emit(c, BETA, TP__OP_SUM_TO_LAST, &dy, 1, NULL);
}

static tp_status activation(tp__gradient *c, tp__value dy)
{
  if (c->node.attr.act == TP__ACT_NONE) return tp__gradient_give(c, 0, dy);
  return tp__gradient_emit(c, 0, TP__OP_ACTIVATION_GRAD, (tp__value[]){dy, c->node.in[0]}, 2,
                           &c->node.attr);
}

static tp_status add(tp__gradient *c, tp__value dy)
{
  TP__TRY(tp__gradient_give(c, 0, dy));
  return tp__gradient_give(c, 1, dy);
}

static tp_status mul(tp__gradient *c, tp__value dy)
{
  const tp__value *in = c->node.in;
  TP__TRY(tp__gradient_emit(c, 0, TP__OP_MUL, (tp__value[]){dy, in[1]}, 2, NULL));
  if (!tp__gradient_wanted(c, 1)) return TP_OK;
  tp__value value = TP__NONE;
  bool same = tp__shape_equal(shape_of(c, 0), shape_of(c, 1));
  TP__TRY(tp__gradient_node(c, TP__OP_MUL, (tp__value[]){dy, in[0]}, 2, NULL, &value));
  if (same) return tp__gradient_give(c, 1, value);
  return tp__gradient_emit(c, 1, TP__OP_SUM_SPATIAL, &value, 1, &(tp__attr){.f = {1}});
}

static tp_status global_pool(tp__gradient *c, tp__value dy)
{
  const tp__shape *x = shape_of(c, 0);
  tp__attr attr = {.shape = *x, .f = {(float)(1.0 / ((double)x->dim[1] * (double)x->dim[2]))}};
  return tp__gradient_emit(c, 0, TP__OP_BROADCAST_SPATIAL, &dy, 1, &attr);
}

static tp_status max_pool(tp__gradient *c, tp__value dy)
{
  return tp__gradient_emit(c, 0, TP__OP_MAX_POOL_GRAD, (tp__value[]){dy, c->node.in[0]}, 2,
                           &c->node.attr);
}

static tp_status avg_pool(tp__gradient *c, tp__value dy)
{
  tp__attr attr = c->node.attr;
  attr.shape = *shape_of(c, 0);
  return tp__gradient_emit(c, 0, TP__OP_AVG_POOL_GRAD, &dy, 1, &attr);
}

static tp_status concat(tp__gradient *c, tp__value dy)
{
  tp__attr a = {.shape = *shape_of(c, 0)};
  tp__attr b = {.shape = *shape_of(c, 1), .first = (int)a.shape.dim[3]};
  TP__TRY(tp__gradient_emit(c, 0, TP__OP_SLICE_CHANNELS, &dy, 1, &a));
  return tp__gradient_emit(c, 1, TP__OP_SLICE_CHANNELS, &dy, 1, &b);
}

static tp_status reshape(tp__gradient *c, tp__value dy)
{
  return tp__gradient_emit(c, 0, TP__OP_RESHAPE, &dy, 1, &(tp__attr){.shape = *shape_of(c, 0)});
}

static tp_status dropout(tp__gradient *c, tp__value dy)
{
  return tp__gradient_emit(c, 0, TP__OP_DROPOUT, (tp__value[]){dy, c->node.in[1]}, 2,
                           &c->node.attr);
}

static tp_status cross_entropy(tp__gradient *c, tp__value dy)
{
  return tp__gradient_emit(c, 0, TP__OP_CROSS_ENTROPY_GRAD,
                           (tp__value[]){c->node.in[0], c->node.in[1], dy}, 3, &c->node.attr);
}

static tp_status weighted_sum(tp__gradient *c, tp__value dy)
{
  const tp__value *in = c->node.in;
  TP__TRY(tp__gradient_emit(c, 0, TP__OP_SCALE_ROWS, (tp__value[]){dy, in[1]}, 2, NULL));
  return tp__gradient_emit(c, 1, TP__OP_SCALE_ROWS, (tp__value[]){dy, in[0]}, 2, NULL);
}

tp__gradient_fn tp__gradient_rule(tp__op op)
{
  static const tp__gradient_fn rule[TP__OP_COUNT] = {
      [TP__OP_AFFINE] = affine,
      [TP__OP_REVERSE] = reverse,
      [TP__OP_PAD] = pad,
      [TP__OP_CONV] = conv,
      [TP__OP_DEPTHWISE] = depthwise,
      [TP__OP_BIAS_ADD] = bias_add,
      [TP__OP_BATCH_NORM] = batch_norm,
      [TP__OP_ACTIVATION] = activation,
      [TP__OP_ADD] = add,
      [TP__OP_MUL] = mul,
      [TP__OP_GLOBAL_POOL] = global_pool,
      [TP__OP_MAX_POOL] = max_pool,
      [TP__OP_AVG_POOL] = avg_pool,
      [TP__OP_CONCAT] = concat,
      [TP__OP_RESHAPE] = reshape,
      [TP__OP_MATMUL] = matmul,
      [TP__OP_DROPOUT] = dropout,
      [TP__OP_CROSS_ENTROPY] = cross_entropy,
      [TP__OP_WEIGHTED_SUM] = weighted_sum,
      [TP__OP_CROP] = crop,
  };
  return rule[op];
}
