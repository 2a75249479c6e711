/* events - TensorBoard's event files; see report.h. Format: TFRecord framing around
 * tensorflow.Event messages. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "data/tfrecord.h"
#include "event.pb-c.h"
#include "report.h"

struct tp__events {
  tp__writer file; /* written directly: viewers read it while it grows */
};

static double wall_clock(void)
{
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static tp_status write_event(tp__events *e, const Tepal__Event *event, tp_error *err)
{
  uint8_t bytes[1024];
  size_t size = tepal__event__get_packed_size(event);
  if (size > sizeof bytes)
    return tp__fail(err, TP_ERR_INTERNAL, "%s: an event of %zu bytes", e->file.path, size);
  tepal__event__pack(event, bytes);
  TP__TRY(tp__record_write(&e->file, bytes, size, err));
  if (fflush(e->file.file) != 0)
    return tp__fail(err, TP_ERR_OUTPUT, "%s: writing failed: %s", e->file.path, strerror(errno));
  return TP_OK;
}

/* A name that no other file has: two runs within a second differ in the process, two files of a
 * process in the count. */
static tp_status open_new(tp__events *e, const char *folder, tp_error *err)
{
  char host[64] = "host";
  (void)gethostname(host, sizeof host - 1);
  for (int i = 0; i < 1000; i++) {
    free(e->file.path);
    e->file.path = tp__format("%s/events.out.tfevents.%lld.%s.%ld.%d", folder,
                              (long long)time(NULL), host, (long)getpid(), i);
    if (e->file.path == NULL) return tp__no_memory(err, 256);
    e->file.file = fopen(e->file.path, "wbxe");
    if (e->file.file != NULL) return TP_OK;
    if (errno != EEXIST) break;
  }
  return tp__fail(err, TP_ERR_OUTPUT, "%s: cannot be written: %s", e->file.path, strerror(errno));
}

tp_status tp__events_open(const char *folder, tp__events **events, tp_error *err)
{
  tp__events *e = tp__calloc(1, sizeof *e, err);
  if (e == NULL) return TP_ERR_INTERNAL;
  tp_status status = open_new(e, folder, err);
  if (status == TP_OK) {
    char version[] = "brain.Event:2";
    Tepal__Event first = TEPAL__EVENT__INIT;
    first.wall_time = wall_clock();
    first.file_version = version;
    status = write_event(e, &first, err);
  }
  if (status == TP_OK) {
    *events = e;
    return TP_OK;
  }
  tp__writer_cancel(&e->file);
  free(e);
  return status;
}

tp_status tp__events_scalar(tp__events *e, const char *tag, int64_t step, double wall, float value,
                            tp_error *err)
{
  char name[128], plugin_name[] = "scalars";
  snprintf(name, sizeof name, "%s", tag);
  Tepal__TensorShape shape = TEPAL__TENSOR_SHAPE__INIT;
  Tepal__TensorProto tensor = TEPAL__TENSOR_PROTO__INIT;
  tensor.dtype = 1;
  tensor.tensor_shape = &shape;
  tensor.n_float_val = 1;
  tensor.float_val = &value;
  Tepal__PluginData plugin = TEPAL__PLUGIN_DATA__INIT;
  plugin.plugin_name = plugin_name;
  Tepal__SummaryMetadata metadata = TEPAL__SUMMARY_METADATA__INIT;
  metadata.plugin_data = &plugin;
  metadata.data_class = 1;
  Tepal__SummaryValue one = TEPAL__SUMMARY_VALUE__INIT, *list[] = {&one};
  one.tag = name;
  one.tensor = &tensor;
  one.metadata = &metadata;
  Tepal__Summary summary = TEPAL__SUMMARY__INIT;
  summary.n_value = 1;
  summary.value = list;
  Tepal__Event event = TEPAL__EVENT__INIT;
  event.wall_time = wall;
  event.step = step;
  event.summary = &summary;
  return write_event(e, &event, err);
}

tp_status tp__events_epoch(tp__events *e, const tp__history_row *row, tp_error *err)
{
  double wall = wall_clock();
  char tag[64];
  for (int q = 0; q < TP__QUANTITIES; q++) {
    if (isnan(row->value[q])) continue;
    snprintf(tag, sizeof tag, "epoch_%s", tp__quantity_name((tp__quantity)q));
    TP__TRY(tp__events_scalar(e, tag, row->epoch, wall, (float)row->value[q], err));
  }
  TP__TRY(tp__events_scalar(e, "epoch_learning_rate", row->epoch, wall, (float)row->rate, err));
  return tp__events_scalar(e, "images_per_s", row->epoch, wall, (float)row->images_per_s, err);
}

tp_status tp__events_close(tp__events *e, tp_error *err)
{
  if (e == NULL) return TP_OK;
  tp_status status = tp__writer_commit(&e->file, err);
  free(e);
  return status;
}
