/* exec_update - shared nodes in blocks over the pool, and assignments; see plan.h */
#include <math.h>
#include <string.h>

#include "exec.h"

static float *shared_at(const tp__plan *plan, tp__value v)
{
  const tp__slot *s = &plan->slot[v];
  return s->home == TP__HOME_STATE ? s->entry->data : plan->shared + s->at;
}

/* Elements from...from + count of what has as many elements as the result; scalars and the rest
 * whole. */
static tp__view part(const tp__plan *plan, tp__value v, int64_t whole, int64_t from, int64_t count)
{
  tp__view view = tp__view_of(&tp__plan_node(plan, v)->shape, 1, 0);
  view.data = shared_at(plan, v);
  if (view.c != whole) return view;
  view.data = (float *)view.data + from;
  view.c = view.pitch = view.row = count;
  return view;
}

static void run_plain(const tp__plan *plan, tp__value v, int64_t from, int64_t count)
{
  const tp__node *n = tp__plan_node(plan, v);
  int64_t whole = plan->slot[v].pitch;
  tp__ref r = {.node = n, .n = 1, .out = part(plan, v, whole, from, count)};
  for (int i = 0; i < n->n_in; i++)
    if (n->in[i] != TP__NONE) r.in[i] = part(plan, n->in[i], whole, from, count);
  tp__reference(n->op)(&r);
}

/* Adam of one parameter: the bias corrections are one factor on the rate. */
static void run_adam(const tp__plan *plan, const tp__unit *u, int64_t from, int64_t count)
{
  const tp__node *m = tp__plan_node(plan, u->node[0]), *p = tp__plan_node(plan, u->node[2]);
  const float *f = p->attr.f;
  double step = *shared_at(plan, p->in[4]);
  double rate = *shared_at(plan, p->in[3]) * sqrt(1 - pow(f[1], step)) / (1 - pow(f[0], step));
  plan->kernels->adam((long)count, shared_at(plan, u->node[2]) + from,
                      shared_at(plan, u->node[0]) + from, shared_at(plan, u->node[1]) + from,
                      shared_at(plan, m->in[1]) + from, (float)rate, f[0], f[1], f[2],
                      *shared_at(plan, p->in[3]) * p->attr.g[0]);
}

static void run_task(void *arg, size_t index, int worker)
{
  (void)worker;
  const tp__plan *plan = arg;
  const tp__task *t = &plan->task[index];
  const tp__unit *u = &plan->unit[t->unit];
  int64_t whole = plan->slot[u->node[u->n_nodes - 1]].pitch;
  int64_t from = u->blocks > 1 ? (int64_t)t->block * TP__BLOCK : 0;
  int64_t count = u->blocks > 1 && whole - from > TP__BLOCK ? TP__BLOCK : whole - from;
  if (u->adam) {
    run_adam(plan, u, from, count);
    return;
  }
  for (int i = 0; i < u->n_nodes; i++) run_plain(plan, u->node[i], from, count);
}

/* Something that the unit reads is newer than its result. Levels above 0 depend on joints: always.
 */
static bool is_stale(tp__plan *plan, const tp__unit *u)
{
  uint64_t newest = 0;
  for (int k = 0; k < u->n_nodes; k++) {
    const tp__node *n = tp__plan_node(plan, u->node[k]);
    for (int i = 0; i < n->n_in; i++) {
      if (n->in[i] == TP__NONE) continue;
      uint64_t version = tp__version(plan, n->in[i]);
      if (version > newest) newest = version;
    }
  }
  tp__slot *last = &plan->slot[u->node[u->n_nodes - 1]];
  return u->level > 0 || newest >= last->version;
}

static int waves(const tp__plan *plan, int level)
{
  int count = 0;
  for (int i = 0; i < plan->n_units; i++)
    if (plan->unit[i].level == level && plan->unit[i].wave >= count) count = plan->unit[i].wave + 1;
  return count;
}

void tp__run_units(tp__plan *plan, int level)
{
  int count = waves(plan, level);
  for (int wave = 0; wave < count; wave++) {
    plan->n_tasks = 0;
    for (int i = 0; i < plan->n_units; i++) {
      const tp__unit *u = &plan->unit[i];
      if (u->level != level || u->wave != wave || !is_stale(plan, u)) continue;
      for (size_t b = 0; b < u->blocks; b++)
        plan->task[plan->n_tasks++] = (tp__task){.unit = i, .block = b};
      for (int k = 0; k < u->n_nodes; k++)
        plan->slot[u->node[k]].version = ++plan->program->state->clock;
    }
    tp__pool_for(plan->program->cpu->pool, plan->n_tasks, run_task, plan);
  }
}

/* New values that were not made in place. Those that are another parameter's old value are taken
 * before any is overwritten. */
void tp__run_assignments(tp__plan *plan)
{
  const tp__graph *g = plan->program->graph;
  for (size_t i = 0; i < g->n_assignments; i++) {
    const tp__slot *from = &plan->slot[g->assignment[i].value];
    if (plan->copied[i] && from->home == TP__HOME_STATE)
      memcpy(plan->shared + plan->kept[i], from->entry->data, (size_t)from->pitch * sizeof(float));
  }
  for (size_t i = 0; i < g->n_assignments; i++) {
    const tp__slot *from = &plan->slot[g->assignment[i].value];
    tp__entry *e = plan->program->entry[g->assignment[i].param];
    size_t at = from->home == TP__HOME_STATE ? plan->kept[i] : from->at;
    if (plan->copied[i]) memcpy(e->data, plan->shared + at, (size_t)from->pitch * sizeof(float));
    e->version = ++plan->program->state->clock;
  }
}
