/* search - which devices there are, and why others are not used; see plugin.h */
#include "search.h"

#include <stdlib.h>
#include <string.h>

static tp_status add(tp__candidates *found, tp__device_class kind, const char *path,
                     tp__candidate **added, tp_error *err)
{
  tp__candidate *grown = realloc(found->item, (found->count + 1) * sizeof *grown);
  if (grown == NULL) return tp__no_memory(err, sizeof *grown);
  found->item = grown;
  tp__candidate *c = &grown[found->count++];
  *c = (tp__candidate){.kind = kind};
  *added = c;
  if (path == NULL) return TP_OK;
  c->path = tp__strdup(path, err);
  return c->path != NULL ? TP_OK : TP_ERR_INTERNAL;
}

static tp_status add_absent(tp__candidates *found, tp__device_class kind, const char *path,
                            const char *reason, tp_error *err)
{
  tp__candidate *c = NULL;
  TP__TRY(add(found, kind, path, &c, err));
  c->reason = tp__strdup(reason, err);
  return c->reason != NULL ? TP_OK : TP_ERR_INTERNAL;
}

/* ---- TPU ---- */

/* Says who has the chips when that may be why a client was not made. */
static tp_status explain_tpu(const char *root, tp__candidate *c, tp_error *err)
{
  char *user = tp__tpu_user(root), *reason = NULL;
  if (user != NULL)
    reason = tp__format("the TPU is in use by %s: %s", user, c->reason);
  else if (strstr(c->reason, "libtpu_lockfile") != NULL)
    reason = tp__format("the TPU is in use by another process, or /tmp/libtpu_lockfile is left "
                        "from one that has ended (then remove it): %s",
                        c->reason);
  else
    reason = tp__strdup(c->reason, err);
  free(user);
  if (reason == NULL) return tp__no_memory(err, strlen(c->reason));
  free(c->reason);
  c->reason = reason;
  return TP_OK;
}

/* Those from the first on. */
static void mark_there(tp__candidates *found, size_t first)
{
  for (size_t i = first; i < found->count; i++) found->item[i].there = true;
}

static tp_status search_tpu(const tp__search *s, tp__candidates *found, tp_error *err)
{
  tp__paths plugins = {0};
  tp__candidate *c = NULL;
  size_t first = found->count;
  tp__tpu_plugins(s->root, &plugins);
  const char *path = plugins.count > 0 ? plugins.item[0] : NULL;
  tp_status status = TP_OK;
  if (tp__tpu_chips(s->root) == 0)
    status = add_absent(found, TP__CLASS_TPU, path,
                        "there is no TPU chip on the PCI bus of this machine", err);
  else if (path == NULL)
    status = add_absent(found, TP__CLASS_TPU, NULL,
                        "there are TPU chips, but no libtpu.so: pip install libtpu, or set "
                        "TPU_LIBRARY_PATH to it",
                        err);
  else
    status = add(found, TP__CLASS_TPU, path, &c, err);
  if (status == TP_OK && c != NULL && !s->slice) status = tp__probe(c, false, s->seconds, err);
  if (status == TP_OK && c != NULL && c->reason != NULL) status = explain_tpu(s->root, c, err);
  if (tp__tpu_chips(s->root) > 0) mark_there(found, first);
  tp__paths_free(&plugins);
  return status;
}

/* ---- GPU ---- */

static tp_status search_gpu(const tp__search *s, tp__candidates *found, tp_error *err)
{
  tp__paths plugins = {0};
  size_t first = found->count;
  tp__gpu_plugins(s->root, &plugins);
  tp_status status = TP_OK;
  if (!tp__gpu_nodes(s->root))
    status = add_absent(found, TP__CLASS_GPU, plugins.count > 0 ? plugins.item[0] : NULL,
                        "there is no NVIDIA GPU, or its driver is not loaded (no /dev/nvidia0, "
                        "/dev/nvidiactl or /dev/dxg)",
                        err);
  else if (plugins.count == 0)
    status = add_absent(found, TP__CLASS_GPU, NULL,
                        "there is an NVIDIA driver, but no PJRT plugin: pip install "
                        "'jax-cuda13-plugin[with-cuda]', or set "
                        "PJRT_NAMES_AND_LIBRARY_PATHS=cuda:FILE",
                        err);
  else
    for (size_t i = 0; status == TP_OK && i < plugins.count; i++) {
      tp__candidate *c = NULL;
      status = add(found, TP__CLASS_GPU, plugins.item[i], &c, err);
      if (status == TP_OK) status = tp__probe(c, false, s->seconds, err);
    }
  if (tp__gpu_nodes(s->root)) mark_there(found, first);
  tp__paths_free(&plugins);
  return status;
}

/* ---- all ---- */

tp_status tp__candidates_search(const tp__search *search, tp__candidates *found, tp_error *err)
{
  tp_status status = TP_OK;
  if (search->tpu) status = search_tpu(search, found, err);
  if (status == TP_OK && search->gpu) status = search_gpu(search, found, err);
  if (status != TP_OK) tp__candidates_free(found);
  return status;
}

tp_status tp__candidates_probe(const char *path, double seconds, bool slice, tp__candidates *found,
                               tp_error *err)
{
  const char *name = strrchr(path, '/');
  bool tpu = strncmp(name != NULL ? name + 1 : path, "libtpu", 6) == 0;
  tp__candidate *c = NULL;
  tp_status status = add(found, tpu ? TP__CLASS_TPU : TP__CLASS_GPU, path, &c, err);
  if (status == TP_OK && !(tpu && slice))
    status = tp__probe(c, tpu && tp__tpu_chips("") == 0, seconds, err);
  if (status == TP_OK && tpu && c->reason != NULL) status = explain_tpu("", c, err);
  if (status != TP_OK) tp__candidates_free(found);
  return status;
}

const tp__candidate *tp__candidates_usable(const tp__candidates *found)
{
  for (size_t i = 0; i < found->count; i++)
    if (found->item[i].reason == NULL) return &found->item[i];
  return NULL;
}

void tp__candidates_free(tp__candidates *found)
{
  for (size_t i = 0; i < found->count; i++) {
    tp__candidate *c = &found->item[i];
    free(c->path);
    free(c->version);
    free(c->device_kind);
    free(c->reason);
  }
  free(found->item);
  *found = (tp__candidates){0};
}
