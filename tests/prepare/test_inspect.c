/* Proves that inspect finds every fault, not only the first, with file, record and byte; counts
 * classes, sizes, formats and flags; tells duplicates within a split from those across; and that
 * report and JSON say the same for any number of threads. Expected counts are worked out by hand.
 * Hostile: damaged framing, foreign bytes, labels out of range, nothing at all. */
#include "prepare_testing.h"

#include <cjson/cJSON.h>

#include "data/shard_writer.h"
#include "image/image.h"

/* The n-th picture, 16x16 or 24x16. */
static void make_picture(int n, tp__buffer *jpeg)
{
  tp_error err;
  uint8_t rgb[24 * 16 * 3];
  int w = n % 4 == 3 ? 24 : 16;
  for (int i = 0; i < w * 16 * 3; i++) rgb[i] = (uint8_t)(i * (n + 1) + n * 7);
  jpeg->size = 0;
  assert_ok(tp__image_encode_jpeg(rgb, 16, w, 80, jpeg, &err));
}

struct record {
  int picture; /* -1: a web page; -2: a cut JPEG; 100 + n: picture n with junk behind */
  int label;
};

static const char *add_shard(box *b, const char *split, const struct record *r, int count)
{
  tp_error err;
  tp__shard_writer w;
  tp__buffer bytes;
  char *path = NULL, id[32];
  const char *folder = box_path(b, tp__arena_format(&b->arena, "%s/x", split));
  *strrchr((char *)folder, '/') = '\0';
  tp__buffer_init(&bytes, 1 << 20);
  assert_ok(tp__shard_writer_open(&w, folder, 0, 16, 16, &err));
  for (int i = 0; i < count; i++) {
    make_picture(r[i].picture < 0 ? 1 : r[i].picture % 100, &bytes);
    if (r[i].picture == -1) {
      bytes.size = 0;
      assert_ok(tp__buffer_printf(&bytes, &err, "<html>gone</html>"));
    }
    if (r[i].picture == -2) bytes.size /= 2;
    if (r[i].picture >= 100) assert_ok(tp__buffer_printf(&bytes, &err, "junk"));
    snprintf(id, sizeof id, "%s%d", split, i);
    tp__example_fields f = {
        .image = bytes.data, .image_size = bytes.size, .label = r[i].label, .id = id};
    assert_ok(tp__shard_writer_add(&w, &f, &err));
  }
  assert_ok(tp__shard_writer_commit(&w, &path, &err));
  tp__buffer_free(&bytes);
  const char *kept = tp__arena_strdup(&b->arena, path);
  free(path);
  return kept;
}

static tp_status inspect(box *b, tp_inspect_options *o, const char *pattern, int threads,
                         tp_inspection *in, tp_error *err)
{
  tp__pool *pool;
  assert_int_equal(tp__pool_new(threads, &pool, &b->err), TP_OK);
  tp__job job = {.pool = pool};
  o->inputs = (tp_strings){&pattern, 1};
  tp_status status = tp__inspect(&job, o, in, err);
  tp__pool_free(pool);
  return status;
}

#define assert_in(text, part)                                                                      \
  do {                                                                                             \
    if (strstr(text, part) == NULL) fail_msg("\"%s\" is not in:\n%s", part, text);                 \
  } while (0)

static void a_clean_set(void **state)
{
  box *b = *state;
  tp_error err;
  add_shard(b, "val", (struct record[]){{5, 0}, {6, 1}}, 2);
  add_shard(b, "train", (struct record[]){{0, 0}, {1, 0}, {2, 1}, {3, 0}, {4, 0}, {7, 0}}, 6);
  add_shard(b, "test", (struct record[]){{8, -1}, {9, -1}}, 2);
  const char *labels = box_text(b, "labels.txt", "aster\nbroom\nclover\n");
  tp_inspect_options o = {.decode = true, .data = {.labels = labels}};
  tp_inspection in;
  assert_ok(inspect(b, &o, box_path(b, "*/*.tfrec"), 2, &in, &err));
  assert_int_equal(in.files, 3);
  assert_int_equal(in.records, 10);
  assert_int_equal(in.faults, 0);
  assert_in(in.text, "3 files, 10 records, no faults");
  assert_in(in.text, "JPEG 10");
  assert_in(in.text, "16x16: 8, 24x16: 2 (width x height)");
  /* training first, then validation; no column for the test, which has no labels */
  assert_in(in.text, "train         1          6          6\nval           1          2          "
                     "2\ntest          1          2          0\n");
  assert_in(in.text, "    0  aster          5         1\n    1  broom          1         1\n    2  "
                     "clover         0         0\n");
  assert_in(in.text, "note: train: 1 of 3 classes have no record, the first is class 2 (clover)");
  assert_in(in.text,
            "note: train: classes are unequal: 5 records of class 0 (aster), 1 of class 1 (broom)");
  free(in.text);
}

