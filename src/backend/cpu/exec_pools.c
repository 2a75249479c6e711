/* exec_pools - the steps of pooling and concat, and of their gradients; see plan.h */
#include <string.h>

#include "exec.h"

/* x, y: the larger and the smaller image, whichever of them is the step's result. */
static tp__pooling pooling_of(const tp__step *s, const tp__view *x, const tp__view *y)
{
  const tp__attr *a = &s->node->attr;
  return (tp__pooling){.h = (int)x->h,
                       .w = (int)x->w,
                       .c = (int)x->c,
                       .oh = (int)y->h,
                       .ow = (int)y->w,
                       .window = a->window,
                       .stride = a->stride,
                       .pad_top = a->pad[0],
                       .pad_left = a->pad[2],
                       .x_pitch = (long)x->pitch,
                       .y_pitch = (long)y->pitch};
}

static void pool(const tp__frame *f, const tp__step *s, void (*run)(const tp__pooling *v))
{
  tp__view x = tp__view_at(f, s, 0), y = tp__result_at(f, s);
  tp__pooling v = pooling_of(s, &x, &y);
  for (int64_t i = 0; i < f->n; i++) {
    v.x = tp__pixel(&x, i, 0);
    v.y = tp__pixel(&y, i, 0);
    run(&v);
  }
}

void tp__step_max_pool(const tp__frame *f, const tp__step *s)
{
  pool(f, s, f->plan->kernels->max_pool);
}

void tp__step_avg_pool(const tp__frame *f, const tp__step *s)
{
  pool(f, s, f->plan->kernels->avg_pool);
}

void tp__step_max_pool_grad(const tp__frame *f, const tp__step *s)
{
  tp__view dy = tp__view_at(f, s, 0), x = tp__view_at(f, s, 1), dx = tp__result_at(f, s);
  tp__pooling v = pooling_of(s, &x, &dy);
  for (int64_t i = 0; i < f->n; i++) {
    v.x = tp__pixel(&x, i, 0);
    f->plan->kernels->max_pool_grad(&v, tp__pixel(&dy, i, 0), tp__pixel(&dx, i, 0));
  }
}

void tp__step_avg_pool_grad(const tp__frame *f, const tp__step *s)
{
  tp__view dy = tp__view_at(f, s, 0), dx = tp__result_at(f, s);
  tp__pooling v = pooling_of(s, &dx, &dy);
  for (int64_t i = 0; i < f->n; i++)
    f->plan->kernels->avg_pool_grad(&v, tp__pixel(&dy, i, 0), tp__pixel(&dx, i, 0));
}

/* The operands that are not already part of the result. */
void tp__step_concat(const tp__frame *f, const tp__step *s)
{
  tp__view y = tp__result_at(f, s);
  int64_t first = 0;
  for (int k = 0; k < 2; k++) {
    tp__view x = tp__view_at(f, s, k);
    for (int64_t i = 0; i < f->n && x.data != NULL; i++)
      for (int64_t p = 0; p < tp__pixels(&y); p++)
        memcpy(tp__pixel(&y, i, p) + first, tp__pixel(&x, i, p), (size_t)x.c * sizeof(float));
    first += tp__plan_node(f->plan, s->node->in[k])->shape.dim[3];
  }
}
