/* hlo_mark - from the results backwards: which shared values are needed as this replica's own,
 * which as all replicas' together, and which of them before the last example is done; see hlo.h
 *
 * Values of examples read shared values that depend on sums over examples only with batch norm:
 * with local statistics their own replica's, otherwise all replicas'. Everything else (updates,
 * averages, outputs) wants all replicas'.
 */
#include "hlo.h"

static bool is_example(const tp__node *n)
{
  return tp__per_example(n) || tp__op_is_joint(n->op);
}

static void mark_varying(tp__hlo *w)
{
  for (tp__value v = 0; v < w->g->count; v++) {
    const tp__node *n = &w->g->node[v];
    bool varies = tp__op_is_joint(n->op);
    for (int i = 0; i < n->n_in && !tp__per_example(n); i++)
      if (tp__hlo_has(n, i) && !tp__per_example(&w->g->node[n->in[i]]))
        varies = varies || w->slot[n->in[i]].varies;
    w->slot[v].varies = varies && !tp__per_example(n);
  }
}

static void need(tp__hlo_slot *s, bool own, bool early)
{
  own = own && s->varies;
  if (own) {
    s->need_own = true;
    s->early_own = s->early_own || early;
  } else {
    s->need_all = true;
    s->early_all = s->early_all || early;
  }
}

static void pass_on(tp__hlo *w, const tp__node *n, const tp__hlo_slot *s, bool local)
{
  for (int i = 0; i < n->n_in; i++) {
    if (!tp__hlo_has(n, i) || tp__per_example(&w->g->node[n->in[i]])) continue;
    tp__hlo_slot *operand = &w->slot[n->in[i]];
    if (is_example(n)) {
      need(operand, local, true);
      continue;
    }
    if (s->need_own) need(operand, true, s->early_own);
    if (s->need_all) need(operand, false, s->early_all);
  }
}

/* An example's value that waits for a sum over all examples: in parts it would never come. */
static void refuse_in_parts(tp__hlo *w)
{
  for (tp__value v = 0; v < w->g->count && w->options->accumulate > 1; v++) {
    const tp__node *n = &w->g->node[v];
    const tp__hlo_slot *s = &w->slot[v];
    if (s->varies && tp__op_is_joint(n->op) && (s->early_own || s->early_all))
      tp__hlo_fail(w,
                   "%s%s%s sums over all examples, and values of examples follow from it: rows "
                   "cannot go through in %d parts",
                   tp__op_name(n->op), n->name != NULL ? " in " : "",
                   n->name != NULL ? n->name : "", w->options->accumulate);
  }
}

tp_status tp__hlo_mark(tp__hlo *w)
{
  const tp__graph *g = w->g;
  const bool local = w->options->local_statistics && w->options->replicas > 1;
  mark_varying(w);
  for (size_t i = 0; i < g->n_outputs; i++) need(&w->slot[g->output[i].value], false, false);
  for (size_t i = 0; i < g->n_assignments; i++)
    need(&w->slot[g->assignment[i].value], false, false);
  for (tp__value v = g->count - 1; v >= 0; v--) pass_on(w, &g->node[v], &w->slot[v], local);
  refuse_in_parts(w);
  return w->status;
}
