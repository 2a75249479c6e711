/* Proves that early stopping, the rate on plateaus and the best checkpoint decide epoch by epoch as
 * Keras 3's callbacks do. Expected: cases B20, B22 and B24 of ../shared/cases/README.md (the tables
 * here), and the real callbacks' answers in ../shared/golden/callbacks.json: exact epochs and
 * files, rates within 1e-6 relative. */
#include "train_testing.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "npz.h"
#include "train/callbacks.h"

enum { MOST = 8 };

/* ---- early stopping ---- */

static void stops_and_restores(void **state)
{
  (void)state;
  static const struct {
    double value[MOST];
    int n, patience, start, stop_after, best; /* stop_after -1: ran to the end */
    double baseline, min_delta;
    tp__mode mode;
  } cases[] = {
      {{5, 3, 4, 4.5}, 4, 5, 0, -1, 1, NAN, 0, TP__MODE_MIN},
      {{5, 6, 6, 6}, 4, 2, 0, 1, 0, 1, 0, TP__MODE_MIN},
      {{3, 3, 3, 3}, 4, 2, 0, 2, 0, NAN, 0, TP__MODE_MIN},
      {{3, 2, 4, 5}, 4, 2, 10, 13, 11, NAN, 0, TP__MODE_MIN},
      {{0.1, 0.5, 0.4, 0.4, 0.9}, 5, 2, 0, 3, 1, NAN, 0, TP__MODE_MAX},
      {{5, 4.9, 4.8, 4.7}, 4, 2, 0, 2, 0, NAN, 0.5, TP__MODE_MIN},
      {{5, 4, 6, 7, 8, 9}, 6, 0, 0, -1, 1, NAN, 0, TP__MODE_MIN}, /* off */
      /* what is no number is never the best */
      {{NAN, 4, NAN, NAN}, 4, 2, 0, 3, 1, NAN, 0, TP__MODE_MIN},
      {{INFINITY, 4, -INFINITY, 5}, 4, 2, 0, 3, 1, NAN, 0, TP__MODE_MIN},
      {{NAN, NAN, NAN}, 3, 2, 0, 1, -1, NAN, 0, TP__MODE_MIN},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp__early_stopping s = {.mode = cases[c].mode,
                            .patience = cases[c].patience,
                            .min_delta = cases[c].min_delta,
                            .baseline = cases[c].baseline};
    tp__early_stopping_start(&s);
    int kept = -1, stopped = -1;
    for (int i = 0; i < cases[c].n && stopped < 0; i++) {
      int epoch = cases[c].start + i;
      tp__verdict v = tp__early_stopping_epoch(&s, epoch, cases[c].value[i]);
      if (v.is_best) kept = epoch;
      if (v.stop) stopped = epoch;
    }
    assert_int_equal(stopped, cases[c].stop_after);
    assert_int_equal(kept, cases[c].best);
    assert_int_equal(s.best_epoch, cases[c].best);
  }
}

/* ---- plateau ---- */

typedef double schedule_fn(int epoch);

static double one(int epoch)
{
  (void)epoch;
  return 1;
}
static double tenth(int epoch)
{
  (void)epoch;
  return 0.1;
}
static double falling(int epoch)
{
  return 1.0 / (1 << epoch);
}

/* A constant loss; wanted: the rate after each epoch. */
static void plateau_lowers_the_rate(void **state)
{
  (void)state;
  static const struct {
    schedule_fn *schedule;
    int patience, cooldown;
    double min_rate, wanted[6];
  } cases[] = {
      {one, 2, 0, 0, {1, 1, 0.5, 0.5, 0.25, 0.25}},
      {one, 2, 1, 0, {1, 1, 0.5, 0.5, 0.25, 0.25}}, /* a cooldown of 1 changes nothing here */
      {tenth, 2, 0, 0, {0.1, 0.1, 0.05, 0.05, 0.025, 0.025}},
      {falling, 2, 0, 0, {1, 0.5, 0.125, 0.0625, 0.015625, 0.0078125}},
      {one, 2, 0, 0.3, {1, 1, 0.5, 0.5, 0.3, 0.3}},
      {falling, 2, 0, 0.1, {1, 0.5, 0.125, 0.1, 0.1, 0.1}},
      {one, 0, 0, 0, {1, 1, 1, 1, 1, 1}}, /* off */
      {one, 1, 3, 0, {1, 0.5, 0.5, 0.5, 0.25, 0.25}},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp__plateau p = {.mode = TP__MODE_MIN,
                     .factor = 0.5,
                     .patience = cases[c].patience,
                     .min_delta = 1e-4,
                     .cooldown = cases[c].cooldown,
                     .min_rate = cases[c].min_rate};
    tp__plateau_start(&p);
    for (int e = 0; e < 6; e++) {
      double scheduled = cases[c].schedule(e), before = p.multiplier;
      bool lowered = tp__plateau_epoch(&p, 3, scheduled);
      assert_true(lowered == (p.multiplier < before));
      double rate = (double)tp__plateau_rate(&p, (float)scheduled);
      if (!(fabs(rate - cases[c].wanted[e]) <= 1e-6 * cases[c].wanted[e]))
        fail_msg("case %zu: rate %g after epoch %d, wanted %g", c, rate, e, cases[c].wanted[e]);
    }
  }
}

