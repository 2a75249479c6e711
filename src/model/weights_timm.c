/* weights_timm - see weights_timm.h */
#include "weights_timm.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "weights_torch.h"

enum { CONFIG_MAX = 1 << 20 };

static const double imagenet_mean[3] = {0.485, 0.456, 0.406},
                    imagenet_deviation[3] = {0.229, 0.224, 0.225};

/* What is known of a file besides its arrays. */
typedef struct source {
  char architecture[64]; /* "tf_efficientnet_b0" */
  bool config;           /* config.json says so, else the file's name */
  double mean[3], deviation[3];
} source;

/* ---- names of layers ---- */

typedef struct pair {
  const char *torch, *name;
} pair;

static bool look_up(const pair *table, size_t n, const char *torch, const char *prefix,
                    char name[TP__TORCH_NAME])
{
  for (size_t i = 0; i < n; i++)
    if (strcmp(torch, table[i].torch) == 0) {
      snprintf(name, TP__TORCH_NAME, "%s%s", prefix, table[i].name);
      return true;
    }
  return false;
}

#define LOOK_UP(table, torch, prefix, name)                                                        \
  look_up(table, sizeof(table) / sizeof *(table), torch, prefix, name)

/* blocks.STAGE.BLOCK: the first stage's blocks have no expansion, and number their parts from the
 * depthwise convolution. */
static bool efficientnet_layer(const char *torch, char name[TP__TORCH_NAME])
{
  static const pair outside[] = {{"conv_stem", "stem_conv"},
                                 {"bn1", "stem_bn"},
                                 {"conv_head", "top_conv"},
                                 {"bn2", "top_bn"},
                                 {"classifier", "predictions"}},
                    first[] = {{"conv_dw", "dwconv"},           {"bn1", "bn"},
                               {"se.conv_reduce", "se_reduce"}, {"se.conv_expand", "se_expand"},
                               {"conv_pw", "project_conv"},     {"bn2", "project_bn"}},
                    inside[] = {{"conv_pw", "expand_conv"},      {"bn1", "expand_bn"},
                                {"conv_dw", "dwconv"},           {"bn2", "bn"},
                                {"se.conv_reduce", "se_reduce"}, {"se.conv_expand", "se_expand"},
                                {"conv_pwl", "project_conv"},    {"bn3", "project_bn"}};
  char prefix[32];
  int stage = -1, block = -1, used = 0;
  if (sscanf(torch, "blocks.%1d.%2d.%n", &stage, &block, &used) != 2 || used == 0)
    return LOOK_UP(outside, torch, "", name);
  if (stage < 0 || block < 0 || block >= 26) return false;
  snprintf(prefix, sizeof prefix, "block%d%c_", stage + 1, 'a' + block);
  return stage == 0 ? LOOK_UP(first, torch + used, prefix, name)
                    : LOOK_UP(inside, torch + used, prefix, name);
}

static bool resnet_layer(const char *torch, char name[TP__TORCH_NAME])
{
  static const pair outside[] = {{"conv1", "conv1_conv"},
                                 {"bn1", "conv1_bn"},
                                 {"fc", "predictions"}},
                    inside[] = {{"conv1", "1_conv"},        {"bn1", "1_bn"},
                                {"conv2", "2_conv"},        {"bn2", "2_bn"},
                                {"conv3", "3_conv"},        {"bn3", "3_bn"},
                                {"downsample.0", "0_conv"}, {"downsample.1", "0_bn"}};
  char prefix[32];
  int stage = -1, block = -1, used = 0;
  if (sscanf(torch, "layer%1d.%2d.%n", &stage, &block, &used) != 2 || used == 0)
    return LOOK_UP(outside, torch, "", name);
  if (stage < 1 || block < 0) return false;
  snprintf(prefix, sizeof prefix, "conv%d_block%d_", stage + 1, block + 1);
  return LOOK_UP(inside, torch + used, prefix, name);
}

/* ---- which network it is ---- */

static const char *base_of(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

/* Three numbers of pretrained_cfg; absent ones stay. */
static void read_colours(const cJSON *config, const char *name, double colour[3])
{
  const cJSON *list = cJSON_GetObjectItem(cJSON_GetObjectItem(config, "pretrained_cfg"), name);
  if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != 3) return;
  for (int c = 0; c < 3; c++) {
    const cJSON *value = cJSON_GetArrayItem(list, c);
    if (cJSON_IsNumber(value)) colour[c] = value->valuedouble;
  }
}

/* The config.json beside the file; source unchanged without one that names an architecture. */
static tp_status read_config(const char *path, source *s, tp_error *err)
{
  tp__buffer text;
  tp__buffer_init(&text, CONFIG_MAX);
  char *config = tp__format("%.*sconfig.json", (int)(base_of(path) - path), path);
  if (config == NULL) return tp__no_memory(err, strlen(path));
  tp_status status = tp__is_file(config) ? tp__file_read(config, &text, err) : TP_OK;
  cJSON *root = text.size > 0 ? cJSON_ParseWithLength((const char *)text.data, text.size) : NULL;
  const cJSON *architecture = cJSON_GetObjectItem(root, "architecture");
  if (status == TP_OK && cJSON_IsString(architecture)) {
    snprintf(s->architecture, sizeof s->architecture, "%s", architecture->valuestring);
    s->config = true;
    read_colours(root, "mean", s->mean);
    read_colours(root, "std", s->deviation);
  }
  cJSON_Delete(root);
  tp__buffer_free(&text);
  free(config);
  return status;
}

