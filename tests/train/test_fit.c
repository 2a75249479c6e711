/* Proves that a training does what it says from its first step to its files: both phases, the
 * callbacks, the refusals before the first step, what a full disk and a loss that is no number
 * leave behind. Expected: worked out by hand from the options; cases B10, B24 and B38 of
 * ../shared/cases/README.md. That a run can be interrupted anywhere: test_resume. */
#include "fit_rig.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- a whole run ---- */

static void trains_both_phases(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  attempt a = {0};
  assert_trains(&a, &o);
  assert_int_equal(a.result.epochs, 5);
  assert_true(a.result.best_epoch >= 1 && a.result.best_epoch <= 5);
  assert_true(a.result.images_per_s > 0 && a.result.busy_share > 0);
  assert_int_equal(a.val_steps, 2); /* 5 + 4 of 9 */
  assert_int_equal(count_files(o.run), 3);

  remains last = remains_read(o.run, "last.safetensors");
  const tp__progress_state *p = &last.progress;
  assert_true(p->finished);
  assert_int_equal(p->phase, 1);
  assert_int_equal(p->phase_start, 3);
  assert_int_equal(p->n_history, 5);
  assert_int_equal(p->iteration, 2 * STEPS); /* the second optimizer's */
  for (int e = 0; e < 5; e++) {
    const tp__history_row *row = &p->history[e];
    assert_int_equal(row->epoch, e);
    assert_int_equal(row->phase, e >= 3);
    /* the last step of epoch e: 5 e + 4; the rate falls every 4 steps; then it is constant */
    double rate = e < 3 ? 1e-2 * pow((double)0.96f, (5 * e + 4) / 4) : 1e-3;
    assert_true(fabs(row->rate - rate) <= 1e-6 * rate);
    /* sums over every record, once */
    double right = row->value[TP__ACCURACY] * TRAIN, val_right = row->value[TP__VAL_ACCURACY] * VAL;
    assert_true(fabs(right - round(right)) < 1e-9 && fabs(val_right - round(val_right)) < 1e-9);
    assert_true(row->value[TP__TOP_5] == 1 && row->value[TP__VAL_TOP_5] == 1);
    assert_true(row->value[TP__VAL_LOSS] > 0);
  }
  assert_true(p->history[2].value[TP__LOSS] < p->history[0].value[TP__LOSS]);
  assert_true(p->best_value[TP__VAL_ACCURACY] == a.result.best_val_accuracy);
  assert_int_equal(last.identity.spec.classes, CLASSES);
  remains_free(&last);

  remains best = remains_read(o.run, "best.safetensors");
  assert_int_equal(best.progress.best.epoch + 1, a.result.best_epoch);
  assert_int_equal(best.slots.count, 0);
  remains_free(&best);
}

/* Only what is not frozen moves. */
static void frozen_layers_stay(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "head");
  o.early_stopping = 0;
  o.epochs = 1;
  o.fine_tune_epochs = 0;
  attempt a = {0};
  assert_trains(&a, &o);
  remains head = remains_read(o.run, "last.safetensors");
  tp_train_options o2 = tiny_options(b, &data, "both");
  o2.early_stopping = 0;
  o2.epochs = o2.fine_tune_epochs = 1;
  o2.fine_tune_layers = 3; /* top_conv, top_bn, top_activation */
  assert_trains(&a, &o2);
  remains both = remains_read(o2.run, "last.safetensors");
  int moved = 0;
  for (size_t i = 0; i < head.weights.count; i++) {
    const tp__tensor *t = &head.weights.item[i], *u = tp__tensors_find(&both.weights, t->name);
    bool same = memcmp(t->data, u->data, tp__tensor_bytes(t)) == 0;
    bool trains = strncmp(t->name, "predictions/", 12) == 0 ||
                  strcmp(t->name, "top_conv/kernel") == 0 || strcmp(t->name, "top_bn/gamma") == 0 ||
                  strcmp(t->name, "top_bn/beta") == 0;
    if (same == trains) fail_msg("%s has %s", t->name, same ? "not moved" : "moved");
    moved += !same;
  }
  assert_int_equal(moved, 5);
  remains_free(&head);
  remains_free(&both);
}

/* From the first epoch on, fresh weights; with batch statistics those move, too, and the pooling's
 * features are no longer those of the start. */
