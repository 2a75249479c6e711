/* graph - storage and building; see graph.h */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "infer.h"

/* Room for one more item of an array of *capacity items. */
static void *grow(void *array, size_t count, size_t *capacity, size_t size, tp_error *err)
{
  if (array != NULL && count < *capacity) return array;
  size_t wanted = *capacity == 0 ? 64 : *capacity * 2;
  void *grown = realloc(array, wanted * size);
  if (grown == NULL)
    (void)tp__no_memory(err, wanted * size);
  else
    *capacity = wanted;
  return grown;
}

tp_status tp__graph_new(tp__graph **graph, tp_error *err)
{
  tp__graph *g = tp__calloc(1, sizeof *g, err);
  if (g == NULL) return TP_ERR_INTERNAL;
  *graph = g;
  return TP_OK;
}

void tp__graph_free(tp__graph *graph)
{
  if (graph == NULL) return;
  free(graph->node);
  free(graph->param);
  free(graph->output);
  free(graph->assignment);
  tp__arena_free(&graph->arena);
  free(graph);
}

static tp_status check_value(const tp__graph *g, const char *what, tp__value v, tp_error *err)
{
  if (v >= 0 && v < g->count) return TP_OK;
  return tp__fail(err, TP_ERR_INTERNAL, "%s: there is no value %%%d in a graph of %d nodes", what,
                  (int)v, (int)g->count);
}

static tp_status keep_name(tp__graph *g, const char *name, const char **kept, tp_error *err)
{
  *kept = tp__arena_strdup(&g->arena, name);
  return *kept != NULL ? TP_OK : tp__no_memory(err, strlen(name) + 1);
}

static tp_status append(tp__graph *g, const tp__node *node, tp__value *value, tp_error *err)
{
  if (g->count >= TP__NODES_MAX)
    return tp__fail(err, TP_ERR_INTERNAL, "%s: the graph has reached its limit of %d nodes",
                    tp__op_name(node->op), TP__NODES_MAX);
  size_t capacity = (size_t)g->capacity;
  tp__node *grown = grow(g->node, (size_t)g->count, &capacity, sizeof *grown, err);
  if (grown == NULL) return TP_ERR_INTERNAL;
  g->node = grown;
  g->capacity = (int32_t)capacity;
  g->node[g->count] = *node;
  *value = g->count++;
  return TP_OK;
}

tp_status tp__graph_input(tp__graph *g, const char *name, tp__dtype dtype, const tp__shape *shape,
                          tp__value *value, tp_error *err)
{
  char what[160];
  snprintf(what, sizeof what, "input %s", name);
  TP__TRY(tp__check_shape(what, shape, err));
  if (tp__dtype_size(dtype) == 0)
    return tp__fail(err, TP_ERR_INTERNAL, "%s: unknown type %d", what, (int)dtype);
  for (tp__value v = 0; v < g->count; v++)
    if (g->node[v].op == TP__OP_INPUT && strcmp(g->node[v].name, name) == 0)
      return tp__fail(err, TP_ERR_INTERNAL, "%s is there twice", what);
  tp__node node = {.op = TP__OP_INPUT, .dtype = dtype, .shape = *shape};
  TP__TRY(keep_name(g, name, &node.name, err));
  return append(g, &node, value, err);
}

static tp_status same_param(const tp__graph *g, tp__value found, const tp__shape *shape,
                            tp__value *value, tp_error *err)
{
  char there[96], wanted[96];
  const tp__node *node = &g->node[found];
  if (!tp__shape_equal(&node->shape, shape))
    return tp__fail(err, TP_ERR_INTERNAL, "param %s: wanted as %s, it is already there as %s",
                    node->name, tp__shape_text(shape, wanted), tp__shape_text(&node->shape, there));
  *value = found;
  return TP_OK;
}

tp_status tp__graph_param(tp__graph *g, const char *name, const tp__shape *shape, tp__value *value,
                          tp_error *err)
{
  for (size_t i = 0; i < g->n_params; i++)
    if (strcmp(g->node[g->param[i]].name, name) == 0)
      return same_param(g, g->param[i], shape, value, err);
  char what[160];
  snprintf(what, sizeof what, "param %s", name);
  TP__TRY(tp__check_shape(what, shape, err));
  if (shape->rank > 0 && shape->dim[0] == TP__N)
    return tp__fail(err, TP_ERR_INTERNAL, "%s: a parameter can't have a row for each example",
                    what);
  tp__node node = {.op = TP__OP_PARAM, .dtype = TP__F32, .shape = *shape};
  TP__TRY(keep_name(g, name, &node.name, err));
  tp__value *grown = grow(g->param, g->n_params, &g->params_capacity, sizeof *grown, err);
  if (grown == NULL) return TP_ERR_INTERNAL;
  g->param = grown;
  TP__TRY(append(g, &node, value, err));
  g->param[g->n_params++] = *value;
  return TP_OK;
}

