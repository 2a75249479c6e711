/* plugin - shared libraries that speak the PJRT C interface: where they are, and opening them.
 *
 *   devices (PCI, /dev) ─┐
 *                        ├──> candidates ──probe in a child──> usable, or the reason why not
 * ──open──> plugins (files)     ─┘
 *
 * Looking for a device must never hang or kill the process: libtpu asks a metadata server for
 * minutes where there is no chip, and plugins abort on what they do not know. So devices are looked
 * for first, without their plugin, and a candidate's client is made in a child process with a time
 * limit before it is made here.
 */
#ifndef TP_PLUGIN_H
#define TP_PLUGIN_H

#include "base/base.h"
#include "base/log.h"

typedef struct tp__plugin tp__plugin;

typedef enum tp__device_class { TP__CLASS_TPU, TP__CLASS_GPU, TP__CLASS_CPU } tp__device_class;

/* A place where a device might be. */
typedef struct tp__candidate {
  tp__device_class kind;
  char *path;        /* of the plugin; NULL: none was found */
  char *version;     /* "PJRT 0.115, StableHLO 1.20.0"; NULL when not usable */
  int devices;       /* replicas */
  uint64_t memory;   /* bytes of one device; 0: not told */
  char *device_kind; /* "TPU v3" */
  bool there;        /* the hardware, or its driver, is */
  char *reason;      /* why it is not used; NULL: usable */
} tp__candidate;

typedef struct tp__candidates {
  tp__candidate *item;
  size_t count;
} tp__candidates; /* born zeroed */

typedef struct tp__search {
  const char *root; /* "": this machine. Tests: a folder that stands for / in all but the
                       environment's variables */
  bool tpu, gpu;    /* what is looked for */
  double seconds;   /* that one candidate may take to answer */
  bool slice;       /* this is one of several processes: a TPU would wait for all of them, and is
                       taken without a try */
} tp__search;

/* Looks where JAX looks: environment (TPU_LIBRARY_PATH, PJRT_NAMES_AND_LIBRARY_PATHS), Python's
 * site-packages, system paths; probes each that may work. Order: TPU, GPU; at least one candidate
 * of each wanted class. Only an own fault is an error. */
tp_status tp__candidates_search(const tp__search *search, tp__candidates *found,
                                tp_error *err) TP_CHECKED;
/* The one at a path, of any kind. */
tp_status tp__candidates_probe(const char *path, double seconds, bool slice, tp__candidates *found,
                               tp_error *err) TP_CHECKED;
void tp__candidates_free(tp__candidates *found);
/* The first usable one, or NULL. */
const tp__candidate *tp__candidates_usable(const tp__candidates *found);

/* dlopen, version check, PJRT_Plugin_Initialize. Errors name path, what is wrong (not a plugin, too
 * old or too new, the loader's words) and what to do. Returns: tp__plugin_close, after its clients.
 * The library itself stays loaded until the process ends: plugins do not survive being unloaded. */
tp_status tp__plugin_open(const char *path, tp__plugin **plugin, tp_error *err) TP_CHECKED;
void tp__plugin_close(tp__plugin *plugin);
const char *tp__plugin_version(const tp__plugin *plugin); /* "PJRT 0.115, StableHLO 1.20.0" */
const char *tp__plugin_path(const tp__plugin *plugin);

#endif
