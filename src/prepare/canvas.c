/* canvas - blobs, strokes, noise and blur; see canvas.h. petal.c paints petals. */
#include "canvas.h"

#include <math.h>
#include <stddef.h>

float tp__noise(float x, float y, uint32_t salt)
{
  x += 1024;
  y += 1024;
  uint32_t ix = (uint32_t)x, iy = (uint32_t)y;
  float fx = x - (float)ix, fy = y - (float)iy;
  fx *= fx * (3 - 2 * fx);
  fy *= fy * (3 - 2 * fy);
  float top = tp__mixf(tp__hash(ix, iy, salt), tp__hash(ix + 1, iy, salt), fx);
  float bottom = tp__mixf(tp__hash(ix, iy + 1, salt), tp__hash(ix + 1, iy + 1, salt), fx);
  return tp__mixf(top, bottom, fy);
}

/* Rows and columns that a shape may touch. */
struct box {
  int x0, x1, y0, y1; /* x1, y1 are beyond */
};

static struct box clip(const tp__canvas *c, float x0, float x1, float y0, float y1)
{
  float top = (float)c->size;
  return (struct box){(int)tp__clampf(floorf(x0), 0, top), (int)tp__clampf(ceilf(x1) + 1, 0, top),
                      (int)tp__clampf(floorf(y0), 0, top), (int)tp__clampf(ceilf(y1) + 1, 0, top)};
}

static void blend(float *p, tp__colour c, float alpha)
{
  p[0] += (c.r - p[0]) * alpha;
  p[1] += (c.g - p[1]) * alpha;
  p[2] += (c.b - p[2]) * alpha;
}

void tp__paint_blob(tp__canvas *c, const tp__blob *o)
{
  float a = fmaxf(o->a, 0.3f), b = fmaxf(o->b, 0.3f);
  float reach = fmaxf(a, b) + o->soft + 1.5f, ca = cosf(o->angle), sa = sinf(o->angle);
  struct box box = clip(c, o->x - reach, o->x + reach, o->y - reach, o->y + reach);
  for (int y = box.y0; y < box.y1; y++) {
    float *p = c->pixels + ((size_t)y * (size_t)c->size + (size_t)box.x0) * 3;
    for (int x = box.x0; x < box.x1; x++, p += 3) {
      float px = (float)x - o->x, py = (float)y - o->y;
      float u = (px * ca + py * sa) / a, v = (py * ca - px * sa) / b;
      float r2 = u * u + v * v, r = sqrtf(r2);
      /* gradient of r in pixels, roughly; exact on the axes */
      float slope = r > 1e-4f ? sqrtf(u * u / (a * a) + v * v / (b * b)) / r : 1 / a;
      float d = (r - 1) / slope;
      float cover =
          o->soft > 0 ? 1 - tp__smooth(-o->soft, o->soft + 1, d) : tp__clampf(0.5f - d, 0, 1);
      if (cover <= 0) continue;
      tp__colour colour = o->colour;
      if (o->round) {
        float z = sqrtf(fmaxf(0, 1 - r2));
        float light =
            u * (ca * o->light.x - sa * o->light.y) - v * (sa * o->light.x + ca * o->light.y);
        colour = tp__shade(colour, 0.62f + 0.55f * tp__clampf(light + z * o->light.z, 0, 1));
      }
      blend(p, colour, cover * o->alpha);
    }
  }
}

void tp__paint_stroke(tp__canvas *c, const tp__stroke *o)
{
  float reach = fmaxf(o->w0, o->w1) + 1.5f;
  struct box box = clip(c, fminf(o->x0, o->x1) - reach, fmaxf(o->x0, o->x1) + reach,
                        fminf(o->y0, o->y1) - reach, fmaxf(o->y0, o->y1) + reach);
  float dx = o->x1 - o->x0, dy = o->y1 - o->y0, length2 = dx * dx + dy * dy + 1e-6f;
  float length = sqrtf(length2), nx = -dy / length;
  for (int y = box.y0; y < box.y1; y++) {
    float *p = c->pixels + ((size_t)y * (size_t)c->size + (size_t)box.x0) * 3;
    for (int x = box.x0; x < box.x1; x++, p += 3) {
      float px = (float)x - o->x0, py = (float)y - o->y0;
      float t = tp__clampf((px * dx + py * dy) / length2, 0, 1);
      float ex = px - t * dx, ey = py - t * dy, w = tp__mixf(o->w0, o->w1, t);
      float far = w + 0.5f;
      float d2 = ex * ex + ey * ey;
      if (d2 >= far * far) continue;
      float d = sqrtf(d2), cover = tp__clampf(far - d, 0, 1);
      if (w < 0.5f) cover *= fmaxf(2 * w, 0.15f); /* thinner than a pixel */
      tp__colour colour = tp__mix(o->from, o->to, t);
      if (o->round) {
        /* by the distance from the line without ends, so that strokes in a row show no joints */
        float across = tp__clampf((px * dy - py * dx) / (length * far), -1, 1);
        colour = tp__shade(colour, 0.92f + 0.22f * across * (nx < 0 ? 1.0f : -1.0f) -
                                       0.25f * across * across);
      }
      blend(p, colour, cover * o->alpha);
    }
  }
}

/* One pass along rows (step 3) or columns (step 3 * size) with a running sum; ends repeat the
 * border. */
static void box_pass(const float *in, float *out, int size, int radius, bool rows)
{
  size_t n = (size_t)size, line_step = rows ? n * 3 : 3, step = rows ? 3 : n * 3;
  float scale = 1 / (float)(2 * radius + 1);
  for (size_t line = 0; line < n; line++) {
    for (size_t ch = 0; ch < 3; ch++) {
      const float *from = in + line * line_step + ch;
      float *to = out + line * line_step + ch;
      float sum = 0;
      for (int i = -radius; i <= radius; i++)
        sum += from[(size_t)(i < 0 ? 0 : i >= size ? size - 1 : i) * step];
      for (int i = 0; i < size; i++) {
        to[(size_t)i * step] = sum * scale;
        int enter = i + radius + 1, leave = i - radius;
        sum += from[(size_t)(enter >= size ? size - 1 : enter) * step] -
               from[(size_t)(leave < 0 ? 0 : leave) * step];
      }
    }
  }
}

void tp__blur(tp__canvas *c, int radius)
{
  if (radius < 1) return;
  for (int pass = 0; pass < 2; pass++) {
    box_pass(c->pixels, c->spare, c->size, radius, true);
    box_pass(c->spare, c->pixels, c->size, radius, false);
  }
}
