/* Proves that a run is the same bit for bit however often, wherever and by what it is interrupted,
 * and for any number of threads. Expected: the uninterrupted run of the same options; case B24 of
 * ../shared/cases/README.md for what is finished already. */
#include "fit_rig.h"

#include <signal.h>
#include <sys/wait.h>

/* Weights, state and best files of `o` trained without interruption, made once for a box. */
static const char *whole_run(box *b, tp_train_options o)
{
  tiny none = {0};
  o.run = tiny_options(b, &none, "whole").run;
  attempt a = {0};
  assert_trains(&a, &o);
  return o.run;
}

/* Stops after so many questions, goes on, stops again ...; 0 ends the list: then runs to its end.
 */
static void interrupt(const tp_train_options *o, const int *stops, int threads)
{
  attempt a = {.threads = threads};
  for (int i = 0; stops[i] > 0; i++) {
    a.stop_after = stops[i] - 1;
    if (a.stop_after == 0) a.stop_after = -1; /* at the first question */
    assert_ends(&a, o, TP_STOPPED, "go on with: tepal train --resume");
    a.resume = true;
  }
  a.stop_after = 0;
  assert_trains(&a, o);
}

/* ---- stopped ---- */

/* Questions: one after each of 5 steps and of 2 batches of validation, so 7 an epoch. */
static void stopped_anywhere(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  static const int cases[][12] = {
      {1},                         /* after the first step */
      {3},                         /* inside the first epoch */
      {5},                         /* after its last step, before validation */
      {6},                         /* inside validation */
      {7},                         /* at its end */
      {9},                         /* inside the second epoch */
      {21},                        /* at the very end of the head's phase */
      {23},                        /* inside fine-tuning */
      {35},                        /* at the end of everything */
      {2, 2, 2, 2, 2},             /* again and again */
      {8, 8, 8, 4},                /* across the change of phase */
      {1, 1, 1, 1, 1, 1, 1, 1, 1}, /* one step each time */
  };
  tp_train_options o = tiny_options(b, &data, "run");
  const char *whole = whole_run(b, o);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char name[32];
    snprintf(name, sizeof name, "run%zu", c);
    o.run = tiny_options(b, &data, name).run;
    interrupt(&o, cases[c], 0);
    assert_same_run(o.run, whole);
    remove_all(o.run);
  }
}

/* Without augmentation features of the frozen backbone are kept in memory and lost by the stop. */
static void stopped_without_augmentation(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  o.flip = false;
  o.rotate = 0;
  o.optimizer = "sgd";
  o.schedule = "cosine";
  o.decay_steps = 0;
  o.label_smoothing = 0.1;
  o.class_weights = "0:2,1:0.5,2:1";
  const char *whole = whole_run(b, o);
  interrupt(&o, (const int[]){9, 6, 10, 0}, 0);
  assert_same_run(o.run, whole);
}

/* Early stopping and plateau remember what they had seen. */
static void stopped_while_waiting(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  o.early_stopping = 2;
  o.early_stopping_min_delta = 1e30;
  o.plateau_monitor = "top_5";
  o.plateau_patience = 2;
  o.epochs = 6;
  const char *whole = whole_run(b, o);
  interrupt(&o, (const int[]){10, 7, 8, 0}, 0);
  assert_same_run(o.run, whole);
}

/* All layers, statistics of the batch, stochastic depth; for any number of threads. */
static void stopped_in_full_training(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  o.epochs = 0;
  o.fine_tune_layers = -1;
  o.batch_norm = "batch";
  o.fine_tune_learning_rate = 1e-3;
  o.fine_tune_schedule = "cosine";
  o.decay_steps = 0;
  o.warmup_steps = 3;
  o.fine_tune_head_factor = 10;
  const char *whole = whole_run(b, o);
  interrupt(&o, (const int[]){3, 6, 0}, 1);
  assert_same_run(o.run, whole);
  o.run = tiny_options(b, &data, "three").run;
  interrupt(&o, (const int[]){9, 0}, 3);
  assert_same_run(o.run, whole);
}

