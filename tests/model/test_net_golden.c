/* test_net_golden - EfficientNet-B0 gives the numbers of Keras, layer by layer.
 *
 * Expected: ../shared/golden (Keras 3.15.1 and tf_keras 2.21 on eight photos; its README has the
 * tolerances used here). Every layer is checked for one photo by the plain loops; every block's
 * output, and the network with nothing but its result fetched, for all eight by the fast kernels;
 * small networks with a head from every file format that Keras writes.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "model/weights.h"
#include "net_rig.h"
#include "npz.h"

enum { PHOTOS = 8, SIDE = 192 };

/* Skips without the golden folder; one that was named must be there. */
#define need_golden()                                                                              \
  do {                                                                                             \
    if (getenv("TEPAL_GOLDEN") == NULL) need_shared();                                             \
  } while (0)

/* Share of the largest absolute value that a layer's output may be away (golden README). */
static double share_of(const char *layer)
{
  return strcmp(layer, "stem_activation") == 0 ? 5e-6 : 1e-4;
}

/* ---- golden files ---- */

static npz *open_golden(const char *name)
{
  const char *path = golden_file(name);
  if (path == NULL) fail_msg("no %s in the golden folder", name);
  return npz_open(path);
}

/* The eight photos as floats; caller frees. */
static float *photos(void)
{
  npz *z = open_golden("images8.npz");
  npz_shape shape;
  const uint8_t *rgb = npz_u1(z, "rgb", &shape);
  assert_int_equal(shape.count, PHOTOS * SIDE * SIDE * 3);
  float *pixels = calloc(shape.count, sizeof *pixels);
  assert_non_null(pixels);
  for (size_t i = 0; i < shape.count; i++) pixels[i] = rgb[i];
  npz_close(z);
  return pixels;
}

/* Reads a weight file into the rig's weights; a head of another name becomes "predictions". */
static void load(rig *r, const char *path)
{
  tp_error err = {0};
  tp__tensors file = {0}, renamed = {0};
  assert_ok(tp__weights_read(path, &file, NULL, NULL, &err));
  for (size_t i = 0; i < file.count; i++) {
    const tp__tensor *t = &file.item[i];
    char name[256];
    bool head = strncmp(t->name, "head/", 5) == 0;
    snprintf(name, sizeof name, "%s%s", head ? "predictions" : "", head ? t->name + 4 : t->name);
    tp__tensor *copy = NULL;
    assert_ok(tp__tensors_add(&renamed, name, t->dtype, &t->shape, &copy, &err));
    memcpy(copy->data, t->data, tp__tensor_bytes(t));
  }
  rig_match(r, &renamed, path);
  tp__tensors_free(&file);
  tp__tensors_free(&renamed);
}

/* B0 without top with the golden weights, which are stored compressed by xz. */
static rig golden_b0(bool official)
{
  rig r = rig_new(&(tp__model_spec){.name = "efficientnet-b0",
                                    .height = SIDE,
                                    .width = SIDE,
                                    .official_preprocessing = official});
  const char *packed = golden_file("b0_notop.safetensors.xz");
  if (packed == NULL) fail_msg("no b0_notop.safetensors.xz in the golden folder");
  char folder[] = "/tmp/tepal-golden-XXXXXX", path[64], command[1400];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/b0.safetensors", folder);
  snprintf(command, sizeof command, "xz -dc '%s' > '%s'", packed, path);
  if (system(command) != 0) fail_msg("%s failed", command);
  load(&r, path);
  unlink(path);
  rmdir(folder);
  rig_start(&r);
  return r;
}

/* ---- EfficientNet-B0 ---- */

/* All 236 layers behind the input, photo 0, plain loops: 32 samples of each; blocks' outputs whole.
 */
