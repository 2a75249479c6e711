/* Proves that every field of the option structs can be set by its name, that the defaults are those
 * of tepal.h, that wrong names and values are refused with what was meant, and that a recipe brings
 * back every value. Expected: tepal.h, by hand. */
#include "../train/train_testing.h"

#include <unistd.h>

#include "api/options.h"

/* All structs, to run over the kinds. */
typedef union any {
  tp_train_options train;
  tp_predict_options predict;
  tp_evaluate_options evaluate;
  tp_inspect_options inspect;
  tp_pack_options pack;
  tp_draw_options draw;
} any;

static const struct {
  tp_options_kind kind;
  size_t size;
} kinds[] = {
    {TP_OPTIONS_TRAIN, sizeof(tp_train_options)},
    {TP_OPTIONS_PREDICT, sizeof(tp_predict_options)},
    {TP_OPTIONS_EVALUATE, sizeof(tp_evaluate_options)},
    {TP_OPTIONS_INSPECT, sizeof(tp_inspect_options)},
    {TP_OPTIONS_PACK, sizeof(tp_pack_options)},
    {TP_OPTIONS_DRAW, sizeof(tp_draw_options)},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- the table ---- */

static size_t size_of_type(tp__option_type type)
{
  switch (type) {
  case TP__OPTION_STRING:
    return sizeof(char *);
  case TP__OPTION_STRINGS:
    return sizeof(tp_strings);
  case TP__OPTION_BOOL:
    return sizeof(bool);
  case TP__OPTION_INT:
    return sizeof(int);
  case TP__OPTION_INT64:
    return sizeof(int64_t);
  case TP__OPTION_UINT64:
    return sizeof(uint64_t);
  case TP__OPTION_DOUBLE:
    return sizeof(double);
  }
  return 0;
}

/* Bytes of a struct that no row of its table covers, but for padding and those that a command takes
 * in another way. */
static void every_field_is_an_option(void **state)
{
  (void)state;
  /* fields without an option: offset and size */
#define FIELD(type, member) offsetof(type, member), sizeof((type *)0)->member
#define PIXELS(kind, type)                                                                         \
  {kind, FIELD(type, data.dct)}, {kind, FIELD(type, data.exif_rotate)},                            \
      {kind, FIELD(type, data.fast_decode)},                                                       \
  {                                                                                                \
    kind, FIELD(type, data.antialias)                                                              \
  }
#define CACHE(kind, type)                                                                          \
  {kind, FIELD(type, data.cache)},                                                                 \
  {                                                                                                \
    kind, FIELD(type, data.cache_limit)                                                            \
  }
  static const struct {
    tp_options_kind kind;
    size_t offset, size;
  } without[] = {
      /* the network knows how its pixels are made; nothing is read twice */
      PIXELS(TP_OPTIONS_PREDICT, tp_predict_options),
      CACHE(TP_OPTIONS_PREDICT, tp_predict_options),
      PIXELS(TP_OPTIONS_EVALUATE, tp_evaluate_options),
      CACHE(TP_OPTIONS_EVALUATE, tp_evaluate_options),
      PIXELS(TP_OPTIONS_INSPECT, tp_inspect_options),
      CACHE(TP_OPTIONS_INSPECT, tp_inspect_options),
      CACHE(TP_OPTIONS_PACK, tp_pack_options),
      /* words of the command line without a flag */
      {TP_OPTIONS_PREDICT, FIELD(tp_predict_options, runs)},
      {TP_OPTIONS_EVALUATE, FIELD(tp_evaluate_options, runs)},
      {TP_OPTIONS_INSPECT, FIELD(tp_inspect_options, inputs)},
      {TP_OPTIONS_PACK, FIELD(tp_pack_options, inputs)},
  };
  for (size_t k = 0; k < KINDS; k++) {
    unsigned char covered[sizeof(any)] = {0};
    memset(covered, 1, sizeof(tp_options_memory *));
    size_t n = 0;
    const tp__option_row *row = tp__option_rows(kinds[k].kind, &n);
    for (size_t i = 0; i < n; i++) {
      size_t size = size_of_type(row[i].type);
      assert_true(row[i].offset + size <= kinds[k].size);
      for (size_t at = row[i].offset; at < row[i].offset + size; at++) {
        if (covered[at]) fail_msg("%s overlaps another option", row[i].option.name);
        covered[at] = 1;
      }
    }
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
      if (without[i].kind == kinds[k].kind) memset(covered + without[i].offset, 1, without[i].size);
    /* what is left is padding: fewer than 8 bytes in a row, which end at a multiple of 4 */
    size_t run = 0;
    for (size_t at = 0; at < kinds[k].size; at++) {
      run = covered[at] ? 0 : run + 1;
      if (run == 8) fail_msg("kind %zu: no option for the field at byte %zu", k, at - 7);
      if (run >= 4 && at + 1 < kinds[k].size && covered[at + 1] && (at + 1) % 8 != 0)
        fail_msg("kind %zu: no option for the field before byte %zu", k, at + 1);
    }
  }
}

static void names_are_good(void **state)
{
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    tp_option a, b;
    for (size_t i = 0; tp_options_at(kinds[k].kind, i, &a); i++) {
      assert_true(strspn(a.name, "abcdefghijklmnopqrstuvwxyz_0123456789") == strlen(a.name));
      assert_true(a.help != NULL && strlen(a.help) > 2 && a.group != NULL);
      assert_int_equal(a.value == NULL, tp_options_is_switch(kinds[k].kind, a.name));
      for (size_t j = 0; j < i && tp_options_at(kinds[k].kind, j, &b); j++)
        assert_string_not_equal(a.name, b.name);
    }
    assert_false(tp_options_at(kinds[k].kind, 1000, &a));
  }
}

