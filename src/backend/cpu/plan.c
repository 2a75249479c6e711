/* plan - from a graph to slots: levels, where values live, how they lie; see plan.h */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more item; *capacity items are there. */
static void *grow(void *array, int count, int *capacity, size_t size, tp_error *err)
{
  if (count < *capacity) return array;
  int wanted = *capacity == 0 ? 64 : *capacity * 2;
  void *grown = realloc(array, (size_t)wanted * size);
  if (grown == NULL)
    (void)tp__no_memory(err, (size_t)wanted * size);
  else
    *capacity = wanted;
  return grown;
}

tp_status tp__plan_extra(tp__plan *plan, int64_t row, bool single, tp__value *slot, tp_error *err)
{
  tp__slot *grown = grow(plan->slot, plan->n_slots, &plan->slot_capacity, sizeof *grown, err);
  if (grown == NULL) return TP_ERR_INTERNAL;
  plan->slot = grown;
  plan->slot[plan->n_slots] = (tp__slot){.home = TP__HOME_SCRATCH,
                                         .per_example = true,
                                         .single = single,
                                         .root = plan->n_slots,
                                         .row = (int64_t)tp__padded((size_t)row),
                                         .first = -1,
                                         .last = -1};
  *slot = plan->n_slots++;
  return TP_OK;
}

tp_status tp__plan_step(tp__plan *plan, const tp__step *step, tp_error *err)
{
  tp__step *grown = grow(plan->step, plan->n_steps, &plan->step_capacity, sizeof *grown, err);
  if (grown == NULL) return TP_ERR_INTERNAL;
  plan->step = grown;
  plan->step[plan->n_steps++] = *step;
  return TP_OK;
}

static bool same_derived(const tp__derived *a, const tp__derived *b)
{
  if (a->kind != b->kind || a->k != b->k || a->n != b->n || a->n_in != b->n_in) return false;
  for (int i = 0; i < a->n_in; i++)
    if (a->in[i] != b->in[i]) return false;
  return a->kind == TP__DERIVE_PIXELS ? a->node == b->node
                                      : a->node->attr.f[0] == b->node->attr.f[0];
}

tp_status tp__plan_derive(tp__plan *plan, const tp__derived *wanted, int *index, tp_error *err)
{
  for (*index = 0; *index < plan->n_derived; ++*index)
    if (same_derived(&plan->derived[*index], wanted)) return TP_OK;
  tp__derived *grown =
      grow(plan->derived, plan->n_derived, &plan->derived_capacity, sizeof *grown, err);
  if (grown == NULL) return TP_ERR_INTERNAL;
  plan->derived = grown;
  tp__derived *d = &plan->derived[plan->n_derived++];
  *d = *wanted;
  for (int i = 0; i < d->n_in; i++)
    if (plan->slot[d->in[i]].level > d->level) d->level = plan->slot[d->in[i]].level;
  d->at = plan->derived_size;
  plan->derived_size += tp__padded(d->size);
  return TP_OK;
}

static void count_readers(tp__plan *plan)
{
  const tp__graph *g = plan->program->graph;
  for (tp__value v = 0; v < g->count; v++) {
    for (int i = 0; i < g->node[v].n_in; i++) {
      if (g->node[v].in[i] == TP__NONE) continue;
      plan->readers[g->node[v].in[i]]++;
      plan->reader[g->node[v].in[i]] = v;
    }
  }
  for (size_t i = 0; i < g->n_outputs; i++) plan->readers[g->output[i].value]++;
  for (size_t i = 0; i < g->n_assignments; i++) plan->readers[g->assignment[i].value]++;
}

/* The level of the stage in which a node runs; its value is there at that level, a joint's one
 * later. */
static int running_level(const tp__plan *plan, const tp__node *n)
{
  int level = 0;
  for (int i = 0; i < n->n_in; i++)
    if (n->in[i] != TP__NONE && plan->slot[n->in[i]].level > level)
      level = plan->slot[n->in[i]].level;
  return level;
}

