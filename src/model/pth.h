/* pth - from an unpickled PyTorch state dict and its storages' bytes to named tensors. */
#ifndef TP_PTH_H
#define TP_PTH_H

#include "pickle.h"
#include "weights_formats.h"

/* The dict of tensors in what a .pth holds: itself, or the one under "state_dict",
 * "model_state_dict" or "model". NULL: there is none. */
const tp__pickle_value *tp__pth_state_dict(const tp__pickle_value *root);

/* Adds the dict's tensors. bytes[i]: the storage with index i, elements * size bytes long; NULL
 * where it is missing. */
tp_status tp__pth_add_tensors(const tp__pickle_value *dict, const uint8_t *const *bytes,
                              tp__weights_sink *sink, tp_error *err) TP_CHECKED;

/* Bytes of a storage; false on overflow. */
bool tp__pth_storage_bytes(const tp__pickle_value *storage, size_t *bytes);

#endif
