/* reference_layers - pixels and layers, forward; see reference.h */
#include <math.h>
#include <string.h>

#include "reference.h"

double tp__ref_act(tp__act act, double x)
{
  switch (act) {
  case TP__ACT_SWISH:
    return x / (1 + exp(-x));
  case TP__ACT_RELU:
    return x > 0 ? x : 0;
  case TP__ACT_RELU6:
    return x > 6 ? 6 : x > 0 ? x : 0;
  case TP__ACT_SIGMOID:
    return 1 / (1 + exp(-x));
  case TP__ACT_NONE:
    break;
  }
  return x;
}

/* attr.flag: one factor and offset per channel (Keras divides by the square root of the colours'
 * deviations).
 */
void tp__ref_affine(const tp__ref *r)
{
  const tp__attr *a = &r->node->attr;
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t p = 0; p < tp__pixels(&r->out); p++) {
      const float *x = tp__pixel(&r->in[0], i, p);
      float *y = tp__pixel(&r->out, i, p);
      for (int64_t c = 0; c < r->out.c; c++)
        y[c] = a->flag ? x[c] * a->f[c] + a->g[c] : x[c] * a->f[0] + a->f[1];
    }
  }
}

void tp__ref_reverse(const tp__ref *r)
{
  int64_t last = r->out.c - 1;
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t p = 0; p < tp__pixels(&r->out); p++) {
      const float *x = tp__pixel(&r->in[0], i, p);
      float *y = tp__pixel(&r->out, i, p);
      for (int64_t c = 0; c <= last; c++) y[c] = x[last - c];
    }
  }
}

static tp__key key_of(const tp__ref *r, int64_t i)
{
  const uint32_t *word = (const uint32_t *)r->in[1].data + i * r->in[1].row;
  return (tp__key){{word[0], word[1]}};
}

void tp__ref_random_flip(const tp__ref *r)
{
  const int64_t w = r->out.w;
  for (int64_t i = 0; i < r->n; i++) {
    const bool flip = tp__flip_of(key_of(r, i));
    for (int64_t p = 0; p < tp__pixels(&r->out); p++) {
      const int64_t from = flip ? p - p % w + w - 1 - p % w : p;
      memcpy(tp__pixel(&r->out, i, p), tp__pixel(&r->in[0], i, from),
             (size_t)r->out.c * sizeof(float));
    }
  }
}

void tp__ref_random_rotation(const tp__ref *r)
{
  const tp__attr *a = &r->node->attr;
  const tp__view *x = &r->in[0];
  const int h = (int)x->h, w = (int)x->w;
  tp__warp warp = {.h = h,
                   .w = w,
                   .ow = w,
                   .channels = (int)x->c,
                   .pitch = (int)x->pitch,
                   .fill = a->fill,
                   .fill_value = a->f[1]};
  for (int64_t i = 0; i < r->n; i++) {
    float matrix[8];
    tp__turn_matrix(tp__turn_of(a->f[0], key_of(r, i)), h, w, matrix);
    memcpy(warp.matrix, matrix, sizeof warp.matrix);
    warp.in_float = tp__pixel(x, i, 0);
    for (int p = 0; p < h * w; p++)
      tp__warp_pixel(&warp, p % w, p / w, true, tp__pixel(&r->out, i, p));
  }
}

/* Keras' Normalization: the deviation is at least Keras' epsilon. */
void tp__ref_normalize(const tp__ref *r)
{
  const float *mean = tp__ref_f32(r, 1), *variance = tp__ref_f32(r, 2);
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t p = 0; p < tp__pixels(&r->out); p++) {
      const float *x = tp__pixel(&r->in[0], i, p);
      float *y = tp__pixel(&r->out, i, p);
      for (int64_t c = 0; c < r->out.c; c++)
        y[c] = (x[c] - mean[c]) / fmaxf(sqrtf(variance[c]), 1e-7f);
    }
  }
}