static int64_t channels(const tp__node *n)
{
  return n->shape.rank > 1 ? n->shape.dim[n->shape.rank - 1] : 1;
}

/* A reshape that moves nothing is another name for its operand. */
static bool same_memory(const tp__plan *plan, const tp__node *n)
{
  if (n->op != TP__OP_RESHAPE || !tp__per_example(n)) return false;
  int64_t from = channels(tp__plan_node(plan, n->in[0])), to = channels(n);
  return from == to || (plan->slot[n->in[0]].pitch == from && to % TP__LANES == 0);
}

static int64_t alias_pitch(const tp__plan *plan, const tp__node *n)
{
  int64_t from = channels(tp__plan_node(plan, n->in[0]));
  return from == channels(n) ? plan->slot[n->in[0]].pitch : channels(n);
}

/* Pixels that come in stay as dense as they are until the first layer: 3 channels would be padded
 * to 16. */
static int64_t pitch_of(const tp__plan *plan, const tp__node *n)
{
  if (n->op == TP__OP_INPUT || n->shape.rank < 2) return channels(n);
  if (n->op == TP__OP_AFFINE || n->op == TP__OP_NORMALIZE || n->op == TP__OP_REVERSE ||
      n->op == TP__OP_RANDOM_FLIP || n->op == TP__OP_RANDOM_ROTATION)
    return plan->slot[n->in[0]].pitch;
  return tp__pitch(channels(n));
}

static void set_slot(tp__plan *plan, tp__value v)
{
  const tp__node *n = tp__plan_node(plan, v);
  tp__slot *s = &plan->slot[v];
  *s = (tp__slot){.root = v, .first = -1, .last = -1, .per_example = tp__per_example(n)};
  s->level = running_level(plan, n);
  if (s->level < plan->program->not_before[v]) s->level = plan->program->not_before[v];
  if (tp__op_is_joint(n->op)) s->level++;
  if (s->per_example) {
    bool alias = same_memory(plan, n);
    s->pitch = alias ? alias_pitch(plan, n) : pitch_of(plan, n);
    s->row = tp__view_of(&n->shape, 1, s->pitch).row;
    s->home = n->op == TP__OP_INPUT ? TP__HOME_FEED : TP__HOME_SCRATCH;
    if (alias) s->root = plan->slot[n->in[0]].root;
  } else {
    s->pitch = tp__view_of(&n->shape, 1, 0).pitch;
    s->row = (int64_t)tp__padded((size_t)s->pitch);
    s->home = n->op == TP__OP_PARAM ? TP__HOME_STATE : TP__HOME_SHARED;
    s->entry = plan->program->entry[v];
  }
}

/* What a later stage reads is kept for the whole batch. */
static void keep_across_stages(tp__plan *plan)
{
  const tp__graph *g = plan->program->graph;
  for (tp__value v = 0; v < g->count; v++) {
    int level = plan->slot[v].level - (tp__op_is_joint(g->node[v].op) ? 1 : 0);
    for (int i = 0; i < g->node[v].n_in; i++) {
      if (g->node[v].in[i] == TP__NONE) continue;
      tp__slot *s = &plan->slot[plan->slot[g->node[v].in[i]].root];
      if (s->home == TP__HOME_SCRATCH && plan->slot[g->node[v].in[i]].level < level)
        s->home = TP__HOME_BATCH;
    }
  }
}

