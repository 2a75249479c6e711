/* Proves that records are found where they lie, that a damaged length is never believed, and that a
 * file cut anywhere is damaged. Expected: cases B02 (TensorFlow's offsets for its reference file R)
 * and B30. Hostile: lengths near 2^64 with good checksums, every cut and every flipped bit of R. */
#include "data_testing.h"

#include <fcntl.h>

#include "data/crc32c.h"

static const char R[] = "0300000000000000b099490e6162636e57f1210500000000000000eab2043e6465666768"
                        "8055627d020000000000000078270b34696ab7d50607";

/* Reads until the end or an error; returns the good records before it. */
static int read_all(const tp__source *source, uint64_t limit, tp__span *last, tp_status *status,
                    tp_error *err)
{
  tp__record_reader reader = {0};
  tp__record_reader_start(&reader, source, limit);
  int good = 0;
  bool end = false;
  while ((*status = tp__record_next(&reader, last, &end, err)) == TP_OK && !end) good++;
  tp__record_reader_free(&reader);
  return good;
}

static void reference_file(void **state)
{
  (void)state;
  static const struct {
    uint64_t offset;
    const char *payload;
  } wanted[] = {{0, "abc"}, {19, "defgh"}, {40, "ij"}};
  tp_error err;
  tp__source source;
  assert_ok(tp__source_open(&source, TP_SOURCE_ROOT "/tests/fixtures/B02_good.tfrec", &err));
  tp__record_reader reader = {0};
  tp__record_reader_start(&reader, &source, TP__RECORD_MAX);
  tp__span span;
  bool end = false;
  for (int i = 0; i < 3; i++) {
    assert_ok(tp__record_next(&reader, &span, &end, &err));
    assert_false(end);
    assert_int_equal(span.number, i);
    assert_int_equal(span.offset, wanted[i].offset);
    assert_int_equal(span.payload_offset, wanted[i].offset + 12);
    assert_int_equal(span.size, strlen(wanted[i].payload));
    assert_memory_equal(span.payload, wanted[i].payload, span.size);
  }
  assert_ok(tp__record_next(&reader, &span, &end, &err));
  assert_true(end);
  tp__record_reader_free(&reader);
  tp__source_close(&source);
}

static void flipped_data(void **state)
{
  (void)state;
  tp_error err;
  tp__source source;
  tp__span span;
  tp_status status;
  assert_ok(tp__source_open(&source, TP_SOURCE_ROOT "/tests/fixtures/B02_flip31.tfrec", &err));
  assert_int_equal(read_all(&source, TP__RECORD_MAX, &span, &status, &err), 1);
  assert_int_equal(status, TP_ERR_DATA);
  assert_non_null(strstr(err.text, "data checksum differs"));
  assert_non_null(strstr(err.text, "from byte 31"));
  assert_int_equal(span.number, 1);
  assert_int_equal(span.offset, 19);
  /* The length held, so the reader goes on behind the damaged record. */
  tp__record_reader reader = {0};
  tp__record_reader_start(&reader, &source, TP__RECORD_MAX);
  bool end;
  assert_ok(tp__record_next(&reader, &span, &end, &err));
  assert_fails(tp__record_next(&reader, &span, &end, &err), TP_ERR_DATA, "data checksum");
  assert_ok(tp__record_next(&reader, &span, &end, &err));
  assert_int_equal(span.number, 2);
  assert_memory_equal(span.payload, "ij", 2);
  tp__record_reader_free(&reader);
  tp__source_close(&source);
}

