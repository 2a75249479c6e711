/* export - see export.h */
#include "export.h"

#include <stdlib.h>
#include <string.h>

#include "model/weights.h"

/* Official EfficientNet files hold standard deviations where variances belong, and our graph for
 * them divides by the square root twice; in Keras' plain graph the square of the number has the
 * same effect. */
static tp_status square_variance(tp__tensors *view, float **squared, tp_error *err)
{
  tp__tensor *variance = tp__tensors_find(view, "normalization/variance");
  if (variance == NULL) return TP_OK;
  const size_t n = tp__shape_elements(&variance->shape, 0);
  const float *from = variance->data;
  *squared = tp__calloc(n, sizeof **squared, err);
  if (*squared == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < n; i++) (*squared)[i] = from[i] * from[i];
  variance->data = *squared;
  return TP_OK;
}

/* The same tensors in a list of its own, so that one of them may be another. */
static tp_status make_view(const tp__tensors *weights, tp__tensors *view, tp_error *err)
{
  view->item = tp__calloc(weights->count, sizeof *view->item, err);
  if (view->item == NULL) return TP_ERR_INTERNAL;
  view->count = weights->count;
  memcpy(view->item, weights->item, weights->count * sizeof *view->item);
  return TP_OK;
}

static bool ends_with(const char *text, const char *end)
{
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

tp_status tp__export(const char *path, const tp__identity *identity, const tp__tensors *weights,
                     tp_error *err)
{
  tp__tensors view = {0};
  tp__net *net = NULL;
  const char **layers = NULL;
  float *squared = NULL;
  tp_status status = make_view(weights, &view, err);
  if (status == TP_OK && identity->spec.official_preprocessing)
    status = square_variance(&view, &squared, err);
  if (status == TP_OK) status = tp__net_build(&identity->spec, false, &net, err);
  if (status != TP_OK) goto out;
  if (ends_with(path, ".safetensors")) {
    status = tp__weights_write_safetensors(path, &view, NULL, err);
    goto out;
  }
  if (!ends_with(path, ".h5")) {
    status = tp__fail(err, TP_ERR_USAGE, "%s: weights are written as .h5 or .safetensors", path);
    goto out;
  }
  layers = tp__calloc((size_t)net->n_layers, sizeof *layers, err);
  status = layers == NULL ? TP_ERR_INTERNAL : TP_OK;
  size_t n = 0;
  for (int i = 0; status == TP_OK && i < net->n_layers; i++) {
    /* rescaling_1 belongs to the official graph alone; it has no weights. */
    if (strcmp(net->layer[i].name, "rescaling_1") != 0) layers[n++] = net->layer[i].name;
  }
  if (status == TP_OK) status = tp__weights_write_h5(path, &view, layers, n, err);
out:
  free(layers);
  tp__net_free(net);
  free(view.item);
  free(squared);
  return status;
}
