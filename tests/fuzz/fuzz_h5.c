/* fuzz_h5 - any bytes as an HDF5 file, through the child process as the library does it: libhdf5
 * may crash there, this process may not, and every outcome but success must be TP_ERR_DATA with a
 * text. The inputs' coverage in the child is not seen by the fuzzer, so give it real files to
 * change. Build with -Dfuzz=true and clang. */
#include <stdlib.h>
#include <string.h>

#include "model/weights_formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  tp_error err = {0};
  tp__tensors set = {0};
  const char *format = NULL;
  tp__weights_sink sink = {&set, 16 << 20};
  tp__h5_source source = {.fd = -1, .image = data, .bytes = size};
  tp_status status = tp__h5_read(&source, &sink, &format, &err);
  if (status != TP_OK && (status != TP_ERR_DATA || err.text[0] == '\0')) abort();
  if (status == TP_OK && strcmp(format, "keras-h5") != 0 && strcmp(format, "keras-3") != 0) abort();
  tp__tensors_free(&set);
  return 0;
}
