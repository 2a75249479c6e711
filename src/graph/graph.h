/* graph - the one description of a computation: a model, its loss, its gradient and its update.
 *
 *   model, train build ──> graph ──> autodiff adds nodes ──> passes rewrite ──> backend runs
 *
 * A graph is a list of nodes in an order in which they can run; a node applies one operator to
 * earlier nodes and gives one value: typed and shaped when it is added (a wrong shape is an error
 * that names operator, operand and shapes). Nodes are never changed afterwards, passes write a new
 * graph. There are two kinds of values:
 *
 *   per example   dim[0] is TP__N: one row for each example of the batch
 *   shared        no TP__N: weights, sums over examples, rates
 *
 * Operators that take per-example values and give a shared one (tp__op_is_joint: weight gradients,
 * the loss sum) sum over the examples; everything else handles each example alone, which is what
 * lets an executor go depth-first (DESIGN D2).
 *
 * Names: inputs are fed by name at each run, parameters live in the device's state under their
 * name, outputs are fetched by name. tp__graph_assign makes the value of a parameter after the run
 * (optimizer update, moving statistics): nothing is changed while the run still reads it.
 *
 * Inside: graph.c builds, infer*.c check shapes by a table of operators, autodiff*.c make
 * gradients, rewrite.c and pass_*.c make the form that executors run, print.c and flops.c describe.
 *
 * Rules: includes base only. Neighbours: model builds with it, train adds loss and update, backend
 * runs it. All failures are TP_ERR_INTERNAL: what users give is checked before it becomes a graph.
 */
#ifndef TP_GRAPH_H
#define TP_GRAPH_H

#include "base/sampling.h"
#include "tensor.h"

typedef int32_t tp__value; /* a node of the graph = its value; TP__NONE: absent operand */
enum { TP__NONE = -1, TP__OPERANDS_MAX = 6, TP__NODES_MAX = 1000000 };

