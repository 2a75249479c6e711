/* step - how fast a network runs and trains: images per second and the share of the machine's
 * multiply-add peak.
 *
 *   bench_step NAME [SECONDS [BATCH [MEMORY]]]    NAME: infer_b0_192, see names.h; 5 seconds, 32
 *                                                 images; MEMORY: limit of weights and plans, MB
 *   bench_step infer_b0_192_bf16                  products of bfloat16; the peak is float32's still
 *
 * Random weights and pixels, 104 classes, Adam, as many threads as processors (taskset sets them).
 * Peak bursts alternate with steps, and what counts is the median of the ratios, since the clock of
 * a shared machine moves. Multiply-adds count once for the forward pass, also where only the head
 * or the last 20 layers train, and three times when all layers do. Prints one JSON line;
 * resident_mb is the most that the process ever had.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "names.h"
#include "train/learner.h"

enum { ROUNDS_MAX = 4096 };

struct bench {
  bench_name name;
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

static tp_status one_step(struct bench *b, int64_t iteration, tp_error *err)
{
  if (b->name.kind != BENCH_INFER)
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

static tp_status measure(struct bench *b, const char *name, double seconds, tp_error *err)
{
  static double rate[ROUNDS_MAX], share[ROUNDS_MAX], busy_share[ROUNDS_MAX], peak[ROUNDS_MAX];
  const double flops =
      bench_forward_flops(b->name.model, b->name.size) * bench_passes(b->name.kind);
  int rounds = 0;
  TP__TRY(one_step(b, 0, err)); /* packs weights, warms up */
  double before = tp__cpu_peak_gflops(b->backend, 0.01);
  for (double end = tp__now() + seconds; rounds < ROUNDS_MAX && (rounds < 3 || tp__now() < end);
       rounds++) {
    double start = tp__now(), busy = cpu_seconds();
    TP__TRY(one_step(b, rounds + 1, err));
    busy = cpu_seconds() - busy;
    double took = tp__now() - start, after = tp__cpu_peak_gflops(b->backend, 0.01);
    rate[rounds] = (double)b->batch.n / took;
    peak[rounds] = (before + after) / 2;
    share[rounds] = rate[rounds] * flops / (peak[rounds] * 1e9);
    busy_share[rounds] = share[rounds] * took * b->threads / busy;
    before = after;
  }
  tp__program_info info;
  uint64_t resident = 0;
  (void)tp__resident_bytes(&resident);
  tp__learner_info(b->learner, b->name.kind != BENCH_INFER ? &info : NULL,
                   b->name.kind == BENCH_INFER ? &info : NULL);
  double *sorted[] = {rate, share, busy_share, peak};
  for (int i = 0; i < 4; i++) qsort(sorted[i], (size_t)rounds, sizeof *rate, by_value);
  printf("{\"name\": \"%s\", \"images_per_s\": %.1f, \"peak_share\": %.3f, \"busy_peak_share\": "
         "%.3f, \"peak_gflops\": %.0f, \"gflop_per_image\": %.3f, \"activation_mb\": %.1f, "
         "\"weight_mb\": %.1f, \"resident_mb\": %.0f, \"chunk\": %d, \"threads\": %d}\n",
         name, rate[rounds / 2], share[rounds / 2], busy_share[rounds / 2], peak[rounds / 2],
         flops / 1e9, (double)info.activation_bytes / 1e6, (double)info.weight_bytes / 1e6,
         (double)resident / 1e6, info.chunk, b->threads);
  return TP_OK;
}

