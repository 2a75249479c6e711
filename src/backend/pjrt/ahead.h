/* ahead - programs compiled ahead of time for a machine that is not here, each in a child process.
 *
 *   target ──finds the plugin──> ahead ──module──> child: topology, compile ──> does it fit, cost
 *                                  └── a folder keeps the answers
 *
 * The plugin is loaded in children only: it may abort, hang, or print pages, and leaves nothing
 * behind here. libtpu is told to ask no metadata server, to write no log files, and to take no
 * lock.
 */
#ifndef TP_AHEAD_H
#define TP_AHEAD_H

#include "topology.h"

typedef struct tp__ahead tp__ahead;

typedef struct tp__ahead_options {
  tp__target target;
  const char *plugin;          /* path; NULL: looked for */
  const char *cache;           /* folder of answers; NULL: none are kept */
  double seconds;              /* that one compilation may take */
  const tp__log *log;          /* borrows; may be NULL */
  bool (*stopped)(void *user); /* true once the caller wants to end; may be NULL */
  void *user;
} tp__ahead_options;

/* What came of a compilation; of one device. */
typedef struct tp__verdict {
  bool fits;
  bool cached;    /* the answer is an older one */
  double seconds; /* that the compiler took, then */
  tp__executable_info info;
  uint64_t need; /* bytes of a run, with the parameters; not told where the compiler gave up: 0 */
  char why[512]; /* it does not fit */
} tp__verdict;

/* Errors: TP_ERR_DEVICE: no plugin (with what to install); TP_ERR_USAGE: a slice that its compiler
 * does not know. Returns: tp__ahead_free. */
tp_status tp__ahead_open(const tp__ahead_options *options, tp__ahead **ahead,
                         tp_error *err) TP_CHECKED;
void tp__ahead_free(tp__ahead *ahead);
const tp__machine *tp__ahead_machine(const tp__ahead *ahead);
const tp__target *tp__ahead_target(const tp__ahead *ahead);
const char *tp__ahead_plugin(const tp__ahead *ahead); /* its path */

/* Compiles a module for so many replicas; what: "step", for the log and for errors. A program that
 * is too large is a verdict. Error: one that does not compile (the module's file and the operator
 * are named), or took too long; TP_STOPPED. */
tp_status tp__ahead_compile(tp__ahead *ahead, const char *what, const char *text, size_t length,
                            int replicas, tp__verdict *verdict, tp_error *err) TP_CHECKED;

#endif
