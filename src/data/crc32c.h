/* crc32c - the checksum of TFRecord files.
 *
 * CRC-32C (Castagnoli polynomial 0x1EDC6F41, reflected 0x82F63B78, RFC 3720 section 12.1). TFRecord
 * stores it "masked" (rotated and offset), so that the checksum of data that holds checksums stays
 * a good one (LevelDB's log format). The processor's instruction is used where there is one
 * (SSE4.2, ARMv8), else tables; both give the same values.
 */
#ifndef TP_CRC32C_H
#define TP_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues crc (0 to start) over more bytes. */
uint32_t tp__crc32c(uint32_t crc, const void *data, size_t size);

/* The same by tables only: the reference for tests, and the way on processors without the
 * instruction. */
uint32_t tp__crc32c_table(uint32_t crc, const void *data, size_t size);

/* "sse4.2", "armv8" or "table": what tp__crc32c uses on this machine. */
const char *tp__crc32c_way(void);

static inline uint32_t tp__crc32c_mask(uint32_t crc)
{
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* The masked checksum of one piece of data, as TFRecord stores it. */
static inline uint32_t tp__crc32c_masked(const void *data, size_t size)
{
  return tp__crc32c_mask(tp__crc32c(0, data, size));
}

#endif
