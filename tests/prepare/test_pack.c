/* Proves that packing keeps every photo once, byte for byte or resized as the image room resizes,
 * with its label and id, the same for any number of threads, and that a damaged photo, a wrong
 * option or a folder in use leaves nothing behind. Expected counts are worked out by hand. */
#include "prepare_testing.h"

#include "image/image.h"

static const char *const classes[] = {"aster", "broom", "clover"};

/* A picture that no other is equal to. */
static void add_photo(box *b, const char *name, int n, int h, int w)
{
  tp_error err;
  tp__buffer jpeg;
  uint8_t rgb[64 * 64 * 3];
  for (int i = 0; i < h * w * 3; i++) rgb[i] = (uint8_t)(i * (n + 3) / 7 + n * 31);
  tp__buffer_init(&jpeg, 1 << 20);
  assert_ok(tp__image_encode_jpeg(rgb, h, w, 90, &jpeg, &err));
  box_file(b, name, jpeg.data, jpeg.size);
  tp__buffer_free(&jpeg);
}

/* photos/CLASS/NN.jpg: 10 asters, 5 brooms, 2 clovers. Returns the folder. */
static const char *add_photos(box *b, bool mixed)
{
  static const int count[] = {10, 5, 2};
  for (int c = 0, n = 0; c < 3; c++) {
    for (int i = 0; i < count[c]; i++, n++) {
      char name[64];
      snprintf(name, sizeof name, "photos/%s/%02d.jpg", classes[c], i);
      add_photo(b, name, n, mixed && n == 4 ? 40 : 32, 48);
    }
  }
  return box_path(b, "photos");
}

static tp_pack_options options_for(const char *const *input, const char *out)
{
  return (tp_pack_options){.inputs = {input, 1},
                           .out = out,
                           .split = "60,20,20",
                           .quality = 95,
                           .per_shard = 4,
                           .seed = 3};
}

static tp_status pack(box *b, const tp_pack_options *o, int threads, const tp__log *log,
                      tp_error *err)
{
  tp__pool *pool;
  assert_int_equal(tp__pool_new(threads, &pool, &b->err), TP_OK);
  tp__job job = {.pool = pool, .log = log};
  tp_status status = tp__pack(&job, o, err);
  tp__pool_free(pool);
  return status;
}

static tp__catalog *open_part(box *b, const char *pattern)
{
  tp_error err;
  tp__catalog *c;
  const char *path = box_path(b, pattern);
  tp__catalog_options o = {.patterns = &path, .n_patterns = 1, .need_labels = true};
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  return c;
}

static void every_photo_once(void **state)
{
  box *b = *state;
  tp_error err;
  const char *photos = add_photos(b, false), *first = NULL;
  for (int threads = 1; threads <= 3; threads++) {
    tp_pack_options o = options_for(&photos, box_path(b, "out"));
    o.overwrite = threads > 1;
    assert_ok(pack(b, &o, threads, NULL, &err));
    const char *text = folder_text(b, o.out);
    if (first == NULL) first = text;
    assert_string_equal(text, first);
  }
  /* aster 6,2,2; broom 3,1,1; clover 2,0,0 */
  assert_non_null(strstr(first, "train/00-48x32-3.tfrec"));
  assert_non_null(strstr(first, "train/02-48x32-4.tfrec"));
  assert_non_null(strstr(first, "val/00-48x32-3.tfrec"));
  assert_non_null(strstr(first, "test/00-48x32-3.tfrec"));
  assert_int_equal(lines_of(first), 3 + 1 + 1 + 1);
  assert_string_equal(file_text(b, box_path(b, "out/labels.txt")), "aster\nbroom\nclover\n");
  tp__catalog *c = open_part(b, "out/*/*.tfrec");
  assert_int_equal(tp__catalog_count(c), 17);
  tp__buffer packed;
  tp__buffer_init(&packed, 1 << 20);
  for (size_t i = 0; i < 17; i++) {
    const tp__record *r = tp__catalog_record(c, i);
    for (size_t k = 0; k < i; k++) assert_string_not_equal(r->id, tp__catalog_record(c, k)->id);
    assert_non_null(strstr(r->id, classes[r->label])); /* the id is the photo's path */
    tp__buffer photo;
    tp__buffer_init(&photo, 1 << 20);
    assert_ok(tp__file_read(r->id, &photo, &err));
    assert_ok(tp__catalog_read(c, i, &packed, &err));
    assert_int_equal(photo.size, packed.size);
    assert_memory_equal(photo.data, packed.data, photo.size);
    tp__buffer_free(&photo);
  }
  tp__catalog_free(c);
  c = open_part(b, "out/val/*.tfrec");
  size_t count[3] = {0};
  for (size_t i = 0; i < tp__catalog_count(c); i++) count[tp__catalog_record(c, i)->label]++;
  assert_int_equal(count[0], 2);
  assert_int_equal(count[1], 1);
  assert_int_equal(count[2], 0);
  tp__catalog_free(c);
  /* shards again, with another seed: all there, in other parts */
  const char *shards = box_path(b, "out/*/*.tfrec");
  tp_pack_options o = options_for(&shards, box_path(b, "again"));
  o.split = "100";
  o.seed = 4;
  assert_ok(pack(b, &o, 2, NULL, &err));
  assert_non_null(strstr(folder_text(b, o.out), "train/04-48x32-4.tfrec"));
  tp__buffer_free(&packed);
}

