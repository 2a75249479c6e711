/* weights_torch - see weights_torch.h */
#include "weights_torch.h"

#include <stdlib.h>
#include <string.h>

/* The variable's Keras name; NULL: unknown. rank tells a batch norm's weight from a kernel. */
static const char *variable_name(const char *torch, int rank, bool normalizes)
{
  if (strcmp(torch, "weight") == 0) return rank > 1 ? "kernel" : normalizes ? "gamma" : NULL;
  if (strcmp(torch, "bias") == 0) return normalizes ? "beta" : "bias";
  if (strcmp(torch, "running_mean") == 0) return "moving_mean";
  if (strcmp(torch, "running_var") == 0) return "moving_variance";
  return NULL;
}

/* order[i]: which dimension of the source is the i-th of the result. */
static void permute(const tp__tensor *from, tp__tensor *to, const int *order)
{
  int rank = from->shape.rank;
  size_t size = tp__dtype_size(from->dtype), stride[TP__RANK_MAX], n = 1;
  int64_t at[TP__RANK_MAX] = {0};
  for (int i = rank - 1; i >= 0; i--) {
    stride[i] = n;
    n *= (size_t)from->shape.dim[i];
  }
  for (size_t k = 0; k < n; k++) {
    size_t source = 0;
    for (int i = 0; i < rank; i++) source += (size_t)at[i] * stride[order[i]];
    memcpy((char *)to->data + k * size, (const char *)from->data + source * size, size);
    for (int i = rank - 1; i >= 0 && ++at[i] == to->shape.dim[i]; i--) at[i] = 0;
  }
}

static bool ends_with(const char *text, const char *end)
{
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static bool find_layer(const tp__tensor *t, const char *dot, tp__torch_layer_fn layer,
                       char name[TP__TORCH_NAME])
{
  char torch[TP__TORCH_NAME];
  size_t n = dot == NULL ? sizeof torch : (size_t)(dot - t->name);
  if (n >= sizeof torch) return false;
  memcpy(torch, t->name, n);
  torch[n] = '\0';
  return layer(torch, name);
}

static tp_status translate(const tp__tensor *t, tp__torch_layer_fn layer_fn, const char *network,
                           tp__tensors *canonical, tp_error *err)
{
  static const int convolution[] = {2, 3, 1, 0}, depthwise[] = {2, 3, 0, 1}, dense[] = {1, 0},
                   vector[] = {0};
  char layer[TP__TORCH_NAME], name[2 * TP__TORCH_NAME];
  const char *dot = strrchr(t->name, '.');
  if (dot != NULL && strcmp(dot, ".num_batches_tracked") == 0) return TP_OK;
  bool known = find_layer(t, dot, layer_fn, layer);
  int rank = t->shape.rank;
  const char *variable = known ? variable_name(dot + 1, rank, ends_with(layer, "bn")) : NULL;
  if (variable == NULL || (rank != 1 && rank != 2 && rank != 4))
    return tp__fail(err, TP_ERR_DATA, "array \"%.80s\" does not belong to %s", t->name, network);
  const int *order = rank == 4 && ends_with(layer, "dwconv") ? depthwise
                     : rank == 4                             ? convolution
                     : rank == 2                             ? dense
                                                             : vector;
  tp__shape shape = {.rank = rank};
  for (int i = 0; i < rank; i++) shape.dim[i] = t->shape.dim[order[i]];
  snprintf(name, sizeof name, "%s/%s", layer, variable);
  if (tp__tensors_find(canonical, name) != NULL)
    return tp__fail(err, TP_ERR_DATA, "array \"%.80s\": %s is there twice", t->name, name);
  tp__tensor *to = NULL;
  TP__TRY(tp__tensors_add(canonical, name, t->dtype, &shape, &to, err));
  permute(t, to, order);
  return TP_OK;
}

tp_status tp__torch_translate(const tp__tensors *torch, tp__torch_layer_fn layer,
                              const char *network, tp__tensors *canonical, tp_error *err)
{
  tp_status status = TP_OK;
  for (size_t i = 0; status == TP_OK && i < torch->count; i++)
    status = translate(&torch->item[i], layer, network, canonical, err);
  if (status != TP_OK) tp__tensors_free(canonical);
  return status;
}
