/* Proves the lines and tables that people read: progress at several widths, what limits the speed,
 * scores of an evaluation. Expected: the text, by hand. */
#include "../testing.h"

#include <math.h>

#include "report/report.h"

/* ---- progress ---- */

static void progress_lines(void **state)
{
  (void)state;
  const tp_progress running = {.stage = "train",
                               .epoch = 3,
                               .epochs = 30,
                               .step = 20,
                               .steps = 80,
                               .images_per_s = 123.4,
                               .seconds = 10,
                               .seconds_left = 75,
                               .loss = 0.51236,
                               .accuracy = 0.875,
                               .val_loss = NAN,
                               .val_accuracy = NAN,
                               .learning_rate = 1e-3};
  tp_progress done = running, predicting = running, unknown = running, one_hour = running;
  done.step = 80;
  done.done = true;
  done.val_loss = 0.25;
  done.val_accuracy = 1;
  predicting.stage = "predict";
  predicting.epochs = predicting.epoch = 0;
  predicting.loss = predicting.accuracy = NAN;
  unknown.steps = unknown.step = 0;
  unknown.seconds_left = -1;
  unknown.images_per_s = 0;
  one_hour.seconds_left = 3 * 3600 + 61;
  const struct {
    const tp_progress *p;
    int width;
    const char *wanted;
  } cases[] = {
      {&running, 120,
       "Epoch 3/30 20/80 [=======>......................] - 1:15 left - 123 images/s - loss: "
       "0.5124 "
       "- accuracy: 0.8750"},
      {&running, 90,
       "Epoch 3/30 20/80 [==>.......] - 1:15 left - 123 images/s - loss: 0.5124 - accuracy: "
       "0.8750"},
      {&running, 80,
       "Epoch 3/30 20/80 - 1:15 left - 123 images/s - loss: 0.5124 - accuracy: 0.8750"},
      {&running, 70, "Epoch 3/30 20/80 - 1:15 left - loss: 0.5124 - accuracy: 0.8750"},
      {&running, 60, "Epoch 3/30 20/80 - 1:15 left - loss: 0.5124 - acc: 0.8750"},
      {&running, 50, "Epoch 3/30 20/80 - loss: 0.5124 - acc: 0.8750"},
      /* never half a number */
      {&running, 44, "Epoch 3/30 20/80 - loss: 0.5124"},
      {&running, 31, "Epoch 3/30 20/80 - loss: 0.5124"},
      {&running, 30, "Epoch 3/30 20/80"},
      {&running, 0, ""},
      {&done, 140,
       "Epoch 3/30 80/80 [========================] - 10s - 123 images/s - loss: 0.5124 - "
       "accuracy: "
       "0.8750 - val_loss: 0.2500 - val_accuracy: 1.0000"},
      {&done, 80, "Epoch 3/30 - loss: 0.5124 - acc: 0.8750 - val_loss: 0.2500 - val_acc: 1.0000"},
      {&predicting, 40, "predict 20/80 - 1:15 left - 123 images/s"},
      {&predicting, 80,
       "predict 20/80 [=======>......................] - 1:15 left - 123 images/s"},
      {&unknown, 80, "Epoch 3/30 0/0 - loss: 0.5124 - accuracy: 0.8750"},
      {&one_hour, 81,
       "Epoch 3/30 20/80 - 3:01:01 left - 123 images/s - loss: 0.5124 - accuracy: 0.8750"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char text[256];
    assert_string_equal(tp_progress_text(cases[c].p, cases[c].width, text, sizeof text),
                        cases[c].wanted);
  }
}

/* Numbers out of all bounds, and a small text: cut, never overrun. */
static void hostile_progress(void **state)
{
  (void)state;
  tp_progress p = {.stage = "a stage with a very, very, very, very, very, very long name",
                   .epoch = INT32_MAX,
                   .epochs = INT32_MAX,
                   .step = INT64_MAX,
                   .steps = INT64_MAX,
                   .images_per_s = 1e300,
                   .seconds_left = INFINITY,
                   .loss = -1e300,
                   .accuracy = INFINITY,
                   .val_loss = 1e300,
                   .val_accuracy = 1e300};
  for (size_t size = 1; size < 300; size += 7)
    for (int width = -5; width < 2000; width += 401) {
      char text[301];
      memset(text, 'x', sizeof text);
      (void)tp_progress_text(&p, width, text, size);
      assert_non_null(memchr(text, '\0', size));
      assert_int_equal(text[size], 'x');
    }
  p.steps = 10; /* more done than there are, or fewer than none */
  for (p.step = -20; p.step <= 20; p.step++) {
    char text[400];
    p.stage = "train";
    p.epochs = 0;
    p.loss = p.accuracy = p.val_loss = p.val_accuracy = NAN;
    p.images_per_s = 0;
    (void)tp_progress_text(&p, 200, text, sizeof text);
    assert_true(strlen(text) < 80);
  }
}

/* ---- what limits the speed ---- */

static void limits_of_speed(void **state)
{
  (void)state;
  static const struct {
    tp__cost cost;
    const char *wanted;
  } cases[] = {
      {{.wall = 10, .compute = 9.7, .waiting = 0.3, .decode = 4},
       "compute-bound, 97 % busy (input 3 %)"},
      {{.wall = 10, .compute = 2, .waiting = 8, .read = 1, .decode = 7.1, .finish = 1.9},
       "input-bound: JPEG decode 71 % of the input's time (network busy 20 %), try --cache pixels "
       "or "
       "--threads"},
      {{.wall = 10,
        .compute = 2,
        .waiting = 8,
        .read = 6,
        .decode = 2,
        .finish = 2,
        .cached = true},
       "input-bound: reading 60 % of the input's time (network busy 20 %), try --threads"},
      {{.wall = 10,
        .compute = 2,
        .waiting = 8,
        .read = 1,
        .decode = 3,
        .finish = 6,
        .movable = true},
       "input-bound: resize, flip and rotation 60 % of the input's time (network busy 20 %), try "
       "--augment-on device or --threads"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char text[160];
    assert_string_equal(tp__cost_text(&cases[c].cost, text), cases[c].wanted);
  }
  char text[160];
  (void)tp__cost_text(&(tp__cost){0}, text); /* nothing measured */
  (void)tp__cost_text(&(tp__cost){.wall = 1e-300, .compute = 1e300, .waiting = 1e300}, text);
}

/* ---- scores ---- */

static void evaluation_table(void **state)
{
  (void)state;
  tp_error err = {0};
  tp_class_score classes[] = {
      {"pink primrose", 4, 3, 3, 1, 0.75, 6.0 / 7},
      {"iris", 2, 0, 0, NAN, 0, 0},
      {"never", 0, 0, 0, NAN, NAN, NAN},
  };
  tp_evaluation e = {.examples = 6,
                     .loss = 0.5,
                     .accuracy = 0.5,
                     .top_5 = 1,
                     .macro_f1 = 3.0 / 7,
                     .classes = classes,
                     .n_classes = 3};
  char *text = NULL;
  assert_ok(tp_evaluation_text(&e, &text, &err));
  assert_string_equal(text, "class              support  precision     recall         F1\n"
                            "pink primrose            4     1.0000     0.7500     0.8571\n"
                            "iris                     2          -     0.0000     0.0000\n"
                            "\n"
                            "examples  6\n"
                            "loss      0.500000\n"
                            "accuracy  0.500000\n"
                            "top-5     1.000000\n"
                            "macro F1  0.428571 (mean over the 2 of 3 classes that occur)\n");
  free(text);
  e.loss = e.top_5 = NAN; /* of CSV files */
  assert_ok(tp_evaluation_text(&e, &text, &err));
  assert_null(strstr(text, "loss"));
  assert_null(strstr(text, "top-5"));
  free(text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(progress_lines),
      cmocka_unit_test(hostile_progress),
      cmocka_unit_test(limits_of_speed),
      cmocka_unit_test(evaluation_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
