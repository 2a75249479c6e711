/* Proves that the checksum equals the published one, by instruction and by table, for every length
 * and start that a loop could get wrong, in one piece or in two. Expected: RFC 3720 B.4;
 * "123456789" is the check value of the CRC catalogue. */
#include "../testing.h"

#include "data/crc32c.h"

static void published_values(void **state)
{
  (void)state;
  uint8_t zeros[32] = {0}, ones[32], up[32], down[32];
  memset(ones, 0xff, sizeof ones);
  for (int i = 0; i < 32; i++) {
    up[i] = (uint8_t)i;
    down[i] = (uint8_t)(31 - i);
  }
  const struct {
    const void *data;
    size_t size;
    uint32_t crc;
  } cases[] = {
      {zeros, 32, 0x8a9136aa}, {ones, 32, 0x62a8ab43},       {up, 32, 0x46dd794e},
      {down, 32, 0x113fdb5c},  {"123456789", 9, 0xe3069283}, {"", 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(tp__crc32c(0, cases[i].data, cases[i].size), cases[i].crc);
    assert_int_equal(tp__crc32c_table(0, cases[i].data, cases[i].size), cases[i].crc);
  }
}

/* The length field and the payload of the first record of case B02's reference file. */
static void masked(void **state)
{
  (void)state;
  const uint8_t length[8] = {3};
  assert_int_equal(tp__crc32c_masked(length, 8), 0x0e4999b0);
  assert_int_equal(tp__crc32c_masked("abc", 3), 0x21f1576e);
}

static void instruction_equals_table(void **state)
{
  (void)state;
  enum { SIZE = 8192 };
  uint8_t data[SIZE];
  uint32_t x = 12345;
  for (int i = 0; i < SIZE; i++) data[i] = (uint8_t)((x = x * 1664525u + 1013904223u) >> 24);
  print_message("this machine: %s\n", tp__crc32c_way());
  for (size_t start = 0; start < 9; start++)
    for (size_t size = 0; size + start <= SIZE; size += size < 3300 ? 1 : 97)
      if (tp__crc32c(7, data + start, size) != tp__crc32c_table(7, data + start, size))
        fail_msg("differs for %zu bytes from %zu", size, start);
}

static void in_two_pieces(void **state)
{
  (void)state;
  uint8_t data[4000];
  for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * i >> 3);
  uint32_t whole = tp__crc32c(0, data, sizeof data);
  for (size_t cut = 0; cut <= sizeof data; cut += 61)
    assert_int_equal(tp__crc32c(tp__crc32c(0, data, cut), data + cut, sizeof data - cut), whole);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(published_values),
      cmocka_unit_test(masked),
      cmocka_unit_test(instruction_equals_table),
      cmocka_unit_test(in_two_pieces),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
