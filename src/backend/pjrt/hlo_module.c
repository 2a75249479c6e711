/* hlo_module - the frame of a module: arguments, results, the order of everything between; see
 * hlo.h
 *
 * Order: first all that leads to examples' values and sums over examples, in the graph's order;
 * then the sums are joined over the replicas; then what follows from them (updates, averages).
 */
#include <stdlib.h>
#include <string.h>

#include "graph/rewrite.h"
#include "hlo.h"

void tp__hlo_fail(tp__hlo *w, const char *format, ...)
{
  char text[256];
  va_list args;
  if (w->status != TP_OK) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  w->status = tp__fail(w->err, TP_ERR_INTERNAL, "%s%s%s", w->where != NULL ? w->where : "",
                       w->where != NULL ? ": " : "", text);
}

/* ---- operands ---- */

bool tp__hlo_has(const tp__node *n, int i)
{
  return i < n->n_in && n->in[i] != TP__NONE;
}

tp__hlo_value tp__hlo_operand(tp__hlo *w, const tp__node *n, int i)
{
  tp__value v = n->in[i];
  tp__hlo_slot *s = &w->slot[v];
  if (tp__per_example(&w->g->node[v])) return s->own;
  if (w->own && s->varies) return s->own;
  if (s->pending) tp__hlo_join(w);
  return s->all;
}

tp__hlo_value tp__hlo_float(tp__hlo *w, const tp__node *n, int i)
{
  return tp__hlo_convert(w, tp__hlo_operand(w, n, i), TP__HLO_F32);
}

tp__hlo_value tp__hlo_factor(tp__hlo *w, const tp__node *n, int i)
{
  return tp__hlo_convert(w, tp__hlo_operand(w, n, i),
                         w->options->bf16 ? TP__HLO_BF16 : TP__HLO_F32);
}

bool tp__hlo_zero_operand(const tp__hlo *w, const tp__node *n, int i)
{
  return tp__per_example(&w->g->node[n->in[i]]) && w->slot[n->in[i]].zero;
}

tp__shape tp__hlo_shape_of(const tp__hlo *w, const tp__shape *shape)
{
  tp__shape s = *shape;
  if (s.rank > 0 && s.dim[0] == TP__N) s.dim[0] = w->rows;
  return s;
}

tp__hlo_value tp__hlo_masked(tp__hlo *w, tp__hlo_value x, bool zero)
{
  if (zero) return x;
  if (!tp__hlo_is(w->mask)) {
    tp__shape rows = tp__shape_make(1, &w->rows);
    tp__hlo_value row = tp__hlo_iota(w, TP__HLO_I32, &rows, 0);
    w->mask = tp__hlo_compare(w, "LT", row, tp__hlo_spread(w, w->valid, row));
  }
  tp__hlo_value mask = tp__hlo_per_row(w, w->mask, x);
  return tp__hlo_select(w, mask, x, tp__hlo_like(w, x, 0));
}

/* ---- nodes ---- */

/* bfloat16 is what travels: maps of pixels, from the first layer on. Vectors of examples are small,
 * and their sums and exponentials want float32; pixels are scaled before they are rounded. */
static tp__hlo_value settled(tp__hlo *w, const tp__node *n, tp__hlo_value v)
{
  bool map = v.shape.rank == 4 && v.shape.dim[1] * v.shape.dim[2] > 1;
  bool scaling = n->op == TP__OP_AFFINE || n->op == TP__OP_NORMALIZE || n->op == TP__OP_REVERSE ||
                 n->op == TP__OP_RANDOM_FLIP || n->op == TP__OP_RANDOM_ROTATION;
  if (!w->options->bf16 || !map || scaling || v.type != TP__HLO_F32) return v;
  return tp__hlo_convert(w, v, TP__HLO_BF16);
}

/* Of nodes without a name the first parameter tells the layer. */
static void enter(tp__hlo *w, const tp__node *n)
{
  w->where = n->name != NULL ? n->name : tp__op_name(n->op);
  for (int i = n->n_in - 1; i >= 0 && n->name == NULL; i--)
    if (tp__hlo_has(n, i) && w->g->node[n->in[i]].op == TP__OP_PARAM)
      w->where = w->g->node[n->in[i]].name;
  w->zero = false;
}

