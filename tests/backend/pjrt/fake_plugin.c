/* fake_plugin - a PJRT plugin without devices, for the tests of opening, probing and cleaning up.
 *
 * The environment variable TEPAL_FAKE says how it opens; unset, it is a TPU v3 with two cores of 16
 * GB ("frozen": one that never ends what it has begun). It compiles anything, and a run gives a
 * copy of each replica's first argument. It counts its objects: tepal_fake_live says how many of
 * each sort live. tepal_fake_fail_at(n) lets the n-th call from now on fail (0: none),
 * tepal_fake_calls says how many there have been since.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/pjrt/pjrt_abi.h"

struct tp__pjrt_error {
  tp__pjrt_code code;
  const char *text;
  bool made; /* not static */
};

static struct tp__pjrt_error no_device = {
    TP__PJRT_NOT_FOUND, "TPU initialization failed: No jellyfish device found.", false};
static struct tp__pjrt_error busy = {
    TP__PJRT_ABORTED,
    "Internal error when accessing libtpu multi-process lockfile. Run \"$ sudo rm "
    "/tmp/libtpu_lockfile\".",
    false};
static struct tp__pjrt_error bad_start = {TP__PJRT_INTERNAL, "driver is of 1999", false};
static struct tp__pjrt_error no_option = {
    TP__PJRT_INVALID_ARGUMENT, "Unexpected option name passed to PJRT_Client_Create: preallocate",
    false};

static bool fakes(const char *what)
{
  const char *set = getenv("TEPAL_FAKE");
  return set != NULL && strcmp(set, what) == 0;
}

/* ---- what lives, and what fails ---- */

enum { ERRORS, EVENTS, BUFFERS, PROGRAMS, LOADED, SERIALIZED, CLIENTS, SORTS };
static int live[SORTS], calls, fail_at;

__attribute__((visibility("default"))) void tepal_fake_live(int now[SORTS]);
__attribute__((visibility("default"))) void tepal_fake_fail_at(int call);
__attribute__((visibility("default"))) int tepal_fake_calls(void);

void tepal_fake_live(int now[SORTS])
{
  memcpy(now, live, sizeof live);
}

void tepal_fake_fail_at(int call)
{
  fail_at = call;
  calls = 0;
}

int tepal_fake_calls(void)
{
  return calls;
}

/* Of a frozen device nothing is ever let go, but by tepal_fake_thaw. */
enum { HELD = 32 };
static void *held[HELD];

static void *make(int sort, size_t size)
{
  void *object = calloc(1, size);
  live[sort]++;
  for (int i = 0; fakes("frozen") && i < HELD; i++) {
    if (held[i] != NULL) continue;
    held[i] = object;
    break;
  }
  return object;
}

static void end(int sort, void *object)
{
  if (object == NULL) return;
  live[sort]--;
  for (int i = 0; i < HELD; i++)
    if (held[i] == object) held[i] = NULL;
  free(object);
}

__attribute__((visibility("default"))) void tepal_fake_thaw(void);

void tepal_fake_thaw(void)
{
  memset(live, 0, sizeof live);
  for (int i = 0; i < HELD; i++) {
    free(held[i]);
    held[i] = NULL;
  }
}

/* Every call that may fail begins with it. */
static tp__pjrt_error *failure(void)
{
  if (++calls != fail_at) return NULL;
  tp__pjrt_error *e = make(ERRORS, sizeof *e);
  *e = (tp__pjrt_error){TP__PJRT_RESOURCE_EXHAUSTED, "failed as was wished", true};
  return e;
}

#define MAY_FAIL()                                                                                 \
  do {                                                                                             \
    tp__pjrt_error *failure_ = failure();                                                          \
    if (failure_ != NULL) return failure_;                                                         \
  } while (0)

/* ---- errors, plugin ---- */

static void error_destroy(tp__pjrt_error_destroy *args)
{
  if (args->error->made) end(ERRORS, args->error);
}

