/* group_rig - a group whose processes are threads of one test: the exchange is a copy between two
 * barriers. */
#ifndef TP_GROUP_RIG_H
#define TP_GROUP_RIG_H

#include <pthread.h>
#include <string.h>

#include "base/group.h"

enum { GROUP_MAX = 8 };

typedef struct thread_group {
  tp__group base; /* first */
  struct crowd *crowd;
} thread_group;

typedef struct crowd {
  thread_group member[GROUP_MAX];
  pthread_barrier_t barrier;
  int size;
} crowd;

static inline tp_status crowd_exchange(tp__group *g, const void *const *give,
                                       const size_t *give_size, void *const *take,
                                       const size_t *take_size, tp_error *err)
{
  crowd *c = ((thread_group *)g)->crowd;
  tp_status status = TP_OK;
  (void)give;
  (void)give_size;
  pthread_barrier_wait(&c->barrier);
  for (int r = 0; r < g->size; r++) {
    const tp__group *other = &c->member[r].base;
    if (r == g->rank) continue;
    if (other->give_size[g->rank] != take_size[r])
      status = tp__fail(err, TP_ERR_INTERNAL, "process %d gives %zu bytes, process %d takes %zu", r,
                        other->give_size[g->rank], g->rank, take_size[r]);
    else if (take_size[r] > 0)
      memcpy(take[r], other->give[g->rank], take_size[r]);
  }
  pthread_barrier_wait(&c->barrier);
  return status;
}

static inline bool crowd_fail(tp__group *g, tp_status status, const char *text)
{
  (void)g;
  (void)status;
  (void)text;
  return true;
}

static inline crowd *crowd_new(int size)
{
  tp_error err = {0};
  crowd *c = calloc(1, sizeof *c);
  c->size = size;
  pthread_barrier_init(&c->barrier, NULL, (unsigned)size);
  for (int r = 0; r < size; r++) {
    c->member[r] = (thread_group){.crowd = c};
    c->member[r].base.rank = r;
    c->member[r].base.size = c->member[r].base.local = size;
    c->member[r].base.exchange = crowd_exchange;
    c->member[r].base.fail = crowd_fail;
    assert_ok(tp__group_lists(&c->member[r].base, &err));
  }
  return c;
}

static inline void crowd_free(crowd *c)
{
  for (int r = 0; r < c->size; r++) tp__group_lists_free(&c->member[r].base);
  pthread_barrier_destroy(&c->barrier);
  free(c);
}

/* What one process does; arg: crowd_run's, with the process's number. */
typedef void (*crowd_fn)(void *arg, tp__group *group);

struct crowd_job {
  crowd_fn fn;
  void *arg;
  tp__group *group;
};

static inline void *crowd_thread(void *arg)
{
  struct crowd_job *job = arg;
  job->fn(job->arg, job->group);
  return NULL;
}

/* All processes at once; fn must not call what fails a test. */
static inline void crowd_run(crowd *c, crowd_fn fn, void *arg)
{
  pthread_t thread[GROUP_MAX];
  struct crowd_job job[GROUP_MAX];
  for (int r = 0; r < c->size; r++) {
    job[r] = (struct crowd_job){fn, arg, &c->member[r].base};
    assert_int_equal(pthread_create(&thread[r], NULL, crowd_thread, &job[r]), 0);
  }
  for (int r = 0; r < c->size; r++) pthread_join(thread[r], NULL);
}

#endif
