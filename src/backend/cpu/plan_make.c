/* plan_make - the steps of layers; see plan_make.h */
#include "plan_make.h"

#include "geometry.h"

const tp__node *tp__make_operand(const tp__making *m, int i)
{
  return tp__plan_node(m->plan, m->step.node->in[i]);
}

tp_status tp__make_finish(tp__making *m, tp__step_fn run)
{
  m->step.run = run;
  return tp__plan_step(m->plan, &m->step, m->err);
}

/* Makes sure that operand i lies at the kernels' pitch: only fed values may not. */
tp_status tp__make_pitched(tp__making *m, int i)
{
  const tp__node *n = tp__make_operand(m, i);
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

tp_status tp__make_wide(tp__making *m, int i)
{
  return m->plan->slot[m->step.in[i]].pitch % TP__LANES == 0 ? TP_OK : tp__make_pitched(m, i);
}

tp_status tp__make_all_pitched(tp__making *m, int operands)
{
  for (int i = 0; i < operands; i++) TP__TRY(tp__make_pitched(m, i));
  return TP_OK;
}

/* kind is GEMM or GEMM_TRANSPOSED; in: which operand is the kernel. */
tp_status tp__make_packed(tp__making *m, tp__derive kind, int in, long k, long n)
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
tp_status tp__make_factors(tp__making *m, tp__derive kind, int first, int count)
{
  long c = (long)tp__view_of(&tp__make_operand(m, 0)->shape, 1, 0).c;
  tp__derived d = {
      .kind = kind, .node = m->step.node, .n_in = count, .n = c, .size = 2 * (size_t)tp__pitch(c)};
  for (int i = 0; i < count; i++) d.in[i] = m->step.node->in[first + i];
  return tp__plan_derive(m->plan, &d, &m->step.derived, m->err);
}

/* The squeeze-excite factor goes onto the projection's weights when they are fewer than its inputs,
 * else onto the inputs; products that copy their inputs anyway put it there. */
static tp_status scale_inputs(tp__making *m)
{
  TP__TRY(tp__make_pitched(m, 0));
  tp__step scale = m->step;
  scale.node = tp__make_operand(m, 0);
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

static tp_status make_gemm_conv(tp__making *m, const int64_t *dim)
{
  tp__view y = tp__view_of(&m->step.node->shape, 1, 0);
  TP__TRY(tp__make_packed(m, TP__DERIVE_GEMM, 1, (long)dim[2], (long)dim[3]));
  if (m->step.in[4] == TP__NONE || m->plan->kernels->scale_packed == NULL)
    return tp__make_finish(m, tp__step_gemm);
  if (tp__pixels(&y) <= dim[3]) {
    TP__TRY(scale_inputs(m));
    return tp__make_finish(m, tp__step_gemm);
  }
  int64_t size = (int64_t)m->plan->derived[m->step.derived].size;
  TP__TRY(tp__plan_extra(m->plan, size, true, &m->step.extra[0], m->err));
  return tp__make_finish(m, tp__step_gemm_scaled);
}

static tp_status make_conv(tp__making *m)
{
  const int64_t *dim = tp__make_operand(m, 1)->shape.dim; /* kh, kw, C, K */
  TP__TRY(m->step.in[3] != TP__NONE ? tp__make_pitched(m, 3) : TP_OK);
  TP__TRY(m->step.in[4] != TP__NONE ? tp__make_pitched(m, 4) : TP_OK);
  if (tp__is_product(m->step.node, dim)) return make_gemm_conv(m, dim);
  if (m->step.in[4] != TP__NONE) TP__TRY(scale_inputs(m));
  tp__conv geometry = tp__conv_geometry(m->plan, &m->step);
  if (geometry.tile > 0) return tp__make_winograd(m, &geometry, tp__step_conv);
  tp__derived d = {
      .kind = TP__DERIVE_CONV,
      .node = m->step.node,
      .in = {m->step.node->in[1]},
      .n_in = 1,
      .size = m->plan->kernels->packed_conv((int)dim[0], (int)dim[1], (int)dim[2], (int)dim[3])};
  TP__TRY(tp__plan_derive(m->plan, &d, &m->step.derived, m->err));
  int64_t size = (int64_t)m->plan->kernels->conv_scratch(&geometry);
  TP__TRY(tp__plan_extra(m->plan, size, true, &m->step.extra[0], m->err));
  return tp__make_finish(m, tp__step_conv);
}

static tp_status plain(tp__making *m)
{
  return tp__make_finish(m, m->step.joint < 0 ? tp__step_plain : tp__step_plain_joint);
}

/* The forward convolution and its gradients; kernel: which operand it is, -1: the result. The
 * packed kernel serves forward and input gradient. */
static tp_status make_depthwise(tp__making *m, int kernel, tp__step_fn run)
{
  const tp__shape *shape = kernel < 0 ? &m->step.node->shape : &tp__make_operand(m, kernel)->shape;
  if (shape->dim[0] != shape->dim[1]) return plain(m);
  TP__TRY(tp__make_all_pitched(m, kernel < 0 ? 2 : 1));
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
  TP__TRY(tp__make_finish(m, run));
  return run == tp__step_depthwise ? tp__plan_bands(m->plan, m->err) : TP_OK;
}

/* The sums over the pixels come for free when the step before is the depthwise convolution that
 * made them. */
static tp_status make_pool(tp__making *m)
{
  tp__plan *plan = m->plan;
  for (int i = plan->n_steps - 1; i >= 0; i--) {
    tp__step *s = &plan->step[i];
    if (s->v != m->step.in[0]) continue;
    bool depthwise = s->run == tp__step_depthwise || s->run == tp__step_expand_depthwise;
    if (!depthwise || s->extra[0] != TP__NONE || s->level != m->step.level) break;
    s->extra[0] = m->step.v;
    return tp__make_finish(m, tp__step_pool_sums);
  }
  TP__TRY(tp__make_pitched(m, 0));
  return tp__make_finish(m, tp__step_pool);
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

static tp_status make_pixels(tp__making *m)
{
  tp__derived d = {.kind = TP__DERIVE_PIXELS, .node = m->step.node};
  const tp__node *n = m->step.node;
  for (;; n = tp__plan_node(m->plan, n->in[0])) {
    for (int i = 1; i < n->n_in; i++) d.in[d.n_in++] = n->in[i];
    if (!absorbed(m->plan, n->in[0])) break;
  }
  m->step.in[0] = n->in[0];
  if (m->plan->slot[m->step.in[0]].pitch != m->plan->slot[m->step.v].pitch)
    TP__TRY(tp__make_pitched(m, 0));
  d.first = n;
  d.n = (long)tp__pixel_period(&m->step.node->shape, m->plan->slot[m->step.v].pitch);
  d.size = 2 * (size_t)d.n;
  TP__TRY(tp__plan_derive(m->plan, &d, &m->step.derived, m->err));
  return tp__make_finish(m, tp__step_pixels);
}

static tp_status make_matmul(tp__making *m)
{
  const int64_t *dim = tp__make_operand(m, 1)->shape.dim;
  TP__TRY(tp__make_packed(m, TP__DERIVE_GEMM, 1, (long)dim[0], (long)dim[1]));
  return tp__make_finish(m, tp__step_gemm);
}

tp_status tp__make_with_factors(tp__making *m, tp__derive kind, int count)
{
  TP__TRY(tp__make_wide(m, 0));
  TP__TRY(tp__make_factors(m, kind, 1, count));
  return tp__make_finish(m, tp__step_affine);
}

static tp_status element_wise(tp__making *m, int operands, tp__step_fn run)
{
  TP__TRY(tp__make_all_pitched(m, operands));
  return tp__make_finish(m, run);
}

static tp_status make_mul(tp__making *m)
{
  tp__view a = tp__view_of(&tp__make_operand(m, 0)->shape, 1, 0),
           b = tp__view_of(&tp__make_operand(m, 1)->shape, 1, 0);
  return element_wise(m, 2,
                      tp__pixels(&a) == tp__pixels(&b) ? tp__step_mul : tp__step_mul_channels);
}

static tp_status make_gradient(tp__making *m)
{
  switch (m->step.node->op) {
  case TP__OP_CONV_INPUT_GRAD:
    return tp__make_conv_input_grad(m);
  case TP__OP_CONV_KERNEL_GRAD:
    return tp__make_conv_kernel_grad(m);
  case TP__OP_DEPTHWISE_INPUT_GRAD:
    return make_depthwise(m, 1, tp__step_depthwise_input_grad);
  case TP__OP_DEPTHWISE_KERNEL_GRAD:
    return make_depthwise(m, -1, tp__step_depthwise_kernel_grad);
  case TP__OP_SUM_TO_LAST:
    return tp__make_sum_to_last(m);
  case TP__OP_BATCH_NORM_INPUT_GRAD:
    return tp__make_with_factors(m, TP__DERIVE_NORM_GRAD, 2);
  case TP__OP_BATCH_NORM_GAMMA_GRAD:
    return tp__make_gamma_grad(m);
  case TP__OP_ACTIVATION_GRAD:
    return tp__make_activation(m, 1);
  case TP__OP_BATCH_MOMENTS:
    return tp__make_moments(m);
  case TP__OP_BATCH_NORM_FULL_GRAD:
    return tp__make_norm_grad(m);
  case TP__OP_MATMUL_INPUT_GRAD:
    return tp__make_matmul_input_grad(m);
  case TP__OP_MATMUL_KERNEL_GRAD:
    TP__TRY(tp__make_pitched(m, 1));
    return tp__make_finish(m, tp__step_gemm_kernel_grad);
  case TP__OP_MAX_POOL_GRAD:
    TP__TRY(tp__make_pitched(m, 0));
    TP__TRY(tp__make_wide(m, 1));
    return tp__make_finish(m, tp__step_max_pool_grad);
  case TP__OP_AVG_POOL_GRAD:
    return element_wise(m, 1, tp__step_avg_pool_grad);
  default:
    return plain(m);
  }
}

/* One number an example, as losses, is not padded to whole vectors. */
static bool is_dense(const tp__making *m)
{
  return m->step.node->shape.rank < 2;
}

tp_status tp__make_step(tp__making *m)
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
    return tp__make_with_factors(m, TP__DERIVE_NORM, 1);
  case TP__OP_BATCH_NORM:
    return tp__make_batch_norm(m);
  case TP__OP_ACTIVATION:
    return tp__make_activation(m, 0);
  case TP__OP_ADD:
    if (is_dense(m)) return plain(m);
    for (int i = 0; i < 2; i++) TP__TRY(tp__make_wide(m, i));
    return tp__make_finish(m, tp__step_add);
  case TP__OP_MUL:
    return is_dense(m) ? plain(m) : make_mul(m);
  case TP__OP_GLOBAL_POOL:
  case TP__OP_SUM_SPATIAL:
    return make_pool(m);
  case TP__OP_BROADCAST_SPATIAL:
    return element_wise(m, 1, tp__step_broadcast);
  case TP__OP_MAX_POOL:
  case TP__OP_AVG_POOL:
    TP__TRY(tp__make_wide(m, 0));
    return tp__make_finish(m, m->step.node->op == TP__OP_MAX_POOL ? tp__step_max_pool
                                                                  : tp__step_avg_pool);
  case TP__OP_CONCAT:
    return tp__make_concat(m);
  case TP__OP_SLICE_CHANNELS:
  case TP__OP_RESHAPE:
    return m->plan->slot[m->step.v].root != m->step.v ? TP_OK : plain(m);
  case TP__OP_MATMUL:
    return make_matmul(m);
  default:
    return make_gradient(m);
  }
}