static void all_layers_train(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  attempt a = {0};
  tp_error err = {0};
  for (int batch = 0; batch < 2; batch++) {
    tp_train_options o = tiny_options(b, &data, batch == 0 ? "frozen" : "batch");
    o.epochs = 0;
    o.fine_tune_epochs = 1;
    o.fine_tune_layers = -1;
    o.batch_norm = batch == 0 ? "frozen" : "batch";
    assert_trains(&a, &o);
    remains last = remains_read(o.run, "last.safetensors");
    tp__net *net = NULL;
    tp__tensors fresh = {0};
    assert_ok(tp__net_build(&last.identity.spec, false, &net, &err));
    assert_ok(tp__net_init(net, o.seed, &fresh, &err));
    for (size_t i = 0; i < fresh.count; i++) {
      const tp__tensor *t = &fresh.item[i], *u = tp__tensors_find(&last.weights, t->name);
      bool same = memcmp(t->data, u->data, tp__tensor_bytes(t)) == 0;
      bool moves = strstr(t->name, "/moving_") == NULL || batch == 1;
      if (same == moves)
        fail_msg("%s: %s has %s", o.batch_norm, t->name, same ? "not moved" : "moved");
    }
    assert_int_equal(last.progress.phase, 1);
    tp__tensors_free(&fresh);
    tp__net_free(net);
    remains_free(&last);
  }
}

/* One step of plain SGD: the head goes three times as far, all else comes to the same bits. */
static void head_has_its_rate(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  attempt a = {0};
  remains r[2];
  for (int i = 0; i < 2; i++) {
    tp_train_options o = tiny_options(b, &data, i == 0 ? "one" : "three");
    o.epochs = 0;
    o.fine_tune_epochs = o.steps_per_epoch = 1;
    o.fine_tune_layers = -1;
    o.optimizer = "sgd";
    o.momentum = 0;
    o.fine_tune_head_factor = i == 0 ? 1 : 3;
    assert_trains(&a, &o);
    r[i] = remains_read(o.run, "last.safetensors");
  }
  tp_error err = {0};
  tp__net *net = NULL;
  tp__tensors fresh = {0};
  assert_ok(tp__net_build(&r[0].identity.spec, false, &net, &err));
  assert_ok(tp__net_init(net, 1, &fresh, &err));
  for (size_t i = 0; i < fresh.count; i++) {
    const tp__tensor *start = &fresh.item[i];
    const float *from = start->data, *one = tp__tensors_find(&r[0].weights, start->name)->data;
    const float *three = tp__tensors_find(&r[1].weights, start->name)->data;
    size_t bytes = tp__tensor_bytes(start);
    if (strstr(start->name, "predictions/") == NULL) {
      assert_memory_equal(one, three, bytes);
      continue;
    }
    assert_memory_not_equal(from, one, bytes);
    for (size_t k = 0; k < bytes / sizeof(float); k++)
      assert_true(fabsf(three[k] - from[k] - 3 * (one[k] - from[k])) < 1e-6f);
  }
  tp__tensors_free(&fresh);
  tp__net_free(net);
  for (int i = 0; i < 2; i++) remains_free(&r[i]);
}

/* Of one epoch: what is the best, and left, is the average; with a momentum of almost 0 that is
 * what the last step gave. */
static void averages_are_kept(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  attempt a = {0};
  static const double momentum[] = {0, 1e-12, 0.9};
  remains r[3];
  for (int i = 0; i < 3; i++) {
    char name[8];
    snprintf(name, sizeof name, "r%d", i);
    tp_train_options o = tiny_options(b, &data, name);
    o.epochs = 1;
    o.fine_tune_epochs = 0;
    o.early_stopping = 0;
    o.ema_momentum = momentum[i];
    assert_trains(&a, &o);
    remains best = remains_read(o.run, "best.safetensors");
    r[i] = remains_read(o.run, "last.safetensors");
    assert_same_weights(&best.weights, &r[i].weights);
    remains_free(&best);
  }
  assert_same_weights(&r[0].weights, &r[1].weights);
  const tp__tensor *x = tp__tensors_find(&r[0].weights, "predictions/kernel");
  const tp__tensor *y = tp__tensors_find(&r[2].weights, "predictions/kernel");
  assert_memory_not_equal(x->data, y->data, tp__tensor_bytes(x));
  assert_non_null(tp__tensors_find(&r[2].slots, "ema/predictions/kernel"));
  for (int i = 0; i < 3; i++) remains_free(&r[i]);
}

static void seeds_differ(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  attempt a = {0};
  remains r[2];
  for (int i = 0; i < 2; i++) {
    tp_train_options o = tiny_options(b, &data, i == 0 ? "one" : "two");
    o.epochs = 1;
    o.fine_tune_epochs = 0;
    o.seed = (uint64_t)i;
    assert_trains(&a, &o);
    r[i] = remains_read(o.run, "last.safetensors");
  }
  const tp__tensor *x = tp__tensors_find(&r[0].weights, "predictions/kernel");
  const tp__tensor *y = tp__tensors_find(&r[1].weights, "predictions/kernel");
  assert_memory_not_equal(x->data, y->data, tp__tensor_bytes(x));
  remains_free(&r[0]);
  remains_free(&r[1]);
}

