/* test_net_init - fresh weights have the distributions that Keras' initializers promise and depend
 * on seed and name only.
 *
 * Expected: the formulas of VarianceScaling(scale 2, fan_out, truncated normal) and glorot uniform;
 * quantiles of the normal distribution cut at two deviations, computed here with erf. Limits are
 * five standard errors of the sample.
 */
#include <math.h>

#include "model/net.h"
#include "testing.h"

static const tp__model_spec b0 = {
    .name = "efficientnet-b0", .height = 64, .width = 64, .classes = 104, .dropout = 0.2f};

static tp__tensors fresh(const tp__model_spec *spec, uint64_t seed)
{
  tp_error err = {0};
  tp__net *net = NULL;
  tp__tensors weights = {0};
  assert_ok(tp__net_build(spec, false, &net, &err));
  assert_ok(tp__net_init(net, seed, &weights, &err));
  assert_int_equal(weights.count, net->n_parameters);
  for (int i = 0; i < net->n_parameters; i++)
    assert_string_equal(weights.item[i].name, net->parameter[i].name);
  tp__net_free(net);
  return weights;
}

static const tp__tensor *find(const tp__tensors *weights, const char *name)
{
  const tp__tensor *t = tp__tensors_find(weights, name);
  if (t == NULL) fail_msg("no %s", name);
  return t;
}

/* Share of the unit normal, cut at two, below x. */
static double cut_normal(double x)
{
  return 0.5 + erf(x / sqrt(2)) / (2 * erf(sqrt(2)));
}

static void check_quantiles(const tp__tensor *t, double scale, double limit,
                            double (*share)(double))
{
  const float *w = t->data;
  size_t n = tp__shape_elements(&t->shape, 0);
  for (double q = -0.9; q < 1; q += 0.1) {
    size_t below = 0;
    for (size_t i = 0; i < n; i++) below += w[i] < q * limit;
    double wanted = share(q * limit / scale);
    double sigma = sqrt(wanted * (1 - wanted) / (double)n);
    if (fabs((double)below / (double)n - wanted) > 5 * sigma)
      fail_msg("%s: %zu of %zu below %g, wanted share %g", t->name, below, n, q * limit, wanted);
  }
  for (size_t i = 0; i < n; i++) assert_true(fabs((double)w[i]) <= limit * (1 + 1e-6));
}

static double uniform(double x)
{
  return (x + 1) / 2;
}

static void kernels_are_cut_normal(void **state)
{
  (void)state;
  static const struct {
    const char *name;
    double fan_out;
  } cases[] = {
      {"stem_conv/kernel", 9 * 32},
      {"block2a_expand_conv/kernel", 96},
      {"block7a_se_reduce/kernel", 48},
      {"block7a_dwconv/kernel", 9}, /* [3,3,1152,1]: Keras counts one filter */
      {"top_conv/kernel", 1280},
  };
  tp__tensors weights = fresh(&b0, 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double scale = sqrt(2 / cases[i].fan_out) / 0.87962566103423978;
    check_quantiles(find(&weights, cases[i].name), scale, 2 * scale, cut_normal);
  }
  tp__tensors_free(&weights);
}

static void head_is_glorot_uniform(void **state)
{
  (void)state;
  tp__tensors weights = fresh(&b0, 1);
  double limit = sqrt(6.0 / (1280 + 104));
  check_quantiles(find(&weights, "predictions/kernel"), limit, limit, uniform);
  tp__tensors_free(&weights);
}

static void check_all(const tp__tensors *weights, const char *name, size_t n, const float *wanted)
{
  const tp__tensor *t = find(weights, name);
  const float *w = t->data;
  assert_int_equal(tp__shape_elements(&t->shape, 0), n);
  for (size_t i = 0; i < n; i++)
    if (w[i] != wanted[i]) fail_msg("%s[%zu] is %g", name, i, (double)w[i]);
}

static void constants(void **state)
{
  (void)state;
  static const float zero[32] = {0}, mean[] = {0.485f, 0.456f, 0.406f},
                     deviation[] = {0.229f, 0.224f, 0.225f},
                     variance[] = {(float)(0.229 * 0.229), (float)(0.224 * 0.224),
                                   (float)(0.225 * 0.225)};
  float one[32];
  for (int i = 0; i < 32; i++) one[i] = 1;
  tp__model_spec spec = b0;
  tp__tensors weights = fresh(&spec, 7);
  check_all(&weights, "stem_bn/gamma", 32, one);
  check_all(&weights, "stem_bn/beta", 32, zero);
  check_all(&weights, "stem_bn/moving_mean", 32, zero);
  check_all(&weights, "stem_bn/moving_variance", 32, one);
  check_all(&weights, "block1a_se_reduce/bias", 8, zero);
  check_all(&weights, "normalization/mean", 3, mean);
  check_all(&weights, "normalization/variance", 3, variance);
  const tp__tensor *count = find(&weights, "normalization/count");
  assert_int_equal(count->dtype, TP__I64);
  assert_int_equal(*(const int64_t *)count->data, 0);
  tp__tensors_free(&weights);
  spec.official_preprocessing = true;
  weights = fresh(&spec, 7);
  check_all(&weights, "normalization/variance", 3, deviation);
  tp__tensors_free(&weights);
}

static bool same(const tp__tensors *a, const tp__tensors *b, const char *name)
{
  const tp__tensor *ta = find(a, name), *tb = find(b, name);
  return memcmp(ta->data, tb->data, tp__tensor_bytes(ta)) == 0;
}

/* Another number of classes, or dropout, changes no weight of the backbone; another seed changes
 * all; equal shapes differ. */
static void a_function_of_seed_and_name(void **state)
{
  (void)state;
  tp__model_spec other = b0;
  other.classes = 10;
  other.dropout = 0;
  tp__tensors a = fresh(&b0, 3), b = fresh(&other, 3), c = fresh(&b0, 4);
  assert_true(same(&a, &b, "top_conv/kernel"));
  assert_true(same(&a, &b, "block3b_dwconv/kernel"));
  assert_false(same(&a, &c, "top_conv/kernel"));
  assert_false(same(&a, &c, "predictions/kernel"));
  const tp__tensor *x = find(&a, "block6b_expand_conv/kernel");
  const tp__tensor *y = find(&a, "block6c_expand_conv/kernel");
  assert_true(tp__shape_equal(&x->shape, &y->shape));
  assert_memory_not_equal(x->data, y->data, tp__tensor_bytes(x));
  tp__tensors_free(&a);
  tp__tensors_free(&b);
  tp__tensors_free(&c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels_are_cut_normal),
      cmocka_unit_test(head_is_glorot_uniform),
      cmocka_unit_test(constants),
      cmocka_unit_test(a_function_of_seed_and_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
