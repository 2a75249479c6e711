/* Proves that every fault of a data set is one error with file, record, byte and what to do; which
 * are skipped under max_bad, and that none of it depends on the number of threads. Expected: cases
 * B02-B05 and their policy, by hand. Hostile: damage in several files at once, max_bad of every
 * wrong form, compressed shards over the memory limit. */
#include "data_testing.h"

#include <zlib.h>

static const char *const names3[] = {"rose", "tulip", "3"};

/* A shard of five examples, with one byte changed. */
static const char *damaged_shard(box *b, const char *name, size_t record, size_t byte)
{
  tp_error err;
  const char *path = box_shard(b, name, "x", 5, 0);
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  assert_ok(tp__file_read(path, &bytes, &err));
  bytes.data[record * (bytes.size / 5) + byte] ^= 1;
  box_file(b, name, bytes.data, bytes.size);
  tp__buffer_free(&bytes);
  return path;
}

static const char *one_example(box *b, const char *hex)
{
  uint8_t payload[200];
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  frame_example(&bytes, "good", 1, NULL);
  frame(&bytes, payload, from_hex(hex, payload));
  const char *path = box_file(b, "one.tfrec", bytes.data, bytes.size);
  tp__buffer_free(&bytes);
  return path;
}

static void damage_is_located(void **state)
{
  box *b = *state;
  tp_error err;
  tp__catalog *c;
  box_shard(b, "a.tfrec", "a", 3, 0);
  damaged_shard(b, "b.tfrec", 1, 20);
  damaged_shard(b, "c.tfrec", 0, 0); /* a later file: never the one that is reported */
  const char *pattern = box_path(b, "*.tfrec");
  tp__catalog_options o = {.patterns = &pattern, .n_patterns = 1};
  for (int i = 0; i < 20; i++) {
    assert_fails(tp__catalog_open(&o, b->pool, NULL, &c, &err), TP_ERR_DATA,
                 "b.tfrec: record 1 at byte 68: data checksum differs");
    assert_int_equal(strncmp(err.text, b->folder, strlen(b->folder)), 0);
  }
  damaged_shard(b, "b.tfrec", 1, 0);
  assert_fails(tp__catalog_open(&o, b->pool, NULL, &c, &err), TP_ERR_DATA,
               "b.tfrec: record 1 at byte 68: length checksum differs");
}