/* ---- callbacks act ---- */

/* Nothing is an improvement by 1e30: the run stops, with the weights of its first epoch, which are
 * those of a run of one epoch. */
static void early_stopping_restores(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "long");
  o.epochs = 10;
  o.fine_tune_epochs = 0;
  o.early_stopping = 2;
  o.early_stopping_min_delta = 1e30;
  attempt a = {0};
  assert_trains(&a, &o);
  assert_int_equal(a.result.epochs, 3);
  assert_non_null(strstr(a.log.text, "epoch 3: val_loss has not improved since epoch 1"));
  tp_train_options short_run = o;
  short_run.run = tiny_options(b, &data, "short").run;
  short_run.epochs = 1;
  assert_trains(&a, &short_run);
  remains x = remains_read(o.run, "last.safetensors");
  remains y = remains_read(short_run.run, "last.safetensors");
  assert_same_weights(&x.weights, &y.weights);
  remains_free(&x);
  remains_free(&y);
}

static void plateau_and_schedule_compose(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  o.epochs = 4;
  o.fine_tune_epochs = 0;
  o.plateau_monitor = "top_5"; /* always 1 */
  o.plateau_patience = 1;
  o.early_stopping = 0;
  attempt a = {0};
  assert_trains(&a, &o);
  remains last = remains_read(o.run, "last.safetensors");
  for (int e = 0; e < 4; e++) {
    double rate = 1e-2 * pow((double)0.96f, (5 * e + 4) / 4) * pow(0.5, e > 1 ? e - 1 : 0);
    assert_true(fabs(last.progress.history[e].rate - rate) <= 1e-6 * rate);
  }
  assert_non_null(strstr(a.log.text, "top_5 has not improved for 1 epochs: rate "));
  assert_non_null(strstr(a.log.text, "x plateau 0.5"));
  remains_free(&last);
}

static void without_validation(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  o.val.count = 0;
  o.epochs = 2;
  o.fine_tune_epochs = 0;
  attempt a = {0};
  assert_trains(&a, &o);
  assert_non_null(strstr(a.log.text, "so accuracy is watched instead of val_accuracy"));
  assert_true(isnan(a.result.best_val_accuracy) && isnan(a.result.best_val_loss));
  assert_int_equal(a.val_steps, 0);
  remains last = remains_read(o.run, "last.safetensors");
  assert_true(isnan(last.progress.history[1].value[TP__VAL_LOSS]));
  remains_free(&last);
}

/* B10 */
static void steps_per_epoch(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  o.steps_per_epoch = 2;
  o.validation_steps = 1;
  o.epochs = 2;
  o.fine_tune_epochs = 0;
  attempt a = {0};
  assert_trains(&a, &o);
  assert_int_equal(a.val_steps, 1);
  remains last = remains_read(o.run, "last.safetensors");
  assert_int_equal(last.progress.iteration, 4);
  double right = last.progress.history[0].value[TP__VAL_ACCURACY] * BATCH;
  assert_true(fabs(right - round(right)) < 1e-9);
  remains_free(&last);
  o.steps_per_epoch = 6;
  assert_ends(&a, &o, TP_ERR_USAGE, "training set: ");
  assert_non_null(strstr(a.err.text, "5"));
  o.steps_per_epoch = 0;
  o.validation_steps = 3;
  assert_ends(&a, &o, TP_ERR_USAGE, "validation set: ");
}

/* ---- dry run, refusals ---- */

static void dry_run_writes_nothing(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  o.dry_run = true;
  attempt a = {0};
  assert_trains(&a, &o);
  assert_int_equal(count_files(o.run), 0);
  assert_non_null(strstr(a.log.text, "dry run: memory: values "));
  assert_non_null(strstr(a.log.text, "dry run: a step of 5 pictures takes about "));
  assert_non_null(strstr(a.log.text, "after 2 steps; nothing was written"));
  assert_int_equal(a.val_steps, 1);
}

