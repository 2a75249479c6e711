/* Proves that the gradients of the general convolution equal plain loops at every kind of border
 * and stride, for every instruction set, in every bit of the promised chain (taps and channels in
 * order for the input's, examples and pixels for the kernel's), and that several examples give the
 * bits of each alone; padding channels (NaN here) reach no result. Expected numbers: see
 * kernel_testing.h. Hostile shapes: images smaller than the kernel, strides that leave pixels out,
 * more rows than a table holds, examples with gaps between.
 */
#include "kernel_testing.h"

typedef struct shape {
  int h, w, c, n, kh, kw, stride;
  int top, bottom, left, right; /* padding */
  int images;
  long more; /* pixels between examples */
} shape;

static const shape shapes[] = {
    {9, 8, 16, 24, 3, 3, 1, 1, 1, 1, 1, 1, 0},   {12, 13, 20, 50, 3, 3, 2, 1, 1, 1, 1, 3, 0},
    {14, 14, 17, 33, 3, 3, 1, 1, 1, 1, 1, 2, 0}, {11, 10, 33, 20, 1, 1, 2, 0, 0, 0, 0, 2, 5},
    {13, 9, 3, 40, 7, 7, 2, 3, 3, 3, 3, 2, 0},   {12, 11, 5, 16, 5, 3, 3, 2, 1, 0, 2, 1, 0},
    {6, 6, 100, 9, 3, 3, 1, 1, 1, 1, 1, 4, 3},   {2, 1, 3, 16, 5, 5, 1, 4, 4, 4, 4, 2, 0},
    {7, 7, 18, 4, 2, 2, 4, 0, 0, 0, 0, 1, 0},    {1, 1, 1, 1, 3, 3, 2, 1, 1, 1, 1, 1, 0},
    {3, 3, 200, 200, 3, 3, 1, 1, 1, 1, 1, 1, 0}, /* panels in pieces */
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* The geometry, with scratch for all three kernels. */
static tp__conv geometry(const shape *s, const tp__kernels *k)
{
  tp__conv v = {.images = s->images,
                .h = s->h,
                .w = s->w,
                .c = s->c,
                .oh = (s->h + s->top + s->bottom - s->kh) / s->stride + 1,
                .ow = (s->w + s->left + s->right - s->kw) / s->stride + 1,
                .n = s->n,
                .kh = s->kh,
                .kw = s->kw,
                .stride = s->stride,
                .pad_top = s->top,
                .pad_left = s->left,
                .x_pitch = tp__pitch(s->c),
                .y_pitch = tp__pitch(s->n)};
  v.x_row = ((long)v.h * v.w + s->more) * v.x_pitch;
  v.y_row = ((long)v.oh * v.ow + s->more) * v.y_pitch;
  size_t forward = k->conv_scratch(&v), size = k->conv_grad_scratch(&v);
  if (forward > size) size = forward;
  v.scratch = floats(size);
  for (size_t i = 0; i < size; i++) v.scratch[i] = NAN;
  return v;
}

/* count examples of pixels x c random numbers, everything else NaN. */
static float *examples(uint32_t stream, int count, long pixels, long c, long pitch, long row)
{
  float *x = floats((size_t)(count * row));
  for (long i = 0; i < count * row; i++) {
    long p = i % row / pitch, j = i % row % pitch;
    x[i] = p < pixels && j < c ? random_at(stream, (size_t)i) : NAN;
  }
  return x;
}

static size_t kernel_size(const tp__conv *v)
{
  return (size_t)v->kh * (size_t)v->kw * (size_t)v->c * (size_t)v->n;
}

/* The output that tap t of input pixel (y, x) belongs to; -1: none. */
static long output_of(const tp__conv *v, int y, int x, int t)
{
  int oy = y + v->pad_top - t / v->kw, ox = x + v->pad_left - t % v->kw;
  if (oy < 0 || ox < 0 || oy % v->stride != 0 || ox % v->stride != 0) return -1;
  oy /= v->stride;
  ox /= v->stride;
  return oy < v->oh && ox < v->ow ? (long)oy * v->ow + ox : -1;
}

static void check_input_grad(const tp__kernels *k, const tp__conv *v, const float *kernel,
                             const float *dy, const float *dx)
{
  for (int i = 0; i < v->images; i++)
    for (int p = 0; p < v->h * v->w; p++)
      for (int c = 0; c < v->c; c++) {
        chain s = chain_of(k, 0);
        for (int t = 0; t < v->kh * v->kw; t++) {
          long o = output_of(v, p / v->w, p % v->w, t);
          for (int n = 0; n < v->n && o >= 0; n++)
            chain_add(&s, dy[i * v->y_row + o * v->y_pitch + n],
                      kernel[((long)t * v->c + c) * v->n + n]);
        }
        assert_chain(&s, TP__ACT_NONE, NULL, dx[i * v->x_row + p * v->x_pitch + c], k->name, p, c);
      }
}

static void input_grads(void **state)
{
  (void)state;
  const tables t = usable_tables();
  for (int i = 0; i < SHAPES * t.count; i++) {
    const tp__kernels *k = t.table[i % t.count];
    tp__conv v = geometry(&shapes[i / t.count], k);
    float *kernel = random_floats(2, kernel_size(&v));
    float *dy = examples(3, v.images, (long)v.oh * v.ow, v.n, v.y_pitch, v.y_row);
    float *packed = floats(k->packed_conv(v.kh, v.kw, v.n, v.c));
    float *dx = floats((size_t)(v.images * v.x_row));
    k->pack_conv_transposed(kernel, v.kh, v.kw, v.c, v.n, packed);
    v.packed = packed;
    for (long j = 0; j < v.images * v.x_row; j++) dx[j] = NAN; /* everything must be written */
    k->conv_input_grad(&v, dy, dx);
    check_input_grad(k, &v, kernel, dy, dx);
    free(kernel);
    free(dy);
    free(packed);
    free(dx);
    free(v.scratch);
  }
}

/* The pixel of x that output o's tap t sees; -1: padding. */
static long input_of(const tp__conv *v, long o, int t)
{
  int y = (int)(o / v->ow) * v->stride - v->pad_top + t / v->kw;
  int x = (int)(o % v->ow) * v->stride - v->pad_left + t % v->kw;
  return y >= 0 && y < v->h && x >= 0 && x < v->w ? (long)y * v->w + x : -1;
}

static void check_kernel_grad(const tp__kernels *k, const tp__conv *v, const float *x,
                              const float *dy, const float *dk)
{
  for (long j = 0; j < (long)kernel_size(v); j++) {
    const int t = (int)(j / v->n / v->c), c = (int)(j / v->n % v->c), n = (int)(j % v->n);
    chain s = chain_of(k, random_at(5, (size_t)j));
    for (int i = 0; i < v->images; i++)
      for (long o = 0; o < (long)v->oh * v->ow; o++) {
        long p = input_of(v, o, t);
        chain_add(&s, p < 0 ? 0 : x[i * v->x_row + p * v->x_pitch + c],
                  dy[i * v->y_row + o * v->y_pitch + n]);
      }
    assert_chain(&s, TP__ACT_NONE, NULL, dk[j], k->name, t, c * v->n + n);
  }
}

static void kernel_grads(void **state)
{
  (void)state;
  const tables t = usable_tables();
  for (int i = 0; i < SHAPES * t.count; i++) {
    const tp__kernels *k = t.table[i % t.count];
    tp__conv v = geometry(&shapes[i / t.count], k);
    float *x = examples(1, v.images, (long)v.h * v.w, v.c, v.x_pitch, v.x_row);
    float *dy = examples(3, v.images, (long)v.oh * v.ow, v.n, v.y_pitch, v.y_row);
    float *dk = random_floats(5, kernel_size(&v));
    k->conv_kernel_grad(&v, x, dy, dk);
    check_kernel_grad(k, &v, x, dy, dk);
    free(x);
    free(dy);
    free(dk);
    free(v.scratch);
  }
}

/* Several examples in one go: the bits of each alone, with a residual and an activation behind. */
static void several_examples(void **state)
{
  (void)state;
  const tables t = usable_tables();
  for (int i = 0; i < SHAPES * t.count; i++) {
    const tp__kernels *k = t.table[i % t.count];
    tp__conv v = geometry(&shapes[i / t.count], k);
    const long outputs = (long)v.oh * v.ow, size = v.images * v.y_row;
    float *kernel = random_floats(2, kernel_size(&v));
    float *packed = floats(k->packed_conv(v.kh, v.kw, v.c, v.n));
    float *x = examples(1, v.images, (long)v.h * v.w, v.c, v.x_pitch, v.x_row);
    float *residual = examples(4, v.images, outputs, v.n, v.y_pitch, v.y_row);
    float *all = floats((size_t)size), *each = floats((size_t)size);
    k->pack_conv(kernel, v.kh, v.kw, v.c, v.n, packed);
    v.packed = packed;
    v.act = TP__ACT_RELU;
    v.act_last = true;
    v.x = x;
    v.y = all;
    v.residual = residual;
    k->conv(&v);
    for (int e = 0; e < v.images; e++) {
      tp__conv one = v;
      one.images = 1;
      one.x += e * v.x_row;
      one.residual += e * v.y_row;
      one.y = each + e * v.y_row;
      k->conv(&one);
      for (long o = 0; o < outputs; o++)
        if (memcmp(one.y + o * v.y_pitch, all + e * v.y_row + o * v.y_pitch,
                   (size_t)v.n * sizeof(float)) != 0)
          fail_msg("case %d, %s: example %d, output %ld differs", i / t.count, k->name, e, o);
    }
    free(kernel);
    free(packed);
    free(x);
    free(residual);
    free(all);
    free(each);
    free(v.scratch);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(input_grads),
      cmocka_unit_test(kernel_grads),
      cmocka_unit_test(several_examples),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
