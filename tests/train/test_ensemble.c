/* Proves that answers come in the records' order and are the same for any number of threads, how
 * several networks and views are averaged, and what is refused before any work. Expected: the
 * networks' own probabilities, averaged here; case B43 of ../shared/cases/README.md. */
#include "fit_rig.h"

#include <math.h>

#include "train/answers.h"
#include "train/ensemble.h"

enum { TEST = 13 };

/* Two trained networks, and pictures without labels. */
typedef struct set {
  tiny data;
  const char *run[2], *test[2];
} set;

static set make_set(box *b, int runs)
{
  set s = {.data = tiny_make(b)};
  for (int i = 0; i < runs; i++) {
    tp_train_options o = tiny_options(b, &s.data, i == 0 ? "one" : "two");
    o.epochs = 2;
    o.fine_tune_epochs = 0;
    o.seed = (uint64_t)(i + 1);
    attempt a = {0};
    assert_trains(&a, &o);
    s.run[i] = o.run;
  }
  s.test[0] = picture_shard(b, "test/00.tfrec", "t", 7, 200, 32, false);
  s.test[1] = picture_shard(b, "test/01.tfrec", "t", TEST - 7, 207, 48, false);
  return s;
}

static tp_predict_options predict_options(box *b, const set *s, int runs, const char *out)
{
  return (tp_predict_options){.data = default_data(),
                              .runs = {s->run, (size_t)runs},
                              .inputs = {s->test, 2},
                              .out = box_path(b, out),
                              .combine = "mean",
                              .precision = "float32",
                              .id_column = "id",
                              .label_column = "label",
                              .batch = 4};
}

static tp_status predict(const tp_predict_options *o, int threads, heard *h, tp_error *error)
{
  tp_error err = {0};
  tp__pool *pool = NULL;
  tp__backend *cpu = NULL;
  assert_ok(tp__pool_new(threads, &pool, &err));
  assert_ok(tp__backend_cpu(pool, &cpu, &err));
  tp__job job = {.pool = pool, .log = hear(h)};
  tp_status status = tp__predict(&job, cpu, o, error);
  cpu->free(cpu);
  tp__pool_free(pool);
  return status;
}

/* The probabilities a CSV holds, and its ids. */
typedef struct table {
  char id[TEST][32];
  double p[TEST][CLASSES];
  int rows;
} table;

static table read_table(const char *path, const char *header)
{
  table t = {0};
  char line[256];
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  assert_non_null(fgets(line, sizeof line, f));
  assert_string_equal(line, header);
  while (fgets(line, sizeof line, f) != NULL && t.rows < TEST) {
    double *p = t.p[t.rows];
    assert_int_equal(sscanf(line, "%31[^,],%lf,%lf,%lf", t.id[t.rows], &p[0], &p[1], &p[2]), 4);
    assert_true(fabs(p[0] + p[1] + p[2] - 1) < 1e-5);
    t.rows++;
  }
  fclose(f);
  return t;
}

static table probabilities(box *b, const tp_predict_options *from, const char *out)
{
  tp_error err = {0};
  heard h;
  tp_predict_options o = *from;
  o.probabilities = true;
  o.out = box_path(b, out);
  assert_ok(predict(&o, 2, &h, &err));
  return read_table(o.out, "id,0,1,2\n");
}

/* ---- order ---- */

static void in_the_records_order(void **state)
{
  box *b = *state;
  tp_error err = {0};
  heard h;
  set s = make_set(b, 1);
  tp_predict_options o = predict_options(b, &s, 1, "two.csv");
  o.tta = "flip,rotate=10";
  assert_ok(predict(&o, 2, &h, &err));
  static const int threads[] = {1, 4};
  for (int i = 0; i < 2; i++) {
    tp_predict_options other = o;
    other.out = box_path(b, "other.csv");
    assert_ok(predict(&other, threads[i], &h, &err));
    assert_same_file(other.out, o.out);
  }
  char line[64], wanted[64];
  FILE *f = fopen(o.out, "r");
  assert_non_null(fgets(line, sizeof line, f));
  assert_string_equal(line, "id,label\n");
  for (int i = 0; i < TEST; i++) {
    assert_non_null(fgets(line, sizeof line, f));
    int n = snprintf(wanted, sizeof wanted, "t%d,", 200 + i);
    assert_int_equal(strncmp(line, wanted, (size_t)n), 0);
    assert_true(line[n] >= '0' && line[n] <= '2' && line[n + 1] == '\n');
  }
  assert_null(fgets(line, sizeof line, f));
  fclose(f);
  assert_non_null(strstr(h.text, "13 predictions: "));
}

