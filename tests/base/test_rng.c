/* Proves that Philox gives the published numbers, and that the derived draws are in range and
 * spread as their distribution says. Expected numbers: the known-answer vectors that the authors
 * publish with Random123 (kat_vectors, philox4x32 10); of Beta the mean, the variance and the
 * integral of its density. */
#include "../testing.h"

#include <math.h>

#include "base/rng.h"

static void known_answers(void **state)
{
  (void)state;
  static const struct {
    uint32_t counter[4], key[2], out[4];
  } known[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    uint32_t out[4];
    tp__key key = {{known[i].key[0], known[i].key[1]}};
    tp__philox(key, known[i].counter[0], known[i].counter[1], known[i].counter[2],
               known[i].counter[3], out);
    assert_memory_equal(out, known[i].out, sizeof out);
  }
}

static void below_is_even(void **state)
{
  (void)state;
  tp__key key = tp__key_of(7, 1, 2);
  int count[10] = {0};
  for (uint64_t i = 0; i < 10000; i++) count[tp__below(key, TP__DRAW_ORDER, i, 10)]++;
  for (int i = 0; i < 10; i++) assert_in_range(count[i], 850, 1150); /* 5 sigma */
}

static void keys_differ(void **state)
{
  (void)state;
  tp__key a = tp__key_of(1, 0, 0), b = tp__key_of(1, 1, 0), c = tp__key_of(1, 0, 1);
  assert_true(memcmp(&a, &b, sizeof a) != 0 && memcmp(&a, &c, sizeof a) != 0);
  float u = tp__uniform(a, TP__DRAW_FLIP, 5);
  assert_true(u >= 0 && u < 1);
  assert_true(u == tp__uniform(tp__key_of(1, 0, 0), TP__DRAW_FLIP, 5));
}

static void beta_as_its_density(void **state)
{
  (void)state;
  enum { DRAWS = 40000 };
  static const struct {
    double alpha, below_0_1, below_0_4;
  } cases[] = {{0.05, 0.449469, 0.490512}, {0.2, 0.336690, 0.467747}, {1, 0.1, 0.4},
               {1.5, 0.052044, 0.373530},  {4, 0.002728, 0.289792},   {50, 0, 0.021922}};
  const double sigma = 5 / sqrt(DRAWS);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    double sum = 0, squares = 0;
    int below[2] = {0, 0};
    for (uint64_t i = 0; i < DRAWS; i++) {
      double x = tp__beta(tp__key_of(3, 1, i), TP__DRAW_MIX, cases[c].alpha);
      assert_true(x >= 0 && x <= 1);
      sum += x;
      squares += (x - 0.5) * (x - 0.5);
      below[0] += x < 0.1;
      below[1] += x < 0.4;
    }
    double variance = 1 / (4 * (2 * cases[c].alpha + 1));
    assert_true(fabs(sum / DRAWS - 0.5) < sigma * sqrt(variance));
    assert_true(fabs(squares / DRAWS - variance) < sigma * variance * 2);
    assert_true(fabs((double)below[0] / DRAWS - cases[c].below_0_1) < sigma / 2);
    assert_true(fabs((double)below[1] / DRAWS - cases[c].below_0_4) < sigma / 2);
  }
  tp__key key = tp__key_of(1, 2, 3);
  assert_true(tp__beta(key, TP__DRAW_MIX, 0.3) == tp__beta(key, TP__DRAW_MIX, 0.3));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_answers),
      cmocka_unit_test(below_is_even),
      cmocka_unit_test(keys_differ),
      cmocka_unit_test(beta_as_its_density),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
