/* planner_parts - what planner.c and planner_search.c share. */
#ifndef TP_PLANNER_PARTS_H
#define TP_PLANNER_PARTS_H

#include "planner.h"

enum { TP__PLANNED_MAX = 16 };

typedef struct tp__planner {
  tp__backend base; /* first: a backend is one of these */
  tp__planner_options options;
  tp__planned program[TP__PLANNED_MAX];
  size_t count;
} tp__planner;

/* Compiles a graph for so many rows of each replica, in planned->parts. */
tp_status tp__planner_compile(tp__planner *planner, const tp__graph *graph,
                              const tp__compile_options *options, int64_t rows,
                              tp__planned *planned, tp_error *err) TP_CHECKED;

/* Looks for the most rows that fit, from what planned already says, with a few compilations more;
 * within a sixteenth. */
tp_status tp__planner_search(tp__planner *planner, const tp__graph *graph,
                             const tp__compile_options *options, tp__planned *planned,
                             tp_error *err) TP_CHECKED;

#endif
