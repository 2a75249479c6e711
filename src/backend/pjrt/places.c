/* places - where plugins lie: Python's packages, the environment, the system; see search.h
 *
 * Python is not run for it: its folders of packages have the same form everywhere,
 * PREFIX/lib/python3.N/site-packages (Debian: dist-packages).
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "search.h"

enum { PATHS_MAX = 1024 };

void tp__paths_take(tp__paths *paths, char *path)
{
  bool wanted = path != NULL && paths->count < PATHS_MAX;
  for (size_t i = 0; wanted && i < paths->count; i++) wanted = strcmp(paths->item[i], path) != 0;
  char **grown = wanted ? realloc(paths->item, (paths->count + 1) * sizeof *grown) : NULL;
  if (grown == NULL) {
    free(path);
    return;
  }
  paths->item = grown;
  paths->item[paths->count++] = path;
}

void tp__paths_match(tp__paths *paths, const char *folder, const char *pattern)
{
  struct dirent **name = NULL;
  int n = scandir(folder, &name, NULL, versionsort);
  for (int i = 0; i < n; i++) {
    if (name[i]->d_name[0] != '.' && fnmatch(pattern, name[i]->d_name, 0) == 0)
      tp__paths_take(paths, tp__format("%s/%s", folder, name[i]->d_name));
    free(name[i]);
  }
  free(name);
}

void tp__paths_free(tp__paths *paths)
{
  for (size_t i = 0; i < paths->count; i++) free(paths->item[i]);
  free(paths->item);
  *paths = (tp__paths){0};
}

/* Calls for each part of a list with colons, as PATH. */
static void each_part(const char *list, void (*call)(void *user, const char *part), void *user)
{
  while (list != NULL && *list != '\0') {
    size_t size = strcspn(list, ":");
    char *part = size > 0 ? tp__format("%.*s", (int)size, list) : NULL;
    if (part != NULL) call(user, part);
    free(part);
    list += size + (list[size] == ':');
  }
}

/* ---- Python ---- */

typedef struct prefixes {
  const char *root;
  tp__paths paths;
} prefixes;

/* bin/python3 belongs to the prefix above bin; a link also to that of what it leads to. */
static void add_python(void *user, const char *folder)
{
  prefixes *p = user;
  char *python = tp__format("%s%s/python3", p->root, folder);
  if (python == NULL || access(python, X_OK) != 0) {
    free(python);
    return;
  }
  char *real = realpath(python, NULL);
  char *path[] = {python, real};
  for (size_t i = 0; i < 2; i++) {
    for (int up = 0; path[i] != NULL && up < 2; up++) {
      char *slash = strrchr(path[i], '/');
      if (slash != NULL) *slash = '\0';
    }
    tp__paths_take(&p->paths, path[i]);
  }
}

static void add_prefix(prefixes *p, const char *prefix, const char *below)
{
  if (prefix != NULL && prefix[0] == '/')
    tp__paths_take(&p->paths, tp__format("%s%s%s", p->root, prefix, below));
}

void tp__site_packages(const char *root, tp__paths *into)
{
  prefixes p = {.root = root};
  add_prefix(&p, getenv("VIRTUAL_ENV"), "");
  add_prefix(&p, getenv("CONDA_PREFIX"), "");
  each_part(getenv("PATH"), add_python, &p);
  add_prefix(&p, getenv("HOME"), "/.local");
  add_prefix(&p, "/usr/local", "");
  add_prefix(&p, "/usr", "");
  static const char *const lib[] = {"lib", "lib64"};
  static const char *const packages[] = {"site-packages", "dist-packages"};
  for (size_t i = 0; i < p.paths.count; i++)
    for (size_t l = 0; l < 2; l++) {
      tp__paths versions = {0};
      char *folder = tp__format("%s/%s", p.paths.item[i], lib[l]);
      if (folder != NULL) tp__paths_match(&versions, folder, "python3*");
      for (size_t v = versions.count; v-- > 0;) /* the newest Python first */
        for (size_t k = 0; k < 2; k++) {
          char *there = tp__format("%s/%s", versions.item[v], packages[k]);
          if (there != NULL) tp__paths_take(into, realpath(there, NULL)); /* lib64 may be lib */
          free(there);
        }
      tp__paths_free(&versions);
      free(folder);
    }
  tp__paths_free(&p.paths);
}

/* ---- plugins ---- */

typedef struct names {
  const char *const *name; /* until NULL */
  tp__paths *into;
} names;

static void add_file(tp__paths *into, char *path)
{
  if (path != NULL && tp__is_file(path))
    tp__paths_take(into, path);
  else
    free(path);
}

