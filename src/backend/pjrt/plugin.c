/* plugin - opening a plugin, what it says of itself, and its errors in our words; see plugin.h */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt_parts.h"
#include "search.h"

/* ---- errors of a plugin ---- */

static const char *code_name(tp__pjrt_code code)
{
  static const char *const name[] = {"OK",
                                     "CANCELLED",
                                     "UNKNOWN",
                                     "INVALID_ARGUMENT",
                                     "DEADLINE_EXCEEDED",
                                     "NOT_FOUND",
                                     "ALREADY_EXISTS",
                                     "PERMISSION_DENIED",
                                     "RESOURCE_EXHAUSTED",
                                     "FAILED_PRECONDITION",
                                     "ABORTED",
                                     "OUT_OF_RANGE",
                                     "UNIMPLEMENTED",
                                     "INTERNAL",
                                     "UNAVAILABLE",
                                     "DATA_LOSS",
                                     "UNAUTHENTICATED"};
  return (size_t)code < sizeof name / sizeof *name ? name[code] : "unknown code";
}

bool tp__pjrt_quiet(const tp__pjrt_api *api, tp__pjrt_error *error)
{
  if (error == NULL) return true;
  tp__pjrt_error_destroy destroy = {.struct_size = sizeof destroy, .error = error};
  api->error_destroy(&destroy);
  return false;
}

tp_status tp__pjrt_check_long(const tp__pjrt_api *api, tp__pjrt_error *error, char **message,
                              tp_error *err)
{
  if (error == NULL) return TP_OK;
  tp__pjrt_error_code code = {.struct_size = sizeof code, .error = error};
  (void)tp__pjrt_quiet(api, api->error_code(&code));
  tp__pjrt_error_message words = {.struct_size = sizeof words, .error = error};
  api->error_message(&words);
  const char *text = words.message == NULL ? "" : words.message;
  int size = words.message == NULL ? 0 : (int)words.message_size;
  if (message != NULL) *message = tp__format("%.*s", size, text);
  (void)tp__fail(err, TP_ERR_DEVICE, "%.*s [%s]", size < 1500 ? size : 1500, text,
                 code_name(code.code));
  (void)tp__pjrt_quiet(api, error);
  return TP_ERR_DEVICE;
}

tp_status tp__pjrt_check(const tp__pjrt_api *api, tp__pjrt_error *error, tp_error *err)
{
  return tp__pjrt_check_long(api, error, NULL, err);
}

bool tp__pjrt_out_of_memory(const tp_error *err)
{
  return strstr(err->text, "RESOURCE_EXHAUSTED") != NULL;
}

/* ---- opening ---- */

static tp_status add_value(tp__buffer *to, const tp__pjrt_named_value *v, tp_error *err)
{
  TP__TRY(tp__buffer_printf(to, err, "%.*s = ", (int)v->name_size, v->name));
  switch (v->type) {
  case TP__PJRT_TEXT:
    return tp__buffer_printf(to, err, "%.*s\n", (int)v->value_size, v->value.text);
  case TP__PJRT_INT64:
    return tp__buffer_printf(to, err, "%lld\n", (long long)v->value.int64);
  case TP__PJRT_INT64_LIST:
    for (size_t i = 0; i < v->value_size; i++)
      TP__TRY(
          tp__buffer_printf(to, err, i > 0 ? ".%lld" : "%lld", (long long)v->value.int64_list[i]));
    return tp__buffer_printf(to, err, "\n");
  case TP__PJRT_FLOAT:
    return tp__buffer_printf(to, err, "%g\n", (double)v->value.number);
  case TP__PJRT_BOOL:
    return tp__buffer_printf(to, err, "%s\n", v->value.boolean ? "true" : "false");
  }
  return tp__buffer_printf(to, err, "?\n");
}

/* What the plugin says of itself, as lines. A plugin that does not say has none. */
static tp_status read_attributes(tp__plugin *plugin, tp_error *err)
{
  tp__buffer text;
  tp__buffer_init(&text, 1 << 20);
  tp__pjrt_plugin_attributes args = {.struct_size = sizeof args};
  bool told = tp__pjrt_quiet(plugin->api, plugin->api->plugin_attributes(&args));
  tp_status status = tp__buffer_printf(&text, err, "%s", "");
  for (size_t i = 0; status == TP_OK && told && i < args.num_attributes; i++)
    status = add_value(&text, &args.attributes[i], err);
  if (status == TP_OK) plugin->attributes = tp__strdup((const char *)text.data, err);
  tp__buffer_free(&text);
  return plugin->attributes != NULL ? TP_OK : TP_ERR_INTERNAL;
}

