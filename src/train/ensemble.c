/* ensemble - see ensemble.h */
#include "ensemble.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data_set.h"
#include "phase_options.h"

/* ---- views ---- */

static tp_status parse_turn(const char *text, float *turn, tp_error *err)
{
  char *end = NULL;
  double degrees = strtod(text, &end);
  if (end == text || (*end != '\0' && *end != ',') || !(degrees > 0 && degrees <= 180))
    return tp__fail(err, TP_ERR_USAGE, "tta: rotate=%s: wanted degrees above 0, up to 180", text);
  *turn = (float)(degrees / 360);
  return TP_OK;
}

tp_status tp__views_parse(const char *text, tp__view view[TP__VIEWS_MAX], int *n, tp_error *err)
{
  bool flip = false;
  float turn = 0;
  for (const char *at = text; at != NULL && *at != '\0';) {
    const char *comma = strchr(at, ',');
    size_t size = comma == NULL ? strlen(at) : (size_t)(comma - at);
    if (size == 4 && strncmp(at, "flip", 4) == 0)
      flip = true;
    else if (size > 7 && strncmp(at, "rotate=", 7) == 0)
      TP__TRY(parse_turn(at + 7, &turn, err));
    else
      return tp__fail(
          err, TP_ERR_USAGE,
          "tta: \"%s\" is not known; wanted flip, rotate=DEGREES, or flip,rotate=DEGREES", text);
    at = comma == NULL ? NULL : comma + 1;
  }
  const float turns[] = {0, turn, -turn};
  *n = 0;
  for (int t = 0; t < (turn > 0 ? 3 : 1); t++) {
    view[(*n)++] = (tp__view){.turn = turns[t]};
    if (flip) view[(*n)++] = (tp__view){.flip = true, .turn = turns[t]};
  }
  return TP_OK;
}

/* ---- opening ---- */

tp_status tp__run_checkpoint(const char *run, char **path, tp_error *err)
{
  static const char *const file[] = {"best.safetensors", "last.safetensors"};
  if (tp__is_file(run)) {
    *path = tp__strdup(run, err);
    return *path == NULL ? TP_ERR_INTERNAL : TP_OK;
  }
  for (int i = 0; i < 2; i++) {
    char *candidate = tp__format("%s/%s", run, file[i]);
    if (candidate == NULL) return tp__no_memory(err, strlen(run));
    if (tp__is_file(candidate)) {
      *path = candidate;
      return TP_OK;
    }
    free(candidate);
  }
  return tp__fail(
      err, TP_ERR_DATA,
      tp__is_folder(run)
          ? "%s: holds no best.safetensors or last.safetensors: is it the folder of a run?"
          : "%s: there is no such run or checkpoint",
      run);
}

/* Weight of a network in the mean. */
static tp_status vote_of(const char *combine, const char *run, const tp__progress_state *state,
                         double *vote, tp_error *err)
{
  *vote = 1;
  if (strcmp(combine, "mean") == 0) return TP_OK;
  if (strcmp(combine, "val-accuracy") != 0)
    return tp__fail(err, TP_ERR_USAGE, "combine: \"%s\" is not known; wanted mean or val-accuracy",
                    combine);
  *vote = state->best_value[TP__VAL_ACCURACY];
  if (isfinite(*vote)) return TP_OK;
  return tp__fail(err, TP_ERR_DATA, "%s: has no validation accuracy: use --combine mean", run);
}

static tp_status agree(const tp__ensemble_options *o, const tp__identity *a, const tp__identity *b,
                       size_t i, tp_error *err)
{
  if (a->spec.classes != b->spec.classes)
    return tp__fail(err, TP_ERR_DATA, "%s has %d classes, %s has %d: they cannot be combined",
                    o->runs.item[0], a->spec.classes, o->runs.item[i], b->spec.classes);
  for (int c = 0; a->labels != NULL && b->labels != NULL && c < a->spec.classes; c++)
    if (strcmp(a->labels[c], b->labels[c]) != 0)
      return tp__fail(err, TP_ERR_DATA,
                      "class %d is \"%s\" in %s and \"%s\" in %s: they cannot be combined", c,
                      a->labels[c], o->runs.item[0], b->labels[c], o->runs.item[i]);
  return TP_OK;
}

/* Reads one network; weights may be NULL. */
static tp_status read_run(const char *run, tp__identity *identity, tp__progress_state *state,
                          tp__tensors *weights, tp_error *err)
{
  char *path = NULL;
  TP__TRY(tp__run_checkpoint(run, &path, err));
  tp_status status = tp__checkpoint_read(path, identity, state, weights, NULL, NULL, err);
  free(path);
  return status;
}

