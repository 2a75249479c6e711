/* exec_grads - the steps of the backward pass; see plan.h */
#include "exec.h"
#include "geometry.h"

/* dx = dy kernel^T, over the pixels of all examples of the group. */
void tp__step_gemm_input_grad(const tp__frame *f, const tp__step *s)
{
  const tp__derived *d = &f->plan->derived[s->derived];
  tp__view dx = tp__result_at(f, s);
  tp__gemm g = {.m = (long)(tp__pixels(&dx) * f->n),
                .n = d->n,
                .k = d->k,
                .a = tp__operand(f, s, 0),
                .lda = (long)f->plan->slot[s->in[0]].pitch,
                .packed = tp__derived_at(f, s->derived),
                .c = dx.data,
                .ldc = (long)dx.pitch};
  f->plan->kernels->gemm(&g);
}

void tp__step_gemm_kernel_grad(const tp__frame *f, const tp__step *s)
{
  tp__view x = tp__view_at(f, s, 0), dy = tp__view_at(f, s, 1);
  tp__joint_begin(f, s);
  f->plan->kernels->gemm_kernel_grad((long)(tp__pixels(&x) * f->n), (long)x.c, (long)dy.c, x.data,
                                     (long)x.pitch, dy.data, (long)dy.pitch, tp__at_slot(f, s->v));
  tp__joint_end(f, s);
}

void tp__step_conv_kernel_grad(const tp__frame *f, const tp__step *s)
{
  tp__conv v = tp__conv_geometry(f->plan, s);
  v.images = (int)f->n;
  v.scratch = tp__at_slot(f, s->extra[0]);
  tp__joint_begin(f, s);
  f->plan->kernels->conv_kernel_grad(&v, tp__operand(f, s, 0), tp__operand(f, s, 1),
                                     tp__at_slot(f, s->v));
  tp__joint_end(f, s);
}

tp__conv tp__conv_backwards(const tp__conv *v)
{
  tp__conv back = {.images = v->images,
                   .x_row = v->y_row,
                   .y_row = v->x_row,
                   .h = v->oh,
                   .w = v->ow,
                   .c = v->n,
                   .oh = v->h,
                   .ow = v->w,
                   .n = v->c,
                   .kh = v->kh,
                   .kw = v->kw,
                   .stride = v->stride,
                   .pad_top = v->kh - 1 - v->pad_top,
                   .pad_left = v->kw - 1 - v->pad_left,
                   .x_pitch = v->y_pitch,
                   .packed = v->packed,
                   .y_pitch = v->x_pitch,
                   .tile = v->tile,
                   .scratch = v->scratch};
  return back;
}

void tp__step_conv_input_grad(const tp__frame *f, const tp__step *s)
{
  tp__conv v = tp__conv_geometry(f->plan, s);
  v.images = (int)f->n;
  v.packed = tp__derived_at(f, s->derived);
  v.scratch = tp__at_slot(f, s->extra[0]);
  if (v.tile == 0) {
    f->plan->kernels->conv_input_grad(&v, tp__operand(f, s, 0), tp__at_slot(f, s->v));
    return;
  }
  tp__conv back = tp__conv_backwards(&v);
  back.x = tp__operand(f, s, 0);
  back.y = tp__at_slot(f, s->v);
  f->plan->kernels->winograd(&back);
}

void tp__step_depthwise_input_grad(const tp__frame *f, const tp__step *s)
{
  const tp__plan *plan = f->plan;
  tp__depthwise v = tp__depthwise_geometry(plan, s, &tp__plan_node(plan, s->node->in[1])->shape);
  v.packed = tp__derived_at(f, s->derived);
  if (s->extra[1] != TP__NONE) v.scratch = tp__at_slot(f, s->extra[1]);
  for (int64_t i = 0; i < f->n; i++)
    plan->kernels->depthwise_input_grad(&v, tp__operand(f, s, 0) + i * plan->slot[s->in[0]].row,
                                        tp__at_slot(f, s->v) + i * plan->slot[s->v].row);
}

void tp__step_depthwise_kernel_grad(const tp__frame *f, const tp__step *s)
{
  const tp__plan *plan = f->plan;
  tp__depthwise v = tp__depthwise_geometry(plan, s, &s->node->shape);
  if (s->extra[1] != TP__NONE) v.scratch = tp__at_slot(f, s->extra[1]);
  tp__joint_begin(f, s);
  for (int64_t i = 0; i < f->n; i++)
    plan->kernels->depthwise_kernel_grad(&v, tp__operand(f, s, 0) + i * plan->slot[s->in[0]].row,
                                         tp__operand(f, s, 1) + i * plan->slot[s->in[1]].row,
                                         tp__at_slot(f, s->v));
  tp__joint_end(f, s);
}

void tp__step_activation_grad(const tp__frame *f, const tp__step *s)
{
  f->plan->kernels->act_grad(s->node->attr.act, (long)(f->plan->slot[s->v].row * f->n),
                             tp__operand(f, s, 0), tp__operand(f, s, 1), tp__at_slot(f, s->v));
}

/* Example by example, so that the sum does not depend on how examples are grouped. */
void tp__step_sum_to_last(const tp__frame *f, const tp__step *s)
{
  tp__view dy = tp__view_at(f, s, 0);
  float *sums = tp__at_slot(f, s->extra[0]), *total = tp__at_slot(f, s->v);
  tp__joint_begin(f, s);
  for (int64_t i = 0; i < f->n; i++) {
    f->plan->kernels->sum_pixels((long)tp__pixels(&dy), (long)dy.c, tp__pixel(&dy, i, 0), 1, sums);
    for (int64_t c = 0; c < dy.c; c++) total[c] += sums[c];
  }
  tp__joint_end(f, s);
}