void tp__ref_pad(const tp__ref *r)
{
  const tp__view *x = &r->in[0], *y = &r->out;
  int64_t top = r->node->attr.pad[0], left = r->node->attr.pad[2];
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t p = 0; p < tp__pixels(y); p++) {
      int64_t iy = p / y->w - top, ix = p % y->w - left;
      bool inside = iy >= 0 && iy < x->h && ix >= 0 && ix < x->w;
      for (int64_t c = 0; c < y->c; c++)
        tp__pixel(y, i, p)[c] = inside ? tp__pixel(x, i, iy * x->w + ix)[c] : 0;
    }
  }
}

/* One output of a convolution: the sum over the window and the input channels, without the bias. */
static double conv_at(const tp__ref *r, int64_t i, int64_t oy, int64_t ox, int64_t k)
{
  const tp__attr *a = &r->node->attr;
  const tp__view *x = &r->in[0];
  const int64_t *dim = r->in[1].shape->dim; /* kh, kw, C, K */
  const float *scale = r->in[4].data != NULL ? tp__pixel(&r->in[4], i, 0) : NULL;
  double sum = 0;
  for (int64_t ky = 0; ky < dim[0]; ky++) {
    for (int64_t kx = 0; kx < dim[1]; kx++) {
      int64_t iy = oy * a->stride + ky - a->pad[0], ix = ox * a->stride + kx - a->pad[2];
      if (iy < 0 || iy >= x->h || ix < 0 || ix >= x->w) continue;
      const float *pixel = tp__pixel(x, i, iy * x->w + ix);
      const float *kernel = tp__ref_f32(r, 1) + (ky * dim[1] + kx) * dim[2] * dim[3] + k;
      for (int64_t c = 0; c < dim[2]; c++)
        sum += (double)(scale != NULL ? pixel[c] * scale[c] : pixel[c]) * kernel[c * dim[3]];
    }
  }
  return sum;
}

void tp__ref_conv(const tp__ref *r)
{
  const tp__view *y = &r->out;
  const tp__attr *a = &r->node->attr;
  const float *bias = tp__ref_f32(r, 2);
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t p = 0; p < tp__pixels(y); p++) {
      for (int64_t k = 0; k < y->c; k++) {
        double sum = conv_at(r, i, p / y->w, p % y->w, k) + (bias != NULL ? bias[k] : 0);
        double more = r->in[3].data != NULL ? tp__pixel(&r->in[3], i, p)[k] : 0;
        double value = a->flag ? tp__ref_act(a->act, sum + more) : tp__ref_act(a->act, sum) + more;
        tp__pixel(y, i, p)[k] = (float)value;
      }
    }
  }
}

static double depthwise_at(const tp__ref *r, int64_t i, int64_t oy, int64_t ox, int64_t c)
{
  const tp__attr *a = &r->node->attr;
  const tp__view *x = &r->in[0];
  const int64_t *dim = r->in[1].shape->dim; /* kh, kw, C, 1 */
  double sum = 0;
  for (int64_t ky = 0; ky < dim[0]; ky++) {
    for (int64_t kx = 0; kx < dim[1]; kx++) {
      int64_t iy = oy * a->stride + ky - a->pad[0], ix = ox * a->stride + kx - a->pad[2];
      if (iy < 0 || iy >= x->h || ix < 0 || ix >= x->w) continue;
      sum += (double)tp__pixel(x, i, iy * x->w + ix)[c] *
             tp__ref_f32(r, 1)[(ky * dim[1] + kx) * dim[2] + c];
    }
  }
  return sum;
}

void tp__ref_depthwise(const tp__ref *r)
{
  const tp__view *y = &r->out;
  const float *bias = tp__ref_f32(r, 2);
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t p = 0; p < tp__pixels(y); p++) {
      for (int64_t c = 0; c < y->c; c++) {
        double sum = depthwise_at(r, i, p / y->w, p % y->w, c) + (bias != NULL ? bias[c] : 0);
        tp__pixel(y, i, p)[c] = (float)tp__ref_act(r->node->attr.act, sum);
      }
    }
  }
}

