/* petal - paints one petal or leaf; see canvas.h
 *
 * The surface is quadratic in u, so a pixel is brought back to (u, v) exactly: crossing p - base =
 * u d + u^2 q + v t with t leaves a quadratic in u. The sign of its derivative tells which side of
 * the petal is seen.
 */
#include "canvas.h"

#include <math.h>
#include <stddef.h>

static float cross2(float ax, float ay, float bx, float by)
{
  return ax * by - ay * bx;
}

/* Linear interpolation in a table over [0,1], with its slope. */
static float look_up(const float *table, float at, float *slope)
{
  float f = tp__clampf(at, 0, 1) * (float)(TP__OUTLINE - 1);
  int i = (int)f;
  if (i > TP__OUTLINE - 2) i = TP__OUTLINE - 2;
  *slope = (table[i + 1] - table[i]) * (float)(TP__OUTLINE - 1);
  return table[i] + (table[i + 1] - table[i]) * (f - (float)i);
}

/* The petal's colour before light. v is -1...1 across the petal at its widest, edge its half width
 * there. */
static tp__colour paint_at(const tp__petal *o, float u, float v, float edge, float outside)
{
  float across = edge > 0.02f ? v / edge : 0, aside = fabsf(across);
  tp__colour c = u < 0.45f ? tp__mix(o->base, o->main, tp__smooth(0, 0.45f, u))
                           : tp__mix(o->main, o->tip, tp__smooth(0.45f, 1, u));
  if (o->pattern & TP__TIPPED)
    c = tp__mix(c, o->second, tp__smooth(o->extent - 0.12f, o->extent + 0.12f, u - 0.06f * aside));
  if (o->pattern & TP__EYE)
    c = tp__mix(c, o->second,
                1 - tp__smooth(o->extent - 0.05f, o->extent + 0.05f, u + 0.08f * aside));
  if (o->pattern & TP__BLOTCH) {
    float end = o->extent * (1.1f - 0.5f * across * across) +
                0.10f * (tp__noise(v * 9, u * 3, o->salt) - 0.5f);
    c = tp__mix(c, o->second, 1 - tp__smooth(end - 0.08f, end + 0.08f, u));
  }
  if (o->pattern & TP__BAND) {
    float off = fabsf(u - o->extent + 0.1f * across * across);
    c = tp__mix(c, o->second, 1 - tp__smooth(0.05f, 0.13f, off));
  }
  if (o->pattern & TP__MIDRIB)
    c = tp__mix(c, o->second, 0.9f * (1 - tp__smooth(0.18f, 0.42f, aside + 0.25f * u)));
  if (o->pattern & TP__RIM) c = tp__mix(c, o->second, tp__smooth(-0.13f, -0.03f, outside));
  if (o->pattern & TP__SPOTS) {
    float cu = u * 13, cv = v * 5 + 50;
    uint32_t iu = (uint32_t)cu, iv = (uint32_t)cv;
    float su = cu - (float)iu - 0.3f - 0.4f * tp__hash(iu, iv, o->salt);
    float sv = cv - (float)iv - 0.3f - 0.4f * tp__hash(iv, iu, o->salt + 7);
    float here = tp__hash(iu + 31, iv, o->salt) < 0.75f - 0.6f * u ? 1.0f : 0.0f;
    c = tp__mix(c, o->second, here * (1 - tp__smooth(0.03f, 0.1f, su * su + sv * sv)));
  }
  if (o->pattern & TP__LINES) {
    float f = across * 2.5f + 10.5f, off = fabsf(f - (float)(int)f - 0.5f);
    c = tp__mix(c, o->second,
                (1 - tp__smooth(0.10f, 0.22f, off)) *
                    (1 - tp__smooth(o->extent - 0.1f, o->extent, u + 0.2f * aside)));
  }
  if (o->pattern & TP__VEINS) {
    float f = across * 4 + 20.5f, off = fabsf(f - (float)(int)f - 0.5f);
    c = tp__mix(c, tp__shade(c, 0.72f), (1 - tp__smooth(0.04f, 0.2f, off)) * (0.75f - 0.5f * u));
  }
  if (o->pattern & TP__LEAF) {
    float f = u * 9 - aside * 2.2f + 8, off = fabsf(f - (float)(int)f - 0.5f);
    c = tp__mix(c, tp__shade(c, 1.22f), 0.5f * (1 - tp__smooth(0.02f, 0.14f, off)));
    c = tp__mix(c, tp__shade(c, 1.4f), 0.7f * (1 - tp__smooth(0.03f, 0.10f, aside)));
  }
  return c;
}

/* Light on the surface at (u, v): the normal leans back along u by the curl and sideways by the
 * cup. */
static float light_at(const tp__petal *o, float u, float v, bool back)
{
  float along = o->bend * u, side = o->cup * v;
  float n = (o->nl - along * o->dl - side * o->tl) / sqrtf(1 + along * along + side * side);
  if (back) n = -n;
  /* petals let light through: the far side is never dark */
  return o->ambient + o->diffuse * (n > 0 ? n : -0.35f * n);
}

/* Darkens what lies below, close to the edge. The distance is rougher than that of the edge, but
 * has no jumps where the outline is steep. gu, gv: lengths of the gradients of u and v. */
