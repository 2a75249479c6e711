/* The text of small modules, against files in golden/: what is written for whom is seen there at a
 * glance, and a change of the text is never an accident. After a wanted change TEPAL_WRITE_GOLDEN=1
 * writes the files anew. Also: the same graph gives the same text; what cannot be written is an
 * error that says why; names from model files stay inside their strings. */
#include "../small_nets.h"
#include "backend/pjrt/stablehlo.h"

/* A head on features: matrix product, loss, its gradient over two replicas, momentum. */
static void head(tp__graph *g)
{
  tp_error err = {0};
  tp__value features = input(g, "features", "N,6");
  tp__value kernel = param(g, "predictions/kernel", "6,3"), gradient = TP__NONE;
  tp__value labels = typed_input(g, "labels", TP__I32, "N"), weights = input(g, "weights", "N");
  tp__value logits = NODE(g, MATMUL, (0), features, kernel);
  tp__value losses = NODE(g, CROSS_ENTROPY, (.f = {0.1f}), logits, labels);
  tp__value loss = NODE(g, WEIGHTED_SUM, (0), losses, weights), rate = input(g, "rate", "");
  assert_ok(tp__graph_gradient(g, loss, &kernel, 1, &gradient, &err));
  tp__value velocity = param(g, "sgd/velocity/predictions/kernel", "6,3");
  tp__value moved = NODE(g, SGD_MOMENTUM, (.f = {0.9f}), velocity, gradient, rate);
  assign(g, velocity, moved);
  assign(g, kernel, NODE(g, SGD_PARAM, (0), kernel, moved));
  output(g, "losses", losses);
}

/* Pixels as bytes, convolutions in bfloat16, frozen statistics. */
static void inference(tp__graph *g)
{
  tp__value x = NODE(g, AFFINE, (.f = {1.0f / 255}), input(g, "pixels", "N,8,8,3"));
  x = conv(g, "stem", NODE(g, PAD, (.pad = {0, 1, 0, 1}), x), "3,3,3,4", 2, 0);
  x = activation(g, "", batch_norm(g, "stem_bn", x, "4"), TP__ACT_SWISH);
  x = NODE(g, GLOBAL_POOL, (0), depthwise(g, "dw", x, "3,3,4,1", 1, 1));
  output(g, "scores", NODE(g, SOFTMAX, (0), NODE(g, MATMUL, (0), x, param(g, "kernel", "4,2"))));
}

/* Pictures that arrive as bytes are mirrored as bytes. */
static void mirrored(tp__graph *g)
{
  tp__value x = input(g, "pixels", "N,6,4,1"), keys = typed_input(g, "keys", TP__U32, "N,2");
  x = NODE(g, RANDOM_FLIP, (0), x, keys);
  output(g, "y", NODE(g, AFFINE, (.f = {1.0f / 255}), x));
}

/* A batch norm by the statistics of the batch, and their moving averages. */
static void statistics(tp__graph *g)
{
  tp__value x = input(g, "x", "N,4,4,3");
  tp__value y = batch_norm_full(g, "bn", x, "3"), mean = param(g, "bn/moving_mean", "3");
  assign(g, mean, NODE(g, MOVING_AVERAGE, (.f = {0.99f}), mean, g->node[y].in[3]));
  output(g, "y", y);
}

static const struct golden {
  const char *name;
  void (*build)(tp__graph *g);
  tp__hlo_options options;
} modules[] = {
    {"head", head, {.rows = 4, .replicas = 2, .accumulate = 1}},
    {"head_in_parts", head, {.rows = 4, .replicas = 1, .accumulate = 2}},
    {"inference_bf16",
     inference,
     {.rows = 2, .replicas = 1, .accumulate = 1, .bf16 = true, .byte_input = "pixels"}},
    {"mirrored", mirrored, {.rows = 2, .replicas = 1, .accumulate = 1, .byte_input = "pixels"}},
    {"inference_shifts",
     inference,
     {.rows = 1, .replicas = 1, .accumulate = 1, .depthwise_shifts = true}},
    {"statistics_local",
     statistics,
     {.rows = 2, .replicas = 4, .accumulate = 1, .local_statistics = true}},
    {"statistics_of_all", statistics, {.rows = 2, .replicas = 4, .accumulate = 1}},
};
enum { MODULES = sizeof modules / sizeof modules[0] };

static void write_module(const struct golden *m, tp__hlo_module *module)
{
  tp_error err = {0};
  tp__graph *g = new_graph();
  m->build(g);
  assert_ok(tp__hlo_write(g, &m->options, module, &err));
  tp__graph_free(g);
}

static void show_difference(const char *name, const tp__buffer *made, const tp__buffer *wanted)
{
  size_t line = 1, start = 0, i = 0;
  for (; i < made->size && i < wanted->size && made->data[i] == wanted->data[i]; i++)
    if (made->data[i] == '\n') line++, start = i + 1;
  const char *at = (const char *)made->data + start;
  fail_msg("%s.mlir: line %zu is now \"%.*s\" (TEPAL_WRITE_GOLDEN=1 takes it over)", name, line,
           (int)strcspn(at, "\n"), at);
}

