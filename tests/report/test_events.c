/* Proves that event files are what TensorBoard reads: TFRecord framing with right checksums, a
 * first record that names the version, scalars with the plugin's name, a new file for every start.
 * Expected: case B39 of ../shared/cases/README.md; fields of tensorflow.Event by its .proto.
 * (TensorBoard itself: tests/interop/check_tensorboard.py.) */
#include "../data/data_testing.h"

#include <math.h>

#include "event.pb-c.h"
#include "report/report.h"

enum { MOST = 64 };

/* The events of all files in a folder that a viewer would read, file by file. */
typedef struct seen {
  Tepal__Event *event[MOST];
  int n, files;
} seen;

/* Reads a file to its end, or to where it is cut. */
static void read_events(const char *path, seen *s)
{
  tp_error err = {0};
  tp__source source;
  assert_ok(tp__source_open(&source, path, &err));
  tp__record_reader reader = {0};
  tp__span span;
  bool end = false;
  tp__record_reader_start(&reader, &source, TP__RECORD_MAX);
  for (int first = s->n; tp__record_next(&reader, &span, &end, &err) == TP_OK && !end; s->n++) {
    assert_true(s->n < MOST);
    s->event[s->n] = tepal__event__unpack(NULL, span.size, span.payload);
    assert_non_null(s->event[s->n]);
    assert_true(s->event[s->n]->wall_time > 1.6e9);
    if (s->n == first) assert_string_equal(s->event[s->n]->file_version, "brain.Event:2");
  }
  tp__record_reader_free(&reader);
  tp__source_close(&source);
  s->files++;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
  return strcmp((*a)->d_name, (*b)->d_name);
}

static seen read_folder(const char *folder)
{
  seen s = {0};
  struct dirent **list = NULL;
  int n = scandir(folder, &list, NULL, by_name);
  for (int i = 0; i < n; i++) {
    char *path = tp__format("%s/%s", folder, list[i]->d_name);
    if (strstr(list[i]->d_name, "tfevents") != NULL) read_events(path, &s);
    free(path);
    free(list[i]);
  }
  free(list);
  return s;
}

static void free_seen(seen *s)
{
  for (int i = 0; i < s->n; i++) tepal__event__free_unpacked(s->event[i], NULL);
}

static const Tepal__SummaryValue *scalar(const Tepal__Event *e)
{
  assert_non_null(e->summary);
  assert_int_equal(e->summary->n_value, 1);
  const Tepal__SummaryValue *v = e->summary->value[0];
  assert_string_equal(v->metadata->plugin_data->plugin_name, "scalars");
  assert_int_equal(v->metadata->data_class, 1);
  assert_int_equal(v->tensor->dtype, 1);
  assert_non_null(v->tensor->tensor_shape);
  assert_int_equal(v->tensor->n_float_val, 1);
  return v;
}

static void scalars(void **state)
{
  box *b = *state;
  tp_error err = {0};
  tp__events *e = NULL;
  assert_ok(tp__events_open(b->folder, &e, &err));
  static const float values[] = {0.5f, -1e30f, INFINITY, NAN};
  for (int i = 0; i < 4; i++)
    assert_ok(
        tp__events_scalar(e, "epoch_loss", i + INT64_C(5000000000), 1.75e9 + i, values[i], &err));
  seen s = read_folder(b->folder); /* while it is open: a viewer follows it */
  assert_int_equal(s.files, 1);
  assert_int_equal(s.n, 5);
  for (int i = 0; i < 4; i++) {
    const Tepal__SummaryValue *v = scalar(s.event[i + 1]);
    assert_string_equal(v->tag, "epoch_loss");
    assert_true(s.event[i + 1]->step == i + INT64_C(5000000000));
    assert_true(s.event[i + 1]->wall_time == 1.75e9 + i);
    assert_memory_equal(&v->tensor->float_val[0], &values[i], sizeof(float));
  }
  free_seen(&s);
  assert_ok(tp__events_close(e, &err));
  assert_ok(tp__events_close(NULL, &err));
}

/* The history row of an epoch; what was not measured has no scalar. */
static void an_epoch(void **state)
{
  box *b = *state;
  tp_error err = {0};
  tp__events *e = NULL;
  tp__history_row row = {.epoch = 6, .rate = 0.25, .images_per_s = 100};
  for (int q = 0; q < TP__QUANTITIES; q++) row.value[q] = q / 8.0;
  row.value[TP__VAL_TOP_5] = NAN;
  assert_ok(tp__events_open(b->folder, &e, &err));
  assert_ok(tp__events_epoch(e, &row, &err));
  assert_ok(tp__events_close(e, &err));
  static const char *const tags[] = {
      "epoch_loss",         "epoch_accuracy",     "epoch_top_5",         "epoch_val_loss",
      "epoch_val_accuracy", "epoch_val_macro_f1", "epoch_learning_rate", "images_per_s"};
  static const float values[] = {0, 1 / 8.0f, 2 / 8.0f, 3 / 8.0f, 4 / 8.0f, 6 / 8.0f, 0.25f, 100};
  seen s = read_folder(b->folder);
  assert_int_equal(s.n, 9);
  for (int i = 0; i < 8; i++) {
    const Tepal__SummaryValue *v = scalar(s.event[i + 1]);
    assert_string_equal(v->tag, tags[i]);
    assert_int_equal(s.event[i + 1]->step, 6);
    assert_true(v->tensor->float_val[0] == values[i]);
  }
  free_seen(&s);
}

/* B39: steps 0, 1, 2 with the last record cut; a resumed run writes 2, 3, 4 into a file of its own.
 */
static void a_cut_file_is_left_alone(void **state)
{
  box *b = *state;
  tp_error err = {0};
  tp__events *e = NULL;
  assert_ok(tp__events_open(b->folder, &e, &err));
  for (int i = 0; i < 3; i++) assert_ok(tp__events_scalar(e, "loss", i, 1.7e9, (float)i, &err));
  assert_ok(tp__events_close(e, &err));
  DIR *d = opendir(b->folder);
  struct dirent *entry;
  while ((entry = readdir(d)) != NULL && strstr(entry->d_name, "tfevents") == NULL) {
  }
  assert_non_null(entry);
  char *path = tp__format("%s/%s", b->folder, entry->d_name);
  closedir(d);
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  assert_ok(tp__file_read(path, &bytes, &err));
  assert_int_equal(truncate(path, (off_t)bytes.size - 9), 0);
  tp__buffer_free(&bytes);
  free(path);
  assert_ok(tp__events_open(b->folder, &e, &err));
  for (int i = 2; i < 5; i++) assert_ok(tp__events_scalar(e, "loss", i, 1.7e9, (float)i, &err));
  assert_ok(tp__events_close(e, &err));
  seen s = read_folder(b->folder);
  assert_int_equal(s.files, 2);
  bool steps[5] = {0};
  for (int i = 0; i < s.n; i++)
    if (s.event[i]->summary != NULL) steps[s.event[i]->step] = true;
  for (int i = 0; i < 5; i++) assert_true(steps[i]);
  free_seen(&s);
}

static void unwritable(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__events *e = NULL;
  assert_fails(tp__events_open("/proc/none", &e, &err), TP_ERR_OUTPUT,
               "/proc/none/events.out.tfevents.");
  assert_null(e);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      box_test(scalars),
      box_test(an_epoch),
      box_test(a_cut_file_is_left_alone),
      cmocka_unit_test(unwritable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
