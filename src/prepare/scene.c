/* scene - a photo of a flower: background out of focus, stem and leaves, the flower, then the
 * camera
 *
 *   background ──> others of its kind, far away ──> blur ──> stem, leaves, shadow ──> flower
 *     ──> light, lens, noise ──> 8-bit
 *
 * Backgrounds, light and pose are drawn independently of the species. One picture of 192x192 takes
 * some four milliseconds.
 */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "prepare.h"
#include "scene.h"

#define PI 3.14159265f

/* ---- the plant ---- */

static tp__pose choose_pose(struct tp__scene *s)
{
  tp__draws *d = &s->draws;
  bool upright = s->species->upright;
  float radius = tp__draw_in(d, 0.25f, 0.43f);
  float room =
      tp__clampf(0.5f - 0.75f * radius, 0.03f, 0.3f); /* may be cut a little by the frame */
  /* most are seen from somewhat above: the flower leans up or towards the viewer */
  float most = s->species->tilt * PI / 180, tilt = most * sqrtf(tp__draw_unit(d));
  float towards = PI / 2 + tp__draw_in(d, -1, 1) *
                               (upright ? 0.7f : PI * (tp__draw_unit(d) < 0.75f ? 0.45f : 1));
  tp__pose pose = {.x = (0.5f + room * tp__draw_in(d, -1, 1)) * s->size,
                   .y = (0.48f + room * tp__draw_in(d, -1, 1)) * s->size,
                   .radius = radius * s->size,
                   .spin = upright ? tp__draw_in(d, -0.35f, 0.35f) : tp__draw_in(d, 0, 2 * PI),
                   .axis = {sinf(tilt) * cosf(towards), sinf(tilt) * sinf(towards), cosf(tilt)},
                   .light = s->light,
                   .ambient = s->ambient,
                   .diffuse = s->diffuse};
  return pose;
}

/* A bent stem from the flower's back down and out of the picture, with leaves on the way. */
static void paint_stem(struct tp__scene *s, const tp__pose *pose)
{
  tp__draws *d = &s->draws;
  float x0 = pose->x - 0.25f * pose->radius * pose->axis.x,
        y0 = pose->y + 0.25f * pose->radius * pose->axis.y;
  float x2 = pose->x - pose->axis.x * pose->radius * 1.2f + tp__draw_in(d, -0.25f, 0.25f) * s->size;
  float y2 = s->size * 1.05f, x1 = x0 - pose->axis.x * pose->radius, y1 = tp__mixf(y0, y2, 0.5f);
  float w = pose->radius * tp__draw_in(d, 0.035f, 0.06f);
  int leaves = tp__draw_int(d, 1, 4);
  float lx = x0, ly = y0;
  for (int k = 1; k <= 12; k++) {
    float t = (float)k / 12, a = (1 - t) * (1 - t), b = 2 * t * (1 - t), c = t * t;
    float x = a * x0 + b * x1 + c * x2, y = a * y0 + b * y1 + c * y2;
    tp__colour green = tp__shade(s->plant.green, 0.75f + 0.25f * t);
    tp__stroke part = {.x0 = lx,
                       .y0 = ly,
                       .x1 = x,
                       .y1 = y,
                       .w0 = w,
                       .w1 = w * 1.03f,
                       .alpha = 1,
                       .from = green,
                       .to = green,
                       .round = w > 1.2f};
    tp__paint_stroke(&s->canvas, &part);
    if (leaves > 0 && k >= 3 && tp__draw_unit(d) < 0.45f) {
      float side = tp__draw_unit(d) < 0.5f ? 0.0f : PI;
      float angle = side + tp__draw_in(d, -0.9f, 0.6f) * (side > 0 ? -1.0f : 1.0f);
      tp__paint_leaf(s, x, y, angle, pose->radius * tp__draw_in(d, 0.8f, 1.5f),
                     s->species->leaf * tp__draw_in(d, 0.8f, 1.2f),
                     tp__shade(s->plant.green, tp__draw_in(d, 0.85f, 1.1f)),
                     tp__draw_in(d, -0.3f, 0.3f), 0.3f);
      leaves--;
    }
    lx = x;
    ly = y;
  }
}

static void paint_behind(struct tp__scene *s, const tp__pose *pose)
{
  tp__draws *d = &s->draws;
  tp__paint_background(s);
  int others = tp__draw_unit(d) < 0.45f ? tp__draw_int(d, 1, 3) : 0;
  for (int i = 0; i < others; i++) {
    tp__pose far = choose_pose(s);
    far.radius = pose->radius * tp__draw_in(d, 0.35f, 0.6f);
    far.x = tp__draw_unit(d) * s->size;
    far.y = tp__draw_unit(d) * s->size;
    far.ambient *= 0.85f;
    paint_stem(s, &far);
    tp__paint_flower(&s->canvas, s->species, &s->plant, &far, d);
  }
  tp__blur(&s->canvas, (int)(tp__draw_in(d, 0.008f, 0.035f) * s->size));
}

