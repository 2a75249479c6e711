/* net - building, freezing and counting; see net.h */
#include "net.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nets.h"

enum { SIDE_MIN = 32, SIDE_MAX = 4096, CLASSES_MAX = 1000000 };
static const float width_max = 8, depth_max = 6; /* blocks of a stage are lettered a...z */

/* Name, function, width and depth coefficient, the side of the pictures it was made for, Keras'
 * dropout (0: Keras' head has none), whether its official weight file needs a graph of its own. */
#define MODELS(X)                                                                                  \
  X("efficientnet-b0", efficientnet, 1.0f, 1.0f, 224, 0.2f, true)                                  \
  X("efficientnet-b1", efficientnet, 1.0f, 1.1f, 240, 0.2f, true)                                  \
  X("efficientnet-b2", efficientnet, 1.1f, 1.2f, 260, 0.3f, true)                                  \
  X("efficientnet-b3", efficientnet, 1.2f, 1.4f, 300, 0.3f, true)                                  \
  X("efficientnet-b4", efficientnet, 1.4f, 1.8f, 380, 0.4f, true)                                  \
  X("efficientnet-b5", efficientnet, 1.6f, 2.2f, 456, 0.4f, true)                                  \
  X("efficientnet-b6", efficientnet, 1.8f, 2.6f, 528, 0.5f, true)                                  \
  X("efficientnet-b7", efficientnet, 2.0f, 3.1f, 600, 0.5f, true)                                  \
  X("efficientnet-b0-timm", efficientnet_timm, 1.0f, 1.0f, 224, 0.2f, false)                       \
  X("efficientnet-b1-timm", efficientnet_timm, 1.0f, 1.1f, 240, 0.2f, false)                       \
  X("efficientnet-b2-timm", efficientnet_timm, 1.1f, 1.2f, 260, 0.3f, false)                       \
  X("efficientnet-b3-timm", efficientnet_timm, 1.2f, 1.4f, 300, 0.3f, false)                       \
  X("efficientnet-b4-timm", efficientnet_timm, 1.4f, 1.8f, 380, 0.4f, false)                       \
  X("efficientnet-lite0", efficientnet_lite0, 1.0f, 1.0f, 224, 0.2f, false)                        \
  X("mobilenet-v2", mobilenet_v2, 1.0f, 1.0f, 224, 0, false)                                       \
  X("resnet50", resnet50, 1.0f, 1.0f, 224, 0, false)                                               \
  X("resnet50-v1.5", resnet50_v1_5, 1.0f, 1.0f, 224, 0, false)                                     \
  X("resnet50-v2", resnet50_v2, 1.0f, 1.0f, 224, 0, false)                                         \
  X("densenet121", densenet121, 1.0f, 1.0f, 224, 0, false)                                         \
  X("densenet169", densenet169, 1.0f, 1.0f, 224, 0, false)                                         \
  X("densenet201", densenet201, 1.0f, 1.0f, 224, 0, false)

static const struct model {
  const char *name;
  tp__net_fn build;
  float width, depth;
  int side;
  float dropout;
  bool official_preprocessing;
} models[] = {
#define MODEL_ROW_(name, build, ...) {name, tp__nets_##build, __VA_ARGS__},
    MODELS(MODEL_ROW_)
#undef MODEL_ROW_
};
enum { N_MODELS = sizeof models / sizeof *models };

static const struct model *find_model(const char *name)
{
  for (int i = 0; name != NULL && i < N_MODELS; i++)
    if (strcmp(models[i].name, name) == 0) return &models[i];
  return NULL;
}

const char *const *tp__model_names(size_t *count)
{
#define MODEL_NAME_(name, ...) name,
  static const char *const names[] = {MODELS(MODEL_NAME_) NULL};
#undef MODEL_NAME_
  if (count != NULL) *count = N_MODELS;
  return names;
}

int tp__model_side(const char *name)
{
  const struct model *model = find_model(name);
  return model == NULL ? 0 : model->side;
}

float tp__model_dropout(const char *name)
{
  const struct model *model = find_model(name);
  return model == NULL ? 0 : model->dropout;
}

