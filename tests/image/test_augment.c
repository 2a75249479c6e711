/* Proves that random crops, their resizing and changes of colours are those of torchvision for the
 * same draws; that a crop that is turned is one sampling of the picture; that draws come from the
 * key alone; and that all instruction sets give the same bits. Expected numbers:
 * tests/fixtures/augment_ref.npz by tests/ref/augment_ref.py (torchvision 0.24), and plain formulas
 * here. Hostile cases: pictures of one pixel, and long ones that no try fits. */
#include "../testing.h"

#include <math.h>

#include "image/image.h"
#include "image/parts.h"
#include "image/rows.h"
#include "npz.h"

static npz *reference(void)
{
  return npz_open(TP_SOURCE_ROOT "/tests/fixtures/augment_ref.npz");
}

static void crops_as_torchvision(void **state)
{
  (void)state;
  npz *z = reference();
  npz_shape shape;
  const float *about = npz_f4(z, "crop:about", &shape);
  const int32_t *word = npz_i4(z, "crop:key", NULL), *rect = npz_i4(z, "crop:rect", NULL);
  assert_true(shape.size[0] > 100);
  for (size_t k = 0; k < shape.size[0]; k++, about += 4, word += 2, rect += 4) {
    tp__key key = {{(uint32_t)word[0], (uint32_t)word[1]}};
    tp__rect r = tp__image_crop_of(about[2], about[3], (int)about[0], (int)about[1], key);
    if (r.y != rect[0] || r.x != rect[1] || r.h != rect[2] || r.w != rect[3])
      fail_msg("case %zu, %gx%g, %g, %g: %d,%d %dx%d; torchvision %d,%d %dx%d", k, about[0],
               about[1], about[2], about[3], r.y, r.x, r.h, r.w, rect[0], rect[1], rect[2],
               rect[3]);
  }
  npz_close(z);
}

static void resized_as_torchvision(void **state)
{
  (void)state;
  enum { oh = 16, ow = 12, values = oh * ow * 3 };
  npz *z = reference();
  npz_shape shape, size;
  const int32_t *rect = npz_i4(z, "resized:rect", &shape);
  const uint8_t *picture = npz_u1(z, "resized:picture", &size);
  size_t n = shape.size[0];
  for (int antialias = 0; antialias < 2; antialias++) {
    const float *wanted = npz_f4(z, antialias ? "resized:antialias" : "resized:plain", NULL);
    for (size_t k = 0; k < 2 * n; k++, wanted += values) {
      const int32_t *b = rect + 4 * (k % n);
      const tp__region region = {
          picture, (int)size.size[0], (int)size.size[1], b[0], b[1], b[2], b[3], k >= n};
      tp_error err = {0};
      float out[values];
      assert_ok(tp__region_resize(&region, out, oh, ow, antialias, &err));
      for (int i = 0; i < values; i++)
        if (!(fabsf(out[i] - wanted[i]) < 1e-3f))
          fail_msg("rectangle %zu, antialias %d, value %d: %g, torchvision %g", k, antialias, i,
                   out[i], wanted[i]);
    }
  }
  npz_close(z);
}

/* torchvision's grey has 0.2989 for red, which makes 0.1 of 255 of difference at most. */
static void colours_as_torchvision(void **state)
{
  (void)state;
  npz *z = reference();
  npz_shape shape, cases;
  const float *picture = npz_f4(z, "colour:picture", &shape);
  const float *factor = npz_f4(z, "colour:factor", &cases), *wanted = npz_f4(z, "colour:out", NULL);
  float out[9 * 11 * 3], line[11 * 3];
  assert_int_equal(shape.count, sizeof out / sizeof *out);
  for (size_t k = 0; k < cases.size[0]; k++, factor += 3, wanted += shape.count) {
    const tp__colours by = {factor[0], factor[1], factor[2]};
    memcpy(out, picture, sizeof out);
    tp__image_recolour(out, 9, 11, &by, line);
    for (size_t i = 0; i < shape.count; i++)
      if (!(fabsf(out[i] - wanted[i]) < 0.1f))
        fail_msg("case %zu, value %zu: %g, torchvision %g", k, i, out[i], wanted[i]);
  }
  npz_close(z);
}

/* Nothing leaves 0...255, and factors of 1 change nothing. */
static void colours_are_held(void **state)
{
  (void)state;
  float out[4 * 3] = {0, 10, 250, 255, 255, 255, 0, 0, 0, 128, 3, 7}, line[2 * 3], same[4 * 3];
  memcpy(same, out, sizeof out);
  tp__image_recolour(same, 2, 2, &(tp__colours){1, 1, 1}, line);
  assert_memory_equal(same, out, sizeof out);
  tp__image_recolour(out, 2, 2, &(tp__colours){2, 3, 5}, line);
  for (int i = 0; i < 12; i++) assert_true(out[i] >= 0 && out[i] <= 255);
  assert_true(out[2] == 255 && out[0] == 0);
}