static void paint_plant(struct tp__scene *s, const tp__pose *pose)
{
  tp__draws *d = &s->draws;
  paint_stem(s, pose);
  float across = tp__draw_in(d, 0.10f, 0.28f) * pose->radius; /* the shadow on what lies behind */
  tp__blob shadow = {.x = pose->x - s->light.x * across,
                     .y = pose->y + s->light.y * across + 0.06f * pose->radius,
                     .a = pose->radius * 0.92f,
                     .b = pose->radius * 0.92f * fmaxf(pose->axis.z, 0.4f),
                     .angle = atan2f(pose->axis.x, pose->axis.y),
                     .soft = 0.3f * pose->radius,
                     .alpha = 0.34f,
                     .colour = {0.02f, 0.03f, 0.02f}};
  tp__paint_blob(&s->canvas, &shadow);
  tp__paint_flower(&s->canvas, s->species, &s->plant, pose, d);
  if (tp__draw_unit(d) < 0.15f) { /* a blade of grass in front, out of focus */
    float x = (tp__draw_unit(d) < 0.5f ? 0.08f : 0.92f) * s->size;
    tp__blob blade = {.x = x,
                      .y = s->size * 0.9f,
                      .a = 0.5f * s->size,
                      .b = 0.03f * s->size,
                      .angle = PI / 2 + tp__draw_in(d, -0.4f, 0.4f),
                      .soft = 0.03f * s->size,
                      .alpha = 0.7f,
                      .colour = tp__some_green(d)};
    tp__paint_blob(&s->canvas, &blade);
  }
}

/* ---- the camera ---- */

/* A slight loss of sharpness: weight w on each neighbour, in both directions. */
static void soften(tp__canvas *c, float w)
{
  size_t n = (size_t)c->size;
  for (int pass = 0; pass < 2; pass++) {
    const float *in = pass == 0 ? c->pixels : c->spare;
    float *out = pass == 0 ? c->spare : c->pixels;
    size_t step = pass == 0 ? 3 : n * 3;
    for (size_t y = 0; y < n; y++) {
      for (size_t x = 0; x < n; x++) {
        size_t at = (y * n + x) * 3, along = pass == 0 ? x : y;
        size_t before = along > 0 ? step : 0, after = along + 1 < n ? step : 0;
        for (size_t k = at; k < at + 3; k++)
          out[k] = in[k] + w * (in[k - before] + in[k + after] - 2 * in[k]);
      }
    }
  }
}

static uint8_t to_byte(float v)
{
  return (uint8_t)(tp__clampf(v, 0, 1) * 255 + 0.5f);
}

/* Exposure, white balance, contrast, saturation, fall-off of light towards the corners and across
 * the picture, noise. */
static void expose(struct tp__scene *s, uint8_t *rgb)
{
  tp__draws *d = &s->draws;
  float warm = tp__draw_in(d, -0.09f, 0.09f), tint = tp__draw_in(d, -0.03f, 0.03f);
  float gain = tp__draw_in(d, 0.92f, 1.26f), contrast = tp__draw_in(d, 0.85f, 1.15f);
  float saturation = tp__draw_in(d, 0.85f, 1.18f), corners = tp__draw_in(d, 0, 0.35f);
  float slope_x = tp__draw_in(d, -0.22f, 0.22f), slope_y = tp__draw_in(d, -0.22f, 0.22f);
  float noise = tp__draw_in(d, 0.004f, 0.020f);
  uint32_t salt = (uint32_t)(tp__draw_unit(d) * 1e6f);
  const float *p = s->canvas.pixels;
  for (int y = 0; y < s->canvas.size; y++) {
    for (int x = 0; x < s->canvas.size; x++, p += 3, rgb += 3) {
      float fx = (float)x / s->size - 0.5f, fy = (float)y / s->size - 0.5f;
      float g = gain * (1 + slope_x * fx + slope_y * fy) * (1 - corners * 2 * (fx * fx + fy * fy));
      float r = p[0] * g * (1 + warm), gr = p[1] * g * (1 + tint), b = p[2] * g * (1 - warm);
      float luma = 0.30f * r + 0.59f * gr + 0.11f * b;
      float grain = tp__hash((uint32_t)x, (uint32_t)y, salt) +
                    tp__hash((uint32_t)x, (uint32_t)y, salt + 1) - 1;
      float shift = 0.45f + noise * grain * 2.4f;
      rgb[0] = to_byte((tp__mixf(luma, r, saturation) - 0.45f) * contrast + shift);
      rgb[1] = to_byte((tp__mixf(luma, gr, saturation) - 0.45f) * contrast + shift);
      rgb[2] = to_byte((tp__mixf(luma, b, saturation) - 0.45f) * contrast + shift);
    }
  }
}

tp_status tp__draw_flower(int species, uint64_t seed, uint64_t number, int size, uint8_t *rgb,
                          tp_error *err)
{
  if (species < 0 || species >= TP__SPECIES || size < 16 || size > 4096)
    return tp__fail(err, TP_ERR_USAGE, "species must be 0 to %d and size 16 to 4096, not %d and %d",
                    TP__SPECIES - 1, species, size);
  size_t floats = (size_t)size * (size_t)size * 3;
  struct tp__scene s = {.size = (float)size, .species = &tp__species_table[species]};
  s.canvas.size = size;
  s.canvas.pixels = tp__calloc(floats * 2, sizeof(float), err);
  if (s.canvas.pixels == NULL) return TP_ERR_INTERNAL;
  s.canvas.spare = s.canvas.pixels + floats;
  s.draws.key = tp__key_of(seed, (uint32_t)species, number);
  tp__draws *d = &s.draws;
  float around = tp__draw_in(d, 0, 2 * PI), high = tp__draw_in(d, 0.45f, 0.95f),
        flat = sqrtf(1 - high * high);
  s.light = (tp__vec3){flat * cosf(around), 0.3f * flat + 0.7f * flat * sinf(around), high};
  s.ambient = tp__draw_in(d, 0.48f, 0.74f);
  s.diffuse = 1.08f - s.ambient;
  s.plant = tp__choose_plant(s.species, d);
  tp__pose pose = choose_pose(&s);
  paint_behind(&s, &pose);
  paint_plant(&s, &pose);
  soften(&s.canvas, tp__draw_in(d, 0.02f, 0.22f));
  expose(&s, rgb);
  free(s.canvas.pixels);
  return TP_OK;
}
