/* weights_load - see weights_load.h */
#include "weights_load.h"

#include <string.h>

#include "weights_timm.h"

static const char *head_of(const tp__net *net)
{
  for (int i = net->n_layers - 1; i >= 0; i--)
    if (net->layer[i].head && net->layer[i].n_parameters > 0) return net->layer[i].name;
  return NULL;
}

static bool has_layer(const tp__tensors *set, const char *layer)
{
  size_t n = strlen(layer);
  for (size_t i = 0; i < set->count; i++)
    if (strncmp(set->item[i].name, layer, n) == 0 && set->item[i].name[n] == '/') return true;
  return false;
}

tp_status tp__weights_load(const char *path, const tp__net *net, tp__tensors *weights,
                           bool skip_head, const tp__log *log, tp_error *err)
{
  tp__tensors file = {0}, renamed = {0};
  const char *format = NULL, *head = head_of(net);
  tp_status status = tp__weights_read(path, &file, &format, NULL, err);
  const tp__tensors *from = &file;
  bool lite0 = tp__tensors_find(&file, "_conv_stem.weight") != NULL;
  if (status == TP_OK && (lite0 || tp__weights_is_timm(&file))) {
    status = lite0 ? tp__weights_from_torch_lite0(&file, &renamed, err)
                   : tp__weights_from_timm(path, &file, net->name, &renamed, err);
    if (status != TP_OK) status = tp__at(err, status, "%s", path);
    from = &renamed;
  }
  if (status == TP_OK) {
    bool headless = head != NULL && !has_layer(from, head);
    status = tp__weights_match(from, weights, head, skip_head || headless, path, log, NULL, err);
  }
  tp__tensors_free(&file);
  tp__tensors_free(&renamed);
  return status;
}
