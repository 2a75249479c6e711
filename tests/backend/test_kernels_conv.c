/* Proves that convolutions, depthwise convolutions and their gradients equal plain loops at every
 * kind of border, for every instruction set, in every bit of the promised chain, and that padding
 * channels (NaN here) reach no result. Expected numbers: see kernel_testing.h. Hostile shapes:
 * images smaller than the kernel, output rows that lie in the padding alone.
 */
#include "kernel_testing.h"

typedef struct shape {
  int h, w, c, n, kh, kw, stride;
  int top, bottom, left, right; /* padding */
  int act;                      /* + LAST: after the residual */
  bool bias, residual;
  long x_pitch;
} shape;
enum { LAST = 16 };

static int output_of(int size, int before, int after, int k, int stride)
{
  return (size + before + after - k) / stride + 1;
}

static const float *pixel_of(const float *x, const tp__conv *v, int y, int xx)
{
  bool inside = y >= 0 && y < v->h && xx >= 0 && xx < v->w;
  return inside ? x + ((long)y * v->w + xx) * v->x_pitch : NULL;
}

static void check_conv_outputs(const tp__kernels *k, const tp__conv *v, const float *kernel,
                               const char *what)
{
  const long pitch = tp__pitch(v->n);
  for (long o = 0; o < (long)v->oh * v->ow; o++)
    for (int j = 0; j < v->n; j++) {
      chain c = chain_of(k, v->bias != NULL ? v->bias[j] : 0);
      for (int ky = 0; ky < v->kh; ky++)
        for (int kx = 0; kx < v->kw; kx++) {
          const float *x = pixel_of(v->x, v, (int)(o / v->ow) * v->stride - v->pad_top + ky,
                                    (int)(o % v->ow) * v->stride - v->pad_left + kx);
          for (int q = 0; q < v->c; q++)
            chain_add(&c, x != NULL ? x[q] : 0,
                      kernel[(((long)ky * v->kw + kx) * v->c + q) * v->n + j]);
        }
      assert_chain_last(&c, v->act, v->act_last,
                        v->residual != NULL ? v->residual + o * pitch + j : NULL,
                        v->y[o * pitch + j], what, o, j);
    }
}

static void check_conv(const tables *t, const shape *s)
{
  char what[120];
  const int oh = output_of(s->h, s->top, s->bottom, s->kh, s->stride);
  const int ow = output_of(s->w, s->left, s->right, s->kw, s->stride);
  const long pixels = (long)oh * ow, pitch = tp__pitch(s->n);
  float *x = random_rows(1, (long)s->h * s->w, s->c, s->x_pitch, NAN);
  float *kernel = random_floats(2, (size_t)s->kh * (size_t)s->kw * (size_t)s->c * (size_t)s->n);
  float *bias = random_rows(3, 1, s->n, pitch, 0),
        *residual = random_rows(4, pixels, s->n, pitch, NAN);
  same_bits same = {NULL};
  for (int i = 0; i < t->count; i++) {
    const tp__kernels *k = t->table[i];
    snprintf(what, sizeof what, "conv %s %dx%dx%d %dx%d stride %d -> %d", k->name, s->h, s->w, s->c,
             s->kh, s->kw, s->stride, s->n);
    float *packed = floats(k->packed_conv(s->kh, s->kw, s->c, s->n));
    k->pack_conv(kernel, s->kh, s->kw, s->c, s->n, packed);
    tp__conv v = {.h = s->h,
                  .w = s->w,
                  .c = s->c,
                  .oh = oh,
                  .ow = ow,
                  .n = s->n,
                  .kh = s->kh,
                  .kw = s->kw,
                  .stride = s->stride,
                  .pad_top = s->top,
                  .pad_left = s->left,
                  .x = x,
                  .x_pitch = s->x_pitch,
                  .packed = packed,
                  .bias = s->bias ? bias : NULL,
                  .y = floats((size_t)(pixels * pitch)),
                  .y_pitch = pitch,
                  .residual = s->residual ? residual : NULL,
                  .act = (tp__act)(s->act % LAST),
                  .act_last = s->act >= LAST};
    size_t scratch = k->conv_scratch(&v);
    v.scratch = floats(scratch);
    for (size_t j = 0; j < scratch; j++) v.scratch[j] = NAN;
    k->conv(&v);
    check_conv_outputs(k, &v, kernel, what);
    assert_same_bits(&same, k, v.y, pixels, s->n, pitch, what);
    free(packed);
    free(v.y);
    free(v.scratch);
  }
  same_bits_end(&same);
  free(x);
  free(kernel);
  free(bias);
  free(residual);
}

