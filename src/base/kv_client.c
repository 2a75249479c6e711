/* kv_client - calls of the key-value store, and the secret; see kv_store.h */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kv_wire.h"

/* Names of machines that are just being started may come late. */
static const double name_seconds = 10;

struct tp__kv {
  char address[272], host[256], port[8];
  tp__kv_secret secret;
  double patience; /* seconds */
};

/* ---- the secret ---- */

static const char advice[] =
    "make one with: umask 077; head -c 32 /dev/urandom | base64 > secret, give the file to every "
    "process and name it in TEPAL_SECRET_FILE";

static tp_status read_file(const char *path, tp__kv_secret *secret, tp_error *err)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return tp__fail(err, TP_ERR_USAGE, "%s: %s", path, strerror(errno));
  struct stat about;
  tp_status status = TP_OK;
  ssize_t n = 0;
  uint8_t more;
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
    status = tp__fail(err, TP_ERR_USAGE, "%s: is no file", path);
  else if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    status = tp__fail(err, TP_ERR_USAGE, "%s: others can open it; chmod 600 it", path);
  else if ((n = read(fd, secret->bytes, sizeof secret->bytes)) < 0)
    status = tp__fail(err, TP_ERR_USAGE, "%s: %s", path, strerror(errno));
  else if (n == sizeof secret->bytes && read(fd, &more, 1) > 0)
    status = tp__fail(err, TP_ERR_USAGE, "%s: is longer than %d bytes", path, TP__KV_SECRET_MAX);
  close(fd);
  if (status != TP_OK) return status;
  if (n > 0 && secret->bytes[n - 1] == '\n') n--;
  secret->size = (size_t)n;
  return TP_OK;
}

tp_status tp__kv_secret_read(tp__kv_secret *secret, tp_error *err)
{
  const char *path = getenv("TEPAL_SECRET_FILE"), *text = getenv("TEPAL_SECRET");
  *secret = (tp__kv_secret){0};
  if (path != NULL && path[0] != '\0') {
    tp_status status = read_file(path, secret, err);
    if (status != TP_OK) return tp__at(err, status, "environment variable TEPAL_SECRET_FILE");
  } else if (text != NULL) {
    secret->size = strlen(text);
    if (secret->size > sizeof secret->bytes)
      return tp__fail(err, TP_ERR_USAGE, "environment variable TEPAL_SECRET: over %d bytes",
                      TP__KV_SECRET_MAX);
    memcpy(secret->bytes, text, secret->size);
  } else {
    return tp__fail(err, TP_ERR_USAGE,
                    "several processes need a secret that outsiders do not know; %s", advice);
  }
  if (secret->size < TP__KV_SECRET_MIN)
    return tp__fail(err, TP_ERR_USAGE, "the secret has %zu bytes, wanted are %d or more; %s",
                    secret->size, TP__KV_SECRET_MIN, advice);
  return TP_OK;
}

tp_status tp__kv_secret_make(tp__kv_secret *secret, tp_error *err)
{
  *secret = (tp__kv_secret){.size = 32};
  if (RAND_bytes(secret->bytes, 32) == 1) return TP_OK;
  return tp__fail(err, TP_ERR_INTERNAL, "there are no random numbers for a secret");
}

/* ---- calls ---- */

tp_status tp__kv_new(const char *address, const tp__kv_secret *secret, int patience_ms, tp__kv **kv,
                     tp_error *err)
{
  tp__kv *k = tp__calloc(1, sizeof *k, err);
  if (k == NULL) return TP_ERR_INTERNAL;
  tp_status status = tp__kv_address(address, k->host, k->port, err);
  if (status != TP_OK) {
    free(k);
    return status;
  }
  snprintf(k->address, sizeof k->address, "%s:%s", k->host, k->port);
  k->secret = *secret;
  k->patience = patience_ms * 1e-3;
  *kv = k;
  return TP_OK;
}

void tp__kv_free(tp__kv *kv)
{
  if (kv == NULL) return;
  OPENSSL_cleanse(&kv->secret, sizeof kv->secret);
  free(kv);
}

/* Until something is there; false: the deadline is over, or a stop is wanted. */
static bool await(struct pollfd *p, const volatile sig_atomic_t *stop, double deadline)
{
  for (;;) {
    double left = deadline - tp__now();
    if (left <= 0 || tp__kv_stopped(stop)) return false;
    if (poll(p, 1, left > 0.2 ? 200 : (int)(left * 1000) + 1) > 0) return true;
  }
}

/* A connection to one address; -1: errno tells. */
static int connect_to(const struct addrinfo *a, const volatile sig_atomic_t *stop, double deadline)
{
  int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
  if (fd < 0) return -1;
  int fault = connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
  if (fault == EINPROGRESS) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    socklen_t size = sizeof fault;
    if (!await(&p, stop, deadline))
      fault = ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &size) != 0)
      fault = errno;
  }
  if (fault == 0) return fd;
  close(fd);
  errno = fault;
  return -1;
}

/* One try at all addresses of the host; the reason of a failure is put into why. *known: the name
 * has an address. */
static int connect_once(const tp__kv *kv, const volatile sig_atomic_t *stop, double deadline,
                        bool *known, char why[128])
{
  struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *list = NULL;
  int fault = getaddrinfo(kv->host[0] != '\0' ? kv->host : NULL, kv->port, &hint, &list), fd = -1;
  *known = fault == 0;
  if (fault != 0) {
    snprintf(why, 128, "%s", gai_strerror(fault));
    return -1;
  }
  for (const struct addrinfo *a = list; a != NULL && fd < 0 && !tp__kv_stopped(stop);
       a = a->ai_next) {
    fd = connect_to(a, stop, deadline);
    if (fd < 0) snprintf(why, 128, "%s", strerror(errno));
  }
  freeaddrinfo(list);
  return fd;
}

