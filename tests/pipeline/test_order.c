/* Proves that the order of an epoch is a permutation that depends on (seed, epoch) alone and
 * follows tf.data's interleave and shuffle. Expected numbers: case B13 (100 records, buffer 100:
 * 100 distinct values, another order in the next epoch); the interleaved order of shards of 3, 1
 * and 4 records and the bound of a small buffer (the i-th output is among the first i + buffer
 * inputs) are worked out by hand from tf.data's documentation. */
#include "../testing.h"

#include "pipeline/pipeline.h"

enum { N = 100 };

static void files_of(const size_t *sizes, size_t count, uint32_t *file_of)
{
  size_t at = 0;
  for (size_t f = 0; f < count; f++)
    for (size_t i = 0; i < sizes[f]; i++) file_of[at++] = (uint32_t)f;
}

static void assert_permutation(const uint32_t *order, size_t n)
{
  bool seen[N] = {false};
  for (size_t i = 0; i < n; i++) {
    assert_true(order[i] < n);
    assert_false(seen[order[i]]);
    seen[order[i]] = true;
  }
}

static void every_epoch_is_a_permutation(void **state)
{
  (void)state;
  static const struct {
    int64_t shuffle;
    int interleave;
  } cases[] = {{100, 1}, {100, 16}, {-1, 4}, {1, 1}, {1, 4}, {7, 3}, {1000000, 99}, {0, 5}};
  tp_error err;
  uint32_t file_of[N], order[N], again[N], next[N];
  files_of((const size_t[]){20, 1, 33, 6, 40}, 5, file_of);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    for (uint32_t epoch = 0; epoch < 5; epoch++) {
      int64_t shuffle = cases[c].shuffle;
      int width = cases[c].interleave;
      assert_ok(tp__order_make(file_of, N, shuffle, width, 1, epoch, order, &err));
      assert_ok(tp__order_make(file_of, N, shuffle, width, 1, epoch, again, &err));
      assert_ok(tp__order_make(file_of, N, shuffle, width, 1, epoch + 1, next, &err));
      assert_permutation(order, N);
      assert_memory_equal(order, again, sizeof order);
      if (shuffle == 0)
        assert_memory_equal(order, next, sizeof order);
      else
        assert_memory_not_equal(order, next, sizeof order);
    }
  }
}

static void seeds_differ(void **state)
{
  (void)state;
  tp_error err;
  uint32_t file_of[N] = {0}, a[N], b[N];
  assert_ok(tp__order_make(file_of, N, 100, 1, 1, 0, a, &err));
  assert_ok(tp__order_make(file_of, N, 100, 1, 2, 0, b, &err));
  assert_memory_not_equal(a, b, sizeof a);
}

static void zero_keeps_the_records_order(void **state)
{
  (void)state;
  tp_error err;
  uint32_t file_of[N], order[N];
  files_of((const size_t[]){50, 50}, 2, file_of);
  assert_ok(tp__order_make(file_of, N, 0, 16, 1, 3, order, &err));
  for (uint32_t i = 0; i < N; i++) assert_int_equal(order[i], i);
}

