/* plan_memory - phases of steps, lifetimes of values, and where each lies; see plan.h */
#include <stdlib.h>
#include <string.h>

#include "exec.h"

/* The largest number of pixels that a step's node handles; 1: it fits into any phase. */
static int64_t pixels_of(const tp__plan *plan, const tp__step *s)
{
  tp__view y = tp__view_of(&s->node->shape, 1, 0);
  int64_t most = tp__pixels(&y);
  for (int i = 0; i < s->node->n_in; i++) {
    if (s->node->in[i] == TP__NONE) continue;
    tp__view x = tp__view_of(&tp__plan_node(plan, s->node->in[i])->shape, 1, 0);
    if (tp__pixels(&x) > most) most = tp__pixels(&x);
  }
  return most;
}

/* Runs for the whole chunk together. */
static bool is_small(const tp__plan *plan, const tp__step *s)
{
  return s->together || pixels_of(plan, s) <= TP__SMALL_PIXELS;
}

/* All steps of the level that handle pixels are of large layers. */
static bool is_large(const tp__plan *plan, int level)
{
  int large = 0;
  for (int i = 0; i < plan->n_steps; i++) {
    const tp__step *s = &plan->step[i];
    if (s->level != level || pixels_of(plan, s) == 1) continue;
    if (is_small(plan, s)) return false;
    large++;
  }
  return large > 0;
}

/* A phase that feeds joints runs for the chunk together: the next chunk then waits for one step,
 * not for all of the phase. (Chunks of one example are together anyway.) */
static void regroup(tp__plan *plan)
{
  for (int i = 0; i < plan->n_phases; i++)
    for (int k = plan->phase[i].first; k < plan->phase[i].end; k++)
      if (plan->step[k].joint >= 0 && !is_large(plan, plan->phase[i].level))
        plan->phase[i].grouped = true;
}

static bool has_joint(const tp__plan *plan, int level)
{
  for (int i = 0; i < plan->n_steps; i++)
    if (plan->step[i].level == level && plan->step[i].joint >= 0) return true;
  return false;
}

/* Chunks of the levels, when the plan's is known. */
static void set_chunks(tp__plan *plan)
{
  for (int level = 0; level < plan->levels; level++)
    plan->chunk_of[level] = has_joint(plan, level) && is_large(plan, level) ? 1 : plan->chunk;
}

tp_status tp__plan_phases(tp__plan *plan, tp_error *err)
{
  plan->phase = tp__calloc((size_t)plan->n_steps, sizeof *plan->phase, err);
  if (plan->phase == NULL) return TP_ERR_INTERNAL;
  tp__phase *p = NULL;
  for (int i = 0; i < plan->n_steps; i++) {
    const tp__step *s = &plan->step[i];
    int64_t pixels = pixels_of(plan, s);
    bool grouped = is_small(plan, s);
    if (p != NULL && p->level == s->level && (pixels == 1 || grouped == p->grouped)) {
      p->end = i + 1;
      continue;
    }
    p = &plan->phase[plan->n_phases++];
    *p = (tp__phase){.first = i, .end = i + 1, .level = s->level, .grouped = grouped};
  }
  regroup(plan);
  return TP_OK;
}

static void touch(tp__plan *plan, tp__value v, int step)
{
  if (v == TP__NONE) return;
  tp__slot *s = &plan->slot[plan->slot[v].root];
  if (s->first < 0) s->first = step;
  if (step > s->last) s->last = step;
}

static const tp__phase *phase_of(const tp__plan *plan, int step)
{
  int i = 0;
  while (step >= plan->phase[i].end) i++;
  return &plan->phase[i];
}

/* A value that several phases see has room for all examples of the chunk, and keeps it as long as a
 * phase that goes example by example still comes back to it. */
static void widen(const tp__plan *plan, tp__slot *s)
{
  const tp__phase *from = phase_of(plan, s->first), *to = phase_of(plan, s->last);
  if (s->single) return;
  s->grouped = from != to || from->grouped;
  if (!s->grouped) return;
  if (!from->grouped) s->first = from->first;
  for (const tp__phase *p = from; p <= to; p++)
    if (!p->grouped && s->last >= p->first && s->last < p->end) s->last = p->end - 1;
}

static void find_lifetimes(tp__plan *plan)
{
  for (int32_t v = 0; v < plan->n_slots; v++) plan->slot[v].first = plan->slot[v].last = -1;
  for (int i = 0; i < plan->n_steps; i++) {
    const tp__step *s = &plan->step[i];
    if (s->joint < 0 && s->run != tp__step_fetch) touch(plan, s->v, i);
    for (int k = 0; k < TP__OPERANDS_MAX; k++) touch(plan, s->in[k], i);
    for (int k = 0; k < 2; k++) touch(plan, s->extra[k], i);
  }
  for (int32_t v = 0; v < plan->n_slots; v++)
    if (plan->slot[v].home == TP__HOME_SCRATCH && plan->slot[v].first >= 0)
      widen(plan, &plan->slot[v]);
}

