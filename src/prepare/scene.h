/* scene - what scene.c and background.c share: one picture that is being painted. */
#ifndef TP_SCENE_H
#define TP_SCENE_H

#include "flower.h"

struct tp__scene {
  tp__canvas canvas;
  float size;
  tp__draws draws;
  const tp__species *species;
  tp__plant plant;
  tp__vec3 light;
  float ambient, diffuse;
};

/* Fills the canvas with one of six kinds of background, sharp. */
void tp__paint_background(struct tp__scene *scene);

/* A leaf from (x, y), in pixels; angle in radians, y down; width: half width in units of length. */
void tp__paint_leaf(struct tp__scene *scene, float x, float y, float angle, float length,
                    float width, tp__colour green, float bend, float shadow);

tp__colour tp__some_green(tp__draws *draws);

#endif
