/* Proves that batches are a function of (seed, epoch, step): the same for any number of threads,
 * any prefetch, and from any place a run is continued at; that every example comes once in an
 * epoch; that validation is left alone by augmentation (case B43) and steps are counted as in case
 * B10. Hostile: seeking while work is under way, many times. */
#include "pipeline_testing.h"

#include <stdatomic.h>

static const int sizes[] = {7, 1, 12, 3}; /* 23 examples */
enum { N = 23, BATCH = 4, STEPS = 6, EPOCHS = 3 };

static int open_box(void **state)
{
  if (box_open(state) != 0) return -1;
  make_shards(*state, sizes, 4, NULL, 0);
  return 0;
}

static void same_for_threads_and_prefetch(void **state)
{
  box *b = *state;
  tp_error err;
  tp__catalog *c = open_shards(b);
  static const int threads[] = {1, 2, 3, 8}, prefetch[] = {1, 2, 7, 40};
  uint64_t first[STEPS * EPOCHS], hash[STEPS * EPOCHS];
  for (int t = 0; t < 4; t++) {
    for (int f = 0; f < 4; f++) {
      tp__pool *pool;
      tp__pipeline *p;
      tp__pipeline_options o = training(c, BATCH);
      o.prefetch = prefetch[f];
      assert_ok(tp__pool_new(threads[t], &pool, &err));
      assert_ok(tp__pipeline_new(&o, pool, NULL, &p, &err));
      assert_int_equal(tp__pipeline_steps(p), STEPS);
      assert_int_equal(tp__pipeline_examples(p), N);
      assert_ok(tp__pipeline_seek(p, 0, 0, EPOCHS, &err));
      assert_int_equal(take_all(p, hash, STEPS * EPOCHS), STEPS * EPOCHS);
      if (t + f == 0) memcpy(first, hash, sizeof hash);
      assert_memory_equal(first, hash, sizeof hash);
      assert_int_equal(take_all(p, hash, 0), 0); /* the end stays the end */
      tp__pipeline_free(p);
      tp__pool_free(pool);
    }
  }
  for (int i = 0; i < STEPS * EPOCHS; i++)
    for (int j = 0; j < i; j++) assert_int_not_equal(first[i], first[j]);
  tp__catalog_free(c);
}

static void continues_from_any_place(void **state)
{
  box *b = *state;
  tp_error err;
  tp__catalog *c = open_shards(b);
  tp__pipeline *p, *q;
  uint64_t all[STEPS * EPOCHS], rest[STEPS * EPOCHS];
  tp__pipeline_options o = training(c, BATCH);
  assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err));
  assert_ok(tp__pipeline_seek(p, 0, 0, EPOCHS, &err));
  take_all(p, all, STEPS * EPOCHS);
  for (int at = 0; at <= STEPS * EPOCHS; at++) {
    size_t want = (size_t)(STEPS * EPOCHS - at);
    /* a new pipeline, as after a restart, and the old one in the middle of its work */
    assert_ok(tp__pipeline_new(&o, b->pool, NULL, &q, &err));
    assert_ok(tp__pipeline_seek(q, (uint32_t)(at / STEPS), at % STEPS, EPOCHS, &err));
    assert_int_equal(take_all(q, rest, want), want);
    assert_memory_equal(all + at, rest, want * sizeof *rest);
    tp__pipeline_free(q);
    assert_ok(tp__pipeline_seek(p, (uint32_t)(at / STEPS), at % STEPS, EPOCHS, &err));
    for (int taken = 0; taken < at % 3 && at + taken < STEPS * EPOCHS; taken++) {
      tp__batch batch;
      assert_ok(tp__pipeline_next(p, &batch, &err));
      assert_int_equal(batch_hash(&batch), all[at + taken]);
    }
  }
  /* the end of an epoch is the start of the next; a place that does not exist is refused */
  assert_ok(tp__pipeline_seek(p, 0, STEPS, EPOCHS, &err));
  tp__batch batch;
  assert_ok(tp__pipeline_next(p, &batch, &err));
  assert_int_equal(batch_hash(&batch), all[STEPS]);
  assert_fails(tp__pipeline_seek(p, 0, STEPS + 1, EPOCHS, &err), TP_ERR_USAGE, "6 steps");
  assert_fails(tp__pipeline_seek(p, 0, -1, EPOCHS, &err), TP_ERR_USAGE, "step -1");
  assert_ok(tp__pipeline_next(p, &batch, &err)); /* and changes nothing */
  assert_int_equal(batch_hash(&batch), all[STEPS + 1]);
  assert_ok(tp__pipeline_seek(p, EPOCHS, 0, EPOCHS, &err));
  assert_int_equal(take_all(p, rest, 0), 0);
  tp__pipeline_free(p);
  tp__catalog_free(c);
}

