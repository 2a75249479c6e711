/* centre - what stands in the middle of a flower: disk, stamens, cone, tube, corona...; see
 * flower.h */
#include <math.h>

#include "flower.h"

#define PI     3.14159265f
#define GOLDEN 2.3999632f

struct painter {
  tp__canvas *canvas;
  const tp__species *s;
  const tp__plant *plant;
  const tp__view *view;
  tp__draws *d;
};

static float light_on(const struct painter *p, tp__vec3 normal)
{
  const tp__pose *pose = p->view->pose;
  float n = tp__dot3(tp__turn(p->view, normal), pose->light);
  return pose->ambient + pose->diffuse * (n > 0 ? n : 0);
}

/* A circle of the flower's frame around its axis at height z, as an ellipse on the screen. */
static void paint_circle(const struct painter *p, float z, float radius, tp__colour colour,
                         float soft, float alpha)
{
  const tp__pose *pose = p->view->pose;
  tp__vec3 at = {0, 0, z};
  float lean = sqrtf(pose->axis.x * pose->axis.x + pose->axis.y * pose->axis.y);
  float angle =
      lean > 1e-3f ? atan2f(pose->axis.x, pose->axis.y) : 0; /* long axis across the lean */
  tp__blob blob = {.x = tp__screen_x(p->view, at),
                   .y = tp__screen_y(p->view, at),
                   .a = radius * pose->radius,
                   .b = radius * pose->radius * fmaxf(pose->axis.z, 0.1f),
                   .angle = angle,
                   .soft = soft,
                   .alpha = alpha,
                   .colour = colour};
  tp__paint_blob(p->canvas, &blob);
}

static void paint_dot(const struct painter *p, tp__vec3 at, float radius, tp__colour colour,
                      bool round)
{
  tp__blob blob = {.x = tp__screen_x(p->view, at),
                   .y = tp__screen_y(p->view, at),
                   .a = radius * p->view->pose->radius,
                   .b = radius * p->view->pose->radius,
                   .alpha = 1,
                   .colour = colour,
                   .round = round,
                   .light = p->view->pose->light};
  if (blob.a < 0.5f) { /* smaller than a pixel: fainter instead */
    blob.alpha = fmaxf(0.2f, blob.a * 1.6f);
    blob.a = blob.b = 0.6f;
  }
  tp__paint_blob(p->canvas, &blob);
}

static void paint_thread(const struct painter *p, tp__vec3 from, tp__vec3 to, float w0, float w1,
                         tp__colour c0, tp__colour c1)
{
  float r = p->view->pose->radius;
  tp__stroke stroke = {.x0 = tp__screen_x(p->view, from),
                       .y0 = tp__screen_y(p->view, from),
                       .x1 = tp__screen_x(p->view, to),
                       .y1 = tp__screen_y(p->view, to),
                       .w0 = w0 * r,
                       .w1 = w1 * r,
                       .alpha = 1,
                       .from = c0,
                       .to = c1,
                       .round = w0 * r > 2};
  tp__paint_stroke(p->canvas, &stroke);
}

/* Contact shadow on the petals around. */
static void paint_shadow(const struct painter *p, float radius)
{
  float r = radius * p->view->pose->radius;
  paint_circle(p, 0, radius * 1.08f, (tp__colour){0.06f, 0.05f, 0.03f}, 0.35f * r, 0.45f);
}

/* Florets in the spiral of a sunflower's head (Vogel 1979) over a dome; spikes > 0: each a bristle.
 */
static void paint_dome(const struct painter *p, float spikes)
{
  const tp__species *s = p->s;
  float R = s->centre_size, H = s->centre_height * tp__draw_in(p->d, 0.8f, 1.2f);
  float ripe = tp__draw_in(p->d, 0.2f, 0.7f); /* how far the florets have opened from the edge */
  int n = s->centre_count;
  paint_shadow(p, R);
  paint_circle(p, 0, R, tp__shade(s->centre_colour, 0.62f * light_on(p, (tp__vec3){0, 0, 1})), 0,
               1);
  for (int k = n - 1; k >= 0; k--) {
    float q = ((float)k + 0.5f) / (float)n, r = R * sqrtf(q), a = (float)k * GOLDEN;
    float slope = 2 * H * r / (R * R), norm = 1 / sqrtf(1 + slope * slope);
    tp__vec3 normal = {slope * cosf(a) * norm, slope * sinf(a) * norm, norm};
    if (tp__turn(p->view, normal).z < 0.05f) continue;
    tp__vec3 at = {r * cosf(a), r * sinf(a), H * (1 - q)};
    tp__colour c = tp__mix(s->centre_colour, s->centre_accent,
                           tp__smooth(ripe - 0.25f, ripe + 0.25f, 1 - q) * 0.8f);
    c = tp__shade(c, light_on(p, normal) * tp__draw_in(p->d, 0.85f, 1.15f));
    float size = R * 0.92f / sqrtf((float)n);
    if (spikes > 0) {
      tp__vec3 tip = {at.x + spikes * normal.x, at.y + spikes * normal.y, at.z + spikes * normal.z};
      paint_thread(p, at, tip, size * 0.9f, size * 0.35f, tp__shade(c, 0.65f),
                   tp__shade(tp__mix(c, s->centre_accent, 0.5f), 1.15f));
    } else {
      paint_dot(p, (tp__vec3){at.x + 0.3f * size, at.y - 0.3f * size, at.z}, size,
                tp__shade(c, 0.55f), false);
      paint_dot(p, at, size * 0.85f, c, false);
    }
  }
}

