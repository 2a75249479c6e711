/* weights_torch - state dicts of PyTorch under canonical names and layouts.
 *
 * A convolution's weight is [out,in,kh,kw] there and [kh,kw,in,out] here, a depthwise one
 * [channels,1,kh,kw] and [kh,kw,channels,1], a linear layer's [out,in] and [in,out].
 * num_batches_tracked has no counterpart and is dropped. What differs between networks are the
 * layers' names (weights_lite0.c, weights_timm.c).
 */
#ifndef TP_WEIGHTS_TORCH_H
#define TP_WEIGHTS_TORCH_H

#include "weights.h"

enum { TP__TORCH_NAME = 64 };

/* The canonical name of a layer ("block3a_bn" of "_blocks.3._bn1"): those of batch norms end in
 * "bn", those of depthwise convolutions in "dwconv". False: no layer of the network. */
typedef bool (*tp__torch_layer_fn)(const char *torch, char name[TP__TORCH_NAME]);

/* Adds all tensors to an empty set. network: for messages. Errors (TP_ERR_DATA; canonical is empty
 * then): an array that belongs to no layer. */
tp_status tp__torch_translate(const tp__tensors *torch, tp__torch_layer_fn layer,
                              const char *network, tp__tensors *canonical,
                              tp_error *err) TP_CHECKED;

#endif
