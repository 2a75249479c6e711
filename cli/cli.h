/* cli - the command `tepal`: flags to option structs, one public call for each command, messages to
 * the terminal.
 *
 *   main.c      which command, --help, exit code
 *   flags.c     words of the command line into an option struct
 *   help.c      the options as --help shows them; what was probably meant
 *   screen.c    log lines and the progress bar
 *   commands.c  the commands; some more are in demo.c, device_table.c, models.c, plan_command.c
 *
 * Includes tepal.h and the C library only. Tables and CSV go to standard output, everything else to
 * standard error.
 */
#ifndef TP_CLI_H
#define TP_CLI_H

#include <stdio.h>

#include "tepal.h"

/* ---- the words of the command line ---- */

typedef struct cli_words {
  int count;
  char **word; /* after the command's name */
} cli_words;

/* What every command takes, and words that are no flags. */
typedef struct cli_common {
  int threads;
  const char *device;
  int replicas;
  bool quiet;
  bool help;
  const char **positional; /* [n_positional]; the words themselves. freed by cli_common_free */
  size_t n_positional;
  const char *option; /* the first word that set an option of the struct; NULL: none did */
} cli_common;

/* One flag of a command that is not in an option struct. given: set to the value (or "true" for a
 * switch). */
typedef struct cli_flag {
  const char *name;
  bool is_switch;
  const char *given;
} cli_flag;

/* Whether commands of these options have --device and --replicas. */
bool cli_takes_device(tp_options_kind kind);

/* Reads all words into options (may be NULL, then only common and extra flags exist). Fills error
 * on failure. */
tp_status cli_read(const cli_words *words, int kind, void *options, cli_flag *extra, size_t n_extra,
                   cli_common *common, tp_error *error);
/* After cli_read of a training's options: a word that was no flag is a recipe.ini; it is read, then
 * the words once more, so that flags have the last word. Without such a word nothing changes. */
tp_status cli_read_recipe(const cli_words *words, tp_train_options *options, cli_flag *extra,
                          size_t n_extra, cli_common *common, tp_error *error);
void cli_common_free(cli_common *common);

/* The options of a kind as --help shows them, fitted to the terminal's width. */
void cli_print_options(FILE *to, tp_options_kind kind);

/* Names behind what stands in the line already, its columns; in as many lines as they take. */
void cli_print_names(FILE *to, const char *const *names, int columns);

/* The name that is nearest to a word ('-' and '_' are the same), among count names; NULL: none is
 * near. */
const char *cli_nearest(const char *word, const char *const *names, size_t count);

/* The text of an error that starts with an option's name, as "epochs: ...", gets the flag in its
 * place: "--epochs: ...". */
void cli_print_error(const char *command, const tp_error *error, tp_status status);

/* ---- screen ---- */

typedef struct cli_screen {
  bool terminal; /* standard error is one: a bar is drawn */
  bool quiet;    /* warnings only */
  bool bar;      /* a bar stands in the last line */
  double told;   /* seconds of the stage at the last plain line */
} cli_screen;

void cli_screen_start(cli_screen *screen, bool quiet);
/* A bar that stands stays where it is, and what comes next starts in a new line. */
void cli_screen_end(cli_screen *screen);
void cli_screen_log(void *screen, tp_level level, const char *text);
void cli_screen_progress(void *screen, const tp_progress *progress);

/* Opens a context that logs to the screen and stops on SIGINT, SIGTERM and SIGHUP. Returns:
 * cli_context_free. */
tp_status cli_context(cli_screen *screen, const cli_common *common, tp_context **context,
                      tp_error *error);
void cli_context_free(tp_context *context);
/* Columns of the terminal behind a file descriptor; other when it is none. */
int cli_columns(int descriptor, int other);

/* What a command needs from its words to its end. */
typedef struct cli_job {
  cli_common common;
  cli_screen screen;
  tp_context *context;
} cli_job; /* born zeroed */
void cli_job_end(cli_job *job);

/* ---- commands: each prints its own help, and returns a status with error filled ---- */

typedef tp_status (*cli_command_fn)(const cli_words *words, tp_error *error);

tp_status cli_train(const cli_words *words, tp_error *error);
tp_status cli_predict(const cli_words *words, tp_error *error);
tp_status cli_evaluate(const cli_words *words, tp_error *error);
tp_status cli_inspect(const cli_words *words, tp_error *error);
tp_status cli_pack(const cli_words *words, tp_error *error);
tp_status cli_draw(const cli_words *words, tp_error *error);
tp_status cli_summary(const cli_words *words, tp_error *error);
tp_status cli_doctor(const cli_words *words, tp_error *error);
tp_status cli_weights(const cli_words *words, tp_error *error);
tp_status cli_devices(const cli_words *words, tp_error *error);
tp_status cli_demo(const cli_words *words, tp_error *error);
tp_status cli_plan(const cli_words *words, tp_error *error);

/* Fills error; returns TP_ERR_USAGE. */
tp_status cli_usage(tp_error *error, const char *format, ...) TP_PRINTF(2, 3);

#endif
