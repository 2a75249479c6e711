/* program - what both executors (plain and planned) share: the graph, its parameters' entries, the
 * feeds and fetches of a run. */
#ifndef TP_PROGRAM_H
#define TP_PROGRAM_H

#include "cpu.h"

typedef struct tp__plan tp__plan;   /* plan.h */
typedef struct tp__plain tp__plain; /* reference_run.c */

struct tp__program {
  tp__cpu *cpu;
  tp__state *state;
  tp__graph *graph; /* its own: rewritten, or a copy for the reference */
  int64_t batch;
  uint64_t memory_limit;
  bool bf16;         /* products take bfloat16 */
  int *not_before;   /* by node: the first stage it may run in (plan_recompute.c) */
  tp__entry **entry; /* by node: a PARAM's entry, else NULL */
  const void **fed;  /* by node: an INPUT's data in this run */
  void **fetched;    /* by output: where it goes in this run, NULL: nowhere */
  tp__plan *plan;    /* one of the two */
  tp__plain *plain;
  tp__program_info info;
};

tp_status tp__plain_new(tp__program *p, tp_error *err) TP_CHECKED;
void tp__plain_free(tp__plain *plain);
void tp__plain_run(tp__program *p, int64_t n);

/* What is made again by the stages that read it instead of being kept for the batch, besides what
 * is done element by element: gradient checkpointing. The numbers are the same bits. */
typedef struct tp__thrift {
  int64_t thin;   /* 1 x 1 convolutions of so many channels to at least four times as many */
  bool depthwise; /* depthwise convolutions */
} tp__thrift;

/* A graph in which cheap values that later stages read are made there again. Sets not_before
 * [nodes] (caller frees): the first stage a node may run in. Returns: tp__graph_free. */
tp_status tp__plan_recompute(const tp__graph *g, const tp__thrift *thrift, tp__graph **recomputing,
                             int **not_before, tp_error *err) TP_CHECKED;
/* Decides everything, sets the info; then takes the memory. */
tp_status tp__plan_new(tp__program *p, tp_error *err) TP_CHECKED;
tp_status tp__plan_allocate(tp__plan *plan, tp_error *err) TP_CHECKED;
void tp__plan_free(tp__plan *plan);
tp_status tp__plan_run(tp__program *p, int64_t n, tp_error *err) TP_CHECKED;

/* TP_ERR_DEVICE when the program's memory goes over its limit (0: none). */
tp_status tp__program_fits(const tp__program *p, uint64_t bytes, tp_error *err) TP_CHECKED;

#endif