static void refused_before_the_first_step(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  const tp_train_options good = tiny_options(b, &data, "run");
  struct {
    tp_train_options o;
    tp_status status;
    const char *part;
  } cases[32];
  size_t n = 0;
#define CASE(field, value, status_, part_)                                                         \
  do {                                                                                             \
    cases[n].o = good;                                                                             \
    cases[n].o.field = value;                                                                      \
    cases[n].status = status_;                                                                     \
    cases[n++].part = part_;                                                                       \
  } while (0)
  CASE(batch, 0, TP_ERR_USAGE, "batch: 0 is out of range");
  CASE(learning_rate, -1, TP_ERR_USAGE, "learning_rate: -1 is out of range");
  CASE(dropout, 1, TP_ERR_USAGE, "dropout: 1 is out of range");
  CASE(plateau_factor, NAN, TP_ERR_USAGE, "plateau_factor");
  CASE(rotate, 36, TP_ERR_USAGE, "rotate: 36: the value is a fraction of a turn");
  CASE(rotate_fill, "black", TP_ERR_USAGE, "rotate_fill: \"black\" is not known");
  CASE(best_monitor, "val_acc", TP_ERR_USAGE, "best_monitor: \"val_acc\" is not known");
  CASE(model, "vgg", TP_ERR_USAGE, "vgg");
  CASE(image_size, "8", TP_ERR_USAGE, "8");
  CASE(image_size, "big", TP_ERR_USAGE, "image_size: \"big\" is no size");
  CASE(schedule, "linear", TP_ERR_USAGE, "schedule: \"linear\"");
  CASE(fine_tune_schedule, "linear", TP_ERR_USAGE, "fine_tune_schedule: \"linear\"");
  CASE(fine_tune_head_factor, 0, TP_ERR_USAGE, "fine_tune_head_factor: 0 is out of range");
  CASE(class_weights, "5:1", TP_ERR_USAGE, "class_weights: class 5");
  CASE(data.cache, "disk", TP_ERR_USAGE, "cache: \"disk\" is not known");
  CASE(fine_tune_layers, 5000, TP_ERR_USAGE, "5000");
  CASE(batch_norm, "thawed", TP_ERR_USAGE, "batch_norm: \"thawed\" is not known");
  CASE(drop_connect, 1, TP_ERR_USAGE, "drop_connect: 1 is out of range");
  CASE(train.count, 0, TP_ERR_USAGE, "train: no training data");
#undef CASE
  for (size_t c = 0; c < n; c++) {
    attempt a = {0};
    tp_status status = attempt_run(&a, &cases[c].o);
    if (status != cases[c].status || strstr(a.err.text, cases[c].part) == NULL)
      fail_msg("case %zu: status %d, \"%s\"; wanted %d, \"%s\"", c, (int)status, a.err.text,
               (int)cases[c].status, cases[c].part);
    assert_int_equal(a.train_messages, 0);
    assert_int_equal(count_files(good.run), 0);
  }
}

static void unfit_data(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  attempt a = {0};
  o.val.item = (const char *[]){box_path(b, "none/*.tfrec")};
  assert_ends(&a, &o, TP_ERR_DATA, "validation set: ");
  /* a label that training has not */
  o.val.item = (const char *[]){box_shard(b, "data/bad.tfrec", "x", 1, 7)};
  assert_ends(&a, &o, TP_ERR_DATA, "validation set: ");
  assert_non_null(strstr(a.err.text, "bad.tfrec"));
  /* one class alone */
  o = tiny_options(b, &data, "run");
  o.train = (tp_strings){(const char *[]){box_shard(b, "data/one.tfrec", "x", 1, 0)}, 1};
  assert_ends(&a, &o, TP_ERR_DATA, "one class");
  /* a record that is no picture: found when it is read, with its place */
  o = tiny_options(b, &data, "run");
  o.train =
      (tp_strings){(const char *[]){data.train[0], box_shard(b, "data/text.tfrec", "x", 3, 0)}, 2};
  assert_ends(&a, &o, TP_ERR_DATA, "text.tfrec");
}

/* Damaged pictures that max_bad lets pass are left out, also where a whole batch is damaged. */
static void damaged_pictures_are_left_out(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  o.train =
      (tp_strings){(const char *[]){data.train[0], box_shard(b, "data/text.tfrec", "x", 2, 0)}, 2};
  o.batch = 13;
  o.shuffle = 0; /* the damaged ones come last, a batch alone */
  o.data.max_bad = "2";
  o.epochs = 2;
  o.fine_tune_epochs = 0;
  attempt a = {0};
  assert_trains(&a, &o);
  remains last = remains_read(o.run, "last.safetensors");
  assert_int_equal(last.progress.n_history, 2);
  assert_int_equal(last.progress.iteration, 2);
  for (int e = 0; e < 2; e++) {
    double right = last.progress.history[e].value[TP__ACCURACY] * 13;
    assert_true(fabs(right - round(right)) < 1e-9);
  }
  remains_free(&last);
  o.data.max_bad = "1";
  o.run = tiny_options(b, &data, "refused").run;
  assert_int_equal(attempt_run(&a, &o), TP_ERR_DATA);
}

