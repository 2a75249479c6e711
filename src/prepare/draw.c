/* draw - a data set of drawn flowers in the layout of Kaggle's flower competition
 *
 *   OUT/train/NN-SxS-COUNT.tfrec    image, class, id         OUT/labels.txt              species,
 * one a line OUT/val/...                     image, class, id         OUT/test_labels.csv id,label:
 * the truth about test OUT/test/...                    image, id: no class
 * OUT/sample_submission.csv   id,label with label 0
 *
 * Every picture is a function of (seed, species, split, number), so a larger set begins with the
 * pictures of a smaller one. Records are in a shuffled order. Ids are nine hexadecimal digits, all
 * different, that tell nothing about the class.
 */
#include <stdlib.h>

#include "base/rng.h"
#include "image/image.h"
#include "out_folder.h"
#include "prepare.h"
#include "shards.h"
#include "species.h"

enum { SPLITS = 3, QUALITY = 92, PER_SHARD = 64, SHARDS_MAX = 16, PICTURES_MAX = 100000 };

static const char *const split_name[SPLITS] = {"train", "val", "test"};

struct drawing {
  const tp_draw_options *options;
  int split;
  uint64_t first_id; /* of this split */
  uint32_t *order;   /* record -> picture: species * count + number */
  size_t count;      /* pictures of each species */
  uint8_t **rgb;     /* [threads] */
};

const char *tp__draw_name(int species)
{
  return species >= 0 && species < TP__SPECIES ? tp__species_table[species].name : NULL;
}

/* The n-th id: a permutation of the 36-bit numbers, so no two are equal. */
static void make_id(uint64_t seed, uint64_t n, char id[16])
{
  const uint64_t mask = (UINT64_C(1) << 36) - 1;
  uint64_t x = (n ^ (seed * UINT64_C(0x9E3779B97F4A7C15) >> 28)) & mask;
  for (int round = 0; round < 3; round++) {
    x = (x * UINT64_C(0xD1342543DE82EF95) + 0x632BE5ABu) & mask; /* odd factor: one-to-one */
    x ^= x >> 17;
  }
  snprintf(id, 16, "%09llx", (unsigned long long)x);
}

static tp_status draw_record(void *arg, size_t item, int worker, tp__buffer *bytes,
                             tp__example_fields *fields, bool *skip, tp_error *err)
{
  (void)skip;
  struct drawing *d = arg;
  const tp_draw_options *o = d->options;
  size_t species = d->order[item] / d->count, number = d->order[item] % d->count;
  char id[16];
  make_id(o->seed, d->first_id + item, id);
  TP__TRY(tp__draw_flower((int)species, o->seed, (uint64_t)d->split << 32 | number, o->size,
                          d->rgb[worker], err));
  TP__TRY(tp__image_encode_jpeg(d->rgb[worker], o->size, o->size, QUALITY, bytes, err));
  size_t jpeg = bytes->size;
  TP__TRY(tp__buffer_add(bytes, id, sizeof id, err)); /* the id lives behind the picture */
  fields->image = bytes->data;
  fields->image_size = jpeg;
  fields->id = (const char *)bytes->data + jpeg;
  fields->label = d->split == 2 ? -1 : (int64_t)species;
  return TP_OK;
}

/* Fisher and Yates; splits do not share draws. */
static void shuffle(struct drawing *d, size_t total)
{
  tp__key key = tp__key_of(d->options->seed, (uint32_t)d->split, UINT64_MAX);
  for (size_t i = 0; i < total; i++) d->order[i] = (uint32_t)i;
  for (size_t i = total; i > 1; i--) {
    size_t j = (size_t)tp__below(key, TP__DRAW_ORDER, i, i);
    uint32_t kept = d->order[i - 1];
    d->order[i - 1] = d->order[j];
    d->order[j] = kept;
  }
}

/* ---- lists ---- */

/* labels.txt, and for the test split the truth and an example of what to hand in. */
static tp_status write_lists(const tp__out_folder *out, const struct drawing *test, size_t total,
                             tp_error *err)
{
  tp__buffer labels, truth, sample;
  tp__buffer_init(&labels, 1 << 20);
  tp__buffer_init(&truth, 1 << 28);
  tp__buffer_init(&sample, 1 << 28);
  tp_status status = TP_OK;
  for (int i = 0; i < test->options->species && status == TP_OK; i++)
    status = tp__buffer_printf(&labels, err, "%s\n", tp__species_table[i].name);
  if (status == TP_OK) status = tp__buffer_printf(&truth, err, "id,label\n");
  if (status == TP_OK) status = tp__buffer_printf(&sample, err, "id,label\n");
  for (size_t i = 0; i < total && status == TP_OK; i++) {
    char id[16];
    make_id(test->options->seed, test->first_id + i, id);
    status =
        tp__buffer_printf(&truth, err, "%s,%u\n", id, (unsigned)(test->order[i] / test->count));
    if (status == TP_OK) status = tp__buffer_printf(&sample, err, "%s,0\n", id);
  }
  if (status == TP_OK) status = tp__out_folder_write(out, "labels.txt", &labels, err);
  if (status == TP_OK && total > 0)
    status = tp__out_folder_write(out, "test_labels.csv", &truth, err);
  if (status == TP_OK && total > 0)
    status = tp__out_folder_write(out, "sample_submission.csv", &sample, err);
  tp__buffer_free(&labels);
  tp__buffer_free(&truth);
  tp__buffer_free(&sample);
  return status;
}

