/* executable - compiling a module and running it on its replicas; see client.h */
#include <stdlib.h>
#include <string.h>

#include "program_cache.h"

struct tp__executable {
  tp__client *client;
  tp__pjrt_loaded *loaded;
  tp__pjrt_executable *executable;
  size_t replicas, n_results; /* replicas of this process */
  bool joined;                /* ... of several */
  bool cached;
  /* Of a run, made by the first: handles [replicas][n], and where each replica's begin. */
  size_t n_arguments;
  tp__pjrt_buffer **argument, **result;
  tp__pjrt_buffer *const **argument_list;
  tp__pjrt_buffer ***result_list;
  tp__pjrt_event **event;
};

/* ---- compiling ---- */

static tp_status compile(tp__executable *x, const char *text, size_t length,
                         const tp__buffer *options, const char *folder, tp_error *err)
{
  const tp__pjrt_api *api = x->client->api;
  tp__pjrt_program program = tp__pjrt_module(text, length);
  tp__pjrt_client_compile args = {.struct_size = sizeof args,
                                  .client = x->client->handle,
                                  .program = &program,
                                  .compile_options = (const char *)options->data,
                                  .compile_options_size = options->size};
  char *message = NULL;
  tp_status status = tp__pjrt_check_long(api, api->client_compile(&args), &message, err);
  x->loaded = args.loaded;
  if (status != TP_OK) status = tp__keep_module(text, length, folder, message, err);
  free(message);
  return status;
}

/* Puts a program from the cache on the devices; false: it has to be compiled. */
static bool load(tp__executable *x, const char *cache, const char *key)
{
  const tp__pjrt_api *api = x->client->api;
  tp__buffer program;
  if (!tp__program_read(cache, key, &program)) return false;
  tp__pjrt_deserialize args = {.struct_size = sizeof args,
                               .client = x->client->handle,
                               .bytes = (const char *)program.data,
                               .bytes_size = program.size};
  x->cached = tp__pjrt_quiet(api, api->deserialize(&args));
  x->loaded = x->cached ? args.loaded : NULL;
  if (!x->cached) tp__program_remove(cache, key);
  tp__buffer_free(&program);
  return x->cached;
}

static void save(tp__executable *x, const char *cache, const char *key)
{
  const tp__pjrt_api *api = x->client->api;
  tp__pjrt_executable_serialize args = {.struct_size = sizeof args, .executable = x->executable};
  if (!tp__pjrt_quiet(api, api->executable_serialize(&args))) return;
  tp__program_write(cache, key, args.bytes, args.bytes_size, TP__PROGRAMS_MAX);
  args.serialized_free(args.serialized);
}

/* What is asked of it later. */
static tp_status examine(tp__executable *x, tp_error *err)
{
  const tp__pjrt_api *api = x->client->api;
  tp__pjrt_loaded_get_executable get = {.struct_size = sizeof get, .loaded = x->loaded};
  TP__TRY(tp__pjrt_check(api, api->loaded_get_executable(&get), err));
  x->executable = get.executable;
  tp__pjrt_executable_num_outputs outputs = {.struct_size = sizeof outputs,
                                             .executable = x->executable};
  TP__TRY(tp__pjrt_check(api, api->executable_num_outputs(&outputs), err));
  x->n_results = outputs.num_outputs;
  return TP_OK;
}

static void unload(tp__executable *x)
{
  const tp__pjrt_api *api = x->client->api;
  tp__pjrt_loaded_destroy args = {.struct_size = sizeof args, .loaded = x->loaded};
  if (x->loaded != NULL && !x->client->lost) (void)tp__pjrt_quiet(api, api->loaded_destroy(&args));
  x->loaded = NULL;
  x->cached = false;
}

/* All processes take it from their caches, or none does: compilers may choose otherwise the second
 * time, and all are to run the same program. */
static tp_status agree_on_cache(tp__executable *x, tp_error *err)
{
  tp__group *group = x->client->group;
  uint8_t own = x->cached, all[TP__PROCESSES_MAX];
  if (tp__group_size(group) == 1) return TP_OK;
  TP__TRY(tp__group_gather(group, &own, 1, all, err));
  if (memchr(all, 0, (size_t)group->size) != NULL) unload(x);
  return TP_OK;
}

