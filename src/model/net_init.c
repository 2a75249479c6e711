/* net_init - fresh weights as functions of (seed, parameter's name, position); see net.h
 *
 * Keras' variance scaling: n = outputs that one input reaches (kernel area x filters; for a
 * depthwise kernel [k,k,C,1], whose last dimension Keras takes for the filters, the area alone),
 * standard deviation sqrt(2 / n) after cutting at two deviations. The normal draws are made from
 * uniform ones by the inverse of the error function: M. Giles, "Approximating the erfinv function",
 * GPU Computing Gems 2, 2011 (single precision, central branch; relative error below 1e-6 here).
 */
#include <math.h>
#include <string.h>

#include "base/checksum.h"
#include "net.h"

/* |t| <= erf(sqrt 2) = 0.9545, so that -log(1 - t^2) is below 5, where the other branch would
 * begin. */
static float inverse_erf(float t)
{
  static const float c[] = {2.81022636e-08f,  3.43273939e-07f, -3.5233877e-06f,
                            -4.39150654e-06f, 0.00021858087f,  -0.00125372503f,
                            -0.00417768164f,  0.246640727f,    1.50140941f};
  float w = -logf((1 - t) * (1 + t)) - 2.5f;
  float p = c[0];
  for (size_t i = 1; i < sizeof c / sizeof *c; i++) p = p * w + c[i];
  return p * t;
}

/* n uniform draws of [0, 1): tp__uniform of 0...n-1, four at a time. */
static void draw(float *u, size_t n, tp__key key)
{
  for (size_t i = 0; i < n; i += 4) {
    uint32_t word[4];
    tp__philox(key, (uint32_t)(i / 4), TP__DRAW_INIT, 0, 0, word);
    for (size_t k = 0; k < 4 && i + k < n; k++) u[i + k] = tp__unit_float(word[k]);
  }
}

static void truncated_normal(float *w, size_t n, double deviation, tp__key key)
{
  const float cut = 0.954499736f;               /* erf(sqrt 2): the mass within two deviations */
  const double after_cut = 0.87962566103423978; /* deviation of the unit normal cut at two */
  float scale = (float)(deviation / after_cut * 1.4142135623730951);
  draw(w, n, key);
  for (size_t i = 0; i < n; i++) w[i] = scale * inverse_erf(cut * (2 * w[i] - 1));
}

static void uniform(float *w, size_t n, double limit, tp__key key)
{
  draw(w, n, key);
  for (size_t i = 0; i < n; i++) w[i] = (float)(limit * (2 * (double)w[i] - 1));
}

static void fill(float *w, size_t n, float value)
{
  for (size_t i = 0; i < n; i++) w[i] = value;
}

/* [k,k,C,K]: k k K. */
static double fan_out(const tp__shape *kernel)
{
  return (double)(kernel->dim[0] * kernel->dim[1] * kernel->dim[3]);
}

/* The limit of Keras' glorot_uniform: inputs and outputs that one number meets, as its shape alone
 * tells (for a depthwise kernel one output). */
static double glorot_limit(const tp__shape *kernel)
{
  int64_t area = 1;
  for (int i = 0; i < kernel->rank - 2; i++) area *= kernel->dim[i];
  int64_t in = kernel->dim[kernel->rank - 2], out = kernel->dim[kernel->rank - 1];
  return sqrt(6.0 / (double)(area * (in + out)));
}

static void init_normalization(float *w, size_t n, enum tp__init init)
{
  static const double mean[3] = {0.485, 0.456, 0.406}, deviation[3] = {0.229, 0.224, 0.225};
  for (size_t c = 0; c < n && c < 3; c++) {
    if (init == TP__INIT_NORMALIZATION_MEAN)
      w[c] = (float)mean[c];
    else if (init == TP__INIT_NORMALIZATION_VARIANCE)
      w[c] = (float)(deviation[c] * deviation[c]);
    else
      w[c] = (float)deviation[c];
  }
}

static void init_tensor(const tp__parameter *p, tp__tensor *t, uint64_t seed)
{
  if (p->dtype != TP__F32) return; /* a count: born zero */
  float *w = t->data;
  size_t n = tp__shape_elements(&p->shape, 0);
  tp__key key = tp__key_of(seed, 0, tp__hash_add_text(TP__HASH_BEGIN, p->name));
  switch (p->init) {
  case TP__INIT_ZEROS:
    break;
  case TP__INIT_ONES:
    fill(w, n, 1);
    break;
  case TP__INIT_FAN_OUT:
    truncated_normal(w, n, sqrt(2 / fan_out(&p->shape)), key);
    break;
  case TP__INIT_GLOROT:
    uniform(w, n, glorot_limit(&p->shape), key);
    break;
  case TP__INIT_NORMALIZATION_MEAN:
  case TP__INIT_NORMALIZATION_VARIANCE:
  case TP__INIT_NORMALIZATION_DEVIATION:
    init_normalization(w, n, p->init);
    break;
  }
}

tp_status tp__net_init(const tp__net *net, uint64_t seed, tp__tensors *weights, tp_error *err)
{
  for (int i = 0; i < net->n_parameters; i++) {
    const tp__parameter *p = &net->parameter[i];
    tp__tensor *t = NULL;
    tp_status status = tp__tensors_add(weights, p->name, p->dtype, &p->shape, &t, err);
    if (status != TP_OK) {
      tp__tensors_free(weights);
      return tp__at(err, status, "initial weights");
    }
    init_tensor(p, t, seed);
  }
  return TP_OK;
}
