/* pjrt_run - one run: rows to the replicas of this process, the program, results back; see
 * pjrt_state.h
 *
 * n examples are spread evenly: the first replicas have one more where it does not divide. What is
 * missing to a replica's rows is zeros, which the program knows how many of (`valid`). With several
 * processes each has its share of the examples (tp__group_rows), in the end replica by replica the
 * same as if one had them all.
 */
#include <stdlib.h>
#include <string.h>

#include "pjrt_state.h"

static size_t row_bytes(const tp__hlo_port *p)
{
  tp__shape row = p->shape;
  row.dim[0] = 1;
  return tp__shape_elements(&row, 0) * tp__dtype_size(p->dtype);
}

/* ---- binding names ---- */

static tp_status bind_feeds(tp__program *p, const tp__feed *feed, size_t n_feeds, tp_error *err)
{
  for (size_t a = 0; a < p->module.n_arguments; a++) {
    const tp__hlo_port *port = &p->module.argument[a];
    p->feed[a] = NULL;
    if (port->kind != TP__HLO_INPUT) continue;
    for (size_t i = 0; i < n_feeds; i++)
      if (strcmp(feed[i].name, port->name) == 0) p->feed[a] = feed[i].data;
    if (p->feed[a] == NULL)
      return tp__fail(err, TP_ERR_INTERNAL, "input %s was not fed", port->name);
  }
  return TP_OK;
}

static tp_status bind_fetches(tp__program *p, const tp__fetch *fetch, size_t n_fetches,
                              tp_error *err)
{
  for (size_t r = 0; r < p->module.n_results; r++) p->fetch[r] = NULL;
  for (size_t i = 0; i < n_fetches; i++) {
    size_t r = 0;
    while (r < p->module.n_results && (p->module.result[r].kind != TP__HLO_OUTPUT ||
                                       strcmp(p->module.result[r].name, fetch[i].name) != 0))
      r++;
    if (r == p->module.n_results)
      return tp__fail(err, TP_ERR_INTERNAL, "the program has no output %s", fetch[i].name);
    p->fetch[r] = fetch[i].data;
  }
  return TP_OK;
}

/* ---- there ---- */

static tp_status send_input(tp__program *p, size_t a, int replica, tp__share share,
                            tp__device_buffer **buffer, tp_error *err)
{
  const tp__hlo_port *port = &p->module.argument[a];
  const void *data = p->feed[a];
  if (port->per_example) {
    size_t bytes = row_bytes(port);
    const char *from = (const char *)data + (size_t)share.first * bytes;
    data = from;
    if (share.count < p->rows) {
      memcpy(p->padded, from, (size_t)share.count * bytes);
      memset((char *)p->padded + (size_t)share.count * bytes, 0,
             (size_t)(p->rows - share.count) * bytes);
      data = p->padded;
    }
  }
  return tp__device_buffer_new(p->pjrt->client, replica, port->dtype, &port->shape, data, buffer,
                               err);
}

tp_status tp__pjrt_lend(const tp__program *p, size_t argument, int replica,
                        tp__device_buffer **buffer, tp_error *err)
{
  *buffer = p->state->entry[p->entry[argument]].buffer[replica];
  if (*buffer != NULL) return TP_OK;
  return tp__fail(err, TP_ERR_DEVICE, "%s was lost on the device in a step that failed",
                  p->module.argument[argument].name);
}

/* Parameters are lent from the state, the rest is made for this run. */
static tp_status send_arguments(tp__program *p, int64_t n, tp_error *err)
{
  const tp__hlo_module *m = &p->module;
  for (int d = 0; d < p->pjrt->own; d++) {
    tp__share share = tp__share_of(n, p->pjrt->own, d);
    int32_t valid = (int32_t)share.count;
    for (size_t a = 0; a < m->n_arguments; a++) {
      const tp__hlo_port *port = &m->argument[a];
      tp__device_buffer **at = &p->argument[(size_t)d * m->n_arguments + a];
      if (port->kind == TP__HLO_PARAM) {
        TP__TRY(tp__pjrt_lend(p, a, d, at, err));
      } else if (port->kind == TP__HLO_VALID) {
        TP__TRY(tp__device_buffer_new(p->pjrt->client, d, TP__I32, &port->shape, &valid, at, err));
      } else {
        tp_status status = send_input(p, a, d, share, at, err);
        if (status != TP_OK) return tp__at(err, status, "input %s", port->name);
      }
    }
  }
  return TP_OK;
}

