/* Looking for devices on machines that are folders of files: what lies in /sys, /dev, /proc and
 * Python's packages decides which plugins are tried, and each way in which a plugin fails (error,
 * lock, abort, hang, silent end) becomes a reason that names it. fake_plugin.c plays the plugins,
 * copied to where they belong; the names of files and ids are JAX's. */
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/pjrt/search.h"
#include "pjrt_testing.h"

static const char *fake, *library;
static char root[64];

static char *in_root(const char *path)
{
  static char full[1024];
  snprintf(full, sizeof full, "%s%s", root, path);
  return full;
}

static void put_file(const char *path, const void *data, size_t size)
{
  tp_error err = {0};
  char folder[1024];
  snprintf(folder, sizeof folder, "%s", in_root(path));
  *strrchr(folder, '/') = '\0';
  assert_ok(tp__make_folder(folder, &err));
  assert_ok(tp__file_write(in_root(path), data, size, &err));
}

static void put_text(const char *path, const char *text)
{
  put_file(path, text, strlen(text));
}

static void put_copy(const char *path, const char *of)
{
  tp_error err = {0};
  tp__buffer data;
  tp__buffer_init(&data, 1 << 24);
  assert_ok(tp__file_read(of, &data, &err));
  put_file(path, data.data, data.size);
  tp__buffer_free(&data);
}

static void put_pci(const char *slot, const char *vendor, const char *device)
{
  char path[256];
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/vendor", slot);
  put_text(path, vendor);
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/device", slot);
  put_text(path, device);
}

/* A new machine with a network card of the same vendor, a user and no Python. */
static int start(void **state)
{
  (void)state;
  static const char *const variable[] = {"TPU_LIBRARY_PATH",
                                         "PJRT_NAMES_AND_LIBRARY_PATHS",
                                         "PJRT_PLUGIN_LIBRARY_PATH",
                                         "LD_LIBRARY_PATH",
                                         "VIRTUAL_ENV",
                                         "CONDA_PREFIX",
                                         "TEPAL_FAKE"};
  for (size_t i = 0; i < sizeof variable / sizeof *variable; i++) unsetenv(variable[i]);
  setenv("PATH", "/opt/one/bin:/usr/bin", 1);
  setenv("HOME", "/home/me", 1);
  snprintf(root, sizeof root, "/tmp/tepal-search-XXXXXX");
  if (mkdtemp(root) == NULL) return 1;
  put_pci("0000:00:04.0", "0x1ae0\n", "0x0042\n");
  return 0;
}

static int finish(void **state)
{
  (void)state;
  char command[128];
  if (strncmp(root, "/tmp/tepal-search-", 18) != 0) return 1;
  snprintf(command, sizeof command, "PATH=/usr/bin:/bin rm -rf '%s'", root);
  return system(command);
}

static const tp__search *both(void)
{
  static tp__search search;
  search = (tp__search){.root = root, .tpu = true, .gpu = true, .seconds = 20};
  return &search;
}

#define REASON(found, i, part)                                                                     \
  do {                                                                                             \
    assert_non_null((found).item[i].reason);                                                       \
    if (strstr((found).item[i].reason, (part)) == NULL)                                            \
      fail_msg("reason \"%s\" has no \"%s\"", (found).item[i].reason, (part));                     \
  } while (0)

static void test_nothing(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__candidates found = {0};
  put_copy("/usr/lib/python3/dist-packages/libtpu/libtpu.so", fake);
  assert_ok(tp__candidates_search(both(), &found, &err));
  assert_int_equal(found.count, 2);
  assert_int_equal(found.item[0].kind, TP__CLASS_TPU);
  assert_int_equal(found.item[1].kind, TP__CLASS_GPU);
  REASON(found, 0, "no TPU chip on the PCI bus");
  REASON(found, 1, "no /dev/nvidia0");
  assert_non_null(found.item[0].path); /* the plugin is there, and was not started */
  assert_null(found.item[1].path);
  assert_null(tp__candidates_usable(&found));
  tp__candidates_free(&found);
  const tp__search gpu = {.root = root, .gpu = true, .seconds = 20};
  assert_ok(tp__candidates_search(&gpu, &found, &err));
  assert_int_equal(found.count, 1);
  assert_int_equal(found.item[0].kind, TP__CLASS_GPU);
  tp__candidates_free(&found);
}

