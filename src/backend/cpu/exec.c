/* exec - a run: stage by stage, chunks of examples depth-first through the steps; see plan.h */
#include <string.h>

#include "exec.h"

/* How many equal chunks n examples are cut into, of at most so many each: those with which the
 * threads end soonest. A chunk takes the time of its examples and of a tenth of one more, for the
 * weights that it reads (measured: EfficientNet-B0; less in larger networks). */
static size_t chunks_of(int most, int64_t n, int threads)
{
  int64_t best = 0, soonest = INT64_MAX;
  for (int size = most; size >= 1 && n > 0; size--) {
    int64_t chunks = (n + size - 1) / size, rounds = (chunks + threads - 1) / threads;
    int64_t time = rounds * (10 * ((n + chunks - 1) / chunks) + 1);
    if (time >= soonest) continue;
    soonest = time;
    best = chunks;
  }
  return (size_t)best;
}

static void run_phase(const tp__plan *plan, const tp__phase *p, tp__frame f, int64_t count)
{
  const int64_t first = f.first;
  const int64_t step = p->grouped ? count : 1;
  for (int64_t done = 0; done < count; done += step) {
    f.first = first + done;
    f.slot = done;
    f.n = step;
    f.last = done + step == count;
    for (int i = p->first; i < p->end; i++) plan->step[i].run(&f, &plan->step[i]);
  }
}

struct stage {
  const tp__plan *plan;
  int level;
  size_t chunks;
};

static void run_chunk(void *arg, size_t chunk, int worker)
{
  const struct stage *s = arg;
  const tp__plan *plan = s->plan;
  int64_t n = plan->n, chunks = (int64_t)s->chunks;
  int64_t first = (int64_t)chunk * n / chunks, end = ((int64_t)chunk + 1) * n / chunks;
  tp__frame f = {.plan = plan,
                 .scratch = plan->scratch + (size_t)worker * plan->scratch_size,
                 .first = first,
                 .chunk = chunk};
  for (int i = 0; i < plan->n_phases; i++)
    if (plan->phase[i].level == s->level) run_phase(plan, &plan->phase[i], f, end - first);
}

static bool has_steps(const tp__plan *plan, int level)
{
  for (int i = 0; i < plan->n_phases; i++)
    if (plan->phase[i].level == level) return true;
  return false;
}

/* Sums start at zero, and it is the first chunk's turn. */
static void reset_joints(tp__plan *plan, int level)
{
  for (int i = 0; i < plan->n_tickets; i++) {
    tp__slot *s = &plan->slot[plan->ticket[i].v];
    if (s->level != level + 1) continue;
    memset(plan->shared + s->at, 0, (size_t)s->row * sizeof(float));
    atomic_store(&plan->ticket[i].turn, 0);
    s->version = ++plan->program->state->clock;
  }
}

/* Shared inputs are copied, padded, so that they serve where parameters do. */
static void take_shared_inputs(tp__plan *plan)
{
  const tp__program *p = plan->program;
  for (tp__value v = 0; v < p->graph->count; v++) {
    tp__slot *s = &plan->slot[v];
    if (p->graph->node[v].op != TP__OP_INPUT || s->per_example) continue;
    memcpy(plan->shared + s->at, p->fed[v], (size_t)s->pitch * sizeof(float));
    s->version = ++p->state->clock;
  }
}

static void give_shared_outputs(const tp__plan *plan)
{
  const tp__program *p = plan->program;
  for (size_t o = 0; o < p->graph->n_outputs; o++) {
    const tp__slot *s = &plan->slot[p->graph->output[o].value];
    if (s->per_example || p->fetched[o] == NULL) continue;
    const float *from = s->home == TP__HOME_STATE ? s->entry->data : plan->shared + s->at;
    memcpy(p->fetched[o], from, (size_t)s->pitch * sizeof(float));
  }
}

tp_status tp__plan_run(tp__program *p, int64_t n, tp_error *err)
{
  tp__plan *plan = p->plan;
  plan->n = n;
  TP__TRY(tp__share_counts(plan, err));
  take_shared_inputs(plan);
  for (int level = 0; level < plan->levels; level++) {
    tp__run_units(plan, level);
    tp__run_derived(plan, level);
    if (!has_steps(plan, level)) continue;
    reset_joints(plan, level);
    struct stage s = {
        .plan = plan, .level = level, .chunks = chunks_of(plan->chunk_of[level], n, plan->threads)};
    tp__pool_for(p->cpu->pool, s.chunks, run_chunk, &s);
    TP__TRY(tp__share_joints(plan, level, err));
  }
  give_shared_outputs(plan);
  tp__run_assignments(plan);
  return TP_OK;
}
