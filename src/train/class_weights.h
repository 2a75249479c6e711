/* class_weights - a factor for each class's loss, from "none", "balanced" or "0:2,5:0.5". */
#ifndef TP_CLASS_WEIGHTS_H
#define TP_CLASS_WEIGHTS_H

#include "base/log.h"
#include "data/catalog.h"

/* weights [classes] is filled (1 where the table has no entry: warned of, with the classes'
 * numbers). *used is false for "none". balanced: examples / (classes that occur x examples of the
 * class), 1 for a class without examples. Errors: TP_ERR_USAGE: unknown class, negative or NaN
 * weight. */
tp_status tp__class_weights_make(const char *text, const tp__catalog *catalog, int classes,
                                 const tp__log *log, float *weights, bool *used,
                                 tp_error *err) TP_CHECKED;

#endif
