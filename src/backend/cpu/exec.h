/* exec - running a plan: what steps see, and the list of them.
 *
 *   exec.c         stages, chunks, phases       exec_layers.c  steps of the forward pass
 *   exec_pools.c   pooling and concat, with their gradients
 *   exec_update.c  shared nodes, assignments    exec_grads.c   steps of the backward pass
 *   joints.c       sums over examples           derived.c      what is made from weights
 *   exec_statistics.c  batch norm: statistics, with its activation, gradients
 *   exec_group.c   joints of several processes
 */
#ifndef TP_EXEC_H
#define TP_EXEC_H

#include "plan.h"

/* What a step sees: a group of examples of one chunk, on one thread. */
struct tp__frame {
  const tp__plan *plan;
  float *scratch;
  int64_t first; /* example of the batch */
  int64_t slot;  /* the same, counted in the chunk */
  int64_t n;     /* examples */
  size_t chunk;
  bool last; /* they end the chunk */
};

/* The memory of a slot at the frame's first example. */
static inline float *tp__at_slot(const tp__frame *f, tp__value v)
{
  const tp__plan *plan = f->plan;
  const tp__slot *s = &plan->slot[plan->slot[v].root];
  const int64_t offset = plan->slot[v].offset;
  switch (s->home) {
  case TP__HOME_SCRATCH:
    return f->scratch + s->at + (s->grouped ? f->slot * s->row : 0) + offset;
  case TP__HOME_BATCH:
    return plan->batch + s->at + f->first * s->row + offset;
  case TP__HOME_FEED:
    return (float *)(uintptr_t)plan->program->fed[plan->slot[v].root] + f->first * s->row;
  case TP__HOME_STATE:
    return s->entry->data;
  case TP__HOME_SHARED:
    return plan->shared + s->at;
  case TP__HOME_NONE:
    break;
  }
  return NULL;
}

/* An operand of a step; NULL when it is absent. */
static inline float *tp__operand(const tp__frame *f, const tp__step *s, int i)
{
  return s->in[i] == TP__NONE ? NULL : tp__at_slot(f, s->in[i]);
}

static inline const float *tp__derived_at(const tp__frame *f, int index)
{
  return f->plan->made + f->plan->derived[index].at;
}

/* The geometry of a node's value as it lies. */
static inline tp__view tp__view_at(const tp__frame *f, const tp__step *s, int i)
{
  if (s->in[i] == TP__NONE) return (tp__view){0};
  tp__view v = tp__view_of(&tp__plan_node(f->plan, s->node->in[i])->shape, f->n,
                           f->plan->slot[s->in[i]].pitch);
  v.data = tp__at_slot(f, s->in[i]);
  return v;
}
static inline tp__view tp__result_at(const tp__frame *f, const tp__step *s)
{
  tp__view v = tp__view_of(&s->node->shape, f->n, f->plan->slot[s->v].pitch);
  v.data = tp__at_slot(f, s->v);
  return v;
}

/* Remakes what is stale of that level. */
void tp__run_derived(tp__plan *plan, int level);
void tp__run_units(tp__plan *plan, int level);
void tp__run_assignments(tp__plan *plan);

/* Waits until it is the frame's chunk's turn to add to the joint; passes it on after the chunk's
 * last examples. */
void tp__joint_begin(const tp__frame *f, const tp__step *s);
void tp__joint_end(const tp__frame *f, const tp__step *s);

/* exec_group.c: how many examples all processes have; what the joints fed by a stage add up to. */
tp_status tp__share_counts(tp__plan *plan, tp_error *err) TP_CHECKED;
tp_status tp__share_joints(tp__plan *plan, int level, tp_error *err) TP_CHECKED;

/* The newest version of a shared value. */
static inline uint64_t tp__version(const tp__plan *plan, tp__value v)
{
  const tp__slot *s = &plan->slot[v];
  return s->home == TP__HOME_STATE && tp__plan_node(plan, v)->op == TP__OP_PARAM ? s->entry->version
                                                                                 : s->version;
}

/* The steps (exec_*.c). */
void tp__step_plain(const tp__frame *f, const tp__step *s);
void tp__step_plain_joint(const tp__frame *f, const tp__step *s);
void tp__step_fetch(const tp__frame *f, const tp__step *s);
void tp__step_repack(const tp__frame *f, const tp__step *s);
void tp__step_pixels(const tp__frame *f, const tp__step *s);
void tp__step_gemm(const tp__frame *f, const tp__step *s);
void tp__step_gemm_scaled(const tp__frame *f, const tp__step *s);
void tp__step_conv(const tp__frame *f, const tp__step *s);
void tp__step_depthwise(const tp__frame *f, const tp__step *s);
void tp__step_expand_depthwise(const tp__frame *f, const tp__step *s);
void tp__step_affine(const tp__frame *f, const tp__step *s);
void tp__step_activation(const tp__frame *f, const tp__step *s);
void tp__step_add(const tp__frame *f, const tp__step *s);
void tp__step_mul(const tp__frame *f, const tp__step *s);
void tp__step_mul_channels(const tp__frame *f, const tp__step *s);
void tp__step_max_pool(const tp__frame *f, const tp__step *s);
void tp__step_avg_pool(const tp__frame *f, const tp__step *s);
void tp__step_max_pool_grad(const tp__frame *f, const tp__step *s);
void tp__step_avg_pool_grad(const tp__frame *f, const tp__step *s);
void tp__step_concat(const tp__frame *f, const tp__step *s);
void tp__step_pool(const tp__frame *f, const tp__step *s);
void tp__step_pool_sums(const tp__frame *f, const tp__step *s);
void tp__step_dropout(const tp__frame *f, const tp__step *s);
void tp__step_broadcast(const tp__frame *f, const tp__step *s);
void tp__step_gemm_input_grad(const tp__frame *f, const tp__step *s);
void tp__step_gemm_kernel_grad(const tp__frame *f, const tp__step *s);
void tp__step_conv_input_grad(const tp__frame *f, const tp__step *s);
void tp__step_conv_kernel_grad(const tp__frame *f, const tp__step *s);
void tp__step_depthwise_input_grad(const tp__frame *f, const tp__step *s);
void tp__step_depthwise_kernel_grad(const tp__frame *f, const tp__step *s);
void tp__step_activation_grad(const tp__frame *f, const tp__step *s);
void tp__step_sum_to_last(const tp__frame *f, const tp__step *s);
void tp__step_moments(const tp__frame *f, const tp__step *s);
void tp__step_norm_act_grad(const tp__frame *f, const tp__step *s);
void tp__step_norm_sums(const tp__frame *f, const tp__step *s);
void tp__step_norm_grad(const tp__frame *f, const tp__step *s);

#endif
