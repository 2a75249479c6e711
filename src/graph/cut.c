/* cut - a graph without the part that leads to one value; see graph.h */
#include <stdlib.h>

#include "rewrite.h"

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
  tp__value in[TP__OPERANDS_MAX];
  for (int i = 0; i < n->n_in; i++) in[i] = n->in[i] == TP__NONE ? TP__NONE : map[n->in[i]];
  return tp__graph_copy_node(g, v, in, to, &map[v], err);
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
  return tp__graph_copy_results(g, map, to, err);
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
