/* exec_layers - the steps of the forward pass; see plan.h */
#include <string.h>

#include "base/rng.h"

#include "exec.h"
#include "geometry.h"

static tp__ref as_plain(const tp__frame *f, const tp__step *s)
{
  tp__ref r = {.node = s->node, .n = f->n, .batch = f->plan->total, .out = tp__result_at(f, s)};
  for (int i = 0; i < s->node->n_in; i++) r.in[i] = tp__view_at(f, s, i);
  return r;
}

void tp__step_plain(const tp__frame *f, const tp__step *s)
{
  tp__ref r = as_plain(f, s);
  tp__reference(s->node->op)(&r);
}

void tp__step_plain_joint(const tp__frame *f, const tp__step *s)
{
  tp__ref r = as_plain(f, s);
  tp__joint_begin(f, s);
  tp__reference(s->node->op)(&r);
  tp__joint_end(f, s);
}

/* Pixels from one pitch to another; 4-byte elements of any type. */
static void copy_pixels(const tp__view *from, const tp__view *to)
{
  for (int64_t i = 0; i < from->n; i++)
    for (int64_t p = 0; p < tp__pixels(from); p++)
      memcpy(tp__pixel(to, i, p), tp__pixel(from, i, p), (size_t)from->c * sizeof(float));
}

void tp__step_fetch(const tp__frame *f, const tp__step *s)
{
  char *to = f->plan->program->fetched[s->output];
  if (to == NULL) return;
  tp__view from = tp__result_at(f, s), dense = tp__view_of(&s->node->shape, f->n, 0);
  dense.data = to + f->first * dense.row * 4;
  copy_pixels(&from, &dense);
}

void tp__step_repack(const tp__frame *f, const tp__step *s)
{
  tp__view from = tp__view_of(&s->node->shape, f->n, f->plan->slot[s->in[0]].pitch),
           to = tp__result_at(f, s);
  from.data = tp__at_slot(f, s->in[0]);
  copy_pixels(&from, &to);
}

/* The factors' period stands for a pixel of whole vectors. */
void tp__step_pixels(const tp__frame *f, const tp__step *s)
{
  const tp__derived *d = &f->plan->derived[s->derived];
  const float *factor = tp__derived_at(f, s->derived), *shift = factor + d->n;
  int64_t row = f->plan->slot[s->v].row, whole = row / d->n, rest = whole * d->n;
  for (int64_t i = 0; i < f->n; i++) {
    const float *x = tp__operand(f, s, 0) + i * row;
    float *y = tp__at_slot(f, s->v) + i * row;
    f->plan->kernels->affine_channels((long)whole, d->n, x, factor, shift, y);
    for (int64_t j = rest; j < row; j++) y[j] = x[j] * factor[j - rest] + shift[j - rest];
  }
}

/* A product over the pixels of all examples of the group; kernel [K,N]. */
static tp__gemm gemm_of(const tp__frame *f, const tp__step *s)
{
  const tp__slot *x = &f->plan->slot[s->in[0]], *y = &f->plan->slot[s->v];
  const tp__derived *d = &f->plan->derived[s->derived];
  tp__view rows = tp__view_of(&s->node->shape, 1, 0);
  return (tp__gemm){.m = (long)(tp__pixels(&rows) * f->n),
                    .n = d->n,
                    .k = d->k,
                    .a = tp__operand(f, s, 0),
                    .lda = (long)x->pitch,
                    .packed = tp__derived_at(f, s->derived),
                    .c = tp__at_slot(f, s->v),
                    .ldc = (long)y->pitch};
}

/* CONV 1 x 1: x, kernel, bias?, residual?, factors of x [N,1,1,C]?; MATMUL: x, kernel, bias?. */
void tp__step_gemm(const tp__frame *f, const tp__step *s)
{
  tp__gemm g = gemm_of(f, s);
  g.scale = tp__operand(f, s, 4);
  if (g.scale != NULL) {
    g.scale_rows = g.m / (long)f->n;
    g.scale_pitch = (long)f->plan->slot[s->in[4]].row;
  }
  g.bias = tp__operand(f, s, 2);
  g.residual = tp__operand(f, s, 3);
  g.act = s->node->attr.act;
  g.act_last = s->node->attr.flag;
  f->plan->kernels->gemm(&g);
}

/* The same with the weights' rows scaled by each example's factors [N,1,1,C]. */
void tp__step_gemm_scaled(const tp__frame *f, const tp__step *s)
{
  tp__gemm g = gemm_of(f, s);
  const float *packed = g.packed, *scale = tp__operand(f, s, 4);
  float *scaled = tp__at_slot(f, s->extra[0]);
  const int64_t scale_row = f->plan->slot[s->in[4]].row;
  g.bias = tp__operand(f, s, 2);
  g.residual = tp__operand(f, s, 3);
  g.act = s->node->attr.act;
  g.act_last = s->node->attr.flag;
  g.m /= (long)f->n;
  g.packed = scaled;
  for (int64_t i = 0; i < f->n; i++) {
    f->plan->kernels->scale_packed(packed, scale + i * scale_row, g.k, g.n, scaled);
    f->plan->kernels->gemm(&g);
    g.a += g.m * g.lda;
    g.c += g.m * g.ldc;
    if (g.residual != NULL) g.residual += g.m * g.ldc;
  }
}

