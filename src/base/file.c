/* file - reading whole files, atomic writing, folders, clock; see base.h */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base.h"

tp_status tp__file_read(const char *path, tp__buffer *into, tp_error *err)
{
  /* Opening a FIFO that nobody writes to would wait for ever; so it is empty. One with a writer
   * (a shell's <(...)) is read to its end. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return tp__fail(err, TP_ERR_DATA, "%s: cannot be opened: %s", path, strerror(errno));
  (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  tp_status status = TP_OK;
  struct stat st = {0};
  if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
    status = tp__fail(err, TP_ERR_DATA, "%s: is a folder, a file is wanted", path);
    goto out;
  }
  if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) {
    status = tp__fail(err, TP_ERR_DATA, "%s: is a device, a file is wanted", path);
    goto out;
  }
  if (st.st_size > 0) {
    status = tp__buffer_reserve(into, into->size + (size_t)st.st_size, err);
    if (status != TP_OK) status = tp__at(err, status, "%s", path);
  }
  while (status == TP_OK) {
    uint8_t block[65536];
    ssize_t n = read(fd, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) status = tp__fail(err, TP_ERR_DATA, "%s: cannot be read: %s", path, strerror(errno));
    if (n <= 0) break;
    status = tp__buffer_add(into, block, (size_t)n, err);
    if (status != TP_OK) status = tp__at(err, status, "%s", path);
  }
out:
  close(fd);
  return status;
}

static tp_status write_failed(tp__writer *w, const char *what, tp_error *err)
{
  int cause = errno;
  return tp__fail(err, TP_ERR_OUTPUT, "%s: %s after %llu bytes: %s", w->path, what,
                  (unsigned long long)w->written, strerror(cause));
}

/* The file that standard output leads to, when path names it ("/dev/stdout", or its own name): it
 * is already open, and renaming another file over it would leave the reader with nothing. */
static bool is_stdout(const struct stat *st)
{
  struct stat out;
  return fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == st->st_dev && out.st_ino == st->st_ino;
}

static tp_status open_failed(tp__writer *w, int cause, tp_error *err)
{
  tp_status status =
      tp__fail(err, TP_ERR_OUTPUT, "%s: cannot be written: %s", w->path, strerror(cause));
  free(w->temporary); /* nothing was made: nothing to remove */
  w->temporary = NULL;
  tp__writer_cancel(w);
  return status;
}

tp_status tp__writer_stdout(tp__writer *w, tp_error *err)
{
  *w = (tp__writer){.path = tp__strdup("standard output", err)};
  if (w->path == NULL) return TP_ERR_INTERNAL;
  int flags = fcntl(STDOUT_FILENO, F_GETFL);
  if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY) return open_failed(w, EBADF, err);
  int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  w->file = fd < 0 ? NULL : fdopen(fd, "wb");
  if (w->file != NULL) return TP_OK;
  int cause = errno;
  if (fd >= 0) close(fd);
  return open_failed(w, cause, err);
}

tp_status tp__writer_open(tp__writer *w, const char *path, tp_error *err)
{
  struct stat st, link;
  bool there = stat(path, &st) == 0;
  if (there && is_stdout(&st)) return tp__writer_stdout(w, err);
  /* A link stays a link: what it leads to is replaced. */
  bool is_link = there && lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
  char *target = is_link ? realpath(path, NULL) : NULL;
  *w = (tp__writer){.path = tp__strdup(target != NULL ? target : path, err)};
  free(target);
  if (w->path == NULL) return TP_ERR_INTERNAL;
  bool direct = there && !S_ISREG(st.st_mode);
  if (direct && S_ISDIR(st.st_mode)) {
    tp__writer_cancel(w);
    return tp__fail(err, TP_ERR_OUTPUT, "%s: is a folder, a file name is wanted", path);
  }
  if (there && !direct && access(path, W_OK) != 0) return open_failed(w, errno, err);
  if (!direct) {
    w->temporary = tp__format("%s.tmp-%ld", w->path, (long)getpid());
    if (w->temporary == NULL) {
      tp__writer_cancel(w);
      return tp__no_memory(err, strlen(path));
    }
  }
  w->file = fopen(direct ? w->path : w->temporary, "wbe");
  return w->file != NULL ? TP_OK : open_failed(w, errno, err);
}

