/* pass_simplify - drops nodes that change nothing and joins reshapes in a row; see rewrite.h */
#include "rewrite.h"

static bool is_identity(const tp__rewrite *r, const tp__node *n)
{
  const int *pad = n->attr.pad;
  switch (n->op) {
  case TP__OP_RESHAPE:
    return tp__shape_equal(&n->shape, &r->from->node[n->in[0]].shape);
  case TP__OP_ACTIVATION:
    return n->attr.act == TP__ACT_NONE;
  case TP__OP_DROPOUT:
    return n->attr.f[0] == 0;
  case TP__OP_PAD:
  case TP__OP_CROP:
    return pad[0] == 0 && pad[1] == 0 && pad[2] == 0 && pad[3] == 0;
  default:
    return false;
  }
}

tp_status tp__pass_simplify(tp__rewrite *r, tp__value v)
{
  const tp__node *n = tp__rewrite_node(r, v);
  if (is_identity(r, n)) {
    r->map[v] = r->map[n->in[0]];
    return TP_OK;
  }
  if (n->op != TP__OP_RESHAPE) return TP_OK;
  tp__value x = r->map[n->in[0]];
  if (r->to->node[x].op != TP__OP_RESHAPE) return TP_OK;
  x = r->to->node[x].in[0]; /* itself no reshape: this rule made it */
  if (tp__shape_equal(&r->to->node[x].shape, &n->shape)) {
    r->map[v] = x;
    return TP_OK;
  }
  return tp__rewrite_emit(r, v, TP__OP_RESHAPE, &x, 1, &n->attr, NULL);
}