/* At the floor nothing is lowered any more, whatever the multiplier's rounding. */
static void the_floor_is_reached_once(void **state)
{
  (void)state;
  for (int k = 1; k < 200; k++) {
    double rate = 1e-3 * k / 7;
    tp__plateau p = {.factor = 0.5, .patience = 1, .min_rate = rate / 3};
    tp__plateau_start(&p);
    int lowered = 0;
    for (int e = 0; e < 20; e++) lowered += tp__plateau_epoch(&p, 1, rate);
    assert_int_equal(lowered, 2);
  }
}

/* ---- best checkpoint, quantities ---- */

static void best_is_strictly_better(void **state)
{
  (void)state;
  static const struct {
    tp__mode mode;
    double value[MOST];
    bool wanted[MOST];
  } cases[] = {
      {TP__MODE_MAX, {NAN, 0, 0, 0.5, 0.4, 0.5, INFINITY, 0.6}, {0, 1, 0, 1, 0, 0, 0, 1}},
      {TP__MODE_MIN, {INFINITY, 3, 3, 2, NAN, 2.5, -INFINITY, 1}, {0, 1, 0, 1, 0, 0, 0, 1}},
  };
  for (size_t c = 0; c < 2; c++) {
    tp__best b = {.mode = cases[c].mode, .epoch = -1};
    for (int e = 0; e < MOST; e++) {
      assert_int_equal(tp__best_epoch(&b, e, cases[c].value[e]), cases[c].wanted[e]);
      if (cases[c].wanted[e]) assert_int_equal(b.epoch, e);
    }
  }
}

static void quantities_by_name(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__quantity q;
  for (int i = 0; i < TP__QUANTITIES; i++) {
    assert_ok(tp__quantity_of("best_monitor", tp__quantity_name((tp__quantity)i), true, &q, &err));
    assert_int_equal(q, i);
  }
  assert_int_equal(tp__quantity_mode(TP__VAL_LOSS), TP__MODE_MIN);
  assert_int_equal(tp__quantity_mode(TP__VAL_MACRO_F1), TP__MODE_MAX);
  assert_fails(tp__quantity_of("best_monitor", "val_acc", true, &q, &err), TP_ERR_USAGE,
               "best_monitor: \"val_acc\" is not known; wanted loss, accuracy");
  assert_fails(tp__quantity_of("best_monitor", "val_loss", false, &q, &err), TP_ERR_USAGE,
               "needs validation data");
}

/* ---- golden/callbacks.json ---- */

static double number(const cJSON *object, const char *name, double otherwise)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
  return cJSON_IsNumber(item) ? item->valuedouble : otherwise;
}

static int whole(const cJSON *object, const char *name, int otherwise)
{
  return (int)number(object, name, otherwise);
}

/* What the three machines did in the epochs of a scenario. */
typedef struct played {
  int epochs, kept, last_saved;
  bool stopped;
} played;

