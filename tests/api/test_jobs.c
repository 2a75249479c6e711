/* Proves that tp_train and tp_train_resume leave the folder they promise: what is in it, what is
 * refused, what an overwritten or failed run loses (nothing), and that a resumed run's history has
 * each epoch once. Expected: tepal.h and DESIGN 3, by hand. */
#include "fit_rig.h"

#include "tepal.h"

typedef struct rig {
  tp_context *context;
  heard log;
  int stop_after; /* messages of training steps; 0: never */
  int messages;
} rig;

static void log_public(void *user, tp_level level, const char *text)
{
  hear_line(&((rig *)user)->log, level == TP_LEVEL_WARNING ? TP__WARNING : TP__INFO, text);
}

static void on_progress(void *user, const tp_progress *p)
{
  rig *r = user;
  if (strcmp(p->stage, "train") != 0) return;
  if (++r->messages == r->stop_after) tp_context_stop(r->context);
}

static void rig_open(rig *r)
{
  tp_error err = {0};
  *r = (rig){0};
  tp_context_options o = {.threads = 2, .log = log_public, .progress = on_progress, .user = r};
  assert_ok(tp_context_new(&o, &r->context, &err));
}

static tp_train_options options(box *b, const tiny *data)
{
  tp_train_options o = tiny_options(b, data, "run");
  rmdir(o.run);
  return o;
}

static bool holds(const char *run, const char *file)
{
  char *path = tp__format("%s/%s", run, file);
  bool is = tp__is_file(path);
  free(path);
  return is;
}

static int event_files(const char *run)
{
  int n = 0;
  DIR *d = opendir(run);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
    n += strstr(e->d_name, "tfevents") != NULL;
  if (d != NULL) closedir(d);
  return n;
}

/* The file's text; in static memory. */
static char *text_of(const char *run, const char *file)
{
  static char text[65536];
  tp_error err = {0};
  tp__buffer bytes;
  tp__buffer_init(&bytes, sizeof text - 1);
  char *path = tp__format("%s/%s", run, file);
  assert_ok(tp__file_read(path, &bytes, &err));
  memcpy(text, bytes.data, bytes.size);
  text[bytes.size] = '\0';
  tp__buffer_free(&bytes);
  free(path);
  return text;
}

static void assert_history(const char *run, int epochs)
{
  char *at = text_of(run, "history.csv");
  assert_int_equal(strncmp(at, "epoch,phase,learning_rate,loss,accuracy,", 40), 0);
  for (int e = 1; e <= epochs; e++) {
    at = strchr(at, '\n') + 1;
    assert_int_equal(strtol(at, NULL, 10), e);
  }
  assert_string_equal(strchr(at, '\n'), "\n");
}