static void error_message(tp__pjrt_error_message *args)
{
  args->message = args->error->text;
  args->message_size = strlen(args->error->text);
}

static tp__pjrt_error *error_code(tp__pjrt_error_code *args)
{
  args->code = args->error->code;
  return NULL;
}

static tp__pjrt_error *initialize(tp__pjrt_plugin_initialize *args)
{
  (void)args;
  MAY_FAIL();
  return fakes("bad start") ? &bad_start : NULL;
}

static tp__pjrt_error *attributes(tp__pjrt_plugin_attributes *args)
{
  static const int64_t version[] = {1, 2, 3};
  MAY_FAIL();
  static const tp__pjrt_named_value value[] = {
      {.struct_size = sizeof *value,
       .name = "stablehlo_current_version",
       .name_size = 25,
       .type = TP__PJRT_INT64_LIST,
       .value.int64_list = version,
       .value_size = 3},
      {.struct_size = sizeof *value,
       .name = "a text",
       .name_size = 6,
       .type = TP__PJRT_TEXT,
       .value.text = "xyz",
       .value_size = 2},
  };
  args->attributes = value;
  args->num_attributes = 2;
  return NULL;
}

/* ---- the key-value store ---- */

enum { NODES_MAX = 16 };
static int node, nodes = 1;

static tp__pjrt_error *make_error(tp__pjrt_code code, const char *message, size_t size)
{
  tp__pjrt_error *e = make(ERRORS, sizeof *e);
  *e = (tp__pjrt_error){code, "told by the store", true};
  return size == strlen(message) ? e : NULL; /* texts come whole */
}

static tp__pjrt_callback_error callback_error = make_error;

/* Ends the error; its code, 0 for none. */
static int code_of(tp__pjrt_error *e)
{
  int code = e != NULL ? (int)e->code : 0;
  end(ERRORS, e);
  return code;
}

static int put(const tp__pjrt_client_create *c, int of)
{
  char key[32], value[32];
  snprintf(key, sizeof key, "fake/%d", of);
  snprintf(value, sizeof value, "node %d of %d", of, nodes);
  tp__pjrt_kv_put args = {.struct_size = sizeof args,
                          .key = key,
                          .key_size = strlen(key),
                          .value = value,
                          .value_size = strlen(value),
                          .callback_error = &callback_error,
                          .user = c->kv_put_user};
  return code_of(c->kv_put(&args));
}

/* Checks the value, too. try: without waiting. */
static int get(const tp__pjrt_client_create *c, int of, int timeout_ms, bool try)
{
  char key[32], want[32];
  snprintf(key, sizeof key, "fake/%d", of);
  snprintf(want, sizeof want, "node %d of %d", of, nodes);
  tp__pjrt_kv_get wait = {.struct_size = sizeof wait,
                          .key = key,
                          .key_size = strlen(key),
                          .timeout_ms = timeout_ms,
                          .callback_error = &callback_error,
                          .user = c->kv_get_user};
  tp__pjrt_kv_try_get once = {.struct_size = sizeof once,
                              .key = key,
                              .key_size = strlen(key),
                              .callback_error = &callback_error,
                              .user = c->kv_try_get_user};
  int code = code_of(try ? c->kv_try_get(&once) : c->kv_get(&wait));
  if (code != 0) return code;
  char *value = try ? once.value : wait.value;
  size_t size = try ? once.value_size : wait.value_size;
  if (size != strlen(want) || memcmp(value, want, size) != 0) code = -1;
  (try ? once.value_free : wait.value_free)(value);
  return code;
}

/* Says what was got instead of what is right. */
static tp__pjrt_error *expect(const char *what, int of, int got, int right)
{
  static char text[80];
  static struct tp__pjrt_error bad = {TP__PJRT_INTERNAL, text, false};
  snprintf(text, sizeof text, "%s of node %d gives code %d", what, of, got);
  return got == right ? NULL : &bad;
}

