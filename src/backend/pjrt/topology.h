/* topology - devices that need not be there: a plugin's compiler without a client.
 *
 * Compilers can be told which machine they compile for, so that a program can be made, and judged,
 * where there is none. Nothing runs here. Plugins may abort or print pages in these calls, so
 * ahead.h makes them in a child process.
 */
#ifndef TP_TOPOLOGY_H
#define TP_TOPOLOGY_H

#include "client.h"
#include "target.h"

typedef struct tp__topology tp__topology;

/* What the compiler says of the machine. */
typedef struct tp__machine {
  int devices, hosts;
  char kind[64];     /* "TPU v3" */
  char version[160]; /* of plugin and compiler */
} tp__machine;

/* Error: TP_ERR_USAGE for a slice that the compiler does not know. err may not be NULL. Returns:
 * tp__topology_free, before the plugin's. */
tp_status tp__topology_new(const tp__plugin *plugin, const tp__target *target,
                           tp__topology **topology, tp_error *err) TP_CHECKED;
void tp__topology_free(tp__topology *topology);
tp_status tp__topology_describe(const tp__topology *topology, tp__machine *machine,
                                tp_error *err) TP_CHECKED;

/* Compiles a StableHLO module for so many replicas. On failure *message (may be NULL) has all that
 * the compiler said; the caller frees it. */
tp_status tp__topology_compile(tp__topology *topology, const char *text, size_t length,
                               int replicas, tp__executable_info *info, char **message,
                               tp_error *err) TP_CHECKED;

#endif