/* ---- a loss that is no number ---- */

static void not_a_number(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "none");
  o.model = "efficientnet-b0"; /* swish has no upper bound */
  o.optimizer = "sgd";
  o.fine_tune_learning_rate = 1e6;
  o.epochs = 0;
  attempt a = {0};
  assert_ends(&a, &o, TP_ERR_DATA, "the loss is not a number any more (epoch 1, step ");
  assert_non_null(strstr(a.err.text, "try a lower learning_rate"));

  o.run = tiny_options(b, &data, "kept").run;
  o.learning_rate = 1e-3;
  o.epochs = 1;
  assert_trains(&a, &o);
  assert_int_equal(a.result.epochs, 1);
  assert_int_equal(a.result.best_epoch, 1);
  assert_non_null(strstr(a.log.text, "w the loss is not a number any more (epoch 2, step "));
  assert_non_null(strstr(a.log.text, "the best epoch before it, 1, is kept"));
  remains best = remains_read(o.run, "best.safetensors");
  for (size_t i = 0; i < best.weights.count; i++) {
    const tp__tensor *t = &best.weights.item[i];
    for (size_t k = 0; t->dtype == TP__F32 && k < tp__shape_elements(&t->shape, 0); k++)
      assert_true(isfinite(((const float *)t->data)[k]));
  }
  remains last = remains_read(o.run, "last.safetensors");
  assert_same_weights(&last.weights, &best.weights);
  remains_free(&last);
  remains_free(&best);
  a = (attempt){.resume = true}; /* does not run into it again */
  assert_trains(&a, &o);
  assert_non_null(strstr(a.log.text, "is finished"));
}

/* ---- output that cannot be written ---- */

static void unwritable_folder(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  char *under_a_file = tp__format("%s/run", box_text(b, "file", ""));
  o.run = under_a_file;
  attempt a = {0};
  assert_ends(&a, &o, TP_ERR_OUTPUT, under_a_file);
  assert_int_equal(a.train_messages, 0);
  free(under_a_file);
}

static tp_status fill_disk(void *user, const tp__progress_state *s, const tp__cost *cost,
                           tp_error *err)
{
  (void)user;
  (void)cost;
  (void)err;
  if (s->n_history == 2) setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, 1 << 20});
  return TP_OK;
}

/* In a child whose files may only be 1 MB, from the start or after the second epoch. */
static int train_on_a_full_disk(const tp_train_options *o, bool from_the_start)
{
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(100); /* a failure inside would end in the teardown of the parent */
    attempt a = {.observer = &(tp__observer){.epoch = from_the_start ? NULL : fill_disk}};
    signal(SIGXFSZ, SIG_IGN);
    if (from_the_start) setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, 1 << 20});
    tp_status status = attempt_run(&a, o);
    bool told = strstr(a.err.text, o->run) != NULL && strstr(a.err.text, "File too large") != NULL;
    if (from_the_start && a.train_messages > 0) told = false;
    _exit(told ? (int)status : 100);
  }
  int result = 0;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_true(WIFEXITED(result));
  return WEXITSTATUS(result);
}

static void full_disk(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "full");
  assert_int_equal(train_on_a_full_disk(&o, true), TP_ERR_OUTPUT);
  assert_int_equal(count_files(o.run), 0);
  /* later: the checkpoint before it is whole, and the run goes on from it */
  assert_int_equal(train_on_a_full_disk(&o, false), TP_ERR_OUTPUT);
  remains last = remains_read(o.run, "last.safetensors");
  assert_int_equal(last.progress.epoch, 1);
  remains_free(&last);
  attempt a = {.resume = true};
  assert_trains(&a, &o);
  tp_train_options whole = tiny_options(b, &data, "whole");
  a.resume = false;
  assert_trains(&a, &whole);
  assert_same_run(o.run, whole.run);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      box_test(trains_both_phases),
      box_test(frozen_layers_stay),
      box_test(all_layers_train),
      box_test(head_has_its_rate),
      box_test(averages_are_kept),
      box_test(seeds_differ),
      box_test(early_stopping_restores),
      box_test(plateau_and_schedule_compose),
      box_test(without_validation),
      box_test(steps_per_epoch),
      box_test(dry_run_writes_nothing),
      box_test(refused_before_the_first_step),
      box_test(unfit_data),
      box_test(damaged_pictures_are_left_out),
      box_test(not_a_number),
      box_test(unwritable_folder),
      box_test(full_disk),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
