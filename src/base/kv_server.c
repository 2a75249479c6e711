/* kv_server - the process that keeps the values; see kv_store.h
 *
 * One thread accepts, one thread serves each connection. A get waits on a condition that every put
 * signals, and looks now and then whether its client is still there.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kv_wire.h"

enum {
  CONNECTIONS_MAX = 512, /* at once, and so the threads */
  STRANGERS_MAX = 64,    /* ... of them such that have not proven the secret */
};
static const double proof_seconds = 5, message_seconds = 60, look_seconds = 0.5;

struct item {
  struct item *next;
  size_t key_size, value_size;
  uint8_t data[]; /* key, value */
};

struct connection {
  struct connection *next;
  tp__kv_server *server;
  int fd; /* -1: it has ended, and its thread can be joined */
  pthread_t thread;
};

struct tp__kv_server {
  tp__kv_secret secret;
  int fd, port;
  int wake[2]; /* a pipe: its end tells the accepting thread to end */
  pthread_t accepting;
  bool started;
  pthread_mutex_t lock;
  pthread_cond_t changed; /* a value more, or closing */
  struct item *first;
  size_t stored; /* bytes */
  struct connection *open;
  int connections, strangers;
  bool closing;
};

/* ---- values, with the lock held ---- */

static const struct item *find(const tp__kv_server *s, const tp__kv_message *m)
{
  for (const struct item *i = s->first; i != NULL; i = i->next)
    if (i->key_size == m->key_size && memcmp(i->data, m->data, m->key_size) == 0) return i;
  return NULL;
}

static tp__kv_answer put(tp__kv_server *s, const tp__kv_message *m)
{
  size_t size = (size_t)m->key_size + m->value_size;
  if (find(s, m) != NULL) return TP__KV_EXISTS;
  if (size > TP__KV_STORE_MAX - s->stored) return TP__KV_FAILED;
  struct item *i = malloc(sizeof *i + size);
  if (i == NULL) return TP__KV_FAILED;
  *i = (struct item){.next = s->first, .key_size = m->key_size, .value_size = m->value_size};
  memcpy(i->data, m->data, size);
  s->first = i;
  s->stored += size + sizeof *i;
  pthread_cond_broadcast(&s->changed);
  return TP__KV_OK;
}

