/* h5_child - reads a Keras HDF5 file with libhdf5 and sends its arrays; runs only in the child
 * process (child.h).
 *
 *   legacy    Attribute layer_names of the root or of /model_weights lists groups, attribute
 *             weight_names of each group lists datasets in it. A nested model is one group that
 *             lists all its weights.
 *
 *   Keras 3   Groups named after layer classes; in each, "vars" holds datasets 0, 1, ... and the
 *             attribute `name`, the layer's name. Nested models nest. Optimizer and random-seed
 *             state is left out.
 *
 * (keras/src/legacy/saving/legacy_h5_format.py and keras/src/saving/saving_lib.py, Keras 3.15.)
 * Nothing outside the file is ever opened: external links, external and virtual storage and filter
 * plugins are refused.
 */
#include <hdf5.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "child.h"
#include "h5_strings.h"
#include "h5_wire.h"

enum { DEPTH_MAX = 32, GROUPS_MAX = 65536 };

typedef struct reader {
  int out;
  uint64_t max_bytes;
  hid_t group_access, dataset_access;
  size_t groups; /* visited: hard links may make cycles */
  tp__arena arena;
} reader;

void tp__h5_quiet(void)
{
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  H5PLset_loading_state(0);
}

bool tp__h5_send(int out, tp__h5_kind kind, const char *text, const tp__tensor *tensor,
                 const void *payload, uint64_t bytes)
{
  tp__h5_head head;
  memset(&head, 0, sizeof head);
  head.magic = TP__H5_MAGIC;
  head.kind = kind;
  head.text_size = (uint32_t)strnlen(text, TP__H5_TEXT_MAX);
  head.bytes = bytes;
  if (tensor != NULL) {
    head.dtype = tensor->dtype;
    head.rank = tensor->shape.rank;
    for (int i = 0; i < head.rank; i++) head.dim[i] = tensor->shape.dim[i];
  }
  return tp__child_write(out, &head, sizeof head) && tp__child_write(out, text, head.text_size) &&
         tp__child_write(out, payload, bytes);
}

static herr_t no_external_link(const char *parent_file, const char *parent_group,
                               const char *child_file, const char *child_object, unsigned *flags,
                               hid_t fapl, void *user)
{
  (void)parent_file, (void)parent_group, (void)child_file, (void)child_object, (void)flags;
  (void)fapl, (void)user;
  return -1;
}

/* ---- one array ---- */

/* The type in memory for a file's type. */
static bool memory_type(hid_t file_type, tp__dtype *dtype, hid_t *type)
{
  size_t size = H5Tget_size(file_type);
  H5T_class_t class = H5Tget_class(file_type);
  if (class == H5T_FLOAT) {
    *dtype = size > 4 ? TP__F64 : TP__F32; /* half precision is widened */
    *type = size > 4 ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT;
    return size == 2 || size == 4 || size == 8;
  }
  bool is_unsigned = H5Tget_sign(file_type) == H5T_SGN_NONE;
  *dtype = size == 1 && is_unsigned ? TP__U8 : size <= 4 && !is_unsigned ? TP__I32 : TP__I64;
  *type = *dtype == TP__U8    ? H5T_NATIVE_UINT8
          : *dtype == TP__I32 ? H5T_NATIVE_INT32
                              : H5T_NATIVE_INT64;
  return class == H5T_INTEGER && size <= 8;
}

/* Keras 3 keeps bfloat16 as uint16 with an attribute that says so. */
static bool is_bfloat16(hid_t dataset, reader *r)
{
  tp__h5_strings text = {0};
  tp_error ignored;
  return H5Aexists(dataset, "dtype") > 0 &&
         tp__h5_read_strings(dataset, "dtype", &r->arena, &text, &ignored) == TP_OK &&
         text.count == 1 && strcmp(text.item[0], "bfloat16") == 0;
}

static tp_status read_shape(hid_t dataset, tp__shape *shape, tp_error *err)
{
  hid_t space = H5Dget_space(dataset);
  hsize_t dim[TP__RANK_MAX];
  int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
  bool good = rank >= 0 && rank <= TP__RANK_MAX && H5Sget_simple_extent_type(space) != H5S_NULL &&
              H5Sget_simple_extent_dims(space, dim, NULL) >= 0;
  if (space >= 0) H5Sclose(space);
  if (!good)
    return tp__fail(err, TP_ERR_DATA, "its shape cannot be read, or has more than %d dimensions",
                    TP__RANK_MAX);
  *shape = (tp__shape){.rank = rank};
  for (int i = 0; i < rank; i++) {
    if (dim[i] > INT64_MAX / 8) return tp__fail(err, TP_ERR_DATA, "a dimension is too large");
    shape->dim[i] = (int64_t)dim[i];
  }
  return TP_OK;
}

