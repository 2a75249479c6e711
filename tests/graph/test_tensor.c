/* test_tensor - sizes and texts of shapes, and sets of tensors: order, names, zeros, copies.
 * Expected texts are how Python prints tuples, as Keras' summary shows shapes. */
#include "building.h"

static void shapes(void **state)
{
  (void)state;
  static const struct {
    const char *dims, *text;
    size_t elements; /* for N = 5 */
  } rows[] = {
      {"", "()", 1},
      {"3", "(3,)", 3},
      {"N", "(None,)", 5},
      {"N,96,96,32", "(None, 96, 96, 32)", 5 * 96 * 96 * 32},
      {"3,0,2", "(3, 0, 2)", 0},
      {"1,2,3,4,5,6", "(1, 2, 3, 4, 5, 6)", 720},
      {"1000000000000000000,1000000000000000000,1000000000000000000,1000000000000000000,"
       "1000000000000000000,1000000000000000000",
       "(1000000000000000000, 1000000000000000000, 1000000000000000000, 1000000000000000000, "
       "1000000...",
       SIZE_MAX},
      {"-7", "(-7,)", SIZE_MAX},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[96];
    tp__shape s = shape(rows[i].dims);
    assert_int_equal(tp__shape_elements(&s, 5), rows[i].elements);
    assert_string_equal(tp__shape_text(&s, text), rows[i].text);
    for (size_t j = 0; j < sizeof rows / sizeof rows[0]; j++) {
      tp__shape other = shape(rows[j].dims);
      assert_int_equal(tp__shape_equal(&s, &other), i == j);
    }
  }
  tp__shape made = tp__shape_make(2, (int64_t[]){4, 5}), wanted = shape("4,5");
  assert_true(tp__shape_equal(&made, &wanted));
}

static void types(void **state)
{
  (void)state;
  static const struct {
    tp__dtype dtype;
    const char *name;
    size_t size;
  } rows[] = {{TP__F32, "f32", 4}, {TP__I32, "i32", 4},   {TP__U32, "u32", 4},
              {TP__U8, "u8", 1},   {TP__I64, "i64", 8},   {TP__F64, "f64", 8},
              {TP__F16, "f16", 2}, {TP__BF16, "bf16", 2}, {(tp__dtype)99, "?", 0}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_string_equal(tp__dtype_name(rows[i].dtype), rows[i].name);
    assert_int_equal(tp__dtype_size(rows[i].dtype), rows[i].size);
  }
}

static void sets(void **state)
{
  (void)state;
  enum { MANY = 200 }; /* more than the set's first room */
  tp_error err = {0};
  tp__tensors set = {0}, copy = {0};
  char name[32];
  tp__shape s = shape("3,2");
  for (int i = 0; i < MANY; i++) {
    tp__tensor *t = NULL;
    snprintf(name, sizeof name, "layer%d/kernel", i);
    assert_ok(tp__tensors_add(&set, name, TP__F32, &s, &t, &err));
    assert_int_equal((uintptr_t)t->data % 64, 0);
    assert_int_equal(tp__tensor_bytes(t), 24);
    for (int j = 0; j < 6; j++) {
      assert_true(((float *)t->data)[j] == 0);
      ((float *)t->data)[j] = (float)(i * 6 + j);
    }
  }
  assert_fails(tp__tensors_add(&set, "layer7/kernel", TP__F32, &s, NULL, &err), TP_ERR_INTERNAL,
               "layer7/kernel is there twice");
  assert_int_equal(set.count, MANY);
  assert_ok(tp__tensors_copy(&set, &copy, &err));
  ((float *)set.item[7].data)[1] = -1;
  assert_int_equal(copy.count, MANY);
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "layer%d/kernel", i);
    assert_string_equal(copy.item[i].name, name);
    assert_ptr_equal(tp__tensors_find(&copy, name), &copy.item[i]);
    for (int j = 0; j < 6; j++) assert_true(((float *)copy.item[i].data)[j] == (float)(i * 6 + j));
  }
  assert_null(tp__tensors_find(&copy, "layer7"));
  tp__tensors_free(&set);
  tp__tensors_free(&set);
  tp__tensors_free(&copy);
}

/* A shape whose size overflows, or that needs more memory than there is, is refused and leaves the
 * set as it was. */
static void hostile(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__tensors set = {0};
  static const char *const dims[] = {"4611686018427387904,8", "9223372036854775807", "-3"};
  for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
    tp__shape s = shape(dims[i]);
    assert_fails(tp__tensors_add(&set, "huge", TP__F64, &s, NULL, &err), TP_ERR_INTERNAL,
                 "out of memory");
    assert_int_equal(set.count, 0);
  }
  tp__tensors_free(&set);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shapes),
      cmocka_unit_test(types),
      cmocka_unit_test(sets),
      cmocka_unit_test(hostile),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