/* Forward, or one of the gradients: dy takes y's place and dx x's, the kernel's gradient the
 * kernel's. */
tp__conv tp__conv_geometry(const tp__plan *plan, const tp__step *s)
{
  const tp__op op = s->node->op;
  const tp__value x = op == TP__OP_CONV_INPUT_GRAD ? s->v : s->in[0];
  const tp__value y = op == TP__OP_CONV ? s->v : s->in[op == TP__OP_CONV_KERNEL_GRAD ? 1 : 0];
  const tp__node *n = s->node, *first = tp__plan_node(plan, n->in[0]),
                 *second = tp__plan_node(plan, n->in[1]);
  const int64_t *xd = (op == TP__OP_CONV_INPUT_GRAD ? n : first)->shape.dim;
  const int64_t *yd = (op == TP__OP_CONV              ? n
                       : op == TP__OP_CONV_INPUT_GRAD ? first
                                                      : second)
                          ->shape.dim;
  const int64_t *kernel = (op == TP__OP_CONV_KERNEL_GRAD ? n : second)->shape.dim;
  return (tp__conv){.x_row = (long)plan->slot[x].row,
                    .y_row = (long)plan->slot[y].row,
                    .h = (int)xd[1],
                    .w = (int)xd[2],
                    .c = (int)xd[3],
                    .oh = (int)yd[1],
                    .ow = (int)yd[2],
                    .n = (int)yd[3],
                    .kh = (int)kernel[0],
                    .kw = (int)kernel[1],
                    .stride = n->attr.stride,
                    .pad_top = n->attr.pad[0],
                    .pad_left = n->attr.pad[2],
                    .x_pitch = (long)plan->slot[x].pitch,
                    .y_pitch = (long)plan->slot[y].pitch,
                    .act = n->attr.act,
                    .act_last = n->attr.flag,
                    .tile = tp__winograd_tile(plan->program->graph, n)};
}

void tp__step_conv(const tp__frame *f, const tp__step *s)
{
  tp__conv v = tp__conv_geometry(f->plan, s);
  v.images = (int)f->n;
  v.packed = tp__derived_at(f, s->derived);
  v.bias = tp__operand(f, s, 2);
  v.residual = tp__operand(f, s, 3);
  v.scratch = tp__at_slot(f, s->extra[0]);
  v.x = tp__operand(f, s, 0);
  v.y = tp__at_slot(f, s->v);
  if (v.tile > 0)
    f->plan->kernels->winograd(&v);
  else
    f->plan->kernels->conv(&v);
}

tp__depthwise tp__depthwise_geometry(const tp__plan *plan, const tp__step *s,
                                     const tp__shape *kernel)
{
  const tp__attr *a = &s->node->attr;
  const int64_t *x = tp__plan_node(plan, s->node->in[0])->shape.dim, *y = s->node->shape.dim;
  if (s->node->op == TP__OP_DEPTHWISE_INPUT_GRAD)
    x = s->node->shape.dim, y = tp__plan_node(plan, s->node->in[0])->shape.dim;
  if (s->node->op == TP__OP_DEPTHWISE_KERNEL_GRAD)
    y = tp__plan_node(plan, s->node->in[1])->shape.dim;
  return (tp__depthwise){.h = (int)x[1],
                         .w = (int)x[2],
                         .c = (int)x[3],
                         .oh = (int)y[1],
                         .ow = (int)y[2],
                         .k = (int)kernel->dim[0],
                         .stride = a->stride,
                         .pad_top = a->pad[0],
                         .pad_left = a->pad[2],
                         .act = a->act};
}

void tp__step_depthwise(const tp__frame *f, const tp__step *s)
{
  const tp__plan *plan = f->plan;
  tp__depthwise v = tp__depthwise_geometry(plan, s, &tp__plan_node(plan, s->node->in[1])->shape);
  v.packed = tp__derived_at(f, s->derived);
  v.bias = tp__operand(f, s, 2);
  v.x = tp__operand(f, s, 0);
  v.y = tp__at_slot(f, s->v);
  if (s->extra[0] != TP__NONE) v.sums = tp__at_slot(f, s->extra[0]);
  if (s->extra[1] != TP__NONE) v.scratch = tp__at_slot(f, s->extra[1]);
  for (int64_t i = 0; i < f->n; i++) {
    plan->kernels->depthwise(&v);
    v.x += plan->slot[s->in[0]].row;
    v.y += plan->slot[s->v].row;
    if (v.sums != NULL) v.sums += plan->slot[s->extra[0]].row;
  }
}

void tp__step_affine(const tp__frame *f, const tp__step *s)
{
  const tp__derived *d = &f->plan->derived[s->derived];
  tp__view x = tp__view_at(f, s, 0), y = tp__result_at(f, s);
  const float *factor = tp__derived_at(f, s->derived);
  tp__norm v = {.pixels = (long)(tp__pixels(&y) * f->n),
                .c = d->n,
                .x = x.data,
                .x_pitch = (long)x.pitch,
                .scale = factor,
                .shift = factor + tp__pitch(d->n),
                .y = y.data,
                .y_pitch = (long)y.pitch,
                .act = s->node->attr.act};
  f->plan->kernels->norm(&v);
}