static void a_runs_folder(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_error err = {0};
  rig r;
  rig_open(&r);
  tp_train_options o = options(b, &data);
  tp_train_result result;
  assert_ok(tp_train(r.context, &o, &result, &err));
  assert_int_equal(result.epochs, 5);
  static const char *const files[] = {"recipe.ini", "log.txt",          "history.csv",
                                      "best.h5",    "last.safetensors", "best.safetensors"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    if (!holds(o.run, files[i])) fail_msg("no %s", files[i]);
  assert_int_equal(event_files(o.run), 1);
  assert_int_equal(count_files(o.run), 7);
  assert_history(o.run, 5);
  const char *log = text_of(o.run, "log.txt");
  assert_non_null(
      strstr(log, "24 training examples, 5 steps an epoch")); /* from before the start */
  assert_non_null(strstr(log, "epoch 5: loss "));
  assert_non_null(strstr(log, "phase 2, fine-tuning"));

  /* once more: refused, and nothing is changed */
  assert_fails(tp_train(r.context, &o, NULL, &err), TP_ERR_USAGE,
               "a run is there already: --resume");
  assert_history(o.run, 5);
  /* finished: nothing left to do */
  assert_ok(tp_train_resume(r.context, o.run, &result, &err));
  assert_int_equal(result.epochs, 5);
  assert_int_equal(event_files(o.run), 1);
  tp_context_free(r.context);
}

static void overwrites_only_when_all_is_well(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_error err = {0};
  rig r;
  rig_open(&r);
  tp_train_options o = options(b, &data);
  o.epochs = 2;
  o.fine_tune_epochs = 0;
  assert_ok(tp_train(r.context, &o, NULL, &err));
  o.overwrite = true;
  o.best_monitor = "val_acc";
  assert_fails(tp_train(r.context, &o, NULL, &err), TP_ERR_USAGE, "val_acc");
  o.best_monitor = "val_accuracy";
  o.weights = "/none.h5";
  assert_fails(tp_train(r.context, &o, NULL, &err), TP_ERR_DATA, "/none.h5");
  assert_history(o.run, 2); /* the old run is whole */
  assert_true(holds(o.run, "best.h5") && holds(o.run, "last.safetensors"));
  o.weights = "none";
  o.epochs = 1;
  char *mine = tp__format("%s/notes.txt", o.run);
  assert_ok(tp__file_write(mine, "mine", 4, &err));
  assert_ok(tp_train(r.context, &o, NULL, &err));
  assert_history(o.run, 1);
  assert_int_equal(event_files(o.run), 1);
  assert_true(tp__is_file(mine)); /* what no run has written stays */
  assert_null(strstr(text_of(o.run, "log.txt"), "epoch 2:"));
  free(mine);
  tp_context_free(r.context);
}

static void what_fails_leaves_no_folder(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_error err = {0};
  rig r;
  rig_open(&r);
  tp_train_options o = options(b, &data);
  o.data.labels = "/none.txt";
  assert_fails(tp_train(r.context, &o, NULL, &err), TP_ERR_DATA, "/none.txt");
  assert_false(tp__is_folder(o.run));
  o.data.labels = NULL;
  o.dry_run = true;
  assert_ok(tp_train(r.context, &o, NULL, &err));
  assert_false(tp__is_folder(o.run));
  o.dry_run = false;
  char *under = tp__format("%s/run", box_text(b, "file", ""));
  o.run = under;
  assert_fails(tp_train(r.context, &o, NULL, &err), TP_ERR_OUTPUT, under);
  o.run = "";
  assert_fails(tp_train(r.context, &o, NULL, &err), TP_ERR_USAGE, "run: ");
  o.run = NULL;
  assert_fails(tp_train(r.context, &o, NULL, &err), TP_ERR_USAGE, "run: ");
  free(under);
  assert_fails(tp_train_resume(r.context, b->folder, NULL, &err), TP_ERR_DATA, "is no run");
  tp_context_free(r.context);
}

/* Stopped twice and gone on with the same context: the same files as a run without a stop, each
 * epoch once in the history, one event file for each start (B39). */
static void stops_and_resumes(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_error err = {0};
  rig r;
  rig_open(&r);
  tp_train_options o = options(b, &data), whole = tiny_options(b, &data, "whole");
  assert_ok(tp_train(r.context, &whole, NULL, &err));
  r.messages = 0;
  r.stop_after = 3;
  assert_fails(tp_train(r.context, &o, NULL, &err), TP_STOPPED, "--resume");
  assert_fails(tp_train(r.context, &o, NULL, &err), TP_ERR_USAGE, "a run is there already");
  r.messages = 0;
  assert_fails(tp_train_resume(r.context, o.run, NULL, &err), TP_STOPPED, "--resume");
  r.stop_after = 0;
  assert_ok(tp_train_resume(r.context, o.run, NULL, &err));
  assert_same_run(o.run, whole.run);
  assert_history(o.run, 5);
  assert_int_equal(event_files(o.run), 3);
  assert_non_null(strstr(text_of(o.run, "log.txt"), "ended: stopped in epoch "));
  tp_context_free(r.context);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      box_test(a_runs_folder),
      box_test(overwrites_only_when_all_is_well),
      box_test(what_fails_leaves_no_folder),
      box_test(stops_and_resumes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
