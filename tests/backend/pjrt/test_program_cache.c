/* Compiled programs come back from their folder and give the same results; damaged or refused
 * entries are compiled again and replaced; the folder keeps within its limit and loses the entry
 * that was used longest ago first. Damage is done here, byte by byte; results are small sums. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/pjrt/program_cache.h"
#include "pjrt_testing.h"

enum { REPLICAS = 8 };

static char folder[] = "/tmp/tepal-cache-XXXXXX";
static tp__plugin *plugin;
static tp__client *client;

static void clean(const char *path)
{
  DIR *dir = opendir(path);
  for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
    if (e->d_name[0] != '.') unlinkat(dirfd(dir), e->d_name, 0);
  if (dir != NULL) closedir(dir);
}

static int start(void **state)
{
  (void)state;
  tp_error err = {0};
  if (mkdtemp(folder) == NULL) return 1;
  const char *path = plugin_file(PJRT_CPU_115);
  if (path == NULL) return 0;
  tp__client_option count = {.name = "cpu_device_count", .number = REPLICAS};
  return tp__plugin_open(path, &plugin, &err) != TP_OK ||
         tp__client_new(plugin, &count, 1, &client, &err) != TP_OK;
}

static int finish(void **state)
{
  (void)state;
  tp__client_free(client);
  tp__plugin_close(plugin);
  clean(folder);
  return rmdir(folder);
}

static int empty(void **state)
{
  (void)state;
  clean(folder);
  return 0;
}

/* Path of the only entry. */
static char *only_entry(void)
{
  static char path[4096];
  DIR *dir = opendir(folder);
  int n = 0;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    n++;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
  }
  closedir(dir);
  assert_int_equal(n, 1);
  assert_non_null(strstr(path, ".program"));
  return path;
}

/* w - the sum of all replicas' g, w donated. */
static const char step[] =
    "module { func.func public @main(%w: tensor<2xf32> {tf.aliasing_output = 0 : i32},"
    " %g: tensor<2xf32>) -> tensor<2xf32> {\n"
    "  %0 = \"stablehlo.all_reduce\"(%g) ({\n"
    "  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
    "    %s = stablehlo.add %a, %b : tensor<f32>\n"
    "    stablehlo.return %s : tensor<f32>\n"
    "  }) {replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>}"
    " : (tensor<2xf32>) -> tensor<2xf32>\n"
    "  %1 = stablehlo.subtract %w, %0 : tensor<2xf32>\n"
    "  return %1 : tensor<2xf32> } }\n";

/* Compiles or loads, checks where it came from, runs it and checks what it gives. */
static void check_step(const char *cache, bool cached)
{
  tp_error err = {0};
  tp__executable *x = NULL;
  const tp__shape two = {1, {2}};
  tp__device_buffer *in[2 * REPLICAS], *out[REPLICAS];
  assert_ok(tp__executable_new(client, step, strlen(step), REPLICAS, cache, &x, &err));
  assert_int_equal(tp__executable_cached(x), cached);
  for (int r = 0; r < REPLICAS; r++) {
    const float w[] = {100, 200}, g[] = {(float)r, 1};
    assert_ok(tp__device_buffer_new(client, r, TP__F32, &two, w, &in[2 * r], &err));
    assert_ok(tp__device_buffer_new(client, r, TP__F32, &two, g, &in[2 * r + 1], &err));
  }
  assert_ok(tp__executable_run(x, in, 2, out, 1, NULL, &err));
  for (int r = 0; r < REPLICAS; r++) {
    float y[2] = {0};
    tp__event *event = NULL;
    assert_ok(tp__device_buffer_read(out[r], y, sizeof y, &event, &err));
    assert_ok(tp__event_wait(event, &err));
    assert_true(y[0] == 72 && y[1] == 192);
    assert_true(tp__device_buffer_is_gone(in[2 * r]));
    tp__device_buffer_free(in[2 * r]);
    tp__device_buffer_free(in[2 * r + 1]);
    tp__device_buffer_free(out[r]);
  }
  tp__executable_free(x);
}

#define need_client()                                                                              \
  do {                                                                                             \
    if (client == NULL) {                                                                          \
      print_message("skipped: no PJRT plugin (make test-pjrt gets it)\n");                         \
      skip();                                                                                      \
    }                                                                                              \
  } while (0)

static void test_second_time(void **state)
{
  (void)state;
  need_client();
  check_step(folder, false);
  (void)only_entry();
  check_step(folder, true);
  check_step(folder, true);
  check_step(NULL, false);
}

