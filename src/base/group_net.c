/* group_net - one process of a group over TCP; see group_net.h
 *
 * A thread receives all that the hub sends and sends pulses; who exchanges waits for it.
 */
#include "group_net.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double pulse_seconds = 1, farewell_seconds = 3, look_seconds = 0.2, stop_seconds = 0.5;

struct net_group {
  tp__group base; /* first */
  tp__hub *hub;   /* of process 0 */
  tp__kv_channel channel;
  double timeout, heard; /* heard: of the hub; its thread's */
  char host[TP__NET_HOST];
  tp__buffer give;
  pthread_t thread;
  bool has_thread;
  pthread_mutex_t sending, lock;
  pthread_cond_t changed;
  /* the lock guards these */
  tp__buffer taken; /* of the exchange that is under way */
  bool whole, broken, quit;
  tp_error why; /* of broken */
};

const char tp__net_ended[] = " has ended without a word: it was killed, or its machine or the "
                             "network is lost; go on with --resume";

/* ---- messages ---- */

tp__kv_fault tp__net_send(tp__kv_channel *c, uint8_t kind, uint32_t number, const void *value,
                          size_t size, double deadline)
{
  tp__kv_message m = {.kind = kind,
                      .value_size = (uint32_t)size,
                      .milliseconds = number,
                      .data = (uint8_t *)(uintptr_t)value};
  return tp__kv_send(c, &m, deadline);
}

tp__kv_fault tp__net_send_parts(tp__kv_channel *c, const void *data, size_t size, double deadline)
{
  const uint8_t *at = data;
  for (;;) {
    size_t part = size < TP__NET_PART_MAX ? size : TP__NET_PART_MAX;
    tp__kv_fault fault = tp__net_send(c, TP__NET_PART, size > part, at, part, deadline);
    if (fault != TP__KV_FINE || size == part) return fault;
    at += part;
    size -= part;
  }
}

tp_status tp__net_take_part(tp__buffer *into, const tp__kv_message *m, bool *whole, tp_error *err)
{
  *whole = m->milliseconds == 0;
  return tp__buffer_add(into, m->data + m->key_size, m->value_size, err);
}

/* ---- the thread ---- */

static void set_broken(struct net_group *n, tp_status status, const char *text)
{
  pthread_mutex_lock(&n->lock);
  if (!n->broken) {
    (void)tp__fail(&n->why, status, "%s", text);
    n->broken = true;
  }
  pthread_cond_broadcast(&n->changed);
  pthread_mutex_unlock(&n->lock);
}

static void lose_hub(struct net_group *n, const char *how)
{
  char text[300];
  snprintf(text, sizeof text, "process 0 of %d (%s)%s", n->base.size, n->host, how);
  set_broken(n, TP_ERR_DEVICE, text);
}

static void take_part(struct net_group *n, const tp__kv_message *m)
{
  tp_error err = {0};
  pthread_mutex_lock(&n->lock);
  tp_status status = tp__net_take_part(&n->taken, m, &n->whole, &err);
  pthread_cond_broadcast(&n->changed);
  pthread_mutex_unlock(&n->lock);
  if (status != TP_OK) set_broken(n, status, err.text);
}

/* False: there is nothing more to come. */
static bool receive(struct net_group *n)
{
  tp__kv_message m;
  if (tp__kv_receive(&n->channel, &m, tp__now() + n->timeout) != TP__KV_FINE) {
    lose_hub(n, tp__net_ended);
    return false;
  }
  n->heard = tp__now();
  if (m.kind == TP__NET_PART) take_part(n, &m);
  if (m.kind == TP__NET_FAIL)
    set_broken(n, (tp_status)m.milliseconds, (const char *)m.data + m.key_size);
  free(m.data);
  return true;
}

static bool is_ending(struct net_group *n)
{
  pthread_mutex_lock(&n->lock);
  bool quit = n->quit;
  pthread_mutex_unlock(&n->lock);
  return quit;
}

static void *net_main(void *arg)
{
  struct net_group *n = arg;
  double pulsed = 0;
  while (!is_ending(n)) {
    struct pollfd p = {.fd = n->channel.fd, .events = POLLIN};
    if (poll(&p, 1, (int)(look_seconds * 1000)) > 0 && !receive(n)) return NULL;
    if (tp__now() - pulsed >= pulse_seconds && pthread_mutex_trylock(&n->sending) == 0) {
      pulsed = tp__now();
      (void)tp__net_send(&n->channel, TP__NET_PULSE, 0, NULL, 0, tp__now() + n->timeout);
      pthread_mutex_unlock(&n->sending);
    }
    char text[160];
    tp__group_silence(n->timeout, text);
    if (tp__now() - n->heard > n->timeout) lose_hub(n, text);
  }
  return NULL;
}

/* ---- the group's functions ---- */

static tp_status net_lost(tp__group *g, tp_error *err)
{
  struct net_group *n = (struct net_group *)g;
  pthread_mutex_lock(&n->lock);
  bool broken = n->broken;
  pthread_mutex_unlock(&n->lock);
  return broken ? tp__group_give_up(g, &n->why, err) : TP_OK;
}

