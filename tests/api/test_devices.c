/* The list of devices: one entry at least for TPU, GPU and CPU, in this order, each usable or with
 * a reason, and the first usable one is what "auto" takes; one that is asked for by path is the
 * plugin there, whatever it does. The plugin is tests/backend/pjrt/fake_plugin.c. */
#include "../testing.h"

static const char *fake;

static void test_all(void **state)
{
  (void)state;
  tp_error err = {0};
  tp_devices devices = {0};
  assert_ok(tp_devices_find(NULL, &devices, &err));
  assert_true(devices.count >= 3);
  assert_string_equal(devices.item[0].name, "tpu");
  assert_string_equal(devices.item[1].name, "gpu");
  assert_string_equal(devices.item[devices.count - 1].name, "cpu");
  bool usable = false;
  for (size_t i = 0; i < devices.count; i++) {
    const tp_device *d = &devices.item[i];
    assert_int_equal(d->reason == NULL, d->kind != NULL);
    if (d->reason == NULL) assert_true(d->replicas >= 1);
    assert_int_equal(d->automatic, !usable && d->reason == NULL);
    usable = usable || d->reason == NULL;
  }
  const tp_device *cpu = &devices.item[devices.count - 1];
  assert_null(cpu->reason);
  assert_null(cpu->plugin);
  assert_true(cpu->memory > 1000000);
  tp_devices_free(&devices);
  tp_devices_free(&devices);
}

static void test_by_name(void **state)
{
  (void)state;
  tp_error err = {0};
  tp_devices devices = {0};
  tp_context_options options = {.device = "cpu", .threads = 1};
  assert_ok(tp_devices_find(&options, &devices, &err));
  assert_int_equal(devices.count, 1);
  assert_non_null(strstr(devices.item[0].kind, "1 thread"));
  assert_false(devices.item[0].automatic);
  tp_devices_free(&devices);
  options.device = "gpu";
  assert_ok(tp_devices_find(&options, &devices, &err));
  for (size_t i = 0; i < devices.count; i++) assert_string_equal(devices.item[i].name, "gpu");
  tp_devices_free(&devices);
  options.device = "abacus";
  assert_fails(tp_devices_find(&options, &devices, &err), TP_ERR_USAGE, "\"abacus\"");
  assert_int_equal(devices.count, 0);
}

static void test_by_path(void **state)
{
  (void)state;
  tp_error err = {0};
  tp_devices devices = {0};
  const tp_context_options options = {.device = fake}, none = {.device = "/no/such.so"};
  assert_ok(tp_devices_find(&options, &devices, &err));
  assert_int_equal(devices.count, 1);
  const tp_device *d = devices.item;
  assert_string_equal(d->name, fake);
  assert_string_equal(d->plugin, fake);
  assert_string_equal(d->kind, "TPU v3");
  assert_string_equal(d->version, "PJRT 0.999, StableHLO 1.2.3");
  assert_int_equal(d->replicas, 2);
  assert_int_equal(d->memory, 16000000000);
  tp_devices_free(&devices);
  setenv("TEPAL_FAKE", "abort", 1);
  assert_ok(tp_devices_find(&options, &devices, &err));
  assert_non_null(strstr(devices.item[0].reason, "crashed (ABRT)"));
  assert_null(devices.item[0].kind);
  tp_devices_free(&devices);
  unsetenv("TEPAL_FAKE");
  assert_ok(tp_devices_find(&none, &devices, &err));
  assert_non_null(strstr(devices.item[0].reason, "there is no such file"));
  tp_devices_free(&devices);
}

int main(int argc, char **argv)
{
  if (argc != 2) return 2;
  fake = argv[1];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all),
      cmocka_unit_test(test_by_name),
      cmocka_unit_test(test_by_path),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
