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
  TP__TRY(tp__backend_cpu(o->pool, backend, err));
  if (o->group != NULL) tp__backend_cpu_join(*backend, o->group);
  return TP_OK;
}

static tp_status open_plugin(const tp__device_options *o, const tp__candidate *c,
                             tp__backend **backend, tp_error *err)
{
  char *cache = o->cache != NULL ? tp__format("%s/programs", o->cache) : NULL;
  tp__pjrt_options options = {.plugin = c->path,
                              .kind = c->kind,
                              .devices = c->devices,
                              .replicas = o->replicas,
                              .cache = cache,
                              .log = o->log,
                              .group = o->group};
  tp_status status = tp__backend_pjrt(&options, backend, err);
  free(cache);
  return status == TP_OK ? TP_OK : tp__at(err, status, "device");
}

static tp_status not_there(const char *name, const tp__candidate *c, tp_error *err)
{
  return tp__fail(err, TP_ERR_DEVICE, "device: %s: %s", name, c->reason);
}

/* ---- choosing; *chosen NULL: the CPU ---- */

static tp_status look_for(const tp__device_options *o, bool tpu, bool gpu, tp__candidates *found,
                          tp_error *err)
{
  const tp__search search = {.root = "",
                             .tpu = tpu,
                             .gpu = gpu,
                             .seconds = TP__DEVICE_PATIENCE,
                             .slice = tp__group_size(o->group) > 1};
  return tp__candidates_search(&search, found, err);
}

static tp_status choose_kind(const tp__device_options *o, tp__device_class kind,
                             tp__candidates *found, const tp__candidate **chosen, tp_error *err)
{
  TP__TRY(look_for(o, kind == TP__CLASS_TPU, kind == TP__CLASS_GPU, found, err));
  *chosen = tp__candidates_usable(found);
  return *chosen != NULL ? TP_OK : not_there(o->name, &found->item[0], err);
}

/* A chip that is there but can't be used is worth a word: the run will take longer. */
static tp_status choose_first(const tp__device_options *o, tp__candidates *found,
                              const tp__candidate **chosen, tp_error *err)
{
  TP__TRY(look_for(o, true, true, found, err));
  for (size_t i = 0; i < found->count; i++) {
    const tp__candidate *c = &found->item[i];
    if (c->reason == NULL) {
      *chosen = c;
      return TP_OK;
    }
    if (c->there)
      tp__warn(o->log, "%s is there but can't be used: %s",
               c->kind == TP__CLASS_TPU ? "a TPU" : "a GPU", c->reason);
  }
  return TP_OK;
}

static tp_status choose_path(const tp__device_options *o, tp__candidates *found,
                             const tp__candidate **chosen, tp_error *err)
{
  TP__TRY(
      tp__candidates_probe(o->name, TP__DEVICE_PATIENCE, tp__group_size(o->group) > 1, found, err));
  *chosen = &found->item[0];
  return (*chosen)->reason == NULL ? TP_OK : not_there(o->name, *chosen, err);
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

static tp_status choose(const tp__device_options *o, const char *name, tp__candidates *found,
                        const tp__candidate **chosen, tp_error *err)
{
  *chosen = NULL;
  TP__TRY(tp__device_check(name, err));
  if (strcmp(name, "auto") == 0) return choose_first(o, found, chosen, err);
  if (strcmp(name, "cpu") == 0) return TP_OK;
  if (strcmp(name, "tpu") == 0) return choose_kind(o, TP__CLASS_TPU, found, chosen, err);
  if (strcmp(name, "gpu") == 0) return choose_kind(o, TP__CLASS_GPU, found, chosen, err);
  return choose_path(o, found, chosen, err);
}

/* Processes that train together have found the same, and nobody's plugin is being tried any more.
 */
static tp_status agree(tp__group *group, const tp__candidate *chosen, tp_status status,
                       tp_error *err)
{
  static const char *const name[] = {
      [TP__CLASS_TPU] = "a TPU", [TP__CLASS_GPU] = "a GPU", [TP__CLASS_CPU] = "a plugin for CPUs"};
  if (tp__group_size(group) == 1) return status;
  int32_t own = chosen != NULL ? (int32_t)chosen->kind : -1, all[TP__PROCESSES_MAX];
  TP__TRY(tp__group_agree(group, status, err));
  TP__TRY(tp__group_gather(group, &own, sizeof own, all, err));
  for (int r = 1; status == TP_OK && r < group->size; r++)
    if (all[r] != all[0])
      status =
          tp__fail(err, TP_ERR_DEVICE,
                   "device: process %d has found %s, process 0 %s; --device says what all take", r,
                   all[r] < 0 ? "none but the CPU" : name[all[r]],
                   all[0] < 0 ? "none but the CPU" : name[all[0]]);
  return tp__group_agree(group, status, err);
}

tp_status tp__device_open(const tp__device_options *o, tp__backend **backend, tp_error *err)
{
  tp__candidates found = {0};
  const tp__candidate *chosen = NULL;
  tp_status status = choose(o, o->name != NULL ? o->name : "auto", &found, &chosen, err);
  status = agree(o->group, chosen, status, err);
  if (status == TP_OK)
    status = chosen != NULL ? open_plugin(o, chosen, backend, err) : open_cpu(o, backend, err);
  tp__candidates_free(&found);
  return status;
}