/* ---- the recipe ---- */

enum { h = 50, w = 70, oh = 24, ow = 32, values = oh * ow * 3 };
static uint8_t rgb[h * w * 3];

static void fill_picture(void)
{
  for (int i = 0; i < h * w * 3; i++)
    rgb[i] = (uint8_t)(127 + 60 * sin(i / 3 % w * 0.2) + 60 * cos(i / 3 / w * 0.3 + i % 3));
}

static void finish(const tp__image_recipe *recipe, bool augment, tp__key key, float *out)
{
  tp__image_scratch scratch = {0};
  tp_error err = {0};
  assert_ok(tp__image_finish(recipe, rgb, h, w, augment, key, &scratch, out, &err));
  tp__image_scratch_free(&scratch);
}

/* The steps one by one, from what the key gives. */
static void recipe_draws_from_the_key(void **state)
{
  (void)state;
  const tp__image_recipe recipe = {.height = oh,
                                   .width = ow,
                                   .flip = true,
                                   .crop = 0.3f,
                                   .crop_ratio = 1.5f,
                                   .colours = {0.5f, 0.4f, 0.3f}};
  fill_picture();
  tp_error err = {0};
  int mirrored = 0;
  for (uint64_t example = 0; example < 40; example++) {
    tp__key key = tp__key_of(5, 1, example);
    float out[values], wanted[values], line[ow * 3];
    finish(&recipe, true, key, out);
    tp__rect r = tp__image_crop_of(0.3f, 1.5f, h, w, key);
    bool mirror = tp__uniform(key, TP__DRAW_FLIP, 0) < 0.5f;
    mirrored += mirror;
    uint8_t part[h * w * 3];
    for (int y = 0; y < r.h; y++)
      memcpy(part + y * r.w * 3, rgb + ((r.y + y) * w + r.x) * 3, (size_t)r.w * 3);
    assert_ok(tp__image_resize(part, NULL, r.h, r.w, wanted, oh, ow, false, &err));
    if (mirror) tp__image_flip(wanted, oh, ow);
    tp__colours by = tp__image_colours_of(&recipe.colours, key);
    assert_true(by.brightness >= 0.5f && by.brightness <= 1.5f && by.contrast >= 0.6f &&
                by.contrast <= 1.4f && by.saturation >= 0.7f && by.saturation <= 1.3f);
    tp__image_recolour(wanted, oh, ow, &by, line);
    assert_memory_equal(out, wanted, sizeof out);
    assert_true(r.h * r.w >= 0.28 * h * w && r.w < 1.6 * r.h && r.h < 1.6 * r.w);
  }
  assert_in_range(mirrored, 8, 32);
}

static double sampled(double x, double y, int c)
{
  x = fmin(fmax(x, 0), w - 1);
  y = fmin(fmax(y, 0), h - 1);
  int x0 = (int)fmin(x, w - 2), y0 = (int)fmin(y, h - 2);
  double u = x - x0, v = y - y0;
  const uint8_t *p = rgb + (y0 * w + x0) * 3 + c;
  return (1 - v) * ((1 - u) * p[0] + u * p[3]) + v * ((1 - u) * p[w * 3] + u * p[w * 3 + 3]);
}

/* Output pixel -> turned about the middle -> mirrored -> crop -> picture, in double; beyond the
 * crop is the picture, beyond that its edge. */
static void crop_and_turn_is_one_sampling(void **state)
{
  (void)state;
  const tp__image_recipe recipe = {.height = oh,
                                   .width = ow,
                                   .flip = true,
                                   .rotate = 0.2f,
                                   .fill = TP__FILL_NEAREST,
                                   .crop = 0.2f,
                                   .crop_ratio = 1.3f};
  fill_picture();
  for (uint64_t example = 0; example < 20; example++) {
    tp__key key = tp__key_of(5, 2, example);
    float out[values];
    finish(&recipe, true, key, out);
    tp__rect r = tp__image_crop_of(0.2f, 1.3f, h, w, key);
    bool mirror = tp__uniform(key, TP__DRAW_FLIP, 0) < 0.5f;
    double turn = (2 * (double)tp__uniform(key, TP__DRAW_ROTATE, 0) - 1) * (double)0.2f;
    double c = cos(turn * 2 * 3.14159265358979323846), s = sin(turn * 2 * 3.14159265358979323846);
    for (int y = 0; y < oh; y++)
      for (int x = 0; x < ow; x++) {
        double dx = x - 0.5 * (ow - 1), dy = y - 0.5 * (oh - 1);
        double u = c * dx - s * dy + 0.5 * (ow - 1), v = s * dx + c * dy + 0.5 * (oh - 1);
        if (mirror) u = ow - 1 - u;
        double px = (u + 0.5) * r.w / ow - 0.5 + r.x, py = (v + 0.5) * r.h / oh - 0.5 + r.y;
        for (int k = 0; k < 3; k++) {
          double wanted = sampled(px, py, k), got = (double)out[(y * ow + x) * 3 + k];
          if (!(fabs(got - wanted) < 0.02))
            fail_msg("example %d, %d,%d: %g, wanted %g", (int)example, y, x, got, wanted);
        }
      }
  }
}

