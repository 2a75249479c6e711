/* Several processes join one client through the key-value store: fake_plugin.c does what GPU
 * plugins do (puts its own value, waits for those of all) and also what must be refused. Devices of
 * all processes are counted the same way by each. The CUDA plugin takes the same options and
 * callbacks. */
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/pjrt/client.h"
#include "backend/pjrt/search.h"
#include "base/kv_store.h"
#include "pjrt_testing.h"

enum { PROCESSES = 4 };

static const char *fake;
static void (*fake_live)(int now[7]);
static void (*fake_thaw)(void);
static const tp__kv_secret secret = {.size = 20, .bytes = "a secret for a test."};

static tp__kv_server *serve(char address[32])
{
  tp_error err = {0};
  tp__kv_server *server = NULL;
  assert_ok(tp__kv_server_new("127.0.0.1:0", &secret, &server, &err));
  snprintf(address, 32, "127.0.0.1:%d", tp__kv_server_port(server));
  return server;
}

/* One of the processes; 0 when all is as it should be. */
static int join(const char *address, int rank)
{
  tp_error err = {0};
  tp__kv *kv = NULL;
  tp__plugin *plugin = NULL;
  tp__client *client = NULL;
  tp__executable *x = NULL;
  int good = 0;
  if (tp__kv_new(address, &secret, 20000, &kv, &err) == TP_OK &&
      tp__plugin_open(fake, &plugin, &err) == TP_OK) {
    const tp__peers peers = {.kv = kv, .rank = rank, .count = PROCESSES};
    if (tp__client_join(plugin, NULL, 0, &peers, &client, &err) == TP_OK) {
      good = tp__client_devices(client) == 2 && tp__client_all_devices(client) == 2 * PROCESSES &&
             tp__client_first_replica(client) == 2 * rank;
      good = good && tp__executable_join(client, "m", 1, NULL, &x, &err) == TP_OK;
    }
  }
  if (!good) fprintf(stderr, "process %d: %s\n", rank, err.text);
  tp__executable_free(x);
  tp__client_free(client);
  tp__plugin_close(plugin);
  tp__kv_free(kv);
  return good ? 0 : 1;
}

/* The processes are there before the server's threads are: a fork may not meet a lock that one of
 * them holds. */
static void test_join(void **state)
{
  (void)state;
  char address[32] = "";
  setenv("TEPAL_FAKE", "peers", 1);
  pid_t child[PROCESSES];
  int way[2];
  assert_int_equal(pipe(way), 0);
  for (int i = 0; i < PROCESSES; i++) {
    child[i] = fork();
    if (child[i] == 0) _exit(read(way[0], address, 32) == 32 ? join(address, i) : 2);
    assert_true(child[i] > 0);
  }
  tp__kv_server *server = serve(address);
  for (int i = 0; i < PROCESSES; i++) assert_int_equal(write(way[1], address, 32), 32);
  close(way[0]);
  close(way[1]);
  int how[PROCESSES];
  for (int i = 0; i < PROCESSES; i++) assert_int_equal(waitpid(child[i], &how[i], 0), child[i]);
  for (int i = 0; i < PROCESSES; i++) assert_int_equal(how[i], 0);
  tp__kv_server_free(server);
  unsetenv("TEPAL_FAKE");
}

/* A store that cannot be reached is an error of the client with the store's reason. */
static void test_no_store(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__kv *kv = NULL;
  tp__plugin *plugin = NULL;
  tp__client *client = NULL;
  char address[32];
  tp__kv_server_free(serve(address)); /* nobody listens there any more */
  setenv("TEPAL_FAKE", "peers", 1);
  assert_ok(tp__kv_new(address, &secret, 100, &kv, &err));
  assert_ok(tp__plugin_open(fake, &plugin, &err));
  const tp__peers peers = {.kv = kv, .rank = 0, .count = 2};
  assert_fails(tp__client_join(plugin, NULL, 0, &peers, &client, &err), TP_ERR_DEVICE,
               "[UNAVAILABLE]");
  assert_null(client);
  tp__plugin_close(plugin);
  tp__kv_free(kv);
  unsetenv("TEPAL_FAKE");
}

/* A group that is whole until it is asked the third time. */
static tp_status lost(tp__group *group, tp_error *err)
{
  if (++group->local < 3) return TP_OK;
  return tp__fail(err, TP_ERR_OUTPUT, "process 1 of 2: disk full");
}

/* The device would wait for ever for a process that is lost: who waits for it gets that process'
 * failure, and all that the device holds is left to it, for letting go could wait as well. */
static void test_lost(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__plugin *plugin = NULL;
  tp__client *client = NULL;
  tp__device_buffer *buffer = NULL;
  tp__event *event[2] = {NULL, NULL};
  const float data[4] = {0};
  float back[4];
  int before[7], after[7];
  tp__group group = {.size = 2, .lost = lost};
  const tp__peers peers = {.rank = 0, .count = 2, .group = &group};
  setenv("TEPAL_FAKE", "frozen", 1);
  assert_ok(tp__plugin_open(fake, &plugin, &err));
  assert_ok(tp__client_join(plugin, NULL, 0, &peers, &client, &err));
  assert_ok(tp__device_buffer_new(client, 0, TP__F32, &(tp__shape){1, {4}}, data, &buffer, &err));
  for (int i = 0; i < 2; i++)
    assert_ok(tp__device_buffer_read(buffer, back, sizeof back, &event[i], &err));
  fake_live(before);
  assert_fails(tp__event_wait(event[0], &err), TP_ERR_OUTPUT, "process 1 of 2: disk full");
  assert_fails(tp__event_wait(event[1], &err), TP_ERR_DEVICE, "any more");
  assert_int_equal(group.local, 3);
  tp__device_buffer_free(buffer);
  tp__client_free(client);
  tp__plugin_close(plugin);
  fake_live(after);
  assert_memory_equal(before, after, sizeof before);
  fake_thaw();
  unsetenv("TEPAL_FAKE");
}

/* Without a GPU it fails as it does alone, not because of what it was given. */
static void test_cuda(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__kv *kv = NULL;
  tp__plugin *plugin = NULL;
  tp__client *client = NULL;
  const char *path = NULL;
  char address[32];
  need_plugin(path, PJRT_CUDA);
  if (tp__gpu_nodes("")) return; /* it would wait for the other process */
  tp__kv_server *server = serve(address);
  assert_ok(tp__kv_new(address, &secret, 1000, &kv, &err));
  assert_ok(tp__plugin_open(path, &plugin, &err));
  const tp__peers peers = {.kv = kv, .rank = 0, .count = 2};
  assert_fails(tp__client_join(plugin, NULL, 0, &peers, &client, &err), TP_ERR_DEVICE,
               "No visible GPU devices");
  tp__plugin_close(plugin);
  tp__kv_free(kv);
  tp__kv_server_free(server);
}

int main(int argc, char **argv)
{
  if (argc != 3) return 2;
  fake = argv[1];
  void *library = dlopen(fake, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 2;
  *(void **)&fake_live = dlsym(library, "tepal_fake_live");
  *(void **)&fake_thaw = dlsym(library, "tepal_fake_thaw");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_join),
      cmocka_unit_test(test_no_store),
      cmocka_unit_test(test_lost),
      cmocka_unit_test(test_cuda),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
