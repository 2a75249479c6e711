/* weights_timm - weight files of timm (PyTorch Image Models) and torchvision, for the networks of
 * theirs that are numerically ours.
 *
 *   tf_efficientnet_b0...b7   into efficientnet-b0...b7: TensorFlow's padding, epsilon 1e-3
 *   efficientnet_b0...b4      into efficientnet-b0-timm...b4-timm: PyTorch's padding, epsilon 1e-5
 *   resnet50                  into resnet50-v1.5: the stride in the 3x3
 *
 * Refused, because arrays of the same names and shapes belong to other networks: either of the two
 * EfficientNets in the other's place, timm's resnet50 into Keras' resnet50 (the stride in the first
 * 1x1), resnet50's relatives with other strides or filters. The arrays cannot tell, so the file
 * must say which it is: by "architecture" in the config.json that lies beside it (as on the Hugging
 * Face hub), or by the beginning of its own name. timm normalizes pixels outside of the network: an
 * EfficientNet's normalization layer gets the mean and deviation that config.json gives, else
 * ImageNet's; for resnet50-v1.5 they must be ImageNet's.
 *
 * Sources: timm 1.0.31, timm/models/efficientnet.py, resnet.py (names, defaults of padding and
 * epsilon, pretrained_cfg).
 */
#ifndef TP_WEIGHTS_TIMM_H
#define TP_WEIGHTS_TIMM_H

#include "net.h"
#include "weights.h"

/* Whether these are a state dict of one of those families, by its arrays' names. */
bool tp__weights_is_timm(const tp__tensors *torch);

/* path: of the file that torch was read from. network: the name of the one the weights are for
 * (tp__model_spec.name). Errors (TP_ERR_DATA; canonical is empty then). */
tp_status tp__weights_from_timm(const char *path, const tp__tensors *torch, const char *network,
                                tp__tensors *canonical, tp_error *err) TP_CHECKED;

#endif
