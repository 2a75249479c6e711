/* Pooling over windows of one example and its gradients, vector after vector of channels; see
 * kernels.h. Zeros around the image take part: a window that leaves it starts from zero.
 */
#include "backend/cpu/family.h"

#include "backend/cpu/vec.h"

/* The part of a window that lies inside the image: rows and columns of x. */
typedef struct window {
  int top, left, y0, y1, x0, x1;
  bool whole;
} window;

static int least(int a, int b)
{
  return a < b ? a : b;
}
static int most(int a, int b)
{
  return a > b ? a : b;
}

static window window_at(const tp__pooling *v, int oy, int ox)
{
  window w = {.top = oy * v->stride - v->pad_top, .left = ox * v->stride - v->pad_left};
  w.y0 = most(w.top, 0);
  w.y1 = least(w.top + v->window, v->h);
  w.x0 = most(w.left, 0);
  w.x1 = least(w.left + v->window, v->w);
  w.whole = w.y1 - w.y0 == v->window && w.x1 - w.x0 == v->window;
  if (w.y1 <= w.y0 || w.x1 <= w.x0) w.y1 = w.y0, w.x1 = w.x0;
  return w;
}

static const float *pixel_at(const tp__pooling *v, int y, int x)
{
  return v->x + ((long)y * v->w + x) * v->x_pitch;
}

/* Expands DO() for each pixel (y, x) of window w. */
#define EACH_PIXEL(w)                                                                              \
  for (int y = (w).y0; y < (w).y1; y++)                                                            \
    for (int x = (w).x0; x < (w).x1; x++)

void TP__FN(max_pool)(const tp__pooling *v)
{
  float *to = v->y;
  for (int oy = 0; oy < v->oh; oy++) {
    for (int ox = 0; ox < v->ow; ox++, to += v->y_pitch) {
      const window w = window_at(v, oy, ox);
      for (int c = 0; c < v->c; c += TP__V) {
        tp__vec largest = w.whole ? tp__load(pixel_at(v, w.y0, w.x0) + c) : tp__zero();
        EACH_PIXEL(w) largest = tp__max(tp__load(pixel_at(v, y, x) + c), largest);
        tp__store(to + c, largest);
      }
    }
  }
}

void TP__FN(avg_pool)(const tp__pooling *v)
{
  const tp__vec taps = tp__all((float)v->window * (float)v->window);
  float *to = v->y;
  for (int oy = 0; oy < v->oh; oy++) {
    for (int ox = 0; ox < v->ow; ox++, to += v->y_pitch) {
      const window w = window_at(v, oy, ox);
      for (int c = 0; c < v->c; c += TP__V) {
        tp__vec sum = tp__zero();
        EACH_PIXEL(w) sum += tp__load(pixel_at(v, y, x) + c);
        tp__store(to + c, sum / taps);
      }
    }
  }
}

TP__INLINE tp__ivec choose(tp__ivec mask, tp__ivec a, tp__ivec b)
{
  return (a & mask) | (b & ~mask);
}

/* Which position of the window is the first of the largest. Those in the padding count as zeros;
 * they come before, between and behind the others, so all are visited. */
TP__INLINE tp__ivec first_largest(const tp__pooling *v, const window *w, int c)
{
  tp__vec largest = tp__zero();
  tp__ivec where = {0};
  for (int t = 0, ky = 0; ky < v->window; ky++) {
    for (int kx = 0; kx < v->window; kx++, t++) {
      const int y = w->top + ky, x = w->left + kx;
      const bool inside = y >= 0 && y < v->h && x >= 0 && x < v->w;
      const tp__vec value = inside ? tp__load(pixel_at(v, y, x) + c) : tp__zero();
      const tp__ivec above = t == 0 ? ~(tp__ivec){0} : (tp__ivec)(value > largest);
      largest = (tp__vec)choose(above, (tp__ivec)value, (tp__ivec)largest);
      where = choose(above, t - (tp__ivec){0}, where);
    }
  }
  return where;
}

void TP__FN(max_pool_grad)(const tp__pooling *v, const float *dy, float *dx)
{
  const long pitch = tp__pitch(v->c);
  memset(dx, 0, (size_t)(v->h * v->w * pitch) * sizeof(float));
  for (int oy = 0; oy < v->oh; oy++) {
    for (int ox = 0; ox < v->ow; ox++, dy += pitch) {
      const window w = window_at(v, oy, ox);
      for (int c = 0; c < v->c; c += TP__V) {
        const tp__ivec where = first_largest(v, &w, c);
        const tp__vec d = tp__load(dy + c);
        EACH_PIXEL(w)
        {
          float *at = dx + ((long)y * v->w + x) * pitch + c;
          const int t = (y - w.top) * v->window + x - w.left;
          const tp__ivec mine = where == t;
          tp__store(at, tp__load(at) + (tp__vec)((tp__ivec)d & mine));
        }
      }
    }
  }
}

void TP__FN(avg_pool_grad)(const tp__pooling *v, const float *dy, float *dx)
{
  const long pitch = tp__pitch(v->c);
  const tp__vec share = tp__all(1 / ((float)v->window * (float)v->window));
  memset(dx, 0, (size_t)(v->h * v->w * pitch) * sizeof(float));
  for (int oy = 0; oy < v->oh; oy++) {
    for (int ox = 0; ox < v->ow; ox++, dy += pitch) {
      const window w = window_at(v, oy, ox);
      for (int c = 0; c < v->c; c += TP__V) {
        const tp__vec d = tp__load(dy + c) * share;
        EACH_PIXEL(w)
        {
          float *at = dx + ((long)y * v->w + x) * pitch + c;
          tp__store(at, tp__load(at) + d);
        }
      }
    }
  }
}