/* ---- ensembles ---- */

static void networks_are_averaged(void **state)
{
  box *b = *state;
  set s = make_set(b, 2);
  set second = s;
  second.run[0] = s.run[1];
  tp_predict_options o = predict_options(b, &s, 1, "x.csv");
  table one = probabilities(b, &o, "one.csv");
  o = predict_options(b, &second, 1, "x.csv");
  table two = probabilities(b, &o, "two.csv");
  o = predict_options(b, &s, 2, "x.csv");
  table mean = probabilities(b, &o, "mean.csv");
  o.combine = "val-accuracy";
  table voted = probabilities(b, &o, "voted.csv");
  double vote[2];
  for (int i = 0; i < 2; i++) {
    remains r = remains_read(s.run[i], "best.safetensors");
    vote[i] = r.progress.best_value[TP__VAL_ACCURACY];
    remains_free(&r);
  }
  double all = vote[0] + vote[1];
  if (all == 0) vote[0] = vote[1] = all = 1;
  double apart = 0;
  for (int i = 0; i < TEST; i++)
    for (int c = 0; c < CLASSES; c++) {
      double x = one.p[i][c], y = two.p[i][c];
      apart = fmax(apart, fabs(x - y));
      assert_true(fabs(mean.p[i][c] - (x + y) / 2) < 1e-6);
      assert_true(fabs(voted.p[i][c] - (vote[0] * x + vote[1] * y) / all) < 1e-6);
    }
  assert_true(apart > 1e-3);
}

/* ---- views ---- */

static void views_of_text(void **state)
{
  (void)state;
  static const struct {
    const char *text;
    int n;
    tp__view view[TP__VIEWS_MAX];
  } cases[] = {
      {NULL, 1, {{0}}},
      {"flip", 2, {{false, 0}, {true, 0}}},
      {"rotate=36", 3, {{false, 0}, {false, 0.1f}, {false, -0.1f}}},
      {"flip,rotate=90",
       6,
       {{false, 0}, {true, 0}, {false, 0.25f}, {true, 0.25f}, {false, -0.25f}, {true, -0.25f}}},
      {"rotate=90,flip",
       6,
       {{false, 0}, {true, 0}, {false, 0.25f}, {true, 0.25f}, {false, -0.25f}, {true, -0.25f}}},
  };
  tp_error err = {0};
  tp__view view[TP__VIEWS_MAX];
  int n = 0;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    assert_ok(tp__views_parse(cases[c].text, view, &n, &err));
    assert_int_equal(n, cases[c].n);
    for (int i = 0; i < n; i++)
      assert_true(view[i].flip == cases[c].view[i].flip && view[i].turn == cases[c].view[i].turn);
  }
  static const char *const wrong[] = {"mirror",     "flip;rotate=3", "rotate=",   "rotate=0",
                                      "rotate=181", "rotate=nan",    "rotate=-5", "flip,"};
  for (size_t c = 0; c + 1 < sizeof wrong / sizeof *wrong; c++)
    assert_fails(tp__views_parse(wrong[c], view, &n, &err), TP_ERR_USAGE, "tta: ");
}

/* B43: with the mirrored view a picture and its mirror have the same probabilities, bit for bit;
 * without, they differ. Two predictions are the same. The picture is grey, of blocks as JPEG has
 * them, so that its mirror decodes to the mirrored pixels. */
