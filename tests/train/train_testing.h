/* train_testing - a log that a test can look into, training options with their defaults (those of
 * tepal.h), and a tiny data set of three coloured patterns; for the tests of train. */
#ifndef TP_TRAIN_TESTING_H
#define TP_TRAIN_TESTING_H

#include "../data/data_testing.h"

#include "base/job.h"
#include "base/rng.h"
#include "image/image.h"

/* ---- log ---- */

/* All lines, each behind its level: "w ..." for a warning, "i ..." otherwise. */
typedef struct heard {
  char text[16384];
  tp__log log;
} heard;

static inline void hear_line(void *user, tp__level level, const char *text)
{
  heard *h = user;
  size_t used = strlen(h->text);
  snprintf(h->text + used, sizeof h->text - used, "%c %s\n", level == TP__WARNING ? 'w' : 'i',
           text);
}

static inline const tp__log *hear(heard *h)
{
  h->text[0] = '\0';
  h->log = (tp__log){.line = hear_line, .user = h};
  return &h->log;
}

/* ---- options ---- */

static inline tp_data_options default_data(void)
{
  return (tp_data_options){.image_feature = "image",
                           .class_feature = "class",
                           .id_feature = "id",
                           .max_bad = "0",
                           .dct = "fast",
                           .cache = "none",
                           .cache_limit = "4G"};
}

static inline tp_train_options default_train(void)
{
  return (tp_train_options){
      .data = default_data(),
      .model = "efficientnet-b0",
      .weights = "imagenet",
      .image_size = "192",
      .batch = 32,
      .epochs = 30,
      .fine_tune_layers = 20,
      .batch_norm = "frozen",
      .augment_on = "host",
      .drop_connect = 0.2,
      .fine_tune_learning_rate = 1e-5,
      .fine_tune_schedule = "constant",
      .fine_tune_head_factor = 1,
      .optimizer = "adam",
      .learning_rate = 1e-3,
      .beta_1 = 0.9,
      .beta_2 = 0.999,
      .epsilon = 1e-7,
      .momentum = 0.9,
      .schedule = "exponential",
      .decay_rate = 0.96,
      .staircase = true,
      .class_weights = "none",
      .precision = "float32",
      .accumulate = "auto",
      .steps_per_execution = 1,
      .transfer = "auto",
      .dropout = 0.2,
      .flip = true,
      .rotate = 0.1,
      .rotate_fill = "reflect",
      .random_crop_ratio = 1.333333,
      .shuffle = 2048,
      .interleave = 16,
      .early_stopping = 5,
      .early_stopping_monitor = "val_loss",
      .plateau_factor = 0.5,
      .plateau_patience = 3,
      .plateau_min_rate = 1e-6,
      .plateau_monitor = "val_loss",
      .best_monitor = "val_accuracy",
      .checkpoint_minutes = 10,
      .seed = 1,
  };
}

/* ---- pictures ---- */

enum { CLASSES = 3 };

/* A JPEG of side x side pixels: class 0 red stripes, 1 green checks, 2 a blue disc; which numbers
 * vary the shade. Adds to bytes. */
static inline void draw_picture(int class, int which, int side, bool mirrored, tp__buffer *bytes)
{
  tp_error err = {0};
  tp__key key = tp__key_of(7, (uint32_t) class, (uint64_t)which);
  int shade = (int)tp__below(key, TP__DRAW_PICTURE, 0, 100);
  int shift = (int)tp__below(key, TP__DRAW_PICTURE, 1, 8);
  uint8_t *rgb = calloc((size_t)side * (size_t)side, 3);
  assert_non_null(rgb);
  for (int y = 0; y < side; y++)
    for (int x = 0; x < side; x++) {
      int u = (mirrored ? side - 1 - x : x) + shift, v = y;
      int from_centre = (u - side / 2) * (u - side / 2) + (v - side / 2) * (v - side / 2);
      bool on = class == 0   ? u / 8 % 2 == 0
                : class == 1 ? (u / 8 + v / 8) % 2 == 0
                             : from_centre < side * side / 9;
      uint8_t *p = rgb + 3 * (y * side + x);
      p[class] = on ? (uint8_t)(155 + shade) : 30;
      p[(class + 1) % 3] = (uint8_t)(x * 100 / side);
      p[(class + 2) % 3] = (uint8_t)shade;
    }
  assert_ok(tp__image_encode_jpeg(rgb, side, side, 95, bytes, &err));
  free(rgb);
}

/* A record of a picture. id NULL: none; label -1: none. */
static inline void frame_picture(tp__buffer *bytes, const tp__buffer *picture, int64_t label,
                                 const char *id)
{
  tp_error err = {0};
  tp__buffer payload;
  tp__buffer_init(&payload, 1 << 20);
  tp__example_fields fields = {
      .image = picture->data, .image_size = picture->size, .label = label, .id = id};
  assert_ok(tp__example_pack(&fields, &payload, &err));
  frame(bytes, payload.data, payload.size);
  tp__buffer_free(&payload);
}

/* A shard of count pictures, class i % CLASSES, ids PREFIX0, PREFIX1, ...; labelled or not. */
static inline const char *picture_shard(box *b, const char *name, const char *prefix, int count,
                                        int first, int side, bool labelled)
{
  tp__buffer bytes, picture;
  tp__buffer_init(&bytes, 1 << 24);
  tp__buffer_init(&picture, 1 << 20);
  for (int i = first; i < first + count; i++) {
    char id[64];
    snprintf(id, sizeof id, "%s%d", prefix, i);
    picture.size = 0;
    draw_picture(i % CLASSES, i, side, false, &picture);
    frame_picture(&bytes, &picture, labelled ? i % CLASSES : -1, id);
  }
  const char *path = box_file(b, name, bytes.data, bytes.size);
  tp__buffer_free(&bytes);
  tp__buffer_free(&picture);
  return path;
}

#endif
