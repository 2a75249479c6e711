/* learner - see learner.h */
#include "learner.h"

#include <stdlib.h>
#include <string.h>

struct tp__learner {
  tp__backend *backend;
  tp__state *state;
  tp__program *training, *scoring; /* split: from features on */
  tp__program *backbone;           /* split: pixels -> features */
  size_t features;                 /* numbers in one example's features; 0: not split */
  float *extracted;                /* [batch, features] */
  tp__tensors slots;      /* names and shapes of the optimizer's slots; values live in the state */
  const char **trainable; /* names, in the arena; then those of moving statistics */
  size_t n_trainable, n_changing;
  size_t n_backbone; /* of the trainable: before those of the head */
  float head_factor; /* 1: the head has no rate of its own */
  int batch;
  size_t picture;         /* numbers in one example's pixels */
  uint64_t memory_left;   /* of memory_limit, for what is compiled next */
  bool keys;              /* the training program wants them */
  bool counts;            /* ... and the number of the step */
  bool averages;          /* slots "ema/NAME" */
  bool mixes;             /* ... and second labels with both shares */
  float *rest;            /* [batch]: 1 - share */
  float *example_weights; /* [batch] */
  uint8_t *bytes;         /* [batch, picture], NULL: pixels go as floats */
  int32_t *no_labels;     /* [batch] zeros, for scoring pictures without labels */
  tp__arena arena;
};

/* What a program computes besides the network itself. */
struct wiring {
  tp__value weights, rate, head_rate, step, losses, sum;
};

/* The loss of each example, from the labels of one input. */
static tp_status add_loss(tp__net *net, const char *labels, float smoothing, tp__value *losses,
                          tp_error *err)
{
  tp__graph *g = net->graph;
  tp__shape per_example = tp__shape_make(1, (int64_t[]){TP__N});
  tp__value input;
  TP__TRY(tp__graph_input(g, labels, TP__I32, &per_example, &input, err));
  return tp__graph_add(g, TP__OP_CROSS_ENTROPY, (tp__value[]){net->logits, input}, 2,
                       &(tp__attr){.f = {smoothing}}, losses, err);
}

/* share loss(labels) + share_2 loss(labels_2): that of the target that is mixed the same way. */
static tp_status add_mixed_loss(tp__net *net, float smoothing, tp__value *losses, tp_error *err)
{
  static const char *const labels[] = {"labels", "labels_2"}, *const share[] = {"share", "share_2"};
  tp__graph *g = net->graph;
  tp__shape per_example = tp__shape_make(1, (int64_t[]){TP__N});
  tp__value part[2], input;
  for (int i = 0; i < 2; i++) {
    TP__TRY(add_loss(net, labels[i], smoothing, &part[i], err));
    TP__TRY(tp__graph_input(g, share[i], TP__F32, &per_example, &input, err));
    TP__TRY(tp__graph_add(g, TP__OP_MUL, (tp__value[]){part[i], input}, 2, NULL, &part[i], err));
  }
  return tp__graph_add(g, TP__OP_ADD, part, 2, NULL, losses, err);
}

static tp_status list_name(tp__learner *l, const char *name, tp_error *err)
{
  char *copy = tp__arena_strdup(&l->arena, name);
  if (copy == NULL) return tp__no_memory(err, strlen(name));
  l->trainable[l->n_changing++] = copy;
  return TP_OK;
}

/* The parameters that train, of unfrozen layers without statistics; then the statistics that move.
 */
static tp_status list_trainable(tp__learner *l, const tp__net *net, tp__value *param, tp_error *err)
{
  l->trainable = tp__calloc((size_t)net->n_parameters, sizeof *l->trainable, err);
  if (l->trainable == NULL) return TP_ERR_INTERNAL;
  for (int i = 0; i < net->n_parameters; i++) {
    const tp__parameter *p = &net->parameter[i];
    if (!tp__net_trains(net, i)) continue;
    TP__TRY(tp__graph_param(net->graph, p->name, &p->shape, &param[l->n_changing], err));
    TP__TRY(list_name(l, p->name, err));
    if (!net->layer[p->layer].head) l->n_backbone = l->n_changing;
  }
  l->n_trainable = l->n_changing;
  for (int i = 0; i < net->n_parameters; i++)
    if (net->parameter[i].moves) TP__TRY(list_name(l, net->parameter[i].name, err));
  return TP_OK;
}

