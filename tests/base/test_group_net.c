/* Proves the group over TCP: processes that were started apart find each other, what they exchange
 * and add up arrives, also when it is larger than a message; a failure is told by one of them, a
 * killed or frozen process ends the others in time; who has another secret, another count or a
 * number that is taken is refused, and who does not come is named; strangers change nothing, and
 * are told of; a wait that is to stop does; a name nobody knows is told soon. What is expected
 * follows from group.h and group_net.h. */
#include "base/group_net.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../testing.h"

enum { MOST = 5, LARGE = 3000000 /* floats: of 4 processes over one message to each */ };

typedef struct member {
  tp__net_place place;
  const char *secret;
  int patience;
} member;

typedef int (*member_fn)(tp__group *group); /* 0: all is as it should be */

static int free_port(void)
{
  int s = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof a;
  assert_int_equal(bind(s, (struct sockaddr *)&a, size), 0);
  assert_int_equal(getsockname(s, (struct sockaddr *)&a, &size), 0);
  close(s);
  return ntohs(a.sin_port);
}

static tp_status open_waiting(const member *m, const tp__group_wait *wait, tp__group **group,
                              tp_error *err)
{
  tp__kv_secret secret = {.size = strlen(m->secret)};
  memcpy(secret.bytes, m->secret, secret.size);
  return tp__group_net(&m->place, &secret, m->patience, wait, group, err);
}

static tp_status open_member(const member *m, tp__group **group, tp_error *err)
{
  return open_waiting(m, NULL, group, err);
}

/* One process for each member; fn gets the group. */
static void begin(const member *m, int count, member_fn fn, pid_t *child)
{
  for (int i = 0; i < count; i++) {
    child[i] = fork();
    assert_true(child[i] >= 0);
    if (child[i] > 0) continue;
    tp__group *group = NULL;
    tp_error err = {0};
    int bad = open_member(&m[i], &group, &err) != TP_OK ? 100 : fn(group);
    if (bad == 100) fprintf(stderr, "member %d: %s\n", i, err.text);
    tp__group_free(group);
    _exit(bad);
  }
}

/* Those of bad (a bit each) may end as they like. */
static void end(const pid_t *child, int count, unsigned bad)
{
  for (int i = 0; i < count; i++) {
    int how = 0;
    assert_int_equal(waitpid(child[i], &how, 0), child[i]);
    if ((bad >> i & 1) == 0) assert_int_equal(how, 0);
  }
}

static void make_members(member *m, int count)
{
  int port = free_port();
  for (int i = 0; i < count; i++) {
    m[i] = (member){
        .place = {.rank = i, .count = count}, .patience = 20, .secret = "sixteen bytes it is"};
    snprintf(m[i].place.address, sizeof m[i].place.address, "127.0.0.1:%d", port);
  }
}

static void pause_ms(long ms)
{
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* ---- what they tell each other ---- */

static float number(int rank, size_t i)
{
  return (float)((i * 7 + (size_t)rank) % 1000) / 1024;
}

static int work(tp__group *g)
{
  tp_error err = {0};
  int all[MOST], own = 10 + g->rank;
  if (g->local != g->size || g->local_rank != g->rank) return 1;
  if (tp__group_gather(g, &own, sizeof own, all, &err) != TP_OK) return 2;
  for (int r = 0; r < g->size; r++)
    if (all[r] != 10 + r) return 3;
  tp__buffer any;
  size_t bytes[MOST];
  tp__buffer_init(&any, 1000);
  if (tp__group_gather_any(g, "aaaa", (size_t)g->rank, &any, bytes, &err) != TP_OK) return 4;
  if (any.size != (size_t)(g->size * (g->size - 1) / 2)) return 5;
  tp__buffer_free(&any);
  float *data = malloc(LARGE * sizeof *data);
  for (size_t i = 0; i < LARGE; i++) data[i] = number(g->rank, i);
  if (tp__group_sum(g, data, LARGE, &err) != TP_OK) return 6;
  for (size_t i = 0; i < LARGE; i++) {
    float sum = number(0, i);
    for (int r = 1; r < g->size; r++) sum += number(r, i);
    if (data[i] != sum) return 7;
  }
  free(data);
  for (int i = 0; i < 200; i++)
    if (tp__group_gather(g, &own, sizeof own, all, &err) != TP_OK) return 8;
  return tp__group_end(g, TP_OK, &err) == TP_OK ? 0 : 9;
}

static void test_work(void **state)
{
  (void)state;
  for (int count = 2; count <= 4; count += 2) {
    member m[MOST];
    pid_t child[MOST];
    make_members(m, count);
    begin(m, count, work, child);
    end(child, count, 0);
  }
}

/* The first comes last; others than members try to get in before. */
static void test_strangers(void **state)
{
  (void)state;
  member m[3];
  pid_t child[3];
  make_members(m, 3);
  member early[] = {m[1], m[2]};
  begin(early, 2, work, child + 1);
  pause_ms(300);
  begin(m, 1, work, child);
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  a.sin_port = htons((uint16_t)strtol(strchr(m[0].place.address, ':') + 1, NULL, 10));
  for (int i = 0; i < 20; i++) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (struct sockaddr *)&a, sizeof a) == 0)
      (void)!send(s, "GET / HTTP/1.0\r\n\r\nand more than a hello takes", 44, MSG_NOSIGNAL);
    close(s);
    pause_ms(2);
  }
  end(child, 3, 0);
}