/* Examples of a group lie one behind the other, and so do operand and result. */
static long elements(const tp__frame *f, const tp__step *s)
{
  return (long)(f->plan->slot[s->v].row * f->n);
}

void tp__step_activation(const tp__frame *f, const tp__step *s)
{
  f->plan->kernels->act(s->node->attr.act, elements(f, s), tp__operand(f, s, 0),
                        tp__at_slot(f, s->v));
}

void tp__step_add(const tp__frame *f, const tp__step *s)
{
  tp__view a = tp__view_at(f, s, 0), b = tp__view_at(f, s, 1), y = tp__result_at(f, s);
  if (a.pitch == y.pitch && b.pitch == y.pitch) {
    f->plan->kernels->add(elements(f, s), a.data, b.data, y.data);
    return;
  }
  for (int64_t p = 0; p < tp__pixels(&y) * f->n; p++) /* rows follow each other */
    f->plan->kernels->add((long)y.c, tp__pixel(&a, 0, p), tp__pixel(&b, 0, p), tp__pixel(&y, 0, p));
}

/* All elements as the channels of one pixel. */
void tp__step_mul(const tp__frame *f, const tp__step *s)
{
  f->plan->kernels->scale_channels(1, elements(f, s), tp__operand(f, s, 0), tp__operand(f, s, 1),
                                   tp__at_slot(f, s->v));
}

void tp__step_mul_channels(const tp__frame *f, const tp__step *s)
{
  tp__view y = tp__result_at(f, s);
  const float *x = tp__operand(f, s, 0), *b = tp__operand(f, s, 1);
  const int64_t b_row = f->plan->slot[s->in[1]].row;
  for (int64_t i = 0; i < f->n; i++)
    f->plan->kernels->scale_channels((long)tp__pixels(&y), (long)y.c, x + i * y.row, b + i * b_row,
                                     tp__pixel(&y, i, 0));
}

/* GLOBAL_POOL: the mean; SUM_SPATIAL: its own factor. */
static float pool_factor(const tp__frame *f, const tp__step *s)
{
  tp__view x = tp__view_of(&tp__plan_node(f->plan, s->node->in[0])->shape, 1, 0);
  return s->node->op == TP__OP_GLOBAL_POOL ? 1 / (float)tp__pixels(&x) : s->node->attr.f[0];
}

void tp__step_pool(const tp__frame *f, const tp__step *s)
{
  tp__view x = tp__view_at(f, s, 0), y = tp__result_at(f, s);
  for (int64_t i = 0; i < f->n; i++)
    f->plan->kernels->sum_pixels((long)tp__pixels(&x), (long)x.c, tp__pixel(&x, i, 0),
                                 pool_factor(f, s), tp__pixel(&y, i, 0));
}

/* The depthwise step left the sums here. */
void tp__step_pool_sums(const tp__frame *f, const tp__step *s)
{
  float *y = tp__at_slot(f, s->v), factor = pool_factor(f, s);
  for (long i = 0, count = elements(f, s); i < count; i++) y[i] *= factor;
}

/* The first pixel, then copies of it. */
void tp__step_broadcast(const tp__frame *f, const tp__step *s)
{
  tp__view x = tp__view_at(f, s, 0), y = tp__result_at(f, s);
  for (int64_t i = 0; i < f->n; i++) {
    const float *from = tp__pixel(&x, i, 0);
    float *to = tp__pixel(&y, i, 0);
    for (int64_t c = 0; c < y.c; c++) to[c] = from[c] * s->node->attr.f[0];
    for (int64_t p = 1; p < tp__pixels(&y); p++)
      memcpy(tp__pixel(&y, i, p), to, (size_t)y.c * sizeof(float));
  }
}

/* As the plain function, but four draws at a time: those of tp__uniform come in blocks. */
void tp__step_dropout(const tp__frame *f, const tp__step *s)
{
  tp__view x = tp__view_at(f, s, 0), keys = tp__view_at(f, s, 1), y = tp__result_at(f, s);
  const float rate = s->node->attr.f[0];
  const uint32_t draw = TP__DRAW_DROPOUT | s->node->attr.draw << 8;
  for (int64_t i = 0; i < f->n; i++) {
    const uint32_t *word = (const uint32_t *)keys.data + i * keys.row;
    uint32_t block[4];
    for (int64_t j = 0; j < tp__pixels(&y) * y.c; j++) {
      if (s->node->attr.flag ? j == 0 : j % 4 == 0)
        tp__philox((tp__key){{word[0], word[1]}}, (uint32_t)(j / 4), draw, 0, 0, block);
      bool kept = tp__unit_float(block[s->node->attr.flag ? 0 : j % 4]) >= rate;
      int64_t p = j / y.c, c = j % y.c;
      tp__pixel(&y, i, p)[c] = kept ? tp__pixel(&x, i, p)[c] / (1 - rate) : 0;
    }
  }
}
