/* flower - petals of a flower in their three-dimensional places, painted from the farthest to the
 * nearest; see flower.h
 *
 * A petal is a flat or curled surface with a base point, a direction out of the flower, and a side.
 * Seen at an angle, each is foreshortened by itself, so a tilted cup shows the inside of its far
 * petals and the outside of the near ones. Petals seen from inside are painted ring by ring before
 * the centre, those seen from outside after it, from the inner ring outwards.
 */
#include "flower.h"

#include <math.h>
#include <stddef.h>

#define PI 3.14159265f

enum { PETALS_MAX = 28 };

/* ---- colours ---- */

static const tp__colour white = {1, 1, 1}, ink = {0.16f, 0.05f, 0.14f},
                        yolk = {0.96f, 0.80f, 0.18f};

static tp__colour family(uint32_t mask, tp__draws *d)
{
  int n = __builtin_popcount(mask), pick = tp__draw_int(d, 0, n - 1), at = 0;
  for (; at < TP__COLOURS; at++)
    if (mask >> at & 1 && pick-- == 0) break;
  tp__colour c = tp__colour_families[at];
  float shade = tp__draw_in(d, 0.88f, 1.06f);
  c.r *= shade * tp__draw_in(d, 0.95f, 1.05f);
  c.g *= shade * tp__draw_in(d, 0.90f, 1.10f);
  c.b *= shade * tp__draw_in(d, 0.92f, 1.08f);
  return c;
}

tp__plant tp__choose_plant(const tp__species *s, tp__draws *d)
{
  tp__plant p = {.main = family(s->colours, d)};
  tp__colour other = family(s->colours, d);
  p.base = tp__draw_unit(d) < 0.5f ? tp__shade(p.main, tp__draw_in(d, 0.72f, 0.92f))
                                   : tp__mix(p.main, white, tp__draw_in(d, 0.05f, 0.35f));
  p.tip = tp__draw_unit(d) < 0.35f ? tp__shade(p.main, tp__draw_in(d, 0.85f, 0.97f))
                                   : tp__mix(p.main, white, tp__draw_in(d, 0, 0.22f));
  p.back = tp__mix(tp__shade(p.main, 0.92f), (tp__colour){0.80f, 0.86f, 0.66f}, 0.22f);
  switch (s->second) {
  case TP__SECOND_DARK:
    p.second = tp__shade(p.main, 0.48f);
    break;
  case TP__SECOND_PALE:
    p.second = tp__mix(p.main, white, 0.72f);
    break;
  case TP__SECOND_YELLOW:
    p.second = tp__mix(yolk, p.main, 0.08f);
    break;
  case TP__SECOND_INK:
    p.second = tp__mix(ink, p.main, 0.12f);
    break;
  case TP__SECOND_OTHER:
    p.second = other;
    break;
  }
  float dry = tp__draw_unit(d);
  p.green = tp__mix((tp__colour){0.20f, 0.40f, 0.13f}, (tp__colour){0.42f, 0.50f, 0.20f}, dry);
  p.green = tp__mix(p.green, (tp__colour){0.28f, 0.42f, 0.36f}, 0.6f * tp__draw_unit(d));
  return p;
}

/* ---- pose ---- */

