/* group_mpi - a group over MPI; see group.h
 *
 * Messages go between pairs; who waits gives the processor away, for the threads that read ahead.
 * MPI itself would wait for a lost process forever. So a thread sends every other process a pulse
 * each second and listens for theirs: one that has not been heard of for TEPAL_PROCESS_TIMEOUT
 * seconds (30) is lost, and all calls end with TP_ERR_DEVICE. A process that ends by itself says
 * why in a last pulse. After such an end MPI is not finalized, which would wait again: mpirun then
 * ends the rest.
 */
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "group_mpi.h"

/* Requests live longer than the functions that begin them, which that check does not follow.
 * NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

enum { DATA = 1, PULSE = 2, SPINS = 200 };
static const double pulse_seconds = 1, farewell_seconds = 3;

struct pulse {
  int32_t status; /* TP_OK: alive */
  char text[1020];
};

struct peer {
  double heard; /* tp__now() of its last pulse */
  MPI_Request sending, receiving;
  struct pulse out, in;
  bool told; /* the last pulse has gone out */
  char host[64];
};

struct mpi_group {
  tp__group base; /* first */
  bool began;     /* MPI was begun here */
  bool failed;    /* this process has told the others that it ends */
  MPI_Comm data, pulses;
  MPI_Request *request; /* [2 size] */
  struct peer *peer;    /* [size]; lock guards them */
  double timeout;
  pthread_t thread;
  bool has_thread;
  pthread_mutex_t lock;
  atomic_bool quit, broken;
  tp_error why; /* of broken; written before it is set */
};

static void nap(long microseconds)
{
  nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL);
}

/* ---- pulses; with the lock held ---- */

static void set_broken(struct mpi_group *m, tp_status status, int rank, const char *text)
{
  if (atomic_load(&m->broken)) return;
  (void)tp__fail(&m->why, status, "process %d of %d (%s)%s", rank, m->base.size, m->peer[rank].host,
                 text);
  atomic_store(&m->broken, true);
}

static void listen_to(struct mpi_group *m, int rank)
{
  struct peer *p = &m->peer[rank];
  int done = 0;
  MPI_Test(&p->receiving, &done, MPI_STATUS_IGNORE);
  if (!done) {
    char text[160];
    tp__group_silence(m->timeout, text);
    if (tp__now() - p->heard > m->timeout) set_broken(m, TP_ERR_DEVICE, rank, text);
    return;
  }
  p->heard = tp__now();
  p->in.text[sizeof p->in.text - 1] = '\0';
  if (p->in.status != TP_OK) {
    char text[sizeof p->in.text + 4];
    snprintf(text, sizeof text, ": %s", p->in.text);
    set_broken(m, (tp_status)p->in.status, rank, text);
    return; /* it says no more */
  }
  MPI_Irecv(&p->in, sizeof p->in, MPI_BYTE, rank, PULSE, m->pulses, &p->receiving);
}

/* Sends what p->out says, once the pulse before has gone. */
static bool send_pulse(struct mpi_group *m, int rank)
{
  struct peer *p = &m->peer[rank];
  int done = 0;
  MPI_Test(&p->sending, &done, MPI_STATUS_IGNORE);
  if (done) MPI_Isend(&p->out, sizeof p->out, MPI_BYTE, rank, PULSE, m->pulses, &p->sending);
  return done != 0;
}

static void *pulse_main(void *arg)
{
  struct mpi_group *m = arg;
  double sent = 0;
  while (!atomic_load(&m->quit)) {
    bool due = tp__now() - sent >= pulse_seconds;
    if (due) sent = tp__now();
    pthread_mutex_lock(&m->lock);
    for (int r = 0; r < m->base.size; r++) {
      if (r == m->base.rank) continue;
      if (m->peer[r].in.status == TP_OK) listen_to(m, r);
      if (due && m->peer[r].out.status == TP_OK) (void)send_pulse(m, r);
    }
    pthread_mutex_unlock(&m->lock);
    nap(20000);
  }
  return NULL;
}

/* ---- the group's functions ---- */

static tp_status wait_all(struct mpi_group *m, int count, tp_error *err)
{
  for (int spins = 0;; spins++) {
    int done = 0;
    MPI_Testall(count, m->request, &done, MPI_STATUSES_IGNORE);
    if (done) return TP_OK;
    if (atomic_load(&m->broken)) return tp__group_give_up(&m->base, &m->why, err);
    if (spins > SPINS) nap(spins > 20 * SPINS ? 200 : 20);
  }
}

static tp_status mpi_exchange(tp__group *g, const void *const *give, const size_t *give_size,
                              void *const *take, const size_t *take_size, tp_error *err)
{
  struct mpi_group *m = (struct mpi_group *)g;
  int count = 0;
  for (int r = 0; r < g->size; r++) {
    if (r == g->rank) continue;
    if (give_size[r] > INT_MAX || take_size[r] > INT_MAX)
      return tp__fail(err, TP_ERR_INTERNAL, "a message of more than 2 GB to another process");
    if (take_size[r] > 0)
      MPI_Irecv(take[r], (int)take_size[r], MPI_BYTE, r, DATA, m->data, &m->request[count++]);
  }
  for (int r = 0; r < g->size; r++)
    if (r != g->rank && give_size[r] > 0)
      MPI_Isend(give[r], (int)give_size[r], MPI_BYTE, r, DATA, m->data, &m->request[count++]);
  return wait_all(m, count, err);
}