static tp_status add_update(tp__learner *l, tp__net *net, const tp__optimizer *optimizer,
                            struct wiring *w, tp__value *param, tp__value *gradient, tp_error *err)
{
  tp__graph *g = net->graph;
  tp__shape scalar = {0}, per_example = tp__shape_make(1, (int64_t[]){TP__N});
  TP__TRY(tp__graph_input(g, "weights", TP__F32, &per_example, &w->weights, err));
  TP__TRY(tp__graph_input(g, "rate", TP__F32, &scalar, &w->rate, err));
  w->head_rate = w->rate;
  if (l->head_factor != 1)
    TP__TRY(tp__graph_input(g, "head_rate", TP__F32, &scalar, &w->head_rate, err));
  l->counts = tp__optimizer_counts(optimizer);
  l->averages = optimizer->ema_momentum > 0;
  w->step = TP__NONE;
  if (l->counts) TP__TRY(tp__graph_input(g, "step", TP__F32, &scalar, &w->step, err));
  TP__TRY(tp__graph_add(g, TP__OP_WEIGHTED_SUM, (tp__value[]){w->losses, w->weights}, 2, NULL,
                        &w->sum, err));
  TP__TRY(list_trainable(l, net, param, err));
  TP__TRY(tp__graph_gradient(g, w->sum, param, l->n_trainable, gradient, err));
  TP__TRY(tp__optimizer_clip(optimizer, g, gradient, l->n_trainable, err));
  for (size_t i = 0; i < l->n_trainable; i++) {
    if (gradient[i] == TP__NONE) continue;
    tp__value rate = i < l->n_backbone ? w->rate : w->head_rate;
    TP__TRY(tp__optimizer_add(optimizer, g, param[i], gradient[i], rate, w->step, &l->slots, err));
  }
  return TP_OK;
}

static tp_status build_training(tp__learner *l, const tp__learner_options *o, tp__net **out,
                                tp_error *err)
{
  tp__net *net = NULL;
  tp__value *values = NULL;
  struct wiring w;
  tp__net_training how = {.last_n = o->last_n,
                          .batch_statistics = o->batch_statistics,
                          .drop_connect = o->drop_connect,
                          .augment = o->augment};
  tp_status status = tp__net_build_training(&o->spec, &how, &net, err);
  if (status == TP_OK)
    status = o->mixes ? add_mixed_loss(net, o->label_smoothing, &w.losses, err)
                      : add_loss(net, "labels", o->label_smoothing, &w.losses, err);
  if (status == TP_OK) {
    values = tp__calloc((size_t)net->n_parameters * 2, sizeof *values, err);
    status = values == NULL ? TP_ERR_INTERNAL : TP_OK;
  }
  if (status == TP_OK)
    status = add_update(l, net, &o->optimizer, &w, values, values + net->n_parameters, err);
  if (status == TP_OK) status = tp__graph_output(net->graph, "losses", w.losses, err);
  if (status == TP_OK) status = tp__graph_output(net->graph, "scores", net->logits, err);
  free(values);
  if (status == TP_OK) {
    l->keys = net->keys != TP__NONE;
    *out = net;
  } else {
    tp__net_free(net);
  }
  return status;
}

static tp_status build_scoring(const tp__learner_options *o, tp__net **out, tp_error *err)
{
  tp__net *net = NULL;
  struct wiring w;
  tp_status status = tp__net_build(&o->spec, false, &net, err);
  if (status == TP_OK) status = add_loss(net, "labels", o->label_smoothing, &w.losses, err);
  if (status == TP_OK) status = tp__graph_output(net->graph, "losses", w.losses, err);
  if (status == TP_OK) status = tp__graph_output(net->graph, "scores", net->probabilities, err);
  if (status == TP_OK)
    *out = net;
  else
    tp__net_free(net);
  return status;
}

