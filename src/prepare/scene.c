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
#include "flower.h"
#include "prepare.h"

#define PI 3.14159265f

struct scene {
  tp__canvas canvas;
  float size;
  tp__draws draws;
  const tp__species *species;
  tp__plant plant;
  tp__vec3 light;
  float ambient, diffuse;
};

static tp__colour grey(float v)
{
  return (tp__colour){v, v, v};
}

static tp__colour some_green(tp__draws *d)
{
  tp__colour a = {0.16f, 0.30f, 0.08f}, b = {0.44f, 0.54f, 0.18f}, c = {0.20f, 0.36f, 0.26f};
  tp__colour green = tp__mix(a, b, tp__draw_unit(d));
  return tp__mix(green, c, 0.6f * tp__draw_unit(d));
}

/* ---- backgrounds, painted sharp and blurred afterwards ---- */

/* Clouds of noise between two colours; cells: how many lattice cells across. */
static void fill_noise(struct scene *s, tp__colour dark, tp__colour bright, float cells, float fine)
{
  uint32_t salt = (uint32_t)(tp__draw_unit(&s->draws) * 1e6f);
  float step = cells / s->size;
  int size = s->canvas.size;
  for (int y = 0; y < size; y += 2) { /* in squares of 2x2: all of it is blurred later */
    for (int x = 0; x < size; x += 2) {
      float fx = (float)x * step, fy = (float)y * step;
      float v =
          0.65f * tp__noise(fx, fy, salt) + 0.35f * tp__noise(fx * 2.7f + 5, fy * 2.7f, salt + 1);
      if (fine > 0) v += fine * (tp__hash((uint32_t)x, (uint32_t)y, salt) - 0.5f);
      tp__colour c = tp__mix(dark, bright, tp__smooth(0.15f, 0.85f, v));
      for (int k = 0; k < 4; k++) {
        int row = y + k / 2, column = x + k % 2;
        if (row >= size || column >= size) continue;
        float *p = s->canvas.pixels + ((size_t)row * (size_t)size + (size_t)column) * 3;
        p[0] = c.r;
        p[1] = c.g;
        p[2] = c.b;
      }
    }
  }
}

static void paint_leaf(struct scene *s, float x, float y, float angle, float length, float width,
                       tp__colour green, float bend, float shadow)
{
  static const float shape[9] = {0.10f, 0.48f, 0.78f, 0.95f, 1.0f, 0.93f, 0.72f, 0.40f, 0};
  tp__outline outline;
  for (int i = 0; i < TP__OUTLINE; i++) {
    float u = (float)i / (TP__OUTLINE - 1) * 8;
    int k = u < 7 ? (int)u : 7;
    outline.left[i] = outline.right[i] = tp__mixf(shape[k], shape[k + 1], u - (float)k);
    outline.tip[i] = 1;
  }
  float c = cosf(angle), sn = sinf(angle), lean = tp__draw_in(&s->draws, -0.5f, 0.5f);
  tp__petal leaf = {.bx = x,
                    .by = y,
                    .dx = length * c,
                    .dy = length * sn,
                    .tx = -length * width * sn,
                    .ty = length * width * c,
                    .qx = -length * bend * sn,
                    .qy = length * bend * c,
                    .nl = s->light.z,
                    .dl = lean,
                    .tl = tp__draw_in(&s->draws, -0.5f, 0.5f),
                    .bend = bend,
                    .cup = 0.55f,
                    .outline = &outline,
                    .base = tp__shade(green, 0.85f),
                    .main = green,
                    .tip = tp__shade(green, 1.08f),
                    .second = green,
                    .back = tp__mix(green, grey(0.6f), 0.3f),
                    .pattern = TP__LEAF,
                    .shadow = shadow,
                    .ambient = s->ambient,
                    .diffuse = s->diffuse};
  tp__paint_petal(&s->canvas, &leaf);
}

