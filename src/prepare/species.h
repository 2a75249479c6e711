/* species - what the drawn flowers look like, as a table; flower.c draws it, scene.c puts it into a
 * photo.
 *
 * Species differ in build: number, shape, arrangement and markings of petals, and the centre.
 * Colours come from families that many species share, so that colour alone tells little.
 */
#ifndef TP_SPECIES_H
#define TP_SPECIES_H

#include "canvas.h"

enum { TP__SPECIES = 32, TP__RINGS = 4, TP__COLOURS = 18 };

/* A ring of petals. Lengths are in units of the flower's radius. */
typedef struct tp__ring {
  int least, most; /* petals */
  float start; /* place of the first, in turns from "right", counter-clockwise; -1: between those of
                  the ring below */
  float spread;       /* turns that the petals are spread over; 0: the full turn */
  float from, length; /* where petals begin, how long they are */
  float width;        /* half width in units of the length */
  float low, high;    /* outline u^low (1-u)^high */
  float notch;        /* depth of the cleft in the tip */
  int teeth;          /* at the tip */
  float tooth;        /* their depth */
  float ruffle;       /* waviness of the edge */
  float lift;         /* degrees above the flower's plane */
  float curl;         /* > 0: tips bend up and in, < 0: back */
  float cup;          /* hollow across (> 0) or arched (< 0) */
  float twist, roll;  /* bent sideways; turned about its own length, degrees */
  unsigned pattern;   /* tp__pattern */
  float extent;
  enum { TP__PAINT_MAIN, TP__PAINT_SECOND, TP__PAINT_GREEN } paint;
  float vary; /* how much single petals differ */
} tp__ring;

typedef enum tp__centre_kind {
  TP__CENTRE_NONE,
  TP__CENTRE_DISK,
  TP__CENTRE_STAMENS,
  TP__CENTRE_CONE,
  TP__CENTRE_TUBE,
  TP__CENTRE_BUTTON,
  TP__CENTRE_COLUMN,
  TP__CENTRE_THROAT,
  TP__CENTRE_CORONA,
  TP__CENTRE_BRUSH
} tp__centre_kind;

typedef enum tp__second_rule {
  TP__SECOND_DARK,
  TP__SECOND_PALE,
  TP__SECOND_YELLOW,
  TP__SECOND_INK,
  TP__SECOND_OTHER
} tp__second_rule;

typedef struct tp__species {
  const char *name;
  uint32_t colours; /* one bit per colour family */
  tp__second_rule second;
  int n_rings;
  tp__ring ring[TP__RINGS]; /* from the outermost */
  tp__centre_kind centre;
  float centre_size, centre_height;
  tp__colour centre_colour, centre_accent;
  int centre_count; /* florets, stamens or filaments */
  enum { TP__SINGLE, TP__CLUSTER, TP__GLOBE } growth;
  bool upright; /* has a top: turned little about its axis */
  float tilt;   /* largest angle between flower and viewer, degrees */
  float leaf;   /* half width of its leaves in units of their length */
} tp__species;

extern const tp__species tp__species_table[TP__SPECIES];
extern const tp__colour tp__colour_families[TP__COLOURS];

#endif
