/* image - from encoded bytes to pixels, and every change of pixels: decode, crop, resize, flip,
 * rotate, colours.
 *
 * Pixels are [H,W,3], RGB, values 0...255: 8-bit as decoded and flipped, float32 once resized or
 * rotated (DESIGN D6). Numbers follow TensorFlow and Keras: decode_jpeg's default DCT and
 * upsampling, tf.image.resize's half-pixel centres, Keras' RandomFlip and RandomRotation.
 * Everything is a function of its arguments: random draws are made from the key of (seed, epoch,
 * example), so results do not depend on threads, batches or order.
 *
 * Neighbours: data gives encoded bytes; pipeline calls tp__image_prepare from many threads, one
 * tp__image_scratch each.
 */
#ifndef TP_IMAGE_H
#define TP_IMAGE_H

#include "base/base.h"
#include "base/rng.h"
#include "base/sampling.h"

typedef enum tp__image_format {
  TP__FORMAT_UNKNOWN,
  TP__FORMAT_EMPTY,
  TP__FORMAT_JPEG,
  TP__FORMAT_PNG,
  TP__FORMAT_GIF,
  TP__FORMAT_WEBP,
  TP__FORMAT_BMP,
  TP__FORMAT_TIFF,
  TP__FORMAT_HTML,
  TP__FORMAT_JPEG_XL_OR_AVIF
} tp__image_format;

/* By content, never by name. */
tp__image_format tp__image_format_of(const uint8_t *bytes, size_t size);
const char *tp__image_format_name(tp__image_format format);

typedef struct tp__decode_options {
  bool accurate_dct;   /* libjpeg's slow integer DCT instead of TensorFlow's default */
  bool exif_rotate;    /* turn the picture as its EXIF orientation says; TensorFlow does not */
  uint64_t max_pixels; /* width x height; 0: 178,956,970 (as Pillow's bomb limit) */
  /* Above 0: a JPEG comes out at a half, a quarter or an eighth of its size, the smallest at which
   * neither side falls below these. Its pixels are means over blocks then, not TensorFlow's. */
  int least_height, least_width;
} tp__decode_options;

/* An 8-bit picture [height, width, 3] in a buffer of its own. */
typedef struct tp__picture {
  int height, width;
  tp__buffer rgb;
} tp__picture;

/* Memory one thread needs for decoding and preparing; grows as needed, reused. Born zeroed. */
typedef struct tp__image_scratch {
  tp__picture picture, turned;
  float *plane; /* a float picture between resize and rotation */
  size_t plane_capacity;
} tp__image_scratch;
void tp__image_scratch_free(tp__image_scratch *scratch);

/* Size and orientation from the header alone, without decoding. orientation: EXIF 1...8 (1 when
 * there is none). */
tp_status tp__image_header(const uint8_t *bytes, size_t size, int *height, int *width,
                           int *orientation, tp_error *err) TP_CHECKED;

/* Height and width of what tp__image_decode gives, from the header alone. */
tp_status tp__image_decoded_size(const uint8_t *bytes, size_t size,
                                 const tp__decode_options *options, int *height, int *width,
                                 tp_error *err) TP_CHECKED;

/* Decodes JPEG (grey, YCbCr, RGB, CMYK/YCCK as TensorFlow does) or PNG (alpha dropped, grey and
 * palette expanded, 16 bit reduced) to RGB. options may be NULL: the defaults. Errors: TP_ERR_DATA:
 * other formats by name, cut short, damaged, too large (pixels, or more than 65,535 a side); the
 * picture's pixels are lost then. */
tp_status tp__image_decode(const uint8_t *bytes, size_t size, const tp__decode_options *options,
                           tp__picture *picture, tp_error *err) TP_CHECKED;

/* Bilinear as tf.image.resize(antialias=...): half-pixel centres; from in8 or in_float (the other
 * is NULL) [h,w,3] to float [oh,ow,3], which is elsewhere. */
tp_status tp__image_resize(const uint8_t *in8, const float *in_float, int h, int w, float *out,
                           int oh, int ow, bool antialias, tp_error *err) TP_CHECKED;

/* Left-right mirror, in place, of 8-bit or float pixels. */
void tp__image_flip8(uint8_t *rgb, int h, int w);
void tp__image_flip(float *rgb, int h, int w);

