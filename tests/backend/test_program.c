/* Proves what programs do around a run: they share a state and see each other's updates,
 * assignments read old values, Adam and SGD follow Keras 3's formulas (computed here in double),
 * frozen batch norm is case B18, the instruction set can be capped. Hostile cases: wrong feeds,
 * fetches, sizes and states, too little memory.
 */
#include "small_nets.h"

#include "backend/cpu/kernels.h"

/* A training program changes weights; an inference program on the same state, compiled before, sees
 * them; and writing the old weights back gives the old answers. */
static void programs_share_a_state(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__graph *training = build_kind(&small_nets[0], &kinds[3]),
            *inference = build_kind(&small_nets[0], &kinds[0]);
  tp__compile_options options = {.batch = 5};
  rig trains = rig_new(training, 2, 5, false), infers = rig_new(inference, 2, 5, false);
  rig_run(&infers);
  size_t bytes = infers.elements[0] * sizeof(float);
  float *before = malloc(bytes);
  assert_non_null(before);
  memcpy(before, infers.output[0], bytes);
  /* move the inference program over to the training program's state */
  infers.backend->program_free(infers.program);
  infers.backend->state_free(infers.state);
  infers.state = trains.state;
  assert_ok(infers.backend->compile(infers.backend, inference, trains.state, &options,
                                    &infers.program, &err));
  rig_run(&infers);
  assert_memory_equal(infers.output[0], before, bytes);
  tp__tensors old = {0};
  rig_read(&trains, &old);
  rig_run(&trains);
  rig_run(&infers);
  assert_true(difference(infers.output[0], before, infers.elements[0], 0) > 1e-3);
  rig plain = rig_new(inference, 1, 5, true); /* the same with the new weights, from scratch */
  tp__tensors now = {0};
  initial_parameters(inference, &now);
  assert_ok(trains.backend->state_read(trains.state, &now, &err));
  assert_ok(plain.backend->state_write(plain.state, &now, &err));
  rig_run(&plain);
  compare_outputs(&infers, &plain, "after a step");
  assert_ok(trains.backend->state_write(trains.state, &old, &err));
  rig_run(&infers);
  assert_memory_equal(infers.output[0], before, bytes);
  tp__tensors_free(&old);
  tp__tensors_free(&now);
  free(before);
  infers.backend->program_free(infers.program);
  infers.program = NULL;
  infers.state = NULL;
  rig_free(&infers);
  rig_free(&plain);
  rig_free(&trains);
  tp__graph_free(training);
  tp__graph_free(inference);
}

/* Parameters that change places, and one that takes an input: old values are read before any is
 * written. */
static void assignments_read_old_values(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value a = param(g, "a", "3"), b = param(g, "b", "3"), c = param(g, "c", "3");
  output(g, "a", a);
  assign(g, a, b);
  assign(g, b, c);
  assign(g, c, a);
  for (int reference = 0; reference < 2; reference++) {
    rig r = rig_new(g, 2, 1, reference);
    tp__tensors first = {0}, now = {0};
    rig_read(&r, &first);
    rig_run(&r);
    assert_memory_equal(r.output[0], first.item[0].data, 12);
    rig_read(&r, &now);
    for (int i = 0; i < 3; i++)
      assert_memory_equal(now.item[i].data, first.item[(i + 1) % 3].data, 12);
    tp__tensors_free(&first);
    tp__tensors_free(&now);
    rig_free(&r);
  }
  tp__graph_free(g);
}

/* Keras 3's formulas, computed here in double, for three steps. The gradient of sum(w x) is sum(x).
 */
struct update {
  const char *name;
  bool adam, nesterov;
  float momentum;
};

static void build_update(tp__graph *g, const struct update *u)
{
  tp__value w = param(g, "w", "20000"), rate = input(g, "rate", ""), step = input(g, "step", "");
  tp__value gradient = NODE(g, SUM_TO_LAST, (0), input(g, "x", "N,20000"));
  if (u->adam) {
    tp__value m0 = param(g, "adam/m/w", "20000"), v0 = param(g, "adam/v/w", "20000");
    tp__value m = NODE(g, ADAM_M, (.f = {0.9f}), m0, gradient),
              v = NODE(g, ADAM_V, (.f = {0.999f}), v0, gradient);
    assign(g, m0, m);
    assign(g, v0, v);
    assign(g, w, NODE(g, ADAM_PARAM, (.f = {0.9f, 0.999f, 1e-7f}), w, m, v, rate, step));
    return;
  }
  tp__value v0 = param(g, "sgd/velocity/w", "20000");
  tp__value v = NODE(g, SGD_MOMENTUM, (.f = {u->momentum}), v0, gradient, rate);
  assign(g, v0, v);
  if (u->nesterov)
    assign(g, w, NODE(g, SGD_PARAM, (.flag = true, .f = {u->momentum}), w, v, gradient, rate));
  else
    assign(g, w, NODE(g, SGD_PARAM, (0), w, v));
}

