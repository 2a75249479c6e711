/* device_table - `tepal devices`; see cli.h */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* "16.0 GB each", or nothing where it is not told. */
static void print_memory(const tp_device *d)
{
  if (d->memory == 0) return;
  printf("%s %.1f GB memory", d->replicas > 1 ? " of" : ",", (double)d->memory / 1e9);
}

static void print_device(const tp_device *d, int width)
{
  printf("%c %-*s  ", d->automatic ? '*' : ' ', width, d->name);
  if (d->reason != NULL) {
    printf("not used: %s\n", d->reason);
  } else {
    printf("%s; %d replica%s", d->kind, d->replicas, d->replicas == 1 ? "" : "s");
    print_memory(d);
    printf("%s%s\n", d->version != NULL ? "; " : "", d->version != NULL ? d->version : "");
  }
  if (d->plugin != NULL && strcmp(d->plugin, d->name) != 0)
    printf("  %-*s  plugin %s\n", width, "", d->plugin);
}

static void print_devices(const tp_devices *devices)
{
  int width = 3;
  bool automatic = false;
  for (size_t i = 0; i < devices->count; i++) {
    int n = (int)strlen(devices->item[i].name);
    if (n > width && n < 60) width = n;
    automatic |= devices->item[i].automatic;
  }
  for (size_t i = 0; i < devices->count; i++) print_device(&devices->item[i], width);
  if (automatic) printf("\n* is what --device auto takes\n");
}

/* One that was asked for by name and is not there has the exit code of a job that wants it. */
static tp_status judge(const cli_common *c, const tp_devices *devices)
{
  if (c->device == NULL || strcmp(c->device, "auto") == 0) return TP_OK;
  for (size_t i = 0; i < devices->count; i++)
    if (devices->item[i].reason == NULL) return TP_OK;
  return TP_ERR_DEVICE;
}

tp_status cli_devices(const cli_words *words, tp_error *error)
{
  cli_job j = {0};
  tp_devices devices = {0};
  tp_status status = cli_read(words, 0, NULL, NULL, 0, &j.common, error);
  if (status == TP_OK && j.common.help) {
    printf("tepal devices [--device tpu|gpu|cpu|PLUGIN.so]\n\n"
           "What training could run on: TPU, GPUs and CPU, each with its replicas, memory and\n"
           "version, or why it is not used. With --device only that one; then the exit code is 4\n"
           "when it can't be used.\n");
    goto out;
  }
  if (status == TP_OK && j.common.n_positional > 0)
    status = cli_usage(error, "\"%s\": devices takes no words", j.common.positional[0]);
  const tp_context_options options = {.threads = j.common.threads, .device = j.common.device};
  if (status == TP_OK) status = tp_devices_find(&options, &devices, error);
  if (status == TP_OK) {
    print_devices(&devices);
    status = judge(&j.common, &devices);
  }
out:
  tp_devices_free(&devices);
  cli_job_end(&j);
  return status;
}
