/* Proves what processes tell each other by exchanges: gathering in order, sums that have the same
 * bits everywhere and are those of adding in the processes' order, agreeing on a failure, rows that
 * cover everything once. The processes are threads here; tests/mpi runs real ones. */
#include "base/rng.h"
#include "testing.h"

#include "group_rig.h"

enum { MOST = 10007 };

struct everyone {
  int size;
  size_t n;
  float *data[GROUP_MAX];
  tp_status status[GROUP_MAX];
  tp_error err[GROUP_MAX];
  tp__buffer all[GROUP_MAX];
  size_t bytes[GROUP_MAX][GROUP_MAX];
  bool mendable[GROUP_MAX];
};

static float number(int rank, size_t i)
{
  float u = tp__uniform((tp__key){{(uint32_t)rank, 5}}, 1, (uint32_t)i);
  return i % 3 == 0 ? 1e6f * u : u - 0.5f;
}

static void sum(void *arg, tp__group *g)
{
  struct everyone *e = arg;
  e->status[g->rank] = tp__group_sum(g, e->data[g->rank], e->n, &e->err[g->rank]);
}

static void sums(void **state)
{
  (void)state;
  const size_t n[] = {1, 2, 3, 100, 4096, 4097, MOST};
  for (int size = 1; size <= 5; size++) {
    crowd *c = crowd_new(size);
    for (size_t k = 0; k < sizeof n / sizeof n[0]; k++) {
      struct everyone e = {.size = size, .n = n[k]};
      for (int r = 0; r < size; r++) {
        e.data[r] = malloc(n[k] * sizeof(float));
        for (size_t i = 0; i < n[k]; i++) e.data[r][i] = number(r, i);
      }
      crowd_run(c, sum, &e);
      for (size_t i = 0; i < n[k]; i++) {
        float wanted = number(0, i);
        for (int r = 1; r < size; r++) wanted += number(r, i);
        for (int r = 0; r < size; r++)
          if (memcmp(&wanted, &e.data[r][i], sizeof wanted) != 0)
            fail_msg("%d processes, %zu numbers: number %zu is %.9g on %d, wanted %.9g", size, n[k],
                     i, (double)e.data[r][i], r, (double)wanted);
      }
      for (int r = 0; r < size; r++) {
        assert_int_equal(e.status[r], TP_OK);
        free(e.data[r]);
      }
    }
    crowd_free(c);
  }
}

/* Process r gives r x 3 bytes. */
static void gather(void *arg, tp__group *g)
{
  struct everyone *e = arg;
  uint8_t own[3 * GROUP_MAX];
  memset(own, 'a' + g->rank, sizeof own);
  tp__buffer_init(&e->all[g->rank], 1000);
  e->status[g->rank] = tp__group_gather_any(g, own, 3 * (size_t)g->rank, &e->all[g->rank],
                                            e->bytes[g->rank], &e->err[g->rank]);
}

static void gathers(void **state)
{
  (void)state;
  struct everyone e = {0};
  crowd *c = crowd_new(4);
  crowd_run(c, gather, &e);
  for (int r = 0; r < 4; r++) {
    assert_int_equal(e.status[r], TP_OK);
    assert_int_equal(e.all[r].size, 18);
    assert_memory_equal(e.all[r].data, "bbbccccccddddddddd", 18);
    for (int k = 0; k < 4; k++) assert_int_equal(e.bytes[r][k], 3 * k);
    tp__buffer_free(&e.all[r]);
  }
  crowd_free(c);
}

static void agree(void *arg, tp__group *g)
{
  struct everyone *e = arg;
  tp_status status = TP_OK;
  if (g->rank == 1) status = tp__fail(&e->err[1], TP_ERR_DATA, "shard 7 is damaged");
  if (g->rank == 2) status = tp__fail(&e->err[2], TP_ERR_OUTPUT, "disk full");
  e->status[g->rank] = tp__group_agree(g, status, &e->err[g->rank]);
}

static void agree_well(void *arg, tp__group *g)
{
  struct everyone *e = arg;
  e->status[g->rank] = tp__group_agree(g, TP_OK, &e->err[g->rank]);
}

/* The first failure is everyone's, and one process tells it. */
static void agrees(void **state)
{
  (void)state;
  struct everyone e = {0};
  crowd *c = crowd_new(3);
  crowd_run(c, agree_well, &e);
  for (int r = 0; r < 3; r++) assert_int_equal(e.status[r], TP_OK);
  crowd_run(c, agree, &e);
  for (int r = 0; r < 3; r++) {
    assert_int_equal(e.status[r], TP_ERR_DATA);
    assert_true(c->member[r].base.agreed);
  }
  assert_string_equal(e.err[0].text, "process 1 of 3: shard 7 is damaged");
  assert_string_equal(e.err[1].text, "");
  assert_string_equal(e.err[2].text, "");
  tp_error err = {0};
  float one = 1;
  c->member[0].base.over = true;
  assert_fails(tp__group_sum(&c->member[0].base, &one, 1, &err), TP_ERR_DEVICE, "any more");
  crowd_free(c);
}