/* A buffer of 1 shows the interleaving: shards a (0,1,2), b (3), c (4,5,6,7) in some order. */
static void interleaves_one_in_turn(void **state)
{
  (void)state;
  static const struct {
    int width;
    uint32_t order[6][8]; /* by the shards' order: abc acb bac bca cab cba */
  } cases[] = {
      {1,
       {{0, 1, 2, 3, 4, 5, 6, 7},
        {0, 1, 2, 4, 5, 6, 7, 3},
        {3, 0, 1, 2, 4, 5, 6, 7},
        {3, 4, 5, 6, 7, 0, 1, 2},
        {4, 5, 6, 7, 0, 1, 2, 3},
        {4, 5, 6, 7, 3, 0, 1, 2}}},
      {2,
       {{0, 3, 1, 2, 4, 5, 6, 7},
        {0, 4, 1, 5, 2, 6, 7, 3},
        {3, 0, 1, 4, 2, 5, 6, 7},
        {3, 4, 5, 0, 6, 1, 7, 2},
        {4, 0, 5, 1, 6, 2, 7, 3},
        {4, 3, 5, 6, 0, 7, 1, 2}}},
      {5,
       {{0, 3, 4, 1, 5, 2, 6, 7},
        {0, 4, 3, 1, 5, 2, 6, 7},
        {3, 0, 4, 1, 5, 2, 6, 7},
        {3, 4, 0, 5, 1, 6, 2, 7},
        {4, 0, 3, 5, 1, 6, 2, 7},
        {4, 3, 0, 5, 1, 6, 2, 7}}},
  };
  tp_error err;
  uint32_t file_of[8], order[8];
  files_of((const size_t[]){3, 1, 4}, 3, file_of);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    unsigned met = 0; /* which of the six, one bit each */
    for (uint32_t epoch = 0; epoch < 60; epoch++) {
      assert_ok(tp__order_make(file_of, 8, 1, cases[c].width, 5, epoch, order, &err));
      unsigned hit = 0;
      for (unsigned i = 0; i < 6; i++)
        if (memcmp(order, cases[c].order[i], sizeof order) == 0) hit |= 1u << i;
      if (hit == 0)
        fail_msg("width %d, epoch %u: %u %u %u %u %u %u %u %u", cases[c].width, epoch, order[0],
                 order[1], order[2], order[3], order[4], order[5], order[6], order[7]);
      met |= hit;
    }
    assert_int_equal(met, 63); /* every order of the shards comes up */
  }
}

static void small_buffer_stays_near(void **state)
{
  (void)state;
  enum { BUFFER = 8 };
  tp_error err;
  uint32_t file_of[N] = {0}, order[N];
  bool far = false;
  for (uint32_t epoch = 0; epoch < 20; epoch++) {
    assert_ok(tp__order_make(file_of, N, BUFFER, 1, 9, epoch, order, &err));
    for (uint32_t i = 0; i < N; i++) {
      assert_true(order[i] < i + BUFFER);
      far |= order[i] + BUFFER < i; /* and an example may wait for long */
    }
  }
  assert_true(far);
}

/* A whole-set shuffle is uniform: each of 6 orders of 3 examples about 1000 times of 6000 (5 sigma:
 * 144). */
static void whole_shuffle_is_uniform(void **state)
{
  (void)state;
  tp_error err;
  uint32_t file_of[3] = {0}, order[3], count[27] = {0};
  for (uint32_t epoch = 0; epoch < 6000; epoch++) {
    assert_ok(tp__order_make(file_of, 3, -1, 1, 3, epoch, order, &err));
    count[order[0] * 9 + order[1] * 3 + order[2]]++;
  }
  int orders = 0;
  for (int i = 0; i < 27; i++) {
    if (count[i] == 0) continue;
    orders++;
    assert_in_range(count[i], 856, 1144);
  }
  assert_int_equal(orders, 6);
}

static void hostile_arguments(void **state)
{
  (void)state;
  tp_error err;
  uint32_t file_of[2] = {0}, order[2] = {7, 7};
  assert_fails(tp__order_make(file_of, 2, -2, 1, 1, 0, order, &err), TP_ERR_USAGE, "-1 or more");
  assert_fails(tp__order_make(file_of, 2, 5, 0, 1, 0, order, &err), TP_ERR_USAGE, "interleave");
  assert_int_equal(order[0], 7);
  assert_ok(tp__order_make(file_of, 0, 5, 16, 1, 0, order, &err));
  assert_ok(tp__order_make(file_of, 2, INT64_MAX, INT32_MAX, 1, UINT32_MAX, order, &err));
  assert_int_equal(order[0] + order[1], 1);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_epoch_is_a_permutation),
      cmocka_unit_test(seeds_differ),
      cmocka_unit_test(zero_keeps_the_records_order),
      cmocka_unit_test(interleaves_one_in_turn),
      cmocka_unit_test(small_buffer_stays_near),
      cmocka_unit_test(whole_shuffle_is_uniform),
      cmocka_unit_test(hostile_arguments),
  };
  return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
