/* Proves that a damaged picture is reported when its batch is due, as the first by row order for
 * any number of threads, with file, record and byte; that max_bad_pictures leaves out so many and
 * no more; and that caches change nothing but refuse what does not fit (case B32: need said
 * beforehand, advice given). Expected positions follow from how the shards are made. */
#include "pipeline_testing.h"

static const int sizes[] = {7, 1, 12,
                            3}; /* 23 examples; validation batches of 4: 0-3, 4-7, ... 20-22 */
enum { N = 23, BATCH = 4, STEPS = 6 };

static void bad_box(box *b, const int *bad, int n_bad)
{
  make_shards(b, sizes, 4, bad, n_bad);
}

static void first_fault_by_row(void **state)
{
  box *b = *state;
  tp_error err;
  bad_box(b, (const int[]){13, 14, 18}, 3); /* third shard, records 5, 6 and 10; step 3 */
  tp__catalog *c = open_shards(b);
  char first[sizeof err.text] = "";
  for (int threads = 1; threads <= 8; threads += 3) {
    tp__pool *pool;
    tp__pipeline *p;
    tp__batch batch;
    tp__pipeline_options o = validation(c, BATCH);
    o.prefetch = 6;
    assert_ok(tp__pool_new(threads, &pool, &err));
    assert_ok(tp__pipeline_new(&o, pool, NULL, &p, &err));
    for (int step = 0; step < 3; step++) assert_ok(tp__pipeline_next(p, &batch, &err));
    assert_fails(tp__pipeline_next(p, &batch, &err), TP_ERR_DATA, "02-24x24-12.tfrec");
    assert_non_null(strstr(err.text, "record 5 "));
    char byte[32];
    snprintf(byte, sizeof byte, "%llu", (unsigned long long)tp__catalog_record(c, 13)->offset);
    assert_non_null(strstr(err.text, byte));
    if (first[0] == '\0') strcpy(first, err.text);
    assert_string_equal(err.text, first);
    assert_fails(tp__pipeline_next(p, &batch, &err), TP_ERR_DATA, first); /* it stays */
    assert_ok(tp__pipeline_seek(p, 0, 4, 0, &err));                       /* and can be passed */
    assert_fails(tp__pipeline_next(p, &batch, &err), TP_ERR_DATA, "record 10 ");
    assert_ok(tp__pipeline_seek(p, 0, 5, 0, &err));
    assert_ok(tp__pipeline_next(p, &batch, &err));
    tp__pipeline_free(p);
    tp__pool_free(pool);
  }
  tp__catalog_free(c);
}

static void bad_pictures_are_left_out(void **state)
{
  box *b = *state;
  tp_error err;
  bad_box(b, (const int[]){1, 8, 9, 10, 11, 20, 21, 22},
          8); /* one row, a whole batch, the whole last batch */
  tp__catalog *c = open_shards(b);
  tp__pipeline *p;
  tp__batch batch;
  tp__pipeline_options o = validation(c, BATCH);
  o.max_bad_pictures = 8;
  assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err));
  static const uint32_t want[] = {0, 2, 3, 4, 5, 6, 7, 12, 13, 14, 15, 16, 17, 18, 19};
  static const int64_t step[] = {0, 1, 3, 4}, rows[] = {3, 4, 4, 4};
  for (uint32_t epoch = 0; epoch < 3; epoch++) {
    size_t at = 0;
    for (int i = 0; i < 4; i++) {
      assert_ok(tp__pipeline_next(p, &batch, &err));
      assert_int_equal(batch.epoch, epoch);
      assert_int_equal(batch.step, step[i]);
      assert_int_equal(batch.n, rows[i]);
      assert_int_equal(batch.last, i == 3);
      for (int64_t k = 0; k < batch.n; k++, at++) {
        assert_int_equal(batch.example[k], want[at]);
        assert_int_equal(batch.labels[k], want[at] % 5);
        tp__key key = tp__key_of(o.seed, epoch, want[at]);
        assert_memory_equal(&batch.keys[2 * k], key.word, sizeof key.word);
      }
    }
  }
  size_t count;
  const tp__bad_record *bad = tp__pipeline_bad(p, &count);
  assert_int_equal(count, 8); /* each once, although met three times */
  assert_non_null(strstr(bad[0].file, "00-24x24-7.tfrec"));
  assert_int_equal(bad[0].number, 1);
  assert_int_equal(bad[0].offset, tp__catalog_record(c, 1)->offset);
  assert_true(bad[0].reason[0] != '\0');
  tp__pipeline_free(p);
  o.max_bad_pictures = 4; /* 1, 8, 9, 10 pass: 11 is one too many */
  assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err));
  for (int i = 0; i < 2; i++) assert_ok(tp__pipeline_next(p, &batch, &err));
  assert_fails(tp__pipeline_next(p, &batch, &err), TP_ERR_DATA, "record 3 ");
  assert_non_null(strstr(err.text, "max_bad"));
  tp__pipeline_free(p);
  tp__catalog_free(c);
}

