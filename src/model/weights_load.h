/* weights_load - from a file of any known format into a network's weights. */
#ifndef TP_WEIGHTS_LOAD_H
#define TP_WEIGHTS_LOAD_H

#include "net.h"
#include "weights.h"

/* weights: the network's, from tp__net_init; unchanged on failure. A file of the backbone alone
 * leaves the head as it is; a head of another size is an error unless skip_head. Errors: those of
 * tp__weights_read and tp__weights_match. */
tp_status tp__weights_load(const char *path, const tp__net *net, tp__tensors *weights,
                           bool skip_head, const tp__log *log, tp_error *err) TP_CHECKED;

#endif
