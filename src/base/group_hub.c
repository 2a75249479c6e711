/* group_hub - the thread of process 0 that joins all processes; see group_net.h */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "group_net.h"

static const double proof_seconds = 5, pulse_seconds = 1;

struct member {
  tp__kv_channel channel;
  bool here, gone; /* has joined; has said farewell */
  double heard;
  char host[TP__NET_HOST];
  tp__buffer given; /* of the exchange that is under way */
  bool whole;
};

struct tp__hub {
  tp__kv_secret secret;
  const tp__log *log;
  unsigned warned; /* a bit for each fault of a stranger */
  int fd, count, joined;
  double timeout, began, pulsed;
  int patience;
  bool over; /* a failure was told to all */
  struct member *member;
  struct pollfd *poll; /* [count + 2] */
  tp__buffer reply;
  int wake[2]; /* its end tells the thread to end */
  pthread_t thread;
  bool started;
};

/* ---- what is told ---- */

static void send_to(tp__hub *h, int rank, uint8_t kind, uint32_t number, const void *value,
                    size_t size)
{
  struct member *m = &h->member[rank];
  if (!m->here || m->gone) return;
  /* Who does not take it is lost, which silence tells later. */
  (void)tp__net_send(&m->channel, kind, number, value, size, tp__now() + 2);
}

/* The sender of a failure hears it last: it then knows that all others have been told. */
static void tell_failure(tp__hub *h, int from, tp_status status, const char *text)
{
  char line[1100];
  int n = from >= 0 ? snprintf(line, sizeof line, "process %d of %d (%s)%s", from, h->count,
                               h->member[from].host, text)
                    : snprintf(line, sizeof line, "%s", text);
  size_t size = n < (int)sizeof line ? (size_t)n : sizeof line - 1;
  if (h->over) return;
  h->over = true;
  for (int r = 0; r < h->count; r++)
    if (r != from) send_to(h, r, TP__NET_FAIL, (uint32_t)status, line, size);
  if (from >= 0) send_to(h, from, TP__NET_FAIL, (uint32_t)status, line, size);
}

static void lose(tp__hub *h, int rank, const char *how)
{
  struct member *m = &h->member[rank];
  close(m->channel.fd);
  m->gone = true;
  tell_failure(h, rank, TP_ERR_DEVICE, how);
}

/* ---- joining ---- */

static void welcome(tp__hub *h)
{
  close(h->fd); /* nobody else is expected */
  h->fd = -1;
  char *hosts = calloc((size_t)h->count, TP__NET_HOST);
  for (int r = 0; hosts != NULL && r < h->count; r++)
    memcpy(hosts + (size_t)r * TP__NET_HOST, h->member[r].host, TP__NET_HOST);
  for (int r = 0; hosts != NULL && r < h->count; r++) {
    h->member[r].heard = tp__now();
    send_to(h, r, TP__NET_READY, 0, hosts, (size_t)h->count * TP__NET_HOST);
  }
  free(hosts);
}

/* Why it can't be one of us; "": it can. */
static void judge(const tp__hub *h, const tp__net_join *join, char why[160])
{
  why[0] = '\0';
  if (join->count != h->count)
    snprintf(why, 160, "it was told that there are %d processes, process 0 that there are %d",
             (int)join->count, h->count);
  else if (join->rank < 0 || join->rank >= h->count)
    snprintf(why, 160, "it has number %d; wanted are 0 to %d", (int)join->rank, h->count - 1);
  else if (h->member[join->rank].here)
    snprintf(why, 160, "there is a process %d already, on %s", (int)join->rank,
             h->member[join->rank].host);
}

/* Once for each: whoever tries again and again does not fill the log. */
static void warn_of(tp__hub *h, tp__kv_fault fault, const struct sockaddr *from, socklen_t size)
{
  char host[64] = "an unknown address";
  bool told = (h->warned >> fault & 1) != 0;
  if (told || (fault != TP__KV_UNPROVEN && fault != TP__KV_STRANGER)) return;
  h->warned |= 1U << fault;
  (void)getnameinfo(from, size, host, sizeof host, NULL, 0, NI_NUMERICHOST);
  if (fault == TP__KV_UNPROVEN)
    tp__warn(h->log, "a process at %s was turned away: it has another secret", host);
  else
    tp__warn(h->log, "a connection from %s was closed: it is no tepal, or another version", host);
}

