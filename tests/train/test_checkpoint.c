/* Proves that a checkpoint comes back bit for bit, that damaged and foreign files are refused, and
 * that a disk that is full leaves the old file as it was. Expected: what was written; case B38 of
 * ../shared/cases/README.md (a limit on the size of files stands for a full disk). */
#include "train_testing.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "model/weights.h"
#include "train/checkpoint.h"

/* ---- one of everything ---- */

typedef struct whole {
  tp__identity identity;
  tp__progress_state progress;
  tp__tensors weights, slots, stop_best;
} whole;

static void add_tensor(tp__tensors *set, const char *name, int64_t n, float first)
{
  tp_error err = {0};
  tp__shape shape = tp__shape_make(1, &n);
  tp__tensor *t = NULL;
  assert_ok(tp__tensors_add(set, name, TP__F32, &shape, &t, &err));
  for (int64_t i = 0; i < n; i++) ((float *)t->data)[i] = first + (float)i / 3;
}

/* Every field different, with numbers that decimal text would lose. */
static whole make_whole(void)
{
  static const char *const labels[] = {"rose, red", "\"iris\"", "t\xc3\xbclip"};
  tp_error err = {0};
  whole w = {0};
  w.identity = (tp__identity){.spec = {.name = "efficientnet-lite0",
                                       .height = 96,
                                       .width = 64,
                                       .classes = 3,
                                       .dropout = 0.1f,
                                       .width_coefficient = 0.25f,
                                       .depth_coefficient = 1.0f / 3,
                                       .official_preprocessing = true},
                              .labels = labels,
                              .accurate_dct = true,
                              .antialias = true,
                              .fast_decode = true};
  w.progress = (tp__progress_state){
      .phase = 1,
      .phase_start = 7,
      .epoch = 9,
      .step = INT64_C(1) << 40,
      .iteration = INT64_C(9007199254740993), /* no double */
      .data = INT64_MIN + 5,
      .batch = 96,
      .stopping = {.has_best = true, .best = 1.0 / 3, .best_epoch = 4, .wait = 2},
      .plateau = {.has_best = true, .best = -0.0, .wait = 1, .cooling = 3, .multiplier = 0.1 / 3},
      .best = {.has_best = true, .best = 5e-324, .epoch = 8},
      .examples = 1000,
      .right = 7,
      .right_5 = 70,
      .loss_sum = 1e308,
      .seconds = 12.5};
  for (int q = 0; q < TP__QUANTITIES; q++) w.progress.best_value[q] = q == 2 ? NAN : q / 7.0;
  for (int i = 0; i < 40; i++) {
    tp__history_row row = {
        .epoch = i, .phase = i > 6, .rate = 1e-3 / (i + 1), .seconds = i, .images_per_s = i / 3.0};
    for (int q = 0; q < TP__QUANTITIES; q++)
      row.value[q] = q == 4 ? NAN : q == 5 ? INFINITY : i / 11.0;
    assert_ok(tp__history_add(&w.progress, &row, &err));
  }
  add_tensor(&w.weights, "stem_conv/kernel", 100, 1);
  add_tensor(&w.weights, "predictions/bias", 4, 2);
  float *bias = tp__tensors_find(&w.weights, "predictions/bias")->data;
  bias[0] = NAN;
  bias[1] = -INFINITY;
  bias[2] = -0.0f;
  bias[3] = 1e-45f;
  tp__tensor *count = NULL;
  assert_ok(
      tp__tensors_add(&w.weights, "normalization/count", TP__I64, &(tp__shape){0}, &count, &err));
  *(int64_t *)count->data = INT64_MIN;
  add_tensor(&w.slots, "adam/m/predictions/bias", 4, 3);
  add_tensor(&w.slots, "adam/v/predictions/bias", 4, 4);
  add_tensor(&w.stop_best, "predictions/bias", 4, 5);
  return w;
}

static void free_whole(whole *w)
{
  tp__identity_free(&w->identity);
  tp__progress_state_free(&w->progress);
  tp__tensors_free(&w->weights);
  tp__tensors_free(&w->slots);
  tp__tensors_free(&w->stop_best);
}

static tp_status write_whole(const whole *w, const char *path, tp_error *err)
{
  return tp__checkpoint_write(path, &w->identity, &w->progress, &w->weights, &w->slots,
                              &w->stop_best, err);
}

static tp_status read_whole(whole *w, const char *path, tp_error *err)
{
  *w = (whole){0};
  return tp__checkpoint_read(path, &w->identity, &w->progress, &w->weights, &w->slots,
                             &w->stop_best, err);
}

