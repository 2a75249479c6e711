/* joints - sums over examples, in the order of the chunks whichever thread they are on; see plan.h
 *
 * A joint has one sum and a ticket: the number of the chunk that may add to it now. A thread that
 * comes too early waits. Chunks are handed out in order, so the chunk before is always done or on
 * some thread, and all chunks run the same steps: threads fall into line, one step behind each
 * other, and wait no more. So no partial sums are kept, and the order of additions, hence every
 * bit, is that of one thread.
 */
#include "exec.h"

static bool is_turn(tp__ticket *t, size_t chunk)
{
  return atomic_load_explicit(&t->turn, memory_order_acquire) == chunk;
}

void tp__joint_begin(const tp__frame *f, const tp__step *s)
{
  enum { SPINS = 2000 }; /* tens of microseconds: less than a sleep costs */
  tp__plan *plan = f->plan->program->plan;
  tp__ticket *t = &plan->ticket[s->joint];
  for (int i = 0; i < SPINS; i++)
    if (is_turn(t, f->chunk)) return;
  pthread_mutex_lock(&plan->lock);
  while (!is_turn(t, f->chunk)) pthread_cond_wait(&plan->turned, &plan->lock);
  pthread_mutex_unlock(&plan->lock);
}

void tp__joint_end(const tp__frame *f, const tp__step *s)
{
  tp__plan *plan = f->plan->program->plan;
  if (!f->last) return;
  pthread_mutex_lock(&plan->lock);
  atomic_store_explicit(&plan->ticket[s->joint].turn, f->chunk + 1, memory_order_release);
  pthread_cond_broadcast(&plan->turned);
  pthread_mutex_unlock(&plan->lock);
}
