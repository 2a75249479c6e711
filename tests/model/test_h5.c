/* Proves that Keras' HDF5 files are written as Keras reads them (case B19: long lists of names are
 * split), and that hostile ones are errors. Expected: the structure that ../shared/golden/README.md
 * and Keras' legacy_h5_format.py describe; that Keras itself reads our files is checked by
 * tests/interop/weights.py. libhdf5 runs in this program only to make the files; the reader runs it
 * in a child. */
#include "weights_testing.h"

#include <fcntl.h>
#include <hdf5.h>
#include <unistd.h>

#include "base/rng.h"
#include "model/h5_strings.h"

static void name_of(char text[64], int i)
{
  snprintf(text, 64, "a_layer_with_a_name_that_is_really_rather_long_number_%06d",
           i); /* 60 characters */
}

static hid_t open_file(const char *path)
{
  hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  assert_true(file >= 0);
  return file;
}

static void two_thousand_layers(void **state)
{
  (void)state;
  enum { N = 2000 };
  static char text[N][64];
  static const char *layers[N];
  tp_error err;
  tp__tensors a = {0}, b = {0};
  for (int i = 0; i < N; i++) {
    char name[80];
    name_of(text[i], i);
    layers[i] = text[i];
    snprintf(name, sizeof name, "%s/kernel", text[i]);
    add_counting(&a, name, 2, (const int64_t[]){2, 3}, (float)i);
  }
  const char *path = in_test_folder("layers.h5");
  assert_ok(tp__weights_write_h5(path, &a, layers, N, &err));
  assert_ok(tp__weights_read(path, &b, NULL, NULL, &err));
  assert_same_tensors(&a, &b, NULL);
  for (int i = 0; i < N; i++) assert_string_equal(a.item[i].name, b.item[i].name);
  hid_t file = open_file(path);
  assert_true(H5Aexists(file, "layer_names") == 0);
  assert_true(H5Aexists(file, "layer_names1") > 0); /* 2000 * 60 bytes: two parts */
  assert_true(H5Aexists(file, "layer_names2") == 0);
  H5Fclose(file);
  tp__tensors_free(&a);
  tp__tensors_free(&b);
}

static void two_thousand_weights_in_a_layer(void **state)
{
  (void)state;
  enum { N = 2000 };
  static const char *const layers[] = {"empty", "model"};
  tp_error err;
  tp__tensors a = {0}, b = {0};
  for (int i = 0; i < N; i++) {
    char text[64], name[80];
    name_of(text, i);
    snprintf(name, sizeof name, "model/%s", text);
    add_counting(&a, name, 1, (const int64_t[]){1}, (float)i);
  }
  const char *path = in_test_folder("weights.h5");
  assert_ok(tp__weights_write_h5(path, &a, layers, 2, &err));
  assert_ok(tp__weights_read(path, &b, NULL, NULL, &err));
  assert_same_tensors(&a, &b, NULL);
  hid_t file = open_file(path), group = H5Gopen2(file, "model", H5P_DEFAULT);
  assert_true(H5Aexists(group, "weight_names2") > 0); /* 2000 * 68 bytes */
  H5Gclose(group);
  H5Fclose(file);
  tp__tensors_free(&a);
  tp__tensors_free(&b);
}

/* What a reader by position needs: Keras' order in each layer, and its name for depthwise kernels.
 */
static void names_as_keras_has_them(void **state)
{
  (void)state;
  static const char *const layers[] = {"input", "bn", "block1a_dwconv", "se"};
  static const char *const wanted[] = {"bn/gamma:0", "bn/beta:0", "bn/moving_mean:0",
                                       "bn/moving_variance:0"};
  tp_error err;
  tp__tensors a = {0};
  add_counting(&a, "bn/moving_variance", 1, (const int64_t[]){2}, 3);
  add_counting(&a, "bn/moving_mean", 1, (const int64_t[]){2}, 2);
  add_counting(&a, "bn/gamma", 1, (const int64_t[]){2}, 0);
  add_counting(&a, "bn/beta", 1, (const int64_t[]){2}, 1);
  add_counting(&a, "block1a_dwconv/kernel", 4, (const int64_t[]){3, 3, 8, 1}, 0);
  add_counting(&a, "se/kernel", 4, (const int64_t[]){1, 1, 8, 1}, 0);
  const char *path = in_test_folder("names.h5");
  assert_ok(tp__weights_write_h5(path, &a, layers, 4, &err));
  hid_t file = open_file(path), group = H5Gopen2(file, "bn", H5P_DEFAULT);
  tp__arena arena = {0};
  tp__h5_strings names;
  assert_ok(tp__h5_read_strings(group, "weight_names", &arena, &names, &err));
  assert_int_equal(names.count, 4);
  for (size_t i = 0; i < 4; i++) assert_string_equal(names.item[i], wanted[i]);
  assert_ok(tp__h5_read_strings(file, "layer_names", &arena, &names, &err));
  assert_int_equal(names.count, 4);
  assert_string_equal(names.item[0], "input");
  assert_true(H5Lexists(file, "block1a_dwconv/block1a_dwconv/depthwise_kernel:0", H5P_DEFAULT) > 0);
  assert_true(H5Lexists(file, "se/se/kernel:0", H5P_DEFAULT) > 0);
  assert_true(H5Lexists(file, "top_level_model_weights", H5P_DEFAULT) > 0);
  tp__arena_free(&arena);
  H5Gclose(group);
  H5Fclose(file);
  tp__tensors_free(&a);
}

