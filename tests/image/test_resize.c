/* Proves that resizing gives TensorFlow's numbers with and without antialias, from 8-bit and float
 * pixels, larger and smaller, and the same bits on every instruction set. Expected numbers:
 * tests/fixtures/image_ref.npz by tests/ref/image_ref.py (TensorFlow 2.21). Hostile case: sizes of
 * 0. */
#include "../testing.h"

#include <math.h>

#include "image/image.h"
#include "image/rows.h"
#include "npz.h"

static void compare(const uint8_t *in, const npz_shape *from, const float *expected,
                    const npz_shape *to, bool antialias)
{
  tp_error err = {0};
  int h = (int)from->size[0], w = (int)from->size[1], oh = (int)to->size[0], ow = (int)to->size[1];
  float *out = malloc(to->count * sizeof *out), *in_float = malloc(from->count * sizeof *in_float);
  assert_ok(tp__image_resize(in, NULL, h, w, out, oh, ow, antialias, &err));
  for (size_t i = 0; i < to->count; i++)
    if (fabsf(out[i] - expected[i]) > 255 * 2e-6f)
      fail_msg("%dx%d to %dx%d%s, value %zu: %g, TensorFlow %g", w, h, ow, oh,
               antialias ? " antialias" : "", i, out[i], expected[i]);
  float *again = malloc(to->count * sizeof *again);
  for (size_t i = 0; i < from->count; i++) in_float[i] = in[i];
  assert_ok(tp__image_resize(NULL, in_float, h, w, again, oh, ow, antialias, &err));
  assert_memory_equal(again, out, to->count * sizeof *out);
  free(again);
  free(in_float);
  free(out);
}

static void equals_tensorflow(void **state)
{
  (void)state;
  npz *z = npz_open(TP_SOURCE_ROOT "/tests/fixtures/image_ref.npz");
  int count = *npz_i4(z, "resize:count", NULL);
  assert_int_equal(count, 7);
  for (int k = 0; k < count; k++) {
    char name[32];
    npz_shape from, to;
    snprintf(name, sizeof name, "resize%d:in", k);
    const uint8_t *in = npz_u1(z, name, &from);
    snprintf(name, sizeof name, "resize%d:plain", k);
    const float *plain = npz_f4(z, name, &to);
    compare(in, &from, plain, &to, false);
    snprintf(name, sizeof name, "resize%d:antialias", k);
    compare(in, &from, npz_f4(z, name, &to), &to, true);
  }
  npz_close(z);
}

/* Every row loop of every set against the first one. */
static void instruction_sets_agree(void **state)
{
  (void)state;
  enum { w = 77, ow = 53 };
  uint8_t in[3 * w], back[3 * w], expected_back[3 * w];
  float wide[3 * w], other[3 * w], a[3 * w], b[3 * w];
  tp__tap taps[ow];
  for (uint32_t i = 0; i < 3 * w; i++) in[i] = (uint8_t)(i * 2654435761u >> 21);
  for (int i = 0; i < 3 * w; i++) other[i] = (float)in[3 * w - 1 - i] / 7;
  for (int x = 0; x < ow; x++)
    taps[x] = (tp__tap){3 * (x * 76 / 52), 3 * ((x * 76 + 51) / 52), (float)x / 60};
  const tp__image_kernels *base = tp__image_kernels_at(0), *k = NULL;
  for (int level = 0; (k = tp__image_kernels_at(level)) != NULL; level++) {
    k->widen(in, 3 * w, wide);
    for (int i = 0; i < 3 * w; i++) assert_float_equal(wide[i], in[i], 0);
    for (int n = 1; n <= w; n++) {
      for (int x = 0; x < n; x++) memcpy(expected_back + 3 * (n - 1 - x), in + 3 * x, 3);
      k->mirror(in, n, back);
      assert_memory_equal(back, expected_back, (size_t)n * 3);
    }
    base->stretch8(in, w, taps, ow, a);
    k->stretch8(in, w, taps, ow, b);
    assert_memory_equal(a, b, ow * 3 * sizeof *a);
    k->stretch(wide, taps, ow, b);
    assert_memory_equal(a, b, ow * 3 * sizeof *a);
    base->blend(wide, other, 0.3f, 3 * w, a);
    k->blend(wide, other, 0.3f, 3 * w, b);
    assert_memory_equal(a, b, sizeof a);
    memcpy(a, other, sizeof a);
    memcpy(b, other, sizeof b);
    base->add_scaled8(in, 0.7f, 3 * w, a);
    k->add_scaled8(in, 0.7f, 3 * w, b);
    assert_memory_equal(a, b, sizeof a);
    base->add_scaled(wide, 0.1f, 3 * w, a);
    k->add_scaled(wide, 0.1f, 3 * w, b);
    assert_memory_equal(a, b, sizeof a);
  }
}

static void refuses_empty(void **state)
{
  (void)state;
  tp_error err = {0};
  uint8_t in[3] = {1, 2, 3};
  float out[3];
  assert_fails(tp__image_resize(in, NULL, 0, 1, out, 1, 1, false, &err), TP_ERR_USAGE, "1 x 0");
  assert_fails(tp__image_resize(in, NULL, 1, 1, out, 1, -1, true, &err), TP_ERR_USAGE, "-1 x 1");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equals_tensorflow),
      cmocka_unit_test(instruction_sets_agree),
      cmocka_unit_test(refuses_empty),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
