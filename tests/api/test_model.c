/* Proves that a model made, saved, opened and loaded through tepal.h predicts the same, has Keras'
 * counts, and warns of pixels that were divided already. Expected: cases B15 and B19 of
 * ../shared/cases/README.md; counts of EfficientNet-B0: Keras (DESIGN 4). */
#include "fit_rig.h"

#include <math.h>

#include "tepal.h"

enum { SIDE = 32, N = 3, PICTURE = SIDE * SIDE * 3 };

static void log_public(void *user, tp_level level, const char *text)
{
  hear_line(user, level == TP_LEVEL_WARNING ? TP__WARNING : TP__INFO, text);
}

static tp_context *context(heard *h)
{
  tp_error err = {0};
  tp_context *c = NULL;
  h->text[0] = '\0';
  tp_context_options o = {.threads = 2, .log = log_public, .user = h};
  assert_ok(tp_context_new(&o, &c, &err));
  assert_non_null(strstr(tp_context_device(c), "cpu: 2 threads"));
  return c;
}

static void fill(float *pixels, float scale)
{
  for (int i = 0; i < N * PICTURE; i++)
    pixels[i] = scale * (float)tp__below(tp__key_of(3, 0, (uint64_t)i), TP__DRAW_PICTURE, 0, 256);
}

static void makes_and_describes(void **state)
{
  (void)state;
  tp_error err = {0};
  heard h;
  tp_context *c = context(&h);
  tp_model *m = NULL;
  assert_ok(tp_model_new(c, "efficientnet-b0", 192, 160, 104, "none", 1, &m, &err));
  char *text = NULL;
  assert_ok(tp_model_summary(m, &text, &err));
  assert_non_null(strstr(text, "4,182,795"));
  assert_non_null(strstr(text, "predictions"));
  tp_free(text);
  int height = 0, width = 0;
  tp_model_input(m, &height, &width);
  assert_true(height == 192 && width == 160 && tp_model_classes(m) == 104);
  assert_null(tp_model_label(m, 0));
  tp_model_free(m);
  assert_ok(tp_model_new(c, "efficientnet-b0", 192, 192, 0, "none", 1, &m, &err));
  assert_ok(tp_model_summary(m, &text, &err));
  assert_non_null(strstr(text, "4,049,571"));
  tp_free(text);
  float pixels[1], p[1];
  assert_fails(tp_model_predict(m, pixels, 1, p, &err), TP_ERR_USAGE, "no head");
  tp_model_free(m);
  m = NULL;
  assert_fails(tp_model_new(c, "efficientnet-b9", 192, 192, 2, "none", 1, &m, &err), TP_ERR_USAGE,
               "efficientnet-b9");
  assert_fails(tp_model_new(c, "efficientnet-b0", 4, 192, 2, "none", 1, &m, &err), TP_ERR_USAGE,
               "4");
  assert_fails(tp_model_new(c, "efficientnet-b0", 64, 64, 2, "/none.h5", 1, &m, &err), TP_ERR_DATA,
               "/none.h5");
  assert_null(m);
  tp_model_free(NULL);
  bool has_b0 = false;
  for (const char *const *name = tp_model_names(); *name != NULL; name++)
    has_b0 |= strcmp(*name, "efficientnet-b0") == 0;
  assert_true(has_b0);
  tp_context_free(c);
  tp_context_free(NULL);
}

