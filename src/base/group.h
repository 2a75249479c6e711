/* group - the processes that train one network together: who is in it, and what they tell each
 * other.
 *
 * Everything stands on one operation, the exchange: each process gives each other one a piece and
 * takes one. Gathering and summing are made of it, in the order of the processes' numbers and never
 * of arrival: sums have the same bits on all of them, each time.
 *
 * All processes call the same functions in the same order. One that can't go on says so (fail): the
 * others' calls then end with its status, whatever they wait for. The same happens when one has
 * not been heard of for too long.
 *
 * A group of NULL is one process alone: every function takes it. Implementations: group_mpi.c,
 * group_net.c (without MPI), and threads in the tests.
 */
#ifndef TP_GROUP_H
#define TP_GROUP_H

#include <signal.h>

#include "log.h"

enum { TP__PROCESSES_MAX = 1024 };

typedef struct tp__group tp__group;

struct tp__group {
  int rank, size; /* 0 <= rank < size */
  int local;      /* of them on this machine, 1 or more */
  int local_rank; /* 0 <= local_rank < local: this one among them */
  bool over;      /* one of them can't go on: nothing is exchanged any more */
  bool agreed;    /* a failure is known to all, and they are at the same place */
  void (*free)(tp__group *group);
  /* Gives give[r] of give_size[r] bytes to process r and takes take_size[r] bytes from it into
   * take[r], for all r but the own one. What one gives is what the other takes. */
  tp_status (*exchange)(tp__group *group, const void *const *give, const size_t *give_size,
                        void *const *take, const size_t *take_size, tp_error *err);
  /* Tells all others that this process ends with that status; true when process 0 has heard it. */
  bool (*fail)(tp__group *group, tp_status status, const char *text);
  /* For who waits for something else that needs all processes (a device's sum): whether one of them
   * has failed or is lost: its status then, and the group is over. NULL: it can't be known. */
  tp_status (*lost)(tp__group *group, tp_error *err);
  /* for group.c: lists of size pointers and sizes, and room that grows */
  const void **give;
  void **take;
  size_t *give_size, *take_size;
  uint8_t *room;
  size_t room_size;
};

/* For the time in which a process waits for the others: what is told, and what ends it. */
typedef struct tp__group_wait {
  const tp__log *log;                /* NULL: silent; another thread may use it meanwhile */
  const volatile sig_atomic_t *stop; /* becomes not 0: TP_STOPPED; NULL: never */
} tp__group_wait;

static inline int tp__group_rank(const tp__group *group)
{
  return group != NULL ? group->rank : 0;
}
static inline tp_status tp__group_lost(tp__group *group, tp_error *err)
{
  return group != NULL && group->lost != NULL ? group->lost(group, err) : TP_OK;
}
static inline int tp__group_size(const tp__group *group)
{
  return group != NULL ? group->size : 1;
}

/* The processes that mpirun (or another starter of MPI programs) has started, or of which the
 * environment says so (TEPAL_PROCESSES: group_open.c); NULL when this one was started by itself.
 * Errors: TP_ERR_DEVICE: this build has no MPI; TP_ERR_USAGE: the environment is wrong;
 * TP_STOPPED. Returns: tp__group_free. */
tp_status tp__group_open(const tp__group_wait *wait, tp__group **group, tp_error *err) TP_CHECKED;
/* How many processes there are by what the environment says, here: on this machine as far as it is
 * known; 1 without a group. */
long tp__group_started(bool here);
void tp__group_free(tp__group *group);

/* What implementations call: the lists; the seconds after which a silent process is lost
 * (TEPAL_PROCESS_TIMEOUT, else 30); what is said of it, behind its name; and the end of a call that
 * meets a failure of another one, which why tells: process 0 reports it, a loss all do, for process
 * 0 may be the one. */
tp_status tp__group_lists(tp__group *group, tp_error *err) TP_CHECKED;
void tp__group_lists_free(tp__group *group);
tp_status tp__group_patience(double *seconds, tp_error *err) TP_CHECKED;
void tp__group_silence(double seconds, char text[160]);
tp_status tp__group_give_up(tp__group *group, const tp_error *why, tp_error *err) TP_CHECKED;

/* all [size][bytes]: what each process gives, in their order. */
tp_status tp__group_gather(tp__group *group, const void *own, size_t bytes, void *all,
                           tp_error *err) TP_CHECKED;
/* The same for pieces of different sizes: all holds them one behind the other; bytes [size]
 * receives their sizes. all is emptied first. */
tp_status tp__group_gather_any(tp__group *group, const void *own, size_t own_bytes, tp__buffer *all,
                               size_t *bytes, tp_error *err) TP_CHECKED;
/* data [n] becomes the sum over all processes, added in their order. */
tp_status tp__group_sum(tp__group *group, float *data, size_t n, tp_error *err) TP_CHECKED;

/* All processes call it with how they fare: the first one's failure, in their order, becomes
 * everyone's. err then tells it on process 0 and is empty elsewhere: one of them reports. */
tp_status tp__group_agree(tp__group *group, tp_status status, tp_error *err) TP_CHECKED;
/* The same for what can be tried in another way. *mendable: a failure of this process can be
 * mended; becomes whether those of all can. If so, all go on, and err tells the first one
 * everywhere. */
tp_status tp__group_agree_or_mend(tp__group *group, tp_status status, bool *mendable,
                                  tp_error *err) TP_CHECKED;

/* After a failure that only this process may know of: tells the others. err is emptied where
 * process 0 reports it. Does nothing when the failure is known. */
void tp__group_fail(tp__group *group, tp_status status, tp_error *err);
/* The end of a job, after which the next one may begin: a failure reaches everyone in one of the
 * two ways, success and a stop are waited for. */
tp_status tp__group_end(tp__group *group, tp_status status, tp_error *err) TP_CHECKED;

/* Rows first...end of n are those of that process (or replica): as even as can be, the first ones
 * have one more where it does not divide. So size * k replicas, k in each process, have the same
 * rows whether n is dealt to replicas or first to processes: give parts k in the latter case. */
static inline void tp__group_rows(int rank, int size, int parts, int64_t n, int64_t *first,
                                  int64_t *end)
{
  int64_t all = (int64_t)size * parts, base = n / all, more = n % all;
  int64_t from = (int64_t)rank * parts, to = from + parts;
  *first = from * base + (from < more ? from : more);
  *end = to * base + (to < more ? to : more);
}
/* The most rows that one process has of up to n. */
static inline int64_t tp__group_rows_most(int size, int parts, int64_t n)
{
  int64_t first, end;
  tp__group_rows(0, size, parts, n, &first, &end);
  return end;
}

#endif