static void admit(tp__hub *h, int fd, const struct sockaddr *from, socklen_t size)
{
  tp__kv_channel c = {.fd = fd, .server = true};
  tp__kv_message m = {0};
  tp__net_join join;
  char why[160] = "";
  double deadline = tp__now() + proof_seconds;
  tp__kv_fault fault = tp__kv_meet(&c, &h->secret, deadline);
  warn_of(h, fault, from, size);
  bool good = fault == TP__KV_FINE && tp__kv_receive(&c, &m, deadline) == TP__KV_FINE &&
              m.kind == TP__NET_JOIN && m.key_size == 0 && m.value_size == sizeof join;
  if (good) {
    memcpy(&join, m.data, sizeof join);
    judge(h, &join, why);
  }
  free(m.data);
  if (!good || why[0] != '\0') {
    if (good) (void)tp__net_send(&c, TP__NET_FAIL, TP_ERR_USAGE, why, strlen(why), tp__now() + 2);
    close(fd);
    return;
  }
  struct member *member = &h->member[join.rank];
  member->channel = c;
  member->here = true;
  memcpy(member->host, join.host, sizeof member->host);
  member->host[sizeof member->host - 1] = '\0';
  if (++h->joined == h->count) welcome(h);
}

static void accept_one(tp__hub *h)
{
  struct sockaddr_storage from;
  socklen_t size = sizeof from;
  int fd = accept4(h->fd, (struct sockaddr *)&from, &size, SOCK_CLOEXEC);
  if (fd >= 0) admit(h, fd, (struct sockaddr *)&from, size);
}

/* ---- exchanging ---- */

/* Size of the piece from one to another, and where it begins; false: nonsense was sent. */
static bool piece_of(const tp__hub *h, int from, int to, const uint8_t **at, uint64_t *size)
{
  const tp__buffer *given = &h->member[from].given;
  size_t head = (size_t)h->count * sizeof *size, offset = head;
  if (given->size < head) return false;
  for (int r = 0; r <= to; r++) {
    memcpy(size, given->data + (size_t)r * sizeof *size, sizeof *size);
    if (*size > given->size - offset) return false;
    *at = given->data + offset;
    offset += (size_t)*size;
  }
  return true;
}

static tp_status compose(tp__hub *h, int to)
{
  const uint8_t *at = NULL;
  uint64_t size = 0;
  h->reply.size = 0;
  for (int from = 0; from < h->count; from++) {
    if (!piece_of(h, from, to, &at, &size)) return TP_ERR_INTERNAL;
    TP__TRY(tp__buffer_add(&h->reply, &size, sizeof size, NULL));
  }
  for (int from = 0; from < h->count; from++)
    if (piece_of(h, from, to, &at, &size))
      TP__TRY(tp__buffer_add(&h->reply, at, (size_t)size, NULL));
  return TP_OK;
}

/* Everybody has given: each gets what is for it. */
static void deal(tp__hub *h)
{
  for (int r = 0; r < h->count; r++)
    if (!h->member[r].whole) return;
  for (int r = h->count - 1; r >= 0 && !h->over; r--) {
    if (compose(h, r) != TP_OK)
      tell_failure(h, -1, TP_ERR_INTERNAL, "an exchange between processes has failed");
    else if (tp__net_send_parts(&h->member[r].channel, h->reply.data, h->reply.size,
                                tp__now() + h->timeout) != TP__KV_FINE)
      lose(h, r, tp__net_ended);
  }
  for (int r = 0; r < h->count; r++) {
    h->member[r].given.size = 0;
    h->member[r].whole = false;
  }
}

static void take(tp__hub *h, int rank)
{
  struct member *m = &h->member[rank];
  tp__kv_message message;
  if (tp__kv_receive(&m->channel, &message, tp__now() + h->timeout) != TP__KV_FINE) {
    lose(h, rank, tp__net_ended);
    return;
  }
  char text[1024];
  m->heard = tp__now();
  switch (message.kind) {
  case TP__NET_PART:
    if (tp__net_take_part(&m->given, &message, &m->whole, NULL) != TP_OK)
      tell_failure(h, rank, TP_ERR_INTERNAL, ": gives more than process 0 has memory for");
    break;
  case TP__NET_FAIL:
    snprintf(text, sizeof text, ": %.1000s", (const char *)message.data);
    tell_failure(h, rank, (tp_status)message.milliseconds, text);
    break;
  case TP__NET_BYE:
    close(m->channel.fd);
    m->gone = true;
    break;
  default:
    break;
  }
  free(message.data);
  if (m->whole && !h->over) deal(h);
}