static void assert_same_tensors(const tp__tensors *a, const tp__tensors *b)
{
  assert_int_equal(a->count, b->count);
  for (size_t i = 0; i < a->count; i++) {
    const tp__tensor *t = tp__tensors_find(b, a->item[i].name);
    assert_non_null(t);
    assert_int_equal(t->dtype, a->item[i].dtype);
    assert_true(tp__shape_equal(&t->shape, &a->item[i].shape));
    assert_memory_equal(t->data, a->item[i].data, tp__tensor_bytes(t));
  }
}

#define assert_same(field) assert_memory_equal(&a->field, &b->field, sizeof a->field)

static void assert_same_progress(const tp__progress_state *a, const tp__progress_state *b)
{
  assert_same(phase);
  assert_same(phase_start);
  assert_same(epoch);
  assert_same(step);
  assert_same(iteration);
  assert_same(finished);
  assert_same(data);
  assert_same(batch);
  assert_same(stopping.has_best);
  assert_same(stopping.best);
  assert_same(stopping.best_epoch);
  assert_same(stopping.wait);
  assert_same(plateau.has_best);
  assert_same(plateau.best);
  assert_same(plateau.wait);
  assert_same(plateau.cooling);
  assert_same(plateau.multiplier);
  assert_same(best.has_best);
  assert_same(best.best);
  assert_same(best.epoch);
  assert_same(examples);
  assert_same(right);
  assert_same(right_5);
  assert_same(loss_sum);
  assert_same(seconds);
  assert_same(n_history);
  for (int q = 0; q < TP__QUANTITIES; q++)
    assert_true(isnan(a->best_value[q]) ? isnan(b->best_value[q])
                                        : a->best_value[q] == b->best_value[q]);
  for (size_t i = 0; i < a->n_history; i++) {
    const tp__history_row *x = &a->history[i], *y = &b->history[i];
    assert_int_equal(x->epoch, y->epoch);
    assert_int_equal(x->phase, y->phase);
    assert_true(x->rate == y->rate && x->seconds == y->seconds);
    assert_true(x->images_per_s == y->images_per_s);
    for (int q = 0; q < TP__QUANTITIES; q++)
      assert_true(isnan(x->value[q]) ? isnan(y->value[q]) : x->value[q] == y->value[q]);
  }
}

static void comes_back_bit_for_bit(void **state)
{
  box *b = *state;
  tp_error err = {0};
  const char *path = box_path(b, "last.safetensors");
  whole w = make_whole(), r;
  assert_ok(write_whole(&w, path, &err));
  assert_ok(read_whole(&r, path, &err));
  assert_same_tensors(&w.weights, &r.weights);
  assert_same_tensors(&w.slots, &r.slots);
  assert_same_tensors(&w.stop_best, &r.stop_best);
  assert_same_progress(&w.progress, &r.progress);
  const tp__identity *i = &r.identity;
  assert_string_equal(i->spec.name, "efficientnet-lite0");
  assert_int_equal(i->spec.height, 96);
  assert_int_equal(i->spec.width, 64);
  assert_true(i->spec.dropout == 0.1f && i->spec.width_coefficient == 0.25f);
  assert_true(i->spec.depth_coefficient == 1.0f / 3 && i->spec.official_preprocessing);
  assert_true(i->accurate_dct && !i->exif_rotate && i->antialias && i->fast_decode);
  for (int c = 0; c < 3; c++) assert_string_equal(i->labels[c], w.identity.labels[c]);

  /* the same bytes again from what was read */
  const char *again = box_path(b, "again.safetensors");
  tp__buffer one, two;
  tp__buffer_init(&one, 1 << 20);
  tp__buffer_init(&two, 1 << 20);
  assert_ok(write_whole(&r, again, &err));
  assert_ok(tp__file_read(path, &one, &err));
  assert_ok(tp__file_read(again, &two, &err));
  assert_int_equal(one.size, two.size);
  assert_memory_equal(one.data, two.data, one.size);
  tp__buffer_free(&one);
  tp__buffer_free(&two);
  free_whole(&w);
  free_whole(&r);
}

