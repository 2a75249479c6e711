/* callbacks - what happens between epochs: stop early, lower the rate on a plateau, remember the
 * best.
 *
 * Three small state machines with the semantics of Keras 3's EarlyStopping, ReduceLROnPlateau and
 * ModelCheckpoint(save_best_only). They see one number an epoch and say what to do; who owns
 * weights and rates acts on it. The structs are plain data: a checkpoint stores them and a resumed
 * run goes on with them. NaN and infinite values are never an improvement.
 *
 * Order in an epoch, as Keras' users list them: plateau, early stopping, best checkpoint.
 */
#ifndef TP_CALLBACKS_H
#define TP_CALLBACKS_H

#include "base/base.h"

typedef enum tp__mode { TP__MODE_MIN, TP__MODE_MAX } tp__mode;

/* The quantities that can be monitored, with their mode; the index is into tp__epoch_values. */
typedef enum tp__quantity {
  TP__LOSS,
  TP__ACCURACY,
  TP__TOP_5,
  TP__VAL_LOSS,
  TP__VAL_ACCURACY,
  TP__VAL_TOP_5,
  TP__VAL_MACRO_F1,
  TP__QUANTITIES
} tp__quantity;

const char *tp__quantity_name(tp__quantity quantity);
tp__mode tp__quantity_mode(tp__quantity quantity);
/* Errors: TP_ERR_USAGE: not a quantity (lists them), or one of validation when there is none.
 * option names the option for the message. */
tp_status tp__quantity_of(const char *option, const char *name, bool has_validation,
                          tp__quantity *quantity, tp_error *err) TP_CHECKED;

/* ---- early stopping ---- */

typedef struct tp__early_stopping {
  tp__mode mode;
  int patience; /* epochs without improvement before the stop; 0: off, only the best is remembered
                 */
  double min_delta; /* >= 0: less than this is no improvement */
  double baseline;  /* NaN: none */
  /* state */
  bool has_best;
  double best;
  int best_epoch; /* 0-based; -1: none yet */
  int wait;
} tp__early_stopping;

typedef struct tp__verdict {
  bool is_best; /* keep these weights */
  bool stop;    /* end the phase after this epoch */
} tp__verdict;

void tp__early_stopping_start(tp__early_stopping *s);
/* epoch: 0-based number within the phase's run of epochs. */
tp__verdict tp__early_stopping_epoch(tp__early_stopping *s, int epoch, double value);

/* ---- rate on plateaus ---- */

/* Keeps a multiplier on the schedule's rate, so that schedule and plateau both act; never below
 * min_rate. */
typedef struct tp__plateau {
  tp__mode mode;
  double factor;    /* 0 < factor < 1 */
  int patience;     /* 0: off */
  double min_delta; /* 1e-4, Keras' default */
  int cooldown;
  double min_rate;
  /* state */
  bool has_best;
  double best;
  int wait, cooling;
  double multiplier;
} tp__plateau;

void tp__plateau_start(tp__plateau *p);
/* scheduled: the schedule's rate at the end of this epoch. True when the multiplier was lowered. */
bool tp__plateau_epoch(tp__plateau *p, double value, double scheduled);
/* The rate to train with. */
float tp__plateau_rate(const tp__plateau *p, float scheduled);

/* ---- best checkpoint ---- */

typedef struct tp__best {
  tp__mode mode;
  bool has_best;
  double best;
  int epoch; /* 0-based, over all phases; -1: none */
} tp__best;

bool tp__best_epoch(tp__best *b, int epoch, double value);

#endif
