/* test_weights_timm - state dicts of timm and torchvision fill the networks that are theirs, and
 * nothing else.
 *
 * Expected: timm_names.txt.gz, names and shapes of all arrays by timm 1.0.31 through
 * tests/ref/timm_names.py; the places of single numbers follow from the layouts (weights_torch.h).
 * What networks compute with such files: tests/interop/check_timm.py. Hostile: files that don't say
 * which network they are, that are others, that are too much or half.
 */
#include "fixture.h"
#include "model/weights_load.h"
#include "model/weights_timm.h"
#include "weights_testing.h"

static int64_t parse_shape(const char *text, tp__shape *shape)
{
  int64_t n = 1;
  *shape = (tp__shape){0};
  for (char *end = NULL; *text != '-' && *text != '\0'; text = end + (*end == ',')) {
    shape->dim[shape->rank] = strtol(text, &end, 10);
    n *= shape->dim[shape->rank++];
  }
  return n;
}

/* The arrays of an architecture: 0, 1, 2, ... in each. efficientnet_b0 has those of
 * tf_efficientnet_b0. */
static tp__tensors state_dict(const char *architecture)
{
  char *text = read_fixture("timm_names.txt.gz"), *rest = NULL, wanted[64];
  tp__tensors set = {0};
  bool here = false;
  bool plain = strncmp(architecture, "efficientnet", 12) == 0;
  snprintf(wanted, sizeof wanted, "model %s%s", plain ? "tf_" : "", architecture);
  for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
    if (strncmp(line, "model ", 6) == 0) {
      here = strcmp(line, wanted) == 0;
      continue;
    }
    if (!here) continue;
    char *space = strchr(line, ' ');
    assert_non_null(space);
    *space = '\0';
    tp_error err = {0};
    tp__shape shape;
    tp__tensor *t = NULL;
    int64_t n = parse_shape(space + 1, &shape);
    assert_ok(tp__tensors_add(&set, line, TP__F32, &shape, &t, &err));
    for (int64_t i = 0; i < n; i++) ((float *)t->data)[i] = (float)i;
  }
  assert_true(set.count > 0);
  free(text);
  return set;
}

static tp__net *build(const char *network, int classes)
{
  tp_error err = {0};
  tp__net *net = NULL;
  tp__model_spec spec = {.name = network, .height = 64, .width = 64, .classes = classes};
  assert_ok(tp__net_build(&spec, false, &net, &err));
  return net;
}

static const char *name_of(const char *architecture)
{
  static char name[64];
  snprintf(name, sizeof name, "%s.safetensors", architecture);
  return name;
}

/* Every array of the network is in the file, and the other way round. */
static void every_array_has_its_place(void **state)
{
  (void)state;
  static const char *const pairs[][2] = {
      {"tf_efficientnet_b0", "efficientnet-b0"},
      {"tf_efficientnet_b1", "efficientnet-b1"},
      {"tf_efficientnet_b2", "efficientnet-b2"},
      {"tf_efficientnet_b3", "efficientnet-b3"},
      {"tf_efficientnet_b4", "efficientnet-b4"},
      {"tf_efficientnet_b5", "efficientnet-b5"},
      {"tf_efficientnet_b6", "efficientnet-b6"},
      {"tf_efficientnet_b7", "efficientnet-b7"},
      {"efficientnet_b0", "efficientnet-b0-timm"},
      {"efficientnet_b4", "efficientnet-b4-timm"},
      {"resnet50", "resnet50-v1.5"},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    tp_error err = {0};
    tp__tensors torch = state_dict(pairs[i][0]), canonical = {0};
    tp__net *net = build(pairs[i][1], 1000);
    assert_true(tp__weights_is_timm(&torch));
    assert_ok(tp__weights_from_timm(name_of(pairs[i][0]), &torch, net->name, &canonical, &err));
    assert_int_equal(canonical.count, net->n_parameters);
    for (int k = 0; k < net->n_parameters; k++) {
      const tp__parameter *p = &net->parameter[k];
      const tp__tensor *t = tp__tensors_find(&canonical, p->name);
      if (t == NULL) fail_msg("%s: %s is missing", pairs[i][0], p->name);
      if (!tp__shape_equal(&t->shape, &p->shape)) fail_msg("%s: shape of %s", pairs[i][0], p->name);
    }
    tp__net_free(net);
    tp__tensors_free(&torch);
    tp__tensors_free(&canonical);
  }
}

