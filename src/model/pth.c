/* pth - PyTorch state dicts, and the older (not zipped) file form; see pth.h
 *
 *   pickle    magic number
 *   pickle    1001
 *   pickle    {"little_endian": True, ...}
 *   pickle    the object
 *   pickle    [key, ...]
 *   for each key: i64 number of elements, the elements
 *
 * (torch/serialization.py, _legacy_load.) The zip form is in zip_weights.c.
 */
#include "pth.h"

#include <stdlib.h>
#include <string.h>

enum { LEGACY_PROTOCOL = 1001 };

static bool has_tensors(const tp__pickle_value *v)
{
  for (size_t i = 0; v->kind == TP__PICKLE_DICT && i + 1 < v->list.count; i += 2)
    if (v->list.item[i]->kind == TP__PICKLE_TEXT && v->list.item[i + 1]->kind == TP__PICKLE_TENSOR)
      return true;
  return false;
}

const tp__pickle_value *tp__pth_state_dict(const tp__pickle_value *root)
{
  static const char *const inside[] = {"state_dict", "model_state_dict", "model"};
  if (has_tensors(root)) return root;
  for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
    const tp__pickle_value *v = tp__pickle_get(root, inside[i]);
    if (v != NULL && has_tensors(v)) return v;
  }
  return NULL;
}

bool tp__pth_storage_bytes(const tp__pickle_value *storage, size_t *bytes)
{
  return tp__mul_size((size_t)storage->storage.elements, tp__dtype_size(storage->storage.dtype),
                      bytes);
}

/* Gathers a tensor's elements by its strides into rows. The pickle's reader has checked that all
 * lie in the storage. */
static void gather(const tp__pickle_value *v, const uint8_t *bytes, tp__tensor *t)
{
  size_t size = tp__dtype_size(t->dtype), n = tp__shape_elements(&t->shape, 0);
  int64_t at[TP__RANK_MAX] = {0};
  for (size_t k = 0; k < n; k++) {
    int64_t source = v->tensor.offset;
    for (int i = 0; i < t->shape.rank; i++) source += at[i] * v->tensor.stride[i];
    memcpy((char *)t->data + k * size, bytes + (size_t)source * size, size);
    for (int i = t->shape.rank - 1; i >= 0 && ++at[i] == t->shape.dim[i]; i--) at[i] = 0;
  }
}

tp_status tp__pth_add_tensors(const tp__pickle_value *dict, const uint8_t *const *bytes,
                              tp__weights_sink *sink, tp_error *err)
{
  for (size_t i = 0; i + 1 < dict->list.count; i += 2) {
    const tp__pickle_value *key = dict->list.item[i], *v = dict->list.item[i + 1];
    if (key->kind != TP__PICKLE_TEXT || v->kind != TP__PICKLE_TENSOR) continue;
    const tp__pickle_value *storage = v->tensor.storage;
    char shown[80];
    tp__tensor *t = NULL;
    TP__TRY(tp__weights_add(sink, key->text.data, key->text.size, storage->storage.dtype,
                            &v->tensor.shape, &t, err));
    if (bytes[storage->storage.index] == NULL)
      return tp__fail(err, TP_ERR_DATA, "array \"%s\": its storage is not in the file",
                      tp__printable(shown, key->text.data, key->text.size));
    gather(v, bytes[storage->storage.index], t);
  }
  return TP_OK;
}

/* ---- the older form ---- */

typedef struct legacy {
  const uint8_t *data;
  size_t size, at;
  tp__pickle pickle;
} legacy;

static tp_status next_pickle(legacy *f, const char *what, const tp__pickle_value **v, tp_error *err)
{
  size_t used = 0;
  tp_status status = tp__pickle_run(&f->pickle, f->data + f->at, f->size - f->at, &used, v, err);
  if (status != TP_OK) return tp__at(err, status, "%s at byte %zu", what, f->at);
  f->at += used;
  return TP_OK;
}

