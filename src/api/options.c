/* options - see options.h and tepal.h */
#include "options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct tp_options_memory {
  tp__arena arena;
  struct grown *grown; /* the lists of tp_strings fields that tp_options_set adds to */
};

/* One tp_strings field whose array is ours. */
struct grown {
  struct grown *next;
  const tp_strings *field;
  const char **item;
  size_t capacity;
};

enum { OPTIONS_MAX = 128 };

/* ---- listing, defaults ---- */

static size_t size_of_kind(tp_options_kind kind)
{
  switch (kind) {
  case TP_OPTIONS_TRAIN:
    return sizeof(tp_train_options);
  case TP_OPTIONS_PREDICT:
    return sizeof(tp_predict_options);
  case TP_OPTIONS_EVALUATE:
    return sizeof(tp_evaluate_options);
  case TP_OPTIONS_INSPECT:
    return sizeof(tp_inspect_options);
  case TP_OPTIONS_PACK:
    return sizeof(tp_pack_options);
  case TP_OPTIONS_DRAW:
    return sizeof(tp_draw_options);
  }
  return 0;
}

bool tp_options_at(tp_options_kind kind, size_t index, tp_option *option)
{
  size_t n = 0;
  const tp__option_row *row = tp__option_rows(kind, &n);
  if (index >= n) return false;
  *option = row[index].option;
  return true;
}

/* Where the first member of every options struct points. */
static tp_options_memory **memory_of(void *options)
{
  return options;
}

static void *field_of(void *options, const tp__option_row *row)
{
  return (char *)options + row->offset;
}

/* ---- values from text ---- */

static tp_status not_a_value(const tp__option_row *row, const char *text, const char *wanted,
                             tp_error *err)
{
  return tp__fail(err, TP_ERR_USAGE, "%s: \"%s\" is not %s", row->option.name, text, wanted);
}

static tp_status set_bool(const tp__option_row *row, const char *text, bool *value, tp_error *err)
{
  static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no", "off",
                                                                              "0"};
  for (int i = 0; i < 4; i++) {
    if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
      *value = strcmp(text, yes[i]) == 0;
      return TP_OK;
    }
  }
  return not_a_value(row, text, "true or false", err);
}

bool tp__option_takes_all(const tp__option_row *row)
{
  return row->type == TP__OPTION_INT && strstr(row->option.value, "|all") != NULL;
}

static tp_status set_whole(const tp__option_row *row, const char *text, void *field, tp_error *err)
{
  char *end = NULL;
  errno = 0;
  if (row->type == TP__OPTION_UINT64) {
    unsigned long long v = strtoull(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || strchr(text, '-') != NULL)
      return not_a_value(row, text, "a whole number of 0 or more", err);
    *(uint64_t *)field = v;
    return TP_OK;
  }
  if (tp__option_takes_all(row) && strcmp(text, "all") == 0) {
    *(int *)field = -1;
    return TP_OK;
  }
  long long v = strtoll(text, &end, 10);
  if (end == text || *end != '\0') return not_a_value(row, text, "a whole number", err);
  if (errno != 0 || (row->type == TP__OPTION_INT && (v < INT32_MIN || v > INT32_MAX)))
    return not_a_value(row, text, "a number that fits", err);
  if (row->type == TP__OPTION_INT)
    *(int *)field = (int)v;
  else
    *(int64_t *)field = v;
  return TP_OK;
}

static tp_status set_real(const tp__option_row *row, const char *text, double *value, tp_error *err)
{
  char *end = NULL;
  double v = strtod(text, &end);
  if (end == text || *end != '\0' || !isfinite(v)) return not_a_value(row, text, "a number", err);
  *value = v;
  return TP_OK;
}

static tp_options_memory *memory_made(void *options, tp_error *err)
{
  tp_options_memory **memory = memory_of(options);
  if (*memory == NULL) *memory = tp__calloc(1, sizeof **memory, err);
  return *memory;
}

/* Adds one value to a list; a list that the caller filled itself is replaced by the first value set
 * from text. */
static tp_status add_string(void *options, tp_strings *field, const char *text, tp_error *err)
{
  tp_options_memory *memory = memory_made(options, err);
  if (memory == NULL) return TP_ERR_INTERNAL;
  struct grown *g = memory->grown;
  while (g != NULL && g->field != field) g = g->next;
  if (g == NULL) {
    g = tp__arena_alloc(&memory->arena, sizeof *g);
    if (g == NULL) return tp__no_memory(err, sizeof *g);
    *g = (struct grown){.next = memory->grown, .field = field};
    memory->grown = g;
    *field = (tp_strings){0};
  }
  char *copy = tp__arena_strdup(&memory->arena, text);
  if (copy != NULL && field->count == g->capacity) {
    size_t capacity = g->capacity == 0 ? 8 : g->capacity * 2;
    const char **item = tp__arena_alloc(&memory->arena, capacity * sizeof *item);
    if (item == NULL) return tp__no_memory(err, capacity * sizeof *item);
    for (size_t i = 0; i < field->count; i++) item[i] = g->item[i];
    g->item = item;
    g->capacity = capacity;
  }
  if (copy == NULL) return tp__no_memory(err, strlen(text));
  g->item[field->count] = copy;
  field->item = g->item;
  field->count++;
  return TP_OK;
}

static tp_status set_string(void *options, const char **field, const char *text, tp_error *err)
{
  tp_options_memory *memory = memory_made(options, err);
  if (memory == NULL) return TP_ERR_INTERNAL;
  char *copy = tp__arena_strdup(&memory->arena, text);
  if (copy == NULL) return tp__no_memory(err, strlen(text));
  *field = copy;
  return TP_OK;
}

