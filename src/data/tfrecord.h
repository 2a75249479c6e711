/* tfrecord - the framing of TensorFlow's record files: reader and writer.
 *
 *   byte   0  length of the payload, 8 bytes, little-endian
 *          8  masked CRC-32C of those 8 bytes (see crc32c.h)
 *         12  payload
 *     12 + n  masked CRC-32C of the payload
 *
 * (tensorflow/core/lib/io/record_writer.h.) Nothing in the format says how many records follow or
 * that the file is whole.
 *
 * Rules: a length is believed only when its checksum holds, it fits in the file and is within the
 * limit. A file that ends inside a record is damaged. Errors are TP_ERR_DATA; the caller adds file,
 * record number and byte, which the span tells.
 *
 * Neighbours: source gives the bytes, inflate decompresses, example says what a payload means.
 */
#ifndef TP_TFRECORD_H
#define TP_TFRECORD_H

#include "base/base.h"
#include "source.h"

/* The longest payload a reader believes unless told otherwise; protobuf itself ends at 2 GiB. */
#define TP__RECORD_MAX (UINT64_C(1) << 30)

/* One record. payload is valid until the next call on its reader. */
typedef struct tp__span {
  int64_t number;          /* 0-based */
  uint64_t offset;         /* where its length field starts */
  uint64_t payload_offset; /* = offset + 12 */
  const uint8_t *payload;
  size_t size;
} tp__span;

/* Born zeroed; one thread at a time; may be started again on another source (keeps its memory). */
typedef struct tp__record_reader {
  const tp__source *source; /* borrows */
  uint64_t max_record;
  uint64_t offset; /* of the next record */
  int64_t number;  /* of the next record */
  tp__buffer window;
  uint64_t window_at; /* the byte of the source that window.data[0] holds */
} tp__record_reader;

void tp__record_reader_start(tp__record_reader *reader, const tp__source *source,
                             uint64_t max_record);
void tp__record_reader_free(tp__record_reader *reader);

/* "record 12 at byte 91204", for messages. */
void tp__span_where(const tp__span *span, char *text, size_t size);

/* The next record, or *end = true exactly at the end of the source. On failure, span tells number
 * and offset of the damaged record. After a payload that fails its checksum the reader stands at
 * the next record; after a damaged length or a cut file it stays, and only tp__record_resync leads
 * on. */
tp_status tp__record_next(tp__record_reader *reader, tp__span *span, bool *end,
                          tp_error *err) TP_CHECKED;

/* After a failure that left the reader at the damaged record (reader->offset == span.offset): moves
 * it on to the next place where a record header holds and another, or the end, follows its record;
 * else to the end. Record numbers then count on by one, however many were lost. */
tp_status tp__record_resync(tp__record_reader *reader, tp_error *err) TP_CHECKED;

/* Appends one record to a file. */
tp_status tp__record_write(tp__writer *writer, const void *payload, size_t size,
                           tp_error *err) TP_CHECKED;

/* True when the first bytes (12 are wanted) are a record header whose checksum holds. */
bool tp__is_record_header(const uint8_t *bytes, size_t size);

#endif
