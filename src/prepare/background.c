/* background - grass, soil, sky, lights out of focus, foliage or a wall; see scene.h
 *
 * They are painted sharp: scene.c blurs them, with the flowers that stand far behind.
 */
#include "scene.h"

#include <math.h>
#include <stddef.h>

#define PI 3.14159265f

static tp__colour grey(float v)
{
  return (tp__colour){v, v, v};
}

tp__colour tp__some_green(tp__draws *d)
{
  tp__colour a = {0.16f, 0.30f, 0.08f}, b = {0.44f, 0.54f, 0.18f}, c = {0.20f, 0.36f, 0.26f};
  tp__colour green = tp__mix(a, b, tp__draw_unit(d));
  return tp__mix(green, c, 0.6f * tp__draw_unit(d));
}

/* Clouds of noise between two colours; cells: how many lattice cells across. */
static void fill_noise(struct tp__scene *s, tp__colour dark, tp__colour bright, float cells,
                       float fine)
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

void tp__paint_leaf(struct tp__scene *s, float x, float y, float angle, float length, float width,
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

static void grass(struct tp__scene *s)
{
  tp__draws *d = &s->draws;
  fill_noise(s, (tp__colour){0.10f, 0.19f, 0.06f}, (tp__colour){0.30f, 0.44f, 0.15f}, 7, 0);
  float wind = tp__draw_in(d, -0.4f, 0.4f);
  for (int i = 0; i < 110; i++) {
    float x = tp__draw_in(d, -0.1f, 1.1f) * s->size, y = tp__draw_in(d, 0.1f, 1.25f) * s->size;
    float length = tp__draw_in(d, 0.25f, 0.6f) * s->size,
          lean = wind + tp__draw_in(d, -0.35f, 0.35f);
    tp__colour green = tp__shade(tp__some_green(d), tp__draw_in(d, 0.8f, 1.7f));
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

static void soil(struct tp__scene *s)
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

static void sky(struct tp__scene *s)
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
                     .colour = tp__shade(tp__some_green(d), tp__draw_in(d, 0.5f, 1.2f))};
    tp__paint_blob(&s->canvas, &bush);
  }
}

static void bokeh(struct tp__scene *s)
{
  tp__draws *d = &s->draws;
  tp__colour base =
      tp__mix(tp__some_green(d), (tp__colour){0.30f, 0.24f, 0.18f}, 0.5f * tp__draw_unit(d));
  fill_noise(s, tp__shade(base, 0.55f), tp__shade(base, 1.35f), 3, 0);
  int n = tp__draw_int(d, 12, 34);
  float r = tp__draw_in(d, 0.03f, 0.085f) * s->size;
  for (int i = 0; i < n; i++) {
    tp__colour c =
        tp__mix(tp__some_green(d), (tp__colour){0.97f, 0.93f, 0.70f}, tp__draw_unit(d) * 0.8f);
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

static void foliage(struct tp__scene *s)
{
  tp__draws *d = &s->draws;
  fill_noise(s, (tp__colour){0.06f, 0.12f, 0.05f}, (tp__colour){0.20f, 0.31f, 0.13f}, 5, 0);
  float width = tp__draw_in(d, 0.14f, 0.36f);
  for (int i = 0; i < 30; i++) {
    tp__colour green = tp__shade(tp__some_green(d), 0.6f + 0.9f * (float)i / 30);
    tp__paint_leaf(s, tp__draw_in(d, -0.1f, 1.1f) * s->size, tp__draw_in(d, -0.1f, 1.1f) * s->size,
                   tp__draw_in(d, 0, 2 * PI), tp__draw_in(d, 0.2f, 0.38f) * s->size, width, green,
                   tp__draw_in(d, -0.25f, 0.25f), 0.4f);
  }
}

static void wall(struct tp__scene *s)
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

void tp__paint_background(struct tp__scene *s)
{
  static void (*const kinds[])(struct tp__scene *) = {grass, soil,    sky,   bokeh, foliage,
                                                      wall,  foliage, bokeh, grass};
  kinds[tp__draw_int(&s->draws, 0, 8)](s);
}
