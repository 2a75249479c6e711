/* Nothing is left behind: on a plugin that counts its objects (fake_plugin.c), a whole life of
 * opening, compiling, caching, copying, running and reading is gone through once for each call that
 * can fail, with that call failing; afterwards no error, event, buffer, program or client lives. On
 * a real plugin thousands of steps do not make the process larger. */
#include <dlfcn.h>
#include <unistd.h>

#include "backend/pjrt/client.h"
#include "pjrt_testing.h"

enum { SORTS = 7, REPLICAS = 2 };

static const char *fake;
static char folder[] = "/tmp/tepal-cleanup-XXXXXX";

static struct {
  void (*live)(int now[SORTS]);
  void (*fail_at)(int call);
  int (*calls)(void);
} plugin_says;

static int start(void **state)
{
  (void)state;
  void *library = dlopen(fake, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL || mkdtemp(folder) == NULL) return 1;
  *(void **)&plugin_says.live = dlsym(library, "tepal_fake_live");
  *(void **)&plugin_says.fail_at = dlsym(library, "tepal_fake_fail_at");
  *(void **)&plugin_says.calls = dlsym(library, "tepal_fake_calls");
  setenv("TMPDIR", folder, 1); /* for modules that do not compile */
  return plugin_says.live == NULL || plugin_says.fail_at == NULL || plugin_says.calls == NULL;
}

