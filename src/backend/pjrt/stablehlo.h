/* stablehlo - writes a graph as a StableHLO module (text), for one replica of a data-parallel run.
 *
 *   graph, options ──> text of @main, and what its arguments and results are ──> a PJRT plugin
 *
 * Arguments, in this order: the graph's parameters (as they were added), its inputs (likewise), and
 * last `valid`: i32, how many of this replica's rows are examples; the rows after them are padding.
 * Results: outputs in the graph's order, then the new value of each assigned parameter, which takes
 * the memory of the old one (tf.aliasing_output).
 *
 * TP__N becomes options.rows. Joint operators sum over this replica's valid rows, then over all
 * replicas (all_reduce), so that shared values are the same bits everywhere. Padded rows enter no
 * sum and no statistics. With local statistics (as Keras on TPU) a batch norm uses its replica's
 * moments, moving averages take the mean of the moments of those replicas that have examples. What
 * padded rows hold does not matter as long as it is finite.
 *
 * The same graph always gives the same text. Operators are rewritten to what compilers for
 * accelerators do best (DESIGN): this file's neighbours hlo_*.c say which and why. The graph should
 * be as the learner built it, not optimized for the CPU.
 */
#ifndef TP_STABLEHLO_H
#define TP_STABLEHLO_H

#include "graph/graph.h"

typedef struct tp__hlo_options {
  int64_t rows;          /* of one replica */
  int replicas;          /* that all_reduce sums over */
  bool local_statistics; /* batch moments of each replica alone */
  bool bf16; /* convolutions and matrix products multiply bfloat16, activations travel as bfloat16;
                parameters, sums, statistics, softmax and loss stay float32 */
  const char *byte_input; /* this f32 input arrives as u8 (NULL: none) */
  int accumulate; /* >= 1: the rows go through in so many equal parts, one after the other, and the
                     sums of joint operators are added before what follows from them. rows is their
                     total. Error: batch statistics (TP_ERR_USAGE), and what else examples read
                     that sums over all of them */
  int steps; /* above 1: the module does up to so many steps, one after the other on the parameters:
                inputs, valid and outputs get a first dimension of so many, and one more argument,
                the last, says how many to do */
  bool depthwise_shifts; /* depthwise convolutions as sums of shifted products: for CPUs, whose
                            compilers are slow at grouped convolutions */
} tp__hlo_options;

/* Rows of each replica that hold a batch, in equal parts. */
static inline int64_t tp__hlo_rows(int64_t batch, int replicas, int parts)
{
  int64_t rows = (batch + replicas - 1) / replicas;
  return (rows + parts - 1) / parts * parts;
}

/* Whether its rows may go through in parts: it takes no statistics of a batch. */
bool tp__hlo_divides(const tp__graph *graph);

typedef enum tp__hlo_kind {
  TP__HLO_PARAM,
  TP__HLO_INPUT,
  TP__HLO_VALID,
  TP__HLO_COUNT, /* i32: steps to do, with options.steps */
  TP__HLO_OUTPUT,
  TP__HLO_ASSIGNED
} tp__hlo_kind;

/* An argument or a result of @main. */
typedef struct tp__hlo_port {
  tp__hlo_kind kind;
  const char *name; /* in the graph; "valid" */
  tp__dtype dtype;  /* as it crosses: u8 for the byte input */
  tp__shape shape;  /* rows in the place of TP__N */
  bool per_example; /* its first dimension is rows */
  int param;        /* ASSIGNED: the argument whose memory it takes */
} tp__hlo_port;

typedef struct tp__hlo_module {
  tp__buffer text;
  tp__hlo_port *argument, *result; /* in the arena, like their names */
  size_t n_arguments, n_results;
  tp__arena arena;
} tp__hlo_module;

/* Errors (TP_ERR_INTERNAL) name operator and shapes. */
tp_status tp__hlo_write(const tp__graph *graph, const tp__hlo_options *options,
                        tp__hlo_module *module, tp_error *err) TP_CHECKED;
void tp__hlo_free(tp__hlo_module *module); /* zeroes it; born zeroed */

#endif
