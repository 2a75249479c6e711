/* reference_grads - gradients of the layers; see reference.h
 *
 * Each is written from the side of its result: an input pixel collects from the outputs whose
 * window holds it, a kernel element sums over examples and output pixels.
 */
#include <math.h>
#include <string.h>

#include "reference.h"

double tp__ref_act_slope(tp__act act, double x)
{
  double s = 1 / (1 + exp(-x));
  switch (act) {
  case TP__ACT_SWISH:
    return s * (1 + x * (1 - s));
  case TP__ACT_RELU:
    return x > 0 ? 1 : 0;
  case TP__ACT_RELU6:
    return x > 0 && x < 6 ? 1 : 0;
  case TP__ACT_SIGMOID:
    return s * (1 - s);
  case TP__ACT_NONE:
    break;
  }
  return 1;
}

void tp__ref_activation_grad(const tp__ref *r)
{
  for (int64_t i = 0; i < r->n; i++)
    for (int64_t p = 0; p < tp__pixels(&r->out); p++)
      for (int64_t c = 0; c < r->out.c; c++)
        tp__pixel(&r->out, i, p)[c] =
            (float)(tp__pixel(&r->in[0], i, p)[c] *
                    tp__ref_act_slope(r->node->attr.act, tp__pixel(&r->in[1], i, p)[c]));
}

/* The output coordinate whose window has `in` at kernel position k; -1: there is none. */
static int64_t output_of(int64_t in, int64_t k, int pad, int stride, int64_t size)
{
  int64_t at = in + pad - k;
  return at < 0 || at % stride != 0 || at / stride >= size ? -1 : at / stride;
}

/* One element of the input gradient; a depthwise kernel joins channel c to output channel c only.
 */
static double input_grad_at(const tp__ref *r, int64_t i, int64_t p, int64_t c, bool depthwise)
{
  const tp__attr *a = &r->node->attr;
  const tp__view *dy = &r->in[0];
  const int64_t *dim = r->in[1].shape->dim;
  double sum = 0;
  for (int64_t ky = 0; ky < dim[0]; ky++) {
    int64_t oy = output_of(p / r->out.w, ky, a->pad[0], a->stride, dy->h);
    for (int64_t kx = 0; kx < dim[1] && oy >= 0; kx++) {
      int64_t ox = output_of(p % r->out.w, kx, a->pad[2], a->stride, dy->w);
      if (ox < 0) continue;
      const float *g = tp__pixel(dy, i, oy * dy->w + ox);
      const float *kernel = tp__ref_f32(r, 1) + ((ky * dim[1] + kx) * dim[2] + c) * dim[3];
      if (depthwise) sum += (double)g[c] * kernel[0];
      for (int64_t k = 0; k < dim[3] && !depthwise; k++) sum += (double)g[k] * kernel[k];
    }
  }
  return sum;
}

static void input_grad(const tp__ref *r, bool depthwise)
{
  for (int64_t i = 0; i < r->n; i++)
    for (int64_t p = 0; p < tp__pixels(&r->out); p++)
      for (int64_t c = 0; c < r->out.c; c++)
        tp__pixel(&r->out, i, p)[c] = (float)input_grad_at(r, i, p, c, depthwise);
}

void tp__ref_conv_input_grad(const tp__ref *r)
{
  input_grad(r, false);
}

void tp__ref_depthwise_input_grad(const tp__ref *r)
{
  input_grad(r, true);
}

/* sum over examples and output pixels of x[window position][c] dy[k] */
static double kernel_grad_at(const tp__ref *r, int64_t ky, int64_t kx, int64_t c, int64_t k)
{
  const tp__attr *a = &r->node->attr;
  const tp__view *x = &r->in[0], *dy = &r->in[1];
  double sum = 0;
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t p = 0; p < tp__pixels(dy); p++) {
      int64_t iy = p / dy->w * a->stride + ky - a->pad[0];
      int64_t ix = p % dy->w * a->stride + kx - a->pad[2];
      if (iy < 0 || iy >= x->h || ix < 0 || ix >= x->w) continue;
      sum += (double)tp__pixel(x, i, iy * x->w + ix)[c] * tp__pixel(dy, i, p)[k];
    }
  }
  return sum;
}

static void kernel_grad(const tp__ref *r, bool depthwise)
{
  const int64_t *dim = r->node->shape.dim; /* kh, kw, C, K or 1 */
  float *dk = r->out.data;
  for (int64_t ky = 0; ky < dim[0]; ky++)
    for (int64_t kx = 0; kx < dim[1]; kx++)
      for (int64_t c = 0; c < dim[2]; c++)
        for (int64_t k = 0; k < dim[3]; k++)
          *dk++ += (float)kernel_grad_at(r, ky, kx, c, depthwise ? c : k);
}

