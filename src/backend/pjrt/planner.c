/* planner - see planner.h */
#include "planner.h"

#include <stdlib.h>
#include <string.h>

#include "planner_parts.h"
#include "stablehlo.h"

/* ---- parameters: names and shapes ---- */

struct entry {
  const char *name;
  tp__shape shape;
};

struct tp__state {
  struct entry *entry;
  size_t count;
  tp__arena arena;
};

static void state_free(tp__state *s)
{
  if (s == NULL) return;
  tp__arena_free(&s->arena);
  free(s->entry);
  free(s);
}

static tp_status state_new(tp__backend *backend, const tp__tensors *initial, tp__state **state,
                           tp_error *err)
{
  (void)backend;
  tp__state *s = tp__calloc(1, sizeof *s, err);
  if (s == NULL) return TP_ERR_INTERNAL;
  s->entry = tp__calloc(initial->count, sizeof *s->entry, err);
  for (size_t i = 0; s->entry != NULL && i < initial->count; i++) {
    s->entry[i] =
        (struct entry){tp__arena_strdup(&s->arena, initial->item[i].name), initial->item[i].shape};
    if (s->entry[i].name == NULL) break;
    s->count++;
  }
  if (s->count == initial->count && s->entry != NULL) {
    *state = s;
    return TP_OK;
  }
  state_free(s);
  return tp__no_memory(err, initial->count * sizeof *s->entry);
}

static tp_status check_params(const tp__state *s, const tp__graph *graph, tp_error *err)
{
  for (size_t p = 0; p < graph->n_params; p++) {
    const tp__node *n = &graph->node[graph->param[p]];
    size_t i = 0;
    while (i < s->count && strcmp(s->entry[i].name, n->name) != 0) i++;
    if (i == s->count || !tp__shape_equal(&s->entry[i].shape, &n->shape))
      return tp__fail(err, TP_ERR_INTERNAL,
                      "parameter %s is not in the state, or has another shape", n->name);
  }
  return TP_OK;
}

static tp_status nothing_runs(tp_error *err)
{
  return tp__fail(err, TP_ERR_INTERNAL, "a plan has no device: it runs nothing and keeps nothing");
}

static tp_status state_write(tp__state *state, const tp__tensors *from, tp_error *err)
{
  (void)state, (void)from;
  return nothing_runs(err);
}

static tp_status state_read(tp__state *state, tp__tensors *into, tp_error *err)
{
  (void)state, (void)into;
  return nothing_runs(err);
}

/* ---- programs ---- */

struct tp__program {
  tp__program_info info;
};

static void program_free(tp__program *program)
{
  free(program);
}

static void program_info(const tp__program *program, tp__program_info *info)
{
  *info = program->info;
}

static uint64_t input_bytes(const tp__hlo_module *m)
{
  uint64_t bytes = 0;
  for (size_t a = 0; a < m->n_arguments; a++)
    if (m->argument[a].kind != TP__HLO_PARAM)
      bytes += tp__shape_elements(&m->argument[a].shape, 0) * tp__dtype_size(m->argument[a].dtype);
  return bytes;
}

/* XLA counts a loop's body once. All but the update is in the loop over the parts, and the update
 * moves what it gives new values to, in and out; its arithmetic is little. */
static void count_parts(tp__executable_info *info, int parts)
{
  double update = 2 * (double)info->alias_bytes;
  double share = update < info->bytes_accessed ? update / info->bytes_accessed : 1;
  double times = parts * (1 - share) + share;
  info->flops *= parts;
  info->bytes_accessed *= times;
  info->optimal_seconds *= times;
}

tp_status tp__planner_compile(tp__planner *planner, const tp__graph *graph,
                              const tp__compile_options *options, int64_t rows,
                              tp__planned *planned, tp_error *err)
{
  tp__hlo_module module = {0};
  tp__hlo_options how = {.rows = rows,
                         .replicas = planner->base.replicas,
                         .local_statistics = options->local_statistics,
                         .bf16 = options->bf16,
                         .byte_input = options->byte_input,
                         .accumulate = planned->parts};
  TP__TRY(tp__hlo_write(graph, &how, &module, err));
  planned->rows = rows;
  planned->input_bytes = input_bytes(&module);
  char what[96];
  snprintf(what, sizeof what, "%s, %lld on each of %d",
           planned->trains   ? "step"
           : planned->scores ? "validation"
                             : "features",
           (long long)rows, planner->base.replicas);
  tp_status status =
      tp__ahead_compile(planner->options.ahead, what, (const char *)module.text.data,
                        module.text.size, planner->base.replicas, &planned->verdict, err);
  tp__hlo_free(&module);
  if (status == TP_OK && planned->parts > 1) count_parts(&planned->verdict.info, planned->parts);
  return status;
}

