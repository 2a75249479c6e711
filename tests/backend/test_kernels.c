/* Proves the choice of kernels by name, and the element-wise and channel-wise kernels: activations
 * within 2e-6 of the C library's double, their gradients, sums in the order of the pixels, the Adam
 * update; every instruction set, any count. Hostile inputs: NaN, infinities, +-100, padding
 * channels of NaN, wrong names.
 */
#include "kernel_testing.h"

static void choice_by_name(void **state)
{
  (void)state;
  tp_error err;
  const tp__kernels *k = NULL, *best = NULL;
  assert_ok(tp__kernels_choose("baseline", &k, &err));
  assert_string_equal(k->name, "baseline");
  assert_int_equal(k->vector, 4);
  assert_ok(tp__kernels_choose(NULL, &best, &err));
  const tables t = usable_tables();
  assert_string_equal(best->name, t.table[t.count - (t.table[t.count - 1]->bf16 ? 2 : 1)]->name);
  assert_null(tp__kernels_bf16(k)); /* capped */
  assert_fails(tp__kernels_choose("sse9", &k, &err), TP_ERR_DEVICE, "\"sse9\"");
  assert_fails(tp__kernels_choose("", &k, &err), TP_ERR_DEVICE, "choose baseline, avx2 or avx512");
  assert_string_equal(k->name, "baseline"); /* left as it was */
}

static const tp__act acts[] = {TP__ACT_NONE, TP__ACT_SWISH, TP__ACT_RELU, TP__ACT_RELU6,
                               TP__ACT_SIGMOID};
enum { ACTS = sizeof acts / sizeof acts[0] };

/* From -100 to 100, dense around zero. Below -87 the exponential is held, where results are under
 * 1e-35. */
static void activations(void **state)
{
  (void)state;
  enum { COUNT = 40001 };
  const tables t = usable_tables();
  float *x = floats(COUNT), *y = floats(COUNT), *first = floats(COUNT);
  for (int i = 0; i < COUNT; i++) {
    double u = (i - COUNT / 2) / (double)(COUNT / 2);
    x[i] = (float)(u * u * u * 100);
  }
  for (int a = 0; a < ACTS; a++)
    for (int i = 0; i < t.count; i++) {
      const tp__kernels *k = t.table[i];
      k->act(acts[a], COUNT, x, y);
      for (int j = 0; j < COUNT; j++) {
        double want = act_of(acts[a], x[j]);
        if (!(fabs(y[j] - want) <= 2e-6 * fabs(want) + 1e-35))
          fail_msg("%s act %d of %.9g: got %.9g, wanted %.9g", k->name, a, (double)x[j],
                   (double)y[j], want);
      }
      if (k->vector == 8) memcpy(first, y, COUNT * sizeof(float));
      if (k->vector == 16) assert_memory_equal(first, y, COUNT * sizeof(float));
    }
  free(x);
  free(y);
  free(first);
}

static void activations_of_odd_numbers(void **state)
{
  (void)state;
  const tables t = usable_tables();
  for (int i = 0; i < t.count; i++)
    for (int a = 0; a < ACTS; a++) {
      float x[5] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f}, y[5];
      t.table[i]->act(acts[a], 5, x, y);
      assert_true(isnan(y[0]));
      for (int j = 1; j < 5; j++) {
        bool swish_below = acts[a] == TP__ACT_SWISH && x[j] < 0; /* held: see below */
        if (!swish_below && y[j] != act_of(acts[a], x[j]) && !(fabs(y[j]) < 1e-35))
          fail_msg("act %d of %g: %g", a, (double)x[j], (double)y[j]);
        /* double gives 0, or for -infinity NaN; held at exp(87) it is x times 1.6e-38 */
        if (swish_below) assert_true(j == 2 ? y[j] == -INFINITY : fabsf(y[j]) < 10);
      }
    }
}