/* Every number that the network reads is there: a checkpoint may come from anywhere. */
static tp_status check_weights(const tp__net *net, const tp__tensors *weights, tp_error *err)
{
  for (int i = 0; i < net->n_parameters; i++) {
    const tp__parameter *p = &net->parameter[i];
    const tp__tensor *t = tp__tensors_find(weights, p->name);
    if (p->dtype != TP__F32 ||
        (t != NULL && t->dtype == TP__F32 && tp__shape_equal(&t->shape, &p->shape)))
      continue;
    return tp__fail(err, TP_ERR_DATA,
                    "the weights do not fit the network: %s is missing or has "
                    "another shape",
                    p->name);
  }
  return TP_OK;
}

static void use_memory(tp__learner *l, uint64_t bytes)
{
  l->memory_left = bytes < l->memory_left ? l->memory_left - bytes : 1;
}

/* The state's first content: the weights (floats only: the device has no use for counts) and the
 * slots. */
static tp_status make_state(tp__learner *l, const tp__tensors *weights, const tp__tensors *slots,
                            tp_error *err)
{
  tp__tensors all = {0};
  tp_status status = TP_OK;
  for (size_t i = 0; status == TP_OK && i < weights->count + l->slots.count; i++) {
    bool is_slot = i >= weights->count;
    const tp__tensor *t = is_slot ? &l->slots.item[i - weights->count] : &weights->item[i];
    if (t->dtype != TP__F32) continue;
    tp__tensor *copy = NULL;
    status = tp__tensors_add(&all, t->name, TP__F32, &t->shape, &copy, err);
    const tp__tensor *from = t;
    if (is_slot && slots != NULL && slots->count > 0) {
      from = tp__tensors_find(slots, t->name);
      if (status == TP_OK &&
          (from == NULL || from->dtype != TP__F32 || !tp__shape_equal(&from->shape, &t->shape)))
        status = tp__fail(err, TP_ERR_DATA, "optimizer state: %s is missing or has another shape",
                          t->name);
    }
    if (status == TP_OK) memcpy(copy->data, from->data, tp__tensor_bytes(t));
  }
  if (status == TP_OK) status = l->backend->state_new(l->backend, &all, &l->state, err);
  for (size_t i = 0; i < all.count; i++) use_memory(l, tp__tensor_bytes(&all.item[i]));
  tp__tensors_free(&all);
  for (size_t i = 0; i < l->slots.count; i++) { /* values live in the state from here on */
    free(l->slots.item[i].data);
    l->slots.item[i].data = NULL;
  }
  return status;
}

/* A program of the whole graph, or of what follows `features`. */
static tp_status compile(tp__learner *l, const tp__learner_options *o, const tp__net *net,
                         bool split, tp__program **program, tp_error *err)
{
  tp__compile_options co = {.batch = o->batch,
                            .reference = o->reference,
                            .memory_limit = o->memory_limit > 0 ? l->memory_left : 0,
                            .byte_input = l->bytes != NULL && !split ? "pixels" : NULL,
                            .bf16 = o->bf16,
                            .local_statistics = o->local_statistics,
                            .accumulate = o->accumulate,
                            .steps = program == &l->training ? o->steps : 1};
  tp__graph *cut = NULL;
  if (split) TP__TRY(tp__graph_cut(net->graph, net->features, "features", &cut, err));
  tp_status status =
      l->backend->compile(l->backend, split ? cut : net->graph, l->state, &co, program, err);
  tp__graph_free(cut);
  if (status != TP_OK) return status;
  tp__program_info info = {0};
  l->backend->program_info(*program, &info);
  use_memory(l, info.activation_bytes + info.weight_bytes);
  return TP_OK;
}

/* The program that gives features. */
static tp_status compile_backbone(tp__learner *l, const tp__learner_options *o, tp_error *err)
{
  tp__net *net = NULL;
  TP__TRY(tp__net_build(&o->spec, false, &net, err));
  const tp__shape *shape = &net->graph->node[net->features].shape;
  l->features = tp__shape_elements(shape, 1);
  l->extracted = tp__calloc_aligned((size_t)o->batch, l->features * sizeof(float), err);
  tp_status status = l->extracted == NULL ? TP_ERR_INTERNAL : TP_OK;
  if (status == TP_OK) status = tp__graph_output(net->graph, "features", net->features, err);
  if (status == TP_OK) status = compile(l, o, net, false, &l->backbone, err);
  tp__net_free(net);
  return status;
}

