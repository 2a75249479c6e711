/* rewrite - what every pass shares: a new graph from an old one, node by node.
 *
 *   old nodes in order ──> visit: "I make something better of this one", else a plain copy ──> new
 * graph
 *
 * Dead nodes (no output or assignment depends on them; inputs always live) are not visited and not
 * copied. A pass that fuses a node with the one before it makes the fused node in the later one's
 * place; the plain copy of the earlier one is then dead in the new graph, and the next pass drops
 * it. So a pass asks only: has the earlier node no other reader?
 */
#ifndef TP_REWRITE_H
#define TP_REWRITE_H

#include "graph.h"

typedef struct tp__rewrite {
  const tp__graph *from;
  tp__graph *to;
  tp__value *map;   /* old value -> new value, TP__NONE: not there (yet) */
  int32_t *readers; /* of each old value: operands of live nodes, outputs, assignments */
  tp_error *err;
} tp__rewrite;

/* Sets map[v], or leaves it alone for a plain copy. */
typedef tp_status (*tp__visit_fn)(tp__rewrite *r, tp__value v);

/* visit NULL: only drops dead nodes. Returns: tp__graph_free. */
tp_status tp__rewrite_run(const tp__graph *from, tp__visit_fn visit, tp__graph **to,
                          tp_error *err) TP_CHECKED;

/* The node that operand i of v is, when it is one of op and v is its only reader; else NULL. */
const tp__node *tp__rewrite_only(const tp__rewrite *r, tp__value v, int i, tp__op op);

/* v becomes a node of op with operands in (new values). hint2 is used when v has no name of its
 * own. */
tp_status tp__rewrite_emit(tp__rewrite *r, tp__value v, tp__op op, const tp__value *in, int n_in,
                           const tp__attr *attr, const char *hint2) TP_CHECKED;

/* The new values of n's operands, TP__NONE where absent. */
void tp__rewrite_operands(const tp__rewrite *r, const tp__node *n, tp__value in[TP__OPERANDS_MAX]);

/* ---- copying, also for those who are no pass ---- */

/* Node v of `from` once more in `to`, with operands in (new values; sources have none), under its
 * layer's name. */
tp_status tp__graph_copy_node(const tp__graph *from, tp__value v, const tp__value *in,
                              tp__graph *to, tp__value *made, tp_error *err) TP_CHECKED;
/* Outputs and assignments of `from`, of the values that map has for them (NULL: of the
 * same numbers). */
tp_status tp__graph_copy_results(const tp__graph *from, const tp__value *map, tp__graph *to,
                                 tp_error *err) TP_CHECKED;

static inline const tp__node *tp__rewrite_node(const tp__rewrite *r, tp__value v)
{
  return &r->from->node[v];
}

/* ---- the passes, in the order in which optimize.c runs them ---- */

tp_status tp__pass_simplify(tp__rewrite *r, tp__value v) TP_CHECKED;
tp_status tp__pass_pad(tp__rewrite *r, tp__value v) TP_CHECKED;
tp_status tp__pass_bias(tp__rewrite *r, tp__value v) TP_CHECKED;
tp_status tp__pass_batch_norm(tp__rewrite *r, tp__value v) TP_CHECKED;
tp_status tp__pass_activation(tp__rewrite *r, tp__value v) TP_CHECKED;
tp_status tp__pass_residual(tp__rewrite *r, tp__value v) TP_CHECKED;
tp_status tp__pass_last_activation(tp__rewrite *r, tp__value v) TP_CHECKED;
tp_status tp__pass_scale(tp__rewrite *r, tp__value v) TP_CHECKED;

#endif
