/* test_net - the networks' parameters, counts, freezing, values; wrong specifications.
 *
 * Expected: ../shared/golden/names.json (the variables of B0, Keras 3.15.1). EfficientNet-Lite0:
 * the shapes of the published weight file, Lite0's parameter count by its authors (4,652,008
 * trainable numbers, "4.7M"). The lists of layers: test_net_keras.c.
 */
#include <cjson/cJSON.h>

#include "model/net.h"
#include "testing.h"

static const tp__model_spec b0 = {
    .name = "efficientnet-b0", .height = 192, .width = 192, .classes = 104, .dropout = 0.2f};

static tp__net *build(const tp__model_spec *spec, bool training)
{
  tp_error err = {0};
  tp__net *net = NULL;
  assert_ok(tp__net_build(spec, training, &net, &err));
  return net;
}

/* ---- parameters ---- */

static void parameters_are_keras(void **state)
{
  (void)state;
  need_shared();
  char path[1100];
  snprintf(path, sizeof path, "%s/golden/names.json", shared_folder());
  tp_error err = {0};
  tp__buffer file;
  tp__buffer_init(&file, 1 << 20);
  assert_ok(tp__file_read(path, &file, &err));
  cJSON *json = cJSON_ParseWithLength((const char *)file.data, file.size);
  const cJSON *names = cJSON_GetObjectItem(json, "keras3_paths");
  const cJSON *shapes = cJSON_GetObjectItem(json, "keras3_shapes");
  tp__model_spec spec = b0;
  spec.classes = 0;
  tp__net *net = build(&spec, false);
  assert_int_equal(cJSON_GetArraySize(names), net->n_parameters);
  for (int i = 0; i < net->n_parameters; i++) {
    const tp__parameter *p = &net->parameter[i];
    const cJSON *shape = cJSON_GetArrayItem(shapes, i);
    assert_string_equal(cJSON_GetArrayItem(names, i)->valuestring, p->name);
    assert_int_equal(cJSON_GetArraySize(shape), p->shape.rank);
    for (int d = 0; d < p->shape.rank; d++)
      assert_int_equal(cJSON_GetArrayItem(shape, d)->valueint, p->shape.dim[d]);
  }
  tp__net_free(net);
  cJSON_Delete(json);
  tp__buffer_free(&file);
}

/* ---- counts and freezing ---- */

static int trainable_tensors(const tp__net *net)
{
  int n = 0;
  for (int i = 0; i < net->n_parameters; i++) n += tp__net_trains(net, i);
  return n;
}

static void counts_and_freezing(void **state)
{
  (void)state;
  static const struct {
    const char *name;
    int classes, last_n, layers, tensors, trainable_tensors;
    int64_t total, trainable;
  } cases[] = {
      {"efficientnet-b0", 0, -1, 237, 312, 211, 4049571, 4007548},
      {"efficientnet-b0", 104, -1, 240, 314, 213, 4182795, 4140772},
      {"efficientnet-b0", 104, 0, 240, 314, 2, 4182795, 133224},
      {"efficientnet-b0", 10, 20, 240, 314, 21, 4062381, 1363770},
      {"efficientnet-b0", 104, 237, 240, 314, 213, 4182795, 4140772},
      {"mobilenet-v2", 1000, 20, 157, 262, 23, 3538984, 2487080},
      {"resnet50", 1000, -1, 178, 320, 214, 25636712, 25583592},
      {"resnet50-v1.5", 1000, -1, 178, 267, 161, 25610152, 25557032},
      {"resnet50-v2", 1000, -1, 193, 272, 174, 25613800, 25568360},
      {"densenet121", 1000, -1, 430, 606, 364, 8062504, 7978856},
      {"densenet169", 1000, -1, 598, 846, 508, 14307880, 14149480},
      {"densenet201", 1000, -1, 710, 1006, 604, 20242984, 20013928},
      {"efficientnet-lite0", 1000, -1, 154, 247, 149, 4694024, 4652008},
      {"efficientnet-lite0", 1000, 0, 154, 247, 2, 4694024, 1281000},
  };
  tp_error err = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tp__model_spec spec = b0;
    spec.name = cases[i].name;
    spec.classes = cases[i].classes;
    tp__net *net = build(&spec, false);
    assert_ok(tp__net_freeze(net, cases[i].last_n, &err));
    int64_t total, trainable;
    tp__net_count(net, &total, &trainable);
    if (total != cases[i].total || trainable != cases[i].trainable ||
        net->n_layers != cases[i].layers || net->n_parameters != cases[i].tensors ||
        trainable_tensors(net) != cases[i].trainable_tensors)
      fail_msg("case %zu: %d layers, %d tensors, %d trainable, %lld numbers, %lld trainable", i,
               net->n_layers, net->n_parameters, trainable_tensors(net), (long long)total,
               (long long)trainable);
    tp__net_free(net);
  }
}

