/* pjrt_state - what the files behind pjrt.h share. Only pjrt*.c include it.
 *
 * Every parameter has one buffer on each replica, the same bits in all of them. A program that
 * assigns parameters takes their buffers and gives new ones in the same memory; a run that fails
 * after that has lost them, and the state says so from then on instead of computing with half of
 * it.
 */
#ifndef TP_PJRT_STATE_H
#define TP_PJRT_STATE_H

#include "client.h"
#include "pjrt.h"
#include "stablehlo.h"

/* What processes that train together share beside their group; see pjrt_group.c. */
typedef struct tp__meeting {
  tp__peers peers;
  struct tp__kv_server *server; /* of process 0 */
} tp__meeting;                  /* born zeroed */

typedef struct tp__pjrt {
  tp__backend base; /* first: a backend is one of these */
  tp__plugin *plugin;
  tp__client *client;
  tp__meeting meeting;
  int own;     /* replicas of this process; all loops over replicas are over these */
  char *cache; /* may be NULL */
  const tp__log *log;
  int in_flight;     /* runs that were submitted and not waited for */
  double idle_since; /* when the last of them was over; 0: before the first */
  double idle;       /* seconds, since the last reset */
} tp__pjrt;

typedef struct tp__resident {
  char *name;
  tp__shape shape;
  tp__device_buffer **buffer; /* [replicas]; NULL entries: lost */
} tp__resident;

struct tp__state {
  tp__pjrt *pjrt;
  tp__program *filling; /* holds steps that were submitted and not begun; NULL: none does */
  tp__resident *entry;
  size_t count;
};

/* A result's way back: read into place, or into a staging buffer of whole rows first. */
typedef struct tp__arrival {
  tp__event *event;
  void *staging; /* NULL: read in place */
  void *place;
  size_t bytes; /* of valid rows */
} tp__arrival;

/* One call of a program of several steps: begun when it is full, or somebody waits. Its pending
 * runs share it; the last one to be waited for frees it. */
typedef struct tp__call {
  tp__program *program;
  int filled, runs; /* steps in it; pending runs */
  bool begun, over;
  tp_status status; /* once begun; of all its runs */
  tp_error error;
  tp__event **event;           /* [replicas * (results + 1)]: of outputs, then the execution's */
  void **output;               /* [replicas * results]: of all steps, on the host; NULL entries */
  tp__device_buffer **fetched; /* [replicas * results] */
} tp__call;

struct tp__pending {
  tp__pjrt *pjrt;
  tp__call *call; /* NULL: a run of its own, with what follows */
  int slot;       /* in the call */
  int64_t n;
  void **place;         /* [results] */
  tp__event **done;     /* [replicas], of the execution */
  tp__arrival *arrival; /* [replicas * fetches] */
  size_t n_arrivals;
  tp__device_buffer **fetched; /* alive until read: [replicas * results], NULL entries */
  size_t n_fetched;
};

struct tp__program {
  tp__pjrt *pjrt;
  tp__state *state;
  tp__executable *executable;
  tp__hlo_module module; /* its ports; the text is gone */
  int64_t batch, rows;   /* the most of a run; of one replica */
  bool joined;           /* it runs on the replicas of all processes */
  size_t *entry;         /* [arguments]: a parameter's place in the state */
  const void **feed;     /* [arguments]: of the run being submitted */
  void **fetch;          /* [results] */
  void *padded;          /* one replica's rows of the largest input, when they are not all there */
  size_t padded_bytes;
  tp__device_buffer **argument, **result; /* [replicas][arguments], [replicas][results] */
  tp__program_info info;
  int steps;      /* most of one call */
  tp__call *call; /* being filled, or NULL */
  char **staging; /* [arguments]: inputs of a call, [replicas][steps][rows...], NULL entries */
  size_t n_staging;
};

/* pjrt_state.c */
tp_status tp__pjrt_state_new(tp__backend *backend, const tp__tensors *initial, tp__state **state,
                             tp_error *err) TP_CHECKED;
void tp__pjrt_state_free(tp__state *state);
tp_status tp__pjrt_state_write(tp__state *state, const tp__tensors *from, tp_error *err) TP_CHECKED;
tp_status tp__pjrt_state_read(tp__state *state, tp__tensors *into, tp_error *err) TP_CHECKED;
tp_status tp__pjrt_state_find(const tp__state *state, const char *name, const tp__shape *shape,
                              size_t *entry, tp_error *err) TP_CHECKED;

/* pjrt_group.c: several processes */
/* Makes the client of this process, and sees that all have the same devices. */
tp_status tp__pjrt_meet(tp__pjrt *pjrt, const tp__pjrt_options *options, tp_error *err) TP_CHECKED;
void tp__pjrt_part(tp__pjrt *pjrt); /* after the client is gone */

/* pjrt_program.c */
tp_status tp__pjrt_compile(tp__backend *backend, const tp__graph *graph, tp__state *state,
                           const tp__compile_options *options, tp__program **program,
                           tp_error *err) TP_CHECKED;
void tp__pjrt_program_free(tp__program *program);
void tp__pjrt_program_info(const tp__program *program, tp__program_info *info);

/* pjrt_steps.c: runs of programs of several steps. */
tp_status tp__steps_submit(tp__program *program, int64_t n, tp__pending **pending,
                           tp_error *err) TP_CHECKED;
tp_status tp__steps_wait(tp__pending *pending, tp_error *err) TP_CHECKED;
/* Begins what was submitted before: whoever reads or changes the state comes after it. */
tp_status tp__steps_flush(tp__state *state, tp_error *err) TP_CHECKED;
tp_status tp__steps_places(tp__program *program, tp_error *err) TP_CHECKED;

/* pjrt_run.c */
typedef struct tp__share {
  int64_t first, count;
} tp__share;
/* A replica's rows of n; see tp__group_rows. */
static inline tp__share tp__share_of(int64_t n, int replicas, int replica)
{
  tp__share s;
  tp__group_rows(replica, replicas, 1, n, &s.first, &s.count);
  s.count -= s.first;
  return s;
}
/* A parameter's buffer, which stays the state's. */
tp_status tp__pjrt_lend(const tp__program *program, size_t argument, int replica,
                        tp__device_buffer **buffer, tp_error *err) TP_CHECKED;
void tp__run_began(tp__pjrt *pjrt);
void tp__run_ended(tp__pjrt *pjrt);
void tp__take_assigned(tp__program *program);
void tp__free_inputs(tp__program *program);
tp_status tp__pjrt_submit(tp__program *program, const tp__feed *feed, size_t n_feeds,
                          tp__fetch *fetch, size_t n_fetches, int64_t n, tp__pending **pending,
                          tp_error *err) TP_CHECKED;
tp_status tp__pjrt_wait(tp__pending *pending, tp_error *err) TP_CHECKED;
tp_status tp__pjrt_run(tp__program *program, const tp__feed *feed, size_t n_feeds, tp__fetch *fetch,
                       size_t n_fetches, int64_t n, tp_error *err) TP_CHECKED;

#endif
