/* Proves how folders and CSVs of photos become examples: classes sorted bytewise, RFC 4180 quoting,
 * labels by name or number, ids. Expected: by hand. No photo is decoded here, so any bytes will do.
 * Hostile: folders that could mean two things, lines with too many fields, quotes that never close,
 * missing photos. */
#include "data_testing.h"

static const char *const flowers[] = {"tulip", "rose", "5"};

static void folder_per_class(void **state)
{
  box *b = *state;
  tp_error err;
  box_text(b, "f/tulip/2.jpg", "t2");
  box_text(b, "f/tulip/10.JPG", "t10");
  box_text(b, "f/tulip/.hidden.jpg", "no");
  box_text(b, "f/Rose/a.png", "Ra");
  box_text(b, "f/rose/b.jpeg", "rb");
  box_text(b, "f/rose/notes.txt", "no");
  box_text(b, "f/.git/x.jpg", "no");
  box_text(b, "f/zinnia/notes.txt", "no photo: a class all the same");
  box_text(b, "f/LICENSE.txt", "no");
  char *folder = tp__format("%s/f//", b->folder);
  tp__catalog *c;
  assert_ok(open_one(b, folder, (tp__catalog_options){.need_labels = true}, &c));
  free(folder);
  static const struct {
    const char *image, *end;
    int label;
  } wanted[] = {{"Ra", "f/Rose/a.png", 0},
                {"rb", "f/rose/b.jpeg", 1},
                {"t10", "f/tulip/10.JPG", 2},
                {"t2", "f/tulip/2.jpg", 2}};
  assert_int_equal(tp__catalog_count(c), 4);
  for (size_t i = 0; i < 4; i++) {
    const tp__record *r = tp__catalog_record(c, i);
    assert_int_equal(r->label, wanted[i].label);
    assert_int_equal(r->number, 0);
    assert_int_equal(r->image_size, strlen(wanted[i].image));
    assert_string_equal(r->id, box_path(b, wanted[i].end));
    assert_image(c, i, wanted[i].image);
    char where[200];
    tp__catalog_where(c, i, where, sizeof where);
    assert_string_equal(where, r->id);
  }
  size_t n = 0;
  const char *const *labels = tp__catalog_labels(c, &n);
  assert_int_equal(n, 4);
  assert_string_equal(labels[0], "Rose");
  assert_string_equal(labels[3], "zinnia");
  box_text(b, "f/rose/b.jpeg", "longer");
  tp__buffer bytes = {.max = 100};
  assert_fails(tp__catalog_read(c, 1, &bytes, &err), TP_ERR_DATA,
               "f/rose/b.jpeg: the file has changed");
  tp__buffer_free(&bytes);
  tp__catalog_free(c);
}

static void folders_and_given_names(void **state)
{
  box *b = *state;
  tp__catalog *c;
  box_text(b, "f/rose/a.jpg", "r");
  box_text(b, "f/tulip/a.jpg", "t");
  const char *folder = box_path(b, "f");
  tp__catalog_options o = {.labels = flowers, .n_labels = 3};
  tp_error err;
  assert_ok(open_one(b, folder, o, &c));
  assert_int_equal(tp__catalog_record(c, 0)->label, 1);
  assert_int_equal(tp__catalog_record(c, 1)->label, 0);
  tp__catalog_free(c);
  box_text(b, "f/tulips/a.jpg", "t");
  assert_int_equal(open_one(b, folder, o, &c), TP_ERR_DATA);
  assert_non_null(strstr(b->err.text, "f/tulips/a.jpg: the class \"tulips\" is not among the 3"));
  o.max_bad = "1";
  assert_ok(open_one(b, folder, o, &c));
  size_t n = 0, records = 9;
  const tp__bad_record *bad = tp__catalog_bad(c, &n);
  assert_int_equal(n, 1);
  assert_string_equal(bad[0].file, box_path(b, "f/tulips/a.jpg"));
  tp__catalog_file(c, 2, &records);
  assert_int_equal(records, 0);
  assert_int_equal(tp__catalog_count(c), 2);
  tp__catalog_free(c);
}