tp_status tp__graph_add(tp__graph *g, tp__op op, const tp__value *in, int n_in,
                        const tp__attr *attr, tp__value *value, tp_error *err)
{
  tp__node node = {.op = op, .dtype = TP__F32};
  while (n_in > 0 && in[n_in - 1] == TP__NONE) n_in--;
  if (n_in < 0 || n_in > TP__OPERANDS_MAX)
    return tp__fail(err, TP_ERR_INTERNAL, "%s: %d operands are impossible", tp__op_name(op), n_in);
  for (int i = 0; i < TP__OPERANDS_MAX; i++) {
    node.in[i] = i < n_in ? in[i] : TP__NONE;
    if (node.in[i] != TP__NONE) TP__TRY(check_value(g, tp__op_name(op), node.in[i], err));
  }
  node.n_in = n_in;
  if (attr != NULL) node.attr = *attr;
  TP__TRY(tp__infer(g, op, node.in, n_in, &node.attr, &node.shape, err));
  return append(g, &node, value, err);
}

tp_status tp__graph_hint(tp__graph *g, tp__value value, const char *name, tp_error *err)
{
  TP__TRY(check_value(g, "hint", value, err));
  tp__node *node = &g->node[value];
  if (name == NULL || node->op == TP__OP_INPUT || node->op == TP__OP_PARAM) return TP_OK;
  return keep_name(g, name, &node->name, err);
}

tp_status tp__graph_output(tp__graph *g, const char *name, tp__value value, tp_error *err)
{
  TP__TRY(check_value(g, name, value, err));
  for (size_t i = 0; i < g->n_outputs; i++)
    if (strcmp(g->output[i].name, name) == 0)
      return tp__fail(err, TP_ERR_INTERNAL, "output %s is there twice", name);
  tp__output output = {.value = value};
  TP__TRY(keep_name(g, name, &output.name, err));
  tp__output *grown = grow(g->output, g->n_outputs, &g->outputs_capacity, sizeof *grown, err);
  if (grown == NULL) return TP_ERR_INTERNAL;
  g->output = grown;
  g->output[g->n_outputs++] = output;
  return TP_OK;
}

static tp_status check_assignment(const tp__graph *g, tp__value param, tp__value value,
                                  tp_error *err)
{
  char wanted[96], given[96];
  TP__TRY(check_value(g, "assignment", param, err));
  TP__TRY(check_value(g, "assignment", value, err));
  const tp__node *p = &g->node[param], *v = &g->node[value];
  if (p->op != TP__OP_PARAM)
    return tp__fail(err, TP_ERR_INTERNAL, "assignment: %%%d is %s, not a parameter", (int)param,
                    tp__op_name(p->op));
  if (v->dtype != p->dtype || !tp__shape_equal(&p->shape, &v->shape))
    return tp__fail(err, TP_ERR_INTERNAL, "assignment of %s: it is %s, the value is %s %s", p->name,
                    tp__shape_text(&p->shape, wanted), tp__dtype_name(v->dtype),
                    tp__shape_text(&v->shape, given));
  if (tp__graph_is_assigned(g, param))
    return tp__fail(err, TP_ERR_INTERNAL, "assignment of %s is there twice", p->name);
  return TP_OK;
}

tp_status tp__graph_assign(tp__graph *g, tp__value param, tp__value value, tp_error *err)
{
  TP__TRY(check_assignment(g, param, value, err));
  tp__assignment *grown =
      grow(g->assignment, g->n_assignments, &g->assignments_capacity, sizeof *grown, err);
  if (grown == NULL) return TP_ERR_INTERNAL;
  g->assignment = grown;
  g->assignment[g->n_assignments++] = (tp__assignment){.param = param, .value = value};
  return TP_OK;
}

bool tp__graph_is_assigned(const tp__graph *g, tp__value param)
{
  for (size_t i = 0; i < g->n_assignments; i++)
    if (g->assignment[i].param == param) return true;
  return false;
}