static bool stored_inside(hid_t dataset)
{
  hid_t plist = H5Dget_create_plist(dataset);
  H5D_layout_t layout = plist >= 0 ? H5Pget_layout(plist) : H5D_LAYOUT_ERROR;
  bool inside = (layout == H5D_COMPACT || layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED) &&
                H5Pget_external_count(plist) == 0;
  if (plist >= 0) H5Pclose(plist);
  return inside;
}

static tp_status send_open(reader *r, hid_t dataset, const char *name, tp_error *err)
{
  tp__tensor t = {.name = name};
  hid_t file_type = H5Dget_type(dataset), type = H5T_NATIVE_FLOAT;
  bool known = file_type >= 0 && memory_type(file_type, &t.dtype, &type);
  if (known && H5Tget_size(file_type) == 2 && t.dtype == TP__I64 && is_bfloat16(dataset, r)) {
    t.dtype = TP__BF16;
    type = H5T_NATIVE_UINT16;
  }
  if (file_type >= 0) H5Tclose(file_type);
  if (!known) return tp__fail(err, TP_ERR_DATA, "holds no numbers of a known type");
  TP__TRY(read_shape(dataset, &t.shape, err));
  if (!stored_inside(dataset))
    return tp__fail(err, TP_ERR_DATA, "is kept outside the file: refused");
  size_t bytes = 0;
  if (!tp__mul_size(tp__shape_elements(&t.shape, 0), tp__dtype_size(t.dtype), &bytes) ||
      bytes > r->max_bytes)
    return tp__fail(err, TP_ERR_DATA, "too large for a file of this size");
  t.data = malloc(bytes + 1);
  if (t.data == NULL) return tp__no_memory(err, bytes);
  tp_status status = TP_OK;
  if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, t.data) < 0)
    status = tp__fail(err, TP_ERR_DATA, "its numbers cannot be read: truncated or damaged?");
  else if (!tp__h5_send(r->out, TP__H5_TENSOR, name, &t, t.data, bytes))
    status = TP_ERR_INTERNAL;
  free(t.data);
  return status;
}

/* name: under which it is sent. */
static tp_status send_array(reader *r, hid_t group, const char *path, const char *name,
                            tp_error *err)
{
  char shown[80];
  hid_t dataset = H5Dopen2(group, path, r->dataset_access);
  tp_status status = dataset < 0 ? tp__fail(err, TP_ERR_DATA, "is not there, or is damaged")
                                 : send_open(r, dataset, name, err);
  if (dataset >= 0) H5Dclose(dataset);
  return status == TP_OK
             ? TP_OK
             : tp__at(err, status, "array %s", tp__printable(shown, name, strlen(name)));
}

/* ---- legacy files ---- */

static tp_status read_layer(reader *r, hid_t group, const char *layer, tp_error *err)
{
  tp__h5_strings weights;
  TP__TRY(tp__h5_read_strings(group, "weight_names", &r->arena, &weights, err));
  for (size_t i = 0; i < weights.count; i++) {
    const char *name = weights.item[i];
    if (strchr(name, '/') == NULL) name = tp__arena_format(&r->arena, "%s/%s", layer, name);
    if (name == NULL) return tp__no_memory(err, strlen(layer));
    TP__TRY(send_array(r, group, weights.item[i], name, err));
  }
  return TP_OK;
}

static tp_status read_legacy(reader *r, hid_t group, tp_error *err)
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

/* ---- Keras 3 files ---- */

/* A class's variables in the order of their numbers; others keep the number as name. */
static tp_status variable_name(const char *class, size_t count, size_t i, char text[32],
                               tp_error *err)
{
  static const struct {
    const char *class, *variable[4];
    size_t least, most;
  } known[] = {
      {"conv2d", {"kernel", "bias"}, 1, 2},
      {"depthwise_conv2d", {"kernel", "bias"}, 1, 2},
      {"dense", {"kernel", "bias"}, 1, 2},
      {"batch_normalization", {"gamma", "beta", "moving_mean", "moving_variance"}, 4, 4},
      {"normalization", {"mean", "variance", "count"}, 3, 3},
  };
  size_t n = strlen(class);
  while (n > 0 && class[n - 1] >= '0' && class[n - 1] <= '9') n--;
  if (n == 0 || class[n - 1] != '_' || n == strlen(class)) n = strlen(class) + 1;
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    if (strlen(known[k].class) != n - 1 || memcmp(class, known[k].class, n - 1) != 0) continue;
    if (count < known[k].least || count > known[k].most)
      return tp__fail(err, TP_ERR_DATA, "holds %zu arrays; a %s layer has %zu", count,
                      known[k].class, known[k].most);
    snprintf(text, 32, "%s", known[k].variable[i]);
    return TP_OK;
  }
  snprintf(text, 32, "%zu", i);
  return TP_OK;
}

