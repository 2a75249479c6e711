/* Proves the key-value store: what four processes tell each other, waiting, refusing a second put,
 * limits; that nobody gets in without the secret, that the secret is never sent, that a changed
 * byte is noticed, and that strangers who send garbage or nothing neither crash nor block it. What
 * is expected follows from kv_store.h. */
#include "base/kv_store.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../testing.h"

static tp__kv_secret secret_of(const char *text)
{
  tp__kv_secret s = {.size = strlen(text)};
  memcpy(s.bytes, text, s.size);
  return s;
}

static const char right[] = "correct horse battery staple";

static tp__kv_server *serve(int *port)
{
  tp_error err = {0};
  tp__kv_secret secret = secret_of(right);
  tp__kv_server *server = NULL;
  assert_ok(tp__kv_server_new("127.0.0.1:0", &secret, &server, &err));
  *port = tp__kv_server_port(server);
  assert_true(*port > 0);
  return server;
}

static tp__kv *client(int port, const char *text)
{
  tp_error err = {0};
  tp__kv_secret secret = secret_of(text);
  tp__kv *kv = NULL;
  char address[32];
  snprintf(address, sizeof address, "127.0.0.1:%d", port);
  assert_ok(tp__kv_new(address, &secret, 20000, &kv, &err));
  return kv;
}

static void expect(tp__kv *kv, const char *key, const char *wanted)
{
  tp_error err = {0};
  char *value = NULL;
  size_t size = 0;
  if (tp__kv_get(kv, key, strlen(key), 20000, &value, &size, &err) != TP__KV_OK)
    fail_msg("%s: %s", key, err.text);
  assert_int_equal(size, strlen(wanted));
  assert_string_equal(value, wanted);
  free(value);
}

static int connect_raw(int port)
{
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
  return fd;
}

/* ---- what it is for ---- */

/* One of four: tells its name, waits for all names, and checks them. Exit code 0: all right. */
static int one_of_four(int port, int rank)
{
  tp_error err = {0};
  tp__kv *kv = client(port, right);
  char key[32], value[32];
  snprintf(key, sizeof key, "name/%d", rank);
  snprintf(value, sizeof value, "process %d", rank);
  if (rank == 3) poll(NULL, 0, 200); /* the others have to wait */
  if (tp__kv_put(kv, key, strlen(key), value, strlen(value), &err) != TP__KV_OK) return 1;
  for (int i = 0; i < 4; i++) {
    char *got = NULL;
    size_t size = 0;
    snprintf(key, sizeof key, "name/%d", i);
    snprintf(value, sizeof value, "process %d", i);
    if (tp__kv_get(kv, key, strlen(key), 20000, &got, &size, &err) != TP__KV_OK) return 2;
    if (size != strlen(value) || strcmp(got, value) != 0) return 3;
    free(got);
  }
  int first = (int)tp__kv_put(kv, "first", 5, key, strlen(key), &err); /* one of them is it */
  tp__kv_free(kv);
  return first == TP__KV_OK ? 10 : first == TP__KV_EXISTS ? 0 : 4;
}

/* The processes are forked before the server has threads: one that holds a lock of libcrypto at
 * that moment would leave it locked in the child for ever. */
static void test_four_processes(void **state)
{
  (void)state;
  int port, first = 0, way[2];
  pid_t child[4];
  assert_int_equal(pipe(way), 0);
  for (int i = 0; i < 4; i++) {
    child[i] = fork();
    if (child[i] == 0)
      _exit(read(way[0], &port, sizeof port) == sizeof port ? one_of_four(port, i) : 5);
  }
  tp__kv_server *server = serve(&port);
  for (int i = 0; i < 4; i++) assert_int_equal(write(way[1], &port, sizeof port), (int)sizeof port);
  close(way[0]);
  close(way[1]);
  for (int i = 0; i < 4; i++) {
    int how = 0;
    assert_int_equal(waitpid(child[i], &how, 0), child[i]);
    assert_true(WIFEXITED(how));
    first += WEXITSTATUS(how) == 10;
    if (WEXITSTATUS(how) != 10) assert_int_equal(WEXITSTATUS(how), 0);
  }
  assert_int_equal(first, 1);
  tp__kv_server_free(server);
}

struct teller {
  tp__kv *kv;
  const char *key;
  tp__kv_answer answer;
};

static void *tell(void *arg)
{
  struct teller *t = arg;
  tp_error err;
  t->answer = tp__kv_put(t->kv, t->key, strlen(t->key), "here", 4, &err);
  return NULL;
}

