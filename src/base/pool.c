/* pool - see pool.h
 *
 * One mutex guards everything but the loop's next index, which is an atomic counter. A thread looks
 * for an index of the current loop first, then for background work, then sleeps on `wake`.
 * `signals` counts wake-ups, so that one between "found nothing" and "sleep" is not lost.
 */
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SOURCES_MAX = 16 };

struct source {
  tp__work_fn fn;
  void *arg;
  int inside; /* threads in fn now */
  bool ending;
};

struct worker {
  tp__pool *pool;
  int id;
  pthread_t thread;
};

struct tp__pool {
  int threads;
  struct worker *workers; /* threads - 1 of them; the owner is worker 0 */
  int started;
  pthread_mutex_t lock;
  pthread_cond_t wake; /* workers and a waiting owner: something changed */
  pthread_cond_t done; /* the owner: the last worker left the loop, or a source */
  uint64_t signals;
  bool quit;
  /* the current loop */
  uint64_t loop; /* its number */
  int in_flight; /* workers inside it */
  bool open;     /* workers may enter */
  tp__index_fn fn;
  void *arg;
  size_t count;
  atomic_size_t next;
  struct source source[SOURCES_MAX];
  int sources;
};

static void take_indices(tp__pool *p, int worker)
{
  for (;;) {
    size_t i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
    if (i >= p->count) return;
    p->fn(p->arg, i, worker);
  }
}

/* Does one unit of background work. Called with the lock held; releases it while working. */
static bool take_background(tp__pool *p, int worker)
{
  for (int i = 0; i < p->sources; i++) {
    struct source *s = &p->source[i];
    if (s->fn == NULL || s->ending) continue;
    s->inside++;
    tp__work_fn fn = s->fn;
    void *arg = s->arg;
    pthread_mutex_unlock(&p->lock);
    bool did = fn(arg, worker);
    pthread_mutex_lock(&p->lock);
    s->inside--;
    if (s->ending && s->inside == 0) pthread_cond_broadcast(&p->done);
    if (did) return true;
  }
  return false;
}