#define EXPECT(what, of, got, right)                                                               \
  do {                                                                                             \
    tp__pjrt_error *bad_ = expect(what, of, got, right);                                           \
    if (bad_ != NULL) return bad_;                                                                 \
  } while (0)

/* Tells its own value, waits for the others', and tries what the store has to refuse. */
static tp__pjrt_error *meet(const tp__pjrt_client_create *args)
{
  for (size_t i = 0; i < args->num_options; i++) {
    const tp__pjrt_named_value *o = &args->options[i];
    if (strncmp(o->name, "node_id", o->name_size) == 0) node = (int)o->value.int64;
    if (strncmp(o->name, "num_nodes", o->name_size) == 0) nodes = (int)o->value.int64;
  }
  EXPECT("having a store", node, args->kv_get != NULL && nodes <= NODES_MAX, 1);
  int code = put(args, node);
  if (code != 0) return make_error((tp__pjrt_code)code, "", 0); /* not reached, or refused */
  EXPECT("another put", node, put(args, node), TP__PJRT_ALREADY_EXISTS);
  for (int i = 0; i < nodes; i++) {
    EXPECT("get", i, get(args, i, 60000, false), 0);
    EXPECT("try_get", i, get(args, i, 0, true), 0);
  }
  EXPECT("get", 99, get(args, 99, 10, false), TP__PJRT_DEADLINE_EXCEEDED);
  EXPECT("try_get", 99, get(args, 99, 0, true), TP__PJRT_NOT_FOUND);
  return NULL;
}

/* ---- client, devices ---- */

static tp__pjrt_error *client_create(tp__pjrt_client_create *args)
{
  MAY_FAIL();
  if (fakes("no device")) return &no_device;
  if (fakes("busy")) return &busy;
  if (fakes("no options") && args->num_options > 0) return &no_option;
  if (fakes("exit")) _exit(0);
  if (fakes("abort")) {
    fprintf(stderr, "I0000 00:00 12 fake.cc:1] about to fail\n"
                    "F0000 00:00 12 fake.cc:2] Unknown flag in XLA_FLAGS: --nonsense\n"
                    "*** Check failure stack trace: ***\n    @ 0x1 somewhere\n");
    abort();
  }
  while (fakes("hang")) pause();
  tp__pjrt_error *alone = fakes("peers") ? meet(args) : NULL;
  if (alone != NULL) return alone;
  args->client = make(CLIENTS, 1);
  return NULL;
}

static tp__pjrt_error *client_destroy(tp__pjrt_client_destroy *args)
{
  end(CLIENTS, args->client);
  return NULL;
}

static tp__pjrt_error *platform_name(tp__pjrt_client_text *args)
{
  MAY_FAIL();
  args->text = fakes("gpu") ? "cuda" : "tpu";
  args->text_size = strlen(args->text);
  return NULL;
}

static tp__pjrt_error *platform_version(tp__pjrt_client_text *args)
{
  MAY_FAIL();
  args->text = "fake\nof today";
  args->text_size = strlen(args->text);
  return NULL;
}

/* Two cores of each process. Their ids do not go with the processes' numbers, and they are listed
 * backwards: what uses them has to sort. */
static char core[2 * NODES_MAX];

static tp__pjrt_error *list(tp__pjrt_client_devices *args, int first, int n)
{
  static tp__pjrt_device *device[2][2 * NODES_MAX];
  tp__pjrt_device **to = device[n > 2];
  MAY_FAIL();
  for (int i = 0; i < n; i++) to[i] = (tp__pjrt_device *)(void *)&core[first + n - 1 - i];
  args->devices = to;
  args->num_devices = fakes("no cores") ? 0 : (size_t)n;
  return NULL;
}

static tp__pjrt_error *own_devices(tp__pjrt_client_devices *args)
{
  return list(args, 2 * node, 2);
}