/* The rows of several processes, one behind the other, are the batch; a process may have none.
 * Where batches are mixed, the partner of a process's last row is another's. */
static void rows_of_processes(void **state)
{
  enum { MOST = 5 };
  box *b = *state;
  tp_error err;
  tp__catalog *c = open_shards(b);
  tp__pipeline_options o = training(c, BATCH);
  for (int processes = 2; processes <= MOST; processes++) {
    tp__pipeline *whole, *part[MOST];
    o.process = o.processes = 0;
    o.mixup = processes > 2 ? 0.5f : 0;
    o.cutmix = processes > 3 ? 1 : 0;
    assert_ok(tp__pipeline_new(&o, b->pool, NULL, &whole, &err));
    for (int r = 0; r < processes; r++) {
      o.process = r;
      o.processes = processes;
      assert_ok(tp__pipeline_new(&o, b->pool, NULL, &part[r], &err));
      assert_int_equal(tp__pipeline_steps(part[r]), STEPS);
      assert_ok(tp__pipeline_seek(part[r], 0, 0, 2, &err));
    }
    for (int step = 0; step < 2 * STEPS; step++) {
      tp__batch all, own;
      int64_t rows = 0;
      assert_ok(tp__pipeline_next(whole, &all, &err));
      assert_int_equal(all.total, all.n);
      for (int r = 0; r < processes; r++, rows += own.n) {
        assert_ok(tp__pipeline_next(part[r], &own, &err));
        assert_int_equal(own.total, all.n);
        assert_int_equal(own.epoch, all.epoch);
        assert_int_equal(own.step, all.step);
        assert_int_equal(own.last, all.last);
        assert_true(own.n <= (BATCH + processes - 1) / processes && rows + own.n <= all.n);
        size_t n = (size_t)own.n, row = SIDE * SIDE * 3;
        assert_memory_equal(own.pixels, all.pixels + (size_t)rows * row, n * row * sizeof(float));
        assert_memory_equal(own.keys, all.keys + 2 * rows, n * 2 * sizeof *own.keys);
        assert_memory_equal(own.labels, all.labels + rows, n * sizeof *own.labels);
        assert_memory_equal(own.example, all.example + rows, n * sizeof *own.example);
        assert_int_equal(own.share != NULL, processes > 2);
        if (own.share == NULL) continue;
        assert_memory_equal(own.share, all.share + rows, n * sizeof *own.share);
        assert_memory_equal(own.labels_2, all.labels_2 + rows, n * sizeof *own.labels_2);
      }
      assert_int_equal(rows, all.n);
    }
    for (int r = 0; r < processes; r++) {
      tp__batch end;
      assert_ok(tp__pipeline_next(part[r], &end, &err));
      assert_int_equal(end.total, 0);
      tp__pipeline_free(part[r]);
    }
    tp__pipeline_free(whole);
  }
  tp__catalog_free(c);
}

/* Without a seek it starts at the beginning and never ends; the last batch of an epoch is the rest.
 */
static void every_example_once(void **state)
{
  box *b = *state;
  tp_error err;
  tp__catalog *c = open_shards(b);
  tp__pipeline *p;
  tp__pipeline_options o = training(c, BATCH);
  assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err));
  uint32_t order[2][N];
  for (uint32_t epoch = 0; epoch < 2; epoch++) {
    bool seen[N] = {false};
    size_t n = 0;
    for (int step = 0; step < STEPS; step++) {
      tp__batch batch;
      assert_ok(tp__pipeline_next(p, &batch, &err));
      assert_int_equal(batch.epoch, epoch);
      assert_int_equal(batch.step, step);
      assert_int_equal(batch.n, step < STEPS - 1 ? BATCH : N % BATCH);
      assert_int_equal(batch.last, step == STEPS - 1);
      for (int64_t i = 0; i < batch.n; i++) {
        uint32_t e = batch.example[i];
        tp__key key = tp__key_of(o.seed, epoch, e);
        assert_false(seen[e]);
        seen[e] = true;
        order[epoch][n++] = e;
        assert_int_equal(batch.labels[i], e % 5);
        assert_memory_equal(&batch.keys[2 * i], key.word, sizeof key.word);
      }
    }
    assert_int_equal(n, N);
  }
  assert_memory_not_equal(order[0], order[1], sizeof order[0]);
  tp__pipeline_free(p);
  tp__catalog_free(c);
}

