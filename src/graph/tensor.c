/* tensor - see tensor.h */
#include "tensor.h"

#include <stdlib.h>
#include <string.h>

size_t tp__dtype_size(tp__dtype dtype)
{
  switch (dtype) {
  case TP__U8:
    return 1;
  case TP__F16:
  case TP__BF16:
    return 2;
  case TP__F32:
  case TP__I32:
  case TP__U32:
    return 4;
  case TP__I64:
  case TP__F64:
    return 8;
  }
  return 0;
}

const char *tp__dtype_name(tp__dtype dtype)
{
  switch (dtype) {
  case TP__F32:
    return "f32";
  case TP__I32:
    return "i32";
  case TP__U32:
    return "u32";
  case TP__U8:
    return "u8";
  case TP__I64:
    return "i64";
  case TP__F64:
    return "f64";
  case TP__F16:
    return "f16";
  case TP__BF16:
    return "bf16";
  }
  return "?";
}

static int rank_of(const tp__shape *shape)
{
  return shape->rank < 0 ? 0 : shape->rank > TP__RANK_MAX ? TP__RANK_MAX : shape->rank;
}

size_t tp__shape_elements(const tp__shape *shape, int64_t n)
{
  size_t elements = 1;
  if (shape->rank != rank_of(shape)) return SIZE_MAX;
  for (int i = 0; i < shape->rank; i++) {
    int64_t dim = shape->dim[i] == TP__N ? n : shape->dim[i];
    if (dim < 0 || !tp__mul_size(elements, (size_t)dim, &elements)) return SIZE_MAX;
  }
  return elements;
}

bool tp__shape_equal(const tp__shape *a, const tp__shape *b)
{
  if (a->rank != b->rank) return false;
  for (int i = 0; i < rank_of(a); i++)
    if (a->dim[i] != b->dim[i]) return false;
  return true;
}

char *tp__shape_text(const tp__shape *shape, char text[96])
{
  enum { SIZE = 96 };
  int rank = rank_of(shape);
  size_t used = (size_t)snprintf(text, SIZE, "(");
  for (int i = 0; i < rank && used < SIZE; i++) {
    const char *comma = i + 1 < rank ? ", " : rank == 1 ? "," : "";
    if (shape->dim[i] == TP__N)
      used += (size_t)snprintf(text + used, SIZE - used, "None%s", comma);
    else
      used += (size_t)snprintf(text + used, SIZE - used, "%lld%s", (long long)shape->dim[i], comma);
  }
  if (used < SIZE) used += (size_t)snprintf(text + used, SIZE - used, ")");
  if (used >= SIZE) memcpy(text + SIZE - 4, "...", 4); /* only shapes that no memory could hold */
  return text;
}

tp__shape tp__shape_make(int rank, const int64_t *dim)
{
  tp__shape s = {.rank = rank};
  for (int i = 0; i < rank && i < TP__RANK_MAX; i++) s.dim[i] = dim[i];
  return s;
}

tp_status tp__tensors_add(tp__tensors *set, const char *name, tp__dtype dtype,
                          const tp__shape *shape, tp__tensor **tensor, tp_error *err)
{
  if (tp__tensors_find(set, name) != NULL)
    return tp__fail(err, TP_ERR_INTERNAL, "tensor %s is there twice", name);
  if (set->count == set->capacity) {
    size_t capacity = set->capacity == 0 ? 64 : set->capacity * 2;
    tp__tensor *item = realloc(set->item, capacity * sizeof *item);
    if (item == NULL) return tp__no_memory(err, capacity * sizeof *item);
    set->item = item;
    set->capacity = capacity;
  }
  tp__tensor t = {.name = tp__strdup(name, err), .dtype = dtype, .shape = *shape};
  if (t.name == NULL) return TP_ERR_INTERNAL;
  t.data = tp__calloc_aligned(tp__shape_elements(shape, 0), tp__dtype_size(dtype), err);
  if (t.data == NULL) {
    free((void *)(uintptr_t)t.name);
    return TP_ERR_INTERNAL;
  }
  set->item[set->count] = t;
  if (tensor != NULL) *tensor = &set->item[set->count];
  set->count++;
  return TP_OK;
}

tp__tensor *tp__tensors_find(const tp__tensors *set, const char *name)
{
  for (size_t i = 0; i < set->count; i++)
    if (strcmp(set->item[i].name, name) == 0) return &set->item[i];
  return NULL;
}

tp_status tp__tensors_copy(const tp__tensors *from, tp__tensors *to, tp_error *err)
{
  for (size_t i = 0; i < from->count; i++) {
    const tp__tensor *f = &from->item[i];
    tp__tensor *t = NULL;
    tp_status status = tp__tensors_add(to, f->name, f->dtype, &f->shape, &t, err);
    if (status != TP_OK) {
      tp__tensors_free(to);
      return status;
    }
    memcpy(t->data, f->data, tp__tensor_bytes(f));
  }
  return TP_OK;
}

void tp__tensors_free(tp__tensors *set)
{
  for (size_t i = 0; i < set->count; i++) {
    free((void *)(uintptr_t)set->item[i].name);
    free(set->item[i].data);
  }
  free(set->item);
  *set = (tp__tensors){0};
}
