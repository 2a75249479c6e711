/* Proves that a file appears under its final name whole or not at all, and that errors name path
 * and reason. Hostile cases: standard output by name, a full device, a missing folder, a file-size
 * limit (case B38), a reader's limit. */
#include "../testing.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/tepal-files-XXXXXX";

static void whole_or_nothing(void **state)
{
  (void)state;
  tp_error err;
  char *path = tp__format("%s/a/b/file", folder);
  char *parent = tp__format("%s/a/b", folder);
  assert_fails(tp__file_write(path, "abc", 3, &err), TP_ERR_OUTPUT, "No such file");
  assert_ok(tp__make_folder(parent, &err));
  assert_ok(tp__file_write(path, "abc", 3, &err));
  tp__writer w;
  assert_ok(tp__writer_open(&w, path, &err));
  assert_ok(tp__writer_write(&w, "other", 5, &err));
  tp__writer_cancel(&w);
  tp__buffer b;
  tp__buffer_init(&b, 100);
  assert_ok(tp__file_read(path, &b, &err));
  assert_int_equal(b.size, 3);
  assert_memory_equal(b.data, "abc", 3);
  tp__buffer_free(&b);
  tp__buffer_init(&b, 2);
  assert_fails(tp__file_read(path, &b, &err), TP_ERR_DATA, "limit of 2 bytes");
  tp__buffer_free(&b);
  free(path);
  free(parent);
}

static void links_stay(void **state)
{
  (void)state;
  tp_error err;
  char *path = tp__format("%s/target", folder), *link = tp__format("%s/link", folder), to[200] = "";
  assert_ok(tp__file_write(path, "abc", 3, &err));
  assert_int_equal(symlink("target", link), 0);
  assert_ok(tp__file_write(link, "other", 5, &err));
  assert_int_equal(readlink(link, to, sizeof to - 1), 6);
  tp__buffer b;
  tp__buffer_init(&b, 100);
  assert_ok(tp__file_read(path, &b, &err));
  assert_int_equal(b.size, 5);
  tp__buffer_free(&b);
  free(path);
  free(link);
}

/* The name of standard output must never be renamed over: it is a link in /dev. */
static void standard_output_by_name(void **state)
{
  (void)state;
  tp_error err;
  struct stat st;
  char *path = tp__format("%s/out", folder), *named = tp__format("%s/stdout", folder);
  fflush(stdout);
  int kept = dup(STDOUT_FILENO), file = open(path, O_CREAT | O_RDWR, 0666);
  assert_int_equal(symlink("/proc/self/fd/1", named), 0);
  dup2(file, STDOUT_FILENO);
  tp_status first = tp__file_write(named, "one\n", 4, &err);
  tp_status second = tp__file_write(path, "two\n", 4, &err);
  dup2(kept, STDOUT_FILENO);
  close(kept);
  char text[16] = "";
  assert_int_equal(first, TP_OK);
  assert_int_equal(second, TP_OK);
  assert_int_equal(pread(file, text, sizeof text, 0), 8);
  assert_string_equal(text, "one\ntwo\n");
  assert_int_equal(lstat(named, &st), 0);
  assert_true(S_ISLNK(st.st_mode));
  close(file);
  free(path);
  free(named);
}

static void full_device(void **state)
{
  (void)state;
  tp_error err;
  assert_fails(tp__file_write("/dev/full", "abc", 3, &err), TP_ERR_OUTPUT, "/dev/full");
  assert_non_null(strstr(err.text, "No space left"));
}

static void size_limit_keeps_the_old_file(void **state)
{
  (void)state;
  tp_error err;
  char *path = tp__format("%s/limited", folder);
  assert_ok(tp__file_write(path, "old", 3, &err));
  struct rlimit old, small = {1 << 20, RLIM_INFINITY};
  getrlimit(RLIMIT_FSIZE, &old);
  small.rlim_max = old.rlim_max;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  void *big = calloc(1, 4 << 20);
  tp_status status = tp__file_write(path, big, 4 << 20, &err);
  setrlimit(RLIMIT_FSIZE, &old);
  free(big);
  assert_int_equal(status, TP_ERR_OUTPUT);
  tp__buffer b;
  tp__buffer_init(&b, 100);
  assert_ok(tp__file_read(path, &b, &err));
  assert_memory_equal(b.data, "old", 3);
  tp__buffer_free(&b);
  char *left = tp__format("ls %s | grep -q tmp-", folder);
  assert_int_not_equal(system(left), 0);
  free(left);
  free(path);
}

static int make(void **state)
{
  (void)state;
  return mkdtemp(folder) == NULL;
}

static int clean(void **state)
{
  (void)state;
  char *command = tp__format("rm -rf %s", folder);
  int rc = system(command);
  free(command);
  return rc;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whole_or_nothing),
      cmocka_unit_test(links_stay),
      cmocka_unit_test(standard_output_by_name),
      cmocka_unit_test(full_device),
      cmocka_unit_test(size_limit_keeps_the_old_file),
  };
  return cmocka_run_group_tests(tests, make, clean);
}