static void test_chips(void **state)
{
  (void)state;
  static const char *const id[] = {"0x0027", "0x0056", "0x005e", "0x0062", "0x0063",
                                   "0x006f", "0x0076", "0x0083", "0x007c"};
  char slot[32];
  assert_int_equal(tp__tpu_chips(root), 0);
  for (int i = 0; i < 9; i++) {
    snprintf(slot, sizeof slot, "0000:01:%02d.0", i);
    put_pci(slot, "0x1ae0\n", id[i]);
    assert_int_equal(tp__tpu_chips(root), i + 1);
  }
  put_pci("0000:02:00.0", "0x10de\n", "0x0027\n"); /* another vendor's */
  put_pci("0000:02:01.0", "\n", "0x0027\n");
  put_pci("0000:02:02.0", "0x1ae0\n", "");
  assert_int_equal(tp__tpu_chips(root), 9);
  assert_int_equal(tp__tpu_chips("/nowhere"), 0);
}

/* Where libtpu is looked for, best last: each new one is found before the others. */
static void test_tpu_places(void **state)
{
  (void)state;
  tp_error err = {0};
  static const char *const place[] = {
      "/usr/lib/libtpu.so",
      "/usr/lib/python3/dist-packages/libtpu/libtpu.so",
      "/usr/local/lib/python3.9/site-packages/libtpu/libtpu.so",
      "/usr/local/lib/python3.12/site-packages/libtpu/libtpu.so",
      "/home/me/.local/lib/python3.9/site-packages/libtpu/libtpu.so",
      "/opt/real/lib/python3.11/site-packages/libtpu/libtpu.so",
      "/opt/one/lib/python3.11/site-packages/libtpu/libtpu.so",
      "/opt/venv/lib/python3.11/site-packages/libtpu/libtpu.so",
  };
  put_text("/opt/real/bin/python3.11", "#!/bin/sh\n");
  assert_int_equal(chmod(in_root("/opt/real/bin/python3.11"), 0755), 0);
  assert_ok(tp__make_folder(in_root("/opt/one/bin"), &err));
  assert_int_equal(symlink("../../real/bin/python3.11", in_root("/opt/one/bin/python3")), 0);
  for (size_t i = 0; i < sizeof place / sizeof *place; i++) {
    tp__paths paths = {0};
    if (i + 1 == sizeof place / sizeof *place) setenv("VIRTUAL_ENV", "/opt/venv", 1);
    put_text(place[i], "x");
    tp__tpu_plugins(root, &paths);
    assert_int_equal(paths.count, i + 1);
    assert_string_equal(paths.item[0], in_root(place[i]));
    tp__paths_free(&paths);
  }
  tp__paths paths = {0};
  setenv("TPU_LIBRARY_PATH", fake, 1);
  tp__tpu_plugins(root, &paths);
  assert_string_equal(paths.item[0], fake);
  tp__paths_free(&paths);
  setenv("TPU_LIBRARY_PATH", "/no/such/file.so", 1);
  tp__tpu_plugins(root, &paths);
  assert_string_equal(paths.item[0], in_root(place[7]));
  tp__paths_free(&paths);
}

static void test_gpu_places(void **state)
{
  (void)state;
  char names[512];
  static const char *const place[] = {
      "/usr/lib/pjrt_c_api_cuda_plugin.so",
      "/usr/lib/python3/dist-packages/jax_plugins/xla_cuda12/xla_cuda_plugin.so",
      "/usr/lib/python3/dist-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so",
  };
  put_text("/usr/lib/python3/dist-packages/jax_plugins/__init__.py", "");
  put_text("/usr/lib/python3/dist-packages/jax_plugins/xla_cuda14/readme", "");
  for (size_t i = 0; i < 3; i++) {
    tp__paths paths = {0};
    put_text(place[i], "x");
    tp__gpu_plugins(root, &paths);
    assert_int_equal(paths.count, i + 1);
    assert_string_equal(paths.item[0], in_root(place[i]));
    tp__paths_free(&paths);
  }
  tp__paths paths = {0};
  snprintf(names, sizeof names, "bad,cuda:%s,:,gone:/no/such.so", fake);
  setenv("PJRT_NAMES_AND_LIBRARY_PATHS", names, 1);
  tp__gpu_plugins(root, &paths);
  assert_int_equal(paths.count, 4);
  assert_string_equal(paths.item[0], fake);
  tp__paths_free(&paths);
}