/* The coefficients of the larger models of both families. Expected: trainable numbers of
 * Lite0...Lite4 in millions, as its authors list them; each B has the numbers of the network whose
 * coefficients it has. */
static int64_t numbers(const char *name, float width, float depth, bool trainable)
{
  tp__model_spec spec = {.name = name,
                         .height = 224,
                         .width = 224,
                         .classes = 1000,
                         .width_coefficient = width,
                         .depth_coefficient = depth};
  int64_t count[2];
  tp__net *net = build(&spec, false);
  tp__net_count(net, &count[0], &count[1]);
  tp__net_free(net);
  return count[trainable];
}

static void coefficients_give_the_larger_models(void **state)
{
  (void)state;
  static const struct {
    float width, depth;
    const char *b;
    double lite_millions; /* 0: none of that size */
  } cases[] = {
      {1.0f, 1.0f, "efficientnet-b0", 4.7},  {1.0f, 1.1f, "efficientnet-b1", 5.4},
      {1.1f, 1.2f, "efficientnet-b2", 6.1},  {1.2f, 1.4f, "efficientnet-b3", 8.2},
      {1.4f, 1.8f, "efficientnet-b4", 13.0}, {1.6f, 2.2f, "efficientnet-b5", 0},
      {1.8f, 2.6f, "efficientnet-b6", 0},    {2.0f, 3.1f, "efficientnet-b7", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    float w = cases[i].width, d = cases[i].depth;
    assert_int_equal(numbers("efficientnet-b0", w, d, false), numbers(cases[i].b, 0, 0, false));
    if (cases[i].lite_millions == 0) continue;
    assert_int_equal((int64_t)((double)numbers("efficientnet-lite0", w, d, true) / 1e5 + 0.5),
                     (int64_t)(cases[i].lite_millions * 10 + 0.5));
  }
}

static void freezing_can_be_changed_and_has_a_limit(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__net *net = build(&b0, true);
  assert_ok(tp__net_freeze(net, 0, &err));
  assert_int_equal(trainable_tensors(net), 2);
  assert_fails(tp__net_freeze(net, 238, &err), TP_ERR_USAGE, "has 237");
  assert_int_equal(trainable_tensors(net), 2);
  assert_ok(tp__net_freeze(net, -1, &err));
  assert_int_equal(trainable_tensors(net), 213);
  tp__net_free(net);
}

/* ---- values ---- */

static void values_are_set(void **state)
{
  (void)state;
  tp__net *net = build(&b0, true);
  const tp__node *node = net->graph->node;
  assert_string_equal(node[net->pixels].name, "pixels");
  assert_int_equal(node[net->keys].dtype, TP__U32);
  assert_int_equal(node[net->features].shape.dim[1], 1280);
  assert_int_equal(node[net->logits].shape.dim[1], 104);
  assert_int_equal(node[net->probabilities].op, TP__OP_SOFTMAX);
  assert_int_equal(node[net->layer[tp__net_find(net, "top_dropout")].value].op, TP__OP_DROPOUT);
  assert_int_equal(tp__net_find(net, "top_dropouts"), -1);
  tp__net_free(net);

  tp__model_spec spec = b0;
  spec.dropout = 0; /* no rate, no layer */
  net = build(&spec, true);
  assert_int_equal(net->keys, TP__NONE);
  assert_int_equal(tp__net_find(net, "top_dropout"), -1);
  tp__net_free(net);

  spec.classes = 0;
  net = build(&spec, false);
  assert_int_equal(net->features, net->layer[tp__net_find(net, "top_activation")].value);
  assert_int_equal(net->logits, TP__NONE);
  assert_int_equal(net->probabilities, TP__NONE);
  tp__net_free(net);
}

/* ---- wrong specifications ---- */

static void wrong_specifications_are_refused(void **state)
{
  (void)state;
  static const struct {
    tp__model_spec spec;
    const char *part;
  } cases[] = {
      {{.name = "efficentnet-b0", .height = 192, .width = 192}, "was efficientnet-b0 meant?"},
      {{.name = "lite0", .height = 192, .width = 192}, "was efficientnet-lite0 meant?"},
      {{.name = "", .height = 192, .width = 192}, "unknown model"},
      {{.name = NULL, .height = 192, .width = 192}, "unknown model"},
      {{.name = "efficientnet-b0", .height = 31, .width = 192}, "31x192"},
      {{.name = "efficientnet-b0", .height = 192, .width = -5}, "32 to 4096"},
      {{.name = "efficientnet-b0", .height = 192, .width = 100000}, "32 to 4096"},
      {{.name = "efficientnet-b0", .height = 64, .width = 64, .classes = -1}, "-1 classes"},
      {{.name = "efficientnet-b0", .height = 64, .width = 64, .classes = 5, .dropout = 1.0f},
       "dropout 1"},
      {{.name = "efficientnet-b0", .height = 64, .width = 64, .dropout = 0.0f / 0.0f}, "dropout"},
      {{.name = "efficientnet-b0", .height = 64, .width = 64, .width_coefficient = -1.0f},
       "width coefficient -1"},
      {{.name = "efficientnet-b0", .height = 64, .width = 64, .depth_coefficient = 1e9f},
       "depth coefficient 1e+09"},
      {{.name = "efficientnet-lite0", .height = 64, .width = 64, .official_preprocessing = true},
       "one preprocessing only"},
  };
  tp_error err = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tp__net *net = NULL;
    assert_fails(tp__net_build(&cases[i].spec, false, &net, &err), TP_ERR_USAGE, cases[i].part);
    assert_null(net);
  }
}