/* For prediction alone: no progress, no labels; what is not asked for is dropped. */
static void parts(void **state)
{
  box *b = *state;
  tp_error err = {0};
  const char *path = box_path(b, "best.safetensors");
  whole w = make_whole(), r = {0};
  w.identity.labels = NULL;
  assert_ok(tp__checkpoint_write(path, &w.identity, NULL, &w.weights, NULL, NULL, &err));
  assert_ok(tp__checkpoint_read(path, &r.identity, NULL, &r.weights, NULL, NULL, &err));
  assert_null(r.identity.labels);
  assert_same_tensors(&w.weights, &r.weights);
  free_whole(&r);
  assert_fails(read_whole(&r, path, &err), TP_ERR_DATA, "it can predict, not be resumed");
  assert_int_equal(r.weights.count, 0);
  assert_ok(write_whole(&w, path, &err));
  r = (whole){0};
  assert_ok(tp__checkpoint_read(path, &r.identity, NULL, NULL, NULL, NULL, &err));
  free_whole(&r);
  free_whole(&w);
}

/* ---- what is no checkpoint ---- */

static void foreign_files(void **state)
{
  box *b = *state;
  tp_error err = {0};
  whole w = make_whole(), r;
  const char *path = box_path(b, "plain.safetensors");
  assert_ok(tp__weights_write_safetensors(path, &w.weights, NULL, &err));
  assert_fails(read_whole(&r, path, &err), TP_ERR_DATA,
               "holds weights but is no checkpoint of tepal (give it as --weights)");
  assert_ok(tp__weights_write_safetensors(path, &w.weights, "{\"format\":\"pt\"}", &err));
  assert_fails(read_whole(&r, path, &err), TP_ERR_DATA, "is no checkpoint of tepal");
  assert_fails(read_whole(&r, box_text(b, "text.safetensors", "hello"), &err), TP_ERR_DATA,
               "text.safetensors");
  assert_fails(read_whole(&r, box_path(b, "none.safetensors"), &err), TP_ERR_DATA,
               "none.safetensors");
  free_whole(&w);
}

/* The file at path with `from` replaced by `to`, of the same length, under another name. */
static const char *changed(box *b, const char *path, const char *from, const char *to,
                           const char *name)
{
  tp_error err = {0};
  tp__buffer file;
  tp__buffer_init(&file, 1 << 20);
  assert_ok(tp__file_read(path, &file, &err));
  size_t n = strlen(from);
  assert_int_equal(n, strlen(to));
  uint8_t *at = memmem(file.data, file.size, from, n);
  if (at == NULL) fail_msg("%s is not in the file", from);
  memcpy(at, to, n);
  const char *made = box_file(b, name, file.data, file.size);
  tp__buffer_free(&file);
  return made;
}

/* Metadata that is wrong in one place each: the text is that of a good file, with one part replaced
 * by another of the same length. */
static void damaged_metadata(void **state)
{
  box *b = *state;
  static const char *const cases[][3] = {
      {"version\\\":\\\"1\\\"", "version\\\":\\\"9\\\"",
       "checkpoint version 9; this tepal reads version 1"},
      {"version\\\":\\\"1\\\"", "version\\\":\\\"x\\\"", "\"version\" is missing"},
      {"phase\\\":\\\"1\\\"", "phase\\\":\\\"2\\\"", "\"progress\""},
      {"epoch\\\":\\\"9\\\"", "epoch\\\":\\\"-\\\"", "\"epoch\""},
      {"epoch\\\":\\\"9\\\"", "epohc\\\":\\\"9\\\"", "\"epoch\""},
      {"classes\\\":\\\"3\\\"", "classes\\\":\\\"4\\\"", "\"labels\""},
      {"height\\\":\\\"96\\\"", "height\\\":\\\"9z\\\"", "\"height\""},
      {"finished", "finishes", "\"finished\""},
      {"batch\\\":\\\"96\\\"", "batch\\\":\\\"-6\\\"", "\"progress\""},
      {"history\\\":[", "hystory\\\":[", "\"history\""},
      {"pixels", "pixals", "is missing"},
      {"{\\\"version", "[\\\"version", "is no checkpoint of tepal"},
  };
  tp_error err = {0};
  whole w = make_whole(), r;
  const char *path = box_path(b, "good.safetensors");
  assert_ok(write_whole(&w, path, &err));
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const char *damaged = changed(b, path, cases[c][0], cases[c][1], "damaged.safetensors");
    assert_fails(read_whole(&r, damaged, &err), TP_ERR_DATA, cases[c][2]);
    assert_non_null(strstr(err.text, "damaged.safetensors"));
    assert_int_equal(r.weights.count + r.slots.count + r.progress.n_history, 0);
  }
  free_whole(&w);
}

