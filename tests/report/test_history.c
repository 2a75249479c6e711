/* Proves that history.csv has a line an epoch with every figure, an empty field for what was not
 * measured, and is replaced whole or not at all. Expected: the text, by hand. */
#include "../data/data_testing.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "report/report.h"

static const char header[] = "epoch,phase,learning_rate,loss,accuracy,top_5,val_loss,val_accuracy,"
                             "val_top_5,val_macro_f1,seconds,images_per_s\n";

static void assert_text(const char *path, const char *first, const char *rest)
{
  tp_error err = {0};
  tp__buffer text;
  tp__buffer_init(&text, 1 << 20);
  assert_ok(tp__file_read(path, &text, &err));
  assert_ok(tp__buffer_add(&text, "", 1, &err));
  const char *at = (const char *)text.data;
  assert_int_equal(strncmp(at, first, strlen(first)), 0);
  assert_string_equal(at + strlen(first), rest);
  tp__buffer_free(&text);
}

static void lines(void **state)
{
  box *b = *state;
  tp_error err = {0};
  const char *path = box_path(b, "history.csv");
  tp__progress_state s = {0};
  assert_ok(tp__history_write(path, &s, &err));
  assert_text(path, header, "");
  tp__history_row row = {.rate = (double)1e-3f, .seconds = 12.3456, .images_per_s = 98.76};
  for (int q = 0; q < TP__QUANTITIES; q++) row.value[q] = (q + 1) / 4.0;
  assert_ok(tp__history_add(&s, &row, &err));
  row = (tp__history_row){.epoch = 1, .phase = 1, .rate = 1e-5, .seconds = 2};
  for (int q = 0; q < TP__QUANTITIES; q++) row.value[q] = q < 3 ? 1.0 / 3 : NAN;
  row.value[0] = INFINITY;
  assert_ok(tp__history_add(&s, &row, &err));
  assert_ok(tp__history_write(path, &s, &err));
  assert_text(path, header,
              "1,head,0.001,0.25,0.5,0.75,1,1.25,1.5,1.75,12.346,98.8\n"
              "2,fine-tuning,1e-05,inf,0.333333333,0.333333333,,,,,2.000,0.0\n");
  tp__progress_state_free(&s);
}

static void a_full_disk_keeps_the_old_file(void **state)
{
  box *b = *state;
  tp_error err = {0};
  const char *path = box_path(b, "history.csv");
  tp__progress_state s = {0};
  assert_ok(tp__history_write(path, &s, &err));
  tp__history_row row = {0};
  for (int i = 0; i < 100; i++) assert_ok(tp__history_add(&s, &row, &err));
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){200, 200});
    tp_status status = tp__history_write(path, &s, &err);
    _exit(strstr(err.text, path) != NULL ? (int)status : 100);
  }
  int result = 0;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result));
  assert_int_equal(WEXITSTATUS(result), TP_ERR_OUTPUT);
  assert_text(path, header, "");
  tp__progress_state_free(&s);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      box_test(lines),
      box_test(a_full_disk_keeps_the_old_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