static void features_and_labels(void **state)
{
  box *b = *state;
  static const struct {
    const char *hex, *text;
  } cases[] = {
      {"0a1d0a0b0a05636c61737312021a000a0e0a05696d61676512050a030a0158",
       "found a list of 0 int64s"},
      {"0a210a0f0a05636c61737312061a040a0201020a0e0a05696d61676512050a030a0158", "2 int64s"},
      {"0a230a110a05636c617373120812060a04000040400a0e0a05696d61676512050a030a0158", "1 float"},
      {"0a200a0e0a05636c61737312050a030a01340a0e0a05696d61676512050a030a0158",
       "found a list of 1 byte string, and it is none of the class names"},
      {"0a100a0e0a05696d61676512050a030a0158", "feature \"class\" (wanted: one int64) is missing"},
      {"0a230a0e0a05636c61737312051a030a01030a110a05696d61676512080a060a01580a0159",
       "feature \"image\": wanted one byte string, found a list of 2 byte strings"},
      {"0a290a0e0a05696d61676512050a030a01580a170a05636c617373120e1a0c0a0affffffffffffffffff01",
       "label -1 is outside the classes: there are 3, labels run 0...2"},
      {"0a240a0e0a05696d61676512050a030a01580a120a05636c61737312091a070a058080808008",
       "label 2147483648 is outside the classes"},
      {"0a200a0e0a05696d61676512050a030a01580a0e0a05636c61737312051a030a0103",
       "label 3 is outside the classes: there are 3, labels run 0...2; did you mean label_base 1?"},
      {"deadbeef", "no tf.train.Example"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp_error err;
    tp__catalog *c;
    const char *path = one_example(b, cases[i].hex);
    tp__catalog_options o = {.patterns = &path, .n_patterns = 1, .need_labels = true};
    o.labels = names3;
    o.n_labels = 3;
    assert_fails(tp__catalog_open(&o, b->pool, NULL, &c, &err), TP_ERR_DATA, cases[i].text);
    assert_non_null(strstr(err.text, "one.tfrec: record 1 at byte "));
    assert_null(strchr(err.text, '\n'));
  }
}

static void labels_as_they_may_be(void **state)
{
  box *b = *state;
  static const struct {
    const char *hex;
    int64_t base;
    size_t n_labels;
    int label;
  } cases[] = {
      {"0a200a0e0a05636c61737312050a030a01330a0e0a05696d61676512050a030a0158", 0, 3, 2}, /* "3" */
      {"0a200a0e0a05696d61676512050a030a01580a0e0a05636c61737312051a030a0167", 0, 0, 103},
      {"0a200a0e0a05696d61676512050a030a01580a0e0a05636c61737312051a030a0103", 1, 3, 2},
      {"0a290a0e0a05696d61676512050a030a01580a170a05636c617373120e1a0c0a0affffffffffffffffff01", 0,
       3, -1}, /* a customary "unknown" */
      {"0a100a0e0a05696d61676512050a030a0158", 0, 3, -1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp_error err;
    tp__catalog *c;
    const char *path = one_example(b, cases[i].hex);
    tp__catalog_options o = {.patterns = &path, .n_patterns = 1, .label_base = cases[i].base};
    o.labels = cases[i].n_labels > 0 ? names3 : NULL;
    o.n_labels = cases[i].n_labels;
    assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
    assert_int_equal(tp__catalog_record(c, 1)->label, cases[i].label);
    tp__catalog_free(c);
  }
  tp_error err;
  tp__catalog *c;
  const char *path = one_example(
      b, "0a240a0e0a05696d61676512050a030a01580a120a05636c61737312091a070a058080808008");
  tp__catalog_options o = {.patterns = &path, .n_patterns = 1};
  assert_fails(tp__catalog_open(&o, b->pool, NULL, &c, &err), TP_ERR_DATA,
               "label 2147483648 is outside 0...999999");
  /* Classes known by number only have a count and no names. */
  path = one_example(b, "0a200a0e0a05696d61676512050a030a01580a0e0a05636c61737312051a030a0167");
  o.n_labels = 104;
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  assert_int_equal(tp__catalog_record(c, 1)->label, 103);
  tp__catalog_free(c);
  o.n_labels = 103;
  assert_fails(tp__catalog_open(&o, b->pool, NULL, &c, &err), TP_ERR_DATA,
               "label 103 is outside the classes: there are 103");
}

static void files_that_are_no_shards(void **state)
{
  box *b = *state;
  static const struct {
    const char *bytes, *text;
  } cases[] = {
      {"", "bad.tfrec: the file is empty"},
      {"<!DOCTYPE html>", "looks like an HTML page"},
      {"\xff\xd8\xff\xe0 picture", "looks like a JPEG photo"},
      {"\x1f\x8b\x08 no stream", "bad.tfrec: the compressed stream is"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp_error err;
    tp__catalog *c;
    const char *path = box_text(b, "bad.tfrec", cases[i].bytes);
    tp__catalog_options o = {.patterns = &path, .n_patterns = 1};
    assert_fails(tp__catalog_open(&o, b->pool, NULL, &c, &err), TP_ERR_DATA, cases[i].text);
  }
}

static void some_may_be_bad(void **state)
{
  box *b = *state;
  damaged_shard(b, "a.tfrec", 1, 20); /* data: one record is lost */
  damaged_shard(b, "b.tfrec", 2, 0);  /* length: found again at the next record */
  box_text(b, "c.tfrec", "<html>");
  box_shard(b, "d.tfrec", "d", 5, 0);
  const char *pattern = box_path(b, "*.tfrec");
  static const struct {
    const char *max_bad;
    bool passes;
  } cases[] = {{NULL, false}, {"0", false},     {"0%", false},    {"2", false},  {"3", true},
               {"100", true}, {"18.75%", true}, {"18.7%", false}, {"100%", true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp_error err;
    tp__catalog *c;
    tp__catalog_options o = {.patterns = &pattern, .n_patterns = 1, .max_bad = cases[i].max_bad};
    tp_status status = tp__catalog_open(&o, b->pool, NULL, &c, &err);
    if (status != (cases[i].passes ? TP_OK : TP_ERR_DATA)) fail_msg("%zu: %s", i, err.text);
    assert_true(status == TP_OK || strstr(err.text, "a.tfrec: record 1 at byte 68: data") != NULL);
    if (status != TP_OK) continue;
    assert_int_equal(tp__catalog_count(c), 13);
    assert_image(c, 3, "x4");
    assert_image(c, 6, "x3"); /* behind the lost record of b.tfrec */
    size_t n = 0;
    const tp__bad_record *bad = tp__catalog_bad(c, &n);
    assert_int_equal(n, 3);
    assert_non_null(strstr(bad[0].file, "/a.tfrec"));
    assert_int_equal(bad[0].number, 1);
    assert_int_equal(bad[0].offset, 68);
    assert_non_null(strstr(bad[1].reason, "length checksum differs"));
    assert_int_equal(bad[1].offset, 136);
    assert_int_equal(bad[2].number, -1);
    assert_non_null(strstr(bad[2].reason, "HTML"));
    tp__catalog_free(c);
  }
}

static void max_bad_is_read_strictly(void **state)
{
  box *b = *state;
  static const char *const wrong[] = {"",     "%",   "-1",  "1 ",   " 1",  "1.5",
                                      "abc",  "10x", "1e3", "101%", "5%%", "0x10",
                                      "1,5%", ".5%", "5.%", "nan%", "inf", "99999999999999999999"};
  const char *path = box_shard(b, "a.tfrec", "a", 1, 0);
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    tp_error err;
    tp__catalog *c;
    tp__catalog_options o = {.patterns = &path, .n_patterns = 1, .max_bad = wrong[i]};
    assert_fails(tp__catalog_open(&o, b->pool, NULL, &c, &err), TP_ERR_USAGE, "max_bad");
  }
}

static const char *gzip_shard(box *b, const char *name, int count)
{
  tp_error err;
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  assert_ok(tp__file_read(box_shard(b, "plain", "z", count, 0), &bytes, &err));
  const char *path = box_path(b, name);
  gzFile f = gzopen(path, "wb");
  assert_int_equal(gzwrite(f, bytes.data, (unsigned)bytes.size), bytes.size);
  gzclose(f);
  tp__buffer_free(&bytes);
  unlink(box_path(b, "plain"));
  return path;
}

static void compressed_shards(void **state)
{
  box *b = *state;
  tp_error err;
  tp__catalog *c;
  gzip_shard(b, "a.tfrec.gz", 5);
  gzip_shard(b, "b.tfrec.gz", 6);
  box_shard(b, "c.tfrec", "x", 2, 0);
  const char *pattern = b->folder;
  tp__catalog_options o = {.patterns = &pattern, .n_patterns = 1};
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  assert_int_equal(tp__catalog_count(c), 13);
  unlink(box_path(b, "a.tfrec.gz")); /* decompressed in memory: no longer needed */
  assert_image(c, 4, "z4");
  assert_image(c, 10, "z5");
  assert_image(c, 11, "x0");
  tp__catalog_free(c);
  gzip_shard(b, "a.tfrec.gz", 5);
  static const uint64_t limits[] = {1, 339, 747}; /* 5 x 68 bytes and 6 x 68 */
  for (size_t i = 0; i < 3; i++) {
    o.memory_limit = limits[i];
    assert_fails(tp__catalog_open(&o, b->pool, NULL, &c, &err), TP_ERR_DATA,
                 "the compressed shards need more than");
  }
  o.memory_limit = 748;
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  tp__catalog_free(c);
}

static void same_for_any_number_of_threads(void **state)
{
  box *b = *state;
  char name[32];
  for (int i = 0; i < 30; i++) {
    snprintf(name, sizeof name, "%02d.tfrec", i);
    if (i % 7 == 3)
      damaged_shard(b, name, (size_t)i % 5, (size_t)i % 3 * 10);
    else
      box_shard(b, name, "x", i % 5 + 1, i);
  }
  tp__buffer first = {.max = 1 << 20}, other = {.max = 1 << 20};
  for (int threads = 1; threads <= 4; threads++) {
    tp_error err;
    tp__pool *pool;
    tp__catalog *c;
    assert_ok(tp__pool_new(threads, &pool, &err));
    const char *pattern = box_path(b, "*.tfrec");
    tp__catalog_options o = {.patterns = &pattern, .n_patterns = 1, .max_bad = "50%"};
    assert_ok(tp__catalog_open(&o, pool, NULL, &c, &err));
    tp__buffer *text = threads == 1 ? &first : &other;
    text->size = 0;
    for (size_t i = 0; i < tp__catalog_count(c); i++) {
      const tp__record *r = tp__catalog_record(c, i);
      assert_ok(
          tp__buffer_printf(text, &err, "%u %u %d %s\n", r->file, r->number, r->label, r->id));
    }
    size_t n = 0;
    const tp__bad_record *bad = tp__catalog_bad(c, &n);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++)
      assert_ok(tp__buffer_printf(text, &err, "%s %s\n", bad[i].file, bad[i].reason));
    if (threads > 1) assert_string_equal((char *)other.data, (char *)first.data);
    tp__catalog_free(c);
    tp__pool_free(pool);
  }
  tp__buffer_free(&first);
  tp__buffer_free(&other);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      box_test(damage_is_located),     box_test(features_and_labels),
      box_test(labels_as_they_may_be), box_test(files_that_are_no_shards),
      box_test(some_may_be_bad),       box_test(max_bad_is_read_strictly),
      box_test(compressed_shards),     box_test(same_for_any_number_of_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
