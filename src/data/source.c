/* source - see source.h */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

tp_status tp__source_open(tp__source *source, const char *path, tp_error *err)
{
  *source = (tp__source){.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (source->fd < 0) return tp__fail(err, TP_ERR_DATA, "cannot be opened: %s", strerror(errno));
  struct stat st;
  tp_status status = TP_OK;
  if (fstat(source->fd, &st) != 0)
    status = tp__fail(err, TP_ERR_DATA, "cannot be examined: %s", strerror(errno));
  else if (!S_ISREG(st.st_mode))
    status = tp__fail(err, TP_ERR_DATA, "is not a regular file");
  if (status != TP_OK) {
    tp__source_close(source);
    return status;
  }
  source->size = (uint64_t)st.st_size;
  source->changed = st.st_mtim;
  return TP_OK;
}

tp__source tp__source_memory(const void *data, size_t size)
{
  return (tp__source){.fd = -1, .memory = data, .size = size};
}

void tp__source_close(tp__source *source)
{
  if (source->fd >= 0) close(source->fd);
  source->fd = -1;
}

tp_status tp__source_read(const tp__source *source, uint64_t offset, void *into, size_t size,
                          tp_error *err)
{
  if (offset > source->size || size > source->size - offset)
    return tp__fail(err, TP_ERR_DATA, "has %llu bytes, %zu at byte %llu are wanted",
                    (unsigned long long)source->size, size, (unsigned long long)offset);
  if (size == 0) return TP_OK;
  if (source->fd < 0) {
    memcpy(into, source->memory + offset, size);
    return TP_OK;
  }
  for (size_t done = 0; done < size;) {
    ssize_t n = pread(source->fd, (char *)into + done, size - done, (off_t)(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return tp__fail(err, TP_ERR_DATA, "cannot be read at byte %llu: %s",
                      (unsigned long long)(offset + done), strerror(errno));
    if (n == 0)
      return tp__fail(err, TP_ERR_DATA,
                      "became shorter while it was read: it had %llu bytes, now it ends at %llu",
                      (unsigned long long)source->size, (unsigned long long)(offset + done));
    done += (size_t)n;
  }
  return TP_OK;
}

/* The first bytes of what people hand over as a shard by mistake. */
static const struct magic {
  const char *bytes;
  size_t size;
  const char *what;
} magics[] = {
    {"\xff\xd8\xff", 3, "a JPEG photo"},
    {"\x89PNG\r\n", 6, "a PNG picture"},
    {"GIF8", 4, "a GIF picture"},
    {"\x1f\x8b", 2, "gzip-compressed"},
    {"\x78\x9c", 2, "zlib-compressed"},
    {"\x78\x01", 2, "zlib-compressed"},
    {"\x78\xda", 2, "zlib-compressed"},
    {"PK\x03\x04", 4, "a ZIP archive"},
    {"\x28\xb5\x2f\xfd", 4, "zstd-compressed"},
    {"BZh", 3, "bzip2-compressed"},
    {"\xfd"
     "7zXZ",
     5, "xz-compressed"},
    {"\x89HDF\r\n", 6, "an HDF5 file"},
    {"\x93NUMPY", 6, "a numpy array"},
    {"%PDF", 4, "a PDF document"},
    {"version https://git-lfs", 23, "a Git LFS pointer (the file itself was never fetched)"},
};

static bool is_text(const uint8_t *bytes, size_t size)
{
  for (size_t i = 0; i < size; i++)
    if ((bytes[i] < 32 && bytes[i] != '\n' && bytes[i] != '\r' && bytes[i] != '\t') ||
        bytes[i] == 0x7f || bytes[i] >= 0xf8) /* those are in no UTF-8 */
      return false;
  return size > 0;
}

const char *tp__looks_like(const uint8_t *bytes, size_t size)
{
  for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
    if (size >= magics[i].size && memcmp(bytes, magics[i].bytes, magics[i].size) == 0)
      return magics[i].what;
  if (size >= 12 && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0)
    return "a WebP picture";
  size_t start = 0;
  while (start < size && (bytes[start] == ' ' || (bytes[start] >= 9 && bytes[start] <= 13)))
    start++;
  const char *text = (const char *)bytes + start;
  if (size - start >= 5 &&
      (strncasecmp(text, "<html", 5) == 0 || strncasecmp(text, "<!doc", 5) == 0))
    return "an HTML page (an error page saved in place of the data?)";
  if (is_text(bytes, size))
    return start < size && bytes[start] == '<' ? "an XML or HTML page" : "text";
  return NULL;
}
