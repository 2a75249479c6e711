/* hlo_steps - several steps in one call of a program; see stablehlo.h
 *
 *   @main of one step ──> @step      new @main: while (i < count) parameters, outputs[i] =
 * @step(...)
 *
 * Works on the text and the ports of a module alone: a step is a function of parameters and inputs.
 */
#include <stdlib.h>
#include <string.h>

#include "hlo.h"

static const char public_main[] = "func.func public @main(";

typedef struct writer {
  tp__buffer text;
  const tp__hlo_module *m; /* of one step */
  int steps;
  tp_status status;
  tp_error *err;
} writer;

static void put(writer *w, const char *format, ...) TP_PRINTF(2, 3);

static void put(writer *w, const char *format, ...)
{
  char line[512];
  va_list args;
  if (w->status != TP_OK) return;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  w->status = tp__buffer_add(&w->text, line, strlen(line), w->err);
}

/* "tensor<4x8x32x32x3xui8>": of all steps (lead: their number), of one with a dimension for it
 * (lead 1), or of one (lead 0). */
static const char *type_of(const tp__hlo_port *p, int lead, char text[160])
{
  static const char *const name[] = {
      [TP__F32] = "f32", [TP__I32] = "i32", [TP__U32] = "ui32", [TP__U8] = "ui8"};
  size_t n = (size_t)snprintf(text, 160, "tensor<");
  if (lead > 0) n += (size_t)snprintf(text + n, 160 - n, "%dx", lead);
  for (int i = 0; i < p->shape.rank; i++)
    n += (size_t)snprintf(text + n, 160 - n, "%lldx", (long long)p->shape.dim[i]);
  snprintf(text + n, 160 - n, "%s>", name[p->dtype]);
  return text;
}

static bool is_param(const tp__hlo_port *p)
{
  return p->kind == TP__HLO_PARAM;
}

/* The number of the result that takes the argument's memory, -1: none does. */
static int assigned_by(const tp__hlo_module *m, size_t argument)
{
  for (size_t r = 0; r < m->n_results; r++)
    if (m->result[r].kind == TP__HLO_ASSIGNED && m->result[r].param == (int)argument) return (int)r;
  return -1;
}

/* The step: the old text without its promise to take over memory, which only @main can make. */
static void put_step(writer *w)
{
  const char *from = (const char *)w->m->text.data, *end = from + w->m->text.size;
  const char *main_at = memmem(from, w->m->text.size, public_main, strlen(public_main));
  if (main_at == NULL) {
    w->status = tp__fail(w->err, TP_ERR_INTERNAL, "the module has no @main");
    return;
  }
  w->status = tp__buffer_add(&w->text, from, (size_t)(main_at - from), w->err);
  put(w, "func.func private @step(");
  from = main_at + strlen(public_main);
  while (end > from && end[-1] != '}')
    end--; /* the module's last brace goes behind the new @main */
  end--;
  static const char alias[] = " {tf.aliasing_output = ";
  while (w->status == TP_OK && from < end) {
    const char *at = memmem(from, (size_t)(end - from), alias, strlen(alias));
    const char *stop = at != NULL ? at : end;
    w->status = tp__buffer_add(&w->text, from, (size_t)(stop - from), w->err);
    from = at != NULL ? (const char *)memchr(at, '}', (size_t)(end - at)) + 1 : end;
  }
}

static void put_head(writer *w)
{
  char type[160];
  const tp__hlo_module *m = w->m;
  put(w, "  func.func public @main(");
  for (size_t a = 0; a < m->n_arguments; a++) {
    int r = assigned_by(m, a);
    put(w, "%%a%zu: %s", a,
        type_of(&m->argument[a], is_param(&m->argument[a]) ? 0 : w->steps, type));
    if (r >= 0) put(w, " {tf.aliasing_output = %d : i32}", r);
    put(w, ",\n      ");
  }
  put(w, "%%count: tensor<i32>)\n      -> (");
  for (size_t r = 0; r < m->n_results; r++)
    put(w, "%s%s", r > 0 ? ", " : "",
        type_of(&m->result[r], m->result[r].kind == TP__HLO_OUTPUT ? w->steps : 0, type));
  put(w, ") {\n    %%zero = stablehlo.constant dense<0> : tensor<i32>\n"
         "    %%one = stablehlo.constant dense<1> : tensor<i32>\n");
  for (size_t r = 0; r < m->n_results; r++)
    if (m->result[r].kind == TP__HLO_OUTPUT)
      put(w, "    %%none%zu = stablehlo.constant dense<0.0> : %s\n", r,
          type_of(&m->result[r], w->steps, type));
}

