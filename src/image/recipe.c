/* recipe - from bytes to one example of a batch: decode, crop, resize, flip, rotate, colours
 *
 * In as few passes over the pixels as give the numbers of the steps one by one. Resizing mirrors as
 * it goes. A crop that is turned is one bilinear sampling of the decoded picture (not so with
 * antialias: a resize, then a turn; and a whole picture that is resized and turned is sampled
 * twice, as in Keras). Colours are one more pass, or two when contrast wants the mean. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "rows.h"

/* What the recipe, the key and `augment` come to for one example. */
typedef struct view {
  bool flip, crop;
  float turn; /* fraction of a full turn; 0: no rotation */
  tp__rect part;
} view;

static view choose(const tp__image_recipe *recipe, int h, int w, bool augment, tp__key key)
{
  view v = {.flip = recipe->always_flip,
            .crop = augment && recipe->crop > 0,
            .turn = recipe->always_rotate,
            .part = {.h = h, .w = w}};
  if (v.crop) v.part = tp__image_crop_of(recipe->crop, recipe->crop_ratio, h, w, key);
  if (augment && recipe->flip && tp__flip_of(key)) v.flip = !v.flip;
  if (augment && recipe->rotate != 0) v.turn += tp__turn_of(recipe->rotate, key);
  return v;
}

static bool changes_colours(const tp__image_recipe *recipe)
{
  const tp__colours *c = &recipe->colours;
  return c->brightness != 0 || c->contrast != 0 || c->saturation != 0;
}

bool tp__image_recipe_is_float(const tp__image_recipe *recipe)
{
  return recipe->rotate != 0 || recipe->always_rotate != 0 || recipe->crop != 0 ||
         changes_colours(recipe);
}

bool tp__image_recipe_varies(const tp__image_recipe *recipe)
{
  return recipe->flip || recipe->rotate != 0 || recipe->crop != 0 || changes_colours(recipe);
}

void tp__image_recipe_decode_less(tp__image_recipe *recipe)
{
  const double part = recipe->crop > 0 ? sqrt((double)recipe->crop) : 1;
  const double height = ceil(recipe->height / part), width = ceil(recipe->width / part);
  recipe->decode.least_height = height < 65536 ? (int)height : 65536;
  recipe->decode.least_width = width < 65536 ? (int)width : 65536;
}

/* ---- mirror ---- */

static void mirror_rows(const uint8_t *in, int h, int w, uint8_t *out)
{
  const tp__image_kernels *k = tp__image_kernels_best();
  const size_t row = (size_t)w * 3;
  for (int y = 0; y < h; y++) k->mirror(in + (size_t)y * row, w, out + (size_t)y * row);
}

/* In place: blocks from both ends change sides mirrored, what is left in the middle is mirrored by
 * itself. */
void tp__image_flip8(uint8_t *rgb, int h, int w)
{
  enum { block = 64 };
  const tp__image_kernels *k = tp__image_kernels_best();
  uint8_t a[2 * block * 3], b[block * 3];
  for (int y = 0; y < h; y++, rgb += (size_t)w * 3) {
    uint8_t *left = rgb, *right = rgb + (size_t)w * 3;
    for (; right - left > 2 * block * 3; left += block * 3) {
      right -= block * 3;
      k->mirror(left, block, a);
      k->mirror(right, block, b);
      memcpy(left, b, block * 3);
      memcpy(right, a, block * 3);
    }
    k->mirror(left, (int)(right - left) / 3, a);
    memcpy(left, a, (size_t)(right - left));
  }
}

void tp__image_flip(float *rgb, int h, int w)
{
  for (int y = 0; y < h; y++, rgb += (size_t)w * 3) {
    float *left = rgb, *right = rgb + ((size_t)w - 1) * 3, pixel[3];
    for (; left < right; left += 3, right -= 3) {
      memcpy(pixel, left, sizeof pixel);
      memcpy(left, right, sizeof pixel);
      memcpy(right, pixel, sizeof pixel);
    }
  }
}