/* The runtime holds what a run needs: inputs may be let go once it has begun. */
void tp__free_inputs(tp__program *p)
{
  const tp__hlo_module *m = &p->module;
  for (size_t i = 0; i < (size_t)p->pjrt->own * m->n_arguments; i++) {
    if (m->argument[i % m->n_arguments].kind != TP__HLO_PARAM)
      tp__device_buffer_free(p->argument[i]);
    p->argument[i] = NULL;
  }
}

/* ---- back ---- */

/* Assigned parameters: the new buffers take the place of those that the run has used up. */
void tp__take_assigned(tp__program *p)
{
  const tp__hlo_module *m = &p->module;
  for (int d = 0; d < p->pjrt->own; d++) {
    for (size_t r = 0; r < m->n_results; r++) {
      if (m->result[r].kind != TP__HLO_ASSIGNED) continue;
      size_t entry = p->entry[(size_t)m->result[r].param];
      tp__device_buffer **from = &p->result[(size_t)d * m->n_results + r];
      tp__device_buffer_free(p->state->entry[entry].buffer[d]);
      p->state->entry[entry].buffer[d] = *from;
      *from = NULL;
    }
  }
}

static tp_status start_read(tp__program *p, size_t r, int replica, tp__share share,
                            tp__pending *pending, tp_error *err)
{
  const tp__hlo_port *port = &p->module.result[r];
  tp__device_buffer *buffer = p->result[(size_t)replica * p->module.n_results + r];
  size_t whole = tp__shape_elements(&port->shape, 0) * tp__dtype_size(port->dtype);
  tp__arrival *a = &pending->arrival[pending->n_arrivals++];
  *a = (tp__arrival){.place = p->fetch[r], .bytes = whole};
  if (port->per_example) {
    size_t bytes = row_bytes(port);
    a->place = (char *)p->fetch[r] + (size_t)share.first * bytes;
    a->bytes = (size_t)share.count * bytes;
  }
  if (a->bytes < whole) {
    a->staging = tp__calloc(whole, 1, err);
    if (a->staging == NULL) return TP_ERR_INTERNAL;
  }
  return tp__device_buffer_read(buffer, a->staging != NULL ? a->staging : a->place, whole,
                                &a->event, err);
}

/* Values of whole batches are the same on all replicas: the first one's are read. */
static tp_status start_reads(tp__program *p, int64_t n, tp__pending *pending, tp_error *err)
{
  for (int d = 0; d < p->pjrt->own; d++) {
    tp__share share = tp__share_of(n, p->pjrt->own, d);
    for (size_t r = 0; r < p->module.n_results; r++) {
      bool wanted =
          p->fetch[r] != NULL && (p->module.result[r].per_example ? share.count > 0 : d == 0);
      if (wanted) TP__TRY(start_read(p, r, d, share, pending, err));
    }
  }
  return TP_OK;
}

static void pending_free(tp__pending *x)
{
  if (x == NULL) return;
  for (size_t i = 0; i < x->n_arrivals; i++) free(x->arrival[i].staging);
  for (size_t i = 0; i < x->n_fetched; i++) tp__device_buffer_free(x->fetched[i]);
  free(x->arrival);
  free(x->fetched);
  free(x->done);
  free(x);
}

static tp_status pending_new(tp__program *p, tp__pending **pending, tp_error *err)
{
  size_t replicas = (size_t)p->pjrt->own, all = replicas * p->module.n_results;
  tp__pending *x = tp__calloc(1, sizeof *x, err);
  if (x == NULL) return TP_ERR_INTERNAL;
  x->pjrt = p->pjrt;
  x->done = tp__calloc(replicas, sizeof(tp__event *), err);
  x->arrival = tp__calloc(all + 1, sizeof *x->arrival, err);
  x->fetched = tp__calloc(all + 1, sizeof(tp__device_buffer *), err);
  if (x->done == NULL || x->arrival == NULL || x->fetched == NULL) {
    pending_free(x);
    return TP_ERR_INTERNAL;
  }
  *pending = x;
  return TP_OK;
}