static void every_layer_by_plain_loops(void **state)
{
  (void)state;
  need_golden();
  enum { SAMPLES = 32 };
  npz *z = open_golden("forward.npz");
  rig r = golden_b0(false);
  npz_shape names, shape;
  npz_get(z, "layers:names", &names, NULL);
  assert_int_equal(names.count, r.net->n_layers - 1);
  for (int i = 1; i < r.net->n_layers; i++) {
    assert_string_equal(r.net->layer[i].name, npz_string(z, "layers:names", (size_t)i - 1));
    rig_output(&r, r.net->layer[i].name, r.net->layer[i].value);
  }
  float *pixels = photos(), **mine = calloc(names.count, sizeof *mine);
  size_t *size = calloc(names.count, sizeof *size);
  rig_run(&r, true, pixels, 1, mine, size);

  const float *samples = npz_f4(z, "layers:samp", &shape);
  worst w = {0};
  size_t whole = 0;
  for (size_t i = 0; i < names.count; i++) {
    const char *name = r.net->graph->output[i].name;
    float some[SAMPLES];
    for (size_t k = 0; k < SAMPLES; k++)
      some[k] =
          mine[i][size[i] < SAMPLES ? (k < size[i] ? k : size[i] - 1) : k * size[i] / SAMPLES];
    size_t n = size[i] < SAMPLES ? size[i] : SAMPLES;
    double allowed = share_of(name) * largest(mine[i], size[i]);
    compare(&w, name, some, samples + i * SAMPLES, n, allowed);
    char full[64];
    snprintf(full, sizeof full, "full0:%s", name);
    if (!npz_has(z, full)) continue;
    const float *all = npz_f4(z, full, &shape);
    assert_int_equal(shape.count, size[i]);
    compare(&w, full, mine[i], all, size[i], share_of(name) * largest(all, size[i]));
    whole++;
  }
  assert_int_equal(whole, 18);
  report(&w, names.count + whole);
  for (size_t i = 0; i < names.count; i++) free(mine[i]);
  free(mine);
  free(size);
  free(pixels);
  rig_free(&r);
  npz_close(z);
}

/* One block's output [8,H,W,C] against 256 samples and the channel means of each photo. */
static void compare_block(worst *w, npz *z, const char *name, const float *mine, size_t size)
{
  enum { SAMPLES = 256 };
  char array[64];
  npz_shape shape;
  snprintf(array, sizeof array, "samp:%s", name);
  const float *samples = npz_f4(z, array, &shape);
  assert_int_equal(shape.count, PHOTOS * SAMPLES);
  double allowed = share_of(name) * largest(samples, shape.count);
  for (size_t p = 0; p < PHOTOS; p++)
    for (size_t k = 0; k < SAMPLES; k++)
      compare(w, array, mine + p * size + k * size / SAMPLES, samples + p * SAMPLES + k, 1,
              allowed);
  snprintf(array, sizeof array, "chmean:%s", name);
  const float *means = npz_f4(z, array, &shape);
  size_t c = shape.size[1];
  for (size_t p = 0; p < PHOTOS; p++)
    for (size_t k = 0; k < c; k++) {
      double sum = 0;
      for (size_t i = k; i < size; i += c) sum += (double)mine[p * size + i];
      float mean = (float)(sum / (double)(size / c));
      compare(w, array, &mean, means + p * c + k, 1, allowed);
    }
}

static void every_block_by_fast_kernels(void **state)
{
  (void)state;
  need_golden();
  npz *z = open_golden("forward.npz");
  rig r = golden_b0(false);
  size_t blocks = 0;
  for (int i = 0; i < r.net->n_layers; i++) {
    char array[64];
    snprintf(array, sizeof array, "samp:%s", r.net->layer[i].name);
    if (!npz_has(z, array)) continue;
    rig_output(&r, r.net->layer[i].name, r.net->layer[i].value);
    blocks++;
  }
  assert_int_equal(blocks, 18);
  float *pixels = photos(), *mine[18];
  size_t size[18];
  rig_run(&r, false, pixels, PHOTOS, mine, size);
  worst w = {0};
  for (size_t i = 0; i < blocks; i++)
    compare_block(&w, z, r.net->graph->output[i].name, mine[i], size[i]);
  report(&w, w.compared);
  for (size_t i = 0; i < blocks; i++) free(mine[i]);
  free(pixels);
  rig_free(&r);
  npz_close(z);
}

static tp__value pooled(rig *r)
{
  tp_error err = {0};
  tp__value value = TP__NONE;
  assert_ok(
      tp__graph_add(r->net->graph, TP__OP_GLOBAL_POOL, &r->net->features, 1, NULL, &value, &err));
  return value;
}