static void validation_is_plain(void **state)
{
  box *b = *state;
  tp_error err;
  tp__catalog *c = open_shards(b);
  tp__pipeline *p;
  tp__pipeline_options o = validation(c, 5);
  assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err));
  tp__image_scratch scratch = {0};
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  float plain[SIDE * SIDE * 3];
  uint32_t next = 0;
  for (int step = 0; step < 10; step++) { /* two epochs */
    tp__batch batch;
    assert_ok(tp__pipeline_next(p, &batch, &err));
    for (int64_t i = 0; i < batch.n; i++, next++) {
      assert_int_equal(batch.example[i], next % N);
      assert_ok(tp__catalog_read(c, next % N, &bytes, &err));
      assert_ok(tp__image_prepare(&o.recipe, bytes.data, bytes.size, false, (tp__key){{0, 0}},
                                  &scratch, plain, &err));
      assert_memory_equal(batch.pixels + (size_t)i * SIDE * SIDE * 3, plain, sizeof plain);
    }
  }
  assert_int_equal(next, 2 * N);
  tp__buffer_free(&bytes);
  tp__image_scratch_free(&scratch);
  tp__pipeline_free(p);
  tp__catalog_free(c);
}

/* Training rows are tp__image_prepare's with the key of (seed, epoch, example), and differ between
 * epochs. */
static void training_is_augmented(void **state)
{
  box *b = *state;
  tp_error err;
  tp__catalog *c = open_shards(b);
  tp__pipeline *p;
  tp__pipeline_options o = training(c, N);
  assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err));
  tp__image_scratch scratch = {0};
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  float want[SIDE * SIDE * 3], first[SIDE * SIDE * 3];
  for (uint32_t epoch = 0; epoch < 2; epoch++) {
    tp__batch batch;
    assert_ok(tp__pipeline_next(p, &batch, &err));
    for (int64_t i = 0; i < batch.n; i++) {
      const float *row = batch.pixels + (size_t)i * SIDE * SIDE * 3;
      assert_ok(tp__catalog_read(c, batch.example[i], &bytes, &err));
      tp__key key = tp__key_of(o.seed, epoch, batch.example[i]);
      assert_ok(
          tp__image_prepare(&o.recipe, bytes.data, bytes.size, true, key, &scratch, want, &err));
      assert_memory_equal(row, want, sizeof want);
      if (batch.example[i] != 0) continue;
      if (epoch == 0)
        memcpy(first, row, sizeof first);
      else
        assert_memory_not_equal(first, row, sizeof first);
    }
  }
  tp__buffer_free(&bytes);
  tp__image_scratch_free(&scratch);
  tp__pipeline_free(p);
  tp__catalog_free(c);
}

/* Case B10: 10 records, batch 4. */
static void steps_per_epoch(void **state)
{
  (void)state;
  void *ten = NULL;
  assert_int_equal(box_open(&ten), 0);
  box *b = ten;
  tp_error err;
  make_shards(b, (const int[]){6, 4}, 2, NULL, 0);
  tp__catalog *c = open_shards(b);
  tp__pipeline *p;
  tp__batch batch;
  static const struct {
    int steps_per_epoch, steps, examples;
  } cases[] = {{0, 3, 10}, {3, 3, 10}, {2, 2, 8}, {1, 1, 4}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tp__pipeline_options o = training(c, 4);
    o.steps_per_epoch = cases[i].steps_per_epoch;
    assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err));
    assert_int_equal(tp__pipeline_steps(p), cases[i].steps);
    assert_int_equal(tp__pipeline_examples(p), cases[i].examples);
    assert_ok(tp__pipeline_seek(p, 0, 0, 4, &err));
    int total = 0, examples = 0;
    for (;;) {
      assert_ok(tp__pipeline_next(p, &batch, &err));
      if (batch.n == 0) break;
      total++;
      examples += (int)batch.n;
      assert_int_equal(batch.last, total % cases[i].steps == 0);
    }
    assert_int_equal(total, 4 * cases[i].steps);
    assert_int_equal(examples, 4 * cases[i].examples);
    tp__pipeline_free(p);
  }
  tp__pipeline_options o = training(c, 4);
  o.steps_per_epoch = 5;
  assert_fails(tp__pipeline_new(&o, b->pool, NULL, &p, &err), TP_ERR_USAGE, "3 are available");
  o = validation(c, 4);
  o.steps_per_epoch = 1;
  assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err));
  for (uint32_t epoch = 0; epoch < 5; epoch++) {
    assert_ok(tp__pipeline_next(p, &batch, &err));
    assert_int_equal(batch.epoch, epoch);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(batch.example[i], i);
  }
  tp__pipeline_free(p);
  o.steps_per_epoch = 0;
  o.batch = 1000; /* more than there are: one batch of all */
  assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err));
  assert_ok(tp__pipeline_next(p, &batch, &err));
  assert_int_equal(batch.n, 10);
  assert_true(batch.last);
  tp__pipeline_free(p);
  tp__catalog_free(c);
  box_close(&ten);
}