static bool has_output(const tp__graph *graph, const char *name)
{
  for (size_t i = 0; i < graph->n_outputs; i++)
    if (strcmp(graph->output[i].name, name) == 0) return true;
  return false;
}

/* A number of parts that was left to us is 1: whether the whole fits is the question. */
static tp_status plan_program(tp__planner *planner, const tp__graph *graph,
                              const tp__compile_options *options, tp__program *program,
                              tp_error *err)
{
  tp__planned planned = {.trains = graph->n_assignments > 0, .parts = 1};
  planned.scores = !planned.trains && has_output(graph, "losses");
  if (planned.scores && planner->options.no_scores) return TP_OK;
  if (planner->count == TP__PLANNED_MAX)
    return tp__fail(err, TP_ERR_INTERNAL, "more than %d programs in a plan", TP__PLANNED_MAX);
  if (planned.trains && options->accumulate > 1) planned.parts = options->accumulate;
  int64_t rows = tp__hlo_rows(options->batch, planner->base.replicas, planned.parts);
  TP__TRY(tp__planner_compile(planner, graph, options, rows, &planned, err));
  if (planner->options.largest && planned.trains)
    TP__TRY(tp__planner_search(planner, graph, options, &planned, err));
  planner->program[planner->count++] = planned;
  for (int32_t v = 0; v < graph->count; v++)
    program->info.flops_per_example += tp__node_flops(graph, v);
  program->info.activation_bytes = planned.verdict.info.temporary_bytes;
  program->info.weight_bytes = planned.verdict.info.argument_bytes;
  program->info.chunk = (int)(rows / planned.parts);
  program->info.parts = planned.parts;
  return TP_OK;
}

static tp_status compile(tp__backend *backend, const tp__graph *graph, tp__state *state,
                         const tp__compile_options *options, tp__program **program, tp_error *err)
{
  if (options->reference) return tp__fail(err, TP_ERR_INTERNAL, "plain loops run on the CPU only");
  TP__TRY(check_params(state, graph, err));
  tp__program *p = tp__calloc(1, sizeof *p, err);
  if (p == NULL) return TP_ERR_INTERNAL;
  tp_status status = plan_program((tp__planner *)backend, graph, options, p, err);
  if (status == TP_OK)
    *program = p;
  else
    program_free(p);
  return status;
}

static tp_status run(tp__program *program, const tp__feed *feed, size_t n_feeds, tp__fetch *fetch,
                     size_t n_fetches, int64_t n, tp_error *err)
{
  (void)program, (void)feed, (void)n_feeds, (void)fetch, (void)n_fetches, (void)n;
  return nothing_runs(err);
}

static tp_status submit(tp__program *program, const tp__feed *feed, size_t n_feeds,
                        tp__fetch *fetch, size_t n_fetches, int64_t n, tp__pending **pending,
                        tp_error *err)
{
  *pending = NULL;
  return run(program, feed, n_feeds, fetch, n_fetches, n, err);
}

static tp_status wait_for(tp__pending *pending, tp_error *err)
{
  return pending == NULL ? TP_OK : nothing_runs(err);
}

/* ---- the backend ---- */

static void planner_free(tp__backend *backend)
{
  free(backend);
}

tp_status tp__backend_planner(const tp__planner_options *options, tp__backend **backend,
                              tp_error *err)
{
  const tp__machine *m = tp__ahead_machine(options->ahead);
  if (options->replicas > m->devices)
    return tp__fail(err, TP_ERR_USAGE, "replicas: %d are wanted, %s has %d", options->replicas,
                    tp__ahead_target(options->ahead)->topology, m->devices);
  tp__planner *p = tp__calloc(1, sizeof *p, err);
  if (p == NULL) return TP_ERR_INTERNAL;
  p->options = *options;
  p->base = (tp__backend){.name = "plan",
                          .replicas = options->replicas > 0 ? options->replicas : m->devices,
                          .remote = true,
                          .free = planner_free,
                          .state_new = state_new,
                          .state_free = state_free,
                          .state_write = state_write,
                          .state_read = state_read,
                          .compile = compile,
                          .program_free = program_free,
                          .program_info = program_info,
                          .run = run,
                          .submit = submit,
                          .wait = wait_for};
  snprintf(p->base.device, sizeof p->base.device, "%.40s, %.80s", m->kind, m->version);
  *backend = &p->base;
  return TP_OK;
}

const tp__planned *tp__planner_programs(const tp__backend *backend, size_t *count)
{
  const tp__planner *p = (const tp__planner *)backend;
  *count = p->count;
  return p->program;
}

void tp__planner_forget(tp__backend *backend)
{
  ((tp__planner *)backend)->count = 0;
}
