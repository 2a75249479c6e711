/* canvas - what the flowers are painted with: a float picture and four shapes with smooth edges.
 *
 * Colours are in the display's own space (gamma-encoded, 0...1; values outside are cut only at the
 * end). Edges are exact to first order: coverage = 1/2 - f / |grad f| of a shape's implicit
 * function f, in pixels, so nothing needs to be painted larger and averaged down. All sizes are
 * pixels; y points down.
 */
#ifndef TP_CANVAS_H
#define TP_CANVAS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tp__colour {
  float r, g, b;
} tp__colour;

typedef struct tp__canvas {
  int size;
  float *pixels; /* [size,size,3] */
  float *spare;  /* the same, for blurring */
} tp__canvas;

typedef struct tp__vec3 {
  float x, y, z;
} tp__vec3;

static inline float tp__mixf(float a, float b, float t)
{
  return a + (b - a) * t;
}
static inline tp__colour tp__mix(tp__colour a, tp__colour b, float t)
{
  return (tp__colour){tp__mixf(a.r, b.r, t), tp__mixf(a.g, b.g, t), tp__mixf(a.b, b.b, t)};
}
static inline tp__colour tp__shade(tp__colour c, float by)
{
  return (tp__colour){c.r * by, c.g * by, c.b * by};
}
static inline float tp__clampf(float v, float low, float high)
{
  return v < low ? low : v > high ? high : v;
}
/* 0 at `from` and before, 1 at `to` and beyond, smooth between; from < to. */
static inline float tp__smooth(float from, float to, float v)
{
  float t = tp__clampf((v - from) / (to - from), 0, 1);
  return t * t * (3 - 2 * t);
}
static inline float tp__dot3(tp__vec3 a, tp__vec3 b)
{
  return a.x * b.x + a.y * b.y + a.z * b.z;
}

/* A hash of a lattice point, uniform in [0,1). */
static inline float tp__hash(uint32_t x, uint32_t y, uint32_t salt)
{
  uint32_t h = x * 0x9e3779b1u ^ y * 0x85ebca77u ^ salt * 0xc2b2ae3du;
  h = (h ^ h >> 15) * 0x2c1b3c6du;
  h = (h ^ h >> 12) * 0x297a2d39u;
  return (float)((h ^ h >> 15) >> 8) * (1.0f / 16777216.0f);
}

/* Smooth value noise in [0,1), one lattice cell per unit; x, y > -1000. */
float tp__noise(float x, float y, uint32_t salt);

/* An ellipse: half-axes a (along turn, radians) and b; `soft` pixels of blurred edge (0: sharp);
 * round: shaded as a ball lit from light. */
typedef struct tp__blob {
  float x, y, a, b, angle, soft, alpha;
  tp__colour colour;
  bool round;
  tp__vec3 light;
} tp__blob;
void tp__paint_blob(tp__canvas *canvas, const tp__blob *blob);

/* A line with round ends whose width (half, at each end) and colour change along it; shaded as a
 * rod when round. */
typedef struct tp__stroke {
  float x0, y0, x1, y1, w0, w1, alpha;
  tp__colour from, to;
  bool round;
} tp__stroke;
void tp__paint_stroke(tp__canvas *canvas, const tp__stroke *stroke);

/* A petal or leaf: the surface base + u along + u^2 curl + v side, 0 <= u <= 1 from base to tip, -1
 * <= v <= 1 across, within the outline |v| < edge(u) and u < tip(v). */
enum { TP__OUTLINE = 64 };
typedef struct tp__outline {
  float left[TP__OUTLINE], right[TP__OUTLINE]; /* edge at u = i / 63 for v < 0 and v > 0 */
  float tip[TP__OUTLINE];                      /* at v = -1 + 2i / 63 */
} tp__outline;

typedef enum tp__pattern {                 /* may be added up */
                           TP__VEINS = 1,  /* fine lines from base to edge */
                           TP__MIDRIB = 2, /* a broad stripe along the middle */
                           TP__BLOTCH =
                               4,        /* the second colour at the base, with an irregular end */
                           TP__EYE = 8,  /* the second colour at the base, with a clear end */
                           TP__RIM = 16, /* a margin in the second colour */
                           TP__SPOTS = 32,   /* speckles in the second colour on the lower half */
                           TP__BAND = 64,    /* a cross band in the second colour */
                           TP__TIPPED = 128, /* the outer part in the second colour */
                           TP__LINES = 256,  /* a few bold lines from the base to the middle */
                           TP__LEAF = 512    /* a leaf's side veins */
} tp__pattern;

typedef struct tp__petal {
  float bx, by;                 /* base */
  float dx, dy, tx, ty, qx, qy; /* along, side, curl */
  float nl, dl, tl; /* light on the surface's normal, along and side directions (unit vectors) */
  float bend, cup;  /* how the normal turns along u and v */
  const tp__outline *outline;
  tp__colour base, main, tip, second, back;
  unsigned pattern;
  float extent;  /* of blotch, eye, band, tipped: a share of the length */
  uint32_t salt; /* of its speckles */
  float shadow;  /* cast on what lies below, 0...1 */
  float ambient, diffuse;
} tp__petal;
void tp__paint_petal(tp__canvas *canvas, const tp__petal *petal);

/* Two passes of a box blur in both directions. */
void tp__blur(tp__canvas *canvas, int radius);

#endif
