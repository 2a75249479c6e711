/* state - the parameters on the device, by name; see cpu.h */
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

static tp_status entry_new(tp__entry *e, const tp__tensor *t, tp_error *err)
{
  e->dtype = t->dtype;
  e->shape = t->shape;
  e->name = tp__strdup(t->name, err);
  if (e->name == NULL) return TP_ERR_INTERNAL;
  size_t elements = tp__shape_elements(&t->shape, 0);
  if (elements > SIZE_MAX / 16)
    return tp__fail(err, TP_ERR_INTERNAL, "parameter %s: more elements than memory", t->name);
  e->data = tp__calloc_aligned(tp__padded(elements), tp__dtype_size(t->dtype), err);
  if (e->data == NULL) return tp__at(err, TP_ERR_INTERNAL, "parameter %s", t->name);
  memcpy(e->data, t->data, tp__tensor_bytes(t));
  return TP_OK;
}

tp_status tp__cpu_state_new(tp__backend *backend, const tp__tensors *initial, tp__state **state,
                            tp_error *err)
{
  tp__state *s = tp__calloc(1, sizeof *s, err);
  if (s == NULL) return TP_ERR_INTERNAL;
  s->cpu = (tp__cpu *)backend;
  s->entry = tp__calloc(initial->count, sizeof *s->entry, err);
  tp_status status = s->entry == NULL ? TP_ERR_INTERNAL : TP_OK;
  for (size_t i = 0; i < initial->count && status == TP_OK; i++) {
    status = entry_new(&s->entry[i], &initial->item[i], err);
    s->entry[i].version = ++s->clock;
    s->count++;
  }
  if (status != TP_OK) {
    tp__cpu_state_free(s);
    return status;
  }
  *state = s;
  return TP_OK;
}

void tp__cpu_state_free(tp__state *s)
{
  if (s == NULL) return;
  for (size_t i = 0; i < s->count; i++) {
    free(s->entry[i].name);
    free(s->entry[i].data);
  }
  free(s->entry);
  free(s);
}

tp_status tp__cpu_state_find(tp__state *s, const char *name, tp__dtype dtype,
                             const tp__shape *shape, tp__entry **entry, tp_error *err)
{
  for (size_t i = 0; i < s->count; i++) {
    tp__entry *e = &s->entry[i];
    if (strcmp(e->name, name) != 0) continue;
    char wanted[96], held[96];
    if (!tp__shape_equal(&e->shape, shape))
      return tp__fail(err, TP_ERR_INTERNAL, "parameter %s is %s, but the state holds %s", name,
                      tp__shape_text(shape, wanted), tp__shape_text(&e->shape, held));
    if (e->dtype != dtype)
      return tp__fail(err, TP_ERR_INTERNAL, "parameter %s is %s, but the state holds %s", name,
                      tp__dtype_name(dtype), tp__dtype_name(e->dtype));
    *entry = e;
    return TP_OK;
  }
  return tp__fail(err, TP_ERR_INTERNAL, "the state has no parameter %s (it has %zu)", name,
                  s->count);
}

/* All names and shapes are checked before anything is written. */
tp_status tp__cpu_state_write(tp__state *s, const tp__tensors *from, tp_error *err)
{
  tp__entry *e = NULL;
  for (size_t i = 0; i < from->count; i++) {
    const tp__tensor *t = &from->item[i];
    TP__TRY(tp__cpu_state_find(s, t->name, t->dtype, &t->shape, &e, err));
  }
  for (size_t i = 0; i < from->count; i++) {
    const tp__tensor *t = &from->item[i];
    TP__TRY(tp__cpu_state_find(s, t->name, t->dtype, &t->shape, &e, err));
    memcpy(e->data, t->data, tp__tensor_bytes(t));
    e->version = ++s->clock;
  }
  return TP_OK;
}

tp_status tp__cpu_state_read(tp__state *s, tp__tensors *into, tp_error *err)
{
  for (size_t i = 0; i < into->count; i++) {
    tp__tensor *t = &into->item[i];
    tp__entry *e = NULL;
    TP__TRY(tp__cpu_state_find(s, t->name, t->dtype, &t->shape, &e, err));
    memcpy(t->data, e->data, tp__tensor_bytes(t));
  }
  return TP_OK;
}