/* What the loop carries is its number and every result: outputs of all steps, parameters. */
static void put_carried_types(writer *w)
{
  char type[160];
  put(w, "tensor<i32>");
  for (size_t r = 0; r < w->m->n_results; r++)
    put(w, ", %s",
        type_of(&w->m->result[r], w->m->result[r].kind == TP__HLO_OUTPUT ? w->steps : 0, type));
}

static void put_zeros(writer *w, int count)
{
  for (int i = 0; i < count; i++) put(w, ", %%zero");
}

static void put_index_types(writer *w, int count)
{
  for (int i = 0; i < count; i++) put(w, ", tensor<i32>");
}

/* %sN: input N of step %i. */
static void put_input(writer *w, size_t a)
{
  const tp__hlo_port *p = &w->m->argument[a];
  char all[160], one[160], plain[160];
  type_of(p, w->steps, all);
  type_of(p, 1, one);
  put(w, "      %%c%zu = stablehlo.dynamic_slice %%a%zu, %%i", a, a);
  put_zeros(w, p->shape.rank);
  put(w, ", sizes = [1");
  for (int i = 0; i < p->shape.rank; i++) put(w, ", %lld", (long long)p->shape.dim[i]);
  put(w, "] : (%s", all);
  put_index_types(w, p->shape.rank + 1);
  put(w, ") -> %s\n      %%s%zu = stablehlo.reshape %%c%zu : (%s) -> %s\n", one, a, a, one,
      type_of(p, 0, plain));
}

static void put_call(writer *w)
{
  char type[160];
  const tp__hlo_module *m = w->m;
  put(w, m->n_results > 1 ? "      %%r:%zu = func.call @step(" : "      %%r = func.call @step(",
      m->n_results);
  for (size_t a = 0; a < m->n_arguments; a++) {
    int r = assigned_by(m, a);
    if (r >= 0)
      put(w, "%s%%p%d", a > 0 ? ", " : "", r);
    else
      put(w, "%s%%%c%zu", a > 0 ? ", " : "", is_param(&m->argument[a]) ? 'a' : 's', a);
  }
  put(w, ") : (");
  for (size_t a = 0; a < m->n_arguments; a++)
    put(w, "%s%s", a > 0 ? ", " : "", type_of(&m->argument[a], 0, type));
  put(w, ") -> (");
  for (size_t r = 0; r < m->n_results; r++)
    put(w, "%s%s", r > 0 ? ", " : "", type_of(&m->result[r], 0, type));
  put(w, ")\n");
}

static void put_result(writer *w, size_t r)
{
  if (w->m->n_results > 1)
    put(w, "%%r#%zu", r);
  else
    put(w, "%%r");
}

/* %uN: output N with this step's in its place. */
static void put_output(writer *w, size_t r)
{
  const tp__hlo_port *p = &w->m->result[r];
  char all[160], one[160], plain[160];
  type_of(p, w->steps, all);
  type_of(p, 1, one);
  put(w, "      %%e%zu = stablehlo.reshape ", r);
  put_result(w, r);
  put(w, " : (%s) -> %s\n      %%u%zu = stablehlo.dynamic_update_slice %%p%zu, %%e%zu, %%i",
      type_of(p, 0, plain), one, r, r, r);
  put_zeros(w, p->shape.rank);
  put(w, " : (%s, %s", all, one);
  put_index_types(w, p->shape.rank + 1);
  put(w, ") -> %s\n", all);
}

