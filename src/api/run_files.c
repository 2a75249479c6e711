/* run_files - see run_files.h */
#include "run_files.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "options.h"

/* What a run has written, by name; and the beginning of event files' names. */
static const char *const run_file[] = {"recipe.ini", "last.safetensors", "best.safetensors",
                                       "best.h5",    "history.csv",      "bad-records.tsv",
                                       "log.txt"};
enum { RUN_FILES = sizeof run_file / sizeof run_file[0], LOG = RUN_FILES - 1 };
static const char events_prefix[] = "events.out.tfevents.";

/* ---- log ---- */

/* A line that cannot be kept is only missing from log.txt. */
static void add_line(tp__run_files *r, const char *mark, const char *text)
{
  char stamp[32];
  time_t now = time(NULL);
  struct tm tm;
  strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &tm));
  if (r->log == NULL) {
    (void)!tp__buffer_printf(&r->early, NULL, "%s %s%s\n", stamp, mark, text);
    return;
  }
  fprintf(r->log, "%s %s%s\n", stamp, mark, text);
  fflush(r->log);
}

static void log_line(void *user, tp__level level, const char *text)
{
  tp__run_files *r = user;
  if (r->outer.line != NULL) r->outer.line(r->outer.user, level, text);
  add_line(r, level == TP__WARNING ? "warning: " : "", text);
}

void tp__run_files_open(tp__run_files *r, const tp_train_options *options, bool resume,
                        const tp__log *outer)
{
  *r = (tp__run_files){.options = options, .resume = resume, .outer = *outer};
  r->both = (tp__log){.line = log_line, .user = r};
  tp__buffer_init(&r->early, 1 << 20);
}

/* ---- the folder ---- */

static char *path_in(const char *run, const char *file, tp_error *err)
{
  char *path = tp__format("%s/%s", run, file);
  if (path == NULL) (void)tp__no_memory(err, strlen(run));
  return path;
}

tp_status tp__run_folder_check(const tp_train_options *o, tp_error *err)
{
  if (o->run == NULL || o->run[0] == '\0')
    return tp__fail(err, TP_ERR_USAGE, "run: a folder for the run is wanted, as --run runs/first");
  for (int i = 0; i < LOG && !o->overwrite; i++) {
    char *path = path_in(o->run, run_file[i], err);
    if (path == NULL) return TP_ERR_INTERNAL;
    bool there = tp__is_file(path);
    free(path);
    if (there)
      return tp__fail(
          err, TP_ERR_USAGE,
          "%s: a run is there already: --resume %s goes on with it, --overwrite replaces it, "
          "or choose another --run",
          o->run, o->run);
  }
  return TP_OK;
}

static tp_status remove_file(const char *run, const char *file, tp_error *err)
{
  char *path = path_in(run, file, err);
  if (path == NULL) return TP_ERR_INTERNAL;
  tp_status status = TP_OK;
  if (unlink(path) != 0 && errno != ENOENT)
    status = tp__fail(err, TP_ERR_OUTPUT, "%s: cannot be removed: %s", path, strerror(errno));
  free(path);
  return status;
}

/* Removes what a run wrote; other files stay. */
static tp_status remove_run(const char *run, tp_error *err)
{
  for (int i = 0; i < RUN_FILES; i++) TP__TRY(remove_file(run, run_file[i], err));
  tp_status status = TP_OK;
  DIR *folder = opendir(run);
  for (struct dirent *e; status == TP_OK && folder != NULL && (e = readdir(folder)) != NULL;)
    if (strncmp(e->d_name, events_prefix, sizeof events_prefix - 1) == 0)
      status = remove_file(run, e->d_name, err);
  if (folder != NULL) closedir(folder);
  return status;
}

static tp_status write_recipe(const tp_train_options *o, tp_error *err)
{
  char *path = path_in(o->run, "recipe.ini", err);
  if (path == NULL) return TP_ERR_INTERNAL;
  tp_status status = tp__options_write(TP_OPTIONS_TRAIN, o, path, err);
  free(path);
  return status;
}

static tp_status open_log(tp__run_files *r, tp_error *err)
{
  char *path = path_in(r->options->run, "log.txt", err);
  if (path == NULL) return TP_ERR_INTERNAL;
  r->log = fopen(path, "ae");
  tp_status status = TP_OK;
  if (r->log == NULL)
    status = tp__fail(err, TP_ERR_OUTPUT, "%s: cannot be written: %s", path, strerror(errno));
  else if (r->early.size > 0)
    fwrite(r->early.data, 1, r->early.size, r->log);
  free(path);
  return status;
}

/* ---- what training tells ---- */

static tp_status started(void *user, const tp__progress_state *state, bool resumed, tp_error *err)
{
  (void)state;
  tp__run_files *r = user;
  const tp_train_options *o = r->options;
  if (!resumed) {
    TP__TRY(tp__make_folder(o->run, err));
    TP__TRY(remove_run(o->run, err));
    TP__TRY(write_recipe(o, err));
  }
  TP__TRY(open_log(r, err));
  return tp__events_open(o->run, &r->events, err);
}

static void log_epoch(tp__run_files *r, const tp__history_row *row)
{
  char text[512];
  int n = snprintf(text, sizeof text, "epoch %d:", row->epoch + 1);
  for (int q = 0; q < TP__QUANTITIES; q++)
    if (!isnan(row->value[q]))
      n += snprintf(text + n, sizeof text - (size_t)n, " %s %.4f",
                    tp__quantity_name((tp__quantity)q), row->value[q]);
  snprintf(text + n, sizeof text - (size_t)n, ", rate %g, %.1f s", row->rate, row->seconds);
  add_line(r, "", text);
}

static tp_status epoch(void *user, const tp__progress_state *state, const tp__cost *cost,
                       tp_error *err)
{
  tp__run_files *r = user;
  const tp__history_row *row = &state->history[state->n_history - 1];
  char text[160], *path = path_in(r->options->run, "history.csv", err);
  if (path == NULL) return TP_ERR_INTERNAL;
  tp_status status = tp__history_write(path, state, err);
  free(path);
  if (status == TP_OK) status = tp__events_epoch(r->events, row, err);
  if (status != TP_OK) return status;
  log_epoch(r, row);
  tp__say(&r->both, "epoch %d: %s", row->epoch + 1, tp__cost_text(cost, text));
  return TP_OK;
}

tp__observer tp__run_files_observer(tp__run_files *r)
{
  return (tp__observer){.user = r, .started = started, .epoch = epoch};
}

/* A run without its first checkpoint is none. */
static void remove_unborn(const char *run)
{
  char *last = path_in(run, "last.safetensors", NULL);
  if (last != NULL && !tp__is_file(last)) {
    (void)!remove_run(run, NULL);
    rmdir(run); /* only when it is empty */
  }
  free(last);
}

tp_status tp__run_files_close(tp__run_files *r, tp_status status, tp_error *err)
{
  if (status != TP_OK && err != NULL && r->log != NULL) add_line(r, "ended: ", err->text);
  tp_status closed = tp__events_close(r->events, status == TP_OK ? err : NULL);
  bool was_started = r->log != NULL;
  if (was_started) fclose(r->log);
  tp__buffer_free(&r->early);
  if (was_started && !r->resume && status != TP_OK) remove_unborn(r->options->run);
  return status != TP_OK ? status : closed;
}
