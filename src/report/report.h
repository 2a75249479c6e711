/* report - what people read about a run.
 *
 *   history row ──> history.csv, TensorBoard event file      cost ──> what limits the speed
 *   progress ──> one line as Keras' bar                      evaluation ──> the table of scores
 *
 * Rules: this room only formats and writes what it is told; it measures and decides nothing. A
 * figure that was not measured (NaN) is an empty field or left out, never 0. Files appear under
 * their name only when whole, except event files, which grow.
 *
 * Neighbours: train tells what happened (fit.h's observer), data frames the event records
 * (tfrecord.h); the API puts all together.
 */
#ifndef TP_REPORT_H
#define TP_REPORT_H

#include "train/fit.h"

/* history.csv: one line an epoch, written anew and atomically each time. Columns: epoch (1-based),
 * phase, learning_rate, loss, accuracy, top_5, val_..., seconds, images_per_s; an empty field where
 * nothing was measured. */
tp_status tp__history_write(const char *path, const tp__progress_state *state,
                            tp_error *err) TP_CHECKED;

/* ---- TensorBoard ---- */

/* An event file: records of tensorflow.Event in TFRecord framing. Each open makes a NEW file in the
 * folder ("events.out.tfevents.SECONDS.HOST.PID.N"), so that a resumed run never appends to a file
 * that a crash has cut; the first record says brain.Event:2. */
typedef struct tp__events tp__events;
tp_status tp__events_open(const char *folder, tp__events **events, tp_error *err) TP_CHECKED;
/* One scalar with the plugin name "scalars"; flushed to the file. wall: seconds since 1970. */
tp_status tp__events_scalar(tp__events *events, const char *tag, int64_t step, double wall,
                            float value, tp_error *err) TP_CHECKED;
tp_status tp__events_close(tp__events *events,
                           tp_error *err) TP_CHECKED; /* takes NULL; ends it also on failure */
/* The scalars of an epoch's history row, step = epoch index (0-based): epoch_loss,
 * epoch_accuracy... as Keras' callback names them for training, and the same with "val_"; learning
 * rate as epoch_learning_rate. */
tp_status tp__events_epoch(tp__events *events, const tp__history_row *row,
                           tp_error *err) TP_CHECKED;

/* ---- speed ---- */

/* One line that says what limits the run: "compute-bound, 97 % busy" or "input-bound: JPEG decode
 * 71 %, try --cache or --threads". Writes to text and returns it. */
char *tp__cost_text(const tp__cost *cost, char text[160]);

#endif
