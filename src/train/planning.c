/* planning - see planning.h */
#include "planning.h"

#include <stdlib.h>
#include <string.h>

#include "planning_input.h"

struct planner {
  const tp__job *job;
  const tp__plan_options *o;
  tp__plan *plan;
  tp__plan_input input;
  tp__ahead *ahead;
  tp__backend *backend;
  tp__model_spec spec;
  tp__tensors weights; /* zeros */
};

/* ---- what a program takes ---- */

static tp__bound bound_of(const tp__chip *chip, bool bf16, const tp__planned *program)
{
  const tp__executable_info *i = &program->verdict.info;
  tp__bound b = {0};
  if (!program->verdict.fits) return b;
  b.arithmetic = i->flops / (bf16 ? chip->bf16 : chip->f32);
  b.traffic = i->bytes_accessed / chip->bandwidth;
  b.compiler = i->optimal_seconds;
  b.seconds = b.arithmetic > b.traffic ? b.arithmetic : b.traffic;
  if (b.compiler > b.seconds) b.seconds = b.compiler;
  return b;
}

/* Seconds of a phase when the pipeline delivers so many pictures a second (0: any number). */
static double phase_seconds(const tp__plan *plan, const tp__phase_plan *p, double host)
{
  double step = p->step_bound.seconds, score = p->scores_bound.seconds;
  double features = p->features_bound.seconds, made = host > 0 ? 1 / host : 0;
  double batch = (double)plan->batch * plan->replicas;
  double steps = (double)plan->steps, val_steps = (double)plan->val_steps;
  double pictures = plan->examples > 0 ? (double)plan->examples : 0;
  if (step <= 0 || steps <= 0) return 0;
  if (pictures > steps * batch) pictures = steps * batch;
  double train = steps * step, first = train + steps * features;
  double validate = val_steps * score, first_validate = validate + val_steps * features;
  double input = pictures * made, val_input = (double)plan->val_examples * made;
  if (!p->kept && input > train) train = input;
  if (!p->kept && val_input > validate) validate = val_input;
  if (!p->kept) return p->epochs * (train + validate);
  if (input > first) first = input;
  if (val_input > first_validate) first_validate = val_input;
  return first + first_validate + (p->epochs - 1) * (train + validate);
}

static void finish_phase(tp__plan *plan, tp__phase_plan *p)
{
  const tp__plan_options *o = plan->options;
  const tp__chip *chip = o->target.chip;
  bool bf16 = strcmp(o->train->precision, "bf16") == 0;
  p->step_bound = bound_of(chip, bf16, &p->step);
  if (p->features.rows > 0) p->features_bound = bound_of(chip, bf16, &p->features);
  if (p->scores.rows > 0) p->scores_bound = bound_of(chip, bf16, &p->scores);
  const tp__bound *by = p->kept ? &p->features_bound : &p->step_bound;
  if (by->seconds > 0) p->needs = (double)plan->batch * plan->replicas / by->seconds;
  p->host_limits = plan->measured && plan->host < p->needs;
  p->seconds = phase_seconds(plan, p, plan->measured ? plan->host : 0);
  plan->fits = plan->fits && p->step.verdict.fits &&
               (p->features.rows == 0 || p->features.verdict.fits) &&
               (p->scores.rows == 0 || p->scores.verdict.fits);
}

/* ---- programs of a phase ---- */

static tp_status make_weights(struct planner *x, tp_error *err)
{
  tp__net *net = NULL;
  TP__TRY(tp__net_build(&x->spec, false, &net, err));
  tp_status status = TP_OK;
  for (int i = 0; i < net->n_parameters && status == TP_OK; i++)
    status = tp__tensors_add(&x->weights, net->parameter[i].name, net->parameter[i].dtype,
                             &net->parameter[i].shape, NULL, err);
  if (status == TP_OK && x->o->train->fine_tune_epochs > 0) {
    status = tp__net_freeze(net, x->o->train->fine_tune_layers, err);
    if (status != TP_OK) status = tp__at(err, status, "fine_tune_layers");
  }
  tp__net_free(net);
  return status;
}

static void take_programs(struct planner *x, tp__phase_plan *p)
{
  size_t n = 0;
  const tp__planned *program = tp__planner_programs(x->backend, &n);
  for (size_t i = 0; i < n; i++)
    *(program[i].trains ? &p->step : program[i].scores ? &p->scores : &p->features) = program[i];
}