static tp_status make(tp__executable *x, const char *text, size_t length, const char *cache,
                      const tp__buffer *options, tp_error *err)
{
  char key[TP__KEY] = "";
  if (cache != NULL && tp__program_key(x->client, text, length, options, key, NULL) != TP_OK)
    cache = NULL;
  if (cache != NULL) (void)load(x, cache, key);
  if (x->joined) TP__TRY(agree_on_cache(x, err));
  if (x->cached) return examine(x, err);
  TP__TRY(compile(x, text, length, options, cache, err));
  TP__TRY(examine(x, err));
  if (cache != NULL) save(x, cache, key);
  return TP_OK;
}

/* On the devices with those ids, of which so many are this process'. */
static tp_status make_on(tp__client *client, const int *id, int ids, int replicas, const char *text,
                         size_t length, const char *cache, tp__executable **executable,
                         tp_error *err)
{
  tp__executable *x = tp__calloc(1, sizeof *x, err);
  if (x == NULL) return TP_ERR_INTERNAL;
  x->client = client;
  x->replicas = (size_t)replicas;
  x->joined = ids > replicas;
  tp__buffer options = {0};
  tp_status status = tp__compile_options(ids, id, &options, err);
  if (status == TP_OK) status = make(x, text, length, cache, &options, err);
  tp__buffer_free(&options);
  if (status == TP_OK)
    *executable = x;
  else
    tp__executable_free(x);
  return status;
}

tp_status tp__executable_new(tp__client *client, const char *text, size_t length, int replicas,
                             const char *cache, tp__executable **executable, tp_error *err)
{
  if (replicas < 1 || replicas > client->devices)
    return tp__fail(err, TP_ERR_DEVICE, "%d replicas wanted; %s has %d devices", replicas,
                    client->platform, client->devices);
  return make_on(client, client->id, replicas, replicas, text, length, cache, executable, err);
}

tp_status tp__executable_join(tp__client *client, const char *text, size_t length,
                              const char *cache, tp__executable **executable, tp_error *err)
{
  return make_on(client, client->all_id, client->all, client->devices, text, length, cache,
                 executable, err);
}

void tp__executable_free(tp__executable *executable)
{
  if (executable == NULL) return;
  const tp__pjrt_api *api = executable->client->api;
  if (executable->executable != NULL && !executable->client->lost) {
    tp__pjrt_executable_destroy args = {.struct_size = sizeof args,
                                        .executable = executable->executable};
    (void)tp__pjrt_quiet(api, api->executable_destroy(&args));
  }
  unload(executable);
  free(executable->argument);
  free(executable->result);
  free((void *)executable->argument_list);
  free(executable->result_list);
  free(executable->event);
  free(executable);
}

bool tp__executable_cached(const tp__executable *executable)
{
  return executable->cached;
}

size_t tp__executable_results(const tp__executable *executable)
{
  return executable->n_results;
}

static uint64_t bytes_of(int64_t told)
{
  return told > 0 ? (uint64_t)told : 0;
}

static double cost_named(const tp__pjrt_executable_cost *cost, const char *name)
{
  size_t size = strlen(name);
  for (size_t i = 0; i < cost->num_properties; i++) {
    const tp__pjrt_named_value *v = &cost->properties[i];
    if (v->type == TP__PJRT_FLOAT && v->name_size == size && memcmp(v->name, name, size) == 0)
      return v->value.number > 0 ? (double)v->value.number : 0;
  }
  return 0;
}

void tp__executable_info_read(const tp__pjrt_api *api, tp__pjrt_executable *executable,
                              tp__executable_info *info)
{
  *info = (tp__executable_info){0};
  tp__pjrt_executable_memory memory = {.struct_size = sizeof memory, .executable = executable};
  if (tp__pjrt_quiet(api, api->executable_memory(&memory))) {
    info->argument_bytes = bytes_of(memory.argument_size);
    info->output_bytes = bytes_of(memory.output_size);
    info->alias_bytes = bytes_of(memory.alias_size);
    info->temporary_bytes = bytes_of(memory.temp_size);
    info->code_bytes = bytes_of(memory.generated_code_size);
  }
  tp__pjrt_executable_cost cost = {.struct_size = sizeof cost, .executable = executable};
  if (tp__pjrt_quiet(api, api->executable_cost(&cost))) {
    info->flops = cost_named(&cost, "flops");
    info->bytes_accessed = cost_named(&cost, "bytes accessed");
    info->optimal_seconds = cost_named(&cost, "optimal_seconds");
  }
}

