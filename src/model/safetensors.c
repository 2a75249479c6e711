/* safetensors - strict reader; see weights_formats.h
 *
 *   u64 n, little-endian │ n bytes of JSON, padded with spaces │ the arrays' bytes, without gaps
 *
 * The JSON is one object: name -> {"dtype", "shape", "data_offsets": [begin, end)} relative to the
 * end of the header, and optionally "__metadata__": an object of strings. (huggingface/safetensors,
 * README "Format".) Everything else is an error: other keys, overlaps, gaps, bytes left over. The
 * header is scanned before it is parsed, because a parsed tree takes about forty times the room of
 * the text: its depth and number of values are limited.
 */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "weights_formats.h"

enum { HEADER_MAX = 100 * 1000 * 1000, DEPTH_MAX = 4, VALUES_MAX = 500 * 1000 };

typedef struct entry {
  const char *name; /* in the JSON tree */
  tp__dtype dtype;
  tp__shape shape;
  uint64_t begin, end;
} entry;

/* Limits of the text that a parser would not keep: nesting, number of values, zero bytes in
 * strings. */
static tp_status scan_header(const char *text, size_t size, tp_error *err)
{
  size_t depth = 0, values = 0;
  bool quoted = false;
  for (size_t i = 0; i < size; i++) {
    char c = text[i];
    if (c == '\0')
      return tp__fail(err, TP_ERR_DATA, "a zero byte in its header at byte %zu", i + 8);
    if (quoted && c == '\\') {
      if (size - i > 5 && memcmp(text + i, "\\u0000", 6) == 0)
        return tp__fail(err, TP_ERR_DATA, "a zero character in its header at byte %zu", i + 8);
      i++;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      if (c == '{' || c == '[') depth++;
      if ((c == '}' || c == ']') && depth > 0) depth--;
      values += c == '{' || c == '[' || c == ',' || c == ':';
    }
    if (depth > DEPTH_MAX || values > VALUES_MAX)
      return tp__fail(err, TP_ERR_DATA,
                      "its header has more than %d values or is nested deeper than %d", VALUES_MAX,
                      DEPTH_MAX);
  }
  return TP_OK;
}

static bool dtype_of(const char *text, tp__dtype *dtype)
{
  static const struct {
    const char *name;
    tp__dtype dtype;
  } known[] = {{"F32", TP__F32}, {"I32", TP__I32}, {"U32", TP__U32}, {"U8", TP__U8},
               {"I64", TP__I64}, {"F64", TP__F64}, {"F16", TP__F16}, {"BF16", TP__BF16}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(text, known[i].name) == 0) {
      *dtype = known[i].dtype;
      return true;
    }
  return false;
}

/* A whole number from 0 to 2^53, the largest that JSON numbers keep exactly. */
static bool whole(const cJSON *item, uint64_t *value)
{
  if (!cJSON_IsNumber(item)) return false;
  double v = item->valuedouble;
  if (!(v >= 0 && v <= 9007199254740992.0)) return false;
  *value = (uint64_t)v;
  return (double)*value == v;
}

static tp_status read_shape(const cJSON *item, entry *e, tp_error *err)
{
  uint64_t value = 0;
  if (!cJSON_IsArray(item)) return tp__fail(err, TP_ERR_DATA, "no \"shape\"");
  for (const cJSON *d = item->child; d != NULL; d = d->next) {
    if (e->shape.rank == TP__RANK_MAX)
      return tp__fail(err, TP_ERR_DATA, "more than %d dimensions", TP__RANK_MAX);
    if (!whole(d, &value)) return tp__fail(err, TP_ERR_DATA, "a dimension is no whole number");
    e->shape.dim[e->shape.rank++] = (int64_t)value;
  }
  return TP_OK;
}

static tp_status read_entry(const cJSON *item, entry *e, tp_error *err)
{
  const cJSON *dtype = NULL, *shape = NULL, *offsets = NULL;
  if (!cJSON_IsObject(item)) return tp__fail(err, TP_ERR_DATA, "is no object");
  for (const cJSON *i = item->child; i != NULL; i = i->next) {
    const cJSON **to = strcmp(i->string, "dtype") == 0          ? &dtype
                       : strcmp(i->string, "shape") == 0        ? &shape
                       : strcmp(i->string, "data_offsets") == 0 ? &offsets
                                                                : NULL;
    if (to == NULL || *to != NULL)
      return tp__fail(err, TP_ERR_DATA,
                      "a foreign or doubled key besides dtype, shape, data_offsets");
    *to = i;
  }
  char shown[80];
  if (!cJSON_IsString(dtype)) return tp__fail(err, TP_ERR_DATA, "no \"dtype\"");
  if (!dtype_of(dtype->valuestring, &e->dtype))
    return tp__fail(err, TP_ERR_DATA,
                    "dtype \"%s\" is not among those read (F32, F64, F16, BF16, I64, I32, U32, U8)",
                    tp__printable(shown, dtype->valuestring, strlen(dtype->valuestring)));
  TP__TRY(read_shape(shape, e, err));
  if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
      !whole(offsets->child, &e->begin) || !whole(offsets->child->next, &e->end) ||
      e->end < e->begin)
    return tp__fail(err, TP_ERR_DATA, "data_offsets are not [begin, end]");
  size_t bytes = 0;
  if (!tp__mul_size(tp__shape_elements(&e->shape, 0), tp__dtype_size(e->dtype), &bytes) ||
      bytes != e->end - e->begin)
    return tp__fail(err, TP_ERR_DATA, "data_offsets span %llu bytes, its shape and dtype need %zu",
                    (unsigned long long)(e->end - e->begin), bytes);
  return TP_OK;
}

