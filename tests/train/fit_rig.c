/* fit_rig - see fit_rig.h */
#include "fit_rig.h"

#include <math.h>

tiny tiny_make(box *b)
{
  tiny t;
  t.train[0] = picture_shard(b, "data/train/00.tfrec", "a", 13, 0, 32, true);
  t.train[1] = picture_shard(b, "data/train/01.tfrec", "a", TRAIN - 13, 13, 40, true);
  t.val[0] = picture_shard(b, "data/val/00.tfrec", "v", VAL, 100, 32, true);
  return t;
}

tp_train_options tiny_options(box *b, const tiny *data, const char *run)
{
  tp_error err = {0};
  tp_train_options o = default_train();
  o.train = (tp_strings){data->train, 2};
  o.val = (tp_strings){data->val, 1};
  o.model = "efficientnet-lite0";
  o.weights = "none";
  o.image_size = "32";
  o.batch = BATCH;
  o.epochs = 3;
  o.fine_tune_epochs = 2;
  o.fine_tune_learning_rate = 1e-3;
  o.learning_rate = 1e-2;
  o.decay_steps = 4;
  o.run = box_path(b, run);
  assert_ok(tp__make_folder(o.run, &err));
  return o;
}

/* ---- one call ---- */

struct listening {
  attempt *a;
  int asked;
};

static bool wants_stop(void *user)
{
  struct listening *l = user;
  l->asked++;
  int most = l->a->stop_after;
  return most < 0 || (most > 0 && l->asked > most);
}

static void hear_progress(void *user, const tp_progress *p)
{
  struct listening *l = user;
  if (strcmp(p->stage, "train") == 0) l->a->train_messages++;
  if (strcmp(p->stage, "validate") == 0 && p->step > l->a->val_steps) l->a->val_steps = p->step;
}

tp_status attempt_run(attempt *a, const tp_train_options *o)
{
  struct listening l = {.a = a};
  tp__pool *pool = NULL;
  tp__backend *cpu = NULL;
  tp_error err = {0};
  assert_ok(tp__pool_new(a->threads == 0 ? 2 : a->threads, &pool, &err));
  assert_ok(tp__backend_cpu(pool, &cpu, &err));
  tp__job job = {.pool = pool,
                 .log = hear(&a->log),
                 .progress = hear_progress,
                 .user = &l,
                 .stopped = wants_stop,
                 .user_stop = &l};
  tp__fit_options fo = {.train = o, .resume = a->resume, .observer = a->observer};
  a->err = (tp_error){0};
  tp_status status = tp__fit(&job, cpu, &fo, &a->result, &a->err);
  cpu->free(cpu);
  tp__pool_free(pool);
  return status;
}

void assert_trains(attempt *a, const tp_train_options *o)
{
  tp_status status = attempt_run(a, o);
  if (status != TP_OK) fail_msg("status %d: %s", (int)status, a->err.text);
}

void assert_ends(attempt *a, const tp_train_options *o, tp_status status, const char *part)
{
  tp_status got = attempt_run(a, o);
  if (got != status || strstr(a->err.text, part) == NULL)
    fail_msg("status %d, \"%s\"; wanted %d, \"%s\"", (int)got, a->err.text, (int)status, part);
}

/* ---- what is left ---- */

remains remains_read(const char *run, const char *file)
{
  tp_error err = {0};
  remains r = {0};
  char *path = tp__format("%s/%s", run, file);
  assert_ok(tp__checkpoint_read(path, &r.identity, &r.progress, &r.weights, &r.slots, &r.stop_best,
                                &err));
  free(path);
  return r;
}

void remains_free(remains *r)
{
  tp__identity_free(&r->identity);
  tp__progress_state_free(&r->progress);
  tp__tensors_free(&r->weights);
  tp__tensors_free(&r->slots);
  tp__tensors_free(&r->stop_best);
}

void assert_same_weights(const tp__tensors *a, const tp__tensors *b)
{
  assert_int_equal(a->count, b->count);
  for (size_t i = 0; i < a->count; i++) {
    const tp__tensor *t = tp__tensors_find(b, a->item[i].name);
    assert_non_null(t);
    assert_true(tp__shape_equal(&t->shape, &a->item[i].shape));
    if (memcmp(t->data, a->item[i].data, tp__tensor_bytes(t)) != 0) fail_msg("%s differs", t->name);
  }
}

static void assert_same_values(const double *a, const double *b, const char *what)
{
  for (int q = 0; q < TP__QUANTITIES; q++)
    if (memcmp(&a[q], &b[q], sizeof a[q]) != 0 && !(isnan(a[q]) && isnan(b[q])))
      fail_msg("%s: %s is %.17g and %.17g", what, tp__quantity_name((tp__quantity)q), a[q], b[q]);
}

static void assert_same_state(const tp__progress_state *a, const tp__progress_state *b)
{
  assert_int_equal(a->phase, b->phase);
  assert_int_equal(a->phase_start, b->phase_start);
  assert_int_equal(a->epoch, b->epoch);
  assert_int_equal(a->step, b->step);
  assert_int_equal(a->iteration, b->iteration);
  assert_int_equal(a->finished, b->finished);
  assert_memory_equal(&a->stopping.best, &b->stopping.best, sizeof a->stopping.best);
  assert_int_equal(a->stopping.best_epoch, b->stopping.best_epoch);
  assert_int_equal(a->stopping.wait, b->stopping.wait);
  assert_true(a->plateau.multiplier == b->plateau.multiplier);
  assert_int_equal(a->plateau.wait, b->plateau.wait);
  assert_int_equal(a->best.epoch, b->best.epoch);
  assert_memory_equal(&a->best.best, &b->best.best, sizeof a->best.best);
  assert_same_values(a->best_value, b->best_value, "best");
  assert_int_equal(a->n_history, b->n_history);
  for (size_t i = 0; i < a->n_history; i++) {
    const tp__history_row *x = &a->history[i], *y = &b->history[i];
    assert_int_equal(x->epoch, i);
    assert_int_equal(y->epoch, i);
    assert_int_equal(x->phase, y->phase);
    assert_true(x->rate == y->rate);
    assert_same_values(x->value, y->value, "history");
  }
}

void assert_same_file(const char *a, const char *b)
{
  tp_error err = {0};
  tp__buffer x, y;
  tp__buffer_init(&x, 1 << 28);
  tp__buffer_init(&y, 1 << 28);
  assert_ok(tp__file_read(a, &x, &err));
  assert_ok(tp__file_read(b, &y, &err));
  if (x.size != y.size || memcmp(x.data, y.data, x.size) != 0) fail_msg("%s and %s differ", a, b);
  tp__buffer_free(&x);
  tp__buffer_free(&y);
}

void assert_same_run(const char *a, const char *b)
{
  static const char *const files[] = {"best.safetensors", "best.h5"};
  remains x = remains_read(a, "last.safetensors"), y = remains_read(b, "last.safetensors");
  assert_same_weights(&x.weights, &y.weights);
  assert_same_weights(&x.slots, &y.slots);
  assert_same_weights(&x.stop_best, &y.stop_best);
  assert_same_state(&x.progress, &y.progress);
  remains_free(&x);
  remains_free(&y);
  for (int i = 0; i < 2; i++) {
    char *p = tp__format("%s/%s", a, files[i]), *q = tp__format("%s/%s", b, files[i]);
    assert_same_file(p, q);
    free(p);
    free(q);
  }
}

int count_files(const char *folder)
{
  int n = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
    n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
  if (d != NULL) closedir(d);
  return n;
}
