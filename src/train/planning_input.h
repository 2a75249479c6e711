/* planning_input - what a plan knows of the data: how many examples and classes, how pixels cross,
 * and how fast this machine makes batches of them. */
#ifndef TP_PLANNING_INPUT_H
#define TP_PLANNING_INPUT_H

#include "data_set.h"
#include "phase_options.h"
#include "planning.h"

typedef struct tp__plan_input {
  const tp__job *job;
  const tp__plan_options *o;
  tp__plan *plan;
  tp__catalog *train, *val; /* NULL: there are no data */
  tp__net_augment augment;  /* by the device */
  bool varies;              /* a picture is another one in each epoch */
} tp__plan_input;           /* born zeroed */

/* Opens the data that are there, and writes into the plan how many examples and classes there are.
 */
tp_status tp__plan_input_open(tp__plan_input *input, const tp__job *job, const tp__plan_options *o,
                              tp__plan *plan, tp_error *err) TP_CHECKED;
/* Whether pixels cross as 8 bits, and vary. Without data, pictures count as having the network's
 * size. */
tp_status tp__plan_input_transfer(tp__plan_input *input, tp_error *err) TP_CHECKED;
/* Makes batches for the options' seconds, as training would, and counts. Does nothing without data.
 */
tp_status tp__plan_input_measure(tp__plan_input *input, tp_error *err) TP_CHECKED;
void tp__plan_input_close(tp__plan_input *input);

#endif