/* Any count, in place, and nothing behind the last element is touched. */
static void any_count(void **state)
{
  (void)state;
  const tables t = usable_tables();
  for (int i = 0; i < t.count; i++)
    for (long count = 0; count < 40; count++) {
      float *x = random_floats(1, 41), *y = random_floats(1, 41), *z = random_floats(2, 41);
      t.table[i]->act(TP__ACT_SWISH, 40, x, x);
      t.table[i]->act(TP__ACT_SWISH, count, y, y);
      assert_memory_equal(x, y, (size_t)count * sizeof(float));
      assert_true(y[count] == random_at(1, (size_t)count));
      t.table[i]->add(count, x, z, y);
      for (long j = 0; j < count; j++) assert_true(y[j] == x[j] + z[j]);
      assert_true(y[count] == random_at(1, (size_t)count));
      free(x);
      free(y);
      free(z);
    }
}

static void activation_gradients(void **state)
{
  (void)state;
  enum { COUNT = 4003 };
  const tables t = usable_tables();
  float *x = floats(COUNT), *dy = random_floats(3, COUNT), *dx = floats(COUNT),
        *first = floats(COUNT);
  for (int i = 0; i < COUNT; i++) x[i] = (float)(i - COUNT / 2) * 0.01f;
  for (int a = 0; a < ACTS; a++)
    for (int i = 0; i < t.count; i++) {
      const tp__kernels *k = t.table[i];
      k->act_grad(acts[a], COUNT, dy, x, dx);
      for (int j = 0; j < COUNT; j++) {
        double want = dy[j] * act_grad_of(acts[a], x[j]);
        if (!(fabs(dx[j] - want) <= 1e-6 * fabs(want) + 3e-7))
          fail_msg("%s gradient of act %d at %g: got %.9g, wanted %.9g", k->name, a, (double)x[j],
                   (double)dx[j], want);
      }
      if (k->vector == 8) memcpy(first, dx, COUNT * sizeof(float));
      if (k->vector == 16) assert_memory_equal(first, dx, COUNT * sizeof(float));
    }
  free(x);
  free(dy);
  free(dx);
  free(first);
}

/* The bits of swish, sigmoid and their gradients, as a hash: gcc 12 and clang 14 both give it, for
 * AVX2 and AVX-512. A difference means that a compiler fused, split or reordered what the sources
 * say. */
