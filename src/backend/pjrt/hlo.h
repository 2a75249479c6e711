/* hlo - what the writer of a module shares with the operators' emitters.
 *
 *   hlo_module.c   the frame: arguments, results, order; which sums are joined over the replicas
 *   hlo_mark.c     what is needed of each value: this replica's, all replicas', early or late
 *   hlo_replicas.c values over all replicas: all_reduce, moments
 *   hlo_loop.c     the rows in parts, one after the other
 *   hlo_steps.c    several steps in one call
 *   hlo_while.c    loops
 *   hlo_text.c     typed values and the operations of StableHLO as functions
 *   hlo_window.c   those with windows: convolutions, pools
 *   hlo_table.c    operator of the graph -> emitter
 *   hlo_layers.c hlo_conv.c hlo_depthwise.c hlo_pools.c hlo_loss.c hlo_random.c hlo_turn.c
 *   hlo_statistics.c hlo_update.c   the emitters
 *
 * A tp__hlo_value is a name with a type; it costs nothing to copy. The writer keeps the first
 * error, after which everything does nothing: so operators are written as expressions, in which at
 * most one argument of a call writes something (the order of arguments is the compiler's). An
 * emitter computes in float32 (tp__hlo_float), except the factors of products, which tp__hlo_factor
 * makes bfloat16 when that is wanted; the frame rounds what travels between layers. Pixels that
 * came in as bytes stay so until somebody computes with them.
 *
 * Padded rows: an emitter may say that those of its result are exactly zero (tp__hlo.zero), so that
 * sums over them need no mask; gradients start masked and stay so.
 */
#ifndef TP_HLO_H
#define TP_HLO_H

#include "stablehlo.h"

typedef enum tp__hlo_type {
  TP__HLO_F32,
  TP__HLO_BF16,
  TP__HLO_I1,
  TP__HLO_U8,
  TP__HLO_I32,
  TP__HLO_U32,
  TP__HLO_U64
} tp__hlo_type;

enum { TP__HLO_ABSENT = -1, TP__HLO_TEXT_MAX = 1 << 28, TP__HLO_OPERANDS = 8 };

typedef struct tp__hlo_value {
  int32_t id;   /* TP__HLO_ABSENT: there is none */
  int32_t part; /* of several results of one operation; -1: the only one */
  tp__hlo_type type;
  tp__shape shape; /* rows in the place of TP__N */
} tp__hlo_value;

/* What one value of the graph has become. */
typedef struct tp__hlo_slot {
  tp__hlo_value own; /* per example; or shared, of this replica alone (and this part of its rows) */
  tp__hlo_value all; /* shared, of all replicas */
  bool zero;         /* per example: padded rows are exactly 0 */
  bool varies;       /* shared: depends on a joint */
  bool live;
  bool need_own, need_all;   /* shared: somebody reads it */
  bool early_own, early_all; /* ... on the way to an example's value */
  bool pending;              /* own is there and waits to be joined */
} tp__hlo_slot;

typedef struct tp__hlo {
  const tp__graph *g;
  const tp__hlo_options *options;
  tp__buffer *text;
  tp_status status; /* the first error; then nothing more is written */
  tp_error *err;
  int32_t next;            /* the next name */
  int64_t rows;            /* of the part at hand */
  const char *where;       /* the layer at hand, for locations */
  tp__hlo_slot *slot;      /* by value of the graph */
  bool own;                /* shared operands are this replica's */
  bool zero;               /* set by an emitter: padded rows of its result are 0 */
  tp__hlo_value valid;     /* i32: examples in the rows at hand */
  tp__hlo_value mask;      /* i1 [rows]: row < valid; ABSENT: not made yet */
  tp__hlo_value total;     /* f32 [2]: examples and replicas that have some, over all replicas */
  tp__hlo_value *argument; /* of @main, by value of the graph: sources */
} tp__hlo;

/* Writes what node n gives; its shared operands are own or all by w->own. */
typedef tp__hlo_value (*tp__hlo_fn)(tp__hlo *w, const tp__node *n);
tp__hlo_fn tp__hlo_emitter(tp__op op); /* NULL for the sources */

/* ---- hlo_module.c ---- */
tp__hlo_value tp__hlo_operand(tp__hlo *w, const tp__node *n, int i);
/* As float32. */
tp__hlo_value tp__hlo_float(tp__hlo *w, const tp__node *n, int i);
/* As a factor of a product: bfloat16 when that is wanted. */
tp__hlo_value tp__hlo_factor(tp__hlo *w, const tp__node *n, int i);
bool tp__hlo_has(const tp__node *n, int i);
bool tp__hlo_zero_operand(const tp__hlo *w, const tp__node *n, int i);
/* The node's shape with rows in the place of TP__N. */
tp__shape tp__hlo_shape_of(const tp__hlo *w, const tp__shape *shape);
/* x with padded rows 0; x itself when they are known to be. */
tp__hlo_value tp__hlo_masked(tp__hlo *w, tp__hlo_value x, bool zero);
/* Examples of the sums that w->own speaks of, f32, at least 1. */
tp__hlo_value tp__hlo_examples(tp__hlo *w);
void tp__hlo_fail(tp__hlo *w, const char *format, ...) TP_PRINTF(2, 3);
/* The head of a function with the module's ports, whose values are named next: @main's assigned
 * results take the memory of their arguments. argument [n_arguments] (NULL: not wanted) gets the
 * values. */
