/* pass_pad - zeros around the picture become padding of the convolution or pooling that reads them;
 * see rewrite.h
 *
 * Each reader is changed for itself, so that a PAD with several readers dies only when all were
 * convolutions or kernel gradients. Likewise CROP, which autodiff makes of PAD, joins the input
 * gradient before it.
 */
#include "infer.h"
#include "rewrite.h"

static bool takes_padding(tp__op op)
{
  return op == TP__OP_CONV || op == TP__OP_DEPTHWISE || op == TP__OP_CONV_KERNEL_GRAD ||
         op == TP__OP_DEPTHWISE_KERNEL_GRAD || op == TP__OP_MAX_POOL || op == TP__OP_AVG_POOL;
}

static tp_status merge_pad(tp__rewrite *r, tp__value v, const tp__node *n, const tp__node *pad)
{
  tp__attr attr = n->attr;
  tp__value in[TP__OPERANDS_MAX];
  tp__rewrite_operands(r, n, in);
  in[0] = r->map[pad->in[0]];
  for (int i = 0; i < 4; i++)
    if ((attr.pad[i] += pad->attr.pad[i]) > TP__SIZE_MAX) return TP_OK;
  return tp__rewrite_emit(r, v, n->op, in, n->n_in, &attr, pad->name);
}

static tp_status merge_crop(tp__rewrite *r, tp__value v, const tp__node *n, const tp__node *grad)
{
  tp__attr attr = grad->attr;
  tp__value in[TP__OPERANDS_MAX];
  tp__rewrite_operands(r, grad, in);
  for (int i = 0; i < 4; i++)
    if ((attr.pad[i] += n->attr.pad[i]) > TP__SIZE_MAX) return TP_OK;
  attr.shape = n->shape;
  return tp__rewrite_emit(r, v, grad->op, in, grad->n_in, &attr, grad->name);
}

/* max_pool_grad reads the padded x itself: it can do without when the same padding is cropped. */
static tp_status merge_max_pool_grad(tp__rewrite *r, tp__value v, const tp__node *n,
                                     const tp__node *grad)
{
  const tp__node *pad = tp__rewrite_node(r, grad->in[1]);
  tp__attr attr = grad->attr;
  if (pad->op != TP__OP_PAD) return TP_OK;
  for (int i = 0; i < 4; i++) {
    if (pad->attr.pad[i] != n->attr.pad[i]) return TP_OK;
    if ((attr.pad[i] += n->attr.pad[i]) > TP__SIZE_MAX) return TP_OK;
  }
  tp__value in[] = {r->map[grad->in[0]], r->map[pad->in[0]]};
  return tp__rewrite_emit(r, v, grad->op, in, 2, &attr, grad->name);
}

tp_status tp__pass_pad(tp__rewrite *r, tp__value v)
{
  const tp__node *n = tp__rewrite_node(r, v);
  if (takes_padding(n->op)) {
    const tp__node *x = tp__rewrite_node(r, n->in[0]);
    return x->op == TP__OP_PAD ? merge_pad(r, v, n, x) : TP_OK;
  }
  if (n->op != TP__OP_CROP) return TP_OK;
  const tp__node *grad = tp__rewrite_only(r, v, 0, TP__OP_MAX_POOL_GRAD);
  if (grad != NULL) return merge_max_pool_grad(r, v, n, grad);
  grad = tp__rewrite_only(r, v, 0, TP__OP_CONV_INPUT_GRAD);
  if (grad == NULL) grad = tp__rewrite_only(r, v, 0, TP__OP_AVG_POOL_GRAD);
  if (grad == NULL) grad = tp__rewrite_only(r, v, 0, TP__OP_DEPTHWISE_INPUT_GRAD);
  return grad != NULL ? merge_crop(r, v, n, grad) : TP_OK;
}
