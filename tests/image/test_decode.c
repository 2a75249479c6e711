/* Proves that whole pictures decode, and that everything else is refused in words that name the
 * fault: cases B08 and B09. Expected numbers: the list of cases (obtained with TensorFlow); PNG and
 * EXIF from tests/fixtures/image_ref.npz by tests/ref/image_ref.py (TensorFlow 2.21, Pillow).
 * Hostile cases: a header of 65500 x 65500, every file cut at every length and with every byte
 * changed. */
#include "../testing.h"

#include <stdio.h>

#include <jpeglib.h>
#include <zlib.h>

#include "image/image.h"
#include "npz.h"

static tp__buffer read_fixture(const char *name)
{
  tp_error err = {0};
  tp__buffer b;
  char path[1024];
  snprintf(path, sizeof path, "%s/tests/fixtures/%s", TP_SOURCE_ROOT, name);
  tp__buffer_init(&b, 1 << 20);
  assert_ok(tp__file_read(path, &b, &err));
  return b;
}

static void refusals(void **state)
{
  (void)state;
  static const struct {
    const char *file, *words;
  } cases[] = {{"B08_one_frame.gif.jpg", "GIF"}, {"B08_two_frames.gif.jpg", "GIF"},
               {"B08_half.jpg", "cut short"},    {"B08_noEOI.jpg", "cut short"},
               {"B08_error_page.jpg", "HTML"},   {"B08_huge_header.jpg", "65500 x 65500"}};
  tp_error err = {0};
  tp__picture p = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tp__buffer b = read_fixture(cases[i].file);
    assert_fails(tp__image_decode(b.data, b.size, NULL, &p, &err), TP_ERR_DATA, cases[i].words);
    tp__buffer_free(&b);
  }
  uint64_t peak = 0;
  (void)tp__resident_bytes(&peak);
  assert_true(p.rgb.capacity < 1000000 &&
              peak < 200000000); /* nothing was allocated for the huge one */
  assert_fails(tp__image_decode((const uint8_t *)"", 0, NULL, &p, &err), TP_ERR_DATA, "empty");
  assert_fails(tp__image_decode((const uint8_t *)"hello", 5, NULL, &p, &err), TP_ERR_DATA,
               "no known format");
  tp__buffer_free(&p.rgb);
}

static void formats_by_content(void **state)
{
  (void)state;
  static const struct {
    const char *bytes;
    size_t size;
    tp__image_format format;
  } cases[] = {{"", 0, TP__FORMAT_EMPTY},
               {"\xff\xd8\xff", 3, TP__FORMAT_JPEG},
               {"\x89PNG\r\n\x1a\n", 8, TP__FORMAT_PNG},
               {"GIF87a", 6, TP__FORMAT_GIF},
               {"RIFF....WEBPVP8 ", 16, TP__FORMAT_WEBP},
               {"RIFF....WAVE", 12, TP__FORMAT_UNKNOWN},
               {"BM", 2, TP__FORMAT_BMP},
               {"II*\0", 4, TP__FORMAT_TIFF},
               {"MM\0*", 4, TP__FORMAT_TIFF},
               {"\0\0\0 ftypavif", 12, TP__FORMAT_JPEG_XL_OR_AVIF},
               {"\xff\x0a", 2, TP__FORMAT_JPEG_XL_OR_AVIF},
               {" \n<!DOCTYPE html>", 17, TP__FORMAT_HTML},
               {"\xef\xbb\xbf<HTML", 8, TP__FORMAT_HTML},
               {"<svg", 4, TP__FORMAT_UNKNOWN},
               {"\xff", 1, TP__FORMAT_UNKNOWN}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tp__image_format f = tp__image_format_of((const uint8_t *)cases[i].bytes, cases[i].size);
    if (f != cases[i].format) fail_msg("case %zu: %s", i, tp__image_format_name(f));
  }
}

