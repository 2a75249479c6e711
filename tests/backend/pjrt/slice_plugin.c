/* slice_plugin - a PJRT plugin that makes several processes one machine, without a network of
 * devices: for the tests of TPU slices and of GPUs of several processes.
 *
 * It stands before a plugin for CPUs (TEPAL_SLICE_PLUGIN). Of a client with num_nodes N and M
 * devices each, every process makes all N x M devices, shows its own M as addressable, and when a
 * program of N x M replicas is run, runs all of it: what the others' replicas are given comes from
 * those processes, what their replicas give back is kept beside the own result it belongs to, for
 * the next run. So a process that runs another program, or the same with arguments of another
 * origin, is found out; and the bits are those of one process with N x M devices.
 *
 * Processes meet through the key-value callbacks, as GPU plugins do, and there agree on a folder
 * (below TMPDIR) for all other bytes, which stands for the wires between the devices. One that does
 * not come within TEPAL_SLICE_PATIENCE seconds (60) is an error of the run.
 *
 * With TEPAL_SLICE_TPU=M it is a TPU of M cores on each host, and finds the others as libtpu does:
 * by TPU_WORKER_ID and TPU_WORKER_HOSTNAMES; the folder is then TEPAL_SLICE_FOLDER.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/pjrt/pjrt_abi.h"
#include "slice_wires.h"

enum { NODES_MAX = 16, DEVICES_MAX = 64 };

/* Functions of the interface that only this plugin calls, by their places in the table. */
typedef struct buffer_type {
  TP__PJRT_HEAD;
  tp__pjrt_buffer *buffer;
  tp__pjrt_type type; /* out */
  TP__PJRT_ROOM;
} buffer_type;
typedef struct buffer_dims {
  TP__PJRT_HEAD;
  tp__pjrt_buffer *buffer;
  const int64_t *dims; /* out */
  size_t num_dims;     /* out */
  TP__PJRT_ROOM;
} buffer_dims;
typedef struct num_replicas {
  TP__PJRT_HEAD;
  tp__pjrt_executable *executable;
  size_t num_replicas; /* out */
  TP__PJRT_ROOM;
} num_replicas;
enum { ELEMENT_TYPE = 0, DIMENSIONS = 1, NUM_REPLICAS = 1 };

static const tp__pjrt_api *real;
static union {
  tp__pjrt_api api;
  char bytes[8192];
} mine;

/* ---- errors of its own ---- */

struct tp__pjrt_error {
  char text[NAME];
};
static struct tp__pjrt_error own_error;

static tp__pjrt_error *fail(const char *text, int of)
{
  snprintf(own_error.text, sizeof own_error.text, "slice: node %d %s", of, text);
  return &own_error;
}

static void error_destroy(tp__pjrt_error_destroy *args)
{
  if (args->error != &own_error) real->error_destroy(args);
}

static void error_message(tp__pjrt_error_message *args)
{
  if (args->error != &own_error) {
    real->error_message(args);
    return;
  }
  args->message = own_error.text;
  args->message_size = strlen(own_error.text);
}

static tp__pjrt_error *error_code(tp__pjrt_error_code *args)
{
  if (args->error != &own_error) return real->error_code(args);
  args->code = TP__PJRT_UNAVAILABLE;
  return NULL;
}

#define TRY(call)                                                                                  \
  do {                                                                                             \
    tp__pjrt_error *error_ = (call);                                                               \
    if (error_ != NULL) return error_;                                                             \
  } while (0)

/* ---- the slice ---- */

static int nodes = 1, each; /* each: devices of a node */
static tp__pjrt_client *client;
static tp__pjrt_device *device[DEVICES_MAX], *addressable[DEVICES_MAX]; /* by id; its own */
static uint64_t runs;

/* ---- the client ---- */

static tp__pjrt_error *told(tp__pjrt_code code, const char *message, size_t size)
{
  (void)size;
  snprintf(own_error.text, sizeof own_error.text, "the store says %d: %.400s", (int)code, message);
  return &own_error;
}
static tp__pjrt_callback_error callback_error = told;

static tp__pjrt_error *put(const tp__pjrt_client_create *c, const char *key, const char *value)
{
  tp__pjrt_kv_put args = {.struct_size = sizeof args,
                          .key = key,
                          .key_size = strlen(key),
                          .value = value,
                          .value_size = strlen(value),
                          .callback_error = &callback_error,
                          .user = c->kv_put_user};
  return c->kv_put(&args);
}