/* ---- defaults ---- */

#define same_text(field) assert_string_equal(o.field, w.field)
#define same(field)      assert_true(o.field == w.field)

static void defaults_of_training(void **state)
{
  (void)state;
  tp_train_options o, w = default_train();
  tp_options_default(TP_OPTIONS_TRAIN, &o);
  same_text(data.image_feature);
  same_text(data.class_feature);
  same_text(data.id_feature);
  same_text(data.max_bad);
  same_text(data.dct);
  same_text(data.cache);
  same_text(data.cache_limit);
  same(data.label_base);
  same(data.exif_rotate);
  same(data.antialias);
  same(data.fast_decode);
  same(data.labels);
  same(train.count);
  same(val.count);
  same_text(model);
  same_text(weights);
  same(skip_mismatch);
  same(run);
  same(overwrite);
  same_text(image_size);
  same(batch);
  same(epochs);
  same(fine_tune_epochs);
  same(fine_tune_layers);
  same_text(batch_norm);
  same(drop_connect);
  same(fine_tune_learning_rate);
  same(random_crop);
  same(random_crop_ratio);
  same(brightness);
  same(contrast);
  same(saturation);
  same(mixup);
  same(cutmix);
  same_text(fine_tune_schedule);
  same(fine_tune_head_factor);
  same(steps_per_epoch);
  same(validation_steps);
  same_text(optimizer);
  same(learning_rate);
  same(beta_1);
  same(beta_2);
  same(epsilon);
  same(momentum);
  same(nesterov);
  same(weight_decay);
  same(clip_norm);
  same(ema_momentum);
  same_text(schedule);
  same(decay_rate);
  same(decay_steps);
  same(staircase);
  same(warmup_steps);
  same(final_rate);
  same(boundaries);
  same(values);
  same(label_smoothing);
  same_text(class_weights);
  same(dropout);
  same(flip);
  same(rotate);
  same_text(rotate_fill);
  same(rotate_fill_value);
  same(shuffle);
  same(interleave);
  same(early_stopping);
  same_text(early_stopping_monitor);
  same(early_stopping_min_delta);
  same(plateau_factor);
  same(plateau_patience);
  same(plateau_min_rate);
  same(plateau_cooldown);
  same_text(plateau_monitor);
  same_text(best_monitor);
  same(checkpoint_minutes);
  same(seed);
  same(dry_run);
  assert_null(o.memory); /* nothing to free */
}

