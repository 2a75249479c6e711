/* end_to_end - what a user waits for: frozen training from TFRecords, the input alone, start to
 * first step, memory.
 *
 *   bench_end_to_end [DATA]     DATA holds train and val, folders of .tfrec shards; without it
 *                               flowers are drawn into a temporary folder
 *
 * Each measurement is a process of its own, so that memory and start-up are those of one job. The
 * multiply-add peak is measured in the same process before and after, and shares are of their mean.
 * Prints one JSON line each: frozen_train_b0_192, input_192, first_step_s, rss_frozen_mb.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "data/catalog.h"
#include "model/net.h"
#include "pipeline/pipeline.h"
#include "tepal.h"

enum { SIZE = 192, CLASSES = 104, BATCH = 32, EPOCHS = 4 };

struct place {
  char folder[256]; /* temporary: drawn data, weights, run */
  char train[320], weights[320], run[320];
};

static int failed(const char *what, const tp_error *err)
{
  fprintf(stderr, "bench_end_to_end: %s: %s\n", what, err->text);
  return 1;
}

static double flops_of_b0(void)
{
  tp__model_spec spec = {
      .name = "efficientnet-b0", .height = SIZE, .width = SIZE, .classes = CLASSES};
  tp__net *net = NULL;
  double flops = 0;
  if (tp__net_build(&spec, false, &net, NULL) != TP_OK) return 0;
  for (tp__value v = 0; v < net->graph->count; v++) flops += tp__node_flops(net->graph, v);
  tp__net_free(net);
  return flops;
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

static tp_status train(const struct place *at, int epochs, struct watch *w, tp_train_result *result,
                       tp_error *err)
{
  const char *patterns[] = {at->train};
  tp_context *context = NULL;
  tp_context_options co = {.progress = on_progress, .user = w};
  tp_train_options o;
  tp_options_default(TP_OPTIONS_TRAIN, &o);
  o.train = (tp_strings){patterns, 1};
  o.model = "efficientnet-b0";
  o.weights = at->weights;
  o.skip_mismatch = true;
  o.run = at->run;
  o.overwrite = true;
  o.epochs = epochs;
  o.early_stopping = o.plateau_patience = 0;
  tp_status status = tp_context_new(&co, &context, err);
  if (status == TP_OK) status = tp_train(context, &o, result, err);
  tp_context_free(context);
  return status;
}

static int bench_frozen(const struct place *at)
{
  tp_error err;
  struct watch w = {.start = tp__now()};
  tp_train_result r;
  double before = peak_gflops();
  if (train(at, EPOCHS, &w, &r, &err) != TP_OK) return failed("training", &err);
  double peak = (before + peak_gflops()) / 2;
  uint64_t resident = 0;
  (void)tp__resident_bytes(&resident);
  printf("{\"name\": \"frozen_train_b0_192\", \"images_per_s\": %.1f, \"peak_share\": %.3f, "
         "\"peak_gflops\": %.1f, "
         "\"busy_share\": %.3f}\n",
         r.images_per_s, r.images_per_s * flops_of_b0() / 1e9 / peak, peak, r.busy_share);
  printf("{\"name\": \"rss_frozen_mb\", \"mb\": %.1f}\n", (double)resident / 1e6);
  return 0;
}

static int bench_first_step(const struct place *at)
{
  tp_error err;
  struct watch w = {.start = tp__now()};
  tp_train_result r;
  if (train(at, 1, &w, &r, &err) != TP_OK) return failed("training", &err);
  printf("{\"name\": \"first_step_s\", \"seconds\": %.3f}\n", w.first_step);
  return 0;
}

/* ---- the input alone ---- */

static tp_status run_input(tp__pool *pool, const struct place *at, int64_t *images, double *seconds,
                           tp_error *err)
{
  const char *patterns[] = {at->train};
  tp__catalog_options co = {.patterns = patterns, .n_patterns = 1, .need_labels = true};
  tp__catalog *catalog = NULL;
  tp__pipeline *input = NULL;
  tp_status status = tp__catalog_open(&co, pool, NULL, &catalog, err);
  tp__pipeline_options po = {
      .catalog = catalog,
      .recipe = {.height = SIZE, .width = SIZE, .flip = true, .rotate = 0.1f},
      .batch = BATCH,
      .training = true,
      .seed = 1,
      .shuffle = 2048,
      .interleave = 16};
  if (status == TP_OK) status = tp__pipeline_new(&po, pool, NULL, &input, err);
  if (status == TP_OK) status = tp__pipeline_seek(input, 0, 0, 20, err);
  double start = tp__now();
  tp__batch b = {.n = 1};
  while (status == TP_OK && b.n > 0) {
    status = tp__pipeline_next(input, &b, err);
    *images += b.n;
  }
  *seconds = tp__now() - start;
  tp__pipeline_free(input);
  tp__catalog_free(catalog);
  return status;
}

static int bench_input(const struct place *at)
{
  tp_error err;
  tp__pool *pool = NULL;
  int64_t images = 0;
  double seconds = 0;
  tp_status status = tp__pool_new(0, &pool, &err);
  if (status == TP_OK) status = run_input(pool, at, &images, &seconds, &err);
  int threads = pool != NULL ? tp__pool_threads(pool) : 0;
  tp__pool_free(pool);
  if (status != TP_OK) return failed("input", &err);
  printf("{\"name\": \"input_192\", \"images_per_s\": %.0f, \"threads\": %d}\n",
         (double)images / seconds, threads);
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
  snprintf(at->train, sizeof at->train, "%s/train/*.tfrec", data != NULL ? data : at->folder);
  tp_status status = tp_context_new(NULL, &context, &err);
  tp_draw_options draw;
  tp_options_default(TP_OPTIONS_DRAW, &draw);
  draw.out = at->folder;
  draw.overwrite = true;
  if (status == TP_OK && data == NULL) status = tp_draw(context, &draw, &err);
  if (status == TP_OK)
    status = tp_model_new(context, "efficientnet-b0", SIZE, SIZE, CLASSES, "none", 1, &model, &err);
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
  int rc = set_up(&at, argc > 1 ? argv[1] : NULL);
  if (rc == 0) rc |= apart(bench_first_step, &at);
  if (rc == 0) rc |= apart(bench_input, &at);
  if (rc == 0) rc |= apart(bench_frozen, &at);
  char command[300];
  snprintf(command, sizeof command, "rm -rf %s", at.folder);
  return system(command) == 0 ? rc : 1;
}
