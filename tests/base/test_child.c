/* Proves that a child's crash, hang, hunger for memory, silence or nonsense becomes an error with
 * its cause, and that no process and no descriptor is left behind. Hostile: the bodies below do
 * what libhdf5 does on damaged files. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../testing.h"
#include "base/child.h"

static const tp__child_limits small = {.memory = 64 << 20, .cpu_seconds = 1, .wall_seconds = 20};

static int says(void *arg, int in, int out)
{
  (void)in;
  return tp__child_write(out, arg, strlen(arg)) ? 0 : 1;
}

static int crashes(void *arg, int in, int out)
{
  (void)arg, (void)in, (void)out;
  volatile int *volatile nowhere = NULL;
  *nowhere = 1;
  return 0;
}

static int recurses(void *arg, int in, int out)
{
  volatile char room[4096];
  room[0] = (char)in;
  int more = arg == NULL ? recurses(arg, in + 1, out) : 0;
  return more + room[0];
}

static int aborts(void *arg, int in, int out)
{
  (void)arg, (void)in, (void)out;
  abort();
}

static int is_killed(void *arg, int in, int out)
{
  (void)arg, (void)in, (void)out;
  raise(SIGKILL);
  return 0;
}

static int loops(void *arg, int in, int out)
{
  (void)arg, (void)in, (void)out;
  while (tp__now() >= 0) continue;
  return 0;
}

static int sleeps(void *arg, int in, int out)
{
  (void)arg, (void)in, (void)out;
  while (tp__now() >= 0) pause();
  return 0;
}

static int eats_memory(void *arg, int in, int out)
{
  (void)arg, (void)in;
  void *much =
      mmap(NULL, (size_t)256 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return tp__child_write(out, much == MAP_FAILED ? "none" : "much", 4) ? 0 : 1;
}

static int copies_input(void *arg, int in, int out)
{
  char data[5];
  (void)arg;
  return read(in, data, 5) == 5 && tp__child_write(out, data, 5) ? 0 : 1;
}

static int counts_descriptors(void *arg, int in, int out)
{
  unsigned char open = 0;
  (void)arg, (void)in;
  for (int fd = 0; fd < 200; fd++) open = (unsigned char)(open + (dup2(fd, fd) >= 0));
  return tp__child_write(out, &open, 1) ? 0 : 1;
}

static int open_descriptors(void)
{
  int n = 0;
  for (int fd = 0; fd < 200; fd++) n += dup2(fd, fd) >= 0;
  return n;
}

static void bad_ends(void **state)
{
  (void)state;
  static const struct {
    tp__child_fn body;
    const char *text;
    unsigned wall;
  } cases[] = {
      {crashes, "crashed (SEGV)", 20},
      {recurses, "crashed (SEGV)", 20},
      {aborts, "crashed (ABRT)", 20},
      {is_killed, "crashed (KILL)", 20},
      {loops, "more than 1 s of processor time", 20},
      {sleeps, "took longer than 1 s", 1},
      {says, "ended early", 20},
  };
  int before = open_descriptors();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tp_error err;
    tp__child c;
    char data[8];
    tp__child_limits limits = small;
    limits.wall_seconds = cases[i].wall;
    char *text = cases[i].body == says ? (char *)(uintptr_t) "short" : NULL;
    assert_ok(tp__child_start(&c, cases[i].body, text, -1, &limits, &err));
    assert_fails(tp__child_read(&c, data, 8, &err), TP_ERR_DATA, cases[i].text);
    tp__child_end(&c);
  }
  assert_int_equal(open_descriptors(), before);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  assert_int_equal(errno, ECHILD);
}

static void good_ends(void **state)
{
  (void)state;
  static char text[] = "hello";
  tp_error err;
  tp__child c;
  char data[6] = "";
  assert_ok(tp__child_start(&c, says, text, -1, &small, &err));
  assert_ok(tp__child_read(&c, data, 5, &err));
  tp__child_end(&c);
  assert_string_equal(data, "hello");
  FILE *f = tmpfile();
  assert_non_null(f);
  fputs("input", f);
  rewind(f);
  assert_ok(tp__child_start(&c, copies_input, NULL, fileno(f), &small, &err));
  assert_ok(tp__child_read(&c, data, 5, &err));
  tp__child_end(&c);
  assert_string_equal(data, "input");
  fclose(f);
}

static void limits_hold(void **state)
{
  (void)state;
  tp_error err;
  tp__child c;
  char data[5] = "";
  unsigned char open = 0;
  int extra = dup(2);
  assert_ok(tp__child_start(&c, counts_descriptors, NULL, -1, &small, &err));
  assert_ok(tp__child_read(&c, &open, 1, &err));
  tp__child_end(&c);
  assert_int_equal(open, 4); /* stdin, stdout, stderr (all /dev/null), the pipe */
  close(extra);
  assert_ok(tp__child_start(&c, eats_memory, NULL, -1, &small, &err));
  assert_ok(tp__child_read(&c, data, 4, &err));
  tp__child_end(&c);
  assert_string_equal(data, "none");
}

/* A host that ignores SIGCHLD has its children reaped by the kernel. */
static void children_ignored(void **state)
{
  (void)state;
  static char text[] = "hello";
  tp_error err;
  tp__child c;
  char data[8] = "";
  void (*old)(int) = signal(SIGCHLD, SIG_IGN);
  assert_ok(tp__child_start(&c, says, text, -1, &small, &err));
  assert_ok(tp__child_read(&c, data, 5, &err));
  assert_fails(tp__child_read(&c, data, 1, &err), TP_ERR_DATA, "ended early");
  tp__child_end(&c);
  signal(SIGCHLD, old);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bad_ends),
      cmocka_unit_test(good_ends),
      cmocka_unit_test(limits_hold),
      cmocka_unit_test(children_ignored),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
