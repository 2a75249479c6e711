/* cpu - the CPU as a backend: our own kernels, planner and executor (DESIGN D2, D3).
 *
 *   graph ──tp__graph_optimize──> nodes ──plan──> slots (where values live), steps (what runs)
 *
 *   cpu.c state.c program.c   the interface of backend.h: device, parameters, feeds and fetches
 *   reference*.c              plain loops: the definition of each operator, and an executor of
 *                             nothing but them
 *   plan*.c                   levels, steps, lifetimes: everything is decided and allocated when
 *                             compiling
 *   derived.c                 what is made from weights: packed kernels, folded batch norm; remade
 *                             when a weight's version changes
 *   exec*.c joints.c          the run: chunks of examples go depth-first through the steps, each on
 *                             one thread
 *   kernels*                  the fast loops, a table per instruction set
 *
 * The rule behind all: every value of an example depends on that example alone, and a sum over
 * examples takes them one after the other in their order, row by row, however they are grouped: a
 * chunk goes on where the one before it ended. So the bits of a result are the same for 1 and for
 * 16 threads.
 *
 * Neighbours: backend.h is the only header that others see.
 */
#ifndef TP_CPU_H
#define TP_CPU_H

#include "backend/backend.h"
#include "kernels.h"

typedef struct tp__cpu {
  tp__backend base; /* first: a tp__backend * is a tp__cpu * */
  tp__pool *pool;   /* borrowed */
  const tp__kernels *kernels;
  const tp__kernels *bf16; /* the same with products of bfloat16; NULL: not asked for yet */
} tp__cpu;

/* Sets cpu->bf16, measuring once whether it pays. Errors: TP_ERR_USAGE, why there is none. */
tp_status tp__cpu_take_bf16(tp__cpu *cpu, tp_error *err) TP_CHECKED;

/* A parameter. Data is padded with zeros to a multiple of TP__LANES elements, so that biases are
 * ready for kernels. */
typedef struct tp__entry {
  char *name;
  tp__dtype dtype;
  tp__shape shape;
  void *data;
  uint64_t version; /* of the state's clock when it was last written */
} tp__entry;

struct tp__state {
  tp__cpu *cpu;
  tp__entry *entry;
  size_t count;
  uint64_t clock; /* grows with each write: whoever holds something made of a parameter compares
                     versions */
};

tp_status tp__cpu_state_new(tp__backend *backend, const tp__tensors *initial, tp__state **state,
                            tp_error *err);
void tp__cpu_state_free(tp__state *state);
tp_status tp__cpu_state_write(tp__state *state, const tp__tensors *from, tp_error *err);
tp_status tp__cpu_state_read(tp__state *state, tp__tensors *into, tp_error *err);

/* The entry of that name and shape; an error names what differs. */
tp_status tp__cpu_state_find(tp__state *state, const char *name, tp__dtype dtype,
                             const tp__shape *shape, tp__entry **entry, tp_error *err) TP_CHECKED;

static inline size_t tp__padded(size_t elements)
{
  return (elements + TP__LANES - 1) / TP__LANES * TP__LANES;
}

tp_status tp__cpu_compile(tp__backend *backend, const tp__graph *graph, tp__state *state,
                          const tp__compile_options *options, tp__program **program, tp_error *err);
void tp__cpu_program_free(tp__program *program);
void tp__cpu_program_info(const tp__program *program, tp__program_info *info);
tp_status tp__cpu_program_plan(const tp__program *program, tp__buffer *text, tp_error *err);
tp_status tp__cpu_run(tp__program *program, const tp__feed *feed, size_t n_feeds, tp__fetch *fetch,
                      size_t n_fetches, int64_t n, tp_error *err);

#endif
