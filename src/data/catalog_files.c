/* catalog_files - from patterns to files, in order and none twice; see catalog_build.h */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "catalog_build.h"
#include "tfrecord.h"

static bool ends_with(const char *name, const char *end)
{
  size_t n = strlen(name), m = strlen(end);
  return n > m && strcasecmp(name + n - m, end) == 0;
}

bool tp__is_photo_name(const char *name)
{
  return ends_with(name, ".jpg") || ends_with(name, ".jpeg") || ends_with(name, ".png");
}

bool tp__is_csv_name(const char *name)
{
  return ends_with(name, ".csv");
}

/* Also flowers.tfrecord-00000-of-00005 and x.tfrec.gz. */
bool tp__is_shard_name(const char *name)
{
  const char *slash = strrchr(name, '/');
  return strcasestr(slash != NULL ? slash + 1 : name, ".tfrec") != NULL;
}

/* ---- adding one file ---- */

static tp_status add_file(tp__build *build, const tp__data_file *file, tp_error *err)
{
  tp__catalog *c = build->catalog;
  if (c->n_files >= UINT32_MAX) return tp__fail(err, TP_ERR_DATA, "more than %u files", UINT32_MAX);
  TP__TRY(tp__list_grow(&c->files, c->n_files, &c->files_capacity, sizeof *c->files, err));
  c->files[c->n_files++] = *file;
  return TP_OK;
}

tp_status tp__catalog_add_shard(tp__build *build, const char *path, tp_error *err)
{
  tp__data_file file = {.path = tp__arena_strdup(&build->catalog->arena, path)};
  if (file.path == NULL) return tp__no_memory(err, strlen(path));
  return add_file(build, &file, err);
}

static tp_status check_photo(tp__data_file *photo, tp_error *err)
{
  struct stat st;
  if (stat(photo->path, &st) != 0)
    return tp__fail(err, TP_ERR_DATA, "the photo cannot be found: %s", strerror(errno));
  if (!S_ISREG(st.st_mode)) return tp__fail(err, TP_ERR_DATA, "is not a regular file");
  if ((uint64_t)st.st_size > TP__RECORD_MAX)
    return tp__fail(err, TP_ERR_DATA, "has %lld bytes, over the limit of %llu for a photo",
                    (long long)st.st_size, (unsigned long long)TP__RECORD_MAX);
  photo->size = (uint64_t)st.st_size;
  photo->changed = st.st_mtim;
  return TP_OK;
}

tp_status tp__catalog_add_photo(tp__build *build, const tp__data_file *photo, tp_error *err)
{
  tp__data_file file = *photo;
  file.photo = true;
  file.n_records = 1;
  tp_status status = check_photo(&file, err);
  if (status == TP_OK) return add_file(build, &file, err);
  if (file.list == NULL) return tp__catalog_skip(build, status, file.path, NULL, err);
  char place[40];
  snprintf(place, sizeof place, "line %zu", file.line);
  status = tp__at(err, status, "%s", file.path);
  return tp__catalog_skip(build, status, file.list, place, err);
}

char *tp__photo_stem(tp__arena *arena, const char *path)
{
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  const char *dot = strrchr(name, '.');
  size_t size = dot != NULL ? (size_t)(dot - name) : strlen(name);
  return tp__arena_format(arena, "%.*s", (int)size, name);
}

static tp_status add_lone_photo(tp__build *build, const char *path, tp_error *err)
{
  tp__arena *arena = &build->catalog->arena;
  tp__data_file photo = {.path = tp__arena_strdup(arena, path), .id = tp__photo_stem(arena, path)};
  if (photo.path == NULL || photo.id == NULL) return tp__no_memory(err, strlen(path));
  return tp__catalog_add_photo(build, &photo, err);
}

/* ---- patterns ---- */

/* Something a pattern matched, with what tells files apart whatever their paths. */
struct match {
  char *path;
  size_t order;
  dev_t device;
  ino_t inode;
  bool folder, repeated;
};

struct matches {
  struct match *item;
  size_t count, capacity;
};

static tp_status add_match(struct matches *m, const char *path, const struct stat *st,
                           tp_error *err)
{
  TP__TRY(tp__list_grow(&m->item, m->count, &m->capacity, sizeof *m->item, err));
  char *copy = tp__strdup(path, err);
  if (copy == NULL) return TP_ERR_INTERNAL;
  m->item[m->count] = (struct match){.path = copy,
                                     .order = m->count,
                                     .device = st->st_dev,
                                     .inode = st->st_ino,
                                     .folder = S_ISDIR(st->st_mode)};
  m->count++;
  return TP_OK;
}

