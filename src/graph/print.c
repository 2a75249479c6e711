/* print - a graph as text, one line per node; the form is part of the tests of the passes. See
 * graph.h */
#include "graph.h"

static tp_status print_operands(const tp__node *n, tp__buffer *text, tp_error *err)
{
  if (n->n_in == 0) return TP_OK;
  for (int i = 0; i < n->n_in; i++) {
    const char *before = i == 0 ? "(" : ", ";
    if (n->in[i] == TP__NONE)
      TP__TRY(tp__buffer_printf(text, err, "%s-", before));
    else
      TP__TRY(tp__buffer_printf(text, err, "%s%%%d", before, (int)n->in[i]));
  }
  return tp__buffer_printf(text, err, ")");
}

static tp_status print_pad(const tp__node *n, tp__buffer *text, tp_error *err)
{
  const int *p = n->attr.pad;
  return tp__buffer_printf(text, err, " pad %d,%d,%d,%d", p[0], p[1], p[2], p[3]);
}

static tp_status print_act(const tp__node *n, tp__buffer *text, tp_error *err)
{
  if (n->attr.act == TP__ACT_NONE) return TP_OK;
  return tp__buffer_printf(text, err, " act %s", tp__act_name(n->attr.act));
}

static tp_status print_window(const tp__node *n, tp__buffer *text, tp_error *err)
{
  TP__TRY(tp__buffer_printf(text, err, " stride %d", n->attr.stride));
  return print_pad(n, text, err);
}

static tp_status print_affine(const tp__node *n, tp__buffer *text, tp_error *err)
{
  const float *f = n->attr.f, *g = n->attr.g;
  if (n->attr.flag) {
    TP__TRY(tp__buffer_printf(text, err, " factors %.9g,%.9g,%.9g", (double)f[0], (double)f[1],
                              (double)f[2]));
    if (g[0] == 0 && g[1] == 0 && g[2] == 0) return TP_OK;
    return tp__buffer_printf(text, err, " offsets %.9g,%.9g,%.9g", (double)g[0], (double)g[1],
                             (double)g[2]);
  }
  return tp__buffer_printf(text, err, " factor %.9g offset %.9g", (double)f[0], (double)f[1]);
}

static tp_status print_number(const char *what, float f, tp__buffer *text, tp_error *err)
{
  return tp__buffer_printf(text, err, " %s %.9g", what, (double)f);
}

static tp_status print_draws(const tp__node *n, tp__buffer *text, tp_error *err)
{
  const float *f = n->attr.f;
  if (n->op == TP__OP_DROPOUT)
    return tp__buffer_printf(text, err, " rate %.9g draw %u%s", (double)f[0], n->attr.draw,
                             n->attr.flag ? " of examples" : "");
  TP__TRY(print_number("turn", f[0], text, err));
  if (n->attr.fill == TP__FILL_CONSTANT) return print_number("fill", f[1], text, err);
  return tp__buffer_printf(text, err, " fill %s",
                           n->attr.fill == TP__FILL_REFLECT ? "reflect" : "nearest");
}

static tp_status print_update(const tp__node *n, tp__buffer *text, tp_error *err)
{
  const float *f = n->attr.f;
  switch (n->op) {
  case TP__OP_ADAM_M:
    return print_number("beta1", f[0], text, err);
  case TP__OP_ADAM_V:
    return print_number("beta2", f[0], text, err);
  case TP__OP_ADAM_PARAM:
    TP__TRY(print_number("beta1", f[0], text, err));
    TP__TRY(print_number("beta2", f[1], text, err));
    return print_number("epsilon", f[2], text, err);
  case TP__OP_SGD_MOMENTUM:
    return print_number("momentum", f[0], text, err);
  case TP__OP_SGD_PARAM:
    return n->attr.flag ? print_number("nesterov", f[0], text, err) : TP_OK;
  default:
    return TP_OK;
  }
}

