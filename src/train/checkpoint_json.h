/* checkpoint_json - the text inside a checkpoint; only checkpoint.c uses it. */
#ifndef TP_CHECKPOINT_JSON_H
#define TP_CHECKPOINT_JSON_H

#include "checkpoint.h"

/* The safetensors metadata: {"format": "tepal", "tepal": "<JSON text>"}. progress may be NULL.
 * Returns: caller frees. */
tp_status tp__checkpoint_json_make(const tp__identity *identity, const tp__progress_state *progress,
                                   char **metadata, tp_error *err) TP_CHECKED;

/* identity and progress must be zeroed; on failure they may be filled in part and are the caller's
 * to free. progress may be NULL. */
tp_status tp__checkpoint_json_read(const char *metadata, tp__identity *identity,
                                   tp__progress_state *progress, tp_error *err) TP_CHECKED;

#endif
