/* client - the devices of a plugin; see client.h */
#include <stdlib.h>
#include <string.h>

#include "pjrt_parts.h"

/* ---- making one ---- */

static void to_values(const tp__client_option *option, size_t n, tp__pjrt_named_value *value)
{
  for (size_t i = 0; i < n; i++) {
    value[i] = (tp__pjrt_named_value){.struct_size = sizeof *value,
                                      .name = option[i].name,
                                      .name_size = strlen(option[i].name),
                                      .type = TP__PJRT_INT64,
                                      .value.int64 = option[i].number,
                                      .value_size = 1};
    if (option[i].is_switch) {
      value[i].type = TP__PJRT_BOOL;
      value[i].value.boolean = option[i].number != 0;
    }
    if (option[i].text == NULL) continue;
    value[i].type = TP__PJRT_TEXT;
    value[i].value.text = option[i].text;
    value[i].value_size = strlen(option[i].text);
  }
}

static tp_status create(tp__client *c, const tp__client_option *option, size_t n, tp_error *err)
{
  tp__pjrt_named_value *value = tp__calloc(n, sizeof *value, err);
  if (value == NULL) return TP_ERR_INTERNAL;
  to_values(option, n, value);
  tp__pjrt_client_create args = {.struct_size = sizeof args, .options = value, .num_options = n};
  tp_status status = tp__pjrt_check(c->api, c->api->client_create(&args), err);
  free(value);
  c->handle = args.client;
  return status;
}

typedef tp__pjrt_error *(*text_fn)(tp__pjrt_client_text *args);

static tp_status read_text(tp__client *c, text_fn function, char **text, tp_error *err)
{
  tp__pjrt_client_text args = {.struct_size = sizeof args, .client = c->handle};
  TP__TRY(tp__pjrt_check(c->api, function(&args), err));
  *text = tp__format("%.*s", (int)args.text_size, args.text);
  return *text != NULL ? TP_OK : tp__no_memory(err, args.text_size);
}

static tp_status read_device(tp__client *c, int i, tp_error *err)
{
  tp__pjrt_device_get_description get = {.struct_size = sizeof get, .device = c->device[i]};
  TP__TRY(tp__pjrt_check(c->api, c->api->device_get_description(&get), err));
  tp__pjrt_description_number id = {.struct_size = sizeof id, .description = get.description};
  TP__TRY(tp__pjrt_check(c->api, c->api->description_id(&id), err));
  c->id[i] = id.number;
  tp__pjrt_description_kind kind = {.struct_size = sizeof kind, .description = get.description};
  TP__TRY(tp__pjrt_check(c->api, c->api->description_kind(&kind), err));
  c->kind[i] = tp__format("%.*s", (int)kind.kind_size, kind.kind);
  return c->kind[i] != NULL ? TP_OK : tp__no_memory(err, kind.kind_size);
}

static tp_status read_devices(tp__client *c, tp_error *err)
{
  tp__pjrt_client_devices args = {.struct_size = sizeof args, .client = c->handle};
  TP__TRY(tp__pjrt_check(c->api, c->api->client_addressable_devices(&args), err));
  if (args.num_devices == 0 || args.num_devices > 65536)
    return tp__fail(err, TP_ERR_DEVICE, "has %zu devices", args.num_devices);
  c->device = args.devices;
  c->id = tp__calloc(args.num_devices, sizeof *c->id, err);
  c->kind = tp__calloc(args.num_devices, sizeof *c->kind, err);
  if (c->id == NULL || c->kind == NULL) return TP_ERR_INTERNAL;
  c->devices = (int)args.num_devices;
  for (int i = 0; i < c->devices; i++) TP__TRY(read_device(c, i, err));
  return TP_OK;
}

tp_status tp__client_new(const tp__plugin *plugin, const tp__client_option *option,
                         size_t n_options, tp__client **client, tp_error *err)
{
  tp__client *c = tp__calloc(1, sizeof *c, err);
  if (c == NULL) return TP_ERR_INTERNAL;
  c->plugin = plugin;
  c->api = plugin->api;
  pthread_mutex_init(&c->lock, NULL);
  tp_status status = create(c, option, n_options, err);
  if (status == TP_OK) status = read_text(c, c->api->client_platform_name, &c->platform, err);
  if (status == TP_OK)
    status = read_text(c, c->api->client_platform_version, &c->platform_version, err);
  if (status == TP_OK) status = read_devices(c, err);
  if (status == TP_OK) {
    *client = c;
    return TP_OK;
  }
  tp__client_free(c);
  return tp__at(err, status, "PJRT plugin %s", plugin->path);
}

void tp__client_free(tp__client *client)
{
  if (client == NULL) return;
  for (tp__device_buffer *b = client->spare_buffer, *next; b != NULL; b = next) {
    next = b->next;
    free(b);
  }
  for (tp__event *e = client->spare_event, *next; e != NULL; e = next) {
    next = e->next;
    free(e);
  }
  if (client->handle != NULL) {
    tp__pjrt_client_destroy args = {.struct_size = sizeof args, .client = client->handle};
    (void)tp__pjrt_quiet(client->api, client->api->client_destroy(&args));
  }
  for (int i = 0; i < client->devices; i++) free(client->kind[i]);
  free(client->kind);
  free(client->id);
  free(client->platform);
  free(client->platform_version);
  pthread_mutex_destroy(&client->lock);
  free(client);
}

/* ---- asking ---- */

int tp__client_devices(const tp__client *client)
{
  return client->devices;
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