static void photos_without_labels(void **state)
{
  box *b = *state;
  tp_error err;
  tp__catalog *c;
  box_text(b, "f/b.x.jpg", "b");
  box_text(b, "f/a.png", "a");
  box_text(b, "f/.jpg", "no");
  const char *folder = box_path(b, "f");
  assert_ok(open_one(b, folder, (tp__catalog_options){0}, &c));
  assert_int_equal(tp__catalog_count(c), 2);
  assert_string_equal(tp__catalog_record(c, 0)->id, "a");
  assert_string_equal(tp__catalog_record(c, 1)->id, "b.x");
  assert_int_equal(tp__catalog_record(c, 0)->label, -1);
  assert_image(c, 1, "b");
  tp__catalog_free(c);
  assert_ok(open_one(b, box_path(b, "f/*.jpg"), (tp__catalog_options){0}, &c));
  assert_int_equal(tp__catalog_count(c), 1);
  assert_string_equal(tp__catalog_record(c, 0)->id, "b.x");
  tp__catalog_free(c);
  assert_int_equal(open_one(b, folder, (tp__catalog_options){.need_labels = true}, &c),
                   TP_ERR_DATA);
  assert_non_null(strstr(b->err.text, "f/a.png: the photo has no label"));
}

static void folders_that_are_refused(void **state)
{
  box *b = *state;
  tp__catalog *c;
  box_text(b, "both/rose/a.jpg", "r");
  box_text(b, "both/b.jpg", "b");
  box_text(b, "none/notes.txt", "n");
  box_text(b, "deep/train/rose/a.jpg", "r");
  static const struct {
    const char *name, *text;
  } cases[] = {
      {"both", "1 sub-folders, 1 photos and 0 TFRecord shards side by side"},
      {"none", "the folder holds no photos"},
      {"deep", "no photos (*.jpg, *.jpeg, *.png) in its 1 sub-folders"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp_status status = open_one(b, box_path(b, cases[i].name), (tp__catalog_options){0}, &c);
    assert_int_equal(status, TP_ERR_DATA);
    if (strstr(b->err.text, cases[i].text) == NULL) fail_msg("%zu: %s", i, b->err.text);
  }
}

static void csv_forms(void **state)
{
  box *b = *state;
  box_text(b, "d/a.jpg", "A");
  box_text(b, "d/b, \"c\".jpg", "B");
  box_text(b, "d/line\nend.jpg", "C");
  const char *absolute = box_path(b, "d/a.jpg");
  static const struct {
    const char *text; /* %s: the absolute path of a.jpg */
    const char *ids[3], *labels;
  } cases[] = {
      {"path,label\na.jpg,rose\n", {"a.jpg"}, "1"},
      {"Path,Label\r\na.jpg,rose\r\n", {"a.jpg"}, "1"},
      {"\xef\xbb\xbfpath,label\na.jpg,tulip", {"a.jpg"}, "0"},
      {"a.jpg,rose\n\"b, \"\"c\"\".jpg\",\"tulip\"\n", {"a.jpg", "b, \"c\".jpg"}, "10"},
      {"\"line\nend.jpg\",5\r\n\r\na.jpg,rose\n", {"line\nend.jpg", "a.jpg"}, "21"},
      {"path\na.jpg\n", {"a.jpg"}, "-"},
      {"a.jpg,\na.jpg,\"\"\n", {"a.jpg", "a.jpg"}, "--"},
      {"a.jpg,0\na.jpg,1\n./a.jpg,2", {"a.jpg", "a.jpg", "./a.jpg"}, "012"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp_error err;
    tp__catalog *c;
    const char *path = box_text(b, "d/list.csv", cases[i].text);
    tp__catalog_options o = {.patterns = &path, .n_patterns = 1, .labels = flowers, .n_labels = 3};
    assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
    assert_int_equal(tp__catalog_count(c), strlen(cases[i].labels));
    for (size_t k = 0; k < tp__catalog_count(c); k++) {
      char label = cases[i].labels[k];
      assert_string_equal(tp__catalog_record(c, k)->id, cases[i].ids[k]);
      assert_int_equal(tp__catalog_record(c, k)->label, label == '-' ? -1 : label - '0');
    }
    tp__catalog_free(c);
  }
  tp_error err;
  tp__catalog *c;
  char *text = tp__format("%s,rose\n", absolute);
  assert_ok(open_one(b, box_text(b, "e/list.CSV", text), (tp__catalog_options){0}, &c));
  assert_image(c, 0, "A");
  tp__catalog_free(c);
  free(text);
}

/* Without class names a CSV's own names are the classes; numbers stay numbers. */
static void csv_defines_classes(void **state)
{
  box *b = *state;
  tp_error err;
  tp__catalog *c;
  size_t n = 9;
  box_text(b, "a.jpg", "A");
  assert_ok(open_one(b, box_text(b, "l.csv", "a.jpg,tulip\na.jpg,rose\na.jpg,tulip\n"),
                     (tp__catalog_options){0}, &c));
  const char *const *labels = tp__catalog_labels(c, &n);
  assert_int_equal(n, 2);
  assert_string_equal(labels[0], "rose");
  assert_int_equal(tp__catalog_record(c, 0)->label, 1);
  assert_int_equal(tp__catalog_record(c, 1)->label, 0);
  tp__catalog_free(c);
  assert_ok(open_one(b, box_text(b, "l.csv", "a.jpg,7\na.jpg,1\n"),
                     (tp__catalog_options){.label_base = 1}, &c));
  tp__catalog_labels(c, &n);
  assert_int_equal(n, 0);
  assert_int_equal(tp__catalog_record(c, 0)->label, 6);
  tp__catalog_free(c);
}

static void csv_faults(void **state)
{
  box *b = *state;
  box_text(b, "a.jpg", "A");
  static const struct {
    const char *text, *part;
  } cases[] = {
      {"a.jpg,rose\nnone.jpg,rose\n", "l.csv: line 2: "},
      {"a.jpg,rose\nnone.jpg,rose\n", "none.jpg: the photo cannot be found"},
      {"a.jpg,rose,x\n", "line 1: 3 fields"},
      {"a.jpg,rose\n,rose\n", "line 2: the path is empty"},
      {"a.jpg,rose\n\"a.jpg,rose\n", "line 2: a quote that opens here is never closed"},
      {"\"a\"b.jpg,rose\n", "line 1: text follows a closing quote"},
      {"a.jpg,rose\n\na.jpg,lily\n", "line 3: the class \"lily\" is not among the 3 class names"},
      {"a.jpg,3\n", "line 1: label 3 is outside the classes: there are 3"},
      {"a.jpg,-1\n", "line 1: label -1 is outside the classes"},
      {"a.jpg,99999999999999999999\n", "is not among the 3 class names"},
      {"a.jpg\n", "line 1: the photo has no label"},
      {"path,label\n", "lists no photos"},
      {"", "lists no photos"},
      {".,rose\n", "is not a regular file"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp_error err;
    tp__catalog *c;
    const char *path = box_text(b, "l.csv", cases[i].text);
    tp__catalog_options o = {.patterns = &path, .n_patterns = 1, .need_labels = true};
    o.labels = flowers;
    o.n_labels = 3;
    assert_fails(tp__catalog_open(&o, b->pool, NULL, &c, &err), TP_ERR_DATA, cases[i].part);
    assert_non_null(strstr(err.text, "l.csv: "));
  }
  tp__catalog *c;
  assert_int_equal(
      open_one(b, box_text(b, "l.csv", "a.jpg,1\na.jpg,N/A\n"), (tp__catalog_options){0}, &c),
      TP_ERR_DATA);
  assert_non_null(strstr(b->err.text, "line 2: the label \"N/A\" is a name, but \"1\" in line 1"));
  assert_int_equal(
      open_one(b, box_file(b, "l.csv", "a.jpg\0,rose\n", 12), (tp__catalog_options){0}, &c),
      TP_ERR_DATA);
  assert_non_null(strstr(b->err.text, "holds a zero byte"));
}

static void csv_lines_may_be_bad(void **state)
{
  box *b = *state;
  tp_error err;
  tp__catalog *c;
  box_text(b, "a.jpg", "A");
  const char *path = box_text(b, "l.csv", "a.jpg,rose\nnone.jpg,rose\na,b,c\n,x\na.jpg,tulip\n");
  assert_ok(open_one(b, path, (tp__catalog_options){.max_bad = "3"}, &c));
  assert_int_equal(tp__catalog_count(c), 2);
  size_t n = 0;
  const tp__bad_record *bad = tp__catalog_bad(c, &n);
  assert_int_equal(n, 3);
  for (size_t i = 0; i < 3; i++) {
    char start[16];
    snprintf(start, sizeof start, "line %zu: ", i + 2);
    assert_string_equal(bad[i].file, path);
    assert_int_equal(bad[i].number, -1);
    assert_int_equal(strncmp(bad[i].reason, start, strlen(start)), 0);
  }
  tp__catalog_free(c);
  assert_int_equal(open_one(b, path, (tp__catalog_options){.max_bad = "2"}, &c), TP_ERR_DATA);
  assert_non_null(strstr(b->err.text, "3 of 5 records are bad, max_bad 2 allows 2"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      box_test(folder_per_class),
      box_test(folders_and_given_names),
      box_test(photos_without_labels),
      box_test(folders_that_are_refused),
      box_test(csv_forms),
      box_test(csv_defines_classes),
      box_test(csv_faults),
      box_test(csv_lines_may_be_bad),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
