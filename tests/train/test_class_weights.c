/* Proves that class weights are read, that missing ones are warned of, and that wrong ones are
 * refused. Expected: case B42 of ../shared/cases/README.md (that they act on the training loss
 * only: test_metrics, test_golden_runs); "balanced" as scikit-learn defines it, by hand. */
#include "train_testing.h"

#include <math.h>

#include "train/class_weights.h"

enum { MOST = 4 };

static void tables(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    int classes;
    bool used;
    float wanted[MOST];
    const char *warning; /* NULL: none */
  } cases[] = {
      {"none", 2, false, {1, 1}, NULL},
      {"0:2", 2, true, {2, 1}, "w class_weights: 1 of 2 classes have no weight and weigh 1: 1\n"},
      {"0:2,1:1", 2, true, {2, 1}, NULL},
      {"1:0.5,0:0", 2, true, {0, 0.5f}, NULL},
      {"3:4", 4, true, {1, 1, 1, 4}, "3 of 4 classes have no weight and weigh 1: 0, 1, 2\n"},
      {"0:2,0:3", 1, true, {3}, NULL},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp_error err = {0};
    heard h;
    float weights[MOST];
    bool used = !cases[c].used;
    assert_ok(tp__class_weights_make(cases[c].text, NULL, cases[c].classes, hear(&h), weights,
                                     &used, &err));
    assert_int_equal(used, cases[c].used);
    for (int k = 0; k < cases[c].classes; k++) assert_true(weights[k] == cases[c].wanted[k]);
    if (cases[c].warning == NULL)
      assert_string_equal(h.text, "");
    else if (strstr(h.text, cases[c].warning) == NULL)
      fail_msg("%s: heard \"%s\"", cases[c].text, h.text);
  }
}

static void refuses(void **state)
{
  (void)state;
  static const char *const cases[][2] = {
      {"200:1", "class 200: the classes are 0...103"},
      {"-1:1", "class -1"},
      {"0:-2", "class 0: the weight must be a number of 0 or more"},
      {"0:nan", "class 0"},
      {"0:inf", "class 0"},
      {"0:", "class 0"},
      {"0", "wanted none, balanced, or CLASS:WEIGHT"},
      {"even", "\"even\" is not known"},
      {"", "\"\" is not known"},
      {"0:2;1:3", "a comma is wanted before \";1:3\""},
      {"99999999999999999999:1", "class"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp_error err = {0};
    float weights[104];
    bool used = false;
    assert_fails(tp__class_weights_make(cases[c][0], NULL, 104, NULL, weights, &used, &err),
                 TP_ERR_USAGE, cases[c][1]);
  }
}

/* A long list of missing classes is cut, not overrun. */
static void many_classes(void **state)
{
  (void)state;
  enum { MANY = 5000 };
  tp_error err = {0};
  heard h;
  bool used = false;
  float *weights = calloc(MANY, sizeof *weights);
  assert_ok(tp__class_weights_make("7:2", NULL, MANY, hear(&h), weights, &used, &err));
  assert_non_null(strstr(h.text, "4999 of 5000 classes"));
  assert_non_null(strstr(h.text, " ..."));
  assert_true(weights[7] == 2 && weights[4999] == 1);
  free(weights);
}

/* 6 examples: classes 0 (4 times), 2 (twice); 1 and 3 have none. */
static void balanced(void **state)
{
  box *b = *state;
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  for (int i = 0; i < 6; i++) frame_example(&bytes, "x", i < 4 ? 0 : 2, NULL);
  const char *path = box_file(b, "a.tfrec", bytes.data, bytes.size);
  tp__buffer_free(&bytes);
  tp__catalog *catalog = NULL;
  assert_int_equal(open_one(b, path, (tp__catalog_options){.need_labels = true}, &catalog), TP_OK);
  tp_error err = {0};
  float weights[MOST];
  bool used = false;
  assert_ok(tp__class_weights_make("balanced", catalog, 4, NULL, weights, &used, &err));
  assert_true(used);
  const double wanted[] = {6.0 / (2 * 4), 1, 6.0 / (2 * 2), 1};
  for (int c = 0; c < 4; c++) assert_true(weights[c] == (float)wanted[c]);
  tp__catalog_free(catalog);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tables),
      cmocka_unit_test(refuses),
      cmocka_unit_test(many_classes),
      box_test(balanced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