static float number(const tp__tensors *set, const char *name, size_t at)
{
  const tp__tensor *t = tp__tensors_find(set, name);
  if (t == NULL) fail_msg("no %s", name);
  assert_true(at < tp__shape_elements(&t->shape, 0));
  return ((const float *)t->data)[at];
}

static void layouts(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__tensors torch = state_dict("tf_efficientnet_b0"), set = {0};
  assert_ok(tp__weights_from_timm("tf_efficientnet_b0.safetensors", &torch, "efficientnet-b0", &set,
                                  &err));
  /* [2,1,1,5] of [3,3,3,32] is [5,1,2,1] of [32,3,3,3] */
  assert_float_equal(number(&set, "stem_conv/kernel", ((2 * 3 + 1) * 3 + 1) * 32 + 5),
                     ((5 * 3 + 1) * 3 + 2) * 3 + 1, 0);
  /* [1,2,7,0] of [3,3,32,1] is [7,0,1,2] of [32,1,3,3] */
  assert_float_equal(number(&set, "block1a_dwconv/kernel", (1 * 3 + 2) * 32 + 7),
                     (7 * 3 + 1) * 3 + 2, 0);
  /* [3,4] of [1280,1000] is [4,3] of [1000,1280] */
  assert_float_equal(number(&set, "predictions/kernel", 3 * 1000 + 4), 4 * 1280 + 3, 0);
  assert_float_equal(number(&set, "normalization/mean", 1), 0.456f, 0);
  assert_float_equal(number(&set, "normalization/variance", 2), (float)(0.225 * 0.225), 0);
  tp__tensors_free(&torch);
  tp__tensors_free(&set);
}

static void refused(const char *path, const char *architecture, const char *network,
                    const char *part)
{
  tp_error err = {0};
  tp__tensors torch = state_dict(architecture), set = {0};
  assert_fails(tp__weights_from_timm(path, &torch, network, &set, &err), TP_ERR_DATA, part);
  assert_int_equal(set.count, 0);
  tp__tensors_free(&torch);
}