static tp_status plan_phase(struct planner *x, bool fine_tune, tp_error *err)
{
  tp__phase_plan *p = &x->plan->phase[x->plan->n_phases];
  tp__learner_options options;
  tp__learner *learner = NULL;
  *p = (tp__phase_plan){.fine_tune = fine_tune};
  p->epochs = fine_tune ? x->o->train->fine_tune_epochs : x->o->train->epochs;
  if (p->epochs == 0) return TP_OK;
  TP__TRY(tp__phase_learner(x->o->train, fine_tune, &options, err));
  options.spec = x->spec;
  options.whole = x->input.varies;
  options.steps = 1; /* of several steps in one call each is like this one */
  options.batch = x->plan->batch * x->plan->replicas;
  options.bytes = x->plan->bytes;
  options.augment = x->input.augment;
  tp__say(x->job->log, "planning: %s", fine_tune ? "fine-tuning" : "head");
  tp__planner_forget(x->backend);
  tp_status status = tp__learner_new(x->backend, &options, &x->weights, NULL, &learner, err);
  if (status != TP_OK) return tp__at(err, status, fine_tune ? "fine-tuning" : "head");
  (void)tp__learner_trainable(learner, &p->trainable);
  p->kept = tp__learner_features(learner) > 0;
  take_programs(x, p);
  tp__learner_free(learner);
  x->plan->n_phases++;
  return TP_OK;
}

/* ---- the plan ---- */

static tp_status open_planner(struct planner *x, tp_error *err)
{
  const tp__plan_options *o = x->o;
  tp__ahead_options how = {.target = o->target,
                           .plugin = o->plugin,
                           .cache = o->cache,
                           .seconds = o->patience,
                           .log = x->job->log,
                           .stopped = x->job->stopped,
                           .user = x->job->user_stop};
  TP__TRY(tp__ahead_open(&how, &x->ahead, err));
  tp__planner_options options = {.ahead = x->ahead,
                                 .replicas = o->replicas,
                                 .no_scores = o->train->val.count == 0 && o->val_examples == 0,
                                 .largest = o->largest};
  TP__TRY(tp__backend_planner(&options, &x->backend, err));
  x->plan->machine = *tp__ahead_machine(x->ahead);
  snprintf(x->plan->plugin, sizeof x->plan->plugin, "%s", tp__ahead_plugin(x->ahead));
  x->plan->replicas = x->backend->replicas;
  return TP_OK;
}

static tp_status make_spec(struct planner *x, tp_error *err)
{
  const tp_train_options *t = x->o->train;
  x->spec = (tp__model_spec){.name = t->model,
                             .classes = x->plan->classes,
                             .dropout = (float)t->dropout,
                             .official_preprocessing = strcmp(t->weights, "imagenet") == 0 &&
                                                       tp__model_has_official(t->model)};
  TP__TRY(tp__size_parse("image_size", t->image_size, &x->spec.height, &x->spec.width, err));
  x->plan->height = x->spec.height;
  x->plan->width = x->spec.width;
  snprintf(x->plan->model, sizeof x->plan->model, "%s", t->model);
  return TP_OK;
}

static void count_steps(tp__plan *plan)
{
  const tp_train_options *t = plan->options->train;
  int64_t batch = (int64_t)plan->batch * plan->replicas;
  plan->steps = t->steps_per_epoch > 0 ? t->steps_per_epoch : (plan->examples + batch - 1) / batch;
  plan->val_steps =
      t->validation_steps > 0 ? t->validation_steps : (plan->val_examples + batch - 1) / batch;
  if (plan->val_examples == 0) plan->val_steps = 0;
}

static tp_status make_plan(struct planner *x, tp_error *err)
{
  tp__plan *plan = x->plan;
  TP__TRY(tp__train_check(x->o->train, err));
  TP__TRY(tp__plan_input_open(&x->input, x->job, x->o, plan, err));
  TP__TRY(make_spec(x, err));
  TP__TRY(open_planner(x, err));
  TP__TRY(tp__plan_input_transfer(&x->input, err));
  plan->augments = x->input.augment.flip || x->input.augment.rotate > 0;
  plan->movable = tp__augment_movable(x->o->train);
  TP__TRY(make_weights(x, err));
  count_steps(plan);
  TP__TRY(plan_phase(x, false, err));
  TP__TRY(plan_phase(x, true, err));
  return tp__plan_input_measure(&x->input, err);
}

tp_status tp__plan_make(const tp__job *job, const tp__plan_options *options, tp__plan *plan,
                        tp_error *err)
{
  struct planner x = {.job = job, .o = options, .plan = plan};
  *plan = (tp__plan){.options = options, .batch = options->train->batch, .fits = true};
  if (options->train->epochs + options->train->fine_tune_epochs == 0)
    return tp__fail(err, TP_ERR_USAGE,
                    "epochs and fine_tune_epochs are both 0: there is nothing to plan");
  tp_status status = make_plan(&x, err);
  for (size_t i = 0; status == TP_OK && i < plan->n_phases; i++)
    finish_phase(plan, &plan->phase[i]);
  tp__plan_input_close(&x.input);
  tp__tensors_free(&x.weights);
  if (x.backend != NULL) x.backend->free(x.backend);
  tp__ahead_free(x.ahead);
  return status;
}