static void convs(void **state)
{
  (void)state;
  const tables t = usable_tables();
  /* clang-format off */
  static const shape shapes[] = {
      /* h  w  c  n   k    stride  padding        act               bias  residual x_pitch */
      {32, 32, 3, 32, 3, 3, 2, 0, 1, 0, 1, TP__ACT_SWISH, true, false, 3},
      {31, 45, 3, 40, 3, 3, 2, 1, 1, 1, 1, TP__ACT_NONE, true, false, 3},
      {64, 200, 3, 8, 3, 3, 2, 1, 1, 1, 1, TP__ACT_NONE, true, false, 3}, /* several bands */
      {29, 30, 3, 64, 7, 7, 2, 3, 3, 3, 3, TP__ACT_RELU, true, false, 3},
      {9, 8, 16, 24, 3, 3, 1, 1, 1, 1, 1, TP__ACT_NONE, false, true, 16},
      {9, 8, 17, 50, 3, 3, 1, 1, 1, 1, 1, TP__ACT_RELU6, true, true, 32}, /* NaN in x */
      {9, 8, 17, 50, 3, 3, 1, 1, 1, 1, 1, TP__ACT_RELU + LAST, true, true, 32},
      {7, 11, 5, 10, 5, 3, 3, 2, 1, 0, 2, TP__ACT_NONE, true, false, 16},
      {10, 10, 20, 33, 1, 1, 1, 0, 0, 0, 0, TP__ACT_SIGMOID, true, true, 32},  /* reads in place */
      {10, 11, 20, 33, 1, 1, 2, 0, 0, 0, 0, TP__ACT_NONE, true, false, 32},
      {10, 11, 16, 33, 3, 3, 2, 0, 0, 0, 0, TP__ACT_NONE, true, false, 16},
      {10, 11, 20, 33, 3, 3, 1, 0, 0, 0, 0, TP__ACT_NONE, true, false, 32},
      {6, 6, 4, 8, 1, 1, 1, 1, 1, 1, 1, TP__ACT_NONE, true, false, 16}, /* padding alone */
      {2, 1, 3, 16, 5, 5, 1, 4, 4, 4, 4, TP__ACT_NONE, true, false, 3}, /* kernel larger */
      {1, 1, 7, 9, 3, 3, 2, 1, 1, 1, 1, TP__ACT_NONE, true, false, 16},
      {1, 1, 1, 1, 2, 2, 1, 3, 3, 3, 3, TP__ACT_NONE, false, false, 1},
  };
  /* clang-format on */
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check_conv(&t, &shapes[i]);
}

/* ---- depthwise ---- */

/* clang-format off */
static const shape depthwise_shapes[] = {
    /* h  w  c  n   k    stride padding         act */
    {12, 12, 48, 0, 3, 3, 1, 1, 1, 1, 1, TP__ACT_SWISH, true, false, 0},
    {12, 13, 20, 0, 3, 3, 1, 1, 1, 1, 1, TP__ACT_NONE, true, false, 0},
    {16, 17, 24, 0, 3, 3, 2, 0, 1, 0, 1, TP__ACT_NONE, true, false, 0},
    {17, 15, 40, 0, 3, 3, 2, 1, 1, 1, 1, TP__ACT_RELU6, false, false, 0},
    {14, 25, 33, 0, 5, 5, 1, 2, 2, 2, 2, TP__ACT_NONE, true, false, 0},
    {6, 6, 8, 0, 5, 5, 1, 2, 2, 2, 2, TP__ACT_SWISH, true, false, 0},
    {12, 12, 19, 0, 5, 5, 2, 1, 2, 1, 2, TP__ACT_NONE, true, false, 0},
    {11, 29, 17, 0, 5, 5, 2, 2, 2, 2, 2, TP__ACT_NONE, false, false, 0},
    {20, 21, 16, 0, 7, 7, 1, 3, 3, 3, 3, TP__ACT_NONE, true, false, 0}, /* general kernels */
    {20, 21, 5, 0, 7, 7, 2, 2, 3, 2, 3, TP__ACT_SIGMOID, true, false, 0},
    {13, 12, 18, 0, 3, 3, 3, 1, 0, 1, 0, TP__ACT_NONE, true, false, 0},
    {9, 9, 3, 0, 2, 2, 4, 0, 0, 0, 0, TP__ACT_RELU, true, false, 0}, /* inputs unread */
    {8, 9, 3, 0, 1, 1, 2, 0, 0, 0, 0, TP__ACT_NONE, true, false, 0},
    {15, 30, 16, 0, 3, 3, 1, 0, 0, 0, 0, TP__ACT_NONE, true, false, 0},
    {2, 1, 7, 0, 5, 5, 1, 4, 4, 4, 4, TP__ACT_NONE, true, false, 0}, /* kernel larger */
    {1, 1, 1, 0, 3, 3, 2, 1, 1, 1, 1, TP__ACT_NONE, true, false, 0},
    {3, 3, 2, 0, 3, 3, 1, 5, 5, 5, 5, TP__ACT_NONE, true, false, 0}, /* padding alone */
};
/* clang-format on */
enum { DEPTHWISE_SHAPES = sizeof depthwise_shapes / sizeof depthwise_shapes[0] };