/* ---- the two ways through ---- */

static void rotate(const tp__image_recipe *recipe, float turn, const uint8_t *in8,
                   const float *in_float, float *out)
{
  float matrix[8];
  tp__turn_matrix(turn, recipe->height, recipe->width, matrix);
  tp__image_affine(in8, in_float, recipe->height, recipe->width, matrix, recipe->fill,
                   recipe->fill_value, true, out);
}

/* The picture has the network's size already: it stays 8-bit until the last step. */
static tp_status finish_same_size(const tp__image_recipe *recipe, const uint8_t *rgb, view v,
                                  tp__image_scratch *scratch, float *out, tp_error *err)
{
  if (v.flip) {
    TP__TRY(tp__picture_size(&scratch->turned, recipe->height, recipe->width, err));
    mirror_rows(rgb, recipe->height, recipe->width, scratch->turned.rgb.data);
    rgb = scratch->turned.rgb.data;
  }
  if (v.turn != 0)
    rotate(recipe, v.turn, rgb, NULL, out);
  else
    tp__image_kernels_best()->widen(rgb, (size_t)recipe->height * (size_t)recipe->width * 3, out);
  return TP_OK;
}

static tp_status need_plane(tp__image_scratch *scratch, size_t values, tp_error *err)
{
  if (scratch->plane_capacity >= values) return TP_OK;
  float *plane = tp__calloc(values, sizeof *plane, err);
  if (plane == NULL) return TP_ERR_INTERNAL;
  free(scratch->plane);
  scratch->plane = plane;
  scratch->plane_capacity = values;
  return TP_OK;
}

static tp_status finish_resized(const tp__image_recipe *recipe, const uint8_t *rgb, int h, int w,
                                view v, tp__image_scratch *scratch, float *out, tp_error *err)
{
  const int oh = recipe->height, ow = recipe->width;
  const tp__region part = {rgb, h, w, v.part.y, v.part.x, v.part.h, v.part.w, v.flip};
  if (v.turn == 0) return tp__region_resize(&part, out, oh, ow, recipe->antialias, err);
  if (v.crop && !recipe->antialias) {
    float matrix[8];
    tp__turn_matrix(v.turn, oh, ow, matrix);
    tp__region_warp(&part, matrix, recipe->fill, recipe->fill_value, oh, ow, out);
    return TP_OK;
  }
  TP__TRY(need_plane(scratch, (size_t)oh * (size_t)ow * 3, err));
  TP__TRY(tp__region_resize(&part, scratch->plane, oh, ow, recipe->antialias, err));
  rotate(recipe, v.turn, NULL, scratch->plane, out);
  return TP_OK;
}

tp_status tp__image_finish(const tp__image_recipe *recipe, const uint8_t *rgb, int h, int w,
                           bool augment, tp__key key, tp__image_scratch *scratch, float *out,
                           tp_error *err)
{
  const view v = choose(recipe, h, w, augment, key);
  if (h == recipe->height && w == recipe->width && !v.crop)
    TP__TRY(finish_same_size(recipe, rgb, v, scratch, out, err));
  else
    TP__TRY(finish_resized(recipe, rgb, h, w, v, scratch, out, err));
  if (!augment || !changes_colours(recipe)) return TP_OK;
  const tp__colours by = tp__image_colours_of(&recipe->colours, key);
  TP__TRY(need_plane(scratch, (size_t)recipe->width * 3, err));
  tp__image_recolour(out, recipe->height, recipe->width, &by, scratch->plane);
  return TP_OK;
}

tp_status tp__image_prepare(const tp__image_recipe *recipe, const uint8_t *bytes, size_t size,
                            bool augment, tp__key key, tp__image_scratch *scratch, float *out,
                            tp_error *err)
{
  tp__picture *picture = &scratch->picture;
  TP__TRY(tp__image_decode(bytes, size, &recipe->decode, picture, err));
  return tp__image_finish(recipe, picture->rgb.data, picture->height, picture->width, augment, key,
                          scratch, out, err);
}
