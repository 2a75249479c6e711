/* Proves that mixed batches are those of the same pipeline without mixing, put through the formulas
 * of MixUp and CutMix (Keras 3: lambda x + (1 - lambda) y; a rectangle of sides sqrt(1 - lambda),
 * its share that of the pixels that stay) with the next example, for any number of threads and from
 * any place; that the first label is that of the larger share; and that validation isn't mixed.
 * Hostile: a damaged picture in a batch that is mixed, a last batch of one example. */
#include "pipeline_testing.h"

#include <math.h>

static const int sizes[] = {7, 1, 12, 3}; /* 23 examples */
enum { BATCH = 4, STEPS = 6, EPOCHS = 2, VALUES = SIDE * SIDE * 3 };

static tp__pipeline_options mixing(const tp__catalog *c, float mixup, float cutmix)
{
  tp__pipeline_options o = training(c, BATCH);
  o.mixup = mixup;
  o.cutmix = cutmix;
  return o;
}

/* What the row must be, from what rows were; returns the share of its own label. */
static float wanted_row(const tp__pipeline_options *o, const tp__batch *plain, int64_t i,
                        float *row)
{
  const float *own = plain->pixels + i * VALUES;
  const float *other = plain->pixels + (i + 1) % plain->n * VALUES;
  tp__key key = {{plain->keys[2 * i], plain->keys[2 * i + 1]}};
  bool cuts = o->mixup == 0 || (o->cutmix > 0 && tp__uniform(key, TP__DRAW_CUT, 0) < 0.5f);
  double lambda = tp__beta(key, TP__DRAW_MIX, (double)(cuts ? o->cutmix : o->mixup));
  if (!cuts) {
    float share = (float)lambda;
    for (int k = 0; k < VALUES; k++) row[k] = share * own[k] + (1 - share) * other[k];
    return share;
  }
  int side = (int)(sqrt(1 - lambda) * SIDE + 0.5);
  int top = (int)((double)tp__uniform(key, TP__DRAW_CUT, 1) * (SIDE - side + 1));
  int left = (int)((double)tp__uniform(key, TP__DRAW_CUT, 2) * (SIDE - side + 1));
  int kept = 0;
  for (int k = 0; k < VALUES; k++) {
    int y = k / 3 / SIDE, x = k / 3 % SIDE;
    bool inside = y >= top && y < top + side && x >= left && x < left + side;
    row[k] = inside ? other[k] : own[k];
    kept += !inside;
  }
  return (float)kept / VALUES;
}

static void check_batch(const tp__pipeline_options *o, const tp__batch *plain,
                        const tp__batch *mixed)
{
  assert_int_equal(plain->n, mixed->n);
  assert_null(plain->labels_2);
  assert_null(plain->share);
  for (int64_t i = 0; i < plain->n; i++) {
    float row[VALUES];
    float share = plain->n > 1 ? wanted_row(o, plain, i, row) : mixed->share[i];
    if (plain->n == 1) memcpy(row, plain->pixels, sizeof row);
    assert_memory_equal(row, mixed->pixels + i * VALUES, sizeof row);
    int32_t label[2] = {plain->labels[i], plain->labels[(i + 1) % plain->n]};
    bool swapped = share < 0.5f;
    assert_int_equal(mixed->labels[i], label[swapped]);
    assert_int_equal(mixed->labels_2[i], label[!swapped]);
    assert_true(fabsf(mixed->share[i] - (swapped ? 1 - share : share)) < 1e-6f);
    assert_true(mixed->share[i] >= 0.5f && mixed->share[i] <= 1);
    assert_int_equal(plain->example[i], mixed->example[i]);
  }
}

static void as_the_formulas(void **state)
{
  box *b = *state;
  tp_error err;
  make_shards(b, sizes, 4, NULL, 0);
  tp__catalog *c = open_shards(b);
  static const float alpha[][2] = {{0.4f, 0}, {0, 1}, {2, 0.5f}};
  for (int k = 0; k < 3; k++) {
    tp__pipeline_options plain = training(c, BATCH), mixed = mixing(c, alpha[k][0], alpha[k][1]);
    tp__pipeline *p, *q;
    assert_ok(tp__pipeline_new(&plain, b->pool, NULL, &p, &err));
    assert_ok(tp__pipeline_new(&mixed, b->pool, NULL, &q, &err));
    assert_true(tp__pipeline_varies(q));
    for (int step = 0; step < STEPS * EPOCHS; step++) {
      tp__batch a, m;
      assert_ok(tp__pipeline_next(p, &a, &err));
      assert_ok(tp__pipeline_next(q, &m, &err));
      check_batch(&mixed, &a, &m);
    }
    tp__pipeline_free(p);
    tp__pipeline_free(q);
  }
  tp__catalog_free(c);
}