/* Threads that share one client. */
static void test_threads(void **state)
{
  (void)state;
  int port;
  tp__kv_server *server = serve(&port);
  tp__kv *kv = client(port, right);
  static const char *const key[8] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  struct teller teller[8];
  pthread_t thread[8];
  for (int i = 0; i < 8; i++) {
    teller[i] = (struct teller){.kv = kv, .key = key[i]};
    assert_int_equal(pthread_create(&thread[i], NULL, tell, &teller[i]), 0);
  }
  for (int i = 0; i < 8; i++) expect(kv, key[i], "here"); /* waits for those not there yet */
  for (int i = 0; i < 8; i++) pthread_join(thread[i], NULL);
  for (int i = 0; i < 8; i++) assert_int_equal(teller[i].answer, TP__KV_OK);
  tp__kv_free(kv);
  tp__kv_server_free(server);
}

static void test_answers(void **state)
{
  (void)state;
  int port;
  tp_error err = {0};
  char *value = NULL;
  size_t size = 7;
  tp__kv_server *server = serve(&port);
  tp__kv *kv = client(port, right);
  assert_int_equal(tp__kv_try_get(kv, "k", 1, &value, &size, &err), TP__KV_NOT_FOUND);
  assert_int_equal(tp__kv_get(kv, "k", 1, 30, &value, &size, &err), TP__KV_NOT_FOUND);
  assert_null(value);
  assert_int_equal(size, 7);
  assert_int_equal(tp__kv_put(kv, "k", 1, "one", 3, &err), TP__KV_OK);
  assert_int_equal(tp__kv_put(kv, "k", 1, "two", 3, &err), TP__KV_EXISTS);
  expect(kv, "k", "one");
  assert_int_equal(tp__kv_put(kv, "empty", 5, NULL, 0, &err), TP__KV_OK);
  expect(kv, "empty", "");
  assert_int_equal(tp__kv_put(kv, "a\0b", 3, "\0\1", 2, &err), TP__KV_OK);
  assert_int_equal(tp__kv_try_get(kv, "a", 1, &value, &size, &err), TP__KV_NOT_FOUND);
  assert_int_equal(tp__kv_try_get(kv, "a\0b", 3, &value, &size, &err), TP__KV_OK);
  assert_int_equal(size, 2);
  assert_memory_equal(value, "\0\1", 3);
  free(value);
  size_t large = (size_t)TP__KV_VALUE_MAX + 1;
  char *much = calloc(large, 1);
  assert_int_equal(tp__kv_put(kv, "large", 5, much, large, &err), TP__KV_FAILED);
  assert_non_null(strstr(err.text, "16777216"));
  assert_int_equal(tp__kv_put(kv, "", 0, much, 1, &err), TP__KV_FAILED);
  assert_int_equal(tp__kv_put(kv, "large", 5, much, large - 1, &err), TP__KV_OK);
  value = NULL;
  assert_int_equal(tp__kv_try_get(kv, "large", 5, &value, &size, &err), TP__KV_OK);
  assert_int_equal(size, large - 1);
  free(value);
  free(much);
  tp__kv_free(kv);
  tp__kv_server_free(server);
}

/* All that may be stored, and no byte more. */
static void test_full(void **state)
{
  (void)state;
  int port, stored = 0;
  tp_error err = {0};
  tp__kv_server *server = serve(&port);
  tp__kv *kv = client(port, right);
  size_t size = TP__KV_VALUE_MAX;
  char *much = calloc(size, 1);
  tp__kv_answer answer = TP__KV_OK;
  for (char key = 'a'; key <= 'z' && answer == TP__KV_OK; key++) {
    answer = tp__kv_put(kv, &key, 1, much, size, &err);
    stored += answer == TP__KV_OK;
  }
  assert_int_equal(answer, TP__KV_FAILED);
  assert_non_null(strstr(err.text, "its limit is 256 MB"));
  assert_int_equal(stored, 15);
  assert_int_equal(tp__kv_put(kv, "small", 5, much, 10, &err), TP__KV_OK);
  free(much);
  tp__kv_free(kv);
  tp__kv_server_free(server);
}

/* ---- who may not ---- */

static void test_wrong_secret(void **state)
{
  (void)state;
  int port;
  tp_error err = {0};
  tp__kv_server *server = serve(&port);
  tp__kv *kv = client(port, "correct horse battery stapl3");
  assert_int_equal(tp__kv_put(kv, "k", 1, "v", 1, &err), TP__KV_FAILED);
  assert_non_null(strstr(err.text, "does not know the secret"));
  assert_int_equal(err.status, TP_ERR_DEVICE);
  tp__kv_free(kv);
  kv = client(port, right);
  char *value = NULL;
  size_t size;
  assert_int_equal(tp__kv_try_get(kv, "k", 1, &value, &size, &err), TP__KV_NOT_FOUND);
  tp__kv_free(kv);
  tp__kv_server_free(server);
}

