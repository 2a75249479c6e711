/* inspect_json - what inspect found, whole, as JSON for programs; see findings.h
 *
 *   files, records, faults    numbers, as in the report          decoded      were pixels looked at
 *   splits      [{name, folder, files, records, labelled}]       formats      {"JPEG": 600, ...}
 *   sizes       [{width, height, count}], most frequent first    exif_turned  pictures with a flag
 *   classes     [{label, name?, counts: [one for each split]}]   notes        [text]
 *   problems    [{file, record?, byte?, reason}]                 record: from 0; byte: of its start
 *   duplicates  [{records: [{file, record, byte, split, id, label}], equal: "bytes" or "pixels",
 *                 across_splits, labels_differ}]
 *
 * Adding to an array or object hands the item over; what could not be made for lack of memory is
 * noticed at the end, by the flag and by printing.
 */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "findings.h"

static bool add_number(cJSON *to, const char *name, int64_t value)
{
  return cJSON_AddNumberToObject(to, name, (double)value) != NULL;
}

/* Takes a new object of an array; NULL when out of memory. */
static cJSON *add_item(cJSON *array)
{
  cJSON *item = cJSON_CreateObject();
  if (item != NULL && !cJSON_AddItemToArray(array, item)) {
    cJSON_Delete(item);
    item = NULL;
  }
  return item;
}

static bool add_splits(cJSON *root, const tp__findings *f)
{
  cJSON *array = cJSON_AddArrayToObject(root, "splits");
  for (size_t i = 0; array != NULL && i < f->n_splits; i++) {
    const tp__split *s = &f->split[i];
    cJSON *item = add_item(array);
    if (item == NULL || cJSON_AddStringToObject(item, "name", s->name) == NULL ||
        cJSON_AddStringToObject(item, "folder", s->path) == NULL ||
        !add_number(item, "files", s->files) || !add_number(item, "records", s->records) ||
        !add_number(item, "labelled", s->labelled))
      return false;
  }
  return array != NULL;
}

static bool add_pictures(cJSON *root, const tp__findings *f)
{
  cJSON *formats = cJSON_AddObjectToObject(root, "formats");
  for (int i = 0; formats != NULL && i < TP__FORMATS; i++)
    if (f->format[i] > 0 &&
        !add_number(formats, tp__image_format_name((tp__image_format)i), f->format[i]))
      return false;
  cJSON *sizes = cJSON_AddArrayToObject(root, "sizes");
  for (size_t i = 0; sizes != NULL && i < f->n_sizes; i++) {
    cJSON *item = add_item(sizes);
    if (item == NULL || !add_number(item, "width", f->size[i].width) ||
        !add_number(item, "height", f->size[i].height) ||
        !add_number(item, "count", f->size[i].count))
      return false;
  }
  return formats != NULL && sizes != NULL && add_number(root, "exif_turned", f->turned);
}

static bool add_classes(cJSON *root, const tp__findings *f)
{
  cJSON *array = cJSON_AddArrayToObject(root, "classes");
  for (size_t c = 0; array != NULL && c < f->n_classes; c++) {
    cJSON *item = add_item(array);
    if (item == NULL || !add_number(item, "label", (int64_t)c)) return false;
    if (c < f->n_names && cJSON_AddStringToObject(item, "name", f->class_name[c]) == NULL)
      return false;
    cJSON *counts = cJSON_AddArrayToObject(item, "counts"); /* in the order of splits */
    for (size_t s = 0; counts != NULL && s < f->n_splits; s++) {
      cJSON *count = cJSON_CreateNumber((double)f->class_count[c * f->n_splits + s]);
      if (count == NULL || !cJSON_AddItemToArray(counts, count)) return false;
    }
    if (counts == NULL) return false;
  }
  return array != NULL;
}

static bool add_place(cJSON *item, const char *file, int64_t number, uint64_t offset)
{
  if (cJSON_AddStringToObject(item, "file", file) == NULL) return false;
  return number < 0 ||
         (add_number(item, "record", number) && add_number(item, "byte", (int64_t)offset));
}

static bool add_faults(cJSON *root, const tp__findings *f)
{
  cJSON *array = cJSON_AddArrayToObject(root, "problems");
  for (size_t i = 0; array != NULL && i < f->n_faults; i++) {
    const tp__bad_record *b = &f->fault[i];
    cJSON *item = add_item(array);
    if (item == NULL || !add_place(item, b->file, b->number, b->offset) ||
        cJSON_AddStringToObject(item, "reason", b->reason) == NULL)
      return false;
  }
  return array != NULL;
}

static bool add_twin(cJSON *records, const tp__findings *f, uint32_t index)
{
  const tp__record *r = tp__catalog_record(f->catalog, index);
  size_t n;
  cJSON *item = add_item(records);
  return item != NULL &&
         add_place(item, tp__catalog_file(f->catalog, r->file, &n), r->number, r->offset) &&
         cJSON_AddStringToObject(item, "split", f->split[f->split_of[r->file]].name) != NULL &&
         cJSON_AddStringToObject(item, "id", r->id) != NULL && add_number(item, "label", r->label);
}

static bool add_twins(cJSON *root, const tp__findings *f)
{
  cJSON *array = cJSON_AddArrayToObject(root, "duplicates");
  for (size_t i = 0; array != NULL && i < f->n_twins; i++) {
    const tp__twins *t = &f->twins[i];
    cJSON *item = add_item(array),
          *records = item != NULL ? cJSON_AddArrayToObject(item, "records") : NULL;
    if (records == NULL ||
        cJSON_AddStringToObject(item, "equal", t->pixels ? "pixels" : "bytes") == NULL ||
        cJSON_AddBoolToObject(item, "across_splits", t->across) == NULL ||
        cJSON_AddBoolToObject(item, "labels_differ", t->contradict) == NULL)
      return false;
    for (size_t k = 0; k < t->count; k++)
      if (!add_twin(records, f, f->twin[t->first + k])) return false;
  }
  return array != NULL;
}

static bool add_notes(cJSON *root, const tp__findings *f)
{
  cJSON *array = cJSON_AddArrayToObject(root, "notes");
  for (size_t i = 0; array != NULL && i < f->n_notes; i++) {
    cJSON *note = cJSON_CreateString(f->note[i]);
    if (note == NULL || !cJSON_AddItemToArray(array, note)) return false;
  }
  return array != NULL;
}

tp_status tp__report_json(const tp__findings *f, const char *path, tp_error *err)
{
  cJSON *root = cJSON_CreateObject();
  bool whole = root != NULL && add_number(root, "files", (int64_t)tp__catalog_files(f->catalog)) &&
               add_number(root, "records", (int64_t)f->n) &&
               add_number(root, "faults", (int64_t)f->n_faults + f->twin_faults) &&
               cJSON_AddBoolToObject(root, "decoded", f->decode) != NULL && add_splits(root, f) &&
               add_pictures(root, f) && add_classes(root, f) && add_faults(root, f) &&
               add_twins(root, f) && add_notes(root, f);
  char *text = whole ? cJSON_Print(root) : NULL;
  cJSON_Delete(root);
  if (text == NULL) return tp__no_memory(err, 1 << 20);
  size_t n = strlen(text);
  text[n] = '\n'; /* in place of the terminator: one line end at the end of the file */
  tp_status status = tp__file_write(path, text, n + 1, err);
  cJSON_free(text);
  return status;
}
