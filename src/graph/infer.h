/* infer - what an operator accepts and what it gives: the table that tp__graph_add looks operators
 * up in.
 *
 *   tp__graph_add ──> tp__infer ──> op_info row: operand count, names, types ──> the row's
 * function: shapes
 *
 * A row's function finds operands that are present, f32 (or the row's other type) and in range; it
 * checks their shapes with the tp__want_... helpers below, which write errors that name operator,
 * operand and shapes, and sets t->shape. All results are f32. To add an operator: a line in
 * TP__OP_MAP, a row in infer_table.c, a function beside its family.
 */
#ifndef TP_INFER_H
#define TP_INFER_H

#include "graph.h"

enum { TP__SIZE_MAX = 1 << 16, TP__WINDOW_MAX = 1 << 14 }; /* of kernels, strides, padding; pools */

typedef struct tp__typing {
  tp__op op;
  tp__attr attr;
  const tp__node *in[TP__OPERANDS_MAX]; /* NULL: absent */
  tp__shape shape;                      /* the answer */
  char text[TP__OPERANDS_MAX][128];     /* tp__operand_text */
  tp_error *err;
} tp__typing;

typedef tp_status (*tp__infer_fn)(tp__typing *t);

typedef struct tp__op_info {
  int required, allowed; /* operands; the required ones come first */
  bool joint;
  tp__infer_fn infer; /* NULL: a source with its own builder */
  const char *operand[TP__OPERANDS_MAX];
  int other;             /* the operand that is not f32; 0: none */
  tp__dtype other_dtype; /* its type */
} tp__op_info;

const tp__op_info *tp__op_info_of(tp__op op);

/* Checks operands and attributes, gives the shape. in: n_in operands, all in range or TP__NONE. */
tp_status tp__infer(const tp__graph *g, tp__op op, const tp__value *in, int n_in,
                    const tp__attr *attr, tp__shape *shape, tp_error *err) TP_CHECKED;

/* Every dimension >= 1 (TP__N only first) and no more elements than an int can index. what: "input
 * pixels". */
tp_status tp__check_shape(const char *what, const tp__shape *shape, tp_error *err) TP_CHECKED;

/* ---- for the functions of the table ---- */

tp_status tp__bad(tp__typing *t, const char *format, ...) TP_PRINTF(2, 3);
const char *tp__operand_text(tp__typing *t, int i); /* "kernel (1, 1, 96, 24)" */

static inline int64_t tp__last_dim(const tp__node *n)
{
  return n->shape.rank > 0 ? n->shape.dim[n->shape.rank - 1] : 0;
}

tp_status tp__want_maps(tp__typing *t, int i) TP_CHECKED;     /* [N,H,W,C] */
tp_status tp__want_rows(tp__typing *t, int i) TP_CHECKED;     /* [N,C] */
tp_status tp__want_examples(tp__typing *t, int i) TP_CHECKED; /* [N,...] */
tp_status tp__want_shared(tp__typing *t, int i) TP_CHECKED;   /* no N */
tp_status tp__want_scalar(tp__typing *t, int i) TP_CHECKED;   /* [] */
tp_status tp__want_channels(tp__typing *t, int i, int64_t channels,
                            int of) TP_CHECKED; /* [channels], as operand `of` has */
tp_status tp__want_same(tp__typing *t, int i, int j) TP_CHECKED;
/* Operand i, where present, has that shape. */
tp_status tp__want_shape(tp__typing *t, int i, const tp__shape *shape) TP_CHECKED;
/* attr.shape is a sound one of that rank. */
tp_status tp__want_attr_shape(tp__typing *t, int rank) TP_CHECKED;
/* A rate or factor that must be finite and within [low, high]. */
tp_status tp__want_number(tp__typing *t, int f, const char *what, double low,
                          double high) TP_CHECKED;
tp_status tp__want_act(tp__typing *t) TP_CHECKED;

