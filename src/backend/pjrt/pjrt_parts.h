/* pjrt_parts - what plugin.c, client.c and their neighbours share; nobody else includes it. */
#ifndef TP_PJRT_PARTS_H
#define TP_PJRT_PARTS_H

#include <pthread.h>

#include "client.h"
#include "pjrt_abi.h"

struct tp__plugin {
  const tp__pjrt_api *api;
  char *path;
  char *version;    /* for people */
  char *attributes; /* "name = value" lines, sorted as the plugin gives them */
};

struct tp__client {
  const tp__plugin *plugin;
  const tp__pjrt_api *api;
  tp__pjrt_client *handle;
  tp__pjrt_device **device; /* of this process, by id */
  int *id;                  /* of each */
  char **kind;              /* of each */
  int devices;
  int *all_id; /* of all processes' devices, by process, then id */
  int all;
  int first;                         /* place of our first in all */
  tp__group *group;                  /* of the processes; may be NULL */
  bool lost;                         /* one of them is: the plugin's objects are left alone */
  char *platform, *platform_version; /* "cpu", "tpu", "cuda"; for people, may have several lines */
  /* Buffers and events come and go thousands of times a step; their small structs are reused. */
  pthread_mutex_t lock;
  tp__device_buffer *spare_buffer;
  tp__event *spare_event;
};

struct tp__device_buffer {
  tp__client *client;
  tp__pjrt_buffer *handle;
  tp__device_buffer *next; /* of the spare ones */
};

struct tp__event {
  tp__client *client;
  tp__pjrt_event *handle;
  tp__event *next; /* of the spare ones */
};

/* The plugin's answer as ours: NULL is TP_OK; else err gets code and words, and error is destroyed.
 */
tp_status tp__pjrt_check(const tp__pjrt_api *api, tp__pjrt_error *error, tp_error *err) TP_CHECKED;
/* The same with all the words: *message is set (tp__calloc'ed, may be NULL) on failure. */
tp_status tp__pjrt_check_long(const tp__pjrt_api *api, tp__pjrt_error *error, char **message,
                              tp_error *err) TP_CHECKED;
/* Destroys the error; true when there was none. For calls whose failure does not matter. */
bool tp__pjrt_quiet(const tp__pjrt_api *api, tp__pjrt_error *error);
void tp__pjrt_event_destroy(const tp__pjrt_api *api, tp__pjrt_event *event); /* NULL is fine */

/* Lists the devices of a client that has its handle. */
tp_status tp__client_read_devices(tp__client *client, tp_error *err) TP_CHECKED;

/* Sets the callbacks of a client to be made. */
void tp__peers_give(const tp__peers *peers, tp__pjrt_client_create *args);

/* Small structs from the client's spare ones, still without a handle. tp__event_wait and
 * tp__device_buffer_free take them back. */
tp__device_buffer *tp__device_buffer_take(tp__client *client, tp_error *err);
tp__event *tp__event_take(tp__client *client, tp_error *err);

/* A serialized CompileOptionsProto for data-parallel replicas, replica r on device id[r]. Returns:
 * tp__buffer_free. */
tp_status tp__compile_options(int replicas, const int *id, tp__buffer *into,
                              tp_error *err) TP_CHECKED;

/* A module of text as compilers take it; borrows. */
static inline tp__pjrt_program tp__pjrt_module(const char *text, size_t length)
{
  return (tp__pjrt_program){.struct_size = sizeof(tp__pjrt_program),
                            .code = text,
                            .code_size = length,
                            .format = "mlir",
                            .format_size = 4};
}

/* What the compiler says of a program. */
void tp__executable_info_read(const tp__pjrt_api *api, tp__pjrt_executable *executable,
                              tp__executable_info *info);

/* Puts in front of err that a program does not compile: the operator that the compiler's message
 * (may be NULL) names, and the file with module and message that is left in folder (NULL: TMPDIR or
 * /tmp). Returns err's status. */
tp_status tp__keep_module(const char *text, size_t length, const char *folder, const char *message,
                          tp_error *err);

#endif
