/* main - which command, and the exit code; see cli.h */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const struct {
  const char *name;
  cli_command_fn run;
  const char *help;
} commands[] = {
    {"demo", cli_demo, "generated flowers -> train -> predict -> score, offline"},
    {"train", cli_train, "train on TFRecords, a folder per class, or a CSV; --resume goes on"},
    {"predict", cli_predict, "submission.csv from one run or an ensemble"},
    {"evaluate", cli_evaluate, "scores of a run on data, or of a CSV against another"},
    {"inspect", cli_inspect, "what is in a data set, and what is wrong with it"},
    {"pack", cli_pack, "photos -> TFRecord shards with a split"},
    {"draw", cli_draw, "draw flowers as TFRecord shards"},
    {"summary", cli_summary, "a network's layers, as Keras prints them"},
    {"weights", cli_weights, "list or get pretrained weights"},
    {"devices", cli_devices, "what training would run on"},
    {"plan", cli_plan, "does a training fit a TPU or GPU that is not here, and can it be fed?"},
    {"doctor", cli_doctor, "do the fast kernels and the device compute what plain loops do?"},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *to)
{
  fprintf(to, "tepal %s trains image classifiers.\n\ntepal COMMAND [words and flags]\n\n",
          tp_version());
  for (int i = 0; i < COMMANDS; i++)
    fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
  fprintf(to,
          "\ntepal COMMAND --help tells more. Exit codes: 0 done, 1 tepal's fault, 2 wrong usage,\n"
          "3 bad data or weights, 4 device, 5 output not written, 6 stopped (resumable).\n");
}

/* Whatever was printed must have arrived: a full disk behind a pipe or file is an error, too. */
static tp_status close_output(tp_status status)
{
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  /* A reader that has seen enough (| head) is no news. */
  if (errno != EPIPE) fprintf(stderr, "tepal: standard output: %s\n", strerror(errno));
  return status == TP_OK ? TP_ERR_OUTPUT : status;
}

static tp_status run_command(const char *name, const cli_words *words)
{
  tp_error error = {0};
  for (int i = 0; i < COMMANDS; i++) {
    if (strcmp(commands[i].name, name) != 0) continue;
    tp_status status = close_output(commands[i].run(words, &error));
    if (status != TP_OK && error.text[0] != '\0') cli_print_error(name, &error, status);
    return status;
  }
  const char *names[COMMANDS];
  for (int i = 0; i < COMMANDS; i++) names[i] = commands[i].name;
  const char *near = cli_nearest(name, names, COMMANDS);
  if (near != NULL)
    fprintf(stderr, "tepal: there is no command \"%s\"; is \"%s\" meant?\n", name, near);
  else
    fprintf(stderr, "tepal: there is no command \"%s\"; tepal --help lists them\n", name);
  return TP_ERR_USAGE;
}

/* A closed standard descriptor would be given to the next file that is opened, and messages would
 * end up in it. Open for reading, it fails when it is written to, as a closed one does. */
static void keep_standard_descriptors(void)
{
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) != fd) return;
}

int main(int argc, char **argv)
{
  keep_standard_descriptors();
  /* PJRT plugins write lines to standard error for all they do, and for errors that they also
   * return; who wants them sets 0. */
  (void)setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
  if (argc < 2) {
    print_help(stderr);
    return TP_ERR_USAGE;
  }
  const char *name = argv[1];
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
    print_help(stdout);
    return (int)close_output(TP_OK);
  }
  if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
    printf("tepal %s\n", tp_version());
    return (int)close_output(TP_OK);
  }
  return (int)run_command(name, &(cli_words){argc - 2, argv + 2});
}