tp_status tp__writer_write(tp__writer *w, const void *data, size_t size, tp_error *err)
{
  if (size > 0 && fwrite(data, 1, size, w->file) != size)
    return write_failed(w, "writing failed", err);
  w->written += size;
  return TP_OK;
}

tp_status tp__writer_printf(tp__writer *w, tp_error *err, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  int n = vfprintf(w->file, format, args);
  va_end(args);
  if (n < 0) return write_failed(w, "writing failed", err);
  w->written += (uint64_t)n;
  return TP_OK;
}

/* A rename lasts only once the folder is on disk too. */
static void sync_folder_of(const char *path)
{
  const char *slash = strrchr(path, '/');
  char *folder =
      slash == NULL ? tp__format(".") : tp__format("%.*s", (int)(slash - path + 1), path);
  int fd = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    (void)fsync(fd);
    close(fd);
  }
  free(folder);
}

tp_status tp__writer_commit(tp__writer *w, tp_error *err)
{
  tp_status status = TP_OK;
  if (fflush(w->file) != 0) status = write_failed(w, "writing failed", err);
  if (status == TP_OK && w->temporary != NULL && fsync(fileno(w->file)) != 0)
    status = write_failed(w, "writing to disk failed", err);
  int closed = fclose(w->file);
  w->file = NULL;
  if (status == TP_OK && closed != 0) status = write_failed(w, "closing failed", err);
  if (status == TP_OK && w->temporary != NULL) {
    if (rename(w->temporary, w->path) != 0) {
      status = write_failed(w, "renaming failed", err);
    } else {
      sync_folder_of(w->path);
      free(w->temporary);
      w->temporary = NULL;
    }
  }
  tp__writer_cancel(w);
  return status;
}

tp_status tp__writer_rename(tp__writer *w, const char *path, tp_error *err)
{
  char *copy = tp__strdup(path, err);
  if (copy == NULL) return TP_ERR_INTERNAL;
  free(w->path);
  w->path = copy;
  return TP_OK;
}

void tp__writer_cancel(tp__writer *w)
{
  if (w->file != NULL) fclose(w->file);
  if (w->temporary != NULL) unlink(w->temporary);
  free(w->temporary);
  free(w->path);
  *w = (tp__writer){0};
}

tp_status tp__file_write(const char *path, const void *data, size_t size, tp_error *err)
{
  tp__writer w;
  TP__TRY(tp__writer_open(&w, path, err));
  tp_status status = tp__writer_write(&w, data, size, err);
  if (status == TP_OK) return tp__writer_commit(&w, err);
  tp__writer_cancel(&w);
  return status;
}

tp_status tp__make_folder(const char *path, tp_error *err)
{
  char *copy = tp__strdup(path, err);
  if (copy == NULL) return TP_ERR_INTERNAL;
  tp_status status = TP_OK;
  for (char *p = copy + 1; status == TP_OK; p++) {
    if (*p != '/' && *p != '\0') continue;
    char kept = *p;
    *p = '\0';
    int cause = mkdir(copy, 0777) == 0 ? 0 : errno;
    if (cause == EEXIST && !tp__is_folder(copy)) cause = ENOTDIR;
    if (cause != 0 && !tp__is_folder(copy))
      status = tp__fail(err, TP_ERR_OUTPUT, "%s: folder cannot be made: %s", path, strerror(cause));
    *p = kept;
    if (kept == '\0') break;
  }
  free(copy);
  return status;
}

bool tp__is_file(const char *path)
{
  struct stat st;
  return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool tp__is_folder(const char *path)
{
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static double seconds_of(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double tp__now(void)
{
  return seconds_of(CLOCK_MONOTONIC);
}

double tp__thread_cpu(void)
{
  return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t tp__resident_bytes(uint64_t *peak)
{
  uint64_t now = 0, high = 0;
  FILE *f = fopen("/proc/self/status", "re");
  char line[256];
  while (f != NULL && fgets(line, sizeof line, f) != NULL) {
    unsigned long long kib = 0;
    if (sscanf(line, "VmRSS: %llu", &kib) == 1) now = kib * 1024;
    if (sscanf(line, "VmHWM: %llu", &kib) == 1) high = kib * 1024;
  }
  if (f != NULL) fclose(f);
  if (peak != NULL) *peak = high;
  return now;
}
