/* plan_updates - shared nodes as units, and which new parameters are made where the old ones lie;
 * see plan.h */
#include <stdlib.h>

#include "plan.h"

static bool is_update(tp__op op)
{
  switch (op) {
  case TP__OP_ADAM_M:
  case TP__OP_ADAM_V:
  case TP__OP_ADAM_PARAM:
  case TP__OP_SGD_MOMENTUM:
  case TP__OP_SGD_PARAM:
  case TP__OP_MOVING_AVERAGE:
  case TP__OP_SCALE:
    return true;
  default:
    return false;
  }
}

static bool is_output(const tp__graph *g, tp__value v)
{
  for (size_t i = 0; i < g->n_outputs; i++)
    if (g->output[i].value == v) return true;
  return false;
}

/* Whether the operator is computed by units: shared, and neither a source nor a joint. */
static bool is_shared_node(const tp__plan *plan, tp__value v)
{
  const tp__node *n = tp__plan_node(plan, v);
  return !plan->slot[v].per_example && !tp__op_is_joint(n->op) && tp__reference(n->op) != NULL &&
         plan->readers[v] > 0;
}

/* Node v runs when the new value may be there already. */
static bool runs_late(const tp__plan *plan, tp__value v, tp__value made)
{
  int level = plan->slot[v].level - (tp__op_is_joint(tp__plan_node(plan, v)->op) ? 1 : 0);
  return level >= plan->slot[made].level;
}

/* The new value may overwrite the parameter at once: an update of it element by element, after
 * everything else has read it. */
static bool fits_in_place(const tp__plan *plan, const tp__assignment *a)
{
  const tp__graph *g = plan->program->graph;
  const tp__node *made = &g->node[a->value];
  if (!is_update(made->op) || made->in[0] != a->param || plan->slot[a->value].level == 0)
    return false;
  if (is_output(g, a->param)) return false;
  for (size_t i = 0; i < g->n_assignments; i++) {
    const tp__assignment *other = &g->assignment[i];
    if (other->value == a->param) return false;
    if (other != a && (other->value == a->value || other->param == a->param)) return false;
  }
  for (tp__value v = 0; v < g->count; v++) {
    int reads = 0;
    for (int i = 0; i < g->node[v].n_in; i++) reads += g->node[v].in[i] == a->param;
    if (v == a->value ? reads != 1 : reads > 0 && runs_late(plan, v, a->value)) return false;
  }
  return true;
}

static void place_assignments(tp__plan *plan)
{
  const tp__graph *g = plan->program->graph;
  for (size_t i = 0; i < g->n_assignments; i++) {
    const tp__assignment *a = &g->assignment[i];
    plan->copied[i] = !fits_in_place(plan, a);
    if (plan->copied[i]) continue;
    plan->slot[a->value].home = TP__HOME_STATE;
    plan->slot[a->value].entry = plan->program->entry[a->param];
  }
}

/* The node is read by `reader` and by nothing else but an assignment or output. */
static bool only_reader(const tp__plan *plan, tp__value v, tp__value reader)
{
  const tp__graph *g = plan->program->graph;
  for (tp__value u = 0; u < g->count; u++)
    for (int i = 0; i < g->node[u].n_in && u != reader; i++)
      if (g->node[u].in[i] == v) return false;
  return true;
}

/* An Adam or SGD update of one parameter is one unit: parameter p with what is made for it alone.
 */
static void gather(const tp__plan *plan, tp__value p, tp__unit *unit)
{
  const tp__node *n = tp__plan_node(plan, p);
  const tp__op wanted[2] = {n->op == TP__OP_ADAM_PARAM ? TP__OP_ADAM_M : TP__OP_SGD_MOMENTUM,
                            TP__OP_ADAM_V};
  int count = n->op == TP__OP_ADAM_PARAM ? 2 : n->op == TP__OP_SGD_PARAM ? 1 : 0;
  for (int i = 0; i < count; i++) {
    tp__value v = n->in[i + 1];
    if (tp__plan_node(plan, v)->op == wanted[i] && plan->slot[v].level == plan->slot[p].level &&
        only_reader(plan, v, p))
      unit->node[unit->n_nodes++] = v;
  }
  unit->node[unit->n_nodes++] = p;
}

