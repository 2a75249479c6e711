/* probe - whether a plugin makes a client, tried in a child process: it may abort, hang, or print
 * pages to standard error; see search.h
 *
 * The child writes one record, and what the plugin says on standard error goes to a file in memory,
 * because the reason of an abort is only there.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/child.h"
#include "client.h"
#include "search.h"

/* What a child finds out. */
typedef struct finding {
  bool usable;
  tp__device_class kind;
  int devices;
  uint64_t memory;
  char version[256], device_kind[128], reason[1024];
} finding;

typedef struct task {
  const char *path;
  tp__device_class kind;
  bool tpu_offline;
} task;

/* ---- making a client, in the child or here ---- */

static tp__device_class class_of(const char *platform)
{
  if (strcmp(platform, "tpu") == 0) return TP__CLASS_TPU;
  if (strcmp(platform, "cpu") == 0) return TP__CLASS_CPU;
  return TP__CLASS_GPU;
}

/* A probe of a GPU takes none of its memory, where the plugin knows how. */
static tp_status make_client(const tp__plugin *plugin, tp__device_class kind, tp__client **client,
                             tp_error *err)
{
  const tp__client_option little = {.name = "preallocate", .is_switch = true};
  if (kind != TP__CLASS_GPU) return tp__client_new(plugin, NULL, 0, client, err);
  if (tp__client_new(plugin, &little, 1, client, err) == TP_OK) return TP_OK;
  return strstr(err->text, "preallocate") != NULL ? tp__client_new(plugin, NULL, 0, client, err)
                                                  : err->status;
}

static void find_out(const task *t, finding *f)
{
  tp_error err = {0};
  tp__plugin *plugin = NULL;
  tp__client *client = NULL;
  uint64_t used = 0;
  *f = (finding){.kind = t->kind};
  if (tp__plugin_open(t->path, &plugin, &err) == TP_OK &&
      make_client(plugin, t->kind, &client, &err) == TP_OK) {
    f->usable = true;
    f->kind = class_of(tp__client_platform(client));
    f->devices = tp__client_devices(client);
    if (!tp__client_memory(client, 0, &f->memory, &used)) f->memory = 0;
    snprintf(f->version, sizeof f->version, "%s", tp__plugin_version(plugin));
    snprintf(f->device_kind, sizeof f->device_kind, "%s", tp__client_device_kind(client, 0));
  }
  snprintf(f->reason, sizeof f->reason, "%.1000s", err.text);
  tp__client_free(client);
  tp__plugin_close(plugin);
}

static int child_body(void *arg, int in, int out)
{
  const task *t = arg;
  finding f;
  (void)dup2(in, STDERR_FILENO);
  (void)setenv("TPU_LOG_DIR", "disabled", 0); /* no files of a probe in /tmp/tpu_logs */
  if (t->tpu_offline) (void)setenv("TPU_SKIP_MDS_QUERY", "1", 0);
  find_out(t, &f);
  return tp__child_write(out, &f, sizeof f) ? 0 : 1;
}

/* ---- in the parent ---- */

void tp__last_said(int log, char text[512])
{
  char block[4096];
  off_t size = lseek(log, 0, SEEK_END), from = size > 4095 ? size - 4095 : 0;
  ssize_t n = size > 0 ? pread(log, block, 4095, from) : 0;
  text[0] = '\0';
  block[n > 0 ? n : 0] = '\0';
  for (char *line = block, *next; line != NULL && *line != '\0'; line = next) {
    next = strchr(line, '\n');
    if (next != NULL) *next++ = '\0';
    char *said = strstr(line, "] ");
    said = said != NULL && strchr("FEWI", line[0]) != NULL ? said + 2 : line;
    bool fatal = line[0] == 'F' && said != line;
    if (*said != '\0' && said[0] != '@') snprintf(text, 512, "%.400s", said);
    if (fatal) return; /* a stack trace follows */
  }
}

static void probe_in_child(const task *t, double seconds, finding *f)
{
  const tp__child_limits limits = {.wall_seconds = seconds < 1 ? 1 : (unsigned)(seconds + 0.5)};
  tp__child child;
  tp_error err = {0};
  int log = memfd_create("tepal-probe", MFD_CLOEXEC);
  tp_status status = tp__child_start(&child, child_body, (void *)(uintptr_t)t, log, &limits, &err);
  if (status == TP_OK) {
    status = tp__child_read(&child, f, sizeof *f, &err);
    tp__child_end(&child);
    f->version[sizeof f->version - 1] = '\0';
    f->device_kind[sizeof f->device_kind - 1] = '\0';
    f->reason[sizeof f->reason - 1] = '\0';
  }
  if (status != TP_OK) {
    char said[512] = "";
    *f = (finding){.kind = t->kind};
    if (log >= 0) tp__last_said(log, said);
    snprintf(f->reason, sizeof f->reason, "its plugin %.300s, when tried, %.200s%s%s", t->path,
             err.text, said[0] != '\0' ? "; it said last: " : "", said);
  }
  if (log >= 0) close(log);
}

static bool is_loaded(const char *path)
{
  char *full = realpath(path, NULL);
  void *library = full != NULL ? dlopen(full, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (library != NULL) dlclose(library);
  free(full);
  return library != NULL;
}

tp_status tp__probe(tp__candidate *candidate, bool tpu_offline, double seconds, tp_error *err)
{
  const task t = {candidate->path, candidate->kind, tpu_offline};
  finding f = {0};
  if (is_loaded(t.path)) /* it has shown what it can, and a fork of it would not work */
    find_out(&t, &f);
  else
    probe_in_child(&t, seconds, &f);
  candidate->kind = f.kind;
  if (f.usable) {
    candidate->devices = f.devices;
    candidate->memory = f.memory;
    candidate->version = tp__strdup(f.version, err);
    candidate->device_kind = tp__strdup(f.device_kind, err);
    return candidate->version != NULL && candidate->device_kind != NULL ? TP_OK : TP_ERR_INTERNAL;
  }
  candidate->reason = tp__strdup(f.reason, err);
  return candidate->reason != NULL ? TP_OK : TP_ERR_INTERNAL;
}