tp_status tp__pjrt_wait(tp__pending *x, tp_error *err)
{
  if (x == NULL) return TP_OK;
  if (x->call != NULL) return tp__steps_wait(x, err);
  tp_status status = TP_OK;
  tp_error late;
  for (size_t i = 0; i < x->n_arrivals + (size_t)x->pjrt->own; i++) {
    tp__arrival *a = i < x->n_arrivals ? &x->arrival[i] : NULL;
    tp_status s = tp__event_wait(a != NULL ? a->event : x->done[i - x->n_arrivals], &late);
    if (s != TP_OK && status == TP_OK) {
      status = s;
      if (err != NULL) *err = late;
    }
    if (s == TP_OK && a != NULL && a->staging != NULL) memcpy(a->place, a->staging, a->bytes);
  }
  tp__run_ended(x->pjrt);
  pending_free(x);
  return status;
}

/* ---- the run ---- */

void tp__run_began(tp__pjrt *pjrt)
{
  if (pjrt->in_flight++ == 0 && pjrt->idle_since > 0) pjrt->idle += tp__now() - pjrt->idle_since;
}

void tp__run_ended(tp__pjrt *pjrt)
{
  if (--pjrt->in_flight == 0) pjrt->idle_since = tp__now();
}

static void keep_results(tp__program *p, tp__pending *x)
{
  x->n_fetched = (size_t)p->pjrt->own * p->module.n_results;
  for (size_t i = 0; i < x->n_fetched; i++) {
    x->fetched[i] = p->result[i];
    p->result[i] = NULL;
  }
}

/* Whether a program has to come after what another one does to the state. Steps that wait are begun
 * for nothing less: of several processes some run a program that others don't need just now. */
static bool reads_from(const tp__program *p, const tp__program *other)
{
  const tp__hlo_module *m = &other->module;
  if (p == other) return false;
  for (size_t r = 0; r < m->n_results; r++) {
    if (m->result[r].kind != TP__HLO_ASSIGNED) continue;
    size_t entry = other->entry[(size_t)m->result[r].param];
    for (size_t a = 0; a < p->module.n_arguments; a++)
      if (p->module.argument[a].kind == TP__HLO_PARAM && p->entry[a] == entry) return true;
  }
  return false;
}

tp_status tp__pjrt_submit(tp__program *p, const tp__feed *feed, size_t n_feeds, tp__fetch *fetch,
                          size_t n_fetches, int64_t n, tp__pending **pending, tp_error *err)
{
  if (n < (p->joined ? 0 : 1) || n > p->batch)
    return tp__fail(err, TP_ERR_INTERNAL, "a run of %lld examples: the program takes 1 to %lld",
                    (long long)n, (long long)p->batch);
  TP__TRY(bind_feeds(p, feed, n_feeds, err));
  TP__TRY(bind_fetches(p, fetch, n_fetches, err));
  if (p->state->filling != NULL && reads_from(p, p->state->filling))
    TP__TRY(tp__steps_flush(p->state, err));
  if (p->steps > 1) return tp__steps_submit(p, n, pending, err);
  tp__pending *x = NULL;
  TP__TRY(pending_new(p, &x, err));
  tp_status status = send_arguments(p, n, err);
  if (status == TP_OK)
    status = tp__executable_run(p->executable, p->argument, p->module.n_arguments, p->result,
                                p->module.n_results, x->done, err);
  tp__free_inputs(p);
  if (status != TP_OK) {
    pending_free(x);
    return status;
  }
  tp__run_began(p->pjrt);
  tp__take_assigned(p);
  status = start_reads(p, n, x, err);
  keep_results(p, x);
  if (status != TP_OK) {
    tp_error ignored;
    (void)!tp__pjrt_wait(x, &ignored);
    return status;
  }
  *pending = x;
  return TP_OK;
}

tp_status tp__pjrt_run(tp__program *p, const tp__feed *feed, size_t n_feeds, tp__fetch *fetch,
                       size_t n_fetches, int64_t n, tp_error *err)
{
  tp__pending *pending = NULL;
  TP__TRY(tp__pjrt_submit(p, feed, n_feeds, fetch, n_fetches, n, &pending, err));
  return tp__pjrt_wait(pending, err);
}