static void test_nobody_there(void **state)
{
  (void)state;
  tp_error err = {0};
  int port;
  tp__kv_server *server = serve(&port);
  tp__kv_server_free(server);
  tp__kv *kv = NULL;
  tp__kv_secret secret = secret_of(right);
  char address[32];
  snprintf(address, sizeof address, "127.0.0.1:%d", port);
  assert_ok(tp__kv_new(address, &secret, 100, &kv, &err));
  assert_int_equal(tp__kv_put(kv, "k", 1, "v", 1, &err), TP__KV_FAILED);
  assert_non_null(strstr(err.text, "refused"));
  tp__kv_free(kv);
}

/* A relay between a client and the server that keeps what passes and may change one byte. */
struct relay {
  int listening, port, to_port;
  long flip; /* which byte of the client's to change; -1: none */
  uint8_t seen[1 << 16];
  size_t n;
};

static void *relay_one(void *arg)
{
  struct relay *r = arg;
  int near = accept(r->listening, NULL, NULL), far = connect_raw(r->to_port);
  long from_client = 0;
  for (;;) {
    struct pollfd p[2] = {{.fd = near, .events = POLLIN}, {.fd = far, .events = POLLIN}};
    if (poll(p, 2, 20000) <= 0) break;
    int side = p[0].revents != 0 ? 0 : 1;
    uint8_t bytes[4096];
    ssize_t n = recv(p[side].fd, bytes, sizeof bytes, 0);
    if (n <= 0) break;
    for (ssize_t i = 0; i < n; i++) {
      if (r->n < sizeof r->seen) r->seen[r->n++] = bytes[i];
      if (side == 0 && from_client++ == r->flip) bytes[i] ^= 1;
    }
    if (send(p[1 - side].fd, bytes, (size_t)n, MSG_NOSIGNAL) != n) break;
  }
  close(near);
  close(far);
  return NULL;
}

static tp__kv_answer put_through(struct relay *r, int to_port, long flip, tp_error *err)
{
  *r = (struct relay){.to_port = to_port, .flip = flip};
  struct sockaddr_in at = {.sin_family = AF_INET};
  socklen_t size = sizeof at;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  r->listening = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(r->listening, (struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(listen(r->listening, 4), 0);
  assert_int_equal(getsockname(r->listening, (struct sockaddr *)&at, &size), 0);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, relay_one, r), 0);
  tp__kv *kv = client(ntohs(at.sin_port), right);
  tp__kv_answer answer = tp__kv_put(kv, "key", 3, "value", 5, err);
  tp__kv_free(kv);
  pthread_join(thread, NULL);
  close(r->listening);
  return answer;
}

/* The client's bytes: hello 40, proof 32, head 13, key 3, value 5, code 32. */
static void test_changed_bytes(void **state)
{
  (void)state;
  static struct relay r;
  tp_error err = {0};
  int port;
  tp__kv_server *server = serve(&port);
  const long flips[] = {0, 8, 39, 40, 71, 72, 73, 77, 84, 85, 88, 92, 93, 124};
  for (size_t i = 0; i < sizeof flips / sizeof flips[0]; i++)
    if (put_through(&r, port, flips[i], &err) != TP__KV_FAILED)
      fail_msg("byte %ld was changed, and nobody noticed", flips[i]);
  tp__kv *kv = client(port, right);
  char *value = NULL;
  size_t size;
  assert_int_equal(tp__kv_try_get(kv, "key", 3, &value, &size, &err), TP__KV_NOT_FOUND);
  assert_int_equal(put_through(&r, port, -1, &err), TP__KV_OK);
  assert_true(r.n >= 2 * 72 + 125 - 72);
  assert_non_null(memmem(r.seen, r.n, "value", 5));
  assert_null(memmem(r.seen, r.n, right, 8)); /* no part of the secret */
  expect(kv, "key", "value");
  tp__kv_free(kv);
  tp__kv_server_free(server);
}

/* More strangers than may be in at once: some silent, some with garbage, some that leave. */
static void test_strangers(void **state)
{
  (void)state;
  int port, fd[100];
  tp__kv_server *server = serve(&port);
  uint8_t garbage[4096];
  for (size_t i = 0; i < sizeof garbage; i++) garbage[i] = (uint8_t)(i * 37 + 11);
  for (int i = 0; i < 100; i++) {
    fd[i] = connect_raw(port);
    if (i % 4 == 1) (void)!send(fd[i], garbage, sizeof garbage, MSG_NOSIGNAL);
    if (i % 4 == 2) (void)!send(fd[i], "tepalkv1GET / HTTP/1.1\r\n\r\n", 26, MSG_NOSIGNAL);
    if (i % 4 == 3) close(fd[i]);
  }
  tp__kv *kv = client(port, right);
  tp_error err = {0};
  if (tp__kv_put(kv, "k", 1, "v", 1, &err) != TP__KV_OK) fail_msg("%s", err.text);
  expect(kv, "k", "v");
  for (int i = 0; i < 100; i++)
    if (i % 4 != 3) close(fd[i]);
  tp__kv_free(kv);
  tp__kv_server_free(server);
}

