/* plan - what the fast executor decided when compiling. Written by plan*.c, only read while running
 * (but for versions and tickets).
 *
 *   slot      one per value of the graph (the index is the value), then extra ones for steps:
 *             where it lives, how long
 *   step      one fast operator on a group of examples; steps are in the order in which they run
 *   phase     consecutive steps that run for one example after the other (large early layers: the
 *             values of one example stay in cache), or for all examples of the chunk together
 *             (small late layers: the weights are read once per chunk)
 *   level     the number of joints on the longest way to a value. Stage s of a run: shared nodes of
 *             level s, then what is derived from them, then all chunks of examples through the
 *             steps of level s, which feed the joints of level s + 1
 *   unit      one shared node, or an Adam or SGD update as a whole, cut into blocks of elements
 *   derived   made from weights: packed kernels, batch norm as factor and shift; remade when a
 *             version changed
 *
 * Memory of a value: scratch (each thread has its own, planned by lifetimes), batch (kept for all
 * examples, when a later stage reads it), feed (read in place), state (a parameter), shared.
 *
 * Operators that run as the plain function of reference.h here, too, for they are tiny: SOFTMAX,
 * CROSS_ENTROPY and its gradient, WEIGHTED_SUM, SCALE_ROWS, FOLD_*; and for they are rare: PAD,
 * CROP, RESHAPE that moves data, RANDOM_FLIP and
 * RANDOM_ROTATION (the host does these before pixels come in), SLICE_CHANNELS that is no part of
 * its operand's memory, depthwise kernels that are not square.
 *
 * Training by batch statistics has a stage for each batch norm, forward and backward. What a stage
 * leaves for later ones is one copy of each convolution's output: normalized and activated values
 * are made anew in the stages that read them (plan_recompute.c).
 */
#ifndef TP_PLAN_H
#define TP_PLAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "program.h"
#include "reference.h"

enum {
  TP__CHUNK = 4, /* examples of a chunk; at most; fewer if that takes too much memory, or keeps more
                    threads busy */
  TP__SMALL_PIXELS = 64, /* layers up to 8 x 8 run for the whole chunk together */
  TP__BLOCK = 16384      /* elements of a shared array that one thread takes */
};

typedef enum tp__home {
  TP__HOME_NONE,
  TP__HOME_SCRATCH,
  TP__HOME_BATCH,
  TP__HOME_FEED,
  TP__HOME_STATE,
  TP__HOME_SHARED
} tp__home;

typedef struct tp__slot {
  tp__home home;
  bool per_example;
  bool single;  /* an extra slot of which a group of examples needs only one */
  bool grouped; /* scratch: room for all examples of the chunk */
  tp__value
      root; /* the value whose memory it is: itself, but for reshapes, parts of concats, slices */
  int64_t offset; /* ... and the channel of root where it begins */
  int level;
  int64_t pitch;    /* as view.h */
  int64_t row;      /* elements (of 4 bytes) of one example, or of the shared whole (padded) */
  size_t at;        /* elements from the start of its memory */
  int first, last;  /* steps that write it first and read it last; first < 0: none */
  tp__entry *entry; /* TP__HOME_STATE */
  uint64_t version; /* shared: the state's clock when it was last made */
} tp__slot;

typedef struct tp__frame tp__frame;
typedef struct tp__step tp__step;
typedef void (*tp__step_fn)(const tp__frame *f, const tp__step *s);

struct tp__step {
  tp__step_fn run;
  const tp__node *node;
  tp__value v;                    /* the node, = the slot of its result */
  tp__value in[TP__OPERANDS_MAX]; /* slots of the operands; TP__NONE: absent */
  tp__value extra[2];             /* slots of its own: scratch, or a second result */
  int derived;                    /* -1: none */
  const tp__node *inner; /* expand_depthwise: the convolution before, and what it derives */
  int inner_derived;
  int band;  /* ... rows of the result at a time */
  int joint; /* its ticket; -1: not a joint */
  int level;
  bool together; /* with all examples of the chunk, although the layer is large */
  size_t output; /* a fetch step: which */
};

typedef struct tp__phase {
  int first, end; /* steps */
  int level;
  bool grouped;
} tp__phase;