static void paint_button(const struct painter *p, float scale)
{
  const tp__species *s = p->s;
  float R = s->centre_size * scale;
  paint_shadow(p, R);
  paint_circle(p, 0, R, tp__shade(s->centre_colour, 0.7f), 0, 1);
  tp__vec3 top = {0, 0, s->centre_height * 0.5f};
  paint_dot(p, top, R * 0.92f, s->centre_colour, true);
  paint_dot(p, (tp__vec3){0, 0, s->centre_height}, R * 0.4f, s->centre_accent, true);
}

static void paint_stamens(const struct painter *p)
{
  const tp__species *s = p->s;
  int n = s->centre_count;
  float R = s->centre_size, H = s->centre_height, light = light_on(p, (tp__vec3){0, 0, 1});
  bool few = n < 12;
  tp__colour thread = tp__shade(few ? tp__mix(s->centre_accent, p->plant->base, 0.5f)
                                    : tp__mix(s->centre_colour, p->plant->base, 0.35f),
                                light);
  tp__colour anther = tp__shade(s->centre_colour, light);
  if (!few) paint_shadow(p, R * 0.8f);
  float phase = tp__draw_in(p->d, 0, 2 * PI);
  for (int k = n - 1; k >= 0; k--) {
    float a = few ? phase + 2 * PI * (float)k / (float)n : (float)k * GOLDEN;
    float q = few ? 1 : 0.45f + 0.55f * ((float)k + 0.5f) / (float)n;
    float r = R * sqrtf(q) * tp__draw_in(p->d, 0.85f, 1.08f),
          z = H * tp__draw_in(p->d, 0.7f, 1.1f) * (few ? 1 : 1.3f - q);
    tp__vec3 foot = {0.12f * r * cosf(a), 0.12f * r * sinf(a), 0};
    tp__vec3 tip = {r * cosf(a), r * sinf(a), z};
    paint_thread(p, foot, tip, few ? 0.014f : 0.009f, few ? 0.010f : 0.007f,
                 tp__shade(thread, 0.75f), thread);
    paint_dot(p, tip, few ? 0.040f : 0.024f, tp__shade(anther, tp__draw_in(p->d, 0.85f, 1.25f)),
              true);
  }
  if (few) { /* a long style */
    tp__vec3 tip = {0.05f, 0.08f, H * 1.15f};
    paint_thread(p, (tp__vec3){0, 0, 0}, tip, 0.02f, 0.014f,
                 tp__shade(s->centre_accent, light * 0.8f), tp__shade(s->centre_accent, light));
    paint_dot(p, tip, 0.032f, s->centre_accent, true);
  } else { /* the ovary */
    paint_dot(p, (tp__vec3){0, 0, H * 0.5f}, R * 0.34f, s->centre_accent, true);
    for (int k = 0; k < 9; k++) {
      float a = 2 * PI * (float)k / 9;
      tp__vec3 from = {0, 0, H * 0.62f}, to = {R * 0.26f * cosf(a), R * 0.26f * sinf(a), H * 0.55f};
      paint_thread(p, from, to, 0.006f, 0.005f, tp__shade(s->centre_accent, 0.6f),
                   tp__shade(s->centre_accent, 0.7f));
    }
  }
}

static void paint_tube(const struct painter *p)
{
  const tp__species *s = p->s;
  float R = s->centre_size, light = light_on(p, (tp__vec3){0, 0, 1});
  for (int k = 0; k < s->centre_count; k++) { /* a pale star around the mouth */
    float a = 2 * PI * ((float)k + 0.5f) / (float)s->centre_count;
    tp__vec3 to = {1.5f * R * cosf(a), 1.5f * R * sinf(a), 0};
    paint_thread(p, (tp__vec3){0, 0, 0}, to, R * 0.5f, R * 0.08f,
                 tp__shade(s->centre_colour, light), tp__shade(s->centre_colour, light));
  }
  paint_circle(p, 0, R, tp__shade(s->centre_colour, 0.95f * light), 0, 1);
  paint_circle(p, 0, R * 0.62f, tp__shade(s->centre_accent, 0.35f), 1, 0.95f);
  paint_dot(p, (tp__vec3){0, 0, 0}, R * 0.3f, tp__shade(s->centre_accent, 0.95f), true);
}

