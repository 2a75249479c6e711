/* doctor - see doctor.h */
#include "doctor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rounding grows along the layers: these are some ten times what healthy networks show. */
static const double TOLERANCE = 2e-3, TOLERANCE_BF16 = 0.1;

/* One layer's output, from the plain loops and from the patient. */
struct probe {
  const char *layer;
  tp__shape shape;
  float *plain, *other;
};

struct ward {
  const tp__doctor_options *options;
  tp__net *net;
  struct probe *probe;
  size_t n_probes;
  float *pixels;
};

/* Colours that vary smoothly over the picture, with noise on them: flat pictures hide faults of
 * borders and strides. */
static tp_status make_pixels(struct ward *w, tp_error *err)
{
  int height = w->options->spec->height, width = w->options->spec->width;
  size_t per_image = (size_t)height * (size_t)width * 3;
  w->pixels = tp__calloc((size_t)w->options->batch * per_image, sizeof *w->pixels, err);
  if (w->pixels == NULL) return TP_ERR_INTERNAL;
  for (int n = 0; n < w->options->batch; n++) {
    tp__key key = tp__key_of(1, 0, (uint64_t)n);
    float wave = 1 + 5 * tp__uniform(key, TP__DRAW_PICTURE, 0);
    float *p = w->pixels + (size_t)n * per_image;
    for (uint32_t i = 0; i < per_image; i++) {
      float x = (float)(i / 3 % (uint32_t)width) / (float)width;
      float y = (float)(i / 3 / (uint32_t)width) / (float)height;
      float smooth = 0.5f + 0.3f * sinf(6.2831853f * (wave * x + y + 0.3f * (float)(i % 3)));
      float noise = 0.2f * (tp__uniform(key, TP__DRAW_PICTURE, i + 1) - 0.5f);
      p[i] = floorf(255 * (smooth + noise));
    }
  }
  return TP_OK;
}

/* Every layer's value becomes an output, once (dropout at rest gives what it reads). */
static tp_status make_probes(struct ward *w, tp_error *err)
{
  tp__net *net = w->net;
  w->probe = tp__calloc((size_t)net->n_layers, sizeof *w->probe, err);
  if (w->probe == NULL) return TP_ERR_INTERNAL;
  for (int i = 0; i < net->n_layers; i++) {
    const tp__layer *l = &net->layer[i];
    bool seen = l->value == net->pixels;
    for (int k = 0; k < i; k++) seen |= net->layer[k].value == l->value;
    if (seen) continue;
    struct probe *p = &w->probe[w->n_probes++];
    p->layer = l->name;
    p->shape = net->graph->node[l->value].shape;
    size_t count = tp__shape_elements(&p->shape, w->options->batch);
    p->plain = tp__calloc(count, sizeof *p->plain, err);
    p->other = tp__calloc(count, sizeof *p->other, err);
    if (p->plain == NULL || p->other == NULL) return TP_ERR_INTERNAL;
    TP__TRY(tp__graph_output(net->graph, l->name, l->value, err));
  }
  return TP_OK;
}

/* A device keeps f32 only. */
static tp_status make_state(struct ward *w, tp__backend *backend, tp__state **state, tp_error *err)
{
  const tp__tensors *all = w->options->weights;
  tp__tensors floats = {.item = tp__calloc(all->count, sizeof *floats.item, err)};
  if (floats.item == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < all->count; i++)
    if (all->item[i].dtype == TP__F32) floats.item[floats.count++] = all->item[i];
  tp_status status = backend->state_new(backend, &floats, state, err);
  free(floats.item);
  return status;
}

