/* Proves that safetensors files read back what was written, in every type, and that each way a
 * header can lie is an error with its own text. Expected: the format's description
 * (huggingface/safetensors, README, "Format"). Hostile: all of it. */
#include "weights_testing.h"

static void every_type(void **state)
{
  (void)state;
  static const tp__dtype types[] = {TP__U8,  TP__F32,  TP__I64, TP__F16,
                                    TP__I32, TP__BF16, TP__F64, TP__U32};
  tp_error err;
  tp__tensors a = {0}, b = {0};
  for (size_t i = 0; i < 8; i++) {
    char name[32];
    tp__tensor *t = NULL;
    tp__shape shape = tp__shape_make((int)(i % 3), (const int64_t[]){3, 5});
    snprintf(name, sizeof name, "odd \"name\" \\ \xc3\xa9 %zu", i);
    assert_ok(tp__tensors_add(&a, name, types[i], &shape, &t, &err));
    for (size_t k = 0; k < tp__tensor_bytes(t); k++)
      ((uint8_t *)t->data)[k] = (uint8_t)(17 * i + k);
  }
  tp__shape none = tp__shape_make(2, (const int64_t[]){0, 7});
  assert_ok(tp__tensors_add(&a, "empty", TP__F32, &none, NULL, &err));
  const char *path = in_test_folder("types.safetensors");
  assert_ok(tp__weights_write_safetensors(path, &a, NULL, &err));
  tp__buffer metadata = {0};
  assert_ok(tp__weights_read(path, &b, NULL, &metadata, &err));
  assert_int_equal(metadata.size, 0);
  assert_same_tensors(&a, &b, NULL);
  tp__tensors_free(&a);
  tp__tensors_free(&b);
}

static void equal_sets_give_equal_files(void **state)
{
  (void)state;
  tp_error err;
  tp__buffer one, two;
  tp__buffer_init(&one, 1 << 20);
  tp__buffer_init(&two, 1 << 20);
  tp__tensors a = {0};
  add_counting(&a, "a/b", 2, (const int64_t[]){2, 3}, 1);
  assert_ok(tp__weights_write_safetensors(in_test_folder("one"), &a, "{\"k\":\"v\"}", &err));
  assert_ok(tp__weights_write_safetensors(in_test_folder("two"), &a, "{\"k\":\"v\"}", &err));
  assert_ok(tp__file_read(in_test_folder("one"), &one, &err));
  assert_ok(tp__file_read(in_test_folder("two"), &two, &err));
  assert_int_equal(one.size, two.size);
  assert_memory_equal(one.data, two.data, one.size);
  uint64_t header = 0;
  memcpy(&header, one.data, 8);
  assert_int_equal(header % 8, 0);
  assert_int_equal(one.size, 8 + header + 24);
  tp__buffer_free(&one);
  tp__buffer_free(&two);
  tp__tensors_free(&a);
}

static void bad_metadata_is_not_written(void **state)
{
  (void)state;
  tp_error err;
  tp__tensors a = {0};
  add_counting(&a, "a/b", 0, NULL, 1);
  const char *path = in_test_folder("none");
  assert_fails(tp__weights_write_safetensors(path, &a, "{\"k\":1}", &err), TP_ERR_INTERNAL,
               "strings");
  assert_fails(tp__weights_write_safetensors(path, &a, "[", &err), TP_ERR_INTERNAL, "strings");
  assert_false(tp__is_file(path));
  assert_fails(tp__weights_write_safetensors("/dev/full", &a, NULL, &err), TP_ERR_OUTPUT,
               "No space");
  tp__tensors_free(&a);
}

