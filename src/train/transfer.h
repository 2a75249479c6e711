/* transfer - how pixels cross to a remote device: as float32, or as 8 bits, a quarter of the bytes.
 */
#ifndef TP_TRANSFER_H
#define TP_TRANSFER_H

#include "base/job.h"
#include "data/catalog.h"
#include "pipeline/pipeline.h"

/* transfer: "float32", "uint8" (rounded where need be) or "auto": 8 bits where that changes
 * nothing, which is so when no picture is resized, rotated, recoloured or blended with another (all
 * headers of the catalogs are read for it; NULL ones are left out). */
tp_status tp__transfer_bytes(const char *transfer, const tp__job *job,
                             const tp__pipeline_options *input, const tp__catalog *const catalog[2],
                             bool *bytes, tp_error *err) TP_CHECKED;

/* accumulate: "auto" (0) or how many parts. */
tp_status tp__accumulate_parse(const char *text, int *parts, tp_error *err) TP_CHECKED;

#endif
