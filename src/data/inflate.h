/* inflate - compressed shards (TFRecordOptions "GZIP" and "ZLIB") are recognised by their first
 * bytes and decompressed whole, into memory.
 *
 * gzip: 1f 8b 08 (RFC 1952), zlib: 78 and a second byte that makes the pair a multiple of 31 (RFC
 * 1950). A plain shard may start with the same bytes as the length of its first record, so a record
 * header whose checksum holds goes before. Several members one after another are one stream. A
 * stream that is cut short is damaged, never a short success.
 */
#ifndef TP_INFLATE_H
#define TP_INFLATE_H

#include "base/base.h"
#include "source.h"

typedef enum tp__compression { TP__PLAIN, TP__GZIP, TP__ZLIB } tp__compression;

/* By the first bytes; at least 12 (or all there are) are wanted. */
tp__compression tp__compression_of(const uint8_t *bytes, size_t size);

/* "gzip" or "zlib". */
const char *tp__compression_name(tp__compression compression);

/* Adds the decompressed stream to out. Errors: TP_ERR_DATA: damaged or cut short, or out->max bytes
 * or more. */
tp_status tp__inflate(const tp__source *source, tp__buffer *out, tp_error *err) TP_CHECKED;

#endif