/* Samples in8 or in_float (the other is NULL), [h,w,3], through an affine matrix as Keras' layers
 * do (bilinear, or nearest where asked); out: float [h,w,3], elsewhere. fill_value is finite and
 * counts for the constant fill. */
void tp__image_affine(const uint8_t *in8, const float *in_float, int h, int w,
                      const float matrix[8], tp__fill fill, float fill_value, bool bilinear,
                      float *out);

/* Rows y...y+h-1, columns x...x+w-1. */
typedef struct tp__rect {
  int y, x, h, w;
} tp__rect;

/* The rectangle of an h x w picture that torchvision's RandomResizedCrop(scale=(least, 1),
 * ratio=(1 / ratio, ratio)) cuts out: up to ten tries of an area and a shape, else the largest that
 * fits. least > 0, ratio >= 1. */
tp__rect tp__image_crop_of(float least, float ratio, int h, int w, tp__key key);

/* Factors of a change of colours, 1: none; or how far each may lie from 1, 0: not at all. */
typedef struct tp__colours {
  float brightness, contrast, saturation;
} tp__colours;

/* Uniform in max(0, 1 - range)...1 + range, each, as torchvision's ColorJitter. */
tp__colours tp__image_colours_of(const tp__colours *range, tp__key key);

/* The changes of ColorJitter in place: saturation s and contrast c mix with the pixel's grey and
 * with the picture's mean grey m, brightness b scales, which is b (c (s x + (1 - s) grey) + (1 - c)
 * m) in whatever order they are done, as long as nothing is rounded or held within 0...255 between
 * them; here that is done once, at the end. line: [w,3], for scratch. */
void tp__image_recolour(float *rgb, int h, int w, const tp__colours *by, float *line);

/* What happens to one example between its bytes and the batch. */
typedef struct tp__image_recipe {
  int height, width; /* of the network's input */
  bool antialias;
  tp__decode_options decode;
  /* augmentation: only in training */
  bool flip;    /* mirror with probability 1/2 */
  float rotate; /* each example turns by uniform(-rotate, rotate) of a full turn; 0: none; at most 1
                 */
  tp__fill fill;
  float fill_value;
  float crop;          /* cut out a part of at least that share of the area; 0: none */
  float crop_ratio;    /* the part's sides are up to so unequal, either way; 1 or more */
  tp__colours colours; /* ranges; 0: no change */
  /* a fixed view for test-time augmentation, applied after decoding and resizing */
  bool always_flip;
  float always_rotate; /* fraction of a turn */
} tp__image_recipe;

/* Sets what decoding may leave out: pictures stay at least as large as the network's input; the
 * smallest crop, too. */
void tp__image_recipe_decode_less(tp__image_recipe *recipe);

/* True when prepared pixels may be fractional (a rotation, a crop, other colours, or a resize of a
 * picture of another size). The pipeline stores batches as 8-bit only when this is false for the
 * recipe and all pictures have the network's size already. */
bool tp__image_recipe_is_float(const tp__image_recipe *recipe);

/* True when the same picture is prepared differently with another key. */
bool tp__image_recipe_varies(const tp__image_recipe *recipe);

/* Decode, crop, resize (only if the size differs), flip, rotate, colours: bytes to float
 * [height,width,3], 0...255. `augment` says whether the recipe's random part is applied with this
 * key (training) or not. */
tp_status tp__image_prepare(const tp__image_recipe *recipe, const uint8_t *bytes, size_t size,
                            bool augment, tp__key key, tp__image_scratch *scratch, float *out,
                            tp_error *err) TP_CHECKED;

/* The second half alone, from a decoded 8-bit picture (cached pixels). */
tp_status tp__image_finish(const tp__image_recipe *recipe, const uint8_t *rgb, int h, int w,
                           bool augment, tp__key key, tp__image_scratch *scratch, float *out,
                           tp_error *err) TP_CHECKED;

/* JPEG writing (the demo's flowers, `pack` of resized photos): baseline, 4:2:0, quality 1...100.
 * Adds to out. */
tp_status tp__image_encode_jpeg(const uint8_t *rgb, int h, int w, int quality, tp__buffer *out,
                                tp_error *err) TP_CHECKED;

#endif
