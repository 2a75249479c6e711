/* duplicates - records with the same picture; see findings.h
 *
 * A picture that is in training and validation makes a network look better than it is; one with two
 * labels cannot be learnt. Candidates have equal hashes and sizes; what counts is the comparison of
 * their bytes (or pixels).
 */
#include <stdlib.h>
#include <string.h>

#include "findings.h"

struct key {
  uint64_t hash, size;
  uint32_t index;
};

static int by_key(const void *a, const void *b)
{
  const struct key *x = a, *y = b;
  if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
  if (x->size != y->size) return x->size < y->size ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

static int by_first(const void *a, const void *b)
{
  const tp__twins *x = a, *y = b;
  return x->first < y->first ? -1 : x->first > y->first;
}

/* Reads (and decodes) two records and says whether they are the same. */
struct pair {
  tp__buffer bytes[2];
  tp__picture picture[2];
};

static bool load(const tp__findings *f, struct pair *p, int side, size_t index, bool pixels)
{
  tp__decode_options plain = {0};
  tp__buffer *b = &p->bytes[side];
  if (tp__catalog_read(f->catalog, index, b, NULL) != TP_OK) return false;
  return !pixels || tp__image_decode(b->data, b->size, &plain, &p->picture[side], NULL) == TP_OK;
}

static bool same(const tp__findings *f, struct pair *p, size_t index, bool pixels)
{
  if (!load(f, p, 1, index, pixels)) return false;
  const tp__buffer *a = pixels ? &p->picture[0].rgb : &p->bytes[0];
  const tp__buffer *b = pixels ? &p->picture[1].rgb : &p->bytes[1];
  if (pixels && p->picture[0].width != p->picture[1].width) return false;
  return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

static uint32_t split_of(const tp__findings *f, size_t index)
{
  return f->split_of[tp__catalog_record(f->catalog, index)->file];
}

/* Adds a group of members (records whose picture is that of the first). */
static void add_group(tp__findings *f, const uint32_t *member, size_t count, bool pixels, size_t at)
{
  tp__twins *t = &f->twins[f->n_twins];
  *t = (tp__twins){.first = at, .count = count, .pixels = pixels};
  bool bytes_alone = true; /* all equal in bytes already: told by the other search */
  for (size_t i = 0; i < count; i++) {
    const tp__record *r = tp__catalog_record(f->catalog, member[i]);
    const tp__record *first = tp__catalog_record(f->catalog, member[0]);
    f->twin[at + i] = member[i];
    if (split_of(f, member[i]) != split_of(f, member[0])) t->across = true;
    if (r->label >= 0 && first->label >= 0 && r->label != first->label) t->contradict = true;
    if (f->look[member[i]].bytes_hash != f->look[member[0]].bytes_hash) bytes_alone = false;
  }
  if (pixels && bytes_alone) return;
  if (t->across || t->contradict) f->twin_faults += (int64_t)count - 1;
  f->n_twins++;
}

/* Goes through runs of equal keys. *used: entries of f->twin taken. */
static void group(tp__findings *f, const struct key *key, size_t n, bool pixels, size_t *used)
{
  struct pair pair = {0};
  for (int i = 0; i < 2; i++) tp__buffer_init(&pair.bytes[i], UINT32_MAX);
  for (size_t i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && key[end].hash == key[i].hash && key[end].size == key[i].size;)
      end++;
    if (end - i < 2 || !load(f, &pair, 0, key[i].index, pixels)) continue;
    uint32_t *member = f->twin + *used;
    size_t count = 1;
    member[0] = key[i].index;
    for (size_t k = i + 1; k < end; k++)
      if (same(f, &pair, key[k].index, pixels)) member[count++] = key[k].index;
    if (count < 2) continue;
    size_t before = f->n_twins;
    add_group(f, member, count, pixels, *used);
    if (f->n_twins > before) *used += count;
  }
  for (int i = 0; i < 2; i++) {
    tp__buffer_free(&pair.bytes[i]);
    tp__buffer_free(&pair.picture[i].rgb);
  }
}

tp_status tp__find_duplicates(const tp__job *job, tp__findings *f, tp_error *err)
{
  (void)job;
  struct key *key = tp__calloc(f->n, sizeof *key, err);
  f->twin =
      tp__calloc(2 * f->n, sizeof *f->twin, err); /* each record in one group of either kind */
  f->twins = tp__calloc(f->n, sizeof *f->twins, err);
  tp_status status = key != NULL && f->twin != NULL && f->twins != NULL ? TP_OK : TP_ERR_INTERNAL;
  size_t used = 0;
  for (int pixels = 0; pixels < 2 && status == TP_OK; pixels++) {
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
      const tp__look *l = &f->look[i];
      if (pixels ? !l->decoded : l->format == TP__FORMAT_EMPTY) continue;
      uint64_t size = pixels ? (uint64_t)l->height * (uint64_t)l->width
                             : tp__catalog_record(f->catalog, i)->image_size;
      key[n++] = (struct key){pixels ? l->pixels_hash : l->bytes_hash, size, (uint32_t)i};
    }
    qsort(key, n, sizeof *key, by_key);
    size_t before = f->n_twins;
    group(f, key, n, pixels != 0, &used);
    /* in the order of the records, not of the hashes */
    for (size_t i = before; i < f->n_twins; i++) {
      tp__twins *t = &f->twins[i];
      t->first = (size_t)f->twin[t->first] << 32 | t->first;
    }
    qsort(f->twins + before, f->n_twins - before, sizeof *f->twins, by_first);
    for (size_t i = before; i < f->n_twins; i++) f->twins[i].first &= UINT32_MAX;
  }
  free(key);
  return status;
}
