/* fuzz_pth - any bytes as a PyTorch file: as a zip, as the older form, or (neither magic number) as
 * a bare pickle whose storages are zeros. Build with -Dfuzz=true and clang. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/pth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void bare_pickle(const uint8_t *data, size_t size, tp__tensors *set)
{
  enum { STORAGE_MAX = 1 << 20 };
  tp_error err;
  tp__pickle pickle = {0};
  const tp__pickle_value *root = NULL;
  size_t used = 0;
  if (tp__pickle_run(&pickle, data, size, &used, &root, &err) == TP_OK) {
    if (used > size) abort();
    const tp__pickle_value *dict = tp__pth_state_dict(root);
    const uint8_t **bytes = calloc(pickle.n_storages + 1, sizeof *bytes);
    uint8_t **own = calloc(pickle.n_storages + 1, sizeof *own);
    for (size_t i = 0; i < pickle.n_storages; i++) {
      size_t need = 0; /* exactly as large as it says, so that a step outside is seen */
      if (tp__pth_storage_bytes(pickle.storage[i], &need) && need <= STORAGE_MAX)
        bytes[i] = own[i] = calloc(need + (need == 0), 1);
    }
    tp__weights_sink sink = {set, 1 << 20};
    if (dict != NULL && tp__pth_add_tensors(dict, bytes, &sink, &err) != TP_OK &&
        err.text[0] == '\0')
      abort();
    for (size_t i = 0; i < pickle.n_storages; i++) free(own[i]);
    free(own);
    free(bytes);
  }
  tp__pickle_free(&pickle);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tp_error err;
  tp__tensors set = {0};
  const char *format = NULL;
  tp__weights_sink sink = {&set, tp__weights_byte_limit(size)};
  bool zip = size >= 2 && memcmp(data, "PK", 2) == 0;
  bool older = size >= 3 && memcmp(data, "\x80\x02\x8a", 3) == 0;
  if (!zip && !older) {
    bare_pickle(data, size, &set);
  } else {
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    tp_status status = zip ? tp__zip_weights_read(fd, size, &sink, &format, &err)
                           : tp__pth_read_legacy(fd, size, &sink, &err);
    if (status != TP_OK && status != TP_ERR_DATA) abort();
    close(fd);
  }
  tp__tensors_free(&set);
  return 0;
}
