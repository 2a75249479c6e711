/* checkpoint_json - see checkpoint_json.h
 *
 * Every number is text: C99 hexadecimal for floating point (exact, NaN and infinity included),
 * decimal for whole numbers (JSON's own numbers lose 64-bit integers). Both directions walk the
 * same tables of fields, so that what is written is what is read.
 */
#include "checkpoint_json.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, LABELS_MAX = 1000000, HISTORY_MAX = 1000000 };

/* ---- one field of a struct ---- */

typedef enum field_type {
  FIELD_INT,
  FIELD_INT64,
  FIELD_DOUBLE,
  FIELD_FLOAT,
  FIELD_BOOL
} field_type;

typedef struct field {
  const char *name;
  field_type type;
  size_t offset;
} field;

#define FIELD(type, kind, member)                                                                  \
  {                                                                                                \
#member, kind, offsetof(type, member)                                                          \
  }
#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static const field spec_fields[] = {
    FIELD(tp__model_spec, FIELD_INT, height),
    FIELD(tp__model_spec, FIELD_INT, width),
    FIELD(tp__model_spec, FIELD_INT, classes),
    FIELD(tp__model_spec, FIELD_FLOAT, dropout),
    FIELD(tp__model_spec, FIELD_FLOAT, width_coefficient),
    FIELD(tp__model_spec, FIELD_FLOAT, depth_coefficient),
    FIELD(tp__model_spec, FIELD_BOOL, official_preprocessing),
};

static const field identity_fields[] = {
    FIELD(tp__identity, FIELD_BOOL, accurate_dct),
    FIELD(tp__identity, FIELD_BOOL, exif_rotate),
    FIELD(tp__identity, FIELD_BOOL, antialias),
};

/* Not in older files of this version: false there. */
static const field identity_late_fields[] = {
    FIELD(tp__identity, FIELD_BOOL, fast_decode),
};

static const field state_fields[] = {
    FIELD(tp__progress_state, FIELD_INT, phase),
    FIELD(tp__progress_state, FIELD_INT, phase_start),
    FIELD(tp__progress_state, FIELD_INT, epoch),
    FIELD(tp__progress_state, FIELD_INT64, step),
    FIELD(tp__progress_state, FIELD_INT64, iteration),
    FIELD(tp__progress_state, FIELD_BOOL, finished),
    FIELD(tp__progress_state, FIELD_INT64, data),
    FIELD(tp__progress_state, FIELD_BOOL, stopping.has_best),
    FIELD(tp__progress_state, FIELD_DOUBLE, stopping.best),
    FIELD(tp__progress_state, FIELD_INT, stopping.best_epoch),
    FIELD(tp__progress_state, FIELD_INT, stopping.wait),
    FIELD(tp__progress_state, FIELD_BOOL, plateau.has_best),
    FIELD(tp__progress_state, FIELD_DOUBLE, plateau.best),
    FIELD(tp__progress_state, FIELD_INT, plateau.wait),
    FIELD(tp__progress_state, FIELD_INT, plateau.cooling),
    FIELD(tp__progress_state, FIELD_DOUBLE, plateau.multiplier),
    FIELD(tp__progress_state, FIELD_BOOL, best.has_best),
    FIELD(tp__progress_state, FIELD_DOUBLE, best.best),
    FIELD(tp__progress_state, FIELD_INT, best.epoch),
    FIELD(tp__progress_state, FIELD_INT64, examples),
    FIELD(tp__progress_state, FIELD_INT64, right),
    FIELD(tp__progress_state, FIELD_INT64, right_5),
    FIELD(tp__progress_state, FIELD_DOUBLE, loss_sum),
    FIELD(tp__progress_state, FIELD_DOUBLE, seconds),
};

static const field batch_field[] = {
    FIELD(tp__progress_state, FIELD_INT64, batch),
};

static const field row_fields[] = {
    FIELD(tp__history_row, FIELD_INT, epoch),
    FIELD(tp__history_row, FIELD_INT, phase),
    FIELD(tp__history_row, FIELD_DOUBLE, rate),
    FIELD(tp__history_row, FIELD_DOUBLE, seconds),
    FIELD(tp__history_row, FIELD_DOUBLE, images_per_s),
};

/* ---- writing ---- */

static bool put_double(cJSON *object, const char *name, double value)
{
  char text[64];
  snprintf(text, sizeof text, "%a", value);
  return cJSON_AddStringToObject(object, name, text) != NULL;
}

static bool put_fields(cJSON *object, const void *from, const field *table, size_t n)
{
  bool ok = object != NULL;
  for (size_t i = 0; ok && i < n; i++) {
    const void *at = (const char *)from + table[i].offset;
    char text[32] = "";
    switch (table[i].type) {
    case FIELD_INT:
      snprintf(text, sizeof text, "%d", *(const int *)at);
      break;
    case FIELD_INT64:
      snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)at);
      break;
    case FIELD_BOOL:
      snprintf(text, sizeof text, "%d", *(const bool *)at);
      break;
    case FIELD_DOUBLE:
      ok = put_double(object, table[i].name, *(const double *)at);
      continue;
    case FIELD_FLOAT:
      ok = put_double(object, table[i].name, (double)*(const float *)at);
      continue;
    }
    ok = cJSON_AddStringToObject(object, table[i].name, text) != NULL;
  }
  return ok;
}

