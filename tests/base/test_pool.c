/* Proves that loops run every index once for any number of threads, that background work goes on
 * between and during loops, and that a waiting owner helps. Hostile case: a source that is removed
 * while it works. */
#include "../testing.h"

#include <stdatomic.h>

#include "base/pool.h"

static void count_index(void *arg, size_t index, int worker)
{
  (void)worker;
  atomic_int *seen = arg;
  atomic_fetch_add(&seen[index], 1);
}

static void every_index_once(void **state)
{
  (void)state;
  tp_error err;
  for (int threads = 1; threads <= 8; threads++) {
    tp__pool *pool = NULL;
    assert_ok(tp__pool_new(threads, &pool, &err));
    assert_int_equal(tp__pool_threads(pool), threads);
    for (int round = 0; round < 200; round++) {
      atomic_int seen[37] = {0};
      tp__pool_for(pool, 37, count_index, seen);
      for (int i = 0; i < 37; i++) assert_int_equal(atomic_load(&seen[i]), 1);
    }
    tp__pool_free(pool);
  }
}

struct units {
  tp__pool *pool;
  atomic_int left, done;
};

static bool one_unit(void *arg, int worker)
{
  (void)worker;
  struct units *u = arg;
  int left = atomic_load(&u->left);
  while (left > 0 && !atomic_compare_exchange_weak(&u->left, &left, left - 1)) {
  }
  if (left <= 0) return false;
  atomic_fetch_add(&u->done, 1);
  if (left == 1) tp__pool_wake(u->pool);
  return true;
}

static bool all_done(void *arg)
{
  struct units *u = arg;
  return atomic_load(&u->done) >= 500;
}

static void owner_helps(void **state)
{
  (void)state;
  tp_error err;
  for (int threads = 1; threads <= 4; threads++) {
    struct units u = {.left = 500};
    assert_ok(tp__pool_new(threads, &u.pool, &err));
    assert_ok(tp__pool_background(u.pool, one_unit, &u, &err));
    atomic_int seen[8] = {0};
    tp__pool_for(u.pool, 8, count_index, seen);
    tp__pool_wait(u.pool, all_done, &u);
    assert_int_equal(atomic_load(&u.done), 500);
    tp__pool_background_end(u.pool, one_unit, &u);
    tp__pool_free(u.pool);
  }
}

static bool endless(void *arg, int worker)
{
  (void)worker;
  atomic_fetch_add((atomic_int *)arg, 1);
  return true;
}

static void removed_while_working(void **state)
{
  (void)state;
  tp_error err;
  tp__pool *pool = NULL;
  assert_ok(tp__pool_new(4, &pool, &err));
  for (int round = 0; round < 50; round++) {
    atomic_int *count = calloc(1, sizeof *count);
    assert_ok(tp__pool_background(pool, endless, count, &err));
    tp__pool_background_end(pool, endless, count);
    free(count); /* a thread still inside would touch freed memory: the sanitizers see it */
  }
  tp__pool_free(pool);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_index_once),
      cmocka_unit_test(owner_helps),
      cmocka_unit_test(removed_while_working),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