static tp_status read_metadata(const cJSON *item, tp__buffer *metadata, tp_error *err)
{
  if (!cJSON_IsObject(item)) return tp__fail(err, TP_ERR_DATA, "__metadata__ is no object");
  for (const cJSON *i = item->child; i != NULL; i = i->next)
    if (!cJSON_IsString(i))
      return tp__fail(err, TP_ERR_DATA, "__metadata__ holds more than strings");
  if (metadata == NULL) return TP_OK;
  char *text = cJSON_PrintUnformatted(item);
  if (text == NULL) return tp__no_memory(err, HEADER_MAX);
  if (metadata->max == 0) metadata->max = (size_t)2 * HEADER_MAX;
  tp_status status = tp__buffer_printf(metadata, err, "%s", text);
  cJSON_free(text);
  return status;
}

static int by_offset(const void *a, const void *b)
{
  const entry *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return (x->end > y->end) - (x->end < y->end); /* empty arrays first */
}

/* The header's entries, sorted by offset; they must cover data_bytes exactly. */
static tp_status collect(const cJSON *root, entry *e, size_t *count, uint64_t data_bytes,
                         tp__buffer *metadata, tp_error *err)
{
  bool seen = false;
  char shown[80];
  for (const cJSON *item = root->child; item != NULL; item = item->next) {
    if (strcmp(item->string, "__metadata__") == 0) {
      if (seen) return tp__fail(err, TP_ERR_DATA, "two __metadata__ objects");
      seen = true;
      TP__TRY(read_metadata(item, metadata, err));
      continue;
    }
    e[*count] = (entry){.name = item->string};
    tp_status status = read_entry(item, &e[*count], err);
    if (status != TP_OK)
      return tp__at(err, status, "array \"%s\"",
                    tp__printable(shown, item->string, strlen(item->string)));
    ++*count;
  }
  qsort(e, *count, sizeof *e, by_offset);
  uint64_t at = 0;
  for (size_t i = 0; i < *count; at = e[i++].end)
    if (e[i].begin != at)
      return tp__fail(
          err, TP_ERR_DATA, "array \"%s\" begins at byte %llu of the data, %llu expected (%s)",
          tp__printable(shown, e[i].name, strlen(e[i].name)), (unsigned long long)e[i].begin,
          (unsigned long long)at, e[i].begin < at ? "overlap" : "gap");
  if (at != data_bytes)
    return tp__fail(err, TP_ERR_DATA,
                    "its header describes %llu bytes of data, the file has %llu%s",
                    (unsigned long long)at, (unsigned long long)data_bytes,
                    at > data_bytes ? ": truncated?" : "");
  return TP_OK;
}

static tp_status read_arrays(int fd, uint64_t data_at, const cJSON *root, uint64_t data_bytes,
                             tp__weights_sink *sink, tp__buffer *metadata, tp_error *err)
{
  size_t count = 0;
  entry *e = tp__calloc((size_t)cJSON_GetArraySize(root), sizeof *e, err);
  if (e == NULL) return TP_ERR_INTERNAL;
  tp_status status = collect(root, e, &count, data_bytes, metadata, err);
  for (size_t i = 0; status == TP_OK && i < count; i++) {
    tp__tensor *t = NULL;
    status = tp__weights_add(sink, e[i].name, strlen(e[i].name), e[i].dtype, &e[i].shape, &t, err);
    if (status == TP_OK)
      status = tp__read_at(fd, t->data, (size_t)(e[i].end - e[i].begin), data_at + e[i].begin, err);
  }
  free(e);
  return status;
}

tp_status tp__safetensors_read(int fd, uint64_t bytes, tp__weights_sink *sink, tp__buffer *metadata,
                               tp_error *err)
{
  uint64_t size = 0;
  if (bytes < sizeof size) return tp__fail(err, TP_ERR_DATA, "is too short for a header");
  TP__TRY(tp__read_at(fd, &size, sizeof size, 0, err));
  if (size > HEADER_MAX || size > bytes - sizeof size)
    return tp__fail(err, TP_ERR_DATA,
                    "its header claims %llu bytes; the file has %llu, the limit is %d: truncated, "
                    "or not safetensors",
                    (unsigned long long)size, (unsigned long long)bytes, HEADER_MAX);
  char *text = tp__calloc((size_t)size + 1, 1, err);
  if (text == NULL) return TP_ERR_INTERNAL;
  cJSON *root = NULL;
  const char *end = NULL;
  tp_status status = tp__read_at(fd, text, (size_t)size, sizeof size, err);
  if (status == TP_OK) status = scan_header(text, (size_t)size, err);
  if (status == TP_OK) {
    root = cJSON_ParseWithLengthOpts(text, (size_t)size + 1, &end, 1);
    if (!cJSON_IsObject(root))
      status = tp__fail(err, TP_ERR_DATA, "its header is no JSON object (fault near byte %zu)",
                        end == NULL ? 8 : (size_t)(end - text) + 8);
  }
  if (status == TP_OK)
    status =
        read_arrays(fd, sizeof size + size, root, bytes - sizeof size - size, sink, metadata, err);
  cJSON_Delete(root);
  free(text);
  return status;
}