static void paint_column(const struct painter *p)
{
  const tp__species *s = p->s;
  float H = s->centre_height, w = s->centre_size * 0.5f, sway = tp__draw_in(p->d, -0.12f, 0.12f);
  float sway2 = tp__draw_in(p->d, -0.12f, 0.12f);
  paint_circle(p, 0, s->centre_size * 2.2f, tp__shade(p->plant->second, 0.6f),
               0.1f * p->view->pose->radius, 0.7f);
  tp__vec3 last = {0, 0, 0};
  int dots = s->centre_count / 4 + 1;
  for (int k = 1; k <= 8; k++) {
    float t = (float)k / 8;
    tp__vec3 at = {sway * t * t, sway2 * t * t, H * t};
    paint_thread(p, last, at, w, w * 0.9f, tp__mix(p->plant->main, s->centre_colour, t),
                 s->centre_colour);
    for (int i = 0; i < dots && t > 0.45f && s->centre_count > 8; i++) {
      float a = tp__draw_in(p->d, 0, 2 * PI), out = tp__draw_in(p->d, 0.05f, 0.10f);
      tp__vec3 tip = {at.x + out * cosf(a), at.y + out * sinf(a), at.z + 0.04f};
      paint_thread(p, at, tip, 0.006f, 0.006f, s->centre_colour, s->centre_colour);
      paint_dot(p, tip, 0.024f, s->centre_accent, true);
    }
    last = at;
  }
  for (int k = 0; k < 5; k++) {
    float a = 2 * PI * (float)k / 5;
    tp__vec3 tip = {last.x + 0.05f * cosf(a), last.y + 0.05f * sinf(a), last.z + 0.06f};
    paint_thread(p, last, tip, 0.012f, 0.010f, s->centre_colour, p->plant->second);
    paint_dot(p, tip, 0.028f, tp__mix(p->plant->second, s->centre_accent, 0.3f), true);
  }
}

static void paint_throat(const struct painter *p)
{
  const tp__species *s = p->s;
  float R = s->centre_size, r = p->view->pose->radius;
  paint_circle(p, 0, R * 1.9f, s->centre_colour, R * r, 0.75f);
  paint_circle(p, -0.05f, R * 0.75f, (tp__colour){0.25f, 0.28f, 0.14f}, 0.4f * R * r, 0.8f);
  for (int k = 0; k < s->centre_count; k++) {
    float a = 2 * PI * (float)k / (float)s->centre_count;
    tp__vec3 tip = {R * 0.45f * cosf(a), R * 0.45f * sinf(a), 0.12f};
    paint_thread(p, (tp__vec3){0, 0, 0}, tip, 0.012f, 0.010f, s->centre_colour, s->centre_colour);
    paint_dot(p, tip, 0.028f, s->centre_accent, true);
  }
}

/* A trumpet: the wall as circles from the foot to the rim, a ruffled rim, then the inside down to
 * the foot again. */
static void paint_corona(const struct painter *p)
{
  const tp__species *s = p->s;
  float R = s->centre_size, H = s->centre_height * tp__draw_in(p->d, 0.75f, 1.15f);
  tp__colour c = tp__draw_unit(p->d) < 0.5f
                     ? tp__mix(p->plant->second, s->centre_colour, 0.5f)
                     : tp__mix(s->centre_colour, s->centre_accent, tp__draw_unit(p->d));
  float light = light_on(p, (tp__vec3){0, 0, 1});
  paint_shadow(p, R * 0.9f);
  enum { STEPS = 14 };
  for (int k = 0; k <= STEPS; k++) {
    float t = (float)k / STEPS, flare = 0.66f + 0.34f * t * t;
    paint_circle(p, H * t, R * flare, tp__shade(c, light * (0.62f + 0.25f * t)), 0, 1);
  }
  for (int pass = 0; pass < 2; pass++) {
    for (int k = 0; k < 2 * s->centre_count; k++) {
      float a = PI * (float)k / (float)s->centre_count,
            out = R * (1.02f + 0.05f * sinf((float)k * 2.1f));
      tp__vec3 at = {out * cosf(a), out * sinf(a), H * (1.01f + 0.03f * sinf((float)k * 3.3f))};
      float l = light_on(p, (tp__vec3){0.6f * cosf(a), 0.6f * sinf(a), 0.8f});
      paint_dot(p, at, R * (pass == 0 ? 0.15f : 0.10f),
                tp__shade(c, l * (pass == 0 ? 0.85f : 1.1f)), false);
    }
  }
  for (int k = STEPS; k >= 0; k--) {
    float t = (float)k / STEPS, flare = 0.42f + 0.56f * t;
    paint_circle(p, H * (0.35f + 0.65f * t), R * flare, tp__shade(c, light * (0.50f + 0.55f * t)),
                 0, 1);
  }
  for (int k = 0; k < 6; k++) {
    float a = PI * (float)k / 3;
    paint_dot(p, (tp__vec3){0.09f * cosf(a), 0.09f * sinf(a), H * 0.6f}, 0.035f,
              tp__shade(s->centre_colour, 0.9f), true);
  }
}