/* Crops, colours and mixed pictures come from the example's key and its batch, in both phases. */
static void stopped_with_all_augmentation(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  o.random_crop = 0.3;
  o.brightness = o.contrast = o.saturation = 0.4;
  o.mixup = 0.4;
  o.cutmix = 1;
  o.class_weights = "0:2,1:0.5,2:1";
  const char *whole = whole_run(b, o);
  interrupt(&o, (const int[]){3, 6, 8, 9, 0}, 1);
  assert_same_run(o.run, whole);
  o.run = tiny_options(b, &data, "three").run;
  interrupt(&o, (const int[]){1, 23, 0}, 3);
  assert_same_run(o.run, whole);
}

/* Averaged weights are validated, the plain ones trained; decay and clipping need no memory. */
static void stopped_with_averages(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  o.weight_decay = 0.01;
  o.clip_norm = 0.5;
  o.ema_momentum = 0.8;
  const char *whole = whole_run(b, o);
  interrupt(&o, (const int[]){3, 4, 6, 11, 0}, 1);
  assert_same_run(o.run, whole);
}

/* ---- killed ---- */

static tp_status kill_at(void *user, const tp__progress_state *s, const tp__cost *cost,
                         tp_error *err)
{
  (void)cost;
  (void)err;
  if ((int)s->n_history == *(const int *)user) raise(SIGKILL);
  return TP_OK;
}

/* At the end of an epoch, when best.safetensors may be newer than last.safetensors. */
static void killed_between_epochs(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  const char *whole = whole_run(b, o);
  for (int epoch = 1; epoch <= 5; epoch++) {
    char name[32];
    snprintf(name, sizeof name, "run%d", epoch);
    o.run = tiny_options(b, &data, name).run;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      tp__observer observer = {.user = &epoch, .epoch = kill_at};
      attempt a = {.observer = &observer};
      alarm(100);
      (void)attempt_run(&a, &o);
      _exit(1);
    }
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
    attempt a = {.resume = true};
    assert_trains(&a, &o);
    assert_int_equal(a.result.epochs, 5);
    assert_same_run(o.run, whole);
    remove_all(o.run);
  }
}

/* ---- threads ---- */

static void any_number_of_threads(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  const char *whole = whole_run(b, o); /* 2 threads */
  for (int threads = 1; threads <= 3; threads += 2) {
    o.run = tiny_options(b, &data, threads == 1 ? "one" : "three").run;
    attempt a = {.threads = threads};
    assert_trains(&a, &o);
    assert_same_run(o.run, whole);
  }
  o.run = tiny_options(b, &data, "changing").run;
  interrupt(&o, (const int[]){11, 0}, 1);
  assert_same_run(o.run, whole);
}

/* The batch of all replicas: with others, or another option, it stays what it was. */
static void the_batch_is_kept(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  const char *whole = whole_run(b, o);
  attempt a = {.stop_after = 7};
  assert_ends(&a, &o, TP_STOPPED, "stopped in epoch 2");
  assert_null(strstr(a.log.text, "is kept"));
  o.batch = BATCH - 2;
  a = (attempt){.resume = true};
  assert_trains(&a, &o);
  assert_non_null(strstr(a.log.text, "batch of 5 examples is kept, not 3 for each of 1 replica"));
  assert_same_run(o.run, whole);
}

/* ---- finished, or not resumable ---- */

static void a_finished_run_stays(void **state)
{
  box *b = *state;
  tp_error err = {0};
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  o.epochs = 1;
  o.fine_tune_epochs = 0;
  attempt a = {0};
  assert_trains(&a, &o);
  char *last = tp__format("%s/last.safetensors", o.run), *h5 = tp__format("%s/best.h5", o.run);
  tp__buffer before, after;
  tp__buffer_init(&before, 1 << 28);
  tp__buffer_init(&after, 1 << 28);
  assert_ok(tp__file_read(last, &before, &err));
  for (int i = 0; i < 2; i++) {
    a = (attempt){.resume = true};
    assert_trains(&a, &o);
    assert_non_null(strstr(a.log.text, "is finished after 1 epochs: nothing is left to do"));
    assert_int_equal(a.train_messages, 0);
    assert_int_equal(a.result.epochs, 1);
    assert_int_equal(a.result.best_epoch, 1);
    after.size = 0;
    assert_ok(tp__file_read(last, &after, &err));
    assert_int_equal(after.size, before.size);
    assert_memory_equal(after.data, before.data, before.size);
    assert_true(tp__is_file(h5));
    unlink(h5); /* as if it had been killed before this file: made the next time */
  }
  tp__buffer_free(&before);
  tp__buffer_free(&after);
  free(last);
  free(h5);
}