/* Two pipelines share a pool, and seeking breaks off work at any moment. */
static void seeks_while_working(void **state)
{
  box *b = *state;
  tp_error err;
  tp__catalog *c = open_shards(b);
  tp__pipeline *p, *q;
  uint64_t all[STEPS * EPOCHS];
  tp__pipeline_options o = training(c, BATCH), v = validation(c, BATCH);
  o.prefetch = 5;
  assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err));
  assert_ok(tp__pipeline_new(&v, b->pool, NULL, &q, &err));
  assert_ok(tp__pipeline_seek(p, 0, 0, EPOCHS, &err));
  assert_ok(tp__pipeline_seek(q, 0, 0, 0, &err));
  take_all(p, all, STEPS * EPOCHS);
  for (int round = 0; round < 300; round++) {
    tp__batch batch;
    int at = round * 7 % (STEPS * EPOCHS);
    assert_ok(tp__pipeline_seek(p, (uint32_t)(at / STEPS), at % STEPS, EPOCHS, &err));
    if (round % 3 == 0) {
      assert_ok(tp__pipeline_next(p, &batch, &err));
      assert_int_equal(batch_hash(&batch), all[at]);
    }
    if (round % 5 == 0) {
      assert_ok(tp__pipeline_next(q, &batch, &err));
      assert_int_equal(batch.step, round / 5 % STEPS);
    }
  }
  tp__pipeline_free(p);
  tp__pipeline_free(q);
  tp__catalog_free(c);
}

static void count_example(void *arg, size_t index, int worker)
{
  (void)worker;
  atomic_fetch_add((atomic_size_t *)arg, index);
}

/* While the consumer computes (without asking for a batch), other threads fill the next ones: after
 * enough loops of computing, a batch is there without the consumer having done anything for it. */
static void works_while_the_consumer_computes(void **state)
{
  box *b = *state;
  tp_error err;
  tp__catalog *c = open_shards(b);
  tp__pipeline *p;
  tp__pipeline_options o = training(c, BATCH);
  assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err)); /* 3 threads */
  assert_ok(tp__pipeline_seek(p, 0, 0, 0, &err));
  tp__meter meter;
  atomic_size_t sum = 0;
  do { /* ends only if background threads finish pictures */
    tp__pool_for(b->pool, 64, count_example, &sum);
    tp__pipeline_meter(p, &meter, false);
  } while (meter.finish == 0);
  assert_true(meter.read > 0 && meter.decode > 0);
  assert_true(meter.waiting == 0 && meter.examples == 0);
  tp__batch batch;
  for (int i = 0; i < STEPS; i++) assert_ok(tp__pipeline_next(p, &batch, &err));
  tp__pipeline_meter(p, &meter, true);
  assert_int_equal(meter.examples, N);
  assert_true(meter.idle <= meter.waiting);
  tp__pipeline_free(p);
  tp__catalog_free(c);
}

static void wrong_options(void **state)
{
  box *b = *state;
  tp_error err;
  tp__catalog *c = open_shards(b);
  tp__pipeline *p;
  struct {
    tp__pipeline_options o;
    const char *part;
  } cases[8];
  for (int i = 0; i < 8; i++) cases[i].o = training(c, BATCH);
  cases[0].o.batch = 0, cases[0].part = "batch";
  cases[1].o.recipe.width = 0, cases[1].part = "image size";
  cases[2].o.recipe.rotate = 1.5f, cases[2].part = "fraction of a turn";
  cases[3].o.interleave = 0, cases[3].part = "interleave";
  cases[4].o.shuffle = -2, cases[4].part = "shuffle";
  cases[5].o.prefetch = -1, cases[5].part = "prefetch";
  cases[6].o.steps_per_epoch = -1, cases[6].part = "negative";
  cases[7].o.recipe.height = cases[7].o.recipe.width = INT32_MAX, cases[7].part = "large";
  cases[7].o.batch = 23;
  for (int i = 0; i < 8; i++)
    assert_fails(tp__pipeline_new(&cases[i].o, b->pool, NULL, &p, &err), TP_ERR_USAGE,
                 cases[i].part);
  tp__catalog_free(c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(same_for_threads_and_prefetch, open_box, box_close),
      cmocka_unit_test_setup_teardown(continues_from_any_place, open_box, box_close),
      cmocka_unit_test_setup_teardown(every_example_once, open_box, box_close),
      cmocka_unit_test_setup_teardown(validation_is_plain, open_box, box_close),
      cmocka_unit_test_setup_teardown(training_is_augmented, open_box, box_close),
      cmocka_unit_test(steps_per_epoch),
      cmocka_unit_test_setup_teardown(seeks_while_working, open_box, box_close),
      cmocka_unit_test_setup_teardown(works_while_the_consumer_computes, open_box, box_close),
      cmocka_unit_test_setup_teardown(rows_of_processes, open_box, box_close),
      cmocka_unit_test_setup_teardown(wrong_options, open_box, box_close),
  };
  return cmocka_run_group_tests_name("batches", tests, NULL, NULL);
}
