/* Proves that drawn flowers are a function of (species, seed, number), that a drawn data set is
 * whole, has the layout of Kaggle's, is the same for any number of threads, and that a folder with
 * other things in it is never touched. Expected counts are worked out by hand. Hostile: foreign
 * files under --overwrite, a file where a folder is wanted, being stopped. */
#include "prepare_testing.h"

#include "image/image.h"

enum { SIZE = 48, BYTES = SIZE * SIZE * 3, SPECIES = 32 };

static void every_species_is_drawn(void **state)
{
  (void)state;
  tp_error err;
  uint8_t a[BYTES], b[BYTES];
  for (int i = 0; i < SPECIES; i++) {
    assert_non_null(tp__draw_name(i));
    for (int j = 0; j < i; j++) assert_string_not_equal(tp__draw_name(i), tp__draw_name(j));
    assert_ok(tp__draw_flower(i, 7, 0, SIZE, a, &err));
    assert_ok(tp__draw_flower(i, 7, 0, SIZE, b, &err));
    assert_memory_equal(a, b, BYTES);
    assert_ok(tp__draw_flower(i, 7, 1, SIZE, b, &err));
    assert_memory_not_equal(a, b, BYTES);
    assert_ok(tp__draw_flower(i, 8, 0, SIZE, b, &err));
    assert_memory_not_equal(a, b, BYTES);
    long sum = 0, squares = 0; /* not one flat colour, not all black or white */
    for (int k = 0; k < BYTES; k++) {
      sum += a[k];
      squares += (long)a[k] * a[k];
    }
    double mean = (double)sum / BYTES, variance = (double)squares / BYTES - mean * mean;
    assert_true(mean > 15 && mean < 240 && variance > 50);
  }
  assert_null(tp__draw_name(-1));
  assert_null(tp__draw_name(SPECIES));
}

/* Sizes that no table of the code was made for. */
static void odd_sizes(void **state)
{
  (void)state;
  tp_error err;
  static uint8_t rgb[333 * 333 * 3];
  const int sizes[] = {16, 17, 63, 333};
  for (int i = 0; i < 4; i++)
    for (int s = 0; s < SPECIES; s += 3) assert_ok(tp__draw_flower(s, 1, 5, sizes[i], rgb, &err));
  assert_fails(tp__draw_flower(0, 1, 1, 15, rgb, &err), TP_ERR_USAGE, "16 to");
  assert_fails(tp__draw_flower(SPECIES, 1, 1, 16, rgb, &err), TP_ERR_USAGE, "species");
  assert_fails(tp__draw_flower(-1, 1, 1, 16, rgb, &err), TP_ERR_USAGE, "species");
}

static tp_draw_options options_for(const char *out)
{
  return (tp_draw_options){
      .out = out, .species = 5, .train = 20, .val = 3, .test = 2, .size = 32, .seed = 4};
}

static tp_status draw(box *b, const tp_draw_options *o, int threads, tp_error *err)
{

  tp__pool *pool;
  assert_int_equal(tp__pool_new(threads, &pool, &b->err), TP_OK);
  tp__job job = {.pool = pool};
  tp_status status = tp__draw(&job, o, err);
  tp__pool_free(pool);
  return status;
}

static void same_for_any_threads(void **state)
{
  box *b = *state;
  tp_error err;
  const char *first = NULL;
  for (int threads = 1; threads <= 4; threads++) {
    char name[16];
    snprintf(name, sizeof name, "t%d", threads);
    const char *out = box_path(b, name);
    tp_draw_options o = options_for(out);
    assert_ok(draw(b, &o, threads, &err));
    const char *text = folder_text(b, out);
    if (first == NULL) first = text;
    assert_string_equal(text, first);
  }
  /* 100 training pictures in shards of at most 64, 15 for validation, 10 for the test, three lists
   */
  assert_int_equal(lines_of(first), 4 + 3);
  assert_non_null(strstr(first, "train/00-32x32-50.tfrec "));
  assert_non_null(strstr(first, "train/01-32x32-50.tfrec "));
  assert_non_null(strstr(first, "val/00-32x32-15.tfrec "));
  assert_non_null(strstr(first, "test/00-32x32-10.tfrec "));
}

static void count_split(box *b, const char *out, const char *split, size_t each, bool labelled)
{
  tp_error err;
  tp__catalog *c;
  char *pattern = tp__format("%s/%s/*.tfrec", out, split);
  tp__catalog_options o = {
      .patterns = (const char *const *)&pattern, .n_patterns = 1, .need_labels = labelled};
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  assert_int_equal(tp__catalog_count(c), 5 * each);
  size_t count[5] = {0};
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  bool sorted = true;
  for (size_t i = 0; i < 5 * each; i++) {
    const tp__record *r = tp__catalog_record(c, i);
    if (labelled)
      count[r->label]++;
    else
      assert_int_equal(r->label, -1);
    if (i > 0 && r->label < tp__catalog_record(c, i - 1)->label) sorted = false;
    assert_int_equal(strlen(r->id), 9);
    for (size_t j = 0; j < i; j++) assert_string_not_equal(r->id, tp__catalog_record(c, j)->id);
    assert_ok(tp__catalog_read(c, i, &bytes, &err));
    int h, w, orientation;
    assert_ok(tp__image_header(bytes.data, bytes.size, &h, &w, &orientation, &err));
    assert_int_equal(h, 32);
    assert_int_equal(w, 32);
  }
  for (int i = 0; labelled && i < 5; i++) assert_int_equal(count[i], each);
  if (labelled) assert_false(sorted); /* a small shuffle buffer must not meet one class at a time */
  tp__buffer_free(&bytes);
  tp__catalog_free(c);
  free(pattern);
}