static tp_status print_attr(const tp__node *n, tp__buffer *text, tp_error *err)
{
  const float *f = n->attr.f;
  switch (n->op) {
  case TP__OP_CONSTANT:
    return tp__buffer_printf(text, err, " %.9g", (double)f[0]);
  case TP__OP_AFFINE:
    return print_affine(n, text, err);
  case TP__OP_PAD:
  case TP__OP_CROP:
    return print_pad(n, text, err);
  case TP__OP_CONV:
  case TP__OP_DEPTHWISE:
    TP__TRY(print_window(n, text, err));
    TP__TRY(print_act(n, text, err));
    return n->attr.flag ? tp__buffer_printf(text, err, " last") : TP_OK;
  case TP__OP_MAX_POOL:
  case TP__OP_AVG_POOL:
  case TP__OP_MAX_POOL_GRAD:
  case TP__OP_AVG_POOL_GRAD:
    TP__TRY(tp__buffer_printf(text, err, " window %d", n->attr.window));
    return print_window(n, text, err);
  case TP__OP_SLICE_CHANNELS:
    return tp__buffer_printf(text, err, " first %d", n->attr.first);
  case TP__OP_CONV_INPUT_GRAD:
  case TP__OP_CONV_KERNEL_GRAD:
  case TP__OP_DEPTHWISE_INPUT_GRAD:
  case TP__OP_DEPTHWISE_KERNEL_GRAD:
    return print_window(n, text, err);
  case TP__OP_ACTIVATION:
  case TP__OP_ACTIVATION_GRAD:
  case TP__OP_MATMUL:
    return print_act(n, text, err);
  case TP__OP_BATCH_NORM:
    TP__TRY(print_number("epsilon", f[0], text, err));
    return print_act(n, text, err);
  case TP__OP_BATCH_NORM_INPUT_GRAD:
  case TP__OP_BATCH_NORM_GAMMA_GRAD:
  case TP__OP_BATCH_NORM_FULL_GRAD:
  case TP__OP_FOLD_BIAS:
    return print_number("epsilon", f[0], text, err);
  case TP__OP_FOLD_KERNEL:
    if (n->attr.depthwise) TP__TRY(tp__buffer_printf(text, err, " depthwise"));
    return print_number("epsilon", f[0], text, err);
  case TP__OP_DROPOUT:
  case TP__OP_RANDOM_ROTATION:
    return print_draws(n, text, err);
  case TP__OP_ROW:
    return tp__buffer_printf(text, err, " %d", n->attr.row);
  case TP__OP_MOVING_AVERAGE:
    return print_number("momentum", f[0], text, err);
  case TP__OP_CLIP_FACTOR:
    return print_number("norm", f[0], text, err);
  case TP__OP_CROSS_ENTROPY:
  case TP__OP_CROSS_ENTROPY_GRAD:
    return f[0] == 0 ? TP_OK : print_number("smoothing", f[0], text, err);
  case TP__OP_SUM_SPATIAL:
  case TP__OP_BROADCAST_SPATIAL:
    return f[0] == 1 ? TP_OK : print_number("factor", f[0], text, err);
  default:
    return print_update(n, text, err);
  }
}

static tp_status print_node(const tp__graph *g, tp__value v, tp__buffer *text, tp_error *err)
{
  char shape[96];
  const tp__node *n = &g->node[v];
  bool named = n->op == TP__OP_INPUT || n->op == TP__OP_PARAM;
  TP__TRY(tp__buffer_printf(text, err, "%%%d = %s", (int)v, tp__op_name(n->op)));
  if (named) TP__TRY(tp__buffer_printf(text, err, " %s", n->name));
  TP__TRY(print_operands(n, text, err));
  TP__TRY(print_attr(n, text, err));
  TP__TRY(tp__buffer_printf(text, err, " : "));
  if (n->dtype != TP__F32) TP__TRY(tp__buffer_printf(text, err, "%s ", tp__dtype_name(n->dtype)));
  TP__TRY(tp__buffer_printf(text, err, "%s", tp__shape_text(&n->shape, shape)));
  if (!named && n->name != NULL) TP__TRY(tp__buffer_printf(text, err, "  # %s", n->name));
  return tp__buffer_printf(text, err, "\n");
}

tp_status tp__graph_print(const tp__graph *g, tp__buffer *text, tp_error *err)
{
  for (tp__value v = 0; v < g->count; v++) TP__TRY(print_node(g, v, text, err));
  for (size_t i = 0; i < g->n_outputs; i++)
    TP__TRY(tp__buffer_printf(text, err, "output %s = %%%d\n", g->output[i].name,
                              (int)g->output[i].value));
  for (size_t i = 0; i < g->n_assignments; i++) {
    const tp__assignment *a = &g->assignment[i];
    TP__TRY(
        tp__buffer_printf(text, err, "assign %s = %%%d\n", g->node[a->param].name, (int)a->value));
  }
  return TP_OK;
}
