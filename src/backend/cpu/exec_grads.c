/* exec_grads - the steps of the backward pass; see plan.h */
#include <string.h>

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

/* A convolution as a product: what one row of outputs sees of x, as rows [ow][kh kw C] in the
 * kernel's order. Calls `each` for every piece of C channels that lies inside the image. */
struct window {
  const tp__attr *attr;
  const int64_t *kernel; /* kh, kw, C, K */
  tp__view x;            /* or dx */
  int64_t ow;
};

typedef void (*piece_fn)(float *pixel, float *piece, int64_t channels);

static void each_piece(const struct window *w, int64_t example, int64_t oy, float *rows,
                       int64_t pitch, piece_fn each)
{
  int64_t channels = w->kernel[2];
  for (int64_t ox = 0; ox < w->ow; ox++) {
    float *piece = rows + ox * pitch;
    for (int64_t tap = 0; tap < w->kernel[0] * w->kernel[1]; tap++, piece += channels) {
      int64_t iy = oy * w->attr->stride + tap / w->kernel[1] - w->attr->pad[0];
      int64_t ix = ox * w->attr->stride + tap % w->kernel[1] - w->attr->pad[2];
      bool inside = iy >= 0 && iy < w->x.h && ix >= 0 && ix < w->x.w;
      each(inside ? tp__pixel(&w->x, example, iy * w->x.w + ix) : NULL, piece, channels);
    }
  }
}

static void gather(float *pixel, float *piece, int64_t channels)
{
  if (pixel != NULL)
    memcpy(piece, pixel, (size_t)channels * sizeof(float));
  else
    memset(piece, 0, (size_t)channels * sizeof(float));
}

static void scatter(float *pixel, float *piece, int64_t channels)
{
  for (int64_t c = 0; c < channels && pixel != NULL; c++) pixel[c] += piece[c];
}

void tp__step_conv_kernel_grad(const tp__frame *f, const tp__step *s)
{
  tp__view dy = tp__view_at(f, s, 1);
  struct window w = {
      .attr = &s->node->attr, .kernel = s->node->shape.dim, .x = tp__view_at(f, s, 0), .ow = dy.w};
  int64_t inputs = w.kernel[0] * w.kernel[1] * w.kernel[2];
  float *rows = tp__at_slot(f, s->extra[0]);
  tp__joint_begin(f, s);
  for (int64_t i = 0; i < f->n; i++) {
    for (int64_t oy = 0; oy < dy.h; oy++) {
      each_piece(&w, i, oy, rows, inputs, gather);
      f->plan->kernels->gemm_kernel_grad((long)dy.w, (long)inputs, (long)dy.c, rows, (long)inputs,
                                         tp__pixel(&dy, i, oy * dy.w), (long)dy.pitch,
                                         tp__at_slot(f, s->v));
    }
  }
  tp__joint_end(f, s);
}

void tp__step_conv_input_grad(const tp__frame *f, const tp__step *s)
{
  const tp__derived *d = &f->plan->derived[s->derived];
  tp__view dy = tp__view_at(f, s, 0);
  struct window w = {.attr = &s->node->attr,
                     .kernel = tp__plan_node(f->plan, s->node->in[1])->shape.dim,
                     .x = tp__result_at(f, s),
                     .ow = dy.w};
  float *rows = tp__at_slot(f, s->extra[0]);
  tp__gemm g = {.m = (long)dy.w,
                .n = d->n,
                .k = d->k,
                .lda = (long)dy.pitch,
                .packed = tp__derived_at(f, s->derived),
                .c = rows,
                .ldc = tp__pitch(d->n)};
  memset(w.x.data, 0, (size_t)(f->n * w.x.row) * sizeof(float));
  for (int64_t i = 0; i < f->n; i++) {
    for (int64_t oy = 0; oy < dy.h; oy++) {
      g.a = tp__pixel(&dy, i, oy * dy.w);
      f->plan->kernels->gemm(&g);
      each_piece(&w, i, oy, rows, g.ldc, scatter);
    }
  }
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
