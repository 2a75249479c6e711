/* pjrt_abi - the C interface of PJRT plugins, as far as tepal calls it: our own declarations.
 *
 * A plugin exports one function, GetPjrtApi, which returns a table of functions. Each takes one
 * struct of arguments and results and returns an error object or NULL. Names here are ours: the
 * published PJRT_Client_Create is client_create, its PJRT_Client_Create_Args is
 * tp__pjrt_client_create. Layouts and values are the interface's: tests/backend/pjrt/test_abi.py
 * compares each field with the published header of two versions.
 *
 * Growth. The interface only ever adds: functions at the table's end, fields at a struct's end. A
 * plugin refuses a struct that is smaller than it knows and ignores what is beyond, so each of our
 * structs ends with room of zeros, which stand for the defaults of fields that newer plugins know.
 * The table is read only up to executable_memory, its last entry here;
 * plugin.c checks its size.
 *
 * "out": written by the plugin. Texts have a size and no final zero.
 */
#ifndef TP_PJRT_ABI_H
#define TP_PJRT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  TP__PJRT_MAJOR = 0,
  TP__PJRT_MINOR_OLDEST = 54, /* older ones have not been tried */
  TP__PJRT_MINOR_KNOWN = 117  /* newest that was tried; newer ones are taken as well */
};

#define TP__PJRT_HEAD                                                                              \
  size_t struct_size;                        /* of the whole struct, room included */              \
  void *extension                            /* a list of extensions; none are used */
#define TP__PJRT_ROOM unsigned char room[64] /* zeros */

/* Objects of the plugin. */
typedef struct tp__pjrt_error tp__pjrt_error;
typedef struct tp__pjrt_event tp__pjrt_event;
typedef struct tp__pjrt_client tp__pjrt_client;
typedef struct tp__pjrt_device tp__pjrt_device;
typedef struct tp__pjrt_description tp__pjrt_description;
typedef struct tp__pjrt_memory tp__pjrt_memory;
typedef struct tp__pjrt_topology tp__pjrt_topology;
typedef struct tp__pjrt_executable tp__pjrt_executable; /* compiled */
typedef struct tp__pjrt_loaded tp__pjrt_loaded;         /* compiled, and on devices */
typedef struct tp__pjrt_buffer tp__pjrt_buffer;
typedef struct tp__pjrt_serialized tp__pjrt_serialized;

/* ---- errors ---- */

/* Codes are those of absl::Status. */
typedef enum tp__pjrt_code {
  TP__PJRT_UNKNOWN = 2,
  TP__PJRT_INVALID_ARGUMENT = 3,
  TP__PJRT_DEADLINE_EXCEEDED = 4,
  TP__PJRT_NOT_FOUND = 5,
  TP__PJRT_ALREADY_EXISTS = 6,
  TP__PJRT_RESOURCE_EXHAUSTED = 8,
  TP__PJRT_FAILED_PRECONDITION = 9,
  TP__PJRT_ABORTED = 10,
  TP__PJRT_UNIMPLEMENTED = 12,
  TP__PJRT_INTERNAL = 13,
  TP__PJRT_UNAVAILABLE = 14
} tp__pjrt_code;

typedef struct tp__pjrt_error_destroy {
  TP__PJRT_HEAD;
  tp__pjrt_error *error;
  TP__PJRT_ROOM;
} tp__pjrt_error_destroy;

