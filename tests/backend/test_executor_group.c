/* Proves that several processes that run a training step together compute what one process computes
 * for all examples: the same gradients (Adam's first moments) but for the rounding of sums, outputs
 * of each example the same bits, the same bits of every parameter on all processes; with batch
 * statistics, too, which are those of all examples; also where a process has no example at all. The
 * processes are threads (group_rig.h). What one process computes is proved by test_executor and
 * test_batch_statistics. */
#include "small_nets.h"

#include "../group_rig.h"

struct together {
  rig *member;
  int64_t n;
  tp_status status[GROUP_MAX];
  tp_error err[GROUP_MAX];
};

static void run_rows(void *arg, tp__group *g)
{
  struct together *t = arg;
  int64_t first, end;
  tp__group_rows(g->rank, g->size, 1, t->n, &first, &end);
  t->status[g->rank] = rig_try_part(&t->member[g->rank], first, end - first, &t->err[g->rank]);
}

/* Largest difference of the gradients of two states, relative to the largest gradient of each
 * parameter. */
static double gradients_differ(rig *a, rig *b, const char **worst)
{
  static char name[128];
  double most = 0;
  tp__tensors x = {0}, y = {0};
  rig_read(a, &x);
  rig_read(b, &y);
  for (size_t i = 0; i < x.count; i++) {
    const tp__tensor *t = &x.item[i];
    if (strncmp(t->name, "adam/m/", 7) != 0) continue;
    size_t count = tp__shape_elements(&t->shape, 0);
    double d = difference(t->data, y.item[i].data, count, 1e-6);
    if (d <= most) continue;
    most = d;
    snprintf(name, sizeof name, "%s", t->name);
  }
  *worst = name;
  tp__tensors_free(&x);
  tp__tensors_free(&y);
  return most;
}

/* Each process wrote its rows of its own copy of the outputs. */
static void same_rows(const rig *one, const rig *members, int size, int64_t n, bool exact,
                      const char *what)
{
  for (size_t o = 0; o < one->graph->n_outputs; o++) {
    const tp__node *node = &one->graph->node[one->graph->output[o].value];
    if (!tp__per_example(node)) continue;
    size_t row = tp__shape_elements(&node->shape, 1);
    for (int r = 0; r < size; r++) {
      int64_t first, end;
      tp__group_rows(r, size, 1, n, &first, &end);
      const float *a = members[r].output[o] + (size_t)first * row;
      const float *b = one->output[o] + (size_t)first * row;
      size_t count = (size_t)(end - first) * row;
      bool same = exact ? memcmp(a, b, count * sizeof *a) == 0 : difference(a, b, count, 1) < 1e-5;
      if (!same) fail_msg("%s: rows of process %d of %s differ", what, r, node->name);
    }
  }
}

static void check(const tp__graph *g, int size, int64_t n, bool exact, const char *what)
{
  crowd *c = crowd_new(size);
  rig one = rig_new(g, 2, n, false), member[GROUP_MAX];
  for (int r = 0; r < size; r++) member[r] = rig_new_in(g, 1 + r % 2, n, false, &c->member[r].base);
  struct together t = {.member = member, .n = n};
  for (int step = 0; step < 2; step++) {
    if (step == 0) rig_run(&one);
    crowd_run(c, run_rows, &t);
    for (int r = 0; r < size; r++)
      if (t.status[r] != TP_OK) fail_msg("%s: process %d: %s", what, r, t.err[r].text);
    for (int r = 1; r < size; r++) expect_same_state(&member[r], &member[0], what);
    if (step > 0) continue;
    const char *worst = NULL;
    double d = gradients_differ(&member[0], &one, &worst);
    if (!(d < 1e-5)) fail_msg("%s, %d processes: %s differs by %g", what, size, worst, d);
    same_rows(&one, member, size, n, exact, what);
  }
  for (int r = 0; r < size; r++) rig_free(&member[r]);
  rig_free(&one);
  crowd_free(c);
}

static void networks(void **state)
{
  (void)state;
  for (int i = 0; i < 3; i++)
    for (int k = 1; k < KINDS; k++) {
      tp__graph *g = build_kind(&small_nets[i], &kinds[k]);
      check(g, 2 + (i + k) % 3, 11, true, small_nets[i].name);
      tp__graph_free(g);
    }
}

static void fewer_examples_than_processes(void **state)
{
  (void)state;
  tp__graph *g = build_kind(&small_nets[1], &kinds[KINDS - 1]);
  check(g, 4, 2, true, "2 examples, 4 processes");
  check(g, 3, 1, true, "1 example, 3 processes");
  tp__graph_free(g);
}

static void batch_statistics(void **state)
{
  (void)state;
  tp__graph *g = build_dense();
  for (int size = 2; size <= 4; size++) check(g, size, 9, false, "batch statistics");
  check(g, 4, 2, false, "batch statistics of 2 examples, 4 processes");
  tp__graph_free(g);
}

/* A program without joints is each process's own affair. */
static void scoring_is_alone(void **state)
{
  (void)state;
  crowd *c = crowd_new(2);
  tp__graph *g = build_kind(&small_nets[1], &kinds[0]);
  rig one = rig_new(g, 1, 5, false), member = rig_new_in(g, 1, 5, false, &c->member[1].base);
  rig_run(&one);
  rig_run(&member);
  expect_same_outputs(&member, &one, "scoring");
  rig_free(&member);
  rig_free(&one);
  tp__graph_free(g);
  crowd_free(c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(networks),
      cmocka_unit_test(fewer_examples_than_processes),
      cmocka_unit_test(batch_statistics),
      cmocka_unit_test(scoring_is_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