/* Files of versions that did not keep the batch. */
static void batch_not_told(void **state)
{
  box *b = *state;
  tp_error err = {0};
  whole w = make_whole(), r;
  const char *path = box_path(b, "good.safetensors");
  assert_ok(write_whole(&w, path, &err));
  assert_ok(read_whole(&r, changed(b, path, "batch\\\":", "hctab\\\":", "old.safetensors"), &err));
  assert_int_equal(r.progress.batch, 0);
  r.progress.batch = w.progress.batch;
  assert_same_progress(&r.progress, &w.progress);
  free_whole(&r);
  free_whole(&w);
}

/* Files that were written before there was fast_decode. */
static void older_metadata(void **state)
{
  box *b = *state;
  tp_error err = {0};
  whole w = make_whole(), r;
  const char *path = box_path(b, "good.safetensors");
  assert_ok(write_whole(&w, path, &err));
  assert_ok(
      read_whole(&r, changed(b, path, "fast_decode", "long_gone__", "older.safetensors"), &err));
  assert_false(r.identity.fast_decode);
  assert_true(r.identity.antialias);
  free_whole(&w);
  free_whole(&r);
}

/* Every byte of the header damaged in turn, and the file cut everywhere: an error or a good read,
 * nothing else. */
static void damaged_bytes(void **state)
{
  box *b = *state;
  tp_error err = {0};
  whole w = make_whole(), r;
  const char *path = box_path(b, "good.safetensors");
  w.progress.n_history = 2;
  assert_ok(write_whole(&w, path, &err));
  tp__buffer file;
  tp__buffer_init(&file, 1 << 20);
  assert_ok(tp__file_read(path, &file, &err));
  size_t refused = 0;
  for (size_t i = 0; i < file.size; i += i < 16 ? 1 : 29) {
    uint8_t kept = file.data[i];
    file.data[i] ^= 0x15;
    const char *damaged = box_file(b, "damaged.safetensors", file.data, file.size);
    file.data[i] = kept;
    tp_status status = read_whole(&r, damaged, &err);
    assert_true(status == TP_OK || status == TP_ERR_DATA);
    refused += status != TP_OK;
    free_whole(&r);
    const char *cut = box_file(b, "cut.safetensors", file.data, i);
    assert_fails(read_whole(&r, cut, &err), TP_ERR_DATA, "cut.safetensors");
  }
  assert_true(refused > 20);
  tp__buffer_free(&file);
  free_whole(&w);
}

/* ---- a full disk ---- */

/* In a child with a limit on the size of files: the status of writing. */
static int write_under_limit(const whole *w, const char *path, rlim_t limit)
{
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    tp_error err = {0};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit});
    tp_status status = write_whole(w, path, &err);
    bool told = strstr(err.text, path) != NULL && strstr(err.text, "File too large") != NULL;
    _exit(status == TP_OK || told ? (int)status : 100);
  }
  int result = 0;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result));
  return WEXITSTATUS(result);
}

static void a_full_disk_keeps_the_old_file(void **state)
{
  box *b = *state;
  tp_error err = {0};
  const char *path = box_path(b, "run/last.safetensors");
  whole w = make_whole(), r;
  assert_ok(write_whole(&w, path, &err));
  tp__buffer before, after;
  tp__buffer_init(&before, 1 << 20);
  tp__buffer_init(&after, 1 << 20);
  assert_ok(tp__file_read(path, &before, &err));
  add_tensor(&w.weights, "large", 1 << 20, 0);
  static const rlim_t limits[] = {0, 100, 1 << 16, 1 << 20};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    assert_int_equal(write_under_limit(&w, path, limits[i]), TP_ERR_OUTPUT);
    after.size = 0;
    assert_ok(tp__file_read(path, &after, &err));
    assert_int_equal(after.size, before.size);
    assert_memory_equal(after.data, before.data, before.size);
  }
  assert_int_equal(write_under_limit(&w, path, 1 << 24), TP_OK);
  assert_ok(read_whole(&r, path, &err));
  assert_same_tensors(&w.weights, &r.weights);
  free_whole(&r);
  /* nothing else was left in the folder */
  unlink(path);
  assert_int_equal(rmdir(box_path(b, "run")), 0);
  assert_fails(write_whole(&w, "/dev/full", &err), TP_ERR_OUTPUT, "/dev/full");
  assert_fails(write_whole(&w, "/proc/none/x", &err), TP_ERR_OUTPUT, "/proc/none/x");
  tp__buffer_free(&before);
  tp__buffer_free(&after);
  free_whole(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      box_test(comes_back_bit_for_bit), box_test(parts),
      box_test(foreign_files),          box_test(damaged_metadata),
      box_test(batch_not_told),         box_test(older_metadata),
      box_test(damaged_bytes),          box_test(a_full_disk_keeps_the_old_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
