/* How many rows fit is found with few compilations, whatever the memory's form: here it is a
 * formula, the largest number of rows that fits is known, and each try is counted. No plugin is
 * needed. */
#include "backend/pjrt/planner_parts.h"
#include "testing.h"

/* bytes = fixed + per_row x rows, in steps of `step` rows; a compiler saves `saved` of what is
 * above half of the memory, by computing values twice. */
struct memory {
  double fixed, per_row, usable, saved;
  int64_t step;
};

static double need(const struct memory *m, int64_t rows)
{
  double bytes = m->fixed + m->per_row * (double)((rows + m->step - 1) / m->step * m->step);
  double half = m->usable / 2;
  return bytes > half ? half + (bytes - half) * (1 - m->saved) : bytes;
}

static int64_t true_largest(const struct memory *m)
{
  int64_t rows = 0;
  while (rows < 65536 && need(m, rows + 1) <= m->usable) rows++;
  return rows;
}

/* From a first number of rows, with as many tries as a plan has. Returns them. */
static int search(const struct memory *m, int64_t first, tp__row_search *s)
{
  int tries = 0;
  *s = (tp__row_search){.unit = first >= 8 ? 8 : 1, .usable = m->usable};
  for (int64_t rows = first; rows > 0 && tries <= TP__SEARCH_TRIES;
       rows = tp__row_search_next(s), tries++) {
    assert_true(rows == first || (rows > s->low && (s->high == 0 || rows < s->high)));
    double bytes = need(m, rows);
    tp__row_search_learn(s, rows, bytes <= m->usable, bytes, bytes - m->fixed);
  }
  return tries;
}

/* What is said is true in any case; where the first number fits it is also near. */
static void test_found(void **state)
{
  (void)state;
  static const struct memory memory[] = {
      {24e6, 11e6, 16.6e9, 0, 1}, {24e6, 11e6, 16.6e9, 0, 64},  {24e6, 11e6, 16.6e9, 0.5, 1},
      {2e9, 38e6, 16.6e9, 0, 1},  {24e6, 200e6, 16.6e9, 0, 1},  {24e6, 3e9, 16.6e9, 0, 1},
      {1e6, 5e6, 95e9, 0, 8},     {24e6, 11e6, 105e9, 0.3, 16},
  };
  static const int64_t first[] = {1, 4, 8, 32, 100, 256, 1500, 4096, 65536};
  for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
    for (size_t k = 0; k < sizeof first / sizeof *first; k++) {
      tp__row_search s;
      const struct memory *m = &memory[i];
      int64_t most = true_largest(m);
      (void)search(m, first[k], &s);
      assert_true(s.low == 0 || need(m, s.low) <= m->usable);
      assert_true(s.high == 0 || need(m, s.high) > m->usable);
      assert_true(s.low > 0 || s.high > 0);
      if (first[k] < 8 || first[k] < m->step || first[k] > most) continue;
      double near = m->saved > 0 ? 0.75 : 0.85;
      assert_true((double)s.low >= near * (double)most - 8);
    }
}

/* One row is too many: that is an answer, too. */
static void test_nothing_fits(void **state)
{
  (void)state;
  const struct memory m = {20e9, 1e6, 16.6e9, 0, 1};
  tp__row_search s;
  assert_true(search(&m, 32, &s) <= 4);
  assert_int_equal(s.low, 0);
  assert_int_equal(s.high, 8);
}

/* A compiler that tells no bytes gives no line to follow. */
static void test_no_bytes(void **state)
{
  (void)state;
  tp__row_search s = {.unit = 8, .usable = 16e9};
  tp__row_search_learn(&s, 32, true, 0, 0);
  assert_int_equal(tp__row_search_next(&s), 64);
  tp__row_search_learn(&s, 64, true, 0, 0);
  assert_int_equal(tp__row_search_next(&s), 128);
  tp__row_search_learn(&s, 128, false, 0, 0);
  assert_int_equal(tp__row_search_next(&s), 96);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_found),
      cmocka_unit_test(test_nothing_fits),
      cmocka_unit_test(test_no_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
