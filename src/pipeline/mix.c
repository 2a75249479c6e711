/* mix - MixUp and CutMix: examples of a batch that hold a part of another; see stage.h
 *
 * As the layers of Keras 3: each example gets a share lambda of its own from Beta(alpha, alpha).
 * MixUp (H. Zhang et al., ICLR 2018) makes lambda x + (1 - lambda) y of it and its partner; CutMix
 * (S. Yun et al., ICCV 2019) puts a rectangle of the partner's, of sides sqrt(1 - lambda),
 * somewhere inside, and lambda becomes what the whole pixels leave. With both, a coin decides for
 * each example. The partner is the next example of the batch, the first for the last: batches are
 * drawn by lot already. All draws are functions of the example's key, and the partner is one of the
 * batch, so results depend neither on threads nor on where a run was stopped. Of several processes
 * each has a row more than its own for that, which stays unmixed; only where that one is damaged
 * (max_bad) the partner is another than one process alone would take.
 *
 * The label with the larger share is the first of the two.
 */
#include <math.h>
#include <string.h>

#include "stage.h"

bool tp__mixes(const tp__pipeline_options *o)
{
  return o->training && (o->mixup > 0 || o->cutmix > 0);
}

/* ---- draws ---- */

static void cut(struct tp__mixture *m, double lambda, tp__key key, int height, int width)
{
  const double side = sqrt(1 - lambda);
  tp__rect r = {.h = (int)(side * height + 0.5), .w = (int)(side * width + 0.5)};
  r.y = (int)((double)tp__uniform(key, TP__DRAW_CUT, 1) * (height - r.h + 1));
  r.x = (int)((double)tp__uniform(key, TP__DRAW_CUT, 2) * (width - r.w + 1));
  m->cut = true;
  m->part = r;
  m->share = (float)(1 - (double)r.h * r.w / ((double)height * width));
}

static struct tp__mixture draw(const tp__pipeline_options *o, tp__key key)
{
  struct tp__mixture m = {.share = 1};
  bool cuts = o->cutmix > 0;
  if (cuts && o->mixup > 0) cuts = tp__uniform(key, TP__DRAW_CUT, 0) < 0.5f;
  double lambda = tp__beta(key, TP__DRAW_MIX, (double)(cuts ? o->cutmix : o->mixup));
  if (cuts)
    cut(&m, lambda, key, o->recipe.height, o->recipe.width);
  else
    m.share = (float)lambda;
  return m;
}

/* ---- pixels ---- */

struct mixing {
  const tp__pipeline *p;
  struct tp__slot *s;
};

/* Line y of all rows, in their order: each reads the next one's before that is mixed itself. */
static void mix_line(void *arg, size_t y, int worker)
{
  (void)worker;
  const struct mixing *job = arg;
  const tp__pipeline *p = job->p;
  const size_t values = (size_t)p->options.recipe.width * 3, at = y * values, n = job->s->n;
  const size_t there = n + job->s->extra;
  memcpy(p->unmixed + at, job->s->pixels + at, values * sizeof(float));
  for (size_t i = 0; i < n; i++) {
    const struct tp__mixture *m = &p->mixture[i];
    float *line = job->s->pixels + i * p->row + at;
    const float *other = (i + 1 < there ? line + p->row : p->unmixed + at);
    if (m->cut) {
      if ((int)y < m->part.y || (int)y >= m->part.y + m->part.h) continue;
      size_t from = (size_t)m->part.x * 3;
      memcpy(line + from, other + from, (size_t)m->part.w * 3 * sizeof(float));
    } else {
      const float share = m->share, rest = 1 - m->share;
      for (size_t k = 0; k < values; k++) line[k] = share * line[k] + rest * other[k];
    }
  }
}

static void mix_labels(const tp__pipeline *p, struct tp__slot *s)
{
  const int32_t first = s->labels[0];
  for (size_t i = 0; i < s->n; i++) {
    const float share = p->mixture[i].share;
    s->labels_2[i] = i + 1 < s->n + s->extra ? s->labels[i + 1] : first;
    s->share[i] = share;
  }
  for (size_t i = 0; i < s->n; i++) {
    if (s->share[i] >= 0.5f) continue;
    int32_t smaller = s->labels[i];
    s->labels[i] = s->labels_2[i];
    s->labels_2[i] = smaller;
    s->share[i] = 1 - s->share[i];
  }
}

void tp__mix(tp__pipeline *p, struct tp__slot *s)
{
  struct mixing job = {p, s};
  const double start = tp__now();
  for (size_t i = 0; i < s->n; i++)
    p->mixture[i] = draw(&p->options, (tp__key){{s->keys[2 * i], s->keys[2 * i + 1]}});
  if (s->n + s->extra > 1) tp__pool_for(p->pool, (size_t)p->options.recipe.height, mix_line, &job);
  mix_labels(p, s);
  const double seconds = tp__now() - start;
  tp__stage_count(p, TP__STAGE_FINISH, seconds);
  tp__stage_count(p, TP__STAGE_WAITING, seconds);
}