static void what_cannot_be_written(void **state)
{
  (void)state;
  static const char *const layers[] = {"a", "a"};
  tp_error err;
  tp__tensors a = {0}, half = {0};
  tp__shape scalar = {0};
  add_counting(&a, "a/b", 0, NULL, 1);
  assert_ok(tp__tensors_add(&half, "a/b", TP__F16, &scalar, NULL, &err));
  const char *path = in_test_folder("none.h5");
  assert_fails(tp__weights_write_h5(path, &a, layers, 0, &err), TP_ERR_INTERNAL,
               "belong to no listed layer");
  assert_fails(tp__weights_write_h5(path, &a, layers, 2, &err), TP_ERR_INTERNAL,
               "layer a could not be made");
  assert_fails(tp__weights_write_h5(path, &half, layers, 1, &err), TP_ERR_INTERNAL, "f16");
  assert_false(tp__is_file(path));
  assert_fails(tp__weights_write_h5("/dev/full", &a, layers, 1, &err), TP_ERR_OUTPUT, "No space");
  tp__tensors_free(&a);
  tp__tensors_free(&half);
}

/* ---- hostile and odd files, made with libhdf5 ---- */

typedef struct maker {
  hid_t file, group; /* group "x", listed in layer_names */
} maker;

static maker begin(const char *path, bool listed)
{
  static const char *const layers[] = {"x"}, *const weights[] = {"x/kernel:0"};
  tp_error err;
  maker m = {.file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)};
  m.group = H5Gcreate2(m.file, "x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Gclose(H5Gcreate2(m.group, "x", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  assert_ok(tp__h5_write_strings(m.file, "layer_names", layers, 1, &err));
  if (listed) assert_ok(tp__h5_write_strings(m.group, "weight_names", weights, 1, &err));
  return m;
}

static void end(maker *m)
{
  H5Gclose(m->group);
  H5Fclose(m->file);
}

