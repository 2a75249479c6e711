/* pjrt - opening a device; see pjrt.h */
#include "pjrt.h"

#include <stdlib.h>
#include <string.h>

#include "pjrt_state.h"

static void pjrt_free(tp__backend *backend)
{
  tp__pjrt *p = (tp__pjrt *)backend;
  if (p == NULL) return;
  if (p->client != NULL) tp__client_free(p->client);
  tp__pjrt_part(p);
  if (p->plugin != NULL) tp__plugin_close(p->plugin);
  free(p->cache);
  free(p);
}

static double pjrt_idle(tp__backend *backend, bool reset)
{
  tp__pjrt *p = (tp__pjrt *)backend;
  double idle = p->idle;
  if (reset) p->idle = p->idle_since = 0;
  return idle;
}

/* A CPU plugin makes as many devices as it is told. */
static tp_status make_client(tp__pjrt *p, const tp__pjrt_options *o, tp_error *err)
{
  tp__client_option count = {.name = "cpu_device_count",
                             .number = o->replicas > 0 ? o->replicas : 1};
  return tp__client_new(p->plugin, &count, o->kind == TP__CLASS_CPU, &p->client, err);
}

static tp_status count_replicas(tp__pjrt *p, const tp__pjrt_options *o, tp_error *err)
{
  int devices = tp__client_devices(p->client);
  if (devices < 1) return tp__fail(err, TP_ERR_DEVICE, "%s: has no device", o->plugin);
  if (o->replicas > devices)
    return tp__fail(err, TP_ERR_DEVICE, "replicas: %d are wanted, the device has %d", o->replicas,
                    devices);
  p->own = p->base.replicas = o->replicas > 0 ? o->replicas : devices;
  return TP_OK;
}

static void describe(tp__pjrt *p)
{
  p->base.name = tp__client_platform(p->client);
  snprintf(p->base.device, sizeof p->base.device, "%s, %s", tp__client_device_kind(p->client, 0),
           tp__plugin_version(p->plugin));
}

/* Of several processes none goes on without the others. */
static tp_status open_device(tp__pjrt *p, const tp__pjrt_options *o, tp_error *err)
{
  tp_status status = TP_OK;
  if (o->cache != NULL) {
    p->cache = tp__strdup(o->cache, err);
    status = p->cache == NULL ? TP_ERR_INTERNAL : TP_OK;
  }
  if (status == TP_OK) status = tp__plugin_open(o->plugin, &p->plugin, err);
  TP__TRY(tp__group_agree(o->group, status, err));
  if (tp__group_size(o->group) > 1) return tp__pjrt_meet(p, o, err);
  TP__TRY(make_client(p, o, err));
  return count_replicas(p, o, err);
}

tp_status tp__backend_pjrt(const tp__pjrt_options *o, tp__backend **backend, tp_error *err)
{
  tp__pjrt *p = tp__calloc(1, sizeof *p, err);
  if (p == NULL) return TP_ERR_INTERNAL;
  p->log = o->log;
  p->base = (tp__backend){
      .remote = true,
      .free = pjrt_free,
      .state_new = tp__pjrt_state_new,
      .state_free = tp__pjrt_state_free,
      .state_write = tp__pjrt_state_write,
      .state_read = tp__pjrt_state_read,
      .compile = tp__pjrt_compile,
      .program_free = tp__pjrt_program_free,
      .program_info = tp__pjrt_program_info,
      .run = tp__pjrt_run,
      .submit = tp__pjrt_submit,
      .wait = tp__pjrt_wait,
      .idle = pjrt_idle,
  };
  tp_status status = open_device(p, o, err);
  if (status == TP_OK) {
    describe(p);
    *backend = &p->base;
  } else {
    pjrt_free(&p->base);
  }
  return status;
}