static void sizes_that_differ(void **state)
{
  box *b = *state;
  tp_error err;
  const char *photos = add_photos(b, true);
  tp_pack_options o = options_for(&photos, box_path(b, "out"));
  o.split = "100";
  o.per_shard = 100;
  assert_ok(pack(b, &o, 2, NULL, &err));
  assert_non_null(strstr(folder_text(b, o.out), "train/00-mixed-17.tfrec"));
}

static void resized_as_in_training(void **state)
{
  box *b = *state;
  tp_error err;
  const char *photos = add_photos(b, true);
  tp_pack_options o = options_for(&photos, box_path(b, "out"));
  o.image_size = "20x24";
  o.split = "100";
  o.per_shard = 17;
  assert_ok(pack(b, &o, 3, NULL, &err));
  tp__catalog *c = open_part(b, "out/train/00-24x20-17.tfrec");
  tp__buffer packed;
  tp__picture picture = {0};
  tp__buffer_init(&packed, 1 << 20);
  tp__decode_options decode = {0};
  float want[20 * 24 * 3];
  for (size_t i = 0; i < 17; i++) {
    tp__buffer photo, jpeg;
    uint8_t rgb[20 * 24 * 3];
    tp__buffer_init(&photo, 1 << 20);
    tp__buffer_init(&jpeg, 1 << 20);
    assert_ok(tp__file_read(tp__catalog_record(c, i)->id, &photo, &err));
    assert_ok(tp__image_decode(photo.data, photo.size, &decode, &picture, &err));
    assert_ok(tp__image_resize(picture.rgb.data, NULL, picture.height, picture.width, want, 20, 24,
                               false, &err));
    for (int k = 0; k < 20 * 24 * 3; k++) rgb[k] = (uint8_t)(want[k] + 0.5f);
    assert_ok(tp__image_encode_jpeg(rgb, 20, 24, 95, &jpeg, &err));
    assert_ok(tp__catalog_read(c, i, &packed, &err));
    assert_int_equal(packed.size, jpeg.size);
    assert_memory_equal(packed.data, jpeg.data, jpeg.size);
    tp__buffer_free(&photo);
    tp__buffer_free(&jpeg);
  }
  tp__buffer_free(&packed);
  tp__buffer_free(&picture.rgb);
  tp__catalog_free(c);
}

static void keep_lines(void *user, tp__level level, const char *text)
{
  (void)level;
  size_t used = strlen(user);
  snprintf((char *)user + used, 4096 - used, "%s\n", text);
}