tp_status tp__ensemble_open(const tp__ensemble_options *o, tp__ensemble_result *result,
                            tp_error *err)
{
  *result = (tp__ensemble_result){0};
  if (o->runs.count == 0) return tp__fail(err, TP_ERR_USAGE, "no run was given");
  result->vote = tp__calloc(o->runs.count, sizeof *result->vote, err);
  tp_status status = result->vote == NULL ? TP_ERR_INTERNAL : TP_OK;
  double all = 0;
  for (size_t i = 0; status == TP_OK && i < o->runs.count; i++) {
    tp__identity identity = {0};
    tp__progress_state state = {0};
    double *vote = &result->vote[i];
    status = read_run(o->runs.item[i], &identity, &state, NULL, err);
    if (status == TP_OK) status = vote_of(o->combine, o->runs.item[i], &state, vote, err);
    if (status == TP_OK && i > 0) status = agree(o, &result->identity, &identity, i, err);
    tp__progress_state_free(&state);
    all += *vote;
    if (status == TP_OK && i == 0)
      result->identity = identity;
    else
      tp__identity_free(&identity);
  }
  if (status != TP_OK) {
    tp__ensemble_free(result);
    return status;
  }
  for (size_t i = 0; i < o->runs.count; i++)
    result->vote[i] = all > 0 ? result->vote[i] / all : 1.0 / (double)o->runs.count;
  result->classes = result->identity.spec.classes;
  result->labels = result->identity.labels;
  return TP_OK;
}

void tp__ensemble_free(tp__ensemble_result *result)
{
  free(result->probabilities);
  free(result->vote);
  tp__identity_free(&result->identity);
  *result = (tp__ensemble_result){0};
}

/* ---- running ---- */

/* A batch on the device. */
struct asked {
  tp__pending *pending;
  int64_t n;         /* 0: none */
  uint32_t *example; /* [batch] */
  float *scores;     /* [batch, classes] */
};

struct pass {
  const tp__job *job;
  tp__learner *learner;
  tp__pipeline *input;
  float *sum;            /* [examples, classes], added to */
  struct asked asked[2]; /* one is computed while the next one's pictures are prepared */
  int batch;             /* of all replicas */
  bool bf16;
  float weight; /* of this view of this network */
  int classes;
  int64_t done, all; /* examples over all passes, for the progress */
  double start;
};

static tp_status answer(struct pass *p, struct asked *a, tp_error *err)
{
  int64_t n = a->n;
  a->n = 0;
  if (n == 0) return TP_OK;
  TP__TRY(tp__learner_wait(p->learner, a->pending, err));
  for (int64_t i = 0; i < n; i++) {
    float *row = p->sum + (size_t)a->example[i] * (size_t)p->classes;
    for (int c = 0; c < p->classes; c++) row[c] += p->weight * a->scores[i * p->classes + c];
  }
  p->done += n;
  return TP_OK;
}

/* Adds the answers of the batch before; those of the last one are waited for. */
static tp_status ask(struct pass *p, const tp__batch *b, int64_t step, bool last, tp_error *err)
{
  struct asked *a = &p->asked[step % 2];
  a->pending = NULL;
  if (b->n == 0) return answer(p, &p->asked[(step + 1) % 2], err); /* only damaged ones were left */
  memcpy(a->example, b->example, (size_t)b->n * sizeof *a->example);
  TP__TRY(tp__learner_score(p->learner, b, NULL, a->scores, &a->pending, err));
  a->n = b->n;
  TP__TRY(answer(p, &p->asked[(step + 1) % 2], err));
  return last || a->pending == NULL ? answer(p, a, err) : TP_OK;
}

/* What is on the device writes into our memory: it has to end first. */
static void forget(struct pass *p)
{
  tp_error ignored;
  for (int i = 0; i < 2; i++) {
    if (p->asked[i].n > 0) (void)!tp__learner_wait(p->learner, p->asked[i].pending, &ignored);
    p->asked[i].n = 0;
  }
}

static void send_progress(const struct pass *p)
{
  double seconds = tp__now() - p->start;
  tp_progress progress = {.stage = "predict",
                          .step = p->done,
                          .steps = p->all,
                          .images_per_s = (double)p->done / seconds,
                          .seconds = seconds,
                          .seconds_left = seconds / (double)p->done * (double)(p->all - p->done),
                          .loss = NAN,
                          .accuracy = NAN,
                          .val_loss = NAN,
                          .val_accuracy = NAN,
                          .learning_rate = NAN,
                          .done = p->done == p->all};
  tp__job_progress(p->job, &progress);
}