static void flipped_length(void **state)
{
  (void)state;
  tp_error err;
  tp__span span;
  tp_status status;
  uint8_t data[64];
  size_t size = from_hex(R, data);
  data[19] ^= 1;
  tp__source source = tp__source_memory(data, size);
  assert_int_equal(read_all(&source, TP__RECORD_MAX, &span, &status, &err), 1);
  assert_int_equal(status, TP_ERR_DATA);
  assert_non_null(strstr(err.text, "length checksum differs"));
  assert_int_equal(span.offset, 19);
  /* Only a search leads on: the next place where a header holds is byte 40. */
  tp__record_reader reader = {0};
  tp__record_reader_start(&reader, &source, TP__RECORD_MAX);
  bool end;
  assert_ok(tp__record_next(&reader, &span, &end, &err));
  assert_fails(tp__record_next(&reader, &span, &end, &err), TP_ERR_DATA, "length checksum");
  assert_int_equal(reader.offset, span.offset);
  assert_ok(tp__record_resync(&reader, &err));
  assert_ok(tp__record_next(&reader, &span, &end, &err));
  assert_int_equal(span.offset, 40);
  assert_memory_equal(span.payload, "ij", 2);
  assert_ok(tp__record_next(&reader, &span, &end, &err));
  assert_true(end);
  tp__record_reader_free(&reader);
}

