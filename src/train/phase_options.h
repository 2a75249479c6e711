/* phase_options - what a training's options say, turned into what its parts take: shared by
 * training and by a plan of it, so that both mean the same. */
#ifndef TP_PHASE_OPTIONS_H
#define TP_PHASE_OPTIONS_H

#include "learner.h"

/* An option and the values it may have. */
typedef struct tp__range {
  const char *name;
  double value, low, high;
} tp__range;
/* Error: TP_ERR_USAGE naming the first that is outside. */
tp_status tp__ranges_check(const tp__range *range, size_t count, tp_error *err) TP_CHECKED;

/* "float32" or "bf16". Error: TP_ERR_USAGE. */
tp_status tp__precision_parse(const char *text, bool *bf16, tp_error *err) TP_CHECKED;

/* Ranges and words of the options that no part of its own reads. Error: TP_ERR_USAGE naming the
 * option. */
tp_status tp__train_check(const tp_train_options *options, tp_error *err) TP_CHECKED;

/* Whether augment_on = device is possible with the other options. Error: TP_ERR_USAGE naming what
 * is in its way. */
tp_status tp__augment_check(const tp_train_options *options, tp_error *err) TP_CHECKED;
/* The host does flips or turns, and a device could. */
bool tp__augment_movable(const tp_train_options *options);
/* With augment_on = device, flips and turns go from the recipe to the training program. */
void tp__augment_move(const tp_train_options *options, tp__image_recipe *recipe,
                      tp__net_augment *augment);

/* Of the head's phase, or of fine-tuning: layers, statistics, optimizer, loss, precision, parts.
 * spec, batch, whole, bytes and augment are the caller's. */
tp_status tp__phase_learner(const tp_train_options *options, bool fine_tune,
                            tp__learner_options *learner, tp_error *err) TP_CHECKED;

/* Of the training set; catalog and cache are the caller's. */
tp_status tp__train_input(const tp_train_options *options, int height, int width, int batch,
                          tp__pipeline_options *input, tp_error *err) TP_CHECKED;

#endif