/* The same probabilities from the model, from a model that loaded its file, for both formats. */
static void saves_and_loads(void **state)
{
  box *b = *state;
  tp_error err = {0};
  heard h;
  tp_context *c = context(&h);
  static const char *const models[] = {"efficientnet-b0", "efficientnet-lite0"};
  static const char *const files[] = {"w.h5", "w.safetensors"};
  float *pixels = calloc(N * PICTURE, sizeof *pixels);
  fill(pixels, 1);
  for (int i = 0; i < 4; i++) {
    tp_model *m = NULL, *other = NULL;
    float p[N * 5], q[N * 5];
    const char *path = box_path(b, files[i % 2]);
    assert_ok(tp_model_new(c, models[i / 2], SIDE, SIDE, 5, "none", 1, &m, &err));
    assert_ok(tp_model_predict(m, pixels, N, p, &err));
    for (int k = 0; k < N; k++) {
      float sum = 0;
      for (int s = 0; s < 5; s++) sum += p[k * 5 + s];
      assert_true(fabsf(sum - 1) < 1e-5f);
    }
    assert_ok(tp_model_save(m, path, &err));
    assert_ok(tp_model_new(c, models[i / 2], SIDE, SIDE, 5, "none", 2, &other, &err));
    assert_ok(tp_model_predict(other, pixels, N, q, &err));
    assert_memory_not_equal(p, q, sizeof p);
    assert_ok(tp_model_load(other, path, false, &err));
    assert_ok(tp_model_predict(other, pixels, N, q, &err));
    assert_memory_equal(p, q, sizeof p);
    tp_model_free(other);
    assert_ok(tp_model_new(c, models[i / 2], SIDE, SIDE, 5, path, 3, &other, &err));
    assert_ok(tp_model_predict(other, pixels, N, q, &err));
    assert_memory_equal(p, q, sizeof p);
    tp_model_free(other);
    /* another head: refused whole, or left out */
    assert_ok(tp_model_new(c, models[i / 2], SIDE, SIDE, 4, "none", 2, &other, &err));
    assert_ok(tp_model_predict(other, pixels, N, q, &err));
    assert_fails(tp_model_load(other, path, false, &err), TP_ERR_DATA, "predictions");
    float again[N * 4];
    assert_ok(tp_model_predict(other, pixels, N, again, &err));
    assert_memory_equal(again, q, sizeof again);
    assert_ok(tp_model_load(other, path, true, &err));
    assert_non_null(strstr(h.text, "skipped 2"));
    tp_model_free(other);
    assert_fails(tp_model_save(m, box_path(b, "w.onnx"), &err), TP_ERR_USAGE,
                 ".h5 or .safetensors");
    assert_fails(tp_model_save(m, "/proc/none/w.h5", &err), TP_ERR_OUTPUT, "/proc/none/w.h5");
    tp_model_free(m);
  }
  free(pixels);
  tp_context_free(c);
}

/* More pictures than a batch, one at a time, and from a file: the same numbers. */
static void any_number_of_pictures(void **state)
{
  (void)state;
  enum { MANY = 70 };
  tp_error err = {0};
  heard h;
  tp_context *c = context(&h);
  tp_model *m = NULL;
  assert_ok(tp_model_new(c, "efficientnet-lite0", SIDE, SIDE, CLASSES, "none", 1, &m, &err));
  float *pixels = calloc(MANY * PICTURE, sizeof *pixels), all[MANY * CLASSES], one[CLASSES];
  tp__buffer jpeg;
  tp__buffer_init(&jpeg, 1 << 20);
  tp__picture decoded = {0};
  for (int i = 0; i < MANY; i++) {
    jpeg.size = 0;
    draw_picture(i % CLASSES, i, SIDE, false, &jpeg);
    assert_ok(tp__image_decode(jpeg.data, jpeg.size, NULL, &decoded, &err));
    for (int k = 0; k < PICTURE; k++) pixels[i * PICTURE + k] = decoded.rgb.data[k];
  }
  assert_ok(tp_model_predict(m, pixels, MANY, all, &err));
  for (int i = 0; i < MANY; i += 23) {
    assert_ok(tp_model_predict(m, pixels + i * PICTURE, 1, one, &err));
    assert_memory_equal(one, all + i * CLASSES, sizeof one);
  }
  assert_ok(tp_model_predict_image(m, jpeg.data, jpeg.size, one, &err)); /* the last */
  assert_memory_equal(one, all + (MANY - 1) * CLASSES, sizeof one);
  assert_fails(tp_model_predict_image(m, "hello", 5, one, &err), TP_ERR_DATA, "");
  assert_ok(tp_model_predict(m, pixels, 0, one, &err));
  tp__buffer_free(&decoded.rgb);
  tp__buffer_free(&jpeg);
  free(pixels);
  tp_model_free(m);
  tp_context_free(c);
}