static void damaged_photos(void **state)
{
  box *b = *state;
  tp_error err;
  const char *photos = add_photos(b, false);
  box_text(b, "photos/broom/03.jpg", "<html>404</html>");
  for (int resize = 0; resize < 2; resize++) {
    tp_pack_options o = options_for(&photos, box_path(b, resize ? "small" : "out"));
    o.image_size = resize ? "16" : NULL;
    assert_fails(pack(b, &o, 2, NULL, &err), TP_ERR_DATA, "photos/broom/03.jpg");
    assert_non_null(strstr(err.text, "HTML"));
    assert_false(tp__is_folder(o.out));
    o.data.max_bad = "1";
    char said[4096] = "";
    tp__log log = {keep_lines, said};
    assert_ok(pack(b, &o, 2, &log, &err));
    assert_non_null(strstr(said, "packed 16 photos"));
    assert_non_null(strstr(said, "1 class has too few photos"));
    assert_non_null(strstr(said, "clover"));
    const char *list = file_text(b, tp__arena_format(&b->arena, "%s/bad-records.tsv", o.out));
    assert_int_equal(lines_of(list), 2);
    assert_non_null(strstr(list, "photos/broom/03.jpg\t0\t0\t"));
  }
  box_text(b, "photos/aster/01.jpg", "");
  box_text(b, "photos/broom/01.jpg", "nothing");
  tp_pack_options o = options_for(&photos, box_path(b, "third"));
  o.data.max_bad = "1";
  assert_int_equal(pack(b, &o, 2, NULL, &err), TP_ERR_DATA);
  assert_false(tp__is_folder(o.out));
  o.data.max_bad = "20%"; /* of 17: 3.4 */
  assert_ok(pack(b, &o, 2, NULL, &err));
  assert_int_equal(lines_of(file_text(b, box_path(b, "third/bad-records.tsv"))), 4);
}

static void from_a_list(void **state)
{
  box *b = *state;
  tp_error err;
  add_photos(b, false);
  const char *csv =
      box_text(b, "list.csv",
               "path,label\nphotos/aster/00.jpg,2\nphotos/aster/01.jpg,0\nphotos/broom/00.jpg,2\n");
  tp_pack_options o = options_for(&csv, box_path(b, "out"));
  o.split = "100";
  assert_ok(pack(b, &o, 2, NULL, &err));
  tp__catalog *c = open_part(b, "out/train/*.tfrec");
  size_t count[3] = {0};
  for (size_t i = 0; i < tp__catalog_count(c); i++) count[tp__catalog_record(c, i)->label]++;
  assert_int_equal(count[0], 1);
  assert_int_equal(count[2], 2);
  tp__catalog_free(c);
  assert_null(strstr(folder_text(b, o.out), "labels.txt")); /* numbers have no names */
}

static void wrong_options(void **state)
{
  box *b = *state;
  tp_error err;
  const char *photos = add_photos(b, false), *none = box_path(b, "none");
  const char *out = box_path(b, "out");
  struct {
    tp_pack_options o;
    tp_status status;
    const char *part;
  } cases[11];
  for (int i = 0; i < 11; i++)
    cases[i].o = options_for(&photos, out), cases[i].status = TP_ERR_USAGE;
  cases[0].o.quality = 0, cases[0].part = "quality";
  cases[1].o.per_shard = 0, cases[1].part = "per shard";
  cases[2].o.split = "50,40", cases[2].part = "100";
  cases[3].o.image_size = "0", cases[3].part = "192";
  cases[4].o.image_size = "20x", cases[4].part = "192";
  cases[5].o.image_size = "99999", cases[5].part = "192";
  cases[6].o.data.dct = "slow", cases[6].part = "accurate";
  cases[7].o.out = NULL, cases[7].part = "--out";
  cases[8].o.inputs.count = 0, cases[8].part = "no photos";
  cases[9].o.inputs.item = &none, cases[9].status = TP_ERR_DATA, cases[9].part = "none";
  cases[10].o.data.labels = none, cases[10].status = TP_ERR_DATA, cases[10].part = "none";
  for (int i = 0; i < 11; i++) {
    assert_fails(pack(b, &cases[i].o, 2, NULL, &err), cases[i].status, cases[i].part);
    assert_false(tp__is_folder(out));
  }
  tp_pack_options o = options_for(&photos, photos); /* onto the photos themselves */
  o.overwrite = true;
  assert_fails(pack(b, &o, 2, NULL, &err), TP_ERR_USAGE, "not replaced");
  assert_true(tp__is_file(box_path(b, "photos/aster/00.jpg")));
  o = options_for(&photos, out);
  tp__job job = {.pool = b->pool, .stopped = always};
  assert_int_equal(tp__pack(&job, &o, &err), TP_STOPPED);
  assert_false(tp__is_folder(out));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(every_photo_once, box_open, box_close),
      cmocka_unit_test_setup_teardown(sizes_that_differ, box_open, box_close),
      cmocka_unit_test_setup_teardown(resized_as_in_training, box_open, box_close),
      cmocka_unit_test_setup_teardown(damaged_photos, box_open, box_close),
      cmocka_unit_test_setup_teardown(from_a_list, box_open, box_close),
      cmocka_unit_test_setup_teardown(wrong_options, box_open, box_close),
  };
  return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
