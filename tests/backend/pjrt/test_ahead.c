/* Compiling for machines that are not here: libtpu for TPUs, the CUDA plugin for GPUs, each in a
 * child process. Small modules; what is expected of them is arithmetic: bytes of arguments and
 * results, FLOPs of a product. */
#include <unistd.h>

#include "backend/pjrt/ahead.h"
#include "pjrt_testing.h"

static tp_status open_ahead(const char *name, const char *plugin, const char *cache,
                            tp__ahead **ahead, tp_error *err)
{
  tp__ahead_options o = {.plugin = plugin, .cache = cache, .seconds = 300};
  tp_status status = tp__target_parse(name, &o.target, err);
  return status == TP_OK ? tp__ahead_open(&o, ahead, err) : status;
}

static tp_status compiled(tp__ahead *ahead, const char *text, int replicas, tp__verdict *v,
                          tp_error *err)
{
  return tp__ahead_compile(ahead, "module", text, strlen(text), replicas, v, err);
}

/* [1024,512] x [512,256]: 2 x 1024 x 512 x 256 = 268.4 MFLOP; 2 MB + 0.5 MB in, 1 MB out. */
static const char product[] =
    "module { func.func public @main(%a: tensor<1024x512xf32>, %b: tensor<512x256xf32>)"
    " -> tensor<1024x256xf32> {\n"
    "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]"
    " : (tensor<1024x512xf32>, tensor<512x256xf32>) -> tensor<1024x256xf32>\n"
    "  return %0 : tensor<1024x256xf32> } }\n";

static void check_product(const tp__verdict *v)
{
  assert_true(v->fits && v->why[0] == '\0');
  assert_int_equal(v->info.argument_bytes, (1024 * 512 + 512 * 256) * 4);
  assert_int_equal(v->info.output_bytes, 1024 * 256 * 4);
  assert_true(v->need >= v->info.argument_bytes + v->info.output_bytes);
}

static void test_tpu(void **state)
{
  (void)state;
  const char *plugin = NULL;
  need_plugin(plugin, PJRT_TPU);
  tp_error err = {0};
  tp__ahead *ahead = NULL;
  tp__verdict v;
  assert_ok(open_ahead("v3-8", plugin, NULL, &ahead, &err));
  const tp__machine *m = tp__ahead_machine(ahead);
  assert_int_equal(m->devices, 8);
  assert_int_equal(m->hosts, 1);
  assert_string_equal(m->kind, "TPU v3");
  assert_non_null(strstr(m->version, "PJRT 0."));
  assert_ok(compiled(ahead, product, 8, &v, &err));
  check_product(&v);
  assert_true(v.info.flops >= 268e6 && v.info.flops < 300e6);
  assert_true(v.info.bytes_accessed >= 3.6e6);
  assert_false(v.cached);
  tp__ahead_free(ahead);
}

/* The table of chips and the compiler agree on how many devices a slice has. */
static void test_slices(void **state)
{
  (void)state;
  const char *plugin = NULL;
  need_plugin(plugin, PJRT_TPU);
  static const char *const name[] = {"v2-8", "v4-8", "v5e-8", "v5p-8", "v6e-8", "tpu7x-8"};
  for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
    tp_error err = {0};
    tp__ahead *ahead = NULL;
    assert_ok(open_ahead(name[i], plugin, NULL, &ahead, &err));
    assert_int_equal(tp__ahead_machine(ahead)->devices, tp__ahead_target(ahead)->devices);
    tp__ahead_free(ahead);
  }
}

static void test_gpu(void **state)
{
  (void)state;
  const char *plugin = NULL;
  need_plugin(plugin, PJRT_CUDA);
  tp_error err = {0};
  tp__ahead *ahead = NULL;
  tp__verdict v;
  assert_ok(open_ahead("h200:8", plugin, NULL, &ahead, &err));
  assert_int_equal(tp__ahead_machine(ahead)->devices, 8);
  assert_ok(compiled(ahead, product, 8, &v, &err));
  check_product(&v);
  tp__ahead_free(ahead);
}

