/* Proves what happens to one example: nothing random outside training (B43), the same for the same
 * key, mirrors and turns as asked, exact values where nothing is resampled. Expected numbers:
 * computed here from the decoded pixels by the single steps, which have tests of their own. */
#include "../testing.h"

#include <math.h>

#include "image/image.h"

enum { h = 40, w = 56, count = h * w * 3 };

static uint8_t rgb[count];
static tp__buffer jpeg;

static int make_picture(void **state)
{
  (void)state;
  tp_error err = {0};
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      uint8_t *p = rgb + (y * w + x) * 3;
      p[0] = (uint8_t)(x * 4);
      p[1] = (uint8_t)(y * 6);
      p[2] = (uint8_t)((x ^ y) * 3);
    }
  tp__buffer_init(&jpeg, 1 << 20);
  tp__picture p = {0};
  if (tp__image_encode_jpeg(rgb, h, w, 95, &jpeg, &err) != TP_OK) return 1;
  if (tp__image_decode(jpeg.data, jpeg.size, NULL, &p, &err) != TP_OK) return 1;
  memcpy(rgb, p.rgb.data, count);
  tp__buffer_free(&p.rgb);
  return 0;
}

static int free_picture(void **state)
{
  (void)state;
  tp__buffer_free(&jpeg);
  return 0;
}

static void prepare(const tp__image_recipe *recipe, bool augment, uint64_t example, float *out)
{
  tp_error err = {0};
  tp__image_scratch scratch = {0};
  assert_ok(tp__image_prepare(recipe, jpeg.data, jpeg.size, augment, tp__key_of(3, 0, example),
                              &scratch, out, &err));
  tp__image_scratch_free(&scratch);
}

static void identity_outside_training(void **state)
{
  (void)state;
  const tp__image_recipe all = {.height = h, .width = w, .flip = true, .rotate = 0.3f};
  float out[count];
  for (uint64_t example = 0; example < 8; example++) {
    prepare(&all, false, example, out);
    for (int i = 0; i < count; i++) assert_true(out[i] == (float)rgb[i]);
  }
}

static void flip_is_a_coin(void **state)
{
  (void)state;
  const tp__image_recipe recipe = {.height = h, .width = w, .flip = true};
  float out[count];
  uint8_t mirrored[count];
  memcpy(mirrored, rgb, count);
  tp__image_flip8(mirrored, h, w);
  int flipped = 0;
  for (uint64_t example = 0; example < 200; example++) {
    prepare(&recipe, true, example, out);
    bool flip = tp__uniform(tp__key_of(3, 0, example), TP__DRAW_FLIP, 0) < 0.5f;
    flipped += flip;
    for (int i = 0; i < count; i++) assert_true(out[i] == (float)(flip ? mirrored : rgb)[i]);
  }
  assert_in_range(flipped, 70, 130);
  tp__image_flip8(mirrored, h, w);
  assert_memory_equal(mirrored, rgb, count);
}

/* Every width, in place; two mirrors are none. */
static void flip_of_flip(void **state)
{
  (void)state;
  enum { most = 300 };
  uint8_t row[2 * most * 3], flipped[2 * most * 3];
  float wide[2 * most * 3];
  for (int i = 0; i < 2 * most * 3; i++) row[i] = (uint8_t)(i * 7 + i / 256);
  for (int n = 1; n <= most; n++) {
    for (int i = 0; i < 2 * n * 3; i++) wide[i] = flipped[i] = row[i];
    tp__image_flip8(flipped, 2, n);
    tp__image_flip(wide, 2, n);
    for (int y = 0; y < 2; y++)
      for (int x = 0; x < n; x++)
        for (int c = 0; c < 3; c++) {
          int at = (y * n + x) * 3 + c, from = (y * n + n - 1 - x) * 3 + c;
          assert_true(flipped[at] == row[from] && wide[at] == (float)row[from]);
        }
    tp__image_flip8(flipped, 2, n);
    assert_memory_equal(flipped, row, (size_t)n * 6);
  }
}

