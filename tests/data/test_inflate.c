/* Proves that compressed shards are recognised and give the records of the plain one, and that a
 * cut or damaged stream is an error, never a short success. Expected: case B03. Hostile: every cut
 * of a gzip file, a stream that grows a thousandfold, a plain shard that starts like gzip. */
#include "data_testing.h"

#include <zlib.h>

#include "data/inflate.h"

static const char R[] = "0300000000000000b099490e6162636e57f1210500000000000000eab2043e6465666768"
                        "8055627d020000000000000078270b34696ab7d50607";

/* One gzip (window 15 + 16) or zlib (15) member. */
static void compress_member(int window, const void *data, size_t size, tp__buffer *out)
{
  tp_error err;
  z_stream z = {0};
  assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
  size_t room = deflateBound(&z, size);
  assert_ok(tp__buffer_reserve(out, out->size + room, &err));
  z.next_in = (Bytef *)data;
  z.avail_in = (uInt)size;
  z.next_out = out->data + out->size;
  z.avail_out = (uInt)room;
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  out->size += room - z.avail_out;
  deflateEnd(&z);
}

static void assert_is_r(const tp__buffer *out)
{
  uint8_t wanted[64];
  size_t size = from_hex(R, wanted);
  assert_int_equal(out->size, size);
  assert_memory_equal(out->data, wanted, size);
}

static void fixtures(void **state)
{
  (void)state;
  static const struct {
    const char *name, *fault;
    tp__compression compression;
  } cases[] = {
      {"B03_gzip.tfrec", NULL, TP__GZIP},
      {"B03_zlib.tfrec", NULL, TP__ZLIB},
      {"B03_gzip_half.tfrec", "cut short after 32 bytes", TP__GZIP},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    tp_error err;
    tp__source source;
    char path[600];
    uint8_t start[12];
    snprintf(path, sizeof path, TP_SOURCE_ROOT "/tests/fixtures/%s", cases[i].name);
    assert_ok(tp__source_open(&source, path, &err));
    assert_ok(tp__source_read(&source, 0, start, sizeof start, &err));
    assert_int_equal(tp__compression_of(start, sizeof start), cases[i].compression);
    tp__buffer out;
    tp__buffer_init(&out, 1000);
    if (cases[i].fault != NULL) {
      assert_fails(tp__inflate(&source, &out, &err), TP_ERR_DATA, cases[i].fault);
    } else {
      assert_ok(tp__inflate(&source, &out, &err));
      assert_is_r(&out);
    }
    tp__buffer_free(&out);
    tp__source_close(&source);
  }
}

static void several_members(void **state)
{
  (void)state;
  tp_error err;
  uint8_t data[64];
  size_t size = from_hex(R, data);
  static const int windows[] = {15 + 16, 15};
  for (int i = 0; i < 2; i++) {
    tp__buffer packed, out;
    tp__buffer_init(&packed, 1000);
    tp__buffer_init(&out, 1000);
    compress_member(windows[i], data, 25, &packed);
    compress_member(windows[i], data + 25, 0, &packed);
    compress_member(windows[i], data + 25, size - 25, &packed);
    tp__source source = tp__source_memory(packed.data, packed.size);
    assert_ok(tp__inflate(&source, &out, &err));
    assert_is_r(&out);
    out.size = 0;
    assert_ok(tp__buffer_add(&packed, "junk", 4, &err));
    source = tp__source_memory(packed.data, packed.size);
    assert_fails(tp__inflate(&source, &out, &err), TP_ERR_DATA, "is damaged near byte");
    tp__buffer_free(&packed);
    tp__buffer_free(&out);
  }
}

static void cut_anywhere(void **state)
{
  (void)state;
  tp_error err;
  uint8_t *data = calloc(1, 100000);
  for (int i = 0; i < 100000; i++) data[i] = (uint8_t)((unsigned)i * 2654435761u >> 24 & 15);
  tp__buffer packed, out;
  tp__buffer_init(&packed, 200000);
  tp__buffer_init(&out, 200000);
  compress_member(15 + 16, data, 100000, &packed);
  for (size_t cut = 1; cut < packed.size; cut += cut < 40 || packed.size - cut < 40 ? 1 : 997) {
    out.size = 0;
    tp__source source = tp__source_memory(packed.data, cut);
    assert_fails(tp__inflate(&source, &out, &err), TP_ERR_DATA, "cut short");
  }
  packed.data[packed.size / 2] ^= 16;
  out.size = 0;
  tp__source source = tp__source_memory(packed.data, packed.size);
  assert_fails(tp__inflate(&source, &out, &err), TP_ERR_DATA, "is damaged near byte");
  tp__buffer_free(&packed);
  tp__buffer_free(&out);
  free(data);
}

static void limited(void **state)
{
  (void)state;
  tp_error err;
  uint8_t *zeros = calloc(1, 10000000);
  tp__buffer packed, out;
  tp__buffer_init(&packed, 20000000);
  tp__buffer_init(&out, 1000000);
  compress_member(15 + 16, zeros, 10000000, &packed);
  assert_in_range(packed.size, 1, 20000);
  tp__source source = tp__source_memory(packed.data, packed.size);
  assert_fails(tp__inflate(&source, &out, &err), TP_ERR_DATA, "limit of 1000000 bytes");
  assert_in_range(out.capacity, 1, 1000000);
  tp__buffer_free(&packed);
  tp__buffer_free(&out);
  free(zeros);
}

/* A first record of 0x088b1f bytes puts gzip's three magic bytes at the start of a plain shard; its
 * checksum tells. */
static void plain_that_starts_like_gzip(void **state)
{
  (void)state;
  uint8_t *payload = calloc(1, 0x088b1f);
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  frame(&bytes, payload, 0x088b1f);
  assert_memory_equal(bytes.data, "\x1f\x8b\x08", 3);
  assert_int_equal(tp__compression_of(bytes.data, 12), TP__PLAIN);
  bytes.data[9] ^= 1;
  assert_int_equal(tp__compression_of(bytes.data, 12), TP__GZIP);
  tp__buffer_free(&bytes);
  free(payload);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fixtures),
      cmocka_unit_test(several_members),
      cmocka_unit_test(cut_anywhere),
      cmocka_unit_test(limited),
      cmocka_unit_test(plain_that_starts_like_gzip),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
