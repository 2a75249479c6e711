/* text - lines and tables for people: progress bar, what limits the speed, scores; see report.h and
 * tepal.h */
#include <math.h>
#include <string.h>

#include "report.h"

/* ---- what limits the speed ---- */

char *tp__cost_text(const tp__cost *c, char text[160])
{
  const struct {
    const char *name;
    double seconds;
  } stage[] = {
      {"reading", c->read}, {"JPEG decode", c->decode}, {"resize, flip and rotation", c->finish}};
  double wall = c->wall > 0 ? c->wall : 1e-9, all = 0;
  int longest = 0;
  for (int i = 0; i < 3; i++) {
    all += stage[i].seconds;
    if (stage[i].seconds > stage[longest].seconds) longest = i;
  }
  double busy = 100 * c->compute / wall;
  if (c->waiting < 0.5 * wall)
    snprintf(text, 160, "compute-bound, %.0f %% busy (input %.0f %%)", busy,
             100 * c->waiting / wall);
  else
    snprintf(text, 160,
             "input-bound: %s %.0f %% of the input's time (network busy %.0f %%), try %s",
             stage[longest].name, all > 0 ? 100 * stage[longest].seconds / all : 0, busy,
             c->cached ? "--threads" : "--cache pixels or --threads");
  return text;
}

/* ---- progress ---- */

static void duration(double seconds, char text[32])
{
  long s = seconds > 0 && seconds < 1e9 ? (long)(seconds + 0.5) : 0;
  if (s < 60)
    snprintf(text, 32, "%lds", s);
  else if (s < 3600)
    snprintf(text, 32, "%ld:%02ld", s / 60, s % 60);
  else
    snprintf(text, 32, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
}

static void add_figure(char *text, size_t size, const char *format, double value)
{
  size_t used = strlen(text);
  if (!isnan(value) && used < size) {
    char part[64];
    snprintf(part, sizeof part, format, value);
    snprintf(text + used, size - used, " - %s", part);
  }
}

char *tp_progress_text(const tp_progress *p, int width, char *text, size_t size)
{
  char tail[256] = "", time[32], head[48];
  duration(p->done ? p->seconds : p->seconds_left, time);
  if (p->done || p->seconds_left >= 0)
    snprintf(tail, sizeof tail, p->done ? " - %s" : " - %s left", time);
  if (p->images_per_s > 0) add_figure(tail, sizeof tail, "%.0f images/s", p->images_per_s);
  add_figure(tail, sizeof tail, "loss: %.4f", p->loss);
  add_figure(tail, sizeof tail, "accuracy: %.4f", p->accuracy);
  add_figure(tail, sizeof tail, "val_loss: %.4f", p->val_loss);
  add_figure(tail, sizeof tail, "val_accuracy: %.4f", p->val_accuracy);
  if (p->epochs > 0)
    snprintf(head, sizeof head, "Epoch %d/%d %lld/%lld", p->epoch, p->epochs, (long long)p->step,
             (long long)p->steps);
  else
    snprintf(head, sizeof head, "%s %lld/%lld", p->stage, (long long)p->step, (long long)p->steps);
  enum { BAR = 30 };
  int bar = width - (int)strlen(head) - (int)strlen(tail) - 3;
  if (bar > BAR) bar = BAR;
  if (bar < 6 || p->steps < 1) {
    snprintf(text, size, "%s%s", head, tail);
    return text;
  }
  char cells[BAR + 1];
  int full = (int)((double)bar * (double)p->step / (double)p->steps);
  memset(cells, '.', (size_t)bar);
  memset(cells, '=', (size_t)full);
  if (full < bar) cells[full] = '>';
  cells[bar] = '\0';
  snprintf(text, size, "%s [%s]%s", head, cells, tail);
  return text;
}

/* ---- scores ---- */

static tp_status add_share(tp__buffer *b, double value, tp_error *err)
{
  if (isnan(value)) return tp__buffer_printf(b, err, "%11s", "-");
  return tp__buffer_printf(b, err, "%11.4f", value);
}

static tp_status add_class(tp__buffer *b, const tp_class_score *c, int name_width, tp_error *err)
{
  TP__TRY(tp__buffer_printf(b, err, "%-*s%11lld", name_width, c->name, (long long)c->support));
  TP__TRY(add_share(b, c->precision, err));
  TP__TRY(add_share(b, c->recall, err));
  TP__TRY(add_share(b, c->f1, err));
  return tp__buffer_printf(b, err, "\n");
}

static tp_status add_totals(tp__buffer *b, const tp_evaluation *e, tp_error *err)
{
  size_t occurring = 0;
  for (size_t i = 0; i < e->n_classes; i++)
    occurring += e->classes[i].support + e->classes[i].predicted > 0;
  TP__TRY(tp__buffer_printf(b, err, "\nexamples  %lld\n", (long long)e->examples));
  if (!isnan(e->loss)) TP__TRY(tp__buffer_printf(b, err, "loss      %.6f\n", e->loss));
  TP__TRY(tp__buffer_printf(b, err, "accuracy  %.6f\n", e->accuracy));
  if (!isnan(e->top_5)) TP__TRY(tp__buffer_printf(b, err, "top-5     %.6f\n", e->top_5));
  return tp__buffer_printf(b, err, "macro F1  %.6f (mean over the %zu of %zu classes that occur)\n",
                           e->macro_f1, occurring, e->n_classes);
}

tp_status tp_evaluation_text(const tp_evaluation *e, char **text, tp_error *error)
{
  tp__buffer b;
  tp__buffer_init(&b, (size_t)256 << 20);
  int name_width = 8;
  for (size_t i = 0; i < e->n_classes; i++) {
    int n = (int)strlen(e->classes[i].name) + 2;
    if (n > name_width) name_width = n < 48 ? n : 48;
  }
  tp_status status = tp__buffer_printf(&b, error, "%-*s%11s%11s%11s%11s\n", name_width, "class",
                                       "support", "precision", "recall", "F1");
  for (size_t i = 0; status == TP_OK && i < e->n_classes; i++)
    if (e->classes[i].support + e->classes[i].predicted > 0)
      status = add_class(&b, &e->classes[i], name_width, error);
  if (status == TP_OK) status = add_totals(&b, e, error);
  if (status == TP_OK)
    *text = (char *)b.data; /* printf keeps a zero behind the text */
  else
    tp__buffer_free(&b);
  return status;
}
