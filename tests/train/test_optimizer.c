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
  assert_ok(tp__optimizer_clip(optimizer, g, &gradient, 1, &err));
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

/* Of the last case. */
static void compare_average(trained *t)
{
  static const float wanted[N] = {0.965508819f, -0.964734495f, 0.492678642f};
  tp_error err = {0};
  tp__tensors read = {0};
  tp__shape shape = tp__shape_make(1, (int64_t[]){N});
  tp__tensor *average = NULL;
  assert_ok(tp__tensors_add(&read, "ema/v", TP__F32, &shape, &average, &err));
  assert_ok(t->cpu->state_read(t->state, &read, &err));
  for (int i = 0; i < N; i++) assert_true(fabsf(((float *)average->data)[i] - wanted[i]) <= 1e-6f);
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
       {TP__OPTIMIZER_ADAM, 0.9f, 0.999f, 1e-7f, 0, false, 0, 0, 0},
       2,
       {{0.990000129f, -0.990000069f, 0.5f},
        {0.980678499f, -0.987336755f, 0.498275846f},
        {0.975041926f, -0.991230607f, 0.495709658f},
        {0.967741191f, -0.989163041f, 0.493608356f},
        {0.95966506f, -0.987919033f, 0.495384544f}}},
      {"adam, other betas",
       {TP__OPTIMIZER_ADAM, 0.5f, 0.9f, 1e-3f, 0, false, 0, 0, 0},
       2,
       {{0.990062833f, -0.990015805f, 0.5f},
        {0.981543958f, -0.990015805f, 0.499997228f},
        {0.979312599f, -0.997794211f, 0.499992967f},
        {0.971455872f, -0.993109643f, 0.499990731f},
        {0.960361242f, -0.991553068f, 0.500002146f}}},
      {"sgd",
       {TP__OPTIMIZER_SGD, 0, 0, 0, 0, false, 0, 0, 0},
       1,
       {{0.995000005f, -0.980000019f, 0.5f},
        {0.992500007f, -0.99000001f, 0.5f},
        {0.993750036f, -1.01999998f, 0.5f},
        {0.988750041f, -0.979999959f, 0.5f},
        {0.97875005f, -0.984999955f, 0.50000006f}}},
      {"sgd, momentum",
       {TP__OPTIMIZER_SGD, 0, 0, 0, 0.9f, false, 0, 0, 0},
       1,
       {{0.995000005f, -0.980000019f, 0.5f},
        {0.987999976f, -0.972000003f, 0.5f},
        {0.982949972f, -0.994800031f, 0.49999997f},
        {0.973404944f, -0.975320041f, 0.49999994f},
        {0.954814434f, -0.962788045f, 0.49999997f}}},
      {"sgd, nesterov",
       {TP__OPTIMIZER_SGD, 0, 0, 0, 0.9f, true, 0, 0, 0},
       1,
       {{0.990499973f, -0.962000012f, 0.5f},
        {0.981699944f, -0.9648f, 0.49999997f},
        {0.978404939f, -1.01531994f, 0.49999994f},
        {0.964814425f, -0.957787931f, 0.49999994f},
        {0.938082993f, -0.951509118f, 0.5f}}},
      {"adam, weight decay",
       {TP__OPTIMIZER_ADAM, 0.9f, 0.999f, 1e-7f, 0, false, 0.5f, 0, 0},
       2,
       {{0.985000134f, -0.985000074f, 0.497500002f},
        {0.970753491f, -0.977411747f, 0.493288338f},
        {0.960263133f, -0.976418555f, 0.488255709f},
        {0.948161066f, -0.969468892f, 0.48371312f},
        {0.9353441f, -0.963377535f, 0.483070731f}}},
      {"sgd, weight decay",
       {TP__OPTIMIZER_SGD, 0, 0, 0, 0.9f, false, 0.5f, 0, 0},
       1,
       {{0.99000001f, -0.975000024f, 0.497500002f},
        {0.978049994f, -0.962125003f, 0.495012492f},
        {0.968109727f, -0.9801144f, 0.492537409f},
        {0.953724146f, -0.955733836f, 0.490074694f},
        {0.930365026f, -0.938423157f, 0.487624347f}}},
      {"sgd, nesterov, weight decay",
       {TP__OPTIMIZER_SGD, 0, 0, 0, 0.9f, true, 0.5f, 0, 0},
       1,
       {{0.985499978f, -0.957000017f, 0.497500002f},
        {0.971772432f, -0.955015004f, 0.495012462f},
        {0.963618577f, -1.00075996f, 0.492537379f},
        {0.94520998f, -0.938224137f, 0.490074694f},
        {0.913752496f, -0.9272542f, 0.487624377f}}},
      {"adam, clipped",
       {TP__OPTIMIZER_ADAM, 0.9f, 0.999f, 1e-7f, 0, false, 0, 0.75f, 0},
       2,
       {{0.990000248f, -0.990000129f, 0.5f},
        {0.980000496f, -0.990526438f, 0.498660982f},
        {0.973097265f, -0.994617641f, 0.497246265f},
        {0.965810299f, -0.994574845f, 0.496087909f},
        {0.95842737f, -0.995750904f, 0.497830153f}}},
      {"sgd, clipped",
       {TP__OPTIMIZER_SGD, 0, 0, 0, 0.9f, false, 0, 0.75f, 0},
       1,
       {{0.998180985f, -0.992723942f, 0.5f},
        {0.99472487f, -0.993451536f, 0.5f},
        {0.991926551f, -1.00159991f, 0.5f},
        {0.988477826f, -1.00149131f, 0.5f},
        {0.978665769f, -1.00474775f, 0.5f}}},
      {"sgd, all of it",
       {TP__OPTIMIZER_SGD, 0, 0, 0, 0.9f, false, 0.5f, 2, 0.75f},
       2,
       {{0.990149319f, -0.975597143f, 0.497500002f},
        {0.978332937f, -0.963256598f, 0.495012492f},
        {0.968094766f, -0.971706629f, 0.492537409f},
        {0.955961764f, -0.958942235f, 0.490074724f},
        {0.934618711f, -0.952032268f, 0.487624377f}}},
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
    if (cases[c / 2].optimizer.ema_momentum > 0) compare_average(&t);
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
  o = default_train();
  o.weight_decay = -1;
  assert_fails(tp__optimizer_make(&o, &made, &err), TP_ERR_USAGE, "weight_decay: -1");
  o.weight_decay = 0.01;
  o.clip_norm = NAN;
  assert_fails(tp__optimizer_make(&o, &made, &err), TP_ERR_USAGE, "clip_norm");
  o.clip_norm = 1;
  o.ema_momentum = 1;
  assert_fails(tp__optimizer_make(&o, &made, &err), TP_ERR_USAGE, "ema_momentum: 1");
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
