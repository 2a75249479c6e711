/* model - the public tp_model: a network with weights that predicts; see tepal.h */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "image/image.h"
#include "model/weights_load.h"
#include "train/data_set.h"
#include "train/doctor.h"
#include "train/ensemble.h"
#include "train/export.h"
#include "train/phase_options.h"

enum { BATCH = 32 };

struct tp_model {
  tp_context *context; /* borrowed */
  tp__identity identity;
  tp__tensors weights;
  tp__learner *learner; /* NULL until the first prediction, and after the weights have changed */
  bool warned;          /* of pixels that look like 0...1 */
};

const char *const *tp_model_names(void)
{
  return tp__model_names(NULL);
}

int tp_model_size(const char *name)
{
  return tp__model_side(name);
}

/* ---- making, opening ---- */

static tp_status load(tp_model *m, const char *path, bool skip_head, tp_error *error)
{
  tp__net *net = NULL;
  TP__TRY(tp__net_build(&m->identity.spec, false, &net, error));
  tp_status status = tp__weights_load(path, net, &m->weights, skip_head, &m->context->log, error);
  tp__net_free(net);
  return status;
}

/* Fills *path with the file to load weights from for "imagenet", a file or "none" (NULL), fetching
 * a pretrained one; *pretrained: it is the network's official file, whose statistics are special.
 */
static tp_status find_weights(const tp_model *m, const char *weights, char **path, bool *pretrained,
                              tp_error *err)
{
  const char *name = m->identity.spec.name;
  if (strcmp(weights, "none") == 0) return TP_OK;
  if (strcmp(weights, "imagenet") == 0) {
    *pretrained = true;
    return tp_pretrained_get(m->context, name, path, err);
  }
  TP__TRY(tp__pretrained_recognize(weights, name, pretrained, err));
  *path = tp__strdup(weights, err);
  return *path == NULL ? TP_ERR_INTERNAL : TP_OK;
}

static tp_status fill_new(tp_model *m, const char *weights, uint64_t seed, tp_error *error)
{
  char *path = NULL;
  tp__net *net = NULL;
  bool pretrained = false;
  TP__TRY(find_weights(m, weights, &path, &pretrained, error));
  m->identity.spec.official_preprocessing =
      pretrained && tp__model_has_official(m->identity.spec.name);
  tp_status status = tp__net_build(&m->identity.spec, false, &net, error);
  if (status == TP_OK) status = tp__net_init(net, seed, &m->weights, error);
  tp__net_free(net);
  if (status == TP_OK && path != NULL) status = load(m, path, pretrained, error);
  free(path);
  return status;
}

tp_status tp_model_new(tp_context *context, const char *name, int height, int width, int classes,
                       const char *weights, uint64_t seed, tp_model **model, tp_error *error)
{
  tp_model *m = tp__calloc(1, sizeof *m, error);
  if (m == NULL) return TP_ERR_INTERNAL;
  m->context = context;
  m->identity.spec = (tp__model_spec){
      .name = tp__arena_strdup(&m->identity.arena, name),
      .height = height,
      .width = width,
      .classes = classes,
      .dropout = tp__model_dropout(name),
  };
  tp_status status = m->identity.spec.name == NULL ? tp__no_memory(error, strlen(name))
                                                   : fill_new(m, weights, seed, error);
  if (status == TP_OK)
    *model = m;
  else
    tp_model_free(m);
  return status;
}

tp_status tp_model_open(tp_context *context, const char *path, tp_model **model, tp_error *error)
{
  char *file = NULL;
  TP__TRY(tp__run_checkpoint(path, &file, error));
  tp_model *m = tp__calloc(1, sizeof *m, error);
  tp_status status = m == NULL ? TP_ERR_INTERNAL : TP_OK;
  if (status == TP_OK) {
    m->context = context;
    status = tp__checkpoint_read(file, &m->identity, NULL, &m->weights, NULL, NULL, error);
  }
  free(file);
  if (status == TP_OK)
    *model = m;
  else
    tp_model_free(m);
  return status;
}