/* Another module, or other options, is another entry. */
static void test_keys(void **state)
{
  (void)state;
  need_client();
  tp_error err = {0};
  char key[4][TP__KEY];
  const tp__buffer options = {.data = (uint8_t *)"ab", .size = 2};
  const tp__buffer other = {.data = (uint8_t *)"a", .size = 1};
  assert_ok(tp__program_key(client, "xyz", 3, &options, key[0], &err));
  assert_ok(tp__program_key(client, "xyz", 3, &options, key[1], &err));
  assert_ok(tp__program_key(client, "xyz", 3, &other, key[2], &err));
  assert_ok(tp__program_key(client, "xy", 2, &options, key[3], &err));
  assert_int_equal(strlen(key[0]), 64);
  assert_string_equal(key[0], key[1]);
  assert_string_not_equal(key[0], key[2]);
  assert_string_not_equal(key[0], key[3]);
  assert_string_not_equal(key[2], key[3]);
}

static void overwrite(const char *path, off_t at, const void *data, size_t size)
{
  int fd = open(path, O_WRONLY);
  assert_true(fd >= 0 && pwrite(fd, data, size, at) == (ssize_t)size);
  close(fd);
}

static void test_damage(void **state)
{
  (void)state;
  need_client();
  check_step(folder, false);
  char *path = only_entry();
  struct stat st;
  assert_int_equal(stat(path, &st), 0);
  const off_t flips[] = {0, 15, 16, 79, 80, 81, 144, 145, 146, 147, st.st_size / 2, st.st_size - 1};
  for (size_t i = 0; i < sizeof flips / sizeof *flips; i++) {
    uint8_t byte = 0;
    int fd = open(path, O_RDONLY);
    assert_int_equal(pread(fd, &byte, 1, flips[i]), 1);
    close(fd);
    byte ^= 1;
    overwrite(path, flips[i], &byte, 1);
    check_step(folder, false);
    check_step(folder, true); /* it was replaced */
  }
  const off_t sizes[] = {0, 1, 100, 145, 146, st.st_size - 1};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_int_equal(truncate(path, sizes[i]), 0);
    check_step(folder, false);
    check_step(folder, true);
  }
}

/* A whole entry that the plugin does not take. */
static void test_refused(void **state)
{
  (void)state;
  need_client();
  check_step(folder, false);
  char *path = only_entry();
  char key[TP__KEY];
  snprintf(key, sizeof key, "%s", strrchr(path, '/') + 1);
  tp__program_write(folder, key, "no program at all", 17, 1 << 20);
  check_step(folder, false);
  check_step(folder, true);
}

/* Where nothing can be written, programs are compiled each time. */
static void test_no_folder(void **state)
{
  (void)state;
  need_client();
  char inside[64];
  check_step("/dev/null/cache", false);
  snprintf(inside, sizeof inside, "%s/file", folder);
  tp_error err = {0};
  assert_ok(tp__file_write(inside, "x", 1, &err));
  check_step(inside, false);
  assert_true(tp__is_file(inside));
}

static void keys_of(char first, char key[TP__KEY])
{
  memset(key, first, 64);
  key[64] = '\0';
}

static bool is_there(char first)
{
  char key[TP__KEY];
  tp__buffer data;
  keys_of(first, key);
  bool there = tp__program_read(folder, key, &data);
  if (there) {
    assert_int_equal(data.size, 1000);
    for (size_t i = 0; i < data.size; i++) assert_int_equal(data.data[i], first);
    tp__buffer_free(&data);
  }
  return there;
}

/* Moves the time of use into the past. */
static void age(char first, int seconds)
{
  char path[200], key[TP__KEY];
  keys_of(first, key);
  snprintf(path, sizeof path, "%s/%s.program", folder, key);
  struct timespec now, times[2];
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec -= seconds;
  times[0] = times[1] = now;
  assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void put(char first, uint64_t limit)
{
  char key[TP__KEY], data[1000];
  keys_of(first, key);
  memset(data, first, sizeof data);
  tp__program_write(folder, key, data, sizeof data, limit);
}

static void test_limit(void **state)
{
  (void)state;
  char other[64];
  tp_error err = {0};
  snprintf(other, sizeof other, "%s/notes.txt", folder);
  assert_ok(tp__file_write(other, "kept", 4, &err));
  for (char c = 'a'; c < 'e'; c++) put(c, 5000);
  age('a', 10);
  age('b', 40);
  age('c', 30);
  age('d', 20);
  assert_true(is_there('b')); /* used just now, so c is the oldest */
  put('e', 5000);
  assert_false(is_there('c'));
  assert_true(is_there('a') && is_there('b') && is_there('d') && is_there('e'));
  put('f', 2500); /* a smaller limit: only the newest stay */
  assert_true(is_there('f'));
  int left = is_there('a') + is_there('b') + is_there('d') + is_there('e');
  assert_int_equal(left, 1);
  put('g', 999); /* larger than the limit itself: not kept, and nothing is lost for it */
  assert_false(is_there('g'));
  assert_true(is_there('f'));
  assert_true(tp__is_file(other));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_second_time, empty), cmocka_unit_test_setup(test_keys, empty),
      cmocka_unit_test_setup(test_damage, empty),      cmocka_unit_test_setup(test_refused, empty),
      cmocka_unit_test_setup(test_no_folder, empty),   cmocka_unit_test_setup(test_limit, empty),
  };
  return cmocka_run_group_tests(tests, start, finish);
}
