/* backend - the one interface between a graph and whatever runs it.
 *
 *   state     the parameters on the device: weights, moments, moving statistics, by name
 *   program   a graph compiled for a device, a state and a largest batch: planned and allocated
 * once run       feeds inputs by name, runs, fetches outputs by name; assignments change the state
 * afterwards
 *
 * Several programs (training, validation, prediction) share one state. A device is a struct of
 * functions, so that the trainer does not know which one it has. Results never depend on the number
 * of threads or replicas' timing.
 *
 * A run may be in flight while the next one is prepared: submit returns once the feeds are taken,
 * wait when the fetched values are there. Runs on one state take effect in the order of submit.
 *
 * Here: cpu/ (our own kernels, planner and executor), pjrt/ (TPUs, GPUs: StableHLO through a
 * plugin). Neighbours: graph is all that comes in; train calls.
 */
#ifndef TP_BACKEND_H
#define TP_BACKEND_H

#include "base/group.h"
#include "base/pool.h"
#include "graph/graph.h"

typedef struct tp__backend tp__backend;
typedef struct tp__state tp__state;
typedef struct tp__program tp__program;
typedef struct tp__pending tp__pending; /* a run in flight */

typedef struct tp__compile_options {
  int64_t batch;  /* the most examples of one run, over all replicas of this process */
  bool reference; /* plain loops for every operator, no rewriting: what the fast paths are tested
                     against */
  uint64_t memory_limit;  /* bytes the program may allocate; 0: no limit. Over it: TP_ERR_DEVICE
                             naming need and limit */
  const char *byte_input; /* on a remote device: this f32 input is fed as u8, 0...255; NULL: none */
  bool bf16;              /* multiply in bfloat16 where numbers allow it; parameters, sums,
                             statistics and loss stay f32. The CPU: matrix products, convolutions
                             but for depthwise ones, and their gradients; TP_ERR_USAGE where the
                             processor does not have them, or no faster */
  bool local_statistics;  /* batch statistics of each replica alone, as Keras on TPUs */
  int steps;      /* a remote device may take so many runs together (Keras' steps_per_execution);
                     0 is 1 */
  int accumulate; /* the examples of a run go through in so many parts and their gradients are
                     added; 0: as many as memory asks for. The CPU takes few at a time anyway */
} tp__compile_options;

/* data points at n rows (per example) or the whole (shared), in the input's type. Borrows. */
typedef struct tp__feed {
  const char *name;
  const void *data;
} tp__feed;

/* data receives n rows or the whole; NULL: not wanted. Borrows. */
typedef struct tp__fetch {
  const char *name;
  void *data;
} tp__fetch;

typedef struct tp__program_info {
  double flops_per_example;  /* multiply-adds x 2, without element-wise work */
  uint64_t activation_bytes; /* memory planned for values, all threads */
  uint64_t weight_bytes;     /* packed copies of weights and partial sums */
  int chunk;                 /* the most examples that one thread takes together */
  int parts;                 /* that a run is taken in (accumulate), 1 or more */
} tp__program_info;

struct tp__backend {
  const char *name; /* "cpu" */
  char device[128]; /* for people: "2 threads, AVX-512" */
  int replicas;     /* of all processes, as many in each; on the CPU a process is one. The global
                       batch is batch x replicas */
  bool remote;      /* data cross to a device: fewer bytes and fewer waits pay */
  tp__group *group; /* the processes that train together, NULL: this one alone; borrowed. They then
                       compile the same programs, and run those that have joints (training) at the
                       same time, each with its own examples, possibly 0; other programs each for
                       itself. What joints add up is of all processes; outputs of examples are of
                       each one's own */
  void (*free)(tp__backend *backend);

  /* Copies the tensors (f32) to the device. Returns: state_free. */
  tp_status (*state_new)(tp__backend *backend, const tp__tensors *initial, tp__state **state,
                         tp_error *err);
  void (*state_free)(tp__state *state);
  /* Overwrites, or reads back, those tensors of the state whose names are in the set; a name or
   * shape that the state does not have is an error. */
  tp_status (*state_write)(tp__state *state, const tp__tensors *from, tp_error *err);
  tp_status (*state_read)(tp__state *state, tp__tensors *into, tp_error *err);

  /* Every PARAM of the graph must be in the state. The graph is not kept. Returns: program_free,
   * before the state's. */
  tp_status (*compile)(tp__backend *backend, const tp__graph *graph, tp__state *state,
                       const tp__compile_options *options, tp__program **program, tp_error *err);
  void (*program_free)(tp__program *program);
  void (*program_info)(const tp__program *program, tp__program_info *info);
  /* Adds the plan of memory, stage by stage, as a table for people. NULL: the device makes its own.
   */
  tp_status (*program_plan)(const tp__program *program, tp__buffer *text, tp_error *err);

  /* 1 <= n <= batch examples (0: see group). Every INPUT of the graph must be fed. */
  tp_status (*run)(tp__program *program, const tp__feed *feed, size_t n_feeds, tp__fetch *fetch,
                   size_t n_fetches, int64_t n, tp_error *err);
  /* run in two halves: feeds are free after the first, fetched values (whose places must stay) are
   * there after the second, which takes pending in any case. NULL is done: the CPU's. */
  tp_status (*submit)(tp__program *program, const tp__feed *feed, size_t n_feeds, tp__fetch *fetch,
                      size_t n_fetches, int64_t n, tp__pending **pending, tp_error *err);
  tp_status (*wait)(tp__pending *pending, tp_error *err);
  /* Seconds since the last reset in which the device had nothing to do. NULL: not known, as on the
   * CPU, whose threads also do the input's work. */
  double (*idle)(tp__backend *backend, bool reset);
};

/* The CPU: borrows the pool, which must outlive it. The environment variable TEPAL_CPU (baseline,
 * avx2, avx512) caps the instruction set; a value that this processor lacks, or a wrong one, is
 * TP_ERR_DEVICE. */
tp_status tp__backend_cpu(tp__pool *pool, tp__backend **backend, tp_error *err) TP_CHECKED;

/* "8 replicas", "8 replicas in 2 processes". Returns: text. */
static inline const char *tp__replicas_text(const tp__backend *b, char text[64])
{
  int processes = tp__group_size(b->group);
  int n = snprintf(text, 64, "%d replica%s", b->replicas, b->replicas == 1 ? "" : "s");
  if (b->remote && processes > 1) snprintf(text + n, 64 - (size_t)n, " in %d processes", processes);
  return text;
}

/* Makes the CPUs of a group of processes one device; before anything is compiled. */
void tp__backend_cpu_join(tp__backend *backend, tp__group *group);

/* Multiply-add peak of this machine in GFLOP/s with the pool's threads and the chosen instruction
 * set, measured for about `seconds`. */
double tp__cpu_peak_gflops(tp__backend *backend, double seconds);

#endif