static void wait_changed(struct net_group *n)
{
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec++;
  pthread_cond_timedwait(&n->changed, &n->lock, &until);
}

static tp_status send_all(struct net_group *n, const void *const *give, const size_t *give_size,
                          tp_error *err)
{
  tp__group *g = &n->base;
  n->give.size = 0;
  for (int r = 0; r < g->size; r++) {
    uint64_t size = r != g->rank ? give_size[r] : 0;
    TP__TRY(tp__buffer_add(&n->give, &size, sizeof size, err));
  }
  for (int r = 0; r < g->size; r++)
    if (r != g->rank) TP__TRY(tp__buffer_add(&n->give, give[r], give_size[r], err));
  pthread_mutex_lock(&n->sending);
  /* The thread tells how the connection has ended. */
  (void)tp__net_send_parts(&n->channel, n->give.data, n->give.size, tp__now() + n->timeout);
  pthread_mutex_unlock(&n->sending);
  return TP_OK;
}

/* Pieces from what has come, to their places. */
static tp_status hand_out(struct net_group *n, void *const *take, const size_t *take_size,
                          tp_error *err)
{
  const tp__group *g = &n->base;
  size_t head = (size_t)g->size * sizeof(uint64_t), at = head;
  for (int r = 0; r < g->size; r++) {
    uint64_t size = 0;
    size_t wanted = r != g->rank ? take_size[r] : 0;
    if (n->taken.size >= head) memcpy(&size, n->taken.data + (size_t)r * sizeof size, sizeof size);
    if (n->taken.size < head || size != wanted || size > n->taken.size - at)
      return tp__fail(err, TP_ERR_INTERNAL,
                      "process %d gives %llu bytes, not %zu: is it another version of tepal?", r,
                      (unsigned long long)size, wanted);
    if (wanted > 0) memcpy(take[r], n->taken.data + at, wanted);
    at += wanted;
  }
  return TP_OK;
}

static tp_status net_exchange(tp__group *g, const void *const *give, const size_t *give_size,
                              void *const *take, const size_t *take_size, tp_error *err)
{
  struct net_group *n = (struct net_group *)g;
  TP__TRY(send_all(n, give, give_size, err));
  pthread_mutex_lock(&n->lock);
  while (!n->whole && !n->broken) wait_changed(n);
  tp_status status =
      n->whole ? hand_out(n, take, take_size, err) : tp__group_give_up(g, &n->why, err);
  n->whole = false;
  n->taken.size = 0;
  pthread_mutex_unlock(&n->lock);
  return status;
}

/* The hub tells all, this one last. */
static bool net_fail(tp__group *g, tp_status status, const char *text)
{
  struct net_group *n = (struct net_group *)g;
  double end = tp__now() + farewell_seconds;
  size_t size = strlen(text);
  pthread_mutex_lock(&n->sending);
  tp__kv_fault fault = tp__net_send(&n->channel, TP__NET_FAIL, (uint32_t)status, text,
                                    size < 1000 ? size : 1000, end);
  pthread_mutex_unlock(&n->sending);
  pthread_mutex_lock(&n->lock);
  while (fault == TP__KV_FINE && !n->broken && tp__now() < end) wait_changed(n);
  bool heard = n->broken;
  pthread_mutex_unlock(&n->lock);
  return heard;
}

static void net_free(tp__group *g)
{
  struct net_group *n = (struct net_group *)g;
  pthread_mutex_lock(&n->lock);
  n->quit = true;
  pthread_mutex_unlock(&n->lock);
  if (n->has_thread) pthread_join(n->thread, NULL);
  if (n->has_thread)
    (void)tp__net_send(&n->channel, TP__NET_BYE, 0, NULL, 0, tp__now() + farewell_seconds);
  if (n->channel.fd >= 0) close(n->channel.fd);
  tp__hub_free(n->hub);
  tp__group_lists_free(g);
  tp__buffer_free(&n->give);
  tp__buffer_free(&n->taken);
  pthread_cond_destroy(&n->changed);
  pthread_mutex_destroy(&n->sending);
  pthread_mutex_destroy(&n->lock);
  free(n);
}

/* ---- beginning ---- */

/* Process 0 listens on all interfaces (its name may be that of the loopback), unless the others
 * are on its machine. */
static tp_status serve(struct net_group *n, const tp__net_place *place, const tp__kv_secret *secret,
                       int patience, const tp__log *log, tp_error *err)
{
  char host[256], port[8], where[280];
  TP__TRY(tp__kv_address(place->address, host, port, err));
  bool here = strcmp(host, "127.0.0.1") == 0 || strcmp(host, "localhost") == 0;
  snprintf(where, sizeof where, "%s:%s", here ? host : "", port);
  return tp__hub_new(where, secret, place->count, patience, log, &n->hub, err);
}

static tp_status stopped(tp_error *err)
{
  return tp__fail(err, TP_STOPPED, "stopped while waiting for the other processes");
}

