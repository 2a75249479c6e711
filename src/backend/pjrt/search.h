/* search - what search.c, places.c, device_files.c and probe.c share: the parts of looking for
 * devices (plugin.h). root "" is this machine; else a folder that stands for /. */
#ifndef TP_SEARCH_H
#define TP_SEARCH_H

#include "plugin.h"

/* A list of paths, without doubles. Out of memory makes it shorter. */
typedef struct tp__paths {
  char **item;
  size_t count;
} tp__paths; /* born zeroed */

/* Takes path (NULL is fine). */
void tp__paths_take(tp__paths *paths, char *path);
/* Adds folder/NAME for every NAME that matches the pattern (as of fnmatch), sorted as versions. */
void tp__paths_match(tp__paths *paths, const char *folder, const char *pattern);
void tp__paths_free(tp__paths *paths);

/* Python's folders of packages: of VIRTUAL_ENV, CONDA_PREFIX, the python3 on PATH, the user's and
 * the system's. */
void tp__site_packages(const char *root, tp__paths *into);
/* Plugins that are there, best first. */
void tp__tpu_plugins(const char *root, tp__paths *into);
void tp__gpu_plugins(const char *root, tp__paths *into);

/* TPU chips on the PCI bus. */
int tp__tpu_chips(const char *root);
/* Whether there is a device node of an NVIDIA driver. */
bool tp__gpu_nodes(const char *root);
/* "process 12 (python3)" for a process that has a TPU or libtpu's lock open, or NULL. Returns:
 * caller frees. */
char *tp__tpu_user(const char *root);

/* Loads CUDA's libraries from the Python packages beside a plugin (site-packages/nvidia): a plugin
 * from there does not find them by itself. */
void tp__preload_cuda(const char *plugin_path);

/* Makes the candidate's client, in a child unless its library is loaded here already, and fills
 * the candidate: version and devices, or reason. tpu_offline: libtpu must not ask for metadata. */
tp_status tp__probe(tp__candidate *candidate, bool tpu_offline, double seconds,
                    tp_error *err) TP_CHECKED;

/* The last line that a plugin wrote to a file which was its standard error, without the head of a
 * log line ("F0000 ... x.cc:234] "); "": none. */
void tp__last_said(int log, char text[512]);

#endif
