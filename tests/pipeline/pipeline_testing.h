/* pipeline_testing - a small data set in shards, pipelines over it, and what they deliver, for the
 * tests of pipeline. */
#ifndef TP_PIPELINE_TESTING_H
#define TP_PIPELINE_TESTING_H

#include "../data/data_testing.h"

#include "data/shard_writer.h"
#include "pipeline/pipeline.h"

enum { SIDE = 24 };

/* A JPEG of a gradient that depends on n; every third one has another size, so that resizing
 * happens. */
static inline void make_jpeg(int n, tp__buffer *out)
{
  tp_error err;
  int h = n % 3 == 2 ? 30 : SIDE, w = n % 3 == 2 ? 20 : SIDE;
  uint8_t rgb[30 * 24 * 3];
  for (int i = 0; i < h * w; i++) {
    rgb[3 * i] = (uint8_t)(i % w * 9 + n * 5);
    rgb[3 * i + 1] = (uint8_t)(i / w * 7 + n * 3);
    rgb[3 * i + 2] = (uint8_t)(n * 11);
  }
  assert_ok(tp__image_encode_jpeg(rgb, h, w, 90, out, &err));
}

/* Shards of the given sizes below the box's folder; the label of example n is n % 5. bad: examples
 * whose picture is cut in half. */
static inline void make_shards(box *b, const int *sizes, int count, const int *bad, int n_bad)
{
  tp_error err;
  tp__buffer jpeg;
  tp__buffer_init(&jpeg, 1 << 20);
  int n = 0;
  for (int f = 0; f < count; f++) {
    tp__shard_writer w;
    assert_ok(tp__shard_writer_open(&w, b->folder, f, SIDE, SIDE, &err));
    for (int i = 0; i < sizes[f]; i++, n++) {
      jpeg.size = 0;
      make_jpeg(n, &jpeg);
      for (int k = 0; k < n_bad; k++)
        if (bad[k] == n) jpeg.size /= 2;
      tp__example_fields fields = {.image = jpeg.data, .image_size = jpeg.size, .label = n % 5};
      assert_ok(tp__shard_writer_add(&w, &fields, &err));
    }
    assert_ok(tp__shard_writer_commit(&w, NULL, &err));
  }
  tp__buffer_free(&jpeg);
}

static inline tp__catalog *open_shards(box *b)
{
  tp_error err;
  tp__catalog *c = NULL;
  char *pattern = tp__format("%s/*.tfrec", b->folder);
  tp__catalog_options o = {
      .patterns = (const char *const *)&pattern, .n_patterns = 1, .need_labels = true};
  assert_ok(tp__catalog_open(&o, b->pool, NULL, &c, &err));
  free(pattern);
  return c;
}

/* Training with every kind of augmentation. */
static inline tp__pipeline_options training(const tp__catalog *c, int batch)
{
  return (tp__pipeline_options){
      .catalog = c,
      .recipe = {.height = SIDE, .width = SIDE, .flip = true, .rotate = 0.1f},
      .batch = batch,
      .training = true,
      .seed = 11,
      .shuffle = 16,
      .interleave = 3};
}

static inline tp__pipeline_options validation(const tp__catalog *c, int batch)
{
  tp__pipeline_options o = training(c, batch);
  o.training = false;
  return o;
}

/* Everything about one batch in one number (FNV-1a). */
static inline uint64_t batch_hash(const tp__batch *b)
{
  const struct {
    const void *data;
    size_t size;
  } part[] = {{&b->n, sizeof b->n},
              {&b->epoch, sizeof b->epoch},
              {&b->step, sizeof b->step},
              {b->pixels, (size_t)b->n * SIDE * SIDE * 3 * sizeof(float)},
              {b->labels, (size_t)b->n * sizeof *b->labels},
              {b->keys, (size_t)b->n * 2 * sizeof *b->keys},
              {b->example, (size_t)b->n * sizeof *b->example}};
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < sizeof part / sizeof *part; i++)
    for (size_t k = 0; k < part[i].size; k++)
      hash = (hash ^ ((const uint8_t *)part[i].data)[k]) * 1099511628211u;
  return hash ^ (b->last ? 1 : 0);
}

/* The hashes of the next batches up to the end; returns how many. */
static inline size_t take_all(tp__pipeline *p, uint64_t *hash, size_t most)
{
  tp_error err;
  size_t n = 0;
  for (;;) {
    tp__batch batch;
    assert_ok(tp__pipeline_next(p, &batch, &err));
    if (batch.n == 0) return n;
    assert_true(n < most);
    hash[n++] = batch_hash(&batch);
  }
}

#endif
