/* hlo_client - four devices of a CPU plugin for a whole test program, which is called with the
 * plugin's path inside site-packages. Without the plugin there is no client, and tests skip. */
#ifndef TP_HLO_CLIENT_H
#define TP_HLO_CLIENT_H

#include "hlo_rig.h"

enum { REPLICAS = 4 };

static const char *plugin_name = PJRT_CPU_106;
static tp__plugin *plugin;
static tp__client *client;

static int open_client(void **state)
{
  (void)state;
  tp_error err = {0};
  const char *path = plugin_file(plugin_name);
  if (path == NULL) {
    print_message("skipped: no PJRT plugin %s (make test-pjrt gets it)\n", plugin_name);
    return 0;
  }
  tp__client_option count = {.name = "cpu_device_count", .number = REPLICAS};
  tp_status status = tp__plugin_open(path, &plugin, &err);
  if (status == TP_OK) status = tp__client_new(plugin, &count, 1, &client, &err);
  if (status == TP_OK) return 0;
  print_error("%s\n", err.text);
  return 1;
}

static int close_client(void **state)
{
  (void)state;
  tp__client_free(client);
  tp__plugin_close(plugin);
  return 0;
}

#endif