/* All kinds of faults in one set, the same report for any number of threads. */
static void all_faults(void **state)
{
  box *b = *state;
  tp_error err;
  const char *broken = add_shard(
      b, "train", (struct record[]){{0, 0}, {1, 9}, {-1, 1}, {2, 1}, {-2, 0}, {4, 1}, {5, 0}}, 7);
  add_shard(b, "val", (struct record[]){{6, 0}, {4, 1}}, 2); /* 4 is in training, too */
  box_text(b, "val/empty.tfrec", "");
  /* spoil the data of record 3 */
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  assert_ok(tp__file_read(broken, &bytes, &err));
  uint64_t at = 0;
  for (int i = 0; i < 3; i++) {
    uint64_t length;
    memcpy(&length, bytes.data + at, sizeof length);
    at += length + 16;
  }
  bytes.data[at + 40] ^= 1;
  assert_ok(tp__file_write(broken, bytes.data, bytes.size, &err));
  tp__buffer_free(&bytes);
  const char *labels = box_text(b, "labels.txt", "aster\nbroom\n"),
             *json = box_path(b, "out/found.json");
  char *first = NULL;
  for (int threads = 1; threads <= 3; threads++) {
    tp_inspect_options o = {.decode = true, .json = json, .data = {.labels = labels}};
    tp_inspection in;
    assert_ok(inspect(b, &o, box_path(b, "*/*.tfrec"), threads, &in, &err));
    assert_int_equal(in.faults, 6);
    if (first == NULL) first = in.text;
    assert_string_equal(in.text, first);
    if (in.text != first) free(in.text);
  }
  char place[128];
  assert_in(first, "6 faults");
  assert_in(first, "record 1 at byte "); /* label 9 of 2 */
  assert_in(first, "record 2 at byte "); /* a web page */
  assert_in(first, "HTML");
  snprintf(place, sizeof place, "record 3 at byte %llu: ", (unsigned long long)at);
  assert_in(first, place);
  assert_in(first, "record 4 at byte ");
  assert_in(first, "cut short");
  assert_in(first, "val/empty.tfrec: the file is empty");
  assert_in(first, "class 1 (broom), id val1");
  free(first);
  cJSON *root = cJSON_Parse(file_text(b, json));
  assert_non_null(root);
  assert_int_equal(cJSON_GetObjectItem(root, "faults")->valueint, 6);
  const cJSON *problems = cJSON_GetObjectItem(root, "problems"),
              *twins = cJSON_GetObjectItem(root, "duplicates");
  assert_int_equal(cJSON_GetArraySize(problems), 5);
  bool found = false;
  const cJSON *item;
  cJSON_ArrayForEach(item, problems)
  {
    const cJSON *record = cJSON_GetObjectItem(item, "record");
    assert_non_null(cJSON_GetObjectItem(item, "file"));
    assert_non_null(cJSON_GetObjectItem(item, "reason"));
    if (record != NULL && record->valueint == 3) {
      assert_int_equal(cJSON_GetObjectItem(item, "byte")->valueint, at);
      found = true;
    }
  }
  assert_true(found);
  assert_int_equal(cJSON_GetArraySize(twins), 1);
  assert_true(cJSON_IsTrue(cJSON_GetObjectItem(cJSON_GetArrayItem(twins, 0), "across_splits")));
  assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(cJSON_GetArrayItem(twins, 0), "records")),
                   2);
  cJSON_Delete(root);
}

