/* out_folder - see out_folder.h */
#include "out_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARTIAL ".partial"

static const char *const known_files[] = {"labels.txt", "test_labels.csv", "sample_submission.csv",
                                          "bad-records.tsv"};
static const char *const known_folders[] = {"train", "val", "test"};

static bool one_of(const char *name, const char *const *list, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (strcmp(name, list[i]) == 0) return true;
  return false;
}

static bool is_shard(const char *name)
{
  size_t n = strlen(name);
  return (n > 6 && strcmp(name + n - 6, ".tfrec") == 0) || strstr(name, ".tfrec.") != NULL;
}

static bool is_dots(const char *name)
{
  return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Calls visit for every entry of a folder until it returns false; true when all were visited. A
 * missing folder is empty. */
static bool each_entry(const char *folder,
                       bool (*visit)(const char *path, const char *name, void *arg), void *arg)
{
  DIR *dir = opendir(folder);
  if (dir == NULL) return errno == ENOENT;
  bool going = true;
  for (struct dirent *e; going && (e = readdir(dir)) != NULL;) {
    if (is_dots(e->d_name)) continue;
    char *path = tp__format("%s/%s", folder, e->d_name);
    going = path != NULL && visit(path, e->d_name, arg);
    free(path);
  }
  closedir(dir);
  return going;
}

/* ---- what may be replaced ---- */

static bool check_shard(const char *path, const char *name, void *arg)
{
  struct stat st;
  if (is_shard(name) && lstat(path, &st) == 0 && S_ISREG(st.st_mode)) return true;
  snprintf(arg, 256, "%s", name);
  return false;
}

static bool check_entry(const char *path, const char *name, void *arg)
{
  struct stat st;
  if (strcmp(name, PARTIAL) == 0) return true; /* of a run that was killed */
  if (lstat(path, &st) == 0) {
    if (S_ISREG(st.st_mode) && one_of(name, known_files, sizeof known_files / sizeof *known_files))
      return true;
    if (S_ISDIR(st.st_mode) &&
        one_of(name, known_folders, sizeof known_folders / sizeof *known_folders))
      return each_entry(path, check_shard, arg);
  }
  snprintf(arg, 256, "%s", name);
  return false;
}

static bool note_entry(const char *path, const char *name, void *arg)
{
  (void)path;
  if (strcmp(name, PARTIAL) == 0) return true;
  *(bool *)arg = true;
  return false;
}

/* ---- removing ---- */

static bool remove_known(const char *path, const char *name, void *arg)
{
  struct stat st;
  bool top = arg != NULL;
  if (lstat(path, &st) != 0) return true;
  if (S_ISDIR(st.st_mode)) {
    if (!top || !one_of(name, known_folders, sizeof known_folders / sizeof *known_folders))
      return true;
    (void)each_entry(path, remove_known, NULL);
    rmdir(path);
  } else if (top ? one_of(name, known_files, sizeof known_files / sizeof *known_files)
                 : is_shard(name)) {
    unlink(path);
  }
  return true;
}

/* The partial folder is ours alone: whatever lies two levels deep is removed. */
static bool remove_partial(const char *path, const char *name, void *arg)
{
  (void)name;
  struct stat st;
  if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
    if (arg != NULL) (void)each_entry(path, remove_partial, NULL);
    rmdir(path);
  } else {
    unlink(path);
  }
  return true;
}

/* ---- life ---- */

static void forget(tp__out_folder *out)
{
  free(out->path);
  free(out->partial);
  *out = (tp__out_folder){0};
}

static tp_status look_at(const tp__out_folder *out, bool overwrite, tp_error *err)
{
  struct stat st;
  if (stat(out->path, &st) != 0) return TP_OK; /* it will be made */
  if (!S_ISDIR(st.st_mode))
    return tp__fail(err, TP_ERR_USAGE, "%s: is a file, a folder is wanted", out->path);
  bool any = false;
  char strange[256] = "";
  (void)each_entry(out->path, note_entry, &any);
  if (any && !overwrite)
    return tp__fail(
        err, TP_ERR_USAGE,
        "%s: the folder is not empty; choose another, or --overwrite to replace what is there",
        out->path);
  if (!each_entry(out->path, check_entry, strange))
    return tp__fail(
        err, TP_ERR_USAGE,
        "%s: holds \"%s\", which tepal did not write, so it is not replaced; choose another folder",
        out->path, strange);
  return TP_OK;
}

tp_status tp__out_folder_open(tp__out_folder *out, const char *path, bool overwrite, tp_error *err)
{
  *out = (tp__out_folder){0};
  if (path == NULL || path[0] == '\0')
    return tp__fail(err, TP_ERR_USAGE, "no output folder is given; say --out FOLDER");
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  out->path = tp__format("%.*s", (int)n, path);
  out->partial = out->path != NULL ? tp__format("%s/" PARTIAL, out->path) : NULL;
  if (out->partial == NULL) {
    forget(out);
    return tp__no_memory(err, n);
  }
  tp_status status = look_at(out, overwrite, err);
  out->made = status == TP_OK && !tp__is_folder(out->path);
  if (status == TP_OK) status = tp__make_folder(out->path, err);
  if (status == TP_OK) (void)each_entry(out->partial, remove_partial, out);
  if (status == TP_OK) status = tp__make_folder(out->partial, err);
  if (status != TP_OK) forget(out);
  return status;
}

char *tp__out_folder_entry(const tp__out_folder *out, const char *name, bool folder, tp_error *err)
{
  char *path = tp__format("%s/%s", out->partial, name);
  if (path == NULL) (void)tp__no_memory(err, strlen(name));
  if (path != NULL && folder && tp__make_folder(path, err) != TP_OK) {
    free(path);
    path = NULL;
  }
  return path;
}

struct move {
  const tp__out_folder *out;
  tp_status status;
  tp_error *err;
};

static bool move_entry(const char *path, const char *name, void *arg)
{
  struct move *m = arg;
  char *to = tp__format("%s/%s", m->out->path, name);
  if (to == NULL)
    m->status = tp__no_memory(m->err, strlen(name));
  else if (rename(path, to) != 0)
    m->status =
        tp__fail(m->err, TP_ERR_OUTPUT, "%s: cannot be moved into place: %s", to, strerror(errno));
  free(to);
  return m->status == TP_OK;
}

tp_status tp__out_folder_write(const tp__out_folder *out, const char *name, const tp__buffer *text,
                               tp_error *err)
{
  char *path = tp__out_folder_entry(out, name, false, err);
  if (path == NULL) return TP_ERR_INTERNAL;
  tp_status status = tp__file_write(path, text->data, text->size, err);
  free(path);
  return status;
}

tp_status tp__out_folder_commit(tp__out_folder *out, tp_error *err)
{
  struct move m = {out, TP_OK, err};
  (void)each_entry(out->path, remove_known, out);
  (void)each_entry(out->partial, move_entry, &m);
  if (m.status == TP_OK && rmdir(out->partial) != 0)
    m.status =
        tp__fail(err, TP_ERR_OUTPUT, "%s: cannot be removed: %s", out->partial, strerror(errno));
  forget(out);
  return m.status;
}

void tp__out_folder_cancel(tp__out_folder *out)
{
  if (out->path == NULL) return;
  (void)each_entry(out->partial, remove_partial, out);
  rmdir(out->partial);
  if (out->made) rmdir(out->path);
  forget(out);
}