/* Filaments over a half ball (thistle), or a flat banded crown (passion flower) when the height is
 * small. */
static void paint_brush(const struct painter *p)
{
  const tp__species *s = p->s;
  float R = s->centre_size, H = s->centre_height, light = light_on(p, (tp__vec3){0, 0, 1});
  bool flat = H<0.5f * R, own = s->centre_colour.r + s->centre_colour.g + s->centre_colour.b> 0;
  tp__colour c = own ? s->centre_colour : p->plant->main;
  if (!flat) {
    paint_shadow(p, R * 0.6f);
    paint_circle(p, 0, R * 0.5f, tp__shade(c, 0.45f), 0.15f * R * p->view->pose->radius, 1);
  }
  for (int k = s->centre_count - 1; k >= 0; k--) {
    float q = ((float)k + 0.5f) / (float)s->centre_count, a = (float)k * GOLDEN;
    float out = flat ? R * (k % 3 == 0 ? 0.66f : 1) * tp__draw_in(p->d, 0.9f, 1.05f)
                     : R * sqrtf(q) * tp__draw_in(p->d, 0.85f, 1.1f);
    float high = flat ? H * tp__draw_in(p->d, 0.3f, 1)
                      : H * sqrtf(fmaxf(0.02f, 1 - q)) * tp__draw_in(p->d, 0.9f, 1.15f) + 0.1f;
    tp__vec3 foot = {0.30f * out * cosf(a), 0.30f * out * sinf(a), flat ? 0 : 0.3f * high};
    tp__vec3 tip = {out * cosf(a), out * sinf(a), high};
    float l = light * tp__draw_in(p->d, 0.82f, 1.18f);
    if (flat) {
      tp__vec3 mid = {0.5f * (foot.x + tip.x), 0.5f * (foot.y + tip.y), 0.5f * high};
      paint_thread(p, foot, mid, 0.014f, 0.012f, tp__shade(c, 0.5f * l),
                   tp__shade(s->centre_accent, l * 1.4f));
      paint_thread(p, mid, tip, 0.012f, 0.006f,
                   tp__shade(tp__mix(c, (tp__colour){1, 1, 1}, 0.7f), l), tp__shade(c, l));
    } else {
      paint_thread(p, foot, tip, 0.012f, 0.012f, tp__shade(c, 0.6f * l),
                   tp__shade(tp__mix(c, s->centre_accent, 0.18f), 1.1f * l));
    }
  }
  if (!flat) return;
  paint_dot(p, (tp__vec3){0, 0, 0.1f}, 0.12f, s->centre_accent, true);
  for (int k = 0; k < 5; k++) {
    float a = 2 * PI * (float)k / 5;
    tp__vec3 tip = {0.24f * cosf(a), 0.24f * sinf(a), 0.22f};
    paint_thread(p, (tp__vec3){0, 0, 0.15f}, tip, 0.02f, 0.02f, s->centre_accent, s->centre_accent);
    paint_dot(p, tip, 0.055f, (tp__colour){0.85f, 0.76f, 0.25f}, true);
  }
}

void tp__paint_centre(tp__canvas *canvas, const tp__species *s, const tp__plant *plant,
                      const tp__view *view, tp__draws *d)
{
  struct painter p = {canvas, s, plant, view, d};
  switch (s->centre) {
  case TP__CENTRE_NONE:
    break;
  case TP__CENTRE_DISK:
    paint_dome(&p, 0);
    break;
  case TP__CENTRE_CONE:
    paint_dome(&p, 0.09f);
    break;
  case TP__CENTRE_STAMENS:
    paint_stamens(&p);
    break;
  case TP__CENTRE_TUBE:
    paint_tube(&p);
    break;
  case TP__CENTRE_BUTTON:
    paint_button(&p, 1);
    break;
  case TP__CENTRE_COLUMN:
    paint_column(&p);
    break;
  case TP__CENTRE_THROAT:
    paint_throat(&p);
    break;
  case TP__CENTRE_CORONA:
    paint_corona(&p);
    break;
  case TP__CENTRE_BRUSH:
    paint_brush(&p);
    break;
  }
}
