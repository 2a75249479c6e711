/* hlo_steps - several steps in one call of a program; see stablehlo.h
 *
 *   @step, one step as always      @main: while (i < count) parameters, outputs[i] = @step(...)
 */
#include <stdlib.h>
#include <string.h>

#include "hlo.h"

/* @main as it is written; lists of values by argument or by result. */
typedef struct steps {
  tp__hlo_module *m;
  tp__hlo_value *argument;                   /* of @main; the last is the number of steps to do */
  tp__hlo_value *one;                        /* what one step is given */
  tp__hlo_value *start, *now, *next, *after; /* of the loop: its number, then the results */
} steps;

static void lead(tp__hlo_port *p, int count)
{
  for (int i = p->shape.rank++; i > 0; i--) p->shape.dim[i] = p->shape.dim[i - 1];
  p->shape.dim[0] = count;
}

/* From the ports of one step to those of all, and one more argument, behind the others. */
static tp_status change_ports(tp__hlo *w, tp__hlo_module *m)
{
  size_t count = m->n_arguments;
  tp__hlo_port *argument = tp__arena_alloc(&m->arena, (count + 1) * sizeof *argument);
  if (argument == NULL) return tp__no_memory(w->err, (count + 1) * sizeof *argument);
  memcpy(argument, m->argument, count * sizeof *argument);
  for (size_t a = 0; a < count; a++)
    if (argument[a].kind != TP__HLO_PARAM) lead(&argument[a], w->options->steps);
  for (size_t r = 0; r < m->n_results; r++)
    if (m->result[r].kind == TP__HLO_OUTPUT) lead(&m->result[r], w->options->steps);
  argument[count] =
      (tp__hlo_port){.kind = TP__HLO_COUNT, .name = "count", .dtype = TP__I32, .param = -1};
  m->argument = argument;
  m->n_arguments++;
  return TP_OK;
}

/* One step of what has a first dimension of them. */
static tp__shape step_shape(tp__hlo_value all)
{
  return tp__shape_make(all.shape.rank - 1, all.shape.dim + 1);
}

static void enter(tp__hlo *w, steps *s, tp__hlo_value zero)
{
  const tp__hlo_module *m = s->m;
  for (size_t a = 0; a + 1 < m->n_arguments; a++) {
    s->one[a] = s->argument[a];
    if (m->argument[a].kind == TP__HLO_PARAM) continue;
    tp__shape shape = step_shape(s->argument[a]);
    s->one[a] = tp__hlo_reshape(w, tp__hlo_part_of(w, s->argument[a], s->now[0], zero, 1), &shape);
  }
  for (size_t r = 0; r < m->n_results; r++)
    if (m->result[r].kind == TP__HLO_ASSIGNED) s->one[m->result[r].param] = s->now[r + 1];
}

static void call(tp__hlo *w, const steps *s, tp__hlo_value *made)
{
  const size_t n = s->m->n_arguments - 1;
  tp__hlo_several(w, made, s->m->n_results);
  tp__hlo_put(w, "func.call @step(");
  for (size_t a = 0; a < n; a++) {
    if (a > 0) tp__hlo_put(w, ", ");
    tp__hlo_put_value(w, s->one[a]);
  }
  tp__hlo_put_signature(w, s->one, n, made, s->m->n_results);
  tp__hlo_put(w, "\n");
}

static void leave(tp__hlo *w, steps *s, tp__hlo_value zero)
{
  for (size_t r = 1; r <= s->m->n_results; r++) {
    if (s->m->result[r - 1].kind != TP__HLO_OUTPUT) continue;
    tp__shape shape = s->now[r].shape;
    shape.dim[0] = 1;
    s->next[r] =
        tp__hlo_with_part(w, s->now[r], tp__hlo_reshape(w, s->next[r], &shape), s->now[0], zero);
  }
  s->next[0] = tp__hlo_add(w, s->now[0], tp__hlo_like(w, s->now[0], 1));
}

static void write_main(tp__hlo *w, steps *s)
{
  tp__hlo_module *m = s->m;
  const size_t carried = m->n_results + 1;
  tp__hlo_put_function(w, m, "public @main", s->argument);
  tp__hlo_value zero = tp__hlo_constant(w, TP__HLO_I32, &(tp__shape){0}, 0);
  s->start[0] = zero;
  for (size_t r = 0; r < m->n_results; r++)
    s->start[r + 1] = m->result[r].kind == TP__HLO_OUTPUT
                          ? tp__hlo_constant(w, TP__HLO_F32, &m->result[r].shape, 0)
                          : s->argument[m->result[r].param];
  tp__hlo_while(w, s->start, carried, s->now, s->after);
  tp__hlo_while_do(w, tp__hlo_compare(w, "LT", s->now[0], s->argument[m->n_arguments - 1]));
  enter(w, s, zero);
  for (size_t r = 1; r < carried; r++) {
    s->next[r] = s->now[r];
    if (m->result[r - 1].kind == TP__HLO_OUTPUT) s->next[r].shape = step_shape(s->now[r]);
  }
  call(w, s, s->next + 1);
  leave(w, s, zero);
  tp__hlo_while_end(w, s->next, carried);
  tp__hlo_put_end(w, s->after + 1, m->n_results);
}

tp_status tp__hlo_steps(tp__hlo *w, tp__hlo_module *m)
{
  for (size_t r = 0; r < m->n_results; r++)
    if (m->result[r].shape.rank >= TP__RANK_MAX)
      return tp__fail(w->err, TP_ERR_INTERNAL,
                      "an output has too many dimensions for several steps");
  TP__TRY(change_ports(w, m));
  const size_t carried = m->n_results + 1, lists = 2 * m->n_arguments + 4 * carried;
  tp__hlo_value *list = tp__calloc(lists, sizeof *list, w->err);
  if (list == NULL) return TP_ERR_INTERNAL;
  steps s = {.m = m, .argument = list, .one = list + m->n_arguments};
  s.start = s.one + m->n_arguments;
  s.now = s.start + carried;
  s.next = s.now + carried;
  s.after = s.next + carried;
  write_main(w, &s);
  free(list);
  return w->status;
}