static void same_for_threads_and_places(void **state)
{
  box *b = *state;
  tp_error err;
  make_shards(b, sizes, 4, NULL, 0);
  tp__catalog *c = open_shards(b);
  uint64_t all[STEPS * EPOCHS], some[STEPS * EPOCHS];
  for (int threads = 1; threads <= 8; threads += 3) {
    tp__pool *pool;
    tp__pipeline *p;
    tp__pipeline_options o = mixing(c, 1, 1);
    assert_ok(tp__pool_new(threads, &pool, &err));
    assert_ok(tp__pipeline_new(&o, pool, NULL, &p, &err));
    for (int at = 0; at < STEPS * EPOCHS; at += threads) {
      size_t want = (size_t)(STEPS * EPOCHS - at);
      assert_ok(tp__pipeline_seek(p, (uint32_t)(at / STEPS), at % STEPS, EPOCHS, &err));
      assert_int_equal(take_all(p, some, want), want);
      if (threads == 1 && at == 0) memcpy(all, some, sizeof all);
      assert_memory_equal(all + at, some, want * sizeof *some);
    }
    tp__pipeline_free(p);
    tp__pool_free(pool);
  }
  tp__catalog_free(c);
}

/* The partner is the next good one. */
static void damaged_pictures(void **state)
{
  box *b = *state;
  tp_error err;
  make_shards(b, sizes, 4, (const int[]){2, 9, 13, 14, 15}, 5);
  tp__catalog *c = open_shards(b);
  tp__pipeline_options plain = training(c, BATCH), mixed = mixing(c, 0.7f, 0.7f);
  plain.max_bad_pictures = mixed.max_bad_pictures = 5;
  tp__pipeline *p, *q;
  assert_ok(tp__pipeline_new(&plain, b->pool, NULL, &p, &err));
  assert_ok(tp__pipeline_new(&mixed, b->pool, NULL, &q, &err));
  int64_t seen = 0;
  for (int step = 0; step < STEPS; step++) {
    tp__batch a, m;
    assert_ok(tp__pipeline_next(p, &a, &err));
    assert_ok(tp__pipeline_next(q, &m, &err));
    check_batch(&mixed, &a, &m);
    seen += a.n;
  }
  assert_int_equal(seen, 18);
  tp__pipeline_free(p);
  tp__pipeline_free(q);
  tp__catalog_free(c);
}

static void one_example_and_validation(void **state)
{
  box *b = *state;
  tp_error err;
  make_shards(b, (const int[]){5}, 1, NULL, 0);
  tp__catalog *c = open_shards(b);
  tp__pipeline_options plain = training(c, BATCH), mixed = mixing(c, 1, 0);
  tp__pipeline *p, *q;
  tp__batch a, m;
  assert_ok(tp__pipeline_new(&plain, b->pool, NULL, &p, &err));
  assert_ok(tp__pipeline_new(&mixed, b->pool, NULL, &q, &err));
  for (int step = 0; step < 2; step++) {
    assert_ok(tp__pipeline_next(p, &a, &err));
    assert_ok(tp__pipeline_next(q, &m, &err));
    assert_int_equal(m.n, step == 0 ? 4 : 1);
    check_batch(&mixed, &a, &m);
  }
  assert_int_equal(m.labels[0], m.labels_2[0]);
  tp__pipeline_free(q);
  mixed.training = false;
  assert_ok(tp__pipeline_new(&mixed, b->pool, NULL, &q, &err));
  assert_ok(tp__pipeline_next(q, &m, &err));
  assert_null(m.share);
  assert_null(m.labels_2);
  assert_false(tp__pipeline_varies(q));
  tp__pipeline_free(p);
  tp__pipeline_free(q);
  mixed.training = true;
  mixed.mixup = 101;
  assert_fails(tp__pipeline_new(&mixed, b->pool, NULL, &q, &err), TP_ERR_USAGE, "not 101 and 0");
  tp__catalog_free(c);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(as_the_formulas, box_open, box_close),
      cmocka_unit_test_setup_teardown(same_for_threads_and_places, box_open, box_close),
      cmocka_unit_test_setup_teardown(damaged_pictures, box_open, box_close),
      cmocka_unit_test_setup_teardown(one_example_and_validation, box_open, box_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
