/* h5_write - builds a Keras 2 (legacy) weights file in memory and sends it; runs only in the child
 * process (child.h).
 *
 *   /                        attributes backend, keras_version, layer_names (all, in model order)
 *   /LAYER                   attribute weight_names: ["LAYER/kernel:0", ...], may be empty
 *   /LAYER/LAYER/kernel:0    contiguous dataset
 *   /top_level_model_weights
 *
 * Readers give a layer's arrays to its variables by position in weight_names, so they are put in
 * Keras' order whatever the set's order is.
 *
 * Keras 2 calls a depthwise kernel depthwise_kernel. A tensor set does not know the operator, so
 * the rule is: a kernel [h,w,channels,1] of a layer with "dwconv" or "depthwise" in its name, which
 * is how Keras' EfficientNets and Keras' own default names call such layers. Keras does not need
 * it, it goes by position; it is there for people and for tools that go by name.
 *
 * Strings have a fixed length and object times are off: equal weights give equal bytes. The file
 * has libhdf5's oldest version (superblock 0).
 */
#include <hdf5.h>
#include <stdlib.h>
#include <string.h>

#include "h5_strings.h"
#include "h5_wire.h"

/* A layer's place in the file and its tensors in Keras' order. */
typedef struct layer {
  const char *name;
  const tp__tensor **tensor;
  const char **stored; /* "LAYER/kernel:0" */
  size_t count;
} layer;

/* Position of a variable in its layer; unknown ones keep the set's order, after the known. */
static int rank_of(const char *variable)
{
  static const char *const order[] = {"mean",        "variance",        "count",  "gamma", "beta",
                                      "moving_mean", "moving_variance", "kernel", "bias"};
  for (size_t i = 0; i < sizeof order / sizeof *order; i++)
    if (strcmp(variable, order[i]) == 0) return (int)i;
  return 100;
}

static const char *variable_of(const tp__tensor *t)
{
  return strchr(t->name, '/') + 1;
}

static const char *stored_name(const tp__tensor *t, tp__arena *arena)
{
  const char *slash = strchr(t->name, '/');
  int n = (int)(slash - t->name);
  const char *layer_name = tp__arena_format(arena, "%.*s", n, t->name);
  if (layer_name == NULL) return NULL;
  bool depthwise =
      strcmp(slash + 1, "kernel") == 0 && t->shape.rank == 4 && t->shape.dim[3] == 1 &&
      (strstr(layer_name, "dwconv") != NULL || strstr(layer_name, "depthwise") != NULL);
  return tp__arena_format(arena, "%s/%s:0", layer_name, depthwise ? "depthwise_kernel" : slash + 1);
}

/* Collects a layer's tensors, sorted. `placed` counts over all layers. */
static tp_status collect(const tp__tensors *set, layer *l, tp__arena *arena, size_t *placed,
                         tp_error *err)
{
  size_t n = strlen(l->name);
  l->tensor = tp__arena_alloc(arena, set->count * sizeof *l->tensor);
  l->stored = tp__arena_alloc(arena, set->count * sizeof *l->stored);
  if (l->tensor == NULL || l->stored == NULL) return tp__no_memory(err, set->count);
  for (size_t i = 0; i < set->count; i++) {
    const tp__tensor *t = &set->item[i];
    if (strncmp(t->name, l->name, n) != 0 || t->name[n] != '/') continue;
    size_t at = l->count++;
    for (; at > 0 && rank_of(variable_of(l->tensor[at - 1])) > rank_of(variable_of(t)); at--)
      l->tensor[at] = l->tensor[at - 1];
    l->tensor[at] = t;
  }
  for (size_t i = 0; i < l->count; i++)
    if ((l->stored[i] = stored_name(l->tensor[i], arena)) == NULL) return tp__no_memory(err, n);
  *placed += l->count;
  return TP_OK;
}

static hid_t number_type(tp__dtype dtype)
{
  switch (dtype) {
  case TP__F32:
    return H5T_IEEE_F32LE;
  case TP__F64:
    return H5T_IEEE_F64LE;
  case TP__I32:
    return H5T_STD_I32LE;
  case TP__U32:
    return H5T_STD_U32LE;
  case TP__U8:
    return H5T_STD_U8LE;
  case TP__I64:
    return H5T_STD_I64LE;
  case TP__F16:
  case TP__BF16:
    break;
  }
  return -1;
}

