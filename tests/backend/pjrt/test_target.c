/* Names of machines that a plan can be for: what a person writes, which slice of chips that is, and
 * what is told of wrong names. Slices of rented names are those of Google's tables of supported
 * configurations (cloud.google.com/tpu/docs/v3 ... v6e). No plugin is needed. */
#include "backend/pjrt/target.h"
#include "testing.h"

static void test_names(void **state)
{
  (void)state;
  static const struct {
    const char *name, *topology;
    int devices;
  } good[] = {
      {"v3:2x2", "v3:2x2", 8},       {"v3-8", "v3:2x2", 8},
      {"v3-32", "v3:4x4", 32},       {"v3-64", "v3:4x8", 64},
      {"v2-8", "v2:2x2", 8},         {"V3-8", "v3:2x2", 8},
      {"v4-8", "v4:2x2x1", 8},       {"v4-16", "v4:2x2x2", 16},
      {"v4-32", "v4:2x2x4", 32},     {"v4:2x2", "v4:2x2x1", 8},
      {"v4-64", "v4:2x4x4", 64},     {"v4-128", "v4:4x4x4", 128},
      {"v5e-1", "v5e:1x1", 1},       {"v5e-4", "v5e:2x2", 4},
      {"v5e-8", "v5e:2x4", 8},       {"v5litepod-8", "v5e:2x4", 8},
      {"v5e-256", "v5e:16x16", 256}, {"v6e-8", "v6e:2x4", 8},
      {"v6e:4x8", "v6e:4x8", 32},    {"v5p-8", "v5p:2x2x1", 4},
      {"v5p-16", "v5p:2x2x2", 8},    {"v5p:4x4x8", "v5p:4x4x8", 128},
      {"tpu7x-8", "tpu7x:2x2x1", 8}, {"h200", "1x1x1", 1},
      {"h200:8", "1x1x8", 8},        {"H100:4", "1x1x4", 4},
      {"a100", "1x1x1", 1},          {"l4", "1x1x1", 1},
      {"t4:2", "1x1x2", 2},
  };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    tp__target t;
    tp_error err = {0};
    assert_ok(tp__target_parse(good[i].name, &t, &err));
    assert_string_equal(t.topology, good[i].topology);
    assert_int_equal(t.devices, good[i].devices);
  }
}

static void test_wrong_names(void **state)
{
  (void)state;
  static const char *const wrong[] = {
      "",
      "v3",
      "v9:2x2",
      "v3:",
      "v3:2",
      "v3:2x",
      "v3:2x2x2",
      "v3:0x2",
      "v3-7",
      "v3-3",
      "v3-0",
      "v3--8",
      "v3-",
      "v5e-3",
      "v5e:2x4x",
      "v5p-2",
      "v3:-2x2",
      "v3:2x2 ",
      "v3 :2x2",
      "h200:0",
      "h200:9",
      "h200-8",
      "h200:2x2",
      "h200:",
      "h300",
      "cpu",
      "v3:99999x99999",
      "v3:16384x16384",
      "v3-99999999999999999999",
      ":2x2",
      "-8",
      "v3:2x2%s%n",
      "a-very-long-name-that-is-no-topology-of-anything-at-all-but-goes-on"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    tp__target t;
    tp_error err = {0};
    assert_fails(tp__target_parse(wrong[i], &t, &err), TP_ERR_USAGE, "topology: \"");
    assert_non_null(strstr(err.text, "known: v2, v3, v4, v5e, v5p, v6e, tpu7x, h200"));
  }
}

/* A device has less than its chip's memory to give, and no peak is left out. */
static void test_table(void **state)
{
  (void)state;
  size_t n = 0;
  const tp__chip *chip = tp__chips(&n);
  for (size_t i = 0; i < n; i++) {
    const tp__chip *c = &chip[i];
    assert_ptr_equal(tp__chip_find(c->name, strlen(c->name)), c);
    assert_true(c->usable < c->memory && c->usable > c->memory / 2);
    assert_true(c->bandwidth > 1e11 && c->bandwidth < 1e13);
    assert_true(c->bf16 >= c->f32 && c->f32 > 1e12 && c->bf16 < 5e15);
    assert_true(c->devices >= 1 && (tp__chip_is_gpu(c) || c->axes >= 2));
    assert_int_equal(tp__chip_is_gpu(c), c->gpu.multiprocessors > 0);
  }
  assert_null(tp__chip_find("v", 1));
}

static void test_gpu_config(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__buffer text;
  tp__buffer_init(&text, 1 << 16);
  assert_ok(tp__target_gpu_config(tp__chip_find("h200", 4), &text, &err));
  const char *config = (const char *)text.data;
  assert_non_null(strstr(config, "cuda_compute_capability { major: 9 minor: 0 }"));
  assert_non_null(strstr(config, "core_count: 132\n"));
  assert_non_null(strstr(config, "device_memory_size: 141000000000\n"));
  assert_non_null(strstr(config, "memory_bandwidth: 4800000000000\n"));
  tp__buffer_free(&text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_wrong_names),
      cmocka_unit_test(test_table),
      cmocka_unit_test(test_gpu_config),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