void tp__hlo_put_function(tp__hlo *w, const tp__hlo_module *m, const char *name,
                          tp__hlo_value *argument);
void tp__hlo_put_end(tp__hlo *w, const tp__hlo_value *result, size_t count); /* of a function */
/* What follows the operands of a call: ") : (types) -> (types)". */
void tp__hlo_put_signature(tp__hlo *w, const tp__hlo_value *in, size_t n_in,
                           const tp__hlo_value *out, size_t n_out);

/* ---- hlo_steps.c ---- */
/* @main behind @step; the module's ports become those of several steps. */
tp_status tp__hlo_steps(tp__hlo *w, tp__hlo_module *m) TP_CHECKED;

/* ---- hlo_while.c ---- */
/* "%7:3 = ", for an operation of so many results: their types are set, they get their names. */
void tp__hlo_several(tp__hlo *w, tp__hlo_value *value, size_t count);
void tp__hlo_return(tp__hlo *w, const char *op, const tp__hlo_value *value, size_t count);
/* A loop that carries `count` values: start, then now in its condition and body, then after. What
 * is written next is the condition, up to tp__hlo_while_do, then the body. */
void tp__hlo_while(tp__hlo *w, const tp__hlo_value *start, size_t count, tp__hlo_value *now,
                   tp__hlo_value *after);
void tp__hlo_while_do(tp__hlo *w, tp__hlo_value more);
void tp__hlo_while_end(tp__hlo *w, const tp__hlo_value *next, size_t count);
/* x[first ... first + count] along its first dimension, and x with a part there; first, zero: i32.
 */
tp__hlo_value tp__hlo_part_of(tp__hlo *w, tp__hlo_value x, tp__hlo_value first, tp__hlo_value zero,
                              int64_t count);
tp__hlo_value tp__hlo_with_part(tp__hlo *w, tp__hlo_value x, tp__hlo_value part,
                                tp__hlo_value first, tp__hlo_value zero);

/* ---- hlo_mark.c ---- */
tp_status tp__hlo_mark(tp__hlo *w) TP_CHECKED;

/* ---- hlo_replicas.c ---- */
/* Everything that is pending becomes known over all replicas, in one operation. */
void tp__hlo_join(tp__hlo *w);
void tp__hlo_total(tp__hlo *w); /* makes w->total */

/* ---- hlo_loop.c ---- */
void tp__hlo_loop(tp__hlo *w);
void tp__hlo_write_node(tp__hlo *w, tp__value v); /* hlo_module.c: all that is needed early */

/* ---- hlo_text.c: values ---- */
static inline bool tp__hlo_is(tp__hlo_value v)
{
  return v.id != TP__HLO_ABSENT;
}
tp__hlo_value tp__hlo_absent(void);
tp__hlo_value tp__hlo_typed(tp__hlo_type type, const tp__shape *shape); /* a type to be given */
tp__hlo_type tp__hlo_type_of(tp__dtype dtype);
void tp__hlo_put(tp__hlo *w, const char *format, ...) TP_PRINTF(2, 3);
void tp__hlo_put_value(tp__hlo *w, tp__hlo_value v);
void tp__hlo_put_type(tp__hlo *w, tp__hlo_value v);
void tp__hlo_put_location(tp__hlo *w); /* and ends the line */
/* One operation with one result of the type of `result`. pattern: its text, where $0...$7 are the
 * operands' names, @0...@7 their types, @r the result's type, @e that of a scalar of it; $a...$z
 * fresh names. */
tp__hlo_value tp__hlo_emit(tp__hlo *w, tp__hlo_value result, const tp__hlo_value *in,
                           const char *pattern);
/* "1, 2, 3" */
char *tp__hlo_list(char text[128], const int64_t *number, int count);