static bool mpi_fail(tp__group *g, tp_status status, const char *text)
{
  struct mpi_group *m = (struct mpi_group *)g;
  m->failed = true;
  if (!m->has_thread) return false;
  double end = tp__now() + farewell_seconds;
  for (int left = g->size - 1; left > 0 && tp__now() < end; nap(1000)) {
    left = 0;
    pthread_mutex_lock(&m->lock);
    for (int r = 0; r < g->size; r++) {
      struct peer *p = &m->peer[r];
      int done = 0;
      if (r == g->rank || p->told) continue;
      MPI_Test(&p->sending, &done, MPI_STATUS_IGNORE);
      bool last = p->out.status != TP_OK;
      if (done && !last) {
        p->out.status = (int32_t)status;
        snprintf(p->out.text, sizeof p->out.text, "%s", text);
        MPI_Isend(&p->out, sizeof p->out, MPI_BYTE, r, PULSE, m->pulses, &p->sending);
      }
      p->told = done && last;
      left += !p->told;
    }
    pthread_mutex_unlock(&m->lock);
  }
  nap(200000); /* the others take it before mpirun sees that this one has ended */
  return m->peer[0].told;
}

static tp_status mpi_lost(tp__group *g, tp_error *err)
{
  struct mpi_group *m = (struct mpi_group *)g;
  return atomic_load(&m->broken) ? tp__group_give_up(g, &m->why, err) : TP_OK;
}

/* Pulses on their way are of no use any more. */
static void end_pulses(struct mpi_group *m)
{
  for (int r = 0; r < m->base.size; r++) {
    struct peer *p = &m->peer[r];
    if (p->receiving != MPI_REQUEST_NULL) {
      MPI_Cancel(&p->receiving);
      MPI_Request_free(&p->receiving);
    }
    if (p->sending != MPI_REQUEST_NULL) MPI_Request_free(&p->sending);
  }
}

static void mpi_free(tp__group *g)
{
  struct mpi_group *m = (struct mpi_group *)g;
  bool sound = !atomic_load(&m->broken) && !m->failed;
  atomic_store(&m->quit, true);
  if (m->has_thread) pthread_join(m->thread, NULL);
  if (m->began && sound) {
    if (m->has_thread) end_pulses(m);
    MPI_Finalize();
  }
  pthread_mutex_destroy(&m->lock);
  tp__group_lists_free(g);
  free(m->request);
  free(m->peer);
  free(m);
}

/* ---- beginning ---- */

static tp_status begin_mpi(struct mpi_group *m, int *level, tp_error *err)
{
  int was_begun = 0, was_ended = 0;
  MPI_Initialized(&was_begun);
  MPI_Finalized(&was_ended);
  if (was_ended)
    return tp__fail(err, TP_ERR_DEVICE, "MPI has ended in this process, and begins only once");
  if (was_begun) {
    MPI_Query_thread(level);
  } else {
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, level) != MPI_SUCCESS)
      return tp__fail(err, TP_ERR_DEVICE, "MPI can't be begun");
    m->began = true;
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &m->data);
  MPI_Comm_dup(MPI_COMM_WORLD, &m->pulses);
  MPI_Comm_rank(m->data, &m->base.rank);
  MPI_Comm_size(m->data, &m->base.size);
  MPI_Comm here;
  MPI_Comm_split_type(m->data, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Comm_size(here, &m->base.local);
  MPI_Comm_rank(here, &m->base.local_rank);
  MPI_Comm_free(&here);
  return TP_OK;
}

static tp_status begin_pulses(struct mpi_group *m, tp_error *err)
{
  TP__TRY(tp__group_patience(&m->timeout, err));
  for (int r = 0; r < m->base.size; r++) {
    struct peer *p = &m->peer[r];
    p->sending = p->receiving = MPI_REQUEST_NULL;
    p->heard = tp__now();
    if (r != m->base.rank)
      MPI_Irecv(&p->in, sizeof p->in, MPI_BYTE, r, PULSE, m->pulses, &p->receiving);
  }
  if (pthread_create(&m->thread, NULL, pulse_main, m) != 0)
    return tp__fail(err, TP_ERR_INTERNAL, "a thread could not be started");
  m->has_thread = true;
  return TP_OK;
}

static tp_status learn_hosts(struct mpi_group *m, tp_error *err)
{
  char name[MPI_MAX_PROCESSOR_NAME] = "", *all = tp__calloc((size_t)m->base.size, sizeof name, err);
  if (all == NULL) return TP_ERR_INTERNAL;
  int length = 0;
  MPI_Get_processor_name(name, &length);
  MPI_Allgather(name, sizeof name, MPI_BYTE, all, sizeof name, MPI_BYTE, m->data);
  for (int r = 0; r < m->base.size; r++)
    snprintf(m->peer[r].host, sizeof m->peer[r].host, "%.63s", all + (size_t)r * sizeof name);
  free(all);
  return TP_OK;
}

tp_status tp__group_mpi(tp__group **group, tp_error *err)
{
  struct mpi_group *m = tp__calloc(1, sizeof *m, err);
  int level = 0;
  if (m == NULL) return TP_ERR_INTERNAL;
  m->base.free = mpi_free;
  m->base.exchange = mpi_exchange;
  m->base.fail = mpi_fail;
  m->base.lost = mpi_lost;
  pthread_mutex_init(&m->lock, NULL);
  tp_status status = begin_mpi(m, &level, err);
  if (status == TP_OK) status = tp__group_lists(&m->base, err);
  if (status == TP_OK) {
    m->request = tp__calloc(2 * (size_t)m->base.size, sizeof *m->request, err);
    m->peer = tp__calloc((size_t)m->base.size, sizeof *m->peer, err);
    status = m->request != NULL && m->peer != NULL ? learn_hosts(m, err) : TP_ERR_INTERNAL;
  }
  if (status == TP_OK && level == MPI_THREAD_MULTIPLE) status = begin_pulses(m, err);
  if (status == TP_OK)
    *group = &m->base;
  else
    mpi_free(&m->base);
  return status;
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */
