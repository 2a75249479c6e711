/* pickle_call - the globals a .pth may name, and what calling them means; see pickle.h */
#include <string.h>

#include "pickle_machine.h"
#include "weights_formats.h"

enum { ORDERED_DICT, REBUILD_TENSOR, REBUILD_TENSOR_OLD, REBUILD_PARAMETER, FIRST_STORAGE };

static const struct {
  const char *module, *name;
  tp__dtype dtype; /* of a storage */
} globals[] = {
    [ORDERED_DICT] = {"collections", "OrderedDict", TP__F32},
    [REBUILD_TENSOR] = {"torch._utils", "_rebuild_tensor_v2", TP__F32},
    [REBUILD_TENSOR_OLD] = {"torch._utils", "_rebuild_tensor", TP__F32}, /* before PyTorch 0.4 */
    [REBUILD_PARAMETER] = {"torch._utils", "_rebuild_parameter", TP__F32},
    [FIRST_STORAGE] = {"torch", "FloatStorage", TP__F32},
    {"torch", "DoubleStorage", TP__F64},
    {"torch", "HalfStorage", TP__F16},
    {"torch", "BFloat16Storage", TP__BF16},
    {"torch", "LongStorage", TP__I64},
    {"torch", "IntStorage", TP__I32},
    {"torch", "ByteStorage", TP__U8},
};

static bool is(const char *text, size_t size, const char *wanted)
{
  return strlen(wanted) == size && memcmp(text, wanted, size) == 0;
}

int tp__pickle_global(const char *module, size_t module_size, const char *name, size_t name_size)
{
  for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
    if (is(module, module_size, globals[i].module) && is(name, name_size, globals[i].name))
      return (int)i;
  return -1;
}

static tp_status odd(const char *what, tp_error *err)
{
  return tp__fail(err, TP_ERR_DATA, "pickle: %s with unexpected arguments", what);
}

/* OrderedDict() or OrderedDict([(key, value), ...]) */
static tp_status make_dict(tp__pickle *p, const tp__pickle_value *arguments,
                           tp__pickle_value **result, tp_error *err)
{
  tp__pickle_value *dict = tp__pickle_new(p, TP__PICKLE_DICT, err);
  if (dict == NULL) return err->status;
  *result = dict;
  if (arguments->list.count == 0) return TP_OK;
  const tp__pickle_value *pairs = arguments->list.item[0];
  if (arguments->list.count != 1 || pairs->kind != TP__PICKLE_LIST) return odd("OrderedDict", err);
  for (size_t i = 0; i < pairs->list.count; i++) {
    const tp__pickle_value *pair = pairs->list.item[i];
    if ((pair->kind != TP__PICKLE_TUPLE && pair->kind != TP__PICKLE_LIST) || pair->list.count != 2)
      return odd("OrderedDict", err);
    for (size_t k = 0; k < 2; k++) {
      if (!tp__pickle_grow(p, &dict->list.item, dict->list.count, &dict->list.capacity, err))
        return err->status;
      dict->list.item[dict->list.count++] = pair->list.item[k];
    }
  }
  return TP_OK;
}

/* A tuple of small whole numbers >= 0. */
static bool numbers(const tp__pickle_value *v, int64_t *out, int *count)
{
  if (v->kind != TP__PICKLE_TUPLE || v->list.count > TP__RANK_MAX) return false;
  *count = (int)v->list.count;
  for (int i = 0; i < *count; i++) {
    const tp__pickle_value *n = v->list.item[i];
    if (n->kind != TP__PICKLE_INT || n->integer < 0) return false;
    out[i] = n->integer;
  }
  return true;
}