tp_status tp__learner_new(tp__backend *backend, const tp__learner_options *o,
                          const tp__tensors *weights, const tp__tensors *slots,
                          tp__learner **learner, tp_error *err)
{
  tp__net *training = NULL, *scoring = NULL;
  tp_status status = TP_ERR_INTERNAL;
  tp__learner *l = tp__calloc(1, sizeof *l, err);
  if (l == NULL) return status;
  l->backend = backend;
  l->batch = o->batch;
  l->memory_left = o->memory_limit;
  l->head_factor = o->head_factor > 0 ? o->head_factor : 1;
  l->picture = (size_t)o->spec.height * (size_t)o->spec.width * 3;
  l->example_weights = tp__calloc((size_t)o->batch, sizeof *l->example_weights, err);
  l->no_labels = tp__calloc((size_t)o->batch, sizeof *l->no_labels, err);
  l->mixes = o->mixes;
  l->rest = tp__calloc((size_t)o->batch, sizeof *l->rest, err);
  if (l->example_weights == NULL || l->no_labels == NULL || l->rest == NULL) goto out;
  if (o->bytes && backend->remote) {
    l->bytes = tp__calloc_aligned((size_t)o->batch * l->picture, 1, err);
    if (l->bytes == NULL) goto out;
  }
  bool augments = o->augment.flip || o->augment.rotate > 0; /* features then vary */
  bool split = !o->score_only && o->last_n == 0 && !o->whole && !augments;
  status = build_scoring(o, &scoring, err);
  if (status == TP_OK) status = check_weights(scoring, weights, err);
  if (status == TP_OK && !o->score_only) status = build_training(l, o, &training, err);
  if (status == TP_OK) status = make_state(l, weights, slots, err);
  if (status == TP_OK && split) status = compile_backbone(l, o, err);
  if (status == TP_OK) status = compile(l, o, scoring, split, &l->scoring, err);
  if (status == TP_OK && training != NULL)
    status = compile(l, o, training, split, &l->training, err);
out:
  tp__net_free(training);
  tp__net_free(scoring);
  if (status == TP_OK)
    *learner = l;
  else
    tp__learner_free(l);
  return status;
}

void tp__learner_free(tp__learner *l)
{
  if (l == NULL) return;
  if (l->training != NULL) l->backend->program_free(l->training);
  if (l->scoring != NULL) l->backend->program_free(l->scoring);
  if (l->backbone != NULL) l->backend->program_free(l->backbone);
  if (l->state != NULL) l->backend->state_free(l->state);
  tp__tensors_free(&l->slots);
  free(l->trainable);
  free(l->example_weights);
  free(l->no_labels);
  free(l->rest);
  free(l->bytes);
  free(l->extracted);
  tp__arena_free(&l->arena);
  free(l);
}

size_t tp__learner_features(const tp__learner *l)
{
  return l->features;
}

size_t tp__learner_picture(const tp__learner *l)
{
  return l->picture;
}

/* Pixels [n] as the programs take them: rounded to 8 bits where those were asked for. */
static tp__feed pixels_of(tp__learner *l, const float *pixels, int64_t n)
{
  if (l->bytes == NULL) return (tp__feed){"pixels", pixels};
  size_t count = (size_t)n * l->picture;
  for (size_t i = 0; i < count; i++) {
    float x = pixels[i] + 0.5f;
    l->bytes[i] = (uint8_t)(int)(x < 0 ? 0 : x > 255 ? 255 : x);
  }
  return (tp__feed){"pixels", l->bytes};
}

tp_status tp__learner_extract(tp__learner *l, const float *pixels, int64_t n, float *features,
                              tp_error *err)
{
  for (int64_t i = 0; i < n; i += l->batch) {
    int64_t rows = n - i < l->batch ? n - i : l->batch;
    tp__feed feed = pixels_of(l, pixels + (size_t)i * l->picture, rows);
    tp__fetch fetch = {"features", features + (size_t)i * l->features};
    TP__TRY(l->backend->run(l->backbone, &feed, 1, &fetch, 1, rows, err));
  }
  return TP_OK;
}