/* A good checksum over a bad length: it is honest but does not fit, or is over the limit. */
static void impossible_lengths(void **state)
{
  (void)state;
  static const struct {
    uint64_t length;
    const char *text;
  } cases[] = {
      {UINT64_MAX, "over the limit"}, {UINT64_MAX - 15, "over the limit"},
      {1ull << 63, "over the limit"}, {(1ull << 30) + 1, "over the limit"},
      {1ull << 30, "is cut short"},   {45, "is cut short"},
      {43, "the record needs 59"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint8_t data[58];
    from_hex(R, data);
    for (int k = 0; k < 8; k++) data[k] = (uint8_t)(cases[i].length >> 8 * k);
    uint32_t crc = tp__crc32c_masked(data, 8);
    for (int k = 0; k < 4; k++) data[8 + k] = (uint8_t)(crc >> 8 * k);
    tp_error err;
    tp__span span;
    tp_status status;
    tp__source source = tp__source_memory(data, sizeof data);
    assert_int_equal(read_all(&source, TP__RECORD_MAX, &span, &status, &err), 0);
    assert_int_equal(status, TP_ERR_DATA);
    if (strstr(err.text, cases[i].text) == NULL) fail_msg("%zu: %s", i, err.text);
  }
}

static void cut_anywhere(void **state)
{
  box *b = *state;
  uint8_t data[64];
  size_t size = from_hex(R, data);
  for (size_t cut = 1; cut < size; cut++) {
    tp__source source;
    tp__span span;
    tp_status status;
    const char *path = box_file(b, "cut", data, cut);
    tp_error err;
    assert_ok(tp__source_open(&source, path, &err));
    int good = read_all(&source, TP__RECORD_MAX, &span, &status, &b->err);
    tp__source_close(&source);
    assert_int_equal(good, cut < 19 ? 0 : cut < 40 ? 1 : 2);
    bool between = cut == 19 || cut == 40; /* whole records: nothing can tell */
    assert_int_equal(status, between ? TP_OK : TP_ERR_DATA);
    if (!between) assert_non_null(strstr(b->err.text, "cut short"));
  }
}

static void every_flipped_bit_is_noticed(void **state)
{
  (void)state;
  uint8_t data[64];
  size_t size = from_hex(R, data);
  for (size_t bit = 0; bit < size * 8; bit++) {
    tp_error err;
    tp__span span;
    tp_status status;
    data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    tp__source source = tp__source_memory(data, size);
    int good = read_all(&source, TP__RECORD_MAX, &span, &status, &err);
    data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    assert_int_equal(status, TP_ERR_DATA);
    assert_int_equal(good, bit / 8 < 19 ? 0 : bit / 8 < 40 ? 1 : 2);
  }
}

/* Records longer and shorter than the reader's block, through a file; what is written is what is
 * read. */
static void sizes_around_the_block(void **state)
{
  box *b = *state;
  static const size_t sizes[] = {0, 1, 262131, 262132, 262133, 262144, 700001, 5, 300000, 0};
  enum { N = sizeof sizes / sizeof sizes[0] };
  uint8_t *data = malloc(700001);
  for (size_t i = 0; i < 700001; i++) data[i] = (uint8_t)(i * 7 + (i >> 8));
  tp__writer w;
  const char *path = box_path(b, "sizes.tfrec");
  tp_error err;
  assert_ok(tp__writer_open(&w, path, &err));
  for (int i = 0; i < N; i++)
    assert_ok(tp__record_write(&w, data + i, sizes[i] - (sizes[i] > 9 ? 9 : 0), &err));
  assert_ok(tp__writer_commit(&w, &err));
  tp__source source;
  assert_ok(tp__source_open(&source, path, &err));
  tp__record_reader reader = {0};
  tp__record_reader_start(&reader, &source, TP__RECORD_MAX);
  tp__span span;
  bool end;
  for (int i = 0; i < N; i++) {
    assert_ok(tp__record_next(&reader, &span, &end, &err));
    assert_false(end);
    assert_int_equal(span.size, sizes[i] - (sizes[i] > 9 ? 9 : 0));
    assert_memory_equal(span.payload, data + i, span.size);
  }
  assert_ok(tp__record_next(&reader, &span, &end, &err));
  assert_true(end);
  tp__record_reader_free(&reader);
  tp__source_close(&source);
  free(data);
}

/* Case B30 without 2 GiB of disk: R at byte 2^31 + 5 of a file with a hole, its last record
 * damaged. */
static void beyond_two_gigabytes(void **state)
{
  box *b = *state;
  uint8_t data[64];
  size_t size = from_hex(R, data);
  data[size - 5] ^= 1;
  const uint64_t start = (UINT64_C(1) << 31) + 5;
  const char *path = box_file(b, "big.tfrec", "", 0);
  int fd = open(path, O_WRONLY);
  assert_int_equal(pwrite(fd, data, size, (off_t)start), size);
  close(fd);
  tp_error err;
  tp__source source;
  assert_ok(tp__source_open(&source, path, &err));
  tp__record_reader reader = {0};
  tp__record_reader_start(&reader, &source, TP__RECORD_MAX);
  reader.offset = start;
  reader.number = 2197;
  tp__span span;
  bool end;
  assert_ok(tp__record_next(&reader, &span, &end, &err));
  assert_memory_equal(span.payload, "abc", 3);
  assert_ok(tp__record_next(&reader, &span, &end, &err));
  assert_fails(tp__record_next(&reader, &span, &end, &err), TP_ERR_DATA, "from byte 2147483705");
  char where[64];
  tp__span_where(&span, where, sizeof where);
  assert_string_equal(where, "record 2199 at byte 2147483693");
  tp__record_reader_free(&reader);
  tp__source_close(&source);
}

static void foreign_files(void **state)
{
  box *b = *state;
  static const struct {
    const char *bytes, *text;
  } cases[] = {
      {"<!DOCTYPE html><html>404</html>", "an HTML page"},
      {"\n <HTML>", "an HTML page"},
      {"\xff\xd8\xff\xe0....JFIF......", "a JPEG photo"},
      {"\x89PNG\r\n\x1a\n........", "a PNG picture"},
      {"PK\x03\x04..............", "a ZIP archive"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:12", "a Git LFS pointer"},
      {"\x1f\x8b\x08..............", "gzip-compressed"},
      {"\x78\x9c...............", "zlib-compressed"},
      {"path,label\n", "text"},
      {"\n", "text"},
      {"\x01\x02\x03\x04....\x05....", "not a TFRecord file, or damaged"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp__span span;
    tp_status status;
    tp__source source = tp__source_memory(cases[i].bytes, strlen(cases[i].bytes));
    assert_int_equal(read_all(&source, TP__RECORD_MAX, &span, &status, &b->err), 0);
    assert_int_equal(status, TP_ERR_DATA);
    if (strstr(b->err.text, cases[i].text) == NULL) fail_msg("%zu: %s", i, b->err.text);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reference_file), cmocka_unit_test(flipped_data),
      cmocka_unit_test(flipped_length), cmocka_unit_test(impossible_lengths),
      box_test(cut_anywhere),           cmocka_unit_test(every_flipped_bit_is_noticed),
      box_test(sizes_around_the_block), box_test(beyond_two_gigabytes),
      box_test(foreign_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
