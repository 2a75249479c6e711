/* test_graph - what holds for every graph: names are unique, parameters are shared by name,
 * assignments fit, nodes are counted and limited, failures leave the graph as it was.
 * Multiply-adds: the definition of each operator by hand. */
#include "building.h"

static void names(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__graph *g = new_graph();
  tp__value v = 77, x = input(g, "x", "N,2"), p = param(g, "x", "3");
  tp__shape same = shape("3"), other = shape("4"), row = shape("N,2");
  assert_int_not_equal(x, p);
  assert_ok(tp__graph_param(g, "x", &same, &v, &err));
  assert_int_equal(v, p);
  assert_fails(tp__graph_param(g, "x", &other, &v, &err), TP_ERR_INTERNAL,
               "param x: wanted as (4,), it is already there as (3,)");
  assert_fails(tp__graph_param(g, "row", &row, &v, &err), TP_ERR_INTERNAL,
               "param row: a parameter can't have a row for each example");
  assert_fails(tp__graph_input(g, "x", TP__F32, &row, &v, &err), TP_ERR_INTERNAL,
               "input x is there twice");
  assert_fails(tp__graph_input(g, "y", (tp__dtype)99, &row, &v, &err), TP_ERR_INTERNAL,
               "input y: unknown type 99");
  output(g, "out", x);
  assert_fails(tp__graph_output(g, "out", p, &err), TP_ERR_INTERNAL, "output out is there twice");
  assert_fails(tp__graph_output(g, "new", 9, &err), TP_ERR_INTERNAL, "new: there is no value %9");
  assert_int_equal(v, p);
  assert_int_equal(g->count, 2);
  assert_int_equal(g->n_params, 1);
  assert_int_equal(g->n_outputs, 1);
  tp__graph_free(g);
  tp__graph_free(NULL);
}

/* The caller's strings may go: the graph has copies. */
static void names_are_copied(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  char name[] = "first", hint[] = "layer", out[] = "result";
  tp__value x = input(g, name, "N,2"), y = named(g, hint, NODE(g, SOFTMAX, (0), x));
  output(g, out, y);
  named(g, "ignored", x);
  named(g, NULL, y);
  name[0] = hint[0] = out[0] = '?';
  assert_string_equal(g->node[x].name, "first");
  assert_string_equal(g->node[y].name, "layer");
  assert_string_equal(g->output[0].name, "result");
  tp_error err = {0};
  assert_fails(tp__graph_hint(g, 9, "z", &err), TP_ERR_INTERNAL, "no value %9");
  tp__graph_free(g);
}

static void assignments(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__graph *g = new_graph();
  tp__value p = param(g, "p", "3"), q = param(g, "q", "3"), r = param(g, "r", "4");
  tp__value x = input(g, "x", "N,3"), i = typed_input(g, "i", TP__I32, "3");
  assert_fails(tp__graph_assign(g, x, p, &err), TP_ERR_INTERNAL, "%3 is input, not a parameter");
  assert_fails(tp__graph_assign(g, p, r, &err), TP_ERR_INTERNAL,
               "assignment of p: it is (3,), the value is f32 (4,)");
  assert_fails(tp__graph_assign(g, p, x, &err), TP_ERR_INTERNAL, "the value is f32 (None, 3)");
  assert_fails(tp__graph_assign(g, p, i, &err), TP_ERR_INTERNAL, "the value is i32 (3,)");
  assert_fails(tp__graph_assign(g, p, -1, &err), TP_ERR_INTERNAL, "no value %-1");
  assert_false(tp__graph_is_assigned(g, p));
  assign(g, p, q);
  assert_true(tp__graph_is_assigned(g, p));
  assert_false(tp__graph_is_assigned(g, q));
  assert_fails(tp__graph_assign(g, p, q, &err), TP_ERR_INTERNAL, "assignment of p is there twice");
  assert_int_equal(g->n_assignments, 1);
  tp__graph_free(g);
}

/* Trailing absent operands are left out, so that n_in tells what there is. */
static void absent_operands(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,2,2,3"), k = param(g, "k", "1,1,3,3");
  tp__value a = NODE(g, CONV, (.stride = 1), x, k, TP__NONE, TP__NONE);
  tp__value b = NODE(g, CONV, (.stride = 1), x, k, TP__NONE, x, TP__NONE);
  assert_int_equal(g->node[a].n_in, 2);
  assert_int_equal(g->node[b].n_in, 4);
  for (int i = 2; i < TP__OPERANDS_MAX; i++) assert_int_equal(g->node[a].in[i], TP__NONE);
  assert_int_equal(g->node[b].in[2], TP__NONE);
  assert_int_equal(g->node[b].in[3], x);
  tp__graph_free(g);
}

