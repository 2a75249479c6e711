/* Proves at which size a JPEG is decoded where less is enough: half, quarter or eighth, neither
 * side below what is wanted, upright or lying; that its pixels are about the means of the whole
 * picture's; that nothing changes when it isn't asked for, nor for a PNG; that the size is told
 * beforehand; and that a crop still finds enough. Expected sizes: libjpeg's rule, ceil(size x n /
 * 8). Hostile: cut files, the smallest pictures. */
#include "../testing.h"

#include <math.h>

#include "image/image.h"
#include "npz.h"

/* A smooth picture, so that means over blocks and a smaller transform agree. */
static void smooth_jpeg(int h, int w, tp__buffer *jpeg)
{
  tp_error err = {0};
  uint8_t *rgb = malloc((size_t)h * (size_t)w * 3);
  assert_non_null(rgb);
  for (int i = 0; i < h * w; i++) {
    rgb[3 * i] = (uint8_t)(128 + 90 * sin(i % w * 6.0 / w));
    rgb[3 * i + 1] = (uint8_t)(128 + 90 * cos(i / w * 5.0 / h));
    rgb[3 * i + 2] = (uint8_t)(40 + 100 * (i % w) / w);
  }
  jpeg->size = 0;
  assert_ok(tp__image_encode_jpeg(rgb, h, w, 95, jpeg, &err));
  free(rgb);
}

static void sizes(void **state)
{
  (void)state;
  static const struct {
    int h, w, least_h, least_w, wanted_h, wanted_w;
  } cases[] = {
      {400, 600, 0, 0, 400, 600},
      {400, 600, 192, 192, 200, 300},
      {400, 600, 200, 300, 200, 300},
      {400, 600, 201, 200, 400, 600},
      {400, 600, 100, 100, 100, 150},
      {400, 600, 50, 75, 50, 75},
      {400, 600, 51, 75, 100, 150},
      {400, 600, 1, 1, 50, 75},
      {400, 600, 500, 700, 400, 600},
      {385, 193, 192, 96, 193, 97},
      {385, 193, 193, 97, 193, 97},
      {385, 193, 194, 97, 385, 193},
      {1, 1, 1, 1, 1, 1},
      {3, 17, 1, 2, 1, 3},
      {9, 8, 1, 1, 2, 1},
      {400, 600, 192, 0, 400, 600},
  };
  tp_error err = {0};
  tp__buffer jpeg;
  tp__picture p = {0};
  tp__buffer_init(&jpeg, 1 << 22);
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    int h = 0, w = 0;
    smooth_jpeg(cases[k].h, cases[k].w, &jpeg);
    tp__decode_options o = {.least_height = cases[k].least_h, .least_width = cases[k].least_w};
    assert_ok(tp__image_decoded_size(jpeg.data, jpeg.size, &o, &h, &w, &err));
    assert_ok(tp__image_decode(jpeg.data, jpeg.size, &o, &p, &err));
    if (p.height != cases[k].wanted_h || p.width != cases[k].wanted_w || h != p.height ||
        w != p.width)
      fail_msg("case %zu: %dx%d, told %dx%d, wanted %dx%d", k, p.height, p.width, h, w,
               cases[k].wanted_h, cases[k].wanted_w);
    assert_int_equal(p.rgb.size, (size_t)h * (size_t)w * 3);
  }
  tp__buffer_free(&p.rgb);
  tp__buffer_free(&jpeg);
}

static void pixels_are_means(void **state)
{
  (void)state;
  enum { H = 160, W = 240 };
  tp_error err = {0};
  tp__buffer jpeg;
  tp__picture whole = {0}, less = {0};
  tp__buffer_init(&jpeg, 1 << 22);
  smooth_jpeg(H, W, &jpeg);
  assert_ok(tp__image_decode(jpeg.data, jpeg.size, NULL, &whole, &err));
  for (int by = 2; by <= 8; by *= 2) {
    const tp__decode_options o = {.least_height = H / by, .least_width = W / by};
    assert_ok(tp__image_decode(jpeg.data, jpeg.size, &o, &less, &err));
    assert_int_equal(less.width, W / by);
    for (int y = 0; y < H / by; y++)
      for (int x = 0; x < W / by * 3; x++) {
        double sum = 0;
        for (int i = 0; i < by * by; i++)
          sum += whole.rgb.data[((y * by + i / by) * W + x / 3 * by + i % by) * 3 + x % 3];
        double got = less.rgb.data[y * (W / by) * 3 + x];
        if (!(fabs(got - sum / (by * by)) < 6))
          fail_msg("1/%d, row %d, value %d: %g, mean %g", by, y, x, got, sum / (by * by));
      }
  }
  tp__buffer_free(&whole.rgb);
  tp__buffer_free(&less.rgb);
  tp__buffer_free(&jpeg);
}

