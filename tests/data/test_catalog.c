/* Proves what a catalog of shards holds: order, numbers, offsets, labels, ids, the image of each
 * example; and that files which change or vanish are noticed. Expected: by hand; the order is that
 * of the patterns, bytewise within each. Hostile: overlapping patterns and links, names with magic
 * characters, a file replaced by one of the same size. */
#include "data_testing.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

static void records_in_order(void **state)
{
  box *b = *state;
  tp_error err;
  box_shard(b, "b.tfrec", "b", 3, 0);
  box_shard(b, "B.tfrec", "B", 2, 5);
  box_shard(b, "z/a.tfrec", "a", 2, 8);
  const char *patterns[] = {box_path(b, "z/*.tfrec"), box_path(b, "*.tfrec")};
  tp__catalog_options o = {.patterns = patterns, .n_patterns = 2, .need_labels = true};
  tp__catalog *c;
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  static const struct {
    const char *image, *id;
    uint32_t file, number;
    int label;
  } wanted[] = {{"a0", "id-a0", 0, 0, 8}, {"a1", "id-a1", 0, 1, 9}, {"B0", "id-B0", 1, 0, 5},
                {"B1", "id-B1", 1, 1, 6}, {"b0", "id-b0", 2, 0, 0}, {"b1", "id-b1", 2, 1, 1},
                {"b2", "id-b2", 2, 2, 2}};
  assert_int_equal(tp__catalog_count(c), 7);
  assert_int_equal(tp__catalog_files(c), 3);
  for (size_t i = 0; i < 7; i++) {
    const tp__record *r = tp__catalog_record(c, i);
    assert_int_equal(r->file, wanted[i].file);
    assert_int_equal(r->number, wanted[i].number);
    assert_int_equal(r->label, wanted[i].label);
    assert_int_equal(r->image_size, 2);
    assert_string_equal(r->id, wanted[i].id);
    assert_image(c, i, wanted[i].image);
  }
  size_t n = 0, labels = 99;
  assert_string_equal(tp__catalog_file(c, 2, &n), box_path(b, "b.tfrec"));
  assert_int_equal(n, 3);
  assert_null(tp__catalog_labels(c, &labels));
  assert_int_equal(labels, 0);
  char where[200], end[100];
  tp__catalog_where(c, 5, where, sizeof where);
  snprintf(end, sizeof end, "/b.tfrec: record 1 at byte %llu",
           (unsigned long long)tp__catalog_record(c, 5)->offset);
  assert_string_equal(where + strlen(b->folder), end);
  tp__catalog_free(c);
}

static void no_file_twice(void **state)
{
  box *b = *state;
  tp_error err;
  const char *shard = box_shard(b, "a.tfrec", "a", 2, 0);
  assert_int_equal(symlink(shard, box_path(b, "b.tfrec")), 0);
  const char *patterns[] = {shard, box_path(b, "*.tfrec"), box_path(b, "?.tfrec"),
                            box_path(b, "{a,b}.tfrec")};
  tp__catalog_options o = {.patterns = patterns, .n_patterns = 4};
  tp__catalog *c;
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  assert_int_equal(tp__catalog_count(c), 2);
  tp__catalog_free(c);
}

static void names_with_magic_characters(void **state)
{
  box *b = *state;
  tp__catalog *c;
  box_shard(b, "a[1].tfrec", "a", 1, 0);
  box_shard(b, "a1.tfrec", "b", 2, 0);
  tp_error err;
  const char *name = box_path(b, "a[1].tfrec");
  tp__catalog_options o = {.patterns = &name, .n_patterns = 1};
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  assert_int_equal(tp__catalog_count(c), 1);
  tp__catalog_free(c);
}