static void duplicates(void **state)
{
  box *b = *state;
  tp_error err;
  tp_inspection in;
  /* 1 twice with one label, 2 with two labels, 4 and 5 also in validation, 5 there with other bytes
   * around it */
  add_shard(b, "train", (struct record[]){{1, 0}, {2, 0}, {1, 0}, {2, 1}, {4, 1}, {5, 1}}, 6);
  add_shard(b, "val", (struct record[]){{4, 1}, {105, 1}, {4, 1}}, 3);
  tp_inspect_options o = {.decode = true};
  assert_ok(inspect(b, &o, box_path(b, "*/*.tfrec"), 2, &in, &err));
  assert_int_equal(in.faults, 1 + 2 + 1);
  assert_in(in.text, "1 record repeats a picture of the same split and class");
  assert_in(in.text, "(equal pixels, other bytes)");
  assert_in(in.text, "class 0, id train1");
  assert_in(in.text, "class 1, id train3");
  assert_in(in.text, "id val2");
  free(in.text);
  o.decode = false; /* bytes alone */
  assert_ok(inspect(b, &o, box_path(b, "*/*.tfrec"), 2, &in, &err));
  assert_int_equal(in.faults, 1 + 2);
  free(in.text);
}

/* Case B09: the number of pictures with an EXIF flag; and photos in folders, where file and record
 * are the same thing. */
static void folders_and_flags(void **state)
{
  box *b = *state;
  tp_error err;
  tp_inspection in;
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  assert_ok(tp__file_read(TP_SOURCE_ROOT "/tests/fixtures/B09_exif6.jpg", &bytes, &err));
  box_file(b, "set/train/aster/turned.jpg", bytes.data, bytes.size);
  for (int i = 0; i < 4; i++) {
    make_picture(i, &bytes);
    box_file(b, tp__arena_format(&b->arena, "set/train/%s/%d.jpg", i % 2 ? "aster" : "broom", i),
             bytes.data, bytes.size);
  }
  tp__buffer_free(&bytes);
  box_text(b, "set/train/broom/broken.jpg", "not a picture");
  tp_inspect_options o = {.decode = true};
  assert_ok(inspect(b, &o, box_path(b, "set/train"), 2, &in, &err));
  assert_int_equal(in.records, 6);
  assert_int_equal(in.faults, 1);
  assert_in(in.text, "1 picture has an EXIF flag");
  assert_in(in.text, "broom/broken.jpg: ");
  assert_null(strstr(in.text, "record 0"));
  assert_in(in.text, "train         6          6          6\n");
  free(in.text);
}

static void refusals(void **state)
{
  box *b = *state;
  tp_error err;
  tp_inspection in = {.files = -7};
  tp_inspect_options o = {.decode = true};
  assert_fails(inspect(b, &o, box_path(b, "*.tfrec"), 2, &in, &err), TP_ERR_DATA, "*.tfrec");
  add_shard(b, "train", (struct record[]){{0, 0}}, 1);
  const char *pattern = box_path(b, "train/*.tfrec");
  o.json = box_path(b, "train"); /* a folder */
  assert_fails(inspect(b, &o, pattern, 2, &in, &err), TP_ERR_OUTPUT, "train");
  o.json = "/dev/full";
  assert_fails(inspect(b, &o, pattern, 2, &in, &err), TP_ERR_OUTPUT, "/dev/full");
  o.json = NULL;
  o.data.labels = box_path(b, "none.txt");
  assert_fails(inspect(b, &o, pattern, 2, &in, &err), TP_ERR_DATA, "none.txt");
  o.data.labels = NULL;
  tp__job job = {.pool = b->pool, .stopped = always};
  o.inputs = (tp_strings){&pattern, 1};
  assert_int_equal(tp__inspect(&job, &o, &in, &err), TP_STOPPED);
  job.stopped = NULL;
  o.inputs.count = 0;
  assert_fails(tp__inspect(&job, &o, &in, &err), TP_ERR_USAGE, "no data");
  assert_int_equal(in.files, -7); /* unchanged by failures */
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_clean_set, box_open, box_close),
      cmocka_unit_test_setup_teardown(all_faults, box_open, box_close),
      cmocka_unit_test_setup_teardown(duplicates, box_open, box_close),
      cmocka_unit_test_setup_teardown(folders_and_flags, box_open, box_close),
      cmocka_unit_test_setup_teardown(refusals, box_open, box_close),
  };
  return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