static void test_golden(void **state)
{
  (void)state;
  for (size_t i = 0; i < MODULES; i++) {
    tp_error err = {0};
    char path[1024];
    tp__hlo_module module = {0};
    tp__buffer wanted;
    write_module(&modules[i], &module);
    snprintf(path, sizeof path, TP_SOURCE_ROOT "/tests/backend/pjrt/golden/%s.mlir",
             modules[i].name);
    if (getenv("TEPAL_WRITE_GOLDEN") != NULL)
      assert_ok(tp__file_write(path, module.text.data, module.text.size, &err));
    tp__buffer_init(&wanted, 1 << 20);
    assert_ok(tp__file_read(path, &wanted, &err));
    if (wanted.size != module.text.size || memcmp(wanted.data, module.text.data, wanted.size) != 0)
      show_difference(modules[i].name, &module.text, &wanted);
    tp__buffer_free(&wanted);
    tp__hlo_free(&module);
  }
}

static void test_ports(void **state)
{
  (void)state;
  tp__hlo_module m = {0};
  write_module(&modules[0], &m);
  static const char *const argument[] = {"predictions/kernel",
                                         "sgd/velocity/predictions/kernel",
                                         "features",
                                         "labels",
                                         "weights",
                                         "rate",
                                         "valid"};
  assert_int_equal(m.n_arguments, sizeof argument / sizeof argument[0]);
  for (size_t i = 0; i < m.n_arguments; i++) assert_string_equal(m.argument[i].name, argument[i]);
  assert_true(m.argument[2].per_example && m.argument[2].shape.dim[0] == 4);
  assert_int_equal(m.argument[3].dtype, TP__I32);
  assert_int_equal(m.argument[6].kind, TP__HLO_VALID);
  assert_int_equal(m.n_results, 3);
  assert_true(m.result[0].kind == TP__HLO_OUTPUT && m.result[0].per_example);
  assert_string_equal(m.result[1].name, "sgd/velocity/predictions/kernel");
  assert_true(m.result[1].param == 1 && m.result[2].param == 0);
  tp__hlo_free(&m);
}

static void test_same_text(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__hlo_module m[2];
  memset(m, 0, sizeof m);
  const tp__hlo_options options = {.rows = 3, .replicas = 2, .accumulate = 1};
  for (int i = 0; i < 2; i++) {
    tp__graph *g = build_kind(&small_nets[0], &kinds[KINDS - 1]);
    assert_ok(tp__hlo_write(g, &options, &m[i], &err));
    tp__graph_free(g);
  }
  assert_int_equal(m[0].text.size, m[1].text.size);
  assert_memory_equal(m[0].text.data, m[1].text.data, m[0].text.size);
  for (int i = 0; i < 2; i++) tp__hlo_free(&m[i]);
}

/* Shears move bytes, where they can hold the fill: all that is read beyond an edge is of that type.
 */
static void test_turned_bytes(void **state)
{
  (void)state;
  tp_error err = {0};
  const float value[] = {12, 12.5f};
  const char *const type[] = {"xui8>, tensor<ui8>)", "xf32>, tensor<f32>)"};
  const tp__hlo_options options = {
      .rows = 2, .replicas = 1, .accumulate = 1, .byte_input = "pixels"};
  for (int i = 0; i < 2; i++) {
    tp__hlo_module m = {0};
    tp__graph *g = new_graph();
    tp__value x = input(g, "pixels", "N,6,4,3"), keys = typed_input(g, "keys", TP__U32, "N,2");
    output(g, "y",
           NODE(g, RANDOM_ROTATION, (.f = {0.1f, value[i]}, .fill = TP__FILL_CONSTANT), x, keys));
    assert_ok(tp__hlo_write(g, &options, &m, &err));
    assert_ok(tp__buffer_add(&m.text, "", 1, &err));
    int moves = 0;
    for (const char *at = (const char *)m.text.data; (at = strstr(at, "stablehlo.pad ")) != NULL;
         at++, moves++) {
      const char *found = strstr(at, type[i]);
      assert_true(found != NULL && found < strchr(at, '\n'));
    }
    assert_in_range(moves, 9, 60);
    tp__hlo_free(&m);
    tp__graph_free(g);
  }
}

static void test_refused(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__hlo_module module = {0};
  tp__graph *g = new_graph();
  head(g);
  static const tp__hlo_options wrong[] = {{.rows = 0, .replicas = 1, .accumulate = 1},
                                          {.rows = 4, .replicas = 0, .accumulate = 1},
                                          {.rows = 4, .replicas = 1, .accumulate = 0},
                                          {.rows = 4, .replicas = 1, .accumulate = 3}};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_fails(tp__hlo_write(g, &wrong[i], &module, &err), TP_ERR_INTERNAL, "equal parts");
  const tp__hlo_options bytes = {
      .rows = 4, .replicas = 1, .accumulate = 1, .byte_input = "nothing of that name"};
  assert_fails(tp__hlo_write(g, &bytes, &module, &err), TP_ERR_INTERNAL, "nothing of that name");
  tp__graph_free(g);
}

static void test_names_stay_in_strings(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__hlo_module module = {0};
  tp__graph *g = new_graph();
  tp__value x = named(g, "a\") }\n\\ b", NODE(g, AFFINE, (.f = {2}), input(g, "x", "N,2")));
  output(g, "y", x);
  const tp__hlo_options one = {.rows = 1, .replicas = 1, .accumulate = 1};
  assert_ok(tp__hlo_write(g, &one, &module, &err));
  assert_ok(tp__buffer_add(&module.text, "", 1, &err));
  assert_non_null(strstr((const char *)module.text.data, "loc(\"a_) }__ b\")"));
  tp__hlo_free(&module);
  tp__graph_free(g);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_golden),    cmocka_unit_test(test_ports),
      cmocka_unit_test(test_same_text), cmocka_unit_test(test_turned_bytes),
      cmocka_unit_test(test_refused),   cmocka_unit_test(test_names_stay_in_strings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
