/* end_to_end - what a user waits for: training from TFRecords with flip and rotation, start to
 * first step, memory.
 *
 *   bench_end_to_end DATA     holds train and val, folders of .tfrec shards
 *
 * Each measurement is a process of its own, so that memory and start-up are those of one job. The
 * multiply-add peak is measured in the same process before and after, and shares are of their mean.
 * Prints one JSON line each: first_step_s, frozen_train_b0_192 and rss_frozen_mb (one job),
 * rss_full_mb (the head, then all layers by batch statistics, with validation).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "names.h"
#include "tepal.h"

enum { SIZE = 192, EPOCHS = 4 };

struct place {
  char folder[256]; /* temporary: weights, run */
  char train[320], val[320], weights[320], run[320];
};

static int failed(const char *what, const tp_error *err)
{
  fprintf(stderr, "bench_end_to_end: %s: %s\n", what, err->text);
  return 1;
}

static double peak_gflops(void)
{
  tp__pool *pool = NULL;
  tp__backend *backend = NULL;
  double peak = 0;
  if (tp__pool_new(0, &pool, NULL) == TP_OK && tp__backend_cpu(pool, &backend, NULL) == TP_OK) {
    peak = tp__cpu_peak_gflops(backend, 0.5);
    backend->free(backend);
  }
  tp__pool_free(pool);
  return peak;
}

/* ---- frozen training, and start to first step ---- */

struct watch {
  double start, first_step;
};

static void on_progress(void *user, const tp_progress *p)
{
  struct watch *w = user;
  if (w->first_step == 0 && strcmp(p->stage, "train") == 0 && p->step > 0)
    w->first_step = tp__now() - w->start;
}

static void options_of(const struct place *at, const char *const *pattern, tp_train_options *o)
{
  tp_options_default(TP_OPTIONS_TRAIN, o);
  o->train = (tp_strings){pattern, 1};
  o->model = "efficientnet-b0";
  o->weights = at->weights;
  o->skip_mismatch = true;
  o->run = at->run;
  o->overwrite = true;
  o->early_stopping = o->plateau_patience = 0;
}

static tp_status train(const tp_train_options *o, struct watch *w, tp_train_result *result,
                       tp_error *err)
{
  tp_context *context = NULL;
  tp_context_options co = {.progress = on_progress, .user = w};
  tp_status status = tp_context_new(&co, &context, err);
  if (status == TP_OK) status = tp_train(context, o, result, err);
  tp_context_free(context);
  return status;
}

/* The most that was ever resident. */
static void print_resident(const char *name)
{
  uint64_t resident = 0;
  (void)tp__resident_bytes(&resident);
  printf("{\"name\": \"%s\", \"mb\": %.1f}\n", name, (double)resident / 1e6);
}

static int bench_frozen(const struct place *at)
{
  tp_error err;
  struct watch w = {.start = tp__now()};
  const char *pattern = at->train;
  tp_train_options o;
  tp_train_result r;
  options_of(at, &pattern, &o);
  o.epochs = EPOCHS;
  double before = peak_gflops();
  if (train(&o, &w, &r, &err) != TP_OK) return failed("training", &err);
  double peak = (before + peak_gflops()) / 2;
  printf("{\"name\": \"frozen_train_b0_192\", \"images_per_s\": %.1f, \"peak_share\": %.3f, "
         "\"peak_gflops\": %.0f, \"busy_share\": %.3f}\n",
         r.images_per_s, r.images_per_s * bench_forward_flops("efficientnet-b0", SIZE) / 1e9 / peak,
         peak, r.busy_share);
  print_resident("rss_frozen_mb");
  return 0;
}

static int bench_full_memory(const struct place *at)
{
  tp_error err;
  struct watch w = {.start = tp__now()};
  const char *patterns[] = {at->train, at->val};
  tp_train_options o;
  tp_train_result r;
  options_of(at, patterns, &o);
  o.val = (tp_strings){patterns + 1, 1};
  o.epochs = o.fine_tune_epochs = 1;
  o.steps_per_epoch = o.validation_steps = 3;
  o.fine_tune_layers = -1;
  o.batch_norm = "batch";
  if (train(&o, &w, &r, &err) != TP_OK) return failed("training", &err);
  print_resident("rss_full_mb");
  return 0;
}

static int bench_first_step(const struct place *at)
{
  tp_error err;
  struct watch w = {.start = tp__now()};
  const char *pattern = at->train;
  tp_train_options o;
  tp_train_result r;
  options_of(at, &pattern, &o);
  o.epochs = 1;
  if (train(&o, &w, &r, &err) != TP_OK) return failed("training", &err);
  printf("{\"name\": \"first_step_s\", \"seconds\": %.3f}\n", w.first_step);
  return 0;
}

/* ---- set-up ---- */

static int set_up(struct place *at, const char *data)
{
  tp_error err = {0};
  tp_context *context = NULL;
  tp_model *model = NULL;
  snprintf(at->folder, sizeof at->folder, "/tmp/tepal-bench-XXXXXX");
  if (mkdtemp(at->folder) == NULL) return 1;
  snprintf(at->weights, sizeof at->weights, "%s/b0.h5", at->folder);
  snprintf(at->run, sizeof at->run, "%s/run", at->folder);
  snprintf(at->train, sizeof at->train, "%s/train/*.tfrec", data);
  snprintf(at->val, sizeof at->val, "%s/val/*.tfrec", data);
  tp_status status = tp_context_new(NULL, &context, &err);
  if (status == TP_OK)
    status = tp_model_new(context, "efficientnet-b0", SIZE, SIZE, BENCH_CLASSES, "none", 1, &model,
                          &err);
  if (status == TP_OK) status = tp_model_save(model, at->weights, &err);
  tp_model_free(model);
  tp_context_free(context);
  return status == TP_OK ? 0 : failed("set-up", &err);
}

/* Runs one measurement in a child, which flushes and leaves without the parent's clean-up. */
static int apart(int (*bench)(const struct place *), const struct place *at)
{
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    int rc = bench(at);
    fflush(stdout);
    _exit(rc);
  }
  int state = 0;
  if (child < 0 || waitpid(child, &state, 0) != child) return 1;
  return WIFEXITED(state) ? WEXITSTATUS(state) : 1;
}

int main(int argc, char **argv)
{
  struct place at;
  if (argc != 2) {
    fprintf(stderr, "usage: bench_end_to_end DATA\n");
    return 2;
  }
  int rc = set_up(&at, argv[1]);
  if (rc == 0) rc |= apart(bench_first_step, &at);
  if (rc == 0) rc |= apart(bench_frozen, &at);
  if (rc == 0) rc |= apart(bench_full_memory, &at);
  char command[300];
  snprintf(command, sizeof command, "rm -rf %s", at.folder);
  return system(command) == 0 ? rc : 1;
}