static void nothing_matches(void **state)
{
  box *b = *state;
  tp__catalog *c;
  box_shard(b, "sub/a.tfrec", "a", 1, 0);
  const struct {
    const char *pattern, *text;
  } cases[] = {
      {box_path(b, "*.tfrec"), "0 files match "},
      {box_path(b, "none.tfrec"), "none.tfrec"},
      {box_path(b, "s*"), "only folders such as"},
      {"gs://bucket/flowers/*.tfrec", "only local files"},
      {b->folder, "its sub-folders hold TFRecord shards"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(open_one(b, cases[i].pattern, (tp__catalog_options){0}, &c), TP_ERR_DATA);
    if (strstr(b->err.text, cases[i].text) == NULL || strstr(b->err.text, "0 files match") == NULL)
      fail_msg("%zu: %s", i, b->err.text);
    assert_null(c);
  }
  tp__catalog_options none = {0};
  tp_error err;
  assert_fails(tp__catalog_open(&none, b->pool, NULL, &c, &err), TP_ERR_USAGE, "no files");
}

/* Without an id feature an example is known by its place; a number is as good as a text. */
static void ids(void **state)
{
  box *b = *state;
  tp_error err;
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  frame_example(&bytes, "x", 1, NULL);
  frame_example(&bytes, "x", 2, "");
  frame_example(&bytes, "x", 3, "d5fa879bd");
  const char *path = box_file(b, "a.tfrec", bytes.data, bytes.size);
  tp__buffer_free(&bytes);
  tp__catalog *c;
  tp__catalog_options o = {.patterns = &path, .n_patterns = 1};
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  assert_string_equal(tp__catalog_record(c, 0)->id, "a.tfrec:0");
  assert_string_equal(tp__catalog_record(c, 1)->id, "a.tfrec:1");
  assert_string_equal(tp__catalog_record(c, 2)->id, "d5fa879bd");
  tp__catalog_free(c);
  o.id_feature = "class";
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  assert_string_equal(tp__catalog_record(c, 2)->id, "3");
  tp__catalog_free(c);
}

static tp_status read_first(const tp__catalog *c, tp_error *err)
{
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  tp_status status = tp__catalog_read(c, 0, &bytes, err);
  tp__buffer_free(&bytes);
  return status;
}

static void changed_and_vanished(void **state)
{
  box *b = *state;
  tp_error err;
  for (int read_before = 0; read_before < 2; read_before++) {
    const char *path = box_shard(b, "a.tfrec", "a", 2, 0);
    struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    tp__catalog *c;
    assert_ok(open_one(b, path, (tp__catalog_options){0}, &c));
    if (read_before) assert_ok(read_first(c, &err));
    box_shard(b, "a.tfrec", "b", 2, 0); /* same size, now */
    assert_fails(read_first(c, &err), TP_ERR_DATA, "has changed since it was opened");
    assert_non_null(strstr(err.text, "a.tfrec: record 0 at byte 0: "));
    assert_int_equal(unlink(path), 0);
    assert_fails(read_first(c, &err), TP_ERR_DATA, "has vanished");
    tp__catalog_free(c);
  }
}

static void other_feature_names(void **state)
{
  box *b = *state;
  tp_error err;
  tp__buffer payload, bytes;
  tp__buffer_init(&payload, 1000);
  tp__buffer_init(&bytes, 1000);
  tp__example_fields f = {.image_feature = "image/encoded",
                          .class_feature = "image/class/label",
                          .image = (const uint8_t *)"jpeg",
                          .image_size = 4,
                          .label = 5};
  assert_ok(tp__example_pack(&f, &payload, &err));
  frame(&bytes, payload.data, payload.size);
  const char *path = box_file(b, "slim.tfrecord-00000-of-00001", bytes.data, bytes.size);
  tp__buffer_free(&payload);
  tp__buffer_free(&bytes);
  tp__catalog *c;
  tp__catalog_options o = {.patterns = &path, .n_patterns = 1, .label_base = 1};
  assert_fails(tp__catalog_open(&o, b->pool, NULL, &c, &err), TP_ERR_DATA,
               "did you mean image feature image/encoded");
  o.image_feature = "image/encoded";
  o.class_feature = "image/class/label";
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  assert_int_equal(tp__catalog_record(c, 0)->label, 4);
  assert_image(c, 0, "jpeg");
  tp__catalog_free(c);
}

struct reading {
  const tp__catalog *catalog;
  atomic_int wrong;
};

static void read_one(void *arg, size_t index, int worker)
{
  (void)worker;
  struct reading *r = arg;
  tp_error err;
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1000);
  char wanted[16];
  size_t n = tp__catalog_count(r->catalog), i = index * 7919 % n;
  snprintf(wanted, sizeof wanted, "x%zu", i % 100);
  if (tp__catalog_read(r->catalog, i, &bytes, &err) != TP_OK || bytes.size != strlen(wanted) ||
      memcmp(bytes.data, wanted, bytes.size) != 0)
    atomic_fetch_add(&r->wrong, 1);
  tp__buffer_free(&bytes);
}

static void from_many_threads(void **state)
{
  box *b = *state;
  char name[32];
  for (int i = 0; i < 20; i++) {
    snprintf(name, sizeof name, "%02d.tfrec", i);
    box_shard(b, name, "x", 100, 0);
  }
  tp_error err;
  struct reading r = {0};
  tp__catalog *c;
  assert_ok(open_one(b, b->folder, (tp__catalog_options){0}, &c));
  assert_int_equal(tp__catalog_count(c), 2000);
  r.catalog = c;
  tp__pool_for(b->pool, 2000, read_one, &r);
  assert_int_equal(atomic_load(&r.wrong), 0);
  tp__catalog_free(c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      box_test(records_in_order),
      box_test(no_file_twice),
      box_test(nothing_matches),
      box_test(names_with_magic_characters),
      box_test(ids),
      box_test(changed_and_vanished),
      box_test(other_feature_names),
      box_test(from_many_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
