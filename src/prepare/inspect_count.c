/* inspect_count - sizes, classes and ids: how many, and what is odd about them; see findings.h */
#include <stdlib.h>
#include <string.h>

#include "findings.h"

static int by_size(const void *a, const void *b)
{
  const tp__size_count *x = a, *y = b;
  if (x->width != y->width) return x->width < y->width ? -1 : 1;
  return x->height < y->height ? -1 : x->height > y->height;
}

static int by_count(const void *a, const void *b)
{
  const tp__size_count *x = a, *y = b;
  return x->count != y->count ? (x->count > y->count ? -1 : 1) : by_size(a, b);
}

tp_status tp__count_sizes(tp__findings *f, tp_error *err)
{
  f->size = tp__calloc(f->n, sizeof *f->size, err);
  if (f->size == NULL) return TP_ERR_INTERNAL;
  size_t n = 0, out = 0;
  for (size_t i = 0; i < f->n; i++) {
    const tp__look *l = &f->look[i];
    f->format[l->format]++;
    if (l->orientation > 1) f->turned++;
    if (l->width > 0) f->size[n++] = (tp__size_count){l->height, l->width, 1};
  }
  qsort(f->size, n, sizeof *f->size, by_size);
  for (size_t i = 0; i < n; i++) {
    if (out > 0 && by_size(&f->size[out - 1], &f->size[i]) == 0)
      f->size[out - 1].count++;
    else
      f->size[out++] = f->size[i];
  }
  f->n_sizes = out;
  qsort(f->size, out, sizeof *f->size, by_count);
  return TP_OK;
}

tp_status tp__count_classes(tp__findings *f, tp_error *err)
{
  f->n_classes = f->n_names;
  for (size_t i = 0; i < f->n; i++) {
    int32_t label = tp__catalog_record(f->catalog, i)->label;
    if (label >= 0 && (size_t)label >= f->n_classes) f->n_classes = (size_t)label + 1;
  }
  size_t cells;
  if (!tp__mul_size(f->n_classes, f->n_splits, &cells)) return tp__no_memory(err, SIZE_MAX);
  f->class_count = tp__calloc(cells, sizeof *f->class_count, err);
  if (f->class_count == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < f->n; i++) {
    const tp__record *r = tp__catalog_record(f->catalog, i);
    size_t split = f->split_of[r->file];
    if (r->label < 0) continue;
    f->split[split].labelled++;
    f->class_count[(size_t)r->label * f->n_splits + split]++;
  }
  return TP_OK;
}

tp_status tp__note_classes(tp__findings *f, tp_error *err)
{
  char text[300], more[300];
  size_t largest = 0; /* where unequal classes matter: training */
  for (size_t s = 1; s < f->n_splits; s++)
    if (f->split[s].labelled > f->split[largest].labelled) largest = s;
  for (size_t s = 0; s < f->n_splits; s++) {
    const tp__split *split = &f->split[s];
    if (split->labelled == 0) continue;
    if (split->labelled < split->records)
      TP__TRY(tp__findings_note(f, err, "%s: %lld of %lld records have no label", split->name,
                                (long long)(split->records - split->labelled),
                                (long long)split->records));
    int64_t least = INT64_MAX, most = 0, rarest = 0, commonest = 0, empty = 0, an_empty = 0;
    for (size_t c = 0; c < f->n_classes; c++) {
      int64_t n = f->class_count[c * f->n_splits + s];
      if (n == 0 && empty++ == 0) an_empty = (int64_t)c;
      if (n > 0 && n < least) least = n, rarest = (int64_t)c;
      if (n > most) most = n, commonest = (int64_t)c;
    }
    if (empty > 0)
      TP__TRY(tp__findings_note(
          f, err, "%s: %lld of %zu classes have no record, the first is class %s", split->name,
          (long long)empty, f->n_classes, tp__findings_class(f, an_empty, text, sizeof text)));
    if (s == largest && most >= 5 * least)
      TP__TRY(tp__findings_note(
          f, err,
          "%s: classes are unequal: %lld records of class %s, %lld of class %s; class weights "
          "(--class-weights balanced) may help",
          split->name, (long long)most, tp__findings_class(f, commonest, text, sizeof text),
          (long long)least, tp__findings_class(f, rarest, more, sizeof more)));
  }
  return TP_OK;
}

static int by_text(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

tp_status tp__note_ids(tp__findings *f, tp_error *err)
{
  const char **id = tp__calloc(f->n, sizeof *id, err), *example = NULL;
  if (id == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < f->n; i++) id[i] = tp__catalog_record(f->catalog, i)->id;
  qsort(id, f->n, sizeof *id, by_text);
  size_t again = 0;
  for (size_t i = 1; i < f->n; i++)
    if (strcmp(id[i], id[i - 1]) == 0 && again++ == 0) example = id[i];
  free(id);
  if (again == 0) return TP_OK;
  return tp__findings_note(
      f, err, "%zu records have an id that another has too, for instance \"%s\"", again, example);
}
