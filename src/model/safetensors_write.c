/* safetensors_write - see weights.h; the layout is described in safetensors.c
 *
 * Arrays are written by falling size of their elements (otherwise in the set's order), so that each
 * begins at a multiple of its element's size, as the format's own writer does it. The header is
 * padded with spaces to a multiple of 8.
 */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "weights_formats.h"

enum { HEADER_MAX = 100 * 1000 * 1000 };

static const char *dtype_text(tp__dtype dtype)
{
  static const char *const text[] = {
      [TP__F32] = "F32", [TP__I32] = "I32", [TP__U32] = "U32", [TP__U8] = "U8",
      [TP__I64] = "I64", [TP__F64] = "F64", [TP__F16] = "F16", [TP__BF16] = "BF16"};
  return text[dtype];
}

/* Adds a JSON string, escaped. */
static tp_status add_quoted(tp__buffer *header, const char *text, tp_error *err)
{
  cJSON item = {.type = cJSON_String, .valuestring = (char *)(uintptr_t)text};
  char *quoted = cJSON_PrintUnformatted(&item);
  if (quoted == NULL) return tp__no_memory(err, strlen(text));
  tp_status status = tp__buffer_add(header, quoted, strlen(quoted), err);
  cJSON_free(quoted);
  return status;
}

static tp_status add_metadata(tp__buffer *header, const char *json, tp_error *err)
{
  cJSON *root = cJSON_Parse(json);
  bool good = cJSON_IsObject(root);
  for (const cJSON *i = good ? root->child : NULL; i != NULL; i = i->next)
    good = good && cJSON_IsString(i);
  char *text = good ? cJSON_PrintUnformatted(root) : NULL;
  cJSON_Delete(root);
  if (!good) return tp__fail(err, TP_ERR_INTERNAL, "metadata is not a JSON object of strings");
  if (text == NULL) return tp__no_memory(err, strlen(json));
  tp_status status = tp__buffer_printf(header, err, "\"__metadata__\":%s", text);
  cJSON_free(text);
  return status;
}

static tp_status add_entry(tp__buffer *header, const tp__tensor *t, size_t begin, tp_error *err)
{
  TP__TRY(add_quoted(header, t->name, err));
  TP__TRY(tp__buffer_printf(header, err, ":{\"dtype\":\"%s\",\"shape\":[", dtype_text(t->dtype)));
  for (int i = 0; i < t->shape.rank; i++)
    TP__TRY(tp__buffer_printf(header, err, "%s%lld", i > 0 ? "," : "", (long long)t->shape.dim[i]));
  return tp__buffer_printf(header, err, "],\"data_offsets\":[%zu,%zu]}", begin,
                           begin + tp__tensor_bytes(t));
}

/* order: pointers to the set's tensors, by falling element size. */
static tp_status make_header(const tp__tensor *const *order, size_t count,
                             const char *metadata_json, tp__buffer *header, tp_error *err)
{
  size_t at = 0;
  TP__TRY(tp__buffer_add(header, "{", 1, err));
  if (metadata_json != NULL) TP__TRY(add_metadata(header, metadata_json, err));
  for (size_t i = 0; i < count; i++) {
    if (i > 0 || metadata_json != NULL) TP__TRY(tp__buffer_add(header, ",", 1, err));
    TP__TRY(add_entry(header, order[i], at, err));
    at += tp__tensor_bytes(order[i]);
  }
  TP__TRY(tp__buffer_add(header, "}", 1, err));
  return tp__buffer_add(header, "       ", (8 - header->size % 8) % 8, err);
}

static tp_status write_all(const char *path, const tp__tensor *const *order, size_t count,
                           const tp__buffer *header, tp_error *err)
{
  tp__writer w;
  TP__TRY(tp__writer_open(&w, path, err));
  uint64_t size = header->size;
  tp_status status = tp__writer_write(&w, &size, sizeof size, err);
  if (status == TP_OK) status = tp__writer_write(&w, header->data, header->size, err);
  for (size_t i = 0; status == TP_OK && i < count; i++)
    status = tp__writer_write(&w, order[i]->data, tp__tensor_bytes(order[i]), err);
  if (status == TP_OK) return tp__writer_commit(&w, err);
  tp__writer_cancel(&w);
  return status;
}

tp_status tp__weights_write_safetensors(const char *path, const tp__tensors *set,
                                        const char *metadata_json, tp_error *err)
{
  const tp__tensor **order = tp__calloc(set->count, sizeof *order, err);
  if (order == NULL) return TP_ERR_INTERNAL;
  size_t count = 0;
  for (size_t size = 8; size > 0; size /= 2)
    for (size_t i = 0; i < set->count; i++)
      if (tp__dtype_size(set->item[i].dtype) == size) order[count++] = &set->item[i];
  tp__buffer header;
  tp__buffer_init(&header, HEADER_MAX);
  tp_status status = make_header(order, count, metadata_json, &header, err);
  status = status == TP_OK ? write_all(path, order, count, &header, err)
                           : tp__at(err, status, "%s", path);
  tp__buffer_free(&header);
  free(order);
  return status;
}
