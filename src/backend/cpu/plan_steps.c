/* plan_steps - from nodes to steps: which fast operator computes a node, and what it needs besides;
 * see plan.h */
#include <stdlib.h>

#include "geometry.h"
#include "plan.h"

/* A step under construction. */
struct making {
  tp__plan *plan;
  tp__step step;
  tp_error *err;
};

static const tp__node *operand_node(const struct making *m, int i)
{
  return tp__plan_node(m->plan, m->step.node->in[i]);
}

static tp_status finish(struct making *m, tp__step_fn run)
{
  m->step.run = run;
  return tp__plan_step(m->plan, &m->step, m->err);
}

/* Makes sure that operand i lies at the kernels' pitch: only fed values may not. */
static tp_status pitched(struct making *m, int i)
{
  const tp__node *n = operand_node(m, i);
  tp__view v = tp__view_of(&n->shape, 1, 0);
  if (m->step.in[i] == TP__NONE || m->plan->slot[m->step.in[i]].pitch == tp__pitch(v.c))
    return TP_OK;
  tp__step copy = m->step;
  copy.node = n;
  copy.in[0] = m->step.in[i];
  for (int k = 1; k < TP__OPERANDS_MAX; k++) copy.in[k] = TP__NONE;
  TP__TRY(tp__plan_extra(m->plan, v.h * v.w * tp__pitch(v.c), false, &copy.v, m->err));
  m->plan->slot[copy.v].pitch = tp__pitch(v.c);
  copy.joint = -1;
  copy.run = tp__step_repack;
  m->step.in[i] = copy.v;
  return tp__plan_step(m->plan, &copy, m->err);
}

static tp_status all_pitched(struct making *m, int operands)
{
  for (int i = 0; i < operands; i++) TP__TRY(pitched(m, i));
  return TP_OK;
}

/* kind is GEMM or GEMM_TRANSPOSED; in: which operand is the kernel. */
static tp_status packed(struct making *m, tp__derive kind, int in, long k, long n)
{
  tp__derived d = {.kind = kind,
                   .node = m->step.node,
                   .in = {m->step.node->in[in]},
                   .n_in = 1,
                   .k = k,
                   .n = n,
                   .size = m->plan->kernels->packed_gemm(k, n)};
  return tp__plan_derive(m->plan, &d, &m->step.derived, m->err);
}

/* Per-channel numbers made of the operands first...: factor and shift, each [pitch(c)]. */
static tp_status channel_factors(struct making *m, tp__derive kind, int first, int count)
{
  long c = (long)tp__view_of(&operand_node(m, 0)->shape, 1, 0).c;
  tp__derived d = {
      .kind = kind, .node = m->step.node, .n_in = count, .n = c, .size = 2 * (size_t)tp__pitch(c)};
  for (int i = 0; i < count; i++) d.in[i] = m->step.node->in[first + i];
  return tp__plan_derive(m->plan, &d, &m->step.derived, m->err);
}

/* The squeeze-excite factor goes onto the projection's weights when they are fewer than its inputs,
 * else onto the inputs. */
static tp_status scale_inputs(struct making *m)
{
  TP__TRY(pitched(m, 0));
  tp__step scale = m->step;
  scale.node = operand_node(m, 0);
  scale.in[1] = m->step.in[4];
  for (int k = 2; k < TP__OPERANDS_MAX; k++) scale.in[k] = TP__NONE;
  tp__view v = tp__view_of(&scale.node->shape, 1, 0);
  TP__TRY(tp__plan_extra(m->plan, v.h * v.w * tp__pitch(v.c), false, &scale.v, m->err));
  m->plan->slot[scale.v].pitch = tp__pitch(v.c);
  scale.run = tp__step_mul_channels;
  m->step.in[0] = scale.v;
  m->step.in[4] = TP__NONE;
  return tp__plan_step(m->plan, &scale, m->err);
}

static tp_status make_gemm_conv(struct making *m, const int64_t *dim)
{
  tp__view y = tp__view_of(&m->step.node->shape, 1, 0);
  TP__TRY(packed(m, TP__DERIVE_GEMM, 1, (long)dim[2], (long)dim[3]));
  if (m->step.in[4] == TP__NONE) return finish(m, tp__step_gemm);
  if (tp__pixels(&y) <= dim[3]) {
    TP__TRY(scale_inputs(m));
    return finish(m, tp__step_gemm);
  }
  int64_t size = (int64_t)m->plan->derived[m->step.derived].size;
  TP__TRY(tp__plan_extra(m->plan, size, true, &m->step.extra[0], m->err));
  return finish(m, tp__step_gemm_scaled);
}