/* [N,OH,OW] of a window of kh x kw over x [N,H,W,...] with attr.stride and attr.pad; dim[3] is left
 * alone. */
tp_status tp__slide(tp__typing *t, const char *x_text, const tp__shape *x, int64_t kh, int64_t kw,
                    tp__shape *y) TP_CHECKED;

/* infer_layers.c */
tp_status tp__infer_constant(tp__typing *t);
tp_status tp__infer_affine(tp__typing *t);
tp_status tp__infer_reverse(tp__typing *t);
tp_status tp__infer_normalize(tp__typing *t);
tp_status tp__infer_random_flip(tp__typing *t);
tp_status tp__infer_random_rotation(tp__typing *t);
tp_status tp__infer_pad(tp__typing *t);
tp_status tp__infer_conv(tp__typing *t);
tp_status tp__infer_depthwise(tp__typing *t);
tp_status tp__infer_bias_add(tp__typing *t);
tp_status tp__infer_batch_norm(tp__typing *t);
tp_status tp__infer_activation(tp__typing *t);
tp_status tp__infer_add(tp__typing *t);
tp_status tp__infer_mul(tp__typing *t);
tp_status tp__infer_global_pool(tp__typing *t);
tp_status tp__infer_pool(tp__typing *t);
tp_status tp__infer_concat(tp__typing *t);
tp_status tp__infer_reshape(tp__typing *t);
tp_status tp__infer_matmul(tp__typing *t);
tp_status tp__infer_dropout(tp__typing *t);
tp_status tp__infer_softmax(tp__typing *t);
tp_status tp__infer_cross_entropy(tp__typing *t);
tp_status tp__infer_weighted_sum(tp__typing *t);
/* infer_grad.c */
tp_status tp__infer_conv_input_grad(tp__typing *t);
tp_status tp__infer_conv_kernel_grad(tp__typing *t);
tp_status tp__infer_depthwise_input_grad(tp__typing *t);
tp_status tp__infer_depthwise_kernel_grad(tp__typing *t);
tp_status tp__infer_sum_to_last(tp__typing *t);
tp_status tp__infer_batch_norm_input_grad(tp__typing *t);
tp_status tp__infer_batch_norm_gamma_grad(tp__typing *t);
tp_status tp__infer_activation_grad(tp__typing *t);
tp_status tp__infer_sum_spatial(tp__typing *t);
tp_status tp__infer_broadcast_spatial(tp__typing *t);
tp_status tp__infer_matmul_input_grad(tp__typing *t);
tp_status tp__infer_matmul_kernel_grad(tp__typing *t);
tp_status tp__infer_cross_entropy_grad(tp__typing *t);
tp_status tp__infer_scale_rows(tp__typing *t);
tp_status tp__infer_crop(tp__typing *t);
tp_status tp__infer_max_pool_grad(tp__typing *t);
tp_status tp__infer_avg_pool_grad(tp__typing *t);
tp_status tp__infer_slice_channels(tp__typing *t);
/* infer_update.c */
tp_status tp__infer_fold_kernel(tp__typing *t);
tp_status tp__infer_fold_bias(tp__typing *t);
tp_status tp__infer_adam_m(tp__typing *t);
tp_status tp__infer_adam_v(tp__typing *t);
tp_status tp__infer_adam_param(tp__typing *t);
tp_status tp__infer_sgd_momentum(tp__typing *t);
tp_status tp__infer_sgd_param(tp__typing *t);
/* infer_statistics.c */
tp_status tp__infer_batch_moments(tp__typing *t);
tp_status tp__infer_row(tp__typing *t);
tp_status tp__infer_batch_norm_full_grad(tp__typing *t);
tp_status tp__infer_moving_average(tp__typing *t);
tp_status tp__infer_sum_squares(tp__typing *t);
tp_status tp__infer_sum_scalars(tp__typing *t);
tp_status tp__infer_clip_factor(tp__typing *t);
tp_status tp__infer_scale(tp__typing *t);

#endif