/* Fewer epochs than are done already: 0 more, and the run is finished. */
static void fewer_epochs_than_done(void **state)
{
  box *b = *state;
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  o.fine_tune_epochs = 0;
  attempt a = {.stop_after = 16}; /* in epoch 3 */
  assert_ends(&a, &o, TP_STOPPED, "epoch 3");
  o.epochs = 1;
  a = (attempt){.resume = true};
  assert_trains(&a, &o);
  assert_int_equal(a.result.epochs, 2);
  assert_int_equal(a.train_messages, 0);
}

static void unfit_checkpoints(void **state)
{
  box *b = *state;
  tp_error err = {0};
  tiny data = tiny_make(b);
  tp_train_options o = tiny_options(b, &data, "run");
  attempt a = {.resume = true};
  assert_ends(&a, &o, TP_ERR_DATA, "last.safetensors");

  a = (attempt){.stop_after = 3};
  assert_ends(&a, &o, TP_STOPPED, "stopped in epoch 1 after step 4");
  a = (attempt){.resume = true};
  o.model = "efficientnet-b0";
  assert_ends(&a, &o, TP_ERR_DATA, "was made for efficientnet-lite0");
  o.model = "efficientnet-lite0";
  o.optimizer = "sgd";
  assert_ends(&a, &o, TP_ERR_DATA, "optimizer state: sgd/velocity/");
  o.optimizer = "adam";
  o.steps_per_epoch = 2; /* there is no step 4 */
  assert_ends(&a, &o, TP_ERR_USAGE, "step 4 does not exist");
  const tp_strings both = o.train;
  o.train.count = 1; /* other examples, as many steps as the recipe says */
  o.steps_per_epoch = 2;
  assert_ends(&a, &o, TP_ERR_DATA, "other examples");
  o.train = both;
  o.steps_per_epoch = 0;

  char *path = tp__format("%s/last.safetensors", o.run);
  remains r = remains_read(o.run, "last.safetensors");
  tp__tensor *t = NULL;
  tp__shape shape = tp__shape_make(1, (int64_t[]){2});
  assert_ok(tp__tensors_add(&r.stop_best, "predictions/bias", TP__F32, &shape, &t, &err));
  assert_ok(tp__checkpoint_write(path, &r.identity, &r.progress, &r.weights, &r.slots, &r.stop_best,
                                 &err));
  assert_ends(&a, &o, TP_ERR_DATA, "predictions/bias is kept for early stopping");
  tp__tensors_free(&r.stop_best);
  tp__tensors fewer = {0};
  for (size_t i = 1; i < r.weights.count; i++) {
    assert_ok(tp__tensors_add(&fewer, r.weights.item[i].name, r.weights.item[i].dtype,
                              &r.weights.item[i].shape, &t, &err));
    memcpy(t->data, r.weights.item[i].data, tp__tensor_bytes(t));
  }
  assert_ok(tp__checkpoint_write(path, &r.identity, &r.progress, &fewer, &r.slots, NULL, &err));
  assert_ends(&a, &o, TP_ERR_DATA, r.weights.item[0].name);
  tp__tensors_free(&fewer);
  remains_free(&r);
  free(path);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      box_test(stopped_in_full_training), box_test(stopped_with_all_augmentation),
      box_test(stopped_in_full_training), box_test(stopped_with_averages),
      box_test(stopped_anywhere),         box_test(stopped_without_augmentation),
      box_test(stopped_while_waiting),    box_test(killed_between_epochs),
      box_test(any_number_of_threads),    box_test(the_batch_is_kept),
      box_test(a_finished_run_stays),     box_test(fewer_epochs_than_done),
      box_test(unfit_checkpoints),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
