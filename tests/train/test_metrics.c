/* Proves that loss, accuracy, top-5 and macro F1 are those of the examples, whatever the batches,
 * and that a CSV is scored against another. Expected: cases B11 and B41 of
 * ../shared/cases/README.md (worked out there), the kaggle predictions' published scores (DESIGN
 * 4), the rest by hand. */
#include "train_testing.h"

#include <math.h>

#include "train/answers.h"
#include "train/metrics.h"

#define assert_near(value, wanted)                                                                 \
  do {                                                                                             \
    double assert_near_ = (value);                                                                 \
    if (!(fabs(assert_near_ - (wanted)) <= 1e-9))                                                  \
      fail_msg("%s is %.12g, wanted %.12g", #value, assert_near_, (double)(wanted));               \
  } while (0)

/* Scores in which class prediction[i] is the largest. */
static void add_predictions(tp__metrics *m, int n, const int *prediction, const int32_t *label,
                            const float *loss)
{
  enum { MOST = 8 };
  float scores[MOST * MOST] = {0};
  for (int i = 0; i < n; i++) scores[i * m->classes + prediction[i]] = 1;
  tp__metrics_add(m, n, scores, label, loss, NULL);
}

static void the_last_batch_weighs_what_it_should(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__metrics m;
  assert_ok(tp__metrics_init(&m, 2, &err));
  assert_true(isnan(tp__metrics_loss(&m)) && isnan(tp__metrics_accuracy(&m)));
  assert_true(isnan(tp__metrics_macro_f1(&m)) && isnan(tp__metrics_top_5(&m)));
  add_predictions(&m, 2, (int[]){0, 0}, (int32_t[]){0, 1}, (float[]){10, 10});
  add_predictions(&m, 1, (int[]){1}, (int32_t[]){1}, (float[]){9});
  assert_near(tp__metrics_loss(&m), 29.0 / 3);
  assert_near(tp__metrics_accuracy(&m), 2.0 / 3);
  tp__metrics_reset(&m);
  assert_int_equal(m.examples, 0);
  assert_true(isnan(tp__metrics_macro_f1(&m)));
  tp__metrics_free(&m);
}

static void macro_f1_at_every_batch_size(void **state)
{
  (void)state;
  static const int prediction[] = {0, 0, 1, 2, 2};
  static const int32_t label[] = {0, 0, 1, 1, 2};
  tp_error err = {0};
  for (int batch = 1; batch <= 5; batch++) {
    tp__metrics m;
    assert_ok(tp__metrics_init(&m, 3, &err));
    for (int i = 0; i < 5; i += batch)
      add_predictions(&m, batch < 5 - i ? batch : 5 - i, prediction + i, label + i, NULL);
    assert_near(tp__metrics_macro_f1(&m), (1 + 2.0 / 3 + 2.0 / 3) / 3); /* 0.7778 */
    tp__metrics_free(&m);
  }
}

/* Classes that occur nowhere do not count: all right, of one class only, is 1.0. */
static void macro_f1_of_what_occurs(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__metrics m;
  assert_ok(tp__metrics_init(&m, 104, &err));
  for (int i = 0; i < 3; i++) tp__metrics_add_one(&m, 0, 0);
  assert_near(tp__metrics_macro_f1(&m), 1);
  tp__metrics_add_one(&m, 0, 7); /* a class that was only predicted counts, with 0 */
  assert_near(tp__metrics_macro_f1(&m), (2.0 * 3 / 7 + 0) / 2);
  tp__metrics_free(&m);
}

static void ties_and_nan(void **state)
{
  (void)state;
  static const struct {
    float score[3];
    int wanted;
  } cases[] = {
      {{0.1f, 0.9f, 0.8f}, 1}, {{0.5f, 0.5f, 0.1f}, 0},   {{0, 0.5f, 0.5f}, 1},
      {{0, 0, 0}, 0},          {{NAN, 0.2f, 0.1f}, 1},    {{0.1f, NAN, 0.2f}, 2},
      {{NAN, NAN, NAN}, 0},    {{-INFINITY, NAN, -1}, 2}, {{0.1f, INFINITY, 5}, 1},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    assert_int_equal(tp__argmax(cases[c].score, 3), cases[c].wanted);
}

static void accuracy_of_b41(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__metrics m;
  assert_ok(tp__metrics_init(&m, 3, &err));
  static const float two[] = {0.1f, 0.9f, 0.8f, 0.05f, 0.95f, 0};
  tp__metrics_add(&m, 2, two, (int32_t[]){2, 1}, NULL, NULL);
  assert_near(tp__metrics_accuracy(&m), 0.5);
  tp__metrics_reset(&m);
  static const float three[] = {0.7f, 0.2f, 0.1f, 0.1f, 0.1f, 0.8f, 0.2f, 0.6f, 0.2f};
  tp__metrics_add(&m, 3, three, (int32_t[]){0, 1, 1}, NULL, NULL);
  assert_near(tp__metrics_accuracy(&m), 2.0 / 3);
  tp__metrics_free(&m);
}

/* The label is among the five that would be named first; ties name the lower class first. */
static void top_5(void **state)
{
  (void)state;
  static const struct {
    float score[7];
    int32_t label;
    bool wanted;
  } cases[] = {
      {{7, 6, 5, 4, 3, 2, 1}, 4, true},  {{7, 6, 5, 4, 3, 2, 1}, 5, false},
      {{1, 1, 1, 1, 1, 1, 1}, 4, true},  {{1, 1, 1, 1, 1, 1, 1}, 5, false},
      {{1, 1, 1, 1, 1, 1, 2}, 4, false}, {{1, 1, 1, 1, NAN, 1, 2}, 4, false},
  };
  tp_error err = {0};
  tp__metrics m;
  assert_ok(tp__metrics_init(&m, 7, &err));
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp__metrics_reset(&m);
    tp__metrics_add(&m, 1, cases[c].score, &cases[c].label, NULL, NULL);
    assert_near(tp__metrics_top_5(&m), cases[c].wanted);
  }
  tp__metrics_free(&m);
}

/* B42: weights act on the loss, divided by the count; accuracy is unweighted. */
static void weights_act_on_the_loss(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__metrics m;
  assert_ok(tp__metrics_init(&m, 2, &err));
  tp__metrics_add(&m, 2, (float[]){1, 0, 1, 0}, (int32_t[]){0, 1}, (float[]){1, 3},
                  (float[]){2, 1});
  assert_near(tp__metrics_loss(&m), 2.5);
  assert_near(tp__metrics_accuracy(&m), 0.5);
  tp__metrics_free(&m);
}

static void evaluation_per_class(void **state)
{
  (void)state;
  static const char *const names[] = {"rose", "iris", "tulip", "never"};
  tp_error err = {0};
  tp__metrics m;
  tp_evaluation e;
  assert_ok(tp__metrics_init(&m, 4, &err));
  add_predictions(&m, 4, (int[]){0, 0, 2, 2}, (int32_t[]){0, 1, 2, 0}, (float[]){1, 2, 3, 4});
  assert_ok(tp__metrics_evaluation(&m, names, true, &e, &err));
  assert_int_equal(e.examples, 4);
  assert_int_equal(e.n_classes, 4);
  assert_near(e.loss, 2.5);
  assert_near(e.accuracy, 0.5);
  assert_near(e.top_5, 1);
  const tp_class_score *c = e.classes;
  assert_string_equal(c[1].name, "iris");
  assert_int_equal(c[0].support, 2);
  assert_int_equal(c[0].predicted, 2);
  assert_int_equal(c[0].right, 1);
  assert_near(c[0].precision, 0.5);
  assert_near(c[0].recall, 0.5);
  assert_near(c[0].f1, 0.5);
  assert_true(isnan(c[1].precision));
  assert_near(c[1].f1, 0);
  assert_near(c[2].f1, 2.0 / 3);
  assert_true(isnan(c[3].precision) && isnan(c[3].recall) && isnan(c[3].f1));
  assert_near(e.macro_f1, (0.5 + 0 + 2.0 / 3) / 3);
  tp_evaluation_free(&e);
  assert_null(e.classes);
  assert_ok(tp__metrics_evaluation(&m, NULL, false, &e, &err));
  assert_string_equal(e.classes[3].name, "3");
  assert_true(isnan(e.loss) && isnan(e.top_5));
  tp_evaluation_free(&e);
  tp_evaluation_free(NULL);
  tp__metrics_free(&m);
}

/* ---- one CSV against another ---- */

static tp_status score_files(const char *predictions, const char *truth, tp_evaluation *e,
                             tp_error *err)
{
  tp_evaluate_options o = {
      .predictions = predictions, .truth = truth, .id_column = "id", .label_column = "label"};
  return tp__evaluate_files(NULL, &o, e, err);
}

static void csv_files(void **state)
{
  box *b = *state;
  static const struct {
    const char *predictions, *truth;
    double accuracy, macro_f1;
  } cases[] = {
      {"id,label\na,0\nb,1\n", "id,label\nb,1\na,0\n", 1, 1},
      /* other order of columns, more columns, CRLF, quotes, a byte order mark, empty lines */
      {"\xef\xbb\xbflabel,x,id\r\n0,9,a\r\n1,9,\"b\"\r\n\r\n", "id,label\nb,0\na,0", 0.5,
       (2.0 / 3 + 0) / 2},
      {"id,label\na,rose\nb,iris\n", "id,label\na,rose\nb,rose\n", 0.5, (2.0 / 3 + 0) / 2},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp_error err = {0};
    tp_evaluation e;
    const char *p = box_text(b, "p.csv", cases[c].predictions);
    const char *t = box_text(b, "t.csv", cases[c].truth);
    assert_ok(score_files(p, t, &e, &err));
    assert_near(e.accuracy, cases[c].accuracy);
    assert_near(e.macro_f1, cases[c].macro_f1);
    assert_true(isnan(e.loss));
    tp_evaluation_free(&e);
  }
}

static void csv_files_refused(void **state)
{
  box *b = *state;
  static const struct {
    const char *predictions, *truth, *part;
  } cases[] = {
      {"", "id,label\na,0\n", "p.csv: is empty"},
      {"id,label\n", "id,label\na,0\n", "p.csv: holds no lines"},
      {"id,class\na,0\n", "id,label\na,0\n",
       "p.csv: has no column \"label\"; its columns are: id, class"},
      {"id,label\na,0\na,1\n", "id,label\na,0\n", "p.csv: the id \"a\" is in lines 2 and 3"},
      {"id,label\na,0\n", "id,label\na,0\nb,0\n", "the id \"b\" of"},
      {"id,label\na,0\nc,1\n", "id,label\na,0\n", "the id \"c\" of"},
      {"id,label\na,-1\n", "id,label\na,0\n", "p.csv: line 2: the label -1 is out of range"},
      {"id,label\na,99999999\n", "id,label\na,0\n", "line 2: the label 99999999 is out of range"},
      {"id,label\na\n", "id,label\na,0\n", "p.csv: line 2: has 1 fields, 2 are wanted"},
      {"id,label\n\"a,0\n", "id,label\na,0\n", "p.csv"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp_error err = {0};
    tp_evaluation e;
    const char *p = box_text(b, "p.csv", cases[c].predictions);
    const char *t = box_text(b, "t.csv", cases[c].truth);
    assert_fails(score_files(p, t, &e, &err), TP_ERR_DATA, cases[c].part);
  }
  tp_error err = {0};
  tp_evaluation e;
  assert_fails(score_files("/nonexistent.csv", "t", &e, &err), TP_ERR_DATA, "/nonexistent.csv");
  assert_fails(score_files("p", NULL, &e, &err), TP_ERR_USAGE, "one CSV each");
}

/* The validation predictions of two networks of the competition (kaikai581), and their scores. */
static void kaggle_predictions(void **state)
{
  (void)state;
  need_shared();
  static const struct {
    const char *column;
    double accuracy, macro_f1;
  } cases[] = {
      {"wide_resnet50_2_label", 0.905442, 0.886479},
      {"wrn16_8_stl_d8d4d1_label", 0.866649, 0.859870},
  };
  char path[1200];
  snprintf(path, sizeof path, "%s/kaggle/kaikai581_val_predictions.csv", shared_folder());
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp_error err = {0};
    tp_evaluation e;
    tp_evaluate_options o = {.predictions = path,
                             .truth = path,
                             .id_column = "filename",
                             .label_column = cases[c].column,
                             .truth_label_column = "true_pytorch_label"};
    assert_ok(tp__evaluate_files(NULL, &o, &e, &err));
    if (!(fabs(e.accuracy - cases[c].accuracy) <= 5.1e-7 &&
          fabs(e.macro_f1 - cases[c].macro_f1) <= 5.1e-7))
      fail_msg("%s: accuracy %.7f, macro F1 %.7f", cases[c].column, e.accuracy, e.macro_f1);
    assert_int_equal(e.n_classes, 104);
    tp_evaluation_free(&e);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_last_batch_weighs_what_it_should),
      cmocka_unit_test(macro_f1_at_every_batch_size),
      cmocka_unit_test(macro_f1_of_what_occurs),
      cmocka_unit_test(ties_and_nan),
      cmocka_unit_test(accuracy_of_b41),
      cmocka_unit_test(top_5),
      cmocka_unit_test(weights_act_on_the_loss),
      cmocka_unit_test(evaluation_per_class),
      box_test(csv_files),
      box_test(csv_files_refused),
      cmocka_unit_test(kaggle_predictions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
