/* Proves that rotation gives Keras' numbers for every fill, both samplings and odd shapes, that
 * rows done by the fast loops are those of the plain rule bit for bit on every instruction set, and
 * case B45. Expected numbers: tests/fixtures/image_ref.npz by tests/ref/image_ref.py (Keras 3.15,
 * TensorFlow 2.21); B45 as in the list of cases. Hostile cases: matrices of infinities and NaN,
 * pictures of one pixel. */
#include "../testing.h"

#include <math.h>

#include "image/image.h"
#include "image/rows.h"
#include "npz.h"

static void equals_keras(void **state)
{
  (void)state;
  npz *z = npz_open(TP_SOURCE_ROOT "/tests/fixtures/image_ref.npz");
  npz_shape shape;
  const int32_t *size = npz_i4(z, "affine:size", &shape);
  const uint8_t *in = npz_u1(z, "affine:in", NULL);
  const float *matrix = npz_f4(z, "affine:matrix", NULL), *about = npz_f4(z, "affine:about", NULL);
  const float *expected = npz_f4(z, "affine:out", NULL);
  assert_true(shape.size[0] > 100);
  for (size_t k = 0; k < shape.size[0]; k++, size += 2, matrix += 8, about += 4) {
    int h = size[0], w = size[1];
    size_t count = (size_t)h * (size_t)w * 3;
    float ours[31 * 20 * 3], in_float[31 * 20 * 3], from_float[31 * 20 * 3], computed[8];
    tp__image_affine(in, NULL, h, w, matrix, (tp__fill)about[0], about[1], about[2] != 0, ours);
    for (size_t i = 0; i < count; i++) {
      in_float[i] = in[i];
      if (fabsf(ours[i] - expected[i]) > 1e-3f)
        fail_msg("case %zu (%dx%d, fill %g, turn %g), value %zu: %g, Keras %g", k, h, w, about[0],
                 about[3], i, ours[i], expected[i]);
    }
    tp__image_affine(NULL, in_float, h, w, matrix, (tp__fill)about[0], about[1], about[2] != 0,
                     from_float);
    assert_memory_equal(from_float, ours, count * sizeof *ours);
    if (!isnan(about[3])) {
      tp__turn_matrix(about[3], h, w, computed);
      for (int i = 0; i < 8; i++) assert_true(fabsf(computed[i] - matrix[i]) <= 2e-5f);
    }
    in += count;
    expected += count;
  }
  npz_close(z);
}

static void plain_row(const tp__warp *p, int y, float *out)
{
  for (int x = 0; x < p->w; x++) tp__warp_pixel(p, x, y, true, out + 3 * x);
}

static void instruction_sets_agree(void **state)
{
  (void)state;
  enum { h = 45, w = 83, count = h * w * 3 };
  uint8_t *in =
      malloc(count); /* exactly as large as the picture: the sanitizer sees a read past its end */
  float in_float[count], expected[3 * w], out[3 * w];
  for (uint32_t i = 0; i < count; i++) in_float[i] = in[i] = (uint8_t)(i * 2654435761u >> 23);
  int sets = 0;
  for (int level = 0; tp__image_kernels_at(level) != NULL; level++, sets++) {
    const tp__image_kernels *k = tp__image_kernels_at(level);
    for (int fill = 0; fill < 4; fill++)
      for (int step = -10; step <= 10; step++) {
        float m[8];
        tp__turn_matrix((float)step * 0.02f, h, w, m);
        tp__warp p = {.in8 = in,
                      .h = h,
                      .w = w,
                      .ow = w,
                      .channels = 3,
                      .pitch = 3,
                      .fill = (tp__fill)fill,
                      .fill_value = 5};
        memcpy(p.matrix, m, sizeof p.matrix);
        tp__warp q = p;
        q.in8 = NULL;
        q.in_float = in_float;
        for (int y = 0; y < h; y++) {
          plain_row(&p, y, expected);
          k->warp_row(&p, y, out);
          if (memcmp(out, expected, sizeof out) != 0)
            fail_msg("%s differs from the plain rule: fill %d, turn %g, row %d", k->name, fill,
                     step * 0.02, y);
          k->warp_row(&q, y, out);
          assert_memory_equal(out, expected, sizeof out);
        }
      }
  }
  print_message("%d instruction sets\n", sets);
  assert_true(sets >= 1);
  free(in);
}

/* B45: a quarter turn counter-clockwise; 12 zeros with nearest sampling and 4 with bilinear, none
 * with reflect. */
static void case_b45(void **state)
{
  (void)state;
  uint8_t nine[27], ones[9 * 9 * 3];
  float m[8], out[9 * 9 * 3];
  static const int turned[9] = {2, 5, 8, 1, 4, 7, 0, 3, 6};
  for (int i = 0; i < 27; i++) nine[i] = (uint8_t)(i / 3);
  memset(ones, 1, sizeof ones);
  tp__turn_matrix(0.25f, 3, 3, m);
  tp__image_affine(nine, NULL, 3, 3, m, TP__FILL_REFLECT, 0, false, out);
  for (int i = 0; i < 9; i++) assert_float_equal(out[3 * i], (float)turned[i], 0);
  static const struct {
    tp__fill fill;
    bool bilinear;
    int zeros;
  } cases[] = {
      {TP__FILL_CONSTANT, false, 12}, {TP__FILL_CONSTANT, true, 4}, {TP__FILL_REFLECT, true, 0}};
  tp__turn_matrix(0.125f, 9, 9, m);
  for (size_t k = 0; k < 3; k++) {
    int zeros = 0;
    tp__image_affine(ones, NULL, 9, 9, m, cases[k].fill, 0, cases[k].bilinear, out);
    for (int i = 0; i < 81; i++) zeros += out[3 * i] == 0;
    assert_int_equal(zeros, cases[k].zeros);
  }
}

static void wild_matrices(void **state)
{
  (void)state;
  static const float wild[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e30f, 0};
  uint8_t in[4 * 5 * 3] = {7};
  float out[4 * 5 * 3];
  for (size_t a = 0; a < 7; a++)
    for (size_t b = 0; b < 7; b++)
      for (int fill = 0; fill < 4; fill++)
        for (int size = 0; size < 3; size++) {
          float m[8] = {wild[a], 1, wild[b], wild[b], wild[a], 2};
          int h = size == 0 ? 1 : 4, w = size == 1 ? 1 : 5;
          tp__image_affine(in, NULL, h, w, m, (tp__fill)fill, 1, true, out);
          tp__image_affine(in, NULL, h, w, m, (tp__fill)fill, 1, false, out);
          for (int i = 0; i < h * w * 3; i++) assert_true(out[i] >= 0 && out[i] <= 7);
        }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equals_keras),
      cmocka_unit_test(instruction_sets_agree),
      cmocka_unit_test(case_b45),
      cmocka_unit_test(wild_matrices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