static int by_bytes(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The files of a pattern with magic characters; folders among them are passed over. */
static tp_status match_glob(struct matches *m, const char *pattern, tp_error *err)
{
  glob_t found = {0};
  int code = glob(pattern, GLOB_NOSORT | GLOB_TILDE | GLOB_BRACE, NULL, &found);
  tp_status status = TP_OK;
  if (code != 0 && code != GLOB_NOMATCH) {
    status = code == GLOB_NOSPACE ? tp__no_memory(err, 4096)
                                  : tp__fail(err, TP_ERR_DATA, "%s: cannot be searched", pattern);
    goto out;
  }
  size_t files = 0, folders = 0;
  /* By bytes: glob's own order follows the locale. */
  if (found.gl_pathc > 0) qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_bytes);
  for (size_t i = 0; i < found.gl_pathc && status == TP_OK; i++) {
    struct stat st;
    if (stat(found.gl_pathv[i], &st) != 0) {
      status = tp__fail(err, TP_ERR_DATA, "%s: cannot be opened: %s", found.gl_pathv[i],
                        strerror(errno));
      break;
    }
    folders += S_ISDIR(st.st_mode);
    if (S_ISDIR(st.st_mode)) continue;
    files++;
    status = add_match(m, found.gl_pathv[i], &st, err);
  }
  if (files == 0 && status == TP_OK && folders > 0)
    status = tp__fail(err, TP_ERR_DATA,
                      "0 files match %s, only folders such as %s: for a folder per class give the "
                      "folder that holds them",
                      pattern, found.gl_pathv[0]);
  else if (files == 0 && status == TP_OK)
    status = tp__fail(err, TP_ERR_DATA, "0 files match %s", pattern);
out:
  globfree(&found);
  return status;
}

static tp_status match_pattern(struct matches *m, const char *pattern, tp_error *err)
{
  struct stat st;
  /* A name that exists is meant as it is, whatever magic characters it holds. */
  if (stat(pattern, &st) == 0) return add_match(m, pattern, &st, err);
  const char *scheme = strstr(pattern, "://");
  if (scheme != NULL)
    return tp__fail(err, TP_ERR_DATA,
                    "0 files match %s: only local files are read, fetch the data first", pattern);
  return match_glob(m, pattern, err);
}

static int by_file(const void *a, const void *b)
{
  const struct match *x = a, *y = b;
  if (x->device != y->device) return x->device < y->device ? -1 : 1;
  if (x->inode != y->inode) return x->inode < y->inode ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

static int by_order(const void *a, const void *b)
{
  const struct match *x = a, *y = b;
  return (x->order > y->order) - (x->order < y->order);
}

/* Overlapping patterns, or a link to a file that is there already, must not count an example twice.
 */
static void mark_repeated(struct matches *m)
{
  if (m->count < 2) return;
  qsort(m->item, m->count, sizeof *m->item, by_file);
  for (size_t i = 1; i < m->count; i++)
    m->item[i].repeated =
        m->item[i].device == m->item[i - 1].device && m->item[i].inode == m->item[i - 1].inode;
  qsort(m->item, m->count, sizeof *m->item, by_order);
}

static tp_status add_matched(tp__build *build, const struct match *m, tp_error *err)
{
  if (m->folder) return tp__catalog_add_folder(build, m->path, err);
  if (tp__is_csv_name(m->path)) return tp__catalog_add_csv(build, m->path, err);
  if (tp__is_photo_name(m->path)) return add_lone_photo(build, m->path, err);
  return tp__catalog_add_shard(build, m->path, err);
}

tp_status tp__catalog_find_files(tp__build *build, tp_error *err)
{
  const tp__catalog_options *o = build->options;
  struct matches m = {0};
  tp_status status = TP_OK;
  if (o->n_patterns == 0) status = tp__fail(err, TP_ERR_USAGE, "no files are given");
  for (size_t i = 0; i < o->n_patterns && status == TP_OK; i++)
    status = match_pattern(&m, o->patterns[i], err);
  mark_repeated(&m);
  for (size_t i = 0; i < m.count && status == TP_OK; i++)
    if (!m.item[i].repeated) status = add_matched(build, &m.item[i], err);
  for (size_t i = 0; i < m.count; i++) free(m.item[i].path);
  free(m.item);
  return status;
}
