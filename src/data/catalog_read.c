/* catalog_read - the encoded image of one example, from any thread; see catalog.h
 *
 * Shards are opened at their first read and stay open when there are few; photos are opened each
 * time. The path is asked for size and time at each read, so that a file that was replaced or
 * removed since the catalog was made is noticed, and never read at offsets that belong to other
 * contents.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catalog_build.h"
#include "source.h"

static tp_status check_unchanged(const tp__data_file *f, tp_error *err)
{
  struct stat st;
  if (stat(f->path, &st) != 0)
    return tp__fail(err, TP_ERR_DATA, "the file has vanished since it was opened: %s",
                    strerror(errno));
  if ((uint64_t)st.st_size != f->size || st.st_mtim.tv_sec != f->changed.tv_sec ||
      st.st_mtim.tv_nsec != f->changed.tv_nsec)
    return tp__fail(
        err, TP_ERR_DATA,
        "the file has changed since it was opened (%llu bytes then, %llu now): start again",
        (unsigned long long)f->size, (unsigned long long)st.st_size);
  return TP_OK;
}

static tp_status open_file(const tp__data_file *f, int *fd, tp_error *err)
{
  *fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (*fd < 0) return tp__fail(err, TP_ERR_DATA, "cannot be opened: %s", strerror(errno));
  return TP_OK;
}

/* A descriptor that stays open until the catalog is freed. */
static tp_status kept_handle(tp__catalog *c, size_t file, int *fd, tp_error *err)
{
  atomic_int *handle = &c->handles[file];
  *fd = atomic_load_explicit(handle, memory_order_acquire) - 1;
  if (*fd >= 0) return TP_OK;
  pthread_mutex_lock(&c->lock);
  tp_status status = TP_OK;
  *fd = atomic_load(handle) - 1;
  if (*fd < 0) status = open_file(&c->files[file], fd, err);
  if (status == TP_OK) atomic_store_explicit(handle, *fd + 1, memory_order_release);
  pthread_mutex_unlock(&c->lock);
  return status;
}

static tp_status read_bytes(const tp__catalog *catalog, const tp__record *r, uint8_t *into,
                            tp_error *err)
{
  const tp__data_file *f = &catalog->files[r->file];
  if (f->memory != NULL) {
    tp__source memory = tp__source_memory(f->memory, f->memory_size);
    return tp__source_read(&memory, r->image_offset, into, r->image_size, err);
  }
  tp__source source = {.fd = -1, .size = f->size};
  bool kept = catalog->handles != NULL && !f->photo;
  TP__TRY(check_unchanged(f, err));
  /* Opening a file for reading is no change that a user of the catalog could see, hence the cast.
   */
  if (kept)
    TP__TRY(kept_handle((tp__catalog *)catalog, r->file, &source.fd, err));
  else
    TP__TRY(open_file(f, &source.fd, err));
  tp_status status = tp__source_read(&source, r->image_offset, into, r->image_size, err);
  if (!kept) tp__source_close(&source);
  return status;
}

tp_status tp__catalog_read(const tp__catalog *catalog, size_t index, tp__buffer *bytes,
                           tp_error *err)
{
  const tp__record *r = &catalog->records[index];
  bytes->size = 0;
  tp_status status = tp__buffer_reserve(bytes, r->image_size, err);
  if (status == TP_OK) status = read_bytes(catalog, r, bytes->data, err);
  if (status == TP_OK) {
    bytes->size = r->image_size;
    return TP_OK;
  }
  char where[600];
  tp__catalog_where(catalog, index, where, sizeof where);
  return tp__at(err, status, "%s", where);
}