/* ---- the job ---- */

static tp_status check_options(const tp_draw_options *o, tp_error *err)
{
  if (o->species < 2 || o->species > TP__SPECIES)
    return tp__fail(err, TP_ERR_USAGE, "species must be 2 to %d, not %d", TP__SPECIES, o->species);
  if (o->size < 16 || o->size > 1024)
    return tp__fail(err, TP_ERR_USAGE, "size must be 16 to 1024, not %d", o->size);
  const int count[SPLITS] = {o->train, o->val, o->test};
  for (int i = 0; i < SPLITS; i++)
    if (count[i] < (i == 0 ? 1 : 0) || count[i] > PICTURES_MAX)
      return tp__fail(err, TP_ERR_USAGE, "%s pictures of each species must be %d to %d, not %d",
                      split_name[i], i == 0 ? 1 : 0, PICTURES_MAX, count[i]);
  return TP_OK;
}

static tp_status draw_split(struct drawing *d, const tp__out_folder *out, tp__tally *tally,
                            tp_error *err)
{
  size_t total = d->count * (size_t)d->options->species;
  shuffle(d, total);
  if (total == 0) return TP_OK;
  char *folder = tp__out_folder_entry(out, split_name[d->split], true, err);
  if (folder == NULL) return TP_ERR_OUTPUT;
  size_t shards = (total + PER_SHARD - 1) / PER_SHARD;
  if (shards > SHARDS_MAX) shards = SHARDS_MAX;
  tp_status status = tp__write_shards(tally, folder, total, shards, d->options->size,
                                      d->options->size, draw_record, d, err);
  free(folder);
  return status;
}

static tp_status draw_all(const tp__job *job, struct drawing *d, const tp__out_folder *out,
                          tp_error *err)
{
  const tp_draw_options *o = d->options;
  const int count[SPLITS] = {o->train, o->val, o->test};
  tp__tally tally;
  tp__tally_start(&tally, job, "draw", (int64_t)o->species * (o->train + o->val + o->test));
  for (int i = 0; i < SPLITS; i++) {
    d->split = i;
    d->count = (size_t)count[i];
    d->first_id = (uint64_t)i << 34;
    tp_status status = draw_split(d, out, &tally, err);
    if (status != TP_OK) return tp__at(err, status, "%s", split_name[i]);
  }
  TP__TRY(write_lists(out, d, d->count * (size_t)o->species, err));
  tp__tally_end(&tally);
  return TP_OK;
}

tp_status tp__draw(const tp__job *job, const tp_draw_options *o, tp_error *err)
{
  TP__TRY(check_options(o, err));
  tp__out_folder out;
  TP__TRY(tp__out_folder_open(&out, o->out, o->overwrite, err));
  struct drawing d = {.options = o};
  int most = o->train > o->val ? o->train : o->val, threads = tp__pool_threads(job->pool);
  if (o->test > most) most = o->test;
  d.order = tp__calloc((size_t)most * (size_t)o->species, sizeof *d.order, err);
  d.rgb = tp__calloc((size_t)threads, sizeof *d.rgb, err);
  tp_status status = d.order != NULL && d.rgb != NULL ? TP_OK : TP_ERR_INTERNAL;
  for (int i = 0; i < threads && status == TP_OK; i++) {
    d.rgb[i] = tp__calloc((size_t)o->size * (size_t)o->size, 3, err);
    if (d.rgb[i] == NULL) status = TP_ERR_INTERNAL;
  }
  if (status == TP_OK) status = draw_all(job, &d, &out, err);
  if (status == TP_OK) status = tp__out_folder_commit(&out, err);
  tp__out_folder_cancel(&out);
  if (status == TP_OK)
    tp__say(job->log, "%s: %d pictures of %d species drawn", o->out,
            o->species * (o->train + o->val + o->test), o->species);
  for (int i = 0; d.rgb != NULL && i < threads; i++) free(d.rgb[i]);
  free(d.rgb);
  free(d.order);
  return status;
}