static tp__pjrt_error *get(const tp__pjrt_client_create *c, const char *key, char *value,
                           size_t room)
{
  tp__pjrt_kv_get args = {.struct_size = sizeof args,
                          .key = key,
                          .key_size = strlen(key),
                          .timeout_ms = 60000,
                          .callback_error = &callback_error,
                          .user = c->kv_get_user};
  TRY(c->kv_get(&args));
  snprintf(value, room, "%.*s", (int)args.value_size, args.value);
  args.value_free(args.value);
  return NULL;
}

/* All are there, and know the folder. */
static tp__pjrt_error *meet(const tp__pjrt_client_create *c)
{
  char key[32], value[NAME];
  if (c->kv_put == NULL || c->kv_get == NULL) return fail("was given no store", node);
  if (node == 0) {
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.300s/slice-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(folder) == NULL) return fail("can't make its folder", node);
    TRY(put(c, "slice/folder", folder));
  }
  TRY(get(c, "slice/folder", folder, sizeof folder));
  snprintf(key, sizeof key, "slice/%d", node);
  TRY(put(c, key, "here"));
  for (int i = 0; i < nodes; i++) {
    snprintf(key, sizeof key, "slice/%d", i);
    TRY(get(c, key, value, sizeof value));
  }
  return NULL;
}

/* An empty message before the first run. */
static tp__pjrt_error *meet_as_tpu(void)
{
  const char *given = getenv("TEPAL_SLICE_FOLDER");
  snprintf(folder, sizeof folder, "%s", given != NULL ? given : "");
  FILE *f = open_message(0, node, true);
  if (f == NULL || !finish_message(0, f)) return fail("can't write", node);
  for (int of = 0; of < nodes; of++) {
    f = wait_for_message(0, of);
    if (f == NULL) return fail("has not come", of);
    fclose(f);
  }
  return NULL;
}

static int id_of(tp__pjrt_description *description)
{
  tp__pjrt_description_number args = {.struct_size = sizeof args, .description = description};
  return real->description_id(&args) == NULL ? args.number : 0;
}

static tp__pjrt_error *list_devices(void)
{
  tp__pjrt_client_devices args = {.struct_size = sizeof args, .client = client};
  TRY(real->client_devices(&args));
  if (args.num_devices != (size_t)(nodes * each)) return fail("got other devices", node);
  for (size_t i = 0; i < args.num_devices; i++) {
    tp__pjrt_device_get_description get = {.struct_size = sizeof get, .device = args.devices[i]};
    TRY(real->device_get_description(&get));
    int id = id_of(get.description);
    device[id] = args.devices[i];
    if (id / each == node) addressable[id % each] = args.devices[i];
  }
  return NULL;
}

static tp__pjrt_error *platform_name(tp__pjrt_client_text *args)
{
  if (getenv("TEPAL_SLICE_TPU") == NULL) return real->client_platform_name(args);
  args->text = "tpu";
  args->text_size = 3;
  return NULL;
}

static int64_t option(const tp__pjrt_client_create *args, const char *name, int64_t otherwise)
{
  for (size_t i = 0; i < args->num_options; i++) {
    const tp__pjrt_named_value *o = &args->options[i];
    if (o->name_size == strlen(name) && memcmp(o->name, name, o->name_size) == 0)
      return o->value.int64;
  }
  return otherwise;
}

static tp__pjrt_error *client_create(tp__pjrt_client_create *args)
{
  nodes = (int)option(args, "num_nodes", 1);
  node = (int)option(args, "node_id", 0);
  each = (int)option(args, "cpu_device_count", 1);
  const char *tpu = getenv("TEPAL_SLICE_TPU");
  if (tpu != NULL) {
    if (args->num_options > 0 || args->kv_get != NULL) return fail("is a TPU: no options", node);
    const char *names = getenv("TPU_WORKER_HOSTNAMES"), *id = getenv("TPU_WORKER_ID");
    for (; names != NULL && *names != '\0'; names++) nodes += *names == ',';
    node = id != NULL ? (int)strtol(id, NULL, 10) : 0;
    each = (int)strtol(tpu, NULL, 10);
  } else if (nodes == 1) {
    return real->client_create(args);
  }
  if (nodes > NODES_MAX || nodes * each > DEVICES_MAX || node >= nodes)
    return fail("is too much", node);
  if (nodes > 1) TRY(tpu != NULL ? meet_as_tpu() : meet(args));
  const tp__pjrt_named_value value = {.struct_size = sizeof value,
                                      .name = "cpu_device_count",
                                      .name_size = 16,
                                      .type = TP__PJRT_INT64,
                                      .value.int64 = nodes * each,
                                      .value_size = 1};
  tp__pjrt_client_create inner = {.struct_size = sizeof inner, .options = &value, .num_options = 1};
  TRY(real->client_create(&inner));
  args->client = client = inner.client;
  return list_devices();
}

