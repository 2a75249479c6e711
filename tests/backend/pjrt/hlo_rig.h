/* hlo_rig - a graph as StableHLO on a CPU plugin, against the plain loops on the same numbers.
 *
 * n examples go to the replicas in order, `rows` to each; rows that are left over hold large
 * numbers, which must not be seen in any result. Per-example outputs are compared row by row,
 * shared ones and new parameters on every replica, whose bits must be the same.
 */
#ifndef TP_HLO_RIG_H
#define TP_HLO_RIG_H

#include "../rig.h"
#include "backend/pjrt/client.h"
#include "backend/pjrt/stablehlo.h"
#include "pjrt_testing.h"

typedef struct hlo_rig {
  tp__client *client;
  const tp__graph *graph;
  tp__hlo_options options;
  tp__hlo_module module;
  tp__executable *executable;
  void **result; /* [replicas][results]: read back */
} hlo_rig;

static inline size_t port_bytes(const tp__hlo_port *port)
{
  return tp__shape_elements(&port->shape, 1) * tp__dtype_size(port->dtype);
}

static inline const tp__node *find_input(const tp__graph *g, const char *name, tp__value *v)
{
  for (*v = 0; *v < g->count; (*v)++)
    if (g->node[*v].op == TP__OP_INPUT && strcmp(g->node[*v].name, name) == 0) return &g->node[*v];
  fail_msg("no input %s", name);
  return NULL;
}

/* Numbers of padded rows. */
static inline void spoil(void *data, tp__dtype dtype, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    if (dtype == TP__F32) ((float *)data)[i] = 1000 + (float)(i % 7);
    if (dtype == TP__I32) ((int32_t *)data)[i] = 1;
    if (dtype == TP__U32) ((uint32_t *)data)[i] = (uint32_t)i;
    if (dtype == TP__U8) ((uint8_t *)data)[i] = 201;
  }
}

/* The rows of replica r of an input of the plain rig. */
static inline void *replica_rows(const rig *plain, const tp__hlo_port *port, int r, int64_t rows)
{
  tp__value v;
  const tp__node *node = find_input(plain->graph, port->name, &v);
  size_t size = port_bytes(port), element = tp__dtype_size(port->dtype);
  uint8_t *data = calloc(1, size + 1);
  const uint8_t *from = plain->input[v];
  assert_non_null(data);
  if (!port->per_example) {
    memcpy(data, from, size);
    return data;
  }
  size_t count = tp__shape_elements(&node->shape, 1);
  for (int64_t i = 0; i < rows; i++) {
    int64_t example = r * rows + i;
    uint8_t *to = data + (size_t)i * count * element;
    if (example >= plain->n)
      spoil(to, port->dtype, count);
    else if (port->dtype == TP__U8)
      for (size_t j = 0; j < count; j++)
        to[j] = (uint8_t)((const float *)plain->input[v])[(size_t)example * count + j];
    else
      memcpy(to, from + (size_t)example * count * element, count * element);
  }
  return data;
}

static inline tp__device_buffer *argument_of(const hlo_rig *h, const rig *plain,
                                             const tp__tensors *initial, const tp__hlo_port *port,
                                             int r)
{
  tp_error err = {0};
  tp__device_buffer *buffer = NULL;
  int64_t rows = h->options.rows, left = plain->n - r * rows;
  int32_t valid = (int32_t)(left < 0 ? 0 : left > rows ? rows : left);
  void *made = NULL;
  const void *data = &valid;
  if (port->kind == TP__HLO_PARAM) data = tp__tensors_find(initial, port->name)->data;
  if (port->kind == TP__HLO_INPUT) data = made = replica_rows(plain, port, r, rows);
  assert_ok(tp__device_buffer_new(h->client, r, port->dtype, &port->shape, data, &buffer, &err));
  free(made);
  return buffer;
}

static inline void read_results(hlo_rig *h, tp__device_buffer **result)
{
  tp_error err = {0};
  size_t n = h->module.n_results;
  h->result = calloc(n * (size_t)h->options.replicas + 1, sizeof *h->result);
  for (size_t i = 0; i < n * (size_t)h->options.replicas; i++) {
    tp__event *event = NULL;
    size_t size = port_bytes(&h->module.result[i % n]);
    h->result[i] = calloc(1, size + 1);
    assert_ok(tp__device_buffer_read(result[i], h->result[i], size, &event, &err));
    assert_ok(tp__event_wait(event, &err));
    tp__device_buffer_free(result[i]);
  }
}