/* The same coefficients as progressive: libjpeg's transcoding interface, as jpegtran uses it. */
static tp__buffer as_progressive(const tp__buffer *in)
{
  struct jpeg_decompress_struct from;
  struct jpeg_compress_struct to;
  struct jpeg_error_mgr e1, e2;
  unsigned char *data = NULL;
  unsigned long size = 0;
  from.err = jpeg_std_error(&e1);
  to.err = jpeg_std_error(&e2);
  jpeg_create_decompress(&from);
  jpeg_create_compress(&to);
  jpeg_mem_src(&from, in->data, in->size);
  jpeg_mem_dest(&to, &data, &size);
  jpeg_read_header(&from, TRUE);
  jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&from);
  jpeg_copy_critical_parameters(&from, &to);
  jpeg_simple_progression(&to);
  jpeg_write_coefficients(&to, coefficients);
  jpeg_finish_compress(&to);
  jpeg_destroy_compress(&to);
  jpeg_finish_decompress(&from);
  jpeg_destroy_decompress(&from);
  return (tp__buffer){.data = data, .size = size, .capacity = size, .max = size};
}

static void progressive_and_trailing_junk(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__picture whole = {0}, other = {0};
  tp__buffer b = read_fixture("B08_whole.jpg"), progressive = as_progressive(&b);
  assert_ok(tp__image_decode(b.data, b.size, NULL, &whole, &err));
  assert_ok(tp__image_decode(progressive.data, progressive.size, NULL, &other, &err));
  assert_int_equal(whole.rgb.size, other.rgb.size);
  assert_memory_equal(whole.rgb.data, other.rgb.data, whole.rgb.size);
  assert_ok(tp__buffer_add(&b, "junk after the end marker", 25, &err));
  assert_ok(tp__image_decode(b.data, b.size, NULL, &other, &err));
  assert_memory_equal(whole.rgb.data, other.rgb.data, whole.rgb.size);
  tp__buffer_free(&whole.rgb);
  tp__buffer_free(&other.rgb);
  tp__buffer_free(&progressive);
  tp__buffer_free(&b);
}

/* A small file that makes the decoder go over the picture again and again. */
static void endless_scans(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__picture p = {0};
  tp__buffer b = read_fixture("B08_whole.jpg"), progressive = as_progressive(&b), many;
  size_t last = progressive.size - 2;
  while (memcmp(progressive.data + last, "\xff\xda", 2) != 0) last--;
  size_t scan = progressive.size - 2 - last;
  tp__buffer_init(&many, 1 << 22);
  assert_ok(tp__buffer_add(&many, progressive.data, last, &err));
  for (int i = 0; i < 600; i++)
    assert_ok(tp__buffer_add(&many, progressive.data + last, scan, &err));
  assert_ok(tp__buffer_add(&many, "\xff\xd9", 2, &err));
  assert_fails(tp__image_decode(many.data, many.size, NULL, &p, &err), TP_ERR_DATA, "scans");
  tp__buffer_free(&many);
  tp__buffer_free(&progressive);
  tp__buffer_free(&b);
  tp__buffer_free(&p.rgb);
}

/* A PNG header alone, with any size; its checksum is right. */
static void wide_png(void **state)
{
  (void)state;
  static const struct {
    uint8_t size[8];
    const char *words;
  } cases[] = {{{0x00, 0x01, 0x00, 0x00, 0, 0, 0, 1}, "65536 x 1"},
               {{0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff}, "overflow"}};
  for (size_t i = 0; i < 2; i++) {
    tp_error err = {0};
    tp__picture p = {0};
    uint8_t png[8 + 25 + 12] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    memcpy(png + 16, cases[i].size, 8);
    memcpy(png + 24, "\x08\x02\0\0", 5);
    uint32_t crc = (uint32_t)crc32(0, png + 12, 17);
    for (int k = 0; k < 4; k++) png[29 + k] = (uint8_t)(crc >> (24 - 8 * k));
    memcpy(png + 33, "\0\0\0\0IEND\xae\x42\x60\x82", 12);
    assert_fails(tp__image_decode(png, sizeof png, NULL, &p, &err), TP_ERR_DATA, cases[i].words);
    assert_true(p.rgb.capacity == 0);
  }
}

