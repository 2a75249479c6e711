/* callbacks - see callbacks.h */
#include "callbacks.h"

#include <math.h>
#include <string.h>

static const struct {
  const char *name;
  tp__mode mode;
  bool validation;
} quantity_table[TP__QUANTITIES] = {
    [TP__LOSS] = {"loss", TP__MODE_MIN, false},
    [TP__ACCURACY] = {"accuracy", TP__MODE_MAX, false},
    [TP__TOP_5] = {"top_5", TP__MODE_MAX, false},
    [TP__VAL_LOSS] = {"val_loss", TP__MODE_MIN, true},
    [TP__VAL_ACCURACY] = {"val_accuracy", TP__MODE_MAX, true},
    [TP__VAL_TOP_5] = {"val_top_5", TP__MODE_MAX, true},
    [TP__VAL_MACRO_F1] = {"val_macro_f1", TP__MODE_MAX, true},
};

const char *tp__quantity_name(tp__quantity quantity)
{
  return quantity_table[quantity].name;
}

tp__mode tp__quantity_mode(tp__quantity quantity)
{
  return quantity_table[quantity].mode;
}

tp_status tp__quantity_of(const char *option, const char *name, bool has_validation,
                          tp__quantity *quantity, tp_error *err)
{
  for (int i = 0; i < TP__QUANTITIES; i++) {
    if (strcmp(quantity_table[i].name, name) != 0) continue;
    if (quantity_table[i].validation && !has_validation)
      return tp__fail(err, TP_ERR_USAGE,
                      "%s: %s needs validation data: give --val, or monitor loss or accuracy",
                      option, name);
    *quantity = (tp__quantity)i;
    return TP_OK;
  }
  return tp__fail(err, TP_ERR_USAGE,
                  "%s: \"%s\" is not known; wanted loss, accuracy, top_5, val_loss, val_accuracy, "
                  "val_top_5 or val_macro_f1",
                  option, name);
}

/* value is better than reference by more than delta. */
static bool better(tp__mode mode, double value, double reference, double delta)
{
  if (!isfinite(value)) return false;
  return mode == TP__MODE_MIN ? value < reference - delta : value > reference + delta;
}

void tp__early_stopping_start(tp__early_stopping *s)
{
  s->has_best = false;
  s->best = 0;
  s->best_epoch = -1;
  s->wait = 0;
}

tp__verdict tp__early_stopping_epoch(tp__early_stopping *s, int epoch, double value)
{
  tp__verdict verdict = {0};
  s->wait++;
  bool improved = s->has_best ? better(s->mode, value, s->best, s->min_delta) : isfinite(value);
  if (improved) {
    s->has_best = true;
    s->best = value;
    s->best_epoch = epoch;
    verdict.is_best = true;
    if (isnan(s->baseline) || better(s->mode, value, s->baseline, s->min_delta)) s->wait = 0;
    return verdict;
  }
  /* Keras never stops after the very first epoch. */
  verdict.stop = s->patience > 0 && s->wait >= s->patience && epoch > 0;
  return verdict;
}

void tp__plateau_start(tp__plateau *p)
{
  p->has_best = false;
  p->best = 0;
  p->wait = 0;
  p->cooling = 0;
  p->multiplier = 1.0;
}

bool tp__plateau_epoch(tp__plateau *p, double value, double scheduled)
{
  if (p->patience < 1) return false;
  bool cooling = p->cooling > 0;
  if (cooling) {
    p->cooling--;
    p->wait = 0;
    cooling = p->cooling > 0;
  }
  bool improved = p->has_best ? better(p->mode, value, p->best, p->min_delta) : isfinite(value);
  if (improved) {
    p->has_best = true;
    p->best = value;
    p->wait = 0;
    return false;
  }
  if (cooling || ++p->wait < p->patience) return false;
  double rate = scheduled * p->multiplier;
  if (rate <= p->min_rate * (1 + 1e-9)) return false; /* there already, but for rounding */
  double lowered = rate * p->factor;
  if (lowered < p->min_rate) lowered = p->min_rate;
  p->multiplier = scheduled > 0 ? lowered / scheduled : p->multiplier * p->factor;
  p->cooling = p->cooldown;
  p->wait = 0;
  return true;
}

float tp__plateau_rate(const tp__plateau *p, float scheduled)
{
  if (p->patience < 1 || p->multiplier == 1.0) return scheduled;
  double rate = (double)scheduled * p->multiplier;
  return (float)(rate < p->min_rate ? p->min_rate : rate);
}

bool tp__best_epoch(tp__best *b, int epoch, double value)
{
  bool improved = b->has_best ? better(b->mode, value, b->best, 0) : isfinite(value);
  if (!improved) return false;
  b->has_best = true;
  b->best = value;
  b->epoch = epoch;
  return true;
}