void tp_model_free(tp_model *m)
{
  if (m == NULL) return;
  tp__learner_free(m->learner);
  tp__tensors_free(&m->weights);
  tp__identity_free(&m->identity);
  free(m);
}

tp_status tp_model_load(tp_model *m, const char *path, bool skip_mismatch, tp_error *error)
{
  bool pretrained = false;
  TP__TRY(tp__pretrained_recognize(path, m->identity.spec.name, &pretrained, error));
  TP__TRY(load(m, path, skip_mismatch, error));
  /* The statistics are now those of the file, and so is the graph that reads them. */
  m->identity.spec.official_preprocessing =
      pretrained && tp__model_has_official(m->identity.spec.name);
  tp__learner_free(m->learner);
  m->learner = NULL;
  return TP_OK;
}

tp_status tp_model_save(tp_model *m, const char *path, tp_error *error)
{
  return tp__export(path, &m->identity, &m->weights, error);
}

/* ---- describing ---- */

tp_status tp_model_summary(tp_model *m, char **text, tp_error *error)
{
  tp__net *net = NULL;
  tp__buffer b;
  tp__buffer_init(&b, (size_t)16 << 20);
  TP__TRY(tp__net_build(&m->identity.spec, false, &net, error));
  tp_status status = tp__net_summary(net, &m->identity.spec, &b, error);
  if (status == TP_OK) status = tp__buffer_add(&b, "", 1, error);
  tp__net_free(net);
  if (status == TP_OK)
    *text = (char *)b.data;
  else
    tp__buffer_free(&b);
  return status;
}

tp_status tp_model_plan(tp_model *m, int batch, int last_layers, bool batch_statistics,
                        const char *memory, char **text, tp_error *error)
{
  tp__learner_options o = {
      .spec = m->identity.spec,
      .last_n = last_layers,
      .batch_statistics = batch_statistics,
      .optimizer = {.kind = TP__OPTIMIZER_ADAM, .beta_1 = 0.9f, .beta_2 = 0.999f, .epsilon = 1e-7f},
      .batch = batch};
  tp__backend *backend = NULL;
  tp__learner *learner = NULL;
  tp__buffer b;
  tp__buffer_init(&b, (size_t)16 << 20);
  if (m->identity.spec.classes == 0)
    return tp__fail(error, TP_ERR_USAGE, "the model has no head: it cannot be trained");
  if (memory != NULL) TP__TRY(tp__bytes_parse("memory", memory, &o.memory_limit, error));
  TP__TRY(tp__context_backend(m->context, &backend, error));
  TP__TRY(tp__learner_new(backend, &o, &m->weights, NULL, &learner, error));
  tp_status status = tp__learner_plan(learner, &b, error);
  if (status == TP_OK) status = tp__buffer_add(&b, "", 1, error);
  tp__learner_free(learner);
  if (status == TP_OK)
    *text = (char *)b.data;
  else
    tp__buffer_free(&b);
  return status;
}

int tp_model_classes(const tp_model *m)
{
  return m->identity.spec.classes;
}

void tp_model_input(const tp_model *m, int *height, int *width)
{
  *height = m->identity.spec.height;
  *width = m->identity.spec.width;
}

const char *tp_model_label(const tp_model *m, int label)
{
  if (m->identity.labels == NULL || label < 0 || label >= m->identity.spec.classes) return NULL;
  return m->identity.labels[label];
}

/* ---- predicting ---- */

/* A picture whose largest value is 1 or less is black to a network that wants 0...255: most likely
 * it was divided by 255 already, and the network, which scales inside, would see nothing. */