/* Shapes: x, y [N,H,W,C]; optional operands may be TP__NONE. "joint": sums over the examples. */
/* clang-format off */
#define TP__OP_MAP(X)                                                                              \
  /* ---- sources ---- */                                                                          \
  X(INPUT, "input")           /* fed at each run */                                                \
  X(PARAM, "param")           /* shared, f32, lives in the state */                                \
  X(CONSTANT, "constant")     /* shared scalar f32: attr.f[0] */                                   \
  /* ---- pixels ---- */                                                                           \
  X(AFFINE, "affine")                                                                              \
    /* x * f[0] + f[1]: Keras' Rescaling; attr.flag: x * f[c] + g[c], c = 0, 1, 2 of a last dim of \
       3 */                                                                                        \
  X(REVERSE, "reverse")       /* x [N,...,C]: the channels in reverse order, RGB to BGR */         \
  X(NORMALIZE, "normalize")   /* (x - mean) / max(sqrt(variance), 1e-7); mean, variance [C] */     \
  X(RANDOM_FLIP, "random_flip")                                                                    \
    /* x, keys u32 [N,2]: left and right change sides where tp__flip_of(key) */                    \
  X(RANDOM_ROTATION, "random_rotation")                                                            \
    /* x of up to 4 channels, keys u32 [N,2]: turned by tp__turn_of(f[0], key), 0 < f[0] <= 1/8,     \
       as base/sampling.h says; attr.fill (not wrap), f[1] the constant's value, 0...255 */          \
  X(PAD, "pad")               /* zeros around H and W: attr.pad = top, bottom, left, right */      \
  /* ---- layers ---- */                                                                           \
  X(CONV, "conv")                                                                                  \
    /* x, kernel [kh,kw,C,K], bias [K]?, residual [N,OH,OW,K]?, scale [N,1,1,C]?:                  \
       y = act(conv(x * scale, kernel) + bias) + residual; zero padding attr.pad; attr.flag: the   \
       activation comes after the residual */                                                      \
  X(DEPTHWISE, "depthwise")   /* x, kernel [kh,kw,C,1], bias [C]?: y = act(conv + bias) */         \
  X(BIAS_ADD, "bias_add")     /* x [N,...,C], bias [C] */                                          \
  X(BATCH_NORM, "batch_norm")                                                                      \
    /* x [N,...,C], gamma, beta, mean, variance [C]; attr.f[0] = epsilon: gamma (x - mean) /       \
       sqrt(variance + epsilon) + beta, then attr.act */                                           \
  X(ACTIVATION, "activation") /* attr.act */                                                       \
  X(ADD, "add")               /* a + b, same shape */                                              \
  X(MUL, "mul")               /* a * b, same shape, or b [N,1,1,C] broadcast over H and W */       \
  X(GLOBAL_POOL, "global_pool")                                                                    \
    /* [N,H,W,C] -> [N,C]: mean over the pixels, added in their order */                           \
  X(MAX_POOL, "max_pool")                                                                          \
    /* x: the largest of windows of attr.window x attr.window pixels, attr.stride apart; attr.pad   \
       zeros around x take part */                                                                 \
  X(AVG_POOL, "avg_pool")     /* the same with the mean, of all window x window pixels */          \
  X(CONCAT, "concat")         /* a [N,H,W,A], b [N,H,W,B]: [N,H,W,A + B] */                        \
  X(RESHAPE, "reshape")       /* attr.shape, N kept */                                             \
  X(MATMUL, "matmul")         /* x [N,I], kernel [I,O], bias [O]?: act(x kernel + bias) */         \
  X(DROPOUT, "dropout")                                                                            \
    /* x, keys u32 [N,2]; attr.f[0] = rate, attr.draw: kept values / (1 - rate). Element j of an   \
       example is kept when tp__uniform(key, TP__DRAW_DROPOUT | draw << 8, j) >= rate; with        \
       attr.flag the example is kept or dropped as a whole, by draw 0 (stochastic depth) */        \
  X(SOFTMAX, "softmax")       /* over the last dim of [N,K] */                                     \
  X(CROSS_ENTROPY, "cross_entropy")                                                                \
    /* logits [N,K], labels i32 [N] -> [N]: -sum_k t_k log softmax_k, t = (1 - s) onehot + s / K   \
       with s = attr.f[0] (label smoothing) */                                                     \
  X(WEIGHTED_SUM, "weighted_sum") /* joint: values [N], weights [N] -> scalar */                   \
  /* ---- gradients ---- */                                                                        \
  X(CONV_INPUT_GRAD, "conv_input_grad") /* dy, kernel -> dx of attr.shape */                       \
  X(CONV_KERNEL_GRAD, "conv_kernel_grad") /* joint: x, dy -> [kh,kw,C,K] (attr.shape) */           \
  X(DEPTHWISE_INPUT_GRAD, "depthwise_input_grad") /* dy, kernel -> dx of attr.shape */             \
  X(DEPTHWISE_KERNEL_GRAD, "depthwise_kernel_grad") /* joint: x, dy -> [kh,kw,C,1] (attr.shape) */ \
  X(SUM_TO_LAST, "sum_to_last") /* joint: dy [N,...,C] -> [C]: bias and beta gradients */          \
  X(BATCH_NORM_INPUT_GRAD, "batch_norm_input_grad")                                                \
    /* dy, gamma, variance -> dy gamma / sqrt(variance + f[0]) */                                  \
  X(BATCH_NORM_GAMMA_GRAD, "batch_norm_gamma_grad")                                                \
    /* joint: x, dy, mean, variance -> [C]: sum of dy (x - mean) / sqrt(variance + f[0]) */        \
  X(ACTIVATION_GRAD, "activation_grad") /* dy, x (before the activation), attr.act */              \
  X(SUM_SPATIAL, "sum_spatial") /* [N,H,W,C] -> [N,1,1,C], times f[0] (not 0) */                   \
  X(BROADCAST_SPATIAL, "broadcast_spatial")                                                        \
    /* [N,C] or [N,1,1,C], times f[0] (not 0), to attr.shape */                                    \
  X(MATMUL_INPUT_GRAD, "matmul_input_grad") /* dy [N,O], kernel [I,O] -> [N,I] */                  \
  X(MATMUL_KERNEL_GRAD, "matmul_kernel_grad") /* joint: x [N,I], dy [N,O] -> [I,O] */              \
  X(CROSS_ENTROPY_GRAD, "cross_entropy_grad")                                                      \
    /* logits, labels, dloss [N] -> [N,K]; attr.f[0] = label smoothing */                          \
  X(SCALE_ROWS, "scale_rows") /* dsum scalar, weights [N] -> [N]: gradient of weighted_sum */      \
  X(CROP, "crop")             /* x without attr.pad = top, bottom, left, right: gradient of pad */ \
  X(MAX_POOL_GRAD, "max_pool_grad")                                                                \
    /* dy, x -> dx: each dy goes to the first largest pixel of its window, in the order of rows */ \
  X(AVG_POOL_GRAD, "avg_pool_grad") /* dy -> dx of attr.shape */                                   \
  X(SLICE_CHANNELS, "slice_channels")                                                              \
    /* x [N,H,W,C] -> attr.shape [N,H,W,K]: channels attr.first ... attr.first + K */              \
  /* ---- shared arithmetic: batch norm folded into the kernel before it, optimizer updates ---- */\
  X(FOLD_KERNEL, "fold_kernel")                                                                    \
    /* kernel, gamma, variance: kernel gamma / sqrt(variance + f[0]), along C when                 \
       attr.depthwise, else along K */                                                             \
  X(FOLD_BIAS, "fold_bias")                                                                        \
    /* gamma, beta, mean, variance, bias?: beta + (bias - mean) gamma / sqrt(variance + f[0]) */   \
  X(ADAM_M, "adam_m")         /* m, g: m + (g - m)(1 - beta1); attr.f = beta1 */                   \
  X(ADAM_V, "adam_v")         /* v, g: v + (g g - v)(1 - beta2); attr.f = beta2 */                 \
  X(ADAM_PARAM, "adam_param")                                                                      \
    /* p, m, v, rate, step f32: p - rate sqrt(1 - beta2^step) / (1 - beta1^step) m / (sqrt(v) +    \
       epsilon); attr.f = beta1, beta2, epsilon (Keras 3: epsilon outside the correction);         \
       with weight decay attr.g[0], p is first p - rate g[0] p (AdamW) */                          \
  X(SGD_MOMENTUM, "sgd_momentum") /* velocity, g, rate: f[0] velocity - rate g */                  \
  X(SGD_PARAM, "sgd_param")                                                                        \
    /* p, velocity, g?, rate?: p + velocity; attr.flag (Nesterov, needs g and rate): p + f[0]      \
       velocity - rate g; with weight decay attr.g[0], needing rate, as adam_param */              \
  /* ---- batch statistics ---- */                                                                 \
  X(BATCH_MOMENTS, "batch_moments")                                                                \
    /* joint: x [N,...,C] -> [2,C]: mean and population variance over examples and pixels */       \
  X(ROW, "row")               /* [R,C] without N -> [C]: row attr.row */                           \
  X(BATCH_NORM_FULL_GRAD, "batch_norm_full_grad")                                                  \
    /* x, dy, gamma, moments [2,C] of x, beta's and gamma's gradients [C]: dx of a batch norm by   \
       those moments, through them, too */                                                         \
  X(MOVING_AVERAGE, "moving_average")                                                              \
    /* a, x, step?: a f[0] + x (1 - f[0]); where there is a step and it is 1, x */                 \
  /* ---- of all gradients: clipping by their norm ---- */                                         \
  X(SUM_SQUARES, "sum_squares") /* up to six shared values: the sum of all elements' squares */    \
  X(SUM_SCALARS, "sum_scalars") /* up to six scalars */                                            \
  X(CLIP_FACTOR, "clip_factor")                                                                    \
    /* s: f[0] min(1 / sqrt s, 1 / f[0]), not a number when s is not finite */                     \
  X(SCALE, "scale")             /* x without N, factor: x factor */