static void grass(struct scene *s)
{
  tp__draws *d = &s->draws;
  fill_noise(s, (tp__colour){0.10f, 0.19f, 0.06f}, (tp__colour){0.30f, 0.44f, 0.15f}, 7, 0);
  float wind = tp__draw_in(d, -0.4f, 0.4f);
  for (int i = 0; i < 110; i++) {
    float x = tp__draw_in(d, -0.1f, 1.1f) * s->size, y = tp__draw_in(d, 0.1f, 1.25f) * s->size;
    float length = tp__draw_in(d, 0.25f, 0.6f) * s->size,
          lean = wind + tp__draw_in(d, -0.35f, 0.35f);
    tp__colour green = tp__shade(some_green(d), tp__draw_in(d, 0.8f, 1.7f));
    tp__stroke blade = {.x0 = x,
                        .y0 = y,
                        .x1 = x + lean * length,
                        .y1 = y - length,
                        .w0 = 0.011f * s->size,
                        .w1 = 0.002f * s->size,
                        .alpha = 1,
                        .from = tp__shade(green, 0.55f),
                        .to = green};
    tp__paint_stroke(&s->canvas, &blade);
  }
}

static void soil(struct scene *s)
{
  tp__draws *d = &s->draws;
  tp__colour brown = tp__mix((tp__colour){0.28f, 0.19f, 0.12f}, (tp__colour){0.52f, 0.42f, 0.32f},
                             tp__draw_unit(d));
  fill_noise(s, tp__shade(brown, 0.5f), tp__shade(brown, 1.15f), 14, 0.5f);
  for (int i = 0; i < 45; i++) {
    float r = tp__draw_in(d, 0.008f, 0.035f) * s->size;
    tp__blob stone = {.x = tp__draw_unit(d) * s->size,
                      .y = tp__draw_unit(d) * s->size,
                      .a = r,
                      .b = r * tp__draw_in(d, 0.5f, 0.9f),
                      .angle = tp__draw_in(d, 0, PI),
                      .alpha = 0.9f,
                      .colour = tp__mix(brown, grey(tp__draw_in(d, 0.2f, 0.7f)), 0.6f),
                      .round = true,
                      .light = s->light};
    tp__paint_blob(&s->canvas, &stone);
  }
}

static void sky(struct scene *s)
{
  tp__draws *d = &s->draws;
  tp__colour top = tp__mix((tp__colour){0.26f, 0.46f, 0.80f}, (tp__colour){0.62f, 0.70f, 0.78f},
                           tp__draw_unit(d));
  fill_noise(s, top, tp__mix(top, grey(0.97f), tp__draw_in(d, 0.2f, 0.9f)), 3, 0);
  float horizon = tp__draw_in(d, 0.55f, 1.1f) * s->size;
  for (int i = 0; i < 40; i++) { /* far trees and grass */
    float r = tp__draw_in(d, 0.05f, 0.14f) * s->size, x = tp__draw_in(d, -0.1f, 1.1f) * s->size;
    tp__blob bush = {.x = x,
                     .y = horizon + tp__draw_in(d, 0, 0.5f) * s->size,
                     .a = r * 1.4f,
                     .b = r,
                     .soft = r * 0.4f,
                     .alpha = 0.9f,
                     .colour = tp__shade(some_green(d), tp__draw_in(d, 0.5f, 1.2f))};
    tp__paint_blob(&s->canvas, &bush);
  }
}

static void bokeh(struct scene *s)
{
  tp__draws *d = &s->draws;
  tp__colour base =
      tp__mix(some_green(d), (tp__colour){0.30f, 0.24f, 0.18f}, 0.5f * tp__draw_unit(d));
  fill_noise(s, tp__shade(base, 0.55f), tp__shade(base, 1.35f), 3, 0);
  int n = tp__draw_int(d, 12, 34);
  float r = tp__draw_in(d, 0.03f, 0.085f) * s->size;
  for (int i = 0; i < n; i++) {
    tp__colour c =
        tp__mix(some_green(d), (tp__colour){0.97f, 0.93f, 0.70f}, tp__draw_unit(d) * 0.8f);
    float own = r * tp__draw_in(d, 0.7f, 1.4f);
    tp__blob light = {.x = tp__draw_unit(d) * s->size,
                      .y = tp__draw_unit(d) * s->size,
                      .a = own,
                      .b = own,
                      .soft = own * 0.15f,
                      .alpha = tp__draw_in(d, 0.15f, 0.55f),
                      .colour = c};
    tp__paint_blob(&s->canvas, &light);
  }
}

