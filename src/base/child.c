/* child - see child.h */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_OUT = 3, CHILD_IN = 4, SIGNAL_STACK = 65536 };

/* ---- in the child ---- */

static void end_quietly(int number)
{
  _exit(128 + number);
}

/* The parent's handlers (crash reporters) are not the child's, and a handler that exits leaves no
 * core file. */
static void take_signals(void *stack)
{
  static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGSYS, SIGTRAP};
  stack_t alternate = {.ss_sp = stack, .ss_size = SIGNAL_STACK};
  (void)sigaltstack(&alternate, NULL);
  struct sigaction action = {.sa_handler = end_quietly, .sa_flags = SA_ONSTACK};
  sigset_t unblock;
  sigemptyset(&unblock);
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
    sigaction(fatal[i], &action, NULL);
    sigaddset(&unblock, fatal[i]);
  }
  sigprocmask(SIG_UNBLOCK, &unblock, NULL);
}

/* Pages of address space in use, read without stdio; 0 where /proc is missing. */
static uint64_t address_space_pages(void)
{
  char text[64] = {0};
  int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  uint64_t pages = 0;
  for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
    pages = pages * 10 + (uint64_t)(text[i] - '0');
  return pages;
}

static void lower(int resource, uint64_t value)
{
  struct rlimit limit;
  if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) return;
  if (limit.rlim_max != RLIM_INFINITY && value > limit.rlim_max) value = limit.rlim_max;
  limit.rlim_cur = (rlim_t)value;
  (void)setrlimit((__rlimit_resource_t)resource, &limit);
}

static void set_limits(const tp__child_limits *limits)
{
  uint64_t used = address_space_pages() * (uint64_t)sysconf(_SC_PAGESIZE);
  lower(RLIMIT_CORE, 0);
  if (limits->cpu_seconds > 0) lower(RLIMIT_CPU, limits->cpu_seconds);
  if (limits->memory > 0 && used > 0) lower(RLIMIT_AS, used + limits->memory);
}

/* Moves the pipe and `in` to 3 and 4, stdin to stderr to /dev/null, and closes all others: an
 * inherited pipe end of another child would hide that child's end from its reader. */
static int take_descriptors(int in, int out)
{
  int high_out = fcntl(out, F_DUPFD, 16);
  int high_in = in >= 0 ? fcntl(in, F_DUPFD, 16) : -1;
  int null = open("/dev/null", O_RDWR);
  if (high_out < 0 || (in >= 0 && high_in < 0) || null < 0) return -1;
  for (int fd = 0; fd < 3; fd++)
    if (dup2(null, fd) < 0) return -1;
  if (dup2(high_out, CHILD_OUT) < 0) return -1;
  if (in >= 0 && dup2(high_in, CHILD_IN) < 0) return -1;
  (void)close_range(in >= 0 ? CHILD_IN + 1 : CHILD_OUT + 1, ~0U,
                    0); /* Linux 5.9; else they stay open */
  return 0;
}

_Noreturn static void run_child(tp__child_fn body, void *arg, int in, int out, pid_t parent,
                                const tp__child_limits *limits)
{
  _Alignas(16) unsigned char signal_stack[SIGNAL_STACK];
  take_signals(signal_stack);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent || take_descriptors(in, out) != 0) _exit(126);
  set_limits(limits);
  _exit(body(arg, in >= 0 ? CHILD_IN : -1, CHILD_OUT));
}

bool tp__child_write(int out, const void *data, size_t size)
{
  const char *p = data;
  while (size > 0) {
    ssize_t n = write(out, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    size -= (size_t)n;
  }
  return true;
}

/* ---- in the parent ---- */

tp_status tp__child_start(tp__child *c, tp__child_fn body, void *arg, int in,
                          const tp__child_limits *limits, tp_error *err)
{
  *c = (tp__child){.pid = -1, .fd = -1, .limits = *limits};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return tp__fail(err, TP_ERR_INTERNAL, "a pipe could not be made: %s", strerror(errno));
  pid_t parent = getpid();
  c->pid = fork();
  if (c->pid == 0) run_child(body, arg, in, ends[1], parent, limits);
  int cause = errno;
  close(ends[1]);
  if (c->pid < 0) {
    close(ends[0]);
    return tp__fail(err, TP_ERR_INTERNAL, "a child process could not be started: %s",
                    strerror(cause));
  }
  c->fd = ends[0];
  c->deadline = tp__now() + (double)limits->wall_seconds;
  return TP_OK;
}

/* Waits for the end until the deadline, then kills. Returns the wait status, or -1 when the host
 * reaps all children itself (SIGCHLD ignored). */
static int reap(tp__child *c)
{
  int state = -1;
  pid_t got = 0;
  while ((got = waitpid(c->pid, &state, WNOHANG)) == 0 && tp__now() < c->deadline)
    (void)poll(NULL, 0, 2);
  if (got == 0) {
    kill(c->pid, SIGKILL);
    do got = waitpid(c->pid, &state, 0);
    while (got < 0 && errno == EINTR);
  }
  c->pid = -1;
  return got < 0 ? -1 : state;
}

static tp_status timed_out(const tp__child *c, tp_error *err)
{
  return tp__fail(err, TP_ERR_DATA, "took longer than %u s", c->limits.wall_seconds);
}

/* The pipe ended too early: says why. */
static tp_status ended_early(tp__child *c, tp_error *err)
{
  bool late = tp__now() >= c->deadline;
  int state = reap(c);
  if (late) return timed_out(c, err);
  int number = state < 0                                      ? 0
               : WIFSIGNALED(state)                           ? WTERMSIG(state)
               : WIFEXITED(state) && WEXITSTATUS(state) > 128 ? WEXITSTATUS(state) - 128
                                                              : 0;
  if (number == SIGXCPU)
    return tp__fail(err, TP_ERR_DATA, "took more than %u s of processor time",
                    c->limits.cpu_seconds);
  if (number != 0) return tp__fail(err, TP_ERR_DATA, "crashed (%s)", sigabbrev_np(number));
  return tp__fail(err, TP_ERR_DATA, "ended early");
}

tp_status tp__child_read(tp__child *c, void *data, size_t size, tp_error *err)
{
  char *p = data;
  while (size > 0) {
    double left = c->deadline - tp__now();
    if (left <= 0) return timed_out(c, err);
    struct pollfd wait = {.fd = c->fd, .events = POLLIN};
    int ready = poll(&wait, 1, (int)(left * 1000) + 1);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    ssize_t n = read(c->fd, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ended_early(c, err);
    p += n;
    size -= (size_t)n;
  }
  return TP_OK;
}

void tp__child_end(tp__child *c)
{
  if (c->fd >= 0) close(c->fd); /* a child that still writes gets SIGPIPE or EPIPE */
  c->fd = -1;
  if (c->pid < 0) return;
  kill(c->pid, SIGKILL); /* it has sent all that was wanted, or nothing is wanted any more */
  (void)reap(c);
}