static tp_status read_preamble(legacy *f, tp_error *err)
{
  static const uint8_t magic[] = {0x80, 2,    0x8a, 0x0a, 0x6c, 0xfc, 0x9c,
                                  0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};
  const tp__pickle_value *v = NULL;
  if (f->size < sizeof magic || memcmp(f->data, magic, sizeof magic) != 0)
    return tp__fail(err, TP_ERR_DATA, "a pickle, but not one of PyTorch's (magic number differs)");
  TP__TRY(next_pickle(f, "magic number", &v, err));
  TP__TRY(next_pickle(f, "protocol number", &v, err));
  if (v->kind != TP__PICKLE_INT || v->integer != LEGACY_PROTOCOL)
    return tp__fail(err, TP_ERR_DATA, "PyTorch's protocol number is not %d", LEGACY_PROTOCOL);
  TP__TRY(next_pickle(f, "system description", &v, err));
  const tp__pickle_value *little = tp__pickle_get(v, "little_endian");
  if (little == NULL || little->kind != TP__PICKLE_BOOL || little->integer != 1)
    return tp__fail(err, TP_ERR_DATA, "was written on a big-endian machine");
  return TP_OK;
}

static const tp__pickle_value *storage_of(const legacy *f, const tp__pickle_value *key)
{
  for (size_t i = 0; key->kind == TP__PICKLE_TEXT && i < f->pickle.n_storages; i++) {
    const tp__pickle_value *k = f->pickle.storage[i]->storage.key;
    if (k->text.size == key->text.size && memcmp(k->text.data, key->text.data, k->text.size) == 0)
      return f->pickle.storage[i];
  }
  return NULL;
}

/* bytes[i] is set to the place in the file of the storage with index i. */
static tp_status find_storages(legacy *f, const tp__pickle_value *keys, const uint8_t **bytes,
                               tp_error *err)
{
  if (keys->kind != TP__PICKLE_LIST || keys->list.count != f->pickle.n_storages)
    return tp__fail(err, TP_ERR_DATA, "the list of storages does not fit the tensors");
  for (size_t i = 0; i < keys->list.count; i++) {
    const tp__pickle_value *storage = storage_of(f, keys->list.item[i]);
    int64_t elements = 0;
    size_t need = 0;
    if (storage == NULL || bytes[storage->storage.index] != NULL)
      return tp__fail(err, TP_ERR_DATA, "storage %zu is used by no tensor, or is there twice", i);
    if (f->size - f->at < sizeof elements)
      return tp__fail(err, TP_ERR_DATA, "ends before storage %zu: truncated?", i);
    memcpy(&elements, f->data + f->at, sizeof elements);
    f->at += sizeof elements;
    if (elements != storage->storage.elements)
      return tp__fail(err, TP_ERR_DATA,
                      "storage %zu at byte %zu has another length than its tensors say", i, f->at);
    if (!tp__pth_storage_bytes(storage, &need) || need > f->size - f->at)
      return tp__fail(err, TP_ERR_DATA, "ends in storage %zu at byte %zu: truncated?", i, f->at);
    bytes[storage->storage.index] = f->data + f->at;
    f->at += need;
  }
  return TP_OK;
}

static tp_status read_legacy(legacy *f, tp__weights_sink *sink, tp_error *err)
{
  const tp__pickle_value *root = NULL, *keys = NULL;
  TP__TRY(read_preamble(f, err));
  TP__TRY(next_pickle(f, "tensors", &root, err));
  TP__TRY(next_pickle(f, "list of storages", &keys, err));
  const tp__pickle_value *dict = tp__pth_state_dict(root);
  if (dict == NULL) return tp__fail(err, TP_ERR_DATA, "holds no state dict (name -> tensor)");
  const uint8_t **bytes = tp__calloc(f->pickle.n_storages, sizeof *bytes, err);
  if (bytes == NULL) return TP_ERR_INTERNAL;
  tp_status status = find_storages(f, keys, bytes, err);
  if (status == TP_OK) status = tp__pth_add_tensors(dict, bytes, sink, err);
  free(bytes);
  return status;
}

tp_status tp__pth_read_legacy(int fd, uint64_t bytes, tp__weights_sink *sink, tp_error *err)
{
  uint8_t *data = tp__calloc((size_t)bytes, 1, err);
  if (data == NULL) return TP_ERR_INTERNAL;
  legacy f = {.data = data, .size = (size_t)bytes};
  tp_status status = tp__read_at(fd, data, f.size, 0, err);
  if (status == TP_OK) status = read_legacy(&f, sink, err);
  tp__pickle_free(&f.pickle);
  free(data);
  return status;
}