static tp_status find_source(const char *path, source *s, tp_error *err)
{
  *s = (source){0};
  memcpy(s->mean, imagenet_mean, sizeof s->mean);
  memcpy(s->deviation, imagenet_deviation, sizeof s->deviation);
  TP__TRY(read_config(path, s, err));
  const char *base = base_of(path);
  if (!s->config)
    snprintf(s->architecture, sizeof s->architecture, "%.*s", (int)strcspn(base, ".-"), base);
  for (int c = 0; c < 3; c++)
    if (!(s->deviation[c] > 0 && s->deviation[c] < 1e3 && fabs(s->mean[c]) < 1e3))
      return tp__fail(err, TP_ERR_DATA, "config.json: its mean and std are no colours of 0...1");
  return TP_OK;
}

/* name, or name followed by "_..." (the training recipe). */
static bool is_named(const char *architecture, const char *name)
{
  size_t n = strlen(name);
  return strncmp(architecture, name, n) == 0 && (architecture[n] == '\0' || architecture[n] == '_');
}

static tp_status unlike(const source *s, const char *wanted, const char *reason, tp_error *err)
{
  char shown[80];
  size_t n = strlen(s->architecture);
  memcpy(shown, s->architecture, n + 1);
  for (size_t i = 0; i < n; i++)
    if (shown[i] < ' ' || shown[i] > '~') shown[i] = '?';
  return tp__fail(
      err, TP_ERR_DATA,
      "%s says this is \"%s\"; wanted is %s, as others with the same arrays %s. Put its "
      "config.json beside the file, or call it %s.safetensors, if it is",
      s->config ? "config.json" : "the file's name", shown, wanted, reason, wanted);
}

static tp_status check_efficientnet(const char *path, const source *s, const char *network,
                                    tp_error *err)
{
  char wanted[64];
  const char *base = base_of(path);
  if (strncmp(network, "efficientnet-b", 14) != 0)
    return tp__fail(err, TP_ERR_DATA, "is an EfficientNet of timm; %s is wanted", network);
  bool plain = strstr(network, "-timm") != NULL;
  snprintf(wanted, sizeof wanted, "%sefficientnet_%.2s", plain ? "" : "tf_", network + 13);
  if (!is_named(s->architecture, wanted))
    return unlike(s, wanted, "pad otherwise and have another epsilon", err);
  if (!s->config && (strstr(base, "_ap") != NULL || strstr(base, ".ap") != NULL))
    return tp__fail(err, TP_ERR_DATA,
                    "was trained on pixels of another mean and deviation than ImageNet's: its "
                    "config.json must lie beside it");
  return TP_OK;
}

static tp_status check_resnet(const source *s, const char *network, tp_error *err)
{
  if (strcmp(network, "resnet50-v1.5") != 0)
    return tp__fail(err, TP_ERR_DATA,
                    "is a ResNet of timm or torchvision, whose stride is in the 3x3 convolution; "
                    "that network is resnet50-v1.5, and %s is wanted",
                    network);
  if (!is_named(s->architecture, "resnet50"))
    return unlike(s, "resnet50", "stride or filter otherwise", err);
  for (int c = 0; c < 3; c++)
    if (fabs(s->mean[c] - imagenet_mean[c]) > 1e-6 ||
        fabs(s->deviation[c] - imagenet_deviation[c]) > 1e-6)
      return tp__fail(err, TP_ERR_DATA,
                      "config.json: pixels of another mean and deviation than ImageNet's, which "
                      "resnet50-v1.5 has");
  return TP_OK;
}

/* ---- translation ---- */

static tp_status add_normalization(const source *s, tp__tensors *canonical, tp_error *err)
{
  tp__tensor *mean = NULL, *variance = NULL, *count = NULL;
  tp__shape three = {.rank = 1, .dim = {3}}, scalar = {0};
  TP__TRY(tp__tensors_add(canonical, "normalization/mean", TP__F32, &three, &mean, err));
  for (int c = 0; c < 3; c++) ((float *)mean->data)[c] = (float)s->mean[c];
  TP__TRY(tp__tensors_add(canonical, "normalization/variance", TP__F32, &three, &variance, err));
  for (int c = 0; c < 3; c++)
    ((float *)variance->data)[c] = (float)(s->deviation[c] * s->deviation[c]);
  return tp__tensors_add(canonical, "normalization/count", TP__I64, &scalar, &count, err);
}

static bool is_efficientnet(const tp__tensors *torch)
{
  return tp__tensors_find(torch, "conv_stem.weight") != NULL;
}

bool tp__weights_is_timm(const tp__tensors *torch)
{
  return is_efficientnet(torch) || (tp__tensors_find(torch, "conv1.weight") != NULL &&
                                    tp__tensors_find(torch, "layer1.0.conv1.weight") != NULL);
}

tp_status tp__weights_from_timm(const char *path, const tp__tensors *torch, const char *network,
                                tp__tensors *canonical, tp_error *err)
{
  source s;
  bool efficientnet = is_efficientnet(torch);
  TP__TRY(find_source(path, &s, err));
  TP__TRY(efficientnet ? check_efficientnet(path, &s, network, err)
                       : check_resnet(&s, network, err));
  TP__TRY(tp__torch_translate(torch, efficientnet ? efficientnet_layer : resnet_layer, network,
                              canonical, err));
  tp_status status = efficientnet ? add_normalization(&s, canonical, err) : TP_OK;
  if (status != TP_OK) tp__tensors_free(canonical);
  return status;
}
