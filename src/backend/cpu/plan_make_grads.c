/* plan_make_grads - the steps of gradients; see plan_make.h */
#include "geometry.h"
#include "plan_make.h"

static tp_status with_scratch(tp__making *m, tp__step_fn run)
{
  tp__conv v = tp__conv_geometry(m->plan, &m->step);
  int64_t size = (int64_t)m->plan->kernels->conv_grad_scratch(&v);
  TP__TRY(tp__plan_extra(m->plan, size, true, &m->step.extra[0], m->err));
  return tp__make_finish(m, run);
}

tp_status tp__make_conv_input_grad(tp__making *m)
{
  const int64_t *dim = tp__make_operand(m, 1)->shape.dim;
  TP__TRY(tp__make_wide(m, 0));
  if (tp__is_product(m->step.node, dim)) {
    TP__TRY(tp__make_packed(m, TP__DERIVE_GEMM_TRANSPOSED, 1, (long)dim[3], (long)dim[2]));
    return tp__make_finish(m, tp__step_gemm_input_grad);
  }
  tp__conv geometry = tp__conv_geometry(m->plan, &m->step);
  if (geometry.tile > 0) {
    geometry = tp__conv_backwards(&geometry);
    return tp__make_winograd(m, &geometry, tp__step_conv_input_grad);
  }
  tp__derived d = {
      .kind = TP__DERIVE_CONV_TRANSPOSED,
      .node = m->step.node,
      .in = {m->step.node->in[1]},
      .n_in = 1,
      .size = m->plan->kernels->packed_conv((int)dim[0], (int)dim[1], (int)dim[3], (int)dim[2])};
  TP__TRY(tp__plan_derive(m->plan, &d, &m->step.derived, m->err));
  return with_scratch(m, tp__step_conv_input_grad);
}

tp_status tp__make_conv_kernel_grad(tp__making *m)
{
  TP__TRY(tp__make_wide(m, 1));
  if (tp__is_product(m->step.node, m->step.node->shape.dim))
    return tp__make_finish(m, tp__step_gemm_kernel_grad);
  return with_scratch(m, tp__step_conv_kernel_grad);
}

tp_status tp__make_sum_to_last(tp__making *m)
{
  if (tp__sums_with(m->plan, m->step.v) != TP__NONE) return TP_OK;
  TP__TRY(tp__make_pitched(m, 0));
  tp__view dy = tp__view_of(&tp__make_operand(m, 0)->shape, 1, 0);
  TP__TRY(tp__plan_extra(m->plan, tp__pitch(dy.c), true, &m->step.extra[0], m->err));
  return tp__make_finish(m, tp__step_sum_to_last);
}

tp_status tp__make_matmul_input_grad(tp__making *m)
{
  const int64_t *dim = tp__make_operand(m, 1)->shape.dim;
  TP__TRY(tp__make_packed(m, TP__DERIVE_GEMM_TRANSPOSED, 1, (long)dim[1], (long)dim[0]));
  return tp__make_finish(m, tp__step_gemm_input_grad);
}
