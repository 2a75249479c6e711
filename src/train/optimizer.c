/* optimizer - see optimizer.h */
#include "optimizer.h"

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
  };
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
  TP__TRY(tp__graph_add(g, TP__OP_ADAM_PARAM, (tp__value[]){param, new_m, new_v, rate, step}, 5,
                        &(tp__attr){.f = {o->beta_1, o->beta_2, o->epsilon}}, &new_param, err));
  TP__TRY(tp__graph_assign(g, m, new_m, err));
  TP__TRY(tp__graph_assign(g, v, new_v, err));
  return tp__graph_assign(g, param, new_param, err);
}

static tp_status add_sgd(const tp__optimizer *o, tp__graph *g, tp__value param, tp__value gradient,
                         tp__value rate, tp__tensors *slots, tp_error *err)
{
  tp__value velocity = TP__NONE, new_velocity = TP__NONE, new_param = TP__NONE;
  tp__attr attr = {.f = {o->momentum}, .flag = o->nesterov};
  TP__TRY(add_slot(g, "sgd/velocity", param, slots, &velocity, err));
  TP__TRY(tp__graph_add(g, TP__OP_SGD_MOMENTUM, (tp__value[]){velocity, gradient, rate}, 3, &attr,
                        &new_velocity, err));
  int n = o->nesterov ? 4 : 2; /* only Nesterov's step looks at the gradient again */
  TP__TRY(tp__graph_add(g, TP__OP_SGD_PARAM, (tp__value[]){param, new_velocity, gradient, rate}, n,
                        &attr, &new_param, err));
  TP__TRY(tp__graph_assign(g, velocity, new_velocity, err));
  return tp__graph_assign(g, param, new_param, err);
}

tp_status tp__optimizer_add(const tp__optimizer *o, tp__graph *g, tp__value param,
                            tp__value gradient, tp__value rate, tp__value step, tp__tensors *slots,
                            tp_error *err)
{
  if (o->kind == TP__OPTIMIZER_ADAM) return add_adam(o, g, param, gradient, rate, step, slots, err);
  return add_sgd(o, g, param, gradient, rate, slots, err);
}
