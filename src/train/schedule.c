/* schedule - see schedule.h; definitions: keras.optimizers.schedules of Keras 3 */
#include "schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double cosine_rate(const tp__schedule *s, int64_t step)
{
  if (step < s->warmup) return s->rate * (double)step / (double)s->warmup;
  double done = s->steps > 0 ? (double)(step - s->warmup) / (double)s->steps : 1.0;
  if (done > 1.0) done = 1.0;
  double wave = 0.5 * (1.0 + cos(3.14159265358979323846 * done));
  return s->rate * ((1.0 - s->decay) * wave + s->decay);
}

float tp__schedule_rate(const tp__schedule *s, int64_t step)
{
  switch (s->kind) {
  case TP__SCHEDULE_CONSTANT:
    break;
  case TP__SCHEDULE_EXPONENTIAL: {
    double power = (double)step / (double)s->steps;
    double decay = (double)(float)s->decay; /* Keras' is a float: 1e-6 after 50 factors */
    return (float)(s->rate * pow(decay, s->staircase ? floor(power) : power));
  }
  case TP__SCHEDULE_COSINE:
    return (float)cosine_rate(s, step);
  case TP__SCHEDULE_PIECEWISE: {
    int i = 0;
    while (i < s->n_boundaries && step > s->boundary[i]) i++;
    return (float)s->value[i];
  }
  }
  return (float)s->rate;
}

/* Reads "a,b,c" into values; returns how many, or -1 where the text is no list of numbers. */
static int numbers_of(const char *text, double *values, int most)
{
  int n = 0;
  while (text != NULL && *text != '\0') {
    char *end = NULL;
    errno = 0;
    double v = strtod(text, &end);
    if (end == text || errno != 0 || !isfinite(v) || n == most) return -1;
    values[n++] = v;
    while (*end == ' ') end++;
    if (*end == '\0') break;
    if (*end != ',') return -1;
    text = end + 1;
  }
  return n;
}

static tp_status make_piecewise(const tp_train_options *o, tp__schedule *s, tp_error *err)
{
  double boundary[TP__PIECES_MAX] = {0};
  s->n_boundaries = numbers_of(o->boundaries, boundary, TP__PIECES_MAX);
  int values = numbers_of(o->values, s->value, TP__PIECES_MAX + 1);
  if (s->n_boundaries < 1)
    return tp__fail(err, TP_ERR_USAGE, "boundaries: \"%s\": wanted step numbers, as 1000,2000",
                    o->boundaries == NULL ? "" : o->boundaries);
  if (values != s->n_boundaries + 1)
    return tp__fail(err, TP_ERR_USAGE, "values: \"%s\": wanted %d rates, one more than boundaries",
                    o->values == NULL ? "" : o->values, s->n_boundaries + 1);
  for (int i = 0; i < values; i++)
    if (!(s->value[i] >= 0))
      return tp__fail(err, TP_ERR_USAGE, "values: \"%s\": rates of 0 or more are wanted",
                      o->values);
  for (int i = 0; i < s->n_boundaries; i++) {
    if (!(boundary[i] >= 0 && boundary[i] < 9e15))
      return tp__fail(err, TP_ERR_USAGE, "boundaries: \"%s\": step numbers of 0 or more are wanted",
                      o->boundaries);
    s->boundary[i] = (int64_t)boundary[i];
    if ((double)s->boundary[i] != boundary[i] || (i > 0 && s->boundary[i] <= s->boundary[i - 1]))
      return tp__fail(err, TP_ERR_USAGE, "boundaries: \"%s\": whole, rising numbers are wanted",
                      o->boundaries);
  }
  return TP_OK;
}

static tp_status make_exponential(const tp_train_options *o, tp__schedule *s, tp_error *err)
{
  s->kind = TP__SCHEDULE_EXPONENTIAL;
  s->decay = o->decay_rate;
  s->steps = o->decay_steps != 0 ? o->decay_steps : 100;
  s->staircase = o->staircase;
  if (s->steps < 1)
    return tp__fail(err, TP_ERR_USAGE, "decay_steps: %d: wanted 0 or more", o->decay_steps);
  if (!(s->decay > 0 && s->decay <= 1))
    return tp__fail(err, TP_ERR_USAGE, "decay_rate: %g: wanted above 0, up to 1", s->decay);
  return TP_OK;
}

static tp_status make_cosine(const tp_train_options *o, int64_t total_steps, tp__schedule *s,
                             tp_error *err)
{
  s->kind = TP__SCHEDULE_COSINE;
  s->decay = o->final_rate;
  s->warmup = o->warmup_steps;
  s->steps = o->decay_steps > 0 ? o->decay_steps : total_steps - s->warmup;
  if (s->warmup < 0 || s->steps < 1)
    return tp__fail(err, TP_ERR_USAGE,
                    "warmup_steps %d leaves no step to decay in: the phase has %lld steps",
                    o->warmup_steps, (long long)total_steps);
  if (!(s->decay >= 0 && s->decay <= 1))
    return tp__fail(err, TP_ERR_USAGE, "final_rate: %g: wanted a fraction, 0 to 1", s->decay);
  return TP_OK;
}

tp_status tp__schedule_make(const tp_train_options *o, bool fine_tune, int64_t total_steps,
                            tp__schedule *schedule, tp_error *err)
{
  const char *name = fine_tune ? o->fine_tune_schedule : o->schedule;
  tp__schedule s = {.rate = fine_tune ? o->fine_tune_learning_rate : o->learning_rate};
  if (strcmp(name, "constant") == 0) {
    s.kind = TP__SCHEDULE_CONSTANT;
  } else if (strcmp(name, "exponential") == 0) {
    TP__TRY(make_exponential(o, &s, err));
  } else if (strcmp(name, "cosine") == 0) {
    TP__TRY(make_cosine(o, total_steps, &s, err));
  } else if (strcmp(name, "piecewise") == 0 && !fine_tune) {
    s.kind = TP__SCHEDULE_PIECEWISE;
    TP__TRY(make_piecewise(o, &s, err));
  } else {
    return tp__fail(err, TP_ERR_USAGE, "%s: \"%s\" is not known; wanted %s",
                    fine_tune ? "fine_tune_schedule" : "schedule", name,
                    fine_tune ? "constant, exponential or cosine"
                              : "constant, exponential, cosine or piecewise");
  }
  *schedule = s;
  return TP_OK;
}

char *tp__schedule_text(const tp__schedule *s, char text[160])
{
  switch (s->kind) {
  case TP__SCHEDULE_CONSTANT:
    snprintf(text, 160, "constant %g", s->rate);
    break;
  case TP__SCHEDULE_EXPONENTIAL:
    snprintf(text, 160, "%g x %g every %lld steps%s", s->rate, s->decay, (long long)s->steps,
             s->staircase ? "" : ", smooth");
    break;
  case TP__SCHEDULE_COSINE:
    snprintf(text, 160, "cosine from %g to %g in %lld steps, warm-up %lld", s->rate,
             s->rate * s->decay, (long long)s->steps, (long long)s->warmup);
    break;
  case TP__SCHEDULE_PIECEWISE:
    snprintf(text, 160, "piecewise, %d values from %g", s->n_boundaries + 1, s->value[0]);
    break;
  }
  return text;
}
