/* answers_files - figures of one CSV of labels against another; see answers.h */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "data/csv.h"
#include "data/labels.h"
#include "metrics.h"

enum { COLUMNS_MAX = 4096 };

typedef struct answer {
  const char *id, *label; /* in the text */
  size_t line;
} answer;

typedef struct answer_file {
  const char *path;
  tp__buffer text;
  answer *row;
  size_t count, capacity;
} answer_file;

static void free_answers(answer_file *f)
{
  free(f->row);
  tp__buffer_free(&f->text);
}

static tp_status add_answer(answer_file *f, const answer *a, tp_error *err)
{
  if (f->count == f->capacity) {
    size_t capacity = f->capacity == 0 ? 1024 : f->capacity * 2;
    answer *grown = realloc(f->row, capacity * sizeof *grown);
    if (grown == NULL) return tp__no_memory(err, capacity * sizeof *grown);
    f->row = grown;
    f->capacity = capacity;
  }
  f->row[f->count++] = *a;
  return TP_OK;
}

/* The place of a column in the header, or an error that lists those there are. */
static tp_status find_column(const char *name, char *const *field, size_t n, size_t *at,
                             tp_error *err)
{
  char all[512] = "";
  for (size_t i = 0; i < n; i++) {
    if (strcmp(field[i], name) == 0) {
      *at = i;
      return TP_OK;
    }
    size_t used = strlen(all);
    if (used + 40 < sizeof all)
      snprintf(all + used, sizeof all - used, "%s%.32s", i ? ", " : "", field[i]);
  }
  return tp__fail(err, TP_ERR_DATA, "has no column \"%s\"; its columns are: %s", name, all);
}

static tp_status read_rows(answer_file *f, const char *id_column, const char *label_column,
                           tp_error *err)
{
  static const char bom[] = "\xef\xbb\xbf";
  char **field = tp__calloc(COLUMNS_MAX, sizeof *field, err);
  if (field == NULL) return TP_ERR_INTERNAL;
  tp__csv c = {.at = (char *)f->text.data, .end = (char *)f->text.data + f->text.size, .line = 1};
  if (f->text.size >= 3 && memcmp(c.at, bom, 3) == 0) c.at += 3;
  size_t n = 0, id = 0, label = 0;
  tp_status status = c.at < c.end ? tp__csv_line(&c, field, COLUMNS_MAX, &n, err)
                                  : tp__fail(err, TP_ERR_DATA, "is empty");
  if (status == TP_OK && n > COLUMNS_MAX) n = COLUMNS_MAX;
  if (status == TP_OK) status = find_column(id_column, field, n, &id, err);
  if (status == TP_OK) status = find_column(label_column, field, n, &label, err);
  size_t most = id > label ? id : label;
  while (status == TP_OK && c.at < c.end) {
    answer a = {.line = c.line};
    status = tp__csv_line(&c, field, COLUMNS_MAX, &n, err);
    if (status != TP_OK || (n == 1 && field[0][0] == '\0')) continue; /* an empty line */
    if (n <= most) {
      status = tp__fail(err, TP_ERR_DATA, "line %zu: has %zu fields, %zu are wanted", a.line, n,
                        most + 1);
      break;
    }
    a.id = field[id];
    a.label = field[label];
    status = add_answer(f, &a, err);
  }
  free(field);
  return status;
}

static int compare_answers(const void *a, const void *b)
{
  return strcmp(((const answer *)a)->id, ((const answer *)b)->id);
}

static tp_status read_answers(answer_file *f, const char *path, const char *id_column,
                              const char *label_column, tp_error *err)
{
  f->path = path;
  tp__buffer_init(&f->text, (size_t)1 << 30);
  TP__TRY(tp__file_read(path, &f->text, err));
  tp_status status = tp__buffer_reserve(&f->text, f->text.size + 1, err);
  if (status == TP_OK) {
    f->text.data[f->text.size] = '\0';
    status = read_rows(f, id_column, label_column, err);
  }
  if (status == TP_OK && f->count == 0) status = tp__fail(err, TP_ERR_DATA, "holds no lines");
  if (status != TP_OK) return tp__at(err, status, "%s", path);
  qsort(f->row, f->count, sizeof *f->row, compare_answers);
  for (size_t i = 1; i < f->count; i++)
    if (strcmp(f->row[i - 1].id, f->row[i].id) == 0)
      return tp__fail(err, TP_ERR_DATA, "%s: the id \"%s\" is in lines %zu and %zu", path,
                      f->row[i].id, f->row[i - 1].line, f->row[i].line);
  return TP_OK;
}