static void a_picture_and_its_mirror(void **state)
{
  box *b = *state;
  enum { SIDE = 32 };
  tp_error err = {0};
  set s = make_set(b, 1);
  tp__buffer bytes, picture;
  tp__buffer_init(&bytes, 1 << 24);
  tp__buffer_init(&picture, 1 << 20);
  uint8_t rgb[SIDE * SIDE * 3];
  for (int i = 0; i < SIDE * SIDE * 3; i++) {
    int x = i / 3 % SIDE / 8, y = i / 3 / SIDE / 8;
    rgb[i] = (uint8_t)(20 + (x * 5 + y * 11) % 16 * 14);
  }
  tp__picture decoded[2] = {0};
  for (int i = 0; i < 2; i++) {
    picture.size = 0;
    assert_ok(tp__image_encode_jpeg(rgb, SIDE, SIDE, 100, &picture, &err));
    assert_ok(tp__image_decode(picture.data, picture.size, NULL, &decoded[i], &err));
    frame_picture(&bytes, &picture, -1, i == 0 ? "plain" : "mirror");
    tp__image_flip8(rgb, SIDE, SIDE);
  }
  tp__image_flip8(decoded[0].rgb.data, SIDE, SIDE);
  assert_memory_equal(decoded[0].rgb.data, decoded[1].rgb.data, sizeof rgb);
  s.test[0] = box_file(b, "mirror/00.tfrec", bytes.data, bytes.size);
  tp_predict_options o = predict_options(b, &s, 1, "x.csv");
  o.inputs.count = 1;
  table plain = probabilities(b, &o, "plain.csv");
  table again = probabilities(b, &o, "again.csv");
  assert_memory_equal(&plain, &again, sizeof plain);
  o.tta = "flip";
  table both = probabilities(b, &o, "both.csv");
  assert_memory_not_equal(plain.p[0], plain.p[1], sizeof plain.p[0]);
  assert_memory_equal(both.p[0], both.p[1], sizeof both.p[0]);
  for (int c = 0; c < CLASSES; c++)
    assert_true(fabs(both.p[0][c] - (plain.p[0][c] + plain.p[1][c]) / 2) < 1e-6);
  for (int i = 0; i < 2; i++) tp__buffer_free(&decoded[i].rgb);
  tp__buffer_free(&bytes);
  tp__buffer_free(&picture);
}

/* ---- figures ---- */

/* Evaluating the best network on the validation set gives what training had seen. */
static void evaluation_agrees_with_training(void **state)
{
  box *b = *state;
  tp_error err = {0};
  set s = make_set(b, 1);
  tp__backend *cpu = NULL;
  tp_evaluation e;
  heard h;
  assert_ok(tp__backend_cpu(b->pool, &cpu, &err));
  tp__job job = {.pool = b->pool, .log = hear(&h)};
  tp_evaluate_options o = {.data = default_data(),
                           .runs = {s.run, 1},
                           .inputs = {s.data.val, 1},
                           .combine = "mean",
                           .precision = "float32",
                           .batch = 32};
  assert_ok(tp__evaluate(&job, cpu, &o, &e, &err));
  remains r = remains_read(s.run[0], "best.safetensors");
  const double *best = r.progress.best_value;
  assert_int_equal(e.examples, VAL);
  assert_true(e.accuracy == best[TP__VAL_ACCURACY]);
  assert_true(fabs(e.macro_f1 - best[TP__VAL_MACRO_F1]) < 1e-12);
  assert_true(fabs(e.loss - best[TP__VAL_LOSS]) < 1e-5);
  remains_free(&r);
  tp_evaluation_free(&e);
  o.inputs = (tp_strings){s.test, 1}; /* no labels */
  assert_fails(tp__evaluate(&job, cpu, &o, &e, &err), TP_ERR_DATA, "00.tfrec");
  cpu->free(cpu);
}

/* ---- refusals ---- */