uint64_t tp__executable_need(const tp__executable_info *i)
{
  uint64_t bytes = i->argument_bytes + i->output_bytes + i->temporary_bytes + i->code_bytes;
  return bytes > i->alias_bytes ? bytes - i->alias_bytes : 0;
}

void tp__executable_info_of(const tp__executable *executable, tp__executable_info *info)
{
  tp__executable_info_read(executable->client->api, executable->executable, info);
}

/* ---- running ---- */

/* The lists of a run, when the program runs for the first time. */
static tp_status make_lists(tp__executable *x, size_t n_arguments, tp_error *err)
{
  if (x->event != NULL && x->n_arguments == n_arguments) return TP_OK;
  size_t n = x->replicas;
  free(x->argument);
  free(x->result);
  free((void *)x->argument_list);
  free(x->result_list);
  free(x->event);
  x->argument = tp__calloc(n * n_arguments, sizeof *x->argument, err);
  x->result = tp__calloc(n * x->n_results, sizeof *x->result, err);
  x->argument_list = tp__calloc(n, sizeof *x->argument_list, err);
  x->result_list = tp__calloc(n, sizeof *x->result_list, err);
  x->event = tp__calloc(n, sizeof *x->event, err);
  if (x->argument == NULL || x->result == NULL || x->argument_list == NULL ||
      x->result_list == NULL || x->event == NULL) {
    free(x->event);
    x->event = NULL;
    return TP_ERR_INTERNAL;
  }
  x->n_arguments = n_arguments;
  for (size_t r = 0; r < n; r++) {
    x->argument_list[r] = x->argument + r * n_arguments;
    x->result_list[r] = x->result + r * x->n_results;
  }
  return TP_OK;
}

/* Empty ones for all results and events; none are left on failure. */
static tp_status take_empty(tp__executable *x, tp__device_buffer **result, tp__event **event,
                            tp_error *err)
{
  size_t results = x->replicas * x->n_results, events = event != NULL ? x->replicas : 0;
  for (size_t i = 0; i < results; i++) result[i] = NULL;
  for (size_t i = 0; i < events; i++) event[i] = NULL;
  for (size_t i = 0; i < results; i++)
    if ((result[i] = tp__device_buffer_take(x->client, err)) == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < events; i++)
    if ((event[i] = tp__event_take(x->client, err)) == NULL) return TP_ERR_INTERNAL;
  return TP_OK;
}

static void give_back(tp__executable *x, tp__device_buffer **result, tp__event **event)
{
  for (size_t i = 0; i < x->replicas * x->n_results; i++) {
    tp__device_buffer_free(result[i]);
    result[i] = NULL;
  }
  for (size_t i = 0; event != NULL && i < x->replicas; i++) {
    tp__event_free(event[i]);
    event[i] = NULL;
  }
}

static tp_status execute(tp__executable *x, bool events, tp_error *err)
{
  tp__pjrt_execute_options options = {.struct_size = sizeof options};
  tp__pjrt_execute args = {.struct_size = sizeof args,
                           .loaded = x->loaded,
                           .options = &options,
                           .argument_lists = x->argument_list,
                           .num_devices = x->replicas,
                           .num_args = x->n_arguments,
                           .output_lists = x->result_list,
                           .device_complete = events ? x->event : NULL};
  return tp__pjrt_check(x->client->api, x->client->api->loaded_execute(&args), err);
}

tp_status tp__executable_run(tp__executable *executable, tp__device_buffer *const *argument,
                             size_t n_arguments, tp__device_buffer **result, size_t n_results,
                             tp__event **event, tp_error *err)
{
  tp__executable *x = executable;
  if (n_results != x->n_results)
    return tp__fail(err, TP_ERR_INTERNAL, "the program has %zu results, not %zu", x->n_results,
                    n_results);
  TP__TRY(make_lists(x, n_arguments, err));
  tp_status status = take_empty(x, result, event, err);
  for (size_t i = 0; i < x->replicas * n_arguments; i++) x->argument[i] = argument[i]->handle;
  if (status == TP_OK) status = execute(x, event != NULL, err);
  if (status != TP_OK) {
    give_back(x, result, event);
    return status;
  }
  for (size_t i = 0; i < x->replicas * n_results; i++) result[i]->handle = x->result[i];
  for (size_t r = 0; event != NULL && r < x->replicas; r++) event[r]->handle = x->event[r];
  return TP_OK;
}
