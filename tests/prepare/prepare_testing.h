/* prepare_testing - a job without log or progress, and the whole content of a folder as text, for
 * the tests of prepare. */
#ifndef TP_PREPARE_TESTING_H
#define TP_PREPARE_TESTING_H

#include "../data/data_testing.h"

#include "prepare/prepare.h"

static inline bool always(void *user)
{
  (void)user;
  return true;
}

static inline int by_name(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds "path size hash" of every file below a folder, sorted: two folders are equal when their
 * texts are. */
static inline void list_folder(const char *folder, const char *below, tp__buffer *text)
{
  char *names[256];
  size_t n = 0;
  tp_error err;
  DIR *dir = opendir(folder);
  for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL && n < 256;)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) names[n++] = strdup(e->d_name);
  if (dir != NULL) closedir(dir);
  qsort(names, n, sizeof *names, by_name);
  for (size_t i = 0; i < n; i++) {
    char *path = tp__format("%s/%s", folder, names[i]), *name = tp__format("%s%s", below, names[i]);
    if (tp__is_folder(path)) {
      char *deeper = tp__format("%s/", name);
      list_folder(path, deeper, text);
      free(deeper);
    } else {
      tp__buffer bytes;
      tp__buffer_init(&bytes, SIZE_MAX);
      assert_ok(tp__file_read(path, &bytes, &err));
      uint64_t hash = 14695981039346656037u; /* FNV-1a */
      for (size_t k = 0; k < bytes.size; k++) hash = (hash ^ bytes.data[k]) * 1099511628211u;
      assert_ok(tp__buffer_printf(text, &err, "%s %zu %016llx\n", name, bytes.size,
                                  (unsigned long long)hash));
      tp__buffer_free(&bytes);
    }
    free(path);
    free(name);
    free(names[i]);
  }
}

/* The folder's text; the box keeps it. */
static inline const char *folder_text(box *b, const char *folder)
{
  tp__buffer text;
  tp_error err;
  tp__buffer_init(&text, SIZE_MAX);
  list_folder(folder, "", &text);
  assert_ok(tp__buffer_add(&text, "", 1, &err));
  const char *kept = tp__arena_strdup(&b->arena, (char *)text.data);
  tp__buffer_free(&text);
  return kept;
}

/* A whole text file; the box keeps it. */
static inline const char *file_text(box *b, const char *path)
{
  tp__buffer text;
  tp_error err;
  tp__buffer_init(&text, SIZE_MAX);
  assert_ok(tp__file_read(path, &text, &err));
  assert_ok(tp__buffer_add(&text, "", 1, &err));
  const char *kept = tp__arena_strdup(&b->arena, (char *)text.data);
  tp__buffer_free(&text);
  return kept;
}

static inline size_t lines_of(const char *text)
{
  size_t n = 0;
  for (; *text != '\0'; text++) n += *text == '\n';
  return n;
}

#endif
