/* reference_update - shared arithmetic: folding batch norm, Adam and SGD as Keras 3 defines them;
 * see reference.h
 *
 * Any out may be the same memory as the operand it updates. The element range is the view's:
 * callers may cut a parameter into blocks.
 */
#include <math.h>

#include "reference.h"

static double inverse_deviation(float variance, float epsilon)
{
  return 1 / sqrt((double)variance + epsilon);
}

/* kernel [kh,kw,C,K] by output channel, depthwise kernel [kh,kw,C,1] by channel: in both the
 * fastest one. */
void tp__ref_fold_kernel(const tp__ref *r)
{
  const float *kernel = tp__ref_f32(r, 0), *gamma = tp__ref_f32(r, 1),
              *variance = tp__ref_f32(r, 2);
  float *out = r->out.data;
  int64_t channels = r->in[1].c;
  for (int64_t j = 0; j < r->out.c; j++) {
    int64_t c = j % channels;
    out[j] = (float)(kernel[j] * gamma[c] * inverse_deviation(variance[c], r->node->attr.f[0]));
  }
}

void tp__ref_fold_bias(const tp__ref *r)
{
  const float *gamma = tp__ref_f32(r, 0), *beta = tp__ref_f32(r, 1), *mean = tp__ref_f32(r, 2);
  const float *variance = tp__ref_f32(r, 3), *bias = tp__ref_f32(r, 4);
  float *out = r->out.data;
  for (int64_t c = 0; c < r->out.c; c++) {
    double centred = (double)(bias != NULL ? bias[c] : 0) - mean[c];
    out[c] =
        (float)(beta[c] + centred * gamma[c] * inverse_deviation(variance[c], r->node->attr.f[0]));
  }
}

void tp__ref_adam_m(const tp__ref *r)
{
  const float *m = tp__ref_f32(r, 0), *g = tp__ref_f32(r, 1);
  float *out = r->out.data, beta = r->node->attr.f[0];
  for (int64_t j = 0; j < r->out.c; j++) out[j] = m[j] + (g[j] - m[j]) * (1 - beta);
}

void tp__ref_adam_v(const tp__ref *r)
{
  const float *v = tp__ref_f32(r, 0), *g = tp__ref_f32(r, 1);
  float *out = r->out.data, beta = r->node->attr.f[0];
  for (int64_t j = 0; j < r->out.c; j++) out[j] = v[j] + (g[j] * g[j] - v[j]) * (1 - beta);
}

/* The bias corrections are one factor on the rate: epsilon stays outside them. */
void tp__ref_adam_param(const tp__ref *r)
{
  const float *p = tp__ref_f32(r, 0), *m = tp__ref_f32(r, 1), *v = tp__ref_f32(r, 2);
  const float *f = r->node->attr.f;
  float *out = r->out.data;
  double step = *tp__ref_f32(r, 4);
  double rate = *tp__ref_f32(r, 3) * sqrt(1 - pow(f[1], step)) / (1 - pow(f[0], step));
  float decay = *tp__ref_f32(r, 3) * r->node->attr.g[0];
  for (int64_t j = 0; j < r->out.c; j++)
    out[j] = p[j] - p[j] * decay - (float)rate * m[j] / (sqrtf(v[j]) + f[2]);
}

void tp__ref_sgd_momentum(const tp__ref *r)
{
  const float *velocity = tp__ref_f32(r, 0), *g = tp__ref_f32(r, 1), rate = *tp__ref_f32(r, 2);
  float *out = r->out.data;
  for (int64_t j = 0; j < r->out.c; j++) out[j] = r->node->attr.f[0] * velocity[j] - rate * g[j];
}

void tp__ref_sgd_param(const tp__ref *r)
{
  const float *p = tp__ref_f32(r, 0), *velocity = tp__ref_f32(r, 1), *g = tp__ref_f32(r, 2);
  float *out = r->out.data;
  float rate = r->in[3].data != NULL ? *tp__ref_f32(r, 3) : 0, decay = rate * r->node->attr.g[0];
  if (!r->node->attr.flag) {
    for (int64_t j = 0; j < r->out.c; j++) out[j] = p[j] - p[j] * decay + velocity[j];
    return;
  }
  for (int64_t j = 0; j < r->out.c; j++)
    out[j] = p[j] - p[j] * decay + r->node->attr.f[0] * velocity[j] - rate * g[j];
}
