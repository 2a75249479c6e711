/* crc32c - see crc32c.h
 *
 * Tables. The CRC register is linear over exclusive or, so each table of 256 follows from its
 * entries at the eight powers of two; the macros below write them out at compile time.
 * byte_table[0] is the classic table (one byte advanced), the others advance 2 to 4 bytes ("slicing
 * by four", Kounavis and Berry, 2005); skip_table[k] advances byte k of the register over STREAM
 * zero bytes.
 *
 * Instruction. It has a latency of three cycles but can start every cycle, so three streams of
 * STREAM bytes run side by side and are joined by skip: crc(A B) = skip(crc(A)) ^ crc(B).
 */
#include "crc32c.h"

#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

enum { STREAM = 512 }; /* the constants of skip_table belong to it */

#define BIT(n, bit, c) ((n) >> (bit)&1 ? (c) : 0u)
#define ENTRY(n, a, b, c, d, e, f, g, h)                                                           \
  BIT(n, 0, a) ^ BIT(n, 1, b) ^ BIT(n, 2, c) ^ BIT(n, 3, d) ^ BIT(n, 4, e) ^ BIT(n, 5, f) ^        \
      BIT(n, 6, g) ^ BIT(n, 7, h)
#define ROW4(n, ...)                                                                               \
  ENTRY(n, __VA_ARGS__), ENTRY(n + 1, __VA_ARGS__), ENTRY(n + 2, __VA_ARGS__),                     \
      ENTRY(n + 3, __VA_ARGS__)
#define ROW16(n, ...)                                                                              \
  ROW4(n, __VA_ARGS__), ROW4(n + 4, __VA_ARGS__), ROW4(n + 8, __VA_ARGS__),                        \
      ROW4(n + 12, __VA_ARGS__)
#define ROW64(n, ...)                                                                              \
  ROW16(n, __VA_ARGS__), ROW16(n + 16, __VA_ARGS__), ROW16(n + 32, __VA_ARGS__),                   \
      ROW16(n + 48, __VA_ARGS__)
#define TABLE(...)                                                                                 \
  {                                                                                                \
    ROW64(0u, __VA_ARGS__), ROW64(64u, __VA_ARGS__), ROW64(128u, __VA_ARGS__),                     \
        ROW64(192u, __VA_ARGS__)                                                                   \
  }

static const uint32_t byte_table[4][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
          0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
          0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
          0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
          0x52a0c93f),
};

static uint32_t load32(const unsigned char *p)
{
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t tp__crc32c_table(uint32_t crc, const void *data, size_t size)
{
  const unsigned char *p = data;
  crc = ~crc;
  for (; size >= 4; size -= 4, p += 4) {
    crc ^= load32(p);
    crc = byte_table[3][crc & 255] ^ byte_table[2][crc >> 8 & 255] ^
          byte_table[1][crc >> 16 & 255] ^ byte_table[0][crc >> 24];
  }
  for (; size > 0; size--, p++) crc = crc >> 8 ^ byte_table[0][(crc ^ *p) & 255];
  return ~crc;
}

#if defined(__x86_64__) || defined(__aarch64__)

static const uint32_t skip_table[4][256] = {
    TABLE(0xbd6f81f8, 0x7f337501, 0xfe66ea02, 0xf921a2f5, 0xf7af331b, 0xeab210c7, 0xd088577f,
          0xa4fcd80f),
    TABLE(0x4c15c6ef, 0x982b8dde, 0x35bb6d4d, 0x6b76da9a, 0xd6edb534, 0xa8371c99, 0x55824fc3,
          0xab049f86),
    TABLE(0x53e549fd, 0xa7ca93fa, 0x4a795105, 0x94f2a20a, 0x2c0932e5, 0x581265ca, 0xb024cb94,
          0x65a5e1d9),
    TABLE(0xcb4bc3b2, 0x937bf195, 0x231b95db, 0x46372bb6, 0x8c6e576c, 0x1d30d829, 0x3a61b052,
          0x74c360a4),
};

static uint32_t skip(uint32_t crc)
{
  return skip_table[0][crc & 255] ^ skip_table[1][crc >> 8 & 255] ^ skip_table[2][crc >> 16 & 255] ^
         skip_table[3][crc >> 24];
}

#if defined(__x86_64__)
#define CRC_TARGET        __attribute__((target("sse4.2")))
#define CRC_EIGHT(crc, v) ((uint32_t)_mm_crc32_u64((crc), (v)))
#define CRC_ONE(crc, v)   (_mm_crc32_u8((crc), (v)))
#elif defined(__clang__)
#define CRC_TARGET        __attribute__((target("crc")))
#define CRC_EIGHT(crc, v) (__builtin_arm_crc32cd((crc), (v)))
#define CRC_ONE(crc, v)   (__builtin_arm_crc32cb((crc), (v)))
#else
#define CRC_TARGET        __attribute__((target("+crc")))
#define CRC_EIGHT(crc, v) (__builtin_aarch64_crc32cx((crc), (v)))
#define CRC_ONE(crc, v)   (__builtin_aarch64_crc32cb((crc), (v)))
#endif

CRC_TARGET static uint32_t crc_by_instruction(uint32_t crc, const unsigned char *p, size_t size)
{
  uint64_t a, b, c;
  crc = ~crc;
  for (; size >= 3 * STREAM; size -= 3 * STREAM, p += 3 * STREAM) {
    uint32_t second = 0, third = 0;
    for (size_t i = 0; i < STREAM; i += 8) {
      memcpy(&a, p + i, 8);
      memcpy(&b, p + STREAM + i, 8);
      memcpy(&c, p + 2 * STREAM + i, 8);
      crc = CRC_EIGHT(crc, a);
      second = CRC_EIGHT(second, b);
      third = CRC_EIGHT(third, c);
    }
    crc = skip(skip(crc) ^ second) ^ third;
  }
  for (; size >= 8; size -= 8, p += 8) {
    memcpy(&a, p, 8);
    crc = CRC_EIGHT(crc, a);
  }
  for (; size > 0; size--, p++) crc = CRC_ONE(crc, *p);
  return ~crc;
}

static int has_instruction(void)
{
#if defined(__x86_64__)
  return __builtin_cpu_supports("sse4.2") != 0;
#else
  return (getauxval(AT_HWCAP) & 1ul << 7) != 0; /* HWCAP_CRC32 */
#endif
}

#else

static uint32_t crc_by_instruction(uint32_t crc, const unsigned char *p, size_t size)
{
  return tp__crc32c_table(crc, p, size);
}

static int has_instruction(void)
{
  return 0;
}

#endif

uint32_t tp__crc32c(uint32_t crc, const void *data, size_t size)
{
  return has_instruction() ? crc_by_instruction(crc, data, size)
                           : tp__crc32c_table(crc, data, size);
}

const char *tp__crc32c_way(void)
{
  if (!has_instruction()) return "table";
#if defined(__x86_64__)
  return "sse4.2";
#else
  return "armv8";
#endif
}
