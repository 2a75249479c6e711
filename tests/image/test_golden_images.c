/* Proves that decoding, resizing, flipping and rotating give the numbers of TensorFlow 2.21 and
 * Keras 3.15 on eight photos. Expected numbers and tolerances: ../shared/golden/README.md
 * (images8.npz). */
#include "../testing.h"

#include <math.h>

#include "image/image.h"
#include "npz.h"

enum { side = 192, values = side * side * 3 };

static npz *z;
static const uint8_t *rgb; /* [8,192,192,3] */

static int open_images(void **state)
{
  (void)state;
  const char *path = golden_file("images8.npz");
  if (path == NULL) return 0;
  z = npz_open(path);
  npz_shape shape;
  rgb = npz_u1(z, "rgb", &shape);
  assert_int_equal(shape.count, 8 * values);
  return 0;
}

static int close_images(void **state)
{
  (void)state;
  npz_close(z);
  return 0;
}

#define need_images()                                                                              \
  do {                                                                                             \
    if (z == NULL) {                                                                               \
      print_message("skipped: no golden numbers\n");                                               \
      skip();                                                                                      \
    }                                                                                              \
  } while (0)

/* Ours is 0...255, the expected 0...1. */
static void close_to(const float *ours, const float *expected, size_t count, double tolerance,
                     const char *what)
{
  double worst = 0;
  for (size_t i = 0; i < count; i++)
    worst = fmax(worst, fabs((double)ours[i] / 255 - (double)expected[i]));
  print_message("%s: largest difference %.2g of %.2g allowed\n", what, worst, tolerance);
  if (!(worst <= tolerance)) fail_msg("%s differs by %g", what, worst);
}

static void decodes(void **state)
{
  (void)state;
  need_images();
  tp_error err = {0};
  tp__picture p = {0};
  for (size_t i = 0; i < 8; i++) {
    char name[8];
    npz_shape shape;
    snprintf(name, sizeof name, "jpeg%zu", i);
    const uint8_t *bytes = npz_u1(z, name, &shape);
    assert_ok(tp__image_decode(bytes, shape.count, NULL, &p, &err));
    assert_int_equal(p.rgb.size, values);
    assert_memory_equal(p.rgb.data, rgb + i * values, values);
  }
  tp__buffer_free(&p.rgb);
}

static void resizes(void **state)
{
  (void)state;
  need_images();
  tp_error err = {0};
  static const struct {
    const char *name;
    int side;
  } cases[] = {{"resize160", 160}, {"resize224", 224}};
  for (size_t k = 0; k < 2; k++) {
    int out = cases[k].side;
    size_t count = (size_t)out * (size_t)out * 3;
    const float *expected = npz_f4(z, cases[k].name, NULL);
    float *ours = malloc(8 * count * sizeof *ours);
    for (size_t i = 0; i < 8; i++)
      assert_ok(tp__image_resize(rgb + i * values, NULL, side, side, ours + i * count, out, out,
                                 false, &err));
    close_to(ours, expected, 8 * count, 2e-5, cases[k].name);
    free(ours);
  }
}

static void flips(void **state)
{
  (void)state;
  need_images();
  const uint8_t *expected = npz_u1(z, "flip", NULL);
  uint8_t *ours = malloc(values);
  for (size_t i = 0; i < 4; i++) {
    memcpy(ours, rgb + i * values, values);
    tp__image_flip8(ours, side, side);
    assert_memory_equal(ours, expected + i * values, values);
  }
  free(ours);
}

static void rotates_by(float turn, const char *tag)
{
  char name[64];
  float matrix[8], *ours = malloc(values * sizeof *ours), sub[27 * 27 * 3];
  tp__turn_matrix(turn, side, side, matrix);
  snprintf(name, sizeof name, "rot_%s_matrix", tag);
  const float *expected = npz_f4(z, name, NULL);
  for (int i = 0; i < 8; i++) assert_true(fabsf(matrix[i] - expected[i]) <= 2e-5f);
  for (size_t i = 0; i < 8; i++) {
    tp__image_affine(rgb + i * values, NULL, side, side, matrix, TP__FILL_REFLECT, 0, true, ours);
    snprintf(name, sizeof name, "rot_%s", tag);
    if (i < 3) close_to(ours, npz_f4(z, name, NULL) + i * values, values, 1e-4, name);
    for (size_t y = 0; y < 27; y++)
      for (size_t x = 0; x < 27; x++)
        memcpy(sub + (y * 27 + x) * 3, ours + ((3 + 7 * y) * side + 3 + 7 * x) * 3,
               3 * sizeof *sub);
    snprintf(name, sizeof name, "rot_%s_sub", tag);
    close_to(sub, npz_f4(z, name, NULL) + i * 27 * 27 * 3, sizeof sub / sizeof *sub, 1e-4, name);
  }
  free(ours);
}

static void rotates(void **state)
{
  (void)state;
  need_images();
  rotates_by(-0.1f, "m0p10");
  rotates_by(0.03f, "p0p03");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(decodes),
      cmocka_unit_test(resizes),
      cmocka_unit_test(flips),
      cmocka_unit_test(rotates),
  };
  return cmocka_run_group_tests(tests, open_images, close_images);
}