typedef enum tp__derive {
  TP__DERIVE_GEMM,            /* kernel as [k,n] for gemm */
  TP__DERIVE_GEMM_TRANSPOSED, /* kernel [n,k] as [k,n] */
  TP__DERIVE_CONV,
  TP__DERIVE_CONV_TRANSPOSED, /* for the input gradient */
  TP__DERIVE_WINOGRAD,        /* k: side of the tiles */
  TP__DERIVE_WINOGRAD_TRANSPOSED,
  TP__DERIVE_DEPTHWISE,
  TP__DERIVE_NORM,      /* gamma, beta, mean, variance -> factor and shift */
  TP__DERIVE_NORM_GRAD, /* gamma, variance -> factor */
  TP__DERIVE_UNIT,      /* mean, variance -> factor and shift to mean 0, variance 1 */
  TP__DERIVE_NORM_FULL, /* gamma, moments, beta's and gamma's gradients -> scale, mean, slope, shift
                           of norm_grad */
  TP__DERIVE_PIXELS     /* a chain of AFFINE and NORMALIZE -> factor and shift, repeated over whole
                           vectors */
} tp__derive;

typedef struct tp__derived {
  tp__derive kind;
  const tp__node *node;           /* the operator it serves */
  const tp__node *first;          /* PIXELS: where the chain begins that ends with node */
  tp__value in[TP__OPERANDS_MAX]; /* its sources */
  int n_in;
  int level;
  long k, n;        /* gemm: rows, columns; else n channels */
  size_t at, size;  /* floats in the plan's derived memory */
  uint64_t version; /* the newest of its sources when it was made */
} tp__derived;

typedef struct tp__unit {
  tp__value node[3]; /* in order */
  int n_nodes;
  int level, wave; /* units of one wave don't read each other */
  size_t blocks;
  bool adam; /* all three in place: the kernel does it in one go */
} tp__unit;

/* Who may add to a joint's sum: the chunk whose number it is. */
typedef struct tp__ticket {
  atomic_size_t turn;
  tp__value v;
} tp__ticket;

typedef struct tp__task {
  int unit;
  size_t block;
} tp__task;

struct tp__plan {
  tp__program *program;
  const tp__kernels *kernels;
  int threads, chunk, levels;
  int *chunk_of; /* by level: chunk, or 1 where all layers are large: the next example then waits
                    for one step at a joint, and an example's values stay in the cache */
  tp__slot *slot;
  int32_t n_slots, slot_capacity;
  int *readers;      /* by value: how many nodes, outputs and assignments read it */
  tp__value *reader; /* by value: the last node that reads it */
  tp__step *step;
  int n_steps, step_capacity;
  tp__phase *phase;
  int n_phases;
  tp__derived *derived;
  int n_derived, derived_capacity;
  tp__unit *unit;
  int n_units;
  tp__ticket *ticket;
  int n_tickets;
  bool *copied;   /* by assignment: the value is not made in place */
  size_t *kept;   /* by assignment of another parameter's old value: where in shared it waits */
  tp__task *task; /* of the loop that runs now */
  size_t n_tasks, task_capacity;
  size_t scratch_size, shared_size, batch_size, derived_size; /* elements; scratch: of one thread */
  float *scratch, *shared, *batch, *made;
  pthread_mutex_t lock; /* tickets: waiting threads */
  pthread_cond_t turned;
  int64_t n; /* examples of this run */
  /* several processes (exec_group.c) */
  bool together;   /* they run this program together */
  int64_t total;   /* examples of this run over all of them */
  int64_t shape;   /* a number that tells plans with other stages or joints apart */
  int64_t *counts; /* [processes]: examples of each */
  float *joined;   /* joints on their way */
};

static inline const tp__node *tp__plan_node(const tp__plan *plan, tp__value v)
{
  return &plan->program->graph->node[v];
}

/* An extra slot of `row` elements per example (or per group, when single). */
tp_status tp__plan_extra(tp__plan *plan, int64_t row, bool single, tp__value *slot,
                         tp_error *err) TP_CHECKED;
/* What is derived, made once for all that ask for the same. */
tp_status tp__plan_derive(tp__plan *plan, const tp__derived *wanted, int *index,
                          tp_error *err) TP_CHECKED;
tp_status tp__plan_step(tp__plan *plan, const tp__step *step, tp_error *err) TP_CHECKED;

tp_status tp__plan_levels(tp__plan *plan,
                          tp_error *err) TP_CHECKED; /* plan.c: levels, homes, pitches, aliases */
/* plan_concat.c: concats and slices without copies; after all other slots are set. */
void tp__plan_concats(tp__plan *plan, bool *renamed);
tp_status tp__plan_steps(tp__plan *plan, tp_error *err) TP_CHECKED; /* plan_steps.c */
tp_status tp__plan_updates(tp__plan *plan, tp_error *err)
    TP_CHECKED; /* plan_updates.c: units, assignments in place */
tp_status tp__plan_group(tp__plan *plan, tp_error *err) TP_CHECKED;  /* exec_group.c */
tp_status tp__plan_phases(tp__plan *plan, tp_error *err) TP_CHECKED; /* plan_memory.c */
tp_status tp__plan_place(tp__plan *plan, tp_error *err) TP_CHECKED;  /* plan_memory.c */

#endif