/* All three in place and of one gradient: what the kernel does. */
static bool is_adam(const tp__plan *plan, const tp__unit *u)
{
  if (u->n_nodes != 3 || tp__plan_node(plan, u->node[2])->op != TP__OP_ADAM_PARAM) return false;
  for (int i = 0; i < 3; i++)
    if (plan->slot[u->node[i]].home != TP__HOME_STATE) return false;
  const tp__node *m = tp__plan_node(plan, u->node[0]), *v = tp__plan_node(plan, u->node[1]);
  const tp__node *p = tp__plan_node(plan, u->node[2]);
  return m->in[1] == v->in[1] && m->attr.f[0] == p->attr.f[0] && v->attr.f[0] == p->attr.f[1];
}

/* owner[v]: the unit that computes v. */
static void add_unit(tp__plan *plan, tp__value v, int *owner)
{
  tp__unit *u = &plan->unit[plan->n_units];
  *u = (tp__unit){.level = plan->slot[v].level, .blocks = 1};
  gather(plan, v, u);
  u->adam = is_adam(plan, u);
  if (is_update(tp__plan_node(plan, v)->op))
    u->blocks = ((size_t)plan->slot[v].pitch + TP__BLOCK - 1) / TP__BLOCK;
  for (int i = 0; i < u->n_nodes; i++) owner[u->node[i]] = plan->n_units;
  plan->n_units++;
}

static void set_waves(tp__plan *plan, const int *owner)
{
  for (int i = 0; i < plan->n_units; i++) {
    tp__unit *u = &plan->unit[i];
    for (int k = 0; k < u->n_nodes; k++) {
      const tp__node *n = tp__plan_node(plan, u->node[k]);
      for (int j = 0; j < n->n_in; j++) {
        int from = n->in[j] == TP__NONE ? -1 : owner[n->in[j]];
        if (from >= 0 && from != i && plan->unit[from].level == u->level &&
            plan->unit[from].wave >= u->wave)
          u->wave = plan->unit[from].wave + 1;
      }
    }
  }
}

/* Units in the order of their last node: those that gather others come where their parameter is. */
static void make_units(tp__plan *plan, int *owner)
{
  const tp__graph *g = plan->program->graph;
  for (tp__value v = 0; v < g->count; v++) owner[v] = -1;
  for (tp__value v = 0; v < g->count; v++) { /* who gathers? */
    tp__op op = g->node[v].op;
    if (!is_shared_node(plan, v) || (op != TP__OP_ADAM_PARAM && op != TP__OP_SGD_PARAM)) continue;
    tp__unit u = {0};
    gather(plan, v, &u);
    for (int i = 0; i < u.n_nodes; i++) owner[u.node[i]] = v;
  }
  for (tp__value v = 0; v < g->count; v++)
    if (is_shared_node(plan, v) && (owner[v] < 0 || owner[v] == v)) {
      owner[v] = -1;
      add_unit(plan, v, owner);
    }
  set_waves(plan, owner);
}

tp_status tp__plan_updates(tp__plan *plan, tp_error *err)
{
  size_t count = (size_t)plan->program->graph->count;
  place_assignments(plan);
  plan->unit = tp__calloc(count, sizeof *plan->unit, err);
  int *owner = tp__calloc(count, sizeof *owner, err);
  if (plan->unit != NULL && owner != NULL) make_units(plan, owner);
  free(owner);
  if (plan->unit == NULL || owner == NULL) return TP_ERR_INTERNAL;
  size_t blocks = (size_t)plan->n_derived;
  for (int i = 0; i < plan->n_units; i++) blocks += plan->unit[i].blocks;
  plan->task = tp__calloc(blocks, sizeof *plan->task, err);
  plan->task_capacity = blocks;
  return plan->task != NULL ? TP_OK : TP_ERR_INTERNAL;
}
