/* inspect_text - what inspect found, as tables for people; see findings.h */
#include <stdlib.h>
#include <string.h>

#include "findings.h"

enum {
  FAULTS_SHOWN = 50,
  TWINS_SHOWN = 20,
  CLASSES_SHOWN = 200,
  SIZES_SHOWN = 5,
  TEXT_MAX = 1 << 26
};

/* Lines are added until one fails; the rest does nothing then. */
struct page {
  tp__buffer text;
  tp_status status;
  tp_error *err;
};

static void say(struct page *p, const char *format, ...) TP_PRINTF(2, 3);
static void say(struct page *p, const char *format, ...)
{
  if (p->status != TP_OK) return;
  char line[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  p->status = tp__buffer_add(&p->text, line, strlen(line), p->err);
}

static const char *plural(int64_t n)
{
  return n == 1 ? "" : "s";
}

static int widest(int width, const char *text)
{
  int n = (int)strlen(text);
  return n > width ? n : width;
}

static void say_splits(struct page *p, const tp__findings *f)
{
  int width = 5;
  for (size_t i = 0; i < f->n_splits; i++) width = widest(width, f->split[i].name);
  say(p, "\n%-*s  %8s  %9s  %9s\n", width, "split", "files", "records", "labelled");
  for (size_t i = 0; i < f->n_splits; i++) {
    const tp__split *s = &f->split[i];
    say(p, "%-*s  %8lld  %9lld  %9lld\n", width, s->name, (long long)s->files,
        (long long)s->records, (long long)s->labelled);
  }
}

static void say_pictures(struct page *p, const tp__findings *f)
{
  bool first = true;
  say(p, "\nformats  ");
  for (int i = 0; i < TP__FORMATS; i++) {
    if (f->format[i] == 0) continue;
    say(p, "%s%s %lld", first ? "" : ", ", tp__image_format_name((tp__image_format)i),
        (long long)f->format[i]);
    first = false;
  }
  say(p, "%s\nsizes    ", first ? "none" : "");
  int64_t rest = 0;
  for (size_t i = 0; i < f->n_sizes; i++) {
    const tp__size_count *s = &f->size[i];
    if (i < SIZES_SHOWN)
      say(p, "%s%dx%d: %lld", i > 0 ? ", " : "", s->width, s->height, (long long)s->count);
    else
      rest += s->count;
  }
  if (rest > 0) say(p, ", %zu other sizes: %lld", f->n_sizes - SIZES_SHOWN, (long long)rest);
  say(p, "%s\n", f->n_sizes == 0 ? "none" : f->n_sizes == 1 ? "" : " (width x height)");
}

static void say_classes(struct page *p, const tp__findings *f)
{
  if (f->n_classes == 0) {
    say(p, "\nno record has a label\n");
    return;
  }
  int width = 5;
  for (size_t c = 0; c < f->n_names; c++) width = widest(width, f->class_name[c]);
  if (width > 40) width = 40;
  say(p, "\n%5s  %-*s", "class", width, f->n_names > 0 ? "name" : "");
  for (size_t s = 0; s < f->n_splits; s++)
    if (f->split[s].labelled > 0) say(p, "  %8s", f->split[s].name);
  say(p, "\n");
  for (size_t c = 0; c < f->n_classes && c < CLASSES_SHOWN; c++) {
    say(p, "%5zu  %-*.40s", c, width, c < f->n_names ? f->class_name[c] : "");
    for (size_t s = 0; s < f->n_splits; s++)
      if (f->split[s].labelled > 0)
        say(p, "  %*lld", widest(8, f->split[s].name),
            (long long)f->class_count[c * f->n_splits + s]);
    say(p, "\n");
  }
  if (f->n_classes > CLASSES_SHOWN)
    say(p, "... %zu more (--json lists all)\n", f->n_classes - CLASSES_SHOWN);
}

/* A fault that many records of a file share is told once. */
static void say_faults(struct page *p, const tp__findings *f)
{
  if (f->n_faults == 0) return;
  size_t shown = 0, at = 0;
  say(p, "\n%zu unreadable or mislabelled:\n", f->n_faults);
  for (size_t end; at < f->n_faults && shown < FAULTS_SHOWN; at = end, shown++) {
    const tp__bad_record *b = &f->fault[at];
    for (end = at + 1; end < f->n_faults; end++)
      if (strcmp(f->fault[end].file, b->file) != 0 || strcmp(f->fault[end].reason, b->reason) != 0)
        break;
    if (b->number >= 0)
      say(p, "  %s: record %lld at byte %llu: %s\n", b->file, (long long)b->number,
          (unsigned long long)b->offset, b->reason);
    else
      say(p, "  %s: %s\n", b->file, b->reason);
    if (end - at > 1)
      say(p, "    and the same in the next %zu, up to record %lld\n", end - at - 1,
          (long long)f->fault[end - 1].number);
  }
  if (at < f->n_faults) say(p, "  ... %zu more (--json lists all)\n", f->n_faults - at);
}

static void say_twins(struct page *p, const tp__findings *f)
{
  size_t shown = 0, inside = 0;
  for (size_t i = 0; i < f->n_twins; i++) {
    const tp__twins *t = &f->twins[i];
    if (!t->across && !t->contradict) {
      inside += t->count - 1;
      continue;
    }
    if (shown++ == 0) say(p, "\nthe same picture in several splits, or with several labels:\n");
    if (shown > TWINS_SHOWN) continue;
    for (size_t k = 0; k < t->count; k++) {
      const tp__record *r = tp__catalog_record(f->catalog, f->twin[t->first + k]);
      char where[1024], label[300];
      tp__catalog_where(f->catalog, f->twin[t->first + k], where, sizeof where);
      say(p, "  %s %s: %s, class %s, id %.200s%s\n", k == 0 ? "-" : " ",
          f->split[f->split_of[r->file]].name, where,
          tp__findings_class(f, r->label, label, sizeof label), r->id,
          k == 0 && t->pixels ? " (equal pixels, other bytes)" : "");
    }
  }
  if (shown > TWINS_SHOWN)
    say(p, "  ... %zu more groups (--json lists all)\n", shown - TWINS_SHOWN);
  if (inside > 0)
    say(p, "\n%zu record%s repeat%s a picture of the same split and class\n", inside,
        plural((int64_t)inside), inside == 1 ? "s" : "");
}

tp_status tp__report_text(const tp__findings *f, char **text, tp_error *err)
{
  struct page p = {.err = err};
  tp__buffer_init(&p.text, TEXT_MAX);
  int64_t faults = (int64_t)f->n_faults + f->twin_faults,
          files = (int64_t)tp__catalog_files(f->catalog);
  say(&p, "%lld file%s, %zu record%s, ", (long long)files, plural(files), f->n,
      plural((int64_t)f->n));
  if (faults == 0)
    say(&p, "no faults\n");
  else
    say(&p, "%lld fault%s\n", (long long)faults, plural(faults));
  say_splits(&p, f);
  say_pictures(&p, f);
  say_classes(&p, f);
  say_faults(&p, f);
  say_twins(&p, f);
  if (f->n_notes > 0) say(&p, "\n");
  for (size_t i = 0; i < f->n_notes; i++) say(&p, "note: %s\n", f->note[i]);
  if (p.status == TP_OK) p.status = tp__buffer_add(&p.text, "", 1, err);
  if (p.status == TP_OK)
    *text = (char *)p.text.data;
  else
    tp__buffer_free(&p.text);
  return p.status;
}