/* Antialias, and validation. */
static void recipe_as_steps(void **state)
{
  (void)state;
  tp__image_recipe recipe = {.height = oh,
                             .width = ow,
                             .rotate = 0.2f,
                             .fill = TP__FILL_REFLECT,
                             .antialias = true,
                             .crop = 0.2f,
                             .crop_ratio = 1.3f,
                             .colours = {1, 1, 1}};
  fill_picture();
  tp_error err = {0};
  float out[values], wanted[values], step[values], matrix[8];
  finish(&recipe, false, tp__key_of(1, 1, 1), out);
  assert_ok(tp__image_resize(rgb, NULL, h, w, wanted, oh, ow, true, &err));
  assert_memory_equal(out, wanted, sizeof out);
  recipe.colours = (tp__colours){0};
  tp__key key = tp__key_of(5, 3, 1);
  finish(&recipe, true, key, out);
  tp__rect r = tp__image_crop_of(0.2f, 1.3f, h, w, key);
  const tp__region region = {rgb, h, w, r.y, r.x, r.h, r.w, false};
  assert_ok(tp__region_resize(&region, step, oh, ow, true, &err));
  tp__turn_matrix((2 * tp__uniform(key, TP__DRAW_ROTATE, 0) - 1) * 0.2f, oh, ow, matrix);
  tp__image_affine(NULL, step, oh, ow, matrix, TP__FILL_REFLECT, 0, true, wanted);
  assert_memory_equal(out, wanted, sizeof out);
}

/* Read into memory that is exactly as large as the picture: the sanitizer sees one byte beyond. */
static void tiny_pictures(void **state)
{
  (void)state;
  tp__image_recipe recipe = {.height = 5, .width = 4, .flip = true, .rotate = 0.5f, .crop = 0.1f};
  recipe.crop_ratio = 2;
  recipe.colours = (tp__colours){3, 3, 3};
  tp_error err = {0};
  for (int height = 1; height <= 4; height++)
    for (int width = 1; width <= 9; width++)
      for (uint64_t example = 0; example < 30; example++) {
        recipe.rotate = example < 15 ? 0.5f : 0;
        size_t bytes = (size_t)height * (size_t)width * 3;
        uint8_t *tiny = malloc(bytes);
        float out[5 * 4 * 3];
        tp__image_scratch scratch = {0};
        memset(tiny, 200, bytes);
        assert_ok(tp__image_finish(&recipe, tiny, height, width, true, tp__key_of(1, 1, example),
                                   &scratch, out, &err));
        for (int i = 0; i < 60; i++) assert_true(out[i] >= 0 && out[i] <= 255);
        tp__image_scratch_free(&scratch);
        free(tiny);
      }
}

static void same_bits_on_every_set(void **state)
{
  (void)state;
  enum { pixels = 333 };
  float first[pixels * 3], out[pixels * 3];
  const float k[3] = {1.3f, -0.21f, 7.7f};
  for (int level = 0; tp__image_kernels_at(level) != NULL; level++) {
    for (uint32_t i = 0; i < pixels * 3; i++) out[i] = (float)(i * 2654435761u >> 24) + 0.3f;
    tp__image_kernels_at(level)->recolour(out, pixels, k);
    if (level == 0) memcpy(first, out, sizeof out);
    assert_memory_equal(out, first, sizeof out);
  }
  for (int i = 0; i < pixels; i++) {
    uint32_t at = 3 * (uint32_t)i;
    double in[3], grey;
    for (uint32_t c = 0; c < 3; c++) in[c] = (at + c) * 2654435761u / 16777216u + (double)0.3f;
    grey = 0.299 * in[0] + 0.587 * in[1] + 0.114 * in[2];
    for (uint32_t c = 0; c < 3; c++) {
      double wanted = fmin(fmax(1.3 * in[c] - 0.21 * grey + 7.7, 0), 255);
      assert_true(fabs((double)first[at + c] - wanted) < 1e-3);
    }
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(crops_as_torchvision),      cmocka_unit_test(resized_as_torchvision),
      cmocka_unit_test(colours_as_torchvision),    cmocka_unit_test(colours_are_held),
      cmocka_unit_test(recipe_draws_from_the_key), cmocka_unit_test(crop_and_turn_is_one_sampling),
      cmocka_unit_test(recipe_as_steps),           cmocka_unit_test(tiny_pictures),
      cmocka_unit_test(same_bits_on_every_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
