/* flops - multiply-adds of the operators that dominate a network's time; see graph.h */
#include "graph.h"

/* Positions of y times numbers of the kernel, each a multiplication and an addition. */
static double window_flops(const tp__shape *y, const tp__shape *kernel)
{
  return 2.0 * (double)y->dim[1] * (double)y->dim[2] * (double)tp__shape_elements(kernel, 1);
}

double tp__node_flops(const tp__graph *g, tp__value v)
{
  const tp__node *n = &g->node[v];
  const tp__shape *shape = &n->shape;
  switch (n->op) {
  case TP__OP_CONV:
  case TP__OP_DEPTHWISE:
    return window_flops(shape, &g->node[n->in[1]].shape);
  case TP__OP_CONV_INPUT_GRAD:
  case TP__OP_DEPTHWISE_INPUT_GRAD:
    return window_flops(&g->node[n->in[0]].shape, &g->node[n->in[1]].shape);
  case TP__OP_CONV_KERNEL_GRAD:
  case TP__OP_DEPTHWISE_KERNEL_GRAD:
    return window_flops(&g->node[n->in[1]].shape, shape);
  case TP__OP_MATMUL:
  case TP__OP_MATMUL_INPUT_GRAD:
    return 2.0 * (double)tp__shape_elements(&g->node[n->in[1]].shape, 1);
  case TP__OP_MATMUL_KERNEL_GRAD:
    return 2.0 * (double)tp__shape_elements(shape, 1);
  default:
    return 0;
  }
}
