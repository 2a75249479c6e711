/* optimizer - see optimizer.h */
#include "optimizer.h"

#include <stdlib.h>
#include <string.h>

static tp_status in_range(const char *name, double value, double low, double high, tp_error *err)
{
  if (value >= low && value < high) return TP_OK; /* false for NaN, too */
  return tp__fail(err, TP_ERR_USAGE, "%s: %g is out of range; wanted %g or more, below %g", name,
                  value, low, high);
}

tp_status tp__optimizer_make(const tp_train_options *o, tp__optimizer *optimizer, tp_error *err)
{
  tp__optimizer made = {
      .beta_1 = (float)o->beta_1,
      .beta_2 = (float)o->beta_2,
      .epsilon = (float)o->epsilon,
      .momentum = (float)o->momentum,
      .nesterov = o->nesterov,
      .weight_decay = (float)o->weight_decay,
      .clip_norm = (float)o->clip_norm,
      .ema_momentum = (float)o->ema_momentum,
  };
  TP__TRY(in_range("weight_decay", o->weight_decay, 0, 1e6, err));
  TP__TRY(in_range("clip_norm", o->clip_norm, 0, 1e30, err));
  TP__TRY(in_range("ema_momentum", o->ema_momentum, 0, 1, err));
  if (o->clip_norm > 0 && made.clip_norm < 1e-30f)
    return tp__fail(err, TP_ERR_USAGE, "clip_norm: %g is too small", o->clip_norm);
  if (strcmp(o->optimizer, "adam") == 0) {
    made.kind = TP__OPTIMIZER_ADAM;
    TP__TRY(in_range("beta_1", o->beta_1, 0, 1, err));
    TP__TRY(in_range("beta_2", o->beta_2, 0, 1, err));
    TP__TRY(in_range("epsilon", o->epsilon, 1e-30, 1e30, err));
  } else if (strcmp(o->optimizer, "sgd") == 0) {
    made.kind = TP__OPTIMIZER_SGD;
    TP__TRY(in_range("momentum", o->momentum, 0, 1, err));
  } else {
    return tp__fail(err, TP_ERR_USAGE, "optimizer: \"%s\" is not known; wanted adam or sgd",
                    o->optimizer);
  }
  *optimizer = made;
  return TP_OK;
}

/* A parameter "prefix/NAME" of the same shape as param. */
static tp_status add_slot(tp__graph *g, const char *prefix, tp__value param, tp__tensors *slots,
                          tp__value *slot, tp_error *err)
{
  const tp__shape shape = g->node[param].shape;
  char *name = tp__arena_format(&g->arena, "%s/%s", prefix, g->node[param].name);
  if (name == NULL) return tp__no_memory(err, 64);
  TP__TRY(tp__graph_param(g, name, &shape, slot, err));
  return tp__tensors_add(slots, name, TP__F32, &shape, NULL, err);
}

/* ---- clipping ---- */

/* One node of op for every six values: n values become their number of nodes. */
static tp_status reduce(tp__graph *g, tp__op op, tp__value *value, size_t *n, tp_error *err)
{
  size_t made = 0;
  for (size_t i = 0; i < *n; i += TP__OPERANDS_MAX) {
    size_t left = *n - i;
    int count = left < TP__OPERANDS_MAX ? (int)left : TP__OPERANDS_MAX;
    TP__TRY(tp__graph_add(g, op, value + i, count, NULL, &value[made++], err));
  }
  *n = made;
  return TP_OK;
}

tp_status tp__optimizer_clip(const tp__optimizer *o, tp__graph *g, tp__value *gradient, size_t n,
                             tp_error *err)
{
  if (o->clip_norm == 0) return TP_OK;
  tp__value *value = tp__calloc(n, sizeof *value, err), factor = TP__NONE;
  size_t left = 0;
  if (value == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < n; i++)
    if (gradient[i] != TP__NONE) value[left++] = gradient[i];
  tp_status status = left > 0 ? reduce(g, TP__OP_SUM_SQUARES, value, &left, err) : TP_OK;
  while (status == TP_OK && left > 1) status = reduce(g, TP__OP_SUM_SCALARS, value, &left, err);
  if (status == TP_OK && left == 1)
    status = tp__graph_add(g, TP__OP_CLIP_FACTOR, value, 1, &(tp__attr){.f = {o->clip_norm}},
                           &factor, err);
  for (size_t i = 0; status == TP_OK && i < n; i++)
    if (gradient[i] != TP__NONE)
      status = tp__graph_add(g, TP__OP_SCALE, (tp__value[]){gradient[i], factor}, 2, NULL,
                             &gradient[i], err);
  free(value);
  return status;
}

