/* plan_recompute - cheap values that later stages read are made there again instead of being kept
 * for the whole batch; see plan.h
 *
 *   y = conv      kept            y ──────────────┬──────────────────────┐
 *   z = norm y    stage k         z ─> a ─> conv  │ again, stage l: z' ─> act_grad
 *   a = act z                                     └─────────────────> a' ─> kernel_grad
 *
 * A copy is made for each stage that reads the value, from what is kept or, where an operand is
 * cheap itself, from its copy. Copies run where they are read, although their operands are there
 * earlier: not_before says so.
 */
#include <stdlib.h>

#include "geometry.h"
#include "graph/rewrite.h"
#include "program.h"

/* A value made again in a later stage. */
struct copy {
  struct copy *next;
  int level;
  tp__value value;
};

struct recompute {
  tp__thrift thrift;
  const tp__graph *from;
  tp__graph *to;
  int *level;     /* by old value: the stage it runs in, as the planner counts; a joint is there one
                     later */
  tp__value *map; /* old value -> new one in its own stage */
  struct copy **copies; /* by old value */
  int *not_before;      /* by new value */
  size_t capacity;
  tp_error *err;
};

static int ready_at(const struct recompute *r, tp__value v)
{
  return r->level[v] + (tp__op_is_joint(r->from->node[v].op) ? 1 : 0);
}

/* A product of few operands costs less than writing its result to memory and reading it back:
 * EfficientNet's first expansions, which are its largest values. Wider ones cost time, and save
 * memory. Each stage that makes it again has the same packed kernel. */
static bool is_thin(const struct recompute *r, const tp__node *n)
{
  const int64_t *kernel = r->from->node[n->in[1]].shape.dim;
  return tp__is_product(n, kernel) && kernel[2] <= r->thrift.thin && kernel[3] >= 4 * kernel[2];
}

/* Element by element, or a convolution that thrift names. What is left ends the chains of copies:
 * sums, concatenations, convolutions to fewer channels. */
static bool is_cheap(const struct recompute *r, const tp__node *n)
{
  if (!tp__per_example(n)) return false;
  switch (n->op) {
  case TP__OP_CONV:
    return is_thin(r, n);
  case TP__OP_DEPTHWISE:
    return r->thrift.depthwise;
  case TP__OP_AFFINE:
  case TP__OP_NORMALIZE:
  case TP__OP_BATCH_NORM:
  case TP__OP_ACTIVATION:
  case TP__OP_MUL:
    return true;
  default:
    return false;
  }
}

static tp_status set_not_before(struct recompute *r, tp__value v, int level)
{
  if ((size_t)v >= r->capacity) {
    size_t wanted = 2 * (size_t)v + 64;
    int *grown = realloc(r->not_before, wanted * sizeof *grown);
    if (grown == NULL) return tp__no_memory(r->err, wanted * sizeof *grown);
    for (size_t i = r->capacity; i < wanted; i++) grown[i] = 0;
    r->not_before = grown;
    r->capacity = wanted;
  }
  r->not_before[v] = level;
  return TP_OK;
}

static tp_status operand_for(struct recompute *r, tp__value v, int level, tp__value *made);

static tp_status add_node(struct recompute *r, tp__value v, int level, bool copy, tp__value *made)
{
  const tp__node *n = &r->from->node[v];
  tp__value in[TP__OPERANDS_MAX];
  for (int i = 0; i < n->n_in; i++) {
    in[i] = TP__NONE;
    if (n->in[i] != TP__NONE) TP__TRY(operand_for(r, n->in[i], level, &in[i]));
  }
  TP__TRY(tp__graph_copy_node(r->from, v, in, r->to, made, r->err));
  return set_not_before(r, *made, copy ? level : 0);
}

/* The value for a reader that runs in the stage `level`: itself, or a copy. As deep as cheap
 * operators follow each other. */
static tp_status operand_for(struct recompute *r, tp__value v, int level, tp__value *made)
{
  *made = r->map[v];
  if (ready_at(r, v) >= level || !is_cheap(r, &r->from->node[v])) return TP_OK;
  for (const struct copy *c = r->copies[v]; c != NULL; c = c->next) {
    if (c->level != level) continue;
    *made = c->value;
    return TP_OK;
  }
  TP__TRY(add_node(r, v, level, true, made));
  struct copy *c = tp__calloc(1, sizeof *c, r->err);
  if (c == NULL) return TP_ERR_INTERNAL;
  *c = (struct copy){.next = r->copies[v], .level = level, .value = *made};
  r->copies[v] = c;
  return TP_OK;
}

static void find_levels(struct recompute *r)
{
  for (tp__value v = 0; v < r->from->count; v++) {
    const tp__node *n = &r->from->node[v];
    r->level[v] = 0;
    for (int i = 0; i < n->n_in; i++)
      if (n->in[i] != TP__NONE && ready_at(r, n->in[i]) > r->level[v])
        r->level[v] = ready_at(r, n->in[i]);
  }
}

static tp_status rebuild(struct recompute *r)
{
  const tp__graph *g = r->from;
  find_levels(r);
  for (tp__value v = 0; v < g->count; v++) TP__TRY(add_node(r, v, r->level[v], false, &r->map[v]));
  return tp__graph_copy_results(g, r->map, r->to, r->err);
}

tp_status tp__plan_recompute(const tp__graph *g, const tp__thrift *thrift, tp__graph **recomputing,
                             int **not_before, tp_error *err)
{
  size_t count = (size_t)g->count;
  struct recompute r = {.thrift = *thrift, .from = g, .err = err};
  r.level = tp__calloc(count, sizeof *r.level, err);
  r.map = tp__calloc(count, sizeof *r.map, err);
  r.copies = tp__calloc(count, sizeof *r.copies, err);
  tp_status status = r.level == NULL || r.map == NULL || r.copies == NULL ? TP_ERR_INTERNAL : TP_OK;
  if (status == TP_OK) status = tp__graph_new(&r.to, err);
  if (status == TP_OK) status = rebuild(&r);
  for (size_t v = 0; r.copies != NULL && v < count; v++)
    for (struct copy *c = r.copies[v], *next; c != NULL; c = next) {
      next = c->next;
      free(c);
    }
  free(r.level);
  free(r.map);
  free(r.copies);
  if (status == TP_OK) {
    *recomputing = r.to;
    *not_before = r.not_before;
    return TP_OK;
  }
  tp__graph_free(r.to);
  free(r.not_before);
  return status;
}
