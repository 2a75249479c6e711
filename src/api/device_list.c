/* device_list - the devices that training could run on, for people; see tepal.h and device.h */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/pjrt/plugin.h"
#include "device.h"

typedef struct list {
  tp__arena arena;
  tp_device *item;
  size_t count;
} list;

/* A copy in the arena; NULL stays NULL. */
static const char *keep(list *l, const char *text)
{
  return text != NULL ? tp__arena_strdup(&l->arena, text) : NULL;
}

static tp_device *add(list *l, const char *name, tp_error *err)
{
  tp_device *grown = realloc(l->item, (l->count + 1) * sizeof *grown);
  if (grown == NULL) {
    (void)tp__no_memory(err, sizeof *grown);
    return NULL;
  }
  l->item = grown;
  grown[l->count] = (tp_device){.name = keep(l, name)};
  return &grown[l->count++];
}

/* path: the name that was asked for; NULL: the kind is its name. */
static tp_status add_candidates(list *l, const tp__candidates *found, const char *path,
                                tp_error *err)
{
  static const char *const name[] = {
      [TP__CLASS_TPU] = "tpu", [TP__CLASS_GPU] = "gpu", [TP__CLASS_CPU] = "cpu"};
  for (size_t i = 0; i < found->count; i++) {
    const tp__candidate *c = &found->item[i];
    tp_device *d = add(l, path != NULL ? path : name[c->kind], err);
    if (d == NULL) return TP_ERR_INTERNAL;
    d->kind = keep(l, c->device_kind);
    d->version = keep(l, c->version);
    d->plugin = keep(l, c->path);
    d->reason = keep(l, c->reason);
    d->replicas = c->kind == TP__CLASS_CPU ? 1 : c->devices; /* virtual: as many as are wanted */
    d->memory = c->memory;
  }
  return TP_OK;
}

static tp_status add_cpu(list *l, int threads, tp_error *err)
{
  tp_device *d = add(l, "cpu", err);
  tp__pool *pool = NULL;
  tp__backend *backend = NULL;
  tp_error why = {0};
  if (d == NULL) return TP_ERR_INTERNAL;
  TP__TRY(tp__pool_new(threads, &pool, err));
  if (tp__backend_cpu(pool, &backend, &why) == TP_OK) {
    d->kind = keep(l, backend->device);
    d->replicas = backend->replicas;
    d->memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    backend->free(backend);
  } else {
    d->reason = keep(l, why.text);
  }
  tp__pool_free(pool);
  return TP_OK;
}

static tp_status find(list *l, const char *name, int threads, tp_error *err)
{
  bool all = strcmp(name, "auto") == 0, cpu = all || strcmp(name, "cpu") == 0;
  tp__search search = {.root = "",
                       .tpu = all || strcmp(name, "tpu") == 0,
                       .gpu = all || strcmp(name, "gpu") == 0,
                       .seconds = TP__DEVICE_PATIENCE};
  bool path = !search.tpu && !search.gpu && !cpu;
  tp__candidates found = {0};
  TP__TRY(path ? tp__candidates_probe(name, search.seconds, false, &found, err)
               : tp__candidates_search(&search, &found, err));
  tp_status status = add_candidates(l, &found, path ? name : NULL, err);
  tp__candidates_free(&found);
  if (status == TP_OK && cpu) status = add_cpu(l, threads, err);
  bool taken = !all;
  for (size_t i = 0; i < l->count; i++) {
    l->item[i].automatic = !taken && l->item[i].reason == NULL;
    taken = taken || l->item[i].automatic;
  }
  return status;
}

tp_status tp_devices_find(const tp_context_options *options, tp_devices *devices, tp_error *error)
{
  const char *name = options != NULL && options->device != NULL ? options->device : "auto";
  TP__TRY(tp__device_check(name, error));
  list *l = tp__calloc(1, sizeof *l, error);
  if (l == NULL) return TP_ERR_INTERNAL;
  tp_devices found = {.memory = l};
  tp_status status = find(l, name, options != NULL ? options->threads : 0, error);
  found.item = l->item;
  found.count = l->count;
  if (status == TP_OK)
    *devices = found;
  else
    tp_devices_free(&found);
  return status;
}

void tp_devices_free(tp_devices *devices)
{
  list *l = devices->memory;
  if (l != NULL) {
    tp__arena_free(&l->arena);
    free(l->item);
    free(l);
  }
  *devices = (tp_devices){0};
}