/* Every example gets its own angle, within the limits, and always the same one. */
static void rotation_by_key(void **state)
{
  (void)state;
  const tp__image_recipe recipe = {
      .height = h, .width = w, .rotate = 0.1f, .fill = TP__FILL_NEAREST};
  float out[count], again[count], expected[count], before[count], matrix[8];
  for (uint64_t example = 0; example < 8; example++) {
    prepare(&recipe, true, example, out);
    prepare(&recipe, true, example, again);
    assert_memory_equal(out, again, sizeof out);
    float turn = (2 * tp__uniform(tp__key_of(3, 0, example), TP__DRAW_ROTATE, 0) - 1) * 0.1f;
    assert_true(turn >= -0.1f && turn <= 0.1f);
    tp__turn_matrix(turn, h, w, matrix);
    tp__image_affine(rgb, NULL, h, w, matrix, TP__FILL_NEAREST, 0, true, expected);
    assert_memory_equal(out, expected, sizeof out);
    if (example > 0) assert_memory_not_equal(out, before, sizeof out);
    memcpy(before, out, sizeof out);
  }
}

/* Resize, flip, rotate: in this order, each as the single step does it. */
static void order_of_steps(void **state)
{
  (void)state;
  tp_error err = {0};
  enum { oh = 31, ow = 29 };
  const tp__image_recipe recipe = {.height = oh,
                                   .width = ow,
                                   .antialias = true,
                                   .fill = TP__FILL_CONSTANT,
                                   .fill_value = 12,
                                   .always_flip = true,
                                   .always_rotate = 0.05f};
  float out[oh * ow * 3], step[oh * ow * 3], expected[oh * ow * 3], matrix[8];
  prepare(&recipe, false, 0, out);
  assert_ok(tp__image_resize(rgb, NULL, h, w, step, oh, ow, true, &err));
  tp__image_flip(step, oh, ow);
  tp__turn_matrix(0.05f, oh, ow, matrix);
  tp__image_affine(NULL, step, oh, ow, matrix, TP__FILL_CONSTANT, 12, true, expected);
  assert_memory_equal(out, expected, sizeof out);
}

/* The cached-pixels entry gives what the whole gives, and one scratch serves pictures of all sizes
 * in turn. */
static void finish_equals_prepare(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__image_scratch scratch = {0};
  static const int side[] = {40, 17, 64, 40};
  for (int k = 0; k < 4; k++) {
    const tp__image_recipe recipe = {
        .height = side[k], .width = side[k] + 16, .flip = true, .rotate = 1.0f};
    size_t values = (size_t)side[k] * (size_t)(side[k] + 16) * 3;
    float *a = malloc(values * sizeof *a), *b = malloc(values * sizeof *b);
    for (uint64_t example = 0; example < 6; example++) {
      tp__key key = tp__key_of(9, 1, example);
      assert_ok(tp__image_prepare(&recipe, jpeg.data, jpeg.size, true, key, &scratch, a, &err));
      assert_ok(tp__image_finish(&recipe, rgb, h, w, true, key, &scratch, b, &err));
      assert_memory_equal(a, b, values * sizeof *a);
      for (size_t i = 0; i < values; i++) assert_true(a[i] >= -0.01f && a[i] <= 255.01f);
    }
    free(a);
    free(b);
  }
  tp__image_scratch_free(&scratch);
}

static void says_when_float(void **state)
{
  (void)state;
  const tp__image_recipe flip = {.flip = true, .always_flip = true}, rotate = {.rotate = 0.1f},
                         view = {.always_rotate = -0.02f};
  assert_false(tp__image_recipe_is_float(&flip));
  assert_true(tp__image_recipe_is_float(&rotate));
  assert_true(tp__image_recipe_is_float(&view));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(identity_outside_training),
      cmocka_unit_test(flip_is_a_coin),
      cmocka_unit_test(flip_of_flip),
      cmocka_unit_test(rotation_by_key),
      cmocka_unit_test(order_of_steps),
      cmocka_unit_test(finish_equals_prepare),
      cmocka_unit_test(says_when_float),
  };
  return cmocka_run_group_tests(tests, make_picture, free_picture);
}