static void png_alpha_is_dropped(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__picture p = {0};
  tp__buffer b = read_fixture("B08_rgba.png.jpg");
  assert_ok(tp__image_decode(b.data, b.size, NULL, &p, &err));
  for (size_t i = 0; i < p.rgb.size; i += 3) {
    assert_int_equal(p.rgb.data[i], 10);
    assert_int_equal(p.rgb.data[i + 1], 20);
    assert_int_equal(p.rgb.data[i + 2], 30);
  }
  tp__decode_options small = {.max_pixels = 1};
  assert_fails(tp__image_decode(b.data, b.size, &small, &p, &err), TP_ERR_DATA,
               "limit of 1 pixels");
  tp__buffer_free(&p.rgb);
  tp__buffer_free(&b);
}

static void near(const tp__picture *p, int y, int x, int r, int g, int b)
{
  const uint8_t *at = p->rgb.data + (y * p->width + x) * 3;
  assert_true(abs(at[0] - r) <= 2 && abs(at[1] - g) <= 2 && abs(at[2] - b) <= 2);
}

static void case_b09(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__picture p = {0};
  tp__buffer b = read_fixture("B09_exif6.jpg");
  int height = 0, width = 0, orientation = 0;
  assert_ok(tp__image_header(b.data, b.size, &height, &width, &orientation, &err));
  assert_true(height == 20 && width == 40 && orientation == 6);
  assert_ok(tp__image_decode(b.data, b.size, NULL, &p, &err));
  assert_true(p.height == 20 && p.width == 40);
  near(&p, 10, 2, 254, 0, 0);
  near(&p, 10, 37, 0, 0, 254);
  tp__decode_options upright = {.exif_rotate = true};
  assert_ok(tp__image_decode(b.data, b.size, &upright, &p, &err));
  assert_true(p.height == 40 && p.width == 20);
  near(&p, 2, 10, 254, 0, 0);
  near(&p, 37, 10, 0, 0, 254);
  tp__buffer_free(&p.rgb);
  tp__buffer_free(&b);
}

/* Decodes the npz's file `name`:file and compares with `name`:rgb. */
static void compare(npz *z, const char *name, const tp__decode_options *options)
{
  tp_error err = {0};
  tp__picture p = {0};
  char key[32];
  npz_shape file, shape;
  snprintf(key, sizeof key, "%s:file", name);
  const uint8_t *bytes = npz_u1(z, key, &file);
  snprintf(key, sizeof key, "%s:rgb", name);
  const uint8_t *expected = npz_u1(z, key, &shape);
  tp_status status = tp__image_decode(bytes, file.count, options, &p, &err);
  if (status != TP_OK) fail_msg("%s: %s", name, err.text);
  assert_true((size_t)p.height == shape.size[0] && (size_t)p.width == shape.size[1]);
  if (memcmp(p.rgb.data, expected, shape.count) != 0) fail_msg("%s: pixels differ", name);
  tp__buffer_free(&p.rgb);
}

static void png_of_every_kind(void **state)
{
  (void)state;
  npz *z = npz_open(TP_SOURCE_ROOT "/tests/fixtures/image_ref.npz");
  int count = *npz_i4(z, "png:count", NULL);
  assert_true(count >= 13);
  for (int k = 0; k < count; k++) {
    char name[16];
    snprintf(name, sizeof name, "png%d", k);
    compare(z, name, NULL);
  }
  npz_close(z);
}

static void all_orientations(void **state)
{
  (void)state;
  npz *z = npz_open(TP_SOURCE_ROOT "/tests/fixtures/image_ref.npz");
  const tp__decode_options upright = {.exif_rotate = true};
  for (int o = 1; o <= 8; o++) {
    char name[16], key[32];
    snprintf(name, sizeof name, "turn%d", o);
    compare(z, name, &upright);
    npz_shape shape;
    tp_error err = {0};
    int orientation = 0;
    snprintf(key, sizeof key, "turn%d:file", o);
    const uint8_t *bytes = npz_u1(z, key, &shape);
    assert_ok(tp__image_header(bytes, shape.count, NULL, NULL, &orientation, &err));
    assert_int_equal(orientation, o);
  }
  npz_close(z);
}