static void others_are_refused(void **state)
{
  (void)state;
  static const struct {
    const char *path, *architecture, *network, *part;
  } cases[] = {
      {"model.safetensors", "tf_efficientnet_b0", "efficientnet-b0", "says this is \"model\""},
      {"efficientnet_b0.ra_in1k.safetensors", "tf_efficientnet_b0", "efficientnet-b0",
       "wanted is tf_efficientnet_b0"},
      {"tf_efficientnet_b0.in1k.safetensors", "tf_efficientnet_b0", "efficientnet-b0-timm",
       "wanted is efficientnet_b0"},
      {"tf_efficientnet_b1.in1k.safetensors", "tf_efficientnet_b1", "efficientnet-b0",
       "wanted is tf_efficientnet_b0"},
      {"tf_efficientnet_b0.ap_in1k.safetensors", "tf_efficientnet_b0", "efficientnet-b0",
       "its config.json must lie beside it"},
      {"tf_efficientnet_b0.safetensors", "tf_efficientnet_b0", "efficientnet-lite0",
       "efficientnet-lite0 is wanted"},
      {"tf_efficientnet_b0.safetensors", "tf_efficientnet_b0", "resnet50", "resnet50 is wanted"},
      {"resnet50.a1_in1k.safetensors", "resnet50", "resnet50", "that network is resnet50-v1.5"},
      {"resnet50.a1_in1k.safetensors", "resnet50", "efficientnet-b0", "efficientnet-b0 is wanted"},
      {"resnetblur50.bt_in1k.safetensors", "resnet50", "resnet50-v1.5", "\"resnetblur50\""},
      {"\x1b[2J.pth", "resnet50", "resnet50-v1.5", "\"?[2J\""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    refused(cases[i].path, cases[i].architecture, cases[i].network, cases[i].part);
}

static void put_config(const char *text)
{
  put_file("config.json", text, strlen(text));
}

/* config.json goes before the file's name. */
static void config_says_which(void **state)
{
  (void)state;
  const char *path = in_test_folder("model.safetensors");
  tp_error err = {0};
  tp__tensors torch = state_dict("tf_efficientnet_b0"), set = {0};
  put_config("{\"architecture\": \"tf_efficientnet_b0\", \"pretrained_cfg\": {\"mean\": [0.5, 0.5, "
             "0.5], \"std\": [0.5, 0.5, 0.5]}}");
  assert_ok(tp__weights_from_timm(path, &torch, "efficientnet-b0", &set, &err));
  assert_float_equal(number(&set, "normalization/mean", 2), 0.5, 0);
  assert_float_equal(number(&set, "normalization/variance", 2), 0.25, 0);
  tp__tensors_free(&set);
  tp__tensors_free(&torch);
  put_config("{\"architecture\": \"efficientnet_b0\"}");
  refused(in_test_folder("tf_efficientnet_b0.safetensors"), "tf_efficientnet_b0", "efficientnet-b0",
          "config.json says this is \"efficientnet_b0\"");
  put_config("{\"architecture\": \"resnet50\", \"pretrained_cfg\": {\"mean\": [0.5, 0.5, 0.5]}}");
  refused(path, "resnet50", "resnet50-v1.5", "another mean and deviation");
  put_config("{\"architecture\": \"resnet50\", \"pretrained_cfg\": {\"std\": [0, 1e99, 1]}}");
  refused(path, "resnet50", "resnet50-v1.5", "are no colours");
  put_config("{\"architecture\": [\"resnet50\"]"); /* no JSON: as if it were not there */
  refused(path, "resnet50", "resnet50-v1.5", "the file's name says this is \"model\"");
  unlink(in_test_folder("config.json"));
}

static void foreign_arrays_are_refused(void **state)
{
  (void)state;
  static const char *const names[] = {"blocks.7.0.conv_dw.weigh",
                                      "blocks.0.30.conv_dw.weight",
                                      "blocks.1.0.conv_pwl.gamma",
                                      "blocks.0.0.conv_pwl.weight",
                                      "blocks.-1.0.conv_dw.weight",
                                      "blocks..conv_dw.weight",
                                      "conv_stem",
                                      "layer1.0.conv1.weight"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    tp_error err = {0};
    tp__tensors torch = {0}, set = {0};
    add_counting(&torch, "conv_stem.weight", 4, (int64_t[]){32, 3, 3, 3}, 0);
    add_counting(&torch, names[i], 4, (int64_t[]){4, 1, 3, 3}, 0);
    assert_fails(
        tp__weights_from_timm("tf_efficientnet_b0.pth", &torch, "efficientnet-b0", &set, &err),
        TP_ERR_DATA, "does not belong to efficientnet-b0");
    assert_int_equal(set.count, 0);
    tp__tensors_free(&torch);
  }
}

/* Through a file: a head of another size is left out on request, half a file never loads. */
static void files_are_loaded(void **state)
{
  (void)state;
  tp_error err = {0};
  tp__tensors torch = state_dict("resnet50"), weights = {0};
  tp__net *net = build("resnet50-v1.5", 5);
  const char *path = in_test_folder("resnet50.a1_in1k.safetensors");
  assert_ok(tp__weights_write_safetensors(path, &torch, NULL, &err));
  assert_ok(tp__net_init(net, 1, &weights, &err));
  assert_fails(tp__weights_load(path, net, &weights, false, &(tp__log){0}, &err), TP_ERR_DATA,
               "predictions");
  assert_ok(tp__weights_load(path, net, &weights, true, &(tp__log){0}, &err));
  assert_float_equal(number(&weights, "conv5_block3_3_bn/gamma", 2047), 2047, 0);
  torch.count -= 20;
  path = in_test_folder("resnet50.half.safetensors");
  assert_ok(tp__weights_write_safetensors(path, &torch, NULL, &err));
  torch.count += 20;
  assert_fails(tp__weights_load(path, net, &weights, true, &(tp__log){0}, &err), TP_ERR_DATA,
               "is not in the file");
  tp__tensors_free(&torch);
  tp__tensors_free(&weights);
  tp__net_free(net);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_array_has_its_place),  cmocka_unit_test(layouts),
      cmocka_unit_test(others_are_refused),         cmocka_unit_test(config_says_which),
      cmocka_unit_test(foreign_arrays_are_refused), cmocka_unit_test(files_are_loaded),
  };
  return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