bool tp__model_has_official(const char *name)
{
  const struct model *model = find_model(name);
  return model != NULL && model->official_preprocessing;
}

/* ---- the specification ---- */

static int least(int a, int b)
{
  return a < b ? a : b;
}

/* Levenshtein's distance of two short texts. */
static int distance(const char *a, const char *b)
{
  enum { LONGEST = 64 };
  int row[LONGEST + 1];
  int n = (int)strnlen(b, LONGEST);
  for (int j = 0; j <= n; j++) row[j] = j;
  for (int i = 0; i < LONGEST && a[i] != '\0'; i++) {
    int diagonal = row[0];
    row[0] = i + 1;
    for (int j = 1; j <= n; j++) {
      int above = row[j];
      row[j] = least(least(above, row[j - 1]) + 1, diagonal + (a[i] != b[j - 1]));
      diagonal = above;
    }
  }
  return row[n];
}

/* How far a model's name is from what was written; a part of a name ("lite0") is near. */
static int remoteness(const char *written, const char *name)
{
  bool part = written[0] != '\0' && strstr(name, written) != NULL;
  return part ? 0 : distance(written, name);
}

static tp_status unknown_model(const char *name, tp_error *err)
{
  char list[512] = "";
  size_t nearest = 0;
  for (size_t i = 0; i < N_MODELS; i++) {
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", models[i].name);
    if (remoteness(name, models[i].name) < remoteness(name, models[nearest].name)) nearest = i;
  }
  if ((size_t)remoteness(name, models[nearest].name) * 2 > strlen(name))
    return tp__fail(err, TP_ERR_USAGE, "unknown model \"%.64s\": the models are: %s", name, list);
  return tp__fail(err, TP_ERR_USAGE, "unknown model \"%.64s\": was %s meant? The models are: %s",
                  name, models[nearest].name, list);
}

static bool coefficient_ok(float value, float max)
{
  return value == 0 || (isfinite(value) && value > 0 && value <= max);
}

static tp_status check_spec(const tp__model_spec *spec, const struct model **model, tp_error *err)
{
  *model = find_model(spec->name);
  if (*model == NULL) return unknown_model(spec->name == NULL ? "" : spec->name, err);
  if (spec->height < SIDE_MIN || spec->width < SIDE_MIN || spec->height > SIDE_MAX ||
      spec->width > SIDE_MAX)
    return tp__fail(err, TP_ERR_USAGE, "%s: pictures of %dx%d: each side must be %d to %d pixels",
                    spec->name, spec->height, spec->width, SIDE_MIN, SIDE_MAX);
  if (spec->classes < 0 || spec->classes > CLASSES_MAX)
    return tp__fail(err, TP_ERR_USAGE, "%s: %d classes: must be 0 (no head) to %d", spec->name,
                    spec->classes, CLASSES_MAX);
  if (!(spec->dropout >= 0 && spec->dropout < 1))
    return tp__fail(err, TP_ERR_USAGE, "%s: dropout %g: must be at least 0 and less than 1",
                    spec->name, (double)spec->dropout);
  if (!coefficient_ok(spec->width_coefficient, width_max) ||
      !coefficient_ok(spec->depth_coefficient, depth_max))
    return tp__fail(err, TP_ERR_USAGE,
                    "%s: width coefficient %g, depth coefficient %g: must be 0 (the model's own) "
                    "or more, at most %g and %g",
                    spec->name, (double)spec->width_coefficient, (double)spec->depth_coefficient,
                    (double)width_max, (double)depth_max);
  if (spec->official_preprocessing && !(*model)->official_preprocessing)
    return tp__fail(err, TP_ERR_USAGE,
                    "%s has one preprocessing only; official_preprocessing is for "
                    "efficientnet-b0 to b7 with the weight files of Keras",
                    spec->name);
  return TP_OK;
}

/* The number that was written: ceil(0.4 * 5) is 2, but the float nearest to 0.4 is larger than 0.4.
 */
static double as_written(float value)
{
  char text[32];
  snprintf(text, sizeof text, "%.7g", (double)value);
  return strtod(text, NULL);
}

/* ---- build ---- */