/* ---- the thread ---- */

static void watch(tp__hub *h)
{
  char text[160];
  double now = tp__now();
  if (h->joined < h->count && now - h->began > h->patience && !h->over) {
    int r = 0;
    while (h->member[r].here) r++;
    snprintf(text, sizeof text, "process %d of %d has not come within %d seconds", r, h->count,
             h->patience);
    tell_failure(h, -1, TP_ERR_DEVICE, text);
  }
  if (h->joined < h->count || now - h->pulsed < pulse_seconds) return;
  h->pulsed = now;
  for (int r = 0; r < h->count; r++) send_to(h, r, TP__NET_PULSE, 0, NULL, 0);
  tp__group_silence(h->timeout, text);
  for (int r = 0; r < h->count; r++)
    if (!h->member[r].gone && now - h->member[r].heard > h->timeout) lose(h, r, text);
}

static void *hub_main(void *arg)
{
  tp__hub *h = arg;
  for (;;) {
    h->poll[0] = (struct pollfd){.fd = h->wake[0], .events = POLLIN};
    h->poll[1] = (struct pollfd){.fd = h->fd, .events = POLLIN};
    for (int r = 0; r < h->count; r++) {
      const struct member *m = &h->member[r];
      h->poll[r + 2] =
          (struct pollfd){.fd = m->here && !m->gone ? m->channel.fd : -1, .events = POLLIN};
    }
    if (poll(h->poll, (nfds_t)h->count + 2, 200) < 0 && errno != EINTR) return NULL;
    if (h->poll[0].revents != 0) return NULL;
    if (h->fd >= 0 && h->poll[1].revents != 0) accept_one(h);
    for (int r = 0; r < h->count; r++)
      if (h->poll[r + 2].fd >= 0 && h->poll[r + 2].revents != 0 && !h->member[r].gone) take(h, r);
    watch(h);
  }
}

/* ---- life ---- */

tp_status tp__hub_new(const char *address, const tp__kv_secret *secret, int count, int patience,
                      const tp__log *log, tp__hub **hub, tp_error *err)
{
  tp__hub *h = tp__calloc(1, sizeof *h, err);
  int port = 0;
  if (h == NULL) return TP_ERR_INTERNAL;
  h->secret = *secret;
  h->log = log;
  h->count = count;
  h->patience = patience;
  h->began = tp__now();
  h->fd = h->wake[0] = h->wake[1] = -1;
  tp__buffer_init(&h->reply, SIZE_MAX);
  tp_status status = tp__group_patience(&h->timeout, err);
  if (status == TP_OK) {
    h->member = tp__calloc((size_t)count, sizeof *h->member, err);
    h->poll = tp__calloc((size_t)count + 2, sizeof *h->poll, err);
    status = h->member == NULL || h->poll == NULL ? TP_ERR_INTERNAL : TP_OK;
  }
  for (int r = 0; status == TP_OK && r < count; r++) tp__buffer_init(&h->member[r].given, SIZE_MAX);
  if (status == TP_OK) status = tp__kv_listen(address, &h->fd, &port, err);
  if (status == TP_OK &&
      (pipe2(h->wake, O_CLOEXEC) != 0 || pthread_create(&h->thread, NULL, hub_main, h) != 0))
    status = tp__fail(err, TP_ERR_INTERNAL, "no thread or pipe to be had");
  h->started = status == TP_OK;
  if (status == TP_OK)
    *hub = h;
  else
    tp__hub_free(h);
  return status;
}

void tp__hub_free(tp__hub *h)
{
  if (h == NULL) return;
  if (h->wake[1] >= 0) close(h->wake[1]);
  if (h->started) pthread_join(h->thread, NULL);
  for (int r = 0; h->member != NULL && r < h->count; r++) {
    struct member *m = &h->member[r];
    if (m->here && !m->gone) close(m->channel.fd);
    tp__buffer_free(&m->given);
  }
  if (h->wake[0] >= 0) close(h->wake[0]);
  if (h->fd >= 0) close(h->fd);
  tp__buffer_free(&h->reply);
  free(h->member);
  free(h->poll);
  free(h);
}