void tp__ref_bias_add(const tp__ref *r)
{
  const float *bias = tp__ref_f32(r, 1);
  for (int64_t i = 0; i < r->n; i++)
    for (int64_t p = 0; p < tp__pixels(&r->out); p++)
      for (int64_t c = 0; c < r->out.c; c++)
        tp__pixel(&r->out, i, p)[c] = tp__pixel(&r->in[0], i, p)[c] + bias[c];
}

/* Inference mode: the statistics are operands. */
void tp__ref_batch_norm(const tp__ref *r)
{
  const float *gamma = tp__ref_f32(r, 1), *beta = tp__ref_f32(r, 2), *mean = tp__ref_f32(r, 3);
  const float *variance = tp__ref_f32(r, 4);
  for (int64_t c = 0; c < r->out.c; c++) {
    double factor = gamma[c] / sqrt((double)variance[c] + r->node->attr.f[0]);
    for (int64_t i = 0; i < r->n; i++)
      for (int64_t p = 0; p < tp__pixels(&r->out); p++)
        tp__pixel(&r->out, i, p)[c] = (float)tp__ref_act(
            r->node->attr.act, (tp__pixel(&r->in[0], i, p)[c] - mean[c]) * factor + beta[c]);
  }
}

void tp__ref_activation(const tp__ref *r)
{
  for (int64_t i = 0; i < r->n; i++)
    for (int64_t p = 0; p < tp__pixels(&r->out); p++)
      for (int64_t c = 0; c < r->out.c; c++)
        tp__pixel(&r->out, i, p)[c] =
            (float)tp__ref_act(r->node->attr.act, tp__pixel(&r->in[0], i, p)[c]);
}

void tp__ref_add(const tp__ref *r)
{
  for (int64_t i = 0; i < r->n; i++)
    for (int64_t p = 0; p < tp__pixels(&r->out); p++)
      for (int64_t c = 0; c < r->out.c; c++)
        tp__pixel(&r->out, i, p)[c] = tp__pixel(&r->in[0], i, p)[c] + tp__pixel(&r->in[1], i, p)[c];
}

/* b may be [N,1,1,C]: the same factor at every pixel. */
void tp__ref_mul(const tp__ref *r)
{
  int64_t step = tp__pixels(&r->in[1]) == tp__pixels(&r->out) ? 1 : 0;
  for (int64_t i = 0; i < r->n; i++)
    for (int64_t p = 0; p < tp__pixels(&r->out); p++)
      for (int64_t c = 0; c < r->out.c; c++)
        tp__pixel(&r->out, i, p)[c] =
            tp__pixel(&r->in[0], i, p)[c] * tp__pixel(&r->in[1], i, p * step)[c];
}

void tp__ref_global_pool(const tp__ref *r)
{
  int64_t pixels = tp__pixels(&r->in[0]);
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t c = 0; c < r->out.c; c++) {
      double sum = 0;
      for (int64_t p = 0; p < pixels; p++) sum += tp__pixel(&r->in[0], i, p)[c];
      tp__pixel(&r->out, i, 0)[c] = (float)(sum / (double)pixels);
    }
  }
}

void tp__ref_reshape(const tp__ref *r)
{
  const tp__view *x = &r->in[0], *y = &r->out;
  for (int64_t i = 0; i < r->n; i++)
    for (int64_t j = 0; j < tp__pixels(y) * y->c; j++)
      tp__pixel(y, i, j / y->c)[j % y->c] = tp__pixel(x, i, j / x->c)[j % x->c];
}

void tp__ref_matmul(const tp__ref *r)
{
  const float *kernel = tp__ref_f32(r, 1), *bias = tp__ref_f32(r, 2);
  int64_t inputs = r->in[0].c, outputs = r->out.c;
  for (int64_t i = 0; i < r->n; i++) {
    const float *x = tp__pixel(&r->in[0], i, 0);
    for (int64_t o = 0; o < outputs; o++) {
      double sum = bias != NULL ? bias[o] : 0;
      for (int64_t j = 0; j < inputs; j++) sum += (double)x[j] * kernel[j * outputs + o];
      tp__pixel(&r->out, i, 0)[o] = (float)tp__ref_act(r->node->attr.act, sum);
    }
  }
}
