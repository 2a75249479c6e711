/* decode - bytes of any kind to an 8-bit RGB picture, or a refusal that says why */
#include <stdlib.h>

#include "parts.h"

/* Pillow's limit against decompression bombs, and just within TensorFlow's (2^29 values of three
 * channels). */
static const uint64_t default_max_pixels = 178956970;
static const uint64_t max_side = 65535; /* JPEG's own; row buffers and weights grow with it */

tp_status tp__pixels_check(uint64_t height, uint64_t width, uint64_t limit, tp_error *err)
{
  if (limit == 0) limit = default_max_pixels;
  if (height == 0 || width == 0)
    return tp__fail(err, TP_ERR_DATA, "the header gives the size %llu x %llu",
                    (unsigned long long)width, (unsigned long long)height);
  if (height > max_side || width > max_side || height * width > limit)
    return tp__fail(err, TP_ERR_DATA,
                    "the header gives the size %llu x %llu, more than the limit of %llu pixels or "
                    "%llu a side: a damaged file, or one to make smaller first",
                    (unsigned long long)width, (unsigned long long)height,
                    (unsigned long long)limit, (unsigned long long)max_side);
  return TP_OK;
}

tp_status tp__picture_size(tp__picture *picture, int height, int width, tp_error *err)
{
  size_t bytes = 0;
  if (!tp__mul_size((size_t)height * 3, (size_t)width, &bytes)) return tp__no_memory(err, SIZE_MAX);
  if (picture->rgb.max < bytes) picture->rgb.max = bytes;
  TP__TRY(tp__buffer_reserve(&picture->rgb, bytes, err));
  picture->rgb.size = bytes;
  picture->height = height;
  picture->width = width;
  return TP_OK;
}

void tp__image_scratch_free(tp__image_scratch *scratch)
{
  if (scratch == NULL) return;
  tp__buffer_free(&scratch->picture.rgb);
  tp__buffer_free(&scratch->turned.rgb);
  free(scratch->plane);
  *scratch = (tp__image_scratch){0};
}

tp_status tp__image_header(const uint8_t *bytes, size_t size, int *height, int *width,
                           int *orientation, tp_error *err)
{
  int found[3] = {0, 0, 1};
  tp__image_format format = tp__image_format_of(bytes, size);
  if (format == TP__FORMAT_JPEG)
    TP__TRY(tp__jpeg_header(bytes, size, &found[0], &found[1], &found[2], err));
  else if (format == TP__FORMAT_PNG)
    TP__TRY(tp__png_header(bytes, size, &found[0], &found[1], &found[2], err));
  else
    return tp__format_refuse(format, size, err);
  if (height != NULL) *height = found[0];
  if (width != NULL) *width = found[1];
  if (orientation != NULL) *orientation = found[2];
  return TP_OK;
}

tp_status tp__image_decoded_size(const uint8_t *bytes, size_t size,
                                 const tp__decode_options *options, int *height, int *width,
                                 tp_error *err)
{
  int orientation = 1;
  TP__TRY(tp__image_header(bytes, size, height, width, &orientation, err));
  if (tp__image_format_of(bytes, size) == TP__FORMAT_JPEG) {
    int eighths = tp__jpeg_eighths(options, *height, *width, orientation);
    *height = (int)(((int64_t)*height * eighths + 7) / 8);
    *width = (int)(((int64_t)*width * eighths + 7) / 8);
  }
  if (!options->exif_rotate || orientation < 5) return TP_OK;
  int side = *height;
  *height = *width;
  *width = side;
  return TP_OK;
}

tp_status tp__image_decode(const uint8_t *bytes, size_t size, const tp__decode_options *options,
                           tp__picture *picture, tp_error *err)
{
  static const tp__decode_options defaults = {0};
  if (options == NULL) options = &defaults;
  int orientation = 1, *wanted = options->exif_rotate ? &orientation : NULL;
  tp__image_format format = tp__image_format_of(bytes, size);
  if (format == TP__FORMAT_JPEG)
    TP__TRY(tp__jpeg_decode(bytes, size, options, picture, wanted, err));
  else if (format == TP__FORMAT_PNG)
    TP__TRY(tp__png_decode(bytes, size, options, picture, wanted, err));
  else
    return tp__format_refuse(format, size, err);
  return tp__picture_turn(picture, orientation, err);
}