/* ---- failures ---- */

/* Process 1 fails; process 0 tells it, the others with its status only. */
static int meet_failure(tp__group *g)
{
  tp_error err = {0};
  int all[MOST], own = 0;
  if (tp__group_gather(g, &own, sizeof own, all, &err) != TP_OK) return 1;
  if (g->rank == 1) {
    tp_status status = tp__fail(&err, TP_ERR_OUTPUT, "disk full");
    tp__group_fail(g, status, &err);
    return err.text[0] == '\0' ? 0 : 2;
  }
  if (tp__group_gather(g, &own, sizeof own, all, &err) != TP_ERR_OUTPUT || !g->over) return 3;
  if (g->rank > 0) return err.text[0] == '\0' ? 0 : 4;
  return strstr(err.text, "process 1 of 3 (") != NULL && strstr(err.text, "): disk full") != NULL
             ? 0
             : 5;
}

static void test_failure(void **state)
{
  (void)state;
  member m[3];
  pid_t child[3];
  make_members(m, 3);
  begin(m, 3, meet_failure, child);
  end(child, 3, 0);
}

static const char *expected; /* what is said of the lost one */
static int victim;

/* The victim does nothing; the others wait for it, as an exchange or for something else. */
static int meet_loss(tp__group *g)
{
  tp_error err = {0};
  int all[MOST], own = 0;
  if (tp__group_gather(g, &own, sizeof own, all, &err) != TP_OK) return 1;
  while (g->rank == victim) pause_ms(1000);
  tp_status status = TP_OK;
  if (g->rank == 2)
    for (; status == TP_OK; pause_ms(10)) status = tp__group_lost(g, &err);
  else
    status = tp__group_gather(g, &own, sizeof own, all, &err);
  return status == TP_ERR_DEVICE && g->over && strstr(err.text, expected) != NULL ? 0 : 2;
}

static void lose_one(int who, int how, const char *text)
{
  member m[4];
  pid_t child[4];
  expected = text;
  victim = who;
  make_members(m, 4);
  begin(m, 4, meet_loss, child);
  pause_ms(1500);
  kill(child[who], how);
  for (int i = 0; i < 4; i++) {
    int code = 0;
    if (i == who) continue;
    assert_int_equal(waitpid(child[i], &code, 0), child[i]);
    assert_int_equal(code, 0);
  }
  kill(child[who], SIGKILL);
  assert_int_equal(waitpid(child[who], NULL, 0), child[who]);
}

static void test_loss(void **state)
{
  (void)state;
  setenv("TEPAL_PROCESS_TIMEOUT", "3", 1);
  lose_one(1, SIGKILL, ") has ended without a word");
  lose_one(0, SIGKILL, "process 0 of 4 (");
  lose_one(3, SIGSTOP, ") has not been heard of for 3 seconds");
  lose_one(0, SIGSTOP, ") has not been heard of for 3 seconds");
  unsetenv("TEPAL_PROCESS_TIMEOUT");
}