static void every_name_builds_at_the_smallest_size(void **state)
{
  (void)state;
  size_t n = 0;
  const char *const *names = tp__model_names(&n);
  assert_true(n >= 10);
  assert_null(names[n]);
  for (size_t i = 0; i < n; i++) {
    tp__net *net =
        build(&(tp__model_spec){.name = names[i], .height = 32, .width = 33, .classes = 2}, false);
    int at = net->n_layers - 1;
    while (net->layer[at].head) at--;
    const tp__shape *shape = &net->graph->node[net->layer[at].value].shape;
    assert_int_equal(shape->dim[1], 1);
    assert_in_range(shape->dim[2], 1, 2);
    tp__net_free(net);
    assert_in_range(tp__model_side(names[i]), 224, 600);
    assert_true(tp__model_dropout(names[i]) >= 0 && tp__model_dropout(names[i]) <= 0.5f);
  }
  assert_int_equal(tp__model_side("resnet"), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parameters_are_keras),
      cmocka_unit_test(counts_and_freezing),
      cmocka_unit_test(coefficients_give_the_larger_models),
      cmocka_unit_test(freezing_can_be_changed_and_has_a_limit),
      cmocka_unit_test(values_are_set),
      cmocka_unit_test(wrong_specifications_are_refused),
      cmocka_unit_test(every_name_builds_at_the_smallest_size),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
