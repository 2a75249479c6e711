/* cpu - the device: choice of the instruction set, description, measured peak; see cpu.h */
#include "cpu.h"

#include <stdlib.h>
#include <string.h>

static void cpu_free(tp__backend *backend)
{
  free(backend);
}

static const char *set_name(const char *name)
{
  if (strcmp(name, "avx512") == 0) return "AVX-512";
  if (strcmp(name, "avx2") == 0) return "AVX2";
  return "baseline vectors";
}

/* The threads that would go on alone are those that compute: submit is done when it returns. */
static tp_status cpu_submit(tp__program *program, const tp__feed *feed, size_t n_feeds,
                            tp__fetch *fetch, size_t n_fetches, int64_t n, tp__pending **pending,
                            tp_error *err)
{
  *pending = NULL;
  return tp__cpu_run(program, feed, n_feeds, fetch, n_fetches, n, err);
}

static tp_status cpu_wait(tp__pending *pending, tp_error *err)
{
  if (pending == NULL) return TP_OK;
  return tp__fail(err, TP_ERR_INTERNAL, "the CPU has no run in flight");
}

tp_status tp__backend_cpu(tp__pool *pool, tp__backend **backend, tp_error *err)
{
  const tp__kernels *kernels = NULL;
  const char *cap = getenv("TEPAL_CPU");
  tp_status status = tp__kernels_choose(cap != NULL && cap[0] != '\0' ? cap : NULL, &kernels, err);
  if (status != TP_OK) return tp__at(err, status, "environment variable TEPAL_CPU");
  tp__cpu *cpu = tp__calloc(1, sizeof *cpu, err);
  if (cpu == NULL) return TP_ERR_INTERNAL;
  cpu->pool = pool;
  cpu->kernels = kernels;
  cpu->base = (tp__backend){
      .name = "cpu",
      .replicas = 1,
      .free = cpu_free,
      .state_new = tp__cpu_state_new,
      .state_free = tp__cpu_state_free,
      .state_write = tp__cpu_state_write,
      .state_read = tp__cpu_state_read,
      .compile = tp__cpu_compile,
      .program_free = tp__cpu_program_free,
      .program_info = tp__cpu_program_info,
      .program_plan = tp__cpu_program_plan,
      .run = tp__cpu_run,
      .submit = cpu_submit,
      .wait = cpu_wait,
  };
  int threads = tp__pool_threads(pool);
  snprintf(cpu->base.device, sizeof cpu->base.device, "%d thread%s, %s", threads,
           threads == 1 ? "" : "s", set_name(kernels->name));
  *backend = &cpu->base;
  return TP_OK;
}

void tp__backend_cpu_join(tp__backend *backend, tp__group *group)
{
  tp__cpu *cpu = (tp__cpu *)backend;
  int threads = tp__pool_threads(cpu->pool);
  backend->group = group;
  backend->replicas = tp__group_size(group);
  if (backend->replicas == 1) return;
  snprintf(backend->device, sizeof backend->device, "%d processes of %d thread%s, %s",
           backend->replicas, threads, threads == 1 ? "" : "s", set_name(cpu->kernels->name));
}

struct peak {
  const tp__kernels *kernels;
  double seconds;
  double *gflops; /* per thread */
};

static void measure(void *arg, size_t index, int worker)
{
  (void)worker;
  struct peak *p = arg;
  p->gflops[index] = p->kernels->peak(p->seconds);
}

double tp__cpu_peak_gflops(tp__backend *backend, double seconds)
{
  tp__cpu *cpu = (tp__cpu *)backend;
  size_t threads = (size_t)tp__pool_threads(cpu->pool);
  double *gflops = calloc(threads, sizeof *gflops), sum = 0;
  if (gflops == NULL) return 0;
  struct peak p = {.kernels = cpu->kernels, .seconds = seconds, .gflops = gflops};
  tp__pool_for(cpu->pool, threads, measure, &p);
  for (size_t i = 0; i < threads; i++) sum += gflops[i];
  free(gflops);
  return sum;
}

/* The processor makes products of bfloat16 at least so much faster than of float32, in bursts that
 * alternate; the best of each counts, for what else runs on the machine only slows them. */
static bool is_faster(const tp__kernels *bf16, const tp__kernels *float32)
{
  enum { BURSTS = 6 };
  const double least = 1.25, seconds = 0.5e-3;
  double best[2] = {0, 0};
  for (int i = 0; i < 2 * BURSTS; i++) {
    double gflops = (i % 2 == 0 ? bf16 : float32)->peak(seconds);
    if (gflops > best[i % 2]) best[i % 2] = gflops;
  }
  return best[0] >= least * best[1];
}

tp_status tp__cpu_take_bf16(tp__cpu *cpu, tp_error *err)
{
  if (cpu->bf16 != NULL) return TP_OK;
  const tp__kernels *bf16 = tp__kernels_bf16(cpu->kernels);
  if (bf16 == NULL)
    return tp__fail(err, TP_ERR_USAGE,
                    "precision: bf16 on the CPU takes AVX-512 with its bfloat16 products "
                    "(avx512_bf16), which %s: leave it at float32",
                    getenv("TEPAL_CPU") != NULL ? "this processor lacks or TEPAL_CPU rules out"
                                                : "this processor lacks");
  if (!is_faster(bf16, cpu->kernels))
    return tp__fail(err, TP_ERR_USAGE,
                    "precision: bf16 would not be faster: this processor makes products of "
                    "bfloat16 no faster than those of float32: leave it at float32");
  cpu->bf16 = bf16;
  return TP_OK;
}