/* A server that ends sends its waiting clients away. */
static void *end_soon(void *server)
{
  poll(NULL, 0, 100);
  tp__kv_server_free(server);
  return NULL;
}

static void test_server_ends(void **state)
{
  (void)state;
  int port;
  tp_error err = {0};
  tp__kv_server *server = serve(&port);
  tp__kv *kv = client(port, right);
  char *value = NULL;
  size_t size;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, end_soon, server), 0);
  tp__kv_answer answer = tp__kv_get(kv, "never", 5, 600000, &value, &size, &err);
  assert_true(answer == TP__KV_FAILED || answer == TP__KV_NOT_FOUND);
  pthread_join(thread, NULL);
  tp__kv_free(kv);
}

/* ---- words and files ---- */

static void test_addresses(void **state)
{
  (void)state;
  static const char *const wrong[] = {"",     "host",  "host:",  "host:x",
                                      "h:-1", "h:1x1", ":99999", "h:123456789"};
  tp_error err = {0};
  tp__kv *kv = NULL;
  tp__kv_secret secret = secret_of(right);
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_fails(tp__kv_new(wrong[i], &secret, 1, &kv, &err), TP_ERR_USAGE, "HOST:PORT");
  char *endless = calloc(1, 400);
  memset(endless, 'h', 300);
  memcpy(endless + 300, ":7", 3);
  assert_fails(tp__kv_new(endless, &secret, 1, &kv, &err), TP_ERR_USAGE, "HOST:PORT");
  free(endless);
  tp__kv_server *server = NULL;
  assert_fails(tp__kv_server_new("192.0.2.1:0", &secret, &server, &err), TP_ERR_DEVICE,
               "can't serve there");
}

static void test_secret(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__kv_secret s;
  char path[] = "/tmp/tepal-secret-XXXXXX";
  unsetenv("TEPAL_SECRET_FILE");
  unsetenv("TEPAL_SECRET");
  assert_fails(tp__kv_secret_read(&s, &err), TP_ERR_USAGE, "/dev/urandom");
  setenv("TEPAL_SECRET", "short", 1);
  assert_fails(tp__kv_secret_read(&s, &err), TP_ERR_USAGE, "5 bytes");
  setenv("TEPAL_SECRET", right, 1);
  assert_ok(tp__kv_secret_read(&s, &err));
  assert_int_equal(s.size, strlen(right));
  int fd = mkstemp(path);
  assert_int_equal(write(fd, "0123456789abcdef0\n", 18), 18);
  setenv("TEPAL_SECRET_FILE", path, 1); /* goes before the other */
  assert_ok(tp__kv_secret_read(&s, &err));
  assert_int_equal(s.size, 17);
  assert_memory_equal(s.bytes, "0123456789abcdef0", 17);
  assert_int_equal(fchmod(fd, 0640), 0);
  assert_fails(tp__kv_secret_read(&s, &err), TP_ERR_USAGE, "chmod 600");
  assert_int_equal(fchmod(fd, 0600), 0);
  assert_int_equal(ftruncate(fd, 5000), 0);
  assert_fails(tp__kv_secret_read(&s, &err), TP_ERR_USAGE, "longer than 1024");
  assert_int_equal(ftruncate(fd, 0), 0);
  assert_fails(tp__kv_secret_read(&s, &err), TP_ERR_USAGE, "0 bytes");
  close(fd);
  unlink(path);
  assert_fails(tp__kv_secret_read(&s, &err), TP_ERR_USAGE, path);
  setenv("TEPAL_SECRET_FILE", "/dev/zero", 1);
  assert_fails(tp__kv_secret_read(&s, &err), TP_ERR_USAGE, "no file");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_four_processes), cmocka_unit_test(test_threads),
      cmocka_unit_test(test_answers),        cmocka_unit_test(test_full),
      cmocka_unit_test(test_wrong_secret),   cmocka_unit_test(test_nobody_there),
      cmocka_unit_test(test_changed_bytes),  cmocka_unit_test(test_strangers),
      cmocka_unit_test(test_server_ends),    cmocka_unit_test(test_addresses),
      cmocka_unit_test(test_secret),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
