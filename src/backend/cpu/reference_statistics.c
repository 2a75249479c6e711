/* reference_statistics - batch statistics, the gradient of a batch norm through them, moving
 * averages, and the norm of all gradients, by their definitions; see reference.h
 */
#include <math.h>

#include "reference.h"

/* Of all examples of a run at once, in two passes: this one is no sum that could be made part by
 * part. */
void tp__ref_batch_moments(const tp__ref *r)
{
  const tp__view *x = &r->in[0];
  float *mean = r->out.data, *variance = mean + x->c;
  double count = (double)(r->n * tp__pixels(x));
  for (int64_t c = 0; c < x->c; c++) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < r->n; i++)
      for (int64_t p = 0; p < tp__pixels(x); p++) sum += tp__pixel(x, i, p)[c];
    for (int64_t i = 0; i < r->n; i++)
      for (int64_t p = 0; p < tp__pixels(x); p++) {
        double d = tp__pixel(x, i, p)[c] - sum / count;
        squares += d * d;
      }
    mean[c] = (float)(sum / count);
    variance[c] = (float)(squares / count);
  }
}

void tp__ref_row(const tp__ref *r)
{
  const float *x = tp__ref_f32(r, 0) + r->node->attr.row * r->out.c;
  float *out = r->out.data;
  for (int64_t c = 0; c < r->out.c; c++) out[c] = x[c];
}

/* dx = gamma / s (dy - mean of dy - u mean of (u dy)), u = (x - mean) / s: the sums over the batch
 * are the gradients of beta and gamma. */
void tp__ref_batch_norm_full_grad(const tp__ref *r)
{
  const tp__view *x = &r->in[0], *dy = &r->in[1];
  const float *gamma = tp__ref_f32(r, 2), *mean = tp__ref_f32(r, 3), *variance = mean + x->c;
  const float *beta_grad = tp__ref_f32(r, 4), *gamma_grad = tp__ref_f32(r, 5);
  double count = (double)(r->batch * tp__pixels(x));
  for (int64_t c = 0; c < x->c; c++) {
    double inverse = 1 / sqrt((double)variance[c] + r->node->attr.f[0]);
    for (int64_t i = 0; i < r->n; i++)
      for (int64_t p = 0; p < tp__pixels(x); p++) {
        double unit = ((double)tp__pixel(x, i, p)[c] - mean[c]) * inverse;
        double d = tp__pixel(dy, i, p)[c] - (beta_grad[c] + unit * gamma_grad[c]) / count;
        tp__pixel(&r->out, i, p)[c] = (float)(gamma[c] * inverse * d);
      }
  }
}

void tp__ref_moving_average(const tp__ref *r)
{
  const float *a = tp__ref_f32(r, 0), *x = tp__ref_f32(r, 1), *step = tp__ref_f32(r, 2);
  const float share = step != NULL && *step == 1 ? 0 : r->node->attr.f[0];
  float *out = r->out.data;
  for (int64_t j = 0; j < r->out.c; j++) out[j] = a[j] * share + x[j] * (1 - share);
}

void tp__ref_sum_squares(const tp__ref *r)
{
  double sum = 0;
  for (int i = 0; i < r->node->n_in; i++) {
    const float *x = tp__ref_f32(r, i);
    for (int64_t j = 0; x != NULL && j < r->in[i].c; j++) sum += (double)x[j] * x[j];
  }
  *(float *)r->out.data = (float)sum;
}

void tp__ref_sum_scalars(const tp__ref *r)
{
  double sum = 0;
  for (int i = 0; i < r->node->n_in; i++)
    if (r->in[i].data != NULL) sum += *tp__ref_f32(r, i);
  *(float *)r->out.data = (float)sum;
}

/* As Keras' clip_by_global_norm: what is not finite stays visible. */
void tp__ref_clip_factor(const tp__ref *r)
{
  double norm = sqrt((double)*tp__ref_f32(r, 0)), most = r->node->attr.f[0];
  *(float *)r->out.data = (float)(most * fmin(1 / norm, 1 / most) + (norm - norm));
}

void tp__ref_scale(const tp__ref *r)
{
  const float *x = tp__ref_f32(r, 0), factor = *tp__ref_f32(r, 1);
  float *out = r->out.data;
  for (int64_t j = 0; j < r->out.c; j++) out[j] = x[j] * factor;
}
