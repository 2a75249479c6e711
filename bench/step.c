/* step - how fast a network runs and trains: images per second and the share of the machine's
 * multiply-add peak.
 *
 *   bench_step [SECONDS] [NETWORK] [BATCH] [NAME]     default: 5 seconds each, efficientnet-b0, 32
 *                                                NAME: that kind of step alone
 *
 * Random weights and pixels at 192 x 192, 104 classes. Peak bursts alternate with steps, and what
 * counts is the median of the ratios, since the clock of a shared machine moves. Prints one JSON
 * line for each kind of step. Multiply-adds are those of the program that runs (a frozen backbone's
 * gradient costs nothing and counts nothing).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "train/learner.h"

enum { SIZE = 192, CLASSES = 104, ROUNDS_MAX = 4096 };

struct bench {
  tp__backend *backend;
  tp__learner *learner;
  tp__batch batch;
  int threads;
  float *losses, *scores;
};

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static tp_status one_step(struct bench *b, bool training, int64_t iteration, tp_error *err)
{
  if (training)
    return tp__learner_step(b->learner, &b->batch, NULL, 1e-3f, iteration, b->losses, b->scores,
                            NULL, err);
  return tp__learner_score(b->learner, &b->batch, b->losses, b->scores, NULL, err);
}

/* Processor seconds of all threads. */
static double cpu_seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static tp_status measure(struct bench *b, const char *name, bool training, double seconds,
                         tp_error *err)
{
  static double rate[ROUNDS_MAX], share[ROUNDS_MAX], cpu[ROUNDS_MAX];
  tp__program_info info[2];
  tp__learner_info(b->learner, training ? &info[0] : NULL, &info[1]);
  if (!training) info[0] = info[1];
  int rounds = 0;
  TP__TRY(one_step(b, training, 0, err)); /* packs weights, warms up */
  double before = tp__cpu_peak_gflops(b->backend, 0.01);
  for (double end = tp__now() + seconds; rounds < ROUNDS_MAX && (rounds < 3 || tp__now() < end);
       rounds++) {
    double start = tp__now(), busy = cpu_seconds();
    TP__TRY(one_step(b, training, rounds + 1, err));
    busy = cpu_seconds() - busy;
    double took = tp__now() - start, after = tp__cpu_peak_gflops(b->backend, 0.01);
    rate[rounds] = (double)b->batch.n / took;
    share[rounds] = rate[rounds] * info[0].flops_per_example / ((before + after) / 2 * 1e9);
    cpu[rounds] = share[rounds] * took * b->threads / busy;
    before = after;
  }
  uint64_t resident = 0; /* the most so far, of all kinds that came before */
  (void)tp__resident_bytes(&resident);
  qsort(rate, (size_t)rounds, sizeof *rate, by_value);
  qsort(cpu, (size_t)rounds, sizeof *cpu, by_value);
  qsort(share, (size_t)rounds, sizeof *share, by_value);
  printf("{\"name\": \"%s\", \"images_per_s\": %.1f, \"peak_share\": %.3f, \"busy_peak_share\": "
         "%.3f, \"gflop_per_image\": %.3f, "
         "\"activation_mb\": %.1f, \"weight_mb\": %.1f, \"resident_mb\": %.0f, \"chunk\": %d, "
         "\"peak_gflops\": %.0f}\n",
         name, rate[rounds / 2], share[rounds / 2], cpu[rounds / 2],
         info[0].flops_per_example / 1e9, (double)info[0].activation_bytes / 1e6,
         (double)info[0].weight_bytes / 1e6, (double)resident / 1e6, info[0].chunk, before);
  fflush(stdout);
  return TP_OK;
}

static tp_status fill(struct bench *b, int64_t n, tp_error *err)
{
  float *pixels = tp__calloc((size_t)n * SIZE * SIZE * 3, sizeof *pixels, err);
  int32_t *labels = tp__calloc((size_t)n, sizeof *labels, err);
  uint32_t *keys = tp__calloc((size_t)n * 2, sizeof *keys, err);
  b->losses = tp__calloc((size_t)n, sizeof(float), err);
  b->scores = tp__calloc((size_t)n * CLASSES, sizeof(float), err);
  b->batch = (tp__batch){.n = n, .pixels = pixels, .labels = labels, .keys = keys};
  if (pixels == NULL || labels == NULL || keys == NULL || b->losses == NULL || b->scores == NULL)
    return TP_ERR_INTERNAL;
  tp__key key = tp__key_of(1, 0, 0);
  for (size_t i = 0; i < (size_t)n * SIZE * SIZE * 3; i++)
    pixels[i] = 255 * tp__uniform(key, 0, (uint32_t)i);
  for (int64_t i = 0; i < n; i++) labels[i] = (int32_t)(i % CLASSES), keys[2 * i] = (uint32_t)i;
  return TP_OK;
}

static tp_status run(tp__pool *pool, const char *network, double seconds, int64_t n,
                     const char *only, tp_error *err)
{
  static const struct {
    const char *name;
    int last_n;
    bool training, batch_statistics;
  } kinds[] = {{"inference_192", 0, false, false},
               {"frozen_step_192", 0, true, false},
               {"last20_step_192", 20, true, false},
               {"all_step_192", -1, true, false},
               {"all_batch_step_192", -1, true, true}};
  struct bench b = {0};
  tp__learner_options o = {
      .spec = {.name = network, .height = SIZE, .width = SIZE, .classes = CLASSES, .dropout = 0.2f},
      .optimizer = {.kind = TP__OPTIMIZER_ADAM, .beta_1 = 0.9f, .beta_2 = 0.999f, .epsilon = 1e-7f},
      .batch = (int)n};
  tp__net *net = NULL;
  tp__tensors weights = {0};
  b.threads = tp__pool_threads(pool);
  TP__TRY(tp__backend_cpu(pool, &b.backend, err));
  TP__TRY(fill(&b, n, err));
  TP__TRY(tp__net_build(&o.spec, false, &net, err));
  TP__TRY(tp__net_init(net, 1, &weights, err));
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    o.last_n = kinds[i].last_n;
    o.score_only = !kinds[i].training;
    o.batch_statistics = kinds[i].batch_statistics;
    if (only != NULL && strcmp(only, kinds[i].name) != 0) continue;
    TP__TRY(tp__learner_new(b.backend, &o, &weights, NULL, &b.learner, err));
    TP__TRY(measure(&b, kinds[i].name, kinds[i].training, seconds, err));
    tp__learner_free(b.learner);
  }
  tp__tensors_free(&weights);
  tp__net_free(net);
  b.backend->free(b.backend);
  free((void *)(uintptr_t)b.batch.pixels);
  free((void *)(uintptr_t)b.batch.labels);
  free((void *)(uintptr_t)b.batch.keys);
  free(b.losses);
  free(b.scores);
  return TP_OK;
}

int main(int argc, char **argv)
{
  double seconds = argc > 1 ? atof(argv[1]) : 5;
  const char *network = argc > 2 ? argv[2] : "efficientnet-b0";
  int64_t n = argc > 3 ? atoll(argv[3]) : 32;
  tp_error err = {0};
  tp__pool *pool = NULL;
  tp_status status = tp__pool_new(0, &pool, &err);
  if (status == TP_OK) status = run(pool, network, seconds, n, argc > 4 ? argv[4] : NULL, &err);
  if (status != TP_OK) fprintf(stderr, "bench_step: %s\n", err.text);
  tp__pool_free(pool);
  return (int)status;
}
