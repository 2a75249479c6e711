/* catalog_folder - a folder as a data set; see catalog_build.h
 *
 *   sub-folders with photos     a class per sub-folder, named as it is
 *   photos                      examples without labels, for prediction
 *   shards                      all of them
 *
 * Hidden entries and other files are passed over. Half and half is refused, as it can't be known
 * what is meant.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "catalog_build.h"

enum kind { OTHER, FOLDER, PHOTO, SHARD, KINDS };

struct entry {
  char *name;
  enum kind kind;
};

struct listing {
  struct entry *entry; /* bytewise by name */
  size_t count, capacity;
  size_t of[KINDS];
};

static void listing_free(struct listing *l)
{
  for (size_t i = 0; i < l->count; i++) free(l->entry[i].name);
  free(l->entry);
}

static int by_name(const void *a, const void *b)
{
  return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static enum kind kind_of(DIR *folder, const struct dirent *d)
{
  struct stat st;
  bool is_folder = d->d_type == DT_DIR;
  if (d->d_type == DT_LNK || d->d_type == DT_UNKNOWN)
    is_folder = fstatat(dirfd(folder), d->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
  return is_folder                      ? FOLDER
         : tp__is_photo_name(d->d_name) ? PHOTO
         : tp__is_shard_name(d->d_name) ? SHARD
                                        : OTHER;
}

static tp_status list(const char *path, struct listing *l, tp_error *err)
{
  *l = (struct listing){0};
  DIR *folder = opendir(path);
  if (folder == NULL)
    return tp__fail(err, TP_ERR_DATA, "%s: folder cannot be read: %s", path, strerror(errno));
  tp_status status = TP_OK;
  for (const struct dirent *d; status == TP_OK && (d = readdir(folder)) != NULL;) {
    if (d->d_name[0] == '.') continue;
    status = tp__list_grow(&l->entry, l->count, &l->capacity, sizeof *l->entry, err);
    char *name = status == TP_OK ? tp__strdup(d->d_name, err) : NULL;
    if (name == NULL) {
      status = TP_ERR_INTERNAL;
      break;
    }
    l->entry[l->count] = (struct entry){name, kind_of(folder, d)};
    l->of[l->entry[l->count++].kind]++;
  }
  closedir(folder);
  if (status != TP_OK)
    listing_free(l);
  else if (l->count > 0)
    qsort(l->entry, l->count, sizeof *l->entry, by_name);
  return status;
}

/* The photos of one folder; without a class they are known by their names without extension, else
 * by their paths. */
static tp_status add_photos(tp__build *build, const char *path, const struct listing *l,
                            const char *class_name, tp_error *err)
{
  tp__arena *arena = &build->catalog->arena;
  for (size_t i = 0; i < l->count; i++) {
    const char *name = l->entry[i].name;
    if (l->entry[i].kind != PHOTO) continue;
    tp__data_file photo = {.class_name = class_name,
                           .path = tp__arena_format(arena, "%s/%s", path, name)};
    photo.id = class_name != NULL ? photo.path : tp__photo_stem(arena, name);
    if (photo.path == NULL || photo.id == NULL) return tp__no_memory(err, 4096);
    TP__TRY(tp__catalog_add_photo(build, &photo, err));
  }
  return TP_OK;
}

static tp_status add_class(tp__build *build, const char *path, const char *name, size_t *photos,
                           size_t *shards, tp_error *err)
{
  tp__arena *arena = &build->catalog->arena;
  char *class_path = tp__arena_format(arena, "%s/%s", path, name);
  char *class_name = tp__arena_strdup(arena, name);
  if (class_path == NULL || class_name == NULL) return tp__no_memory(err, 4096);
  TP__TRY(tp__list_grow(&build->class_names, build->n_class_names, &build->class_names_capacity,
                        sizeof *build->class_names, err));
  build->class_names[build->n_class_names++] = class_name;
  struct listing l;
  TP__TRY(list(class_path, &l, err));
  tp_status status = add_photos(build, class_path, &l, class_name, err);
  *photos += l.of[PHOTO];
  *shards += l.of[SHARD];
  listing_free(&l);
  return status;
}

static tp_status add_classes(tp__build *build, const char *path, const struct listing *l,
                             tp_error *err)
{
  size_t photos = 0, shards = 0;
  const char *first = NULL;
  for (size_t i = 0; i < l->count; i++) {
    if (l->entry[i].kind != FOLDER) continue;
    if (first == NULL) first = l->entry[i].name;
    TP__TRY(add_class(build, path, l->entry[i].name, &photos, &shards, err));
  }
  if (photos == 0 && shards > 0)
    return tp__fail(
        err, TP_ERR_DATA,
        "0 files match %s: its sub-folders hold TFRecord shards, give one of them, such "
        "as %s/%s",
        path, path, first);
  if (photos == 0)
    return tp__fail(err, TP_ERR_DATA,
                    "0 files match %s: no photos (*.jpg, *.jpeg, *.png) in its %zu sub-folders",
                    path, l->of[FOLDER]);
  return TP_OK;
}

static tp_status add_shards(tp__build *build, const char *path, const struct listing *l,
                            tp_error *err)
{
  for (size_t i = 0; i < l->count; i++) {
    if (l->entry[i].kind != SHARD) continue;
    char *shard = tp__arena_format(&build->catalog->arena, "%s/%s", path, l->entry[i].name);
    if (shard == NULL) return tp__no_memory(err, 4096);
    TP__TRY(tp__catalog_add_shard(build, shard, err));
  }
  return TP_OK;
}

tp_status tp__catalog_add_folder(tp__build *build, const char *path, tp_error *err)
{
  size_t size = strlen(path);
  while (size > 1 && path[size - 1] == '/') size--;
  char *folder = tp__arena_format(&build->catalog->arena, "%.*s", (int)size, path);
  if (folder == NULL) return tp__no_memory(err, size);
  struct listing l;
  TP__TRY(list(folder, &l, err));
  tp_status status;
  if ((l.of[FOLDER] > 0) + (l.of[PHOTO] > 0) + (l.of[SHARD] > 0) > 1)
    status = tp__fail(err, TP_ERR_DATA,
                      "%s: holds %zu sub-folders, %zu photos and %zu TFRecord shards side by side: "
                      "say which with a pattern, such as '%s/*.%s'",
                      folder, l.of[FOLDER], l.of[PHOTO], l.of[SHARD], folder,
                      l.of[SHARD] > 0 ? "tfrec" : "jpg");
  else if (l.of[FOLDER] > 0)
    status = add_classes(build, folder, &l, err);
  else if (l.of[PHOTO] > 0)
    status = add_photos(build, folder, &l, NULL, err);
  else if (l.of[SHARD] > 0)
    status = add_shards(build, folder, &l, err);
  else
    status = tp__fail(err, TP_ERR_DATA,
                      "0 files match %s: the folder holds no photos (*.jpg, *.jpeg, *.png), no "
                      "TFRecord shards (*.tfrec*) and no sub-folders",
                      folder);
  listing_free(&l);
  return status;
}