static void joint_operators(void **state)
{
  (void)state;
  static const tp__op joint[] = {TP__OP_WEIGHTED_SUM,          TP__OP_CONV_KERNEL_GRAD,
                                 TP__OP_DEPTHWISE_KERNEL_GRAD, TP__OP_SUM_TO_LAST,
                                 TP__OP_BATCH_NORM_GAMMA_GRAD, TP__OP_MATMUL_KERNEL_GRAD,
                                 TP__OP_BATCH_MOMENTS};
  size_t found = 0, count = sizeof joint / sizeof joint[0];
  for (int op = 0; op < TP__OP_COUNT; op++) found += tp__op_is_joint((tp__op)op);
  for (size_t i = 0; i < count; i++) assert_true(tp__op_is_joint(joint[i]));
  assert_int_equal(found, count);
  assert_false(tp__op_is_joint(TP__OP_COUNT));
}

static void flops(void **state)
{
  (void)state;
  tp__graph *g = new_graph();
  tp__value x = input(g, "x", "N,8,8,3"), k = param(g, "k", "3,3,3,5");
  tp__value d = param(g, "d", "3,3,3,1"), m = param(g, "m", "5,7");
  tp__value y = NODE(g, CONV, (.stride = 2, .pad = {0, 1, 0, 1}), x, k);
  tp__value z = NODE(g, DEPTHWISE, (.stride = 1), x, d);
  tp__value p = NODE(g, GLOBAL_POOL, (0), y), q = NODE(g, MATMUL, (0), p, m);
  const struct {
    tp__value v;
    double flops;
  } rows[] = {
      {x, 0},
      {y, 2.0 * 4 * 4 * 5 * 27},
      {z, 2.0 * 6 * 6 * 3 * 9},
      {p, 0},
      {q, 2.0 * 5 * 7},
      {NODE(g, CONV_INPUT_GRAD, (.stride = 2, .pad = {0, 1, 0, 1}, .shape = shape("N,8,8,3")), y,
            k),
       2.0 * 4 * 4 * 5 * 27},
      {NODE(g, CONV_KERNEL_GRAD, (.stride = 2, .pad = {0, 1, 0, 1}, .shape = shape("3,3,3,5")), x,
            y),
       2.0 * 4 * 4 * 5 * 27},
      {NODE(g, DEPTHWISE_INPUT_GRAD, (.stride = 1, .shape = shape("N,8,8,3")), z, d),
       2.0 * 6 * 6 * 3 * 9},
      {NODE(g, DEPTHWISE_KERNEL_GRAD, (.stride = 1, .shape = shape("3,3,3,1")), x, z),
       2.0 * 6 * 6 * 3 * 9},
      {NODE(g, MATMUL_INPUT_GRAD, (0), q, m), 2.0 * 5 * 7},
      {NODE(g, MATMUL_KERNEL_GRAD, (0), p, q), 2.0 * 5 * 7},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    assert_true(tp__node_flops(g, rows[i].v) == rows[i].flops);
  tp__graph_free(g);
}

/* A graph that grows without end stops at its limit with a message. */
static void too_many_nodes(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__graph *g = new_graph();
  tp__value v = TP__NONE;
  tp_status status = TP_OK;
  while (status == TP_OK && g->count <= TP__NODES_MAX)
    status = tp__graph_add(g, TP__OP_CONSTANT, NULL, 0, NULL, &v, &err);
  assert_fails(status, TP_ERR_INTERNAL,
               "constant: the graph has reached its limit of 1000000 nodes");
  assert_int_equal(g->count, TP__NODES_MAX);
  assert_int_equal(v, TP__NODES_MAX - 1);
  tp__graph_free(g);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names),           cmocka_unit_test(names_are_copied),
      cmocka_unit_test(assignments),     cmocka_unit_test(absent_operands),
      cmocka_unit_test(joint_operators), cmocka_unit_test(flops),
      cmocka_unit_test(too_many_nodes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
