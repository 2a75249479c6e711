/* tepal.h - the public interface of tepal, and its manual.
 *
 * tepal trains image classifiers on CPUs (and, later, TPUs and GPUs) without Python: photos or TFRecords in, a trained
 * network and a submission.csv out, with the numbers Keras gives.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEPAL_H
#define TEPAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TP_VERSION "0.1.0"

/* ------------------------------------------------------------------------------------------------------------------
 * 1. Status and errors
 *
 * Every function that can fail returns a tp_status and fills a tp_error that the caller owns (it may be NULL). The
 * values are the exit codes of the command. On failure all results are left as they were and nothing is half-written.
 */
#define TP_STATUS_MAP(X)                                                                           \
  X(TP_OK, 0, "done")                                                                              \
  X(TP_ERR_INTERNAL, 1, "a fault of tepal itself, or out of memory")                               \
  X(TP_ERR_USAGE, 2, "wrong usage")                                                                \
  X(TP_ERR_DATA, 3, "bad data or weights")                                                         \
  X(TP_ERR_DEVICE, 4, "device not available")                                                      \
  X(TP_ERR_OUTPUT, 5, "output could not be written")                                               \
  X(TP_STOPPED, 6, "stopped, can be resumed")

typedef enum tp_status {
#define TP_STATUS_ENUM_(name, code, text) name = code,
  TP_STATUS_MAP(TP_STATUS_ENUM_)
#undef TP_STATUS_ENUM_
} tp_status;

#if defined(__GNUC__)
#define TP_CHECKED __attribute__((warn_unused_result))
#define TP_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define TP_CHECKED
#define TP_PRINTF(f, a)
#endif

/* What went wrong, from the outermost place to the fact:
 * "training set: 03-192x192-433.tfrec: record 12 at byte 91204: data checksum differs; ..." */
typedef struct tp_error {
  tp_status status;
  char text[2048];
} tp_error;

/* The general meaning of a status ("bad data or weights"). Never NULL. */
const char *tp_status_text(tp_status status);

/* The version of the library that is running (TP_VERSION is that of the header). */
const char *tp_version(void);

#ifdef __cplusplus
}
#endif
#endif