static double updated(const struct update *u, double w, double gradient, int steps)
{
  double m = 0, v = 0, rate = 0.01f;
  for (int t = 1; t <= steps; t++) {
    if (u->adam) {
      m += (gradient - m) * (1 - 0.9);
      v += (gradient * gradient - v) * (1 - 0.999);
      w -= rate * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t)) * m / (sqrt(v) + 1e-7);
    } else {
      v = u->momentum * v - rate * gradient;
      w += u->nesterov ? u->momentum * v - rate * gradient : v;
    }
  }
  return w;
}

static void updates_follow_keras(void **state)
{
  (void)state;
  static const struct update updates[] = {{"Adam", true, false, 0},
                                          {"SGD", false, false, 0},
                                          {"momentum", false, false, 0.9f},
                                          {"Nesterov", false, true, 0.9f}};
  for (int i = 0; i < 8; i++) {
    const struct update *u = &updates[i / 2];
    tp__graph *g = new_graph();
    build_update(g, u);
    rig r = rig_new(g, 2, 3, i % 2);
    for (int t = 1; t <= 3; t++) {
      for (tp__value v = 0; v < g->count; v++)
        if (g->node[v].op == TP__OP_INPUT && strcmp(g->node[v].name, "step") == 0)
          *(float *)r.input[v] = (float)t;
      rig_run(&r);
    }
    tp__tensors now = {0};
    rig_read(&r, &now);
    for (size_t j = 0; j < 20000; j++) {
      double gradient = 0;
      for (size_t n = 0; n < 3; n++) gradient += noise("x", n * 20000 + j);
      double expected = updated(u, noise("w", j), gradient, 3),
             got = ((float *)now.item[0].data)[j];
      if (!(fabs(expected - got) < 2e-5))
        fail_msg("%s: w[%zu] is %g, not %g", u->name, j, got, expected);
    }
    tp__tensors_free(&now);
    rig_free(&r);
    tp__graph_free(g);
  }
}

/* Case B18, the frozen part: a batch {0, 10} through gamma 1, beta 0, mean 0, variance 1, epsilon
 * 0.001 gives 0 and 9.995004, and the statistics stay. */
static void frozen_batch_norm(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__graph *g = new_graph();
  output(g, "y", batch_norm(g, "bn", input(g, "x", "N,1"), "1"));
  for (int reference = 0; reference < 2; reference++) {
    rig r = rig_new(g, 2, 2, reference);
    tp__tensors set = {0}, after = {0};
    initial_parameters(g, &set);
    for (size_t i = 0; i < set.count; i++)
      *(float *)set.item[i].data =
          ends_with(set.item[i].name, "gamma") || ends_with(set.item[i].name, "variance");
    assert_ok(r.backend->state_write(r.state, &set, &err));
    for (tp__value v = 0; v < g->count; v++)
      if (g->node[v].op == TP__OP_INPUT) memcpy(r.input[v], (float[]){0, 10}, 8);
    rig_run(&r);
    assert_true(r.output[0][0] == 0);
    assert_true(fabs(r.output[0][1] - 9.995004) < 1e-6);
    rig_read(&r, &after);
    for (size_t i = 0; i < set.count; i++)
      assert_memory_equal(set.item[i].data, after.item[i].data, 4);
    tp__tensors_free(&set);
    tp__tensors_free(&after);
    rig_free(&r);
  }
  tp__graph_free(g);
}

static void refuses_wrong_runs(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__graph *g = build_kind(&small_nets[0], &kinds[0]);
  for (int reference = 0; reference < 2; reference++) {
    rig r = rig_new(g, 2, 4, reference);
    tp__feed feed[] = {{"pixels", r.input[0]}, {"colours", r.input[0]}}, no_data = {"pixels", NULL};
    tp__fetch wrong = {"logit", r.output[0]};
    const tp__backend *b = r.backend;
    for (tp__value v = 0; v < g->count; v++)
      if (g->node[v].op == TP__OP_INPUT) feed[0].data = feed[1].data = r.input[v];
    assert_fails(b->run(r.program, feed, 2, NULL, 0, 4, &err), TP_ERR_INTERNAL, "no input colours");
    assert_fails(b->run(r.program, NULL, 0, NULL, 0, 4, &err), TP_ERR_INTERNAL,
                 "input pixels was not fed");
    assert_fails(b->run(r.program, &no_data, 1, NULL, 0, 4, &err), TP_ERR_INTERNAL,
                 "pixels has no data");
    assert_fails(b->run(r.program, feed, 1, &wrong, 1, 4, &err), TP_ERR_INTERNAL,
                 "no output logit");
    assert_fails(b->run(r.program, feed, 1, NULL, 0, 0, &err), TP_ERR_INTERNAL,
                 "run of 0 examples");
    assert_fails(b->run(r.program, feed, 1, NULL, 0, 5, &err), TP_ERR_INTERNAL, "takes 1 to 4");
    assert_ok(b->run(r.program, feed, 1, NULL, 0, 4, &err)); /* nothing fetched */
    rig_free(&r);
  }
  tp__graph_free(g);
}