/* 20 x 40 that stands upright as 40 x 20: what is wanted is meant upright. */
static void lying_pictures(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__buffer file;
  tp__picture p = {0};
  tp__buffer_init(&file, 1 << 20);
  assert_ok(tp__file_read(TP_SOURCE_ROOT "/tests/fixtures/B09_exif6.jpg", &file, &err));
  static const int cases[][5] = {/* turned, least h and w, wanted h and w */
                                 {0, 10, 20, 10, 20}, {0, 20, 10, 20, 40}, {1, 20, 10, 20, 10},
                                 {1, 10, 20, 40, 20}, {1, 5, 3, 5, 3},     {0, 5, 3, 5, 10}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const int *c = cases[k];
    int h = 0, w = 0;
    const tp__decode_options o = {
        .exif_rotate = c[0] != 0, .least_height = c[1], .least_width = c[2]};
    assert_ok(tp__image_decoded_size(file.data, file.size, &o, &h, &w, &err));
    assert_ok(tp__image_decode(file.data, file.size, &o, &p, &err));
    if (p.height != c[3] || p.width != c[4] || h != c[3] || w != c[4])
      fail_msg("case %zu: %dx%d, told %dx%d, wanted %dx%d", k, p.height, p.width, h, w, c[3], c[4]);
  }
  for (size_t n = 0; n < file.size; n++) { /* cut anywhere: refused, or whole */
    const tp__decode_options o = {.exif_rotate = true, .least_height = 5, .least_width = 5};
    tp_status status = tp__image_decode(file.data, n, &o, &p, &err);
    assert_true(status == TP_ERR_DATA);
  }
  tp__buffer_free(&p.rgb);
  tp__buffer_free(&file);
}

static void not_for_png(void **state)
{
  (void)state;
  tp_error err = {0};
  npz *z = npz_open(TP_SOURCE_ROOT "/tests/fixtures/image_ref.npz");
  npz_shape file, rgb;
  const uint8_t *bytes = npz_u1(z, "png1:file", &file), *wanted = npz_u1(z, "png1:rgb", &rgb);
  const tp__decode_options o = {.least_height = 1, .least_width = 1};
  int h = 0, w = 0;
  tp__picture p = {0};
  assert_ok(tp__image_decoded_size(bytes, file.count, &o, &h, &w, &err));
  assert_ok(tp__image_decode(bytes, file.count, &o, &p, &err));
  assert_true(h == p.height && w == p.width && rgb.count == p.rgb.size);
  assert_memory_equal(p.rgb.data, wanted, rgb.count);
  tp__buffer_free(&p.rgb);
  npz_close(z);
}

/* What a recipe asks for: the network's size, and more where only a part is used. */
static void of_a_recipe(void **state)
{
  (void)state;
  tp__image_recipe recipe = {.height = 192, .width = 160};
  tp__image_recipe_decode_less(&recipe);
  assert_true(recipe.decode.least_height == 192 && recipe.decode.least_width == 160);
  recipe.crop = 0.25f;
  tp__image_recipe_decode_less(&recipe);
  assert_true(recipe.decode.least_height == 384 && recipe.decode.least_width == 320);
  recipe.crop = 1e-30f;
  tp__image_recipe_decode_less(&recipe);
  assert_true(recipe.decode.least_height == 65536 && recipe.decode.least_width == 65536);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes),          cmocka_unit_test(pixels_are_means),
      cmocka_unit_test(lying_pictures), cmocka_unit_test(not_for_png),
      cmocka_unit_test(of_a_recipe),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
