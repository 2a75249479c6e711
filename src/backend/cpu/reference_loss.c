/* reference_loss - dropout, softmax, cross-entropy from logits and the weighted sum; see
 * reference.h */
#include <math.h>

#include "base/rng.h"
#include "reference.h"

/* Inverted dropout: what is kept is divided by the kept share. The draw is a function of the
 * example's key, so that it depends neither on the batch nor on threads. Its own gradient, too: the
 * same operator on dy. */
void tp__ref_dropout(const tp__ref *r)
{
  const tp__view *y = &r->out;
  float rate = r->node->attr.f[0];
  uint32_t draw = TP__DRAW_DROPOUT | r->node->attr.draw << 8;
  for (int64_t i = 0; i < r->n; i++) {
    const uint32_t *word = (const uint32_t *)r->in[1].data + i * r->in[1].row;
    tp__key key = {{word[0], word[1]}};
    for (int64_t p = 0; p < tp__pixels(y); p++) {
      for (int64_t c = 0; c < y->c; c++) {
        uint32_t element = r->node->attr.flag ? 0 : (uint32_t)(p * y->c + c);
        bool kept = tp__uniform(key, draw, element) >= rate;
        tp__pixel(y, i, p)[c] = kept ? tp__pixel(&r->in[0], i, p)[c] / (1 - rate) : 0;
      }
    }
  }
}

/* log(sum_k exp(x_k)), safe for any finite x. */
static double log_sum_exp(const float *x, int64_t count)
{
  double top = x[0], sum = 0;
  for (int64_t k = 1; k < count; k++) top = fmax(top, x[k]);
  for (int64_t k = 0; k < count; k++) sum += exp(x[k] - top);
  return top + log(sum);
}

void tp__ref_softmax(const tp__ref *r)
{
  for (int64_t i = 0; i < r->n; i++) {
    for (int64_t p = 0; p < tp__pixels(&r->out); p++) {
      const float *x = tp__pixel(&r->in[0], i, p);
      double log_sum = log_sum_exp(x, r->out.c);
      for (int64_t k = 0; k < r->out.c; k++)
        tp__pixel(&r->out, i, p)[k] = (float)exp(x[k] - log_sum);
    }
  }
}

/* Label smoothing s: the target is (1 - s) for the label plus s / K for every class. */
static double target(const tp__ref *r, int64_t i, int64_t k)
{
  const int32_t *label = (const int32_t *)r->in[1].data + i * r->in[1].row;
  double smoothing = r->node->attr.f[0], classes = (double)r->in[0].c;
  return (k == *label ? 1 - smoothing : 0) + smoothing / classes;
}

void tp__ref_cross_entropy(const tp__ref *r)
{
  for (int64_t i = 0; i < r->n; i++) {
    const float *logits = tp__pixel(&r->in[0], i, 0);
    double log_sum = log_sum_exp(logits, r->in[0].c), loss = 0;
    for (int64_t k = 0; k < r->in[0].c; k++) loss -= target(r, i, k) * (logits[k] - log_sum);
    *tp__pixel(&r->out, i, 0) = (float)loss;
  }
}

/* Targets that add up to 1: d loss / d logit_k = softmax_k - t_k. */
void tp__ref_cross_entropy_grad(const tp__ref *r)
{
  for (int64_t i = 0; i < r->n; i++) {
    const float *logits = tp__pixel(&r->in[0], i, 0);
    double log_sum = log_sum_exp(logits, r->in[0].c), dloss = *tp__pixel(&r->in[2], i, 0);
    for (int64_t k = 0; k < r->in[0].c; k++)
      tp__pixel(&r->out, i, 0)[k] = (float)(dloss * (exp(logits[k] - log_sum) - target(r, i, k)));
  }
}

/* One after the other, so that the sum does not depend on how examples are grouped. */
void tp__ref_weighted_sum(const tp__ref *r)
{
  float *sum = r->out.data;
  for (int64_t i = 0; i < r->n; i++)
    *sum += *tp__pixel(&r->in[0], i, 0) * *tp__pixel(&r->in[1], i, 0);
}

void tp__ref_scale_rows(const tp__ref *r)
{
  for (int64_t i = 0; i < r->n; i++)
    *tp__pixel(&r->out, i, 0) = *tp__ref_f32(r, 0) * *tp__pixel(&r->in[1], i, 0);
}
