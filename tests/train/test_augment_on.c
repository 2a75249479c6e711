/* Proves that pictures which a training program mirrors and turns by itself are those that the
 * host makes (tp__image_finish, which is tested against Keras): the same bits on the CPU, in the
 * plain and in the planned executor; on devices of a PJRT plugin, which get bytes, within 0.01 of
 * 255, whatever the size, the fill and the angle. Hostile: pictures that are lines, fills over many
 * reflections, a constant that is no byte.
 */
#include <math.h>

#include "../backend/pjrt/pjrt_testing.h"
#include "../graph/building.h"
#include "backend/pjrt/pjrt.h"
#include "image/image.h"

enum { EXAMPLES = 7, MOST = 96 * 96 * 3 }; /* 7 of 2 x 4: the last row is padding */

static const struct looks {
  int h, w;
  bool flip;
  float rotate;
  tp__fill fill;
  float value;
} cases[] = {
    {48, 64, true, 0.1f, TP__FILL_REFLECT, 0},      {96, 96, true, 0.125f, TP__FILL_REFLECT, 0},
    {33, 70, true, 0.125f, TP__FILL_CONSTANT, 200}, {40, 40, false, 0.1f, TP__FILL_CONSTANT, 0.5f},
    {64, 31, true, 0.05f, TP__FILL_NEAREST, 0},     {32, 32, true, 0, TP__FILL_REFLECT, 0},
    {2, 90, false, 0.125f, TP__FILL_REFLECT, 0},    {90, 1, true, 0.125f, TP__FILL_REFLECT, 0},
    {50, 50, true, 0.001f, TP__FILL_REFLECT, 0},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static struct {
  uint8_t rgb[EXAMPLES][MOST];
  float pixels[EXAMPLES * MOST], wanted[EXAMPLES * MOST], made[EXAMPLES * MOST];
  uint32_t keys[EXAMPLES * 2];
} shared;

/* Noise, so that a place that is a little off shows; the host's answer. */
static size_t make_pictures(const struct looks *l)
{
  tp_error err = {0};
  tp__image_scratch scratch = {0};
  const tp__image_recipe recipe = {.height = l->h,
                                   .width = l->w,
                                   .flip = l->flip,
                                   .rotate = l->rotate,
                                   .fill = l->fill,
                                   .fill_value = l->value};
  const size_t values = (size_t)l->h * (size_t)l->w * 3;
  assert_true(values <= MOST);
  for (size_t i = 0; i < EXAMPLES; i++) {
    tp__key key = tp__key_of(5, 2, i);
    memcpy(&shared.keys[2 * i], key.word, sizeof key.word);
    for (size_t k = 0; k < values; k++) {
      shared.rgb[i][k] = (uint8_t)(256 * tp__uniform(key, TP__DRAW_PICTURE, (uint32_t)k));
      shared.pixels[i * values + k] = shared.rgb[i][k];
    }
    assert_ok(tp__image_finish(&recipe, shared.rgb[i], l->h, l->w, true, key, &scratch,
                               shared.wanted + i * values, &err));
  }
  tp__image_scratch_free(&scratch);
  return values;
}

static tp__graph *make_graph(const struct looks *l)
{
  char dims[32];
  tp__graph *g = new_graph();
  snprintf(dims, sizeof dims, "N,%d,%d,3", l->h, l->w);
  tp__value x = input(g, "pixels", dims), keys = typed_input(g, "keys", TP__U32, "N,2");
  if (l->flip) x = NODE(g, RANDOM_FLIP, (0), x, keys);
  if (l->rotate > 0)
    x = NODE(g, RANDOM_ROTATION, (.f = {l->rotate, l->value}, .fill = l->fill), x, keys);
  output(g, "made", x);
  return g;
}

/* The largest difference from the host's. */
static double run(tp__backend *backend, const struct looks *l, tp__compile_options options)
{
  tp_error err = {0};
  tp__graph *g = make_graph(l);
  tp__state *state = NULL;
  tp__program *program = NULL;
  const size_t values = make_pictures(l);
  static uint8_t bytes[EXAMPLES * MOST];
  for (size_t i = 0; i < EXAMPLES; i++) memcpy(bytes + i * values, shared.rgb[i], values);
  options.batch = EXAMPLES;
  assert_ok(backend->state_new(backend, &(tp__tensors){0}, &state, &err));
  assert_ok(backend->compile(backend, g, state, &options, &program, &err));
  const void *pixels = options.byte_input != NULL ? (const void *)bytes : shared.pixels;
  const tp__feed feed[] = {{"pixels", pixels}, {"keys", shared.keys}};
  memset(shared.made, 0, sizeof shared.made);
  assert_ok(backend->run(program, feed, 2, &(tp__fetch){"made", shared.made}, 1, EXAMPLES, &err));
  double worst = 0;
  for (size_t k = 0; k < EXAMPLES * values; k++)
    worst = fmax(worst, fabs((double)shared.made[k] - (double)shared.wanted[k]));
  backend->program_free(program);
  backend->state_free(state);
  tp__graph_free(g);
  return worst;
}

static void same_bits_on_the_cpu(void **unused)
{
  (void)unused;
  tp_error err = {0};
  tp__pool *pool = NULL;
  tp__backend *cpu = NULL;
  assert_ok(tp__pool_new(2, &pool, &err));
  assert_ok(tp__backend_cpu(pool, &cpu, &err));
  for (size_t c = 0; c < CASES; c++)
    for (int plain = 0; plain < 2; plain++)
      if (run(cpu, &cases[c], (tp__compile_options){.reference = plain == 1}) != 0)
        fail_msg("case %zu differs", c);
  cpu->free(cpu);
  tp__pool_free(pool);
}

static void near_on_devices(void **unused)
{
  (void)unused;
  tp_error err = {0};
  const char *plugin = NULL;
  tp__backend *devices = NULL;
  need_plugin(plugin, PJRT_CPU_106);
  tp__pjrt_options o = {.plugin = plugin, .kind = TP__CLASS_CPU, .replicas = 2};
  assert_ok(tp__backend_pjrt(&o, &devices, &err));
  for (size_t c = 0; c < CASES; c++)
    for (int bytes = 0; bytes < 2; bytes++) {
      const tp__compile_options how = {.byte_input = bytes == 1 ? "pixels" : NULL};
      double worst = run(devices, &cases[c], how);
      double most = cases[c].rotate > 0 ? 0.01 : 0;
      if (!(worst <= most)) fail_msg("case %zu, bytes %d: differs by %g", c, bytes, worst);
    }
  devices->free(devices);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_on_the_cpu),
                                     cmocka_unit_test(near_on_devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
