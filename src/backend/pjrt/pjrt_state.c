/* pjrt_state - parameters on all replicas; see pjrt_state.h */
#include <stdlib.h>
#include <string.h>

#include "pjrt_state.h"

static void forget(tp__resident *r, int replicas)
{
  for (int d = 0; r->buffer != NULL && d < replicas; d++) {
    tp__device_buffer_free(r->buffer[d]);
    r->buffer[d] = NULL;
  }
}

/* The same numbers on every replica, in the place of those that were there. */
static tp_status send(tp__pjrt *pjrt, tp__resident *r, const void *data, tp_error *err)
{
  forget(r, pjrt->own);
  for (int d = 0; d < pjrt->own; d++) {
    tp_status status =
        tp__device_buffer_new(pjrt->client, d, TP__F32, &r->shape, data, &r->buffer[d], err);
    if (status != TP_OK) return tp__at(err, status, "parameter %s", r->name);
  }
  return TP_OK;
}

static tp_status add_entry(tp__state *s, const tp__tensor *t, tp_error *err)
{
  tp__resident *r = &s->entry[s->count++];
  if (t->dtype != TP__F32)
    return tp__fail(err, TP_ERR_INTERNAL, "parameter %s: devices keep f32, not %s", t->name,
                    tp__dtype_name(t->dtype));
  r->shape = t->shape;
  r->name = tp__strdup(t->name, err);
  r->buffer = tp__calloc((size_t)s->pjrt->own, sizeof(tp__device_buffer *), err);
  if (r->name == NULL || r->buffer == NULL) return TP_ERR_INTERNAL;
  return send(s->pjrt, r, t->data, err);
}

tp_status tp__pjrt_state_new(tp__backend *backend, const tp__tensors *initial, tp__state **state,
                             tp_error *err)
{
  tp__state *s = tp__calloc(1, sizeof *s, err);
  if (s == NULL) return TP_ERR_INTERNAL;
  s->pjrt = (tp__pjrt *)backend;
  s->entry = tp__calloc(initial->count, sizeof *s->entry, err);
  tp_status status = s->entry == NULL ? TP_ERR_INTERNAL : TP_OK;
  for (size_t i = 0; i < initial->count && status == TP_OK; i++)
    status = add_entry(s, &initial->item[i], err);
  status = tp__group_agree(backend->group, status, err);
  if (status == TP_OK)
    *state = s;
  else
    tp__pjrt_state_free(s);
  return status;
}

void tp__pjrt_state_free(tp__state *s)
{
  if (s == NULL) return;
  for (size_t i = 0; i < s->count; i++) {
    forget(&s->entry[i], s->pjrt->own);
    free(s->entry[i].buffer);
    free(s->entry[i].name);
  }
  free(s->entry);
  free(s);
}

tp_status tp__pjrt_state_find(const tp__state *s, const char *name, const tp__shape *shape,
                              size_t *entry, tp_error *err)
{
  for (size_t i = 0; i < s->count; i++) {
    if (strcmp(s->entry[i].name, name) != 0) continue;
    if (!tp__shape_equal(&s->entry[i].shape, shape))
      return tp__fail(err, TP_ERR_INTERNAL, "parameter %s has another shape in the state", name);
    *entry = i;
    return TP_OK;
  }
  return tp__fail(err, TP_ERR_INTERNAL, "the state has no parameter %s", name);
}

tp_status tp__pjrt_state_write(tp__state *s, const tp__tensors *from, tp_error *err)
{
  TP__TRY(tp__steps_flush(s, err));
  for (size_t i = 0; i < from->count; i++) {
    size_t e = 0;
    TP__TRY(tp__pjrt_state_find(s, from->item[i].name, &from->item[i].shape, &e, err));
    TP__TRY(send(s->pjrt, &s->entry[e], from->item[i].data, err));
  }
  return TP_OK;
}

/* All copies are started before the first is waited for. */
tp_status tp__pjrt_state_read(tp__state *s, tp__tensors *into, tp_error *err)
{
  TP__TRY(tp__steps_flush(s, err));
  tp__event **event = tp__calloc(into->count + 1, sizeof(tp__event *), err);
  if (event == NULL) return TP_ERR_INTERNAL;
  tp_status status = TP_OK;
  for (size_t i = 0; i < into->count && status == TP_OK; i++) {
    tp__tensor *t = &into->item[i];
    size_t e = 0;
    status = tp__pjrt_state_find(s, t->name, &t->shape, &e, err);
    if (status == TP_OK && s->entry[e].buffer[0] == NULL)
      status =
          tp__fail(err, TP_ERR_DEVICE, "%s was lost on the device in a step that failed", t->name);
    if (status == TP_OK)
      status = tp__device_buffer_read(s->entry[e].buffer[0], t->data, tp__tensor_bytes(t),
                                      &event[i], err);
  }
  for (size_t i = 0; i < into->count; i++) {
    tp_error late;
    tp_status arrived = tp__event_wait(event[i], &late);
    if (arrived != TP_OK && status == TP_OK) {
      status = arrived;
      if (err != NULL) *err = late;
    }
  }
  free(event);
  return status;
}