static void defaults_of_the_others(void **state)
{
  (void)state;
  any o;
  for (size_t k = 1; k + 1 < KINDS; k++) {
    memset(&o, 0xa5, sizeof o);
    tp_options_default(kinds[k].kind, &o);
    const tp_data_options *d = &o.predict.data;
    assert_string_equal(d->image_feature, "image");
    assert_string_equal(d->dct, "fast");
    assert_string_equal(d->cache, "none");
    assert_string_equal(d->max_bad, "0");
    assert_null(o.predict.memory);
  }
  tp_options_default(TP_OPTIONS_PREDICT, &o);
  assert_string_equal(o.predict.combine, "mean");
  assert_string_equal(o.predict.id_column, "id");
  assert_true(o.predict.batch == 32 && o.predict.tta == NULL && o.predict.expect == 0);
  tp_options_default(TP_OPTIONS_INSPECT, &o);
  assert_true(o.inspect.decode);
  tp_options_default(TP_OPTIONS_PACK, &o);
  assert_string_equal(o.pack.split, "80,10,10");
  assert_true(o.pack.quality == 95 && o.pack.per_shard == 512 && o.pack.image_size == NULL);
  tp_options_default(TP_OPTIONS_DRAW, &o);
  assert_true(o.draw.species == 16 && o.draw.train == 40 && o.draw.val == 10 && o.draw.size == 192);
}

/* ---- setting ---- */

static void sets_every_type(void **state)
{
  (void)state;
  tp_error err = {0};
  tp_train_options o;
  tp_options_default(TP_OPTIONS_TRAIN, &o);
#define set(name, value) assert_ok(tp_options_set(TP_OPTIONS_TRAIN, &o, name, value, &err))
  set("learning-rate", "2.5e-4");
  set("fine_tune_layers", "7");
  set("seed", "18446744073709551615");
  set("label_base", "-9223372036854775808");
  set("flip", "no");
  set("staircase", "false");
  set("nesterov", NULL);
  set("overwrite", "on");
  set("model", "efficientnet-lite0");
  set("train", "a/*.tfrec");
  set("train", "b b/*.tfrec");
  set("cache", "pixels");
#undef set
  assert_true(o.learning_rate == 2.5e-4 && o.fine_tune_layers == 7 && o.seed == UINT64_MAX);
  assert_true(o.data.label_base == INT64_MIN && !o.flip && !o.staircase && o.nesterov);
  assert_true(o.overwrite);
  assert_string_equal(o.model, "efficientnet-lite0");
  assert_ok(tp_options_set(TP_OPTIONS_TRAIN, &o, "fine_tune_layers", "all", &err));
  assert_int_equal(o.fine_tune_layers, -1);
  assert_fails(tp_options_set(TP_OPTIONS_TRAIN, &o, "epochs", "all", &err), TP_ERR_USAGE, "epochs");
  assert_int_equal(o.train.count, 2);
  assert_string_equal(o.train.item[0], "a/*.tfrec");
  assert_string_equal(o.train.item[1], "b b/*.tfrec");
  assert_string_equal(o.data.cache, "pixels");
  tp_options_free(TP_OPTIONS_TRAIN, &o);
  assert_null(o.memory);
  tp_options_free(TP_OPTIONS_TRAIN, &o);
}

/* A list that the caller filled is replaced; a long one grows. */
static void lists(void **state)
{
  (void)state;
  tp_error err = {0};
  tp_predict_options o;
  tp_options_default(TP_OPTIONS_PREDICT, &o);
  const char *own[] = {"x", "y", "z"};
  o.inputs = (tp_strings){own, 3};
  for (int i = 0; i < 100; i++) {
    char text[16];
    snprintf(text, sizeof text, "shard%d", i);
    assert_ok(tp_options_set(TP_OPTIONS_PREDICT, &o, "data", text, &err));
  }
  assert_int_equal(o.inputs.count, 100);
  assert_string_equal(o.inputs.item[0], "shard0");
  assert_string_equal(o.inputs.item[99], "shard99");
  tp_options_free(TP_OPTIONS_PREDICT, &o);
}