static tp__pjrt_error *all_devices(tp__pjrt_client_devices *args)
{
  return list(args, 0, 2 * nodes);
}

static tp__pjrt_error *get_description(tp__pjrt_device_get_description *args)
{
  MAY_FAIL();
  args->description = (tp__pjrt_description *)args->device;
  return NULL;
}

static int core_of(tp__pjrt_description *description)
{
  return (int)((char *)description - core);
}

static tp__pjrt_error *id(tp__pjrt_description_number *args)
{
  MAY_FAIL();
  int c = core_of(args->description);
  args->number = 10 * (nodes - 1 - c / 2) + c % 2;
  return NULL;
}

static tp__pjrt_error *process(tp__pjrt_description_number *args)
{
  MAY_FAIL();
  args->number = core_of(args->description) / 2;
  return NULL;
}

static tp__pjrt_error *kind(tp__pjrt_description_kind *args)
{
  MAY_FAIL();
  args->kind = "TPU v3 and more"; /* its size says where it ends */
  args->kind_size = 6;
  return NULL;
}

static tp__pjrt_error *memory_stats(tp__pjrt_device_memory_stats *args)
{
  MAY_FAIL();
  args->bytes_in_use = 1000;
  args->bytes_limit = 16000000000;
  args->bytes_limit_is_set = true;
  return NULL;
}

/* ---- events and buffers ---- */

struct tp__pjrt_buffer {
  size_t size;
  bool gone;
  unsigned char data[256];
};

static tp__pjrt_error *event_await(tp__pjrt_event_args *args)
{
  (void)args;
  MAY_FAIL();
  return NULL;
}

static tp__pjrt_error *event_is_ready(tp__pjrt_event_is_ready *args)
{
  args->is_ready = !fakes("frozen");
  return NULL;
}

static tp__pjrt_error *event_destroy(tp__pjrt_event_args *args)
{
  end(EVENTS, args->event);
  return NULL;
}

static tp__pjrt_error *from_host(tp__pjrt_buffer_from_host *args)
{
  MAY_FAIL();
  size_t n = 4; /* of float32 */
  for (size_t i = 0; i < args->num_dims; i++) n *= (size_t)args->dims[i];
  args->buffer = make(BUFFERS, sizeof *args->buffer);
  args->buffer->size = n < 256 ? n : 256;
  memcpy(args->buffer->data, args->data, args->buffer->size);
  args->done_with_data = make(EVENTS, 1);
  return NULL;
}

static tp__pjrt_error *to_host(tp__pjrt_buffer_to_host *args)
{
  MAY_FAIL();
  memcpy(args->data, args->buffer->data, args->data_size);
  args->event = make(EVENTS, 1);
  return NULL;
}

static tp__pjrt_error *is_deleted(tp__pjrt_buffer_is_deleted *args)
{
  MAY_FAIL();
  args->is_deleted = args->buffer->gone;
  return NULL;
}

static tp__pjrt_error *buffer_destroy(tp__pjrt_buffer_destroy *args)
{
  end(BUFFERS, args->buffer);
  return NULL;
}

/* ---- programs ---- */

static tp__pjrt_error *compile(tp__pjrt_client_compile *args)
{
  MAY_FAIL();
  args->loaded = make(LOADED, 1);
  return NULL;
}

static tp__pjrt_error *loaded_destroy(tp__pjrt_loaded_destroy *args)
{
  end(LOADED, args->loaded);
  return NULL;
}

static tp__pjrt_error *get_executable(tp__pjrt_loaded_get_executable *args)
{
  MAY_FAIL();
  args->executable = make(PROGRAMS, 1);
  return NULL;
}

static tp__pjrt_error *executable_destroy(tp__pjrt_executable_destroy *args)
{
  end(PROGRAMS, args->executable);
  return NULL;
}

static tp__pjrt_error *num_outputs(tp__pjrt_executable_num_outputs *args)
{
  MAY_FAIL();
  args->num_outputs = 1;
  return NULL;
}

