/* exec_group - several processes run one program together: what their joints add up to; see plan.h
 *
 * Each process has some of the examples. After a stage its sums are those of its own examples; they
 * are added over the processes in their order (group.h), moments are joined by counts (Chan, Golub
 * and LeVeque). Then every process goes on with the same bits, so that parameters stay equal
 * without ever being sent.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "exec.h"

static bool is_of(const tp__plan *plan, int ticket, int level, bool moments)
{
  tp__value v = plan->ticket[ticket].v;
  return plan->slot[v].level == level + 1 &&
         (tp__plan_node(plan, v)->op == TP__OP_BATCH_MOMENTS) == moments;
}

/* Floats of the joints that the stage feeds. */
static size_t width_of(const tp__plan *plan, int level, bool moments)
{
  size_t width = 0;
  for (int i = 0; i < plan->n_tickets; i++)
    if (is_of(plan, i, level, moments)) width += (size_t)plan->slot[plan->ticket[i].v].pitch;
  return width;
}

tp_status tp__plan_group(tp__plan *plan, tp_error *err)
{
  const tp__group *g = plan->program->cpu->base.group;
  size_t most = 0, size = (size_t)tp__group_size(g);
  plan->together = size > 1 && plan->n_tickets > 0;
  if (!plan->together) return TP_OK;
  for (int level = 0; level < plan->levels; level++) {
    size_t width = width_of(plan, level, false) + width_of(plan, level, true) * (size + 1);
    if (width > most) most = width;
  }
  uint64_t shape = TP__HASH_BEGIN;
  for (int i = 0; i < plan->n_tickets; i++) {
    const tp__slot *s = &plan->slot[plan->ticket[i].v];
    shape = tp__hash_add(tp__hash_add(shape, (uint64_t)s->level), (uint64_t)s->pitch);
  }
  plan->shape = (int64_t)shape;
  plan->joined = tp__calloc_aligned(most, sizeof *plan->joined, err);
  plan->counts = tp__calloc(2 * size, sizeof *plan->counts, err);
  return plan->joined != NULL && plan->counts != NULL ? TP_OK : TP_ERR_INTERNAL;
}

tp_status tp__share_counts(tp__plan *plan, tp_error *err)
{
  tp__group *g = plan->program->cpu->base.group;
  plan->total = plan->n;
  if (!plan->together) return TP_OK;
  const int64_t own[2] = {plan->n, plan->shape};
  TP__TRY(tp__group_gather(g, own, sizeof own, plan->counts, err));
  plan->total = 0;
  for (int r = 0; r < g->size; r++) { /* pairs become counts */
    if (plan->counts[2 * r + 1] != plan->shape)
      return tp__fail(err, TP_ERR_USAGE,
                      "process %d of %d runs the network in other stages: all need as many threads "
                      "and as much memory (--memory)",
                      r, g->size);
    plan->counts[r] = plan->counts[2 * r];
    plan->total += plan->counts[r];
  }
  if (plan->total > 0) return TP_OK;
  return tp__fail(err, TP_ERR_INTERNAL, "a run of no examples on any process");
}

/* Copies the joints one behind the other, or back; returns the floats. */
static size_t copy_joints(const tp__plan *plan, int level, bool moments, float *joined, bool back)
{
  size_t at = 0;
  for (int i = 0; i < plan->n_tickets; i++) {
    if (!is_of(plan, i, level, moments)) continue;
    const tp__slot *s = &plan->slot[plan->ticket[i].v];
    float *joint = plan->shared + s->at;
    memcpy(back ? joint : joined + at, back ? joined + at : joint,
           (size_t)s->pitch * sizeof *joint);
    at += (size_t)s->pitch;
  }
  return at;
}

/* Mean and variance of all examples from those of each process; rows of 2 c numbers, `width`
 * apart. */
static void join_moments(const tp__plan *plan, int size, const float *all, size_t width, size_t c,
                         float *out)
{
  for (size_t i = 0; i < c; i++) {
    double mean = 0, squares = 0, count = 0;
    for (int r = 0; r < size; r++) {
      const float *own = all + (size_t)r * width;
      double n = (double)plan->counts[r], d = own[i] - mean;
      if (plan->counts[r] == 0) continue;
      mean += d * n / (count + n);
      squares += own[c + i] * n + d * d * count * n / (count + n);
      count += n;
    }
    out[i] = (float)mean;
    out[c + i] = (float)(squares / count);
  }
}

static tp_status share_moments(tp__plan *plan, int level, tp_error *err)
{
  tp__group *g = plan->program->cpu->base.group;
  float *own = plan->joined;
  size_t width = copy_joints(plan, level, true, own, false), at = 0;
  if (width == 0) return TP_OK;
  float *all = own + width;
  TP__TRY(tp__group_gather(g, own, width * sizeof *own, all, err));
  for (int i = 0; i < plan->n_tickets; i++) {
    if (!is_of(plan, i, level, true)) continue;
    const tp__slot *s = &plan->slot[plan->ticket[i].v];
    join_moments(plan, g->size, all + at, width, (size_t)s->pitch / 2, plan->shared + s->at);
    at += (size_t)s->pitch;
  }
  return TP_OK;
}

tp_status tp__share_joints(tp__plan *plan, int level, tp_error *err)
{
  if (!plan->together) return TP_OK;
  size_t width = copy_joints(plan, level, false, plan->joined, false);
  if (width > 0) {
    TP__TRY(tp__group_sum(plan->program->cpu->base.group, plan->joined, width, err));
    (void)copy_joints(plan, level, false, plan->joined, true);
  }
  return share_moments(plan, level, err);
}