static void add_names(void *user, const char *folder)
{
  names *n = user;
  for (size_t i = 0; n->name[i] != NULL; i++)
    add_file(n->into, tp__format("%s/%s", folder, n->name[i]));
}

/* Where the loader looks, and where libraries are put by hand. */
static void add_system(const char *root, names *n)
{
  static const char *const folder[] = {"/usr/local/lib", "/usr/local/lib/go-xla", "/usr/lib",
                                       "/usr/lib/x86_64-linux-gnu", "/lib"};
  each_part(getenv("LD_LIBRARY_PATH"), add_names, n);
  for (size_t i = 0; i < sizeof folder / sizeof *folder; i++) {
    char *path = tp__format("%s%s", root, folder[i]);
    if (path != NULL) add_names(n, path);
    free(path);
  }
}

void tp__tpu_plugins(const char *root, tp__paths *into)
{
  static const char *const name[] = {"libtpu.so", NULL};
  const char *set = getenv("TPU_LIBRARY_PATH");
  if (set != NULL) add_file(into, tp__format("%s", set));
  tp__paths packages = {0};
  tp__site_packages(root, &packages);
  for (size_t i = 0; i < packages.count; i++)
    add_file(into, tp__format("%s/libtpu/libtpu.so", packages.item[i]));
  tp__paths_free(&packages);
  add_system(root, &(names){name, into});
}

/* PJRT_NAMES_AND_LIBRARY_PATHS=cuda:/path/a.so,other:/path/b.so */
static void add_named(const char *list, tp__paths *into)
{
  while (list != NULL && *list != '\0') {
    size_t size = strcspn(list, ",");
    const char *colon = memchr(list, ':', size);
    if (colon != NULL)
      add_file(into, tp__format("%.*s", (int)(size - (size_t)(colon + 1 - list)), colon + 1));
    list += size + (list[size] == ',');
  }
}

void tp__gpu_plugins(const char *root, tp__paths *into)
{
  static const char *const name[] = {"pjrt_c_api_cuda_plugin.so", "pjrt_c_api_gpu_plugin.so",
                                     "xla_cuda_plugin.so", NULL};
  add_named(getenv("PJRT_NAMES_AND_LIBRARY_PATHS"), into);
  tp__paths packages = {0}, plugins = {0};
  tp__site_packages(root, &packages);
  for (size_t i = 0; i < packages.count; i++) {
    char *folder = tp__format("%s/jax_plugins", packages.item[i]);
    if (folder != NULL) tp__paths_match(&plugins, folder, "xla_cuda*");
    free(folder);
  }
  for (size_t i = plugins.count; i-- > 0;) /* CUDA 13 before 12 */
    add_file(into, tp__format("%s/xla_cuda_plugin.so", plugins.item[i]));
  tp__paths_free(&plugins);
  tp__paths_free(&packages);
  names system = {name, into};
  each_part(getenv("PJRT_PLUGIN_LIBRARY_PATH"), add_names, &system);
  add_system(root, &system);
}

/* ---- CUDA ---- */

void tp__preload_cuda(const char *plugin_path)
{
  /* Each after those that it needs. */
  static const char *const library[] = {
      "libcudart.so.[0-9]*",   "libnvrtc.so.[0-9]*",        "libnvJitLink.so.[0-9]*",
      "libcublasLt.so.[0-9]*", "libcublas.so.[0-9]*",       "libcusparse.so.[0-9]*",
      "libcusolver.so.[0-9]*", "libcufft.so.[0-9]*",        "libcupti.so.[0-9]*",
      "libcudnn.so.[0-9]*",    "libnvshmem_host.so.[0-9]*", "libnccl.so.[0-9]*"};
  const char *plugins = strstr(plugin_path, "/jax_plugins/");
  if (plugins == NULL) return;
  char *nvidia = tp__format("%.*s/nvidia", (int)(plugins - plugin_path), plugin_path);
  tp__paths packages = {0};
  if (nvidia != NULL) tp__paths_match(&packages, nvidia, "*");
  for (size_t l = 0; l < sizeof library / sizeof *library; l++)
    for (size_t i = 0; i < packages.count; i++) {
      tp__paths files = {0};
      char *lib = tp__format("%s/lib", packages.item[i]);
      if (lib != NULL) tp__paths_match(&files, lib, library[l]);
      /* One that does not load is named by the plugin when it is needed. Kept until the end. */
      for (size_t f = 0; f < files.count; f++) (void)dlopen(files.item[f], RTLD_LAZY | RTLD_LOCAL);
      tp__paths_free(&files);
      free(lib);
    }
  tp__paths_free(&packages);
  free(nvidia);
}
