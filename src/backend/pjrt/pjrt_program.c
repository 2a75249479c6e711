/* pjrt_program - a graph becomes a program on all replicas, in as many parts as memory asks for;
 * see pjrt_state.h */
#include <stdlib.h>
#include <string.h>

#include "pjrt_state.h"

enum { PARTS_MAX = 1024 };

void tp__pjrt_program_free(tp__program *p)
{
  if (p == NULL) return;
  tp__executable_free(p->executable);
  tp__hlo_free(&p->module);
  free(p->entry);
  free(p->feed);
  free(p->fetch);
  free(p->padded);
  free(p->argument);
  free(p->result);
  for (size_t a = 0; p->staging != NULL && a < p->n_staging; a++) free(p->staging[a]);
  free(p->staging);
  free(p);
}

void tp__pjrt_program_info(const tp__program *p, tp__program_info *info)
{
  *info = p->info;
}

/* ---- does it fit ---- */

static uint64_t limit_of(const tp__program *p, const tp__compile_options *options)
{
  uint64_t limit = 0, used = 0;
  if (!tp__client_memory(p->pjrt->client, 0, &limit, &used)) limit = 0;
  if (options->memory_limit > 0 && (limit == 0 || options->memory_limit < limit))
    limit = options->memory_limit;
  return limit;
}

static tp_status check_memory(const tp__program *p, const tp__compile_options *options,
                              bool *too_large, tp_error *err)
{
  tp__executable_info info;
  tp__executable_info_of(p->executable, &info);
  uint64_t need = tp__executable_need(&info), limit = limit_of(p, options);
  char a[32], b[32];
  if (limit == 0 || need <= limit) return TP_OK;
  *too_large = true;
  return tp__fail(
      err, TP_ERR_DEVICE,
      "a batch of %lld, %lld on each of %d replicas, needs %s on a device, there are %s",
      (long long)p->batch, (long long)p->rows, p->pjrt->own, tp__bytes_text(a, need),
      tp__bytes_text(b, limit));
}

/* ---- compiling ---- */

static tp_status compile_parts(tp__program *p, const tp__graph *graph,
                               const tp__compile_options *options, int parts, bool *too_large,
                               tp_error *err)
{
  tp__pjrt *pjrt = p->pjrt;
  p->rows = tp__hlo_rows(p->batch, pjrt->own, parts);
  tp__hlo_options how = {.rows = p->rows,
                         .replicas = p->joined ? pjrt->base.replicas : pjrt->own,
                         .local_statistics = options->local_statistics,
                         .bf16 = options->bf16,
                         .byte_input = options->byte_input,
                         .accumulate = parts,
                         .steps = p->steps,
                         .depthwise_shifts = strcmp(pjrt->base.name, "cpu") == 0};
  tp__hlo_free(&p->module);
  tp__executable_free(p->executable);
  p->executable = NULL;
  TP__TRY(tp__hlo_write(graph, &how, &p->module, err));
  tp_error why;
  const char *text = (const char *)p->module.text.data;
  tp_status status = p->joined ? tp__executable_join(pjrt->client, text, p->module.text.size,
                                                     pjrt->cache, &p->executable, &why)
                               : tp__executable_new(pjrt->client, text, p->module.text.size,
                                                    pjrt->own, pjrt->cache, &p->executable, &why);
  if (status != TP_OK) {
    *too_large = tp__pjrt_out_of_memory(&why);
    return tp__fail(err, status, "a batch of %lld, %lld on each of %d replicas: %s",
                    (long long)p->batch, (long long)p->rows, pjrt->own, why.text);
  }
  p->info.parts = parts;
  return check_memory(p, options, too_large, err);
}

/* More parts until it fits, when that was left to us and can be; the same numbers within rounding.
 * All processes take the same. */