static void put_tpu(void)
{
  put_pci("0000:00:05.0", "0x1ae0\n", "0x0027\n");
  put_copy("/usr/lib/python3/dist-packages/libtpu/libtpu.so", fake);
}

static void test_usable(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__candidates found = {0};
  put_tpu();
  put_text("/dev/nvidiactl", "");
  assert_ok(tp__candidates_search(both(), &found, &err));
  assert_int_equal(found.count, 2);
  const tp__candidate *c = tp__candidates_usable(&found);
  assert_ptr_equal(c, &found.item[0]);
  assert_null(c->reason);
  assert_int_equal(c->kind, TP__CLASS_TPU);
  assert_int_equal(c->devices, 2);
  assert_int_equal(c->memory, 16000000000);
  assert_string_equal(c->device_kind, "TPU v3");
  assert_string_equal(c->version, "PJRT 0.999, StableHLO 1.2.3");
  REASON(found, 1, "pip install 'jax-cuda13-plugin[with-cuda]'");
  tp__candidates_free(&found);
}

/* How a plugin fails, and what the reason says. */
static void test_failures(void **state)
{
  (void)state;
  static const struct {
    const char *fakes, *part;
  } failure[] = {
      {"no device", "No jellyfish device found. [NOT_FOUND]"},
      {"busy", "the TPU is in use by another process, or /tmp/libtpu_lockfile is left from one"},
      {"abort", "crashed (ABRT); it said last: Unknown flag in XLA_FLAGS: --nonsense"},
      {"hang", "took longer than 1 s"},
      {"exit", "ended early"},
      {"bad start", "did not start: driver is of 1999"},
      {"minor 20", "too old"},
      {"no cores", "has 0 devices"},
  };
  put_tpu();
  for (size_t i = 0; i < sizeof failure / sizeof *failure; i++) {
    tp_error err = {0};
    tp__candidates found = {0};
    const tp__search search = {
        .root = root, .tpu = true, .seconds = strcmp(failure[i].fakes, "hang") == 0 ? 1 : 20};
    setenv("TEPAL_FAKE", failure[i].fakes, 1);
    assert_ok(tp__candidates_search(&search, &found, &err));
    assert_int_equal(found.count, 1);
    REASON(found, 0, failure[i].part);
    assert_null(tp__candidates_usable(&found));
    tp__candidates_free(&found);
    /* The same plugin by its path. */
    char *path = in_root("/usr/lib/python3/dist-packages/libtpu/libtpu.so");
    assert_ok(tp__candidates_probe(path, search.seconds, false, &found, &err));
    assert_int_equal(found.count, 1);
    REASON(found, 0, failure[i].part);
    tp__candidates_free(&found);
  }
}

static void test_no_libtpu(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__candidates found = {0};
  put_pci("0000:00:05.0", "0x1ae0\n", "0x0063\n");
  assert_ok(tp__candidates_search(both(), &found, &err));
  REASON(found, 0, "there are TPU chips, but no libtpu.so: pip install libtpu");
  tp__candidates_free(&found);
}

static void put_link(const char *path, const char *target)
{
  put_text(path, "");
  assert_int_equal(unlink(in_root(path)), 0);
  assert_int_equal(symlink(target, in_root(path)), 0);
}

/* Who has the chips open is named. */
static void test_busy(void **state)
{
  (void)state;
  static const char *const node[] = {"/dev/accel0", "/dev/vfio/3", "/tmp/libtpu_lockfile"};
  tp_error err = {0};
  put_tpu();
  put_text("/proc/7/comm", "other\n");
  put_link("/proc/7/fd/0", "/dev/null");
  put_link("/proc/7/fd/1", "/dev/vfio/vfio");
  put_text("/proc/4711/comm", "python3\n");
  put_text("/proc/meminfo", "");
  setenv("TEPAL_FAKE", "busy", 1);
  assert_null(tp__tpu_user(root));
  for (size_t i = 0; i < 3; i++) {
    tp__candidates found = {0};
    put_link("/proc/4711/fd/5", node[i]);
    assert_ok(tp__candidates_search(both(), &found, &err));
    REASON(found, 0, "the TPU is in use by process 4711 (python3): ");
    tp__candidates_free(&found);
    assert_int_equal(unlink(in_root("/proc/4711/fd/5")), 0);
  }
}

/* Two GPU plugins: the newer one fails, the older one serves; CUDA's libraries are loaded from
 * beside it, for its child only. */