static tp_status make_conv(struct making *m)
{
  const int64_t *dim = operand_node(m, 1)->shape.dim; /* kh, kw, C, K */
  TP__TRY(m->step.in[3] != TP__NONE ? pitched(m, 3) : TP_OK);
  TP__TRY(m->step.in[4] != TP__NONE ? pitched(m, 4) : TP_OK);
  if (tp__is_product(m->step.node, dim)) return make_gemm_conv(m, dim);
  if (m->step.in[4] != TP__NONE) TP__TRY(scale_inputs(m));
  tp__derived d = {
      .kind = TP__DERIVE_CONV,
      .node = m->step.node,
      .in = {m->step.node->in[1]},
      .n_in = 1,
      .size = m->plan->kernels->packed_conv((int)dim[0], (int)dim[1], (int)dim[2], (int)dim[3])};
  TP__TRY(tp__plan_derive(m->plan, &d, &m->step.derived, m->err));
  tp__conv geometry = tp__conv_geometry(m->plan, &m->step);
  int64_t size = (int64_t)m->plan->kernels->conv_scratch(&geometry);
  TP__TRY(tp__plan_extra(m->plan, size, true, &m->step.extra[0], m->err));
  return finish(m, tp__step_conv);
}

static tp_status plain(struct making *m)
{
  return finish(m, m->step.joint < 0 ? tp__step_plain : tp__step_plain_joint);
}

/* The forward convolution and its gradients; kernel: which operand it is, -1: the result. The
 * packed kernel serves forward and input gradient. */
static tp_status make_depthwise(struct making *m, int kernel, tp__step_fn run)
{
  const tp__shape *shape = kernel < 0 ? &m->step.node->shape : &operand_node(m, kernel)->shape;
  if (shape->dim[0] != shape->dim[1]) return plain(m);
  TP__TRY(all_pitched(m, kernel < 0 ? 2 : 1));
  int k = (int)shape->dim[0], c = (int)shape->dim[2];
  if (kernel >= 0) {
    tp__derived d = {.kind = TP__DERIVE_DEPTHWISE,
                     .node = m->step.node,
                     .in = {m->step.node->in[kernel]},
                     .n_in = 1,
                     .k = k,
                     .n = c,
                     .size = m->plan->kernels->packed_depthwise(k, c)};
    TP__TRY(tp__plan_derive(m->plan, &d, &m->step.derived, m->err));
  }
  tp__depthwise geometry = tp__depthwise_geometry(m->plan, &m->step, shape);
  int64_t size = (int64_t)m->plan->kernels->depthwise_scratch(&geometry);
  if (size > 0) TP__TRY(tp__plan_extra(m->plan, size, true, &m->step.extra[1], m->err));
  return finish(m, run);
}

/* The sums over the pixels come for free when the step before is the depthwise convolution that
 * made them. */
static tp_status make_pool(struct making *m)
{
  tp__plan *plan = m->plan;
  for (int i = plan->n_steps - 1; i >= 0; i--) {
    tp__step *s = &plan->step[i];
    if (s->v != m->step.in[0]) continue;
    if (s->run != tp__step_depthwise || s->extra[0] != TP__NONE || s->level != m->step.level) break;
    s->extra[0] = m->step.v;
    return finish(m, tp__step_pool_sums);
  }
  TP__TRY(pitched(m, 0));
  return finish(m, tp__step_pool);
}

static tp_status make_conv_input_grad(struct making *m)
{
  const int64_t *dim = operand_node(m, 1)->shape.dim;
  long inputs = (long)(dim[0] * dim[1] * dim[2]);
  TP__TRY(pitched(m, 0));
  TP__TRY(packed(m, TP__DERIVE_GEMM_TRANSPOSED, 1, (long)dim[3], inputs));
  if (tp__is_product(m->step.node, dim)) return finish(m, tp__step_gemm_input_grad);
  int64_t row = operand_node(m, 0)->shape.dim[2] * tp__pitch(inputs);
  TP__TRY(tp__plan_extra(m->plan, row, true, &m->step.extra[0], m->err));
  return finish(m, tp__step_conv_input_grad);
}

static tp_status make_conv_kernel_grad(struct making *m)
{
  const int64_t *dim = m->step.node->shape.dim;
  TP__TRY(pitched(m, 1));
  if (tp__is_product(m->step.node, dim)) return finish(m, tp__step_gemm_kernel_grad);
  int64_t row = operand_node(m, 1)->shape.dim[2] * dim[0] * dim[1] * dim[2];
  TP__TRY(tp__plan_extra(m->plan, row, true, &m->step.extra[0], m->err));
  return finish(m, tp__step_conv_kernel_grad);
}

