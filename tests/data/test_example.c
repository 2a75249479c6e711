/* Proves that tf.train.Example is read as TensorFlow reads it, that wrong features are named with
 * what is wanted and what was found, and that image bytes are located in the payload itself.
 * Expected: cases B04 and B05; the hex texts of B04 and the merged forms were serialised by
 * TensorFlow 2.21, whose protobuf reader gave the values. Hostile: every cut and every changed byte
 * of an Example, a message that would grow thirtyfold in memory. */
#include "data_testing.h"

static const uint8_t *parse_hex(tp__example *e, const char *hex, uint8_t *bytes, tp_error *err)
{
  size_t size = from_hex(hex, bytes);
  assert_int_equal(tp__example_parse(e, bytes, size, err), TP_OK);
  return bytes;
}

static void good_values(void **state)
{
  (void)state;
  static const struct {
    const char *what, *hex;
    int64_t label;
  } cases[] = {
      {"packed", "0a200a0e0a05696d61676512050a030a01580a0e0a05636c61737312051a030a0167", 103},
      {"unpacked", "0a1f0a0e0a05696d61676512050a030a01580a0d0a05636c61737312041a020867", 103},
      {"packed -1",
       "0a290a0e0a05696d61676512050a030a01580a170a05636c617373120e1a0c0a0affffffffffffffffff01",
       -1},
      {"unpacked -1",
       "0a280a0e0a05696d61676512050a030a01580a160a05636c617373120d1a0b08ffffffffffffffffff01", -1},
      {"packed 2^31",
       "0a240a0e0a05696d61676512050a030a01580a120a05636c61737312091a070a058080808008", 2147483648},
      {"unpacked 2^31",
       "0a230a0e0a05696d61676512050a030a01580a110a05636c61737312081a06088080808008", 2147483648},
      {"class first", "0a200a0e0a05636c61737312051a030a01670a0e0a05696d61676512050a030a0158", 103},
      {"two Features", "0a100a0e0a05696d61676512050a030a01580a100a0e0a05636c61737312051a030a0167",
       103},
      {"unknown key and field",
       "0a370a0e0a05636c61737312051a030a01030a150a056578747261120c120a0a080000803f000000400a0e0a056"
       "96d61676512050a030a01587a020102",
       3},
      {"key twice",
       "0a300a0e0a05696d61676512050a030a01580a0e0a05636c61737312051a030a01030a0e0a05636c6173731205"
       "1a030a0107",
       7},
      {"key twice, in two Features",
       "0a200a0e0a05696d61676512050a030a01580a0e0a05636c61737312051a030a01030a100a0e0a05636c617373"
       "12051a030a0107",
       7},
      {"key given twice in one entry",
       "0a270a0e0a05696d61676512050a030a01580a150a056f746865720a05636c61737312051a030a0109", 9},
      {"value before key", "0a200a0e0a05696d61676512050a030a01580a0e12051a030a01090a05636c617373",
       9},
  };
  tp__example e = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp_error err;
    uint8_t bytes[200];
    const uint8_t *image;
    size_t size = 0;
    int64_t label = 0;
    parse_hex(&e, cases[i].hex, bytes, &err);
    assert_ok(tp__example_int64(&e, "class", &label, &err));
    if (label != cases[i].label) fail_msg("%s: %lld", cases[i].what, (long long)label);
    assert_ok(tp__example_bytes(&e, "image", &image, &size, &err));
    assert_int_equal(size, 1);
    assert_int_equal(*image, 'X');
    assert_in_range(image - bytes, 1, sizeof bytes); /* in the payload, no copy */
  }
  tp__example_free(&e);
}

static void wrong_features(void **state)
{
  (void)state;
  static const struct {
    const char *hex, *text;
  } cases[] = {
      {"0a1d0a0b0a05636c61737312021a000a0e0a05696d61676512050a030a0158",
       "feature \"class\": wanted one int64, found a list of 0 int64s"},
      {"0a210a0f0a05636c61737312061a040a0201020a0e0a05696d61676512050a030a0158",
       "feature \"class\": wanted one int64, found a list of 2 int64s"},
      {"0a230a110a05636c617373120812060a04000040400a0e0a05696d61676512050a030a0158",
       "feature \"class\": wanted one int64, found a list of 1 float"},
      {"0a200a0e0a05636c61737312050a030a01330a0e0a05696d61676512050a030a0158",
       "feature \"class\": wanted one int64, found a list of 1 byte string"},
      {"0a100a0e0a05696d61676512050a030a0158",
       "feature \"class\" (wanted: one int64) is missing; the record has: \"image\""},
      {"0a230a0e0a05636c61737312051a030a01030a110a05696d61676512080a060a01580a0159",
       "feature \"image\": wanted one byte string, found a list of 2 byte strings"},
      {"0a1b0a090a05636c61737312000a0e0a05696d61676512050a030a0158",
       "feature \"class\": wanted one int64, found a feature without list"},
      {"0a270a0e0a05696d61676512050a030a01580a150a05636c61737312051a030a010312051a030a0104",
       "feature \"class\": wanted one int64, found a list of 2 int64s"},
      {"0a250a0e0a05696d61676512050a030a01580a130a05636c617373120a1a030a01031a030a0104",
       "feature \"class\": wanted one int64, found a list of 2 int64s"},
      {"0a280a0e0a05696d61676512050a030a01580a160a05636c617373120d12060a04000000001a030a0105",
       "feature \"class\": wanted one int64, found lists of several kinds"},
      {"", "is missing; the record has: none"},
  };
  tp__example e = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp_error err;
    uint8_t bytes[200];
    const uint8_t *image;
    size_t size = 0;
    int64_t label = 0;
    parse_hex(&e, cases[i].hex, bytes, &err);
    tp_status status = tp__example_bytes(&e, "image", &image, &size, &err);
    if (status == TP_OK) status = tp__example_int64(&e, "class", &label, &err);
    if (status != TP_ERR_DATA) fail_msg("%zu: status %d, class %d", i, (int)status, (int)label);
    if (strstr(err.text, cases[i].text) == NULL) fail_msg("%zu: %s", i, err.text);
    assert_null(strchr(err.text, '\n'));
  }
  tp__example_free(&e);
}