static void foliage(struct scene *s)
{
  tp__draws *d = &s->draws;
  fill_noise(s, (tp__colour){0.06f, 0.12f, 0.05f}, (tp__colour){0.20f, 0.31f, 0.13f}, 5, 0);
  float width = tp__draw_in(d, 0.14f, 0.36f);
  for (int i = 0; i < 30; i++) {
    tp__colour green = tp__shade(some_green(d), 0.6f + 0.9f * (float)i / 30);
    paint_leaf(s, tp__draw_in(d, -0.1f, 1.1f) * s->size, tp__draw_in(d, -0.1f, 1.1f) * s->size,
               tp__draw_in(d, 0, 2 * PI), tp__draw_in(d, 0.2f, 0.38f) * s->size, width, green,
               tp__draw_in(d, -0.25f, 0.25f), 0.4f);
  }
}

static void wall(struct scene *s)
{
  tp__draws *d = &s->draws;
  tp__colour tone = tp__mix((tp__colour){0.66f, 0.60f, 0.52f}, (tp__colour){0.42f, 0.44f, 0.47f},
                            tp__draw_unit(d));
  tone = tp__shade(tone, tp__draw_in(d, 0.45f, 1.2f));
  fill_noise(s, tp__shade(tone, 0.8f), tp__shade(tone, 1.1f), 9, 0.15f);
  int planks = tp__draw_int(d, 0, 5);
  bool upright = tp__draw_unit(d) < 0.5f;
  for (int i = 1; i < planks; i++) {
    float at = ((float)i + tp__draw_in(d, -0.1f, 0.1f)) / (float)planks * s->size;
    tp__stroke gap = {.x0 = upright ? at : 0,
                      .y0 = upright ? 0 : at,
                      .x1 = upright ? at : s->size,
                      .y1 = upright ? s->size : at,
                      .w0 = 0.008f * s->size,
                      .w1 = 0.008f * s->size,
                      .alpha = 0.6f,
                      .from = tp__shade(tone, 0.4f),
                      .to = tp__shade(tone, 0.4f)};
    tp__paint_stroke(&s->canvas, &gap);
  }
}

/* ---- the plant ---- */

static tp__pose choose_pose(struct scene *s)
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
static void paint_stem(struct scene *s, const tp__pose *pose)
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
      paint_leaf(s, x, y, angle, pose->radius * tp__draw_in(d, 0.8f, 1.5f),
                 s->species->leaf * tp__draw_in(d, 0.8f, 1.2f),
                 tp__shade(s->plant.green, tp__draw_in(d, 0.85f, 1.1f)),
                 tp__draw_in(d, -0.3f, 0.3f), 0.3f);
      leaves--;
    }
    lx = x;
    ly = y;
  }
}

static void paint_background(struct scene *s, const tp__pose *pose)
{
  static void (*const kinds[])(struct scene *) = {grass, soil,    sky,   bokeh, foliage,
                                                  wall,  foliage, bokeh, grass};
  tp__draws *d = &s->draws;
  kinds[tp__draw_int(d, 0, 8)](s);
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

static void paint_plant(struct scene *s, const tp__pose *pose)
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
                      .colour = some_green(d)};
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
static void expose(struct scene *s, uint8_t *rgb)
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
  struct scene s = {.size = (float)size, .species = &tp__species_table[species]};
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
  paint_background(&s, &pose);
  paint_plant(&s, &pose);
  soften(&s.canvas, tp__draw_in(d, 0.02f, 0.22f));
  expose(&s, rgb);
  free(s.canvas.pixels);
  return TP_OK;
}