/* batch_from: the first layer whose batch norm goes by the batch. */
static tp_status build(const tp__model_spec *spec, bool training, int batch_from,
                       float drop_connect, const tp__net_augment *augment, tp__net **net,
                       tp_error *err)
{
  *net = NULL;
  const struct model *model = NULL;
  TP__TRY(check_spec(spec, &model, err));
  tp__net *n = tp__calloc(1, sizeof *n, err);
  if (n == NULL) return TP_ERR_INTERNAL;
  n->training = training;
  n->name = model->name;
  n->pixels = n->keys = n->features = n->logits = n->probabilities = TP__NONE;
  float width = spec->width_coefficient > 0 ? spec->width_coefficient : model->width;
  float depth = spec->depth_coefficient > 0 ? spec->depth_coefficient : model->depth;
  tp__net_builder b = {.net = n,
                       .spec = spec,
                       .width = as_written(width),
                       .depth = as_written(depth),
                       .batch_from = batch_from,
                       .momentum = 0.99f,
                       .drop_connect = drop_connect,
                       .augment = augment,
                       .prefix = "",
                       .pool = "avg_pool",
                       .kernel_init = TP__INIT_FAN_OUT,
                       .err = err};
  b.status = tp__graph_new(&n->graph, err);
  if (b.status == TP_OK) model->build(&b);
  if (b.status != TP_OK) {
    tp__net_free(n);
    return tp__at(err, b.status, "%s at %dx%d", spec->name, spec->height, spec->width);
  }
  *net = n;
  return TP_OK;
}

tp_status tp__net_build(const tp__model_spec *spec, bool training, tp__net **net, tp_error *err)
{
  return build(spec, training, INT_MAX, 0, NULL, net, err);
}

/* Which layers train is known only when all are there: a second build then knows it from the start.
 */
tp_status tp__net_build_training(const tp__model_spec *spec, const tp__net_training *how,
                                 tp__net **net, tp_error *err)
{
  TP__TRY(build(spec, true, INT_MAX, 0, &how->augment, net, err));
  tp_status status = tp__net_freeze(*net, how->last_n, err);
  if (status == TP_OK && how->batch_statistics && how->last_n != 0) {
    int first = 0;
    while (!(*net)->layer[first].trainable) first++;
    tp__net_free(*net);
    TP__TRY(build(spec, true, first, how->drop_connect, &how->augment, net, err));
    status = tp__net_freeze(*net, how->last_n, err);
  }
  if (status == TP_OK) return TP_OK;
  tp__net_free(*net);
  *net = NULL;
  return status;
}

void tp__net_free(tp__net *net)
{
  if (net == NULL) return;
  tp__graph_free(net->graph);
  free(net->layer);
  free(net->parameter);
  tp__arena_free(&net->arena);
  free(net);
}

int tp__net_find(const tp__net *net, const char *name)
{
  for (int i = 0; i < net->n_layers; i++)
    if (strcmp(net->layer[i].name, name) == 0) return i;
  return -1;
}

/* ---- freezing and counting ---- */

tp_status tp__net_freeze(tp__net *net, int last_n, tp_error *err)
{
  int backbone = 0;
  while (backbone < net->n_layers && !net->layer[backbone].head) backbone++;
  if (last_n > backbone)
    return tp__fail(err, TP_ERR_USAGE,
                    "the last %d layers cannot be trained: the backbone has %d; take fewer", last_n,
                    backbone);
  for (int i = 0; i < net->n_layers; i++)
    net->layer[i].trainable = i >= backbone || last_n < 0 || i >= backbone - last_n;
  return TP_OK;
}

bool tp__net_trains(const tp__net *net, int parameter)
{
  const tp__parameter *p = &net->parameter[parameter];
  return !p->statistic && net->layer[p->layer].trainable;
}

void tp__net_count(const tp__net *net, int64_t *total, int64_t *trainable)
{
  *total = *trainable = 0;
  for (int i = 0; i < net->n_parameters; i++) {
    int64_t n = (int64_t)tp__shape_elements(&net->parameter[i].shape, 0);
    *total += n;
    if (tp__net_trains(net, i)) *trainable += n;
  }
}