static tp__hlo_value write_one(tp__hlo *w, const tp__node *n, bool own)
{
  tp__hlo_fn emitter = tp__hlo_emitter(n->op);
  tp__hlo_value v = tp__hlo_absent();
  enter(w, n);
  w->own = own;
  if (emitter == NULL)
    tp__hlo_fail(w, "operator %s has no form in StableHLO", tp__op_name(n->op));
  else if (w->status == TP_OK)
    v = emitter(w, n);
  if (w->status != TP_OK) return v;
  tp__shape wanted = tp__hlo_shape_of(w, &n->shape);
  if (!tp__shape_equal(&v.shape, &wanted)) {
    char a[96], b[96];
    tp__hlo_fail(w, "operator %s became %s instead of %s", tp__op_name(n->op),
                 tp__shape_text(&v.shape, a), tp__shape_text(&wanted, b));
  }
  return v;
}

static bool is_source(const tp__node *n)
{
  return n->op == TP__OP_INPUT || n->op == TP__OP_PARAM || n->op == TP__OP_CONSTANT;
}

static void write_source(tp__hlo *w, tp__value v)
{
  const tp__node *n = &w->g->node[v];
  tp__hlo_slot *s = &w->slot[v];
  if (tp__hlo_is(s->own) || tp__hlo_is(s->all)) return; /* a part of the rows, already made */
  enter(w, n);
  tp__hlo_value x = n->op == TP__OP_CONSTANT
                        ? tp__hlo_constant(w, TP__HLO_F32, NULL, (double)n->attr.f[0])
                        : w->argument[v];
  *(tp__per_example(n) ? &s->own : &s->all) = x;
}

/* What examples' values and sums over them are made of, and they themselves. */
void tp__hlo_write_node(tp__hlo *w, tp__value v)
{
  const tp__node *n = &w->g->node[v];
  tp__hlo_slot *s = &w->slot[v];
  const bool local = w->options->local_statistics && w->options->replicas > 1;
  if (is_source(n)) {
    write_source(w, v);
  } else if (tp__per_example(n)) {
    s->own = write_one(w, n, local);
    s->zero = w->zero;
    s->own = settled(w, n, s->own);
  } else if (tp__op_is_joint(n->op)) {
    s->own = write_one(w, n, local);
    s->pending = s->need_all;
  } else {
    if (s->need_own && s->early_own) s->own = write_one(w, n, true);
    if (s->need_all && (s->early_all || !s->varies)) s->all = write_one(w, n, false);
  }
}

static void write_late(tp__hlo *w, tp__value v)
{
  const tp__node *n = &w->g->node[v];
  tp__hlo_slot *s = &w->slot[v];
  if (tp__per_example(n) || tp__op_is_joint(n->op) || !s->varies) return;
  if (s->need_all && !s->early_all) s->all = write_one(w, n, false);
}

static void write_nodes(tp__hlo *w)
{
  if (w->options->accumulate > 1)
    tp__hlo_loop(w);
  else
    for (tp__value v = 0; v < w->g->count; v++) tp__hlo_write_node(w, v);
  tp__hlo_join(w);
  for (tp__value v = 0; v < w->g->count; v++) write_late(w, v);
}

/* ---- arguments and results ---- */

static tp_status add_port(tp__hlo_module *m, tp__hlo_port *port, tp__hlo_kind kind,
                          const char *name, tp__dtype dtype, const tp__shape *shape, int64_t rows,
                          tp_error *err)
{
  *port = (tp__hlo_port){.kind = kind, .dtype = dtype, .shape = *shape, .param = -1};
  port->name = tp__arena_strdup(&m->arena, name);
  port->per_example = shape->rank > 0 && shape->dim[0] == TP__N;
  if (port->per_example) port->shape.dim[0] = rows;
  return port->name != NULL ? TP_OK : tp__no_memory(err, strlen(name));
}

static tp_status add_argument(tp__hlo *w, tp__hlo_module *m, tp__value v, tp__hlo_kind kind)
{
  const tp__node *n = &w->g->node[v];
  const char *bytes = w->options->byte_input;
  tp__dtype dtype = n->dtype;
  if (kind == TP__HLO_INPUT && bytes != NULL && strcmp(bytes, n->name) == 0) dtype = TP__U8;
  tp__hlo_port *port = &m->argument[m->n_arguments];
  TP__TRY(add_port(m, port, kind, n->name, dtype, &n->shape, w->options->rows, w->err));
  w->argument[v] = tp__hlo_typed(tp__hlo_type_of(dtype), &port->shape);
  w->argument[v].id = (int32_t)m->n_arguments++;
  return TP_OK;
}

