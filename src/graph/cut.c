/* cut - a graph without the part that leads to one value; see graph.h */
#include <stdlib.h>

#include "graph.h"

/* live[v]: an output or assignment depends on v without going through `leaf`. */
static void mark_live(const tp__graph *g, tp__value leaf, bool *live)
{
  for (size_t i = 0; i < g->n_outputs; i++) live[g->output[i].value] = true;
  for (size_t i = 0; i < g->n_assignments; i++) {
    live[g->assignment[i].param] = true;
    live[g->assignment[i].value] = true;
  }
  for (tp__value v = g->count - 1; v >= 0; v--)
    for (int i = 0; live[v] && v != leaf && i < g->node[v].n_in; i++)
      if (g->node[v].in[i] != TP__NONE) live[g->node[v].in[i]] = true;
}

static tp_status copy_node(const tp__graph *g, tp__value v, tp__graph *to, tp__value *map,
                           tp_error *err)
{
  const tp__node *n = &g->node[v];
  if (n->op == TP__OP_INPUT) return tp__graph_input(to, n->name, n->dtype, &n->shape, &map[v], err);
  if (n->op == TP__OP_PARAM) return tp__graph_param(to, n->name, &n->shape, &map[v], err);
  tp__value in[TP__OPERANDS_MAX];
  for (int i = 0; i < n->n_in; i++) in[i] = n->in[i] == TP__NONE ? TP__NONE : map[n->in[i]];
  TP__TRY(tp__graph_add(to, n->op, in, n->n_in, &n->attr, &map[v], err));
  return n->name == NULL ? TP_OK : tp__graph_hint(to, map[v], n->name, err);
}

static tp_status copy_live(const tp__graph *g, tp__value leaf, const char *name, const bool *live,
                           tp__graph *to, tp__value *map, tp_error *err)
{
  for (tp__value v = 0; v < g->count; v++) {
    if (!live[v]) continue;
    if (v == leaf)
      TP__TRY(tp__graph_input(to, name, g->node[v].dtype, &g->node[v].shape, &map[v], err));
    else
      TP__TRY(copy_node(g, v, to, map, err));
  }
  for (size_t i = 0; i < g->n_outputs; i++)
    TP__TRY(tp__graph_output(to, g->output[i].name, map[g->output[i].value], err));
  for (size_t i = 0; i < g->n_assignments; i++)
    TP__TRY(tp__graph_assign(to, map[g->assignment[i].param], map[g->assignment[i].value], err));
  return TP_OK;
}

tp_status tp__graph_cut(const tp__graph *g, tp__value value, const char *name, tp__graph **cut,
                        tp_error *err)
{
  tp__graph *to = NULL;
  bool *live = tp__calloc((size_t)g->count, sizeof *live, err);
  tp__value *map = tp__calloc((size_t)g->count, sizeof *map, err);
  tp_status status = live == NULL || map == NULL ? TP_ERR_INTERNAL : tp__graph_new(&to, err);
  if (status == TP_OK) {
    mark_live(g, value, live);
    status = copy_live(g, value, name, live, to, map, err);
  }
  if (status == TP_OK)
    *cut = to;
  else
    tp__graph_free(to);
  free(live);
  free(map);
  return status;
}