/* The last element it reaches must be in the storage. */
static bool inside(const tp__pickle_value *tensor)
{
  int64_t last = tensor->tensor.offset, step = 0;
  const tp__shape *shape = &tensor->tensor.shape;
  for (int i = 0; i < shape->rank; i++) {
    if (shape->dim[i] == 0) return true;
    if (__builtin_mul_overflow(shape->dim[i] - 1, tensor->tensor.stride[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      return false;
  }
  return last < tensor->tensor.storage->storage.elements;
}

/* _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks[, metadata]); the older
 * _rebuild_tensor has only the first four. */
static tp_status make_tensor(tp__pickle *p, const tp__pickle_value *arguments,
                             tp__pickle_value **result, tp_error *err)
{
  tp__pickle_value *const *a = arguments->list.item;
  if (arguments->list.count < 4 || a[0]->kind != TP__PICKLE_STORAGE ||
      a[1]->kind != TP__PICKLE_INT || a[1]->integer < 0)
    return odd("_rebuild_tensor_v2", err);
  tp__pickle_value *v = tp__pickle_new(p, TP__PICKLE_TENSOR, err);
  if (v == NULL) return err->status;
  int strides = 0;
  v->tensor.storage = a[0];
  v->tensor.offset = a[1]->integer;
  if (!numbers(a[2], v->tensor.shape.dim, &v->tensor.shape.rank) ||
      !numbers(a[3], v->tensor.stride, &strides) || strides != v->tensor.shape.rank)
    return odd("_rebuild_tensor_v2", err);
  if (!inside(v)) return tp__fail(err, TP_ERR_DATA, "pickle: a tensor reaches beyond its storage");
  *result = v;
  return TP_OK;
}

tp_status tp__pickle_call(tp__pickle *p, int global, const tp__pickle_value *arguments,
                          tp__pickle_value **result, tp_error *err)
{
  switch (global) {
  case ORDERED_DICT:
    return make_dict(p, arguments, result, err);
  case REBUILD_TENSOR:
  case REBUILD_TENSOR_OLD:
    return make_tensor(p, arguments, result, err);
  case REBUILD_PARAMETER: /* (tensor, requires_grad, hooks) */
    if (arguments->list.count == 0 || arguments->list.item[0]->kind != TP__PICKLE_TENSOR)
      return odd("_rebuild_parameter", err);
    *result = arguments->list.item[0];
    return TP_OK;
  }
  return odd("a storage called as a function", err);
}

static bool same_text(const tp__pickle_value *a, const tp__pickle_value *b)
{
  return a->text.size == b->text.size && memcmp(a->text.data, b->text.data, a->text.size) == 0;
}

tp_status tp__pickle_storage(tp__pickle *p, const tp__pickle_value *id, tp__pickle_value **result,
                             tp_error *err)
{
  tp__pickle_value *const *a = id->list.item;
  if (id->kind != TP__PICKLE_TUPLE || id->list.count < 5 || id->list.count > 6 ||
      !tp__pickle_is_text(a[0], "storage") || a[1]->kind != TP__PICKLE_GLOBAL ||
      a[1]->integer < FIRST_STORAGE || a[2]->kind != TP__PICKLE_TEXT ||
      a[4]->kind != TP__PICKLE_INT || a[4]->integer < 0)
    return odd("a storage", err);
  if (id->list.count == 6 && a[5]->kind != TP__PICKLE_NONE)
    return tp__fail(err, TP_ERR_DATA,
                    "pickle: a view of a storage, as PyTorch before 0.4 wrote it; save it again");
  tp__dtype dtype = globals[a[1]->integer].dtype;
  for (size_t i = 0; i < p->n_storages; i++) {
    tp__pickle_value *known = p->storage[i];
    if (!same_text(known->storage.key, a[2])) continue;
    if (known->storage.dtype != dtype || known->storage.elements != a[4]->integer)
      return tp__fail(err, TP_ERR_DATA, "pickle: one storage with two types or sizes");
    *result = known;
    return TP_OK;
  }
  if (p->n_storages >= TP__WEIGHTS_MAX_ARRAYS)
    return tp__fail(err, TP_ERR_DATA, "pickle: more than %d storages", TP__WEIGHTS_MAX_ARRAYS);
  tp__pickle_value *v = tp__pickle_new(p, TP__PICKLE_STORAGE, err);
  if (v == NULL || !tp__pickle_grow(p, &p->storage, p->n_storages, &p->storage_capacity, err))
    return err->status;
  v->storage.key = a[2];
  v->storage.dtype = dtype;
  v->storage.elements = a[4]->integer;
  v->storage.index = p->n_storages;
  p->storage[p->n_storages++] = v;
  *result = v;
  return TP_OK;
}
