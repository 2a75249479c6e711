/* fuzz_tfrecord - any bytes as a shard: framing (with resynchronising after damage) and
 * decompression. What is read is checked against what the format promises. Build with -Dfuzz=true
 * and clang. */
#include <stdlib.h>

#include "data/inflate.h"
#include "data/tfrecord.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_records(const uint8_t *data, size_t size)
{
  tp_error err;
  tp__source source = tp__source_memory(data, size);
  tp__record_reader reader = {0};
  tp__record_reader_start(&reader, &source, TP__RECORD_MAX);
  for (uint64_t before = 0;; before = reader.offset) {
    tp__span span;
    bool end = false;
    tp_status status = tp__record_next(&reader, &span, &end, &err);
    if (end) break;
    if (status == TP_OK && span.payload_offset + span.size + 4 > size) abort();
    if (status != TP_OK && reader.offset == span.offset &&
        tp__record_resync(&reader, &err) != TP_OK)
      abort();
    if (reader.offset <= before) abort(); /* each turn goes on */
  }
  tp__record_reader_free(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  read_records(data, size);
  if (tp__compression_of(data, size) != TP__PLAIN) {
    tp_error err;
    tp__buffer out;
    tp__buffer_init(&out, 1 << 20);
    tp__source source = tp__source_memory(data, size);
    if (tp__inflate(&source, &out, &err) == TP_OK) read_records(out.data, out.size);
    tp__buffer_free(&out);
  }
  return 0;
}
