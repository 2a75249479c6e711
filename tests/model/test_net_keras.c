/* test_net_keras - the networks have Keras' layers: names, classes, shapes, parameters,
 * connections, in Keras' order, which is what "the last 20 layers" counts by.
 *
 * Expected: keras_layers.txt.gz, written by Keras 3.15.1 through tests/ref/keras_layers.py: each
 * network at the size it was made for with a head of 1000 classes, some without at odd sizes, and
 * EfficientNets of other widths and depths and with the preprocessing of official weights.
 */
#include "fixture.h"
#include "model/net.h"

enum { SECTIONS = 22 };

/* One layer in the form of the fixture's lines. */
static void layer_line(const tp__net *net, const tp__layer *layer, char *text, size_t size)
{
  const tp__shape *shape = &net->graph->node[layer->value].shape;
  int64_t parameters = 0;
  for (int i = 0; i < layer->n_parameters; i++)
    parameters += (int64_t)tp__shape_elements(&net->parameter[layer->first_parameter + i].shape, 0);
  int n = snprintf(text, size, "%s %s N", layer->name, layer->class_name);
  for (int i = 1; i < shape->rank; i++)
    n += snprintf(text + n, size - (size_t)n, ",%lld", (long long)shape->dim[i]);
  n += snprintf(text + n, size - (size_t)n, " %lld ", (long long)parameters);
  if (layer->inbound[0] < 0) n += snprintf(text + n, size - (size_t)n, "-");
  for (int i = 0; i < 2 && layer->inbound[i] >= 0; i++)
    n += snprintf(text + n, size - (size_t)n, "%s%s", i > 0 ? "," : "",
                  net->layer[layer->inbound[i]].name);
}

static tp__net *build_section(const char *line)
{
  tp_error err = {0};
  tp__net *net = NULL;
  char name[64];
  int official;
  tp__model_spec spec = {.name = name};
  assert_int_equal(sscanf(line, "model %63s %d %d %d %f %f %f %d", name, &spec.height, &spec.width,
                          &spec.classes, &spec.dropout, &spec.width_coefficient,
                          &spec.depth_coefficient, &official),
                   8);
  spec.official_preprocessing = official != 0;
  if (spec.width_coefficient == 0) {
    assert_float_equal(spec.dropout, tp__model_dropout(name), 0);
    if (spec.classes == 1000) assert_int_equal(spec.height, tp__model_side(name));
  }
  assert_ok(tp__net_build(&spec, false, &net, &err));
  return net;
}

static void layers_are_keras(void **state)
{
  (void)state;
  char *text = read_fixture("keras_layers.txt.gz"), *rest = NULL;
  tp__net *net = NULL;
  int at = 0, sections = 0;
  const char *section = NULL;
  for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
    if (strncmp(line, "model ", 6) == 0) {
      if (net != NULL) assert_int_equal(at, net->n_layers);
      tp__net_free(net);
      net = build_section(line);
      section = line;
      at = 0;
      sections++;
      continue;
    }
    assert_non_null(net);
    assert_true(at < net->n_layers);
    char mine[512];
    layer_line(net, &net->layer[at++], mine, sizeof mine);
    if (strcmp(mine, line) != 0)
      fail_msg("%s: layer %d is\n%s\nwanted:\n%s", section, at, mine, line);
  }
  assert_int_equal(sections, SECTIONS);
  assert_int_equal(at, net->n_layers);
  tp__net_free(net);
  free(text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers_are_keras)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
