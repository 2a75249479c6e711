/* program - compiling, and the checks and bindings around a run; see program.h, backend.h */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "graph/rewrite.h"

enum { BATCH_MAX = 1 << 20 };

tp_status tp__program_fits(const tp__program *p, uint64_t bytes, tp_error *err)
{
  char need[32], left[32], more[32];
  if (p->memory_limit == 0 || bytes <= p->memory_limit) return TP_OK;
  const uint64_t limit = p->memory_limit > 1 ? p->memory_limit : 0; /* 1: others have taken all */
  return tp__fail(err, TP_ERR_DEVICE,
                  "a batch of %lld needs %s of memory for its values, of the limit %s are left: "
                  "allow %s more, or take %s",
                  (long long)p->batch, tp__bytes_text(need, bytes), tp__bytes_text(left, limit),
                  tp__bytes_text(more, bytes - limit),
                  p->batch > 1 ? "a smaller batch" : "smaller pictures");
}

/* The same graph again, value for value: programs own theirs. */
static tp_status copy_graph(const tp__graph *from, tp__graph **copy, tp_error *err)
{
  TP__TRY(tp__graph_new(copy, err));
  for (tp__value i = 0; i < from->count; i++) {
    tp__value v = TP__NONE;
    TP__TRY(tp__graph_copy_node(from, i, from->node[i].in, *copy, &v, err));
    if (v != i)
      return tp__fail(err, TP_ERR_INTERNAL, "node %d of the graph is there twice", (int)i);
  }
  return tp__graph_copy_results(from, NULL, *copy, err);
}

static tp_status bind_parameters(tp__program *p, tp_error *err)
{
  size_t count = (size_t)p->graph->count;
  p->entry = tp__calloc(count, sizeof *p->entry, err);
  p->fed = tp__calloc(count, sizeof *p->fed, err);
  p->fetched = tp__calloc(p->graph->n_outputs, sizeof *p->fetched, err);
  if (p->entry == NULL || p->fed == NULL || p->fetched == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < count; i++) {
    const tp__node *n = &p->graph->node[i];
    if (n->op == TP__OP_PARAM)
      TP__TRY(tp__cpu_state_find(p->state, n->name, n->dtype, &n->shape, &p->entry[i], err));
    if (n->op == TP__OP_INPUT && tp__dtype_size(n->dtype) != 4)
      return tp__fail(err, TP_ERR_INTERNAL, "input %s: the CPU takes f32, i32 and u32, not %s",
                      n->name, tp__dtype_name(n->dtype));
  }
  return TP_OK;
}

/* What the graph needs for one example, whichever way it runs. */
static double flops(const tp__graph *g)
{
  double sum = 0;
  for (int32_t i = 0; i < g->count; i++) sum += tp__node_flops(g, i);
  return sum;
}

/* From what costs no time to what saves the most. The first that fits is taken. */
static const tp__thrift thrift[] = {{16, false},        {24, false},      {40, false},
                                    {80, false},        {160, false},     {320, false},
                                    {INT64_MAX, false}, {INT64_MAX, true}};
enum { THRIFTS = sizeof thrift / sizeof thrift[0] };

static void discard(tp__program *p)
{
  tp__plan_free(p->plan);
  tp__graph_free(p->graph);
  free(p->not_before);
  free(p->entry);
  free(p->fed);
  free(p->fetched);
  p->plan = NULL;
  p->graph = NULL;
  p->not_before = NULL;
  p->entry = NULL;
  p->fed = NULL;
  p->fetched = NULL;
}

/* The plan of a graph that makes again what thrift says. Returns what memory it takes. */
static tp_status plan_with(tp__program *p, const tp__graph *optimized, const tp__thrift *how,
                           uint64_t *bytes, tp_error *err)
{
  discard(p);
  TP__TRY(tp__plan_recompute(optimized, how, &p->graph, &p->not_before, err));
  TP__TRY(bind_parameters(p, err));
  p->info.flops_per_example = flops(p->graph);
  TP__TRY(tp__plan_new(p, err));
  *bytes = p->info.activation_bytes + p->info.weight_bytes;
  return TP_OK;
}

static tp_status plan_within_limit(tp__program *p, const tp__graph *graph, tp_error *err)
{
  tp__graph *optimized = NULL;
  uint64_t least = UINT64_MAX, bytes = 0;
  TP__TRY(tp__graph_optimize(graph, &optimized, err));
  tp_status status = TP_OK;
  for (int i = 0; status == TP_OK && i < THRIFTS; i++) {
    status = plan_with(p, optimized, &thrift[i], &bytes, err);
    if (bytes < least) least = bytes;
    if (p->memory_limit == 0 || bytes <= p->memory_limit) break;
  }
  tp__graph_free(optimized);
  if (status == TP_OK) status = tp__program_fits(p, least, err);
  return status == TP_OK ? tp__plan_allocate(p->plan, err) : status;
}