static bool put_values(cJSON *object, const double value[TP__QUANTITIES])
{
  bool ok = object != NULL;
  for (int q = 0; ok && q < TP__QUANTITIES; q++)
    ok = put_double(object, tp__quantity_name((tp__quantity)q), value[q]);
  return ok;
}

static bool put_progress(cJSON *root, const tp__progress_state *p)
{
  cJSON *state = cJSON_AddObjectToObject(root, "progress");
  if (!put_fields(state, p, state_fields, COUNT(state_fields))) return false;
  if (!put_fields(state, p, batch_field, 1)) return false;
  if (!put_values(cJSON_AddObjectToObject(state, "best_value"), p->best_value)) return false;
  cJSON *history = cJSON_AddArrayToObject(state, "history");
  for (size_t i = 0; i < p->n_history; i++) {
    cJSON *row = cJSON_CreateObject();
    if (row == NULL || !cJSON_AddItemToArray(history, row)) return false;
    if (!put_fields(row, &p->history[i], row_fields, COUNT(row_fields))) return false;
    if (!put_values(row, p->history[i].value)) return false;
  }
  return history != NULL;
}

static bool put_identity(cJSON *root, const tp__identity *identity)
{
  cJSON *model = cJSON_AddObjectToObject(root, "model");
  if (!put_fields(model, &identity->spec, spec_fields, COUNT(spec_fields))) return false;
  if (cJSON_AddStringToObject(model, "name", identity->spec.name) == NULL) return false;
  cJSON *pixels = cJSON_AddObjectToObject(root, "pixels");
  if (!put_fields(pixels, identity, identity_fields, COUNT(identity_fields))) return false;
  if (!put_fields(pixels, identity, identity_late_fields, COUNT(identity_late_fields)))
    return false;
  if (identity->labels == NULL) return true;
  cJSON *labels = cJSON_AddArrayToObject(root, "labels");
  for (int i = 0; i < identity->spec.classes; i++) {
    cJSON *label = cJSON_CreateString(identity->labels[i]);
    if (label == NULL || !cJSON_AddItemToArray(labels, label)) return false;
  }
  return labels != NULL;
}

tp_status tp__checkpoint_json_make(const tp__identity *identity, const tp__progress_state *progress,
                                   char **metadata, tp_error *err)
{
  char *text = NULL;
  cJSON *root = cJSON_CreateObject(), *outer = cJSON_CreateObject();
  char version[16];
  snprintf(version, sizeof version, "%d", VERSION);
  bool ok = root != NULL && outer != NULL &&
            cJSON_AddStringToObject(root, "version", version) != NULL &&
            put_identity(root, identity) && (progress == NULL || put_progress(root, progress));
  if (ok) text = cJSON_PrintUnformatted(root);
  ok = text != NULL && cJSON_AddStringToObject(outer, "format", "tepal") != NULL &&
       cJSON_AddStringToObject(outer, "tepal", text) != NULL;
  cJSON_free(text);
  char *made = ok ? cJSON_PrintUnformatted(outer) : NULL;
  cJSON_Delete(root);
  cJSON_Delete(outer);
  if (made == NULL) return tp__no_memory(err, 4096);
  *metadata = made; /* cJSON's default allocator is malloc */
  return TP_OK;
}

/* ---- reading ---- */

static tp_status bad(const char *name, tp_error *err)
{
  return tp__fail(err, TP_ERR_DATA, "checkpoint metadata: \"%s\" is missing or not as wanted",
                  name);
}

static bool number_of(const cJSON *object, const char *name, bool whole, double *real,
                      int64_t *integer)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
  if (!cJSON_IsString(item) || item->valuestring[0] == '\0') return false;
  char *end = NULL;
  errno = 0;
  if (whole)
    *integer = strtoll(item->valuestring, &end, 10);
  else
    *real = strtod(item->valuestring, &end);
  return *end == '\0' && (errno == 0 || !whole);
}

static tp_status get_fields(const cJSON *object, void *into, const field *table, size_t n,
                            tp_error *err)
{
  for (size_t i = 0; i < n; i++) {
    void *at = (char *)into + table[i].offset;
    bool whole = table[i].type != FIELD_DOUBLE && table[i].type != FIELD_FLOAT;
    double real = 0;
    int64_t integer = 0;
    if (!number_of(object, table[i].name, whole, &real, &integer)) return bad(table[i].name, err);
    switch (table[i].type) {
    case FIELD_INT:
      if (integer < INT32_MIN || integer > INT32_MAX) return bad(table[i].name, err);
      *(int *)at = (int)integer;
      break;
    case FIELD_INT64:
      *(int64_t *)at = integer;
      break;
    case FIELD_BOOL:
      *(bool *)at = integer != 0;
      break;
    case FIELD_DOUBLE:
      *(double *)at = real;
      break;
    case FIELD_FLOAT:
      *(float *)at = (float)real;
      break;
    }
  }
  return TP_OK;
}

