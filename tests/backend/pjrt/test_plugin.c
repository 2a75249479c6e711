/* Opening plugins: whatever lies under the name (nothing, a folder, text, half a library, a library
 * without the function, a table that is too short, too old or too new), one clear error; several
 * good plugins live in one process. Needs fake_plugin.c and, for the last, real ones. */
#include <unistd.h>

#include "backend/pjrt/client.h"
#include "pjrt_testing.h"

static const char *fake, *no_plugin;
static char folder[] = "/tmp/tepal-plugin-XXXXXX";

static int start(void **state)
{
  (void)state;
  return mkdtemp(folder) == NULL;
}

static int finish(void **state)
{
  (void)state;
  return rmdir(folder);
}

static void test_no_plugin(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__plugin *plugin = NULL;
  char text[64], half[64];
  snprintf(text, sizeof text, "%s/text.so", folder);
  snprintf(half, sizeof half, "%s/half.so", folder);
  assert_ok(tp__file_write(text, "these are no machine instructions\n", 34, &err));
  tp__buffer whole;
  tp__buffer_init(&whole, 1 << 24);
  assert_ok(tp__file_read(fake, &whole, &err));
  assert_ok(tp__file_write(half, whole.data, 500, &err));
  tp__buffer_free(&whole);
  const struct {
    const char *path, *part;
  } wrong[] = {
      {"/nowhere/at/all.so", "PJRT plugin /nowhere/at/all.so: there is no such file"},
      {folder, "no such file"},
      {"", "no such file"},
      {text, "cannot be loaded: "},
      {half, "cannot be loaded: "},
      {no_plugin, "is a library, but no PJRT plugin (it has no function GetPjrtApi)"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_fails(tp__plugin_open(wrong[i].path, &plugin, &err), TP_ERR_DEVICE, wrong[i].part);
    assert_non_null(strstr(err.text, wrong[i].path));
    assert_null(plugin);
  }
  unlink(text);
  unlink(half);
}

static void test_wrong_tables(void **state)
{
  (void)state;
  static const struct {
    const char *fakes, *part;
  } wrong[] = {
      {"major 1", "speaks PJRT 1.999, and tepal 0.x"},
      {"minor 20", "speaks PJRT 0.20, which is too old; 0.54 or newer is needed"},
      {"short table", "too old"},
      {"tiny table", "gives no table"},
      {"no table", "gives no table"},
      {"bad start", "did not start: driver is of 1999 [INTERNAL]"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    tp_error err = {0};
    tp__plugin *plugin = NULL;
    setenv("TEPAL_FAKE", wrong[i].fakes, 1);
    assert_fails(tp__plugin_open(fake, &plugin, &err), TP_ERR_DEVICE, wrong[i].part);
    assert_null(plugin);
  }
  unsetenv("TEPAL_FAKE");
}

/* A plugin that is newer than all that is known is taken, and its texts end where it says. */
static void test_fake(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__plugin *plugin = NULL;
  tp__client *client = NULL;
  uint64_t limit = 0, used = 0;
  assert_ok(tp__plugin_open(fake, &plugin, &err));
  assert_string_equal(tp__plugin_version(plugin), "PJRT 0.999, StableHLO 1.2.3");
  assert_string_equal(tp__plugin_path(plugin), fake);
  assert_ok(tp__client_new(plugin, NULL, 0, &client, &err));
  assert_int_equal(tp__client_devices(client), 2);
  assert_string_equal(tp__client_device_kind(client, 1), "TPU v3");
  assert_true(tp__client_memory(client, 1, &limit, &used));
  assert_int_equal(limit, 16000000000);
  assert_int_equal(used, 1000);
  tp__client_free(client);
  setenv("TEPAL_FAKE", "no cores", 1);
  client = NULL;
  assert_fails(tp__client_new(plugin, NULL, 0, &client, &err), TP_ERR_DEVICE, "has 0 devices");
  setenv("TEPAL_FAKE", "no device", 1);
  assert_fails(tp__client_new(plugin, NULL, 0, &client, &err), TP_ERR_DEVICE,
               "No jellyfish device found. [NOT_FOUND]");
  unsetenv("TEPAL_FAKE");
  assert_null(client);
  tp__plugin_close(plugin);
}

/* Three CPU plugins and libtpu, each of them twice. */
static void test_several(void **state)
{
  (void)state;
  static const char *const name[] = {PJRT_CPU_81,  PJRT_CPU_106, PJRT_CPU_115, PJRT_CPU_81,
                                     PJRT_CPU_106, PJRT_CPU_115, PJRT_TPU,     PJRT_TPU};
  enum { CPUS = 6 };
  enum { N = sizeof name / sizeof *name };
  tp_error err = {0};
  tp__plugin *plugin[N] = {NULL};
  tp__client *client[N] = {NULL};
  setenv("TPU_SKIP_MDS_QUERY", "1", 1);
  setenv("TPU_LOG_DIR", "disabled", 1);
  for (int i = 0; i < N; i++) {
    const char *path = NULL;
    need_plugin(path, name[i]);
    assert_ok(tp__plugin_open(path, &plugin[i], &err));
    if (i < CPUS) {
      tp__client_option count = {.name = "cpu_device_count", .number = i + 1};
      assert_ok(tp__client_new(plugin[i], &count, 1, &client[i], &err));
    } else { /* where there is a chip, another test trains on it */
      tp_status status = tp__client_new(plugin[i], NULL, 0, &client[i], &err);
      if (status != TP_OK) assert_non_null(strstr(err.text, "TPU initialization failed"));
    }
  }
  static const char text[] = "module { func.func public @main(%a: tensor<f32>) -> tensor<f32> {\n"
                             "  %0 = stablehlo.add %a, %a : tensor<f32>\n"
                             "  return %0 : tensor<f32> } }\n";
  const tp__shape scalar = {0, {0}};
  for (int i = 0; i < CPUS; i++) {
    tp__executable *x = NULL;
    tp__device_buffer *in = NULL, *out = NULL;
    tp__event *event = NULL;
    float value = (float)i, twice = -1;
    assert_int_equal(tp__client_devices(client[i]), i + 1);
    assert_ok(tp__executable_new(client[i], text, strlen(text), 1, NULL, &x, &err));
    assert_ok(tp__device_buffer_new(client[i], 0, TP__F32, &scalar, &value, &in, &err));
    assert_ok(tp__executable_run(x, &in, 1, &out, 1, NULL, &err));
    assert_ok(tp__device_buffer_read(out, &twice, sizeof twice, &event, &err));
    assert_ok(tp__event_wait(event, &err));
    assert_true(twice == 2 * value);
    tp__device_buffer_free(in);
    tp__device_buffer_free(out);
    tp__executable_free(x);
  }
  for (int i = 0; i < N; i++) {
    tp__client_free(client[i]);
    tp__plugin_close(plugin[i]);
  }
}

int main(int argc, char **argv)
{
  if (argc != 3) return 2;
  fake = argv[1];
  no_plugin = argv[2];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_plugin),
      cmocka_unit_test(test_wrong_tables),
      cmocka_unit_test(test_fake),
      cmocka_unit_test(test_several),
  };
  return cmocka_run_group_tests(tests, start, finish);
}
