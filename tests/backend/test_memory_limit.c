/* Proves that a program within a limit of memory gives the same bits as one without: what is made
 * again (the rungs of thrift in program.c) changes nothing but memory. The limit
 * goes down from what the unlimited program takes to where nothing fits, which is an error that
 * names need and limit. Expected numbers: the unlimited program's; that one is tested elsewhere.
 */
#include "small_nets.h"

/* Blocks whose expansions have 12, 18 and 24 channels, with and without a sum. */
static tp__value blocks(tp__graph *g, bool batch)
{
  const int channels[] = {12, 12, 18, 24, 24};
  tp__value x = conv(g, "stem", input(g, "x", "N,14,12,3"), "3,3,3,12", 1, 1);
  for (int i = 0; i + 1 < 5; i++) {
    int in = channels[i], wide = 6 * in, out = channels[i + 1];
    char name[3][16], shape[3][32], bn[3][16];
    for (int k = 0; k < 3; k++) {
      snprintf(name[k], sizeof name[k], "b%d%c", i, 'a' + k);
      snprintf(bn[k], sizeof bn[k], "%d", k < 2 ? wide : out);
    }
    snprintf(shape[0], sizeof shape[0], "1,1,%d,%d", in, wide);
    snprintf(shape[1], sizeof shape[1], "3,3,%d,1", wide);
    snprintf(shape[2], sizeof shape[2], "1,1,%d,%d", wide, out);
    tp__value (*norm)(tp__graph *, const char *, tp__value, const char *) =
        batch ? batch_norm_full : batch_norm;
    tp__value y = conv(g, name[0], x, shape[0], 1, 0);
    y = activation(g, name[0], norm(g, name[0], y, bn[0]), TP__ACT_SWISH);
    y = depthwise(g, name[1], y, shape[1], i == 2 ? 2 : 1, 1);
    y = activation(g, name[1], norm(g, name[1], y, bn[1]), TP__ACT_SWISH);
    y = squeeze_excite(g, name[1], y, wide, 5);
    y = norm(g, name[2], conv(g, name[2], y, shape[2], 1, 0), bn[2]);
    x = in == out && i != 2 ? NODE(g, ADD, (0), y, x) : y;
  }
  x = NODE(g, GLOBAL_POOL, (0), x);
  return NODE(g, MATMUL, (0), x, param(g, "head/kernel", "24,4"));
}

static uint64_t need(const rig *r)
{
  tp__program_info info;
  r->backend->program_info(r->program, &info);
  return info.activation_bytes + info.weight_bytes;
}

static void same_bits_within_less(void **state)
{
  (void)state;
  enum { N = 64 };
  for (int batch = 0; batch < 2; batch++) {
    tp_error err = {0};
    tp__graph *g = new_graph();
    add_training(g, blocks(g, batch == 1), "");
    rig all = rig_new(g, 2, N, false);
    for (int step = 0; step < 2; step++) rig_run(&all);
    int found = 0;
    uint64_t least = need(&all);
    for (;; found++) {
      rig less;
      tp_status status = rig_within(&less, g, 2, N, false, least - 1, &err);
      if (status == TP_OK) {
        assert_true(need(&less) < least);
        least = need(&less);
        for (int step = 0; step < 2; step++) rig_run(&less);
        expect_same_outputs(&less, &all, batch ? "batch statistics" : "frozen");
        expect_same_state(&less, &all, batch ? "batch statistics" : "frozen");
      }
      rig_free(&less);
      if (status != TP_OK) {
        assert_fails(status, TP_ERR_DEVICE, "take a smaller batch");
        break;
      }
    }
    /* With frozen statistics there is one stage, and nothing to be made again. */
    assert_true(batch ? found >= 2 : found == 0);
    if (batch) assert_true((double)least < 0.7 * (double)need(&all));
    rig_free(&all);
    tp__graph_free(g);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_within_less)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
