/* Whole training steps and predictions as StableHLO on a CPU plugin, against the plain loops: small
 * networks of EfficientNet's blocks with frozen statistics and with those of the batch, over all
 * replicas or of each alone (then against plain runs of each replica's rows); rows in parts;
 * pictures as bytes; bfloat16 within its digits. Hostile: statistics of a batch in parts are
 * refused. Called with the plugin's path inside site-packages. */
#include "hlo_client.h"

#include "../small_nets.h"

/* Gradients are what Adam's first moments are made of. New parameters are compared by the size of a
 * step only: the first is the gradient's sign, wherever the gradient is. */
static double allowed(const tp__hlo_port *port)
{
  if (port->kind == TP__HLO_OUTPUT) return 2e-5;
  if (strncmp(port->name, "adam", 4) == 0) return 2e-4;
  return ends_with(port->name, "mean") || ends_with(port->name, "variance") ? 2e-5 : 0.0201;
}

static void expect_step(const hlo_rig *h, rig *plain, const char *what)
{
  tp__tensors state = {0};
  rig_read(plain, &state);
  for (size_t i = 0; i < h->module.n_results; i++) {
    const tp__hlo_port *port = &h->module.result[i];
    const float *wanted = port->kind == TP__HLO_OUTPUT ? plain->output[i]
                                                       : tp__tensors_find(&state, port->name)->data;
    bool slot = strncmp(port->name, "adam", 4) == 0;
    double d = result_difference(h, i, wanted, plain->n, slot ? 1e-7 : 1e-2);
    if (!(d < allowed(port))) fail_msg("%s: %s differs by %g", what, port->name, d);
  }
  expect_equal_replicas(h, what);
  tp__tensors_free(&state);
}

static void compare(tp__graph *g, int64_t n, const tp__hlo_options *options, const char *what)
{
  rig plain = rig_new(g, 1, n, true);
  rig_run(&plain);
  hlo_rig h = hlo_run(client, &plain, options);
  expect_step(&h, &plain, what);
  hlo_rig_free(&h);
  rig_free(&plain);
  tp__graph_free(g);
}

static void test_frozen_statistics(void **state)
{
  (void)state;
  if (client == NULL) skip();
  const tp__hlo_options one = {.rows = 3, .replicas = 1, .accumulate = 1};
  const tp__hlo_options four = {.rows = 2, .replicas = REPLICAS, .accumulate = 1};
  const tp__hlo_options parts = {
      .rows = 4, .replicas = 2, .accumulate = 2, .depthwise_shifts = true};
  compare(build_kind(&small_nets[1], &kinds[0]), 3, &one, kinds[0].name);
  compare(build_kind(&small_nets[1], &kinds[KINDS - 1]), 5, &four, "four replicas");
  compare(build_kind(&small_nets[1], &kinds[KINDS - 1]), 5, &parts, "parts");
}

/* ---- statistics of the batch ---- */

static tp__value moving_norm(tp__graph *g, const char *name, tp__value x, const char *channels)
{
  tp__value y = batch_norm_full(g, name, x, channels);
  static const char *const variable[] = {"moving_mean", "moving_variance"};
  for (int i = 0; i < 2; i++) {
    char of[64];
    snprintf(of, sizeof of, "%s/%s", name, variable[i]);
    tp__value p = param(g, of, channels);
    assign(g, p, NODE(g, MOVING_AVERAGE, (.f = {0.9f}), p, g->node[y].in[3 + i]));
  }
  return y;
}

static tp__graph *build_with_statistics(void)
{
  tp__graph *g = new_graph();
  tp__value x = NODE(g, AFFINE, (.f = {1.0f / 127.5f, -1}), input(g, "pixels", "N,11,9,3"));
  x = conv(g, "stem", x, "3,3,3,6", 2, 1);
  x = activation(g, "", moving_norm(g, "stem_bn", x, "6"), TP__ACT_SWISH);
  tp__value y = depthwise(g, "dw", x, "3,3,6,1", 1, 1);
  y = activation(g, "", moving_norm(g, "dw_bn", y, "6"), TP__ACT_SWISH);
  y = squeeze_excite(g, "se", y, 6, 2);
  y = moving_norm(g, "project_bn", pointwise(g, "block", "project", y, 6, 6), "6");
  x = NODE(g, ADD, (0), x, y);
  x = NODE(g, GLOBAL_POOL, (0), x);
  x = NODE(g, MATMUL, (0), x, param(g, "predictions/kernel", "6,3"));
  add_training(g, bias_add(g, "predictions", x, "3"), "");
  return g;
}

