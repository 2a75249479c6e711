/* weights_lite0 - the layers' names in a PyTorch efficientnet-lite0 state dict; see weights.h
 *
 * PyTorch's names number the blocks through, Keras' have stage and letter: _blocks.3 is block3a.
 * The first block of the network has no expansion, so its _bn1 follows the depthwise convolution as
 * in all others.
 */
#include <string.h>

#include "weights_torch.h"

/* "_blocks.3._bn1" -> "block3a_bn" in text; false when it is no layer of Lite0. */
static bool layer_name(const char *torch, char text[TP__TORCH_NAME])
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
  int number = -1, used = 0;
  if (sscanf(torch, "_blocks.%2d.%n", &number, &used) != 1 || used == 0) {
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
      if (strcmp(torch, outside[i].torch) == 0) {
        snprintf(text, TP__TORCH_NAME, "%s", outside[i].name);
        return true;
      }
    return false;
  }
  int stage = 0;
  while (number >= 0 && stage < 7 && number >= repeats[stage]) number -= repeats[stage++];
  for (size_t i = 0; number >= 0 && stage < 7 && i < sizeof inside / sizeof *inside; i++)
    if (strcmp(torch + used, inside[i].torch) == 0) {
      snprintf(text, TP__TORCH_NAME, "block%d%c_%s", stage + 1, 'a' + number, inside[i].name);
      return true;
    }
  return false;
}

tp_status tp__weights_from_torch_lite0(const tp__tensors *torch, tp__tensors *canonical,
                                       tp_error *err)
{
  return tp__torch_translate(torch, layer_name, "EfficientNet-Lite0", canonical, err);
}
