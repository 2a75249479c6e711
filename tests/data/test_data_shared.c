/* Proves the catalog on real shards: those of kaggle104like-192, written by TensorFlow, against
 * their manifest (counts, ids, classes, order), and shards that other people's tools wrote.
 * Expected: manifest.csv, labels.txt, and counts by TensorFlow 2.21's reader. Needs ../shared. */
#include "data_testing.h"

#include "data/labels.h"

static const char *shared_path(box *b, const char *name)
{
  return tp__arena_format(&b->arena, "%s/data/%s", shared_folder(), name);
}

/* The next line of the manifest (split,id,class,...) that belongs to a split. */
static bool next_of(char **text, const char *split, char id[32], int *class_index)
{
  for (char *line; (line = strsep(text, "\n")) != NULL;) {
    char found[16];
    if (sscanf(line, "%15[^,],%31[^,],%d", found, id, class_index) == 3 &&
        strcmp(found, split) == 0)
      return true;
  }
  return false;
}

static void kaggle_layout(void **state)
{
  need_shared();
  box *b = *state;
  tp_error err;
  tp__labels labels;
  tp__buffer manifest = {.max = 10 << 20};
  assert_ok(tp__labels_read(shared_path(b, "kaggle104like-192/labels.txt"), &labels, &err));
  assert_int_equal(labels.count, 104);
  assert_string_equal(labels.name[103], "wild rose");
  assert_ok(tp__file_read(shared_path(b, "kaggle104like-192/manifest.csv"), &manifest, &err));
  assert_ok(tp__buffer_add(&manifest, "", 1, &err));
  static const struct {
    const char *split;
    size_t count;
  } splits[] = {{"train", 6920}, {"val", 864}};
  for (int s = 0; s < 2; s++) {
    char name[100];
    snprintf(name, sizeof name, "kaggle104like-192/tfrecords-jpeg-192x192/%s/*.tfrec",
             splits[s].split);
    const char *pattern = shared_path(b, name);
    tp__catalog_options o = {.patterns = &pattern, .n_patterns = 1, .need_labels = true};
    o.labels = labels.name;
    o.n_labels = labels.count;
    tp__catalog *c;
    assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
    assert_int_equal(tp__catalog_count(c), splits[s].count);
    assert_int_equal(tp__catalog_files(c), 16);
    char *copy = strdup((char *)manifest.data), *text = copy;
    tp__buffer image = {.max = 10 << 20};
    for (size_t i = 0; i < splits[s].count; i++) {
      char id[32];
      int class_index = -1;
      assert_true(next_of(&text, splits[s].split, id, &class_index));
      assert_string_equal(tp__catalog_record(c, i)->id, id);
      assert_int_equal(tp__catalog_record(c, i)->label, class_index);
      if (i % 37 != 0) continue;
      assert_ok(tp__catalog_read(c, i, &image, &err));
      assert_memory_equal(image.data, "\xff\xd8\xff", 3);
      assert_memory_equal(image.data + image.size - 2, "\xff\xd9", 2);
    }
    tp__buffer_free(&image);
    free(copy);
    tp__catalog_free(c);
  }
  tp__buffer_free(&manifest);
  tp__labels_free(&labels);
}

static void by_other_tools(void **state)
{
  need_shared();
  box *b = *state;
  tp_error err;
  tp__catalog *c;
  const char *slim =
      shared_path(b, "tfrecords-by-others/flowers_validation_00000-of-00005.tfrecord");
  static const char *const five[] = {"daisy", "dandelion", "roses", "sunflowers", "tulips"};
  tp__catalog_options o = {.patterns = &slim, .n_patterns = 1, .need_labels = true};
  assert_fails(tp__catalog_open(&o, b->pool, NULL, &c, &err), TP_ERR_DATA, "image/encoded");
  o.image_feature = "image/encoded";
  o.class_feature = "image/class/label";
  o.labels = five;
  o.n_labels = 5;
  o.label_base = 1;
  assert_fails(tp__catalog_open(&o, b->pool, NULL, &c, &err), TP_ERR_DATA,
               "label 0 is outside the classes: there are 5, labels run 1...5; did you mean "
               "label_base 0?");
  o.label_base = 0;
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  assert_int_equal(tp__catalog_count(c), 70);
  static const size_t of_class[5] = {10, 23, 14, 10, 13};
  size_t count[5] = {0};
  for (size_t i = 0; i < 70; i++) count[tp__catalog_record(c, i)->label]++;
  assert_memory_equal(count, of_class, sizeof count);
  tp__catalog_free(c);

  const char *cifar = shared_path(b, "tfrecords-by-others/cifar10_test_tiny.tfrecord");
  o = (tp__catalog_options){.patterns = &cifar, .n_patterns = 1, .need_labels = true};
  o.class_feature = "label";
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  assert_int_equal(tp__catalog_count(c), 100);
  tp__buffer image = {.max = 1 << 20};
  assert_ok(tp__catalog_read(c, 99, &image, &err));
  assert_memory_equal(image.data, "\x89PNG", 4);
  tp__buffer_free(&image);
  tp__catalog_free(c);

  const char *gzip = shared_path(b, "tfrecords-by-others/penguin*.gz");
  o = (tp__catalog_options){.patterns = &gzip, .n_patterns = 1};
  assert_fails(tp__catalog_open(&o, b->pool, NULL, &c, &err), TP_ERR_DATA,
               "feature \"image\" (wanted: one byte string) is missing; the record has: \"");
  assert_non_null(strstr(err.text, "00001.gz: record 0 at byte 0"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {box_test(kaggle_layout), box_test(by_other_tools)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