static void refused(void **state)
{
  box *b = *state;
  tp_error err = {0};
  heard h;
  set s = make_set(b, 1);
  const tp_predict_options good = predict_options(b, &s, 1, "out.csv");
  tp_predict_options o = good;
  o.expect = 12;
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_DATA, "data: 13 records, 12 are expected");
  o = good;
  o.inputs = (tp_strings){
      (const char *[]){s.test[0], picture_shard(b, "more/00.tfrec", "t", 2, 206, 32, false)}, 2};
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_DATA, "the id \"t206\" is there more than once");
  o = good;
  o.label_names = true;
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_USAGE, "label_names: ");
  o = good;
  o.out = NULL;
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_USAGE, "out: ");
  o.out = "/proc/none/x.csv";
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_OUTPUT, "/proc/none/x.csv");
  o = good;
  o.inputs.count = 0;
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_USAGE, "data: ");
  o = good;
  o.runs.count = 0;
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_USAGE, "run");
  o = good;
  o.runs.item = (const char *[]){b->folder};
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_DATA, "is it the folder of a run?");
  o.runs.item = (const char *[]){"/nowhere"};
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_DATA, "/nowhere: there is no such run");
  o = good;
  o.combine = "max";
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_USAGE, "combine: \"max\"");
  o = good;
  o.tta = "zoom";
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_USAGE, "tta: \"zoom\"");
  o = good;
  o.precision = "half";
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_USAGE, "precision: \"half\"");
  o = good;
  o.batch = 0;
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_USAGE, "batch: 0");
  o = good;
  o.inputs = (tp_strings){(const char *[]){box_shard(b, "text.tfrec", "x", 1, 0)}, 1};
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_DATA, "text.tfrec");
  assert_false(tp__is_file(good.out));
  o = good;
  o.out = "/dev/full";
  assert_fails(predict(&o, 2, &h, &err), TP_ERR_OUTPUT, "/dev/full");
}

/* Networks of other classes cannot vote together; names come from the labels file. */
static void names_and_classes(void **state)
{
  box *b = *state;
  tp_error err = {0};
  heard h;
  set s = {.data = tiny_make(b)};
  static const char *const names[] = {"a rose\n\"lily\"\nx,y\n", "a rose\nlily\nother\n",
                                      "a rose\nlily\nother\nmore\n"};
  const char *runs[3];
  for (int i = 0; i < 3; i++) {
    char name[16];
    snprintf(name, sizeof name, "run%d", i);
    tp_train_options o = tiny_options(b, &s.data, name);
    o.data.labels = box_text(b, "labels.txt", names[i]);
    o.epochs = 1;
    o.fine_tune_epochs = 0;
    attempt a = {0};
    assert_trains(&a, &o);
    runs[i] = o.run;
  }
  s.run[0] = runs[0];
  s.test[0] = picture_shard(b, "test/00.tfrec", "t", 3, 200, 32, false);
  tp_predict_options o = predict_options(b, &s, 1, "names.csv");
  o.inputs.count = 1;
  o.label_names = true;
  assert_ok(predict(&o, 2, &h, &err));
  char line[64];
  FILE *f = fopen(o.out, "r");
  assert_non_null(fgets(line, sizeof line, f));
  assert_non_null(fgets(line, sizeof line, f));
  fclose(f);
  assert_true(strcmp(line, "t200,a rose\n") == 0 || strcmp(line, "t200,\"\"\"lily\"\"\"\n") == 0 ||
              strcmp(line, "t200,\"x,y\"\n") == 0);
  o.probabilities = true;
  assert_ok(predict(&o, 2, &h, &err));
  (void)read_table(o.out, "id,a rose,\"\"\"lily\"\"\",\"x,y\"\n");
  for (int i = 1; i < 3; i++) {
    o.runs = (tp_strings){(const char *[]){runs[0], runs[i]}, 2};
    assert_fails(predict(&o, 2, &h, &err), TP_ERR_DATA, "they cannot be combined");
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      box_test(in_the_records_order),
      box_test(networks_are_averaged),
      cmocka_unit_test(views_of_text),
      box_test(a_picture_and_its_mirror),
      box_test(evaluation_agrees_with_training),
      box_test(refused),
      box_test(names_and_classes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