static tp_status make_gamma_grad(struct making *m)
{
  TP__TRY(all_pitched(m, 2));
  TP__TRY(channel_factors(m, TP__DERIVE_UNIT, 2, 2));
  tp__view x = tp__view_of(&operand_node(m, 0)->shape, 1, 0);
  TP__TRY(
      tp__plan_extra(m->plan, tp__pixels(&x) * tp__pitch(x.c), true, &m->step.extra[0], m->err));
  return finish(m, tp__step_gamma_grad);
}

static tp_status make_sum_to_last(struct making *m)
{
  TP__TRY(pitched(m, 0));
  tp__view dy = tp__view_of(&operand_node(m, 0)->shape, 1, 0);
  TP__TRY(tp__plan_extra(m->plan, tp__pitch(dy.c), true, &m->step.extra[0], m->err));
  return finish(m, tp__step_sum_to_last);
}

/* AFFINE and NORMALIZE one after the other are one factor and one shift per channel. */
static bool in_chain(const tp__node *n)
{
  return n->op == TP__OP_AFFINE || n->op == TP__OP_NORMALIZE;
}

static bool absorbed(const tp__plan *plan, tp__value v)
{
  int normalizations = 0;
  if (!in_chain(tp__plan_node(plan, v)) || plan->readers[v] != 1 || plan->reader[v] <= v ||
      !in_chain(tp__plan_node(plan, plan->reader[v])))
    return false;
  for (tp__value u = v; in_chain(tp__plan_node(plan, u)); u = tp__plan_node(plan, u)->in[0])
    normalizations += tp__plan_node(plan, u)->op == TP__OP_NORMALIZE;
  return normalizations <= 2;
}

static tp_status make_pixels(struct making *m)
{
  tp__derived d = {.kind = TP__DERIVE_PIXELS, .node = m->step.node};
  const tp__node *n = m->step.node;
  for (;; n = tp__plan_node(m->plan, n->in[0])) {
    for (int i = 1; i < n->n_in; i++) d.in[d.n_in++] = n->in[i];
    if (!absorbed(m->plan, n->in[0])) break;
  }
  m->step.in[0] = n->in[0];
  d.first = n;
  d.n = (long)tp__pixel_period(&m->step.node->shape, m->plan->slot[m->step.v].pitch);
  d.size = 2 * (size_t)d.n;
  TP__TRY(tp__plan_derive(m->plan, &d, &m->step.derived, m->err));
  return finish(m, tp__step_pixels);
}

static tp_status make_matmul(struct making *m)
{
  const int64_t *dim = operand_node(m, 1)->shape.dim;
  TP__TRY(packed(m, TP__DERIVE_GEMM, 1, (long)dim[0], (long)dim[1]));
  return finish(m, tp__step_gemm);
}

static tp_status make_matmul_input_grad(struct making *m)
{
  const int64_t *dim = operand_node(m, 1)->shape.dim;
  TP__TRY(packed(m, TP__DERIVE_GEMM_TRANSPOSED, 1, (long)dim[1], (long)dim[0]));
  return finish(m, tp__step_gemm_input_grad);
}

static tp_status with_factors(struct making *m, tp__derive kind, int count)
{
  TP__TRY(pitched(m, 0));
  TP__TRY(channel_factors(m, kind, 1, count));
  return finish(m, tp__step_affine);
}

static tp_status element_wise(struct making *m, int operands, tp__step_fn run)
{
  TP__TRY(all_pitched(m, operands));
  return finish(m, run);
}

static tp_status make_mul(struct making *m)
{
  tp__view a = tp__view_of(&operand_node(m, 0)->shape, 1, 0),
           b = tp__view_of(&operand_node(m, 1)->shape, 1, 0);
  return element_wise(m, 2,
                      tp__pixels(&a) == tp__pixels(&b) ? tp__step_mul : tp__step_mul_channels);
}

