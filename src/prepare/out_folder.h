/* out_folder - a folder of results that appears whole or not at all.
 *
 * Everything is written below OUT/.partial; commit moves it up, entry by entry. A folder that
 * already holds something is refused, or with `overwrite` replaced, but only when it holds nothing
 * that tepal itself does not write there: shards in train, val and test, and the lists beside them.
 * Nothing else is ever deleted.
 */
#ifndef TP_OUT_FOLDER_H
#define TP_OUT_FOLDER_H

#include "base/base.h"

typedef struct tp__out_folder {
  char *path, *partial;
  bool made; /* the folder was not there before */
} tp__out_folder;

/* Errors: TP_ERR_USAGE: refused; TP_ERR_OUTPUT. After a failure nothing is left open. */
tp_status tp__out_folder_open(tp__out_folder *out, const char *path, bool overwrite,
                              tp_error *err) TP_CHECKED;

/* Where to write an entry: a fresh string, the caller frees it; with `folder` the folder itself is
 * made. NULL with err set on failure. */
char *tp__out_folder_entry(const tp__out_folder *out, const char *name, bool folder, tp_error *err);

/* A file of that name in the folder. */
tp_status tp__out_folder_write(const tp__out_folder *out, const char *name, const tp__buffer *text,
                               tp_error *err) TP_CHECKED;

/* Removes what was there before and moves the new entries to their place. Ends the writing, also on
 * failure. */
tp_status tp__out_folder_commit(tp__out_folder *out, tp_error *err) TP_CHECKED;

/* Removes everything written; does nothing after commit, or on a zeroed one. */
void tp__out_folder_cancel(tp__out_folder *out);

#endif