static bool has_left(int fd)
{
  char byte;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Waits at most so long for a change. */
static void wait_changed(tp__kv_server *s, double seconds)
{
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  int64_t nanoseconds = until.tv_nsec + (int64_t)(seconds * 1e9);
  until.tv_sec += nanoseconds / 1000000000;
  until.tv_nsec = nanoseconds % 1000000000;
  pthread_cond_timedwait(&s->changed, &s->lock, &until);
}

/* Items are never changed or removed while connections are open: the pointer stays good. */
static const struct item *get(tp__kv_server *s, const tp__kv_message *m, int fd)
{
  double end = tp__now() + m->milliseconds * 1e-3;
  const struct item *found = NULL;
  while ((found = find(s, m)) == NULL && !s->closing && !has_left(fd)) {
    double left = end - tp__now();
    if (left <= 0) break;
    wait_changed(s, left < look_seconds ? left : look_seconds);
  }
  return found;
}

/* ---- connections ---- */

/* Answers one request; false: the connection ends. */
static bool answer(tp__kv_server *s, tp__kv_channel *c)
{
  tp__kv_message m, reply = {.kind = TP__KV_ANSWER};
  if (tp__kv_receive(c, &m, tp__now() + message_seconds) != TP__KV_FINE) return false;
  bool known = (m.kind == TP__KV_GET || m.kind == TP__KV_PUT) && m.key_size > 0 &&
               m.milliseconds <= TP__KV_WAIT_MAX;
  const struct item *found = NULL;
  tp__kv_answer result = TP__KV_FAILED;
  pthread_mutex_lock(&s->lock);
  if (known && m.kind == TP__KV_PUT) result = put(s, &m);
  if (known && m.kind == TP__KV_GET) {
    found = get(s, &m, c->fd);
    result = found != NULL ? TP__KV_OK : TP__KV_NOT_FOUND;
  }
  pthread_mutex_unlock(&s->lock);
  free(m.data);
  reply.kind = (uint8_t)(TP__KV_ANSWER + result);
  if (found != NULL) {
    reply.value_size = (uint32_t)found->value_size;
    reply.data = (uint8_t *)(uintptr_t)found->data + found->key_size;
  }
  return tp__kv_send(c, &reply, tp__now() + message_seconds) == TP__KV_FINE && known;
}

/* Joins the threads of connections that have ended; those of all, when none can begin any more. */
static void reap(tp__kv_server *s, bool all)
{
  struct connection *ended = NULL;
  pthread_mutex_lock(&s->lock);
  for (struct connection **at = &s->open; *at != NULL;) {
    struct connection *c = *at;
    if (c->fd >= 0 && !all) {
      at = &c->next;
      continue;
    }
    *at = c->next;
    c->next = ended;
    ended = c;
  }
  pthread_mutex_unlock(&s->lock);
  while (ended != NULL) {
    struct connection *next = ended->next;
    pthread_join(ended->thread, NULL);
    free(ended);
    ended = next;
  }
}

static void *serve(void *arg)
{
  struct connection *c = arg;
  tp__kv_server *s = c->server;
  tp__kv_channel channel = {.fd = c->fd, .server = true};
  bool proven = tp__kv_meet(&channel, &s->secret, tp__now() + proof_seconds) == TP__KV_FINE;
  pthread_mutex_lock(&s->lock);
  s->strangers--;
  bool closing = s->closing;
  pthread_mutex_unlock(&s->lock);
  while (proven && !closing && answer(s, &channel)) {
    pthread_mutex_lock(&s->lock);
    closing = s->closing;
    pthread_mutex_unlock(&s->lock);
  }
  pthread_mutex_lock(&s->lock);
  close(c->fd);
  c->fd = -1;
  s->connections--;
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

/* Over the limits a connection is closed at once; its client tries again. */
static void begin(tp__kv_server *s, int fd)
{
  reap(s, false);
  struct connection *c = malloc(sizeof *c);
  pthread_mutex_lock(&s->lock);
  if (c != NULL && s->connections < CONNECTIONS_MAX && s->strangers < STRANGERS_MAX) {
    *c = (struct connection){.next = s->open, .server = s, .fd = fd};
    if (pthread_create(&c->thread, NULL, serve, c) == 0) { /* it counts down under the lock */
      s->open = c;
      s->connections++;
      s->strangers++;
      c = NULL;
      fd = -1;
    }
  }
  pthread_mutex_unlock(&s->lock);
  free(c);
  if (fd >= 0) close(fd);
}

static void *accept_all(void *arg)
{
  tp__kv_server *s = arg;
  for (;;) {
    struct pollfd p[2] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->wake[0], .events = POLLIN}};
    if (poll(p, 2, -1) < 0 && errno != EINTR) return NULL;
    if (p[1].revents != 0) return NULL;
    if ((p[0].revents & POLLIN) == 0) continue;
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
      begin(s, fd);
    else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
      poll(NULL, 0, 100); /* until some connection has ended */
  }
}

/* ---- life ---- */

tp_status tp__kv_server_new(const char *address, const tp__kv_secret *secret,
                            tp__kv_server **server, tp_error *err)
{
  tp__kv_server *s = tp__calloc(1, sizeof *s, err);
  if (s == NULL) return TP_ERR_INTERNAL;
  s->secret = *secret;
  s->fd = s->wake[0] = s->wake[1] = -1;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  tp_status status = tp__kv_listen(address, &s->fd, &s->port, err);
  if (status == TP_OK &&
      (pipe2(s->wake, O_CLOEXEC) != 0 || pthread_create(&s->accepting, NULL, accept_all, s) != 0))
    status = tp__fail(err, TP_ERR_INTERNAL, "key-value store: no thread or pipe to be had");
  s->started = status == TP_OK;
  if (status == TP_OK)
    *server = s;
  else
    tp__kv_server_free(s);
  return status;
}

int tp__kv_server_port(const tp__kv_server *s)
{
  return s->port;
}

void tp__kv_server_free(tp__kv_server *s)
{
  if (s == NULL) return;
  if (s->wake[1] >= 0) close(s->wake[1]);
  if (s->started) pthread_join(s->accepting, NULL);
  pthread_mutex_lock(&s->lock);
  s->closing = true;
  for (struct connection *c = s->open; c != NULL; c = c->next)
    if (c->fd >= 0) shutdown(c->fd, SHUT_RDWR);
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  reap(s, true);
  while (s->first != NULL) {
    struct item *next = s->first->next;
    free(s->first);
    s->first = next;
  }
  if (s->wake[0] >= 0) close(s->wake[0]);
  if (s->fd >= 0) close(s->fd);
  pthread_cond_destroy(&s->changed);
  pthread_mutex_destroy(&s->lock);
  free(s);
}
