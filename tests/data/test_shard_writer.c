/* Proves that a written shard is named as Kaggle's are, holds what was written, and appears whole
 * or not at all. Expected: by hand. Hostile: an unwritable folder, cancelling midway, a shard
 * without records. */
#include "data_testing.h"

#include "data/shard_writer.h"

static size_t entries(const char *folder)
{
  size_t n = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}

static void written_shard(void **state)
{
  box *b = *state;
  tp_error err;
  tp__shard_writer w;
  assert_ok(tp__shard_writer_open(&w, b->folder, 3, 192, 224, &err));
  for (int i = 0; i < 12; i++) {
    char image[20], id[20];
    snprintf(image, sizeof image, "image %d", i);
    snprintf(id, sizeof id, "id%d", i);
    tp__example_fields f = {
        .image = (uint8_t *)image, .image_size = strlen(image), .label = i, .id = id};
    assert_ok(tp__shard_writer_add(&w, &f, &err));
  }
  tp__catalog *c;
  assert_int_equal(open_one(b, box_path(b, "*.tfrec"), (tp__catalog_options){0}, &c), TP_ERR_DATA);
  char *path = NULL;
  assert_ok(tp__shard_writer_commit(&w, &path, &err));
  assert_string_equal(path, box_path(b, "03-192x224-12.tfrec"));
  free(path);
  assert_int_equal(entries(b->folder), 1);
  assert_ok(open_one(b, b->folder, (tp__catalog_options){.need_labels = true}, &c));
  assert_int_equal(tp__catalog_count(c), 12);
  assert_int_equal(tp__catalog_record(c, 11)->label, 11);
  assert_string_equal(tp__catalog_record(c, 11)->id, "id11");
  assert_image(c, 11, "image 11");
  tp__catalog_free(c);
}

static void nothing_half_written(void **state)
{
  box *b = *state;
  tp_error err;
  tp__shard_writer w;
  tp__example_fields f = {.image = (const uint8_t *)"x", .image_size = 1};
  assert_ok(tp__shard_writer_open(&w, b->folder, 0, 1, 1, &err));
  assert_ok(tp__shard_writer_add(&w, &f, &err));
  tp__shard_writer_cancel(&w);
  tp__shard_writer_cancel(&w);
  char *path = (char *)"unset";
  assert_ok(tp__shard_writer_open(&w, b->folder, 0, 1, 1, &err));
  assert_ok(tp__shard_writer_commit(&w, &path, &err));
  assert_null(path);
  assert_int_equal(entries(b->folder), 0);
  assert_fails(tp__shard_writer_open(&w, "/nonexistent", 0, 1, 1, &err), TP_ERR_OUTPUT,
               "/nonexistent/00-1x1");
}

static void note_line(void *user, tp__level level, const char *text)
{
  assert_int_equal(level, TP__WARNING);
  tp_error err;
  assert_ok(tp__buffer_printf(user, &err, "%s\n", text));
}

static void the_name_tells_the_count(void **state)
{
  box *b = *state;
  static const struct {
    const char *path;
    bool is;
    uint64_t count;
  } cases[] = {{"00-192x192-433.tfrec", true, 433},
               {"a/b/15-331x331-0.tfrec", true, 0},
               {"00-192x192-433.tfrec.gz", true, 433},
               {"00-192x192-.tfrec", false, 0},
               {"x-192x192-4.tfrec", false, 0},
               {"00-192x192-4x.tfrec", false, 0},
               {"flowers.tfrecord-00000-of-00005", false, 0},
               {"", false, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint64_t count = 0;
    assert_int_equal(tp__shard_name_count(cases[i].path, &count), cases[i].is);
    if (cases[i].is) assert_int_equal(count, cases[i].count);
  }
  tp__buffer text = {.max = 10000};
  tp__log log = {note_line, &text};
  const char *pattern = box_path(b, "*.tfrec");
  box_shard(b, "00-8x8-3.tfrec", "x", 3, 0);
  box_shard(b, "01-8x8-3.tfrec", "x", 2, 0); /* cut between two records */
  tp__catalog_options o = {.patterns = &pattern, .n_patterns = 1};
  tp__catalog *c;
  tp_error err;
  assert_ok(tp__catalog_open(&o, b->pool, &log, &c, &err));
  tp__catalog_free(c);
  assert_non_null(strstr((char *)text.data, "/01-8x8-3.tfrec: has 2 records, its name says 3"));
  assert_null(strstr((char *)text.data, "/00-8x8-3"));
  tp__buffer_free(&text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {box_test(written_shard), box_test(nothing_half_written),
                                     box_test(the_name_tells_the_count)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