static int finish(void **state)
{
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

typedef struct life {
  tp__plugin *plugin;
  tp__client *client;
  tp__executable *program;
  tp__device_buffer *in[REPLICAS], *out[REPLICAS];
  tp__event *event[REPLICAS], *read;
} life;

static const tp__shape four = {1, {4}};

/* Runs step after step, feeding results back, as a trainer does. */
static tp_status run_steps(life *l, int steps, tp_error *err)
{
  for (int s = 0; s < steps; s++) {
    bool events = s % 2 == 0;
    TP__TRY(tp__executable_run(l->program, l->in, 1, l->out, 1, events ? l->event : NULL, err));
    for (int r = 0; r < REPLICAS; r++) {
      tp__device_buffer_free(l->in[r]);
      l->in[r] = l->out[r];
      l->out[r] = NULL;
    }
    for (int r = 0; events && r < REPLICAS; r++) {
      tp__event *e = l->event[r];
      l->event[r] = NULL;
      TP__TRY(tp__event_wait(e, err));
    }
  }
  return TP_OK;
}

static tp_status live_through(life *l, const char *cache, tp_error *err)
{
  const float data[4] = {1, 2, 3, 4};
  float back[4] = {0};
  uint64_t limit = 0, used = 0;
  tp__executable_info info;
  TP__TRY(tp__plugin_open(fake, &l->plugin, err));
  TP__TRY(tp__client_new(l->plugin, NULL, 0, &l->client, err));
  (void)tp__client_memory(l->client, 0, &limit, &used);
  TP__TRY(tp__executable_new(l->client, "module", 6, REPLICAS, cache, &l->program, err));
  tp__executable_info_of(l->program, &info);
  for (int r = 0; r < REPLICAS; r++)
    TP__TRY(tp__device_buffer_new(l->client, r, TP__F32, &four, data, &l->in[r], err));
  TP__TRY(run_steps(l, 3, err));
  (void)tp__device_buffer_is_gone(l->in[0]);
  TP__TRY(tp__device_buffer_read(l->in[0], back, sizeof back, &l->read, err));
  tp__event *e = l->read;
  l->read = NULL;
  TP__TRY(tp__event_wait(e, err));
  assert_memory_equal(back, data, sizeof data);
  return TP_OK;
}

static void end_life(life *l)
{
  for (int r = 0; r < REPLICAS; r++) {
    tp__device_buffer_free(l->in[r]);
    tp__device_buffer_free(l->out[r]);
    tp__event_free(l->event[r]);
  }
  tp__event_free(l->read);
  tp__executable_free(l->program);
  tp__client_free(l->client);
  tp__plugin_close(l->plugin);
}

static void assert_nothing_lives(int call)
{
  static const char *const sort[] = {"errors",      "events",     "buffers", "programs",
                                     "executables", "serialized", "clients"};
  int now[SORTS];
  plugin_says.live(now);
  for (int i = 0; i < SORTS; i++)
    if (now[i] != 0) fail_msg("with call %d failing, %d %s are left", call, now[i], sort[i]);
}

static void remove_folder(const char *path)
{
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", path);
  assert_int_equal(system(command), 0);
}

/* Goes through a life with that call failing; false: there are not so many. */
static bool try_failure(int call, const char *cache, int *failed)
{
  tp_error err = {0};
  life l = {0};
  plugin_says.fail_at(call);
  tp_status status = live_through(&l, cache, &err);
  bool happened = plugin_says.calls() >= call;
  plugin_says.fail_at(0);
  if (status != TP_OK) {
    ++*failed;
    assert_int_equal(status, TP_ERR_DEVICE);
    assert_non_null(strstr(err.text, "failed as was wished [RESOURCE_EXHAUSTED]"));
    assert_true(tp__pjrt_out_of_memory(&err));
  }
  end_life(&l);
  assert_nothing_lives(call);
  return happened;
}

/* With an empty cache each time (the program is compiled and saved) and with a full one (it is
 * loaded). */
static void test_every_failure(void **state)
{
  (void)state;
  char cache[64];
  snprintf(cache, sizeof cache, "%s/cache", folder);
  for (int full = 0; full < 2; full++) {
    int call = 1, failed = 0;
    for (;; call++) {
      if (full == 0) remove_folder(cache);
      if (!try_failure(call, cache, &failed)) break;
    }
    print_message("%d calls, %d of them matter\n", call - 1, failed);
    assert_true(call > 25 && failed > 15); /* attributes, statistics, the cache may fail */
  }
}

static void test_told(void **state)
{
  (void)state;
  tp_error err = {0};
  life l = {0};
  assert_ok(live_through(&l, NULL, &err));
  tp__executable_info info;
  tp__executable_info_of(l.program, &info);
  assert_int_equal(info.argument_bytes, 1);
  assert_int_equal(info.output_bytes, 2);
  assert_int_equal(info.alias_bytes, 3);
  assert_int_equal(info.temporary_bytes, 4);
  assert_int_equal(info.code_bytes, 0);
  assert_true(info.flops == 12 && info.bytes_accessed == 34 && info.optimal_seconds == 0);
  end_life(&l);
}

/* ---- a real plugin ---- */

static const char step[] =
    "module { func.func public @main(%w: tensor<4xf32> {tf.aliasing_output = 0 : i32})"
    " -> tensor<4xf32> {\n"
    "  %0 = \"stablehlo.all_reduce\"(%w) ({\n"
    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "    %s = stablehlo.maximum %a, %b : tensor<f32>\n"
    "    stablehlo.return %s : tensor<f32>\n"
    "  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>\n"
    "  return %0 : tensor<4xf32> } }\n";

/* Steps as of a training with small inputs: new ones go over, results are read, and some calls
 * fail.
 */
static void many_steps(life *l, int steps)
{
  tp_error err = {0};
  const float data[4] = {1, 2, 3, 4};
  for (int s = 0; s < steps; s++) {
    tp__device_buffer *input = NULL;
    float back[4];
    tp__event *read = NULL;
    assert_ok(tp__device_buffer_new(l->client, 1, TP__F32, &four, data, &input, &err));
    assert_ok(run_steps(l, 2, &err));
    assert_ok(tp__device_buffer_read(l->in[s % 2], back, sizeof back, &read, &err));
    assert_ok(tp__event_wait(read, &err));
    if (s % 50 == 0) { /* the device is another one */
      tp__device_buffer *wrong[REPLICAS] = {l->in[1], l->in[0]}, *none[REPLICAS];
      assert_int_equal(tp__executable_run(l->program, wrong, 1, none, 1, NULL, &err),
                       TP_ERR_DEVICE);
    }
    tp__device_buffer_free(input);
  }
}

static void test_steps_stay_small(void **state)
{
  (void)state;
  tp_error err = {0};
  life l = {0};
  const float data[4] = {1, 2, 3, 4};
  const char *path = NULL;
  need_plugin(path, PJRT_CPU_115);
#ifdef __SANITIZE_ADDRESS__
  print_message("skipped: the sanitizer keeps what is freed for a while\n");
  skip();
#endif
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", 1); /* the failing calls are logged by the plugin */
  tp__client_option count = {.name = "cpu_device_count", .number = REPLICAS};
  assert_ok(tp__plugin_open(path, &l.plugin, &err));
  assert_ok(tp__client_new(l.plugin, &count, 1, &l.client, &err));
  assert_ok(tp__executable_new(l.client, step, strlen(step), REPLICAS, NULL, &l.program, &err));
  for (int r = 0; r < REPLICAS; r++)
    assert_ok(tp__device_buffer_new(l.client, r, TP__F32, &four, data, &l.in[r], &err));
  many_steps(&l, 1000);
  /* What leaks grows always; threads that start and pools that fill up do it now and then. */
  enum { STEPS = 3000 };
  uint64_t least = UINT64_MAX;
  for (int block = 0; block < 4; block++) {
    uint64_t before = tp__resident_bytes(NULL);
    many_steps(&l, STEPS);
    uint64_t after = tp__resident_bytes(NULL), growth = after > before ? after - before : 0;
    print_message("%d steps: %llu bytes more\n", STEPS, (unsigned long long)growth);
    if (growth < least) least = growth;
  }
  assert_true(least < (uint64_t)STEPS * 32); /* the smallest object of a plugin is larger */
  end_life(&l);
}

int main(int argc, char **argv)
{
  if (argc != 3) return 2;
  fake = argv[1];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_failure),
      cmocka_unit_test(test_told),
      cmocka_unit_test(test_steps_stay_small),
  };
  return cmocka_run_group_tests(tests, start, finish);
}