static tp_status add_arguments(tp__hlo *w, tp__hlo_module *m)
{
  const tp__graph *g = w->g;
  const tp__shape scalar = {0};
  m->argument = tp__arena_alloc(&m->arena, ((size_t)g->count + 1) * sizeof *m->argument);
  if (m->argument == NULL) return tp__no_memory(w->err, (size_t)g->count * sizeof *m->argument);
  for (size_t i = 0; i < g->n_params; i++) TP__TRY(add_argument(w, m, g->param[i], TP__HLO_PARAM));
  for (tp__value v = 0; v < g->count; v++)
    if (g->node[v].op == TP__OP_INPUT) TP__TRY(add_argument(w, m, v, TP__HLO_INPUT));
  TP__TRY(add_port(m, &m->argument[m->n_arguments], TP__HLO_VALID, "valid", TP__I32, &scalar, 0,
                   w->err));
  w->valid = tp__hlo_typed(TP__HLO_I32, &scalar);
  w->valid.id = (int32_t)m->n_arguments++;
  w->next = (int32_t)m->n_arguments;
  return TP_OK;
}

static tp_status add_results(tp__hlo *w, tp__hlo_module *m)
{
  const tp__graph *g = w->g;
  size_t count = g->n_outputs + g->n_assignments;
  m->result = tp__arena_alloc(&m->arena, (count + 1) * sizeof *m->result);
  if (m->result == NULL) return tp__no_memory(w->err, count * sizeof *m->result);
  for (size_t i = 0; i < g->n_outputs; i++)
    TP__TRY(add_port(m, &m->result[m->n_results++], TP__HLO_OUTPUT, g->output[i].name, TP__F32,
                     &g->node[g->output[i].value].shape, w->options->rows, w->err));
  for (size_t i = 0; i < g->n_assignments; i++) {
    tp__hlo_port *port = &m->result[m->n_results++];
    const tp__node *param = &g->node[g->assignment[i].param];
    TP__TRY(add_port(m, port, TP__HLO_ASSIGNED, param->name, TP__F32, &param->shape, 0, w->err));
    port->param = w->argument[g->assignment[i].param].id;
  }
  return TP_OK;
}

static tp__hlo_value typed_port(const tp__hlo_port *port)
{
  return tp__hlo_typed(tp__hlo_type_of(port->dtype), &port->shape);
}

static void put_type_list(tp__hlo *w, const tp__hlo_value *value, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    if (i > 0) tp__hlo_put(w, ", ");
    tp__hlo_put_type(w, value[i]);
  }
}

void tp__hlo_put_signature(tp__hlo *w, const tp__hlo_value *in, size_t n_in,
                           const tp__hlo_value *out, size_t n_out)
{
  tp__hlo_put(w, ") : (");
  put_type_list(w, in, n_in);
  tp__hlo_put(w, ") -> (");
  put_type_list(w, out, n_out);
  tp__hlo_put(w, ")");
}

void tp__hlo_put_function(tp__hlo *w, const tp__hlo_module *m, const char *name,
                          tp__hlo_value *argument)
{
  const bool takes_memory = strcmp(name, "public @main") == 0;
  tp__hlo_put(w, "  func.func %s(", name);
  for (size_t i = 0; i < m->n_arguments; i++) {
    tp__hlo_value v = typed_port(&m->argument[i]);
    v.id = (int32_t)i;
    if (argument != NULL) argument[i] = v;
    tp__hlo_put(w, i > 0 ? ",\n      %%%zu: " : "%%%zu: ", i);
    tp__hlo_put_type(w, v);
    for (size_t r = 0; takes_memory && r < m->n_results; r++)
      if (m->result[r].param == (int)i) tp__hlo_put(w, " {tf.aliasing_output = %zu : i32}", r);
  }
  w->next = (int32_t)m->n_arguments;
  tp__hlo_put(w, ")\n      -> (");
  for (size_t r = 0; r < m->n_results; r++) {
    if (r > 0) tp__hlo_put(w, ", ");
    tp__hlo_put_type(w, typed_port(&m->result[r]));
  }
  tp__hlo_put(w, ") {\n");
}

void tp__hlo_put_end(tp__hlo *w, const tp__hlo_value *result, size_t count)
{
  tp__hlo_return(w, "return", result, count);
  tp__hlo_put(w, "  }\n");
}

static tp__hlo_value result_of(tp__hlo *w, size_t r)
{
  const tp__graph *g = w->g;
  tp__value v = r < g->n_outputs ? g->output[r].value : g->assignment[r - g->n_outputs].value;
  const tp__hlo_slot *s = &w->slot[v];
  return tp__hlo_convert(w, tp__per_example(&g->node[v]) ? s->own : s->all, TP__HLO_F32);
}

