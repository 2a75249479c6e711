/* building - graphs in few words, for the tests of this room: shapes as text, nodes that must be
 * sound. */
#ifndef TP_BUILDING_H
#define TP_BUILDING_H

#include "testing.h"

#include "graph/graph.h"

/* "N,12,12,80" -> (None, 12, 12, 80); "" -> (). */
static inline tp__shape shape(const char *text)
{
  tp__shape s = {.rank = 0};
  while (*text != '\0' && *text != ' ') {
    char *end = NULL;
    s.dim[s.rank++] = *text == 'N' ? TP__N : strtoll(text, &end, 10);
    text = *text == 'N' ? text + 1 : end;
    if (*text == ',') text++;
  }
  return s;
}

static inline tp__graph *new_graph(void)
{
  tp_error err = {0};
  tp__graph *g = NULL;
  assert_ok(tp__graph_new(&g, &err));
  return g;
}

static inline tp__value typed_input(tp__graph *g, const char *name, tp__dtype dtype,
                                    const char *dims)
{
  tp_error err = {0};
  tp__value v = TP__NONE;
  tp__shape s = shape(dims);
  assert_ok(tp__graph_input(g, name, dtype, &s, &v, &err));
  return v;
}

static inline tp__value input(tp__graph *g, const char *name, const char *dims)
{
  return typed_input(g, name, TP__F32, dims);
}

static inline tp__value param(tp__graph *g, const char *name, const char *dims)
{
  tp_error err = {0};
  tp__value v = TP__NONE;
  tp__shape s = shape(dims);
  assert_ok(tp__graph_param(g, name, &s, &v, &err));
  return v;
}

static inline tp__value add(tp__graph *g, tp__op op, const tp__attr *attr, int n,
                            const tp__value *in)
{
  tp_error err = {0};
  tp__value v = TP__NONE;
  assert_ok(tp__graph_add(g, op, in, n, attr, &v, &err));
  return v;
}

/* NODE(g, CONV, (.stride = 1), x, kernel) */
#define ATTR_(...) __VA_ARGS__
#define NODE(g, op, attr, ...)                                                                     \
  add((g), TP__OP_##op, &(tp__attr){ATTR_ attr},                                                   \
      (int)(sizeof((tp__value[]){__VA_ARGS__}) / sizeof(tp__value)), (tp__value[]){__VA_ARGS__})

static inline tp__value named(tp__graph *g, const char *name, tp__value v)
{
  tp_error err = {0};
  assert_ok(tp__graph_hint(g, v, name, &err));
  return v;
}

static inline void output(tp__graph *g, const char *name, tp__value v)
{
  tp_error err = {0};
  assert_ok(tp__graph_output(g, name, v, &err));
}

static inline void assign(tp__graph *g, tp__value p, tp__value v)
{
  tp_error err = {0};
  assert_ok(tp__graph_assign(g, p, v, &err));
}

/* The layers of networks, with parameters named after them. */
static inline tp__value conv(tp__graph *g, const char *name, tp__value x, const char *kernel,
                             int stride, int pad)
{
  char text[64];
  snprintf(text, sizeof text, "%s/kernel", name);
  return named(
      g, name,
      NODE(g, CONV, (.stride = stride, .pad = {pad, pad, pad, pad}), x, param(g, text, kernel)));
}

static inline tp__value depthwise(tp__graph *g, const char *name, tp__value x, const char *kernel,
                                  int stride, int pad)
{
  char text[64];
  snprintf(text, sizeof text, "%s/kernel", name);
  return named(g, name,
               NODE(g, DEPTHWISE, (.stride = stride, .pad = {pad, pad, pad, pad}), x,
                    param(g, text, kernel)));
}

static inline tp__value bias_add(tp__graph *g, const char *name, tp__value x, const char *channels)
{
  char text[64];
  snprintf(text, sizeof text, "%s/bias", name);
  return named(g, name, NODE(g, BIAS_ADD, (0), x, param(g, text, channels)));
}

static inline tp__value batch_norm(tp__graph *g, const char *name, tp__value x,
                                   const char *channels)
{
  static const char *const variable[] = {"gamma", "beta", "moving_mean", "moving_variance"};
  tp__value in[5] = {x};
  for (int i = 0; i < 4; i++) {
    char text[64];
    snprintf(text, sizeof text, "%s/%s", name, variable[i]);
    in[i + 1] = param(g, text, channels);
  }
  return named(g, name, add(g, TP__OP_BATCH_NORM, &(tp__attr){.f = {0.001f}}, 5, in));
}

/* By the statistics of the batch. */
static inline tp__value batch_norm_full(tp__graph *g, const char *name, tp__value x,
                                        const char *channels)
{
  char gamma[64], beta[64];
  snprintf(gamma, sizeof gamma, "%s/gamma", name);
  snprintf(beta, sizeof beta, "%s/beta", name);
  tp__value moments = NODE(g, BATCH_MOMENTS, (0), x);
  tp__value mean = NODE(g, ROW, (0), moments), variance = NODE(g, ROW, (.row = 1), moments);
  return named(g, name,
               NODE(g, BATCH_NORM, (.f = {0.001f}), x, param(g, gamma, channels),
                    param(g, beta, channels), mean, variance));
}

static inline tp__value activation(tp__graph *g, const char *name, tp__value x, tp__act act)
{
  return named(g, name, NODE(g, ACTIVATION, (.act = act), x));
}

/* How many nodes of an operator there are. */
static inline int count_op(const tp__graph *g, tp__op op)
{
  int count = 0;
  for (tp__value v = 0; v < g->count; v++) count += g->node[v].op == op;
  return count;
}

/* Fails, showing both, unless the graph prints as that text. */
static inline void expect_text(const tp__graph *g, const char *expected)
{
  tp_error err = {0};
  tp__buffer text;
  tp__buffer_init(&text, 1 << 20);
  assert_ok(tp__graph_print(g, &text, &err));
  const char *printed = text.size > 0 ? (const char *)text.data : "";
  if (strcmp(printed, expected) != 0) {
    fprintf(stderr, "graph is\n%sbut expected was\n%s", printed, expected);
    fail();
  }
  tp__buffer_free(&text);
}

#endif
