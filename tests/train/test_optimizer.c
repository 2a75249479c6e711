/* Proves that Adam and SGD move parameters as Keras 3's do, step by step, by the fast kernels and
 * by the plain loops. Expected: tests/ref/train_ref.py (Keras 3.15.1), within 1e-6 of the value. */
#include "train_testing.h"

#include <math.h>

#include "backend/backend.h"
#include "train/optimizer.h"

enum { N = 3, STEPS = 5 };

static const float gradients[STEPS][N] = {{0.5f, -2, 0},
                                          {0.25f, 1, 1.0f / (1 << 20)},
                                          {-0.125f, 3, 1.0f / (1 << 20)},
                                          {0.5f, -4, 0},
                                          {1, 0.5f, -1.0f / (1 << 18)}};

/* v trained by gradients that are fed. */
typedef struct trained {
  tp__backend *cpu;
  tp__state *state;
  tp__program *program;
  tp__tensors slots;
} trained;

static void start(trained *t, tp__pool *pool, const tp__optimizer *optimizer, bool reference)
{
  tp_error err = {0};
  tp__graph *g = NULL;
  tp__shape shape = tp__shape_make(1, (int64_t[]){N}), scalar = {0};
  tp__value v, gradient, rate, step;
  *t = (trained){0};
  assert_ok(tp__backend_cpu(pool, &t->cpu, &err));
  assert_ok(tp__graph_new(&g, &err));
  assert_ok(tp__graph_param(g, "v", &shape, &v, &err));
  assert_ok(tp__graph_input(g, "gradient", TP__F32, &shape, &gradient, &err));
  assert_ok(tp__graph_input(g, "rate", TP__F32, &scalar, &rate, &err));
  assert_ok(tp__graph_input(g, "step", TP__F32, &scalar, &step, &err));
  assert_ok(tp__optimizer_add(optimizer, g, v, gradient, rate, step, &t->slots, &err));

  tp__tensors initial = {0};
  tp__tensor *start_value = NULL;
  assert_ok(tp__tensors_copy(&t->slots, &initial, &err));
  assert_ok(tp__tensors_add(&initial, "v", TP__F32, &shape, &start_value, &err));
  memcpy(start_value->data, (float[]){1, -1, 0.5f}, N * sizeof(float));
  assert_ok(t->cpu->state_new(t->cpu, &initial, &t->state, &err));
  tp__compile_options options = {.batch = 1, .reference = reference};
  assert_ok(t->cpu->compile(t->cpu, g, t->state, &options, &t->program, &err));
  tp__tensors_free(&initial);
  tp__graph_free(g);
}

static void end(trained *t)
{
  t->cpu->program_free(t->program);
  t->cpu->state_free(t->state);
  t->cpu->free(t->cpu);
  tp__tensors_free(&t->slots);
}

static void one_step(trained *t, int step, float *value)
{
  tp_error err = {0};
  float rate = 1e-2f, number = (float)(step + 1);
  tp__feed feed[] = {{"gradient", gradients[step]}, {"rate", &rate}, {"step", &number}};
  assert_ok(t->cpu->run(t->program, feed, 3, NULL, 0, 1, &err));
  tp__tensors read = {0};
  tp__shape shape = tp__shape_make(1, (int64_t[]){N});
  tp__tensor *v = NULL;
  assert_ok(tp__tensors_add(&read, "v", TP__F32, &shape, &v, &err));
  assert_ok(t->cpu->state_read(t->state, &read, &err));
  memcpy(value, v->data, N * sizeof(float));
  tp__tensors_free(&read);
}