static void nothing_but_damage(void **state)
{
  box *b = *state;
  tp_error err;
  make_shards(b, (const int[]){3}, 1, (const int[]){0, 1, 2}, 3);
  tp__catalog *c = open_shards(b);
  tp__pipeline *p;
  tp__batch batch;
  tp__pipeline_options o = training(c, 1);
  o.max_bad_pictures = 100;
  assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err));
  assert_fails(tp__pipeline_next(p, &batch, &err), TP_ERR_DATA, "no picture");
  tp__pipeline_free(p);
  tp__catalog_free(c);
}

/* A shard that vanishes is an error of the file, never a picture to be left out. */
static void a_shard_vanishes(void **state)
{
  box *b = *state;
  tp_error err;
  bad_box(b, NULL, 0);
  tp__catalog *c = open_shards(b);
  tp__pipeline *p;
  tp__batch batch;
  tp__pipeline_options o = validation(c, BATCH);
  o.max_bad_pictures = 100;
  assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err));
  const char *victim = box_path(b, "02-24x24-12.tfrec");
  assert_int_equal(truncate(victim, 30), 0);
  assert_ok(tp__pipeline_next(p, &batch, &err));
  assert_ok(tp__pipeline_next(p, &batch, &err));
  assert_fails(tp__pipeline_next(p, &batch, &err), TP_ERR_DATA, "02-24x24-12.tfrec");
  tp__pipeline_free(p);
  tp__catalog_free(c);
}

/* ---- caches ---- */

static void keep_line(void *user, tp__level level, const char *text)
{
  (void)level;
  snprintf(user, 512, "%s", text);
}

static void caches_change_nothing(void **state)
{
  box *b = *state;
  tp_error err;
  bad_box(b, (const int[]){9}, 1);
  tp__catalog *c = open_shards(b);
  uint64_t plain[64], hash[64];
  uint64_t encoded = 0, pixels = 0;
  for (size_t i = 0; i < N; i++) {
    encoded += tp__catalog_record(c, i)->image_size;
    pixels += i % 3 == 2 ? 30 * 20 * 3 : SIDE * SIDE * 3; /* the cut one has a good header */
  }
  const uint64_t need[] = {0, encoded, pixels};
  for (int kind = TP__CACHE_NONE; kind <= TP__CACHE_PIXELS; kind++) {
    for (int train = 0; train < 2; train++) {
      tp__pipeline *p;
      tp__pipeline_options o = train ? training(c, BATCH) : validation(c, BATCH);
      o.cache = (tp__cache)kind;
      o.cache_limit = need[kind]; /* exactly enough */
      o.max_bad_pictures = 1;
      char line[512] = "", text[32];
      tp__log log = {keep_line, line};
      assert_ok(tp__pipeline_new(&o, b->pool, &log, &p, &err));
      if (kind != TP__CACHE_NONE) assert_non_null(strstr(line, tp__bytes_text(text, need[kind])));
      assert_ok(tp__pipeline_seek(p, 0, 0, 4, &err));
      size_t n = take_all(p, hash + 32 * train, 32);
      assert_int_equal(n, 4 * STEPS);
      if (kind != TP__CACHE_NONE && !train) {
        /* validation runs through all in order: after the first epoch nothing is read again but the
         * damaged one */
        tp__meter before, after;
        tp__pipeline_meter(p, &before, true);
        assert_ok(tp__pipeline_seek(p, 0, 0, 1, &err));
        assert_int_equal(take_all(p, hash, 32), STEPS);
        tp__pipeline_meter(p, &after, true);
        assert_int_equal(after.examples, N - 1);
        if (kind == TP__CACHE_ENCODED) assert_true(after.read == 0);
      }
      tp__pipeline_free(p);
    }
    if (kind == TP__CACHE_NONE) memcpy(plain, hash, sizeof plain);
    assert_memory_equal(plain, hash, 4 * STEPS * sizeof *hash);
    assert_memory_equal(plain + 32, hash + 32, 4 * STEPS * sizeof *hash);
  }
  tp__catalog_free(c);
}

