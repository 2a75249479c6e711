/* Proves that the planned executor computes what the plain one does, on small networks of all kinds
 * of blocks, for inference and for training the head, or everything with frozen statistics, also
 * where examples depend on sums over all; and that bits don't depend on threads or on how examples
 * come in batches. Expected numbers: the plain executor's, which test_reference and test_gradients
 * prove. Hostile case: more threads than chunks, on sizes that divide by nothing.
 */
#include "small_nets.h"

static void fast_equals_plain(void **state)
{
  (void)state;
  for (int i = 0; i < SMALL_NETS; i++) {
    for (int k = 0; k < KINDS; k++) {
      char what[128];
      snprintf(what, sizeof what, "%s, %s", small_nets[i].name, kinds[k].name);
      tp__graph *g = build_kind(&small_nets[i], &kinds[k]);
      rig fast = rig_new(g, 2, 6, false), plain = rig_new(g, 1, 6, true);
      rig_run(&fast);
      rig_run(&plain);
      compare_outputs(&fast, &plain, what);
      compare_states(&fast, &plain, what);
      rig_free(&fast);
      rig_free(&plain);
      tp__graph_free(g);
    }
  }
}

static void same_bits_for_any_threads(void **state)
{
  (void)state;
  const int threads[] = {2, 3, 8};
  for (int i = 0; i < SMALL_NETS; i++) {
    for (int k = 0; k < KINDS; k++) {
      tp__graph *g = build_kind(&small_nets[i], &kinds[k]);
      rig one = rig_new(g, 1, 19, false);
      for (int step = 0; step < 2; step++) rig_run(&one);
      for (int t = 0; t < 3; t++) {
        rig many = rig_new(g, threads[t], 19, false);
        for (int step = 0; step < 2; step++) rig_run(&many);
        expect_same_outputs(&many, &one, small_nets[i].name);
        expect_same_state(&many, &one, small_nets[i].name);
        rig_free(&many);
      }
      rig_free(&one);
      tp__graph_free(g);
    }
  }
}

/* Inference: 32 examples at once, or in runs of other sizes, one program or several. */
static void same_bits_for_any_batch(void **state)
{
  (void)state;
  const int64_t sizes[] = {1, 3, 4, 5, 31};
  for (int i = 0; i < SMALL_NETS; i++) {
    tp__graph *g = build_kind(&small_nets[i], &kinds[0]);
    rig whole = rig_new(g, 2, 32, false), parts = rig_new(g, 2, 32, false);
    rig_run(&whole);
    expect_same_in_parts(&parts, &whole, sizes, 5, small_nets[i].name);
    rig_free(&whole);
    rig_free(&parts);
    tp__graph_free(g);
  }
}

/* A value of each example that depends on a sum over all: y = x (x^T x), in two stages; and a later
 * sum of it. */
static void stages_after_joints(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,5");
  tp__value early = NODE(g, ACTIVATION, (.act = TP__ACT_SWISH), x);
  tp__value gram = NODE(g, MATMUL_KERNEL_GRAD, (0), x, early);
  tp__value y = NODE(g, ADD, (0), NODE(g, MATMUL, (0), x, gram), early);
  output(g, "y", y);
  output(g, "sum", NODE(g, SUM_TO_LAST, (0), y));
  output(g, "gram", gram);
  rig fast = rig_new(g, 2, 9, false), plain = rig_new(g, 1, 9, true);
  rig_run(&plain);
  for (int again = 0; again < 2; again++) {
    rig_run(&fast);
    compare_outputs(&fast, &plain, "two stages");
  }
  rig_free(&fast);
  rig_free(&plain);
  tp__graph_free(g);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fast_equals_plain),
      cmocka_unit_test(same_bits_for_any_threads),
      cmocka_unit_test(same_bits_for_any_batch),
      cmocka_unit_test(stages_after_joints),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