static tp__vec3 cross3(tp__vec3 a, tp__vec3 b)
{
  return (tp__vec3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

/* Rotation that brings z to the axis by the shortest way, after the spin. */
tp__view tp__view_of(const tp__pose *pose)
{
  tp__vec3 n = pose->axis;
  float s2 = n.x * n.x + n.y * n.y, f = s2 > 1e-8f ? (1 - n.z) / s2 : 0.5f;
  tp__vec3 ex = {1 - f * n.x * n.x, -f * n.x * n.y, -n.x};
  tp__vec3 ey = {-f * n.x * n.y, 1 - f * n.y * n.y, -n.y};
  float c = cosf(pose->spin), s = sinf(pose->spin);
  tp__vec3 x = {c * ex.x + s * ey.x, c * ex.y + s * ey.y, c * ex.z + s * ey.z};
  tp__vec3 y = {c * ey.x - s * ex.x, c * ey.y - s * ex.y, c * ey.z - s * ex.z};
  return (tp__view){{x.x, y.x, n.x}, {x.y, y.y, n.y}, {x.z, y.z, n.z}, pose};
}

tp__vec3 tp__turn(const tp__view *v, tp__vec3 p)
{
  return (tp__vec3){tp__dot3(v->rx, p), tp__dot3(v->ry, p), tp__dot3(v->rz, p)};
}

/* ---- outline ---- */

static void make_outline(const tp__ring *r, tp__draws *d, tp__outline *o)
{
  float peak = r->low / (r->low + r->high);
  float top = powf(peak, r->low) * powf(1 - peak, r->high);
  float pl = tp__draw_in(d, 0, 2 * PI), pr = tp__draw_in(d, 0, 2 * PI),
        waves = tp__draw_in(d, 5, 9);
  float skew = tp__draw_in(d, -0.06f, 0.06f), phase = tp__draw_in(d, -0.1f, 0.1f);
  for (int i = 0; i < TP__OUTLINE; i++) {
    float u = (float)i / (TP__OUTLINE - 1);
    float w = powf(u, r->low) * powf(1 - u, r->high) / top;
    float wave = 2 * r->ruffle * u;
    o->left[i] = w * (1 + skew + wave * sinf(pl + waves * u * PI));
    o->right[i] = w * (1 - skew + wave * sinf(pr + waves * u * PI));
    float v = 2 * u - 1;
    float cleft = fmaxf(0, 1 - fabsf(v) * 2.2f);
    float tip =
        1 - r->notch * cleft * cleft * (3 - 2 * cleft) - r->ruffle * 0.6f * (1 + sinf(pl + 9 * v));
    if (r->teeth > 0) {
      float f = (v + 1) * 0.5f * (float)r->teeth + phase + 8;
      float saw = fabsf(f - floorf(f) - 0.5f) * 2; /* 1 at clefts, 0 at points */
      float deep = r->teeth > 5 ? 0.6f + 0.8f * sinf(f * 1.7f) * sinf(f * 1.7f) : 1;
      tip -= r->tooth * deep * saw * saw;
    }
    o->tip[i] = tip;
  }
}

/* ---- petals ---- */

struct part { /* one petal, ready to paint */
  tp__petal petal;
  float depth;
  bool outside; /* its outer side is seen */
};

static tp__colour jitter(tp__colour c, float by, tp__draws *d)
{
  return tp__shade(c, 1 + tp__draw_in(d, -by, by));
}

static void choose_colours(const tp__ring *r, const tp__plant *plant, tp__draws *d, tp__petal *o)
{
  float by = 0.05f;
  if (r->paint == TP__PAINT_GREEN) {
    o->base = o->main = jitter(plant->green, 0.12f, d);
    o->tip = tp__mix(o->main, (tp__colour){0.6f, 0.55f, 0.3f}, 0.4f);
    o->back = tp__shade(o->main, 0.9f);
    o->second = o->main;
  } else if (r->paint == TP__PAINT_SECOND) {
    o->base = o->main = o->tip = jitter(plant->second, by, d);
    o->second = tp__shade(plant->main, 0.55f);
    o->back = tp__shade(o->main, 0.85f);
  } else {
    float f = 1 + tp__draw_in(d, -by, by);
    /* little light reaches the bottom of a cup */
    o->base = tp__shade(plant->base, f * (1 - 0.45f * tp__smooth(10, 60, r->lift)));
    o->main = tp__shade(plant->main, f);
    o->tip = tp__shade(plant->tip, f);
    o->second = plant->second;
    o->back = plant->back;
  }
}

/* Puts one petal at its angle. */
static void place(const tp__ring *r, const tp__view *view, float angle, tp__draws *d,
                  struct part *part)
{
  const tp__pose *pose = view->pose;
  float lift = (r->lift + tp__draw_in(d, -30, 30) * r->vary) * PI / 180;
  float length = r->length * (1 - r->vary * tp__draw_unit(d));
  float width = r->width * length * (1 + r->vary * tp__draw_in(d, -0.5f, 0.5f));
  float roll = (r->roll + tp__draw_in(d, -40, 40) * r->vary) * PI / 180;
  float curl = r->curl * length * (1 + r->vary * tp__draw_in(d, -3, 3));
  float twist = (r->twist + r->vary * tp__draw_in(d, -0.6f, 0.6f)) * length;
  float ca = cosf(angle), sa = sinf(angle), cl = cosf(lift), sl = sinf(lift);
  tp__vec3 base = {r->from * ca, r->from * sa, 0};
  tp__vec3 along = {ca * cl, sa * cl, sl}, flat = {-sa, ca, 0}, up = cross3(along, flat);
  float cr = cosf(roll), sr = sinf(roll);
  /* the side is mirrored so that the upper side has a positive area on the screen, where y points
   * down */
  tp__vec3 side = {-(flat.x * cr + up.x * sr), -(flat.y * cr + up.y * sr),
                   -(flat.z * cr + up.z * sr)};
  tp__vec3 normal = cross3(side, along);
  tp__vec3 d3 = tp__turn(view, along), t3 = tp__turn(view, side), n3 = tp__turn(view, normal);
  float s = pose->radius;
  tp__petal *o = &part->petal;
  o->bx = tp__screen_x(view, base);
  o->by = tp__screen_y(view, base);
  o->dx = s * length * d3.x;
  o->dy = -s * length * d3.y;
  o->tx = s * width * t3.x;
  o->ty = -s * width * t3.y;
  o->qx = s * (curl * n3.x + twist * t3.x);
  o->qy = -s * (curl * n3.y + twist * t3.y);
  o->nl = tp__dot3(n3, pose->light);
  o->dl = tp__dot3(d3, pose->light);
  o->tl = tp__dot3(t3, pose->light);
  o->bend = 2 * curl / length;
  o->cup = r->cup * r->width * 1.6f;
  tp__vec3 mid = {base.x + 0.6f * length * along.x, base.y + 0.6f * length * along.y,
                  0.6f * length * along.z};
  part->depth = tp__turn(view, mid).z;
  part->outside = n3.z - o->bend * 0.5f * d3.z < 0;
}

static int make_ring(const tp__ring *r, int ring, const tp__plant *plant, const tp__view *view,
                     float start, int count, tp__draws *d, tp__outline *outlines,
                     struct part *parts)
{
  bool fine = view->pose->radius > 24; /* small flowers share one outline */
  float spread = r->spread > 0 ? r->spread : 1;
  int gaps = r->spread > 0 && count > 1 ? count - 1 : count;
  for (int i = 0; i < count; i++) {
    float turn = start + spread * (float)i / (float)gaps;
    if (count > 1) turn += r->vary * tp__draw_in(d, -0.5f, 0.5f) / (float)count;
    struct part *part = &parts[i];
    *part = (struct part){0};
    place(r, view, turn * 2 * PI, d, part);
    choose_colours(r, plant, d, &part->petal);
    tp__petal *o = &part->petal;
    if (fine || i == 0) make_outline(r, d, &outlines[i]);
    o->outline = &outlines[fine ? i : 0];
    o->pattern = fine ? r->pattern : r->pattern & ~(unsigned)TP__VEINS;
    o->extent = r->extent;
    o->salt = (uint32_t)(tp__draw_unit(d) * 1e6f);
    o->shadow = ring == 0 ? 0.20f : 0.38f; /* the outer ring lies on what is far behind */
    o->ambient = view->pose->ambient;
    o->diffuse = view->pose->diffuse;
  }
  /* nearer ones later; the order of equal ones goes round the flower */
  for (int i = 1; i < count; i++) {
    struct part key = parts[i];
    int j = i;
    for (; j > 0 && parts[j - 1].depth > key.depth + 0.04f; j--) parts[j] = parts[j - 1];
    parts[j] = key;
  }
  return count;
}

static void paint_single(tp__canvas *canvas, const tp__species *s, const tp__plant *plant,
                         const tp__pose *pose, tp__draws *d)
{
  tp__view view = tp__view_of(pose);
  struct part parts[TP__RINGS][PETALS_MAX];
  tp__outline outlines[TP__RINGS][PETALS_MAX];
  int count[TP__RINGS] = {0};
  float start = 0;
  for (int i = 0; i < s->n_rings; i++) {
    const tp__ring *r = &s->ring[i];
    int n = tp__draw_int(d, r->least, r->most);
    start = r->start < 0 ? start + 0.5f / (float)n : r->start;
    count[i] = make_ring(r, i, plant, &view, start, n, d, outlines[i], parts[i]);
  }
  for (int pass = 0; pass < 2; pass++) { /* drooping ones seen from outside lie behind all */
    for (int i = 0; i < s->n_rings; i++)
      for (int j = 0; j < count[i]; j++)
        if (pass == 0 ? parts[i][j].outside && s->ring[i].lift < 0 : !parts[i][j].outside)
          tp__paint_petal(canvas, &parts[i][j].petal);
  }
  tp__paint_centre(canvas, s, plant, &view, d);
  for (int i = s->n_rings - 1; i >= 0; i--)
    for (int j = 0; j < count[i]; j++)
      if (parts[i][j].outside && s->ring[i].lift >= 0) tp__paint_petal(canvas, &parts[i][j].petal);
}

/* ---- many on one stem ---- */

/* The i-th of n points spread evenly over the cap of a sphere around the axis, down to height `low`
 * (1: the top). */
static tp__vec3 on_cap(const tp__view *view, int i, int n, float low, tp__draws *d)
{
  float z = 1 - (1 - low) * ((float)i + 0.5f) / (float)n, r = sqrtf(fmaxf(0, 1 - z * z));
  float angle = (float)i * 2.3999632f + tp__draw_in(d, -0.2f, 0.2f);
  return tp__turn(view, (tp__vec3){r * cosf(angle), r * sinf(angle), z});
}

static void paint_many(tp__canvas *canvas, const tp__species *s, const tp__plant *plant,
                       const tp__pose *pose, tp__draws *d)
{
  bool globe = s->growth == TP__GLOBE;
  tp__view view = tp__view_of(pose);
  int n = globe ? tp__draw_int(d, 64, 84) : tp__draw_int(d, 11, 16);
  float low = globe ? -0.6f : 0.25f, reach = globe ? 0.84f : 0.78f;
  float size = globe ? tp__draw_in(d, 0.17f, 0.20f) : tp__draw_in(d, 0.32f, 0.37f);
  tp__vec3 at[96];
  int order[96];
  for (int i = 0; i < n; i++) {
    at[i] = on_cap(&view, i, n, low, d);
    int j = i;
    for (; j > 0 && at[order[j - 1]].z > at[i].z; j--) order[j] = order[j - 1];
    order[j] = i;
  }
  for (int i = 0; i < n; i++) {
    tp__vec3 p = at[order[i]];
    if (p.z < -0.45f) continue;
    float far =
        globe ? 0.55f + 0.45f * tp__smooth(-0.5f, 0.5f, p.z) : 1; /* shaded inside the ball */
    tp__pose one = *pose;
    one.x = pose->x + p.x * reach * pose->radius;
    one.y = pose->y - p.y * reach * pose->radius;
    one.radius = size * pose->radius * tp__draw_in(d, 0.85f, 1.1f);
    one.spin = tp__draw_in(d, 0, 2 * PI);
    one.ambient *= far;
    tp__vec3 axis = {p.x + tp__draw_in(d, -0.2f, 0.2f), p.y + tp__draw_in(d, -0.2f, 0.2f),
                     fmaxf(p.z, 0) + 0.25f};
    float norm = 1 / sqrtf(tp__dot3(axis, axis));
    one.axis = (tp__vec3){axis.x * norm, axis.y * norm, axis.z * norm};
    tp__stroke stalk = {.x0 = pose->x,
                        .y0 = pose->y + (globe ? 0 : 0.5f * pose->radius),
                        .x1 = one.x,
                        .y1 = one.y,
                        .w0 = 0.014f * pose->radius,
                        .w1 = 0.010f * pose->radius,
                        .alpha = 0.9f,
                        .from = tp__shade(plant->green, 0.6f),
                        .to = plant->green};
    tp__paint_stroke(canvas, &stalk);
    paint_single(canvas, s, plant, &one, d);
  }
}

void tp__paint_flower(tp__canvas *canvas, const tp__species *s, const tp__plant *plant,
                      const tp__pose *pose, tp__draws *d)
{
  if (s->growth == TP__SINGLE)
    paint_single(canvas, s, plant, pose, d);
  else
    paint_many(canvas, s, plant, pose, d);
}
