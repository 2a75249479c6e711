/* feature_memory - see feature_memory.h */
#include "feature_memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

tp_status tp__feature_memory_init(tp__feature_memory *m, size_t examples, int batch, tp_error *err)
{
  *m = (tp__feature_memory){.examples = examples, .batch_size = batch};
  m->known = tp__calloc(examples, sizeof *m->known, err);
  return m->known == NULL ? TP_ERR_INTERNAL : TP_OK;
}

tp_status tp__feature_memory_start(tp__feature_memory *m, size_t width, tp_error *err)
{
  m->width = width;
  m->row = tp__calloc_aligned(m->examples, width * sizeof(float), err);
  m->batch = tp__calloc_aligned((size_t)m->batch_size, width * sizeof(float), err);
  if (m->row != NULL && m->batch != NULL) return TP_OK;
  tp__feature_memory_stop(m);
  return TP_ERR_INTERNAL;
}

void tp__feature_memory_stop(tp__feature_memory *m)
{
  for (size_t i = 0; m->row != NULL && i < m->examples; i++)
    atomic_store_explicit(&m->known[i], 0, memory_order_relaxed);
  free(m->row);
  free(m->batch);
  m->row = m->batch = NULL;
}

void tp__feature_memory_free(tp__feature_memory *m)
{
  tp__feature_memory_stop(m);
  free(m->known);
  *m = (tp__feature_memory){0};
}

static bool is_known(const tp__feature_memory *m, uint32_t example)
{
  return atomic_load_explicit(&m->known[example], memory_order_relaxed) != 0;
}

/* Computes the rows of a batch that are not known: one run of the backbone for each stretch of
 * them. */
static tp_status compute_unknown(tp__feature_memory *m, tp__learner *learner, const tp__batch *b,
                                 size_t picture, tp_error *err)
{
  for (int64_t i = 0; i < b->n;) {
    int64_t end = i;
    while (end < b->n && !is_known(m, b->example[end])) end++;
    if (end == i) {
      i++;
      continue;
    }
    TP__TRY(tp__learner_extract(learner, b->pixels + (size_t)i * picture, end - i,
                                m->batch + (size_t)i * m->width, err));
    i = end;
  }
  return TP_OK;
}

tp_status tp__feature_memory_get(tp__feature_memory *m, tp__learner *learner, const tp__batch *b,
                                 const float **features, tp_error *err)
{
  TP__TRY(compute_unknown(m, learner, b, tp__learner_picture(learner), err));
  for (int64_t i = 0; i < b->n; i++) {
    float *row = m->row + b->example[i] * m->width, *place = m->batch + (size_t)i * m->width;
    if (is_known(m, b->example[i])) {
      memcpy(place, row, m->width * sizeof *row);
    } else {
      memcpy(row, place, m->width * sizeof *row);
      atomic_store_explicit(&m->known[b->example[i]], 1, memory_order_relaxed);
    }
  }
  *features = m->batch;
  return TP_OK;
}
