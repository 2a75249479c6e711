/* fake_plugin - a PJRT plugin without devices, for the tests of opening and probing. The
 * environment variable TEPAL_FAKE says how it behaves; unset, it is a TPU v3 with two cores of 16
 * GB on which nothing can be compiled. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/pjrt/pjrt_abi.h"

struct tp__pjrt_error {
  tp__pjrt_code code;
  const char *text;
};

static struct tp__pjrt_error no_device = {TP__PJRT_NOT_FOUND,
                                          "TPU initialization failed: No jellyfish device found."};
static struct tp__pjrt_error busy = {
    TP__PJRT_ABORTED,
    "Internal error when accessing libtpu multi-process lockfile. Run \"$ sudo rm "
    "/tmp/libtpu_lockfile\"."};
static struct tp__pjrt_error bad_start = {TP__PJRT_INTERNAL, "driver is of 1999"};
static struct tp__pjrt_error no_option = {
    TP__PJRT_INVALID_ARGUMENT, "Unexpected option name passed to PJRT_Client_Create: preallocate"};

static bool fakes(const char *what)
{
  const char *set = getenv("TEPAL_FAKE");
  return set != NULL && strcmp(set, what) == 0;
}

static void error_destroy(tp__pjrt_error_destroy *args)
{
  (void)args;
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
  return fakes("bad start") ? &bad_start : NULL;
}

static tp__pjrt_error *attributes(tp__pjrt_plugin_attributes *args)
{
  static const int64_t version[] = {1, 2, 3};
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

static tp__pjrt_error *client_create(tp__pjrt_client_create *args)
{
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
  args->client = (tp__pjrt_client *)(void *)&no_device; /* any object */
  return NULL;
}

static tp__pjrt_error *done(tp__pjrt_client_destroy *args)
{
  (void)args;
  return NULL;
}

static tp__pjrt_error *platform_name(tp__pjrt_client_text *args)
{
  args->text = fakes("gpu") ? "cuda" : "tpu";
  args->text_size = strlen(args->text);
  return NULL;
}

static tp__pjrt_error *platform_version(tp__pjrt_client_text *args)
{
  args->text = "fake\nof today";
  args->text_size = strlen(args->text);
  return NULL;
}

static char two_devices[2];

static tp__pjrt_error *devices(tp__pjrt_client_devices *args)
{
  static tp__pjrt_device *device[2];
  for (int i = 0; i < 2; i++) device[i] = (tp__pjrt_device *)(void *)&two_devices[i];
  args->devices = device;
  args->num_devices = fakes("no cores") ? 0 : 2;
  return NULL;
}

static tp__pjrt_error *get_description(tp__pjrt_device_get_description *args)
{
  args->description = (tp__pjrt_description *)args->device;
  return NULL;
}

static tp__pjrt_error *id(tp__pjrt_description_number *args)
{
  args->number = (int)((char *)args->description - two_devices);
  return NULL;
}

static tp__pjrt_error *kind(tp__pjrt_description_kind *args)
{
  args->kind = "TPU v3 and more"; /* its size says where it ends */
  args->kind_size = 6;
  return NULL;
}

static tp__pjrt_error *memory_stats(tp__pjrt_device_memory_stats *args)
{
  args->bytes_in_use = 1000;
  args->bytes_limit = 16000000000;
  args->bytes_limit_is_set = true;
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
      .client_destroy = done,
      .client_platform_name = platform_name,
      .client_platform_version = platform_version,
      .client_addressable_devices = devices,
      .device_get_description = get_description,
      .description_id = id,
      .description_kind = kind,
      .device_memory_stats = memory_stats,
  };
  if (fakes("major 1")) api.version.major = 1;
  if (fakes("minor 20")) api.version.minor = 20;
  if (fakes("short table")) api.struct_size = 400;
  if (fakes("tiny table")) api.struct_size = 8;
  return fakes("no table") ? NULL : &api;
}
