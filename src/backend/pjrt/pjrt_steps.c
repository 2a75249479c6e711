/* pjrt_steps - several runs in one call of the device; see pjrt_state.h
 *
 *   submit, submit, ... ──> staging: inputs of all steps ──full, or somebody waits──> one call
 *   wait ──> the call's outputs, on the host ──> this run's rows to their places
 *
 * The price of a call is paid once for all its steps; a call that is not full does fewer.
 */
#include <stdlib.h>
#include <string.h>

#include "pjrt_state.h"

/* Bytes of a port that has a first dimension of steps: of one step. */
static size_t step_bytes(const tp__program *p, const tp__hlo_port *port)
{
  return tp__shape_elements(&port->shape, 0) * tp__dtype_size(port->dtype) / (size_t)p->steps;
}

tp_status tp__steps_places(tp__program *p, tp_error *err)
{
  const tp__hlo_module *m = &p->module;
  p->staging = tp__calloc(m->n_arguments, sizeof *p->staging, err);
  if (p->staging == NULL) return TP_ERR_INTERNAL;
  p->n_staging = m->n_arguments;
  for (size_t a = 0; a < m->n_arguments; a++) {
    const tp__hlo_port *port = &m->argument[a];
    if (port->kind != TP__HLO_INPUT && port->kind != TP__HLO_VALID) continue;
    size_t bytes = tp__shape_elements(&port->shape, 0) * tp__dtype_size(port->dtype);
    p->staging[a] = tp__calloc_aligned((size_t)p->pjrt->own * bytes, 1, err);
    if (p->staging[a] == NULL) return TP_ERR_INTERNAL;
  }
  return TP_OK;
}

/* ---- filling ---- */

static void call_free(tp__call *c)
{
  if (c == NULL) return;
  size_t all = (size_t)c->program->pjrt->own * c->program->module.n_results;
  for (size_t i = 0; i < all; i++) {
    if (c->output != NULL) free(c->output[i]);
    if (c->fetched != NULL) tp__device_buffer_free(c->fetched[i]);
  }
  free(c->output);
  free(c->fetched);
  free(c->event);
  free(c);
}

static tp_status call_new(tp__program *p, tp__call **call, tp_error *err)
{
  size_t replicas = (size_t)p->pjrt->own, all = replicas * p->module.n_results;
  tp__call *c = tp__calloc(1, sizeof *c, err);
  if (c == NULL) return TP_ERR_INTERNAL;
  c->program = p;
  c->event = tp__calloc(all + replicas, sizeof(tp__event *), err);
  c->output = tp__calloc(all, sizeof(void *), err);
  c->fetched = tp__calloc(all, sizeof(tp__device_buffer *), err);
  if (c->event == NULL || c->output == NULL || c->fetched == NULL) {
    call_free(c);
    return TP_ERR_INTERNAL;
  }
  *call = c;
  return TP_OK;
}

/* One replica's part of one input of step `slot`; the rows behind its own are zeros. */
static void stage_input(tp__program *p, size_t a, int replica, int slot, int64_t n)
{
  const tp__hlo_port *port = &p->module.argument[a];
  tp__share share = tp__share_of(n, p->pjrt->own, replica);
  size_t bytes = step_bytes(p, port);
  char *to = p->staging[a] + ((size_t)replica * (size_t)p->steps + (size_t)slot) * bytes;
  if (port->kind == TP__HLO_VALID) {
    int32_t valid = (int32_t)share.count;
    memcpy(to, &valid, sizeof valid);
  } else if (port->per_example) {
    size_t row = bytes / (size_t)p->rows;
    memcpy(to, (const char *)p->feed[a] + (size_t)share.first * row, (size_t)share.count * row);
    memset(to + (size_t)share.count * row, 0, bytes - (size_t)share.count * row);
  } else {
    memcpy(to, p->feed[a], bytes);
  }
}

static tp_status pending_new(tp__program *p, tp__call *c, int64_t n, tp__pending **pending,
                             tp_error *err)
{
  tp__pending *x = tp__calloc(1, sizeof *x, err);
  if (x == NULL) return TP_ERR_INTERNAL;
  *x = (tp__pending){.pjrt = p->pjrt, .call = c, .slot = c->filled, .n = n};
  x->place = tp__calloc(p->module.n_results, sizeof(void *), err);
  if (x->place == NULL) {
    free(x);
    return TP_ERR_INTERNAL;
  }
  memcpy(x->place, p->fetch, p->module.n_results * sizeof(void *));
  *pending = x;
  return TP_OK;
}

/* ---- the call ---- */

