/* device_buffer - data on a device, and the events that tell when something is done; see client.h
 *
 * The small structs round the plugin's handles come from a list of spare ones, so that a step that
 * makes and frees thousands of them allocates nothing.
 */
#include <stdlib.h>
#include <time.h>

#include "pjrt_parts.h"

/* ---- events ---- */

void tp__pjrt_event_destroy(const tp__pjrt_api *api, tp__pjrt_event *event)
{
  if (event == NULL) return;
  tp__pjrt_event_args args = {.struct_size = sizeof args, .event = event};
  (void)tp__pjrt_quiet(api, api->event_destroy(&args));
}

tp__event *tp__event_take(tp__client *client, tp_error *err)
{
  pthread_mutex_lock(&client->lock);
  tp__event *e = client->spare_event;
  if (e != NULL) client->spare_event = e->next;
  pthread_mutex_unlock(&client->lock);
  if (e == NULL) e = tp__calloc(1, sizeof *e, err);
  if (e != NULL) *e = (tp__event){.client = client};
  return e;
}

void tp__event_free(tp__event *event)
{
  if (event == NULL) return;
  tp__client *client = event->client;
  if (!client->lost) tp__pjrt_event_destroy(client->api, event->handle);
  pthread_mutex_lock(&client->lock);
  event->next = client->spare_event;
  client->spare_event = event;
  pthread_mutex_unlock(&client->lock);
}

/* A device waits for ever for the part of a process that is lost, and who awaits the event with it.
 */
static tp_status wait_for_all(tp__event *event, tp_error *err)
{
  tp__client *c = event->client;
  tp__pjrt_event_is_ready args = {.struct_size = sizeof args, .event = event->handle};
  if (c->group == NULL) return TP_OK;
  if (c->lost) return tp__fail(err, TP_ERR_DEVICE, "the processes do not work together any more");
  for (int spins = 0;; spins++) {
    bool known = tp__pjrt_quiet(c->api, c->api->event_is_ready(&args));
    if (!known || args.is_ready) return TP_OK; /* awaiting it tells more */
    tp_status status = tp__group_lost(c->group, err);
    c->lost = status != TP_OK;
    if (c->lost) return status;
    nanosleep(&(struct timespec){.tv_nsec = spins < 100 ? 20000 : 200000}, NULL);
  }
}

tp_status tp__event_wait(tp__event *event, tp_error *err)
{
  if (event == NULL || event->handle == NULL) {
    tp__event_free(event);
    return TP_OK;
  }
  const tp__pjrt_api *api = event->client->api;
  tp__pjrt_event_args args = {.struct_size = sizeof args, .event = event->handle};
  tp_status status = wait_for_all(event, err);
  if (status == TP_OK) status = tp__pjrt_check(api, api->event_await(&args), err);
  tp__event_free(event);
  return status;
}

/* ---- buffers ---- */

static void destroy(tp__client *client, tp__pjrt_buffer *handle)
{
  if (handle == NULL || client->lost) return;
  tp__pjrt_buffer_destroy args = {.struct_size = sizeof args, .buffer = handle};
  (void)tp__pjrt_quiet(client->api, client->api->buffer_destroy(&args));
}

tp__device_buffer *tp__device_buffer_take(tp__client *client, tp_error *err)
{
  pthread_mutex_lock(&client->lock);
  tp__device_buffer *b = client->spare_buffer;
  if (b != NULL) client->spare_buffer = b->next;
  pthread_mutex_unlock(&client->lock);
  if (b == NULL) b = tp__calloc(1, sizeof *b, err);
  if (b != NULL) *b = (tp__device_buffer){.client = client};
  return b;
}

void tp__device_buffer_free(tp__device_buffer *buffer)
{
  if (buffer == NULL) return;
  tp__client *client = buffer->client;
  destroy(client, buffer->handle);
  pthread_mutex_lock(&client->lock);
  buffer->next = client->spare_buffer;
  client->spare_buffer = buffer;
  pthread_mutex_unlock(&client->lock);
}

bool tp__device_buffer_is_gone(const tp__device_buffer *buffer)
{
  const tp__pjrt_api *api = buffer->client->api;
  tp__pjrt_buffer_is_deleted args = {.struct_size = sizeof args, .buffer = buffer->handle};
  return !tp__pjrt_quiet(api, api->buffer_is_deleted(&args)) || args.is_deleted;
}

static tp__pjrt_type type_of(tp__dtype dtype)
{
  static const tp__pjrt_type type[] = {
      [TP__F32] = TP__PJRT_F32, [TP__I32] = TP__PJRT_S32,  [TP__U32] = TP__PJRT_U32,
      [TP__U8] = TP__PJRT_U8,   [TP__I64] = TP__PJRT_S64,  [TP__F64] = TP__PJRT_F64,
      [TP__F16] = TP__PJRT_F16, [TP__BF16] = TP__PJRT_BF16};
  return type[dtype];
}

tp_status tp__device_buffer_new(tp__client *client, int device, tp__dtype dtype,
                                const tp__shape *shape, const void *data,
                                tp__device_buffer **buffer, tp_error *err)
{
  if (device < 0 || device >= client->devices)
    return tp__fail(err, TP_ERR_INTERNAL, "device %d of %d", device, client->devices);
  tp__device_buffer *b = tp__device_buffer_take(client, err);
  if (b == NULL) return TP_ERR_INTERNAL;
  tp__pjrt_buffer_from_host args = {.struct_size = sizeof args,
                                    .client = client->handle,
                                    .data = data,
                                    .type = type_of(dtype),
                                    .dims = shape->dim,
                                    .num_dims = (size_t)shape->rank,
                                    .semantics = TP__PJRT_ONLY_DURING_CALL,
                                    .device = client->device[device]};
  tp_status status = tp__pjrt_check(client->api, client->api->buffer_from_host(&args), err);
  if (status != TP_OK) {
    char text[96], bytes[32];
    tp__device_buffer_free(b);
    return tp__at(err, status, "a %s of %s, %s, on device %d", tp__dtype_name(dtype),
                  tp__shape_text(shape, text),
                  tp__bytes_text(bytes, tp__shape_elements(shape, 0) * tp__dtype_size(dtype)),
                  device);
  }
  tp__pjrt_event_destroy(client->api, args.done_with_data);
  b->handle = args.buffer;
  *buffer = b;
  return TP_OK;
}

tp_status tp__device_buffer_read(tp__device_buffer *buffer, void *data, size_t size,
                                 tp__event **event, tp_error *err)
{
  tp__client *client = buffer->client;
  tp__event *e = tp__event_take(client, err);
  if (e == NULL) return TP_ERR_INTERNAL;
  tp__pjrt_buffer_to_host args = {
      .struct_size = sizeof args, .buffer = buffer->handle, .data = data, .data_size = size};
  tp_status status = tp__pjrt_check(client->api, client->api->buffer_to_host(&args), err);
  e->handle = args.event;
  if (status == TP_OK)
    *event = e;
  else
    tp__event_free(e);
  return status;
}