static void test_statistics_over_all_replicas(void **state)
{
  (void)state;
  if (client == NULL) skip();
  const tp__hlo_options one = {.rows = 7, .replicas = 1, .accumulate = 1};
  const tp__hlo_options four = {.rows = 2, .replicas = REPLICAS, .accumulate = 1};
  compare(build_with_statistics(), 5, &one, "one replica with padded rows");
  compare(build_with_statistics(), 5, &four, "four replicas, one without examples");
}

/* The rows from `first` on of each example's inputs. */
static void take_rows(rig *part, const rig *all, int64_t first)
{
  for (tp__value v = 0; v < all->graph->count; v++) {
    const tp__node *node = &all->graph->node[v];
    if (node->op != TP__OP_INPUT || !tp__per_example(node)) continue;
    size_t row = tp__shape_elements(&node->shape, 1) * 4;
    memcpy(part->input[v], (char *)all->input[v] + (size_t)first * row, (size_t)part->n * row);
  }
}

static void add_to(tp__tensors *sum, const tp__tensors *state, double factor)
{
  for (size_t i = 0; i < state->count; i++) {
    const float *x = state->item[i].data;
    float *to = sum->item[i].data;
    for (size_t j = 0; j < tp__shape_elements(&state->item[i].shape, 1); j++)
      to[j] += (float)(x[j] * factor);
  }
}

/* Each replica's rows alone give its logits and its part of the gradient; averages move by the mean
 * of the moments of the three replicas that have examples. */
static void test_statistics_of_each_replica(void **state)
{
  (void)state;
  if (client == NULL) skip();
  enum { N = 5, ROWS = 2, PARTS = 3 };
  tp__graph *g = build_with_statistics();
  const tp__hlo_options local = {
      .rows = ROWS, .replicas = REPLICAS, .accumulate = 1, .local_statistics = true};
  rig all = rig_new(g, 1, N, true);
  hlo_rig h = hlo_run(client, &all, &local);
  tp__tensors sum = {0}, mean = {0};
  initial_parameters(g, &sum);
  add_to(&sum, &sum, -1);
  initial_parameters(g, &mean);
  add_to(&mean, &mean, -1);
  for (int64_t r = 0; r < PARTS; r++) {
    int64_t n = r < PARTS - 1 ? ROWS : N - ROWS * r;
    tp__tensors part_state = {0};
    rig part = rig_new(g, 1, n, true);
    take_rows(&part, &all, r * ROWS);
    rig_run(&part);
    for (size_t i = 0; i < 2; i++) {
      size_t count = part.elements[i];
      double d = difference(hlo_result(&h, i, (int)r), part.output[i], count, 1e-2);
      if (!(d < 2e-5)) fail_msg("replica %d: output %zu differs by %g", (int)r, i, d);
    }
    rig_read(&part, &part_state);
    add_to(&sum, &part_state, 1);
    add_to(&mean, &part_state, 1.0 / PARTS);
    tp__tensors_free(&part_state);
    rig_free(&part);
  }
  int compared = 0;
  for (size_t i = 0; i < h.module.n_results; i++) {
    const char *name = h.module.result[i].name;
    bool slot = strncmp(name, "adam/m", 6) == 0, moves = strstr(name, "/moving_") != NULL;
    if (h.module.result[i].kind != TP__HLO_ASSIGNED || (!slot && !moves)) continue;
    if (strncmp(name, "adam/v", 6) == 0) continue;
    double d = result_difference(&h, i, tp__tensors_find(slot ? &sum : &mean, name)->data, N, 1e-7);
    if (!(d < (slot ? 2e-4 : 2e-5))) fail_msg("%s differs by %g", name, d);
    compared++;
  }
  assert_true(compared > 10);
  expect_equal_replicas(&h, "statistics of each replica");
  tp__tensors_free(&sum);
  tp__tensors_free(&mean);
  hlo_rig_free(&h);
  rig_free(&all);
  tp__graph_free(g);
}

static void test_statistics_do_not_go_in_parts(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__hlo_module module = {0};
  tp__graph *g = build_with_statistics();
  const tp__hlo_options parts = {.rows = 4, .replicas = 1, .accumulate = 2};
  assert_fails(tp__hlo_write(g, &parts, &module, &err), TP_ERR_USAGE, "batch_norm = frozen");
  tp__graph_free(g);
}

/* ---- pictures as bytes, bfloat16 ---- */