static tp_status send_arguments(tp__program *p, const tp__call *c, tp_error *err)
{
  const tp__hlo_module *m = &p->module;
  int32_t count = c->filled;
  for (int d = 0; d < p->pjrt->own; d++) {
    for (size_t a = 0; a < m->n_arguments; a++) {
      const tp__hlo_port *port = &m->argument[a];
      tp__device_buffer **at = &p->argument[(size_t)d * m->n_arguments + a];
      if (port->kind == TP__HLO_PARAM) {
        TP__TRY(tp__pjrt_lend(p, a, d, at, err));
        continue;
      }
      const void *data = &count;
      if (port->kind != TP__HLO_COUNT)
        data = p->staging[a] + (size_t)d * (size_t)p->steps * step_bytes(p, port);
      TP__TRY(tp__device_buffer_new(p->pjrt->client, d, port->dtype, &port->shape, data, at, err));
    }
  }
  return TP_OK;
}

/* Outputs of all steps come back whole; those of whole batches from the first replica. */
static tp_status start_reads(tp__program *p, tp__call *c, tp_error *err)
{
  const tp__hlo_module *m = &p->module;
  for (int d = 0; d < p->pjrt->own; d++) {
    for (size_t r = 0; r < m->n_results; r++) {
      const tp__hlo_port *port = &m->result[r];
      size_t i = (size_t)d * m->n_results + r;
      c->fetched[i] = p->result[i];
      p->result[i] = NULL;
      if (port->kind != TP__HLO_OUTPUT || (d > 0 && !port->per_example)) continue;
      size_t bytes = step_bytes(p, port) * (size_t)p->steps;
      c->output[i] = tp__calloc_aligned(bytes, 1, err);
      if (c->output[i] == NULL) return TP_ERR_INTERNAL;
      TP__TRY(tp__device_buffer_read(c->fetched[i], c->output[i], bytes, &c->event[i], err));
    }
  }
  return TP_OK;
}

/* All its runs have the call's fate; how it began is told to each of them. */
static tp_status begin(tp__program *p, tp_error *err)
{
  tp__call *c = p->call;
  size_t all = (size_t)p->pjrt->own * p->module.n_results;
  p->call = NULL;
  p->state->filling = NULL;
  c->begun = true;
  c->status = send_arguments(p, c, &c->error);
  if (c->status == TP_OK)
    c->status = tp__executable_run(p->executable, p->argument, p->module.n_arguments, p->result,
                                   p->module.n_results, c->event + all, &c->error);
  tp__free_inputs(p);
  if (c->status == TP_OK) {
    tp__run_began(p->pjrt);
    tp__take_assigned(p);
    c->status = start_reads(p, c, &c->error);
  } else {
    c->over = true;
  }
  if (c->status != TP_OK && err != NULL) *err = c->error;
  return c->status;
}

static void end(tp__call *c)
{
  const tp__program *p = c->program;
  size_t replicas = (size_t)p->pjrt->own, all = replicas * (p->module.n_results + 1);
  tp_error late;
  for (size_t i = 0; i < all; i++) {
    tp_status status = tp__event_wait(c->event[i], &late);
    c->event[i] = NULL;
    if (status == TP_OK || c->status != TP_OK) continue;
    c->status = status;
    c->error = late;
  }
  c->over = true;
  tp__run_ended(p->pjrt);
}

tp_status tp__steps_flush(tp__state *state, tp_error *err)
{
  return state->filling != NULL ? begin(state->filling, err) : TP_OK;
}

tp_status tp__steps_submit(tp__program *p, int64_t n, tp__pending **pending, tp_error *err)
{
  if (p->call == NULL) TP__TRY(call_new(p, &p->call, err));
  tp__call *c = p->call;
  TP__TRY(pending_new(p, c, n, pending, err));
  for (size_t a = 0; a < p->n_staging; a++)
    for (int d = 0; p->staging[a] != NULL && d < p->pjrt->own; d++)
      stage_input(p, a, d, c->filled, n);
  c->filled++;
  c->runs++;
  p->state->filling = p;
  /* A failure is the pending runs' to tell. */
  if (c->filled == p->steps) (void)!begin(p, NULL);
  return TP_OK;
}

/* ---- back ---- */

static void take_rows(const tp__pending *x)
{
  const tp__program *p = x->call->program;
  const tp__hlo_module *m = &p->module;
  for (int d = 0; d < p->pjrt->own; d++) {
    tp__share share = tp__share_of(x->n, p->pjrt->own, d);
    for (size_t r = 0; r < m->n_results; r++) {
      const char *from = x->call->output[(size_t)d * m->n_results + r];
      if (from == NULL || x->place[r] == NULL) continue;
      size_t bytes = step_bytes(p, &m->result[r]), row = bytes / (size_t)p->rows;
      from += (size_t)x->slot * bytes;
      if (m->result[r].per_example)
        memcpy((char *)x->place[r] + (size_t)share.first * row, from, (size_t)share.count * row);
      else
        memcpy(x->place[r], from, bytes);
    }
  }
}

tp_status tp__steps_wait(tp__pending *x, tp_error *err)
{
  tp__call *c = x->call;
  if (!c->begun) (void)!begin(c->program, NULL);
  if (!c->over) end(c);
  tp_status status = c->status;
  if (status == TP_OK)
    take_rows(x);
  else if (err != NULL)
    *err = c->error;
  free(x->place);
  free(x);
  if (--c->runs == 0) call_free(c);
  return status;
}