/* Ends the waiting of those who are there; the hub answers when they have been told. */
static tp_status tell_stopped(struct net_group *n, tp_error *err)
{
  tp__kv_message m = {0};
  tp_status status = stopped(err);
  double deadline = tp__now() + stop_seconds;
  n->channel.stop = NULL;
  tp__kv_fault fault =
      tp__net_send(&n->channel, TP__NET_FAIL, TP_STOPPED, err->text, strlen(err->text), deadline);
  if (fault == TP__KV_FINE && tp__kv_receive(&n->channel, &m, deadline) == TP__KV_FINE)
    free(m.data);
  return status;
}

/* Tells who this is and waits for the others. */
static tp_status join(struct net_group *n, int patience, tp_error *err)
{
  tp__group *g = &n->base;
  tp__net_join own = {.rank = g->rank, .count = g->size};
  tp__kv_message m = {0};
  if (gethostname(own.host, sizeof own.host - 1) != 0) snprintf(own.host, sizeof own.host, "?");
  double deadline = tp__now() + patience + farewell_seconds;
  tp__kv_fault fault = tp__net_send(&n->channel, TP__NET_JOIN, 0, &own, sizeof own, deadline);
  if (fault == TP__KV_FINE) fault = tp__kv_receive(&n->channel, &m, deadline);
  tp_status status = TP_OK;
  if (fault == TP__KV_STOPPED)
    status = tell_stopped(n, err);
  else if (fault != TP__KV_FINE)
    status = tp__fail(err, TP_ERR_DEVICE, "waiting for the other processes: %s",
                      tp__kv_fault_text(fault));
  else if (m.kind == TP__NET_FAIL)
    status = tp__fail(err, (tp_status)m.milliseconds, "%s", (const char *)m.data);
  else if (m.kind != TP__NET_READY || m.value_size != (size_t)g->size * TP__NET_HOST)
    status = tp__fail(err, TP_ERR_INTERNAL, "process 0 is another version of tepal");
  for (int r = 0; status == TP_OK && r < g->size; r++) {
    const char *host = (const char *)m.data + (size_t)r * TP__NET_HOST;
    if (strncmp(host, own.host, TP__NET_HOST) != 0) continue;
    g->local++;
    g->local_rank += r < g->rank;
  }
  if (status == TP_OK) snprintf(n->host, sizeof n->host, "%.63s", (const char *)m.data);
  n->channel.stop = NULL;
  free(m.data);
  return status;
}

static void say_waiting(const tp__net_place *place, int patience, const tp__log *log)
{
  if (place->rank == 0)
    tp__say(log, "waiting for %d of %d processes at %s, for up to %d s", place->count - 1,
            place->count, place->address, patience);
  else
    tp__say(log, "waiting for process 0 at %s, for up to %d s", place->address, patience);
}

static tp_status start(struct net_group *n, const tp__net_place *place, const tp__kv_secret *secret,
                       int patience, const tp__group_wait *wait, tp_error *err)
{
  tp__kv *kv = NULL;
  TP__TRY(tp__group_lists(&n->base, err));
  TP__TRY(tp__group_patience(&n->timeout, err));
  say_waiting(place, patience, wait->log);
  if (place->rank == 0) TP__TRY(serve(n, place, secret, patience, wait->log, err));
  TP__TRY(tp__kv_new(place->address, secret, patience * 1000, &kv, err));
  tp_status status = tp__kv_reach(kv, wait->stop, &n->channel, err);
  if (status == TP_STOPPED) status = stopped(err);
  if (status != TP_OK) n->channel.fd = -1;
  tp__kv_free(kv);
  if (status == TP_OK) status = join(n, patience, err);
  n->heard = tp__now();
  if (status == TP_OK && pthread_create(&n->thread, NULL, net_main, n) != 0)
    status = tp__fail(err, TP_ERR_INTERNAL, "a thread could not be started");
  n->has_thread = status == TP_OK;
  return status;
}

tp_status tp__group_net(const tp__net_place *place, const tp__kv_secret *secret, int patience,
                        const tp__group_wait *wait, tp__group **group, tp_error *err)
{
  static const tp__group_wait silent;
  struct net_group *n = tp__calloc(1, sizeof *n, err);
  if (n == NULL) return TP_ERR_INTERNAL;
  n->base = (tp__group){.rank = place->rank,
                        .size = place->count,
                        .free = net_free,
                        .exchange = net_exchange,
                        .fail = net_fail,
                        .lost = net_lost};
  n->channel.fd = -1;
  tp__buffer_init(&n->give, SIZE_MAX);
  tp__buffer_init(&n->taken, SIZE_MAX);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&n->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  pthread_mutex_init(&n->sending, NULL);
  pthread_mutex_init(&n->lock, NULL);
  tp_status status = start(n, place, secret, patience, wait != NULL ? wait : &silent, err);
  if (status == TP_OK)
    *group = &n->base;
  else
    net_free(&n->base);
  return status == TP_OK ? TP_OK
                         : tp__at(err, status, "process %d of %d", place->rank, place->count);
}