/* Equal bytes under several keys: any of the places is right; the bytes of the last key are what
 * counts. */
static void located_bytes(void **state)
{
  (void)state;
  tp_error err;
  tp__example e = {0};
  tp__buffer out;
  tp__buffer_init(&out, 1 << 20);
  uint8_t image[5000];
  for (size_t i = 0; i < sizeof image; i++) image[i] = (uint8_t)(i * 13);
  tp__example_fields f = {.image = image, .image_size = 5000, .label = 1, .id = "a"};
  f.image_feature = "other";
  assert_ok(tp__example_pack(&f, &out, &err));
  image[4999] ^= 1; /* the same size, another last byte */
  f.image_feature = "image";
  assert_ok(tp__example_pack(&f, &out, &err)); /* two Examples in a row are one, merged */
  const uint8_t *found;
  size_t size = 0;
  assert_ok(tp__example_parse(&e, out.data, out.size, &err));
  assert_ok(tp__example_bytes(&e, "image", &found, &size, &err));
  assert_int_equal(size, 5000);
  assert_memory_equal(found, image, size);
  assert_in_range(found - out.data, 5000, out.size);
  tp__example_free(&e);
  tp__buffer_free(&out);
}

static void written_is_read(void **state)
{
  (void)state;
  static const struct {
    const char *image, *id;
    int64_t label;
  } cases[] = {{"jpeg", "abc", 103}, {"", NULL, 0}, {"x", "id 1", -1}, {"y", NULL, INT64_MAX}};
  tp__example e = {0};
  tp__buffer out;
  tp__buffer_init(&out, 1 << 20);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp_error err;
    tp__example_fields f = {.image_feature = "image/encoded",
                            .class_feature = "image/class/label",
                            .id_feature = "name",
                            .image = (const uint8_t *)cases[i].image,
                            .image_size = strlen(cases[i].image),
                            .label = cases[i].label,
                            .id = cases[i].id};
    out.size = 0;
    assert_ok(tp__example_pack(&f, &out, &err));
    assert_ok(tp__example_parse(&e, out.data, out.size, &err));
    const uint8_t *image;
    size_t size = 99;
    assert_ok(tp__example_bytes(&e, "image/encoded", &image, &size, &err));
    assert_int_equal(size, f.image_size);
    assert_memory_equal(image, f.image, size);
    tp__feature id = tp__example_find(&e, "name"),
                label = tp__example_find(&e, "image/class/label");
    assert_int_equal(id.kind, f.id != NULL ? TP__FEATURE_BYTES : TP__FEATURE_MISSING);
    if (f.id != NULL) assert_memory_equal(id.bytes, f.id, strlen(f.id));
    assert_int_equal(label.kind, f.label >= 0 ? TP__FEATURE_INT64 : TP__FEATURE_MISSING);
    if (f.label >= 0) assert_true(label.int64s[0] == f.label);
  }
  tp__example_free(&e);
  tp__buffer_free(&out);
}

static void damaged_messages(void **state)
{
  (void)state;
  uint8_t bytes[200];
  size_t size =
      from_hex("0a370a0e0a05636c61737312051a030a01030a150a056578747261120c120a0a080000803f"
               "000000400a0e0a05696d61676512050a030a01587a020102",
               bytes);
  tp__example e = {0};
  tp_error err;
  int refused = 0;
  for (size_t cut = 1; cut < size; cut++)
    refused += tp__example_parse(&e, bytes, cut, &err) != TP_OK;
  assert_in_range(refused, size - 8, size - 1); /* all but the cuts between fields */
  for (size_t i = 0; i < size; i++)
    for (int change = 1; change < 256; change++) {
      const uint8_t *image;
      size_t image_size;
      bytes[i] ^= (uint8_t)change;
      if (tp__example_parse(&e, bytes, size, &err) == TP_OK &&
          tp__example_bytes(&e, "image", &image, &image_size, &err) != TP_OK)
        assert_int_equal(err.status, TP_ERR_DATA);
      bytes[i] ^= (uint8_t)change;
    }
  tp__example_free(&e);
}

/* 4 MB of empty entries would take more than 100 MB: over the limit of 10 times the payload and 64
 * MB. */
static void memory_is_limited(void **state)
{
  (void)state;
  tp_error err;
  const uint32_t entries = 2000000, inner = entries * 2;
  uint8_t *bytes = calloc(1, inner + 8);
  size_t at = 0;
  bytes[at++] = 0x0a;
  for (uint32_t v = inner; v > 0; v >>= 7) bytes[at++] = (uint8_t)((v & 127) | (v > 127 ? 128 : 0));
  for (uint32_t i = 0; i < entries; i++, at += 2) bytes[at] = 0x0a;
  tp__example e = {0};
  assert_fails(tp__example_parse(&e, bytes, at, &err), TP_ERR_DATA, "no tf.train.Example");
  assert_in_range(e.used, 1, (size_t)(64 << 20) + 10 * at);
  tp__example_free(&e);
  free(bytes);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_values),      cmocka_unit_test(wrong_features),
      cmocka_unit_test(located_bytes),    cmocka_unit_test(written_is_read),
      cmocka_unit_test(damaged_messages), cmocka_unit_test(memory_is_limited),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
