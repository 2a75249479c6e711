/* plan_concat - channels put together without copying them; see plan.h
 *
 *   x1 = concat(x0, y0), x2 = concat(x1, y1), ...   one memory, pixels as wide as the last xi:
 *   | x0 | y0 | y1 | ...        x1 is its first channels, x2 more of them
 *
 * In a dense block each layer sees all channels before it: with a copy for each concat, they would
 * move once for each layer behind them, and all copies be kept for the gradients. So operands
 * become parts of their concat's memory, where they begin at a whole vector and the operator that
 * makes them can write there; their readers take any pitch of whole vectors, or repack. Slices of
 * channels, the concat's gradients, are parts of what they are cut from.
 */
#include "plan_make.h"

static bool writes_anywhere(const tp__node *n)
{
  switch (n->op) {
  case TP__OP_CONV: /* its residual lies as its result does */
    return n->n_in <= 3 || n->in[3] == TP__NONE;
  case TP__OP_BATCH_NORM:
  case TP__OP_MAX_POOL:
  case TP__OP_AVG_POOL:
  case TP__OP_CONCAT:
    return true;
  default:
    return false;
  }
}

/* v becomes the channels of `whole` from `first` on. */
static void make_part(tp__plan *plan, tp__value v, tp__value whole, int64_t first)
{
  tp__slot *s = &plan->slot[v];
  s->root = plan->slot[whole].root;
  s->offset = plan->slot[whole].offset + first;
  s->pitch = plan->slot[whole].pitch;
  s->row = plan->slot[whole].row;
}

static bool may_be_part(const tp__plan *plan, tp__value v, const bool *renamed)
{
  return plan->slot[v].root == v && plan->slot[v].home == TP__HOME_SCRATCH && !renamed[v];
}

/* From the last concat backwards, so that a chain of them has the last one's memory. */
static void join(tp__plan *plan, tp__value v, const bool *renamed)
{
  const tp__node *n = tp__plan_node(plan, v);
  const int64_t first = tp__plan_node(plan, n->in[0])->shape.dim[3];
  if (first % TP__LANES != 0) return;
  for (int i = 0; i < 2; i++)
    if (may_be_part(plan, n->in[i], renamed) && writes_anywhere(tp__plan_node(plan, n->in[i])))
      make_part(plan, n->in[i], v, i == 0 ? 0 : first);
}

static void cut_out(tp__plan *plan, tp__value v, const bool *renamed)
{
  const tp__node *n = tp__plan_node(plan, v);
  const tp__slot *x = &plan->slot[n->in[0]];
  if (n->attr.first % TP__LANES == 0 && x->pitch % TP__LANES == 0 && may_be_part(plan, v, renamed))
    make_part(plan, v, n->in[0], n->attr.first);
}

/* renamed (all false): room for as many as there are values. */
void tp__plan_concats(tp__plan *plan, bool *renamed)
{
  const tp__graph *g = plan->program->graph;
  for (tp__value v = 0; v < g->count; v++)
    if (plan->slot[v].root != v) renamed[g->node[v].in[0]] = true;
  for (tp__value v = g->count - 1; v >= 0; v--)
    if (g->node[v].op == TP__OP_CONCAT) join(plan, v, renamed);
  for (tp__value v = 0; v < g->count; v++)
    if (g->node[v].op == TP__OP_SLICE_CHANNELS) cut_out(plan, v, renamed);
}

tp_status tp__make_concat(tp__making *m)
{
  const tp__slot *y = &m->plan->slot[m->step.v];
  int64_t first = 0;
  for (int i = 0; i < 2; i++) {
    const tp__slot *x = &m->plan->slot[m->step.in[i]];
    bool there = x->root == y->root && x->offset == y->offset + first;
    first += tp__make_operand(m, i)->shape.dim[3];
    if (there) m->step.in[i] = TP__NONE;
  }
  if (m->step.in[0] == TP__NONE && m->step.in[1] == TP__NONE) return TP_OK;
  return tp__make_finish(m, tp__step_concat);
}
