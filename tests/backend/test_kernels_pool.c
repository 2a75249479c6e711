/* Proves that pooling, its gradients and batch norm in one pass equal plain loops at every kind of
 * border, at pitches of their own, for every instruction set, and that padding channels (NaN here)
 * reach no result and nothing is written beside it. Expected numbers: the definitions, in order;
 * they must agree in every bit but for the mean's sum, which baseline machines add alike, too.
 * Hostile shapes: windows larger than the image, windows in the padding alone, equal pixels.
 */
#include "kernel_testing.h"

typedef struct shape {
  int h, w, c, window, stride;
  int top, bottom, left, right; /* padding */
  long x_more, y_more;          /* of the pitches */
} shape;

static const shape shapes[] = {
    {12, 12, 64, 3, 2, 1, 1, 1, 1, 0, 0},  {13, 10, 20, 3, 2, 1, 1, 1, 1, 16, 32},
    {12, 14, 33, 2, 2, 0, 0, 0, 0, 0, 48}, {7, 9, 16, 3, 1, 0, 0, 0, 0, 160, 0},
    {9, 8, 5, 2, 3, 0, 1, 1, 0, 0, 0},     {5, 5, 3, 5, 1, 4, 4, 4, 4, 0, 0},
    {1, 1, 1, 1, 1, 2, 0, 0, 2, 0, 0},     {2, 3, 7, 4, 1, 3, 1, 0, 2, 16, 16},
    {6, 6, 17, 1, 2, 0, 0, 0, 0, 0, 0},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static tp__pooling geometry(const shape *s)
{
  return (tp__pooling){.h = s->h,
                       .w = s->w,
                       .c = s->c,
                       .oh = (s->h + s->top + s->bottom - s->window) / s->stride + 1,
                       .ow = (s->w + s->left + s->right - s->window) / s->stride + 1,
                       .window = s->window,
                       .stride = s->stride,
                       .pad_top = s->top,
                       .pad_left = s->left,
                       .x_pitch = tp__pitch(s->c) + s->x_more,
                       .y_pitch = tp__pitch(s->c) + s->y_more};
}

/* The pixel at position t of output o's window; -1 in the padding. */
static long pixel_of(const tp__pooling *v, long o, int t)
{
  int y = (int)(o / v->ow) * v->stride - v->pad_top + t / v->window;
  int x = (int)(o % v->ow) * v->stride - v->pad_left + t % v->window;
  return y >= 0 && y < v->h && x >= 0 && x < v->w ? (long)y * v->w + x : -1;
}

static float value_of(const tp__pooling *v, long o, int t, int c)
{
  long p = pixel_of(v, o, t);
  return p < 0 ? 0 : v->x[p * v->x_pitch + c];
}

static int first_largest(const tp__pooling *v, long o, int c)
{
  int where = 0;
  for (int t = 1; t < v->window * v->window; t++)
    if (value_of(v, o, t, c) > value_of(v, o, where, c)) where = t;
  return where;
}

static float mean_of(const tp__pooling *v, long o, int c)
{
  float sum = 0;
  for (int t = 0; t < v->window * v->window; t++) sum += value_of(v, o, t, c);
  return sum / ((float)v->window * (float)v->window);
}

/* Steps of a quarter, so that pixels are often equal. */
static float *coarse_rows(uint32_t stream, long rows, long columns, long pitch)
{
  float *x = random_rows(stream, rows, columns, pitch, NAN);
  for (long i = 0; i < rows * pitch; i++)
    if (!isnan(x[i])) x[i] = rintf(x[i] * 4) / 4;
  return x;
}

static float *filled(size_t count, float value)
{
  float *p = floats(count);
  for (size_t i = 0; i < count; i++) p[i] = value;
  return p;
}

static void check_outputs(const tp__pooling *v, bool largest, const char *what)
{
  for (long o = 0; o < (long)v->oh * v->ow; o++) {
    for (int c = 0; c < v->c; c++) {
      float want = largest ? value_of(v, o, first_largest(v, o, c), c) : mean_of(v, o, c);
      float got = v->y[o * v->y_pitch + c];
      if (got != want)
        fail_msg("%s: output %ld channel %d: got %a, wanted %a", what, o, c, (double)got,
                 (double)want);
    }
    for (long c = tp__pitch(v->c); c < v->y_pitch; c++)
      if (v->y[o * v->y_pitch + c] != 77) fail_msg("%s: written beside output %ld", what, o);
  }
}

static void forward(void **state)
{
  (void)state;
  const tables t = usable_tables();
  for (int i = 0; i < SHAPES * t.count; i++) {
    const tp__kernels *k = t.table[i % t.count];
    tp__pooling v = geometry(&shapes[i / t.count]);
    char what[64];
    float *x = coarse_rows(1, (long)v.h * v.w, v.c, v.x_pitch);
    v.x = x;
    for (int largest = 0; largest < 2; largest++) {
      v.y = filled((size_t)((long)v.oh * v.ow * v.y_pitch), 77);
      snprintf(what, sizeof what, "%s pool, %s, case %d", largest ? "max" : "average", k->name,
               i / t.count);
      (largest ? k->max_pool : k->avg_pool)(&v);
      check_outputs(&v, largest, what);
      free(v.y);
    }
    free(x);
  }
}

/* What the gradient should be: outputs in order. */
static void spread(const tp__pooling *v, bool largest, const float *dy, float *dx)
{
  const long pitch = tp__pitch(v->c);
  const float share = 1 / ((float)v->window * (float)v->window);
  for (long o = 0; o < (long)v->oh * v->ow; o++) {
    for (int c = 0; c < v->c; c++) {
      for (int t = 0; t < v->window * v->window; t++) {
        long p = pixel_of(v, o, t);
        if (p < 0 || (largest && t != first_largest(v, o, c))) continue;
        dx[p * pitch + c] += largest ? dy[o * pitch + c] : dy[o * pitch + c] * share;
      }
    }
  }
}

static void gradients(void **state)
{
  (void)state;
  const tables t = usable_tables();
  for (int i = 0; i < SHAPES * t.count; i++) {
    const tp__kernels *k = t.table[i % t.count];
    tp__pooling v = geometry(&shapes[i / t.count]);
    const long pitch = tp__pitch(v.c), pixels = (long)v.h * v.w;
    float *x = coarse_rows(1, pixels, v.c, v.x_pitch),
          *dy = random_rows(2, (long)v.oh * v.ow, v.c, pitch, NAN);
    v.x = x;
    for (int largest = 0; largest < 2; largest++) {
      float *dx = filled((size_t)(pixels * pitch), NAN), *want = floats((size_t)(pixels * pitch));
      (largest ? k->max_pool_grad : k->avg_pool_grad)(&v, dy, dx);
      spread(&v, largest, dy, want);
      for (long p = 0; p < pixels; p++)
        for (int c = 0; c < v.c; c++)
          if (dx[p * pitch + c] != want[p * pitch + c])
            fail_msg("%s pool's gradient, %s, case %d: pixel %ld channel %d: got %a, wanted %a",
                     largest ? "max" : "average", k->name, i / t.count, p, c,
                     (double)dx[p * pitch + c], (double)want[p * pitch + c]);
      free(dx);
      free(want);
    }
    free(x);
    free(dy);
  }
}

static void norms(void **state)
{
  (void)state;
  const tables t = usable_tables();
  static const long channels[] = {1, 3, 16, 17, 40, 64};
  static const tp__act acts[] = {TP__ACT_NONE, TP__ACT_RELU, TP__ACT_RELU6, TP__ACT_SWISH};
  enum { PIXELS = 7 };
  for (int i = 0; i < 6 * 4 * t.count; i++) {
    const tp__kernels *k = t.table[i % t.count];
    const long c = channels[i / t.count % 6], pitch = tp__pitch(c), wide = pitch + 32;
    float *x = random_rows(1, PIXELS, c, wide, NAN), *scale = random_floats(2, (size_t)c),
          *shift = random_floats(3, (size_t)c), *y = filled((size_t)(PIXELS * wide), 77);
    tp__norm v = {.pixels = PIXELS,
                  .c = c,
                  .x = x,
                  .x_pitch = wide,
                  .scale = scale,
                  .shift = shift,
                  .y = y,
                  .y_pitch = wide,
                  .act = acts[i / t.count / 6]};
    k->norm(&v);
    for (long p = 0; p < PIXELS; p++) {
      for (long j = 0; j < c; j++) {
        chain s = chain_from(is_fused(k), shift[j]);
        chain_add(&s, x[p * wide + j], scale[j]);
        assert_chain(&s, v.act, NULL, y[p * wide + j], k->name, p, j);
      }
      for (long j = pitch; j < wide; j++) assert_true(y[p * wide + j] == 77);
    }
    free(x);
    free(scale);
    free(shift);
    free(y);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forward),
      cmocka_unit_test(gradients),
      cmocka_unit_test(norms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