/* One run on numbers of the plain rig, whose own run is not needed. */
static inline hlo_rig hlo_run(tp__client *client, const rig *plain, const tp__hlo_options *options)
{
  tp_error err = {0};
  hlo_rig h = {.client = client, .graph = plain->graph, .options = *options};
  tp__tensors initial = {0};
  size_t replicas = (size_t)options->replicas;
  assert_ok(tp__hlo_write(plain->graph, options, &h.module, &err));
  tp__hlo_module *m = &h.module;
  assert_ok(tp__executable_new(client, (const char *)m->text.data, m->text.size, options->replicas,
                               NULL, &h.executable, &err));
  initial_parameters(plain->graph, &initial);
  tp__device_buffer **in = calloc(replicas * m->n_arguments + 1, sizeof(void *));
  tp__device_buffer **out = calloc(replicas * m->n_results + 1, sizeof(void *));
  for (size_t i = 0; i < replicas * m->n_arguments; i++)
    in[i] = argument_of(&h, plain, &initial, &m->argument[i % m->n_arguments],
                        (int)(i / m->n_arguments));
  assert_ok(tp__executable_run(h.executable, in, m->n_arguments, out, m->n_results, NULL, &err));
  for (size_t i = 0; i < m->n_results; i++)
    if (m->result[i].kind == TP__HLO_ASSIGNED)
      assert_true(tp__device_buffer_is_gone(in[m->result[i].param])); /* its memory is reused */
  read_results(&h, out);
  for (size_t i = 0; i < replicas * m->n_arguments; i++) tp__device_buffer_free(in[i]);
  free(in);
  free(out);
  tp__tensors_free(&initial);
  return h;
}

static inline void hlo_rig_free(hlo_rig *h)
{
  for (size_t i = 0; i < h->module.n_results * (size_t)h->options.replicas; i++) free(h->result[i]);
  free(h->result);
  tp__executable_free(h->executable);
  tp__hlo_free(&h->module);
}

static inline const float *hlo_result(const hlo_rig *h, size_t i, int replica)
{
  return h->result[(size_t)replica * h->module.n_results + i];
}

/* Result i against the plain numbers of all n examples, or of a shared value. */
static inline double result_difference(const hlo_rig *h, size_t i, const float *wanted, int64_t n,
                                       double floor)
{
  const tp__hlo_port *port = &h->module.result[i];
  size_t count = tp__shape_elements(&port->shape, 1);
  if (!port->per_example) return difference(hlo_result(h, i, 0), wanted, count, floor);
  size_t row = count / (size_t)h->options.rows;
  float *all = calloc((size_t)n * row + 1, sizeof *all);
  for (int64_t e = 0; e < n; e++)
    memcpy(all + (size_t)e * row,
           hlo_result(h, i, (int)(e / h->options.rows)) + (size_t)(e % h->options.rows) * row,
           row * sizeof *all);
  double d = difference(all, wanted, (size_t)n * row, floor);
  free(all);
  return d;
}

static inline void expect_equal_replicas(const hlo_rig *h, const char *what)
{
  for (size_t i = 0; i < h->module.n_results; i++) {
    const tp__hlo_port *port = &h->module.result[i];
    for (int r = 1; r < h->options.replicas && !port->per_example; r++)
      if (memcmp(hlo_result(h, i, r), hlo_result(h, i, 0), port_bytes(port)) != 0)
        fail_msg("%s: the bits of %s differ on replica %d", what, port->name, r);
  }
}

/* All outputs and new parameters, relative to the largest number of each. plain has run. */
static inline void expect_plain(const hlo_rig *h, rig *plain, double tolerance, const char *what)
{
  tp__tensors state = {0};
  rig_read(plain, &state);
  for (size_t i = 0; i < h->module.n_results; i++) {
    const tp__hlo_port *port = &h->module.result[i];
    const float *wanted = port->kind == TP__HLO_OUTPUT ? plain->output[i]
                                                       : tp__tensors_find(&state, port->name)->data;
    double d = result_difference(h, i, wanted, plain->n, 1e-3);
    if (!(d < tolerance))
      fail_msg("%s: %s differs by %g (relative to its largest number)", what, port->name, d);
  }
  expect_equal_replicas(h, what);
  tp__tensors_free(&state);
}

#endif
