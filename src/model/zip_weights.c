/* zip_weights - weights in zip files: PyTorch's .pth and Keras 3's .keras; see zip_weights.h,
 * weights_formats.h
 *
 *   PyTorch   PREFIX/data.pkl, PREFIX/data/KEY for each storage
 *             PREFIX/byteorder ("little"; since 2.1)
 *
 *   Keras 3   model.weights.h5, config.json, metadata.json
 *
 * Members are limited by the sink's bytes, which depend on the file's size, so that a small file
 * cannot unpack into gigabytes. Nothing is written to disk.
 */
#include "zip_weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "keras3_names.h"
#include "pth.h"

enum { PICKLE_MAX = 64 << 20, CONFIG_MAX = 4 << 20 };

static zip_t *not_a_zip(int code, tp_error *err)
{
  zip_error_t e;
  zip_error_init_with_code(&e, code);
  (void)tp__fail(err, TP_ERR_DATA, "not a readable zip file (%s): truncated?",
                 zip_error_strerror(&e));
  zip_error_fini(&e);
  return NULL;
}

zip_t *tp__zip_open_fd(int fd, tp_error *err)
{
  int code = 0, own = dup(fd);
  if (own < 0) {
    (void)tp__fail(err, TP_ERR_INTERNAL, "%s", strerror(errno));
    return NULL;
  }
  zip_t *zip = zip_fdopen(own, 0, &code);
  if (zip != NULL) return zip;
  close(own);
  return not_a_zip(code, err);
}

zip_t *tp__zip_open_memory(const void *data, size_t size, tp_error *err)
{
  zip_error_t e;
  zip_error_init(&e);
  zip_source_t *source = zip_source_buffer_create(data, size, 0, &e);
  zip_t *zip = source == NULL ? NULL : zip_open_from_source(source, ZIP_RDONLY, &e);
  if (zip != NULL) return zip;
  if (source != NULL) zip_source_free(source);
  return not_a_zip(zip_error_code_zip(&e), err);
}

tp_status tp__zip_member(zip_t *zip, const char *name, tp__buffer *into, tp_error *err)
{
  char shown[80];
  zip_stat_t st;
  tp__printable(shown, name, strlen(name));
  if (zip_stat(zip, name, 0, &st) != 0 || (st.valid & ZIP_STAT_SIZE) == 0)
    return tp__fail(err, TP_ERR_DATA, "member %s is not in the zip file", shown);
  if (st.size > into->max)
    return tp__fail(err, TP_ERR_DATA,
                    "member %s claims %llu bytes: too large for a file of this size", shown,
                    (unsigned long long)st.size);
  TP__TRY(tp__buffer_reserve(into, (size_t)st.size, err));
  zip_file_t *f = zip_fopen(zip, name, 0);
  zip_int64_t n = 0;
  while (f != NULL && into->size < st.size &&
         (n = zip_fread(f, into->data + into->size, st.size - into->size)) > 0)
    into->size += (size_t)n;
  char extra;
  bool good =
      f != NULL && into->size == st.size && zip_fread(f, &extra, 1) == 0; /* checks the CRC */
  if (f != NULL) zip_fclose(f);
  return good ? TP_OK
              : tp__fail(err, TP_ERR_DATA, "member %s is damaged or cannot be unpacked", shown);
}

/* ---- Keras 3 ---- */

/* The layers' names from config.json. Best effort: most files do not need them, and those that do
 * say so themselves when they are missing. */
static void read_names(zip_t *zip, tp__keras3_names *names)
{
  tp__buffer b;
  tp__buffer_init(&b, CONFIG_MAX);
  if (tp__zip_member(zip, "config.json", &b, NULL) == TP_OK)
    (void)!tp__keras3_names_read(names, (const char *)b.data, b.size, NULL);
  tp__buffer_free(&b);
}

static tp_status read_keras(zip_t *zip, tp__weights_sink *sink, const char **format, tp_error *err)
{
  tp__buffer b;
  tp__keras3_names names = {0};
  tp__buffer_init(&b, sink->bytes_left);
  read_names(zip, &names);
  tp_status status = tp__zip_member(zip, "model.weights.h5", &b, err);
  tp__h5_source source = {.fd = -1, .image = b.data, .bytes = b.size, .names = &names};
  if (status == TP_OK) status = tp__h5_read(&source, sink, format, err);
  tp__keras3_names_free(&names);
  tp__buffer_free(&b);
  return status == TP_OK ? TP_OK : tp__at(err, status, "model.weights.h5");
}

/* ---- PyTorch ---- */

/* The folder before "/data.pkl", with its slash, in a member's name; NULL: no member is called so.
 */
static char *pytorch_prefix(zip_t *zip)
{
  zip_int64_t n = zip_get_num_entries(zip, 0);
  for (zip_int64_t i = 0; i < n; i++) {
    const char *name = zip_get_name(zip, (zip_uint64_t)i, 0);
    const char *slash = name == NULL ? NULL : strrchr(name, '/');
    if (slash != NULL && strcmp(slash, "/data.pkl") == 0)
      return tp__format("%.*s", (int)(slash - name + 1), name);
  }
  return NULL;
}