static void the_layout_is_kaggles(void **state)
{
  box *b = *state;
  tp_error err;
  const char *out = box_path(b, "set/");
  tp_draw_options o = options_for(out);
  assert_ok(draw(b, &o, 2, &err));
  count_split(b, out, "train", 20, true);
  count_split(b, out, "val", 3, true);
  count_split(b, out, "test", 2, false);
  assert_int_equal(lines_of(file_text(b, box_path(b, "set/labels.txt"))), 5);
  const char *truth = file_text(b, box_path(b, "set/test_labels.csv"));
  assert_int_equal(lines_of(truth), 11);
  for (int i = 0; i < 5; i++) { /* every class twice */
    char end[8];
    snprintf(end, sizeof end, ",%d\n", i);
    const char *one = strstr(truth, end);
    assert_non_null(one);
    assert_non_null(strstr(one + 1, end));
  }
  assert_int_equal(lines_of(file_text(b, box_path(b, "set/sample_submission.csv"))), 11);
}

static void folders_are_respected(void **state)
{
  box *b = *state;
  tp_error err;
  const char *out = box_path(b, "mine");
  tp_draw_options o = options_for(out);
  o.test = 0;
  box_text(b, "mine/holiday.jpg", "precious");
  assert_fails(draw(b, &o, 2, &err), TP_ERR_USAGE, "not empty");
  o.overwrite = true;
  assert_fails(draw(b, &o, 2, &err), TP_ERR_USAGE, "holiday.jpg");
  assert_string_equal(file_text(b, box_path(b, "mine/holiday.jpg")), "precious");
  unlink(box_path(b, "mine/holiday.jpg"));
  box_text(b, "mine/train/notes.txt", "precious");
  assert_fails(draw(b, &o, 2, &err), TP_ERR_USAGE, "notes.txt");
  unlink(box_path(b, "mine/train/notes.txt"));
  box_text(b, "mine/train/00-9x9-1.tfrec", "old");
  box_text(b, "mine/test/00-9x9-1.tfrec", "old");
  box_text(b, "mine/.partial/train/left.part", "of a killed run");
  assert_ok(draw(b, &o, 2, &err));
  const char *text = folder_text(b, out);
  assert_null(strstr(text, "9x9"));
  assert_null(strstr(text, "partial"));
  assert_int_equal(lines_of(text), 3 + 1);
  o.overwrite = false;
  assert_fails(draw(b, &o, 2, &err), TP_ERR_USAGE, "--overwrite");
  box_text(b, "a file", "precious");
  o.out = box_path(b, "a file");
  assert_fails(draw(b, &o, 2, &err), TP_ERR_USAGE, "is a file");
  o.out = tp__arena_format(&b->arena, "%s/below", o.out);
  assert_int_not_equal(draw(b, &o, 2, &err), TP_OK);
}

static void stopping_leaves_nothing(void **state)
{
  box *b = *state;
  tp_error err;
  const char *out = box_path(b, "stopped");
  tp_draw_options o = options_for(out);
  tp__job job = {.pool = b->pool, .stopped = always};
  assert_int_equal(tp__draw(&job, &o, &err), TP_STOPPED);
  assert_false(tp__is_folder(out));
}

static void wrong_options(void **state)
{
  box *b = *state;
  tp_error err;
  const struct {
    tp_draw_options o;
    const char *part;
  } cases[] = {
      {{.out = "x", .species = 1, .train = 1, .size = 32}, "species"},
      {{.out = "x", .species = 33, .train = 1, .size = 32}, "32"},
      {{.out = "x", .species = 4, .train = 0, .size = 32}, "train"},
      {{.out = "x", .species = 4, .train = 1, .val = -1, .size = 32}, "val"},
      {{.out = "x", .species = 4, .train = 1, .test = 2000000, .size = 32}, "test"},
      {{.out = "x", .species = 4, .train = 1, .size = 8}, "size"},
      {{.out = "x", .species = 4, .train = 1, .size = 5000}, "size"},
      {{.out = NULL, .species = 4, .train = 1, .size = 32}, "--out"},
      {{.out = "", .species = 4, .train = 1, .size = 32}, "--out"},
  };
  tp__job job = {.pool = b->pool};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_fails(tp__draw(&job, &cases[i].o, &err), TP_ERR_USAGE, cases[i].part);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_species_is_drawn),
      cmocka_unit_test(odd_sizes),
      cmocka_unit_test_setup_teardown(same_for_any_threads, box_open, box_close),
      cmocka_unit_test_setup_teardown(the_layout_is_kaggles, box_open, box_close),
      cmocka_unit_test_setup_teardown(folders_are_respected, box_open, box_close),
      cmocka_unit_test_setup_teardown(stopping_leaves_nothing, box_open, box_close),
      cmocka_unit_test_setup_teardown(wrong_options, box_open, box_close),
  };
  return cmocka_run_group_tests_name("draw", tests, NULL, NULL);
}