static void put_loop(writer *w)
{
  const tp__hlo_module *m = w->m;
  put(w, "    %%w:%zu = stablehlo.while(%%i = %%zero", m->n_results + 1);
  for (size_t r = 0; r < m->n_results; r++)
    if (m->result[r].kind == TP__HLO_OUTPUT)
      put(w, ", %%p%zu = %%none%zu", r, r);
    else
      put(w, ", %%p%zu = %%a%d", r, m->result[r].param);
  put(w, ") : ");
  put_carried_types(w);
  put(w, "\n    cond {\n      %%more = stablehlo.compare LT, %%i, %%count : (tensor<i32>, "
         "tensor<i32>) -> tensor<i1>\n      stablehlo.return %%more : tensor<i1>\n    } do {\n");
  for (size_t a = 0; a < m->n_arguments; a++)
    if (!is_param(&m->argument[a])) put_input(w, a);
  put_call(w);
  for (size_t r = 0; r < m->n_results; r++)
    if (m->result[r].kind == TP__HLO_OUTPUT) put_output(w, r);
  put(w, "      %%next = stablehlo.add %%i, %%one : tensor<i32>\n      stablehlo.return %%next");
  for (size_t r = 0; r < m->n_results; r++) {
    put(w, ", ");
    if (m->result[r].kind == TP__HLO_OUTPUT)
      put(w, "%%u%zu", r);
    else
      put_result(w, r);
  }
  put(w, " : ");
  put_carried_types(w);
  put(w, "\n    }\n");
}

static void put_end(writer *w)
{
  char type[160];
  put(w, "    return ");
  for (size_t r = 0; r < w->m->n_results; r++) put(w, "%s%%w#%zu", r > 0 ? ", " : "", r + 1);
  put(w, " : ");
  for (size_t r = 0; r < w->m->n_results; r++)
    put(w, "%s%s", r > 0 ? ", " : "",
        type_of(&w->m->result[r], w->m->result[r].kind == TP__HLO_OUTPUT ? w->steps : 0, type));
  put(w, "\n  }\n}\n");
}

static void lead(tp__hlo_port *p, int steps)
{
  for (int i = p->shape.rank++; i > 0; i--) p->shape.dim[i] = p->shape.dim[i - 1];
  p->shape.dim[0] = steps;
}

/* The ports of all steps, and one more argument, behind the others. */
static tp_status change_ports(tp__hlo_module *m, int steps, tp_error *err)
{
  tp__hlo_port *argument = tp__arena_alloc(&m->arena, (m->n_arguments + 1) * sizeof *argument);
  if (argument == NULL) return tp__no_memory(err, (m->n_arguments + 1) * sizeof *argument);
  memcpy(argument, m->argument, m->n_arguments * sizeof *argument);
  argument[m->n_arguments] =
      (tp__hlo_port){.kind = TP__HLO_COUNT, .name = "count", .dtype = TP__I32, .param = -1};
  m->argument = argument;
  for (size_t a = 0; a < m->n_arguments; a++)
    if (!is_param(&argument[a])) lead(&argument[a], steps);
  for (size_t r = 0; r < m->n_results; r++)
    if (m->result[r].kind == TP__HLO_OUTPUT) lead(&m->result[r], steps);
  m->n_arguments++;
  return TP_OK;
}

tp_status tp__hlo_repeat(tp__hlo_module *module, int steps, tp_error *err)
{
  writer w = {.m = module, .steps = steps, .err = err};
  for (size_t r = 0; r < module->n_results; r++)
    if (module->result[r].shape.rank >= TP__RANK_MAX)
      return tp__fail(err, TP_ERR_INTERNAL, "an output has too many dimensions for several steps");
  tp__buffer_init(&w.text, TP__HLO_TEXT_MAX);
  put_step(&w);
  put_head(&w);
  put_loop(&w);
  put_end(&w);
  if (w.status == TP_OK) w.status = change_ports(module, steps, err);
  if (w.status != TP_OK) {
    tp__buffer_free(&w.text);
    return w.status;
  }
  tp__buffer_free(&module->text);
  module->text = w.text;
  return TP_OK;
}