tp_status tp__plan_levels(tp__plan *plan, tp_error *err)
{
  const tp__graph *g = plan->program->graph;
  plan->slot_capacity = g->count;
  plan->n_slots = g->count;
  plan->slot = tp__calloc((size_t)g->count, sizeof *plan->slot, err);
  plan->readers = tp__calloc((size_t)g->count, sizeof *plan->readers, err);
  plan->reader = tp__calloc((size_t)g->count, sizeof *plan->reader, err);
  plan->copied = tp__calloc(g->n_assignments, sizeof *plan->copied, err);
  plan->kept = tp__calloc(g->n_assignments, sizeof *plan->kept, err);
  if (plan->slot == NULL || plan->readers == NULL || plan->reader == NULL || plan->copied == NULL ||
      plan->kept == NULL)
    return TP_ERR_INTERNAL;
  count_readers(plan);
  for (tp__value v = 0; v < g->count; v++) {
    if (tp__shape_elements(&g->node[v].shape, plan->program->batch) > SIZE_MAX / 64)
      return tp__fail(err, TP_ERR_DEVICE, "value %%%d (%s) is larger than any memory", (int)v,
                      tp__op_name(g->node[v].op));
    set_slot(plan, v);
    if (plan->slot[v].level >= plan->levels) plan->levels = plan->slot[v].level + 1;
  }
  bool *renamed = tp__calloc((size_t)g->count, sizeof *renamed, err);
  if (renamed == NULL) return TP_ERR_INTERNAL;
  tp__plan_concats(plan, renamed);
  free(renamed);
  keep_across_stages(plan);
  return TP_OK;
}

static tp_status set_info(tp__plan *plan, tp_error *err)
{
  tp__program *p = plan->program;
  double scratch = (double)plan->scratch_size * plan->threads + (double)plan->batch_size;
  double shared = (double)plan->shared_size + (double)plan->derived_size;
  if (scratch + shared > 1e15)
    return tp__fail(err, TP_ERR_DEVICE, "a batch of %lld needs more memory than any machine has",
                    (long long)p->batch);
  p->info.activation_bytes = (uint64_t)(scratch * 4);
  p->info.weight_bytes = (uint64_t)(shared * 4);
  p->info.chunk = plan->chunk;
  p->info.parts = 1;
  return TP_OK;
}

/* Constants are written once. */
static void set_constants(tp__plan *plan)
{
  const tp__graph *g = plan->program->graph;
  for (tp__value v = 0; v < g->count; v++)
    if (g->node[v].op == TP__OP_CONSTANT) plan->shared[plan->slot[v].at] = g->node[v].attr.f[0];
}

tp_status tp__plan_allocate(tp__plan *plan, tp_error *err)
{
  plan->scratch = tp__calloc_aligned(plan->scratch_size * (size_t)plan->threads, 4, err);
  plan->batch = tp__calloc_aligned(plan->batch_size, 4, err);
  plan->shared = tp__calloc_aligned(plan->shared_size, 4, err);
  plan->made = tp__calloc_aligned(plan->derived_size, 4, err);
  if (plan->scratch == NULL || plan->batch == NULL || plan->shared == NULL || plan->made == NULL)
    return TP_ERR_DEVICE;
  set_constants(plan);
  return tp__plan_group(plan, err);
}

tp_status tp__plan_new(tp__program *p, tp_error *err)
{
  tp__plan *plan = tp__calloc(1, sizeof *plan, err);
  if (plan == NULL) return TP_ERR_INTERNAL;
  p->plan = plan;
  plan->program = p;
  plan->kernels = p->bf16 ? p->cpu->bf16 : p->cpu->kernels;
  plan->threads = tp__pool_threads(p->cpu->pool);
  pthread_mutex_init(&plan->lock, NULL);
  pthread_cond_init(&plan->turned, NULL);
  TP__TRY(tp__plan_levels(plan, err));
  TP__TRY(tp__plan_steps(plan, err));
  TP__TRY(tp__plan_updates(plan, err));
  TP__TRY(tp__plan_phases(plan, err));
  TP__TRY(tp__plan_place(plan, err));
  return set_info(plan, err);
}

void tp__plan_free(tp__plan *plan)
{
  if (plan == NULL) return;
  pthread_mutex_destroy(&plan->lock);
  pthread_cond_destroy(&plan->turned);
  free(plan->slot);
  free(plan->readers);
  free(plan->reader);
  free(plan->step);
  free(plan->phase);
  free(plan->chunk_of);
  free(plan->derived);
  free(plan->unit);
  free(plan->ticket);
  free(plan->copied);
  free(plan->kept);
  free(plan->task);
  free(plan->counts);
  free(plan->joined);
  free(plan->scratch);
  free(plan->batch);
  free(plan->shared);
  free(plan->made);
  free(plan);
}