typedef struct tp__pjrt_error_message {
  TP__PJRT_HEAD;
  const tp__pjrt_error *error;
  const char *message; /* out; lives as long as the error */
  size_t message_size; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_error_message;

typedef struct tp__pjrt_error_code {
  TP__PJRT_HEAD;
  const tp__pjrt_error *error;
  tp__pjrt_code code; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_error_code;

/* ---- named values: options and attributes ---- */

typedef enum tp__pjrt_value_type {
  TP__PJRT_TEXT = 0,
  TP__PJRT_INT64 = 1,
  TP__PJRT_INT64_LIST = 2,
  TP__PJRT_FLOAT = 3,
  TP__PJRT_BOOL = 4
} tp__pjrt_value_type;

/* Comes in arrays, so it has no room at its end. */
typedef struct tp__pjrt_named_value {
  TP__PJRT_HEAD;
  const char *name;
  size_t name_size;
  tp__pjrt_value_type type;
  union {
    const char *text;
    int64_t int64;
    const int64_t *int64_list;
    float number;
    bool boolean;
  } value;
  size_t value_size; /* of text and list; 1 otherwise */
} tp__pjrt_named_value;

/* ---- plugin ---- */

typedef struct tp__pjrt_plugin_initialize {
  TP__PJRT_HEAD;
  TP__PJRT_ROOM;
} tp__pjrt_plugin_initialize;

typedef struct tp__pjrt_plugin_attributes {
  TP__PJRT_HEAD;
  const tp__pjrt_named_value *attributes; /* out; the plugin keeps them */
  size_t num_attributes;                  /* out */
  TP__PJRT_ROOM;
} tp__pjrt_plugin_attributes;

/* ---- events ---- */

typedef struct tp__pjrt_event_args { /* of destroy and await */
  TP__PJRT_HEAD;
  tp__pjrt_event *event;
  TP__PJRT_ROOM;
} tp__pjrt_event_args;

typedef struct tp__pjrt_event_is_ready {
  TP__PJRT_HEAD;
  tp__pjrt_event *event;
  bool is_ready; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_event_is_ready;

/* ---- key-value store: how processes of one job find each other ---- */

/* Makes an error that a callback returns. */
typedef tp__pjrt_error *(*tp__pjrt_callback_error)(tp__pjrt_code code, const char *message,
                                                   size_t message_size);

typedef struct tp__pjrt_kv_get { /* of get; try_get is without timeout_ms */
  TP__PJRT_HEAD;
  const char *key;
  size_t key_size;
  int timeout_ms;
  tp__pjrt_callback_error *callback_error;
  void *user;
  char *value;                     /* out */
  size_t value_size;               /* out */
  void (*value_free)(char *value); /* out */
} tp__pjrt_kv_get;

typedef struct tp__pjrt_kv_try_get {
  TP__PJRT_HEAD;
  const char *key;
  size_t key_size;
  tp__pjrt_callback_error *callback_error;
  void *user;
  char *value;                     /* out */
  size_t value_size;               /* out */
  void (*value_free)(char *value); /* out */
} tp__pjrt_kv_try_get;

typedef struct tp__pjrt_kv_put {
  TP__PJRT_HEAD;
  const char *key;
  size_t key_size;
  const char *value;
  size_t value_size;
  tp__pjrt_callback_error *callback_error;
  void *user;
} tp__pjrt_kv_put;

/* ---- client and devices ---- */

typedef struct tp__pjrt_client_create {
  TP__PJRT_HEAD;
  const tp__pjrt_named_value *options;
  size_t num_options;
  tp__pjrt_error *(*kv_get)(tp__pjrt_kv_get *args);
  void *kv_get_user;
  tp__pjrt_error *(*kv_put)(tp__pjrt_kv_put *args);
  void *kv_put_user;
  tp__pjrt_client *client; /* out */
  tp__pjrt_error *(*kv_try_get)(tp__pjrt_kv_try_get *args);
  void *kv_try_get_user;
  TP__PJRT_ROOM;
} tp__pjrt_client_create;

typedef struct tp__pjrt_client_destroy {
  TP__PJRT_HEAD;
  tp__pjrt_client *client;
  TP__PJRT_ROOM;
} tp__pjrt_client_destroy;

typedef struct tp__pjrt_client_text { /* of platform name and version */
  TP__PJRT_HEAD;
  tp__pjrt_client *client;
  const char *text; /* out; the client keeps it */
  size_t text_size; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_client_text;

typedef struct tp__pjrt_client_process_index {
  TP__PJRT_HEAD;
  tp__pjrt_client *client;
  int process_index; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_client_process_index;

typedef struct tp__pjrt_client_devices { /* all, and the addressable ones */
  TP__PJRT_HEAD;
  tp__pjrt_client *client;
  tp__pjrt_device *const *devices; /* out; the client keeps it */
  size_t num_devices;              /* out */
  TP__PJRT_ROOM;
} tp__pjrt_client_devices;

typedef struct tp__pjrt_device_get_description {
  TP__PJRT_HEAD;
  tp__pjrt_device *device;
  tp__pjrt_description *description; /* out; the device keeps it */
  TP__PJRT_ROOM;
} tp__pjrt_device_get_description;

typedef struct tp__pjrt_description_number { /* of id and process index */
  TP__PJRT_HEAD;
  tp__pjrt_description *description;
  int number; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_description_number;

typedef struct tp__pjrt_description_kind {
  TP__PJRT_HEAD;
  tp__pjrt_description *description;
  const char *kind; /* out; the description keeps it */
  size_t kind_size; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_description_kind;

/* Only the first fields are read; the others are here because plugins write them. */
typedef struct tp__pjrt_device_memory_stats {
  TP__PJRT_HEAD;
  tp__pjrt_device *device;
  int64_t bytes_in_use;      /* out */
  int64_t peak_bytes_in_use; /* out */
  bool peak_bytes_in_use_is_set;
  int64_t num_allocs;
  bool num_allocs_is_set;
  int64_t largest_alloc_size;
  bool largest_alloc_size_is_set;
  int64_t bytes_limit; /* out */
  bool bytes_limit_is_set;
  int64_t bytes_reserved;
  bool bytes_reserved_is_set;
  int64_t peak_bytes_reserved;
  bool peak_bytes_reserved_is_set;
  int64_t bytes_reservable_limit;
  bool bytes_reservable_limit_is_set;
  int64_t largest_free_block_bytes;
  bool largest_free_block_bytes_is_set;
  int64_t pool_bytes;
  bool pool_bytes_is_set;
  int64_t peak_pool_bytes;
  bool peak_pool_bytes_is_set;
  TP__PJRT_ROOM;
} tp__pjrt_device_memory_stats;

/* ---- compiling ---- */

typedef struct tp__pjrt_program {
  TP__PJRT_HEAD;
  const char *code;
  size_t code_size;
  const char *format; /* "mlir" */
  size_t format_size;
  TP__PJRT_ROOM;
} tp__pjrt_program;

typedef struct tp__pjrt_client_compile {
  TP__PJRT_HEAD;
  tp__pjrt_client *client;
  const tp__pjrt_program *program;
  const char *compile_options; /* a serialized CompileOptionsProto */
  size_t compile_options_size;
  tp__pjrt_loaded *loaded; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_client_compile;

/* A topology describes devices that need not be there. */
typedef struct tp__pjrt_topology_create {
  TP__PJRT_HEAD;
  const char *name;
  size_t name_size;
  const tp__pjrt_named_value *options;
  size_t num_options;
  tp__pjrt_topology *topology; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_topology_create;

typedef struct tp__pjrt_topology_destroy {
  TP__PJRT_HEAD;
  tp__pjrt_topology *topology;
  TP__PJRT_ROOM;
} tp__pjrt_topology_destroy;

typedef struct tp__pjrt_topology_text { /* of platform name and version */
  TP__PJRT_HEAD;
  tp__pjrt_topology *topology;
  const char *text; /* out; the topology keeps it */
  size_t text_size; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_topology_text;

typedef struct tp__pjrt_topology_descriptions {
  TP__PJRT_HEAD;
  const tp__pjrt_topology *topology;
  tp__pjrt_description *const *descriptions; /* out; the topology keeps them */
  size_t num_descriptions;                   /* out */
  TP__PJRT_ROOM;
} tp__pjrt_topology_descriptions;

typedef struct tp__pjrt_compile { /* for a topology */
  TP__PJRT_HEAD;
  const tp__pjrt_topology *topology;
  const tp__pjrt_program *program;
  const char *compile_options;
  size_t compile_options_size;
  tp__pjrt_client *client;         /* may be NULL */
  tp__pjrt_executable *executable; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_compile;

/* ---- what was compiled ---- */

typedef struct tp__pjrt_executable_destroy {
  TP__PJRT_HEAD;
  tp__pjrt_executable *executable;
  TP__PJRT_ROOM;
} tp__pjrt_executable_destroy;

typedef struct tp__pjrt_executable_num_outputs {
  TP__PJRT_HEAD;
  tp__pjrt_executable *executable;
  size_t num_outputs; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_executable_num_outputs;

typedef struct tp__pjrt_executable_code_size {
  TP__PJRT_HEAD;
  tp__pjrt_executable *executable;
  int64_t size_in_bytes; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_executable_code_size;

typedef struct tp__pjrt_executable_cost {
  TP__PJRT_HEAD;
  tp__pjrt_executable *executable;
  size_t num_properties;                  /* out */
  const tp__pjrt_named_value *properties; /* out; the executable keeps them */
  TP__PJRT_ROOM;
} tp__pjrt_executable_cost;

typedef struct tp__pjrt_executable_memory {
  TP__PJRT_HEAD;
  tp__pjrt_executable *executable;
  int64_t generated_code_size; /* all out, bytes on one device */
  int64_t argument_size;
  int64_t output_size; /* aliased ones included */
  int64_t alias_size;  /* results in the memory of arguments */
  int64_t temp_size;
  int64_t host_generated_code_size;
  int64_t host_argument_size;
  int64_t host_output_size;
  int64_t host_alias_size;
  int64_t host_temp_size;
  TP__PJRT_ROOM; /* since 0.81: peak_memory and others */
} tp__pjrt_executable_memory;

typedef struct tp__pjrt_executable_serialize {
  TP__PJRT_HEAD;
  const tp__pjrt_executable *executable;
  const char *bytes; /* out; lives as long as serialized */
  size_t bytes_size;
  tp__pjrt_serialized *serialized;                          /* out */
  void (*serialized_free)(tp__pjrt_serialized *serialized); /* out */
  TP__PJRT_ROOM;
} tp__pjrt_executable_serialize;

typedef struct tp__pjrt_deserialize {
  TP__PJRT_HEAD;
  tp__pjrt_client *client;
  const char *bytes;
  size_t bytes_size;
  tp__pjrt_loaded *loaded;     /* out */
  const char *compile_options; /* NULL: those that are in bytes */
  size_t compile_options_size;
  TP__PJRT_ROOM;
} tp__pjrt_deserialize;

typedef struct tp__pjrt_loaded_destroy {
  TP__PJRT_HEAD;
  tp__pjrt_loaded *loaded;
  TP__PJRT_ROOM;
} tp__pjrt_loaded_destroy;

typedef struct tp__pjrt_loaded_get_executable {
  TP__PJRT_HEAD;
  tp__pjrt_loaded *loaded;
  tp__pjrt_executable *executable; /* out; executable_destroy */
  TP__PJRT_ROOM;
} tp__pjrt_loaded_get_executable;

/* ---- running ---- */

typedef struct tp__pjrt_execute_options {
  TP__PJRT_HEAD;
  void **send_callbacks;
  void **recv_callbacks;
  size_t num_send_ops;
  size_t num_recv_ops;
  int launch_id;
  const int64_t *non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  TP__PJRT_ROOM; /* since 0.60 and later: context, call location, tasks ... */
} tp__pjrt_execute_options;

typedef struct tp__pjrt_execute {
  TP__PJRT_HEAD;
  tp__pjrt_loaded *loaded;
  tp__pjrt_execute_options *options;
  tp__pjrt_buffer *const *const *argument_lists; /* [num_devices][num_args] */
  size_t num_devices;
  size_t num_args;
  tp__pjrt_buffer **const *output_lists; /* [num_devices][outputs], filled */
  tp__pjrt_event **device_complete;      /* [num_devices], filled; may be NULL */
  tp__pjrt_device *execute_device;
  TP__PJRT_ROOM;
} tp__pjrt_execute;

/* ---- buffers ---- */

typedef enum tp__pjrt_type {
  TP__PJRT_S32 = 4,
  TP__PJRT_S64 = 5,
  TP__PJRT_U8 = 6,
  TP__PJRT_U32 = 8,
  TP__PJRT_F16 = 10,
  TP__PJRT_F32 = 11,
  TP__PJRT_F64 = 12,
  TP__PJRT_BF16 = 13
} tp__pjrt_type;

typedef enum tp__pjrt_host_semantics {
  TP__PJRT_ONLY_DURING_CALL = 0,   /* data may change once the call has returned */
  TP__PJRT_UNTIL_TRANSFER_DONE = 1 /* ... once done_with_data is ready */
} tp__pjrt_host_semantics;

typedef struct tp__pjrt_buffer_from_host {
  TP__PJRT_HEAD;
  tp__pjrt_client *client;
  const void *data;
  tp__pjrt_type type;
  const int64_t *dims;
  size_t num_dims;
  const int64_t *byte_strides; /* NULL: row-major */
  size_t num_byte_strides;
  tp__pjrt_host_semantics semantics;
  tp__pjrt_device *device;
  tp__pjrt_memory *memory;        /* NULL: the device's own */
  void *device_layout;            /* NULL: as the device likes it */
  tp__pjrt_event *done_with_data; /* out */
  tp__pjrt_buffer *buffer;        /* out */
  TP__PJRT_ROOM;
} tp__pjrt_buffer_from_host;

typedef struct tp__pjrt_buffer_destroy {
  TP__PJRT_HEAD;
  tp__pjrt_buffer *buffer;
  TP__PJRT_ROOM;
} tp__pjrt_buffer_destroy;

typedef struct tp__pjrt_buffer_is_deleted {
  TP__PJRT_HEAD;
  tp__pjrt_buffer *buffer;
  bool is_deleted; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_buffer_is_deleted;

typedef struct tp__pjrt_buffer_to_host {
  TP__PJRT_HEAD;
  tp__pjrt_buffer *buffer;
  void *host_layout; /* NULL: row-major */
  void *data;
  size_t data_size;      /* of data; out where data is NULL: the size that is needed */
  tp__pjrt_event *event; /* out */
  TP__PJRT_ROOM;
} tp__pjrt_buffer_to_host;

/* ---- the table ---- */

typedef void (*tp__pjrt_slot)(void); /* a function that is not called here */

typedef struct tp__pjrt_api {
  size_t struct_size; /* of the plugin's own table */
  void *extension;
  struct {
    TP__PJRT_HEAD;
    int major, minor;
  } version;
  void (*error_destroy)(tp__pjrt_error_destroy *args);
  void (*error_message)(tp__pjrt_error_message *args);
  tp__pjrt_error *(*error_code)(tp__pjrt_error_code *args);
  tp__pjrt_error *(*plugin_initialize)(tp__pjrt_plugin_initialize *args);
  tp__pjrt_error *(*plugin_attributes)(tp__pjrt_plugin_attributes *args);
  tp__pjrt_error *(*event_destroy)(tp__pjrt_event_args *args);
  tp__pjrt_error *(*event_is_ready)(tp__pjrt_event_is_ready *args);
  tp__pjrt_slot event_error;
  tp__pjrt_error *(*event_await)(tp__pjrt_event_args *args);
  tp__pjrt_slot event_on_ready;
  tp__pjrt_error *(*client_create)(tp__pjrt_client_create *args);
  tp__pjrt_error *(*client_destroy)(tp__pjrt_client_destroy *args);
  tp__pjrt_error *(*client_platform_name)(tp__pjrt_client_text *args);
  tp__pjrt_error *(*client_process_index)(tp__pjrt_client_process_index *args);
  tp__pjrt_error *(*client_platform_version)(tp__pjrt_client_text *args);
  tp__pjrt_error *(*client_devices)(tp__pjrt_client_devices *args);
  tp__pjrt_error *(*client_addressable_devices)(tp__pjrt_client_devices *args);
  tp__pjrt_slot client_lookup_device_to_addressable_memories[3];
  tp__pjrt_error *(*client_compile)(tp__pjrt_client_compile *args);
  tp__pjrt_slot client_default_device_assignment;
  tp__pjrt_error *(*buffer_from_host)(tp__pjrt_buffer_from_host *args);
  tp__pjrt_error *(*description_id)(tp__pjrt_description_number *args);
  tp__pjrt_error *(*description_process_index)(tp__pjrt_description_number *args);
  tp__pjrt_slot description_attributes;
  tp__pjrt_error *(*description_kind)(tp__pjrt_description_kind *args);
  tp__pjrt_slot description_debug_string_to_string[2];
  tp__pjrt_error *(*device_get_description)(tp__pjrt_device_get_description *args);
  tp__pjrt_slot device_is_addressable_to_default_memory[4];
  tp__pjrt_error *(*device_memory_stats)(tp__pjrt_device_memory_stats *args);
  tp__pjrt_slot memory_id_to_addressable_by_devices[5];
  tp__pjrt_error *(*executable_destroy)(tp__pjrt_executable_destroy *args);
  tp__pjrt_slot executable_name_to_num_partitions[3];
  tp__pjrt_error *(*executable_num_outputs)(tp__pjrt_executable_num_outputs *args);
  tp__pjrt_error *(*executable_code_size)(tp__pjrt_executable_code_size *args);
  tp__pjrt_error *(*executable_cost)(tp__pjrt_executable_cost *args);
  tp__pjrt_slot executable_output_memory_kinds_to_optimized_program[2];
  tp__pjrt_error *(*executable_serialize)(tp__pjrt_executable_serialize *args);
  tp__pjrt_error *(*loaded_destroy)(tp__pjrt_loaded_destroy *args);
  tp__pjrt_error *(*loaded_get_executable)(tp__pjrt_loaded_get_executable *args);
  tp__pjrt_slot loaded_addressable_devices_to_is_deleted[3];
  tp__pjrt_error *(*loaded_execute)(tp__pjrt_execute *args);
  tp__pjrt_error *(*deserialize)(tp__pjrt_deserialize *args);
  tp__pjrt_slot loaded_fingerprint;
  tp__pjrt_error *(*buffer_destroy)(tp__pjrt_buffer_destroy *args);
  tp__pjrt_slot buffer_element_type_to_delete[9];
  tp__pjrt_error *(*buffer_is_deleted)(tp__pjrt_buffer_is_deleted *args);
  tp__pjrt_slot buffer_copy_to_device;
  tp__pjrt_error *(*buffer_to_host)(tp__pjrt_buffer_to_host *args);
  tp__pjrt_slot buffer_is_on_cpu_to_opaque_pointer[6];
  tp__pjrt_slot copy_to_device_stream[5];
  tp__pjrt_error *(*topology_create)(tp__pjrt_topology_create *args);
  tp__pjrt_error *(*topology_destroy)(tp__pjrt_topology_destroy *args);
  tp__pjrt_error *(*topology_platform_name)(tp__pjrt_topology_text *args);
  tp__pjrt_error *(*topology_platform_version)(tp__pjrt_topology_text *args);
  tp__pjrt_error *(*topology_descriptions)(tp__pjrt_topology_descriptions *args);
  tp__pjrt_slot topology_serialize_to_attributes[2];
  tp__pjrt_error *(*compile)(tp__pjrt_compile *args);
  tp__pjrt_slot executable_output_element_types_to_client_topology[6];
  tp__pjrt_error *(*executable_memory)(tp__pjrt_executable_memory *args);
} tp__pjrt_api;

/* GetPjrtApi */
typedef const tp__pjrt_api *(*tp__pjrt_get_api)(void);

#endif
