/* device - from the name that a user gives to the backend that runs. */
#ifndef TP_DEVICE_H
#define TP_DEVICE_H

#include "backend/backend.h"
#include "base/log.h"

/* How long a device may take to answer before it counts as absent or busy, seconds. */
enum { TP__DEVICE_PATIENCE = 25 };

typedef struct tp__device_options {
  const char *name;   /* "auto", "tpu", "gpu", "cpu", or the path of a PJRT plugin; NULL: auto */
  int replicas;       /* 0: all that there are */
  const char *cache;  /* folder under which compiled programs are kept */
  tp__pool *pool;     /* borrows; the CPU's threads */
  const tp__log *log; /* borrows */
  tp__group *group;   /* borrows; the processes that open it at this time, and share it; NULL: this
                         one alone */
} tp__device_options;

/* A name that can be none: TP_ERR_USAGE. */
tp_status tp__device_check(const char *name, tp_error *err) TP_CHECKED;
/* auto takes the first that is there of TPU, GPU, CPU. One that was asked for by name and is not
 * there, or is busy, is TP_ERR_DEVICE with the reason. */
tp_status tp__device_open(const tp__device_options *options, tp__backend **backend,
                          tp_error *err) TP_CHECKED;

#endif
