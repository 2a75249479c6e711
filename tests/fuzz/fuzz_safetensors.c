/* fuzz_safetensors - any bytes as a safetensors file. What is read must be readable memory of the
 * size its shape says, and must come back the same when it is written. Build with -Dfuzz=true and
 * clang. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/weights_formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tp_status read_bytes(const uint8_t *data, size_t size, tp__tensors *set,
                            tp__buffer *metadata)
{
  tp_error err;
  int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
  tp__weights_sink sink = {set, tp__weights_byte_limit(size)};
  tp_status status = tp__safetensors_read(fd, size, &sink, metadata, &err);
  close(fd);
  return status;
}

static void compare(const tp__tensors *a, const tp__tensors *b)
{
  if (a->count != b->count) abort();
  for (size_t i = 0; i < a->count; i++) {
    const tp__tensor *x = &a->item[i], *y = tp__tensors_find(b, x->name);
    if (y == NULL || x->dtype != y->dtype || !tp__shape_equal(&x->shape, &y->shape)) abort();
    if (memcmp(x->data, y->data, tp__tensor_bytes(x)) != 0) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tp_error err;
  tp__tensors set = {0}, again = {0};
  tp__buffer metadata = {0}, file;
  tp__buffer_init(&file, 64 << 20);
  tp_status status = read_bytes(data, size, &set, &metadata);
  if (status == TP_OK && set.count > 0) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/fuzz-safetensors-%ld", (long)getpid());
    const char *json = metadata.size > 0 ? (const char *)metadata.data : NULL;
    if (tp__weights_write_safetensors(path, &set, json, &err) != TP_OK) abort();
    if (tp__file_read(path, &file, &err) != TP_OK) abort();
    unlink(path);
    if (read_bytes(file.data, file.size, &again, NULL) != TP_OK) abort();
    compare(&set, &again);
  }
  tp__tensors_free(&set);
  tp__tensors_free(&again);
  tp__buffer_free(&metadata);
  tp__buffer_free(&file);
  return 0;
}
