/* plan_make_grads - the steps of gradients; see plan_make.h */
#include "geometry.h"
#include "plan_make.h"

tp_status tp__make_conv_input_grad(tp__making *m)
{
  const int64_t *dim = tp__make_operand(m, 1)->shape.dim;
  long inputs = (long)(dim[0] * dim[1] * dim[2]);
  TP__TRY(tp__make_pitched(m, 0));
  TP__TRY(tp__make_packed(m, TP__DERIVE_GEMM_TRANSPOSED, 1, (long)dim[3], inputs));
  if (tp__is_product(m->step.node, dim)) return tp__make_finish(m, tp__step_gemm_input_grad);
  int64_t row = tp__make_operand(m, 0)->shape.dim[2] * tp__pitch(inputs);
  TP__TRY(tp__plan_extra(m->plan, row, true, &m->step.extra[0], m->err));
  return tp__make_finish(m, tp__step_conv_input_grad);
}

tp_status tp__make_conv_kernel_grad(tp__making *m)
{
  const int64_t *dim = m->step.node->shape.dim;
  TP__TRY(tp__make_pitched(m, 1));
  if (tp__is_product(m->step.node, dim)) return tp__make_finish(m, tp__step_gemm_kernel_grad);
  int64_t row = tp__make_operand(m, 1)->shape.dim[2] * dim[0] * dim[1] * dim[2];
  TP__TRY(tp__plan_extra(m->plan, row, true, &m->step.extra[0], m->err));
  return tp__make_finish(m, tp__step_conv_kernel_grad);
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
