/* inflate - see inflate.h */
#include "inflate.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#include "tfrecord.h"

enum { BLOCK = 256 * 1024 };

tp__compression tp__compression_of(const uint8_t *bytes, size_t size)
{
  if (size < 2 || tp__is_record_header(bytes, size)) return TP__PLAIN;
  if (bytes[0] == 0x1f && bytes[1] == 0x8b && (size < 3 || bytes[2] == 8)) return TP__GZIP;
  if (bytes[0] == 0x78 && (bytes[0] * 256 + bytes[1]) % 31 == 0 && (bytes[1] & 0x20) == 0)
    return TP__ZLIB;
  return TP__PLAIN;
}

const char *tp__compression_name(tp__compression compression)
{
  return compression == TP__GZIP ? "gzip" : compression == TP__ZLIB ? "zlib" : "plain";
}

/* One inflate stream over a source that is read block by block. */
struct stream {
  z_stream z;
  const tp__source *source;
  uint64_t at; /* the next byte to read */
  uint8_t *block;
};

static uint64_t consumed(const struct stream *s)
{
  return s->at - s->z.avail_in;
}

static tp_status fill(struct stream *s, tp_error *err)
{
  uint64_t left = s->source->size - s->at;
  size_t n = left < BLOCK ? (size_t)left : BLOCK;
  TP__TRY(tp__source_read(s->source, s->at, s->block, n, err));
  s->at += n;
  s->z.next_in = s->block;
  s->z.avail_in = (uInt)n;
  return TP_OK;
}

static tp_status damaged(const struct stream *s, const tp__buffer *out, int code, tp_error *err)
{
  if (code == Z_MEM_ERROR) return tp__no_memory(err, 65536);
  unsigned long long in = consumed(s), made = out->size;
  if (code == Z_OK || code == Z_BUF_ERROR)
    return tp__fail(err, TP_ERR_DATA,
                    "the compressed stream is cut short after %llu bytes (%llu decompressed): "
                    "fetch the file again",
                    in, made);
  return tp__fail(err, TP_ERR_DATA,
                  "the compressed stream is damaged near byte %llu (%llu decompressed): %s", in,
                  made, s->z.msg != NULL ? s->z.msg : "it is no gzip or zlib stream");
}

/* Room for more output; only a buffer that is full to its limit refuses. */
static tp_status make_room(tp__buffer *out, tp_error *err)
{
  if (out->capacity > out->size) return TP_OK;
  size_t wanted = out->size + BLOCK;
  if (wanted > out->max && out->size < out->max) wanted = out->max;
  return tp__buffer_reserve(out, wanted, err);
}

static tp_status run(struct stream *s, tp__buffer *out, tp_error *err)
{
  for (;;) {
    if (s->z.avail_in == 0 && s->at < s->source->size) TP__TRY(fill(s, err));
    TP__TRY(make_room(out, err));
    size_t room = out->capacity - out->size;
    if (room > UINT_MAX) room = UINT_MAX;
    s->z.next_out = out->data + out->size;
    s->z.avail_out = (uInt)room;
    int code = inflate(&s->z, Z_NO_FLUSH);
    out->size += room - s->z.avail_out;
    bool input_left = s->z.avail_in > 0 || s->at < s->source->size;
    if (code == Z_STREAM_END) {
      if (!input_left) return TP_OK;
      if (inflateReset(&s->z) != Z_OK) return damaged(s, out, Z_STREAM_ERROR, err);
    } else if (code != Z_OK && !(code == Z_BUF_ERROR && s->z.avail_out == 0)) {
      return damaged(s, out, code, err);
    } else if (!input_left && s->z.avail_out > 0) {
      return damaged(s, out, Z_OK, err);
    }
  }
}

tp_status tp__inflate(const tp__source *source, tp__buffer *out, tp_error *err)
{
  struct stream s = {.source = source};
  s.block = tp__calloc(BLOCK, 1, err);
  if (s.block == NULL) return TP_ERR_INTERNAL;
  tp_status status = TP_OK;
  if (inflateInit2(&s.z, 15 + 32) != Z_OK) { /* 15: largest window; + 32: gzip or zlib by header */
    status = tp__no_memory(err, 65536);
  } else {
    status = run(&s, out, err);
    (void)inflateEnd(&s.z);
  }
  free(s.block);
  return status;
}
