/* Proves that every format gives the same arrays, and that what is written reads back bit for bit.
 * Expected: ../shared/golden holds one network in three formats and a narrow one in five, written
 * by Keras 2, Keras 3 and the safetensors package (README there); ../shared/data/lite0/tensors.txt
 * lists PyTorch's names and shapes of the Lite0 file (found by TEPAL_LITE0 or in the cache folder;
 * skipped when it is in neither). TEPAL_GOLDEN names another folder of the same layout. */
#include "weights_testing.h"

static char unpacked[3][256];
enum { LEGACY, KERAS3, SAFETENSORS };

/* The golden folder, or NULL. Static memory. */
static const char *golden(void)
{
  static char path[1100];
  const char *set = getenv("TEPAL_GOLDEN"), *shared = shared_folder();
  if (set == NULL && shared == NULL) return NULL;
  snprintf(path, sizeof path, set != NULL ? "%s" : "%s/golden", set != NULL ? set : shared);
  return path;
}

#define need_golden()                                                                              \
  do {                                                                                             \
    if (golden() == NULL) need_shared();                                                           \
  } while (0)

static void unpack(void)
{
  static const char *const name[] = {"b0_notop.h5", "b0_notop.weights.h5", "b0_notop.safetensors"};
  for (size_t i = 0; i < 3 && unpacked[i][0] == '\0'; i++) {
    snprintf(unpacked[i], sizeof unpacked[i], "%s/%s", test_folder, name[i]);
    char *command = tp__format("xz -dc %s/%s.xz > %s", golden(), name[i], unpacked[i]);
    assert_int_equal(system(command), 0);
    free(command);
  }
}

static void read_into(const char *path, tp__tensors *set, const char *format)
{
  tp_error err;
  const char *found = NULL;
  assert_ok(tp__weights_read(path, set, &found, NULL, &err));
  assert_string_equal(found, format);
}

static void three_formats_of_b0(void **state)
{
  (void)state;
  need_golden();
  unpack();
  tp__tensors a = {0}, b = {0}, c = {0};
  read_into(unpacked[LEGACY], &a, "keras-h5");
  read_into(unpacked[KERAS3], &b, "keras-3");
  read_into(unpacked[SAFETENSORS], &c, "safetensors");
  assert_int_equal(a.count, 312);
  assert_same_tensors(&a, &b, NULL);
  assert_same_tensors(&a, &c, NULL);
  assert_string_equal(a.item[0].name,
                      "normalization/mean"); /* layer_names' order, not the links' */
  assert_string_equal(a.item[3].name, "stem_conv/kernel");
  assert_int_equal(tp__tensors_find(&a, "normalization/count")->dtype, TP__I64);
  tp__tensors_free(&a);
  tp__tensors_free(&b);
  tp__tensors_free(&c);
}

/* Weights in whole-model files, flat and nested, of Keras 2 and 3. The nested pair was trained
 * apart, by two Kerases: the head differs. */
static void whole_models(void **state)
{
  (void)state;
  need_golden();
  static const struct {
    const char *file, *format, *same_as, *except;
    size_t count;
  } cases[] = {
      {"narrow_top104.keras", "keras-3", "narrow_top104.h5", NULL, 200},
      {"narrow_top104_k3.h5", "keras-h5", "narrow_top104.h5", NULL, 200},
      {"narrow_nested104.keras", "keras-3", "narrow_nested104.h5", "head", 200},
      {"narrow_nested104.h5", "keras-h5", "narrow_nested104.keras", "head", 200},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tp__tensors a = {0}, b = {0};
    char *path = tp__format("%s/%s", golden(), cases[i].file);
    char *other = tp__format("%s/%s", golden(), cases[i].same_as);
    tp_error err;
    read_into(path, &a, cases[i].format);
    assert_ok(tp__weights_read(other, &b, NULL, NULL, &err));
    assert_int_equal(a.count, cases[i].count);
    assert_same_tensors(&a, &b, cases[i].except);
    assert_non_null(tp__tensors_find(&a, "block1a_dwconv/kernel"));
    tp__tensors_free(&a);
    tp__tensors_free(&b);
    free(path);
    free(other);
  }
}

static void written_and_read_back(void **state)
{
  (void)state;
  need_golden();
  unpack();
  tp_error err;
  tp__tensors a = {0}, b = {0}, c = {0};
  read_into(unpacked[LEGACY], &a, "keras-h5");
  const char *path = in_test_folder("copy.safetensors");
  assert_ok(tp__weights_write_safetensors(path, &a, "{\"note\":\"a \\\"quoted\\\" one\"}", &err));
  tp__buffer metadata = {0};
  const char *format = NULL;
  assert_ok(tp__weights_read(path, &b, &format, &metadata, &err));
  assert_same_tensors(&a, &b, NULL);
  assert_string_equal((char *)metadata.data, "{\"note\":\"a \\\"quoted\\\" one\"}");
  tp__buffer_free(&metadata);
  const char *layers[400];
  char names[400][64];
  size_t n = 0;
  for (size_t i = 0; i < a.count; i++) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(a.item[i].name, "/"), a.item[i].name);
    if (n > 0 && strcmp(name, names[n - 1]) == 0) continue;
    snprintf(names[n], sizeof names[n], "%s", name);
    layers[n] = names[n];
    n++;
  }
  path = in_test_folder("copy.h5");
  assert_ok(tp__weights_write_h5(path, &a, layers, n, &err));
  read_into(path, &c, "keras-h5");
  assert_same_tensors(&a, &c, NULL);
  for (size_t i = 0; i < a.count; i++) assert_string_equal(a.item[i].name, c.item[i].name);
  tp__tensors_free(&a);
  tp__tensors_free(&b);
  tp__tensors_free(&c);
}