static tp_status read_vars(reader *r, hid_t vars, const char *class, tp_error *err)
{
  size_t count = 0;
  char number[32], variable[32], shown[80];
  for (;; count++) {
    snprintf(number, sizeof number, "%zu", count);
    if (count > TP__WEIGHTS_MAX_ARRAYS || H5Lexists(vars, number, r->group_access) <= 0) break;
  }
  if (count == 0) return TP_OK;
  tp__h5_strings layer = {0};
  if (H5Aexists(vars, "name") <= 0)
    return tp__fail(
        err, TP_ERR_DATA,
        "group %s does not name its layer: saved by an early Keras 3; save it again with "
        "Keras 3.6 or later, or as .h5",
        tp__printable(shown, class, strlen(class)));
  TP__TRY(tp__h5_read_strings(vars, "name", &r->arena, &layer, err));
  if (layer.count != 1)
    return tp__fail(err, TP_ERR_DATA, "group %s has an odd name",
                    tp__printable(shown, class, strlen(class)));
  for (size_t i = 0; i < count; i++) {
    tp_status status = variable_name(class, count, i, variable, err);
    if (status != TP_OK)
      return tp__at(err, status, "layer %s",
                    tp__printable(shown, layer.item[0], strlen(layer.item[0])));
    const char *name = tp__arena_format(&r->arena, "%s/%s", layer.item[0], variable);
    if (name == NULL) return tp__no_memory(err, 0);
    snprintf(number, sizeof number, "%zu", i);
    TP__TRY(send_array(r, vars, number, name, err));
  }
  return TP_OK;
}

typedef struct children {
  reader *r;
  const char **name;
  size_t count, capacity;
} children;

static herr_t collect_child(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
  children *c = user;
  (void)group;
  if (info->type != H5L_TYPE_HARD || strcmp(name, "vars") == 0 || strcmp(name, "optimizer") == 0 ||
      strcmp(name, "seed_generator") == 0)
    return 0;
  if (c->count == c->capacity) {
    c->capacity = c->capacity == 0 ? 64 : c->capacity * 2;
    if (c->capacity > GROUPS_MAX) return -1;
    const char **grown = tp__arena_alloc(&c->r->arena, c->capacity * sizeof *grown);
    if (grown == NULL) return -1;
    if (c->count > 0) memcpy(grown, c->name, c->count * sizeof *grown);
    c->name = grown;
  }
  c->name[c->count] = tp__arena_strdup(&c->r->arena, name);
  return c->name[c->count++] == NULL ? -1 : 0;
}

/* class: the group's own name, "conv2d_3". */
static tp_status read_object(reader *r, hid_t group, const char *class, int depth, tp_error *err)
{
  children c = {.r = r};
  if (depth > DEPTH_MAX || ++r->groups > GROUPS_MAX)
    return tp__fail(err, TP_ERR_DATA, "too many groups, or nested too deeply");
  tp_status status = TP_OK;
  hid_t vars =
      H5Lexists(group, "vars", r->group_access) > 0 ? H5Gopen2(group, "vars", r->group_access) : -1;
  if (vars >= 0) {
    status = read_vars(r, vars, class, err);
    H5Gclose(vars);
  }
  if (status == TP_OK && H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, collect_child, &c) < 0)
    status = tp__fail(err, TP_ERR_DATA, "a group's list of members is damaged");
  for (size_t i = 0; status == TP_OK && i < c.count; i++) {
    hid_t child = H5Oopen(group, c.name[i], r->group_access);
    if (child < 0) status = tp__fail(err, TP_ERR_DATA, "a group's member is damaged");
    if (child >= 0 && H5Iget_type(child) == H5I_GROUP)
      status = read_object(r, child, c.name[i], depth + 1, err);
    if (child >= 0) H5Oclose(child);
  }
  return status;
}

/* ---- the whole file ---- */

static tp_status read_root(reader *r, hid_t root, tp_error *err)
{
  bool legacy = tp__h5_has_strings(root, "layer_names");
  bool whole = !legacy && H5Lexists(root, "model_weights", r->group_access) > 0;
  bool keras3 = !legacy && !whole && H5Lexists(root, "layers", r->group_access) > 0;
  if (!legacy && !whole && !keras3)
    return tp__fail(err, TP_ERR_DATA,
                    "an HDF5 file, but not one of Keras' (neither layer_names nor /layers)");
  if (!tp__h5_send(r->out, TP__H5_FORMAT, keras3 ? "keras-3" : "keras-h5", NULL, NULL, 0))
    return TP_ERR_INTERNAL;
  if (keras3) return read_object(r, root, "", 0, err);
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
  const void *image = job->image;
  size_t size = job->image_bytes;
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

static tp_status read_file(reader *r, const tp__h5_reading *job, int in, tp_error *err)
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
  reader r = {.out = out, .max_bytes = job->max_bytes};
  tp_error err = {0};
  tp__h5_quiet();
  tp_status status = read_file(&r, job, in, &err);
  if (status == TP_OK) return tp__h5_send(out, TP__H5_END, "", NULL, NULL, 0) ? 0 : 1;
  return tp__h5_send(out, TP__H5_ERROR, err.text, NULL, NULL, 0) ? 0 : 1;
}