/* A result or a refusal with words, never a crash; a cut file is never a success. */
static void torture(const uint8_t *bytes, size_t size, bool cut_fails)
{
  tp_error err = {0};
  tp__picture p = {0};
  const tp__decode_options options = {.exif_rotate = true, .max_pixels = 1 << 20};
  uint8_t *copy = malloc(size);
  assert_non_null(copy);
  for (size_t n = 0; n < size; n++) {
    uint8_t *exact = malloc(n + 1); /* as large as the data, for the sanitizer */
    memcpy(exact + 1, bytes, n);
    tp_status status = tp__image_decode(exact + 1, n, &options, &p, &err);
    if (status == TP_OK && cut_fails) fail_msg("cut to %zu of %zu bytes, but decoded", n, size);
    free(exact);
  }
  for (size_t i = 0; i < size; i++) {
    memcpy(copy, bytes, size);
    for (int change = 0; change < 3; change++) {
      copy[i] = change == 0 ? (uint8_t)(bytes[i] ^ 1) : change == 1 ? 0xff : 0;
      err.text[0] = '\0';
      tp_status status = tp__image_decode(copy, size, &options, &p, &err);
      assert_true(status == TP_OK || (status == TP_ERR_DATA && err.text[0] != '\0'));
    }
  }
  free(copy);
  tp__buffer_free(&p.rgb);
}

static void damaged_everywhere(void **state)
{
  (void)state;
  static const char *const files[] = {"B08_rgba.png.jpg", "B09_exif6.jpg", "B08_whole.jpg"};
  for (size_t i = 0; i < 3; i++) {
    tp__buffer b = read_fixture(files[i]);
    torture(b.data, b.size, true);
    if (i == 2) {
      tp__buffer progressive = as_progressive(&b);
      torture(progressive.data, progressive.size, true);
      tp__buffer_free(&progressive);
    }
    tp__buffer_free(&b);
  }
}

/* What is written can be read, with the size given and pixels near those given. */
static void encodes(void **state)
{
  (void)state;
  tp_error err = {0};
  enum { h = 33, w = 50 };
  uint8_t rgb[h * w * 3];
  for (int i = 0; i < h * w * 3; i++) rgb[i] = (uint8_t)(i / 3 % w * 5);
  tp__buffer out;
  tp__picture p = {0};
  tp__buffer_init(&out, 1 << 20);
  assert_ok(tp__buffer_add(&out, "before", 6, &err));
  assert_ok(tp__image_encode_jpeg(rgb, h, w, 95, &out, &err));
  assert_memory_equal(out.data, "before", 6);
  assert_ok(tp__image_decode(out.data + 6, out.size - 6, NULL, &p, &err));
  assert_true(p.height == h && p.width == w);
  for (int i = 0; i < h * w * 3; i++) assert_true(abs(p.rgb.data[i] - rgb[i]) <= 12);
  tp__buffer_free(&p.rgb);
  tp__buffer_free(&out);
  tp__buffer_init(&out, 100);
  assert_fails(tp__image_encode_jpeg(rgb, h, w, 95, &out, &err), TP_ERR_DATA, "limit of 100");
  assert_int_equal(out.size, 0);
  assert_fails(tp__image_encode_jpeg(rgb, h, w, 101, &out, &err), TP_ERR_USAGE, "101");
  assert_fails(tp__image_encode_jpeg(rgb, 70000, w, 90, &out, &err), TP_ERR_USAGE, "70000");
  tp__buffer_free(&out);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refusals),
      cmocka_unit_test(formats_by_content),
      cmocka_unit_test(progressive_and_trailing_junk),
      cmocka_unit_test(endless_scans),
      cmocka_unit_test(wide_png),
      cmocka_unit_test(png_alpha_is_dropped),
      cmocka_unit_test(case_b09),
      cmocka_unit_test(png_of_every_kind),
      cmocka_unit_test(all_orientations),
      cmocka_unit_test(damaged_everywhere),
      cmocka_unit_test(encodes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