static tp_status build(tp__program *p, const tp__graph *graph, bool reference, tp_error *err)
{
  if (!reference) return plan_within_limit(p, graph, err);
  if (tp__group_size(p->cpu->base.group) > 1)
    return tp__fail(err, TP_ERR_USAGE, "the plain loops run in one process only");
  TP__TRY(copy_graph(graph, &p->graph, err));
  TP__TRY(bind_parameters(p, err));
  p->info.flops_per_example = flops(p->graph);
  return tp__plain_new(p, err);
}

tp_status tp__cpu_compile(tp__backend *backend, const tp__graph *graph, tp__state *state,
                          const tp__compile_options *options, tp__program **program, tp_error *err)
{
  if (options->batch < 1 || options->batch > BATCH_MAX)
    return tp__fail(err, TP_ERR_USAGE, "the batch must be 1 to %d examples, not %lld", BATCH_MAX,
                    (long long)options->batch);
  if (options->byte_input != NULL)
    return tp__fail(err, TP_ERR_INTERNAL, "input %s: the CPU takes no 8-bit inputs",
                    options->byte_input);
  tp__program *p = tp__calloc(1, sizeof *p, err);
  if (p == NULL) return TP_ERR_INTERNAL;
  p->cpu = (tp__cpu *)backend;
  p->state = state;
  p->batch = options->batch;
  p->memory_limit = options->memory_limit;
  p->bf16 = options->bf16;
  tp_status status = p->bf16 && !options->reference ? tp__cpu_take_bf16(p->cpu, err) : TP_OK;
  if (status == TP_OK) status = build(p, graph, options->reference, err);
  if (status != TP_OK) {
    tp__cpu_program_free(p);
    return tp__at(err, status, "compiling for the CPU");
  }
  *program = p;
  return TP_OK;
}

void tp__cpu_program_free(tp__program *p)
{
  if (p == NULL) return;
  discard(p);
  tp__plain_free(p->plain);
  free(p);
}

void tp__cpu_program_info(const tp__program *p, tp__program_info *info)
{
  *info = p->info;
}

static tp_status bind_feeds(tp__program *p, const tp__feed *feed, size_t n_feeds, tp_error *err)
{
  const tp__graph *g = p->graph;
  for (int32_t v = 0; v < g->count; v++) p->fed[v] = NULL;
  for (size_t i = 0; i < n_feeds; i++) {
    int32_t v = 0;
    while (v < g->count &&
           (g->node[v].op != TP__OP_INPUT || strcmp(g->node[v].name, feed[i].name) != 0))
      v++;
    if (v == g->count)
      return tp__fail(err, TP_ERR_INTERNAL, "the program has no input %s", feed[i].name);
    if (feed[i].data == NULL)
      return tp__fail(err, TP_ERR_INTERNAL, "input %s has no data", feed[i].name);
    p->fed[v] = feed[i].data;
  }
  for (int32_t v = 0; v < g->count; v++)
    if (g->node[v].op == TP__OP_INPUT && p->fed[v] == NULL)
      return tp__fail(err, TP_ERR_INTERNAL, "input %s was not fed", g->node[v].name);
  return TP_OK;
}

static tp_status bind_fetches(tp__program *p, const tp__fetch *fetch, size_t n_fetches,
                              tp_error *err)
{
  const tp__graph *g = p->graph;
  for (size_t o = 0; o < g->n_outputs; o++) p->fetched[o] = NULL;
  for (size_t i = 0; i < n_fetches; i++) {
    size_t o = 0;
    while (o < g->n_outputs && strcmp(g->output[o].name, fetch[i].name) != 0) o++;
    if (o == g->n_outputs)
      return tp__fail(err, TP_ERR_INTERNAL, "the program has no output %s", fetch[i].name);
    p->fetched[o] = fetch[i].data;
  }
  return TP_OK;
}

tp_status tp__cpu_run(tp__program *p, const tp__feed *feed, size_t n_feeds, tp__fetch *fetch,
                      size_t n_fetches, int64_t n, tp_error *err)
{
  bool together = p->plan != NULL && p->plan->together; /* others may have examples */
  if (n < (together ? 0 : 1) || n > p->batch)
    return tp__fail(err, TP_ERR_INTERNAL, "a run of %lld examples: the program takes 1 to %lld",
                    (long long)n, (long long)p->batch);
  TP__TRY(bind_feeds(p, feed, n_feeds, err));
  TP__TRY(bind_fetches(p, fetch, n_fetches, err));
  if (p->plain == NULL) return tp__plan_run(p, n, err);
  tp__plain_run(p, n);
  return TP_OK;
}
