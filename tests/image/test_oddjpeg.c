/* Proves that decoding equals TensorFlow's decode_jpeg(channels=3) bit for bit on 46 odd files from
 * other projects' test suites (damaged, CMYK, progressive, arithmetic, odd sampling, 12 bit, ...),
 * or refuses what it refuses. Expected numbers: ../shared/data/oddjpeg/INDEX.csv, written with
 * TensorFlow 2.21. */
#include "../testing.h"

#include <math.h>

#include "../sha256.h"
#include "image/image.h"

static void digest_of_known_text(void **state)
{
  (void)state;
  char text[65];
  sha256_text((const uint8_t *)"abc", 3, text); /* FIPS 180-4's example */
  assert_string_equal(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

typedef struct row {
  char *field[12];
} row;

static bool split(char *line, row *r)
{
  for (int i = 0; i < 12; i++) {
    r->field[i] = line;
    line += strcspn(line, ",\n");
    if (*line == '\0') return i >= 8;
    *line++ = '\0';
  }
  return true;
}

static double mean_of(const tp__picture *p)
{
  double sum = 0;
  for (size_t i = 0; i < p->rgb.size; i++) sum += p->rgb.data[i];
  return sum / (double)p->rgb.size;
}

/* Returns 1 for a file that was decoded, 0 for one that was refused as it should be. */
static int check(const row *r, const tp__buffer *file)
{
  tp_error err = {0};
  tp__picture p = {0};
  tp_status status = tp__image_decode(file->data, file->size, NULL, &p, &err);
  if (strcmp(r->field[3], "ok") != 0) {
    if (status != TP_ERR_DATA)
      fail_msg("%s: status %d, TensorFlow refuses it", r->field[0], (int)status);
    assert_true(strlen(err.text) > 10);
    tp__buffer_free(&p.rgb);
    return 0;
  }
  if (status != TP_OK) fail_msg("%s: %s", r->field[0], err.text);
  char size[32], digest[65];
  snprintf(size, sizeof size, "%dx%d", p.width, p.height);
  assert_string_equal(size, r->field[4]);
  sha256_text(p.rgb.data, p.rgb.size, digest);
  digest[16] = '\0';
  if (strcmp(digest, r->field[6]) != 0)
    fail_msg("%s: pixels differ: mean %.4f, TensorFlow's %s", r->field[0], mean_of(&p),
             r->field[5]);
  tp__decode_options accurate = {.accurate_dct = true};
  assert_ok(tp__image_decode(file->data, file->size, &accurate, &p, &err));
  if (fabs(mean_of(&p) - atof(r->field[7])) > 6e-5)
    fail_msg("%s: accurate DCT: mean %.4f, TensorFlow's %s", r->field[0], mean_of(&p), r->field[7]);
  int orientation = 0;
  assert_ok(tp__image_header(file->data, file->size, NULL, NULL, &orientation, &err));
  assert_int_equal(orientation, r->field[8][0] == '\0' ? 1 : atoi(r->field[8]));
  tp__buffer_free(&p.rgb);
  return 1;
}

static void equals_tensorflow(void **state)
{
  (void)state;
  need_shared();
  tp_error err = {0};
  char path[1200], line[2048];
  snprintf(path, sizeof path, "%s/data/oddjpeg/INDEX.csv", shared_folder());
  FILE *index = fopen(path, "r");
  assert_non_null(index);
  int decoded = 0, refused = 0;
  assert_non_null(fgets(line, sizeof line, index));
  while (fgets(line, sizeof line, index) != NULL) {
    row r;
    assert_true(split(line, &r));
    tp__buffer file;
    tp__buffer_init(&file, 1 << 20);
    snprintf(path, sizeof path, "%s/data/oddjpeg/%s", shared_folder(), r.field[0]);
    assert_ok(tp__file_read(path, &file, &err));
    check(&r, &file) ? decoded++ : refused++;
    tp__buffer_free(&file);
  }
  fclose(index);
  assert_int_equal(decoded, 31);
  assert_int_equal(refused, 15);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(digest_of_known_text),
      cmocka_unit_test(equals_tensorflow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
