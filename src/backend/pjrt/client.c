/* client - making one, alone or as one of several processes; see client.h */
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
    if (option[i].list != NULL) {
      value[i].type = TP__PJRT_INT64_LIST;
      value[i].value.int64_list = option[i].list;
      value[i].value_size = (size_t)option[i].number;
    }
    if (option[i].text == NULL) continue;
    value[i].type = TP__PJRT_TEXT;
    value[i].value.text = option[i].text;
    value[i].value_size = strlen(option[i].text);
  }
}

static tp_status create(tp__client *c, const tp__client_option *option, size_t n,
                        const tp__peers *peers, tp_error *err)
{
  tp__pjrt_named_value *value = tp__calloc(n + 2, sizeof *value, err);
  if (value == NULL) return TP_ERR_INTERNAL;
  to_values(option, n, value);
  tp__pjrt_client_create args = {.struct_size = sizeof args, .options = value, .num_options = n};
  if (peers != NULL && peers->kv != NULL) {
    const tp__client_option place[] = {{.name = "node_id", .number = peers->rank},
                                       {.name = "num_nodes", .number = peers->count}};
    to_values(place, 2, value + n);
    args.num_options = n + 2;
    tp__peers_give(peers, &args);
  }
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

tp_status tp__client_join(const tp__plugin *plugin, const tp__client_option *option,
                          size_t n_options, const tp__peers *peers, tp__client **client,
                          tp_error *err)
{
  tp__client *c = tp__calloc(1, sizeof *c, err);
  if (c == NULL) return TP_ERR_INTERNAL;
  c->plugin = plugin;
  c->group = peers != NULL ? peers->group : NULL;
  c->api = plugin->api;
  pthread_mutex_init(&c->lock, NULL);
  tp_status status = create(c, option, n_options, peers, err);
  if (status == TP_OK) status = read_text(c, c->api->client_platform_name, &c->platform, err);
  if (status == TP_OK)
    status = read_text(c, c->api->client_platform_version, &c->platform_version, err);
  if (status == TP_OK) status = tp__client_read_devices(c, err);
  if (status == TP_OK) {
    *client = c;
    return TP_OK;
  }
  tp__client_free(c);
  return tp__at(err, status, "PJRT plugin %s", plugin->path);
}

tp_status tp__client_new(const tp__plugin *plugin, const tp__client_option *option,
                         size_t n_options, tp__client **client, tp_error *err)
{
  return tp__client_join(plugin, option, n_options, NULL, client, err);
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
  if (client->handle != NULL && !client->lost) {
    tp__pjrt_client_destroy args = {.struct_size = sizeof args, .client = client->handle};
    (void)tp__pjrt_quiet(client->api, client->api->client_destroy(&args));
  }
  for (int i = 0; i < client->devices; i++) free(client->kind[i]);
  free(client->kind);
  free(client->id);
  free(client->all_id);
  free((void *)client->device);
  free(client->platform);
  free(client->platform_version);
  pthread_mutex_destroy(&client->lock);
  free(client);
}
