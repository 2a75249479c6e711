/* ahead - see ahead.h */
#include "ahead.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ahead_cache.h"
#include "base/child.h"
#include "pjrt_parts.h"
#include "search.h"

struct tp__ahead {
  tp__target target;
  char *plugin, *cache; /* cache may be NULL */
  double seconds;
  const tp__log *log;
  bool (*stopped)(void *user);
  void *user;
  tp__machine machine;
};

enum { MESSAGE_MAX = 1 << 16, DESCRIBE_SECONDS = 60 };

/* What a child is to do. text NULL: only to describe the machine. */
struct task {
  const tp__ahead *ahead;
  const char *text;
  size_t length;
  int replicas;
};

/* What it sends; then so many bytes of the compiler's message. */
struct answer {
  tp_status status;
  bool too_large;
  tp__machine machine;
  tp__executable_info info;
  double seconds;
  uint32_t message_size;
  char error[1600];
};

/* ---- in the child ---- */

static tp_status compile(const struct task *t, tp__topology *topology, struct answer *a,
                         char **message, tp_error *err)
{
  double start = tp__now();
  tp_status status =
      tp__topology_compile(topology, t->text, t->length, t->replicas, &a->info, message, err);
  a->seconds = tp__now() - start;
  a->too_large = status != TP_OK && tp__pjrt_out_of_memory(err);
  return status;
}

static tp_status work(const struct task *t, struct answer *a, char **message, tp_error *err)
{
  tp__plugin *plugin = NULL;
  tp__topology *topology = NULL;
  tp_status status = tp__plugin_open(t->ahead->plugin, &plugin, err);
  if (status == TP_OK) status = tp__topology_new(plugin, &t->ahead->target, &topology, err);
  if (status == TP_OK) status = tp__topology_describe(topology, &a->machine, err);
  if (status == TP_OK && t->text != NULL) status = compile(t, topology, a, message, err);
  tp__topology_free(topology);
  tp__plugin_close(plugin);
  return status;
}

static int child_body(void *arg, int in, int out)
{
  const struct task *t = arg;
  struct answer a = {0};
  tp_error err = {0};
  char *message = NULL;
  (void)dup2(in, STDERR_FILENO);
  (void)setenv("TPU_SKIP_MDS_QUERY", "1", 1);
  (void)setenv("TPU_LOG_DIR", "disabled", 1);
  (void)setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 1);
  a.status = work(t, &a, &message, &err);
  snprintf(a.error, sizeof a.error, "%.1500s", err.text);
  size_t size = message != NULL ? strlen(message) : 0;
  a.message_size = (uint32_t)(size < MESSAGE_MAX ? size : MESSAGE_MAX);
  bool sent = tp__child_write(out, &a, sizeof a) && tp__child_write(out, message, a.message_size);
  free(message);
  return sent ? 0 : 1;
}

/* ---- in the parent ---- */

/* Until the child has something to say, its time is over, or nobody wants it any more. */
static tp_status wait_for(const tp__child *child, const tp__ahead *a, tp_error *err)
{
  struct pollfd wait = {.fd = child->fd, .events = POLLIN};
  while (tp__now() < child->deadline && poll(&wait, 1, 100) <= 0)
    if (a->stopped != NULL && a->stopped(a->user))
      return tp__fail(err, TP_STOPPED, "stopped; what was compiled before is kept");
  return TP_OK;
}

static tp_status read_answer(tp__child *child, struct answer *a, char **message, tp_error *err)
{
  TP__TRY(tp__child_read(child, a, sizeof *a, err));
  a->error[sizeof a->error - 1] = '\0';
  a->machine.kind[sizeof a->machine.kind - 1] = '\0';
  a->machine.version[sizeof a->machine.version - 1] = '\0';
  if (a->message_size > MESSAGE_MAX)
    return tp__fail(err, TP_ERR_DATA, "sent a message of %u bytes", a->message_size);
  *message = tp__calloc(a->message_size + 1, 1, err);
  if (*message == NULL) return TP_ERR_INTERNAL;
  return tp__child_read(child, *message, a->message_size, err);
}

/* The child ended without an answer; err has how. */
static tp_status died(const struct task *t, int log, tp_error *err)
{
  char said[512] = "", how[256];
  if (log >= 0) tp__last_said(log, said);
  snprintf(how, sizeof how, "%.200s", err->text);
  return tp__fail(err, TP_ERR_DEVICE, "PJRT plugin %s %s%s%s", t->ahead->plugin, how,
                  said[0] != '\0' ? "; it said last: " : "", said);
}

/* Status of the child's way to an answer; the answer itself may be a refusal. */
static tp_status ask(const struct task *t, double seconds, struct answer *a, char **message,
                     tp_error *err)
{
  const tp__child_limits limits = {.wall_seconds = (unsigned)seconds};
  tp__child child;
  int log = memfd_create("tepal-plan", MFD_CLOEXEC);
  tp_status status = tp__child_start(&child, child_body, (void *)(uintptr_t)t, log, &limits, err);
  if (status == TP_OK) {
    status = wait_for(&child, t->ahead, err);
    if (status == TP_OK) status = read_answer(&child, a, message, err);
    tp__child_end(&child);
    if (status == TP_ERR_DATA) status = died(t, log, err);
  }
  if (log >= 0) close(log);
  return status;
}

/* ---- opening ---- */