static tp_status read_storage(zip_t *zip, const char *prefix, const tp__pickle_value *storage,
                              tp__buffer *into, uint64_t *left, tp_error *err)
{
  const tp__pickle_value *key = storage->storage.key;
  size_t need = 0;
  char *name = tp__format("%sdata/%.*s", prefix, (int)(key->text.size < 200 ? key->text.size : 200),
                          key->text.data);
  if (name == NULL) return tp__no_memory(err, 200);
  tp__buffer_init(into, *left);
  tp_status status = tp__zip_member(zip, name, into, err);
  if (status == TP_OK && (!tp__pth_storage_bytes(storage, &need) || need != into->size))
    status = tp__fail(err, TP_ERR_DATA, "member %s has %zu bytes, its tensors need %zu", name,
                      into->size, need);
  *left -= into->size;
  free(name);
  return status;
}

static tp_status check_byte_order(zip_t *zip, const char *prefix, tp_error *err)
{
  char *name = tp__format("%sbyteorder", prefix);
  if (name == NULL) return tp__no_memory(err, strlen(prefix));
  tp_status status = TP_OK;
  tp__buffer b;
  tp__buffer_init(&b, 16);
  if (zip_name_locate(zip, name, 0) >= 0) {
    status = tp__zip_member(zip, name, &b, err);
    if (status == TP_OK && (b.size != 6 || memcmp(b.data, "little", 6) != 0))
      status = tp__fail(err, TP_ERR_DATA, "was written on a big-endian machine");
  }
  tp__buffer_free(&b);
  free(name);
  return status;
}

/* Only the storages of the wanted dict's tensors would be needed; all are read, files with more are
 * rare. */
static tp_status read_tensors(zip_t *zip, const char *prefix, tp__pickle *pickle,
                              const tp__pickle_value *root, tp__weights_sink *sink, tp_error *err)
{
  const tp__pickle_value *dict = tp__pth_state_dict(root);
  if (dict == NULL) return tp__fail(err, TP_ERR_DATA, "holds no state dict (name -> tensor)");
  tp__buffer *b = tp__calloc(pickle->n_storages, sizeof *b, err);
  const uint8_t **bytes = tp__calloc(pickle->n_storages, sizeof *bytes, err);
  tp_status status = b == NULL || bytes == NULL ? TP_ERR_INTERNAL : TP_OK;
  uint64_t left = sink->bytes_left;
  for (size_t i = 0; status == TP_OK && i < pickle->n_storages; i++) {
    status = read_storage(zip, prefix, pickle->storage[i], &b[i], &left, err);
    bytes[i] = b[i].data == NULL ? (const uint8_t *)"" : b[i].data;
  }
  if (status == TP_OK) status = tp__pth_add_tensors(dict, bytes, sink, err);
  for (size_t i = 0; b != NULL && i < pickle->n_storages; i++) tp__buffer_free(&b[i]);
  free(b);
  free(bytes);
  return status;
}

static tp_status read_pytorch(zip_t *zip, const char *prefix, tp__weights_sink *sink, tp_error *err)
{
  tp__pickle pickle = {0};
  tp__buffer program;
  const tp__pickle_value *root = NULL;
  size_t used = 0;
  tp__buffer_init(&program, PICKLE_MAX);
  tp_status status = check_byte_order(zip, prefix, err);
  char *name = tp__format("%sdata.pkl", prefix);
  if (status == TP_OK && name == NULL) status = tp__no_memory(err, strlen(prefix));
  if (status == TP_OK) status = tp__zip_member(zip, name, &program, err);
  if (status == TP_OK) {
    status = tp__pickle_run(&pickle, program.data, program.size, &used, &root, err);
    if (status != TP_OK) status = tp__at(err, status, "data.pkl");
  }
  if (status == TP_OK) status = read_tensors(zip, prefix, &pickle, root, sink, err);
  free(name);
  tp__pickle_free(&pickle);
  tp__buffer_free(&program);
  return status;
}

tp_status tp__zip_weights_read(int fd, uint64_t bytes, tp__weights_sink *sink, const char **format,
                               tp_error *err)
{
  (void)bytes;
  zip_t *zip = tp__zip_open_fd(fd, err);
  if (zip == NULL) return TP_ERR_DATA;
  char *prefix = NULL;
  tp_status status = TP_OK;
  if (zip_name_locate(zip, "model.weights.h5", 0) >= 0) {
    status = read_keras(zip, sink, format, err);
  } else if ((prefix = pytorch_prefix(zip)) != NULL) {
    *format = "pytorch";
    status = read_pytorch(zip, prefix, sink, err);
  } else {
    status = tp__fail(err, TP_ERR_DATA,
                      "a zip file without weights (neither model.weights.h5 nor data.pkl)");
  }
  free(prefix);
  zip_discard(zip);
  return status;
}