static void test_too_large(void **state)
{
  (void)state;
  const char *plugin = NULL;
  need_plugin(plugin, PJRT_TPU);
  static const char text[] =
      "module { func.func public @main(%a: tensor<5000000000xf32>) -> tensor<5000000000xf32> {\n"
      "  %0 = stablehlo.sine %a : tensor<5000000000xf32>\n"
      "  return %0 : tensor<5000000000xf32> } }\n";
  tp_error err = {0};
  tp__ahead *ahead = NULL;
  tp__verdict v;
  assert_ok(open_ahead("v3:2x2", plugin, NULL, &ahead, &err));
  assert_ok(compiled(ahead, text, 1, &v, &err));
  assert_false(v.fits);
  assert_true(v.why[0] != '\0');
  tp__ahead_free(ahead);
}

/* The second time no compiler is asked, and the answer is the same. */
static void test_cache(void **state)
{
  (void)state;
  const char *plugin = NULL;
  need_plugin(plugin, PJRT_TPU);
  char folder[] = "/tmp/tepal-test-XXXXXX", command[128];
  assert_non_null(mkdtemp(folder));
  tp_error err = {0};
  tp__ahead *ahead = NULL;
  tp__verdict first, second, other;
  assert_ok(open_ahead("v3:2x2", plugin, folder, &ahead, &err));
  assert_ok(compiled(ahead, product, 8, &first, &err));
  assert_ok(compiled(ahead, product, 8, &second, &err));
  assert_ok(compiled(ahead, product, 4, &other, &err));
  assert_false(first.cached || other.cached);
  assert_true(second.cached);
  assert_memory_equal(&first.info, &second.info, sizeof first.info);
  assert_true(first.fits && second.fits && first.need == second.need &&
              first.seconds == second.seconds && second.why[0] == '\0');
  tp__ahead_free(ahead);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

/* The operator is named, and the module is kept. */
static void test_wrong_module(void **state)
{
  (void)state;
  const char *plugin = NULL;
  need_plugin(plugin, PJRT_TPU);
  static const char text[] =
      "module { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
      "  %0 = \"stablehlo.frobnicate\"(%a) : (tensor<4xf32>) -> tensor<4xf32>\n"
      "  return %0 : tensor<4xf32> } }\n";
  tp_error err = {0};
  tp__ahead *ahead = NULL;
  tp__verdict v;
  char path[512] = "";
  assert_ok(open_ahead("v3:2x2", plugin, NULL, &ahead, &err));
  assert_fails(compiled(ahead, text, 8, &v, &err), TP_ERR_DEVICE,
               "operator stablehlo.frobnicate: ");
  const char *at = strstr(err.text, "it is kept as ");
  assert_non_null(at);
  assert_int_equal(sscanf(at, "it is kept as %511[^:]", path), 1);
  assert_int_equal(unlink(path), 0);
  tp__ahead_free(ahead);
}

/* No plugin, a library that is none, a slice that the compiler does not know, a time that is too
 * short. */
static void test_refusals(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__ahead *ahead = NULL;
  assert_fails(open_ahead("v3-8", "/nowhere/libtpu.so", NULL, &ahead, &err), TP_ERR_DEVICE,
               "there is no such file");
  const char *plugin = NULL;
  need_plugin(plugin, PJRT_TPU);
  assert_fails(open_ahead("v3:3x7", plugin, NULL, &ahead, &err), TP_ERR_USAGE,
               "topology: the compiler has no slice v3:3x7: ");
  tp__ahead_options o = {.plugin = plugin, .seconds = 0};
  tp__verdict v;
  assert_ok(tp__target_parse("v3-8", &o.target, &err));
  assert_ok(tp__ahead_open(&o, &ahead, &err));
  assert_fails(compiled(ahead, product, 8, &v, &err), TP_ERR_DEVICE, "took longer than");
  const char *at = strstr(err.text, "it is kept as ");
  char path[512] = "";
  assert_non_null(at);
  assert_int_equal(sscanf(at, "it is kept as %511[^:]", path), 1);
  assert_int_equal(unlink(path), 0);
  tp__ahead_free(ahead);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tpu),      cmocka_unit_test(test_slices),
      cmocka_unit_test(test_gpu),      cmocka_unit_test(test_too_large),
      cmocka_unit_test(test_cache),    cmocka_unit_test(test_wrong_module),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