static void warn_of_scaled(tp_model *m, const float *pixels, size_t count)
{
  float low = INFINITY, high = -INFINITY;
  for (size_t i = 0; i < count; i++) {
    if (pixels[i] < low) low = pixels[i];
    if (pixels[i] > high) high = pixels[i];
  }
  if (m->warned || !(high > 0 && high <= 1.0f)) return;
  m->warned = true;
  tp__warn(
      &m->context->log,
      "the pixels lie in %g...%g; the network wants 0...255 and scales them itself: give them as "
      "they are decoded",
      (double)low, (double)high);
}

static tp_status make_learner(tp_model *m, tp_error *error)
{
  if (m->learner != NULL) return TP_OK;
  if (m->identity.spec.classes == 0)
    return tp__fail(error, TP_ERR_USAGE, "the model has no head: it has no classes to predict");
  tp__learner_options o = {.spec = m->identity.spec, .batch = BATCH, .score_only = true};
  tp__backend *backend = NULL;
  TP__TRY(tp__context_backend(m->context, &backend, error));
  return tp__learner_new(backend, &o, &m->weights, NULL, &m->learner, error);
}

tp_status tp_model_predict(tp_model *m, const float *pixels, int64_t n, float *probabilities,
                           tp_error *error)
{
  TP__TRY(make_learner(m, error));
  size_t picture = (size_t)m->identity.spec.height * (size_t)m->identity.spec.width * 3;
  warn_of_scaled(m, pixels, (size_t)n * picture);
  for (int64_t i = 0; i < n; i += BATCH) {
    tp__batch b = {.n = n - i < BATCH ? n - i : BATCH, .pixels = pixels + (size_t)i * picture};
    TP__TRY(tp__learner_score(m->learner, &b, NULL, probabilities + i * m->identity.spec.classes,
                              NULL, error));
  }
  return TP_OK;
}

tp_status tp_model_predict_image(tp_model *m, const void *bytes, size_t size, float *probabilities,
                                 tp_error *error)
{
  const tp__model_spec *spec = &m->identity.spec;
  tp__image_recipe recipe = {
      .height = spec->height,
      .width = spec->width,
      .antialias = m->identity.antialias,
      .decode = {.accurate_dct = m->identity.accurate_dct, .exif_rotate = m->identity.exif_rotate}};
  if (m->identity.fast_decode) tp__image_recipe_decode_less(&recipe);
  tp__image_scratch scratch = {0};
  TP__TRY(make_learner(m, error));
  float *pixels = tp__calloc((size_t)spec->height * (size_t)spec->width, 3 * sizeof *pixels, error);
  tp_status status = pixels == NULL ? TP_ERR_INTERNAL
                                    : tp__image_prepare(&recipe, bytes, size, false,
                                                        (tp__key){{0, 0}}, &scratch, pixels, error);
  tp__batch b = {.n = 1, .pixels = pixels};
  if (status == TP_OK) status = tp__learner_score(m->learner, &b, NULL, probabilities, NULL, error);
  tp__image_scratch_free(&scratch);
  free(pixels);
  return status;
}

/* ---- checking ---- */

tp_status tp_model_check(tp_model *m, int batch, const char *precision, char **text, bool *agree,
                         tp_error *error)
{
  tp__backend *device = NULL;
  tp__buffer b;
  tp__doctor_options o = {.spec = &m->identity.spec, .weights = &m->weights, .batch = batch};
  if (batch < 1 || batch > 1024)
    return tp__fail(error, TP_ERR_USAGE, "batch: %d is out of range; wanted 1 to 1024", batch);
  TP__TRY(tp__precision_parse(precision, &o.bf16, error));
  TP__TRY(tp__context_backend(m->context, &device, error));
  tp__buffer_init(&b, (size_t)1 << 20);
  tp_status status = tp__doctor(&m->context->job, device, &o, &b, agree, error);
  if (status == TP_OK)
    *text = (char *)b.data; /* printf keeps a zero behind the text */
  else
    tp__buffer_free(&b);
  return status;
}