/* "PJRT 0.115, StableHLO 1.20.0" */
static tp_status describe(tp__plugin *plugin, tp_error *err)
{
  TP__TRY(read_attributes(plugin, err));
  static const char key[] = "stablehlo_current_version = ";
  const char *hlo = strstr(plugin->attributes, key);
  hlo = hlo == NULL ? NULL : hlo + sizeof key - 1;
  plugin->version = tp__format("PJRT %d.%d%s%.*s", plugin->api->version.major,
                               plugin->api->version.minor, hlo != NULL ? ", StableHLO " : "",
                               hlo != NULL ? (int)strcspn(hlo, "\n") : 0, hlo != NULL ? hlo : "");
  return plugin->version != NULL ? TP_OK : tp__no_memory(err, 64);
}

/* Only the head of the table is read before its size is known. */
static tp_status check_table(const tp__pjrt_api *api, tp_error *err)
{
  if (api == NULL || api->struct_size < offsetof(tp__pjrt_api, error_destroy))
    return tp__fail(err, TP_ERR_DEVICE, "its GetPjrtApi gives no table of functions");
  int major = api->version.major, minor = api->version.minor;
  if (major != TP__PJRT_MAJOR)
    return tp__fail(err, TP_ERR_DEVICE,
                    "speaks PJRT %d.%d, and tepal %d.x: a plugin of that version is needed, or a "
                    "newer tepal",
                    major, minor, TP__PJRT_MAJOR);
  if (minor < TP__PJRT_MINOR_OLDEST || api->struct_size < sizeof *api)
    return tp__fail(err, TP_ERR_DEVICE,
                    "speaks PJRT %d.%d, which is too old; %d.%d or newer is needed", major, minor,
                    TP__PJRT_MAJOR, TP__PJRT_MINOR_OLDEST);
  return TP_OK;
}

static tp_status find_table(const char *path, const tp__pjrt_api **api, tp_error *err)
{
  char *full = tp__is_file(path) ? realpath(path, NULL) : NULL; /* "x.so" is not looked up */
  if (full == NULL) return tp__fail(err, TP_ERR_DEVICE, "there is no such file");
  tp__preload_cuda(full);
  void *library = dlopen(full, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  free(full);
  if (library == NULL) {
    const char *why = dlerror();
    return tp__fail(err, TP_ERR_DEVICE, "cannot be loaded: %s", why != NULL ? why : "no reason");
  }
  union { /* ISO C has no conversion between the two */
    void *object;
    tp__pjrt_get_api function;
  } get = {.object = dlsym(library, "GetPjrtApi")};
  if (get.object == NULL)
    return tp__fail(err, TP_ERR_DEVICE,
                    "is a library, but no PJRT plugin (it has no function GetPjrtApi)");
  *api = get.function();
  return check_table(*api, err);
}

static tp_status open_plugin(tp__plugin *plugin, const char *path, tp_error *err)
{
  plugin->path = tp__strdup(path, err);
  if (plugin->path == NULL) return TP_ERR_INTERNAL;
  TP__TRY(find_table(path, &plugin->api, err));
  tp__pjrt_plugin_initialize args = {.struct_size = sizeof args};
  tp_status status = tp__pjrt_check(plugin->api, plugin->api->plugin_initialize(&args), err);
  if (status != TP_OK) return tp__at(err, status, "did not start");
  return describe(plugin, err);
}

tp_status tp__plugin_open(const char *path, tp__plugin **plugin, tp_error *err)
{
  tp__plugin *p = tp__calloc(1, sizeof *p, err);
  if (p == NULL) return TP_ERR_INTERNAL;
  tp_status status = open_plugin(p, path, err);
  if (status == TP_OK) {
    *plugin = p;
    return TP_OK;
  }
  tp__plugin_close(p);
  return tp__at(err, status, "PJRT plugin %s", path);
}

void tp__plugin_close(tp__plugin *plugin)
{
  if (plugin == NULL) return;
  free(plugin->path);
  free(plugin->version);
  free(plugin->attributes);
  free(plugin);
}

const char *tp__plugin_version(const tp__plugin *plugin)
{
  return plugin->version;
}

const char *tp__plugin_path(const tp__plugin *plugin)
{
  return plugin->path;
}
