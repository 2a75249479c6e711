/* job - what a long piece of work needs of the caller's context: threads, a log, progress, a wish
 * to stop. */
#ifndef TP_JOB_H
#define TP_JOB_H

#include "log.h"
#include "pool.h"

typedef struct tp__job {
  tp__pool *pool;
  const tp__log *log;
  void (*progress)(void *user, const tp_progress *progress); /* may be NULL */
  void *user;
  bool (*stopped)(void *user_stop); /* true once the caller wants to end; may be NULL */
  void *user_stop;
} tp__job;

static inline bool tp__job_stopped(const tp__job *job)
{
  return job->stopped != NULL && job->stopped(job->user_stop);
}

static inline void tp__job_progress(const tp__job *job, const tp_progress *progress)
{
  if (job->progress != NULL) job->progress(job->user, progress);
}

#endif
