/* h5_child - opens a Keras HDF5 file with libhdf5 and reads legacy models; runs only in the child
 * process (child.h). See also h5_keras3.c and h5_array.c.
 *
 * Legacy: attribute layer_names of the root or of /model_weights lists groups, attribute
 * weight_names of each group lists datasets in it. A nested model is one group that lists all its
 * weights. (keras/src/legacy/saving/legacy_h5_format.py, Keras 3.15.)
 *
 * Nothing outside the file is ever opened: external links, external and virtual storage and filter
 * plugins are refused.
 */
#include "h5_child.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "h5_strings.h"

void tp__h5_quiet(void)
{
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  H5PLset_loading_state(0);
}

static herr_t no_external_link(const char *parent_file, const char *parent_group,
                               const char *child_file, const char *child_object, unsigned *flags,
                               hid_t fapl, void *user)
{
  (void)parent_file, (void)parent_group, (void)child_file, (void)child_object, (void)flags;
  (void)fapl, (void)user;
  return -1;
}

/* ---- legacy files ---- */

/* The name of a layer's weight with the layer's before it. A layer's own slashes become "_": Keras
 * 2's DenseNet has a "conv1/conv", which Keras 3 calls "conv1_conv". NULL: no memory. */
static const char *weight_name(tp__h5_reader *r, const char *layer, const char *weight)
{
  size_t n = strlen(layer);
  if (strchr(weight, '/') == NULL) return tp__arena_format(&r->arena, "%s/%s", layer, weight);
  if (strchr(layer, '/') == NULL || strncmp(weight, layer, n) != 0 || weight[n] != '/')
    return weight;
  char *name = tp__arena_strdup(&r->arena, weight);
  for (size_t i = 0; name != NULL && i < n; i++)
    if (name[i] == '/') name[i] = '_';
  return name;
}

static tp_status read_layer(tp__h5_reader *r, hid_t group, const char *layer, tp_error *err)
{
  tp__h5_strings weights;
  TP__TRY(tp__h5_read_strings(group, "weight_names", &r->arena, &weights, err));
  for (size_t i = 0; i < weights.count; i++) {
    const char *name = weight_name(r, layer, weights.item[i]);
    if (name == NULL) return tp__no_memory(err, strlen(layer));
    TP__TRY(tp__h5_send_array(r, group, weights.item[i], name, err));
  }
  return TP_OK;
}

static tp_status read_legacy(tp__h5_reader *r, hid_t group, tp_error *err)
{
  tp__h5_strings layers;
  TP__TRY(tp__h5_read_strings(group, "layer_names", &r->arena, &layers, err));
  for (size_t i = 0; i < layers.count; i++) {
    char shown[80];
    hid_t layer = H5Gopen2(group, layers.item[i], r->group_access);
    tp_status status = layer < 0
                           ? tp__fail(err, TP_ERR_DATA, "is listed but not there, or is damaged")
                           : read_layer(r, layer, layers.item[i], err);
    if (layer >= 0) H5Gclose(layer);
    if (status != TP_OK)
      return tp__at(err, status, "layer %s",
                    tp__printable(shown, layers.item[i], strlen(layers.item[i])));
  }
  return TP_OK;
}

/* ---- the whole file ---- */

static tp_status read_root(tp__h5_reader *r, hid_t root, tp_error *err)
{
  bool legacy = tp__h5_has_strings(root, "layer_names");
  bool whole = !legacy && H5Lexists(root, "model_weights", r->group_access) > 0;
  bool keras3 = !legacy && !whole &&
                (H5Lexists(root, "layers", r->group_access) > 0 ||
                 H5Lexists(root, TP__H5_OLD_LAYERS, r->group_access) > 0);
  if (!legacy && !whole && !keras3)
    return tp__fail(err, TP_ERR_DATA,
                    "an HDF5 file, but not one of Keras' (neither layer_names nor /layers)");
  if (!tp__h5_send(r->out, TP__H5_FORMAT, keras3 ? "keras-3" : "keras-h5", NULL, NULL, 0))
    return TP_ERR_INTERNAL;
  if (keras3) return tp__h5_read_keras3(r, root, err);
  if (legacy) return read_legacy(r, root, err);
  hid_t group = H5Gopen2(root, "model_weights", r->group_access);
  if (group < 0) return tp__fail(err, TP_ERR_DATA, "/model_weights is damaged");
  tp_status status = read_legacy(r, group, err);
  H5Gclose(group);
  return status;
}

/* The file in memory, read through its descriptor; NULL: it could not be. */
static void *load(int in, size_t *size)
{
  struct stat st;
  if (fstat(in, &st) != 0 || st.st_size <= 0) return NULL;
  *size = (size_t)st.st_size;
  void *image = malloc(*size);
  if (image != NULL && tp__read_at(in, image, *size, 0, NULL) == TP_OK) return image;
  free(image);
  return NULL;
}

/* libhdf5 opens by path and wants to resolve it; where that fails (no /proc, a file deleted
 * meanwhile) it gets the bytes. */
static hid_t open_file(const tp__h5_reading *job, int in)
{
  char path[64], resolved[PATH_MAX];
  const void *image = job->source->image;
  size_t size = (size_t)job->source->bytes;
  snprintf(path, sizeof path, "/proc/self/fd/%d", in);
  if (image == NULL && realpath(path, resolved) == NULL && (image = load(in, &size)) == NULL)
    return -1;
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_file_locking(access, 0, 1); /* locks fail on some network file systems; none writes here */
  if (image != NULL) {
    H5Pset_fapl_core(access, 1 << 20, 0);                      /* in memory, no file behind it */
    H5Pset_file_image(access, (void *)(uintptr_t)image, size); /* copies */
  }
  return H5Fopen(image != NULL ? "weights.h5" : path, H5F_ACC_RDONLY, access);
}

static tp_status read_file(tp__h5_reader *r, const tp__h5_reading *job, int in, tp_error *err)
{
  r->group_access = H5Pcreate(H5P_GROUP_ACCESS);
  r->dataset_access = H5Pcreate(H5P_DATASET_ACCESS);
  H5Pset_elink_cb(r->group_access, no_external_link, NULL);
  H5Pset_elink_cb(r->dataset_access, no_external_link, NULL);
  hid_t file = open_file(job, in);
  if (file < 0) return tp__fail(err, TP_ERR_DATA, "not a readable HDF5 file: truncated or damaged");
  hid_t root = H5Gopen2(file, "/", r->group_access);
  if (root < 0) return tp__fail(err, TP_ERR_DATA, "not a readable HDF5 file: its root is damaged");
  return read_root(r, root, err);
}

/* Nothing is closed at the end: the process ends, and closing a damaged file is one more chance to
 * crash. */
int tp__h5_read_body(void *arg, int in, int out)
{
  const tp__h5_reading *job = arg;
  tp__h5_reader r = {.out = out, .max_bytes = job->max_bytes, .names = job->source->names};
  tp_error err = {0};
  tp__h5_quiet();
  tp_status status = read_file(&r, job, in, &err);
  if (status == TP_OK) return tp__h5_send(out, TP__H5_END, "", NULL, NULL, 0) ? 0 : 1;
  return tp__h5_send(out, TP__H5_ERROR, err.text, NULL, NULL, 0) ? 0 : 1;
}
