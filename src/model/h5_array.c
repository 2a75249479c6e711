/* h5_array - one HDF5 dataset from the file to the parent; see h5_child.h
 *
 * A dataset may keep its numbers in other files (external storage, virtual datasets): refused.
 */
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "h5_child.h"
#include "h5_strings.h"

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
static bool is_bfloat16(hid_t dataset, tp__h5_reader *r)
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

static tp_status send_open(tp__h5_reader *r, hid_t dataset, const char *name, tp_error *err)
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

tp_status tp__h5_send_array(tp__h5_reader *r, hid_t group, const char *path, const char *name,
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