static void make_dataset(hid_t where, const char *name, hid_t type, int rank, const hsize_t *dim,
                         hid_t plist)
{
  hid_t space = H5Screate_simple(rank, dim, NULL);
  hid_t dataset = H5Dcreate2(where, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  assert_true(dataset >= 0);
  H5Dclose(dataset);
  H5Sclose(space);
}

static void outside_the_file(void **state)
{
  (void)state;
  const hsize_t four = 4;
  const char *secret = put_file("secret", "0123456789abcdef", 16),
             *path = in_test_folder("outside.h5");
  maker m = begin(path, true);
  hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(plist, secret, 0, 16);
  make_dataset(m.group, "x/kernel:0", H5T_NATIVE_FLOAT, 1, &four, plist);
  H5Pclose(plist);
  end(&m);
  assert_refused(path, "kept outside the file: refused");

  const char *other = in_test_folder("other.h5");
  maker n = begin(other, true);
  make_dataset(n.group, "x/kernel:0", H5T_NATIVE_FLOAT, 1, &four, H5P_DEFAULT);
  end(&n);
  m = begin(path, true);
  H5Lcreate_external(other, "/x/x/kernel:0", m.group, "x/kernel:0", H5P_DEFAULT, H5P_DEFAULT);
  end(&m);
  assert_refused(path, "layer x: array x/kernel:0");

  m = begin(path, true);
  plist = H5Pcreate(H5P_DATASET_CREATE);
  hid_t space = H5Screate_simple(1, &four, NULL);
  H5Pset_virtual(plist, space, other, "/x/x/kernel:0", space);
  make_dataset(m.group, "x/kernel:0", H5T_NATIVE_FLOAT, 1, &four, plist);
  H5Sclose(space);
  H5Pclose(plist);
  end(&m);
  assert_refused(path, "kept outside the file: refused");
}

static void odd_datasets(void **state)
{
  (void)state;
  static const hsize_t seven[] = {1, 1, 1, 1, 1, 1, 4}, huge[] = {1 << 20, 1 << 20};
  const char *path = in_test_folder("odd.h5");
  maker m = begin(path, true);
  make_dataset(m.group, "x/kernel:0", H5T_NATIVE_FLOAT, 7, seven, H5P_DEFAULT);
  end(&m);
  assert_refused(path, "more than 6 dimensions");
  m = begin(path, true);
  make_dataset(m.group, "x/kernel:0", H5T_NATIVE_FLOAT, 2, huge,
               H5P_DEFAULT); /* never filled: 4 TB of zeros */
  end(&m);
  assert_refused(path, "too large for a file of this size");
  m = begin(path, true);
  make_dataset(m.group, "x/kernel:0", H5T_C_S1, 1, seven, H5P_DEFAULT);
  end(&m);
  assert_refused(path, "holds no numbers");
  m = begin(path, true);
  end(&m);
  assert_refused(path, "layer x: array x/kernel:0: is not there");
  m = begin(path, false);
  end(&m);
  assert_refused(path, "layer x: attribute weight_names is missing");
}

/* Two names that become one when the enclosing model is dropped. */
static void names_collide(void **state)
{
  (void)state;
  static const char *const weights[] = {"m1/d/kernel:0", "m2/d/kernel:0"};
  const hsize_t four = 4;
  tp_error err;
  const char *path = in_test_folder("collide.h5");
  maker m = begin(path, false);
  assert_ok(tp__h5_write_strings(m.group, "weight_names", weights, 2, &err));
  for (int i = 0; i < 2; i++) {
    hid_t links = H5Pcreate(H5P_LINK_CREATE), space = H5Screate_simple(1, &four, NULL);
    H5Pset_create_intermediate_group(links, 1);
    H5Dclose(
        H5Dcreate2(m.group, weights[i], H5T_NATIVE_FLOAT, space, links, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(links);
  }
  end(&m);
  assert_refused(path, "m2/d/kernel:0: two arrays are named \"d/kernel\"");
}

/* The official DenseNet files, of Keras 2: the layer "conv1/conv" is Keras 3's conv1_conv, and "bn"
 * is another layer than "conv1/bn". */
static void slashes_in_names_of_layers(void **state)
{
  (void)state;
  static const char *const layers[] = {"conv1/conv", "conv1/bn", "bn", "model"};
  static const char *const weights[] = {"conv1/conv/kernel:0", "conv1/bn/gamma:0", "bn/gamma:0",
                                        "model/d/kernel:0"};
  static const char *const wanted[] = {"conv1_conv/kernel", "conv1_bn/gamma", "bn/gamma",
                                       "d/kernel"};
  const hsize_t four = 4;
  tp_error err = {0};
  tp__tensors set = {0};
  const char *path = in_test_folder("slashes.h5");
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t links = H5Pcreate(H5P_LINK_CREATE), space = H5Screate_simple(1, &four, NULL);
  H5Pset_create_intermediate_group(links, 1);
  assert_ok(tp__h5_write_strings(file, "layer_names", layers, 4, &err));
  for (int i = 0; i < 4; i++) {
    hid_t group = H5Gcreate2(file, layers[i], links, H5P_DEFAULT, H5P_DEFAULT);
    assert_ok(tp__h5_write_strings(group, "weight_names", &weights[i], 1, &err));
    H5Dclose(
        H5Dcreate2(group, weights[i], H5T_NATIVE_FLOAT, space, links, H5P_DEFAULT, H5P_DEFAULT));
    H5Gclose(group);
  }
  H5Sclose(space);
  H5Pclose(links);
  H5Fclose(file);
  assert_ok(tp__weights_read(path, &set, NULL, NULL, &err));
  assert_int_equal(set.count, 4);
  for (size_t i = 0; i < 4; i++) assert_string_equal(set.item[i].name, wanted[i]);
  tp__tensors_free(&set);
}

/* Compressed, in chunks, as double: read like any other. */
static void compressed(void **state)
{
  (void)state;
  const hsize_t dim[] = {64, 64}, chunk[] = {16, 64};
  const char *path = in_test_folder("compressed.h5");
  maker m = begin(path, true);
  hid_t plist = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, dim, NULL);
  H5Pset_chunk(plist, 2, chunk);
  H5Pset_deflate(plist, 6);
  hid_t dataset =
      H5Dcreate2(m.group, "x/kernel:0", H5T_IEEE_F64BE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  double *value = calloc(64 * 64, sizeof *value);
  for (int i = 0; i < 64 * 64; i++) value[i] = i;
  H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value);
  H5Dclose(dataset);
  H5Sclose(space);
  H5Pclose(plist);
  end(&m);
  tp_error err;
  tp__tensors set = {0};
  assert_ok(tp__weights_read(path, &set, NULL, NULL, &err));
  const tp__tensor *t = tp__tensors_find(&set, "x/kernel");
  assert_int_equal(t->dtype, TP__F64);
  assert_memory_equal(t->data, value, 64 * 64 * sizeof *value);
  free(value);
  tp__tensors_free(&set);
}

/* A file without a path of its own. */
static void deleted_file(void **state)
{
  (void)state;
  static const char *const layers[] = {"a"};
  tp_error err;
  tp__tensors a = {0}, b = {0};
  add_counting(&a, "a/kernel", 2, (const int64_t[]){2, 2}, 0);
  const char *path = in_test_folder("deleted.h5");
  assert_ok(tp__weights_write_h5(path, &a, layers, 1, &err));
  int fd = open(path, O_RDONLY);
  assert_int_equal(unlink(path), 0);
  char by_number[64];
  snprintf(by_number, sizeof by_number, "/proc/self/fd/%d", fd);
  assert_ok(tp__weights_read(by_number, &b, NULL, NULL, &err));
  assert_same_tensors(&a, &b, NULL);
  close(fd);
  tp__tensors_free(&a);
  tp__tensors_free(&b);
}

static void other_hdf5(void **state)
{
  (void)state;
  const hsize_t four = 4;
  const char *path = in_test_folder("foreign.h5");
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  make_dataset(file, "x", H5T_NATIVE_FLOAT, 1, &four, H5P_DEFAULT);
  H5Fclose(file);
  assert_refused(path, "not one of Keras'");
}

/* Damage anywhere in the metadata: an error or the right structure, never a crash or a hang of this
 * process. */
static void mutated(void **state)
{
  (void)state;
  static const char *const layers[] = {"a", "b", "c"};
  tp_error err;
  tp__tensors a = {0};
  for (size_t i = 0; i < 3; i++) {
    char name[32];
    snprintf(name, sizeof name, "%s/kernel", layers[i]);
    add_counting(&a, name, 2, (const int64_t[]){2, 2}, 0);
  }
  const char *path = in_test_folder("sound.h5");
  assert_ok(tp__weights_write_h5(path, &a, layers, 3, &err));
  tp__tensors_free(&a);
  tp__buffer b;
  tp__buffer_init(&b, 1 << 20);
  assert_ok(tp__file_read(path, &b, &err));
  int refused = 0;
  for (uint64_t round = 0; round < 150; round++) {
    uint8_t *copy = malloc(b.size);
    memcpy(copy, b.data, b.size);
    tp__key key = tp__key_of(7, 0, round);
    for (uint64_t k = 0; k < 4; k++)
      copy[8 + tp__below(key, 1, k, b.size - 8)] = (uint8_t)tp__below(key, 2, k, 256);
    const char *changed = put_file("mutated.h5", copy, b.size);
    tp_status status = tp__weights_read(changed, &a, NULL, NULL, &err);
    if (status != TP_OK && status != TP_ERR_DATA) fail_msg("round %d: %s", (int)round, err.text);
    refused += status != TP_OK;
    tp__tensors_free(&a);
    free(copy);
  }
  assert_true(refused > 5);
  tp__buffer_free(&b);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_thousand_layers),
      cmocka_unit_test(two_thousand_weights_in_a_layer),
      cmocka_unit_test(names_as_keras_has_them),
      cmocka_unit_test(what_cannot_be_written),
      cmocka_unit_test(outside_the_file),
      cmocka_unit_test(odd_datasets),
      cmocka_unit_test(names_collide),
      cmocka_unit_test(slashes_in_names_of_layers),
      cmocka_unit_test(compressed),
      cmocka_unit_test(other_hdf5),
      cmocka_unit_test(deleted_file),
      cmocka_unit_test(mutated),
  };
  return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