static void refuses_wrong_programs(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__graph *g = build_kind(&small_nets[0], &kinds[0]);
  rig r = rig_new(g, 2, 4, false);
  tp__program *program = NULL;
  tp__program_info info;
  r.backend->program_info(r.program, &info);
  assert_true(info.flops_per_example > 1e6 && info.activation_bytes > 0 && info.weight_bytes > 0);
  assert_int_equal(info.chunk, 4);
  for (int reference = 0; reference < 2; reference++) {
    tp__compile_options o = {.batch = 4, .reference = reference, .memory_limit = 10000};
    assert_fails(r.backend->compile(r.backend, g, r.state, &o, &program, &err), TP_ERR_DEVICE,
                 "of the limit 10.0 KB are left");
    o = (tp__compile_options){.batch = 0, .reference = reference};
    assert_fails(r.backend->compile(r.backend, g, r.state, &o, &program, &err), TP_ERR_USAGE,
                 "not 0");
    o.batch = INT64_MAX;
    assert_fails(r.backend->compile(r.backend, g, r.state, &o, &program, &err), TP_ERR_USAGE,
                 "batch");
  }
  tp__graph *other = new_graph();
  tp__compile_options o = {.batch = 1};
  output(other, "y",
         NODE(other, BIAS_ADD, (0), input(other, "x", "N,7"), param(other, "stem/kernel", "7")));
  assert_fails(r.backend->compile(r.backend, other, r.state, &o, &program, &err), TP_ERR_INTERNAL,
               "parameter stem/kernel is (7,), but the state holds (3, 3, 3, 16)");
  tp__graph_free(other);
  other = new_graph();
  output(other, "y",
         NODE(other, BIAS_ADD, (0), input(other, "x", "N,7"), param(other, "no/such", "7")));
  assert_fails(r.backend->compile(r.backend, other, r.state, &o, &program, &err), TP_ERR_INTERNAL,
               "no parameter no/such");
  tp__graph_free(other);
  /* a set with one wrong name changes nothing */
  tp__tensors set = {0}, now = {0};
  tp__tensor *t = NULL;
  rig_read(&r, &now);
  assert_ok(tp__tensors_add(&set, now.item[0].name, TP__F32, &now.item[0].shape, &t, &err));
  assert_ok(tp__tensors_add(&set, "no/such", TP__F32, &now.item[0].shape, &t, &err));
  assert_fails(r.backend->state_write(r.state, &set, &err), TP_ERR_INTERNAL, "no/such");
  tp__tensors again = {0};
  rig_read(&r, &again);
  assert_memory_equal(now.item[0].data, again.item[0].data, tp__tensor_bytes(&now.item[0]));
  tp__tensors_free(&set);
  tp__tensors_free(&now);
  tp__tensors_free(&again);
  rig_free(&r);
  tp__graph_free(g);
}

/* A rig with TEPAL_CPU set to that value; false where this processor lacks it. */
static bool rig_with(const char *set, const tp__graph *g, rig *r)
{
  const tp__kernels *kernels = NULL;
  if (tp__kernels_choose(set, &kernels, NULL) != TP_OK) return false;
  setenv("TEPAL_CPU", set, 1);
  *r = rig_new(g, 2, 5, false);
  rig_run(r);
  return true;
}

/* TEPAL_CPU caps the choice: the baseline agrees with the plain executor, AVX2 and AVX-512 with
 * each other to the bit; a wrong value is refused. */
static void instruction_sets(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__pool *pool = NULL;
  tp__backend *backend = NULL;
  tp__graph *g = build_kind(&small_nets[1], &kinds[3]);
  char *kept = getenv("TEPAL_CPU") != NULL ? strdup(getenv("TEPAL_CPU")) : NULL;
  rig plain = rig_new(g, 1, 5, true), baseline, avx2, avx512;
  rig_run(&plain);
  assert_true(rig_with("baseline", g, &baseline));
  assert_non_null(strstr(baseline.backend->device, "2 threads, baseline"));
  compare_outputs(&baseline, &plain, "baseline");
  compare_states(&baseline, &plain, "baseline");
  if (rig_with("avx2", g, &avx2)) {
    compare_outputs(&avx2, &plain, "AVX2");
    if (rig_with("avx512", g, &avx512)) {
      expect_same_outputs(&avx512, &avx2, "AVX-512 and AVX2");
      expect_same_state(&avx512, &avx2, "AVX-512 and AVX2");
      rig_free(&avx512);
    }
    rig_free(&avx2);
  }
  setenv("TEPAL_CPU", "abacus", 1);
  assert_ok(tp__pool_new(1, &pool, &err));
  assert_fails(tp__backend_cpu(pool, &backend, &err), TP_ERR_DEVICE, "TEPAL_CPU");
  tp__pool_free(pool);
  if (kept != NULL)
    setenv("TEPAL_CPU", kept, 1);
  else
    unsetenv("TEPAL_CPU");
  free(kept);
  rig_free(&plain);
  rig_free(&baseline);
  tp__graph_free(g);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(programs_share_a_state), cmocka_unit_test(assignments_read_old_values),
      cmocka_unit_test(updates_follow_keras),   cmocka_unit_test(frozen_batch_norm),
      cmocka_unit_test(refuses_wrong_runs),     cmocka_unit_test(refuses_wrong_programs),
      cmocka_unit_test(instruction_sets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
