/* kv_wire - bytes with deadlines, proofs and codes; see kv_wire.h */
#include "kv_wire.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 128, LOOK = 200 /* milliseconds between looks at a channel's stop */ };

static const uint8_t magic[8] = {'t', 'e', 'p', 'a', 'l', 'k', 'v', '1'};

const char *tp__kv_fault_text(tp__kv_fault fault)
{
  switch (fault) {
  case TP__KV_FINE:
    return "fine";
  case TP__KV_CLOSED:
    return "the connection was closed";
  case TP__KV_LATE:
    return "no answer in time";
  case TP__KV_STRANGER:
    return "what answers there is no store of this version of tepal";
  case TP__KV_UNPROVEN:
    return "the other side does not know the secret: all processes need the same TEPAL_SECRET";
  case TP__KV_TOO_LARGE:
    return "a key or value over its limit";
  case TP__KV_NO_RESOURCE:
    return "out of memory";
  case TP__KV_STOPPED:
    return "stopped";
  }
  return "unknown";
}

tp_status tp__kv_address(const char *address, char host[256], char port[8], tp_error *err)
{
  const char *colon = strrchr(address, ':');
  const char *begin = address, *end = colon;
  if (colon != NULL && begin[0] == '[' && end > begin && end[-1] == ']') begin++, end--;
  bool fits = colon != NULL && (size_t)(end - begin) < 256 && strlen(colon + 1) < 8;
  char *stop = NULL;
  long number = fits ? strtol(colon + 1, &stop, 10) : -1;
  if (!fits || stop == colon + 1 || *stop != '\0' || number < 0 || number > 65535)
    return tp__fail(err, TP_ERR_USAGE, "\"%s\" is no address; wanted HOST:PORT, as node1:7777",
                    address);
  memcpy(host, begin, (size_t)(end - begin));
  host[end - begin] = '\0';
  snprintf(port, 8, "%ld", number);
  return TP_OK;
}

/* ---- where ---- */

tp_status tp__kv_listen(const char *address, int *fd, int *port, tp_error *err)
{
  char host[256] = "", service[8];
  TP__TRY(tp__kv_address(address, host, service, err));
  struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list = NULL;
  int fault = getaddrinfo(host[0] != '\0' ? host : NULL, service, &hint, &list), reason = 0, s = -1;
  if (fault != 0) return tp__fail(err, TP_ERR_USAGE, "%s: %s", address, gai_strerror(fault));
  for (struct addrinfo *a = list; a != NULL; a = a->ai_next) {
    s = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    int on = 1;
    if (s >= 0) setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (s >= 0 && bind(s, a->ai_addr, a->ai_addrlen) == 0 && listen(s, BACKLOG) == 0) break;
    reason = errno;
    if (s >= 0) close(s);
    s = -1;
  }
  freeaddrinfo(list);
  if (s < 0)
    return tp__fail(err, TP_ERR_DEVICE, "%s: can't serve there: %s", address, strerror(reason));
  union {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
  } bound = {0};
  socklen_t size = sizeof bound;
  getsockname(s, &bound.any, &size);
  *port = ntohs(bound.any.sa_family == AF_INET6 ? bound.six.sin6_port : bound.four.sin_port);
  *fd = s;
  return TP_OK;
}

/* ---- bytes ---- */

static tp__kv_fault wait_for(const tp__kv_channel *c, short events, double deadline)
{
  for (;;) {
    double left = deadline - tp__now();
    if (tp__kv_stopped(c->stop)) return TP__KV_STOPPED;
    if (left <= 0) return TP__KV_LATE;
    struct pollfd p = {.fd = c->fd, .events = events};
    int most = c->stop != NULL ? LOOK : 1000000;
    int ready = poll(&p, 1, left * 1000 > most ? most : (int)(left * 1000) + 1);
    if (ready > 0) return TP__KV_FINE;
    if (ready < 0 && errno != EINTR) return TP__KV_CLOSED;
  }
}

static tp__kv_fault give(const tp__kv_channel *c, const void *data, size_t size, double deadline)
{
  for (const uint8_t *at = data; size > 0;) {
    tp__kv_fault fault = wait_for(c, POLLOUT, deadline);
    if (fault != TP__KV_FINE) return fault;
    ssize_t n = send(c->fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return TP__KV_CLOSED;
    at += n;
    size -= (size_t)n;
  }
  return TP__KV_FINE;
}

static tp__kv_fault take(const tp__kv_channel *c, void *data, size_t size, double deadline)
{
  for (uint8_t *at = data; size > 0;) {
    tp__kv_fault fault = wait_for(c, POLLIN, deadline);
    if (fault != TP__KV_FINE) return fault;
    ssize_t n = recv(c->fd, at, size, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return TP__KV_CLOSED;
    at += n;
    size -= (size_t)n;
  }
  return TP__KV_FINE;
}

/* ---- codes ---- */

struct part {
  const void *data;
  size_t size;
};

static bool hmac(const void *key, size_t key_size, const struct part *part, size_t parts,
                 uint8_t code[TP__KV_HASH])
{
  EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, key, key_size);
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  bool good = pkey != NULL && context != NULL &&
              EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, pkey) == 1;
  for (size_t i = 0; good && i < parts; i++)
    good = part[i].size == 0 || EVP_DigestSignUpdate(context, part[i].data, part[i].size) == 1;
  size_t size = TP__KV_HASH;
  good = good && EVP_DigestSignFinal(context, code, &size) == 1 && size == TP__KV_HASH;
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(pkey);
  return good;
}