static void serialized_free(tp__pjrt_serialized *serialized)
{
  end(SERIALIZED, serialized);
}

static tp__pjrt_error *serialize(tp__pjrt_executable_serialize *args)
{
  MAY_FAIL();
  args->bytes = "a program";
  args->bytes_size = 9;
  args->serialized = make(SERIALIZED, 1);
  args->serialized_free = serialized_free;
  return NULL;
}

static tp__pjrt_error *deserialize(tp__pjrt_deserialize *args)
{
  MAY_FAIL();
  args->loaded = make(LOADED, 1);
  return NULL;
}

static tp__pjrt_error *cost(tp__pjrt_executable_cost *args)
{
  static const tp__pjrt_named_value value[] = {
      {.name = "flops", .name_size = 5, .type = TP__PJRT_FLOAT, .value.number = 12},
      {.name = "bytes accessed", .name_size = 14, .type = TP__PJRT_FLOAT, .value.number = 34},
      {.name = "optimal_seconds", .name_size = 15, .type = TP__PJRT_FLOAT, .value.number = -1},
  };
  MAY_FAIL();
  args->properties = value;
  args->num_properties = 3;
  return NULL;
}

static tp__pjrt_error *memory(tp__pjrt_executable_memory *args)
{
  MAY_FAIL();
  args->argument_size = 1;
  args->output_size = 2;
  args->alias_size = 3;
  args->temp_size = 4;
  args->generated_code_size = -5; /* nonsense counts as not told */
  return NULL;
}

static tp__pjrt_error *execute(tp__pjrt_execute *args)
{
  MAY_FAIL();
  for (size_t r = 0; r < args->num_devices; r++) {
    tp__pjrt_buffer *in = args->argument_lists[r][0], *out = make(BUFFERS, sizeof *out);
    *out = *in;
    in->gone = true;
    args->output_lists[r][0] = out;
    if (args->device_complete != NULL) args->device_complete[r] = make(EVENTS, 1);
  }
  return NULL;
}

__attribute__((visibility("default"))) const tp__pjrt_api *GetPjrtApi(void);

const tp__pjrt_api *GetPjrtApi(void)
{
  static tp__pjrt_api api;
  api = (tp__pjrt_api){
      .struct_size = sizeof api + 1000, /* a newer plugin's is longer */
      .version = {.struct_size = sizeof api.version, .minor = 999},
      .error_destroy = error_destroy,
      .error_message = error_message,
      .error_code = error_code,
      .plugin_initialize = initialize,
      .plugin_attributes = attributes,
      .client_create = client_create,
      .client_destroy = client_destroy,
      .client_platform_name = platform_name,
      .client_platform_version = platform_version,
      .client_devices = all_devices,
      .client_addressable_devices = own_devices,
      .device_get_description = get_description,
      .description_id = id,
      .description_process_index = process,
      .description_kind = kind,
      .device_memory_stats = memory_stats,
      .event_is_ready = event_is_ready,
      .event_await = event_await,
      .event_destroy = event_destroy,
      .buffer_from_host = from_host,
      .buffer_to_host = to_host,
      .buffer_is_deleted = is_deleted,
      .buffer_destroy = buffer_destroy,
      .client_compile = compile,
      .loaded_destroy = loaded_destroy,
      .loaded_get_executable = get_executable,
      .loaded_execute = execute,
      .executable_destroy = executable_destroy,
      .executable_num_outputs = num_outputs,
      .executable_serialize = serialize,
      .executable_cost = cost,
      .executable_memory = memory,
      .deserialize = deserialize,
  };
  if (fakes("major 1")) api.version.major = 1;
  if (fakes("minor 20")) api.version.minor = 20;
  if (fakes("short table")) api.struct_size = 400;
  if (fakes("tiny table")) api.struct_size = 8;
  return fakes("no table") ? NULL : &api;
}