static tp_status no_plugin(const tp__target *target, tp_error *err)
{
  if (!tp__chip_is_gpu(target->chip))
    return tp__fail(err, TP_ERR_DEVICE,
                    "the compiler for TPUs, libtpu.so, was not found: pip install libtpu (no TPU "
                    "is needed for a plan), or set TPU_LIBRARY_PATH to it");
  return tp__fail(err, TP_ERR_DEVICE,
                  "the compiler for NVIDIA GPUs was not found: pip install jax-cuda13-pjrt (no GPU "
                  "is needed for a plan), or set PJRT_NAMES_AND_LIBRARY_PATHS=cuda:FILE");
}

static tp_status find_plugin(tp__ahead *a, const char *given, tp_error *err)
{
  tp__paths found = {0};
  if (given == NULL && tp__chip_is_gpu(a->target.chip)) tp__gpu_plugins("", &found);
  if (given == NULL && !tp__chip_is_gpu(a->target.chip)) tp__tpu_plugins("", &found);
  if (given == NULL && found.count > 0) given = found.item[0];
  tp_status status = given == NULL ? no_plugin(&a->target, err) : TP_OK;
  if (status == TP_OK) {
    a->plugin = tp__strdup(given, err);
    status = a->plugin == NULL ? TP_ERR_INTERNAL : TP_OK;
  }
  tp__paths_free(&found);
  return status;
}

static tp_status describe(tp__ahead *a, tp_error *err)
{
  struct answer answer = {0};
  struct task task = {.ahead = a};
  char *message = NULL;
  tp_status status = ask(&task, DESCRIBE_SECONDS, &answer, &message, err);
  free(message);
  if (status == TP_OK && answer.status != TP_OK)
    status = tp__fail(err, answer.status == TP_ERR_USAGE ? TP_ERR_USAGE : TP_ERR_DEVICE, "%s",
                      answer.error);
  a->machine = answer.machine;
  return status;
}

tp_status tp__ahead_open(const tp__ahead_options *options, tp__ahead **ahead, tp_error *err)
{
  tp__ahead *a = tp__calloc(1, sizeof *a, err);
  if (a == NULL) return TP_ERR_INTERNAL;
  a->target = options->target;
  a->seconds = options->seconds;
  a->log = options->log;
  a->stopped = options->stopped;
  a->user = options->user;
  tp_status status = TP_OK;
  if (options->cache != NULL) {
    a->cache = tp__strdup(options->cache, err);
    status = a->cache == NULL ? TP_ERR_INTERNAL : TP_OK;
  }
  if (status == TP_OK) status = find_plugin(a, options->plugin, err);
  if (status == TP_OK) status = describe(a, err);
  if (status == TP_OK)
    *ahead = a;
  else
    tp__ahead_free(a);
  return status;
}

void tp__ahead_free(tp__ahead *a)
{
  if (a == NULL) return;
  free(a->plugin);
  free(a->cache);
  free(a);
}

const tp__machine *tp__ahead_machine(const tp__ahead *a)
{
  return &a->machine;
}

const tp__target *tp__ahead_target(const tp__ahead *a)
{
  return &a->target;
}

const char *tp__ahead_plugin(const tp__ahead *a)
{
  return a->plugin;
}

/* ---- compiling ---- */

/* The first line of a text, which for a compiler says it all. */
static void first_line(const char *text, char line[512])
{
  snprintf(line, 512, "%.*s", (int)strcspn(text, "\n"), text);
}

/* The compiler looks at its own temporaries; what a run needs besides is for us to add. */
static void judge(const tp__ahead *a, tp__verdict *v)
{
  char need[32], there[32];
  v->need = tp__executable_need(&v->info);
  v->fits = v->need <= a->target.chip->usable;
  if (!v->fits)
    snprintf(v->why, sizeof v->why, "it needs %s, there are %s", tp__bytes_text(need, v->need),
             tp__bytes_text(there, a->target.chip->usable));
}

static tp_status compile_now(tp__ahead *a, const struct task *task, tp__verdict *v, tp_error *err)
{
  struct answer answer = {0};
  char *message = NULL;
  tp_status status = ask(task, a->seconds, &answer, &message, err);
  *v = (tp__verdict){.seconds = answer.seconds, .info = answer.info};
  if (status == TP_OK && answer.too_large) {
    first_line(answer.error, v->why);
  } else if (status == TP_OK && answer.status == TP_OK) {
    judge(a, v);
  } else if (status == TP_OK) {
    status = tp__fail(err, TP_ERR_DEVICE, "%s", answer.error);
    if (message != NULL && message[0] != '\0')
      status = tp__keep_module(task->text, task->length, NULL, message, err);
  } else if (status == TP_ERR_DEVICE) {
    status = tp__keep_module(task->text, task->length, NULL, err->text, err);
  }
  free(message);
  return status;
}

tp_status tp__ahead_compile(tp__ahead *a, const char *what, const char *text, size_t length,
                            int replicas, tp__verdict *verdict, tp_error *err)
{
  const struct task task = {.ahead = a, .text = text, .length = length, .replicas = replicas};
  char key[TP__KEY] = "";
  if (a->cache != NULL) {
    TP__TRY(tp__ahead_key(a, text, length, replicas, key, err));
    if (tp__ahead_recall(a->cache, key, verdict)) return TP_OK;
  }
  tp__say(a->log, "compiling: %s", what);
  tp_status status = compile_now(a, &task, verdict, err);
  if (status != TP_OK) return tp__at(err, status, "%s", what);
  if (a->cache != NULL) tp__ahead_remember(a->cache, key, verdict);
  return TP_OK;
}