/* ---- hlo_text.c: operations ---- */
tp__hlo_value tp__hlo_constant(tp__hlo *w, tp__hlo_type type, const tp__shape *shape, double value);
tp__hlo_value tp__hlo_constant_u32(tp__hlo *w, const tp__shape *shape, uint32_t value);
tp__hlo_value tp__hlo_like(tp__hlo *w, tp__hlo_value x, double value); /* a constant of its type */
tp__hlo_value tp__hlo_unary(tp__hlo *w, const char *op, tp__hlo_value x);
tp__hlo_value tp__hlo_binary(tp__hlo *w, const char *op, tp__hlo_value a, tp__hlo_value b);
tp__hlo_value tp__hlo_add(tp__hlo *w, tp__hlo_value a, tp__hlo_value b);
tp__hlo_value tp__hlo_sub(tp__hlo *w, tp__hlo_value a, tp__hlo_value b);
tp__hlo_value tp__hlo_mul(tp__hlo *w, tp__hlo_value a, tp__hlo_value b);
tp__hlo_value tp__hlo_div(tp__hlo *w, tp__hlo_value a, tp__hlo_value b);
tp__hlo_value tp__hlo_times(tp__hlo *w, tp__hlo_value a, double factor);
tp__hlo_value tp__hlo_compare(tp__hlo *w, const char *how, tp__hlo_value a, tp__hlo_value b);
tp__hlo_value tp__hlo_select(tp__hlo *w, tp__hlo_value p, tp__hlo_value a, tp__hlo_value b);
tp__hlo_value tp__hlo_convert(tp__hlo *w, tp__hlo_value x, tp__hlo_type type);
tp__hlo_value tp__hlo_reshape(tp__hlo *w, tp__hlo_value x, const tp__shape *shape);
/* Dimension i of x becomes dimension dim[i] (of the same size, or of 1). */
tp__hlo_value tp__hlo_broadcast(tp__hlo *w, tp__hlo_value x, const tp__shape *to,
                                const int64_t *dim);
tp__hlo_value tp__hlo_channels(tp__hlo *w, tp__hlo_value c, tp__hlo_value x); /* [C] as x */
tp__hlo_value tp__hlo_per_row(tp__hlo *w, tp__hlo_value n, tp__hlo_value x);  /* [N] as x */
tp__hlo_value tp__hlo_spread(tp__hlo *w, tp__hlo_value s, tp__hlo_value x);   /* [] as x */
/* Over dimensions first...last, inclusive; op "add" from 0, "maximum" from -inf. */
tp__hlo_value tp__hlo_reduce(tp__hlo *w, const char *op, tp__hlo_value x, int first, int last);
tp__hlo_value tp__hlo_sum_to_last(tp__hlo *w, tp__hlo_value x); /* [...,C] -> [C] */
tp__hlo_value tp__hlo_sum_all(tp__hlo *w, tp__hlo_value x);     /* -> [] */
tp__hlo_value tp__hlo_iota(tp__hlo *w, tp__hlo_type type, const tp__shape *shape, int dim);
tp__hlo_value tp__hlo_slice(tp__hlo *w, tp__hlo_value x, const int64_t *from, const int64_t *to,
                            const int64_t *step); /* step NULL: 1 */
tp__hlo_value tp__hlo_concat(tp__hlo *w, const tp__hlo_value *x, int count, int dim);
tp__hlo_value tp__hlo_pad(tp__hlo *w, tp__hlo_value x, const int64_t *low, const int64_t *high,
                          const int64_t *between);
/* a [M,K], b [K,N] by the numbers of the contracted dimensions. */
tp__hlo_value tp__hlo_dot(tp__hlo *w, tp__hlo_value a, int a_dim, tp__hlo_value b, int b_dim);

/* ---- hlo_window.c ---- */
typedef struct tp__hlo_window {
  int64_t stride[2], low[2], high[2];
  int64_t lhs_dilation[2], rhs_dilation[2];
  bool reverse;
  int64_t feature_groups, batch_groups;
  const char *dims; /* "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]" */
} tp__hlo_window;

/* x, kernel in bfloat16 or float32, the result in float32 */
tp__hlo_value tp__hlo_convolution(tp__hlo *w, tp__hlo_value x, tp__hlo_value kernel,
                                  const tp__shape *result, const tp__hlo_window *window);
/* Windows of window x window pixels over [N,H,W,C], no padding. */
tp__hlo_value tp__hlo_reduce_window(tp__hlo *w, const char *op, tp__hlo_value x, int window,
                                    int stride);
/* Each dy goes to the first of the largest x of its window. */
tp__hlo_value tp__hlo_scatter_to_largest(tp__hlo *w, tp__hlo_value x, tp__hlo_value dy, int window,
                                         int stride);
/* Zeros around (negative: crops) and between the pixels of [N,H,W,C]. pad: top, bottom, left,
 * right. */
tp__hlo_value tp__hlo_pad_pixels(tp__hlo *w, tp__hlo_value x, const int64_t pad[4],
                                 int64_t between);

/* ---- shared by emitters ---- */
tp__hlo_value tp__hlo_act(tp__hlo *w, tp__act act, tp__hlo_value x);
/* 1 / sqrt(variance + epsilon) */
tp__hlo_value tp__hlo_inverse_deviation(tp__hlo *w, tp__hlo_value variance, double epsilon);

#endif
