/* input_rate - how fast training's input is made, beside decoding alone.
 *
 *   bench_input PATTERN     TFRecord shards of 192x192 JPEGs
 *
 * Input: read, decode, resize, flip, rotate, in the order of a shuffled epoch, by the pipeline that
 * training uses. Decoding alone: the same pictures from memory, libjpeg-turbo and nothing else, on
 * the same threads. Rounds of the two alternate; the medians count. Prints one JSON line.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/catalog.h"
#include "image/image.h"
#include "pipeline/pipeline.h"

enum { ROUNDS = 7, SIZE = 192, BATCH = 32, PICTURES = 4096 /* of a round, at least */ };

struct input {
  tp__pool *pool;
  tp__catalog *catalog;
  tp__pipeline *pipeline;
  tp__buffer *encoded;        /* by example */
  tp__image_scratch *scratch; /* by thread */
  size_t examples;
  int epochs; /* of a round */
  atomic_int failures;
};

static void decode_one(void *arg, size_t index, int worker)
{
  struct input *in = arg;
  const tp__buffer *b = &in->encoded[index % in->examples];
  if (tp__image_decode(b->data, b->size, NULL, &in->scratch[worker].picture, NULL) != TP_OK)
    atomic_fetch_add(&in->failures, 1);
}

static double decode_round(struct input *in)
{
  size_t count = in->examples * (size_t)in->epochs;
  double start = tp__now();
  tp__pool_for(in->pool, count, decode_one, in);
  return (double)count / (tp__now() - start);
}

static tp_status input_round(struct input *in, double *rate, tp_error *err)
{
  tp__batch b = {.n = 1};
  int64_t images = 0;
  TP__TRY(tp__pipeline_seek(in->pipeline, 0, 0, (uint32_t)in->epochs, err));
  double start = tp__now();
  while (b.n > 0) {
    TP__TRY(tp__pipeline_next(in->pipeline, &b, err));
    images += b.n;
  }
  *rate = (double)images / (tp__now() - start);
  return TP_OK;
}

static tp_status open_input(struct input *in, const char *pattern, tp_error *err)
{
  tp__catalog_options co = {.patterns = &pattern, .n_patterns = 1};
  TP__TRY(tp__pool_new(0, &in->pool, err));
  TP__TRY(tp__catalog_open(&co, in->pool, NULL, &in->catalog, err));
  in->examples = tp__catalog_count(in->catalog);
  in->epochs = (int)((PICTURES + in->examples - 1) / in->examples);
  in->encoded = tp__calloc(in->examples, sizeof *in->encoded, err);
  in->scratch = tp__calloc((size_t)tp__pool_threads(in->pool), sizeof *in->scratch, err);
  if (in->encoded == NULL || in->scratch == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < in->examples; i++) {
    tp__buffer_init(&in->encoded[i], (size_t)1 << 26);
    TP__TRY(tp__catalog_read(in->catalog, i, &in->encoded[i], err));
  }
  tp__pipeline_options po = {
      .catalog = in->catalog,
      .recipe = {.height = SIZE, .width = SIZE, .flip = true, .rotate = 0.1f},
      .batch = BATCH,
      .training = true,
      .seed = 1,
      .shuffle = 2048,
      .interleave = 16};
  return tp__pipeline_new(&po, in->pool, NULL, &in->pipeline, err);
}

static void close_input(struct input *in)
{
  tp__pipeline_free(in->pipeline);
  for (size_t i = 0; in->encoded != NULL && i < in->examples; i++) tp__buffer_free(&in->encoded[i]);
  for (int i = 0; in->scratch != NULL && i < tp__pool_threads(in->pool); i++)
    tp__image_scratch_free(&in->scratch[i]);
  free(in->encoded);
  free(in->scratch);
  tp__catalog_free(in->catalog);
  tp__pool_free(in->pool);
}

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static tp_status measure(struct input *in, tp_error *err)
{
  double rate[ROUNDS], decode[ROUNDS], over[ROUNDS];
  (void)decode_round(in); /* warms up */
  for (int i = 0; i < ROUNDS; i++) {
    TP__TRY(input_round(in, &rate[i], err));
    decode[i] = decode_round(in);
    over[i] = decode[i] / rate[i];
  }
  if (atomic_load(&in->failures) > 0)
    return tp__fail(err, TP_ERR_DATA, "%d pictures could not be decoded",
                    atomic_load(&in->failures));
  qsort(rate, ROUNDS, sizeof *rate, by_value);
  qsort(decode, ROUNDS, sizeof *decode, by_value);
  qsort(over, ROUNDS, sizeof *over, by_value);
  printf("{\"name\": \"input_192\", \"images_per_s\": %.0f, \"peak_share\": null, "
         "\"decode_alone_per_s\": %.0f, \"over_decode\": %.2f, \"threads\": %d}\n",
         rate[ROUNDS / 2], decode[ROUNDS / 2], over[ROUNDS / 2], tp__pool_threads(in->pool));
  return TP_OK;
}

int main(int argc, char **argv)
{
  struct input in = {0};
  tp_error err = {0};
  if (argc != 2) {
    fprintf(stderr, "usage: bench_input PATTERN\n");
    return 2;
  }
  tp_status status = open_input(&in, argv[1], &err);
  if (status == TP_OK) status = measure(&in, &err);
  if (status != TP_OK) fprintf(stderr, "bench_input: %s\n", err.text);
  close_input(&in);
  return (int)status;
}
