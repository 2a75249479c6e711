/* client - devices, programs and buffers of one plugin: the PJRT calls that are needed, checked.
 *
 * Ownership is plain: what a function returns is freed by the function that its comment names,
 * before the client. Errors carry the plugin's own words and PJRT's code; TP_ERR_DEVICE. Handles
 * may be used from several threads, one call on one handle at a time.
 */
#ifndef TP_CLIENT_H
#define TP_CLIENT_H

#include "base/group.h"
#include "graph/tensor.h"
#include "plugin.h"

typedef struct tp__client tp__client;
typedef struct tp__executable tp__executable;
typedef struct tp__device_buffer tp__device_buffer;
typedef struct tp__event tp__event;

/* True for an error of a plugin that says that a device's memory is not enough. */
bool tp__pjrt_out_of_memory(const tp_error *err);

/* A named option of a plugin: a text, else a list, else a switch, else the number. A plugin may
 * refuse a name that it does not know, and abort where a known one has another type. */
typedef struct tp__client_option {
  const char *name, *text;
  const int64_t *list; /* of `number` numbers */
  bool is_switch;      /* off: number 0 */
  int64_t number;
} tp__client_option;

tp_status tp__client_new(const tp__plugin *plugin, const tp__client_option *option,
                         size_t n_options, tp__client **client, tp_error *err) TP_CHECKED;
void tp__client_free(tp__client *client); /* after all that was made with it */

/* One of several processes that run one program together, each on devices of its own. */
typedef struct tp__peers {
  struct tp__kv *kv; /* base/kv_store.h; NULL: the plugin finds the others by itself (TPUs) */
  int rank, count;   /* this process, of so many */
  tp__group *group;  /* NULL, or: waiting for the others ends when one of them is lost */
} tp__peers;

/* As tp__client_new, for plugins that join processes, by a key-value store (GPUs) or by themselves:
 * waits until all are there. peers (borrowed) NULL: alone. When one is lost the client is of no use
 * any more, and what is freed of it stays with the plugin, which might wait for ever. */
tp_status tp__client_join(const tp__plugin *plugin, const tp__client_option *option,
                          size_t n_options, const tp__peers *peers, tp__client **client,
                          tp_error *err) TP_CHECKED;

/* This process' devices; in all functions below they are counted from 0, by their ids. */
int tp__client_devices(const tp__client *client);
/* Those of all processes, and the place of our first among them: the number of its replica. */
int tp__client_all_devices(const tp__client *client);
int tp__client_first_replica(const tp__client *client);
/* "TPU v3", "cpu" ... The client keeps it. */
const char *tp__client_device_kind(const tp__client *client, int device);
/* "cpu", "tpu", "cuda" ... The client keeps it. */
const char *tp__client_platform(const tp__client *client);
/* bytes the device has and uses; false when the plugin does not tell. */
bool tp__client_memory(const tp__client *client, int device, uint64_t *limit, uint64_t *used);

/* ---- programs ---- */

/* What the compiler says of a program, per device; bytes. */
typedef struct tp__executable_info {
  uint64_t argument_bytes, output_bytes, alias_bytes, temporary_bytes, code_bytes;
  double flops, bytes_accessed, optimal_seconds; /* 0: not told */
} tp__executable_info;

/* Bytes of one device that a run takes, with the parameters, which are there. */
uint64_t tp__executable_need(const tp__executable_info *info);

/* text: a StableHLO module for `replicas` replicas, on this process' first so many devices. cache:
 * a folder where compiled programs are kept by (text, plugin, versions, options), NULL: none; a
 * damaged or refused entry is compiled again and replaced. A module that does not compile is kept
 * as a file (in the cache's folder, else where temporary files go) whose path the error names, with
 * the operator that the compiler names. Returns: tp__executable_free. */
tp_status tp__executable_new(tp__client *client, const char *text, size_t length, int replicas,
                             const char *cache, tp__executable **executable,
                             tp_error *err) TP_CHECKED;
/* The same for a module of tp__client_all_devices replicas, on all of them: every process compiles
 * it at the same time, and runs it with its own devices. It comes from the caches if it is in
 * everyone's. */
tp_status tp__executable_join(tp__client *client, const char *text, size_t length,
                              const char *cache, tp__executable **executable,
                              tp_error *err) TP_CHECKED;
void tp__executable_free(tp__executable *executable);
void tp__executable_info_of(const tp__executable *executable, tp__executable_info *info);
bool tp__executable_cached(const tp__executable *executable);    /* it came from the cache */
size_t tp__executable_results(const tp__executable *executable); /* of one replica */

/* ---- buffers: on one device ---- */

/* Copies data (row-major, of this type and shape) to the device; data may change after the return.
 * Returns: tp__device_buffer_free. */
tp_status tp__device_buffer_new(tp__client *client, int device, tp__dtype dtype,
                                const tp__shape *shape, const void *data,
                                tp__device_buffer **buffer, tp_error *err) TP_CHECKED;
void tp__device_buffer_free(tp__device_buffer *buffer);
bool tp__device_buffer_is_gone(const tp__device_buffer *buffer); /* donated to a run */
/* Starts the copy of a buffer to data (its whole size); event: wait, then data is there. */
tp_status tp__device_buffer_read(tp__device_buffer *buffer, void *data, size_t size,
                                 tp__event **event, tp_error *err) TP_CHECKED;

/* ---- running ---- */

/* Starts the program on all its replicas. argument [replicas][n_arguments] (those donated are gone
 * afterwards and still have to be freed); result [replicas][n_results] receives new buffers;
 * event [replicas] may be NULL. */
tp_status tp__executable_run(tp__executable *executable, tp__device_buffer *const *argument,
                             size_t n_arguments, tp__device_buffer **result, size_t n_results,
                             tp__event **event, tp_error *err) TP_CHECKED;

/* Waits for, and frees, the event; gives its error. NULL is done. */
tp_status tp__event_wait(tp__event *event, tp_error *err) TP_CHECKED;
void tp__event_free(tp__event *event); /* without waiting */

#endif
