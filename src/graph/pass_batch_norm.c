/* pass_batch_norm - batch norm in inference mode becomes part of the convolution before it; see
 * rewrite.h
 *
 *   gamma (conv(x, k) + b - mean) / s + beta = conv(x, k gamma / s) + (beta + (b - mean) gamma /
 * s), s = sqrt(variance + epsilon)
 *
 * The new kernel and bias are nodes of shared values, which an executor computes once for as long
 * as the parameters keep their values. Only when gamma, beta and the statistics are parameters that
 * this graph does not assign: those that it trains keep a batch norm of their own. The kernel may
 * be assigned.
 */
#include "rewrite.h"

static bool is_frozen(const tp__rewrite *r, const tp__node *n)
{
  for (int i = 1; i <= 4; i++)
    if (tp__rewrite_node(r, n->in[i])->op != TP__OP_PARAM ||
        tp__graph_is_assigned(r->from, n->in[i]))
      return false;
  return true;
}

static const tp__node *foldable(const tp__rewrite *r, tp__value v)
{
  const tp__node *x = tp__rewrite_only(r, v, 0, TP__OP_CONV);
  if (x == NULL) x = tp__rewrite_only(r, v, 0, TP__OP_DEPTHWISE);
  if (x == NULL || x->attr.act != TP__ACT_NONE || x->n_in > 3) return NULL;
  return x;
}

tp_status tp__pass_batch_norm(tp__rewrite *r, tp__value v)
{
  enum { X, GAMMA, BETA, MEAN, VARIANCE };
  const tp__node *n = tp__rewrite_node(r, v);
  if (n->op != TP__OP_BATCH_NORM || !is_frozen(r, n)) return TP_OK;
  const tp__node *x = foldable(r, v);
  if (x == NULL) return TP_OK;
  tp__value bn[TP__OPERANDS_MAX], in[TP__OPERANDS_MAX], kernel = TP__NONE, bias = TP__NONE;
  tp__rewrite_operands(r, n, bn);
  tp__rewrite_operands(r, x, in);
  tp__attr attr = {.f = {n->attr.f[0]}, .depthwise = x->op == TP__OP_DEPTHWISE};
  TP__TRY(tp__graph_add(r->to, TP__OP_FOLD_KERNEL, (tp__value[]){in[1], bn[GAMMA], bn[VARIANCE]}, 3,
                        &attr, &kernel, r->err));
  TP__TRY(tp__graph_hint(r->to, kernel, n->name, r->err));
  attr.depthwise = false;
  TP__TRY(tp__graph_add(r->to, TP__OP_FOLD_BIAS,
                        (tp__value[]){bn[GAMMA], bn[BETA], bn[MEAN], bn[VARIANCE], in[2]}, 5, &attr,
                        &bias, r->err));
  TP__TRY(tp__graph_hint(r->to, bias, n->name, r->err));
  return tp__rewrite_emit(r, v, x->op, (tp__value[]){in[0], kernel, bias}, 3, &x->attr, x->name);
}
