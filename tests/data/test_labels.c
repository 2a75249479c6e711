/* Proves that class names are read byte for byte in order, and that files that would shift or join
 * classes are refused. Expected: by hand. Hostile: zero bytes, an endless line, more lines than
 * there can be classes. */
#include "data_testing.h"

#include "data/labels.h"

static void good_files(void **state)
{
  box *b = *state;
  static const struct {
    const char *text;
    size_t count;
    const char *first, *last;
  } cases[] = {
      {"rose\ntulip\n", 2, "rose", "tulip"},
      {"rose\ntulip", 2, "rose", "tulip"},
      {"rose\r\ntulip\r\n", 2, "rose", "tulip"},
      {"\xef\xbb\xbfrose\ntulip\n\n\r\n\n", 2, "rose", "tulip"},
      {" rose \nhard-leaved pocket orchid\t\n", 2, " rose ", "hard-leaved pocket orchid\t"},
      {"a", 1, "a", "a"},
      {"Rose\nrose\n", 2, "Rose", "rose"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp_error err;
    tp__labels labels;
    assert_ok(tp__labels_read(box_text(b, "labels.txt", cases[i].text), &labels, &err));
    assert_int_equal(labels.count, cases[i].count);
    assert_string_equal(labels.name[0], cases[i].first);
    assert_string_equal(labels.name[labels.count - 1], cases[i].last);
    tp__labels_free(&labels);
  }
}

static void refused_files(void **state)
{
  box *b = *state;
  char *endless = calloc(1, 2000), *many = malloc(2000003);
  memset(endless, 'x', 1999);
  for (size_t i = 0; i < 1000001; i++) memcpy(many + 2 * i, "x\n", 2);
  const struct {
    const char *text;
    size_t size;
    const char *part;
  } cases[] = {
      {"", 0, "holds no class names"},
      {"\n\n", 2, "holds no class names"},
      {"rose\n\ntulip\n", 12, "line 2 is empty"},
      {"\nrose\n", 6, "line 1 is empty"},
      {"rose\r\n\r\ntulip", 13, "line 2 is empty"},
      {"rose\ntulip\nrose\n", 16, "the class name \"rose\" is there twice: classes 0 and 2"},
      {"rose\0tulip\n", 11, "line 1 holds a zero byte"},
      {endless, 1999, "line 1 has 1999 bytes"},
      {many, 2000002, "has 1000001 lines, over the limit"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp_error err;
    tp__labels labels;
    const char *path = box_file(b, "bad.txt", cases[i].text, cases[i].size);
    assert_fails(tp__labels_read(path, &labels, &err), TP_ERR_DATA, cases[i].part);
    assert_non_null(strstr(err.text, "bad.txt"));
  }
  tp_error err;
  tp__labels labels;
  assert_fails(tp__labels_read(box_path(b, "none.txt"), &labels, &err), TP_ERR_DATA, "none.txt");
  free(endless);
  free(many);
}

static void look_up(void **state)
{
  (void)state;
  tp_error err;
  static const char *const names[] = {"rose", "tulip", "ros", "", "roses", "a"};
  tp__label_index index;
  assert_ok(tp__label_index_build(&index, names, 6, &err));
  for (size_t i = 0; i < 6; i++) {
    size_t label = 99;
    assert_true(tp__label_index_find(&index, names[i], strlen(names[i]), &label));
    assert_int_equal(label, i);
  }
  size_t label = 99;
  assert_false(tp__label_index_find(&index, "rosette", 7, &label));
  assert_false(tp__label_index_find(&index, "rose\0", 5, &label));
  assert_true(tp__label_index_find(&index, "roses!", 5, &label));
  assert_int_equal(label, 4);
  tp__label_index_free(&index);
}

int main(void)
{
  const struct CMUnitTest tests[] = {box_test(good_files), box_test(refused_files),
                                     cmocka_unit_test(look_up)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
