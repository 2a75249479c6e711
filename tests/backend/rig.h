/* rig - runs a graph on the CPU backend for tests: parameters and inputs filled from the rng by
 * their names, all outputs fetched, parameters read back.
 */
#ifndef TP_RIG_H
#define TP_RIG_H

#include "../graph/building.h"

#include <math.h>

#include "backend/backend.h"
#include "base/rng.h"

typedef struct rig {
  tp__pool *pool;
  tp__backend *backend;
  tp__state *state;
  tp__program *program;
  const tp__graph *graph;
  int64_t n;
  void **input;     /* by node */
  float **output;   /* by output */
  size_t *elements; /* of each output, for n examples */
} rig;

static inline uint32_t hash_text(const char *text)
{
  uint32_t h = 2166136261u;
  for (; *text != '\0'; text++) h = (h ^ (uint8_t)*text) * 16777619u;
  return h;
}

/* In (-1, 1), a function of name and index. */
static inline float noise(const char *name, size_t i)
{
  return 2 * tp__uniform((tp__key){{hash_text(name), 7}}, 0, (uint32_t)i) - 1;
}

static inline bool ends_with(const char *text, const char *end)
{
  size_t a = strlen(text), b = strlen(end);
  return a >= b && strcmp(text + a - b, end) == 0;
}

/* Kernels are scaled by their inputs, so that values stay near 1 through many layers. */
static inline void fill_parameter(tp__tensor *t)
{
  float *x = t->data;
  size_t count = tp__shape_elements(&t->shape, 0);
  double inputs = 1;
  for (int i = 0; i + 1 < t->shape.rank; i++) inputs *= (double)t->shape.dim[i];
  if (t->shape.rank == 4 && t->shape.dim[3] == 1) inputs /= (double)t->shape.dim[2];
  for (size_t i = 0; i < count; i++) {
    x[i] = noise(t->name, i);
    if (ends_with(t->name, "kernel")) x[i] *= (float)sqrt(3 / inputs);
    if (ends_with(t->name, "gamma")) x[i] = 1 + 0.3f * x[i];
    if (ends_with(t->name, "variance")) x[i] = 1 + 0.5f * x[i];
    if (ends_with(t->name, "mean") || ends_with(t->name, "beta") || ends_with(t->name, "bias"))
      x[i] *= 0.3f;
    if (strncmp(t->name, "adam", 4) == 0 || strncmp(t->name, "sgd", 3) == 0) x[i] = 0;
  }
}

static inline void initial_parameters(const tp__graph *g, tp__tensors *set)
{
  tp_error err = {0};
  for (tp__value v = 0; v < g->count; v++) {
    if (g->node[v].op != TP__OP_PARAM) continue;
    tp__tensor *t = NULL;
    assert_ok(tp__tensors_add(set, g->node[v].name, TP__F32, &g->node[v].shape, &t, &err));
    fill_parameter(t);
  }
}

/* Labels below 3, keys as they come, "rate" 0.01, "step" 1, weights 1 / n, all else noise. */
static inline void *fill_input(const tp__node *node, int64_t n)
{
  size_t count = tp__shape_elements(&node->shape, n);
  float *x = calloc(count + 1, 4);
  assert_non_null(x);
  for (size_t i = 0; i < count; i++) {
    x[i] = noise(node->name, i);
    if (node->dtype == TP__I32) ((int32_t *)x)[i] = (int32_t)(i * 7 % 3);
    if (node->dtype == TP__U32) ((uint32_t *)x)[i] = (uint32_t)i * 2654435761u;
    if (strcmp(node->name, "rate") == 0) x[i] = 0.01f;
    if (strcmp(node->name, "step") == 0) x[i] = 1;
    if (strcmp(node->name, "weights") == 0) x[i] = 1 / (float)n;
    if (strcmp(node->name, "pixels") == 0) x[i] = 127.5f * (x[i] + 1);
  }
  return x;
}

/* group: NULL, or the process this one stands for; the batch is then the examples of all. The
 * compiler's status; the rig has no program when it fails. */
static inline tp_status rig_make(rig *made, const tp__graph *g, int threads,
                                 const tp__compile_options *options, tp__group *group,
                                 tp_error *error)
{
  tp_error err = {0};
  const int64_t n = options->batch;
  rig r = {.graph = g, .n = n};
  tp__tensors initial = {0};
  assert_ok(tp__pool_new(threads, &r.pool, &err));
  assert_ok(tp__backend_cpu(r.pool, &r.backend, &err));
  tp__backend_cpu_join(r.backend, group);
  initial_parameters(g, &initial);
  assert_ok(r.backend->state_new(r.backend, &initial, &r.state, &err));
  tp__tensors_free(&initial);
  tp_status status = r.backend->compile(r.backend, g, r.state, options, &r.program, error);
  r.input = calloc((size_t)g->count + 1, sizeof *r.input);
  r.output = calloc(g->n_outputs + 1, sizeof *r.output);
  r.elements = calloc(g->n_outputs + 1, sizeof *r.elements);
  for (tp__value v = 0; v < g->count; v++)
    if (g->node[v].op == TP__OP_INPUT) r.input[v] = fill_input(&g->node[v], n);
  for (size_t o = 0; o < g->n_outputs; o++) {
    r.elements[o] = tp__shape_elements(&g->node[g->output[o].value].shape, n);
    r.output[o] = calloc(r.elements[o] + 1, sizeof(float));
  }
  *made = r;
  return status;
}