/* clang-format on */

typedef enum tp__op {
#define TP__OP_ENUM_(name, text) TP__OP_##name,
  TP__OP_MAP(TP__OP_ENUM_)
#undef TP__OP_ENUM_
      TP__OP_COUNT
} tp__op;

typedef enum tp__act {
  TP__ACT_NONE,
  TP__ACT_SWISH,
  TP__ACT_RELU,
  TP__ACT_RELU6,
  TP__ACT_SIGMOID
} tp__act;

/* What an operator needs besides its operands; fields an operator does not use are zero. */
typedef struct tp__attr {
  int stride; /* CONV, DEPTHWISE, pools and their gradients: in both directions, >= 1 */
  int window; /* MAX_POOL, AVG_POOL and their gradients: in both directions, >= 1 */
  int first;  /* SLICE_CHANNELS */
  int pad[4]; /* top, bottom, left, right */
  tp__act act;
  float f[3];
  float g[3];     /* AFFINE with flag: the offsets; ADAM_PARAM, SGD_PARAM: weight decay */
  tp__fill fill;  /* RANDOM_ROTATION */
  uint32_t draw;  /* DROPOUT: its number in the network */
  int row;        /* ROW */
  bool depthwise; /* FOLD_KERNEL */
  bool flag; /* SGD_PARAM: Nesterov; AFFINE: one factor, one offset per channel; CONV: activation
                last; DROPOUT: one draw per example */
  tp__shape shape; /* RESHAPE, BROADCAST_SPATIAL, *_GRAD */
} tp__attr;

typedef struct tp__node {
  tp__op op;
  tp__dtype dtype;
  tp__shape shape;
  tp__value in[TP__OPERANDS_MAX];
  int n_in;
  tp__attr attr;
  const char *name; /* INPUT, PARAM: its name; else NULL or its layer. The graph keeps it */
} tp__node;