static tp__depthwise geometry(const shape *s)
{
  return (tp__depthwise){.h = s->h,
                         .w = s->w,
                         .c = s->c,
                         .oh = output_of(s->h, s->top, s->bottom, s->kh, s->stride),
                         .ow = output_of(s->w, s->left, s->right, s->kw, s->stride),
                         .k = s->kh,
                         .stride = s->stride,
                         .pad_top = s->top,
                         .pad_left = s->left,
                         .act = (tp__act)s->act};
}

static float at(const float *plane, int h, int w, long pitch, int y, int x, int c)
{
  bool inside = y >= 0 && y < h && x >= 0 && x < w;
  return inside ? plane[((long)y * w + x) * pitch + c] : 0;
}

static void check_depthwise_outputs(const tp__kernels *k, const tp__depthwise *v,
                                    const float *kernel, const char *what)
{
  const long pitch = tp__pitch(v->c);
  for (int c = 0; c < v->c; c++) {
    float sum = 0;
    for (int y = 0; y < v->oh; y++)
      for (int x = 0; x < v->ow; x++) {
        chain s = chain_from(is_fused(k), v->bias != NULL ? v->bias[c] : 0);
        for (int t = 0; t < v->k * v->k; t++)
          chain_add(&s,
                    at(v->x, v->h, v->w, pitch, y * v->stride - v->pad_top + t / v->k,
                       x * v->stride - v->pad_left + t % v->k, c),
                    kernel[t * v->c + c]);
        float got = v->y[((long)y * v->ow + x) * pitch + c];
        assert_chain(&s, v->act, NULL, got, what, (long)y * v->ow + x, c);
        sum += got;
      }
    if (sum != v->sums[c])
      fail_msg("%s: sum of channel %d: got %a, in order %a", what, c, (double)v->sums[c],
               (double)sum);
  }
}

static void depthwises(void **state)
{
  (void)state;
  const tables t = usable_tables();
  for (int number = 0; number < DEPTHWISE_SHAPES; number++) {
    const shape *s = &depthwise_shapes[number];
    tp__depthwise v = geometry(s);
    const long pitch = tp__pitch(v.c), outputs = (long)v.oh * v.ow;
    float *x = random_rows(1, (long)v.h * v.w, v.c, pitch, NAN);
    float *kernel = random_floats(2, (size_t)(v.k * v.k * v.c)),
          *bias = random_rows(3, 1, v.c, pitch, 0);
    same_bits same = {NULL};
    for (int i = 0; i < t.count; i++) {
      const tp__kernels *k = t.table[i];
      char what[100];
      snprintf(what, sizeof what, "depthwise %s, case %d", k->name, number);
      float *packed = floats(k->packed_depthwise(v.k, v.c));
      k->pack_depthwise(kernel, v.k, v.c, packed);
      v.x = x;
      v.packed = packed;
      v.bias = s->bias ? bias : NULL;
      v.y = floats((size_t)(outputs * pitch));
      v.sums = floats((size_t)pitch);
      v.scratch = floats(k->depthwise_scratch(&v));
      k->depthwise(&v);
      check_depthwise_outputs(k, &v, kernel, what);
      assert_same_bits(&same, k, v.y, outputs, v.c, pitch, what);
      free(packed);
      free(v.y);
      free(v.sums);
      free(v.scratch);
    }
    same_bits_end(&same);
    free(x);
    free(kernel);
    free(bias);
  }
}