#define ARRAY(name, dtype, shape, offsets)                                                         \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void lying_headers(void **state)
{
  (void)state;
  static const struct {
    const char *header;
    size_t data;
    const char *text;
  } cases[] = {
      {"{" ARRAY("a", "F32", "[2]", "[0,8]"), 8, "no JSON object"},
      {"{} x", 0, "no JSON object"},
      {"{}", 0, "holds no arrays"},
      {"{" ARRAY("a", "F32", "[2]", "[0,8]") "}", 7, "truncated"},
      {"{" ARRAY("a", "F32", "[2]", "[0,8]") "}", 9, "describes 8 bytes of data, the file has 9"},
      {"{" ARRAY("a", "F32", "[2]", "[0,4]") "}", 8, "span 4 bytes, its shape and dtype need 8"},
      {"{" ARRAY("a", "F32", "[2]", "[8,0]") "}", 8, "data_offsets"},
      {"{" ARRAY("a", "F32", "[2]", "[0]") "}", 8, "data_offsets"},
      {"{" ARRAY("a", "F32", "[2]", "[-8,0]") "}", 8, "data_offsets"},
      {"{" ARRAY("a", "F32", "[2]", "[0.5,8.5]") "}", 8, "data_offsets"},
      {"{" ARRAY("a", "F32", "[2]", "[4,12]") "}", 12, "gap"},
      {"{" ARRAY("a", "F32", "[2]", "[0,8]") "," ARRAY("b", "F32", "[2]", "[4,12]") "}", 12,
       "overlap"},
      {"{" ARRAY("a", "F32", "[1]", "[0,4]") "," ARRAY("a", "F32", "[1]", "[4,8]") "}", 8,
       "two arrays"},
      {"{" ARRAY("a", "F33", "[2]", "[0,8]") "}", 8, "dtype \"F33\""},
      {"{" ARRAY("a", "BOOL", "[8]", "[0,8]") "}", 8, "dtype \"BOOL\""},
      {"{" ARRAY("a", "F32", "[-2]", "[0,8]") "}", 8, "dimension"},
      {"{" ARRAY("a", "F32", "[1e300]", "[0,8]") "}", 8, "dimension"},
      {"{" ARRAY("a", "F32", "[1,1,1,1,1,1,2]", "[0,8]") "}", 8, "more than 6 dimensions"},
      {"{" ARRAY("a", "F32", "2", "[0,8]") "}", 8, "shape"},
      {"{" ARRAY("a", "F32", "[4294967296,4294967296,4294967296]", "[0,8]") "}", 8, "its shape"},
      {"{" ARRAY("", "F32", "[2]", "[0,8]") "}", 8, "name of 0 bytes"},
      {"{" ARRAY("a\\nb", "F32", "[2]", "[0,8]") "}", 8, "control characters"},
      {"{" ARRAY("a\\u0000b", "F32", "[2]", "[0,8]") "}", 8, "zero character"},
      {"{\"a\":[]}", 0, "is no object"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8, "foreign"},
      {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
       "doubled"},
      {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype"},
      {"{\"__metadata__\":{\"a\":1}}", 0, "more than strings"},
      {"{\"__metadata__\":[]}", 0, "no object"},
      {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "two __metadata__"},
      {"{\"a\":[[[[[[]]]]]]}", 0, "nested deeper"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t file[1024] = {0};
    uint64_t size = strlen(cases[i].header);
    memcpy(file, &size, 8);
    memcpy(file + 8, cases[i].header, size);
    assert_refused(put_file("lying", file, 8 + size + cases[i].data), cases[i].text);
  }
}

/* The lengths that would make a careless reader allocate. */
static void huge_claims(void **state)
{
  (void)state;
  static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 7, UINT64_C(1) << 40, 100000001,
                                     4097};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    uint8_t file[4096] = {0};
    memcpy(file, &lengths[i], 8);
    memset(file + 8, '{', 1);
    assert_refused(put_file("huge", file, sizeof file), "header claims");
  }
  /* many tiny JSON values: the parsed tree would take forty times the text */
  size_t size = 3 << 20;
  char *file = calloc(size, 1);
  uint64_t header = size - 8;
  memcpy(file, &header, 8);
  memcpy(file + 8, "{\"a\":[", 6);
  for (size_t i = 14; i < size; i++) file[i] = i % 2 == 0 ? '0' : ',';
  assert_refused(put_file("values", file, size), "more than 500000 values");
  free(file);
}

static void not_weights(void **state)
{
  (void)state;
  static const struct {
    const char *bytes;
    const char *text;
  } cases[] = {
      {"<!DOCTYPE html><html>404</html>", "web page"},
      {"version https://git-lfs.github.com/spec/v1\noid", "Git LFS pointer"},
      {"{\"a\": 1, \"b\": [1, 2, 3]}", "JSON text"},
      {"\x1f\x8b\x08 compressed bytes", "gzip"},
      {"id,label\n1,2\n3,4\n5,6\n", "not a weight file"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_refused(put_file("foreign", cases[i].bytes, strlen(cases[i].bytes)), cases[i].text);
  assert_refused(put_file("empty", "", 0), "is empty");
  assert_refused(in_test_folder("absent"), "No such file");
  assert_refused(test_folder, "not a regular file");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type),    cmocka_unit_test(equal_sets_give_equal_files),
      cmocka_unit_test(lying_headers), cmocka_unit_test(bad_metadata_is_not_written),
      cmocka_unit_test(huge_claims),   cmocka_unit_test(not_weights),
  };
  return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