/* ---- who may take part ---- */

static int nothing(tp__group *g)
{
  tp_error err = {0};
  return tp__group_end(g, TP_OK, &err) == TP_OK ? 0 : 1;
}

static void test_refused(void **state)
{
  (void)state;
  const struct {
    int rank, count;
    const char *secret, *text;
  } wrong[] = {
      {2, 3, "another one, as long", "secret"},
      {2, 4, "sixteen bytes it is", "4 processes, process 0 that there are 3"},
      {1, 3, "sixteen bytes it is", "there is a process 1 already"},
  };
  member m[3], late;
  pid_t child[3];
  tp_error err = {0};
  tp__group *group = NULL;
  make_members(m, 3);
  begin(m, 2, nothing, child);
  pause_ms(500);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    late = m[2];
    late.place.rank = wrong[i].rank;
    late.place.count = wrong[i].count;
    late.secret = wrong[i].secret;
    assert_true(open_member(&late, &group, &err) != TP_OK);
    assert_non_null(strstr(err.text, wrong[i].text));
    assert_null(group);
  }
  begin(m + 2, 1, nothing, child + 2);
  end(child, 3, 0);
}

static void test_nobody_comes(void **state)
{
  (void)state;
  member m[3];
  pid_t child[1];
  tp_error err = {0};
  tp__group *group = NULL;
  make_members(m, 3);
  for (int i = 0; i < 3; i++) m[i].patience = 1;
  assert_fails(open_member(&m[1], &group, &err), TP_ERR_DEVICE, "process 1 of 3: ");
  begin(m, 1, nothing, child);
  assert_fails(open_member(&m[1], &group, &err), TP_ERR_DEVICE,
               "process 2 of 3 has not come within 1 seconds");
  end(child, 1, 1);
}

/* ---- the wait for the others ---- */

static volatile sig_atomic_t wants_stop;

static void ask_stop(int number)
{
  (void)number;
  wants_stop = 1;
}

static void keep_line(void *user, tp__level level, const char *text)
{
  char *lines = user;
  size_t used = strlen(lines);
  snprintf(lines + used, 1000 - used, "%s%s\n", level == TP__WARNING ? "warning: " : "", text);
}

static int times(const char *text, const char *piece)
{
  int n = 0;
  for (const char *at = text; (at = strstr(at, piece)) != NULL; at++) n++;
  return n;
}

/* 0: the wait has told what it should, and ended by a stop. */
static int wait_in_vain(const member *m, int warnings)
{
  char lines[1000] = "";
  tp__log log = {.line = keep_line, .user = lines};
  tp__group_wait wait = {.log = &log, .stop = &wants_stop};
  tp__group *group = NULL;
  tp_error err = {0};
  bool first = m->place.rank == 0;
  if (open_waiting(m, &wait, &group, &err) != TP_STOPPED || group != NULL) return 1;
  if (strstr(err.text, "stopped while waiting for the other processes") == NULL) return 2;
  const char *said = first ? "waiting for 2 of 3 processes at " : "waiting for process 0 at ";
  if (times(lines, said) != 1 || times(lines, m->place.address) != 1) return 3;
  if (times(lines, ", for up to 300 s\n") != 1) return 4;
  return times(lines, "warning: a process at 127.0.0.1 was turned away: it has another secret\n") ==
                 (first ? warnings : 0)
             ? 0
             : 5;
}

/* Of 3 processes those two numbers (or that one) wait and the first of them gets a signal. */
static void stop_wait(int first, int last, int strangers)
{
  member m[3];
  pid_t child[3];
  tp__group *group = NULL;
  make_members(m, 3);
  for (int r = first; r <= last; r++) {
    m[r].patience = 300;
    child[r] = fork();
    assert_true(child[r] >= 0);
    if (child[r] == 0) _exit(wait_in_vain(&m[r], strangers > 0));
  }
  m[2].secret = "another one, as long";
  pause_ms(700);
  for (int i = 0; i < strangers; i++) {
    tp_error err = {0};
    assert_fails(open_member(&m[2], &group, &err), TP_ERR_DEVICE, "secret");
  }
  kill(child[first], SIGINT);
  alarm(60); /* long before they give up by themselves */
  end(child + first, last - first + 1, 0);
  alarm(0);
}