typedef struct tp__output {
  const char *name;
  tp__value value;
} tp__output;

typedef struct tp__assignment {
  tp__value param, value;
} tp__assignment;

typedef struct tp__graph {
  tp__node *node;
  int32_t count, capacity;
  tp__output *output;
  size_t n_outputs, outputs_capacity;
  tp__assignment *assignment;
  size_t n_assignments, assignments_capacity;
  tp__value *param; /* the PARAM nodes, in the order in which they were added */
  size_t n_params, params_capacity;
  tp__arena arena; /* names */
} tp__graph;

tp_status tp__graph_new(tp__graph **graph, tp_error *err) TP_CHECKED;
void tp__graph_free(tp__graph *graph);

/* ---- building. Each infers type and shape; on failure the graph is as before. ---- */

tp_status tp__graph_input(tp__graph *g, const char *name, tp__dtype dtype, const tp__shape *shape,
                          tp__value *value, tp_error *err) TP_CHECKED;
/* The same name again gives the same node (the shape must agree). */
tp_status tp__graph_param(tp__graph *g, const char *name, const tp__shape *shape, tp__value *value,
                          tp_error *err) TP_CHECKED;
/* The general form: operands (borrowed) in the order that TP__OP_MAP says; attr may be NULL. */
tp_status tp__graph_add(tp__graph *g, tp__op op, const tp__value *in, int n_in,
                        const tp__attr *attr, tp__value *value, tp_error *err) TP_CHECKED;
tp_status tp__graph_output(tp__graph *g, const char *name, tp__value value,
                           tp_error *err) TP_CHECKED;
/* Each parameter once; shape and type must be the parameter's. */
tp_status tp__graph_assign(tp__graph *g, tp__value param, tp__value value,
                           tp_error *err) TP_CHECKED;
bool tp__graph_is_assigned(const tp__graph *g, tp__value param);
/* The layer a node belongs to, for printing and profiling (copies; NULL changes nothing; inputs and
 * parameters keep their names). */
tp_status tp__graph_hint(tp__graph *g, tp__value value, const char *name, tp_error *err) TP_CHECKED;

static inline bool tp__per_example(const tp__node *n)
{
  return n->shape.rank > 0 && n->shape.dim[0] == TP__N;
}
bool tp__op_is_joint(tp__op op);
const char *tp__op_name(tp__op op);
const char *tp__act_name(tp__act act);

/* Multiply-adds (x 2) of one node for one example; 0 for element-wise work, which is not counted.
 */
double tp__node_flops(const tp__graph *g, tp__value v);

/* ---- gradient: reverse mode, only along paths from loss to the wanted parameters ---- */

/* loss: a shared scalar. Sets grad[i] to d loss / d param[i] (TP__NONE where the loss does not
 * depend on it); besides parameters, any f32 value may be asked for. Works on operators as they are
 * built: take the gradient first, optimize afterwards. Error: an operator on the way without a
 * gradient. */
tp_status tp__graph_gradient(tp__graph *g, tp__value loss, const tp__value *param, size_t n,
                             tp__value *grad, tp_error *err) TP_CHECKED;

/* ---- rewriting: a pass reads a graph and gives a new one of the same meaning ---- */

/* Everything an executor of inference-mode networks wants: drops dead nodes (never inputs), merges
 * PAD into convolutions, folds BATCH_NORM (when conv, or conv + bias, has no other reader and
 * gamma, beta, statistics are not assigned in this graph), fuses bias, activation, residual ADD and
 * squeeze-excite MUL into CONV / DEPTHWISE / MATMUL, merges reshapes. Values that gradients read
 * are kept. A fused node has the name of its last layer. Returns: tp__graph_free. */
tp_status tp__graph_optimize(const tp__graph *g, tp__graph **optimized, tp_error *err) TP_CHECKED;

/* A graph in which `value` is fed: an INPUT of that name, type and shape takes its place, and what
 * only led to it is gone, inputs too. For work that is done once and used often (features of a
 * frozen backbone). Returns: tp__graph_free. */
tp_status tp__graph_cut(const tp__graph *g, tp__value value, const char *name, tp__graph **cut,
                        tp_error *err) TP_CHECKED;

/* One line per node, then outputs and assignments; "-" is an absent operand:
 * "%12 = conv(%11, %3, %4) stride 2 pad 0,1,0,1 act swish : (None, 96, 96, 32)  # stem_conv". */
tp_status tp__graph_print(const tp__graph *g, tp__buffer *text, tp_error *err) TP_CHECKED;

#endif
