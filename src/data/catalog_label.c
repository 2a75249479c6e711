/* catalog_label - the names of the classes, and which class an example is of; see catalog_build.h
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "catalog_build.h"

/* A whole number in decimal digits, nothing around it. */
static bool is_number(const char *text, int64_t *value)
{
  const char *digits = text + (text[0] == '-');
  if (digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0') return false;
  errno = 0;
  *value = strtoll(text, NULL, 10);
  return errno == 0;
}

static int by_bytes(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The catalog's classes: the distinct names in bytewise order. */
static tp_status use_names(tp__build *build, tp_error *err)
{
  tp__catalog *c = build->catalog;
  size_t n = build->n_class_names;
  qsort(build->class_names, n, sizeof *build->class_names, by_bytes);
  c->labels = tp__arena_alloc(&c->arena, n * sizeof *c->labels);
  if (c->labels == NULL) return tp__no_memory(err, n * sizeof *c->labels);
  for (size_t i = 0; i < n; i++)
    if (i == 0 || strcmp(build->class_names[i], build->class_names[i - 1]) != 0)
      c->labels[c->n_labels++] = build->class_names[i];
  if (c->n_labels > TP__CLASSES_MAX)
    return tp__fail(err, TP_ERR_DATA, "%zu classes are found, over the limit of %d", c->n_labels,
                    TP__CLASSES_MAX);
  return TP_OK;
}

static tp_status use_given(tp__build *build, tp_error *err)
{
  tp__catalog *c = build->catalog;
  const tp__catalog_options *o = build->options;
  c->labels = tp__arena_alloc(&c->arena, o->n_labels * sizeof *c->labels);
  if (c->labels == NULL) return tp__no_memory(err, o->n_labels * sizeof *c->labels);
  for (size_t i = 0; i < o->n_labels; i++) {
    c->labels[i] = tp__arena_strdup(&c->arena, o->labels[i]);
    if (c->labels[i] == NULL) return tp__no_memory(err, strlen(o->labels[i]));
  }
  c->n_labels = o->n_labels;
  return TP_OK;
}

/* Without given class names a CSV's labels are either all numbers, or all names that define the
 * classes. Half and half is most likely a slip ("N/A" among numbers), which would add a class. */
static tp_status add_csv_names(tp__build *build, tp_error *err)
{
  tp__catalog *c = build->catalog;
  const tp__data_file *number = NULL, *name = NULL;
  int64_t value;
  for (size_t i = 0; i < c->n_files; i++) {
    const tp__data_file *f = &c->files[i];
    if (f->list == NULL || f->class_name == NULL) continue;
    if (is_number(f->class_name, &value))
      number = number == NULL ? f : number;
    else
      name = name == NULL ? f : name;
  }
  if (name == NULL && (number == NULL || build->n_class_names == 0)) return TP_OK;
  if (name != NULL && number != NULL)
    return tp__fail(
        err, TP_ERR_DATA,
        "%s: line %zu: the label \"%.100s\" is a name, but \"%.100s\" in line %zu%s%s is a "
        "number: use one of the two, or give the class names (labels)",
        name->list, name->line, name->class_name, number->class_name, number->line,
        number->list != name->list ? " of " : "", number->list != name->list ? number->list : "");
  for (size_t i = 0; i < c->n_files; i++) {
    if (c->files[i].list == NULL || c->files[i].class_name == NULL) continue;
    TP__TRY(tp__list_grow(&build->class_names, build->n_class_names, &build->class_names_capacity,
                          sizeof *build->class_names, err));
    build->class_names[build->n_class_names++] = c->files[i].class_name;
  }
  return TP_OK;
}

tp_status tp__catalog_name_classes(tp__build *build, tp_error *err)
{
  if (build->options->n_labels > 0 && build->options->labels == NULL) return TP_OK;
  if (build->options->n_labels > 0) {
    TP__TRY(use_given(build, err));
  } else {
    TP__TRY(add_csv_names(build, err));
    if (build->n_class_names > 0) TP__TRY(use_names(build, err));
  }
  const tp__catalog *c = build->catalog;
  return tp__label_index_build(&build->index, c->labels, c->n_labels, err);
}

tp_status tp__catalog_number_label(const tp__build *build, int64_t number, int64_t smallest,
                                   int32_t *label, tp_error *err)
{
  const tp__catalog *c = build->catalog;
  size_t known = c->n_labels > 0 ? c->n_labels : build->options->n_labels;
  int64_t base = build->options->label_base, at = -1;
  int64_t classes = known > 0 ? (int64_t)known : TP__CLASSES_MAX;
  if (!__builtin_sub_overflow(number, base, &at) && at >= 0 && at < classes) {
    *label = (int32_t)at;
    return TP_OK;
  }
  const char *hint = "";
  if (known > 0 && base == 0 && at == classes && smallest > 0)
    hint = "; did you mean label_base 1?";
  if (base == 1 && number == 0) hint = "; did you mean label_base 0?";
  if (known == 0)
    return tp__fail(err, TP_ERR_DATA, "label %lld is outside %lld...%lld%s", (long long)number,
                    (long long)base, (long long)(base + classes - 1), hint);
  return tp__fail(err, TP_ERR_DATA,
                  "label %lld is outside the classes: there are %zu, labels run %lld...%lld%s",
                  (long long)number, known, (long long)base, (long long)(base + classes - 1), hint);
}

tp_status tp__catalog_photo_label(const tp__build *build, const tp__data_file *photo,
                                  int32_t *label, tp_error *err)
{
  const char *name = photo->class_name;
  *label = -1;
  if (name == NULL && !build->options->need_labels) return TP_OK;
  if (name == NULL)
    return tp__fail(
        err, TP_ERR_DATA,
        "the photo has no label: a folder per class, or a CSV of path,label, is wanted");
  size_t at = 0;
  int64_t number = 0;
  if (tp__label_index_find(&build->index, name, strlen(name), &at)) {
    *label = (int32_t)at;
    return TP_OK;
  }
  bool by_number = build->options->n_labels > 0 && build->options->labels == NULL;
  if ((photo->list != NULL || by_number) && is_number(name, &number))
    return tp__catalog_number_label(build, number, number, label, err);
  if (by_number)
    return tp__fail(err, TP_ERR_DATA,
                    "the class \"%.200s\" is a name, but the %zu classes are known by number only: "
                    "give their names (labels)",
                    name, build->options->n_labels);
  return tp__fail(err, TP_ERR_DATA, "the class \"%.200s\" is not among the %zu class names", name,
                  build->catalog->n_labels);
}