static tp_status run_on(struct ward *w, tp__backend *backend, bool plain, bool bf16, tp_error *err)
{
  tp__state *state = NULL;
  tp__program *program = NULL;
  tp__fetch *fetch = tp__calloc(w->n_probes, sizeof *fetch, err);
  if (fetch == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < w->n_probes; i++)
    fetch[i] = (tp__fetch){w->probe[i].layer, plain ? w->probe[i].plain : w->probe[i].other};
  tp__compile_options options = {
      .batch = w->options->batch, .reference = plain, .bf16 = bf16, .accumulate = 1};
  tp__feed feed = {"pixels", w->pixels};
  tp_status status = make_state(w, backend, &state, err);
  if (status == TP_OK)
    status = backend->compile(backend, w->net->graph, state, &options, &program, err);
  if (status == TP_OK)
    status = backend->run(program, &feed, 1, fetch, w->n_probes, w->options->batch, err);
  if (program != NULL) backend->program_free(program);
  if (state != NULL) backend->state_free(state);
  free(fetch);
  return status;
}

/* The largest difference, relative to the layer's largest value; infinite where only one of the two
 * is a number. */
static double difference(const struct probe *p, int batch)
{
  size_t count = tp__shape_elements(&p->shape, batch);
  double largest = 0, scale = 1e-30;
  for (size_t i = 0; i < count; i++) {
    double a = (double)p->plain[i], d = fabs(a - (double)p->other[i]);
    if (isnan(d)) return INFINITY;
    if (d > largest) largest = d;
    if (fabs(a) > scale) scale = fabs(a);
  }
  return largest / scale;
}

static tp_status compare(const struct ward *w, const char *who, double tolerance, tp__buffer *text,
                         bool *agree, tp_error *err)
{
  double worst = 0;
  const char *where = "";
  char shape[96];
  for (size_t i = 0; i < w->n_probes; i++) {
    const struct probe *p = &w->probe[i];
    double d = difference(p, w->options->batch);
    if (d > tolerance) {
      *agree = false;
      return tp__buffer_printf(text, err,
                               "%s: DIFFERS, first at layer %s %s: by %.3g of its largest value\n",
                               who, p->layer, tp__shape_text(&p->shape, shape), d);
    }
    if (d >= worst) {
      worst = d;
      where = p->layer;
    }
  }
  return tp__buffer_printf(text, err,
                           "%s: agrees with the plain loops in all %zu layers, within %.2g of each "
                           "layer's largest value (%s)\n",
                           who, w->n_probes, worst, where);
}

static tp_status examine(struct ward *w, tp__backend *cpu, tp__backend *device, tp__buffer *text,
                         bool *agree, tp_error *err)
{
  char who[192];
  TP__TRY(make_pixels(w, err));
  TP__TRY(make_probes(w, err));
  TP__TRY(run_on(w, cpu, true, false, err));
  TP__TRY(run_on(w, cpu, false, false, err));
  snprintf(who, sizeof who, "cpu (%s)", cpu->device);
  TP__TRY(compare(w, who, TOLERANCE, text, agree, err));
  const bool bf16 = w->options->bf16;
  if (device == NULL || !(device->remote || bf16)) return TP_OK;
  tp_status status = run_on(w, device, false, bf16, err);
  if (status != TP_OK) return tp__at(err, status, "%s", device->name);
  snprintf(who, sizeof who, "%s (%s%s)", device->name, device->device,
           bf16 ? ", bfloat16 products" : "");
  return compare(w, who, bf16 ? TOLERANCE_BF16 : TOLERANCE, text, agree, err);
}

tp_status tp__doctor(const tp__job *job, tp__backend *device, const tp__doctor_options *options,
                     tp__buffer *text, bool *agree, tp_error *err)
{
  struct ward w = {.options = options};
  tp__backend *cpu = NULL;
  *agree = true;
  tp_status status = tp__net_build(options->spec, false, &w.net, err);
  if (status == TP_OK) status = tp__backend_cpu(job->pool, &cpu, err);
  if (status == TP_OK) status = examine(&w, cpu, device, text, agree, err);
  for (size_t i = 0; i < w.n_probes; i++) {
    free(w.probe[i].plain);
    free(w.probe[i].other);
  }
  free(w.probe);
  free(w.pixels);
  tp__net_free(w.net);
  if (cpu != NULL) cpu->free(cpu);
  return status;
}
