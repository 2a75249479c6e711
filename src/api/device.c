/* device - see device.h */
#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "backend/pjrt/pjrt.h"
#include "backend/pjrt/plugin.h"

static tp_status open_cpu(const tp__device_options *o, tp__backend **backend, tp_error *err)
{
  if (o->replicas > 1)
    return tp__fail(err, TP_ERR_USAGE,
                    "replicas: %d: the CPU is one replica, whose threads share the work",
                    o->replicas);
  return tp__backend_cpu(o->pool, backend, err);
}

static tp_status open_plugin(const tp__device_options *o, const tp__candidate *c,
                             tp__backend **backend, tp_error *err)
{
  char *cache = o->cache != NULL ? tp__format("%s/programs", o->cache) : NULL;
  tp__pjrt_options options = {.plugin = c->path,
                              .virtual_devices = c->kind == TP__CLASS_CPU,
                              .replicas = o->replicas,
                              .cache = cache,
                              .log = o->log};
  tp_status status = tp__backend_pjrt(&options, backend, err);
  free(cache);
  return status == TP_OK ? TP_OK : tp__at(err, status, "device");
}

static tp_status not_there(const char *name, const tp__candidate *c, tp_error *err)
{
  return tp__fail(err, TP_ERR_DEVICE, "device: %s: %s", name, c->reason);
}

static tp_status open_kind(const tp__device_options *o, tp__device_class kind,
                           tp__backend **backend, tp_error *err)
{
  tp__candidates found = {0};
  tp__search search = {.root = "",
                       .tpu = kind == TP__CLASS_TPU,
                       .gpu = kind == TP__CLASS_GPU,
                       .seconds = TP__DEVICE_PATIENCE};
  TP__TRY(tp__candidates_search(&search, &found, err));
  const tp__candidate *usable = tp__candidates_usable(&found);
  tp_status status = usable != NULL ? open_plugin(o, usable, backend, err)
                                    : not_there(o->name, &found.item[0], err);
  tp__candidates_free(&found);
  return status;
}

/* A chip that is there but can't be used is worth a word: the run will take longer. */
static tp_status open_first(const tp__device_options *o, tp__backend **backend, tp_error *err)
{
  tp__candidates found = {0};
  TP__TRY(tp__candidates_find(TP__DEVICE_PATIENCE, &found, err));
  tp_status status = TP_OK;
  *backend = NULL;
  for (size_t i = 0; i < found.count && status == TP_OK && *backend == NULL; i++) {
    const tp__candidate *c = &found.item[i];
    if (c->reason == NULL)
      status = open_plugin(o, c, backend, err);
    else if (c->there)
      tp__warn(o->log, "%s is there but can't be used: %s",
               c->kind == TP__CLASS_TPU ? "a TPU" : "a GPU", c->reason);
  }
  tp__candidates_free(&found);
  if (status != TP_OK || *backend != NULL) return status;
  return open_cpu(o, backend, err);
}

static tp_status open_path(const tp__device_options *o, tp__backend **backend, tp_error *err)
{
  tp__candidates found = {0};
  TP__TRY(tp__candidates_probe(o->name, TP__DEVICE_PATIENCE, &found, err));
  const tp__candidate *c = &found.item[0];
  tp_status status =
      c->reason == NULL ? open_plugin(o, c, backend, err) : not_there(o->name, c, err);
  tp__candidates_free(&found);
  return status;
}

static bool is_path(const char *name)
{
  size_t n = strlen(name);
  return strchr(name, '/') != NULL || (n > 3 && strcmp(name + n - 3, ".so") == 0);
}

tp_status tp__device_check(const char *name, tp_error *err)
{
  static const char *const known[] = {"auto", "tpu", "gpu", "cpu"};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (strcmp(name, known[i]) == 0) return TP_OK;
  if (is_path(name)) return TP_OK;
  return tp__fail(err, TP_ERR_USAGE,
                  "device: \"%s\" is none; auto, tpu, gpu, cpu, or the path of a PJRT plugin (.so)",
                  name);
}

tp_status tp__device_open(const tp__device_options *o, tp__backend **backend, tp_error *err)
{
  const char *name = o->name != NULL ? o->name : "auto";
  TP__TRY(tp__device_check(name, err));
  if (strcmp(name, "auto") == 0) return open_first(o, backend, err);
  if (strcmp(name, "cpu") == 0) return open_cpu(o, backend, err);
  if (strcmp(name, "tpu") == 0) return open_kind(o, TP__CLASS_TPU, backend, err);
  if (strcmp(name, "gpu") == 0) return open_kind(o, TP__CLASS_GPU, backend, err);
  return open_path(o, backend, err);
}
