/* reference_pools - pooling, channels put together, and their gradients; see reference.h */
#include <string.h>

#include "reference.h"

/* Position t of a window over x: the pixel, -1 where it lies in the padding. */
static int64_t pixel_of(const tp__attr *a, const tp__view *x, const tp__view *y, int64_t p,
                        int64_t t)
{
  int64_t iy = p / y->w * a->stride + t / a->window - a->pad[0];
  int64_t ix = p % y->w * a->stride + t % a->window - a->pad[2];
  return iy >= 0 && iy < x->h && ix >= 0 && ix < x->w ? iy * x->w + ix : -1;
}

static float value_at(const tp__view *x, int64_t i, int64_t pixel, int64_t c)
{
  return pixel < 0 ? 0 : tp__pixel(x, i, pixel)[c];
}

/* The first of the largest numbers of a window; where: its pixel. */
static float largest(const tp__attr *a, const tp__view *x, const tp__view *y, int64_t i, int64_t p,
                     int64_t c, int64_t *where)
{
  *where = pixel_of(a, x, y, p, 0);
  float most = value_at(x, i, *where, c);
  for (int64_t t = 1; t < (int64_t)a->window * a->window; t++) {
    int64_t pixel = pixel_of(a, x, y, p, t);
    float value = value_at(x, i, pixel, c);
    if (value > most) most = value, *where = pixel;
  }
  return most;
}

void tp__ref_max_pool(const tp__ref *r)
{
  int64_t where = 0;
  for (int64_t i = 0; i < r->n; i++)
    for (int64_t p = 0; p < tp__pixels(&r->out); p++)
      for (int64_t c = 0; c < r->out.c; c++)
        tp__pixel(&r->out, i, p)[c] = largest(&r->node->attr, &r->in[0], &r->out, i, p, c, &where);
}

void tp__ref_avg_pool(const tp__ref *r)
{
  const tp__attr *a = &r->node->attr;
  const int64_t taps = (int64_t)a->window * a->window;
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t p = 0; p < tp__pixels(&r->out); p++) {
      for (int64_t c = 0; c < r->out.c; c++) {
        double sum = 0;
        for (int64_t t = 0; t < taps; t++)
          sum += value_at(&r->in[0], i, pixel_of(a, &r->in[0], &r->out, p, t), c);
        tp__pixel(&r->out, i, p)[c] = (float)(sum / (double)taps);
      }
    }
  }
}

static void set_zero(const tp__ref *r)
{
  for (int64_t i = 0; i < r->n; i++)
    for (int64_t p = 0; p < tp__pixels(&r->out); p++)
      memset(tp__pixel(&r->out, i, p), 0, (size_t)r->out.c * sizeof(float));
}

/* dy goes to the first of the largest, as in TensorFlow on a CPU; what the padding wins is lost. */
void tp__ref_max_pool_grad(const tp__ref *r)
{
  const tp__view *dy = &r->in[0];
  set_zero(r);
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t p = 0; p < tp__pixels(dy); p++) {
      for (int64_t c = 0; c < dy->c; c++) {
        int64_t where = 0;
        (void)largest(&r->node->attr, &r->in[1], dy, i, p, c, &where);
        if (where >= 0) tp__pixel(&r->out, i, where)[c] += tp__pixel(dy, i, p)[c];
      }
    }
  }
}

void tp__ref_avg_pool_grad(const tp__ref *r)
{
  const tp__view *dy = &r->in[0];
  const tp__attr *a = &r->node->attr;
  const int64_t taps = (int64_t)a->window * a->window;
  const float share = 1 / (float)taps;
  set_zero(r);
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t p = 0; p < tp__pixels(dy); p++) {
      for (int64_t t = 0; t < taps; t++) {
        int64_t pixel = pixel_of(a, &r->out, dy, p, t);
        for (int64_t c = 0; c < dy->c && pixel >= 0; c++)
          tp__pixel(&r->out, i, pixel)[c] += tp__pixel(dy, i, p)[c] * share;
      }
    }
  }
}

void tp__ref_concat(const tp__ref *r)
{
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t p = 0; p < tp__pixels(&r->out); p++) {
      float *y = tp__pixel(&r->out, i, p);
      for (int64_t c = 0; c < r->in[0].c; c++) y[c] = tp__pixel(&r->in[0], i, p)[c];
      for (int64_t c = 0; c < r->in[1].c; c++) y[r->in[0].c + c] = tp__pixel(&r->in[1], i, p)[c];
    }
  }
}

void tp__ref_slice_channels(const tp__ref *r)
{
  for (int64_t i = 0; i < r->n; i++)
    for (int64_t p = 0; p < tp__pixels(&r->out); p++)
      for (int64_t c = 0; c < r->out.c; c++)
        tp__pixel(&r->out, i, p)[c] = tp__pixel(&r->in[0], i, p)[r->node->attr.first + c];
}
