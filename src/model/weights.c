/* weights - which format a file has, by its first bytes, and what all readers share; see weights.h,
 * weights_formats.h */
#include "weights.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weights_formats.h"

uint64_t tp__weights_byte_limit(uint64_t file_bytes)
{
  uint64_t most = UINT64_C(16) << 30;
  return file_bytes > most / 20 ? most : (UINT64_C(64) << 20) + 20 * file_bytes;
}

char *tp__printable(char text[80], const char *foreign, size_t size)
{
  size_t n = 0;
  for (; n < 79 && n < size && foreign[n] != '\0'; n++)
    text[n] = foreign[n] >= ' ' && foreign[n] <= '~' ? foreign[n] : '?';
  text[n] = '\0';
  return text;
}

tp_status tp__read_at(int fd, void *data, size_t size, uint64_t offset, tp_error *err)
{
  char *p = data;
  while (size > 0) {
    ssize_t n = pread(fd, p, size, (off_t)offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return tp__fail(err, TP_ERR_DATA, "cannot be read at byte %llu: %s",
                      (unsigned long long)offset, strerror(errno));
    if (n == 0)
      return tp__fail(err, TP_ERR_DATA, "ends at byte %llu where %zu more are expected: truncated?",
                      (unsigned long long)offset, size);
    p += n;
    offset += (uint64_t)n;
    size -= (size_t)n;
  }
  return TP_OK;
}

tp_status tp__weights_add(tp__weights_sink *sink, const char *name, size_t name_size,
                          tp__dtype dtype, const tp__shape *shape, tp__tensor **tensor,
                          tp_error *err)
{
  char shown[80], copy[TP__WEIGHTS_MAX_NAME + 1];
  tp__printable(shown, name, name_size);
  if (name_size == 0 || name_size > TP__WEIGHTS_MAX_NAME)
    return tp__fail(err, TP_ERR_DATA, "an array's name of %zu bytes (\"%s\"); 1 to %d are allowed",
                    name_size, shown, TP__WEIGHTS_MAX_NAME);
  for (size_t i = 0; i < name_size; i++)
    if ((unsigned char)name[i] < ' ' || name[i] == 0x7f)
      return tp__fail(err, TP_ERR_DATA, "array \"%s\": control characters in its name", shown);
  memcpy(copy, name, name_size);
  copy[name_size] = '\0';
  if (sink->into->count >= TP__WEIGHTS_MAX_ARRAYS)
    return tp__fail(err, TP_ERR_DATA, "more than %d arrays", TP__WEIGHTS_MAX_ARRAYS);
  size_t bytes = 0;
  if (!tp__mul_size(tp__shape_elements(shape, 0), tp__dtype_size(dtype), &bytes) ||
      bytes > sink->bytes_left) {
    char dims[96];
    return tp__fail(err, TP_ERR_DATA, "array \"%s\" %s: too large for a file of this size", shown,
                    tp__shape_text(shape, dims));
  }
  if (tp__tensors_find(sink->into, copy) != NULL)
    return tp__fail(err, TP_ERR_DATA, "two arrays are named \"%s\"", shown);
  TP__TRY(tp__tensors_add(sink->into, copy, dtype, shape, tensor, err));
  sink->bytes_left -= bytes;
  return TP_OK;
}

/* What people give by mistake, said plainly. */
static tp_status unknown_format(const uint8_t *head, size_t size, tp_error *err)
{
  static const struct {
    const char *bytes;
    size_t size;
    const char *what;
  } known[] = {
      {"<", 1, "looks like a web page: the download gave an error page instead of the file"},
      {"version https://git-lfs", 23,
       "is a Git LFS pointer, not the file itself: fetch it (git lfs pull)"},
      {"\x1f\x8b", 2, "is compressed (gzip): unpack it first"},
      {"\xfd"
       "7zXZ",
       5, "is compressed (xz): unpack it first"},
      {"{", 1, "is JSON text, not weights"},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (size >= known[i].size && memcmp(head, known[i].bytes, known[i].size) == 0)
      return tp__fail(err, TP_ERR_DATA, "%s", known[i].what);
  return tp__fail(err, TP_ERR_DATA,
                  "not a weight file: Keras .h5, .weights.h5 and .keras, safetensors and PyTorch "
                  ".pth are read");
}

static tp_status read_open_file(int fd, uint64_t bytes, tp__tensors *into, const char **format,
                                tp__buffer *metadata, tp_error *err)
{
  uint8_t head[24] = {0};
  size_t size = bytes < sizeof head ? (size_t)bytes : sizeof head;
  TP__TRY(tp__read_at(fd, head, size, 0, err));
  if (size == 0) return tp__fail(err, TP_ERR_DATA, "is empty");
  tp__weights_sink sink = {into, tp__weights_byte_limit(bytes)};
  if (size >= 8 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0)
    return tp__h5_read(&(tp__h5_source){.fd = fd, .bytes = bytes}, &sink, format, err);
  if (size >= 4 && memcmp(head, "PK\3\4", 4) == 0)
    return tp__zip_weights_read(fd, bytes, &sink, format, err);
  if (size >= 3 && head[0] == 0x80 && head[1] <= 5 && head[2] == 0x8a) {
    *format = "pytorch"; /* PROTO, LONG1: the legacy file's magic number */
    return tp__pth_read_legacy(fd, bytes, &sink, err);
  }
  if (size > 8 && head[8] == '{') {
    *format = "safetensors"; /* a length of 8 bytes, then JSON */
    return tp__safetensors_read(fd, bytes, &sink, metadata, err);
  }
  return unknown_format(head, size, err);
}

tp_status tp__weights_read(const char *path, tp__tensors *into, const char **format,
                           tp__buffer *metadata, tp_error *err)
{
  const char *found = NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not wait */
  if (fd < 0) return tp__fail(err, TP_ERR_DATA, "%s: cannot be opened: %s", path, strerror(errno));
  tp_status status = TP_OK;
  struct stat st;
  if (fstat(fd, &st) != 0)
    status = tp__fail(err, TP_ERR_DATA, "%s", strerror(errno));
  else if (!S_ISREG(st.st_mode))
    status = tp__fail(err, TP_ERR_DATA, "is not a regular file");
  else
    status = read_open_file(fd, (uint64_t)st.st_size, into, &found, metadata, err);
  close(fd);
  if (status == TP_OK && into->count == 0) status = tp__fail(err, TP_ERR_DATA, "holds no arrays");
  if (status != TP_OK) {
    tp__tensors_free(into);
    if (metadata != NULL) metadata->size = 0;
    return tp__at(err, status, "%s", path);
  }
  if (format != NULL) *format = found;
  return TP_OK;
}
