/* jpeg_write - encoding: baseline, 4:2:0, accurate DCT, straight into a growing buffer */
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs FILE */
#include <stdlib.h>

#include <jpeglib.h>

#include "parts.h"

enum { chunk_bytes = 16384 };

typedef struct coder {
  struct jpeg_compress_struct jpeg;
  struct jpeg_error_mgr errors;
  struct jpeg_destination_mgr destination;
  jmp_buf escape;
  const uint8_t *rgb;
  int height, width, quality;
  tp__buffer *out;
  size_t start; /* size of out before, to go back to on failure */
  tp_status status;
  tp_error *err;
  uint8_t chunk[chunk_bytes];
} coder;

_Noreturn static void on_error(j_common_ptr jpeg)
{
  coder *c = jpeg->client_data;
  char text[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, text);
  c->status = tp__fail(c->err, TP_ERR_INTERNAL, "a JPEG could not be written: %s", text);
  longjmp(c->escape, 1);
}

static void on_output(j_common_ptr jpeg)
{
  (void)jpeg;
}

static void rewind_chunk(j_compress_ptr jpeg)
{
  coder *c = jpeg->client_data;
  c->destination.next_output_byte = c->chunk;
  c->destination.free_in_buffer = chunk_bytes;
}

static void put(coder *c, size_t bytes)
{
  c->status = tp__buffer_add(c->out, c->chunk, bytes, c->err);
  if (c->status != TP_OK) longjmp(c->escape, 1);
}

static boolean empty_chunk(j_compress_ptr jpeg)
{
  put(jpeg->client_data, chunk_bytes);
  rewind_chunk(jpeg);
  return TRUE;
}

static void last_chunk(j_compress_ptr jpeg)
{
  coder *c = jpeg->client_data;
  put(c, chunk_bytes - c->destination.free_in_buffer);
}

static void encode(coder *c)
{
  struct jpeg_compress_struct *j = &c->jpeg;
  j->err = jpeg_std_error(&c->errors);
  j->client_data = c;
  c->errors.error_exit = on_error;
  c->errors.output_message = on_output;
  jpeg_create_compress(j);
  c->destination.init_destination = rewind_chunk;
  c->destination.empty_output_buffer = empty_chunk;
  c->destination.term_destination = last_chunk;
  j->dest = &c->destination;
  j->image_height = (JDIMENSION)c->height;
  j->image_width = (JDIMENSION)c->width;
  j->input_components = 3;
  j->in_color_space = JCS_RGB;
  jpeg_set_defaults(j);
  jpeg_set_quality(j, c->quality, TRUE);
  jpeg_start_compress(j, TRUE);
  while (j->next_scanline < j->image_height) {
    /* libjpeg's rows are not const; it only reads them. */
    JSAMPROW row = (JSAMPROW)(uintptr_t)(c->rgb + (size_t)j->next_scanline * j->image_width * 3);
    (void)jpeg_write_scanlines(j, &row, 1);
  }
  jpeg_finish_compress(j);
}

static tp_status run(coder *c)
{
  if (setjmp(c->escape) == 0) encode(c);
  jpeg_destroy_compress(&c->jpeg);
  if (c->status != TP_OK) c->out->size = c->start;
  return c->status;
}

tp_status tp__image_encode_jpeg(const uint8_t *rgb, int h, int w, int quality, tp__buffer *out,
                                tp_error *err)
{
  if (quality < 1 || quality > 100)
    return tp__fail(err, TP_ERR_USAGE, "JPEG quality %d is not within 1...100", quality);
  if (h < 1 || w < 1 || h > JPEG_MAX_DIMENSION || w > JPEG_MAX_DIMENSION)
    return tp__fail(err, TP_ERR_USAGE,
                    "a picture of %d x %d cannot be a JPEG: 1...%ld are possible", w, h,
                    JPEG_MAX_DIMENSION);
  coder *c = tp__calloc(1, sizeof *c, err);
  if (c == NULL) return TP_ERR_INTERNAL;
  c->rgb = rgb;
  c->height = h;
  c->width = w;
  c->quality = quality;
  c->out = out;
  c->start = out->size;
  c->err = err;
  tp_status status = run(c);
  free(c);
  return status;
}
