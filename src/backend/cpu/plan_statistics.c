/* plan_statistics - the steps of batch norm, its activation and their gradients; see plan_make.h */
#include "plan_make.h"

/* The running stage of a node. */
static int stage_of(const tp__plan *plan, tp__value v)
{
  return plan->slot[v].level - (tp__op_is_joint(tp__plan_node(plan, v)->op) ? 1 : 0);
}

static bool is_activation(const tp__node *n, tp__value x)
{
  return (n->op == TP__OP_ACTIVATION && n->in[0] == x) ||
         (n->op == TP__OP_ACTIVATION_GRAD && n->in[1] == x && n->in[0] != x);
}

/* All that read the batch norm v apply an activation to it in the same stage: they apply the norm,
 * too, which saves one copy of the layer. */
static bool joins_activation(const tp__plan *plan, tp__value v)
{
  const tp__node *n = tp__plan_node(plan, v);
  if (n->op != TP__OP_BATCH_NORM || plan->readers[v] == 0) return false;
  if (n->attr.act != TP__ACT_NONE || plan->slot[n->in[0]].pitch % TP__LANES != 0) return false;
  int found = 0;
  for (tp__value u = v + 1; u <= plan->reader[v]; u++)
    found += is_activation(tp__plan_node(plan, u), v) && stage_of(plan, u) == stage_of(plan, v);
  return found == plan->readers[v];
}

tp_status tp__make_batch_norm(tp__making *m)
{
  if (joins_activation(m->plan, m->step.v)) return TP_OK;
  return tp__make_with_factors(m, TP__DERIVE_NORM, 4);
}

tp_status tp__make_activation(tp__making *m, int x)
{
  tp__value norm = m->step.in[x];
  bool grad = m->step.node->op == TP__OP_ACTIVATION_GRAD;
  if (grad) TP__TRY(tp__make_pitched(m, 0));
  if (!joins_activation(m->plan, norm)) {
    TP__TRY(tp__make_pitched(m, x));
    return tp__make_finish(m, grad ? tp__step_activation_grad : tp__step_activation);
  }
  const tp__node *n = tp__plan_node(m->plan, norm);
  long c = (long)tp__view_of(&n->shape, 1, 0).c;
  tp__derived d = {
      .kind = TP__DERIVE_NORM, .node = n, .n_in = 4, .n = c, .size = 2 * (size_t)tp__pitch(c)};
  for (int i = 0; i < 4; i++) d.in[i] = n->in[i + 1];
  TP__TRY(tp__plan_derive(m->plan, &d, &m->step.derived, m->err));
  m->step.in[x] = n->in[0];
  return tp__make_finish(m, grad ? tp__step_norm_act_grad : tp__step_affine);
}

/* Two rows of sums for each example of a group. */
static tp_status make_own(tp__making *m)
{
  tp__view x = tp__view_of(&tp__make_operand(m, 0)->shape, 1, 0);
  return tp__plan_extra(m->plan, 2 * tp__pitch((long)x.c), false, &m->step.extra[0], m->err);
}

tp_status tp__make_moments(tp__making *m)
{
  TP__TRY(tp__make_wide(m, 0));
  TP__TRY(make_own(m));
  return tp__make_finish(m, tp__step_moments);
}

/* The first of that operator that sums dy in the stage of v. */
static tp__value first_sum(const tp__plan *plan, tp__op op, int operand, tp__value dy, tp__value v)
{
  const tp__graph *g = plan->program->graph;
  for (tp__value u = 0; u < g->count; u++)
    if (g->node[u].op == op && plan->readers[u] > 0 && g->node[u].in[operand] == dy &&
        plan->slot[u].level == plan->slot[v].level)
      return u;
  return TP__NONE;
}

/* Where two batch norms have the same dy, the first sum goes with the first of them. */
tp__value tp__sums_with(const tp__plan *plan, tp__value sum)
{
  tp__value dy = tp__plan_node(plan, sum)->in[0];
  if (first_sum(plan, TP__OP_SUM_TO_LAST, 0, dy, sum) != sum) return TP__NONE;
  return first_sum(plan, TP__OP_BATCH_NORM_GAMMA_GRAD, 1, dy, sum);
}

tp_status tp__make_gamma_grad(tp__making *m)
{
  tp__value sum = first_sum(m->plan, TP__OP_SUM_TO_LAST, 0, m->step.node->in[1], m->step.v);
  TP__TRY(tp__make_wide(m, 0));
  TP__TRY(tp__make_pitched(m, 1));
  TP__TRY(tp__make_factors(m, TP__DERIVE_UNIT, 2, 2));
  TP__TRY(make_own(m));
  if (sum != TP__NONE && tp__sums_with(m->plan, sum) == m->step.v) m->step.extra[1] = sum;
  return tp__make_finish(m, tp__step_norm_sums);
}

tp_status tp__make_norm_grad(tp__making *m)
{
  long c = (long)tp__view_of(&m->step.node->shape, 1, 0).c;
  tp__derived d = {.kind = TP__DERIVE_NORM_FULL,
                   .node = m->step.node,
                   .n_in = 4,
                   .n = c,
                   .size = 4 * (size_t)tp__pitch(c)};
  for (int i = 0; i < 4; i++) d.in[i] = m->step.node->in[i + 2];
  TP__TRY(tp__make_wide(m, 0));
  TP__TRY(tp__make_pitched(m, 1));
  TP__TRY(tp__plan_derive(m->plan, &d, &m->step.derived, m->err));
  return tp__make_finish(m, tp__step_norm_grad);
}
