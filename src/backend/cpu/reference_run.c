/* reference_run - the executor of nothing but plain functions: every value dense, for the whole
 * batch, one node after the other, no rewriting. What the planned executor is tested against.
 */
#include <stdlib.h>
#include <string.h>

#include "geometry.h"
#include "program.h"
#include "reference.h"

struct tp__plain {
  void **data; /* by node: its own memory; NULL for inputs and parameters */
  size_t count;
  void **pending; /* by assignment: the new value until the run is over */
  size_t n_assignments;
  float *rounded[2]; /* bf16: room for the factors of one product */
};

/* Bytes of a value for the whole batch. All elements are 4 bytes. */
static size_t value_bytes(const tp__node *n, int64_t batch)
{
  size_t elements = tp__shape_elements(&n->shape, batch), bytes = 0;
  return tp__mul_size(elements, 4, &bytes) ? bytes : SIZE_MAX;
}

static bool has_memory(const tp__node *n)
{
  return n->op != TP__OP_INPUT && n->op != TP__OP_PARAM;
}

static bool is_product(tp__op op)
{
  return op == TP__OP_CONV || op == TP__OP_CONV_INPUT_GRAD || op == TP__OP_CONV_KERNEL_GRAD ||
         op == TP__OP_MATMUL || op == TP__OP_MATMUL_INPUT_GRAD || op == TP__OP_MATMUL_KERNEL_GRAD;
}

/* bf16: Winograd's convolutions are faster than products of bfloat16, and stay as they are. */
static bool is_rounded(const tp__graph *g, const tp__node *n)
{
  return is_product(n->op) && tp__winograd_tile(g, n) == 0;
}

/* Bytes of the largest factor `operand` of a product. */
static size_t largest_factor(const tp__program *p, int operand)
{
  size_t most = 0;
  for (int32_t v = 0; v < p->graph->count; v++) {
    const tp__node *n = &p->graph->node[v];
    if (!p->bf16 || !is_rounded(p->graph, n)) continue;
    size_t bytes = value_bytes(&p->graph->node[n->in[operand]], p->batch);
    if (bytes > most) most = bytes;
  }
  return most;
}

static tp_status check_memory(tp__program *p, tp_error *err)
{
  uint64_t sum = 0;
  for (int32_t v = 0; v < p->graph->count; v++) {
    uint64_t bytes = has_memory(&p->graph->node[v]) ? value_bytes(&p->graph->node[v], p->batch) : 0;
    sum = sum > UINT64_MAX - bytes ? UINT64_MAX : sum + bytes;
  }
  for (int i = 0; i < 2; i++) sum += largest_factor(p, i);
  p->info.activation_bytes = sum;
  p->info.chunk = (int)p->batch;
  p->info.parts = 1;
  return tp__program_fits(p, sum, err);
}

tp_status tp__plain_new(tp__program *p, tp_error *err)
{
  const tp__graph *g = p->graph;
  TP__TRY(check_memory(p, err));
  tp__plain *plain = tp__calloc(1, sizeof *plain, err);
  if (plain == NULL) return TP_ERR_INTERNAL;
  p->plain = plain;
  plain->data = tp__calloc((size_t)g->count, sizeof *plain->data, err);
  plain->pending = tp__calloc(g->n_assignments, sizeof *plain->pending, err);
  if (plain->data == NULL || plain->pending == NULL) return TP_ERR_INTERNAL;
  plain->count = (size_t)g->count;
  plain->n_assignments = g->n_assignments;
  for (int i = 0; i < 2; i++) {
    plain->rounded[i] = tp__calloc_aligned(largest_factor(p, i), 1, err);
    if (plain->rounded[i] == NULL) return TP_ERR_INTERNAL;
  }
  for (int32_t v = 0; v < g->count; v++) {
    if (!has_memory(&g->node[v])) continue;
    plain->data[v] = tp__calloc_aligned(value_bytes(&g->node[v], p->batch), 1, err);
    if (plain->data[v] == NULL) return TP_ERR_INTERNAL;
  }
  for (size_t i = 0; i < g->n_assignments; i++) {
    plain->pending[i] =
        tp__calloc_aligned(value_bytes(&g->node[g->assignment[i].param], 1), 1, err);
    if (plain->pending[i] == NULL) return TP_ERR_INTERNAL;
  }
  return TP_OK;
}

void tp__plain_free(tp__plain *plain)
{
  if (plain == NULL) return;
  for (size_t v = 0; v < plain->count; v++) free(plain->data[v]);
  for (size_t i = 0; i < plain->n_assignments; i++) free(plain->pending[i]);
  for (int i = 0; i < 2; i++) free(plain->rounded[i]);
  free(plain->data);
  free(plain->pending);
  free(plain);
}

/* Feeds and parameters are only read. */
static void *value_data(const tp__program *p, tp__value v)
{
  const tp__node *n = &p->graph->node[v];
  if (n->op == TP__OP_INPUT) return (void *)(uintptr_t)p->fed[v];
  return n->op == TP__OP_PARAM ? p->entry[v]->data : p->plain->data[v];
}

/* To the nearest bfloat16 numbers, ties to even; NaN stays NaN. */
static void round_factor(const tp__view *from, float *to)
{
  const float *x = from->data;
  for (int64_t i = 0; i < from->n * from->row; i++) {
    uint32_t bits;
    memcpy(&bits, &x[i], sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    if (x[i] == x[i])
      memcpy(&to[i], &bits, sizeof bits);
    else
      to[i] = x[i];
  }
}

static void run_node(tp__program *p, tp__value v, int64_t n)
{
  const tp__node *node = &p->graph->node[v];
  tp__ref r = {.node = node, .n = n, .batch = n, .out = tp__view_of(&node->shape, n, 0)};
  r.out.data = value_data(p, v);
  if (!tp__op_is_joint(node->op)) r.n = r.out.n; /* of a shared value there is one */
  for (int i = 0; i < node->n_in; i++) {
    if (node->in[i] == TP__NONE) continue;
    r.in[i] = tp__view_of(&p->graph->node[node->in[i]].shape, n, 0);
    r.in[i].data = value_data(p, node->in[i]);
  }
  for (int i = 0; i < 2 && p->bf16 && is_rounded(p->graph, node); i++) {
    round_factor(&r.in[i], p->plain->rounded[i]);
    r.in[i].data = p->plain->rounded[i];
  }
  if (tp__op_is_joint(node->op)) memset(r.out.data, 0, value_bytes(node, 1));
  tp__reference(node->op)(&r);
}

void tp__plain_run(tp__program *p, int64_t n)
{
  const tp__graph *g = p->graph;
  for (int32_t v = 0; v < g->count; v++) {
    if (g->node[v].op == TP__OP_CONSTANT)
      *(float *)p->plain->data[v] = g->node[v].attr.f[0];
    else if (has_memory(&g->node[v]))
      run_node(p, v, n);
  }
  for (size_t o = 0; o < g->n_outputs; o++) {
    tp__value v = g->output[o].value;
    if (p->fetched[o] != NULL) memcpy(p->fetched[o], value_data(p, v), value_bytes(&g->node[v], n));
  }
  for (size_t i = 0; i < g->n_assignments; i++)
    memcpy(p->plain->pending[i], value_data(p, g->assignment[i].value),
           value_bytes(&g->node[g->assignment[i].param], 1));
  for (size_t i = 0; i < g->n_assignments; i++) {
    tp__entry *e = p->entry[g->assignment[i].param];
    memcpy(e->data, p->plain->pending[i], value_bytes(&g->node[g->assignment[i].param], 1));
    e->version = ++p->state->clock;
  }
}
