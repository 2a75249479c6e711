/* pjrt - any device with a PJRT plugin (TPU, GPU, CPU) as a backend.
 *
 *   plugin.so ──dlopen──> plugin ──> client: devices ──> executables and buffers
 *   graph ──stablehlo.h──> text ──compile, or the cache──> program on all replicas
 *
 * The layers, each a header of its own, lower ones knowing nothing of higher ones:
 *   pjrt_abi.h    the C interface of plugins, as far as it is used here: own declarations, compared
 *                 field by field with the published header in the tests
 *   plugin.h      finds and opens plugins; what each one is, or why it is not used
 *   client.h      devices, compiling, buffers, execution, events: thin, checked, no leaks
 *   pjrt.h        state, programs and runs behind backend.h, of one process or of several
 *
 * Rules: includes base and graph only. Every PJRT error becomes a tp_error with the plugin's words;
 * every event and error object is destroyed. Probing that may abort or hang (a TPU without a chip,
 * unknown options) happens in a child process with a time limit.
 */
#ifndef TP_PJRT_H
#define TP_PJRT_H

#include "backend/backend.h"
#include "base/log.h"
#include "plugin.h"

typedef struct tp__pjrt_options {
  const char *plugin;    /* path of the plugin */
  tp__device_class kind; /* a CPU plugin makes as many devices as it is told */
  int devices;           /* that the plugin shows to one process; 0: not known */
  int replicas;          /* of this process; 0: all devices; more than there are: an error */
  const char *cache;     /* folder of compiled programs; NULL: none are kept */
  const tp__log *log;    /* may be NULL */
  tp__group *group;      /* processes that do the same at this time and whose devices become one;
                            borrowed; NULL: this one alone. Failures are then agreed on */
} tp__pjrt_options;

tp_status tp__backend_pjrt(const tp__pjrt_options *options, tp__backend **backend,
                           tp_error *err) TP_CHECKED;

#endif
