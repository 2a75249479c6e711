/* Proves the kernels of batch norm by the batch: moments, sums for the gradients of gamma and beta,
 * the gradient of an activation behind a norm and of the norm through its statistics, against
 * double precision; every instruction set, odd channels and pixels, x at a wider pitch; AVX2 and
 * AVX-512 give the same bits. Hostile: padding channels of NaN, means far larger than deviations.
 */
#include "kernel_testing.h"

static const struct shape {
  long pixels, c, wider; /* wider: floats that x's pitch is larger */
} shapes[] = {{1, 1, 0},    {2, 3, 16},    {63, 16, 0},  {64, 17, 0}, {65, 40, 32},
              {200, 64, 0}, {130, 100, 0}, {7, 480, 16}, {49, 33, 0}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* Pixels of random values plus 100 in every second channel; NaN behind the channels. */
static float *image(uint32_t seed, const struct shape *s, long pitch)
{
  float *x = random_floats(seed, (size_t)(s->pixels * pitch));
  for (long p = 0; p < s->pixels; p++)
    for (long c = 0; c < pitch; c++) {
      if (c >= s->c) x[p * pitch + c] = NAN;
      if (c % 2 == 1) x[p * pitch + c] += 100;
    }
  return x;
}

static void near(const char *what, const tp__kernels *k, const struct shape *s, long i, float got,
                 double want, double slack)
{
  if (!(fabs(got - want) <= slack))
    fail_msg("%s, %s, %ld pixels of %ld channels: [%ld] is %.9g, wanted %.9g", k->name, what,
             s->pixels, s->c, i, (double)got, want);
}

static void check_moments(const tp__kernels *k, const struct shape *s, same_bits *bits)
{
  long pitch = tp__pitch(s->c) + s->wider;
  float *x = image(1, s, pitch), *out = floats((size_t)(2 * s->c + 1));
  out[s->c] = out[2 * s->c] = 7;
  float *mean = out, *squares = floats((size_t)s->c + 1);
  squares[s->c] = 7;
  k->moments(s->pixels, s->c, x, pitch, mean, squares);
  assert_true(mean[s->c] == 7 && squares[s->c] == 7);
  for (long c = 0; c < s->c; c++) {
    double sum = 0, deviations = 0;
    for (long p = 0; p < s->pixels; p++) sum += x[p * pitch + c];
    for (long p = 0; p < s->pixels; p++)
      deviations += pow(x[p * pitch + c] - sum / (double)s->pixels, 2);
    near("mean", k, s, c, mean[c], sum / (double)s->pixels, 1e-6 * (c % 2 == 1 ? 100 : 1));
    near("squares", k, s, c, squares[c], deviations, 1e-5 * deviations + 1e-6);
  }
  memcpy(out + s->c, squares, (size_t)s->c * sizeof(float));
  assert_same_bits(bits, k, out, 1, 2 * s->c, 2 * s->c, "moments");
  free(x);
  free(out);
  free(squares);
}

static void check_sums(const tp__kernels *k, const struct shape *s, same_bits *bits)
{
  long pitch = tp__pitch(s->c) + s->wider, dense = tp__pitch(s->c);
  float *x = image(1, s, pitch), *dy = image(2, s, dense);
  float *mean = random_floats(3, (size_t)s->c), *scale = random_floats(4, (size_t)s->c);
  float *sums = floats((size_t)(2 * s->c)), *products = floats((size_t)s->c);
  for (long c = 1; c < s->c; c += 2) mean[c] += 100;
  k->norm_sums(s->pixels, s->c, dy, x, pitch, mean, scale, sums, products);
  for (long c = 0; c < s->c; c++) {
    double sum = 0, product = 0, size = 0;
    for (long p = 0; p < s->pixels; p++) {
      double d = dy[p * dense + c], u = (double)x[p * pitch + c] - mean[c];
      sum += d;
      product += d * u * scale[c];
      size += fabs(d) * (1 + fabs(u));
    }
    near("sum", k, s, c, sums[c], sum, 3e-6 * size);
    near("product", k, s, c, products[c], product, 3e-6 * size);
  }
  memcpy(sums + s->c, products, (size_t)s->c * sizeof(float));
  assert_same_bits(bits, k, sums, 1, 2 * s->c, 2 * s->c, "sums");
  free(x);
  free(dy);
  free(mean);
  free(scale);
  free(sums);
  free(products);
}

static void check_gradient(const tp__kernels *k, const struct shape *s, same_bits *bits)
{
  long pitch = tp__pitch(s->c) + s->wider, dense = tp__pitch(s->c);
  float *x = image(1, s, pitch), *dy = image(2, s, dense), *dx = image(9, s, dense);
  float *factor[4];
  for (uint32_t i = 0; i < 4; i++) factor[i] = random_floats(3 + i, (size_t)s->c);
  k->norm_grad(s->pixels, s->c, dy, x, pitch, factor[0], factor[1], factor[2], factor[3], dx);
  for (long p = 0; p < s->pixels; p++)
    for (long c = 0; c < s->c; c++) {
      double u = (double)x[p * pitch + c] - factor[1][c];
      double want = dy[p * dense + c] * (double)factor[0][c] + u * factor[2][c] + factor[3][c];
      near("gradient", k, s, p * dense + c, dx[p * dense + c], want, 4e-5);
    }
  assert_same_bits(bits, k, dx, s->pixels, s->c, dense, "gradient");
  free(x);
  free(dy);
  free(dx);
  for (int i = 0; i < 4; i++) free(factor[i]);
}

static void check_activation(const tp__kernels *k, const struct shape *s, same_bits *bits)
{
  long pitch = tp__pitch(s->c) + s->wider, dense = tp__pitch(s->c);
  float *x = image(1, s, pitch), *dy = image(2, s, dense), *dx = image(9, s, dense);
  float *scale = random_floats(3, (size_t)s->c), *shift = random_floats(4, (size_t)s->c);
  for (long c = 1; c < s->c; c += 2) shift[c] -= 100 * scale[c];
  for (int act = TP__ACT_NONE; act <= TP__ACT_SIGMOID; act++) {
    if (act == TP__ACT_RELU || act == TP__ACT_RELU6) continue; /* a kink has two right answers */
    k->norm_act_grad((tp__act)act, s->pixels, s->c, dy, x, pitch, scale, shift, dx);
    for (long p = 0; p < s->pixels; p++)
      for (long c = 0; c < s->c; c++) {
        float at = is_fused(k) ? fmaf(x[p * pitch + c], scale[c], shift[c])
                               : x[p * pitch + c] * scale[c] + shift[c];
        double want = dy[p * dense + c] * act_grad_of((tp__act)act, at);
        near("activation", k, s, p * dense + c, dx[p * dense + c], want,
             1e-5 * fabs((double)dy[p * dense + c]));
      }
  }
  assert_same_bits(bits, k, dx, s->pixels, s->c, dense, "activation");
  free(x);
  free(dy);
  free(dx);
  free(scale);
  free(shift);
}

typedef void (*check_fn)(const tp__kernels *k, const struct shape *s, same_bits *bits);

static void for_all(check_fn check)
{
  const tables t = usable_tables();
  for (int i = 0; i < SHAPES; i++) {
    same_bits bits = {0};
    for (int j = 0; j < t.count; j++) check(t.table[j], &shapes[i], &bits);
    same_bits_end(&bits);
  }
}

static void moments(void **state)
{
  (void)state;
  for_all(check_moments);
}
static void sums(void **state)
{
  (void)state;
  for_all(check_sums);
}
static void gradient(void **state)
{
  (void)state;
  for_all(check_gradient);
}
static void activation(void **state)
{
  (void)state;
  for_all(check_activation);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(moments),
      cmocka_unit_test(sums),
      cmocka_unit_test(gradient),
      cmocka_unit_test(activation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