static tp_status get_values(const cJSON *object, double value[TP__QUANTITIES], tp_error *err)
{
  int64_t unused = 0;
  for (int q = 0; q < TP__QUANTITIES; q++) {
    const char *name = tp__quantity_name((tp__quantity)q);
    if (!number_of(object, name, false, &value[q], &unused)) return bad(name, err);
  }
  return TP_OK;
}

static tp_status get_progress(const cJSON *root, tp__progress_state *p, tp_error *err)
{
  const cJSON *state = cJSON_GetObjectItemCaseSensitive(root, "progress");
  if (!cJSON_IsObject(state))
    return tp__fail(err, TP_ERR_DATA, "holds no training state: it can predict, not be resumed");
  TP__TRY(get_fields(state, p, state_fields, COUNT(state_fields), err));
  if (cJSON_HasObjectItem(state, batch_field[0].name))
    TP__TRY(get_fields(state, p, batch_field, 1, err));
  TP__TRY(get_values(cJSON_GetObjectItemCaseSensitive(state, "best_value"), p->best_value, err));
  const cJSON *history = cJSON_GetObjectItemCaseSensitive(state, "history"), *item = NULL;
  if (!cJSON_IsArray(history) || cJSON_GetArraySize(history) > HISTORY_MAX)
    return bad("history", err);
  cJSON_ArrayForEach(item, history)
  {
    tp__history_row row = {0};
    TP__TRY(get_fields(item, &row, row_fields, COUNT(row_fields), err));
    TP__TRY(get_values(item, row.value, err));
    TP__TRY(tp__history_add(p, &row, err));
  }
  bool sane = p->phase >= 0 && p->phase <= 1 && p->epoch >= 0 && p->step >= 0 &&
              p->iteration >= 0 && p->phase_start >= 0 && p->phase_start <= p->epoch + 1 &&
              p->batch >= 0 && p->batch <= INT32_MAX;
  return sane ? TP_OK : bad("progress", err);
}

static tp_status get_identity(const cJSON *root, tp__identity *identity, tp_error *err)
{
  tp__model_spec *spec = &identity->spec;
  const cJSON *model = cJSON_GetObjectItemCaseSensitive(root, "model");
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(model, "name");
  TP__TRY(get_fields(model, spec, spec_fields, COUNT(spec_fields), err));
  const cJSON *pixels = cJSON_GetObjectItemCaseSensitive(root, "pixels");
  TP__TRY(get_fields(pixels, identity, identity_fields, COUNT(identity_fields), err));
  for (size_t i = 0; i < COUNT(identity_late_fields); i++)
    if (cJSON_HasObjectItem(pixels, identity_late_fields[i].name))
      TP__TRY(get_fields(pixels, identity, &identity_late_fields[i], 1, err));
  if (!cJSON_IsString(name)) return bad("name", err);
  spec->name = tp__arena_strdup(&identity->arena, name->valuestring);
  if (spec->name == NULL) return tp__no_memory(err, 64);
  if (spec->classes < 0 || spec->classes > LABELS_MAX) return bad("classes", err);
  const cJSON *labels = cJSON_GetObjectItemCaseSensitive(root, "labels"), *item = NULL;
  if (labels == NULL) return TP_OK;
  if (!cJSON_IsArray(labels) || cJSON_GetArraySize(labels) != spec->classes)
    return bad("labels", err);
  const char **list = tp__arena_alloc(&identity->arena, (size_t)spec->classes * sizeof *list);
  if (list == NULL) return tp__no_memory(err, (size_t)spec->classes * sizeof *list);
  int i = 0;
  cJSON_ArrayForEach(item, labels)
  {
    if (!cJSON_IsString(item)) return bad("labels", err);
    list[i] = tp__arena_strdup(&identity->arena, item->valuestring);
    if (list[i++] == NULL) return tp__no_memory(err, 64);
  }
  identity->labels = list;
  return TP_OK;
}

tp_status tp__checkpoint_json_read(const char *metadata, tp__identity *identity,
                                   tp__progress_state *progress, tp_error *err)
{
  tp_status status = TP_OK;
  cJSON *outer = cJSON_Parse(metadata), *root = NULL;
  const cJSON *text = cJSON_GetObjectItemCaseSensitive(outer, "tepal");
  if (cJSON_IsString(text)) root = cJSON_Parse(text->valuestring);
  int64_t version = 0;
  double unused = 0;
  if (root == NULL)
    status = tp__fail(err, TP_ERR_DATA,
                      "holds weights but is no checkpoint of tepal (give it as --weights)");
  else if (!number_of(root, "version", true, &unused, &version))
    status = bad("version", err);
  else if (version != VERSION)
    status = tp__fail(err, TP_ERR_DATA,
                      "checkpoint version %lld; this tepal reads version %d: use a newer one",
                      (long long)version, VERSION);
  if (status == TP_OK) status = get_identity(root, identity, err);
  if (status == TP_OK && progress != NULL) status = get_progress(root, progress, err);
  cJSON_Delete(root);
  cJSON_Delete(outer);
  return status;
}
