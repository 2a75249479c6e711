/* flower - one flower on a canvas: petals in their rings, the centre, clusters; scene.c makes a
 * photo of it. */
#ifndef TP_FLOWER_H
#define TP_FLOWER_H

#include "base/rng.h"
#include "canvas.h"
#include "species.h"

/* The random numbers of one picture, in the order they are used. */
typedef struct tp__draws {
  tp__key key;
  uint32_t next;
} tp__draws;

static inline float tp__draw_unit(tp__draws *d)
{
  return tp__uniform(d->key, TP__DRAW_PICTURE, d->next++);
}
static inline float tp__draw_in(tp__draws *d, float low, float high)
{
  return low + (high - low) * tp__draw_unit(d);
}
static inline int tp__draw_int(tp__draws *d, int least, int most)
{
  return least + (int)(tp__draw_unit(d) * (float)(most - least + 1));
}

/* The colours of one plant. */
typedef struct tp__plant {
  tp__colour base, main, tip, second, back, green;
} tp__plant;

/* Where a flower is and how it faces. axis: unit vector out of the flower's face, viewer's frame (x
 * right, y up, z to the viewer). */
typedef struct tp__pose {
  float x, y, radius; /* pixels */
  float spin;         /* radians about its own axis */
  tp__vec3 axis, light;
  float ambient, diffuse;
} tp__pose;

tp__plant tp__choose_plant(const tp__species *species, tp__draws *draws);

/* Paints a flower, or a whole cluster of them. */
void tp__paint_flower(tp__canvas *canvas, const tp__species *species, const tp__plant *plant,
                      const tp__pose *pose, tp__draws *draws);

/* ---- between flower.c and centre.c ---- */

typedef struct tp__view {
  tp__vec3 rx, ry, rz; /* rows of the rotation from the flower's frame to the viewer's */
  const tp__pose *pose;
} tp__view;

tp__view tp__view_of(const tp__pose *pose);
tp__vec3 tp__turn(const tp__view *view, tp__vec3 v);
/* Pixel at which a point of the flower's frame (in units of its radius) is seen. */
static inline float tp__screen_x(const tp__view *v, tp__vec3 p)
{
  return v->pose->x + v->pose->radius * tp__dot3(v->rx, p);
}
static inline float tp__screen_y(const tp__view *v, tp__vec3 p)
{
  return v->pose->y - v->pose->radius * tp__dot3(v->ry, p);
}

void tp__paint_centre(tp__canvas *canvas, const tp__species *species, const tp__plant *plant,
                      const tp__view *view, tp__draws *draws);

#endif
