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

/* ---- how many rows fit: planner_search.c ---- */

enum { TP__SEARCH_TRIES = 5 }; /* compilations, besides the first */

/* What is known of it. */
typedef struct tp__row_search {
  int64_t unit;      /* rows are multiples of it */
  int64_t low, high; /* the most that are known to fit, the fewest that do not; 0: not known */
  double usable;     /* bytes of a device */
  double low_bytes;  /* that low takes */
  double per_row;    /* bytes; 0: not known */
} tp__row_search;

/* Takes in what came of `rows`: need and temporary are its bytes, when it fits. */
void tp__row_search_learn(tp__row_search *search, int64_t rows, bool fits, double need,
                          double temporary);
/* The number to try next; 0: what is known is near enough (a sixteenth, or one unit). */
int64_t tp__row_search_next(const tp__row_search *search);

/* Looks for the most rows of a step that fit, from what planned already says, with a few
 * compilations more. */
tp_status tp__planner_search(tp__planner *planner, const tp__graph *graph,
                             const tp__compile_options *options, tp__planned *planned,
                             tp_error *err) TP_CHECKED;

#endif
