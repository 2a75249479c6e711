/* autodiff - reverse mode: from the loss backwards, each operator's rule passes the gradient on to
 * its operands.
 *
 * Only values that depend on a wanted one (needs) get a gradient, and only the loss's own ancestors
 * are reached, so that layers below the lowest trainable one cost nothing. A value with several
 * readers has the sum of what they pass on before its own rule runs, since readers come later in
 * the list. See autodiff.h, autodiff_rules.c.
 */
#include "autodiff.h"

#include <stdlib.h>

#include "infer.h"

tp_status tp__gradient_node(tp__gradient *c, tp__op op, const tp__value *in, int n_in,
                            const tp__attr *attr, tp__value *value)
{
  TP__TRY(tp__graph_add(c->g, op, in, n_in, attr, value, c->err));
  c->g->node[*value].name = c->node.name;
  return TP_OK;
}

tp_status tp__gradient_give(tp__gradient *c, int i, tp__value value)
{
  if (!tp__gradient_wanted(c, i)) return TP_OK;
  tp__value *d = &c->d[c->node.in[i]];
  c->given |= 1u << i;
  if (*d != TP__NONE) return tp__gradient_node(c, TP__OP_ADD, (tp__value[]){*d, value}, 2, NULL, d);
  *d = value;
  return TP_OK;
}

tp_status tp__gradient_emit(tp__gradient *c, int i, tp__op op, const tp__value *in, int n_in,
                            const tp__attr *attr)
{
  tp__value value = TP__NONE;
  if (!tp__gradient_wanted(c, i)) return TP_OK;
  TP__TRY(tp__gradient_node(c, op, in, n_in, attr, &value));
  return tp__gradient_give(c, i, value);
}

static tp_status apply_rule(tp__gradient *c, tp__value v)
{
  const tp__node *n = &c->g->node[v];
  tp__gradient_fn rule = tp__gradient_rule(n->op);
  c->node = *n;
  c->given = 0;
  if (rule != NULL) TP__TRY(rule(c, c->d[v]));
  for (int i = 0; i < c->node.n_in; i++)
    if (tp__gradient_wanted(c, i) && (c->given >> i & 1) == 0)
      return tp__fail(c->err, TP_ERR_INTERNAL, "%s: there is no gradient for its operand %s",
                      tp__op_name(c->node.op), tp__op_info_of(c->node.op)->operand[i]);
  return TP_OK;
}

static tp_status apply_rules(tp__gradient *c, tp__value loss)
{
  TP__TRY(
      tp__graph_add(c->g, TP__OP_CONSTANT, NULL, 0, &(tp__attr){.f = {1}}, &c->d[loss], c->err));
  for (tp__value v = loss; v >= 0; v--) {
    if (c->d[v] == TP__NONE || c->g->node[v].n_in == 0) continue;
    tp_status status = apply_rule(c, v);
    if (status != TP_OK)
      return tp__at(c->err, status, "gradient of %%%d%s%s", (int)v,
                    c->node.name != NULL ? " in " : "", c->node.name != NULL ? c->node.name : "");
  }
  return TP_OK;
}

static tp_status check(const tp__graph *g, tp__value loss, const tp__value *param, size_t n,
                       tp_error *err)
{
  if (loss < 0 || loss >= g->count)
    return tp__fail(err, TP_ERR_INTERNAL, "gradient: there is no value %%%d", (int)loss);
  char text[96];
  const tp__node *l = &g->node[loss];
  if (l->dtype != TP__F32 || l->shape.rank != 0)
    return tp__fail(err, TP_ERR_INTERNAL, "gradient: the loss, %s %s, must be a scalar",
                    tp__op_name(l->op), tp__shape_text(&l->shape, text));
  for (size_t i = 0; i < n; i++)
    if (param[i] < 0 || param[i] >= g->count || g->node[param[i]].dtype != TP__F32)
      return tp__fail(err, TP_ERR_INTERNAL, "gradient: %%%d is no value with a gradient",
                      (int)param[i]);
  return TP_OK;
}

/* needs[v], v <= loss: v is wanted or an operand of it needs. */
static void mark(const tp__graph *g, tp__value loss, const tp__value *param, size_t n, bool *needs)
{
  for (size_t i = 0; i < n; i++)
    if (param[i] <= loss) needs[param[i]] = true;
  for (tp__value v = 0; v <= loss; v++)
    for (int i = 0; i < g->node[v].n_in; i++)
      if (g->node[v].in[i] != TP__NONE && needs[g->node[v].in[i]]) needs[v] = true;
}

tp_status tp__graph_gradient(tp__graph *g, tp__value loss, const tp__value *param, size_t n,
                             tp__value *grad, tp_error *err)
{
  TP__TRY(check(g, loss, param, n, err));
  size_t values = (size_t)loss + 1;
  int32_t count = g->count;
  bool *needs = tp__calloc(values, sizeof *needs, err);
  tp__value *d = tp__calloc(values, sizeof *d, err);
  tp_status status = TP_ERR_INTERNAL;
  if (needs == NULL || d == NULL) goto done;
  for (size_t i = 0; i < values; i++) d[i] = TP__NONE;
  mark(g, loss, param, n, needs);
  tp__gradient c = {.g = g, .needs = needs, .d = d, .err = err};
  status = needs[loss] ? apply_rules(&c, loss) : TP_OK;
  if (status == TP_OK)
    for (size_t i = 0; i < n; i++) grad[i] = param[i] <= loss ? d[param[i]] : TP__NONE;
  else
    g->count = count;
done:
  free(needs);
  free(d);
  return status;
}