static tp_status run_pass(struct pass *p, tp_error *err)
{
  TP__TRY(tp__pipeline_seek(p->input, 0, 0, 1, err));
  int64_t steps = tp__pipeline_steps(p->input);
  for (int64_t s = 0; s < steps; s++) {
    tp__batch b;
    TP__TRY(tp__pipeline_next(p->input, &b, err));
    TP__TRY(ask(p, &b, s, s + 1 == steps, err));
    if (p->done > 0) send_progress(p);
    if (tp__job_stopped(p->job)) return tp__fail(err, TP_STOPPED, "stopped; nothing was written");
  }
  return TP_OK;
}

/* All views of one network. */
static tp_status run_network(struct pass *p, tp__backend *backend, const tp__catalog *catalog,
                             const tp__identity *identity, const tp__tensors *weights,
                             const tp__view *view, int views, tp_error *err)
{
  tp__learner_options lo = {
      .spec = identity->spec, .batch = p->batch, .bf16 = p->bf16, .score_only = true};
  float share = p->weight / (float)views;
  tp_status status = tp__learner_new(backend, &lo, weights, NULL, &p->learner, err);
  for (int v = 0; status == TP_OK && v < views; v++) {
    tp__pipeline_options po = {.catalog = catalog,
                               .recipe = {.height = identity->spec.height,
                                          .width = identity->spec.width,
                                          .antialias = identity->antialias,
                                          .decode = {.accurate_dct = identity->accurate_dct,
                                                     .exif_rotate = identity->exif_rotate},
                                          .always_flip = view[v].flip,
                                          .always_rotate = view[v].turn},
                               .batch = p->batch,
                               .interleave = 1};
    if (identity->fast_decode) tp__image_recipe_decode_less(&po.recipe);
    status = tp__pipeline_new(&po, p->job->pool, p->job->log, &p->input, err);
    p->weight = share;
    if (status == TP_OK) status = run_pass(p, err);
    forget(p);
    tp__pipeline_free(p->input);
    p->input = NULL;
  }
  tp__learner_free(p->learner);
  p->learner = NULL;
  return status;
}

static bool make_places(struct pass *p, tp_error *err)
{
  size_t batch = (size_t)p->batch, classes = (size_t)p->classes;
  for (int i = 0; i < 2; i++) {
    p->asked[i].scores = tp__calloc(batch, classes * sizeof(float), err);
    p->asked[i].example = tp__calloc(batch, sizeof(uint32_t), err);
    if (p->asked[i].scores == NULL || p->asked[i].example == NULL) return false;
  }
  return true;
}

tp_status tp__ensemble_run(const tp__job *job, tp__backend *backend, const tp__ensemble_options *o,
                           const tp__catalog *catalog, tp__ensemble_result *result, tp_error *err)
{
  tp__view view[TP__VIEWS_MAX];
  int views = 0;
  TP__TRY(tp__views_parse(o->tta, view, &views, err));
  if (o->batch < 1 || o->batch > 65536)
    return tp__fail(err, TP_ERR_USAGE, "batch: %d is out of range; wanted 1 to 65536", o->batch);
  size_t n = tp__catalog_count(catalog), classes = (size_t)result->classes;
  bool bf16 = false;
  TP__TRY(tp__precision_parse(o->precision, &bf16, err));
  result->examples = (int64_t)n;
  result->probabilities = tp__calloc(n, classes * sizeof(float), err);
  tp_status status = TP_ERR_INTERNAL;
  struct pass p = {.job = job,
                   .sum = result->probabilities,
                   .batch = o->batch * backend->replicas,
                   .bf16 = bf16,
                   .classes = result->classes,
                   .all = (int64_t)n * views * (int64_t)o->runs.count,
                   .start = tp__now()};
  if (result->probabilities != NULL && make_places(&p, err)) status = TP_OK;
  for (size_t i = 0; status == TP_OK && i < o->runs.count; i++) {
    tp__identity identity = {0};
    tp__tensors weights = {0};
    status = read_run(o->runs.item[i], &identity, NULL, &weights, err);
    p.weight = (float)result->vote[i];
    if (status == TP_OK)
      status = run_network(&p, backend, catalog, &identity, &weights, view, views, err);
    if (status != TP_OK) status = tp__at(err, status, "%s", o->runs.item[i]);
    tp__identity_free(&identity);
    tp__tensors_free(&weights);
  }
  for (int i = 0; i < 2; i++) {
    free(p.asked[i].scores);
    free(p.asked[i].example);
  }
  return status;
}