static void test_gpu(void **state)
{
  (void)state;
  static const char packages[] = "/home/me/.local/lib/python3.11/site-packages";
  tp_error err = {0};
  tp__candidates found = {0};
  char path[512];
  put_text("/dev/nvidia0", "");
  snprintf(path, sizeof path, "%s/jax_plugins/xla_cuda13/xla_cuda_plugin.so", packages);
  put_text(path, "broken");
  snprintf(path, sizeof path, "%s/jax_plugins/xla_cuda12/xla_cuda_plugin.so", packages);
  put_copy(path, fake);
  setenv("TEPAL_FAKE", "gpu", 1);
  assert_ok(tp__candidates_search(both(), &found, &err));
  assert_int_equal(found.count, 3);
  REASON(found, 1, "cannot be loaded");
  assert_ptr_equal(tp__candidates_usable(&found), &found.item[2]);
  assert_int_equal(found.item[2].kind, TP__CLASS_GPU);
  tp__candidates_free(&found);
  setenv("TEPAL_FAKE", "no options", 1); /* a plugin that does not know "preallocate" */
  assert_ok(tp__candidates_search(both(), &found, &err));
  assert_null(found.item[2].reason);
  tp__candidates_free(&found);

  char cuda[512];
  snprintf(cuda, sizeof cuda, "%s/nvidia/cuda_runtime/lib/libcudart.so.77", packages);
  put_copy(cuda, library);
  assert_null(dlopen(in_root(cuda), RTLD_LAZY | RTLD_NOLOAD));
  assert_ok(tp__candidates_search(both(), &found, &err));
  tp__candidates_free(&found);
  assert_null(dlopen(in_root(cuda), RTLD_LAZY | RTLD_NOLOAD));
  tp__plugin *plugin = NULL;
  unsetenv("TEPAL_FAKE");
  assert_ok(tp__plugin_open(in_root(path), &plugin, &err));
  tp__plugin_close(plugin);
  assert_non_null(dlopen(in_root(cuda), RTLD_LAZY | RTLD_NOLOAD));
}

/* A plugin that this process uses is not tried in a child, where its threads would be missing. */
static void test_loaded(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__candidates found = {0};
  tp__plugin *plugin = NULL;
  put_tpu();
  char *path = in_root("/usr/lib/python3/dist-packages/libtpu/libtpu.so");
  assert_ok(tp__plugin_open(path, &plugin, &err));
  assert_ok(tp__candidates_search(both(), &found, &err));
  assert_int_equal(found.item[0].devices, 2);
  tp__candidates_free(&found);
  tp__plugin_close(plugin);
}

/* This machine, with real plugins. */
static void test_real(void **state)
{
  (void)state;
  static const struct {
    const char *name;
    bool usable;
    const char *says;
  } real[] = {
      {PJRT_CPU_81, true, "PJRT 0.81"},   {PJRT_CPU_106, true, "PJRT 0.106"},
      {PJRT_CPU_115, true, "PJRT 0.115"}, {PJRT_TPU, false, "No jellyfish device found"},
      {PJRT_CUDA, false, "GPU"},
  };
  for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
    tp_error err = {0};
    tp__candidates found = {0};
    const char *path = NULL;
    need_plugin(path, real[i].name);
    if (!real[i].usable && (tp__tpu_chips("") > 0 || tp__gpu_nodes(""))) continue;
    assert_ok(tp__candidates_probe(path, 30, false, &found, &err));
    assert_int_equal(found.count, 1);
    if (real[i].usable) {
      assert_null(found.item[0].reason);
      assert_int_equal(found.item[0].kind, TP__CLASS_CPU);
      assert_true(found.item[0].devices > 0);
      assert_non_null(strstr(found.item[0].version, real[i].says));
    } else {
      REASON(found, 0, real[i].says);
    }
    tp__candidates_free(&found);
  }
}

int main(int argc, char **argv)
{
  if (argc != 3) return 2;
  fake = argv[1];
  library = argv[2];
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, finish)
  const struct CMUnitTest tests[] = {
      TEST(test_nothing), TEST(test_chips),  TEST(test_tpu_places), TEST(test_gpu_places),
      TEST(test_usable),  TEST(test_busy),   TEST(test_failures),   TEST(test_no_libtpu),
      TEST(test_gpu),     TEST(test_loaded), TEST(test_real),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