/* Memory that is taken from first to last. */
struct taken {
  size_t at, size;
  int last;
};

static size_t slot_size(const tp__plan *plan, const tp__slot *s)
{
  size_t row = (size_t)s->row;
  if (s->home == TP__HOME_BATCH) return tp__padded(row * (size_t)plan->program->batch);
  return tp__padded(s->grouped ? row * (size_t)plan->chunk_of[plan->step[s->first].level] : row);
}

/* The lowest gap that holds `size`; taken is sorted by address. Returns the index to insert at. */
static int find_gap(const struct taken *taken, int count, size_t size, size_t *at)
{
  *at = 0;
  for (int i = 0; i < count; i++) {
    if (taken[i].at - *at >= size) return i;
    *at = taken[i].at + taken[i].size;
  }
  return count;
}

static int compare_first(const void *a, const void *b)
{
  const tp__slot *const *x = a, *const *y = b;
  if ((*x)->first != (*y)->first) return (*x)->first < (*y)->first ? -1 : 1;
  return *x < *y ? -1 : *x > *y;
}

/* Values of that home in the order in which they are born, each at the lowest address that is free
 * for its lifetime. Returns the size of their memory. */
static size_t place(tp__plan *plan, tp__home home, tp__slot **order, struct taken *taken)
{
  int n = 0, live = 0;
  size_t most = 0;
  for (int32_t v = 0; v < plan->n_slots; v++) {
    tp__slot *s = &plan->slot[v];
    if (s->home == home && s->root == v && s->first >= 0) order[n++] = s;
  }
  qsort(order, (size_t)n, sizeof *order, compare_first);
  for (int i = 0; i < n; i++) {
    int kept = 0;
    for (int k = 0; k < live; k++)
      if (taken[k].last >= order[i]->first) taken[kept++] = taken[k];
    live = kept;
    size_t size = slot_size(plan, order[i]);
    int at = find_gap(taken, live, size, &order[i]->at);
    memmove(&taken[at + 1], &taken[at], (size_t)(live++ - at) * sizeof *taken);
    taken[at] = (struct taken){.at = order[i]->at, .size = size, .last = order[i]->last};
    if (order[i]->at + size > most) most = order[i]->at + size;
  }
  return most;
}

/* What is kept for the batch lives for whole stages: chunks run through a stage at the same time.
 */
static void widen_to_stages(tp__plan *plan)
{
  for (int32_t v = 0; v < plan->n_slots; v++) {
    tp__slot *s = &plan->slot[v];
    if (s->home != TP__HOME_BATCH || s->first < 0) continue;
    const tp__step *step = plan->step;
    while (s->first > 0 && step[s->first - 1].level == step[s->first].level) s->first--;
    while (s->last + 1 < plan->n_steps && step[s->last + 1].level == step[s->last].level) s->last++;
  }
}

static void place_shared(tp__plan *plan)
{
  const tp__graph *g = plan->program->graph;
  for (size_t i = 0; i < g->n_assignments; i++) {
    if (plan->slot[g->assignment[i].value].home != TP__HOME_STATE || !plan->copied[i]) continue;
    plan->kept[i] = plan->shared_size;
    plan->shared_size += (size_t)plan->slot[g->assignment[i].value].row;
  }
  for (int32_t v = 0; v < plan->n_slots; v++) {
    tp__slot *s = &plan->slot[v];
    if (s->root != v) continue;
    if (s->home == TP__HOME_SHARED) {
      s->at = plan->shared_size;
      plan->shared_size += (size_t)s->row;
    }
  }
}

tp_status tp__plan_place(tp__plan *plan, tp_error *err)
{
  const size_t enough = (size_t)96 << 18; /* elements: 96 MiB of scratch for each thread */
  tp__slot **order = tp__calloc((size_t)plan->n_slots, sizeof *order, err);
  struct taken *taken = tp__calloc((size_t)plan->n_slots, sizeof *taken, err);
  plan->chunk_of = tp__calloc((size_t)plan->levels, sizeof *plan->chunk_of, err);
  tp_status status =
      order != NULL && taken != NULL && plan->chunk_of != NULL ? TP_OK : TP_ERR_INTERNAL;
  find_lifetimes(plan);
  widen_to_stages(plan);
  plan->chunk = TP__CHUNK;
  if (plan->program->batch < plan->chunk) plan->chunk = (int)plan->program->batch;
  while (status == TP_OK) {
    set_chunks(plan);
    plan->scratch_size = place(plan, TP__HOME_SCRATCH, order, taken);
    if (plan->scratch_size <= enough || plan->chunk == 1) break;
    plan->chunk /= 2;
  }
  if (status == TP_OK) plan->batch_size = place(plan, TP__HOME_BATCH, order, taken);
  place_shared(plan);
  free(order);
  free(taken);
  return status;
}