static tp_status write_array(hid_t group, const char *name, const tp__tensor *t, hid_t intermediate,
                             hid_t untimed, tp_error *err)
{
  hid_t type = number_type(t->dtype);
  if (type < 0)
    return tp__fail(err, TP_ERR_INTERNAL, "array %.100s: %s is not written to .h5", name,
                    tp__dtype_name(t->dtype));
  hsize_t dim[TP__RANK_MAX];
  for (int i = 0; i < t->shape.rank; i++) dim[i] = (hsize_t)t->shape.dim[i];
  hid_t space =
      t->shape.rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(t->shape.rank, dim, NULL);
  hid_t dataset = H5Dcreate2(group, name, type, space, intermediate, untimed, H5P_DEFAULT);
  bool good = dataset >= 0 && H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, t->data) >= 0;
  if (dataset >= 0) H5Dclose(dataset);
  H5Sclose(space);
  return good ? TP_OK : tp__fail(err, TP_ERR_INTERNAL, "array %.100s could not be written", name);
}

static tp_status write_layer(hid_t file, const layer *l, hid_t intermediate, hid_t untimed,
                             tp_error *err)
{
  hid_t group = H5Gcreate2(file, l->name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (group < 0) return tp__fail(err, TP_ERR_INTERNAL, "layer %.100s could not be made", l->name);
  tp_status status = tp__h5_write_strings(group, "weight_names", l->stored, l->count, err);
  for (size_t i = 0; status == TP_OK && i < l->count; i++)
    status = write_array(group, l->stored[i], l->tensor[i], intermediate, untimed, err);
  H5Gclose(group);
  return status;
}

static tp_status write_layers(hid_t file, const tp__h5_writing *job, tp_error *err)
{
  hid_t intermediate = H5Pcreate(H5P_LINK_CREATE), untimed = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_create_intermediate_group(intermediate, 1);
  H5Pset_obj_track_times(untimed, 0);
  size_t placed = 0;
  tp_status status = TP_OK;
  for (size_t i = 0; status == TP_OK && i < job->n_layers; i++) {
    tp__arena arena = {0};
    layer l = {.name = job->layers[i]};
    status = collect(job->set, &l, &arena, &placed, err);
    if (status == TP_OK) status = write_layer(file, &l, intermediate, untimed, err);
    tp__arena_free(&arena);
  }
  if (status == TP_OK && placed != job->set->count)
    status = tp__fail(err, TP_ERR_INTERNAL, "%zu of %zu arrays belong to no listed layer",
                      job->set->count - placed, job->set->count);
  H5Pclose(untimed);
  H5Pclose(intermediate);
  layer top = {.name = "top_level_model_weights"};
  return status == TP_OK ? write_layer(file, &top, H5P_DEFAULT, H5P_DEFAULT, err) : status;
}

static tp_status write_file(hid_t file, const tp__h5_writing *job, tp_error *err)
{
  TP__TRY(tp__h5_write_strings(file, "layer_names", job->layers, job->n_layers, err));
  TP__TRY(tp__h5_write_string(file, "backend", "tensorflow", err));
  TP__TRY(tp__h5_write_string(file, "keras_version", "2.15.0", err));
  TP__TRY(write_layers(file, job, err));
  return H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 ? TP_OK
                                               : tp__fail(err, TP_ERR_INTERNAL, "out of memory");
}

static tp_status build_and_send(const tp__h5_writing *job, int out, tp_error *err)
{
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(access, 1 << 20, 0); /* in memory, no file behind it */
  hid_t file = H5Fcreate("weights.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access);
  if (file < 0) return tp__fail(err, TP_ERR_INTERNAL, "out of memory");
  TP__TRY(write_file(file, job, err));
  ssize_t size = H5Fget_file_image(file, NULL, 0);
  void *image = size > 0 ? malloc((size_t)size) : NULL;
  if (image == NULL || H5Fget_file_image(file, image, (size_t)size) != size)
    return tp__no_memory(err, size > 0 ? (size_t)size : 0);
  return tp__h5_send(out, TP__H5_IMAGE, "", NULL, image, (uint64_t)size) ? TP_OK : TP_ERR_INTERNAL;
}

/* Frees nothing on the way out: the process ends. */
int tp__h5_write_body(void *arg, int in, int out)
{
  tp_error err = {0};
  (void)in;
  tp__h5_quiet();
  tp_status status = build_and_send(arg, out, &err);
  if (status == TP_OK) return tp__h5_send(out, TP__H5_END, "", NULL, NULL, 0) ? 0 : 1;
  return tp__h5_send(out, TP__H5_ERROR, err.text, NULL, NULL, 0) ? 0 : 1;
}