static tp_status go(tp__learner *l, tp__program *program, const tp__feed *feed, size_t n_feeds,
                    tp__fetch fetch[2], int64_t n, tp__pending **pending, tp_error *err)
{
  if (pending == NULL) return l->backend->run(program, feed, n_feeds, fetch, 2, n, err);
  return l->backend->submit(program, feed, n_feeds, fetch, 2, n, pending, err);
}

/* input: "pixels" or "features". */
static tp_status step(tp__learner *l, tp__feed input, const tp__batch *b, const float *weights,
                      float rate, int64_t iteration, float *losses, float *scores,
                      tp__pending **pending, tp_error *err)
{
  float number = (float)(iteration + 1), share = 1.0f / (float)(b->total > 0 ? b->total : b->n);
  float head_rate = l->head_factor * rate;
  for (int64_t i = 0; i < b->n; i++)
    l->example_weights[i] = weights != NULL ? weights[i] * share : share;
  tp__feed feed[10] = {
      input, {"labels", b->labels}, {"weights", l->example_weights}, {"rate", &rate}};
  size_t n = 4;
  if (l->head_factor != 1) feed[n++] = (tp__feed){"head_rate", &head_rate};
  if (l->counts) feed[n++] = (tp__feed){"step", &number};
  if (l->keys) feed[n++] = (tp__feed){"keys", b->keys};
  if (l->mixes) {
    for (int64_t i = 0; i < b->n; i++) l->rest[i] = 1 - b->share[i];
    feed[n++] = (tp__feed){"labels_2", b->labels_2};
    feed[n++] = (tp__feed){"share", b->share};
    feed[n++] = (tp__feed){"share_2", l->rest};
  }
  tp__fetch fetch[] = {{"losses", losses}, {"scores", scores}};
  return go(l, l->training, feed, n, fetch, b->n, pending, err);
}

static tp_status score(tp__learner *l, tp__feed input, const tp__batch *b, float *losses,
                       float *scores, tp__pending **pending, tp_error *err)
{
  tp__feed feed[] = {input, {"labels", losses != NULL ? b->labels : l->no_labels}};
  tp__fetch fetch[] = {{"losses", losses}, {"scores", scores}};
  return go(l, l->scoring, feed, 2, fetch, b->n, pending, err);
}

tp_status tp__learner_step_on(tp__learner *l, const float *features, const tp__batch *b,
                              const float *weights, float rate, int64_t iteration, float *losses,
                              float *scores, tp__pending **pending, tp_error *err)
{
  tp__feed input = {"features", features};
  return step(l, input, b, weights, rate, iteration, losses, scores, pending, err);
}

tp_status tp__learner_score_on(tp__learner *l, const float *features, const tp__batch *b,
                               float *losses, float *scores, tp__pending **pending, tp_error *err)
{
  tp__feed input = {"features", features};
  return score(l, input, b, losses, scores, pending, err);
}

/* What a program starts from: the batch's pixels, or their features. */
static tp_status input_of(tp__learner *l, const tp__batch *b, tp__feed *input, tp_error *err)
{
  if (l->features == 0) {
    *input = pixels_of(l, b->pixels, b->n);
    return TP_OK;
  }
  *input = (tp__feed){"features", l->extracted};
  return tp__learner_extract(l, b->pixels, b->n, l->extracted, err);
}

tp_status tp__learner_step(tp__learner *l, const tp__batch *b, const float *weights, float rate,
                           int64_t iteration, float *losses, float *scores, tp__pending **pending,
                           tp_error *err)
{
  tp__feed input;
  TP__TRY(input_of(l, b, &input, err));
  return step(l, input, b, weights, rate, iteration, losses, scores, pending, err);
}

tp_status tp__learner_score(tp__learner *l, const tp__batch *b, float *losses, float *scores,
                            tp__pending **pending, tp_error *err)
{
  tp__feed input;
  TP__TRY(input_of(l, b, &input, err));
  return score(l, input, b, losses, scores, pending, err);
}

tp_status tp__learner_wait(tp__learner *l, tp__pending *pending, tp_error *err)
{
  return l->backend->wait(pending, err);
}