static played play(const cJSON *scenario, const cJSON *stop, const cJSON *plateau,
                   const cJSON *checkpoint)
{
  const cJSON *values = cJSON_GetObjectItemCaseSensitive(scenario, "values");
  const cJSON *rates = cJSON_GetObjectItemCaseSensitive(scenario, "lr_after_epoch");
  const cJSON *files = cJSON_GetObjectItemCaseSensitive(scenario, "files_written_each_epoch");
  bool best_only = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(checkpoint, "save_best_only"));
  double threshold = number(checkpoint, "initial_value_threshold", NAN);
  double rate = number(scenario, "lr", NAN);
  const char *monitor = cJSON_GetObjectItemCaseSensitive(scenario, "monitor")->valuestring;
  tp__mode mode = strstr(monitor, "loss") != NULL ? TP__MODE_MIN : TP__MODE_MAX;
  tp__early_stopping s = {.mode = mode,
                          .patience = whole(stop, "patience", 0),
                          .min_delta = number(stop, "min_delta", 0),
                          .baseline = number(stop, "baseline", NAN)};
  /* Keras' patience of 0 acts as 1; here 0 is off. */
  int patience = whole(plateau, "patience", 10);
  tp__plateau p = {.mode = mode,
                   .factor = number(plateau, "factor", 0.1),
                   .patience = patience < 1 ? 1 : patience,
                   .min_delta = number(plateau, "min_delta", 1e-4),
                   .cooldown = whole(plateau, "cooldown", 0),
                   .min_rate = number(plateau, "min_lr", 0)};
  tp__best b = {.mode = mode, .has_best = !isnan(threshold), .best = threshold, .epoch = -1};
  played r = {.kept = -1, .last_saved = -1};
  tp__early_stopping_start(&s);
  tp__plateau_start(&p);
  for (int e = 0; e < cJSON_GetArraySize(values) && !r.stopped; e++, r.epochs++) {
    const cJSON *item = cJSON_GetArrayItem(values, e);
    double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    (void)tp__plateau_epoch(&p, value, rate);
    double after = (double)tp__plateau_rate(&p, (float)rate);
    double wanted = cJSON_GetArrayItem(rates, e)->valuedouble;
    if (!(fabs(after - wanted) <= 1e-6 * wanted))
      fail_msg("epoch %d: rate %.9g, wanted %.9g", e, after, wanted);
    if (e >= whole(stop, "start_from_epoch", 0)) {
      tp__verdict v = tp__early_stopping_epoch(&s, e, value);
      if (v.is_best) r.kept = e;
      r.stopped = v.stop;
    }
    bool saved = tp__best_epoch(&b, e, value) || !best_only;
    assert_int_equal(saved, cJSON_GetArraySize(cJSON_GetArrayItem(files, e)) == 1);
    if (saved) r.last_saved = e;
  }
  return r;
}

static void as_keras_callbacks(void **state)
{
  (void)state;
  if (getenv("TEPAL_GOLDEN") == NULL) need_shared();
  tp_error err = {0};
  tp__buffer text;
  tp__buffer_init(&text, 1 << 20);
  const char *path = golden_file("callbacks.json");
  assert_non_null(path);
  assert_ok(tp__file_read(path, &text, &err));
  assert_ok(tp__buffer_add(&text, "", 1, &err));
  cJSON *root = cJSON_Parse((const char *)text.data);
  assert_non_null(root);
  const cJSON *scenarios = cJSON_GetObjectItemCaseSensitive(root, "scenarios"), *scenario = NULL;
  int n = 0;
  cJSON_ArrayForEach(scenario, scenarios)
  {
    const cJSON *stop = cJSON_GetObjectItemCaseSensitive(scenario, "stop");
    const cJSON *plateau = cJSON_GetObjectItemCaseSensitive(scenario, "plateau");
    const cJSON *checkpoint = cJSON_GetObjectItemCaseSensitive(scenario, "ckpt");
    print_message("%s\n", cJSON_GetObjectItemCaseSensitive(scenario, "name")->valuestring);
    played r = play(scenario, stop, plateau, checkpoint);
    assert_int_equal(r.epochs, whole(scenario, "epochs_run", -1));
    assert_int_equal(r.stopped,
                     cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(scenario, "stopped")));
    assert_int_equal(r.kept, whole(scenario, "best_epoch_0based", -1));
    bool restores = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(stop, "restore_best_weights"));
    assert_int_equal(restores ? r.kept : r.epochs - 1,
                     whole(scenario, "final_weights_are_of_epoch_0based", -1));
    n++;
  }
  assert_true(n >= 7);
  cJSON_Delete(root);
  tp__buffer_free(&text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stops_and_restores),        cmocka_unit_test(plateau_lowers_the_rate),
      cmocka_unit_test(the_floor_is_reached_once), cmocka_unit_test(best_is_strictly_better),
      cmocka_unit_test(quantities_by_name),        cmocka_unit_test(as_keras_callbacks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
