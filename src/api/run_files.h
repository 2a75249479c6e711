/* run_files - what a training leaves in its folder besides checkpoints: recipe.ini, log.txt,
 * history.csv and TensorBoard's event files.
 *
 * Nothing is written, and nothing of a run that is overwritten is removed, until training has
 * opened and checked everything; the lines of the log until then are kept in memory. What fails
 * before its first checkpoint leaves no folder behind, so that the same command can be given again.
 */
#ifndef TP_RUN_FILES_H
#define TP_RUN_FILES_H

#include "report/report.h"

typedef struct tp__run_files {
  const tp_train_options *options; /* borrows */
  bool resume;
  tp__events *events;
  FILE *log;        /* log.txt, added to; NULL: not open yet */
  tp__buffer early; /* the log before that */
  tp__log outer;    /* the caller's sink */
  tp__log both;     /* gives lines to both */
} tp__run_files;

/* Refuses a folder that holds a run, unless it may be replaced. */
tp_status tp__run_folder_check(const tp_train_options *options, tp_error *err) TP_CHECKED;

/* Returns: tp__run_files_close. r stays where it is meanwhile. */
void tp__run_files_open(tp__run_files *r, const tp_train_options *options, bool resume,
                        const tp__log *outer);
tp__observer tp__run_files_observer(tp__run_files *r);
/* status: how training ended, and err its text; gives it back, or what went wrong in closing. */
tp_status tp__run_files_close(tp__run_files *r, tp_status status, tp_error *err) TP_CHECKED;

#endif