/* Code of the secret over what it is for and both nonces. */
static bool prove(const tp__kv_secret *secret, const char *what, const uint8_t *server,
                  const uint8_t *client, uint8_t code[TP__KV_HASH])
{
  struct part part[] = {{what, strlen(what) + 1}, {server, TP__KV_HASH}, {client, TP__KV_HASH}};
  return hmac(secret->bytes, secret->size, part, 3, code);
}

tp__kv_fault tp__kv_meet(tp__kv_channel *c, const tp__kv_secret *secret, double deadline)
{
  uint8_t own[8 + TP__KV_HASH], other[8 + TP__KV_HASH];
  uint8_t mine[TP__KV_HASH], theirs[TP__KV_HASH], got[TP__KV_HASH];
  int on = 1; /* small messages in several pieces: none waits for the other side's receipt */
  (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  memcpy(own, magic, sizeof magic);
  if (RAND_bytes(own + 8, TP__KV_HASH) != 1) return TP__KV_NO_RESOURCE;
  tp__kv_fault fault = give(c, own, sizeof own, deadline);
  if (fault == TP__KV_FINE) fault = take(c, other, sizeof other, deadline);
  if (fault != TP__KV_FINE) return fault;
  if (memcmp(other, magic, sizeof magic) != 0) return TP__KV_STRANGER;
  const uint8_t *server = (c->server ? own : other) + 8, *client = (c->server ? other : own) + 8;
  bool made = prove(secret, "tepal kv client", server, client, c->server ? theirs : mine) &&
              prove(secret, "tepal kv server", server, client, c->server ? mine : theirs) &&
              prove(secret, "tepal kv session", server, client, c->session);
  if (!made) return TP__KV_NO_RESOURCE;
  /* The client shows first; a server tells a stranger nothing that is made with the secret. */
  if (!c->server) fault = give(c, mine, sizeof mine, deadline);
  if (fault == TP__KV_FINE) fault = take(c, got, sizeof got, deadline);
  if (fault == TP__KV_CLOSED && !c->server) return TP__KV_UNPROVEN;
  if (fault != TP__KV_FINE) return fault;
  if (CRYPTO_memcmp(got, theirs, sizeof got) != 0) return TP__KV_UNPROVEN;
  return c->server ? give(c, mine, sizeof mine, deadline) : TP__KV_FINE;
}

/* ---- messages ---- */

static void store32(uint8_t *to, uint32_t v)
{
  for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t load32(const uint8_t *from)
{
  uint32_t v = 0;
  for (int i = 0; i < 4; i++) v = v << 8 | from[i];
  return v;
}

static bool code_of(const tp__kv_channel *c, bool from_server, uint64_t number, const uint8_t *head,
                    const uint8_t *data, size_t size, uint8_t code[TP__KV_HASH])
{
  uint8_t place[9] = {from_server ? 'S' : 'C'};
  store32(place + 1, (uint32_t)(number >> 32));
  store32(place + 5, (uint32_t)number);
  struct part part[] = {{place, sizeof place}, {head, TP__KV_HEAD}, {data, size}};
  return hmac(c->session, sizeof c->session, part, 3, code);
}

tp__kv_fault tp__kv_send(tp__kv_channel *c, const tp__kv_message *m, double deadline)
{
  uint8_t head[TP__KV_HEAD] = {m->kind}, code[TP__KV_HASH];
  size_t size = (size_t)m->key_size + m->value_size;
  store32(head + 1, m->key_size);
  store32(head + 5, m->value_size);
  store32(head + 9, m->milliseconds);
  if (!code_of(c, c->server, c->sent++, head, m->data, size, code)) return TP__KV_NO_RESOURCE;
  tp__kv_fault fault = give(c, head, sizeof head, deadline);
  if (fault == TP__KV_FINE) fault = give(c, m->data, size, deadline);
  return fault == TP__KV_FINE ? give(c, code, sizeof code, deadline) : fault;
}

tp__kv_fault tp__kv_receive(tp__kv_channel *c, tp__kv_message *m, double deadline)
{
  uint8_t head[TP__KV_HEAD], code[TP__KV_HASH], got[TP__KV_HASH];
  *m = (tp__kv_message){0};
  tp__kv_fault fault = take(c, head, sizeof head, deadline);
  if (fault != TP__KV_FINE) return fault;
  m->kind = head[0];
  m->key_size = load32(head + 1);
  m->value_size = load32(head + 5);
  m->milliseconds = load32(head + 9);
  if (m->key_size > TP__KV_KEY_MAX || m->value_size > TP__KV_VALUE_MAX) return TP__KV_TOO_LARGE;
  size_t size = (size_t)m->key_size + m->value_size;
  m->data = malloc(size + 1);
  if (m->data == NULL) return TP__KV_NO_RESOURCE;
  m->data[size] = '\0';
  fault = take(c, m->data, size, deadline);
  if (fault == TP__KV_FINE) fault = take(c, got, sizeof got, deadline);
  if (fault == TP__KV_FINE && !code_of(c, !c->server, c->received++, head, m->data, size, code))
    fault = TP__KV_NO_RESOURCE;
  if (fault == TP__KV_FINE && CRYPTO_memcmp(got, code, sizeof code) != 0) fault = TP__KV_UNPROVEN;
  if (fault == TP__KV_FINE) return fault;
  free(m->data);
  m->data = NULL;
  return fault;
}