/* dx by gathering: all outputs whose taps read the input. */
static double input_grad_at(const tp__depthwise *v, const float *dy, const float *kernel, int y,
                            int x, int c, double *size)
{
  double sum = 0;
  *size = 0;
  for (int t = 0; t < v->k * v->k; t++) {
    int oy = y + v->pad_top - t / v->k, ox = x + v->pad_left - t % v->k;
    if (oy < 0 || ox < 0 || oy % v->stride != 0 || ox % v->stride != 0) continue;
    double d = at(dy, v->oh, v->ow, tp__pitch(v->c), oy / v->stride, ox / v->stride, c);
    sum += d * kernel[t * v->c + c];
    *size += fabs(d * kernel[t * v->c + c]);
  }
  return sum;
}

static void depthwise_input_grads(void **state)
{
  (void)state;
  const tables t = usable_tables();
  for (int number = 0; number < DEPTHWISE_SHAPES; number++) {
    tp__depthwise v = geometry(&depthwise_shapes[number]);
    const long pitch = tp__pitch(v.c), inputs = (long)v.h * v.w;
    float *dy = random_rows(4, (long)v.oh * v.ow, v.c, pitch, NAN);
    float *kernel = random_floats(2, (size_t)(v.k * v.k * v.c));
    same_bits same = {NULL};
    for (int i = 0; i < t.count; i++) {
      const tp__kernels *k = t.table[i];
      float *packed = floats(k->packed_depthwise(v.k, v.c)), *dx = floats((size_t)(inputs * pitch));
      for (long j = 0; j < inputs * pitch; j++) dx[j] = NAN; /* everything must be written */
      k->pack_depthwise(kernel, v.k, v.c, packed);
      v.packed = packed;
      v.scratch = floats(k->depthwise_scratch(&v));
      k->depthwise_input_grad(&v, dy, dx);
      for (long p = 0; p < inputs; p++)
        for (int c = 0; c < v.c; c++) {
          double size,
              want = input_grad_at(&v, dy, kernel, (int)(p / v.w), (int)(p % v.w), c, &size);
          if (!(fabs(dx[p * pitch + c] - want) <= 1e-6 * size))
            fail_msg("case %d, %s: pixel %ld channel %d: got %.9g, wanted %.9g", number, k->name, p,
                     c, (double)dx[p * pitch + c], want);
        }
      assert_same_bits(&same, k, dx, inputs, v.c, pitch, "depthwise_input_grad");
      free(packed);
      free(dx);
      free(v.scratch);
    }
    same_bits_end(&same);
    free(dy);
    free(kernel);
  }
}

static void depthwise_kernel_grads(void **state)
{
  (void)state;
  const tables t = usable_tables();
  for (int number = 0; number < DEPTHWISE_SHAPES; number++) {
    tp__depthwise v = geometry(&depthwise_shapes[number]);
    const long pitch = tp__pitch(v.c);
    float *x = random_rows(1, (long)v.h * v.w, v.c, pitch, NAN);
    float *dy = random_rows(4, (long)v.oh * v.ow, v.c, pitch, NAN);
    same_bits same = {NULL};
    for (int i = 0; i < t.count; i++) {
      const tp__kernels *k = t.table[i];
      float *dk = random_floats(5, (size_t)(v.k * v.k * v.c));
      v.scratch = floats(k->depthwise_scratch(&v));
      k->depthwise_kernel_grad(&v, x, dy, dk);
      for (int tap = 0; tap < v.k * v.k; tap++)
        for (int c = 0; c < v.c; c++) {
          chain s = chain_from(is_fused(k), random_at(5, (size_t)(tap * v.c + c)));
          for (int o = 0; o < v.oh * v.ow; o++)
            chain_add(&s,
                      at(x, v.h, v.w, pitch, o / v.ow * v.stride - v.pad_top + tap / v.k,
                         o % v.ow * v.stride - v.pad_left + tap % v.k, c),
                      dy[o * pitch + c]);
          assert_chain(&s, TP__ACT_NONE, NULL, dk[tap * v.c + c], "depthwise_kernel_grad", tap, c);
        }
      assert_same_bits(&same, k, dk, v.k * v.k, v.c, v.c, "depthwise_kernel_grad");
      free(dk);
      free(v.scratch);
    }
    same_bits_end(&same);
    free(x);
    free(dy);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convs),
      cmocka_unit_test(depthwises),
      cmocka_unit_test(depthwise_input_grads),
      cmocka_unit_test(depthwise_kernel_grads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