static void put_results(tp__hlo *w, const tp__hlo_module *m)
{
  tp__hlo_value *result = tp__calloc(m->n_results, sizeof *result, w->err);
  if (result == NULL) {
    if (w->status == TP_OK) w->status = TP_ERR_INTERNAL;
    return;
  }
  w->where = "results";
  for (size_t r = 0; r < m->n_results; r++) result[r] = result_of(w, r);
  tp__hlo_put_end(w, result, m->n_results);
  free(result);
}

/* ---- the whole ---- */

bool tp__hlo_divides(const tp__graph *graph)
{
  for (tp__value v = 0; v < graph->count; v++)
    if (graph->node[v].op == TP__OP_BATCH_MOMENTS) return false;
  return true;
}

static tp_status check(const tp__graph *graph, const tp__hlo_options *o, tp_error *err)
{
  if (o->rows < 1 || o->replicas < 1 || o->accumulate < 1 || o->rows % o->accumulate != 0)
    return tp__fail(err, TP_ERR_INTERNAL,
                    "%lld rows for %d replicas in %d parts: wanted at least 1 of each, and equal "
                    "parts",
                    (long long)o->rows, o->replicas, o->accumulate);
  if (o->accumulate > 1 && !tp__hlo_divides(graph))
    return tp__fail(err, TP_ERR_USAGE,
                    "accumulate: the statistics of a batch don't follow from those of its %d "
                    "parts; take accumulate = 1 or auto, or batch_norm = frozen",
                    o->accumulate);
  for (tp__value v = 0; o->byte_input != NULL && v < graph->count; v++) {
    const tp__node *n = &graph->node[v];
    if (n->op == TP__OP_INPUT && n->dtype == TP__F32 && strcmp(n->name, o->byte_input) == 0)
      return TP_OK;
  }
  if (o->byte_input == NULL) return TP_OK;
  return tp__fail(err, TP_ERR_INTERNAL, "there is no f32 input %s to arrive as bytes",
                  o->byte_input);
}

static tp_status write_graph(tp__hlo *w, tp__hlo_module *m)
{
  size_t count = (size_t)w->g->count;
  w->slot = tp__calloc(count, sizeof *w->slot, w->err);
  w->argument = tp__calloc(count, sizeof *w->argument, w->err);
  if (w->slot == NULL || w->argument == NULL) return TP_ERR_INTERNAL;
  for (size_t v = 0; v < count; v++) w->slot[v].own = w->slot[v].all = tp__hlo_absent();
  TP__TRY(add_arguments(w, m));
  TP__TRY(add_results(w, m));
  TP__TRY(tp__hlo_mark(w));
  const bool several = w->options->steps > 1;
  tp__hlo_put(w,
              "module @tepal attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = %d : "
              "i32} {\n",
              w->options->replicas);
  tp__hlo_put_function(w, m, several ? "private @step" : "public @main", NULL);
  write_nodes(w);
  put_results(w, m);
  if (several && w->status == TP_OK) w->status = tp__hlo_steps(w, m);
  tp__hlo_put(w, "}\n");
  return w->status;
}

/* Dead operators go, zeros around pictures join the convolutions that read them. */
static tp_status simplify(const tp__graph *graph, tp__graph **simple, tp_error *err)
{
  tp__graph *padded = NULL;
  TP__TRY(tp__rewrite_run(graph, tp__pass_pad, &padded, err));
  tp_status status = tp__rewrite_run(padded, NULL, simple, err);
  tp__graph_free(padded);
  return status;
}

tp_status tp__hlo_write(const tp__graph *graph, const tp__hlo_options *options,
                        tp__hlo_module *module, tp_error *err)
{
  tp__graph *simple = NULL;
  TP__TRY(check(graph, options, err));
  TP__TRY(simplify(graph, &simple, err));
  tp__buffer_init(&module->text, TP__HLO_TEXT_MAX);
  tp__hlo w = {.g = simple,
               .options = options,
               .text = &module->text,
               .err = err,
               .rows = options->rows,
               .valid = tp__hlo_absent(),
               .mask = tp__hlo_absent(),
               .total = tp__hlo_absent()};
  tp_status status = write_graph(&w, module);
  free(w.slot);
  free(w.argument);
  tp__graph_free(simple);
  if (status == TP_OK) return TP_OK;
  tp__hlo_free(module);
  return tp__at(err, status, "StableHLO");
}

void tp__hlo_free(tp__hlo_module *module)
{
  tp__buffer_free(&module->text);
  tp__arena_free(&module->arena);
  *module = (tp__hlo_module){0};
}