/* The server may not be up yet, or have too many at the moment. */
tp_status tp__kv_reach(const tp__kv *kv, const volatile sig_atomic_t *stop, tp__kv_channel *c,
                       tp_error *err)
{
  double deadline = tp__now() + kv->patience, known_by = tp__now() + name_seconds;
  char why[128] = "";
  bool known = true;
  for (int pause = 10;; pause = pause < 500 ? pause * 2 : 500) {
    *c = (tp__kv_channel){.fd = connect_once(kv, stop, deadline, &known, why), .stop = stop};
    tp__kv_fault fault = c->fd >= 0 ? tp__kv_meet(c, &kv->secret, deadline) : TP__KV_CLOSED;
    if (c->fd >= 0 && fault == TP__KV_FINE) return TP_OK;
    if (c->fd >= 0) {
      close(c->fd);
      snprintf(why, sizeof why, "%s", tp__kv_fault_text(fault));
    }
    if (tp__kv_stopped(stop)) return tp__fail(err, TP_STOPPED, "stopped");
    bool final =
        fault == TP__KV_UNPROVEN || fault == TP__KV_STRANGER || (!known && tp__now() > known_by);
    if (final || tp__now() + pause * 1e-3 >= deadline) break;
    poll(NULL, 0, pause);
  }
  return tp__fail(err, TP_ERR_DEVICE, "key-value store at %s: %s", kv->address, why);
}

static tp__kv_answer too_large(const char *what, size_t size, size_t most, tp_error *err)
{
  (void)tp__fail(err, TP_ERR_INTERNAL, "key-value store: a %s of %zu bytes; wanted are 1 to %zu",
                 what, size, most);
  return TP__KV_FAILED;
}

/* seconds: for how long the server may wait before it answers. */
static tp__kv_answer call(tp__kv *kv, const tp__kv_message *request, double seconds,
                          tp__kv_message *reply, tp_error *err)
{
  tp__kv_channel c;
  *reply = (tp__kv_message){0};
  if (tp__kv_reach(kv, NULL, &c, err) != TP_OK) return TP__KV_FAILED;
  tp__kv_fault fault = tp__kv_send(&c, request, tp__now() + 60);
  if (fault == TP__KV_FINE) fault = tp__kv_receive(&c, reply, tp__now() + seconds + 60);
  close(c.fd);
  int answer = reply->kind - TP__KV_ANSWER;
  if (fault != TP__KV_FINE)
    (void)tp__fail(err, TP_ERR_DEVICE, "key-value store at %s: %s", kv->address,
                   tp__kv_fault_text(fault));
  else if (answer < TP__KV_OK || answer >= TP__KV_FAILED)
    (void)tp__fail(err, TP_ERR_DEVICE, "key-value store at %s: it refused (its limit is %d MB)",
                   kv->address, TP__KV_STORE_MAX >> 20);
  else
    return (tp__kv_answer)answer;
  return TP__KV_FAILED;
}

tp__kv_answer tp__kv_get(tp__kv *kv, const void *key, size_t key_size, int timeout_ms, char **value,
                         size_t *size, tp_error *err)
{
  if (key_size == 0 || key_size > TP__KV_KEY_MAX)
    return too_large("key", key_size, TP__KV_KEY_MAX, err);
  int wait = timeout_ms < 0 ? 0 : timeout_ms > TP__KV_WAIT_MAX ? TP__KV_WAIT_MAX : timeout_ms;
  tp__kv_message reply, request = {.kind = TP__KV_GET,
                                   .key_size = (uint32_t)key_size,
                                   .milliseconds = (uint32_t)wait,
                                   .data = (uint8_t *)(uintptr_t)key};
  tp__kv_answer answer = call(kv, &request, wait * 1e-3, &reply, err);
  if (answer == TP__KV_OK && reply.key_size == 0) {
    *value = (char *)reply.data;
    *size = reply.value_size;
    return TP__KV_OK;
  }
  free(reply.data);
  return answer;
}

tp__kv_answer tp__kv_try_get(tp__kv *kv, const void *key, size_t key_size, char **value,
                             size_t *size, tp_error *err)
{
  return tp__kv_get(kv, key, key_size, 0, value, size, err);
}

tp__kv_answer tp__kv_put(tp__kv *kv, const void *key, size_t key_size, const void *value,
                         size_t size, tp_error *err)
{
  if (key_size == 0 || key_size > TP__KV_KEY_MAX)
    return too_large("key", key_size, TP__KV_KEY_MAX, err);
  if (size > TP__KV_VALUE_MAX) return too_large("value", size, TP__KV_VALUE_MAX, err);
  uint8_t *data = tp__calloc(key_size + size, 1, err);
  if (data == NULL) return TP__KV_FAILED;
  memcpy(data, key, key_size);
  if (size > 0) memcpy(data + key_size, value, size);
  tp__kv_message reply, request = {.kind = TP__KV_PUT,
                                   .key_size = (uint32_t)key_size,
                                   .value_size = (uint32_t)size,
                                   .data = data};
  tp__kv_answer answer = call(kv, &request, 0, &reply, err);
  free(data);
  free(reply.data);
  return answer;
}
