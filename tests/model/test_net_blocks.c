/* test_net_blocks - every layer of every network gives the numbers of Keras.
 *
 * Expected: keras_blocks.txt.gz, written by Keras 3.15.1 through tests/ref/keras_blocks.py: small
 * pictures, also of odd sizes, and weights that are functions of their names and positions, made
 * here by the same rule, so that the file holds a few numbers of each layer only. Each network runs
 * by the fast kernels three times: with every layer fetched, with the ends of blocks fetched, with
 * nothing but the probabilities, since what is fetched decides what is fused; and the ends
 * of blocks once by the plain loops.
 */
#include <math.h>

#include "fixture.h"
#include "net_rig.h"

enum { SECTIONS = 17, SAMPLES = 4, LAYERS_MAX = 1024 };

/* Share of a layer's largest absolute value that a number of it may be away. */
static const double share = 1e-4;

/* ---- weights and pixels ---- */

static uint32_t start_of(const char *name)
{
  uint32_t h = 0x811c9dc5u;
  for (; *name != '\0'; name++) h = (h ^ (unsigned char)*name) * 0x01000193u;
  return h;
}

static uint32_t draw(uint32_t start, size_t i)
{
  uint32_t x = start + (uint32_t)i * 0x9e3779b9u;
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return x ^ x >> 16;
}

static void limits(const char *variable, const tp__shape *s, double limit[2])
{
  static const struct {
    const char *name;
    double low, high;
  } known[] = {{"gamma", 0.5, 1.5},           {"beta", -0.2, 0.2}, {"moving_mean", -0.2, 0.2},
               {"moving_variance", 0.5, 1.5}, {"bias", -0.2, 0.2}, {"mean", 0.3, 0.6},
               {"variance", 0.04, 0.06}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(variable, known[i].name) == 0) {
      limit[0] = known[i].low;
      limit[1] = known[i].high;
      return;
    }
  assert_string_equal(variable, "kernel");
  int64_t fan_in = s->rank == 2    ? s->dim[0]
                   : s->dim[3] > 1 ? s->dim[0] * s->dim[1] * s->dim[2]
                                   : s->dim[0] * s->dim[1];
  limit[1] = sqrt((s->rank == 4 ? 4.0 : 0.16) / (double)fan_in);
  limit[0] = -limit[1];
}

static void fill(tp__tensor *t, const char *network)
{
  if (t->dtype != TP__F32) return;
  double limit[2];
  limits(strrchr(t->name, '/') + 1, &t->shape, limit);
  if (strcmp(network, "resnet50") == 0 && strcmp(t->name, "conv1_conv/kernel") == 0)
    for (int i = 0; i < 2; i++)
      limit[i] /= 64; /* its pixels are hundreds, where others' are ones */
  float *w = t->data;
  size_t n = tp__shape_elements(&t->shape, 0);
  uint32_t start = start_of(t->name);
  for (size_t i = 0; i < n; i++)
    w[i] = (float)(limit[0] + (limit[1] - limit[0]) * (draw(start, i) / 4294967296.0));
}

static float *make_pixels(const tp__model_spec *spec)
{
  size_t n = (size_t)spec->height * (size_t)spec->width * 3;
  float *pixels = calloc(n, sizeof *pixels);
  assert_non_null(pixels);
  uint32_t start = start_of("pixels");
  for (size_t i = 0; i < n; i++) pixels[i] = (float)(draw(start, i) >> 24);
  return pixels;
}

/* ---- one section of the fixture ---- */

typedef struct wanted {
  char name[128];
  double largest, sample[SAMPLES];
} wanted;

typedef struct section {
  tp__model_spec spec;
  char name[64];
  int n_layers;
  wanted layer[LAYERS_MAX];
} section;

enum fetched { EVERY_LAYER, BLOCKS, LAST };

/* Ends of blocks: nothing that a convolution could be fused with comes after. */
static bool wants(const tp__net *net, int layer, enum fetched what)
{
  if (layer == net->n_layers - 1 || what == EVERY_LAYER) return true;
  const char *class_name = net->layer[layer].class_name;
  return what == BLOCKS &&
         (strcmp(class_name, "Add") == 0 || strstr(class_name, "Pooling") != NULL);
}

