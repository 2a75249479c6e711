/* labels - see labels.h */
#include "labels.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
  const struct tp__label_entry *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order != 0 ? order : (x->label > y->label) - (x->label < y->label);
}

tp_status tp__label_index_build(tp__label_index *index, const char *const *names, size_t count,
                                tp_error *err)
{
  *index = (tp__label_index){.count = count};
  index->entry = tp__calloc(count, sizeof *index->entry, err);
  if (index->entry == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < count; i++) index->entry[i] = (struct tp__label_entry){names[i], i};
  if (count > 0) qsort(index->entry, count, sizeof *index->entry, by_name);
  for (size_t i = 1; i < count; i++) {
    const struct tp__label_entry *a = &index->entry[i - 1], *b = &index->entry[i];
    if (strcmp(a->name, b->name) != 0) continue;
    tp_status status =
        tp__fail(err, TP_ERR_DATA, "the class name \"%.200s\" is there twice: classes %zu and %zu",
                 a->name, a->label, b->label);
    tp__label_index_free(index);
    return status;
  }
  return TP_OK;
}

void tp__label_index_free(tp__label_index *index)
{
  free(index->entry);
  *index = (tp__label_index){0};
}

bool tp__label_index_find(const tp__label_index *index, const char *name, size_t size,
                          size_t *label)
{
  if (memchr(name, '\0', size) != NULL) return false;
  size_t low = 0, high = index->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const char *there = index->entry[middle].name;
    int order = strncmp(name, there, size);
    if (order == 0 && there[size] != '\0') order = -1;
    if (order == 0) {
      *label = index->entry[middle].label;
      return true;
    }
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return false;
}

/* ---- the file ---- */

enum { FILE_MAX = 256 << 20, NAME_BYTES_MAX = 1000 };

static tp_status add_line(tp__labels *labels, const char *line, size_t size, size_t number,
                          tp_error *err)
{
  if (size > 0 && line[size - 1] == '\r') size--;
  if (size == 0)
    return tp__fail(err, TP_ERR_DATA,
                    "line %zu is empty: every line is the name of a class, in order", number);
  if (size > NAME_BYTES_MAX)
    return tp__fail(err, TP_ERR_DATA, "line %zu has %zu bytes, over the limit of %d", number, size,
                    NAME_BYTES_MAX);
  if (memchr(line, '\0', size) != NULL)
    return tp__fail(err, TP_ERR_DATA, "line %zu holds a zero byte: this is no text file", number);
  char *name = tp__arena_alloc(&labels->arena, size + 1);
  if (name == NULL) return tp__no_memory(err, size);
  memcpy(name, line, size);
  labels->name[labels->count++] = name;
  return TP_OK;
}

/* Empty lines at the very end are no classes. */
static size_t without_empty_end(const char *text, size_t size)
{
  while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r')) size--;
  return size;
}

static tp_status parse(tp__labels *labels, const char *text, size_t size, tp_error *err)
{
  if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
    text += 3;
    size -= 3;
  }
  size = without_empty_end(text, size);
  if (size == 0) return tp__fail(err, TP_ERR_DATA, "holds no class names");
  size_t lines = 1;
  for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
  if (lines > TP__CLASSES_MAX)
    return tp__fail(err, TP_ERR_DATA, "has %zu lines, over the limit of %d classes", lines,
                    TP__CLASSES_MAX);
  labels->name = tp__arena_alloc(&labels->arena, lines * sizeof *labels->name);
  if (labels->name == NULL) return tp__no_memory(err, lines * sizeof *labels->name);
  for (size_t number = 1; number <= lines; number++) {
    const char *end = memchr(text, '\n', size);
    size_t length = end != NULL ? (size_t)(end - text) : size;
    TP__TRY(add_line(labels, text, length, number, err));
    text += length + (end != NULL);
    size -= length + (end != NULL);
  }
  tp__label_index index;
  TP__TRY(tp__label_index_build(&index, labels->name, labels->count, err));
  tp__label_index_free(&index);
  return TP_OK;
}

tp_status tp__labels_read(const char *path, tp__labels *labels, tp_error *err)
{
  *labels = (tp__labels){0};
  tp__buffer text;
  tp__buffer_init(&text, FILE_MAX);
  tp_status status = tp__file_read(path, &text, err);
  if (status == TP_OK) {
    status = parse(labels, (const char *)text.data, text.size, err);
    if (status != TP_OK) status = tp__at(err, status, "%s", path);
  }
  tp__buffer_free(&text);
  if (status != TP_OK) tp__labels_free(labels);
  return status;
}

void tp__labels_free(tp__labels *labels)
{
  tp__arena_free(&labels->arena);
  *labels = (tp__labels){0};
}