static uint64_t hash_of(uint64_t hash, const float *values, size_t count)
{
  const unsigned char *bytes = (const unsigned char *)values;
  for (size_t i = 0; i < count * sizeof(float); i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

static void same_bits_for_all_compilers(void **state)
{
  (void)state;
  enum { COUNT = 4096 };
  const tables t = usable_tables();
  float *x = random_floats(1, COUNT), *dy = random_floats(2, COUNT), *y = floats(COUNT);
  for (int i = 0; i < COUNT; i++) x[i] *= 30;
  for (int i = 0; i < t.count; i++) {
    if (!is_fused(t.table[i])) continue;
    uint64_t hash = 0xcbf29ce484222325u;
    for (int a = 0; a < ACTS; a++) {
      t.table[i]->act(acts[a], COUNT, x, y);
      hash = hash_of(hash, y, COUNT);
      t.table[i]->act_grad(acts[a], COUNT, dy, x, y);
      hash = hash_of(hash, y, COUNT);
    }
    if (hash != 0xf29f7a771cbc6713u)
      fail_msg("%s: hash 0x%016llx", t.table[i]->name, (unsigned long long)hash);
  }
  free(x);
  free(dy);
  free(y);
}

static const long channel_counts[] = {1, 3, 8, 15, 16, 17, 24, 40, 112, 144, 265};
enum { CHANNEL_COUNTS = sizeof channel_counts / sizeof channel_counts[0], PIXELS = 19 };

/* scale, shift and sums are exactly c floats long, so that a sanitizer sees any use behind them. */
static void channels(void **state)
{
  (void)state;
  const tables t = usable_tables();
  for (int n = 0; n < CHANNEL_COUNTS; n++) {
    const long c = channel_counts[n], pitch = tp__pitch(c);
    float *x = random_rows(1, PIXELS, c, pitch, NAN), *dy = random_rows(2, PIXELS, c, pitch, NAN);
    float *scale = random_floats(3, (size_t)c), *shift = random_floats(4, (size_t)c);
    for (int i = 0; i < t.count; i++) {
      const tp__kernels *k = t.table[i];
      float *y = floats((size_t)(PIXELS * pitch)), *z = floats((size_t)(PIXELS * pitch));
      float *sums = random_floats(5, (size_t)c), *products = random_floats(6, (size_t)c);
      k->scale_channels(PIXELS, c, x, scale, y);
      k->affine_channels(PIXELS, c, x, scale, shift, z);
      k->sum_pixels(PIXELS, c, x, 0.25f, sums);
      k->sum_products(PIXELS, c, x, dy, products);
      for (long j = 0; j < c; j++) {
        float sum = 0;
        chain product = chain_from(is_fused(k), random_at(6, (size_t)j));
        for (long p = 0; p < PIXELS; p++) {
          const float v = x[p * pitch + j];
          chain affine = chain_from(is_fused(k), shift[j]);
          chain_add(&affine, v, scale[j]);
          assert_true(y[p * pitch + j] == v * scale[j]);
          assert_chain(&affine, TP__ACT_NONE, NULL, z[p * pitch + j], "affine_channels", p, j);
          sum += v;
          chain_add(&product, v, dy[p * pitch + j]);
        }
        assert_true(sums[j] == sum * 0.25f);
        assert_chain(&product, TP__ACT_NONE, NULL, products[j], "sum_products", 0, j);
      }
      free(y);
      free(z);
      free(sums);
      free(products);
    }
    free(x);
    free(dy);
    free(scale);
    free(shift);
  }
}

/* Three steps against the formulas of Keras 3 in double; every table gives the same bits. */
static void adam_update(void **state)
{
  (void)state;
  enum { COUNT = 37, STEPS = 3 };
  const tables t = usable_tables();
  const double beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-7f;
  float *first = NULL;
  for (int i = 0; i < t.count; i++) {
    float *p = random_floats(1, COUNT + 1), *m = floats(COUNT + 1), *v = floats(COUNT + 1);
    double want[COUNT], want_m[COUNT] = {0}, want_v[COUNT] = {0};
    for (int j = 0; j < COUNT; j++) want[j] = p[j];
    for (int s = 1; s <= STEPS; s++) {
      float *g = random_floats((uint32_t)(10 + s), COUNT);
      float rate = (float)(1e-3 * sqrt(1 - pow(beta2, s)) / (1 - pow(beta1, s)));
      t.table[i]->adam(COUNT, p, m, v, g, rate, 0.9f, 0.999f, 1e-7f, 0.125f);
      for (int j = 0; j < COUNT; j++) {
        want_m[j] += (g[j] - want_m[j]) * (1 - beta1);
        want_v[j] += ((double)g[j] * g[j] - want_v[j]) * (1 - beta2);
        want[j] -= want[j] * 0.125 + rate * want_m[j] / (sqrt(want_v[j]) + epsilon);
      }
      free(g);
    }
    for (int j = 0; j < COUNT; j++) assert_true(fabs(p[j] - want[j]) < 3e-7);
    assert_true(p[COUNT] == random_at(1, COUNT) && m[COUNT] == 0 && v[COUNT] == 0);
    if (first != NULL) assert_memory_equal(first, p, COUNT * sizeof(float));
    free(m);
    free(v);
    free(i == 0 ? NULL : p);
    if (i == 0) first = p;
  }
  free(first);
}

static void peak_is_measured(void **state)
{
  (void)state;
  const tables t = usable_tables();
  for (int i = 0; i < t.count; i++) {
    double peak = t.table[i]->peak(0.001);
    assert_true(isfinite(peak) && peak > 0);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(choice_by_name),
      cmocka_unit_test(activations),
      cmocka_unit_test(activations_of_odd_numbers),
      cmocka_unit_test(any_count),
      cmocka_unit_test(activation_gradients),
      cmocka_unit_test(same_bits_for_all_compilers),
      cmocka_unit_test(channels),
      cmocka_unit_test(adam_update),
      cmocka_unit_test(peak_is_measured),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