/* B15 */
static void warns_of_pixels_divided_already(void **state)
{
  (void)state;
  tp_error err = {0};
  heard h;
  tp_context *c = context(&h);
  tp_model *m = NULL;
  float *pixels = calloc(N * PICTURE, sizeof *pixels), p[N * 2];
  assert_ok(tp_model_new(c, "efficientnet-lite0", SIDE, SIDE, 2, "none", 1, &m, &err));
  fill(pixels, 1);
  assert_ok(tp_model_predict(m, pixels, N, p, &err));
  memset(pixels, 0, N * PICTURE * sizeof *pixels); /* black is no reason */
  assert_ok(tp_model_predict(m, pixels, N, p, &err));
  assert_string_equal(h.text, "");
  fill(pixels, 1.0f / 255);
  for (int i = 0; i < 2; i++) assert_ok(tp_model_predict(m, pixels, N, p, &err));
  const char *first = strstr(h.text, "w the pixels lie in 0...1; the network wants 0...255");
  assert_non_null(first);
  assert_null(strstr(first + 10, "the pixels lie in")); /* once */
  free(pixels);
  tp_model_free(m);
  tp_context_free(c);
}

/* A run's best network, its labels, and its export, which gives the same. */
static void opens_a_run(void **state)
{
  box *b = *state;
  tp_error err = {0};
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  o.data.labels = box_text(b, "labels.txt", "rose\niris\ntulip\n");
  o.epochs = 1;
  o.fine_tune_epochs = 0;
  attempt a = {0};
  assert_trains(&a, &o);
  heard h;
  tp_context *c = context(&h);
  tp_model *m = NULL, *other = NULL;
  float *pixels = calloc(N * PICTURE, sizeof *pixels), p[N * CLASSES], q[N * CLASSES];
  fill(pixels, 1);
  assert_ok(tp_model_open(c, o.run, &m, &err));
  assert_string_equal(tp_model_label(m, 1), "iris");
  assert_null(tp_model_label(m, 3));
  assert_null(tp_model_label(m, -1));
  assert_ok(tp_model_predict(m, pixels, N, p, &err));
  tp_model_free(m);
  char *h5 = tp__format("%s/best.h5", o.run);
  assert_ok(tp_model_new(c, "efficientnet-lite0", SIDE, SIDE, CLASSES, h5, 1, &other, &err));
  assert_ok(tp_model_predict(other, pixels, N, q, &err));
  assert_memory_equal(p, q, sizeof p);
  tp_model_free(other);
  assert_fails(tp_model_open(c, h5, &m, &err), TP_ERR_DATA, "is no checkpoint of tepal");
  assert_fails(tp_model_open(c, "/none", &m, &err), TP_ERR_DATA, "/none");
  free(h5);
  free(pixels);
  tp_context_free(c);
}

static void contexts(void **state)
{
  (void)state;
  tp_error err = {0};
  tp_context *c = NULL;
  assert_ok(tp_context_new(NULL, &c, &err));
  tp_context_free(c);
  c = NULL;
  tp_context_options o = {.device = "abacus"};
  assert_fails(tp_context_new(&o, &c, &err), TP_ERR_USAGE,
               "\"abacus\" is none; auto, tpu, gpu, cpu");
  assert_null(c);
  /* A device is looked for when it is needed. */
  o.device = "/no/such/plugin.so";
  assert_ok(tp_context_new(&o, &c, &err));
  assert_non_null(strstr(tp_context_device(c), "none: "));
  assert_non_null(strstr(tp_context_device(c), "/no/such/plugin.so"));
  tp_context_free(c);
  o = (tp_context_options){.device = "cpu", .replicas = 2};
  assert_ok(tp_context_new(&o, &c, &err));
  assert_non_null(strstr(tp_context_device(c), "the CPU is one replica"));
  tp_context_free(c);
  c = NULL;
  o = (tp_context_options){.threads = -3};
  assert_true(tp_context_new(&o, &c, &err) != TP_OK);
  assert_string_equal(tp_version(), TP_VERSION);
  assert_string_equal(tp_status_text(TP_STOPPED), "stopped, can be resumed");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(makes_and_describes),
      box_test(saves_and_loads),
      cmocka_unit_test(any_number_of_pictures),
      cmocka_unit_test(warns_of_pixels_divided_already),
      box_test(opens_a_run),
      cmocka_unit_test(contexts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
