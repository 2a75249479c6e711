/* program_cache - see program_cache.h */
#include "program_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char magic[] = "tepal program 1\n";
static const char ending[] = ".program";
enum { DIGITS = TP__PROGRAM_KEY - 1, HEAD = sizeof magic - 1 + 2 * (DIGITS + 1) };
#define PROGRAM_MAX ((size_t)2 << 30) /* bytes of one program */

static void to_hex(const unsigned char *digest, unsigned n, char hex[TP__PROGRAM_KEY])
{
  for (unsigned i = 0; i < n && i < DIGITS / 2; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* ---- the key ---- */

/* Each part with its length, so that two lists of parts never look alike. */
static bool add(EVP_MD_CTX *hash, const void *data, size_t size)
{
  uint64_t length = size;
  return EVP_DigestUpdate(hash, &length, sizeof length) == 1 &&
         EVP_DigestUpdate(hash, data, size) == 1;
}

static bool add_text(EVP_MD_CTX *hash, const char *text)
{
  return add(hash, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
}

/* A program for a CPU may use every instruction that the compiling one has. */
static bool add_instructions(EVP_MD_CTX *hash)
{
  FILE *f = fopen("/proc/cpuinfo", "re");
  char line[8192];
  bool good = true;
  while (f != NULL && fgets(line, sizeof line, f) != NULL)
    if (strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0) {
      good = add_text(hash, line);
      break;
    }
  if (f != NULL) fclose(f);
  return good;
}

static bool add_client(EVP_MD_CTX *hash, const tp__client *c)
{
  const tp__plugin *p = c->plugin;
  struct stat st = {0};
  (void)stat(p->path, &st);
  int64_t file[] = {(int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec,
                    c->devices};
  bool good = add_text(hash, p->version) && add_text(hash, p->attributes) &&
              add_text(hash, c->platform) && add_text(hash, c->platform_version) &&
              add(hash, file, sizeof file) && add_text(hash, getenv("XLA_FLAGS")) &&
              add_text(hash, getenv("LIBTPU_INIT_ARGS"));
  for (int i = 0; good && i < c->devices; i++) good = add_text(hash, c->kind[i]);
  return good && (strcmp(c->platform, "cpu") != 0 || add_instructions(hash));
}

tp_status tp__program_key(const tp__client *client, const char *text, size_t length,
                          const tp__buffer *options, char key[TP__PROGRAM_KEY], tp_error *err)
{
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  EVP_MD_CTX *hash = EVP_MD_CTX_new();
  bool good = hash != NULL && EVP_DigestInit_ex(hash, EVP_sha256(), NULL) == 1 &&
              add(hash, text, length) && add(hash, options->data, options->size) &&
              add_client(hash, client) && EVP_DigestFinal_ex(hash, digest, &n) == 1;
  EVP_MD_CTX_free(hash);
  if (!good) return tp__fail(err, TP_ERR_INTERNAL, "a checksum could not be computed");
  to_hex(digest, n, key);
  return TP_OK;
}

/* ---- entries ---- */

static bool checksum(const void *data, size_t size, char hex[TP__PROGRAM_KEY])
{
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  if (EVP_Digest(data, size, digest, &n, EVP_sha256(), NULL) != 1) return false;
  to_hex(digest, n, hex);
  return true;
}

static char *entry_path(const char *folder, const char *key)
{
  return tp__format("%s/%s%s", folder, key, ending);
}

static bool is_whole(const tp__buffer *file, const char *key)
{
  char sum[TP__PROGRAM_KEY];
  const char *p = (const char *)file->data;
  if (file->size < HEAD || memcmp(p, magic, sizeof magic - 1) != 0) return false;
  p += sizeof magic - 1;
  if (memcmp(p, key, DIGITS) != 0 || p[DIGITS] != '\n' || p[2 * DIGITS + 1] != '\n') return false;
  return checksum(file->data + HEAD, file->size - HEAD, sum) &&
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
  char sum[TP__PROGRAM_KEY];
  tp__writer w;
  if (!checksum(data, size, sum)) return TP_ERR_INTERNAL;
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
