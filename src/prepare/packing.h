/* packing - what the parts of pack share: pack_photos.c finds, checks and splits, pack.c writes. */
#ifndef TP_PACKING_H
#define TP_PACKING_H

#include "data/catalog.h"
#include "data/labels.h"
#include "image/image.h"
#include "prepare.h"
#include "shards.h"
#include "split.h"

struct tp__pack_hand { /* what one thread needs */
  tp__buffer bytes;
  tp__picture picture;
  tp__image_scratch scratch;
  float *pixels; /* [height,width,3] when resizing */
  uint8_t *rgb;
};

struct tp__packing {
  const tp_pack_options *options;
  tp__catalog *catalog;
  tp__labels labels;
  size_t n;
  int height, width; /* to resize to; 0: bytes are kept */
  bool resize;
  tp__image_recipe recipe;
  struct tp__pack_hand *hand;
  int hands;
  int *found_height, *found_width; /* [n] of the pictures as they are */
  char **fault;                    /* [n] why a picture is left out */
  uint8_t *part;                   /* [n] */
  uint32_t *order;                 /* of the part that is being written */
  double share[TP__SPLIT_COUNT];
  tp__tally tally;
};

/* In this order. Checks the options and fills what follows from them. */
tp_status tp__pack_read_options(struct tp__packing *packing, tp_error *err) TP_CHECKED;
tp_status tp__pack_open(const tp__job *job, struct tp__packing *packing, tp_error *err) TP_CHECKED;
tp_status tp__pack_room(const tp__job *job, struct tp__packing *packing, tp_error *err) TP_CHECKED;
/* Decodes every photo once; an error when more are damaged than max_bad lets pass. */
tp_status tp__pack_check(const tp__job *job, struct tp__packing *packing, tp_error *err) TP_CHECKED;
/* part[i] of every good photo; TP__SPLIT_COUNT for those left out. */
tp_status tp__pack_split(const tp__job *job, struct tp__packing *packing, tp_error *err) TP_CHECKED;

#endif
