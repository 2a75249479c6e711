/* hlo_loop - the rows in equal parts, one after the other, so that only one part's values are in
 * memory; see hlo.h
 *
 * What does not depend on examples is written before the loop, what depends on sums over them after
 * it. Carried from part to part: its number, the sums so far, and the rows of the outputs.
 */
#include <stdlib.h>

#include "hlo.h"

typedef struct carried {
  tp__value node;      /* a joint, or an output by example; TP__NONE: the part's number */
  tp__hlo_value start; /* before the first part */
  tp__hlo_value now;   /* in the body */
  tp__hlo_value next;
} carried;

typedef struct loop {
  carried *item;
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
    if (l->item[i].node == node) return;
  l->item[l->count++] = (carried){.node = node, .start = start};
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

/* " %1 : tensor<i32>" of all, in the order of while, return and the result. */
static void put_types(tp__hlo *w, const loop *l)
{
  for (size_t i = 0; i < l->count; i++) {
    tp__hlo_put(w, i > 0 ? ", " : " : ");
    tp__hlo_put_type(w, l->item[i].start);
  }
}

static int32_t put_head(tp__hlo *w, loop *l)
{
  const tp__shape scalar = {0};
  int32_t id = w->next++;
  tp__hlo_put(w, l->count > 1 ? "    %%%d:%zu = stablehlo.while(" : "    %%%d = stablehlo.while(",
              (int)id, l->count);
  for (size_t i = 0; i < l->count; i++) {
    carried *c = &l->item[i];
    c->now = c->start;
    c->now.id = w->next++;
    if (i > 0) tp__hlo_put(w, ", ");
    tp__hlo_put_value(w, c->now);
    tp__hlo_put(w, " = ");
    tp__hlo_put_value(w, c->start);
  }
  tp__hlo_put(w, ")");
  put_types(w, l);
  tp__hlo_put(w, "\n    cond {\n");
  tp__hlo_value parts = tp__hlo_constant(w, TP__HLO_I32, &scalar, (double)w->options->accumulate);
  tp__hlo_value more = tp__hlo_compare(w, "LT", l->item[0].now, parts);
  tp__hlo_put(w, "    stablehlo.return ");
  tp__hlo_put_value(w, more);
  tp__hlo_put(w, " : tensor<i1>\n    } do {\n");
  return id;
}

/* Where rows of the part begin: (first, 0, 0...). */
static void put_start(tp__hlo *w, tp__hlo_value first, tp__hlo_value zero, int rank)
{
  for (int i = 0; i < rank; i++) {
    tp__hlo_put(w, ", ");
    tp__hlo_put_value(w, i == 0 ? first : zero);
  }
}

static void put_start_types(tp__hlo *w, int rank)
{
  for (int i = 0; i < rank; i++) tp__hlo_put(w, ", tensor<i32>");
}

static tp__hlo_value rows_of(tp__hlo *w, tp__hlo_value x, tp__hlo_value first, tp__hlo_value zero)
{
  char list[128];
  tp__hlo_value y = x;
  y.shape.dim[0] = w->rows;
  y.id = w->next++;
  tp__hlo_put(w, "    %%%d = stablehlo.dynamic_slice ", (int)y.id);
  tp__hlo_put_value(w, x);
  put_start(w, first, zero, x.shape.rank);
  tp__hlo_put(w, ", sizes = [%s] : (", tp__hlo_list(list, y.shape.dim, y.shape.rank));
  tp__hlo_put_type(w, x);
  put_start_types(w, x.shape.rank);
  tp__hlo_put(w, ") -> ");
  tp__hlo_put_type(w, y);
  tp__hlo_put_location(w);
  return y;
}

static tp__hlo_value with_rows(tp__hlo *w, tp__hlo_value x, tp__hlo_value part, tp__hlo_value first,
                               tp__hlo_value zero)
{
  tp__hlo_value y = x;
  y.id = w->next++;
  y.part = -1;
  tp__hlo_put(w, "    %%%d = stablehlo.dynamic_update_slice ", (int)y.id);
  tp__hlo_put_value(w, x);
  tp__hlo_put(w, ", ");
  tp__hlo_put_value(w, part);
  put_start(w, first, zero, x.shape.rank);
  tp__hlo_put(w, " : (");
  tp__hlo_put_type(w, x);
  tp__hlo_put(w, ", ");
  tp__hlo_put_type(w, part);
  put_start_types(w, x.shape.rank);
  tp__hlo_put(w, ") -> ");
  tp__hlo_put_type(w, y);
  tp__hlo_put_location(w);
  return y;
}

static void enter_part(tp__hlo *w, const loop *l, tp__hlo_value *first, tp__hlo_value *zero)
{
  tp__hlo_value number = l->item[0].now, rows = tp__hlo_like(w, number, (double)w->rows);
  *zero = tp__hlo_like(w, number, 0);
  *first = tp__hlo_mul(w, number, rows);
  w->valid = tp__hlo_binary(w, "minimum", rows,
                            tp__hlo_binary(w, "maximum", *zero, tp__hlo_sub(w, l->valid, *first)));
  w->mask = tp__hlo_absent();
  for (tp__value v = 0; v < w->g->count; v++) {
    const tp__node *n = &w->g->node[v];
    if (n->op != TP__OP_INPUT || !tp__per_example(n)) continue;
    tp__hlo_value x = rows_of(w, w->argument[v], *first, *zero);
    w->slot[v].own = x.type == TP__HLO_U8 ? tp__hlo_convert(w, x, TP__HLO_F32) : x;
  }
}

static void leave_part(tp__hlo *w, loop *l, tp__hlo_value first, tp__hlo_value zero)
{
  for (size_t i = 0; i < l->count; i++) {
    carried *c = &l->item[i];
    if (c->node == TP__NONE) {
      c->next = tp__hlo_add(w, c->now, tp__hlo_like(w, c->now, 1));
      continue;
    }
    tp__hlo_value made = tp__hlo_convert(w, w->slot[c->node].own, TP__HLO_F32);
    c->next = tp__per_example(&w->g->node[c->node]) ? with_rows(w, c->now, made, first, zero)
                                                    : tp__hlo_add(w, c->now, made);
  }
  tp__hlo_put(w, "    stablehlo.return ");
  for (size_t i = 0; i < l->count; i++) {
    if (i > 0) tp__hlo_put(w, ", ");
    tp__hlo_put_value(w, l->item[i].next);
  }
  put_types(w, l);
  tp__hlo_put(w, "\n    }\n");
}

static void write_loop(tp__hlo *w, loop *l)
{
  tp__hlo_value first, zero;
  for (tp__value v = 0; v < w->g->count; v++)
    if (!is_example(&w->g->node[v]) && !w->slot[v].varies) tp__hlo_write_node(w, v);
  w->where = "parts";
  collect(w, l);
  int32_t id = put_head(w, l);
  w->rows = l->rows / w->options->accumulate;
  enter_part(w, l, &first, &zero);
  for (tp__value v = 0; v < w->g->count; v++)
    if (is_example(&w->g->node[v])) tp__hlo_write_node(w, v);
  w->where = "parts";
  leave_part(w, l, first, zero);
  w->rows = l->rows;
  w->valid = l->valid;
  w->mask = tp__hlo_absent();
  for (size_t i = 0; i < l->count; i++) {
    if (l->item[i].node == TP__NONE) continue;
    tp__hlo_value *own = &w->slot[l->item[i].node].own;
    *own = l->item[i].start;
    own->id = id;
    own->part = l->count > 1 ? (int32_t)i : -1;
  }
}

void tp__hlo_loop(tp__hlo *w)
{
  loop l = {.valid = w->valid, .rows = w->rows};
  l.item = tp__calloc((size_t)w->g->count + 1, sizeof *l.item, w->err);
  if (l.item == NULL)
    w->status = w->status == TP_OK ? TP_ERR_INTERNAL : w->status;
  else
    write_loop(w, &l);
  free(l.item);
}