static void remove_folder(void)
{
  DIR *dir = node == 0 ? opendir(folder) : NULL;
  for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
    if (e->d_name[0] != '.') unlinkat(dirfd(dir), e->d_name, 0);
  if (dir == NULL) return;
  closedir(dir);
  rmdir(folder);
}

static tp__pjrt_error *client_destroy(tp__pjrt_client_destroy *args)
{
  if (nodes > 1) remove_folder();
  return real->client_destroy(args);
}

static tp__pjrt_error *addressable_devices(tp__pjrt_client_devices *args)
{
  if (nodes == 1) return real->client_addressable_devices(args);
  args->devices = addressable;
  args->num_devices = (size_t)each;
  return NULL;
}

static tp__pjrt_error *process_index(tp__pjrt_description_number *args)
{
  if (nodes == 1) return real->description_process_index(args);
  args->number = id_of(args->description) / each;
  return NULL;
}

/* A node of little memory. */
static tp__pjrt_error *memory_stats(tp__pjrt_device_memory_stats *args)
{
  const char *bytes = getenv("TEPAL_SLICE_MEMORY");
  if (bytes == NULL) return real->device_memory_stats(args);
  args->bytes_limit = strtol(bytes, NULL, 10);
  args->bytes_limit_is_set = true;
  return NULL;
}

/* ---- results of the others' replicas, beside the first own one ---- */

typedef struct mirror {
  struct mirror *next;
  tp__pjrt_buffer *own, *other[DEVICES_MAX]; /* by replica */
  uint64_t origin;                           /* of which run and result */
} mirror;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mirror *mirrors;

static mirror *find(tp__pjrt_buffer *own)
{
  pthread_mutex_lock(&lock);
  mirror *m = mirrors;
  while (m != NULL && m->own != own) m = m->next;
  pthread_mutex_unlock(&lock);
  return m;
}

static void destroy(tp__pjrt_buffer *buffer)
{
  tp__pjrt_buffer_destroy args = {.struct_size = sizeof args, .buffer = buffer};
  if (buffer != NULL) (void)real->buffer_destroy(&args);
}

static tp__pjrt_error *buffer_destroy(tp__pjrt_buffer_destroy *args)
{
  mirror *m = NULL;
  pthread_mutex_lock(&lock);
  for (mirror **at = &mirrors; *at != NULL; at = &(*at)->next)
    if ((*at)->own == args->buffer) {
      m = *at;
      *at = m->next;
      break;
    }
  pthread_mutex_unlock(&lock);
  for (int r = 0; m != NULL && r < nodes * each; r++) destroy(m->other[r]);
  free(m);
  return real->buffer_destroy(args);
}

/* ---- arguments ---- */

typedef struct run {
  const tp__pjrt_execute *args;
  size_t replicas, arguments, results;
  tp__pjrt_buffer **argument, **result; /* [replicas][...] */
  tp__pjrt_event **event;               /* [replicas] */
} run;

static tp__pjrt_buffer *own_argument(const run *x, size_t a, int d)
{
  return x->args->argument_lists[d][a];
}

static tp__pjrt_error *read_buffer(tp__pjrt_buffer *buffer, char **data, size_t *size)
{
  tp__pjrt_buffer_to_host args = {.struct_size = sizeof args, .buffer = buffer};
  TRY(real->buffer_to_host(&args)); /* says how large */
  args.data = *data = calloc(args.data_size + 1, 1);
  *size = args.data_size;
  TRY(real->buffer_to_host(&args));
  tp__pjrt_event_args event = {.struct_size = sizeof event, .event = args.event};
  tp__pjrt_error *error = real->event_await(&event);
  (void)real->event_destroy(&event);
  return error;
}