/* Process r's failure; can it be mended? */
static void agree_or_mend(void *arg, tp__group *g)
{
  struct everyone *e = arg;
  tp_status status = TP_OK;
  bool *mendable = &e->mendable[g->rank];
  if (g->rank > 0)
    status = tp__fail(&e->err[g->rank], TP_ERR_DEVICE, "%d bytes are too few", 100 * g->rank);
  e->status[g->rank] = tp__group_agree_or_mend(g, status, mendable, &e->err[g->rank]);
}

/* What all that fail can mend is everyone's failure for now, told by all; else it is final. */
static void mends(void **state)
{
  (void)state;
  struct everyone e = {.mendable = {false, true, true}};
  crowd *c = crowd_new(3);
  crowd_run(c, agree_or_mend, &e);
  for (int r = 0; r < 3; r++) {
    assert_int_equal(e.status[r], TP_ERR_DEVICE);
    assert_true(e.mendable[r]);
    assert_non_null(strstr(e.err[r].text, "100 bytes are too few"));
    assert_false(c->member[r].base.agreed);
  }
  e.mendable[2] = false;
  crowd_run(c, agree_or_mend, &e);
  for (int r = 0; r < 3; r++) {
    assert_int_equal(e.status[r], TP_ERR_DEVICE);
    assert_false(e.mendable[r]);
    assert_true(c->member[r].base.agreed);
  }
  assert_string_equal(e.err[0].text, "process 1 of 3: 100 bytes are too few");
  assert_string_equal(e.err[1].text, "");
  crowd_free(c);
}

/* Dealing to processes of several replicas, and of these to each replica, is dealing to all. */
static void rows_of_replicas(void **state)
{
  (void)state;
  for (int size = 1; size <= 4; size++)
    for (int parts = 1; parts <= 4; parts++)
      for (int64_t n = 0; n < 40; n++)
        for (int d = 0; d < size * parts; d++) {
          int64_t first, end, from, to, a, b;
          tp__group_rows(d, size * parts, 1, n, &first, &end);
          tp__group_rows(d / parts, size, parts, n, &from, &to);
          tp__group_rows(d % parts, parts, 1, to - from, &a, &b);
          assert_int_equal(from + a, first);
          assert_int_equal(from + b, end);
          assert_true(to - from <= tp__group_rows_most(size, parts, n));
        }
}

static void rows(void **state)
{
  (void)state;
  for (int size = 1; size <= 9; size++)
    for (int64_t n = 0; n < 40; n++) {
      int64_t next = 0, most = 0, least = 1000;
      for (int r = 0; r < size; r++) {
        int64_t first, end;
        tp__group_rows(r, size, 1, n, &first, &end);
        assert_int_equal(first, next);
        next = end;
        if (end - first > most) most = end - first;
        if (end - first < least) least = end - first;
      }
      assert_int_equal(next, n);
      assert_true(most - least <= 1);
    }
}

/* Without a group everything is as it is. */
static void alone(void **state)
{
  (void)state;
  tp_error err = {0};
  float x = 3, y = 0;
  tp__buffer all;
  size_t bytes = 0;
  tp__buffer_init(&all, 10);
  assert_ok(tp__group_sum(NULL, &x, 1, &err));
  assert_true(x == 3);
  assert_ok(tp__group_gather(NULL, &x, sizeof x, &y, &err));
  assert_true(y == 3);
  assert_ok(tp__group_gather_any(NULL, "abc", 3, &all, &bytes, &err));
  assert_int_equal(all.size, 3);
  assert_int_equal(bytes, 3);
  assert_int_equal(tp__group_agree(NULL, TP_ERR_DATA, &err), TP_ERR_DATA);
  tp__group_fail(NULL, TP_ERR_DATA, &err);
  tp__buffer_free(&all);
  tp__group *group = NULL;
  unsetenv("OMPI_COMM_WORLD_SIZE");
  unsetenv("PMI_RANK");
  unsetenv("PMIX_RANK");
  assert_ok(tp__group_open(NULL, &group, &err));
  assert_null(group);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums),  cmocka_unit_test(gathers), cmocka_unit_test(agrees),
      cmocka_unit_test(mends), cmocka_unit_test(rows),    cmocka_unit_test(rows_of_replicas),
      cmocka_unit_test(alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
