/* topology - see topology.h */
#include "topology.h"

#include <stdlib.h>
#include <string.h>

#include "pjrt_parts.h"

struct tp__topology {
  const tp__plugin *plugin;
  const tp__pjrt_api *api;
  tp__pjrt_topology *handle;
};

static tp__pjrt_named_value text_value(const char *name, const char *text, size_t size)
{
  return (tp__pjrt_named_value){.struct_size = sizeof(tp__pjrt_named_value),
                                .name = name,
                                .name_size = strlen(name),
                                .type = TP__PJRT_TEXT,
                                .value.text = text,
                                .value_size = size};
}

/* TPUs are known to their compiler by name, GPUs by what they have. */
static tp_status create(tp__topology *t, const tp__target *target, tp_error *err)
{
  tp__buffer config;
  tp__buffer_init(&config, 1 << 16);
  tp__pjrt_named_value option[2];
  tp__pjrt_topology_create args = {.struct_size = sizeof args, .options = option};
  tp_status status = TP_OK;
  args.name = target->topology;
  args.name_size = strlen(target->topology);
  if (tp__chip_is_gpu(target->chip)) {
    status = tp__target_gpu_config(target->chip, &config, err);
    option[0] = text_value("target_config", (const char *)config.data, config.size);
    option[1] = text_value("topology", target->topology, strlen(target->topology));
    args.num_options = 2;
    args.name_size = 0;
  }
  if (status == TP_OK) status = tp__pjrt_check(t->api, t->api->topology_create(&args), err);
  if (status == TP_OK) t->handle = args.topology;
  tp__buffer_free(&config);
  return status;
}

tp_status tp__topology_new(const tp__plugin *plugin, const tp__target *target,
                           tp__topology **topology, tp_error *err)
{
  tp__topology *t = tp__calloc(1, sizeof *t, err);
  if (t == NULL) return TP_ERR_INTERNAL;
  t->plugin = plugin;
  t->api = plugin->api;
  tp_status status = create(t, target, err);
  if (status == TP_OK) {
    *topology = t;
    return TP_OK;
  }
  tp__topology_free(t);
  bool refused = strstr(err->text, "[INVALID_ARGUMENT]") != NULL;
  (void)tp__at(err, status, "topology: the compiler has no slice %s", target->topology);
  return refused ? TP_ERR_USAGE : status;
}

void tp__topology_free(tp__topology *topology)
{
  if (topology == NULL) return;
  if (topology->handle != NULL) {
    tp__pjrt_topology_destroy args = {.struct_size = sizeof args, .topology = topology->handle};
    (void)tp__pjrt_quiet(topology->api, topology->api->topology_destroy(&args));
  }
  free(topology);
}

/* A version of several lines, the first of which says most: "TFRT TPU v3\nBuilt on ...". */
static tp_status read_version(const tp__topology *t, tp__machine *m, tp_error *err)
{
  tp__pjrt_topology_text args = {.struct_size = sizeof args, .topology = t->handle};
  TP__TRY(tp__pjrt_check(t->api, t->api->topology_platform_version(&args), err));
  size_t line = 0;
  while (line < args.text_size && args.text[line] != '\n') line++;
  snprintf(m->version, sizeof m->version, "%.80s, %.*s", t->plugin->version,
           line < 64 ? (int)line : 64, args.text);
  return TP_OK;
}

tp_status tp__topology_describe(const tp__topology *t, tp__machine *m, tp_error *err)
{
  *m = (tp__machine){0};
  tp__pjrt_topology_descriptions all = {.struct_size = sizeof all, .topology = t->handle};
  TP__TRY(tp__pjrt_check(t->api, t->api->topology_descriptions(&all), err));
  if (all.num_descriptions == 0 || all.num_descriptions > 65536)
    return tp__fail(err, TP_ERR_DEVICE, "the topology has %zu devices", all.num_descriptions);
  m->devices = (int)all.num_descriptions;
  for (size_t i = 0; i < all.num_descriptions; i++) {
    tp__pjrt_description_number host = {.struct_size = sizeof host,
                                        .description = all.descriptions[i]};
    TP__TRY(tp__pjrt_check(t->api, t->api->description_process_index(&host), err));
    if (host.number >= m->hosts) m->hosts = host.number + 1;
  }
  tp__pjrt_description_kind kind = {.struct_size = sizeof kind, .description = all.descriptions[0]};
  TP__TRY(tp__pjrt_check(t->api, t->api->description_kind(&kind), err));
  snprintf(m->kind, sizeof m->kind, "%.*s", kind.kind_size < 60 ? (int)kind.kind_size : 60,
           kind.kind);
  return read_version(t, m, err);
}

tp_status tp__topology_compile(tp__topology *t, const char *text, size_t length, int replicas,
                               tp__executable_info *info, char **message, tp_error *err)
{
  tp__buffer options = {0};
  TP__TRY(tp__compile_options(replicas, NULL, &options, err));
  tp__pjrt_program program = tp__pjrt_module(text, length);
  tp__pjrt_compile args = {.struct_size = sizeof args,
                           .topology = t->handle,
                           .program = &program,
                           .compile_options = (const char *)options.data,
                           .compile_options_size = options.size};
  tp_status status = tp__pjrt_check_long(t->api, t->api->compile(&args), message, err);
  tp__buffer_free(&options);
  if (status != TP_OK) return status;
  tp__executable_info_read(t->api, args.executable, info);
  tp__pjrt_executable_destroy destroy = {.struct_size = sizeof destroy,
                                         .executable = args.executable};
  (void)tp__pjrt_quiet(t->api, t->api->executable_destroy(&destroy));
  return TP_OK;
}
