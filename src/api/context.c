/* context - see context.h and tepal.h */
#include "context.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "model/weights.h"

void tp_free(void *memory)
{
  free(memory);
}

static void pass_line(void *user, tp__level level, const char *text)
{
  tp_context *c = user;
  if (c->log_fn != NULL && tp__group_rank(c->group) == 0)
    c->log_fn(c->user, level == TP__WARNING ? TP_LEVEL_WARNING : TP_LEVEL_INFO, text);
}

static void pass_progress(void *user, const tp_progress *progress)
{
  tp_context *c = user;
  if (c->progress_fn != NULL && tp__group_rank(c->group) == 0) c->progress_fn(c->user, progress);
}

static bool wants_stop(void *user)
{
  return ((tp_context *)user)->stop != 0;
}

tp_status tp__context_backend(tp_context *c, tp__backend **backend, tp_error *err)
{
  char *folder = NULL;
  tp_status status = TP_OK;
  if (c->backend == NULL) {
    folder = tp__cache_folder(c->cache, NULL);
    tp__device_options o = {.name = c->device_name,
                            .replicas = c->replicas,
                            .cache = folder,
                            .pool = c->pool,
                            .log = &c->log,
                            .group = c->group};
    status = tp__device_open(&o, &c->backend, err);
  }
  free(folder);
  *backend = c->backend;
  return status;
}

/* Processes on one machine that were not given processors of their own share them. */
static int threads_of(int wanted)
{
  int processes = (int)tp__group_started(true), usable = tp__processors();
  if (wanted != 0 || processes == 1 || usable < sysconf(_SC_NPROCESSORS_ONLN)) return wanted;
  return usable > processes ? usable / processes : 1;
}

tp_status tp_context_new(const tp_context_options *options, tp_context **context, tp_error *error)
{
  static const tp_context_options none;
  const tp_context_options *o = options != NULL ? options : &none;
  tp_context *c = tp__calloc(1, sizeof *c, error);
  if (c == NULL) return TP_ERR_INTERNAL;
  c->log_fn = o->log;
  c->progress_fn = o->progress;
  c->user = o->user;
  c->log = (tp__log){.line = pass_line, .user = c};
  tp_status status = tp__pool_new(threads_of(o->threads), &c->pool, error);
  if (status == TP_OK && o->cache != NULL) {
    c->cache = tp__strdup(o->cache, error);
    status = c->cache == NULL ? TP_ERR_INTERNAL : TP_OK;
  }
  c->replicas = o->replicas;
  if (status == TP_OK && o->device != NULL) {
    c->device_name = tp__strdup(o->device, error);
    status = c->device_name == NULL ? TP_ERR_INTERNAL : tp__device_check(o->device, error);
  }
  c->job = (tp__job){.pool = c->pool,
                     .log = &c->log,
                     .progress = pass_progress,
                     .user = c,
                     .stopped = wants_stop,
                     .user_stop = c};
  if (status == TP_OK)
    *context = c;
  else
    tp_context_free(c);
  return status;
}

void tp_context_free(tp_context *c)
{
  if (c == NULL) return;
  if (c->backend != NULL) c->backend->free(c->backend);
  tp__group_free(c->group);
  tp__pool_free(c->pool);
  free(c->cache);
  free(c->device_name);
  free(c);
}

tp_status tp__context_group(tp_context *c, tp_error *err)
{
  if (c->group != NULL || tp__group_started(false) == 1) return TP_OK;
  tp__group_wait wait = {.log = &c->log, .stop = &c->stop};
  TP__TRY(tp__group_open(&wait, &c->group, err));
  if (c->backend != NULL) c->backend->free(c->backend); /* it was opened for this process alone */
  c->backend = NULL;
  return TP_OK;
}

tp_status tp__context_alone(const char *job, tp_error *err)
{
  if (tp__group_started(false) == 1) return TP_OK;
  return tp__fail(
      err, TP_ERR_USAGE,
      "only training is done by several processes: %s without mpirun (or TEPAL_PROCESSES)", job);
}

int tp_context_process(const tp_context *c)
{
  return tp__group_rank(c->group);
}

void tp_context_stop(tp_context *c)
{
  c->stop = 1;
}

const char *tp_context_device(tp_context *c)
{
  tp__backend *b = NULL;
  tp_error error;
  char replicas[64];
  if (tp__context_backend(c, &b, &error) != TP_OK)
    snprintf(c->device, sizeof c->device, "none: %.500s", error.text);
  else
    snprintf(c->device, sizeof c->device, "%s: %s; %s", b->name, b->device,
             tp__replicas_text(b, replicas));
  return c->device;
}

/* ---- pretrained weights ---- */

bool tp_pretrained_at(tp_context *c, size_t index, tp_pretrained *pretrained)
{
  size_t n = 0;
  const tp__pretrained *list = tp__pretrained_list(&n);
  if (index >= n) return false;
  const tp__pretrained *p = &list[index];
  *pretrained = (tp_pretrained){.name = p->name,
                                .file = p->file,
                                .source = p->package != NULL ? p->package : p->url,
                                .checksum = p->sha256 != NULL ? p->sha256 : p->md5,
                                .licence = p->licence};
  char *folder = tp__cache_folder(c->cache, NULL);
  char *path = folder == NULL ? NULL : tp__format("%s/%s", folder, p->file);
  pretrained->cached = path != NULL && tp__is_file(path);
  free(path);
  free(folder);
  return true;
}

tp_status tp_pretrained_get(tp_context *c, const char *name, char **path, tp_error *error)
{
  return tp__pretrained_get(name, c->cache, &c->log, path, error);
}
