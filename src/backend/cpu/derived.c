/* derived - what is made from weights, remade when a version changed; see plan.h */
#include <math.h>
#include <string.h>

#include "exec.h"
#include "geometry.h"

static const float *source(const tp__plan *plan, tp__value v)
{
  const tp__slot *s = &plan->slot[v];
  return s->home == TP__HOME_STATE ? s->entry->data : plan->shared + s->at;
}

/* y = (x - mean) gamma / sqrt(variance + epsilon) + beta, or x + bias. */
static void make_norm(const tp__plan *plan, const tp__derived *d, float *factor, float *shift)
{
  if (d->n_in == 1) {
    for (long c = 0; c < d->n; c++) factor[c] = 1, shift[c] = source(plan, d->in[0])[c];
    return;
  }
  const float *gamma = source(plan, d->in[0]), *beta = source(plan, d->in[1]);
  const float *mean = source(plan, d->in[2]), *variance = source(plan, d->in[3]);
  for (long c = 0; c < d->n; c++) {
    double f = gamma[c] / sqrt((double)variance[c] + d->node->attr.f[0]);
    factor[c] = (float)f;
    shift[c] = (float)(beta[c] - mean[c] * f);
  }
}

static void make_norm_grad(const tp__plan *plan, const tp__derived *d, float *factor, float *shift)
{
  const float *gamma = source(plan, d->in[0]), *variance = source(plan, d->in[1]);
  for (long c = 0; c < d->n; c++) {
    factor[c] = (float)(gamma[c] / sqrt((double)variance[c] + d->node->attr.f[0]));
    shift[c] = 0;
  }
}

static void make_unit(const tp__plan *plan, const tp__derived *d, float *factor, float *shift)
{
  const float *mean = source(plan, d->in[0]), *variance = source(plan, d->in[1]);
  for (long c = 0; c < d->n; c++) {
    double f = 1 / sqrt((double)variance[c] + d->node->attr.f[0]);
    factor[c] = (float)f;
    shift[c] = (float)(-mean[c] * f);
  }
}

/* dx = gamma / s (dy - (beta_grad + (x - mean) / s gamma_grad) / count) = dy scale + ((x - mean)
 * slope + shift). */
static void make_norm_full(const tp__plan *plan, const tp__derived *d, float *scale)
{
  const float *gamma = source(plan, d->in[0]), *moments = source(plan, d->in[1]);
  const float *beta_grad = source(plan, d->in[2]), *gamma_grad = source(plan, d->in[3]);
  float *mean = scale + tp__pitch(d->n), *slope = mean + tp__pitch(d->n),
        *shift = slope + tp__pitch(d->n);
  tp__view x = tp__view_of(&d->node->shape, plan->total, 0);
  double count = (double)(x.n * tp__pixels(&x));
  for (long c = 0; c < d->n; c++) {
    double inverse = 1 / sqrt((double)moments[d->n + c] + d->node->attr.f[0]);
    double factor = gamma[c] * inverse;
    scale[c] = (float)factor;
    mean[c] = moments[c];
    slope[c] = (float)(-factor * inverse * gamma_grad[c] / count);
    shift[c] = (float)(-factor * beta_grad[c] / count);
  }
}

/* Composes the chain from its last node backwards: what was made so far applies to the node's
 * result. */
static void make_pixels(const tp__plan *plan, const tp__derived *d, float *factor, float *shift)
{
  int64_t channels = tp__view_of(&d->node->shape, 1, 0).c;
  for (long j = 0; j < d->n; j++) {
    int64_t c = j % channels;
    double f = 1, b = 0;
    for (const tp__node *n = d->node;; n = tp__plan_node(plan, n->in[0])) {
      if (n->op == TP__OP_NORMALIZE) {
        double deviation = fmax(sqrt((double)source(plan, n->in[2])[c]), 1e-7);
        b -= f * source(plan, n->in[1])[c] / deviation;
        f /= deviation;
      } else {
        b += f * (n->attr.flag ? n->attr.g[c] : n->attr.f[1]);
        f *= n->attr.flag ? n->attr.f[c] : n->attr.f[0];
      }
      if (n == d->first) break;
    }
    factor[j] = (float)f;
    shift[j] = (float)b;
  }
}

static void make(tp__plan *plan, const tp__derived *d)
{
  const tp__kernels *k = plan->kernels;
  float *to = plan->made + d->at;
  const int64_t *dim = tp__plan_node(plan, d->n_in > 0 ? d->in[0] : 0)->shape.dim;
  switch (d->kind) {
  case TP__DERIVE_GEMM:
    k->pack_gemm(source(plan, d->in[0]), d->n, 1, d->k, d->n, to);
    break;
  case TP__DERIVE_GEMM_TRANSPOSED:
    k->pack_gemm(source(plan, d->in[0]), 1, d->k, d->k, d->n, to);
    break;
  case TP__DERIVE_CONV:
    k->pack_conv(source(plan, d->in[0]), (int)dim[0], (int)dim[1], (int)dim[2], (int)dim[3], to);
    break;
  case TP__DERIVE_CONV_TRANSPOSED:
    k->pack_conv_transposed(source(plan, d->in[0]), (int)dim[0], (int)dim[1], (int)dim[2],
                            (int)dim[3], to);
    break;
  case TP__DERIVE_WINOGRAD:
  case TP__DERIVE_WINOGRAD_TRANSPOSED:
    k->pack_winograd(source(plan, d->in[0]), (int)d->k, (int)dim[2], (int)dim[3],
                     d->kind == TP__DERIVE_WINOGRAD_TRANSPOSED, to);
    break;
  case TP__DERIVE_DEPTHWISE:
    k->pack_depthwise(source(plan, d->in[0]), (int)d->k, (int)d->n, to);
    break;
  case TP__DERIVE_NORM:
    make_norm(plan, d, to, to + tp__pitch(d->n));
    break;
  case TP__DERIVE_NORM_GRAD:
    make_norm_grad(plan, d, to, to + tp__pitch(d->n));
    break;
  case TP__DERIVE_UNIT:
    make_unit(plan, d, to, to + tp__pitch(d->n));
    break;
  case TP__DERIVE_NORM_FULL:
    make_norm_full(plan, d, to);
    break;
  case TP__DERIVE_PIXELS:
    make_pixels(plan, d, to, to + d->n);
    break;
  }
}

static void make_task(void *arg, size_t index, int worker)
{
  (void)worker;
  tp__plan *plan = arg;
  make(plan, &plan->derived[plan->task[index].unit]);
}

/* A chain without parameters has version 0 for ever: it is made in the first run. */
void tp__run_derived(tp__plan *plan, int level)
{
  plan->n_tasks = 0;
  for (int i = 0; i < plan->n_derived; i++) {
    tp__derived *d = &plan->derived[i];
    if (d->level != level) continue;
    uint64_t newest = 1;
    for (int k = 0; k < d->n_in; k++) {
      uint64_t version = tp__version(plan, d->in[k]);
      if (version > newest) newest = version;
    }
    if (newest == d->version) continue;
    d->version = newest;
    plan->task[plan->n_tasks++] = (tp__task){.unit = i};
  }
  tp__pool_for(plan->program->cpu->pool, plan->n_tasks, make_task, plan);
}