static void check_layer(worst *w, const section *s, int layer, const float *mine, size_t size,
                        const char *how)
{
  const wanted *l = &s->layer[layer];
  uint32_t start = start_of(l->name);
  char what[256];
  snprintf(what, sizeof what, "%s %dx%d, %s: %s", s->name, s->spec.height, s->spec.width, how,
           l->name);
  float largest_mine = (float)largest(mine, size), largest_wanted = (float)l->largest;
  compare(w, what, &largest_mine, &largest_wanted, 1, share * l->largest);
  for (int k = 0; k < SAMPLES; k++) {
    float sample = (float)l->sample[k];
    compare(w, what, &mine[draw(start, (size_t)k) % size], &sample, 1, share * l->largest);
  }
}

/* The network and its weights on the device; every run builds the network anew and takes them. */
static rig make_rig(const section *s)
{
  tp_error err = {0};
  rig r = {0};
  assert_ok(tp__net_build(&s->spec, false, &r.net, &err));
  for (int i = 0; i < r.net->n_parameters; i++) {
    const tp__parameter *p = &r.net->parameter[i];
    tp__tensor *t = NULL;
    assert_ok(tp__tensors_add(&r.weights, p->name, p->dtype, &p->shape, &t, &err));
    fill(t, s->name);
  }
  rig_start(&r);
  return r;
}

static void run(rig *r, const section *s, enum fetched what, bool reference, worst *w)
{
  static const char *const how[] = {"every layer", "blocks", "last"};
  tp_error err = {0};
  tp__net_free(r->net);
  assert_ok(tp__net_build(&s->spec, false, &r->net, &err));
  assert_int_equal(s->n_layers, r->net->n_layers);
  int layer[LAYERS_MAX], n = 0;
  for (int i = 0; i < r->net->n_layers; i++) {
    assert_string_equal(s->layer[i].name, r->net->layer[i].name);
    if (!wants(r->net, i, what)) continue;
    rig_output(r, r->net->layer[i].name, r->net->layer[i].value);
    layer[n++] = i;
  }
  float *pixels = make_pixels(&s->spec), **mine = calloc((size_t)n, sizeof *mine);
  size_t *size = calloc((size_t)n, sizeof *size);
  assert_true(mine != NULL && size != NULL);
  rig_run(r, reference, pixels, 1, mine, size);
  for (int i = 0; i < n; i++) {
    check_layer(w, s, layer[i], mine[i], size[i], reference ? "plain loops" : how[what]);
    free(mine[i]);
  }
  free(mine);
  free(size);
  free(pixels);
}

static void check_section(const section *s, worst *w)
{
  rig r = make_rig(s);
  run(&r, s, EVERY_LAYER, false, w);
  run(&r, s, BLOCKS, false, w);
  run(&r, s, LAST, false, w);
  run(&r, s, BLOCKS, true, w);
  rig_free(&r);
}

/* ---- the fixture ---- */

static void read_layer(section *s, const char *line)
{
  assert_true(s->n_layers < LAYERS_MAX);
  wanted *l = &s->layer[s->n_layers++];
  assert_int_equal(sscanf(line, "%127s %lf %lf %lf %lf %lf", l->name, &l->largest, &l->sample[0],
                          &l->sample[1], &l->sample[2], &l->sample[3]),
                   2 + SAMPLES);
  assert_true(l->largest > 0);
}

static void layers_give_keras_numbers(void **state)
{
  (void)state;
  char *text = read_fixture("keras_blocks.txt.gz"), *rest = NULL;
  section *s = calloc(1, sizeof *s);
  assert_non_null(s);
  worst w = {0};
  size_t sections = 0;
  for (char *line = strtok_r(text, "\n", &rest); line != NULL;) {
    *s = (section){.spec.name = s->name};
    assert_int_equal(sscanf(line, "model %63s %d %d %d", s->name, &s->spec.height, &s->spec.width,
                            &s->spec.classes),
                     4);
    s->spec.dropout = tp__model_dropout(s->name);
    while ((line = strtok_r(NULL, "\n", &rest)) != NULL && strncmp(line, "model ", 6) != 0)
      read_layer(s, line);
    check_section(s, &w);
    sections++;
  }
  assert_int_equal(sections, SECTIONS);
  report(&w, w.compared);
  free(s);
  free(text);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers_give_keras_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
