/* png - decoding through libspng to 8-bit RGB, with the numbers of TensorFlow's decoder.
 *
 * Alpha and transparent colours are dropped, not blended; grey and palette are expanded; 16 bits
 * keep their upper 8; gamma is left alone. A file that ends before its end chunk is an error.
 */
#include <string.h>

#include <spng.h>

#include "parts.h"

enum { chunk_limit = 32 << 20 /* bytes of one metadata chunk, and of all of them */ };

static tp_status refuse(int code, tp_error *err)
{
  if (code == SPNG_EMEM)
    return tp__fail(err, TP_ERR_INTERNAL, "out of memory while decoding a PNG");
  if (code == SPNG_IO_EOF)
    return tp__fail(err, TP_ERR_DATA, "the PNG is cut short: there is no end chunk");
  return tp__fail(err, TP_ERR_DATA, "damaged PNG: %s", spng_strerror(code));
}

/* Walks the chunks (length 4, type 4, data, checksum 4) to the end chunk: libspng itself is content
 * without it. */
static bool is_whole(const uint8_t *bytes, size_t size)
{
  for (size_t at = 8; at + 12 <= size;) {
    const uint8_t *b = bytes + at;
    if (memcmp(b + 4, "IEND", 4) == 0) return true;
    size_t length = (size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3];
    if (length > size - at - 12) return false;
    at += 12 + length;
  }
  return false;
}

static int exif_of(spng_ctx *png)
{
  struct spng_exif exif;
  if (spng_get_exif(png, &exif) != 0) return 1;
  return tp__exif_orientation((const uint8_t *)exif.data, exif.length);
}

static int set_up(spng_ctx *png, const uint8_t *bytes, size_t size, struct spng_ihdr *header)
{
  int code = spng_set_crc_action(png, SPNG_CRC_ERROR, SPNG_CRC_DISCARD);
  if (code == 0) code = spng_set_chunk_limits(png, chunk_limit, chunk_limit);
  if (code == 0) code = spng_set_png_buffer(png, bytes, size);
  return code == 0 ? spng_get_ihdr(png, header) : code;
}

tp_status tp__png_header(const uint8_t *bytes, size_t size, int *height, int *width,
                         int *orientation, tp_error *err)
{
  struct spng_ihdr header = {0};
  spng_ctx *png = spng_ctx_new(0);
  if (png == NULL) return refuse(SPNG_EMEM, err);
  int code = set_up(png, bytes, size, &header);
  if (code == 0) {
    *height = (int)header.height;
    *width = (int)header.width;
    *orientation = exif_of(png);
  }
  spng_ctx_free(png);
  return code == 0 ? TP_OK : refuse(code, err);
}

static tp_status decode(spng_ctx *png, const uint8_t *bytes, size_t size,
                        const tp__decode_options *options, tp__picture *picture, tp_error *err)
{
  struct spng_ihdr header = {0};
  int code = set_up(png, bytes, size, &header);
  if (code == 0 && !is_whole(bytes, size)) code = SPNG_IO_EOF;
  if (code != 0) return refuse(code, err);
  TP__TRY(tp__pixels_check(header.height, header.width, options->max_pixels, err));
  TP__TRY(tp__picture_size(picture, (int)header.height, (int)header.width, err));
  code = spng_decode_image(png, picture->rgb.data, picture->rgb.size, SPNG_FMT_RGB8, 0);
  if (code == 0) code = spng_decode_chunks(png);
  return code == 0 ? TP_OK : refuse(code, err);
}

tp_status tp__png_decode(const uint8_t *bytes, size_t size, const tp__decode_options *options,
                         tp__picture *picture, int *orientation, tp_error *err)
{
  spng_ctx *png = spng_ctx_new(0);
  if (png == NULL) return refuse(SPNG_EMEM, err);
  tp_status status = decode(png, bytes, size, options, picture, err);
  if (status == TP_OK && orientation != NULL) *orientation = exif_of(png);
  spng_ctx_free(png);
  return status;
}
