/* exec_statistics - the steps of batch norm: statistics of the batch, the norm with its activation,
 * and their gradients; see plan.h
 *
 * Sums over the batch are made example by example, each by itself before its turn at the joint, and
 * joined in the order of the examples: no bit depends on how they are grouped.
 */
#include "exec.h"

/* Moments of the first `before` examples and of one more, `pixels` each: Chan, Golub and LeVeque.
 */
static void join(float *mean, float *squares, const float *m, const float *s, int64_t c,
                 int64_t before, int64_t pixels)
{
  float share = 1 / (float)(before + 1);
  float weight = (float)before * share * (float)pixels;
  for (int64_t i = 0; i < c; i++) {
    float d = m[i] - mean[i];
    mean[i] += d * share;
    squares[i] += s[i] + d * d * weight;
  }
}

/* BATCH_MOMENTS: while the run lasts the second row holds the squared deviations. extra[0]: the
 * moments of a group's examples. */
void tp__step_moments(const tp__frame *f, const tp__step *s)
{
  const tp__plan *plan = f->plan;
  tp__view x = tp__view_at(f, s, 0);
  float *own = tp__at_slot(f, s->extra[0]), *mean = tp__at_slot(f, s->v), *variance = mean + x.c;
  const int64_t row = plan->slot[s->extra[0]].row, pixels = tp__pixels(&x);
  for (int64_t i = 0; i < f->n; i++)
    plan->kernels->moments((long)pixels, (long)x.c, tp__pixel(&x, i, 0), (long)x.pitch,
                           own + i * row, own + i * row + row / 2);
  tp__joint_begin(f, s);
  for (int64_t i = 0; i < f->n; i++)
    join(mean, variance, own + i * row, own + i * row + row / 2, x.c, f->first + i, pixels);
  if (f->first + f->n == plan->n)
    for (int64_t c = 0; c < x.c; c++) variance[c] /= (float)plan->n * (float)pixels;
  tp__joint_end(f, s);
}

/* ACTIVATION_GRAD; in[1]: the batch norm's x. */
void tp__step_norm_act_grad(const tp__frame *f, const tp__step *s)
{
  const tp__derived *d = &f->plan->derived[s->derived];
  const float *factor = tp__derived_at(f, s->derived);
  tp__view x = tp__view_at(f, s, 1), dx = tp__result_at(f, s);
  f->plan->kernels->norm_act_grad(s->node->attr.act, (long)(tp__pixels(&dx) * f->n), d->n,
                                  tp__operand(f, s, 0), x.data, (long)x.pitch, factor,
                                  factor + tp__pitch(d->n), dx.data);
}

/* BATCH_NORM_GAMMA_GRAD, and SUM_TO_LAST of the same dy where extra[1] is that. extra[0]: the sums
 * of a group's examples, one row for beta, one for gamma. */
void tp__step_norm_sums(const tp__frame *f, const tp__step *s)
{
  const tp__plan *plan = f->plan;
  const float *scale = tp__derived_at(f, s->derived);
  tp__view x = tp__view_at(f, s, 0), dy = tp__view_at(f, s, 1);
  float *own = tp__at_slot(f, s->extra[0]), *gamma = tp__at_slot(f, s->v);
  float *beta = s->extra[1] != TP__NONE ? tp__at_slot(f, s->extra[1]) : NULL;
  const int64_t row = plan->slot[s->extra[0]].row;
  for (int64_t i = 0; i < f->n; i++)
    plan->kernels->norm_sums((long)tp__pixels(&x), (long)x.c, tp__pixel(&dy, i, 0),
                             tp__pixel(&x, i, 0), (long)x.pitch, tp__operand(f, s, 2), scale,
                             own + i * row, own + i * row + row / 2);
  tp__joint_begin(f, s);
  for (int64_t i = 0; i < f->n; i++, own += row)
    for (int64_t c = 0; c < x.c; c++) {
      gamma[c] += own[row / 2 + c];
      if (beta != NULL) beta[c] += own[c];
    }
  tp__joint_end(f, s);
}

/* BATCH_NORM_FULL_GRAD */
void tp__step_norm_grad(const tp__frame *f, const tp__step *s)
{
  const tp__derived *d = &f->plan->derived[s->derived];
  const float *scale = tp__derived_at(f, s->derived);
  const long pitch = tp__pitch(d->n);
  tp__view x = tp__view_at(f, s, 0), dx = tp__result_at(f, s);
  f->plan->kernels->norm_grad((long)(tp__pixels(&dx) * f->n), d->n, tp__operand(f, s, 1), x.data,
                              (long)x.pitch, scale, scale + pitch, scale + 2 * pitch,
                              scale + 3 * pitch, dx.data);
}