/* Of each argument where it comes from and, when it is new, the bytes of all own replicas. */
static tp__pjrt_error *send_arguments(const run *x)
{
  FILE *f = open_message(runs, node, true);
  if (f == NULL) return fail("can't write", node);
  tp__pjrt_error *error = NULL;
  bool good = fwrite(&x->arguments, sizeof x->arguments, 1, f) == 1;
  for (size_t a = 0; error == NULL && good && a < x->arguments; a++) {
    const mirror *m = find(own_argument(x, a, 0));
    uint64_t origin = m != NULL ? m->origin : 0;
    good = fwrite(&origin, sizeof origin, 1, f) == 1;
    for (int d = 0; error == NULL && good && m == NULL && d < each; d++) {
      char *data = NULL;
      size_t size = 0;
      error = read_buffer(own_argument(x, a, d), &data, &size);
      good = fwrite(&size, sizeof size, 1, f) == 1 && fwrite(data, 1, size, f) == size;
      free(data);
    }
  }
  good = finish_message(runs, f) && good;
  return error != NULL || good ? error : fail("can't write", node);
}

/* A new argument of another node's replica; type and shape are those of the own one. */
static tp__pjrt_error *copy_argument(tp__pjrt_buffer *like, const void *data, int replica,
                                     tp__pjrt_buffer **copy)
{
  buffer_type type = {.struct_size = sizeof type, .buffer = like};
  buffer_dims dims = {.struct_size = sizeof dims, .buffer = like};
  const tp__pjrt_slot *slot = real->buffer_element_type_to_delete;
  TRY(((tp__pjrt_error * (*)(buffer_type *)) slot[ELEMENT_TYPE])(&type));
  TRY(((tp__pjrt_error * (*)(buffer_dims *)) slot[DIMENSIONS])(&dims));
  tp__pjrt_buffer_from_host args = {.struct_size = sizeof args,
                                    .client = client,
                                    .data = data,
                                    .type = type.type,
                                    .dims = dims.dims,
                                    .num_dims = dims.num_dims,
                                    .semantics = TP__PJRT_ONLY_DURING_CALL,
                                    .device = device[replica]};
  TRY(real->buffer_from_host(&args));
  tp__pjrt_event_args event = {.struct_size = sizeof event, .event = args.done_with_data};
  if (event.event != NULL) (void)real->event_destroy(&event);
  *copy = args.buffer;
  return NULL;
}

static tp__pjrt_error *take_new(const run *x, size_t a, int of, FILE *f)
{
  for (int d = 0; d < each; d++) {
    int replica = of * each + d;
    size_t size = 0;
    if (fread(&size, sizeof size, 1, f) != 1 || size > (size_t)1 << 30)
      return fail("sent something short", of);
    char *data = malloc(size + 1);
    tp__pjrt_error *error = NULL;
    if (data == NULL || fread(data, 1, size, f) != size)
      error = fail("sent something short", of);
    else
      error = copy_argument(own_argument(x, a, 0), data, replica,
                            &x->argument[(size_t)replica * x->arguments + a]);
    free(data);
    TRY(error);
  }
  return NULL;
}

static tp__pjrt_error *take_from(const run *x, int of, FILE *f)
{
  size_t count = 0;
  if (fread(&count, sizeof count, 1, f) != 1 || count != x->arguments)
    return fail("runs another program", of);
  for (size_t a = 0; a < count; a++) {
    const mirror *m = find(own_argument(x, a, 0));
    uint64_t origin = 0;
    if (fread(&origin, sizeof origin, 1, f) != 1 || origin != (m != NULL ? m->origin : 0))
      return fail("runs it with an argument from elsewhere", of);
    if (m == NULL) TRY(take_new(x, a, of, f));
    for (int r = of * each; m != NULL && r < (of + 1) * each; r++)
      x->argument[(size_t)r * count + a] = m->other[r];
  }
  return NULL;
}

static tp__pjrt_error *gather_arguments(const run *x)
{
  runs++;
  TRY(send_arguments(x));
  for (int of = 0; of < nodes; of++) {
    FILE *f = of != node ? wait_for_message(runs, of) : NULL;
    if (of != node && f == NULL) return fail("has not come", of);
    tp__pjrt_error *error = f != NULL ? take_from(x, of, f) : NULL;
    if (f != NULL) fclose(f);
    TRY(error);
  }
  /* Everyone has read the message before, who has sent this one. */
  char path[NAME];
  if (runs > 1) unlink(path_of(runs - 1, node, false, path));
  for (int d = 0; d < each; d++)
    memcpy(x->argument + (size_t)(node * each + d) * x->arguments, x->args->argument_lists[d],
           x->arguments * sizeof *x->argument);
  return NULL;
}

/* ---- running ---- */