/* A file cut anywhere is an error, never a shorter set. */
static void truncated_files(void **state)
{
  (void)state;
  need_golden();
  unpack();
  for (int which = 0; which < 3; which++)
    for (int i = 0; i < 4; i++) {
      tp_error err;
      tp__buffer b;
      tp__buffer_init(&b, 64 << 20);
      assert_ok(tp__file_read(unpacked[which], &b, &err));
      static const size_t eighths[] = {0, 1, 4, 7};
      size_t size = i == 0 ? 500 : b.size / 8 * eighths[i];
      const char *path = put_file("cut", b.data, size);
      tp__tensors set = {0};
      assert_int_equal(tp__weights_read(path, &set, NULL, NULL, &err), TP_ERR_DATA);
      assert_int_equal(set.count, 0);
      tp__buffer_free(&b);
    }
}

static char *lite0_path(void)
{
  const char *set = getenv("TEPAL_LITE0");
  char *folder = tp__cache_folder(NULL, NULL);
  char *path = set != NULL
                   ? tp__format("%s", set)
                   : tp__format("%s/efficientnet-lite0-57934424.pth", folder == NULL ? "" : folder);
  free(folder);
  if (tp__is_file(path)) return path;
  print_message(
      "skipped: no Lite0 file at %s (make demo fetches it; TEPAL_LITE0 names another place)\n",
      path);
  free(path);
  return NULL;
}

static void lite0_names_and_shapes(void **state)
{
  (void)state;
  need_shared();
  char *path = lite0_path();
  if (path == NULL) skip();
  tp__tensors torch = {0};
  read_into(path, &torch, "pytorch");
  char *list = tp__format("%s/data/lite0/tensors.txt", shared_folder());
  FILE *f = fopen(list, "re");
  assert_non_null(f);
  char line[256];
  size_t n = 0;
  for (; fgets(line, sizeof line, f) != NULL; n++) {
    char *shape = strchr(line, ' '), shown[96];
    assert_non_null(shape);
    *shape++ = '\0';
    shape[strcspn(shape, "\n")] = '\0';
    const tp__tensor *t = tp__tensors_find(&torch, line);
    if (t == NULL) fail_msg("%s is missing", line);
    assert_string_equal(tp__shape_text(&t->shape, shown), shape);
  }
  fclose(f);
  assert_int_equal(n, 296);
  assert_int_equal(torch.count, n);
  tp__tensors_free(&torch);
  free(list);
  free(path);
}

static void lite0_translated(void **state)
{
  (void)state;
  char *path = lite0_path();
  if (path == NULL) skip();
  static const struct {
    const char *torch, *keras;
    int rank;
    size_t from[4], to[4]; /* the same element's place */
  } cases[] = {
      {"_conv_stem.weight", "stem_conv/kernel", 4, {5, 2, 1, 0}, {1, 0, 2, 5}},
      {"_blocks.0._depthwise_conv.weight", "block1a_dwconv/kernel", 4, {7, 0, 2, 1}, {2, 1, 7, 0}},
      {"_blocks.15._project_conv.weight",
       "block7a_project_conv/kernel",
       4,
       {300, 1000, 0, 0},
       {0, 0, 1000, 300}},
      {"_blocks.8._bn1.running_var", "block5a_bn/moving_variance", 1, {11}, {11}},
      {"_blocks.14._bn0.bias", "block6d_expand_bn/beta", 1, {3}, {3}},
      {"_fc.weight", "predictions/kernel", 2, {999, 1279}, {1279, 999}},
      {"_fc.bias", "predictions/bias", 1, {17}, {17}},
  };
  tp_error err;
  tp__tensors torch = {0}, canonical = {0};
  read_into(path, &torch, "pytorch");
  assert_ok(tp__weights_from_torch_lite0(&torch, &canonical, &err));
  assert_int_equal(canonical.count, 247); /* 296 less 49 num_batches_tracked */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const tp__tensor *a = tp__tensors_find(&torch, cases[i].torch);
    const tp__tensor *b = tp__tensors_find(&canonical, cases[i].keras);
    if (a == NULL || b == NULL) fail_msg("%s or %s is missing", cases[i].torch, cases[i].keras);
    size_t x = 0, y = 0;
    for (int k = 0; k < cases[i].rank; k++) {
      x = x * (size_t)a->shape.dim[k] + cases[i].from[k];
      y = y * (size_t)b->shape.dim[k] + cases[i].to[k];
    }
    assert_true(((float *)a->data)[x] == ((float *)b->data)[y]);
  }
  tp__tensors_free(&torch);
  tp__tensors_free(&canonical);
  free(path);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(three_formats_of_b0),    cmocka_unit_test(whole_models),
      cmocka_unit_test(written_and_read_back),  cmocka_unit_test(truncated_files),
      cmocka_unit_test(lite0_names_and_shapes), cmocka_unit_test(lite0_translated),
  };
  return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
