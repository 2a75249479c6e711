/* plan_print - the plan of memory as a table, for people; see plan.h */
#include <string.h>

#include "exec.h"

static double mb(size_t elements)
{
  return (double)elements * 4 / 1e6;
}

/* Elements of the values that are kept for the batch while a stage runs. */
static size_t kept_in(const tp__plan *plan, int level)
{
  size_t sum = 0;
  for (int32_t v = 0; v < plan->n_slots; v++) {
    const tp__slot *s = &plan->slot[v];
    if (s->home != TP__HOME_BATCH || s->root != v || s->first < 0) continue;
    if (plan->step[s->first].level <= level && plan->step[s->last].level >= level)
      sum += (size_t)s->row * (size_t)plan->program->batch;
  }
  return sum;
}

/* Elements of one thread's scratch that a stage reaches. */
static size_t scratch_of(const tp__plan *plan, int level)
{
  size_t most = 0;
  for (int32_t v = 0; v < plan->n_slots; v++) {
    const tp__slot *s = &plan->slot[v];
    if (s->home != TP__HOME_SCRATCH || s->root != v || s->first < 0) continue;
    if (plan->step[s->first].level != level) continue;
    size_t end = s->at + (size_t)s->row * (s->grouped ? (size_t)plan->chunk_of[level] : 1);
    if (end > most) most = end;
  }
  return most;
}

/* The step with the largest result says what a stage is about. */
static const tp__step *largest(const tp__plan *plan, int level, int *steps)
{
  const tp__step *most = NULL;
  *steps = 0;
  for (int i = 0; i < plan->n_steps; i++) {
    const tp__step *s = &plan->step[i];
    if (s->level != level) continue;
    ++*steps;
    if (most == NULL || plan->slot[s->v].row > plan->slot[most->v].row) most = s;
  }
  return most;
}

static tp_status print_stage(const tp__plan *plan, int level, tp__buffer *text, tp_error *err)
{
  int steps = 0;
  char shape[96];
  const tp__step *most = largest(plan, level, &steps);
  if (most == NULL) return TP_OK;
  return tp__buffer_printf(text, err, "%5d %6d %6d %9.1f %11.1f  %s %s\n", level, steps,
                           plan->chunk_of[level], mb(kept_in(plan, level)),
                           mb(scratch_of(plan, level)), tp__op_name(most->node->op),
                           tp__shape_text(&most->node->shape, shape));
}

tp_status tp__cpu_program_plan(const tp__program *p, tp__buffer *text, tp_error *err)
{
  const tp__plan *plan = p->plan;
  if (plan == NULL)
    return tp__fail(err, TP_ERR_USAGE, "plain loops have no plan: every value is kept");
  const char *head = "stage  steps  chunk   kept MB  scratch MB  largest result\n";
  TP__TRY(tp__buffer_add(text, head, strlen(head), err));
  for (int level = 0; level < plan->levels; level++) TP__TRY(print_stage(plan, level, text, err));
  return tp__buffer_printf(text, err,
                           "values kept for the batch of %lld      %9.1f MB\n"
                           "scratch of %3d threads                %9.1f MB\n"
                           "gradients, sums, folded weights       %9.1f MB\n"
                           "packed weights                        %9.1f MB\n"
                           "all                                   %9.1f MB\n",
                           (long long)p->batch, mb(plan->batch_size), plan->threads,
                           mb(plan->scratch_size * (size_t)plan->threads), mb(plan->shared_size),
                           mb(plan->derived_size),
                           (double)(p->info.activation_bytes + p->info.weight_bytes) / 1e6);
}