void tp__ref_conv_kernel_grad(const tp__ref *r)
{
  kernel_grad(r, false);
}

void tp__ref_depthwise_kernel_grad(const tp__ref *r)
{
  kernel_grad(r, true);
}

void tp__ref_sum_to_last(const tp__ref *r)
{
  const tp__view *dy = &r->in[0];
  for (int64_t c = 0; c < dy->c; c++) {
    double sum = 0;
    for (int64_t i = 0; i < r->n; i++)
      for (int64_t p = 0; p < tp__pixels(dy); p++) sum += tp__pixel(dy, i, p)[c];
    ((float *)r->out.data)[c] += (float)sum;
  }
}

void tp__ref_batch_norm_input_grad(const tp__ref *r)
{
  const float *gamma = tp__ref_f32(r, 1), *variance = tp__ref_f32(r, 2);
  for (int64_t c = 0; c < r->out.c; c++) {
    double factor = gamma[c] / sqrt((double)variance[c] + r->node->attr.f[0]);
    for (int64_t i = 0; i < r->n; i++)
      for (int64_t p = 0; p < tp__pixels(&r->out); p++)
        tp__pixel(&r->out, i, p)[c] = (float)(tp__pixel(&r->in[0], i, p)[c] * factor);
  }
}

void tp__ref_batch_norm_gamma_grad(const tp__ref *r)
{
  const tp__view *x = &r->in[0], *dy = &r->in[1];
  const float *mean = tp__ref_f32(r, 2), *variance = tp__ref_f32(r, 3);
  for (int64_t c = 0; c < x->c; c++) {
    double sum = 0;
    for (int64_t i = 0; i < r->n; i++)
      for (int64_t p = 0; p < tp__pixels(x); p++)
        sum += (double)tp__pixel(dy, i, p)[c] * ((double)tp__pixel(x, i, p)[c] - mean[c]);
    ((float *)r->out.data)[c] += (float)(sum / sqrt((double)variance[c] + r->node->attr.f[0]));
  }
}

void tp__ref_sum_spatial(const tp__ref *r)
{
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t c = 0; c < r->out.c; c++) {
      double sum = 0;
      for (int64_t p = 0; p < tp__pixels(&r->in[0]); p++) sum += tp__pixel(&r->in[0], i, p)[c];
      tp__pixel(&r->out, i, 0)[c] = (float)(sum * r->node->attr.f[0]);
    }
  }
}

void tp__ref_broadcast_spatial(const tp__ref *r)
{
  for (int64_t i = 0; i < r->n; i++)
    for (int64_t p = 0; p < tp__pixels(&r->out); p++)
      for (int64_t c = 0; c < r->out.c; c++)
        tp__pixel(&r->out, i, p)[c] = tp__pixel(&r->in[0], i, 0)[c] * r->node->attr.f[0];
}

void tp__ref_matmul_input_grad(const tp__ref *r)
{
  const float *kernel = tp__ref_f32(r, 1);
  int64_t inputs = r->out.c, outputs = r->in[0].c;
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t j = 0; j < inputs; j++) {
      double sum = 0;
      for (int64_t o = 0; o < outputs; o++)
        sum += (double)tp__pixel(&r->in[0], i, 0)[o] * kernel[j * outputs + o];
      tp__pixel(&r->out, i, 0)[j] = (float)sum;
    }
  }
}

void tp__ref_matmul_kernel_grad(const tp__ref *r)
{
  float *dk = r->out.data;
  for (int64_t j = 0; j < r->in[0].c; j++) {
    for (int64_t o = 0; o < r->in[1].c; o++) {
      double sum = 0;
      for (int64_t i = 0; i < r->n; i++)
        sum += (double)tp__pixel(&r->in[0], i, 0)[j] * tp__pixel(&r->in[1], i, 0)[o];
      *dk++ += (float)sum;
    }
  }
}

void tp__ref_crop(const tp__ref *r)
{
  const tp__view *x = &r->in[0], *y = &r->out;
  int64_t top = r->node->attr.pad[0], left = r->node->attr.pad[2];
  for (int64_t i = 0; i < r->n; i++)
    for (int64_t p = 0; p < tp__pixels(y); p++)
      for (int64_t c = 0; c < y->c; c++)
        tp__pixel(y, i, p)[c] = tp__pixel(x, i, (p / y->w + top) * x->w + p % y->w + left)[c];
}