static inline tp_status rig_within(rig *made, const tp__graph *g, int threads, int64_t n,
                                   bool reference, uint64_t limit, tp_error *error)
{
  const tp__compile_options o = {.batch = n, .reference = reference, .memory_limit = limit};
  return rig_make(made, g, threads, &o, NULL, error);
}

static inline rig rig_new_in(const tp__graph *g, int threads, int64_t n, bool reference,
                             tp__group *group)
{
  tp_error err = {0};
  rig r;
  const tp__compile_options o = {.batch = n, .reference = reference};
  assert_ok(rig_make(&r, g, threads, &o, group, &err));
  return r;
}

static inline rig rig_new(const tp__graph *g, int threads, int64_t n, bool reference)
{
  return rig_new_in(g, threads, n, reference, NULL);
}

/* Examples from...from + n of the inputs into the same rows of the outputs. */
static inline tp_status rig_try_part(rig *r, int64_t from, int64_t n, tp_error *err)
{
  tp__feed feed[16];
  tp__fetch fetch[64];
  size_t feeds = 0;
  for (tp__value v = 0; v < r->graph->count; v++) {
    const tp__node *node = &r->graph->node[v];
    if (node->op != TP__OP_INPUT) continue;
    assert_true(feeds < 16);
    size_t row = tp__per_example(node) ? tp__shape_elements(&node->shape, 1) : 0;
    feed[feeds++] = (tp__feed){node->name, (char *)r->input[v] + (size_t)from * row * 4};
  }
  assert_true(r->graph->n_outputs <= 64);
  for (size_t o = 0; o < r->graph->n_outputs; o++) {
    const tp__node *node = &r->graph->node[r->graph->output[o].value];
    size_t row = tp__per_example(node) ? tp__shape_elements(&node->shape, 1) : 0;
    fetch[o] = (tp__fetch){r->graph->output[o].name, r->output[o] + (size_t)from * row};
  }
  return r->backend->run(r->program, feed, feeds, fetch, r->graph->n_outputs, n, err);
}

static inline void rig_run_part(rig *r, int64_t from, int64_t n)
{
  tp_error err = {0};
  assert_ok(rig_try_part(r, from, n, &err));
}

static inline void rig_run(rig *r)
{
  rig_run_part(r, 0, r->n);
}

/* The parameters as they are now. */
static inline void rig_read(rig *r, tp__tensors *into)
{
  tp_error err = {0};
  initial_parameters(r->graph, into);
  assert_ok(r->backend->state_read(r->state, into, &err));
}

static inline void rig_free(rig *r)
{
  for (tp__value v = 0; v < r->graph->count; v++) free(r->input[v]);
  for (size_t o = 0; o < r->graph->n_outputs; o++) free(r->output[o]);
  free(r->input);
  free(r->output);
  free(r->elements);
  if (r->program != NULL) r->backend->program_free(r->program);
  r->backend->state_free(r->state);
  r->backend->free(r->backend);
  tp__pool_free(r->pool);
}

/* Largest difference, relative to the largest magnitude of b (at least floor). NaN counts as
 * infinite. */
static inline double difference(const float *a, const float *b, size_t count, double floor)
{
  double most = 0, size = floor;
  for (size_t i = 0; i < count; i++) {
    double d = fabs((double)a[i] - b[i]);
    if (!(d <= 1e30)) return INFINITY;
    if (d > most) most = d;
    if (fabs((double)b[i]) > size) size = fabs((double)b[i]);
  }
  return size > 0 ? most / size : most;
}

static inline void expect_same_state(rig *a, rig *b, const char *what)
{
  tp__tensors x = {0}, y = {0};
  rig_read(a, &x);
  rig_read(b, &y);
  for (size_t i = 0; i < x.count; i++)
    if (memcmp(x.item[i].data, y.item[i].data, tp__tensor_bytes(&x.item[i])) != 0)
      fail_msg("%s: the bits of %s differ", what, x.item[i].name);
  tp__tensors_free(&x);
  tp__tensors_free(&y);
}

static inline void expect_same_outputs(const rig *a, const rig *b, const char *what)
{
  for (size_t o = 0; o < a->graph->n_outputs; o++)
    if (memcmp(a->output[o], b->output[o], a->elements[o] * sizeof(float)) != 0)
      fail_msg("%s: the bits of output %s differ", what, a->graph->output[o].name);
}

/* The examples of whole's run again, in runs of each of those sizes: the same bits. */
static inline void expect_same_in_parts(rig *parts, const rig *whole, const int64_t *size,
                                        size_t sizes, const char *what)
{
  for (size_t s = 0; s < sizes; s++) {
    memset(parts->output[0], 0xff, parts->elements[0] * sizeof(float));
    for (int64_t from = 0; from < parts->n; from += size[s])
      rig_run_part(parts, from, from + size[s] <= parts->n ? size[s] : parts->n - from);
    expect_same_outputs(parts, whole, what);
  }
}

#endif