/* Both files name the same ids, each once. */
static tp_status match_ids(const answer_file *p, const answer_file *t, tp_error *err)
{
  size_t i = 0, j = 0;
  while (i < p->count || j < t->count) {
    int order = i == p->count ? 1 : j == t->count ? -1 : strcmp(p->row[i].id, t->row[j].id);
    if (order == 0) {
      i++;
      j++;
      continue;
    }
    const answer_file *has = order < 0 ? p : t, *lacks = order < 0 ? t : p;
    const answer *a = order < 0 ? &p->row[i] : &t->row[j];
    return tp__fail(
        err, TP_ERR_DATA,
        "the id \"%s\" of %s line %zu is not in %s (%zu and %zu lines): no figures are given",
        a->id, has->path, a->line, lacks->path, has->count, lacks->count);
  }
  return TP_OK;
}

static bool whole_number(const char *text, long *value)
{
  char *end = NULL;
  errno = 0;
  *value = strtol(text, &end, 10);
  return end != text && *end == '\0' && errno == 0;
}

/* True when every label of both files is a whole number; classes is then the largest + 1. Negative
 * or huge ones are an error. */
static tp_status numbered(const answer_file *p, const answer_file *t, bool *are, int *classes,
                          tp_error *err)
{
  *are = true;
  *classes = 1;
  for (int k = 0; k < 2; k++) {
    const answer_file *f = k == 0 ? p : t;
    for (size_t i = 0; i < f->count; i++) {
      long v = 0;
      if (!whole_number(f->row[i].label, &v)) {
        *are = false;
        return TP_OK;
      }
      if (v < 0 || v >= TP__CLASSES_MAX)
        return tp__fail(err, TP_ERR_DATA, "%s: line %zu: the label %ld is out of range", f->path,
                        f->row[i].line, v);
      if (v >= *classes) *classes = (int)v + 1;
    }
  }
  return TP_OK;
}

static int compare_names(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The distinct labels of both files, sorted. */
static tp_status names_of(const answer_file *p, const answer_file *t, const char ***names, int *n,
                          tp_error *err)
{
  size_t all = p->count + t->count, kept = 0;
  const char **list = tp__calloc(all, sizeof *list, err);
  if (list == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < p->count; i++) list[i] = p->row[i].label;
  for (size_t i = 0; i < t->count; i++) list[p->count + i] = t->row[i].label;
  qsort(list, all, sizeof *list, compare_names);
  for (size_t i = 0; i < all; i++)
    if (kept == 0 || strcmp(list[kept - 1], list[i]) != 0) list[kept++] = list[i];
  *names = list;
  *n = (int)kept;
  if (kept <= TP__CLASSES_MAX) return TP_OK;
  return tp__fail(err, TP_ERR_DATA, "%zu different labels: these are no classes", kept);
}

static int label_of(const char *text, const char *const *names, int classes)
{
  long v = 0;
  if (names == NULL) {
    (void)whole_number(text, &v);
    return (int)v;
  }
  const char *const *at = bsearch(&text, names, (size_t)classes, sizeof *names, compare_names);
  return (int)(at - names);
}

tp_status tp__evaluate_files(const tp__job *job, const tp_evaluate_options *o,
                             tp_evaluation *evaluation, tp_error *err)
{
  (void)job;
  if (o->predictions == NULL || o->truth == NULL)
    return tp__fail(err, TP_ERR_USAGE, "predictions and truth belong together: one CSV each");
  const char *truth_id = o->truth_id_column != NULL ? o->truth_id_column : o->id_column;
  const char *truth_label = o->truth_label_column != NULL ? o->truth_label_column : o->label_column;
  answer_file p = {0}, t = {0};
  const char **names = NULL;
  tp__metrics m = {0};
  int classes = 0;
  bool are_numbers = false;
  tp_status status = read_answers(&p, o->predictions, o->id_column, o->label_column, err);
  if (status == TP_OK) status = read_answers(&t, o->truth, truth_id, truth_label, err);
  if (status == TP_OK) status = match_ids(&p, &t, err);
  if (status == TP_OK) status = numbered(&p, &t, &are_numbers, &classes, err);
  if (status == TP_OK && !are_numbers) status = names_of(&p, &t, &names, &classes, err);
  if (status == TP_OK) status = tp__metrics_init(&m, classes, err);
  for (size_t i = 0; status == TP_OK && i < p.count; i++)
    tp__metrics_add_one(&m, label_of(t.row[i].label, names, classes),
                        label_of(p.row[i].label, names, classes));
  if (status == TP_OK) status = tp__metrics_evaluation(&m, names, false, evaluation, err);
  tp__metrics_free(&m);
  free(names);
  free_answers(&p);
  free_answers(&t);
  return status;
}
