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

int main(void)
{
  const struct CMUnitTest tests[] = {box_test(written_shard), box_test(nothing_half_written)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
