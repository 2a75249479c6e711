/* Proves case B17: weights are loaded whole or not at all, by name, and the counts are said.
 * Expected: the rules of weights.h; half and bfloat16 values from IEEE 754's bit layouts, written
 * out by hand. Hostile: no name in common; a head of another size; values that do not fit the
 * wanted type. */
#include "weights_testing.h"

#include <math.h>

static char said[1024];

static void keep_line(void *user, tp__level level, const char *text)
{
  (void)user, (void)level;
  snprintf(said, sizeof said, "%s", text);
}

static const tp__log log_to_said = {.line = keep_line};

static void make(tp__tensors *set, int64_t classes, float start, const char *first)
{
  add_counting(set, first, 4, (const int64_t[]){3, 3, 3, 2}, start);
  add_counting(set, "stem_bn/gamma", 1, (const int64_t[]){2}, start);
  add_counting(set, "predictions/kernel", 2, (const int64_t[]){4, classes}, start);
  add_counting(set, "predictions/bias", 1, (const int64_t[]){classes}, start);
}

static void assert_untouched(const tp__tensors *model, size_t from)
{
  for (size_t i = from; i < model->count; i++)
    assert_true(((float *)model->item[i].data)[0] == 100);
}

static void all_of_it(void **state)
{
  (void)state;
  tp_error err;
  tp__tensors file = {0}, model = {0};
  tp__weights_report r;
  make(&file, 7, 0, "stem_conv/kernel");
  add_counting(&file, "other/kernel", 0, NULL, 5);
  make(&model, 7, 100, "stem_conv/kernel");
  assert_ok(tp__weights_match(&file, &model, "predictions", false, "w.h5", &log_to_said, &r, &err));
  assert_int_equal(r.loaded, 4);
  assert_int_equal(r.wanted, 4);
  assert_int_equal(r.skipped, 0);
  assert_int_equal(r.unused, 1);
  assert_non_null(strstr(said, "w.h5: loaded 4 of 4 arrays"));
  assert_non_null(strstr(said, "1 unused"));
  for (size_t i = 0; i < model.count; i++)
    assert_memory_equal(model.item[i].data, file.item[i].data, tp__tensor_bytes(&model.item[i]));
  tp__tensors_free(&file);
  tp__tensors_free(&model);
}

static void another_head(void **state)
{
  (void)state;
  tp_error err;
  tp__tensors file = {0}, model = {0};
  tp__weights_report r;
  make(&file, 1000, 0, "stem_conv/kernel");
  make(&model, 104, 100, "stem_conv/kernel");
  assert_fails(
      tp__weights_match(&file, &model, "predictions", false, "w.h5", NULL, &r, &err), TP_ERR_DATA,
      "w.h5: layer predictions: kernel is (4, 1000) in the file and (4, 104) in the model; "
      "nothing was loaded; --skip-mismatch");
  assert_untouched(&model, 0);
  assert_ok(tp__weights_match(&file, &model, "predictions", true, "w.h5", &log_to_said, &r, &err));
  assert_int_equal(r.loaded, 2);
  assert_int_equal(r.skipped, 2);
  assert_int_equal(r.unused, 0);
  assert_non_null(strstr(said, "skipped 2 arrays"));
  assert_true(((float *)model.item[0].data)[0] == 0);
  assert_untouched(&model, 2);
  tp__tensors_free(&file);
  tp__tensors_free(&model);
}

/* Only the head may be skipped. */
static void another_body(void **state)
{
  (void)state;
  tp_error err;
  tp__tensors file = {0}, model = {0};
  make(&file, 7, 0, "stem_conv_9/kernel");
  make(&model, 7, 100, "stem_conv/kernel");
  assert_fails(tp__weights_match(&file, &model, "predictions", true, "w.h5", NULL, NULL, &err),
               TP_ERR_DATA,
               "layer stem_conv: kernel is not in the file (1 of 4 arrays are missing)");
  assert_untouched(&model, 0);
  assert_fails(tp__weights_match(&file, &model, NULL, true, "w.h5", NULL, NULL, &err), TP_ERR_DATA,
               "stem_conv");
  tp__tensors_free(&file);
  tp__tensors_free(&model);
}

static void nothing_in_common(void **state)
{
  (void)state;
  tp_error err;
  tp__tensors file = {0}, model = {0};
  add_counting(&file, "conv2d_17/kernel", 0, NULL, 1);
  make(&model, 7, 100, "stem_conv/kernel");
  for (int skip = 0; skip < 2; skip++)
    assert_fails(
        tp__weights_match(&file, &model, "predictions", skip == 1, "w.h5", NULL, NULL, &err),
        TP_ERR_DATA, "0 of 4 arrays matched");
  assert_untouched(&model, 0);
  tp__tensors_free(&file);
  tp__tensors_free(&model);
}