static tp_status fill(struct bench *b, int64_t n, tp_error *err)
{
  const size_t count = (size_t)n * (size_t)b->name.size * (size_t)b->name.size * 3;
  float *pixels = tp__calloc(count, sizeof *pixels, err);
  int32_t *labels = tp__calloc((size_t)n, sizeof *labels, err);
  uint32_t *keys = tp__calloc((size_t)n * 2, sizeof *keys, err);
  b->losses = tp__calloc((size_t)n, sizeof(float), err);
  b->scores = tp__calloc((size_t)n * BENCH_CLASSES, sizeof(float), err);
  b->batch = (tp__batch){.n = n, .pixels = pixels, .labels = labels, .keys = keys};
  if (pixels == NULL || labels == NULL || keys == NULL || b->losses == NULL || b->scores == NULL)
    return TP_ERR_INTERNAL;
  tp__key key = tp__key_of(1, 0, 0);
  for (size_t i = 0; i < count; i++) pixels[i] = 255 * tp__uniform(key, 0, (uint32_t)i);
  for (int64_t i = 0; i < n; i++)
    labels[i] = (int32_t)(i % BENCH_CLASSES), keys[2 * i] = (uint32_t)i;
  return TP_OK;
}

static tp_status make_learner(struct bench *b, int64_t n, uint64_t memory, tp_error *err)
{
  static const int last_n[BENCH_KINDS] = {0, 0, 20, -1, -1};
  tp__learner_options o = {
      .spec = {.name = b->name.model,
               .height = b->name.size,
               .width = b->name.size,
               .classes = BENCH_CLASSES,
               .dropout = 0.2f},
      .optimizer = {.kind = TP__OPTIMIZER_ADAM, .beta_1 = 0.9f, .beta_2 = 0.999f, .epsilon = 1e-7f},
      .batch = (int)n,
      .memory_limit = memory,
      .bf16 = b->name.bf16,
      .last_n = last_n[b->name.kind],
      .score_only = b->name.kind == BENCH_INFER,
      .batch_statistics = b->name.kind == BENCH_FULL};
  tp__net *net = NULL;
  tp__tensors weights = {0};
  TP__TRY(tp__net_build(&o.spec, false, &net, err));
  tp_status status = tp__net_init(net, 1, &weights, err);
  if (status == TP_OK) status = tp__learner_new(b->backend, &o, &weights, NULL, &b->learner, err);
  tp__tensors_free(&weights);
  tp__net_free(net);
  return status;
}

static tp_status run(struct bench *b, tp__pool *pool, const char *name, double seconds, int64_t n,
                     uint64_t memory, tp_error *err)
{
  b->threads = tp__pool_threads(pool);
  TP__TRY(tp__backend_cpu(pool, &b->backend, err));
  TP__TRY(make_learner(b, n, memory, err));
  TP__TRY(fill(b, n, err));
  return measure(b, name, seconds, err);
}

static void clear(struct bench *b)
{
  tp__learner_free(b->learner);
  if (b->backend != NULL) b->backend->free(b->backend);
  free((void *)(uintptr_t)b->batch.pixels);
  free((void *)(uintptr_t)b->batch.labels);
  free((void *)(uintptr_t)b->batch.keys);
  free(b->losses);
  free(b->scores);
}

int main(int argc, char **argv)
{
  struct bench b = {0};
  double seconds = argc > 2 ? strtod(argv[2], NULL) : 5;
  long n = argc > 3 ? strtol(argv[3], NULL, 10) : 32;
  double memory = argc > 4 ? strtod(argv[4], NULL) * 1e6 : 0;
  if (argc < 2 || !bench_parse(argv[1], &b.name) || n < 1) {
    fprintf(stderr, "usage: bench_step NAME [SECONDS [BATCH [MEMORY]]]; names:");
    bench_list_kinds(stderr);
    fprintf(stderr, "\n");
    return 2;
  }
  tp_error err = {0};
  tp__pool *pool = NULL;
  tp_status status = tp__pool_new(0, &pool, &err);
  if (status == TP_OK) status = run(&b, pool, argv[1], seconds, n, (uint64_t)memory, &err);
  if (status != TP_OK) fprintf(stderr, "bench_step: %s\n", err.text);
  clear(&b);
  tp__pool_free(pool);
  return (int)status;
}