static void cast_shadow(const tp__petal *o, float u, float v, float gu, float gv, float reach,
                        float *p)
{
  float slope, inside = tp__clampf(u, 0.05f, 0.92f);
  float edge = look_up(v < 0 ? o->outline->left : o->outline->right, inside, &slope);
  float du = fmaxf(fmaxf(u - 0.97f, -u), 0) / gu, dv = fmaxf(fabsf(v) - edge, 0) / gv;
  float d2 = (du * du + dv * dv) / (reach * reach);
  if (d2 >= 1) return;
  float s = 1 - sqrtf(d2);
  s = 1 - o->shadow * s * s;
  p[0] *= s;
  p[1] *= s;
  p[2] *= s;
}

static void paint_pixel(const tp__petal *o, float px, float py, float shadow_reach, float *p)
{
  float rx = px - o->bx, ry = py - o->by;
  float a = cross2(o->qx, o->qy, o->tx, o->ty), b = cross2(o->dx, o->dy, o->tx, o->ty);
  float c = cross2(rx, ry, o->tx, o->ty), disc = b * b + 4 * a * c;
  if (disc < 1e-6f) return;
  float root = b >= 0 ? sqrtf(disc) : -sqrtf(disc);
  float u = 2 * c / (b + root);
  if (!(u > -0.2f && u < 1.3f)) return;
  float t2 = o->tx * o->tx + o->ty * o->ty;
  float v =
      ((rx - u * o->dx - u * u * o->qx) * o->tx + (ry - u * o->dy - u * u * o->qy) * o->ty) / t2;
  if (!(v > -1.6f && v < 1.6f)) return;
  /* gradients of u and v in pixels, from the inverse of (d + 2 u q, t) */
  float jx = o->dx + 2 * u * o->qx, jy = o->dy + 2 * u * o->qy;
  float ux = o->ty / root, uy = -o->tx / root, vx = -jy / root, vy = jx / root;
  float edge_slope, tip_slope, sign = v < 0 ? -1.0f : 1.0f;
  float edge = look_up(v < 0 ? o->outline->left : o->outline->right, u, &edge_slope);
  float tip = look_up(o->outline->tip, 0.5f + 0.5f * v, &tip_slope);
  float side = sign * v - edge, end = u - tip;
  float gx = sign * vx - edge_slope * ux, gy = sign * vy - edge_slope * uy;
  float d_side = side / sqrtf(gx * gx + gy * gy + 1e-12f);
  float ex = ux - 0.5f * tip_slope * vx, ey = uy - 0.5f * tip_slope * vy;
  float d_end = end / sqrtf(ex * ex + ey * ey + 1e-12f);
  float d_base = -u / sqrtf(ux * ux + uy * uy + 1e-12f);
  float d = fmaxf(fmaxf(d_side, d_end), d_base);
  if (d > 0 && o->shadow > 0)
    cast_shadow(o, u, v, sqrtf(ux * ux + uy * uy), sqrtf(vx * vx + vy * vy), shadow_reach, p);
  float cover = tp__clampf(0.5f - d, 0, 1);
  if (cover <= 0) return;
  bool back = root < 0; /* set up so that the upper side has a positive derivative */
  u = tp__clampf(u, 0, 1);
  tp__colour colour = paint_at(o, u, v, edge, fmaxf(side, end));
  if (back) colour = tp__mix(colour, o->back, 0.7f);
  colour = tp__shade(colour, light_at(o, u, v, back));
  p[0] += (colour.r - p[0]) * cover;
  p[1] += (colour.g - p[1]) * cover;
  p[2] += (colour.b - p[2]) * cover;
}

void tp__paint_petal(tp__canvas *canvas, const tp__petal *o)
{
  float area = cross2(o->dx, o->dy, o->tx, o->ty);
  if (fabsf(area) < 0.5f) return; /* seen edge-on */
  float x0 = 1e9f, x1 = -1e9f, y0 = 1e9f, y1 = -1e9f;
  for (int i = 0; i <= 8; i++) {
    for (int s = -1; s <= 1; s += 2) {
      float u = (float)i / 8, x = o->bx + u * o->dx + u * u * o->qx + (float)s * o->tx;
      float y = o->by + u * o->dy + u * u * o->qy + (float)s * o->ty;
      x0 = fminf(x0, x);
      x1 = fmaxf(x1, x);
      y0 = fminf(y0, y);
      y1 = fmaxf(y1, y);
    }
  }
  float reach = 0.03f * (float)canvas->size, top = (float)canvas->size;
  int left = (int)tp__clampf(floorf(x0 - reach), 0, top),
      right = (int)tp__clampf(x1 + reach + 1, 0, top);
  int first = (int)tp__clampf(floorf(y0 - reach), 0, top),
      end = (int)tp__clampf(y1 + reach + 1, 0, top);
  for (int y = first; y < end; y++) {
    float *p = canvas->pixels + ((size_t)y * (size_t)canvas->size + (size_t)left) * 3;
    for (int x = left; x < right; x++, p += 3) paint_pixel(o, (float)x, (float)y, reach, p);
  }
}