/* One value of each type into one of each other. */
static void types_are_converted(void **state)
{
  (void)state;
  static const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x03ff, 0x7bff, 0x8000, 0x7c00};
  static const double values[] = {1, -2, 0x1p-24, 1023 * 0x1p-24, 65504, -0.0, INFINITY};
  tp_error err;
  tp__tensors half = {0}, wide = {0}, back = {0};
  tp__shape seven = tp__shape_make(1, (const int64_t[]){7});
  tp__tensor *h = NULL, *w = NULL, *b = NULL;
  assert_ok(tp__tensors_add(&half, "a/b", TP__F16, &seven, &h, &err));
  assert_ok(tp__tensors_add(&wide, "a/b", TP__F64, &seven, &w, &err));
  assert_ok(tp__tensors_add(&back, "a/b", TP__F16, &seven, &b, &err));
  memcpy(h->data, halves, sizeof halves);
  assert_ok(tp__weights_match(&half, &wide, NULL, false, "half", NULL, NULL, &err));
  for (size_t i = 0; i < 7; i++) assert_true(((double *)w->data)[i] == values[i]);
  assert_ok(tp__weights_match(&wide, &back, NULL, false, "wide", NULL, NULL, &err));
  assert_memory_equal(b->data, halves, sizeof halves);
  tp__tensors_free(&half);
  tp__tensors_free(&wide);
  tp__tensors_free(&back);
}

/* Rounding to nearest, ties to even, where a number lies between two of the wanted type. */
static void rounding(void **state)
{
  (void)state;
  static const struct {
    double value;
    uint16_t half, bfloat;
  } cases[] = {
      {1 + 0x1p-11, 0x3c00, 0x3f80}, {1 + 3 * 0x1p-11, 0x3c02, 0x3f80},
      {1 + 0x1p-8, 0x3c04, 0x3f80},  {1 + 3 * 0x1p-8, 0x3c0c, 0x3f82},
      {65519, 0x7bff, 0x4780},       {65520, 0x7c00, 0x4780},
      {0x1p-25, 0x0000, 0x3300},     {-3 * 0x1p-25, 0x8002, 0xb3c0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tp_error err;
    tp__tensors from = {0}, to = {0};
    tp__shape scalar = {0};
    tp__tensor *f = NULL, *h = NULL, *b = NULL;
    assert_ok(tp__tensors_add(&from, "h", TP__F64, &scalar, &f, &err));
    *(double *)f->data = cases[i].value;
    assert_ok(tp__tensors_add(&from, "b", TP__F64, &scalar, &f, &err));
    *(double *)f->data = cases[i].value;
    assert_ok(tp__tensors_add(&to, "h", TP__F16, &scalar, NULL, &err));
    assert_ok(tp__tensors_add(&to, "b", TP__BF16, &scalar, &b, &err));
    assert_ok(tp__weights_match(&from, &to, NULL, false, "x", NULL, NULL, &err));
    h = &to.item[0];
    assert_int_equal(*(uint16_t *)h->data, cases[i].half);
    assert_int_equal(*(uint16_t *)b->data, cases[i].bfloat);
    tp__tensors_free(&from);
    tp__tensors_free(&to);
  }
}

/* Keras' normalization/count: int64 in some files, float32 or int32 in others. */
static void counts(void **state)
{
  (void)state;
  static const struct {
    double value;
    bool fits;
  } cases[] = {{0, true},     {12345, true},        {-1, true},
               {1e30, false}, {(double)NAN, false}, {-1e19, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tp_error err;
    tp__tensors from = {0}, to = {0};
    tp__shape scalar = {0};
    tp__tensor *f = NULL, *t = NULL;
    assert_ok(tp__tensors_add(&from, "normalization/count", TP__F64, &scalar, &f, &err));
    assert_ok(tp__tensors_add(&to, "normalization/count", TP__I64, &scalar, &t, &err));
    *(double *)f->data = cases[i].value;
    *(int64_t *)t->data = 77;
    tp_status status = tp__weights_match(&from, &to, NULL, false, "x", NULL, NULL, &err);
    assert_int_equal(status, cases[i].fits ? TP_OK : TP_ERR_DATA);
    assert_int_equal(*(int64_t *)t->data, cases[i].fits ? (int64_t)cases[i].value : 77);
    tp__tensors_free(&from);
    tp__tensors_free(&to);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_of_it),
      cmocka_unit_test(another_head),
      cmocka_unit_test(another_body),
      cmocka_unit_test(nothing_in_common),
      cmocka_unit_test(types_are_converted),
      cmocka_unit_test(rounding),
      cmocka_unit_test(counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
