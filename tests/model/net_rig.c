/* net_rig - see net_rig.h */
#include "net_rig.h"

#include <math.h>

#include "model/weights.h"

rig rig_new(const tp__model_spec *spec)
{
  tp_error err = {0};
  rig r = {0};
  assert_ok(tp__net_build(spec, false, &r.net, &err));
  assert_ok(tp__net_init(r.net, 1, &r.weights, &err));
  return r;
}

void rig_match(rig *r, const tp__tensors *file, const char *what)
{
  tp_error err = {0};
  tp__weights_report counts;
  assert_ok(tp__weights_match(file, &r->weights, NULL, false, what, &(tp__log){0}, &counts, &err));
  assert_int_equal(counts.loaded, r->net->n_parameters);
}

void rig_start(rig *r)
{
  tp_error err = {0};
  assert_ok(tp__pool_new(2, &r->pool, &err));
  assert_ok(tp__backend_cpu(r->pool, &r->cpu, &err));
  assert_ok(r->cpu->state_new(r->cpu, &r->weights, &r->state, &err));
}

void rig_free(rig *r)
{
  r->cpu->state_free(r->state);
  r->cpu->free(r->cpu);
  tp__pool_free(r->pool);
  tp__net_free(r->net);
  tp__tensors_free(&r->weights);
}

void rig_output(rig *r, const char *name, tp__value value)
{
  tp_error err = {0};
  assert_ok(tp__graph_output(r->net->graph, name, value, &err));
}

/* Runs n pictures; mine[i] receives output i of the graph, its size in size[i] (numbers of one
 * example). */
void rig_run(rig *r, bool reference, const float *pixels, int64_t n, float **mine, size_t *size)
{
  tp_error err = {0};
  const tp__graph *g = r->net->graph;
  tp__fetch *fetch = calloc(g->n_outputs, sizeof *fetch);
  assert_non_null(fetch);
  for (size_t i = 0; i < g->n_outputs; i++) {
    size[i] = tp__shape_elements(&g->node[g->output[i].value].shape, 1);
    mine[i] = calloc(size[i] * (size_t)n, sizeof(float));
    assert_non_null(mine[i]);
    fetch[i] = (tp__fetch){g->output[i].name, mine[i]};
  }
  tp__program *program = NULL;
  tp__compile_options options = {.batch = n, .reference = reference};
  assert_ok(r->cpu->compile(r->cpu, g, r->state, &options, &program, &err));
  tp__feed feed = {"pixels", pixels};
  assert_ok(r->cpu->run(program, &feed, 1, fetch, g->n_outputs, n, &err));
  r->cpu->program_free(program);
  free(fetch);
}

/* ---- comparing ---- */

double largest(const float *x, size_t n)
{
  double max = 0;
  for (size_t i = 0; i < n; i++)
    if (!(fabs((double)x[i]) <= max)) max = fabs((double)x[i]);
  return max;
}

void compare(worst *w, const char *what, const float *mine, const float *wanted, size_t n,
             double allowed)
{
  for (size_t i = 0; i < n; i++) {
    double difference = fabs((double)mine[i] - (double)wanted[i]);
    if (!(difference <= allowed))
      fail_msg("%s[%zu] is %.9g, wanted %.9g (within %.3g)", what, i, (double)mine[i],
               (double)wanted[i], allowed);
    if (difference / allowed < w->share) continue;
    w->share = difference / allowed;
    snprintf(w->what, sizeof w->what, "%s", what);
  }
  w->compared++;
}

void report(const worst *w, size_t expected)
{
  assert_int_equal(w->compared, expected);
  print_message("largest difference: %.2g of the tolerance, %s\n", w->share, w->what);
}