static tp_status make(struct making *m)
{
  switch (m->step.node->op) {
  case TP__OP_AFFINE:
  case TP__OP_NORMALIZE:
    return absorbed(m->plan, m->step.v) ? TP_OK : make_pixels(m);
  case TP__OP_CONV:
    return make_conv(m);
  case TP__OP_DEPTHWISE:
    return make_depthwise(m, 1, tp__step_depthwise);
  case TP__OP_BIAS_ADD:
    return with_factors(m, TP__DERIVE_NORM, 1);
  case TP__OP_BATCH_NORM:
    return with_factors(m, TP__DERIVE_NORM, 4);
  case TP__OP_ACTIVATION:
    return element_wise(m, 1, tp__step_activation);
  case TP__OP_ADD:
    return element_wise(m, 2, tp__step_add);
  case TP__OP_MUL:
    return make_mul(m);
  case TP__OP_GLOBAL_POOL:
  case TP__OP_SUM_SPATIAL:
    return make_pool(m);
  case TP__OP_BROADCAST_SPATIAL:
    return element_wise(m, 1, tp__step_broadcast);
  case TP__OP_RESHAPE:
    return m->plan->slot[m->step.v].root != m->step.v ? TP_OK : plain(m);
  case TP__OP_MATMUL:
    return make_matmul(m);
  case TP__OP_CONV_INPUT_GRAD:
    return make_conv_input_grad(m);
  case TP__OP_CONV_KERNEL_GRAD:
    return make_conv_kernel_grad(m);
  case TP__OP_DEPTHWISE_INPUT_GRAD:
    return make_depthwise(m, 1, tp__step_depthwise_input_grad);
  case TP__OP_DEPTHWISE_KERNEL_GRAD:
    return make_depthwise(m, -1, tp__step_depthwise_kernel_grad);
  case TP__OP_SUM_TO_LAST:
    return make_sum_to_last(m);
  case TP__OP_BATCH_NORM_INPUT_GRAD:
    return with_factors(m, TP__DERIVE_NORM_GRAD, 2);
  case TP__OP_BATCH_NORM_GAMMA_GRAD:
    return make_gamma_grad(m);
  case TP__OP_ACTIVATION_GRAD:
    return element_wise(m, 2, tp__step_activation_grad);
  case TP__OP_MATMUL_INPUT_GRAD:
    return make_matmul_input_grad(m);
  case TP__OP_MATMUL_KERNEL_GRAD:
    TP__TRY(pitched(m, 1));
    return finish(m, tp__step_gemm_kernel_grad);
  default:
    return plain(m);
  }
}

static tp__step step_of(tp__plan *plan, tp__value v)
{
  const tp__node *n = tp__plan_node(plan, v);
  tp__step s = {.node = n, .v = v, .extra = {TP__NONE, TP__NONE}, .derived = -1, .joint = -1};
  for (int i = 0; i < TP__OPERANDS_MAX; i++) s.in[i] = i < n->n_in ? n->in[i] : TP__NONE;
  s.level = plan->slot[v].level - (tp__op_is_joint(n->op) ? 1 : 0);
  return s;
}

/* An output of examples is copied out as soon as it is there. */
static tp_status make_fetches(tp__plan *plan, tp__value v, tp_error *err)
{
  const tp__graph *g = plan->program->graph;
  for (size_t o = 0; o < g->n_outputs; o++) {
    if (g->output[o].value != v) continue;
    tp__step s = step_of(plan, v);
    for (int i = 1; i < TP__OPERANDS_MAX; i++) s.in[i] = TP__NONE;
    s.in[0] = v;
    s.run = tp__step_fetch;
    s.output = o;
    TP__TRY(tp__plan_step(plan, &s, err));
  }
  return TP_OK;
}

static tp_status make_level(tp__plan *plan, int level, tp_error *err)
{
  const tp__graph *g = plan->program->graph;
  for (tp__value v = 0; v < g->count; v++) {
    struct making m = {.plan = plan, .step = step_of(plan, v), .err = err};
    bool joint = tp__op_is_joint(g->node[v].op);
    if (m.step.level != level || plan->readers[v] == 0 || !(joint || plan->slot[v].per_example))
      continue;
    if (joint) {
      m.step.joint = plan->n_tickets;
      plan->ticket[plan->n_tickets++].v = v;
    }
    if (tp__reference(g->node[v].op) != NULL) TP__TRY(make(&m));
    if (!joint) TP__TRY(make_fetches(plan, v, err));
  }
  return TP_OK;
}

tp_status tp__plan_steps(tp__plan *plan, tp_error *err)
{
  plan->ticket = tp__calloc((size_t)plan->program->graph->count, sizeof *plan->ticket, err);
  if (plan->ticket == NULL) return TP_ERR_INTERNAL;
  for (int level = 0; level < plan->levels; level++) TP__TRY(make_level(plan, level, err));
  return TP_OK;
}
