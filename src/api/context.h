/* context - the public context: threads, log, progress, stopping; and what this room is.
 *
 *   tepal.h ──> api: context.c, options.c, jobs.c, model.c ──> prepare, train, report, backend
 *
 * The room behind tepal.h: it turns options into calls of the rooms, and joins those that may not
 * know each other (training tells an observer; the observer writes history, events and log.txt).
 * Rules: public functions are here and nowhere else, and hold no algorithm; what can be checked
 * before work is checked first; all memory of options set from text belongs to their struct.
 *
 * Neighbours: all rooms below; above it only users of tepal.h (cli/, examples/).
 */
#ifndef TP_CONTEXT_H
#define TP_CONTEXT_H

#include <signal.h>

#include "backend/backend.h"
#include "base/job.h"

struct tp_context {
  tp__pool *pool;
  tp__backend *backend; /* NULL until a job needs it */
  tp__group *group;     /* of training, once it has begun; NULL: this process alone */
  tp__log log;
  tp__job job;
  tp_log_fn log_fn;
  tp_progress_fn progress_fn;
  void *user;
  char *cache;       /* NULL: the default folder */
  char *device_name; /* NULL: auto */
  int replicas;
  char device[512];
  volatile sig_atomic_t stop;
};

/* The device, opened by the first job that needs one: reading data takes no TPU from anybody. */
tp_status tp__context_backend(tp_context *context, tp__backend **backend, tp_error *err) TP_CHECKED;
/* Finds the processes that train together, before each training; the device is then theirs. */
tp_status tp__context_group(tp_context *context, tp_error *err) TP_CHECKED;
/* Errors: TP_ERR_USAGE: this process is one of several, which would all do that job. */
tp_status tp__context_alone(const char *job, tp_error *err) TP_CHECKED;

#endif
