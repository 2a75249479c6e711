/* history - history.csv; see report.h */
#include <math.h>

#include "report.h"

static tp_status write_number(tp__writer *w, const char *format, double value, tp_error *err)
{
  if (isnan(value)) return TP_OK; /* an empty field */
  char text[64];
  snprintf(text, sizeof text, format, value);
  return tp__writer_printf(w, err, "%s", text);
}

static tp_status write_row(tp__writer *w, const tp__history_row *row, tp_error *err)
{
  static const char *const phase[] = {"head", "fine-tuning"};
  TP__TRY(
      tp__writer_printf(w, err, "%d,%s,%.7g", row->epoch + 1, phase[row->phase != 0], row->rate));
  for (int q = 0; q < TP__QUANTITIES; q++) {
    TP__TRY(tp__writer_printf(w, err, ","));
    TP__TRY(write_number(w, "%.9g", row->value[q], err));
  }
  return tp__writer_printf(w, err, ",%.3f,%.1f\n", row->seconds, row->images_per_s);
}

tp_status tp__history_write(const char *path, const tp__progress_state *state, tp_error *err)
{
  tp__writer w;
  TP__TRY(tp__writer_open(&w, path, err));
  tp_status status = tp__writer_printf(&w, err, "epoch,phase,learning_rate");
  for (int q = 0; status == TP_OK && q < TP__QUANTITIES; q++)
    status = tp__writer_printf(&w, err, ",%s", tp__quantity_name((tp__quantity)q));
  if (status == TP_OK) status = tp__writer_printf(&w, err, ",seconds,images_per_s\n");
  for (size_t i = 0; status == TP_OK && i < state->n_history; i++)
    status = write_row(&w, &state->history[i], err);
  if (status == TP_OK) return tp__writer_commit(&w, err);
  tp__writer_cancel(&w);
  return status;
}
