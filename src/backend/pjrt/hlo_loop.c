/* hlo_loop - the rows in equal parts, one after the other, so that only one part's values are in
 * memory; see hlo.h
 *
 * What does not depend on examples is written before the loop, what depends on sums over them after
 * it. Carried from part to part: its number, the sums so far, and the rows of the outputs.
 */
#include <stdlib.h>

#include "hlo.h"

/* By what is carried: the part's number, joints, outputs by example. */
typedef struct loop {
  tp__value *node; /* of the graph; TP__NONE: the part's number */
  tp__hlo_value *start, *now, *next, *after;
  size_t count;
  tp__hlo_value valid; /* of all parts */
  int64_t rows;
} loop;

static bool is_example(const tp__node *n)
{
  return tp__per_example(n) || tp__op_is_joint(n->op);
}

static void carry(loop *l, tp__value node, tp__hlo_value start)
{
  for (size_t i = 0; i < l->count; i++)
    if (l->node[i] == node) return;
  l->node[l->count] = node;
  l->start[l->count++] = start;
}

static void collect(tp__hlo *w, loop *l)
{
  const tp__graph *g = w->g;
  const tp__shape scalar = {0};
  carry(l, TP__NONE, tp__hlo_constant(w, TP__HLO_I32, &scalar, 0));
  for (tp__value v = 0; v < g->count; v++)
    if (tp__op_is_joint(g->node[v].op))
      carry(l, v, tp__hlo_constant(w, TP__HLO_F32, &g->node[v].shape, 0));
  for (size_t i = 0; i < g->n_outputs; i++) {
    tp__value v = g->output[i].value;
    tp__shape shape = tp__hlo_shape_of(w, &g->node[v].shape);
    if (tp__per_example(&g->node[v])) carry(l, v, tp__hlo_constant(w, TP__HLO_F32, &shape, 0));
  }
}

static void put_head(tp__hlo *w, loop *l)
{
  const tp__shape scalar = {0};
  tp__hlo_while(w, l->start, l->count, l->now, l->after);
  tp__hlo_value parts = tp__hlo_constant(w, TP__HLO_I32, &scalar, (double)w->options->accumulate);
  tp__hlo_while_do(w, tp__hlo_compare(w, "LT", l->now[0], parts));
}

static void enter_part(tp__hlo *w, const loop *l, tp__hlo_value *first, tp__hlo_value *zero)
{
  tp__hlo_value number = l->now[0], rows = tp__hlo_like(w, number, (double)w->rows);
  *zero = tp__hlo_like(w, number, 0);
  *first = tp__hlo_mul(w, number, rows);
  w->valid = tp__hlo_binary(w, "minimum", rows,
                            tp__hlo_binary(w, "maximum", *zero, tp__hlo_sub(w, l->valid, *first)));
  w->mask = tp__hlo_absent();
  for (tp__value v = 0; v < w->g->count; v++) {
    const tp__node *n = &w->g->node[v];
    if (n->op != TP__OP_INPUT || !tp__per_example(n)) continue;
    w->slot[v].own = tp__hlo_part_of(w, w->argument[v], *first, *zero, w->rows);
  }
}

static void leave_part(tp__hlo *w, loop *l, tp__hlo_value first, tp__hlo_value zero)
{
  for (size_t i = 0; i < l->count; i++) {
    tp__hlo_value now = l->now[i];
    if (l->node[i] == TP__NONE) {
      l->next[i] = tp__hlo_add(w, now, tp__hlo_like(w, now, 1));
      continue;
    }
    tp__hlo_value made = tp__hlo_convert(w, w->slot[l->node[i]].own, TP__HLO_F32);
    l->next[i] = tp__per_example(&w->g->node[l->node[i]])
                     ? tp__hlo_with_part(w, now, made, first, zero)
                     : tp__hlo_add(w, now, made);
  }
  tp__hlo_while_end(w, l->next, l->count);
}

static void write_loop(tp__hlo *w, loop *l)
{
  tp__hlo_value first, zero;
  for (tp__value v = 0; v < w->g->count; v++)
    if (!is_example(&w->g->node[v]) && !w->slot[v].varies) tp__hlo_write_node(w, v);
  w->where = "parts";
  collect(w, l);
  put_head(w, l);
  w->rows = l->rows / w->options->accumulate;
  enter_part(w, l, &first, &zero);
  for (tp__value v = 0; v < w->g->count; v++)
    if (is_example(&w->g->node[v])) tp__hlo_write_node(w, v);
  w->where = "parts";
  leave_part(w, l, first, zero);
  w->rows = l->rows;
  w->valid = l->valid;
  w->mask = tp__hlo_absent();
  for (size_t i = 0; i < l->count; i++)
    if (l->node[i] != TP__NONE) w->slot[l->node[i]].own = l->after[i];
}

void tp__hlo_loop(tp__hlo *w)
{
  const size_t most = (size_t)w->g->count + 1;
  loop l = {.valid = w->valid, .rows = w->rows};
  l.node = tp__calloc(most, sizeof *l.node, w->err);
  l.start = tp__calloc(4 * most, sizeof *l.start, w->err);
  if (l.node == NULL || l.start == NULL) {
    w->status = w->status == TP_OK ? TP_ERR_INTERNAL : w->status;
  } else {
    l.now = l.start + most;
    l.next = l.now + most;
    l.after = l.next + most;
    write_loop(w, &l);
  }
  free(l.node);
  free(l.start);
}
