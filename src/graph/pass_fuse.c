/* pass_fuse - what follows a convolution or matrix product becomes its epilogue; see rewrite.h
 *
 *   bias        bias_add(conv(x, k), b)        -> conv(x, k, b)
 *   activation  activation(conv(...))          -> conv(...) act
 *   residual    add(conv(...), r)              -> conv(..., residual r), added after the activation
 *   last        activation(conv(..., residual r)) -> conv(..., residual r) act last: ResNet's
 * blocks scale       conv 1x1 (mul(x, s [N,1,1,C])) -> conv(x, ..., scale s): squeeze-and-excite
 *
 * A batch norm that could not be folded into what is before it (BN, ReLU, conv: pre-activation)
 * takes the activation, too.
 *
 * Each only when nothing else (a gradient, an output) reads the value in between.
 */
#include "rewrite.h"

/* Operand i of v: a convolution or matrix product that only v reads and that ends in its sum. */
static const tp__node *open_end(const tp__rewrite *r, tp__value v, int i)
{
  const tp__op op[] = {TP__OP_CONV, TP__OP_DEPTHWISE, TP__OP_MATMUL};
  for (int o = 0; o < 3; o++) {
    const tp__node *x = tp__rewrite_only(r, v, i, op[o]);
    bool residual = x != NULL && x->n_in > 3 && x->in[3] != TP__NONE;
    if (x != NULL && x->attr.act == TP__ACT_NONE && !residual) return x;
  }
  return NULL;
}

tp_status tp__pass_bias(tp__rewrite *r, tp__value v)
{
  const tp__node *n = tp__rewrite_node(r, v);
  if (n->op != TP__OP_BIAS_ADD) return TP_OK;
  const tp__node *x = open_end(r, v, 0);
  if (x == NULL || (x->n_in > 2 && x->in[2] != TP__NONE)) return TP_OK;
  tp__value in[TP__OPERANDS_MAX];
  tp__rewrite_operands(r, x, in);
  in[2] = r->map[n->in[1]];
  return tp__rewrite_emit(r, v, x->op, in, x->n_in > 3 ? x->n_in : 3, &x->attr, x->name);
}

tp_status tp__pass_activation(tp__rewrite *r, tp__value v)
{
  const tp__node *n = tp__rewrite_node(r, v);
  if (n->op != TP__OP_ACTIVATION) return TP_OK;
  const tp__node *x = open_end(r, v, 0);
  if (x == NULL) x = tp__rewrite_only(r, v, 0, TP__OP_BATCH_NORM);
  if (x == NULL || x->attr.act != TP__ACT_NONE) return TP_OK;
  tp__value in[TP__OPERANDS_MAX];
  tp__rewrite_operands(r, x, in);
  tp__attr attr = x->attr;
  attr.act = n->attr.act;
  return tp__rewrite_emit(r, v, x->op, in, x->n_in, &attr, x->name);
}

/* Of two convolutions the later one takes the other as its residual. */
tp_status tp__pass_residual(tp__rewrite *r, tp__value v)
{
  const tp__node *n = tp__rewrite_node(r, v);
  if (n->op != TP__OP_ADD) return TP_OK;
  int later = n->in[1] > n->in[0] ? 1 : 0;
  for (int t = 0; t < 2; t++) {
    int i = t == 0 ? later : 1 - later;
    const tp__node *x = tp__rewrite_only(r, v, i, TP__OP_CONV);
    if (x == NULL || (x->n_in > 3 && x->in[3] != TP__NONE)) continue;
    tp__value in[TP__OPERANDS_MAX];
    tp__rewrite_operands(r, x, in);
    in[3] = r->map[n->in[1 - i]];
    return tp__rewrite_emit(r, v, TP__OP_CONV, in, x->n_in > 4 ? x->n_in : 4, &x->attr, x->name);
  }
  return TP_OK;
}

tp_status tp__pass_last_activation(tp__rewrite *r, tp__value v)
{
  const tp__node *n = tp__rewrite_node(r, v);
  if (n->op != TP__OP_ACTIVATION) return TP_OK;
  const tp__node *x = tp__rewrite_only(r, v, 0, TP__OP_CONV);
  if (x == NULL || x->attr.act != TP__ACT_NONE || x->n_in < 4 || x->in[3] == TP__NONE) return TP_OK;
  tp__value in[TP__OPERANDS_MAX];
  tp__rewrite_operands(r, x, in);
  tp__attr attr = x->attr;
  attr.act = n->attr.act;
  attr.flag = true;
  return tp__rewrite_emit(r, v, TP__OP_CONV, in, x->n_in, &attr, x->name);
}

static bool is_pointwise(const tp__rewrite *r, const tp__node *n)
{
  const tp__shape *k = &tp__rewrite_node(r, n->in[1])->shape;
  const int *pad = n->attr.pad;
  return n->op == TP__OP_CONV && k->dim[0] == 1 && k->dim[1] == 1 && n->attr.stride == 1 &&
         pad[0] == 0 && pad[1] == 0 && pad[2] == 0 && pad[3] == 0;
}

tp_status tp__pass_scale(tp__rewrite *r, tp__value v)
{
  const tp__node *n = tp__rewrite_node(r, v);
  if (n->op != TP__OP_CONV || n->n_in > 4 || !is_pointwise(r, n)) return TP_OK;
  const tp__node *x = tp__rewrite_only(r, v, 0, TP__OP_MUL);
  if (x == NULL) return TP_OK;
  const tp__shape *s = &tp__rewrite_node(r, x->in[1])->shape;
  if (s->rank != 4 || s->dim[1] != 1 || s->dim[2] != 1) return TP_OK;
  tp__value in[TP__OPERANDS_MAX];
  tp__rewrite_operands(r, n, in);
  in[0] = r->map[x->in[0]];
  in[4] = r->map[x->in[1]];
  return tp__rewrite_emit(r, v, TP__OP_CONV, in, 5, &n->attr, x->name);
}
