/* Proves that the learning rate follows Keras' schedules step by step, and that options which make
 * no schedule are refused. Expected numbers: tests/ref/train_ref.py (Keras 3.15.1), within 1e-6
 * relative, as ../shared/golden/README.md allows. */
#include "train_testing.h"

#include <math.h>

#include "train/schedule.h"

enum { STEPS = 10 };
static const int64_t steps[STEPS] = {0, 1, 50, 99, 100, 101, 250, 251, 1050, 5000};

static void assert_rates(const tp__schedule *s, const float wanted[STEPS], const char *what)
{
  for (int i = 0; i < STEPS; i++) {
    double rate = (double)tp__schedule_rate(s, steps[i]), w = (double)wanted[i];
    /* the end of a cosine is a difference of nearly equal numbers: 1e-6 of the initial rate */
    double allowed = s->kind == TP__SCHEDULE_COSINE ? 1e-9 : 1e-6 * fabs(w);
    if (!(fabs(rate - w) <= allowed))
      fail_msg("%s: step %lld: %.9g, wanted %.9g", what, (long long)steps[i], rate, w);
  }
}

static void rates_as_keras(void **state)
{
  (void)state;
  static const struct {
    const char *what, *schedule;
    bool staircase;
    int decay_steps, warmup;
    double final_rate;
    float wanted[STEPS];
  } cases[] = {
      {"constant",
       "constant",
       false,
       100,
       0,
       0,
       {1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f, 1e-3f}},
      {"staircase",
       "exponential",
       true,
       100,
       0,
       0,
       {0.00100000005f, 0.00100000005f, 0.00100000005f, 0.00100000005f, 0.000960000034f,
        0.000960000034f, 0.000921600033f, 0.000921600033f, 0.000664832478f, 0.000129885651f}},
      {"smooth",
       "exponential",
       false,
       100,
       0,
       0,
       {0.00100000005f, 0.000999591895f, 0.000979795936f, 0.000960392004f, 0.000960000034f,
        0.000959608238f, 0.000902979868f, 0.000902611355f, 0.000651400187f, 0.000129885651f}},
      {"cosine",
       "cosine",
       false,
       1000,
       0,
       0.1,
       {0.00100000005f, 0.000999997836f, 0.000994459842f, 0.000978410128f, 0.000977975433f,
        0.000977536431f, 0.000868198113f, 0.000867196883f, 0.000100000005f, 0.000100000005f}},
      {"cosine with warm-up",
       "cosine",
       false,
       1000,
       100,
       0,
       {0, 1.00000007e-05f, 0.000500000024f, 0.000990000088f, 0.00100000005f, 0.000999997486f,
        0.0009455033f, 0.000944788044f, 6.15581894e-06f, 0}},
      {"piecewise",
       "piecewise",
       false,
       0,
       0,
       0,
       {0.00100000005f, 0.00100000005f, 0.00100000005f, 0.00100000005f, 0.000500000024f,
        0.000500000024f, 0.000500000024f, 9.99999975e-05f, 9.99999975e-05f, 9.99999975e-05f}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp_error err = {0};
    tp__schedule s;
    tp_train_options o = default_train();
    o.schedule = cases[c].schedule;
    o.staircase = cases[c].staircase;
    o.decay_steps = cases[c].decay_steps;
    o.warmup_steps = cases[c].warmup;
    o.final_rate = cases[c].final_rate;
    o.boundaries = "99,250";
    o.values = "1e-3, 5e-4,1e-4";
    assert_ok(tp__schedule_make(&o, false, 77, &s, &err));
    assert_rates(&s, cases[c].wanted, cases[c].what);
    char text[160];
    assert_true(strlen(tp__schedule_text(&s, text)) > 8);
  }
}

/* Without decay_steps a cosine takes what the phase has, less the warm-up. */
static void cosine_fills_the_phase(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__schedule s;
  tp_train_options o = default_train();
  o.schedule = "cosine";
  o.decay_steps = 0;
  o.warmup_steps = 20;
  assert_ok(tp__schedule_make(&o, false, 120, &s, &err));
  assert_int_equal(s.steps, 100);
  assert_true(tp__schedule_rate(&s, 20) == 1e-3f);
  assert_true(fabsf(tp__schedule_rate(&s, 70) - 5e-4f) < 1e-9f);
  assert_true(tp__schedule_rate(&s, 120) == 0);
}

/* Fine-tuning has a schedule and a rate of its own, and what shapes them in common with the first
 * phase. */
static void of_fine_tuning(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__schedule s;
  tp_train_options o = default_train();
  o.fine_tune_learning_rate = 0.5;
  assert_ok(tp__schedule_make(&o, true, 200, &s, &err));
  assert_true(tp__schedule_rate(&s, 0) == 0.5f && tp__schedule_rate(&s, 199) == 0.5f);
  o.fine_tune_schedule = "cosine";
  o.warmup_steps = 40;
  assert_ok(tp__schedule_make(&o, true, 200, &s, &err));
  assert_true(tp__schedule_rate(&s, 10) == 0.125f);
  assert_true(fabsf(tp__schedule_rate(&s, 120) - 0.25f) < 1e-7f);
  assert_true(tp__schedule_rate(&s, 200) == 0);
  o.fine_tune_schedule = "exponential";
  assert_ok(tp__schedule_make(&o, true, 200, &s, &err));
  assert_true(tp__schedule_rate(&s, 99) == 0.5f);
  assert_true(tp__schedule_rate(&s, 100) == 0.48f);
  o.fine_tune_schedule = "piecewise";
  assert_fails(tp__schedule_make(&o, true, 200, &s, &err), TP_ERR_USAGE,
               "fine_tune_schedule: \"piecewise\" is not known; wanted constant, exponential or");
}

static void refuses(void **state)
{
  (void)state;
  static const struct {
    const char *schedule, *boundaries, *values, *part;
    double decay_rate, final_rate;
    int decay_steps, warmup;
  } cases[] = {
      {"linear", NULL, NULL, "schedule: \"linear\" is not known", 0.96, 0, 100, 0},
      {"exponential", NULL, NULL, "decay_steps", 0.96, 0, -1, 0},
      {"exponential", NULL, NULL, "decay_rate", -0.5, 0, 100, 0},
      {"exponential", NULL, NULL, "decay_rate", NAN, 0, 100, 0},
      {"cosine", NULL, NULL, "warmup_steps 120", 0.96, 0, 0, 120},
      {"cosine", NULL, NULL, "final_rate", 0.96, 1.5, 100, 0},
      {"piecewise", NULL, "1,2", "boundaries: \"\"", 0.96, 0, 100, 0},
      {"piecewise", "10,x", "1,2,3", "boundaries", 0.96, 0, 100, 0},
      {"piecewise", "10,20", "1,2", "values: \"1,2\": wanted 3 rates", 0.96, 0, 100, 0},
      {"piecewise", "20,10", "1,2,3", "rising", 0.96, 0, 100, 0},
      {"piecewise", "10,10", "1,2,3", "rising", 0.96, 0, 100, 0},
      {"piecewise", "1.5,10", "1,2,3", "whole", 0.96, 0, 100, 0},
      {"piecewise", "-5,10", "1,2,3", "0 or more", 0.96, 0, 100, 0},
      {"piecewise", "1e300", "1,2", "boundaries", 0.96, 0, 100, 0},
      {"piecewise", "10", "1,-2", "values", 0.96, 0, 100, 0},
      {"piecewise", "10", "1,nan", "values", 0.96, 0, 100, 0},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp_error err = {0};
    tp__schedule s;
    tp_train_options o = default_train();
    o.schedule = cases[c].schedule;
    o.boundaries = cases[c].boundaries;
    o.values = cases[c].values;
    o.decay_rate = cases[c].decay_rate;
    o.final_rate = cases[c].final_rate;
    o.decay_steps = cases[c].decay_steps;
    o.warmup_steps = cases[c].warmup;
    assert_fails(tp__schedule_make(&o, false, 120, &s, &err), TP_ERR_USAGE, cases[c].part);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rates_as_keras),
      cmocka_unit_test(cosine_fills_the_phase),
      cmocka_unit_test(of_fine_tuning),
      cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
