/* tfrecord - see tfrecord.h */
#include "tfrecord.h"

#include <string.h>

#include "crc32c.h"

enum { HEADER = 12, FOOTER = 4, SNIFF = 64, BLOCK = 256 * 1024 };

static uint32_t get32(const uint8_t *p)
{
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const uint8_t *p)
{
  return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static void put32(uint8_t *p, uint32_t v)
{
  for (int i = 0; i < 4; i++) p[i] = (uint8_t)(v >> 8 * i);
}

void tp__record_reader_start(tp__record_reader *reader, const tp__source *source,
                             uint64_t max_record)
{
  reader->source = source;
  reader->max_record = max_record;
  reader->offset = 0;
  reader->number = 0;
  reader->window.max = SIZE_MAX / 2;
  reader->window.size = 0;
  reader->window_at = 0;
}

void tp__record_reader_free(tp__record_reader *reader)
{
  tp__buffer_free(&reader->window);
}

/* Bytes of the source that the caller knows to be there, without a copy when they are in memory. A
 * file's are read in blocks; what the window holds of them already is kept. */
static tp_status view(tp__record_reader *r, uint64_t offset, size_t size, const uint8_t **bytes,
                      tp_error *err)
{
  const tp__source *s = r->source;
  if (s->fd < 0) {
    *bytes = s->memory + offset;
    return TP_OK;
  }
  tp__buffer *w = &r->window;
  bool inside = offset >= r->window_at && offset - r->window_at <= w->size;
  size_t start = inside ? (size_t)(offset - r->window_at) : 0;
  if (!inside || w->size - start < size) {
    size_t kept = inside ? w->size - start : 0;
    size_t wanted = size > BLOCK ? size : BLOCK;
    if (wanted > s->size - offset) wanted = (size_t)(s->size - offset);
    TP__TRY(tp__buffer_reserve(w, wanted, err));
    if (kept > 0) memmove(w->data, w->data + start, kept);
    w->size = 0; /* nothing valid, should reading fail */
    r->window_at = offset;
    TP__TRY(tp__source_read(s, offset + kept, w->data + kept, wanted - kept, err));
    w->size = wanted;
    start = 0;
  }
  *bytes = w->data + start;
  return TP_OK;
}

bool tp__is_record_header(const uint8_t *bytes, size_t size)
{
  return size >= HEADER && tp__crc32c_masked(bytes, 8) == get32(bytes + 8);
}

/* What the source looks like when it doesn't even start with a record header; NULL: no idea. */
static tp_status looks_foreign(tp__record_reader *r, const char **looks, tp_error *err)
{
  *looks = NULL;
  size_t size = r->source->size < SNIFF ? (size_t)r->source->size : SNIFF;
  const uint8_t *bytes;
  TP__TRY(view(r, 0, size, &bytes, err));
  if (!tp__is_record_header(bytes, size)) *looks = tp__looks_like(bytes, size);
  return TP_OK;
}

/* The length of the record at r->offset, after all checks that need no payload. */
static tp_status read_length(tp__record_reader *r, size_t *length, tp_error *err)
{
  uint64_t left = r->source->size - r->offset;
  const char *looks = NULL;
  if (r->offset == 0) TP__TRY(looks_foreign(r, &looks, err));
  if (looks != NULL)
    return tp__fail(err, TP_ERR_DATA, "this is no plain TFRecord file, it looks like %s", looks);
  if (left < HEADER)
    return tp__fail(err, TP_ERR_DATA,
                    "the file is cut short: it ends after %llu of the record's 12 header bytes",
                    (unsigned long long)left);
  const uint8_t *head;
  TP__TRY(view(r, r->offset, HEADER, &head, err));
  if (!tp__is_record_header(head, HEADER))
    return tp__fail(err, TP_ERR_DATA, "length checksum differs (stored %08x, computed %08x): %s",
                    get32(head + 8), tp__crc32c_masked(head, 8),
                    r->offset == 0 ? "not a TFRecord file, or damaged"
                                   : "the file is damaged here, fetch it again");
  uint64_t n = get64(head);
  if (n > r->max_record)
    return tp__fail(err, TP_ERR_DATA, "the record has %llu bytes, over the limit of %llu",
                    (unsigned long long)n, (unsigned long long)r->max_record);
  if (left - HEADER < FOOTER || n > left - HEADER - FOOTER)
    return tp__fail(err, TP_ERR_DATA,
                    "the file is cut short: the record needs %llu bytes, only %llu are left",
                    (unsigned long long)n + HEADER + FOOTER, (unsigned long long)left);
  *length = (size_t)n;
  return TP_OK;
}

static tp_status next(tp__record_reader *r, tp__span *span, tp_error *err)
{
  size_t n = 0;
  TP__TRY(read_length(r, &n, err));
  const uint8_t *payload;
  TP__TRY(view(r, r->offset + HEADER, n + FOOTER, &payload, err));
  r->offset += (uint64_t)n + HEADER + FOOTER;
  r->number++;
  uint32_t stored = get32(payload + n), computed = tp__crc32c_masked(payload, n);
  if (stored != computed)
    return tp__fail(err, TP_ERR_DATA,
                    "data checksum differs (stored %08x, computed %08x): the record's %zu bytes "
                    "from byte %llu are damaged, fetch the file again",
                    stored, computed, n, (unsigned long long)span->payload_offset);
  span->payload = payload;
  span->size = n;
  return TP_OK;
}

void tp__span_where(const tp__span *span, char *text, size_t size)
{
  snprintf(text, size, "record %lld at byte %llu", (long long)span->number,
           (unsigned long long)span->offset);
}

tp_status tp__record_next(tp__record_reader *r, tp__span *span, bool *end, tp_error *err)
{
  *span =
      (tp__span){.number = r->number, .offset = r->offset, .payload_offset = r->offset + HEADER};
  *end = r->offset == r->source->size;
  return *end ? TP_OK : next(r, span, err);
}

/* A header holds at offset and its record fits; *after: where that record ends. */
static bool plausible(const tp__record_reader *r, uint64_t offset, const uint8_t *head,
                      uint64_t *after)
{
  uint64_t left = r->source->size - offset, n = get64(head);
  if (left < HEADER + FOOTER || n > left - HEADER - FOOTER || n > r->max_record) return false;
  *after = offset + HEADER + n + FOOTER;
  return tp__is_record_header(head, HEADER);
}

tp_status tp__record_resync(tp__record_reader *r, tp_error *err)
{
  uint64_t end = r->source->size, after = 0, beyond = 0;
  for (uint64_t offset = r->offset + 1; offset < end && end - offset >= HEADER; offset++) {
    const uint8_t *head;
    TP__TRY(view(r, offset, HEADER, &head, err));
    if (!plausible(r, offset, head, &after)) continue;
    /* Read apart from the window, which stays where the search is. */
    uint8_t following[HEADER];
    bool good = after == end;
    if (!good && end - after >= HEADER) {
      TP__TRY(tp__source_read(r->source, after, following, HEADER, err));
      good = plausible(r, after, following, &beyond);
    }
    if (good) {
      r->offset = offset;
      r->number++;
      return TP_OK;
    }
  }
  r->offset = end;
  return TP_OK;
}

tp_status tp__record_write(tp__writer *writer, const void *payload, size_t size, tp_error *err)
{
  uint8_t head[HEADER], foot[FOOTER];
  put32(head, (uint32_t)size);
  put32(head + 4, (uint32_t)((uint64_t)size >> 32));
  put32(head + 8, tp__crc32c_masked(head, 8));
  put32(foot, tp__crc32c_masked(payload, size));
  TP__TRY(tp__writer_write(writer, head, HEADER, err));
  TP__TRY(tp__writer_write(writer, payload, size, err));
  return tp__writer_write(writer, foot, FOOTER, err);
}