/* The crop of 32 x 32 pixels at the top left of [8,192,192,3]. */
static void compare_crop(worst *w, const char *what, const float *mine, const float *wanted,
                         double allowed)
{
  for (size_t p = 0; p < PHOTOS; p++)
    for (size_t y = 0; y < 32; y++)
      compare(w, what, mine + (p * SIDE + y) * SIDE * 3, wanted + (p * 32 + y) * 32 * 3, 32 * 3,
              allowed);
}

/* What enters the stem and the pooled features, in both kinds of preprocessing; nothing else is
 * fetched, so that everything is fused that can be. */
static void both_preprocessings(void **state)
{
  (void)state;
  need_golden();
  static const struct {
    bool official;
    const char *layer, *crop, *pooled;
    double crop_allowed, pooled_share;
  } cases[] = {
      {false, "normalization", "stem_input_crop", "pooled", 2e-6, 1e-4},
      {true, "rescaling_1", "imagenet_stem_input_crop", "imagenet_pooled", 5e-6, 2e-4},
  };
  npz *z = open_golden("forward.npz");
  float *pixels = photos();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    npz_shape shape;
    worst w = {0};
    float *mine = NULL;
    size_t size = 0;
    rig r = golden_b0(cases[i].official);
    rig_output(&r, "pooled", pooled(&r));
    rig_run(&r, false, pixels, PHOTOS, &mine, &size);
    const float *wanted = npz_f4(z, cases[i].pooled, &shape);
    assert_int_equal(shape.count, PHOTOS * size);
    compare(&w, cases[i].pooled, mine, wanted, shape.count,
            cases[i].pooled_share * largest(wanted, shape.count));
    free(mine);
    rig_free(&r);

    r = golden_b0(cases[i].official);
    rig_output(&r, "crop", r.net->layer[tp__net_find(r.net, cases[i].layer)].value);
    rig_run(&r, false, pixels, PHOTOS, &mine, &size);
    compare_crop(&w, cases[i].crop, mine, npz_f4(z, cases[i].crop, NULL), cases[i].crop_allowed);
    report(&w, 1 + PHOTOS * 32);
    free(mine);
    rig_free(&r);
  }
  free(pixels);
  npz_close(z);
}

/* ---- narrow models with a head, in every format that Keras writes ---- */

static void narrow_models(void **state)
{
  (void)state;
  need_golden();
  static const struct {
    const char *file, *expected;
  } cases[] = {
      {"narrow_top104.keras", "probs_flat"},      {"narrow_top104_k3.h5", "probs_flat"},
      {"narrow_top104.h5", "probs_flat_k2"},      {"narrow_nested104.keras", "probs_nested"},
      {"narrow_nested104.h5", "probs_nested_k2"},
  };
  enum { CASES = sizeof cases / sizeof *cases };
  npz *z = open_golden("narrow_expected.npz");
  float *pixels = photos();
  worst w = {0};
  for (size_t i = 0; i < CASES; i++) {
    rig r = rig_new(&(tp__model_spec){.name = "efficientnet-b0",
                                      .height = SIDE,
                                      .width = SIDE,
                                      .classes = 104,
                                      .dropout = 0.2f,
                                      .width_coefficient = 0.25f,
                                      .depth_coefficient = 0.4f});
    const char *path = golden_file(cases[i].file);
    if (path == NULL) fail_msg("no %s in the golden folder", cases[i].file);
    load(&r, path);
    rig_start(&r);
    rig_output(&r, "probabilities", r.net->probabilities);
    npz_shape shape;
    const float *wanted = npz_f4(z, cases[i].expected, &shape);
    float *mine = NULL;
    size_t size = 0;
    rig_run(&r, false, pixels, PHOTOS, &mine, &size);
    assert_int_equal(shape.count, PHOTOS * size);
    compare(&w, cases[i].file, mine, wanted, shape.count, 1e-5);
    free(mine);
    rig_free(&r);
  }
  report(&w, CASES);
  free(pixels);
  npz_close(z);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_layer_by_plain_loops),
      cmocka_unit_test(every_block_by_fast_kernels),
      cmocka_unit_test(both_preprocessings),
      cmocka_unit_test(narrow_models),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