static void refuses(void **state)
{
  (void)state;
  static const char *const cases[][3] = {
      {"learnig_rate", "1", "there is no option \"learnig_rate\"; learning_rate was meant?"},
      {"epoch", "1", "epochs was meant?"},
      {"zzzzzzzzzzzz", "1", "there is no option \"zzzzzzzzzzzz\""},
      {"", "1", "there is no option \"\""},
      {"epochs", "ten", "epochs: \"ten\" is not a whole number"},
      {"epochs", "1.5", "epochs: \"1.5\""},
      {"epochs", "99999999999", "epochs: \"99999999999\" is not a number that fits"},
      {"epochs", "", "epochs: \"\""},
      {"epochs", NULL, "epochs: a value is wanted (N)"},
      {"seed", "-1", "seed: \"-1\""},
      {"learning_rate", "fast", "learning_rate: \"fast\" is not a number"},
      {"learning_rate", "nan", "learning_rate: \"nan\""},
      {"learning_rate", "1e999", "learning_rate: \"1e999\""},
      {"flip", "maybe", "flip: \"maybe\" is not true or false"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp_error err = {0};
    tp_train_options o, before;
    tp_options_default(TP_OPTIONS_TRAIN, &o);
    before = o;
    assert_fails(tp_options_set(TP_OPTIONS_TRAIN, &o, cases[c][0], cases[c][1], &err), TP_ERR_USAGE,
                 cases[c][2]);
    assert_memory_equal(&o, &before, sizeof o);
  }
}

/* ---- recipes ---- */

static void recipe_round_trip(void **state)
{
  box *b = *state;
  tp_error err = {0};
  char longest[3000];
  memset(longest, 'p', sizeof longest);
  longest[0] = '/';
  longest[sizeof longest - 1] = '\0';
  const char *const texts[] = {"/a b/c d.tfrec",
                               "/x ; y # z = 3/*.tfrec",
                               "/quote\"d\\path",
                               " /leading",
                               "/trailing ",
                               "\"/in quotes\"",
                               "/line\nend\ttab",
                               longest,
                               "/\xc3\xbcml\xc3\xa4ut",
                               "gs://bucket/x",
                               "[section]",
                               "=",
                               ""};
  enum { TEXTS = sizeof texts / sizeof *texts };
  tp_train_options o, r;
  tp_options_default(TP_OPTIONS_TRAIN, &o);
  o.train = (tp_strings){texts, TEXTS - 4}; /* absolute ones: others get the folder in front */
  o.data.class_feature = " image/class = label ; ";
  o.class_weights = "0:2,1:0.5";
  o.learning_rate = 1.0 / 3;
  o.epsilon = 5e-324;
  o.rotate = -0.0;
  o.seed = UINT64_MAX;
  o.data.label_base = INT64_MIN;
  o.flip = false;
  o.batch = -1;
  const char *path = box_path(b, "recipe.ini");
  assert_ok(tp__options_write(TP_OPTIONS_TRAIN, &o, path, &err));
  tp_options_default(TP_OPTIONS_TRAIN, &r);
  assert_ok(tp_options_read(TP_OPTIONS_TRAIN, &r, path, &err));
  assert_int_equal(r.train.count, o.train.count);
  size_t here = 0;
  for (size_t i = 0; i < r.train.count; i++) {
    const char *got = r.train.item[i];
    if (texts[i][0] != '/') { /* relative: behind the working folder */
      size_t n = strlen(got), m = strlen(texts[i]);
      assert_true(got[0] == '/' && n > m && strcmp(got + n - m, texts[i]) == 0);
      here++;
      continue;
    }
    assert_string_equal(got, texts[i]);
  }
  assert_int_equal(here, 2);
  assert_string_equal(r.data.class_feature, o.data.class_feature);
  assert_string_equal(r.class_weights, o.class_weights);
  assert_true(r.learning_rate == o.learning_rate && r.epsilon == o.epsilon && r.rotate == o.rotate);
  assert_true(r.seed == o.seed && r.data.label_base == o.data.label_base && !r.flip);
  assert_int_equal(r.batch, -1);
  assert_null(r.data.labels);

  /* written again, the same text */
  tp__buffer one, two;
  tp__buffer_init(&one, 1 << 20);
  tp__buffer_init(&two, 1 << 20);
  assert_ok(tp__file_read(path, &one, &err));
  assert_ok(tp__options_write(TP_OPTIONS_TRAIN, &r, path, &err));
  assert_ok(tp__file_read(path, &two, &err));
  assert_int_equal(one.size, two.size);
  assert_memory_equal(one.data, two.data, one.size);
  tp__buffer_free(&one);
  tp__buffer_free(&two);
  tp_options_free(TP_OPTIONS_TRAIN, &r);
}

/* Every kind's defaults survive. */
static void every_kind_round_trip(void **state)
{
  box *b = *state;
  for (size_t k = 0; k < KINDS; k++) {
    tp_error err = {0};
    any o, r;
    const char *path = box_path(b, "recipe.ini");
    tp_options_default(kinds[k].kind, &o);
    assert_ok(tp__options_write(kinds[k].kind, &o, path, &err));
    tp_options_default(kinds[k].kind, &r);
    assert_ok(tp_options_read(kinds[k].kind, &r, path, &err));
    size_t n = 0;
    const tp__option_row *row = tp__option_rows(kinds[k].kind, &n);
    for (size_t i = 0; i < n; i++) {
      const void *x = (char *)&o + row[i].offset, *y = (char *)&r + row[i].offset;
      if (row[i].path || row[i].type == TP__OPTION_STRINGS) continue;
      if (row[i].type != TP__OPTION_STRING) {
        assert_memory_equal(x, y, size_of_type(row[i].type));
        continue;
      }
      const char *s = *(const char *const *)x, *t = *(const char *const *)y;
      assert_true(s == NULL ? t == NULL : strcmp(s, t) == 0);
    }
    tp_options_free(kinds[k].kind, &r);
  }
}

static void recipe_text(void **state)
{
  box *b = *state;
  tp_error err = {0};
  tp_train_options o;
  tp_options_default(TP_OPTIONS_TRAIN, &o);
  assert_ok(
      tp_options_read(TP_OPTIONS_TRAIN, &o,
                      box_text(b, "r.ini",
                               "\xef\xbb\xbf# comment\r\n; another\r\n\r\n[training]\r\n"
                               "  epochs=3\r\nlearning-rate = 0.5  \r\n"
                               "train = a ; b = c\r\ntrain = \"two\\n\\\"\\\\\"\r\nflip = off"),
                      &err));
  assert_true(o.epochs == 3 && o.learning_rate == 0.5 && !o.flip);
  assert_int_equal(o.train.count, 2);
  assert_string_equal(o.train.item[0], "a ; b = c");
  assert_string_equal(o.train.item[1], "two\n\"\\");
  /* a flag after the recipe replaces its list, the next one adds */
  assert_ok(tp_options_set(TP_OPTIONS_TRAIN, &o, "train", "other", &err));
  assert_ok(tp_options_set(TP_OPTIONS_TRAIN, &o, "train", "more", &err));
  assert_int_equal(o.train.count, 2);
  assert_string_equal(o.train.item[0], "other");
  tp_options_free(TP_OPTIONS_TRAIN, &o);

  static const char *const wrong[][2] = {
      {"epochs 3", "line 1: \"epochs 3\": name = value is wanted"},
      {"\n\nepoch = 3", "line 3: there is no option \"epoch\"; epochs was meant?"},
      {"epochs = many", "line 1: epochs: \"many\""},
      {"model = \"open", "line 1: a quoted value is wanted"},
      {"model = \"a\" b", "line 1: a quoted value is wanted"},
      {"model = \"a\\x\"", "line 1: a quoted value is wanted"},
      {"model = \"\\", "line 1: a quoted value is wanted"},
  };
  for (size_t c = 0; c < sizeof wrong / sizeof *wrong; c++) {
    tp_options_default(TP_OPTIONS_TRAIN, &o);
    assert_fails(tp_options_read(TP_OPTIONS_TRAIN, &o, box_text(b, "w.ini", wrong[c][0]), &err),
                 TP_ERR_USAGE, wrong[c][1]);
    assert_non_null(strstr(err.text, "w.ini"));
    tp_options_free(TP_OPTIONS_TRAIN, &o);
  }
  tp_options_default(TP_OPTIONS_TRAIN, &o);
  assert_fails(
      tp_options_read(TP_OPTIONS_TRAIN, &o, box_file(b, "z.ini", "epochs = 3\0\n", 12), &err),
      TP_ERR_USAGE, "zero bytes");
  assert_fails(tp_options_read(TP_OPTIONS_TRAIN, &o, "/none.ini", &err), TP_ERR_DATA, "/none.ini");
  tp_options_free(TP_OPTIONS_TRAIN, &o);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_field_is_an_option),
      cmocka_unit_test(names_are_good),
      cmocka_unit_test(defaults_of_training),
      cmocka_unit_test(defaults_of_the_others),
      cmocka_unit_test(sets_every_type),
      cmocka_unit_test(lists),
      cmocka_unit_test(refuses),
      box_test(recipe_round_trip),
      box_test(every_kind_round_trip),
      box_test(recipe_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
