/* plan_steps - all steps in their order: level by level, node by node, outputs as soon as they are
 * there; see plan.h */
#include "plan_make.h"

static tp__step step_of(tp__plan *plan, tp__value v)
{
  const tp__node *n = tp__plan_node(plan, v);
  tp__step s = {.node = n, .v = v, .extra = {TP__NONE, TP__NONE}, .derived = -1, .joint = -1};
  for (int i = 0; i < TP__OPERANDS_MAX; i++) s.in[i] = i < n->n_in ? n->in[i] : TP__NONE;
  s.level = plan->slot[v].level - (tp__op_is_joint(n->op) ? 1 : 0);
  return s;
}

/* An output of examples is copied out as soon as it is there. */
static tp_status make_fetches(tp__plan *plan, tp__value v, tp_error *err)
{
  const tp__graph *g = plan->program->graph;
  for (size_t o = 0; o < g->n_outputs; o++) {
    if (g->output[o].value != v) continue;
    tp__step s = step_of(plan, v);
    for (int i = 1; i < TP__OPERANDS_MAX; i++) s.in[i] = TP__NONE;
    s.in[0] = v;
    s.run = tp__step_fetch;
    s.output = o;
    TP__TRY(tp__plan_step(plan, &s, err));
  }
  return TP_OK;
}

static tp_status make_level(tp__plan *plan, int level, tp_error *err)
{
  const tp__graph *g = plan->program->graph;
  for (tp__value v = 0; v < g->count; v++) {
    tp__making m = {.plan = plan, .step = step_of(plan, v), .err = err};
    bool joint = tp__op_is_joint(g->node[v].op);
    if (m.step.level != level || plan->readers[v] == 0 || !(joint || plan->slot[v].per_example))
      continue;
    if (joint) {
      m.step.joint = plan->n_tickets;
      plan->ticket[plan->n_tickets++].v = v;
    }
    if (tp__reference(g->node[v].op) != NULL) TP__TRY(tp__make_step(&m));
    if (!joint) TP__TRY(make_fetches(plan, v, err));
  }
  return TP_OK;
}

tp_status tp__plan_steps(tp__plan *plan, tp_error *err)
{
  plan->ticket = tp__calloc((size_t)plan->program->graph->count, sizeof *plan->ticket, err);
  if (plan->ticket == NULL) return TP_ERR_INTERNAL;
  for (int level = 0; level < plan->levels; level++) TP__TRY(make_level(plan, level, err));
  return TP_OK;
}
