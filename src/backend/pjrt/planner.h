/* planner - a backend that runs nothing: programs are written and compiled for a machine that is
 * not here, and what the compiler says of each is kept.
 *
 *   learner ──graphs, options──> planner ──StableHLO──> ahead ──> a list: fits, bytes, FLOPs, time
 *
 * The learner that trains is the one that is planned with: the programs are those of a run, not
 * others like them. Parameters have names and shapes only. A program that does not fit is in the
 * list like any other; only one that does not compile is an error.
 */
#ifndef TP_PLANNER_H
#define TP_PLANNER_H

#include "ahead.h"
#include "backend/backend.h"

/* One program. */
typedef struct tp__planned {
  bool trains; /* a step; else a program that gives features, or scores */
  bool scores;
  int64_t rows;         /* of one replica */
  int parts;            /* that a step is taken in */
  uint64_t input_bytes; /* that a run sends to one device */
  tp__verdict verdict;
  int64_t
      largest; /* the most rows of a replica that are known to fit; 0: none, or not looked for */
  int64_t too_many; /* the fewest rows that are known not to fit; 0: none */
} tp__planned;

typedef struct tp__planner_options {
  tp__ahead *ahead; /* borrows */
  int replicas;     /* 0: all devices */
  bool no_scores;   /* programs that score are left out */
  bool largest;     /* how many rows of a step fit is looked for */
} tp__planner_options;

tp_status tp__backend_planner(const tp__planner_options *options, tp__backend **backend,
                              tp_error *err) TP_CHECKED;
/* Those that were compiled since the last tp__planner_forget, in that order. The backend keeps
 * them. */
const tp__planned *tp__planner_programs(const tp__backend *backend, size_t *count);
void tp__planner_forget(tp__backend *backend);

#endif
