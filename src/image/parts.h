/* parts - what the files of this room share and no other room sees.
 *
 *   format.c   which format, and the words that refuse the others
 *   jpeg.c     decoding through libjpeg-turbo;   jpeg_write.c  encoding
 *   png.c      decoding through libspng
 *   exif.c     orientation: reading the tag, turning the picture
 *   decode.c   the two public calls in front of them
 *   resize.c, affine.c   sampling;   recipe.c, augment.c   what is done to an example
 */
#ifndef TP_IMAGE_PARTS_H
#define TP_IMAGE_PARTS_H

#include "image.h"

/* Refuses what is not a JPEG or PNG, with its name and what to do. */
tp_status tp__format_refuse(tp__image_format format, size_t size, tp_error *err);

/* TP_ERR_DATA unless both sizes are at least 1 and height x width is within the limit (0: the
 * default). */
tp_status tp__pixels_check(uint64_t height, uint64_t width, uint64_t limit,
                           tp_error *err) TP_CHECKED;

/* Makes room for [height,width,3] and sets the sizes; what the picture held is lost. */
tp_status tp__picture_size(tp__picture *picture, int height, int width, tp_error *err) TP_CHECKED;

tp_status tp__jpeg_header(const uint8_t *bytes, size_t size, int *height, int *width,
                          int *orientation, tp_error *err) TP_CHECKED;
/* Of 1, 2, 4, 8: so many eighths of its size the picture of that header is decoded at. */
int tp__jpeg_eighths(const tp__decode_options *options, int height, int width, int orientation);
/* orientation may be NULL: then no metadata is kept. */
tp_status tp__jpeg_decode(const uint8_t *bytes, size_t size, const tp__decode_options *options,
                          tp__picture *picture, int *orientation, tp_error *err) TP_CHECKED;

tp_status tp__png_header(const uint8_t *bytes, size_t size, int *height, int *width,
                         int *orientation, tp_error *err) TP_CHECKED;
tp_status tp__png_decode(const uint8_t *bytes, size_t size, const tp__decode_options *options,
                         tp__picture *picture, int *orientation, tp_error *err) TP_CHECKED;

/* The orientation tag (1...8) in a TIFF structure as EXIF embeds it; 1 where there is none or it
 * makes no sense. */
int tp__exif_orientation(const uint8_t *tiff, size_t size);

/* Turns and mirrors the picture so that it is upright: orientation 1...8. */
tp_status tp__picture_turn(tp__picture *picture, int orientation, tp_error *err) TP_CHECKED;

/* A rectangle of an 8-bit picture, seen in a mirror where asked. */
typedef struct tp__region {
  const uint8_t *rgb; /* the whole picture, [rows,columns,3] */
  int rows, columns;
  int y, x, h, w; /* the rectangle, inside it */
  bool mirror;
} tp__region;

/* The rectangle as tp__image_resize resizes a picture of its size, then mirrored. */
tp_status tp__region_resize(const tp__region *region, float *out, int oh, int ow, bool antialias,
                            tp_error *err) TP_CHECKED;

/* Resized, mirrored and turned by the matrix [output pixel -> pixel of the unturned output] in one
 * bilinear step. Beyond the rectangle is what the picture holds there, beyond that the fill. */
void tp__region_warp(const tp__region *region, const float matrix[8], tp__fill fill,
                     float fill_value, int oh, int ow, float *out);

#endif
