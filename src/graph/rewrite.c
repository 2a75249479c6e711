/* rewrite - see rewrite.h */
#include "rewrite.h"

#include <stdlib.h>

/* live[v]: an output or assignment depends on v, or v is an input. */
static void mark_live(const tp__graph *g, bool *live)
{
  for (size_t i = 0; i < g->n_outputs; i++) live[g->output[i].value] = true;
  for (size_t i = 0; i < g->n_assignments; i++) {
    live[g->assignment[i].param] = true;
    live[g->assignment[i].value] = true;
  }
  for (tp__value v = g->count - 1; v >= 0; v--) {
    const tp__node *n = &g->node[v];
    if (n->op == TP__OP_INPUT) live[v] = true;
    for (int i = 0; live[v] && i < n->n_in; i++)
      if (n->in[i] != TP__NONE) live[n->in[i]] = true;
  }
}

static void count_readers(const tp__graph *g, const bool *live, int32_t *readers)
{
  for (tp__value v = 0; v < g->count; v++)
    for (int i = 0; live[v] && i < g->node[v].n_in; i++)
      if (g->node[v].in[i] != TP__NONE) readers[g->node[v].in[i]]++;
  for (size_t i = 0; i < g->n_outputs; i++) readers[g->output[i].value]++;
  for (size_t i = 0; i < g->n_assignments; i++) readers[g->assignment[i].value]++;
}

void tp__rewrite_operands(const tp__rewrite *r, const tp__node *n, tp__value in[TP__OPERANDS_MAX])
{
  for (int i = 0; i < TP__OPERANDS_MAX; i++)
    in[i] = i < n->n_in && n->in[i] != TP__NONE ? r->map[n->in[i]] : TP__NONE;
}

const tp__node *tp__rewrite_only(const tp__rewrite *r, tp__value v, int i, tp__op op)
{
  const tp__node *n = &r->from->node[v];
  if (i >= n->n_in || n->in[i] == TP__NONE || r->readers[n->in[i]] != 1) return NULL;
  const tp__node *operand = &r->from->node[n->in[i]];
  return operand->op == op ? operand : NULL;
}

tp_status tp__rewrite_emit(tp__rewrite *r, tp__value v, tp__op op, const tp__value *in, int n_in,
                           const tp__attr *attr, const char *hint2)
{
  const char *name = r->from->node[v].name;
  tp__value value = TP__NONE;
  TP__TRY(tp__graph_add(r->to, op, in, n_in, attr, &value, r->err));
  TP__TRY(tp__graph_hint(r->to, value, name != NULL ? name : hint2, r->err));
  r->map[v] = value;
  return TP_OK;
}

tp_status tp__graph_copy_node(const tp__graph *from, tp__value v, const tp__value *in,
                              tp__graph *to, tp__value *made, tp_error *err)
{
  const tp__node *n = &from->node[v];
  if (n->op == TP__OP_INPUT) return tp__graph_input(to, n->name, n->dtype, &n->shape, made, err);
  if (n->op == TP__OP_PARAM) return tp__graph_param(to, n->name, &n->shape, made, err);
  TP__TRY(tp__graph_add(to, n->op, in, n->n_in, &n->attr, made, err));
  return tp__graph_hint(to, *made, n->name, err);
}

tp_status tp__graph_copy_results(const tp__graph *from, const tp__value *map, tp__graph *to,
                                 tp_error *err)
{
  for (size_t i = 0; i < from->n_outputs; i++) {
    tp__value v = from->output[i].value;
    TP__TRY(tp__graph_output(to, from->output[i].name, map != NULL ? map[v] : v, err));
  }
  for (size_t i = 0; i < from->n_assignments; i++) {
    tp__assignment a = from->assignment[i];
    if (map != NULL) a = (tp__assignment){map[a.param], map[a.value]};
    TP__TRY(tp__graph_assign(to, a.param, a.value, err));
  }
  return TP_OK;
}

static tp_status copy_node(tp__rewrite *r, tp__value v)
{
  tp__value in[TP__OPERANDS_MAX];
  tp__rewrite_operands(r, &r->from->node[v], in);
  return tp__graph_copy_node(r->from, v, in, r->to, &r->map[v], r->err);
}

static tp_status visit_all(tp__rewrite *r, const bool *live, tp__visit_fn visit)
{
  for (tp__value v = 0; v < r->from->count; v++) {
    r->map[v] = TP__NONE;
    if (!live[v]) continue;
    if (visit != NULL) TP__TRY(visit(r, v));
    if (r->map[v] == TP__NONE) TP__TRY(copy_node(r, v));
  }
  return tp__graph_copy_results(r->from, r->map, r->to, r->err);
}

tp_status tp__rewrite_run(const tp__graph *from, tp__visit_fn visit, tp__graph **to, tp_error *err)
{
  size_t count = (size_t)from->count;
  tp__rewrite r = {.from = from, .err = err};
  tp_status status = TP_ERR_INTERNAL;
  bool *live = tp__calloc(count, sizeof *live, err);
  if (live == NULL) goto done;
  if ((r.map = tp__calloc(count, sizeof *r.map, err)) == NULL) goto done;
  if ((r.readers = tp__calloc(count, sizeof *r.readers, err)) == NULL) goto done;
  if ((status = tp__graph_new(&r.to, err)) != TP_OK) goto done;
  mark_live(from, live);
  count_readers(from, live, r.readers);
  status = visit_all(&r, live, visit);
  if (status == TP_OK) {
    *to = r.to;
    r.to = NULL;
  }
done:
  tp__graph_free(r.to);
  free(r.readers);
  free(r.map);
  free(live);
  return status;
}
