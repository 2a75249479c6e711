/* weights_lite0 - a PyTorch efficientnet-lite0 state dict under canonical names and layouts; see
 * weights.h
 *
 * PyTorch's names number the blocks through, Keras' have stage and letter: _blocks.3 is block3a. A
 * convolution's weight is [out,in,kh,kw] there and [kh,kw,in,out] here, a depthwise one
 * [channels,1,kh,kw] and [kh,kw,channels,1], a linear layer's [out,in] and [in,out].
 * num_batches_tracked has no counterpart and is dropped. The first block of the network has no
 * expansion, so its _bn1 follows the depthwise convolution as in all others.
 */
#include <stdlib.h>
#include <string.h>

#include "weights.h"

/* "_blocks.3._bn1" -> "block3a_bn" in text; false when it is no layer of Lite0. */
static bool layer_name(const char *torch, size_t size, char text[64])
{
  static const struct {
    const char *torch, *name;
  } outside[] = {{"_conv_stem", "stem_conv"},
                 {"_bn0", "stem_bn"},
                 {"_conv_head", "top_conv"},
                 {"_bn1", "top_bn"},
                 {"_fc", "predictions"}},
    inside[] = {{"_expand_conv", "expand_conv"},   {"_bn0", "expand_bn"},
                {"_depthwise_conv", "dwconv"},     {"_bn1", "bn"},
                {"_project_conv", "project_conv"}, {"_bn2", "project_bn"}};
  static const int repeats[] = {1, 2, 2, 3, 3, 4, 1};
  char copy[64];
  int number = -1, used = 0;
  if (size >= sizeof copy) return false;
  memcpy(copy, torch, size);
  copy[size] = '\0';
  if (sscanf(copy, "_blocks.%2d.%n", &number, &used) != 1 || used == 0) {
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
      if (strcmp(copy, outside[i].torch) == 0) {
        snprintf(text, 64, "%s", outside[i].name);
        return true;
      }
    return false;
  }
  int stage = 0;
  while (number >= 0 && stage < 7 && number >= repeats[stage]) number -= repeats[stage++];
  for (size_t i = 0; number >= 0 && stage < 7 && i < sizeof inside / sizeof *inside; i++)
    if (strcmp(copy + used, inside[i].torch) == 0) {
      snprintf(text, 64, "block%d%c_%s", stage + 1, 'a' + number, inside[i].name);
      return true;
    }
  return false;
}

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

static tp_status translate(const tp__tensor *t, tp__tensors *canonical, tp_error *err)
{
  static const int convolution[] = {2, 3, 1, 0}, depthwise[] = {2, 3, 0, 1}, dense[] = {1, 0},
                   vector[] = {0};
  char layer[64], name[96];
  const char *dot = strrchr(t->name, '.');
  if (dot != NULL && strcmp(dot, ".num_batches_tracked") == 0) return TP_OK;
  bool known = dot != NULL && layer_name(t->name, (size_t)(dot - t->name), layer);
  size_t n = known ? strlen(layer) : 0;
  bool normalizes = n > 3 && strcmp(layer + n - 3, "_bn") == 0;
  const char *variable = known ? variable_name(dot + 1, t->shape.rank, normalizes) : NULL;
  int rank = t->shape.rank;
  if (variable == NULL || (rank != 1 && rank != 2 && rank != 4))
    return tp__fail(err, TP_ERR_DATA, "array \"%.80s\" does not belong to EfficientNet-Lite0",
                    t->name);
  bool is_depthwise = rank == 4 && strstr(layer, "dwconv") != NULL;
  const int *order = is_depthwise ? depthwise
                     : rank == 4  ? convolution
                     : rank == 2  ? dense
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

tp_status tp__weights_from_torch_lite0(const tp__tensors *torch, tp__tensors *canonical,
                                       tp_error *err)
{
  tp_status status = TP_OK;
  for (size_t i = 0; status == TP_OK && i < torch->count; i++)
    status = translate(&torch->item[i], canonical, err);
  if (status != TP_OK) tp__tensors_free(canonical);
  return status;
}