/* Pixels that were decoded at half their size are kept at that size. */
static void cache_of_smaller_pictures(void **state)
{
  box *b = *state;
  tp_error err;
  enum { H = 12, W = 10 };
  bad_box(b, NULL, 0);
  tp__catalog *c = open_shards(b);
  float plain[N][H * W * 3];
  for (int cached = 0; cached < 2; cached++) {
    tp__pipeline *p;
    tp__batch batch;
    tp__pipeline_options o = validation(c, BATCH);
    o.recipe = (tp__image_recipe){.height = H, .width = W};
    tp__image_recipe_decode_less(&o.recipe);
    o.cache = cached ? TP__CACHE_PIXELS : TP__CACHE_NONE;
    o.cache_limit = 16 * 12 * 12 * 3 + 7 * 15 * 10 * 3; /* of 24x24 and 30x20 */
    assert_ok(tp__pipeline_new(&o, b->pool, NULL, &p, &err));
    for (int step = 0; step < 3 * STEPS; step++) {
      assert_ok(tp__pipeline_next(p, &batch, &err));
      for (int64_t i = 0; i < batch.n; i++) {
        const float *row = batch.pixels + i * H * W * 3;
        if (cached == 0 && step < STEPS) memcpy(plain[batch.example[i]], row, sizeof plain[0]);
        assert_memory_equal(plain[batch.example[i]], row, sizeof plain[0]);
      }
      tp__meter meter;
      tp__pipeline_meter(p, &meter, true);
      if (cached == 1 && step >= 2 * STEPS) assert_true(meter.read == 0 && meter.decode == 0);
    }
    tp__pipeline_free(p);
  }
  tp__catalog_free(c);
}

static void caches_have_a_limit(void **state)
{
  box *b = *state;
  tp_error err;
  bad_box(b, NULL, 0);
  tp__catalog *c = open_shards(b);
  tp__pipeline *p;
  tp__pipeline_options o = training(c, BATCH);
  uint64_t encoded = 0;
  for (size_t i = 0; i < N; i++) encoded += tp__catalog_record(c, i)->image_size;
  o.cache = TP__CACHE_PIXELS; /* 16 of 24x24 and 7 of 30x20: 40,248 bytes */
  o.cache_limit = 40247;
  char text[32];
  assert_fails(tp__pipeline_new(&o, b->pool, NULL, &p, &err), TP_ERR_USAGE, "--cache encoded");
  assert_non_null(strstr(err.text, tp__bytes_text(text, 40248)));
  assert_non_null(strstr(err.text, tp__bytes_text(text, encoded)));
  o.cache_limit = 100;
  assert_fails(tp__pipeline_new(&o, b->pool, NULL, &p, &err), TP_ERR_USAGE, "--cache none");
  o.cache = TP__CACHE_ENCODED;
  o.cache_limit = encoded - 1;
  assert_fails(tp__pipeline_new(&o, b->pool, NULL, &p, &err), TP_ERR_USAGE, "--cache-limit");
  tp__catalog_free(c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(first_fault_by_row, box_open, box_close),
      cmocka_unit_test_setup_teardown(bad_pictures_are_left_out, box_open, box_close),
      cmocka_unit_test_setup_teardown(nothing_but_damage, box_open, box_close),
      cmocka_unit_test_setup_teardown(a_shard_vanishes, box_open, box_close),
      cmocka_unit_test_setup_teardown(caches_change_nothing, box_open, box_close),
      cmocka_unit_test_setup_teardown(cache_of_smaller_pictures, box_open, box_close),
      cmocka_unit_test_setup_teardown(caches_have_a_limit, box_open, box_close),
  };
  return cmocka_run_group_tests_name("picture_faults", tests, NULL, NULL);
}