static void *worker_main(void *arg)
{
  struct worker *w = arg;
  tp__pool *p = w->pool;
  uint64_t last = 0;
  pthread_mutex_lock(&p->lock);
  while (!p->quit) {
    if (p->open && p->loop != last) {
      last = p->loop;
      p->in_flight++;
      pthread_mutex_unlock(&p->lock);
      take_indices(p, w->id);
      pthread_mutex_lock(&p->lock);
      if (--p->in_flight == 0) pthread_cond_broadcast(&p->done);
      continue;
    }
    uint64_t seen = p->signals;
    if (take_background(p, w->id)) continue;
    while (p->signals == seen && !p->quit) pthread_cond_wait(&p->wake, &p->lock);
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

/* Processors by affinity, limited by a cgroup's quota (containers). */
int tp__processors(void)
{
  int n = 1;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
  FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
  double quota = 0, period = 0;
  if (f != NULL && fscanf(f, "%lf %lf", &quota, &period) == 2 && period > 0) {
    int limit = (int)(quota / period + 0.5);
    if (limit >= 1 && limit < n) n = limit;
  }
  if (f != NULL) fclose(f);
  return n < 1 ? 1 : n;
}

tp_status tp__pool_new(int threads, tp__pool **pool, tp_error *err)
{
  if (threads < 0 || threads > 1024)
    return tp__fail(err, TP_ERR_USAGE, "threads must be 0 (all processors) to 1024, not %d",
                    threads);
  if (threads == 0) threads = tp__processors();
  tp__pool *p = tp__calloc(1, sizeof *p, err);
  if (p == NULL) return TP_ERR_INTERNAL;
  p->threads = threads;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->wake, NULL);
  pthread_cond_init(&p->done, NULL);
  p->workers = tp__calloc((size_t)threads, sizeof *p->workers, err);
  if (p->workers == NULL) goto failed;
  for (int i = 1; i < threads; i++) {
    struct worker *w = &p->workers[i - 1];
    *w = (struct worker){.pool = p, .id = i};
    if (pthread_create(&w->thread, NULL, worker_main, w) != 0) {
      (void)tp__fail(err, TP_ERR_INTERNAL, "thread %d of %d could not be started", i, threads);
      goto failed;
    }
    p->started++;
  }
  *pool = p;
  return TP_OK;
failed:
  tp__pool_free(p);
  return TP_ERR_INTERNAL;
}

void tp__pool_free(tp__pool *p)
{
  if (p == NULL) return;
  pthread_mutex_lock(&p->lock);
  p->quit = true;
  pthread_cond_broadcast(&p->wake);
  pthread_mutex_unlock(&p->lock);
  for (int i = 0; i < p->started; i++) pthread_join(p->workers[i].thread, NULL);
  pthread_cond_destroy(&p->done);
  pthread_cond_destroy(&p->wake);
  pthread_mutex_destroy(&p->lock);
  free(p->workers);
  free(p);
}

int tp__pool_threads(const tp__pool *pool)
{
  return pool->threads;
}

void tp__pool_for(tp__pool *p, size_t count, tp__index_fn fn, void *arg)
{
  if (count == 0) return;
  if (p->threads == 1 || count == 1) {
    for (size_t i = 0; i < count; i++) fn(arg, i, 0);
    return;
  }
  pthread_mutex_lock(&p->lock);
  p->fn = fn;
  p->arg = arg;
  p->count = count;
  atomic_store_explicit(&p->next, 0, memory_order_relaxed);
  p->loop++;
  p->open = true;
  p->signals++;
  pthread_cond_broadcast(&p->wake);
  pthread_mutex_unlock(&p->lock);
  take_indices(p, 0);
  pthread_mutex_lock(&p->lock);
  p->open = false; /* who has not entered by now has nothing left to do */
  while (p->in_flight > 0) pthread_cond_wait(&p->done, &p->lock);
  pthread_mutex_unlock(&p->lock);
}

tp_status tp__pool_background(tp__pool *p, tp__work_fn fn, void *arg, tp_error *err)
{
  tp_status status = TP_OK;
  pthread_mutex_lock(&p->lock);
  int at = 0;
  while (at < p->sources && p->source[at].fn != NULL) at++;
  if (at == SOURCES_MAX) {
    status = tp__fail(err, TP_ERR_INTERNAL, "more than %d sources of background work", SOURCES_MAX);
  } else {
    p->source[at] = (struct source){.fn = fn, .arg = arg};
    if (at == p->sources) p->sources++;
    p->signals++;
    pthread_cond_broadcast(&p->wake);
  }
  pthread_mutex_unlock(&p->lock);
  return status;
}

void tp__pool_background_end(tp__pool *p, tp__work_fn fn, void *arg)
{
  pthread_mutex_lock(&p->lock);
  for (int i = 0; i < p->sources; i++) {
    struct source *s = &p->source[i];
    if (s->fn != fn || s->arg != arg) continue;
    s->ending = true;
    while (s->inside > 0) pthread_cond_wait(&p->done, &p->lock);
    *s = (struct source){0};
  }
  pthread_mutex_unlock(&p->lock);
}

void tp__pool_wake(tp__pool *p)
{
  pthread_mutex_lock(&p->lock);
  p->signals++;
  pthread_cond_broadcast(&p->wake);
  pthread_mutex_unlock(&p->lock);
}

double tp__pool_wait(tp__pool *p, bool (*ready)(void *arg), void *arg)
{
  double idle = 0;
  pthread_mutex_lock(&p->lock);
  for (;;) {
    uint64_t seen = p->signals;
    pthread_mutex_unlock(&p->lock); /* ready may take locks of its own */
    bool is_ready = ready(arg);
    pthread_mutex_lock(&p->lock);
    if (is_ready) break;
    if (take_background(p, 0)) continue;
    double since = tp__now();
    while (p->signals == seen) pthread_cond_wait(&p->wake, &p->lock);
    idle += tp__now() - since;
  }
  pthread_mutex_unlock(&p->lock);
  return idle;
}