/* Whole numbers, so that they are the same as bytes. */
static void round_pixels(rig *r)
{
  for (tp__value v = 0; v < r->graph->count; v++) {
    const tp__node *node = &r->graph->node[v];
    if (node->op != TP__OP_INPUT || strcmp(node->name, "pixels") != 0) continue;
    float *x = r->input[v];
    for (size_t i = 0; i < tp__shape_elements(&node->shape, r->n); i++) x[i] = roundf(x[i]);
  }
}

static void run_rounded(const tp__hlo_options *options, rig *plain, hlo_rig *h, tp__graph *g)
{
  *plain = rig_new(g, 1, 3, true);
  round_pixels(plain);
  rig_run(plain);
  *h = hlo_run(client, plain, options);
}

static void test_bytes(void **state)
{
  (void)state;
  if (client == NULL) skip();
  const tp__hlo_options bytes = {.rows = 2, .replicas = 2, .accumulate = 2, .byte_input = "pixels"};
  tp__graph *g = build_kind(&small_nets[1], &kinds[1]);
  rig plain;
  hlo_rig h;
  run_rounded(&bytes, &plain, &h, g);
  int found = 0;
  for (size_t i = 0; i < h.module.n_arguments; i++)
    found +=
        h.module.argument[i].dtype == TP__U8 && strcmp(h.module.argument[i].name, "pixels") == 0;
  assert_int_equal(found, 1);
  expect_step(&h, &plain, "bytes");
  hlo_rig_free(&h);
  rig_free(&plain);
  tp__graph_free(g);
}

/* 8 bits of mantissa through a dozen layers: some percent; probabilities add up to 1 all the same,
 * and parameters stay float32. */
static void test_bfloat16(void **state)
{
  (void)state;
  if (client == NULL) skip();
  const tp__hlo_options bf16 = {
      .rows = 3, .replicas = 1, .accumulate = 1, .bf16 = true, .byte_input = "pixels"};
  for (int i = 0; i < KINDS; i += KINDS - 1) {
    tp__graph *g = build_kind(&small_nets[1], &kinds[i]);
    rig plain;
    hlo_rig h;
    run_rounded(&bf16, &plain, &h, g);
    double d = result_difference(&h, 0, plain.output[0], 3, 1e-2);
    if (!(d < 0.04 && d > 1e-6)) fail_msg("%s: differs by %g", kinds[i].name, d);
    for (size_t k = 0; k < h.module.n_results; k++)
      assert_int_equal(h.module.result[k].dtype, TP__F32);
    const float *p = hlo_result(&h, 0, 0);
    if (kinds[i].trained == NULL)
      for (int e = 0; e < 3; e++)
        assert_float_equal(p[3 * e] + p[3 * e + 1] + p[3 * e + 2], 1, 1e-6);
    hlo_rig_free(&h);
    rig_free(&plain);
    tp__graph_free(g);
  }
}

/* A sum kept in bfloat16 sticks at 256: the mean of 4096 ones would be 1/16. */
static void test_bfloat16_sums(void **state)
{
  (void)state;
  if (client == NULL) skip();
  const tp__hlo_options bf16 = {.rows = 1, .replicas = 1, .accumulate = 1, .bf16 = true};
  tp__graph *g = new_graph();
  tp__value x = NODE(g, ACTIVATION, (.act = TP__ACT_RELU), input(g, "x", "N,64,64,2"));
  x = NODE(g, ADD, (0), x, NODE(g, AFFINE, (.f = {0, 1}), x));
  output(g, "mean", NODE(g, GLOBAL_POOL, (0), x));
  output(g, "sum", NODE(g, SUM_TO_LAST, (0), x));
  rig plain = rig_new(g, 1, 1, true);
  tp__value v;
  find_input(g, "x", &v);
  memset(plain.input[v], 0, 64 * 64 * 2 * sizeof(float));
  hlo_rig h = hlo_run(client, &plain, &bf16);
  for (int c = 0; c < 2; c++) {
    assert_float_equal(hlo_result(&h, 0, 0)[c], 1, 0);
    assert_float_equal(hlo_result(&h, 1, 0)[c], 4096, 0);
  }
  hlo_rig_free(&h);
  rig_free(&plain);
  tp__graph_free(g);
}

int main(int argc, char **argv)
{
  if (argc > 1) plugin_name = argv[1];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_frozen_statistics),
      cmocka_unit_test(test_statistics_over_all_replicas),
      cmocka_unit_test(test_statistics_of_each_replica),
      cmocka_unit_test(test_statistics_do_not_go_in_parts),
      cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_bfloat16),
      cmocka_unit_test(test_bfloat16_sums),
  };
  return cmocka_run_group_tests(tests, open_client, close_client);
}