static void test_stop(void **state)
{
  (void)state;
  signal(SIGINT, ask_stop);
  stop_wait(0, 0, 0);
  stop_wait(0, 1, 2); /* the second one hears of it */
  stop_wait(1, 1, 0);
  signal(SIGINT, SIG_DFL);
}

static void test_unknown_name(void **state)
{
  (void)state;
  member m[2];
  tp_error err = {0};
  tp__group *group = NULL;
  make_members(m, 2);
  m[1].patience = 300;
  snprintf(m[1].place.address, sizeof m[1].place.address, "nobody.invalid:7979");
  alarm(120);
  assert_fails(open_member(&m[1], &group, &err), TP_ERR_DEVICE, "nobody.invalid:7979: ");
  alarm(0);
}

/* ---- the environment ---- */

static void test_environment(void **state)
{
  (void)state;
  static const char *const name[] = {"TEPAL_PROCESSES", "TEPAL_PROCESS", "TEPAL_ADDRESS",
                                     "TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES"};
  const struct {
    const char *value[5];
    long started;
    const char *text; /* NULL: alone */
  } cases[] = {
      {{NULL, NULL, "x:1", "1", "a,b"}, 1, NULL},
      {{"1", "0", "x:1"}, 1, NULL},
      {{"tpu", NULL, NULL, "0", "localhost"}, 1, NULL},
      {{NULL, "1"}, 2, "TEPAL_PROCESSES: is not set"},
      {{"many"}, 2, "TEPAL_PROCESSES: \"many\""},
      {{"0"}, 2, "TEPAL_PROCESSES: \"0\""},
      {{"99999", "0", "x:1"}, 99999, "TEPAL_PROCESSES: \"99999\""},
      {{"tpu"}, 2, "TPU_WORKER_HOSTNAMES"},
      {{"2"}, 2, "TEPAL_PROCESS: is not set"},
      {{"2", "2"}, 2, "TEPAL_PROCESS: 2; wanted is the number of this process, 0 to 1"},
      {{"2", "-1"}, 2, "TEPAL_PROCESS: -1"},
      {{"2", "1"}, 2, "TEPAL_ADDRESS: is not set"},
      {{"tpu", "0", NULL, "3", "a,b,c"}, 3, "TPU_WORKER_ID: 3"},
      {{"tpu", NULL, NULL, "1", "a,b,c"}, 3, "need a secret"},
      {{"2", "1", "no-port"}, 2, "need a secret"},
  };
  unsetenv("TEPAL_SECRET");
  unsetenv("TEPAL_SECRET_FILE");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tp_error err = {0};
    tp__group *group = NULL;
    for (int v = 0; v < 5; v++)
      if (cases[i].value[v] != NULL)
        setenv(name[v], cases[i].value[v], 1);
      else
        unsetenv(name[v]);
    assert_int_equal(tp__group_started(false), cases[i].started);
    if (cases[i].text == NULL)
      assert_ok(tp__group_open(NULL, &group, &err));
    else
      assert_fails(tp__group_open(NULL, &group, &err), TP_ERR_USAGE, cases[i].text);
    assert_null(group);
  }
  setenv("TEPAL_SECRET", "sixteen bytes it is", 1);
  tp_error err = {0};
  tp__group *group = NULL;
  assert_fails(tp__group_open(NULL, &group, &err), TP_ERR_USAGE, "\"no-port\" is no address");
  for (int v = 0; v < 5; v++) unsetenv(name[v]);
  unsetenv("TEPAL_SECRET");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_work),        cmocka_unit_test(test_strangers),
      cmocka_unit_test(test_failure),     cmocka_unit_test(test_loss),
      cmocka_unit_test(test_refused),     cmocka_unit_test(test_nobody_comes),
      cmocka_unit_test(test_stop),        cmocka_unit_test(test_unknown_name),
      cmocka_unit_test(test_environment),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