const char *const *tp__learner_trainable(const tp__learner *l, size_t *count)
{
  *count = l->n_trainable;
  return l->trainable;
}

const char *const *tp__learner_changing(const tp__learner *l, size_t *count)
{
  *count = l->n_changing;
  return l->trainable;
}

tp_status tp__learner_read(tp__learner *l, tp__tensors *into, tp_error *err)
{
  return l->backend->state_read(l->state, into, err);
}

tp_status tp__learner_write(tp__learner *l, const tp__tensors *from, tp_error *err)
{
  return l->backend->state_write(l->state, from, err);
}

tp_status tp__learner_slots(tp__learner *l, tp__tensors *slots, tp_error *err)
{
  for (size_t i = 0; i < l->slots.count; i++) {
    const tp__tensor *t = &l->slots.item[i];
    TP__TRY(tp__tensors_add(slots, t->name, t->dtype, &t->shape, NULL, err));
  }
  return l->backend->state_read(l->state, slots, err);
}

/* Values and names of a set are those of the trained parameters, or of their averages. */
static tp_status averaged_names(const tp__learner *l, const char *prefix, tp__tensors *set,
                                tp_error *err)
{
  for (size_t i = 0; i < l->slots.count; i++) {
    const tp__tensor *slot = &l->slots.item[i];
    if (strncmp(slot->name, "ema/", 4) != 0) continue;
    char *name = tp__format("%s%s", prefix, slot->name + 4);
    if (name == NULL) return tp__no_memory(err, 64);
    tp_status status = tp__tensors_add(set, name, TP__F32, &slot->shape, NULL, err);
    free(name);
    TP__TRY(status);
  }
  return TP_OK;
}

static void exchange(tp__tensors *a, tp__tensors *b)
{
  for (size_t i = 0; i < a->count; i++) {
    void *data = a->item[i].data;
    a->item[i].data = b->item[i].data;
    b->item[i].data = data;
  }
}

tp_status tp__learner_swap_averages(tp__learner *l, tp_error *err)
{
  tp__tensors plain = {0}, averages = {0};
  if (!l->averages) return TP_OK;
  tp_status status = averaged_names(l, "", &plain, err);
  if (status == TP_OK) status = averaged_names(l, "ema/", &averages, err);
  if (status == TP_OK) status = tp__learner_read(l, &plain, err);
  if (status == TP_OK) status = tp__learner_read(l, &averages, err);
  if (status == TP_OK) {
    exchange(&plain, &averages);
    status = tp__learner_write(l, &plain, err);
  }
  if (status == TP_OK) status = tp__learner_write(l, &averages, err);
  tp__tensors_free(&plain);
  tp__tensors_free(&averages);
  return status;
}

/* The backbone's part is in both: it runs before either. */
static void info_of(const tp__learner *l, const tp__program *program, tp__program_info *info)
{
  l->backend->program_info(program, info);
  if (l->backbone == NULL) return;
  tp__program_info backbone = {0};
  l->backend->program_info(l->backbone, &backbone);
  info->flops_per_example += backbone.flops_per_example;
  info->activation_bytes += backbone.activation_bytes;
  info->weight_bytes += backbone.weight_bytes;
  info->chunk = backbone.chunk;
}

void tp__learner_info(const tp__learner *l, tp__program_info *training, tp__program_info *scoring)
{
  if (training != NULL && l->training != NULL) info_of(l, l->training, training);
  if (scoring != NULL) info_of(l, l->scoring, scoring);
}

tp_status tp__learner_plan(const tp__learner *l, tp__buffer *text, tp_error *err)
{
  if (l->backend->program_plan == NULL)
    return tp__fail(err, TP_ERR_USAGE, "%s: the device plans its memory itself; --device cpu",
                    l->backend->device);
  if (l->backbone != NULL) {
    TP__TRY(tp__buffer_printf(text, err, "backbone, up to the features\n"));
    TP__TRY(l->backend->program_plan(l->backbone, text, err));
    TP__TRY(tp__buffer_printf(text, err, "\nhead, forward and backward\n"));
  }
  return l->backend->program_plan(l->training, text, err);
}
