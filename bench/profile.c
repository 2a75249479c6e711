/* profile - where the time of a network's inference goes, layer by layer.
 *
 *   bench_profile NETWORK [SIZE [SECONDS [bf16]]]   efficientnet-b0, resnet50...; 192, 3
 *
 * One thread, its processor time, batches of four images, as the planner cuts them. Every step of
 * the plan is timed by a function put in its place (reading the clock takes far less than a step),
 * and the peak is measured between the rounds. A line for each step: its layer, the shape of its
 * result, its part of the time, and the share of the peak it runs at: 0 for element-wise work,
 * which counts no multiply-adds. Products that the plan fused (expansion with depthwise) are one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/cpu/exec.h"
#include "model/net.h"
#include "names.h"

enum { BATCH = 4, STEPS_MAX = 2048 };

/* What was put in the place of which step. Bench programs may have globals: a step has no place for
 * an argument. */
static struct {
  tp__step_fn run;
  double seconds;
} timed[STEPS_MAX];

static double thread_seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void run_timed(const tp__frame *f, const tp__step *s)
{
  size_t i = (size_t)(s - f->plan->step);
  double start = thread_seconds();
  timed[i].run(f, s);
  timed[i].seconds += thread_seconds() - start;
}

static double flops_of(const tp__plan *plan, const tp__step *s)
{
  const tp__graph *g = plan->program->graph;
  double flops = tp__node_flops(g, s->v);
  if (s->inner != NULL) flops += tp__node_flops(g, (tp__value)(s->inner - g->node));
  return flops;
}

/* The layer whose kernel the step has, or else its operator. */
static const char *name_of(const tp__plan *plan, const tp__node *n, char text[64])
{
  const tp__node *p = n;
  while (p->op != TP__OP_PARAM && p->n_in > 0 && p->in[p == n && n->n_in > 1 ? 1 : 0] != TP__NONE)
    p = tp__plan_node(plan, p->in[p == n && n->n_in > 1 ? 1 : 0]);
  const char *slash = p->op == TP__OP_PARAM ? strrchr(p->name, '/') : NULL;
  if (slash == NULL) return tp__op_name(n->op);
  snprintf(text, 64, "%.*s", (int)(slash - p->name), p->name);
  return text;
}

static void print(const tp__plan *plan, double rounds, double peak)
{
  double total = 0, flops = 0;
  char shape[96], name[64];
  for (int i = 0; i < plan->n_steps; i++) total += timed[i].seconds;
  printf("%-44s %-20s %8s %8s %8s\n", "layer", "result", "Mflop", "time %", "of peak");
  for (int i = 0; i < plan->n_steps; i++) {
    const tp__step *s = &plan->step[i];
    double own = flops_of(plan, s), seconds = timed[i].seconds / rounds / BATCH;
    flops += own;
    if (timed[i].seconds < total / 1000) continue;
    if (s->inner != NULL) printf("%s +\n", name_of(plan, s->inner, name));
    printf("%-44s %-20s %8.1f %8.1f %8.2f\n", name_of(plan, s->node, name),
           tp__shape_text(&s->node->shape, shape), own / 1e6, 100 * timed[i].seconds / total,
           own / seconds / 1e9 / peak);
  }
  printf("%-44s %-20s %8.1f %8.1f %8.2f\n", "all", "", flops / 1e6, 100.0,
         flops / (total / rounds / BATCH) / 1e9 / peak);
}

static tp_status measure(tp__backend *backend, tp__program *program, const tp__feed *feed,
                         tp__fetch *fetch, double seconds, tp_error *err)
{
  tp__plan *plan = program->plan;
  double peak = 0;
  int rounds = 0;
  if (plan->n_steps > STEPS_MAX) return tp__fail(err, TP_ERR_INTERNAL, "more steps than expected");
  TP__TRY(backend->run(program, feed, 1, fetch, 1, BATCH, err));
  for (int i = 0; i < plan->n_steps; i++) {
    timed[i].run = plan->step[i].run;
    plan->step[i].run = run_timed;
  }
  for (double end = tp__now() + seconds; tp__now() < end; rounds++) {
    peak += tp__cpu_peak_gflops(backend, 0.01);
    TP__TRY(backend->run(program, feed, 1, fetch, 1, BATCH, err));
  }
  print(plan, rounds, peak / rounds);
  return TP_OK;
}

static tp_status profile(tp__backend *backend, const char *network, int size, double seconds,
                         bool bf16, tp_error *err)
{
  tp__model_spec spec = {.name = network, .height = size, .width = size, .classes = BENCH_CLASSES};
  tp__compile_options co = {.batch = BATCH, .bf16 = bf16};
  tp__net *net = NULL;
  tp__tensors weights = {0};
  tp__state *state = NULL;
  tp__program *program = NULL;
  const size_t count = (size_t)BATCH * (size_t)size * (size_t)size * 3;
  float *pixels = tp__calloc(count, sizeof *pixels, err), scores[BATCH * BENCH_CLASSES];
  tp__feed feed = {"pixels", pixels};
  tp__fetch fetch = {"scores", scores};
  tp_status status = pixels == NULL ? TP_ERR_INTERNAL : tp__net_build(&spec, false, &net, err);
  tp__key key = tp__key_of(1, 0, 0);
  for (size_t i = 0; status == TP_OK && i < count; i++)
    pixels[i] = 255 * tp__uniform(key, 0, (uint32_t)i);
  if (status == TP_OK) status = tp__graph_output(net->graph, "scores", net->probabilities, err);
  if (status == TP_OK) status = tp__net_init(net, 1, &weights, err);
  if (status == TP_OK) status = backend->state_new(backend, &weights, &state, err);
  if (status == TP_OK) status = backend->compile(backend, net->graph, state, &co, &program, err);
  if (status == TP_OK) status = measure(backend, program, &feed, &fetch, seconds, err);
  if (program != NULL) backend->program_free(program);
  if (state != NULL) backend->state_free(state);
  tp__tensors_free(&weights);
  tp__net_free(net);
  free(pixels);
  return status;
}

int main(int argc, char **argv)
{
  const char *network = argc > 1 ? argv[1] : "efficientnet-b0";
  int size = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 192;
  tp_error err = {0};
  tp__pool *pool = NULL;
  tp__backend *backend = NULL;
  tp_status status = tp__pool_new(1, &pool, &err);
  if (status == TP_OK) status = tp__backend_cpu(pool, &backend, &err);
  if (status == TP_OK)
    status = profile(backend, network, size, argc > 3 ? strtod(argv[3], NULL) : 3,
                     argc > 4 && strcmp(argv[4], "bf16") == 0, &err);
  if (status != TP_OK) fprintf(stderr, "bench_profile: %s\n", err.text);
  if (backend != NULL) backend->free(backend);
  tp__pool_free(pool);
  return (int)status;
}
