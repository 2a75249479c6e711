/* screen - log lines, the progress bar, stopping by signal; see cli.h */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

void cli_screen_start(cli_screen *s, bool quiet)
{
  const char *kind = getenv("TERM");
  bool dumb = kind != NULL && strcmp(kind, "dumb") == 0; /* knows no way to clear a line */
  *s = (cli_screen){.terminal = !dumb && isatty(STDERR_FILENO) == 1, .quiet = quiet};
}

int cli_columns(int descriptor, int other)
{
  struct winsize size = {0};
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return other;
}

void cli_screen_end(cli_screen *s)
{
  if (s->bar) fprintf(stderr, "\n");
  s->bar = false;
}

void cli_screen_log(void *user, tp_level level, const char *text)
{
  cli_screen *s = user;
  if (s->quiet && level == TP_LEVEL_INFO) return;
  if (s->bar) fprintf(stderr, "\r\033[K");
  s->bar = false;
  fprintf(stderr, "%s%s\n", level == TP_LEVEL_WARNING ? "warning: " : "", text);
}

/* Without a terminal: one line at the end of each stage, and every half minute of a long one. */
static void plain_line(cli_screen *s, const tp_progress *p)
{
  enum { INTERVAL = 30, WIDE = 160 };
  if (p->seconds < s->told) s->told = 0;
  if (!p->done && p->seconds - s->told < INTERVAL) return;
  s->told = p->done ? 0 : p->seconds;
  char text[512];
  fprintf(stderr, "%s\n", tp_progress_text(p, WIDE, text, sizeof text));
}

void cli_screen_progress(void *user, const tp_progress *p)
{
  cli_screen *s = user;
  if (s->quiet) return;
  /* Validation is part of an epoch: its end is not a line of its own, the epoch's last line says
   * it. */
  bool last = p->done && strcmp(p->stage, "validate") != 0;
  if (!s->terminal) {
    if (last || !p->done) plain_line(s, p);
    return;
  }
  char text[512];
  fprintf(stderr, "\r%s\033[K",
          tp_progress_text(p, cli_columns(STDERR_FILENO, 80) - 1, text, sizeof text));
  s->bar = !last;
  if (last) fprintf(stderr, "\n");
  fflush(stderr);
}

/* The one job that a signal can stop. A handler can reach nothing but a global. */
static tp_context *volatile running;

static void on_signal(int number)
{
  if (running != NULL) tp_context_stop(running);
  signal(number, SIG_DFL); /* a second one ends at once */
}

/* A signal that the parent had ignored (nohup) stays so. */
static void stop_on(int number)
{
  struct sigaction before;
  if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN) return;
  signal(number, on_signal);
}

tp_status cli_context(cli_screen *screen, const cli_common *common, tp_context **context,
                      tp_error *error)
{
  cli_screen_start(screen, common->quiet);
  tp_context_options o = {.threads = common->threads,
                          .device = common->device,
                          .replicas = common->replicas,
                          .log = cli_screen_log,
                          .progress = cli_screen_progress,
                          .user = screen};
  tp_status status = tp_context_new(&o, context, error);
  if (status != TP_OK) return status;
  running = *context;
  stop_on(SIGINT);
  stop_on(SIGTERM);
  stop_on(SIGHUP);
  stop_on(SIGUSR1); /* what mpirun and job schedulers pass on before they end a job */
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* a file-size limit becomes a message, not a death */
  return TP_OK;
}

void cli_context_free(tp_context *context)
{
  running = NULL;
  tp_context_free(context);
}
