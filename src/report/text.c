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
             c->movable && longest == 2 ? "--augment-on device or --threads"
             : c->cached                ? "--threads"
                                        : "--cache pixels or --threads");
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

enum { TAIL = 256 };

static void add_figure(char text[TAIL], const char *name, double value)
{
  size_t used = strlen(text);
  if (!isnan(value)) snprintf(text + used, TAIL - used, " - %s: %.4f", name, value);
}

/* Everything behind the bar. What is left out as lines get narrower: 1 images/s, 2 long names, 3
 * the time. */
static void make_tail(const tp_progress *p, int narrow, char tail[TAIL])
{
  char time[32];
  duration(p->done ? p->seconds : p->seconds_left, time);
  tail[0] = '\0';
  if (narrow < 3 && (p->done || p->seconds_left >= 0))
    snprintf(tail, TAIL, p->done ? " - %s" : " - %s left", time);
  size_t used = strlen(tail);
  if (narrow < 1 && p->images_per_s > 0)
    snprintf(tail + used, TAIL - used, " - %.0f images/s", p->images_per_s);
  add_figure(tail, "loss", p->loss);
  add_figure(tail, narrow < 2 ? "accuracy" : "acc", p->accuracy);
  add_figure(tail, "val_loss", p->val_loss);
  add_figure(tail, narrow < 2 ? "val_accuracy" : "val_acc", p->val_accuracy);
}

static void make_bar(const tp_progress *p, int cells, char *text)
{
  int full = (int)((double)cells * (double)p->step / (double)p->steps);
  if (full < 0) full = 0;
  if (full > cells) full = cells;
  memset(text, '.', (size_t)cells);
  memset(text, '=', (size_t)full);
  if (full < cells) text[full] = '>';
  text[cells] = '\0';
}

/* Drops whole figures at the end until the text fits: half a number would be a wrong one. */
static void cut_figures(char *text, int width)
{
  bool whole = strncmp(text + width, " - ", 3) == 0;
  char *last = NULL;
  text[width] = '\0';
  for (char *at = strstr(text, " - "); at != NULL; at = strstr(at + 1, " - ")) last = at;
  if (last != NULL && !whole) *last = '\0';
}

char *tp_progress_text(const tp_progress *p, int width, char *text, size_t size)
{
  enum { BAR = 30, BAR_LEAST = 6, NARROWEST = 4 };
  char tail[TAIL], head[64], bar[BAR + 1];
  if (p->epochs > 0)
    snprintf(head, sizeof head, "Epoch %d/%d %lld/%lld", p->epoch, p->epochs, (long long)p->step,
             (long long)p->steps);
  else
    snprintf(head, sizeof head, "%s %lld/%lld", p->stage, (long long)p->step, (long long)p->steps);
  make_tail(p, 0, tail);
  int cells = width - (int)strlen(head) - (int)strlen(tail) - 3;
  if (cells >= BAR_LEAST && p->steps > 0) {
    make_bar(p, cells < BAR ? cells : BAR, bar);
    snprintf(text, size, "%s [%s]%s", head, bar, tail);
    return text;
  }
  int used = snprintf(text, size, "%s%s", head, tail);
  for (int narrow = 1; used > width && narrow < NARROWEST; narrow++) {
    make_tail(p, narrow, tail);
    used = snprintf(text, size, "%s%s", head, tail);
  }
  /* The steps of an epoch that is over are no news. */
  if (used > width && p->done && p->epochs > 0)
    used = snprintf(text, size, "Epoch %d/%d%s", p->epoch, p->epochs, tail);
  if (used > width && width >= 0 && (size_t)width < size) cut_figures(text, width);
  return text;
}

/* ---- scores ---- */

static tp_status add_share(tp__buffer *b, double value, tp_error *err)
{
  if (isnan(value)) return tp__buffer_printf(b, err, "%11s", "-");
  return tp__buffer_printf(b, err, "%11.4f", value);
}

/* Columns that a text in UTF-8 takes, wide letters counted as one. */
static int columns_of(const char *text)
{
  int n = 0;
  for (; *text != '\0'; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
  return n;
}

/* A name in so many columns, cut where it is longer. */
static tp_status add_name(tp__buffer *b, const char *name, int width, tp_error *err)
{
  int columns = columns_of(name);
  if (columns <= width - 2) return tp__buffer_printf(b, err, "%s%*s", name, width - columns, "");
  size_t kept = 0;
  for (int n = 0; n < width - 5; n++) do
      kept++;
    while (((unsigned char)name[kept] & 0xc0) == 0x80);
  return tp__buffer_printf(b, err, "%.*s...  ", (int)kept, name);
}

static tp_status add_class(tp__buffer *b, const tp_class_score *c, int name_width, tp_error *err)
{
  TP__TRY(add_name(b, c->name, name_width, err));
  TP__TRY(tp__buffer_printf(b, err, "%11lld", (long long)c->support));
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
  enum { NAME_WIDEST = 36 }; /* the table fits 80 columns */
  int name_width = 8;
  for (size_t i = 0; i < e->n_classes; i++) {
    int n = columns_of(e->classes[i].name) + 2;
    if (n > name_width) name_width = n < NAME_WIDEST ? n : NAME_WIDEST;
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