static tp__pjrt_error *run_all(const run *x)
{
  tp__pjrt_buffer *const *argument_list[DEVICES_MAX];
  tp__pjrt_buffer **result_list[DEVICES_MAX];
  for (size_t r = 0; r < x->replicas; r++) {
    argument_list[r] = x->argument + r * x->arguments;
    result_list[r] = x->result + r * x->results;
  }
  tp__pjrt_execute all = *x->args;
  all.argument_lists = argument_list;
  all.output_lists = result_list;
  all.num_devices = x->replicas;
  all.device_complete = x->event;
  return real->loaded_execute(&all);
}

/* What was made only for this run. */
static void drop_copies(const run *x)
{
  for (size_t a = 0; a < x->arguments; a++)
    for (size_t r = 0; find(own_argument(x, a, 0)) == NULL && r < x->replicas; r++)
      if ((int)r / each != node) destroy(x->argument[r * x->arguments + a]);
}

static void hand_over(const run *x)
{
  for (size_t i = 0; i < x->results; i++) {
    mirror *m = calloc(1, sizeof *m);
    for (size_t r = 0; r < x->replicas; r++) {
      tp__pjrt_buffer *result = x->result[r * x->results + i];
      if ((int)r / each == node)
        x->args->output_lists[(int)r % each][i] = result;
      else
        m->other[r] = result;
    }
    m->own = x->args->output_lists[0][i];
    m->origin = runs * 100000 + i;
    pthread_mutex_lock(&lock);
    m->next = mirrors;
    mirrors = m;
    pthread_mutex_unlock(&lock);
  }
  for (size_t r = 0; r < x->replicas; r++) {
    tp__pjrt_event_args event = {.struct_size = sizeof event, .event = x->event[r]};
    if ((int)r / each == node && x->args->device_complete != NULL)
      x->args->device_complete[(int)r % each] = x->event[r];
    else
      (void)real->event_destroy(&event);
  }
}

static tp__pjrt_error *measure(const tp__pjrt_execute *args, run *x)
{
  tp__pjrt_loaded_get_executable get = {.struct_size = sizeof get, .loaded = args->loaded};
  TRY(real->loaded_get_executable(&get));
  num_replicas replicas = {.struct_size = sizeof replicas, .executable = get.executable};
  tp__pjrt_executable_num_outputs outputs = {.struct_size = sizeof outputs,
                                             .executable = get.executable};
  const tp__pjrt_slot *slot = real->executable_name_to_num_partitions;
  TRY(((tp__pjrt_error * (*)(num_replicas *)) slot[NUM_REPLICAS])(&replicas));
  TRY(real->executable_num_outputs(&outputs));
  tp__pjrt_executable_destroy end = {.struct_size = sizeof end, .executable = get.executable};
  *x = (run){.args = args,
             .replicas = replicas.num_replicas,
             .arguments = args->num_args,
             .results = outputs.num_outputs};
  return real->executable_destroy(&end);
}

static tp__pjrt_error *execute(tp__pjrt_execute *args)
{
  run x = {0};
  if (nodes == 1) return real->loaded_execute(args);
  TRY(measure(args, &x));
  if (x.replicas != (size_t)(nodes * each)) return real->loaded_execute(args);
  x.argument = calloc(x.replicas * x.arguments + 1, sizeof *x.argument);
  x.result = calloc(x.replicas * x.results + 1, sizeof *x.result);
  x.event = calloc(x.replicas, sizeof *x.event);
  tp__pjrt_error *error = gather_arguments(&x);
  if (error == NULL) error = run_all(&x);
  drop_copies(&x);
  if (error == NULL) hand_over(&x);
  free(x.argument);
  free(x.result);
  free(x.event);
  return error;
}

__attribute__((visibility("default"))) const tp__pjrt_api *GetPjrtApi(void);

const tp__pjrt_api *GetPjrtApi(void)
{
  const char *path = getenv("TEPAL_SLICE_PLUGIN");
  void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  tp__pjrt_get_api get_api = NULL;
  if (library == NULL) return NULL;
  *(void **)&get_api = dlsym(library, "GetPjrtApi");
  real = get_api();
  if (real->struct_size > sizeof mine) return NULL;
  memcpy(&mine, real, real->struct_size);
  mine.api.error_destroy = error_destroy;
  mine.api.error_message = error_message;
  mine.api.error_code = error_code;
  mine.api.client_create = client_create;
  mine.api.client_destroy = client_destroy;
  mine.api.client_platform_name = platform_name;
  mine.api.client_addressable_devices = addressable_devices;
  mine.api.description_process_index = process_index;
  mine.api.device_memory_stats = memory_stats;
  mine.api.buffer_destroy = buffer_destroy;
  mine.api.loaded_execute = execute;
  return &mine.api;
}
