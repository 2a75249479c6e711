/* Proves that the texts of data options are read or refused with the option's name, and that a data
 * set opens as they say. Expected: worked out by hand from tepal.h. */
#include "train_testing.h"

#include "train/data_set.h"

static void sizes(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    int height, width; /* 0: refused */
  } cases[] = {{"192", 192, 192},
               {"192x160", 192, 160},
               {"1X2", 1, 2},
               {"16384", 16384, 16384},
               {"", 0, 0},
               {"0", 0, 0},
               {"-5", 0, 0},
               {"192x", 0, 0},
               {"x192", 0, 0},
               {"192x160x3", 0, 0},
               {"16385", 0, 0},
               {"12.5", 0, 0},
               {"99999999999999999999", 0, 0},
               {"192 ", 0, 0}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp_error err = {0};
    int height = 7, width = 7;
    if (cases[c].height == 0) {
      assert_fails(tp__size_parse("image_size", cases[c].text, &height, &width, &err), TP_ERR_USAGE,
                   "image_size: ");
      assert_true(height == 7 && width == 7);
      continue;
    }
    assert_ok(tp__size_parse("image_size", cases[c].text, &height, &width, &err));
    assert_true(height == cases[c].height && width == cases[c].width);
  }
}

static void amounts(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    uint64_t bytes;
    bool refused;
  } cases[] = {
      {"4G", 4000000000, false},
      {"512M", 512000000, false},
      {"1000000", 1000000, false},
      {"1.5k", 1500, false},
      {"2TB", 2000000000000, false},
      {"0", 0, false},
      {"7gb", 7000000000, false},
      {"", 0, true},
      {"G", 0, true},
      {"4X", 0, true},
      {"-1", 0, true},
      {"nan", 0, true},
      {"1e30", 0, true},
      {"4G4", 0, true},
      {"4 G", 0, true},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp_error err = {0};
    uint64_t bytes = 7;
    if (cases[c].refused) {
      assert_fails(tp__bytes_parse("cache_limit", cases[c].text, &bytes, &err), TP_ERR_USAGE,
                   "cache_limit: ");
      continue;
    }
    assert_ok(tp__bytes_parse("cache_limit", cases[c].text, &bytes, &err));
    assert_true(bytes == cases[c].bytes);
  }
}

static void words(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__fill fill;
  bool accurate = false;
  assert_ok(tp__fill_parse("rotate_fill", "wrap", &fill, &err));
  assert_int_equal(fill, TP__FILL_WRAP);
  assert_ok(tp__fill_parse("rotate_fill", "reflect", &fill, &err));
  assert_int_equal(fill, TP__FILL_REFLECT);
  assert_fails(tp__fill_parse("rotate_fill", "black", &fill, &err), TP_ERR_USAGE,
               "rotate_fill: \"black\" is not known; wanted reflect, constant, nearest or wrap");
  assert_ok(tp__dct_parse("accurate", &accurate, &err));
  assert_true(accurate);
  assert_ok(tp__dct_parse("fast", &accurate, &err));
  assert_false(accurate);
  assert_fails(tp__dct_parse("slow", &accurate, &err), TP_ERR_USAGE,
               "dct: \"slow\" is not known; wanted fast or accurate");
}

static void opens(void **state)
{
  box *b = *state;
  tp_error err = {0};
  tp__job job = {.pool = b->pool};
  tp_data_options data = default_data();
  const char *path = box_shard(b, "a.tfrec", "x", 4, 0);
  tp_strings patterns = {&path, 1};
  tp__catalog *catalog = NULL;
  assert_ok(tp__data_open(&job, &data, &patterns, "training set", NULL, 0, true, &catalog, &err));
  assert_int_equal(tp__data_classes(catalog), 4);
  tp__catalog_free(catalog);
  /* a number of classes without names, with names, and too few */
  assert_ok(tp__data_open(&job, &data, &patterns, "x", NULL, 4, true, &catalog, &err));
  tp__catalog_free(catalog);
  static const char *const names[] = {"p", "q", "r", "s"};
  assert_ok(tp__data_open(&job, &data, &patterns, "x", names, 4, true, &catalog, &err));
  tp__catalog_free(catalog);
  assert_fails(
      tp__data_open(&job, &data, &patterns, "validation set", NULL, 3, true, &catalog, &err),
      TP_ERR_DATA, "validation set: ");
  assert_fails(
      tp__data_open(&job, &data, &patterns, "validation set", names, 3, true, &catalog, &err),
      TP_ERR_DATA, "record 3");
  /* nothing there */
  path = box_path(b, "none/*.tfrec");
  assert_fails(tp__data_open(&job, &data, &patterns, "training set", NULL, 0, true, &catalog, &err),
               TP_ERR_DATA, "training set: ");
  path = box_text(b, "empty.tfrec", "");
  assert_fails(tp__data_open(&job, &data, &patterns, "training set", NULL, 0, true, &catalog, &err),
               TP_ERR_DATA, "training set: ");
}

/* What may be bad is shared by records and pictures. */
static void pipeline_options(void **state)
{
  box *b = *state;
  tp_error err = {0};
  tp__job job = {.pool = b->pool};
  tp_data_options data = default_data();
  const char *path = box_shard(b, "a.tfrec", "x", 40, 0);
  tp_strings patterns = {&path, 1};
  tp__catalog *catalog = NULL;
  assert_ok(tp__data_open(&job, &data, &patterns, "x", NULL, 0, true, &catalog, &err));
  static const struct {
    const char *max_bad;
    int64_t pictures;
  } cases[] = {{"0", 0}, {"3", 3}, {"10%", 4}, {"0.1%", 0}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    tp__pipeline_options p = {0};
    data.max_bad = cases[c].max_bad;
    data.cache = "pixels";
    data.cache_limit = "1M";
    assert_ok(tp__data_pipeline(&data, catalog, &p, &err));
    assert_int_equal(p.max_bad_pictures, cases[c].pictures);
    assert_int_equal(p.cache, TP__CACHE_PIXELS);
    assert_int_equal(p.cache_limit, 1000000);
  }
  tp__pipeline_options p = {0};
  data.cache = "disk";
  assert_fails(tp__data_pipeline(&data, catalog, &p, &err), TP_ERR_USAGE, "cache: \"disk\"");
  data.cache = "none";
  data.cache_limit = "much";
  assert_fails(tp__data_pipeline(&data, catalog, &p, &err), TP_ERR_USAGE, "cache_limit: \"much\"");
  tp__catalog_free(catalog);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes), cmocka_unit_test(amounts),  cmocka_unit_test(words),
      box_test(opens),         box_test(pipeline_options),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
