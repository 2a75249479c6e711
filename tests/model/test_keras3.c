/* Proves that Keras 3's files give their layers' arrays the right names, and that what cannot be
 * named is an error. Expected: the layout that ../shared/golden/README.md and Keras' saving_lib.py
 * describe; files are made with libhdf5 and libzip. Hostile: groups that contain themselves, wrong
 * numbers of variables, a configuration that is no JSON. */
#include "weights_testing.h"

#include <hdf5.h>
#include <zip.h>

#include "model/h5_strings.h"

static void make_dataset(hid_t where, const char *name)
{
  const hsize_t four = 4;
  hid_t space = H5Screate_simple(1, &four, NULL);
  hid_t dataset =
      H5Dcreate2(where, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(dataset >= 0);
  H5Dclose(dataset);
  H5Sclose(space);
}

/* A Keras 3 layer: /layers/CLASS/vars with the name and n arrays. */
static void keras3_layer(hid_t file, const char *class, const char *name, int n)
{
  tp_error err;
  hid_t links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  char path[128];
  snprintf(path, sizeof path, "layers/%s/vars", class);
  hid_t vars = H5Gcreate2(file, path, links, H5P_DEFAULT, H5P_DEFAULT);
  if (name != NULL) assert_ok(tp__h5_write_string(vars, "name", name, &err));
  for (int i = 0; i < n; i++) {
    char number[16];
    snprintf(number, sizeof number, "%d", i);
    make_dataset(vars, number);
  }
  H5Gclose(vars);
  H5Pclose(links);
}

static void keras3_variables(void **state)
{
  (void)state;
  tp_error err;
  const char *path = in_test_folder("three.weights.h5");
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  keras3_layer(file, "conv2d", "stem_conv", 1);
  keras3_layer(file, "conv2d_10", "block1a_se_reduce", 2);
  keras3_layer(file, "batch_normalization_3", "stem_bn", 4);
  keras3_layer(file, "dropout/seed_generator", "seed", 1);
  keras3_layer(file, "some_layer_2", "own", 2);
  H5Fclose(file);
  tp__tensors set = {0};
  assert_ok(tp__weights_read(path, &set, NULL, NULL, &err));
  static const char *const names[] = {"stem_conv/kernel",
                                      "block1a_se_reduce/kernel",
                                      "block1a_se_reduce/bias",
                                      "stem_bn/gamma",
                                      "stem_bn/beta",
                                      "stem_bn/moving_mean",
                                      "stem_bn/moving_variance",
                                      "own/0",
                                      "own/1"};
  assert_int_equal(set.count, sizeof names / sizeof *names);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (tp__tensors_find(&set, names[i]) == NULL) fail_msg("%s is missing", names[i]);
  tp__tensors_free(&set);

  static const struct {
    const char *class, *name;
    int n;
    const char *text;
  } cases[] = {
      {"batch_normalization", "bn", 3,
       "layer bn: holds 3 arrays; a batch_normalization layer has 4"},
      {"normalization", "normalization", 2, "holds 2 arrays"},
      {"dense", "head", 3, "holds 3 arrays"},
      {"dense", NULL, 2, "does not name its layer"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    keras3_layer(file, cases[i].class, cases[i].name, cases[i].n);
    H5Fclose(file);
    assert_refused(path, cases[i].text);
  }
}

/* Groups that contain themselves: a tree of endless depth and breadth. */
static void endless_groups(void **state)
{
  (void)state;
  const char *path = in_test_folder("endless.h5");
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  keras3_layer(file, "dense", "head", 2);
  hid_t layers = H5Gopen2(file, "layers", H5P_DEFAULT);
  H5Lcreate_hard(file, "layers", layers, "a", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_hard(file, "layers", layers, "b", H5P_DEFAULT, H5P_DEFAULT);
  H5Gclose(layers);
  H5Fclose(file);
  tp_error err;
  tp__tensors set = {0};
  assert_int_equal(tp__weights_read(path, &set, NULL, NULL, &err), TP_ERR_DATA);
  assert_int_equal(set.count, 0);
}

/* A .keras file with that configuration, whose .h5 has two convolutions and a nested dense layer
 * without names. */
static const char *nameless(const char *group, const char *config)
{
  const char *h5 = in_test_folder("nameless.h5"), *path = in_test_folder("nameless.keras");
  char class[128];
  hid_t file = H5Fcreate(h5, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  keras3_layer(file, "conv2d", NULL, 1);
  keras3_layer(file, "depthwise_conv2d_1", NULL, 1);
  snprintf(class, sizeof class, "functional/%s/dense", group);
  keras3_layer(file, class, NULL, 2);
  H5Fclose(file);
  int code = 0;
  zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
  zip_file_add(zip, "model.weights.h5", zip_source_file(zip, h5, 0, -1), 0);
  zip_file_add(zip, "config.json", zip_source_buffer(zip, config, strlen(config), 0), 0);
  assert_int_equal(zip_close(zip), 0);
  return path;
}

static void names_from_the_configuration(void **state)
{
  (void)state;
  static const char config[] =
      "{\"class_name\":\"Functional\",\"config\":{\"layers\":["
      "{\"class_name\":\"InputLayer\",\"config\":{\"name\":\"input\"}},"
      "{\"class_name\":\"Conv2D\",\"config\":{\"name\":\"stem_conv\"}},"
      "{\"class_name\":\"DepthwiseConv2D\",\"config\":{\"name\":\"no\"}},"
      "{\"class_name\":\"DepthwiseConv2D\",\"config\":{\"name\":\"block1a_dwconv\"}},"
      "{\"class_name\":\"Functional\",\"config\":{\"name\":\"inner\",\"layers\":["
      "{\"class_name\":\"Dense\",\"config\":{\"name\":\"head\"}}]}}]}}";
  static const char *const names[] = {"stem_conv/kernel", "block1a_dwconv/kernel", "head/kernel",
                                      "head/bias"};
  static const char *const groups[] = {"layers", "_layer_checkpoint_dependencies"};
  for (size_t g = 0; g < 2; g++) {
    tp_error err;
    tp__tensors set = {0};
    assert_ok(tp__weights_read(nameless(groups[g], config), &set, NULL, NULL, &err));
    assert_int_equal(set.count, 4);
    for (size_t i = 0; i < 4; i++)
      if (tp__tensors_find(&set, names[i]) == NULL) fail_msg("%s is missing", names[i]);
    tp__tensors_free(&set);
  }
  assert_refused(nameless("layers", "{\"config\":{\"layers\":[]}}"), "does not name its layer");
  assert_refused(nameless("layers", "not JSON"), "does not name its layer");
  assert_refused(nameless("layers", "{\"config\":{\"layers\":[1,{},[],null]}}"),
                 "does not name its layer");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keras3_variables),
      cmocka_unit_test(endless_groups),
      cmocka_unit_test(names_from_the_configuration),
  };
  return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