static void as_keras(void **state)
{
  box *b = *state;
  static const struct {
    const char *what;
    tp__optimizer optimizer;
    size_t slots;
    float wanted[STEPS][N];
  } cases[] = {
      {"adam",
       {TP__OPTIMIZER_ADAM, 0.9f, 0.999f, 1e-7f, 0, false},
       2,
       {{0.990000129f, -0.990000069f, 0.5f},
        {0.980678499f, -0.987336755f, 0.498275846f},
        {0.975041926f, -0.991230607f, 0.495709658f},
        {0.967741191f, -0.989163041f, 0.493608356f},
        {0.95966506f, -0.987919033f, 0.495384544f}}},
      {"adam, other betas",
       {TP__OPTIMIZER_ADAM, 0.5f, 0.9f, 1e-3f, 0, false},
       2,
       {{0.990062833f, -0.990015805f, 0.5f},
        {0.981543958f, -0.990015805f, 0.499997228f},
        {0.979312599f, -0.997794211f, 0.499992967f},
        {0.971455872f, -0.993109643f, 0.499990731f},
        {0.960361242f, -0.991553068f, 0.500002146f}}},
      {"sgd",
       {TP__OPTIMIZER_SGD, 0, 0, 0, 0, false},
       1,
       {{0.995000005f, -0.980000019f, 0.5f},
        {0.992500007f, -0.99000001f, 0.5f},
        {0.993750036f, -1.01999998f, 0.5f},
        {0.988750041f, -0.979999959f, 0.5f},
        {0.97875005f, -0.984999955f, 0.50000006f}}},
      {"sgd, momentum",
       {TP__OPTIMIZER_SGD, 0, 0, 0, 0.9f, false},
       1,
       {{0.995000005f, -0.980000019f, 0.5f},
        {0.987999976f, -0.972000003f, 0.5f},
        {0.982949972f, -0.994800031f, 0.49999997f},
        {0.973404944f, -0.975320041f, 0.49999994f},
        {0.954814434f, -0.962788045f, 0.49999997f}}},
      {"sgd, nesterov",
       {TP__OPTIMIZER_SGD, 0, 0, 0, 0.9f, true},
       1,
       {{0.990499973f, -0.962000012f, 0.5f},
        {0.981699944f, -0.9648f, 0.49999997f},
        {0.978404939f, -1.01531994f, 0.49999994f},
        {0.964814425f, -0.957787931f, 0.49999994f},
        {0.938082993f, -0.951509118f, 0.5f}}},
  };
  for (size_t c = 0; c < 2 * sizeof cases / sizeof *cases; c++) {
    trained t;
    start(&t, b->pool, &cases[c / 2].optimizer, c % 2 == 0);
    assert_int_equal(t.slots.count, cases[c / 2].slots);
    for (int s = 0; s < STEPS; s++) {
      float value[N];
      one_step(&t, s, value);
      for (int i = 0; i < N; i++)
        if (!(fabsf(value[i] - cases[c / 2].wanted[s][i]) <= 1e-6f))
          fail_msg("%s: step %d: v[%d] is %.9g, wanted %.9g", cases[c / 2].what, s, i,
                   (double)value[i], (double)cases[c / 2].wanted[s][i]);
    }
    end(&t);
  }
}

static void slots_by_name(void **state)
{
  box *b = *state;
  trained t;
  start(&t, b->pool, &(tp__optimizer){.kind = TP__OPTIMIZER_ADAM, .epsilon = 1e-7f}, true);
  assert_non_null(tp__tensors_find(&t.slots, "adam/m/v"));
  assert_non_null(tp__tensors_find(&t.slots, "adam/v/v"));
  end(&t);
  start(&t, b->pool, &(tp__optimizer){.kind = TP__OPTIMIZER_SGD, .momentum = 0.5f}, true);
  assert_non_null(tp__tensors_find(&t.slots, "sgd/velocity/v"));
  end(&t);
}

static void options_checked(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__optimizer made;
  tp_train_options o = default_train();
  assert_ok(tp__optimizer_make(&o, &made, &err));
  assert_int_equal(made.kind, TP__OPTIMIZER_ADAM);
  assert_true(made.beta_1 == 0.9f && made.beta_2 == 0.999f && made.epsilon == 1e-7f);
  o.optimizer = "sgd";
  o.nesterov = true;
  assert_ok(tp__optimizer_make(&o, &made, &err));
  assert_true(made.kind == TP__OPTIMIZER_SGD && made.momentum == 0.9f && made.nesterov);
  o.momentum = 1;
  assert_fails(tp__optimizer_make(&o, &made, &err), TP_ERR_USAGE, "momentum: 1 is out of range");
  o.optimizer = "rmsprop";
  assert_fails(tp__optimizer_make(&o, &made, &err), TP_ERR_USAGE, "wanted adam or sgd");
  o.optimizer = "adam";
  o.beta_2 = NAN;
  assert_fails(tp__optimizer_make(&o, &made, &err), TP_ERR_USAGE, "beta_2");
  o.beta_2 = 0.999;
  o.epsilon = 0;
  assert_fails(tp__optimizer_make(&o, &made, &err), TP_ERR_USAGE, "epsilon");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      box_test(as_keras),
      box_test(slots_by_name),
      cmocka_unit_test(options_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