static tp_status set_row(void *options, const tp__option_row *row, const char *text, tp_error *err)
{
  void *field = field_of(options, row);
  if (text == NULL && row->type != TP__OPTION_BOOL)
    return tp__fail(err, TP_ERR_USAGE, "%s: a value is wanted (%s)", row->option.name,
                    row->option.value);
  switch (row->type) {
  case TP__OPTION_STRING:
    return set_string(options, field, text, err);
  case TP__OPTION_STRINGS:
    return add_string(options, field, text, err);
  case TP__OPTION_BOOL:
    return set_bool(row, text == NULL ? "true" : text, field, err);
  case TP__OPTION_INT:
  case TP__OPTION_INT64:
  case TP__OPTION_UINT64:
    return set_whole(row, text, field, err);
  case TP__OPTION_DOUBLE:
    return set_real(row, text, field, err);
  }
  return TP_ERR_INTERNAL;
}

/* ---- names ---- */

static bool same_name(const char *a, const char *b)
{
  while (*a != '\0' && *b != '\0') {
    char x = *a == '-' ? '_' : *a, y = *b == '-' ? '_' : *b;
    if (x != y) return false;
    a++;
    b++;
  }
  return *a == *b;
}

/* Levenshtein's distance, at most 32 characters of each. */
static int distance(const char *a, const char *b)
{
  enum { MOST = 32 };
  int row[MOST + 1], n = (int)strnlen(b, MOST);
  for (int j = 0; j <= n; j++) row[j] = j;
  for (int i = 0; i < MOST && a[i] != '\0'; i++) {
    int diagonal = row[0];
    row[0] = i + 1;
    for (int j = 1; j <= n; j++) {
      int kept = row[j],
          change = diagonal + (a[i] != b[j - 1] && !(a[i] == '-' && b[j - 1] == '_'));
      int add = row[j - 1] + 1, drop = row[j] + 1;
      row[j] = change < add ? change : add;
      if (drop < row[j]) row[j] = drop;
      diagonal = kept;
    }
  }
  return row[n];
}

const char *tp__nearest(const char *name, const char *const *names, size_t n)
{
  const char *best = NULL;
  int least = (int)strlen(name) / 2 + 1;
  for (size_t i = 0; i < n; i++) {
    int d = distance(name, names[i]);
    if (d >= least) continue;
    least = d;
    best = names[i];
  }
  return best;
}

static const tp__option_row *find_row(tp_options_kind kind, const char *name, tp_error *err)
{
  const char *names[OPTIONS_MAX];
  size_t n = 0;
  const tp__option_row *row = tp__option_rows(kind, &n);
  for (size_t i = 0; i < n && i < OPTIONS_MAX; i++) {
    if (same_name(row[i].option.name, name)) return &row[i];
    names[i] = row[i].option.name;
  }
  const char *near = tp__nearest(name, names, n < OPTIONS_MAX ? n : OPTIONS_MAX);
  if (near != NULL)
    (void)tp__fail(err, TP_ERR_USAGE, "there is no option \"%s\"; %s was meant?", name, near);
  else
    (void)tp__fail(err, TP_ERR_USAGE, "there is no option \"%s\"", name);
  return NULL;
}

/* ---- the public functions ---- */

bool tp_options_is_switch(tp_options_kind kind, const char *name)
{
  const tp__option_row *row = find_row(kind, name, NULL);
  return row != NULL && row->type == TP__OPTION_BOOL;
}

/* Fields of the data options that a command has no option for have their defaults, too. */
static const tp_data_options default_data = {.image_feature = "image",
                                             .class_feature = "class",
                                             .id_feature = "id",
                                             .max_bad = "0",
                                             .dct = "fast",
                                             .cache = "none",
                                             .cache_limit = "4G"};

#define SAME_PLACE(type)                                                                           \
  _Static_assert(offsetof(type, data) == offsetof(tp_train_options, data), "data has one place")
SAME_PLACE(tp_predict_options);
SAME_PLACE(tp_evaluate_options);
SAME_PLACE(tp_inspect_options);
SAME_PLACE(tp_pack_options);

void tp_options_default(tp_options_kind kind, void *options)
{
  size_t n = 0;
  const tp__option_row *row = tp__option_rows(kind, &n);
  memset(options, 0, size_of_kind(kind));
  if (kind != TP_OPTIONS_DRAW)
    *(tp_data_options *)(void *)((char *)options + offsetof(tp_train_options, data)) = default_data;
  for (size_t i = 0; i < n; i++) {
    if (row[i].option.initial == NULL) continue;
    /* Defaults are constants of the table: strings are borrowed from it, so that nothing has to be
     * freed. */
    if (row[i].type == TP__OPTION_STRING)
      *(const char **)field_of(options, &row[i]) = row[i].option.initial;
    else
      (void)set_row(options, &row[i], row[i].option.initial, NULL);
  }
}

tp_status tp_options_set(tp_options_kind kind, void *options, const char *name, const char *value,
                         tp_error *error)
{
  const tp__option_row *row = find_row(kind, name, error);
  return row == NULL ? TP_ERR_USAGE : set_row(options, row, value, error);
}

void tp__options_lists_end(void *options)
{
  tp_options_memory *memory = *memory_of(options);
  if (memory != NULL) memory->grown = NULL;
}

void tp_options_free(tp_options_kind kind, void *options)
{
  (void)kind;
  tp_options_memory **memory = memory_of(options);
  if (*memory != NULL) tp__arena_free(&(*memory)->arena);
  free(*memory);
  *memory = NULL;
}
