/* Proves that a split is seeded, stratified and complete: every photo in one part, the same shares
 * in every class, at least one photo for validation and test in every class of three or more.
 * Expected sizes are worked out by hand. Hostile: shares that do not add up, text around them. */
#include "../testing.h"

#include "prepare/split.h"

static void shares_are_parsed(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    double share[3];
  } good[] = {{"80,10,10", {80, 10, 10}},
              {"75,25", {75, 25, 0}},
              {"100", {100, 0, 0}},
              {"0,0,100", {0, 0, 100}},
              {"33.3,33.3,33.4", {33.3, 33.3, 33.4}}};
  static const char *const bad[] = {"",          "80",       "80,10",     "80,10,10,0",
                                    "80,10,10,", "a,b,c",    "80, 10,10", "90,20,-10",
                                    "80;10;10",  "80,10,11", "1e2",       "nan"};
  tp_error err;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    double share[3] = {-1, -1, -1};
    assert_ok(tp__split_parse(good[i].text, share, &err));
    for (int k = 0; k < 3; k++)
      assert_true(share[k] > good[i].share[k] - 1e-9 && share[k] < good[i].share[k] + 1e-9);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    double share[3] = {-1, -1, -1};
    assert_fails(tp__split_parse(bad[i], share, &err), TP_ERR_USAGE, "80,10,10");
    assert_true(share[0] == -1); /* unchanged */
  }
}

static void sizes_of_a_class(void **state)
{
  (void)state;
  static const struct {
    size_t n;
    double share[3];
    size_t size[3];
  } cases[] = {
      {100, {80, 10, 10}, {80, 10, 10}}, {10, {80, 10, 10}, {8, 1, 1}},
      {7, {80, 10, 10}, {5, 1, 1}},      {3, {80, 10, 10}, {1, 1, 1}},
      {2, {80, 10, 10}, {2, 0, 0}},      {1, {80, 10, 10}, {1, 0, 0}},
      {0, {80, 10, 10}, {0, 0, 0}},      {3, {80, 20, 0}, {2, 1, 0}},
      {1, {0, 50, 50}, {0, 1, 0}},       {5, {0, 0, 100}, {0, 0, 5}},
      {3, {10, 45, 45}, {1, 1, 1}},      {1, {10, 90, 0}, {1, 0, 0}},
      {15, {50, 25, 25}, {7, 4, 4}},     {4, {100, 0, 0}, {4, 0, 0}},
      {1, {0, 30, 70}, {0, 0, 1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t size[3];
    tp__split_sizes(cases[i].n, cases[i].share, size);
    if (memcmp(size, cases[i].size, sizeof size) != 0)
      fail_msg("case %zu: %zu %zu %zu", i, size[0], size[1], size[2]);
  }
}

enum { CLASSES = 5, N = 200 };

static void every_class_alike(void **state)
{
  (void)state;
  tp_error err;
  const double share[3] = {80, 10, 10};
  int32_t label[N];
  uint8_t part[N], again[N], other[N];
  size_t size[CLASSES] = {0}, count[CLASSES][3] = {{0}};
  for (int i = 0; i < N; i++) {
    label[i] = i * i % 7 % CLASSES - 1; /* unequal classes, one of them without a label */
    size[label[i] + 1]++;
  }
  assert_ok(tp__split_make(label, N, share, 1, part, &err));
  assert_ok(tp__split_make(label, N, share, 1, again, &err));
  assert_ok(tp__split_make(label, N, share, 2, other, &err));
  assert_memory_equal(part, again, N);
  assert_memory_not_equal(part, other, N);
  for (int i = 0; i < N; i++) count[label[i] + 1][part[i]]++;
  for (int c = 0; c < CLASSES; c++) {
    size_t want[3];
    tp__split_sizes(size[c], share, want);
    assert_memory_equal(count[c], want, sizeof want);
  }
}

/* Adding a class does not move the photos of the others. */
static void classes_are_split_apart(void **state)
{
  (void)state;
  tp_error err;
  const double share[3] = {60, 20, 20};
  int32_t label[N];
  uint8_t alone[N], together[N];
  for (int i = 0; i < N; i++) label[i] = i < N / 2 ? 3 : 4;
  assert_ok(tp__split_make(label, N / 2, share, 9, alone, &err));
  assert_ok(tp__split_make(label, N, share, 9, together, &err));
  assert_memory_equal(alone, together, N / 2);
  assert_memory_not_equal(together, together + N / 2, N / 2); /* and each has its own order */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shares_are_parsed),
      cmocka_unit_test(sizes_of_a_class),
      cmocka_unit_test(every_class_alike),
      cmocka_unit_test(classes_are_split_apart),
  };
  return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
