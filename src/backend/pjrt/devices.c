/* devices - the devices of a client: this process' own, and those of all processes; see client.h
 *
 * Plugins list devices in orders of their own. Replicas are counted the same way by every process:
 * by process, then by the device's id.
 */
#include <stdlib.h>
#include <string.h>

#include "pjrt_parts.h"

enum { DEVICES_MAX = 65536 };

typedef struct place {
  int process, id;
  tp__pjrt_device *device;
  tp__pjrt_description *description;
} place;

static int by_place(const void *a, const void *b)
{
  const place *p = a, *q = b;
  if (p->process != q->process) return p->process < q->process ? -1 : 1;
  return p->id < q->id ? -1 : p->id > q->id;
}

static tp_status read_place(tp__client *c, tp__pjrt_device *device, place *p, tp_error *err)
{
  tp__pjrt_device_get_description get = {.struct_size = sizeof get, .device = device};
  TP__TRY(tp__pjrt_check(c->api, c->api->device_get_description(&get), err));
  tp__pjrt_description_number id = {.struct_size = sizeof id, .description = get.description};
  TP__TRY(tp__pjrt_check(c->api, c->api->description_id(&id), err));
  tp__pjrt_description_number process = {.struct_size = sizeof process,
                                         .description = get.description};
  TP__TRY(tp__pjrt_check(c->api, c->api->description_process_index(&process), err));
  *p = (place){process.number, id.number, device, get.description};
  return TP_OK;
}

/* Lists devices in our order. Returns: caller frees. */
static tp_status list(tp__client *c, tp__pjrt_error *(*function)(tp__pjrt_client_devices *args),
                      place **places, int *n, tp_error *err)
{
  tp__pjrt_client_devices args = {.struct_size = sizeof args, .client = c->handle};
  TP__TRY(tp__pjrt_check(c->api, function(&args), err));
  if (args.num_devices == 0 || args.num_devices > DEVICES_MAX)
    return tp__fail(err, TP_ERR_DEVICE, "has %zu devices", args.num_devices);
  place *p = tp__calloc(args.num_devices, sizeof *p, err);
  tp_status status = p != NULL ? TP_OK : TP_ERR_INTERNAL;
  for (size_t i = 0; status == TP_OK && i < args.num_devices; i++)
    status = read_place(c, args.devices[i], &p[i], err);
  if (status != TP_OK) {
    free(p);
    return status;
  }
  qsort(p, args.num_devices, sizeof *p, by_place);
  *places = p;
  *n = (int)args.num_devices;
  return TP_OK;
}

static tp_status keep_own(tp__client *c, const place *own, int n, tp_error *err)
{
  c->device = tp__calloc((size_t)n, sizeof *c->device, err);
  c->id = tp__calloc((size_t)n, sizeof *c->id, err);
  c->kind = tp__calloc((size_t)n, sizeof *c->kind, err);
  if (c->device == NULL || c->id == NULL || c->kind == NULL) return TP_ERR_INTERNAL;
  c->devices = n;
  for (int i = 0; i < n; i++) {
    c->device[i] = own[i].device;
    c->id[i] = own[i].id;
    tp__pjrt_description_kind kind = {.struct_size = sizeof kind,
                                      .description = own[i].description};
    TP__TRY(tp__pjrt_check(c->api, c->api->description_kind(&kind), err));
    c->kind[i] = tp__format("%.*s", (int)kind.kind_size, kind.kind);
    if (c->kind[i] == NULL) return tp__no_memory(err, kind.kind_size);
  }
  return TP_OK;
}

static tp_status keep_all(tp__client *c, const place *all, int n, tp_error *err)
{
  c->all_id = tp__calloc((size_t)n, sizeof *c->all_id, err);
  if (c->all_id == NULL) return TP_ERR_INTERNAL;
  c->all = n;
  for (int i = 0; i < n; i++) {
    c->all_id[i] = all[i].id;
    if (all[i].id == c->id[0]) c->first = i;
  }
  return TP_OK;
}

tp_status tp__client_read_devices(tp__client *c, tp_error *err)
{
  place *own = NULL, *all = NULL;
  int n = 0, n_all = 0;
  tp_status status = list(c, c->api->client_addressable_devices, &own, &n, err);
  if (status == TP_OK) status = keep_own(c, own, n, err);
  if (status == TP_OK) status = list(c, c->api->client_devices, &all, &n_all, err);
  if (status == TP_OK) status = keep_all(c, all, n_all, err);
  free(own);
  free(all);
  return status;
}

/* ---- asking ---- */

int tp__client_devices(const tp__client *client)
{
  return client->devices;
}

int tp__client_all_devices(const tp__client *client)
{
  return client->all;
}

int tp__client_first_replica(const tp__client *client)
{
  return client->first;
}

const char *tp__client_device_kind(const tp__client *client, int device)
{
  return client->kind[device];
}

const char *tp__client_platform(const tp__client *client)
{
  return client->platform;
}

bool tp__client_memory(const tp__client *client, int device, uint64_t *limit, uint64_t *used)
{
  tp__pjrt_device_memory_stats args = {.struct_size = sizeof args,
                                       .device = client->device[device]};
  if (!tp__pjrt_quiet(client->api, client->api->device_memory_stats(&args))) return false;
  if (!args.bytes_limit_is_set || args.bytes_limit <= 0 || args.bytes_in_use < 0) return false;
  *limit = (uint64_t)args.bytes_limit;
  *used = (uint64_t)args.bytes_in_use;
  return true;
}
