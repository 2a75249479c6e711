/* pool - the one thread pool: foreground loops and background work share the same threads.
 *
 *   tp__pool_for     index in, slot out; the caller takes part; returns when all indices are done
 *   background       "one unit of work, if there is any"; run by threads that no loop keeps busy,
 * and by a caller that waits (tp__pool_wait), so that N threads are never more than N busy threads
 *
 * Results must not depend on which worker ran an index. `worker` is 0...threads-1 and unique among
 * the threads that run at the same moment: it selects scratch memory, never a result. The thread
 * that calls tp__pool_for is worker 0; only one thread may call it at a time (the owner of the
 * pool), never from inside a loop or from background work.
 */
#ifndef TP_POOL_H
#define TP_POOL_H

#include "base.h"

typedef struct tp__pool tp__pool;

typedef void (*tp__index_fn)(void *arg, size_t index, int worker);

/* Does one unit of work (about a millisecond) and returns true, or returns false at once when there
 * is none now. Called by several threads at the same time. */
typedef bool (*tp__work_fn)(void *arg, int worker);

/* Processors that this process may use (affinity and cgroup quota counted). */
int tp__processors(void);

/* threads >= 1 in all, the caller's included; 0: as many as tp__processors. Returns: tp__pool_free.
 */
tp_status tp__pool_new(int threads, tp__pool **pool, tp_error *err) TP_CHECKED;
void tp__pool_free(tp__pool *pool);
int tp__pool_threads(const tp__pool *pool);

/* Runs fn for 0...count-1, each once, dynamically shared out. */
void tp__pool_for(tp__pool *pool, size_t count, tp__index_fn fn, void *arg);

/* Adds or removes a source of background work. Removal waits until no thread is inside fn. */
tp_status tp__pool_background(tp__pool *pool, tp__work_fn fn, void *arg, tp_error *err) TP_CHECKED;
void tp__pool_background_end(tp__pool *pool, tp__work_fn fn, void *arg);

/* There may be new background work: wakes the sleeping threads. */
void tp__pool_wake(tp__pool *pool);

/* Waits until ready(arg) is true, doing background work meanwhile. Whoever makes it true calls
 * tp__pool_wake. Returns the seconds of the wait in which this thread had nothing to do. Owner's
 * thread only. */
double tp__pool_wait(tp__pool *pool, bool (*ready)(void *arg), void *arg);

#endif