static tp_status compile_to_fit(tp__program *p, const tp__graph *graph,
                                const tp__compile_options *options, tp_error *err)
{
  bool trains = graph->n_assignments > 0, divides = trains && tp__hlo_divides(graph);
  int parts = options->accumulate > 1 && trains ? options->accumulate : 1;
  for (;;) {
    bool too_large = false;
    tp_error why;
    tp_status status = compile_parts(p, graph, options, parts, &too_large, &why);
    status = tp__group_agree_or_mend(p->pjrt->base.group, status, &too_large, &why);
    if (status == TP_OK) return TP_OK;
    bool more = too_large && divides && options->accumulate == 0 && parts < p->rows &&
                parts * 2 <= PARTS_MAX;
    if (!more) {
      if (err != NULL) *err = why;
      if (!too_large) return status;
      return tp__at(err, status, "out of memory: take a smaller batch, a smaller picture%s",
                    divides && options->accumulate != 0 ? ", or accumulate = auto" : "");
    }
    parts *= 2;
    tp__say(p->pjrt->log, "%s: the gradient is gathered in %d parts of the batch instead", why.text,
            parts);
  }
}

/* ---- places for its runs ---- */

static tp_status make_places(tp__program *p, tp_error *err)
{
  const tp__hlo_module *m = &p->module;
  size_t replicas = (size_t)p->pjrt->own, largest = 0;
  p->entry = tp__calloc(m->n_arguments, sizeof *p->entry, err);
  p->feed = tp__calloc(m->n_arguments, sizeof *p->feed, err);
  p->fetch = tp__calloc(m->n_results, sizeof *p->fetch, err);
  p->argument = tp__calloc(replicas * m->n_arguments, sizeof *p->argument, err);
  p->result = tp__calloc(replicas * m->n_results, sizeof *p->result, err);
  if (!p->entry || !p->feed || !p->fetch || !p->argument || !p->result) return TP_ERR_INTERNAL;
  for (size_t a = 0; a < m->n_arguments; a++) {
    const tp__hlo_port *port = &m->argument[a];
    size_t bytes = tp__shape_elements(&port->shape, 0) * tp__dtype_size(port->dtype);
    if (port->kind == TP__HLO_PARAM)
      TP__TRY(tp__pjrt_state_find(p->state, port->name, &port->shape, &p->entry[a], err));
    else if (port->per_example && bytes > largest)
      largest = bytes;
  }
  if (p->steps > 1) return tp__steps_places(p, err);
  p->padded = tp__calloc_aligned(largest, 1, err);
  return p->padded == NULL ? TP_ERR_INTERNAL : TP_OK;
}

static void describe(tp__program *p, const tp__graph *graph)
{
  tp__executable_info info;
  tp__executable_info_of(p->executable, &info);
  for (int32_t v = 0; v < graph->count; v++) p->info.flops_per_example += tp__node_flops(graph, v);
  p->info.activation_bytes = info.temporary_bytes;
  p->info.weight_bytes = info.argument_bytes;
  p->info.chunk = (int)(p->rows / p->info.parts);
}

static bool has_joints(const tp__graph *graph)
{
  for (int32_t v = 0; v < graph->count; v++)
    if (tp__op_is_joint(graph->node[v].op)) return true;
  return false;
}

tp_status tp__pjrt_compile(tp__backend *backend, const tp__graph *graph, tp__state *state,
                           const tp__compile_options *options, tp__program **program, tp_error *err)
{
  if (options->reference) return tp__fail(err, TP_ERR_INTERNAL, "plain loops run on the CPU only");
  tp__program *p = tp__calloc(1, sizeof *p, err);
  if (p == NULL) return TP_ERR_INTERNAL;
  p->pjrt = (tp__pjrt *)backend;
  p->state = state;
  p->batch = options->batch;
  p->steps = options->steps > 1 ? options->steps : 1;
  p->joined = tp__group_size(backend->group) > 1 && has_joints(graph);
  tp_status status = compile_to_fit(p, graph, options, err);
  if (status == TP_OK) status = make_places(p, err);
  status = tp__group_agree(backend->group, status, err);
  if (status == TP_OK) {
    tp__buffer_free(&p->module.text);
    describe(p, graph);
    *program = p;
  } else {
    tp__pjrt_program_free(p);
  }
  return status;
}
