/* program_cache - see program_cache.h */
#include "program_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char magic[] = "tepal program 1\n";
static const char ending[] = ".program";
enum { DIGITS = TP__KEY - 1, HEAD = sizeof magic - 1 + 2 * (DIGITS + 1) };
#define PROGRAM_MAX ((size_t)2 << 30) /* bytes of one program */

/* ---- the key ---- */

/* A program for a CPU may use every instruction that the compiling one has. */
static void add_instructions(tp__keying *k)
{
  FILE *f = fopen("/proc/cpuinfo", "re");
  char line[8192];
  while (f != NULL && fgets(line, sizeof line, f) != NULL)
    if (strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0) {
      tp__key_add_text(k, line);
      break;
    }
  if (f != NULL) fclose(f);
}

static void add_client(tp__keying *k, const tp__client *c)
{
  const tp__plugin *p = c->plugin;
  tp__key_add_text(k, p->version);
  tp__key_add_text(k, p->attributes);
  tp__key_add_text(k, c->platform);
  tp__key_add_text(k, c->platform_version);
  tp__key_add_file(k, p->path);
  tp__key_add_flags(k);
  for (int i = 0; i < c->devices; i++) tp__key_add_text(k, c->kind[i]);
  if (strcmp(c->platform, "cpu") == 0) add_instructions(k);
}

tp_status tp__program_key(const tp__client *client, const char *text, size_t length,
                          const tp__buffer *options, char key[TP__KEY], tp_error *err)
{
  tp__keying *k = tp__key_begin();
  tp__key_add(k, text, length);
  tp__key_add(k, options->data, options->size);
  add_client(k, client);
  return tp__key_end(k, key, err);
}

/* ---- entries ---- */

static char *entry_path(const char *folder, const char *key)
{
  return tp__format("%s/%s%s", folder, key, ending);
}

static bool is_whole(const tp__buffer *file, const char *key)
{
  char sum[TP__KEY];
  const char *p = (const char *)file->data;
  if (file->size < HEAD || memcmp(p, magic, sizeof magic - 1) != 0) return false;
  p += sizeof magic - 1;
  if (memcmp(p, key, DIGITS) != 0 || p[DIGITS] != '\n' || p[2 * DIGITS + 1] != '\n') return false;
  return tp__checksum("SHA256", file->data + HEAD, file->size - HEAD, sum, NULL) == TP_OK &&
         memcmp(p + DIGITS + 1, sum, DIGITS) == 0;
}

bool tp__program_read(const char *folder, const char *key, tp__buffer *into)
{
  char *path = entry_path(folder, key);
  tp__buffer_init(into, PROGRAM_MAX + HEAD);
  bool there = path != NULL && tp__is_file(path) && tp__file_read(path, into, NULL) == TP_OK;
  bool whole = there && is_whole(into, key);
  if (whole) {
    memmove(into->data, into->data + HEAD, into->size - HEAD);
    into->size -= HEAD;
    (void)utimensat(AT_FDCWD, path, NULL, 0); /* used just now */
  } else {
    if (there) unlink(path);
    tp__buffer_free(into);
  }
  free(path);
  return whole;
}

void tp__program_remove(const char *folder, const char *key)
{
  char *path = entry_path(folder, key);
  if (path != NULL) unlink(path);
  free(path);
}

/* ---- keeping within the limit ---- */

/* Looks at every entry but `kept`: their bytes, and the one that was used longest ago. */
static uint64_t look(const char *folder, const char *kept, char **oldest)
{
  DIR *dir = opendir(folder);
  uint64_t total = 0;
  struct timespec age = {0};
  *oldest = NULL;
  for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
    struct stat st;
    size_t n = strlen(e->d_name);
    if (strstr(e->d_name, ending) == NULL || n < DIGITS || strncmp(e->d_name, kept, DIGITS) == 0)
      continue;
    if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
      continue;
    total += (uint64_t)st.st_size;
    if (*oldest != NULL && (st.st_mtim.tv_sec > age.tv_sec ||
                            (st.st_mtim.tv_sec == age.tv_sec && st.st_mtim.tv_nsec >= age.tv_nsec)))
      continue;
    free(*oldest);
    *oldest = tp__format("%s/%s", folder, e->d_name);
    age = st.st_mtim;
  }
  if (dir != NULL) closedir(dir);
  return total;
}

static void trim(const char *folder, const char *kept, uint64_t size, uint64_t limit)
{
  char *oldest = NULL;
  while (look(folder, kept, &oldest) + size > limit && oldest != NULL) {
    int gone = unlink(oldest);
    free(oldest);
    oldest = NULL;
    if (gone != 0) break; /* not ours: leave it */
  }
  free(oldest);
}

static tp_status write_entry(const char *path, const char *key, const void *data, size_t size)
{
  char sum[TP__KEY];
  tp__writer w;
  TP__TRY(tp__checksum("SHA256", data, size, sum, NULL));
  TP__TRY(tp__writer_open(&w, path, NULL));
  tp_status status = tp__writer_printf(&w, NULL, "%s%s\n%s\n", magic, key, sum);
  if (status == TP_OK) status = tp__writer_write(&w, data, size, NULL);
  if (status == TP_OK) return tp__writer_commit(&w, NULL);
  tp__writer_cancel(&w);
  return status;
}

void tp__program_write(const char *folder, const char *key, const void *data, size_t size,
                       uint64_t limit)
{
  if (size > PROGRAM_MAX || size > limit || tp__make_folder(folder, NULL) != TP_OK) return;
  char *path = entry_path(folder, key);
  if (path != NULL && write_entry(path, key, data, size) == TP_OK) trim(folder, key, size, limit);
  free(path);
}
