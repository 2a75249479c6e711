/* Proves that the tests' own reader of numpy archives gives what numpy stored.
 * Expected numbers: tests/fixtures/types.npz and this table were written by tests/ref/npz_types.py
 * (numpy 2.4). */
#include "testing.h"

#include "npz.h"

static npz *z;

static int open_fixture(void **state)
{
  (void)state;
  z = npz_open(TP_SOURCE_ROOT "/tests/fixtures/types.npz");
  return z == NULL;
}

static int close_fixture(void **state)
{
  (void)state;
  npz_close(z);
  return 0;
}

static void every_type(void **state)
{
  (void)state;
  npz_shape s;
  const float *f4 = npz_f4(z, "a:f4/x", &s);
  assert_int_equal(s.dims, 2);
  assert_int_equal(s.size[0], 2);
  assert_int_equal(s.size[1], 3);
  for (int i = 0; i < 6; i++) assert_float_equal(f4[i], (float)i / 3, 0);
  const double *f8 = npz_f8(z, "f8", &s);
  assert_int_equal(s.dims, 0);
  assert_int_equal(s.count, 1);
  assert_true(*f8 == 0.1);
  assert_int_equal(npz_i4(z, "i4", &s)[1], -7);
  assert_int_equal(s.count, 2);
  assert_true(npz_i8(z, "i8", NULL)[0] == -5000000000);
  assert_int_equal(npz_u1(z, "u1", NULL)[2], 255);
  assert_int_equal(npz_u1(z, "bool", NULL)[1], 1);
  assert_string_equal(npz_string(z, "s", 0), "rose");
  assert_string_equal(npz_string(z, "s", 1), "sunflower");
  assert_string_equal(npz_string(z, "u", 1), "lily");
  npz_get(z, "empty", &s, NULL);
  assert_int_equal(s.count, 0);
}

static void names(void **state)
{
  (void)state;
  assert_true(npz_has(z, "i4"));
  assert_false(npz_has(z, "i5"));
  assert_ptr_equal(npz_i4(z, "i4", NULL), npz_i4(z, "i4", NULL)); /* read once */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type),
      cmocka_unit_test(names),
  };
  return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