/* ---- updates ---- */

bool tp__optimizer_counts(const tp__optimizer *o)
{
  return o->kind == TP__OPTIMIZER_ADAM || o->ema_momentum > 0;
}

/* The parameter's new value, and its average. */
static tp_status assign(const tp__optimizer *o, tp__graph *g, tp__value param, tp__value new_param,
                        tp__value step, tp__tensors *slots, tp_error *err)
{
  TP__TRY(tp__graph_assign(g, param, new_param, err));
  if (o->ema_momentum == 0) return TP_OK;
  tp__value average, moved;
  TP__TRY(add_slot(g, "ema", param, slots, &average, err));
  TP__TRY(tp__graph_add(g, TP__OP_MOVING_AVERAGE, (tp__value[]){average, new_param, step}, 3,
                        &(tp__attr){.f = {o->ema_momentum}}, &moved, err));
  return tp__graph_assign(g, average, moved, err);
}

static tp_status add_adam(const tp__optimizer *o, tp__graph *g, tp__value param, tp__value gradient,
                          tp__value rate, tp__value step, tp__tensors *slots, tp_error *err)
{
  tp__value m = TP__NONE, v = TP__NONE, new_m = TP__NONE, new_v = TP__NONE, new_param = TP__NONE;
  TP__TRY(add_slot(g, "adam/m", param, slots, &m, err));
  TP__TRY(add_slot(g, "adam/v", param, slots, &v, err));
  TP__TRY(tp__graph_add(g, TP__OP_ADAM_M, (tp__value[]){m, gradient}, 2,
                        &(tp__attr){.f = {o->beta_1}}, &new_m, err));
  TP__TRY(tp__graph_add(g, TP__OP_ADAM_V, (tp__value[]){v, gradient}, 2,
                        &(tp__attr){.f = {o->beta_2}}, &new_v, err));
  TP__TRY(
      tp__graph_add(g, TP__OP_ADAM_PARAM, (tp__value[]){param, new_m, new_v, rate, step}, 5,
                    &(tp__attr){.f = {o->beta_1, o->beta_2, o->epsilon}, .g = {o->weight_decay}},
                    &new_param, err));
  TP__TRY(tp__graph_assign(g, m, new_m, err));
  TP__TRY(tp__graph_assign(g, v, new_v, err));
  return assign(o, g, param, new_param, step, slots, err);
}

static tp_status add_sgd(const tp__optimizer *o, tp__graph *g, tp__value param, tp__value gradient,
                         tp__value rate, tp__value step, tp__tensors *slots, tp_error *err)
{
  tp__value velocity = TP__NONE, new_velocity = TP__NONE, new_param = TP__NONE;
  tp__attr attr = {.f = {o->momentum}, .flag = o->nesterov};
  TP__TRY(add_slot(g, "sgd/velocity", param, slots, &velocity, err));
  TP__TRY(tp__graph_add(g, TP__OP_SGD_MOMENTUM, (tp__value[]){velocity, gradient, rate}, 3, &attr,
                        &new_velocity, err));
  /* Only Nesterov's step looks at the gradient again, only it and decay at the rate. */
  tp__value in[4] = {param, new_velocity, o->nesterov ? gradient : TP__NONE,
                     o->nesterov || o->weight_decay > 0 ? rate : TP__NONE};
  attr.g[0] = o->weight_decay;
  TP__TRY(tp__graph_add(g, TP__OP_SGD_PARAM, in, 4, &attr, &new_param, err));
  TP__TRY(tp__graph_assign(g, velocity, new_velocity, err));
  return assign(o, g, param, new_param, step, slots, err);
}

tp_status tp__optimizer_add(const tp__optimizer *o, tp__graph *g, tp__value param,
                            tp__value gradient, tp__value rate, tp__value step, tp__tensors *slots,
                            tp_error *err)
{
  if (o->kind == TP__OPTIMIZER_ADAM) return add_adam(o, g, param, gradient, rate, step, slots, err);
  return add_sgd(o, g, param, gradient, rate, step, slots, err);
}
