/* pack_photos - the photos that are to be packed: found, decoded once, shared out; see packing.h */
#include <stdlib.h>
#include <string.h>

#include "packing.h"

/* ---- options ---- */

static bool take_side(const char **text, int *value)
{
  const char *p = *text;
  *value = 0;
  while (*p >= '0' && *p <= '9' && *value < 100000) *value = *value * 10 + (*p++ - '0');
  bool good = p != *text && *value >= 1 && *value <= 16384;
  *text = p;
  return good;
}

static tp_status parse_size(const char *text, int *height, int *width, tp_error *err)
{
  const char *p = text;
  bool good = take_side(&p, height);
  *width = *height;
  if (good && (*p == 'x' || *p == 'X')) {
    p++;
    good = take_side(&p, width);
  }
  if (good && *p == '\0') return TP_OK;
  return tp__fail(err, TP_ERR_USAGE,
                  "image size \"%.60s\": wanted 192, or HEIGHTxWIDTH like 192x224", text);
}

tp_status tp__pack_read_options(struct tp__packing *p, tp_error *err)
{
  const tp_pack_options *o = p->options;
  if (o->inputs.count == 0)
    return tp__fail(err, TP_ERR_USAGE,
                    "no photos are given; say which folder, CSV file or shards to pack");
  if (o->quality < 1 || o->quality > 100)
    return tp__fail(err, TP_ERR_USAGE, "quality must be 1 to 100, not %d", o->quality);
  if (o->per_shard < 1)
    return tp__fail(err, TP_ERR_USAGE, "per shard must be 1 or more records, not %d", o->per_shard);
  TP__TRY(tp__split_parse(o->split != NULL ? o->split : "80,10,10", p->share, err));
  if (o->image_size != NULL) {
    TP__TRY(parse_size(o->image_size, &p->height, &p->width, err));
    p->resize = true;
  }
  const char *dct = o->data.dct;
  if (dct != NULL && strcmp(dct, "fast") != 0 && strcmp(dct, "accurate") != 0)
    return tp__fail(err, TP_ERR_USAGE, "dct \"%.60s\": wanted fast or accurate", dct);
  p->recipe =
      (tp__image_recipe){.height = p->height,
                         .width = p->width,
                         .antialias = o->data.antialias,
                         .decode = {.accurate_dct = dct != NULL && strcmp(dct, "accurate") == 0,
                                    .exif_rotate = o->data.exif_rotate}};
  if (o->data.fast_decode && p->resize) tp__image_recipe_decode_less(&p->recipe);
  return TP_OK;
}

/* ---- reading ---- */

tp_status tp__pack_open(const tp__job *job, struct tp__packing *p, tp_error *err)
{
  const tp_data_options *d = &p->options->data;
  if (d->labels != NULL) TP__TRY(tp__labels_read(d->labels, &p->labels, err));
  tp__catalog_options c = {.patterns = p->options->inputs.item,
                           .n_patterns = p->options->inputs.count,
                           .image_feature = d->image_feature,
                           .class_feature = d->class_feature,
                           .id_feature = d->id_feature,
                           .labels = p->labels.name,
                           .n_labels = p->labels.count,
                           .label_base = d->label_base,
                           .max_bad = d->max_bad};
  TP__TRY(tp__catalog_open(&c, job->pool, job->log, &p->catalog, err));
  p->n = tp__catalog_count(p->catalog);
  if (p->n == 0) return tp__fail(err, TP_ERR_DATA, "there is no photo to pack");
  return TP_OK;
}

tp_status tp__pack_room(const tp__job *job, struct tp__packing *p, tp_error *err)
{
  p->hands = tp__pool_threads(job->pool);
  p->found_height = tp__calloc(p->n, sizeof *p->found_height, err);
  p->found_width = tp__calloc(p->n, sizeof *p->found_width, err);
  p->fault = tp__calloc(p->n, sizeof *p->fault, err);
  p->part = tp__calloc(p->n, sizeof *p->part, err);
  p->order = tp__calloc(p->n, sizeof *p->order, err);
  p->hand = tp__calloc((size_t)p->hands, sizeof *p->hand, err);
  if (p->found_height == NULL || p->found_width == NULL || p->fault == NULL || p->part == NULL ||
      p->order == NULL || p->hand == NULL)
    return TP_ERR_INTERNAL;
  size_t pixels = (size_t)p->height * (size_t)p->width;
  for (int i = 0; i < p->hands; i++) {
    struct tp__pack_hand *h = &p->hand[i];
    tp__buffer_init(&h->bytes, UINT32_MAX);
    if (!p->resize) continue;
    h->pixels = tp__calloc(pixels, 3 * sizeof(float), err);
    h->rgb = tp__calloc(pixels, 3, err);
    if (h->pixels == NULL || h->rgb == NULL) return TP_ERR_INTERNAL;
  }
  return TP_OK;
}

struct checking {
  struct tp__packing *p;
  size_t first;
};

static void check_photo(void *arg, size_t index, int worker)
{
  struct checking *c = arg;
  struct tp__packing *p = c->p;
  struct tp__pack_hand *h = &p->hand[worker];
  size_t i = c->first + index;
  tp_error err = {0};
  tp_status status = tp__catalog_read(p->catalog, i, &h->bytes, &err);
  if (status == TP_OK)
    status = tp__image_decode(h->bytes.data, h->bytes.size, &p->recipe.decode, &h->picture, &err);
  if (status != TP_OK) {
    p->fault[i] = tp__strdup(err.text, NULL);
    return;
  }
  p->found_height[i] = h->picture.height;
  p->found_width[i] = h->picture.width;
}

/* How many pictures max_bad still lets pass, after what the catalog has left out; the catalog has
 * checked the text. */
static size_t pictures_allowed(const struct tp__packing *p)
{
  const char *text = p->options->data.max_bad;
  size_t out;
  (void)tp__catalog_bad(p->catalog, &out);
  if (text == NULL) return 0;
  double value = 0, place = 1;
  for (; (*text >= '0' && *text <= '9') || *text == '.'; text++) {
    if (*text == '.' || place < 1) place /= 10;
    if (*text == '.') continue;
    value = place < 1 ? value + (*text - '0') * place * 10 : value * 10 + (*text - '0');
  }
  if (*text == '%') value = (double)(p->n + out) * value / 100;
  return value > (double)out ? (size_t)(value - (double)out) : 0;
}

static tp_status check_faults(struct tp__packing *p, tp_error *err)
{
  size_t bad = 0, first = 0, allowed = pictures_allowed(p);
  for (size_t i = p->n; i-- > 0;)
    if (p->fault[i] != NULL) bad++, first = i;
  if (bad == 0) return TP_OK;
  if (bad == p->n) allowed = 0;
  if (bad <= allowed) return TP_OK;
  char where[1024];
  tp__catalog_where(p->catalog, first, where, sizeof where);
  char more[64] = "";
  if (bad > 1) snprintf(more, sizeof more, " (and %zu more)", bad - 1);
  bool told = strstr(p->fault[first], where) != NULL;
  return tp__fail(err, TP_ERR_DATA, "%s%s%s%s; remove or repair it, or allow some with --max-bad",
                  told ? "" : where, told ? "" : ": ", p->fault[first], more);
}

tp_status tp__pack_check(const tp__job *job, struct tp__packing *p, tp_error *err)
{
  enum { CHUNK = 256 };
  struct checking c = {.p = p};
  for (; c.first < p->n; c.first += CHUNK) {
    size_t n = p->n - c.first < CHUNK ? p->n - c.first : CHUNK;
    if (tp__job_stopped(job)) return tp__fail(err, TP_STOPPED, "stopped");
    tp__pool_for(job->pool, n, check_photo, &c);
    tp__tally_add(&p->tally, (int64_t)n);
  }
  return check_faults(p, err);
}

/* ---- splitting ---- */

/* Classes with too few photos for validation are named, so that nobody wonders. */
static void warn_small_classes(const tp__job *job, const struct tp__packing *p,
                               const int32_t *label, size_t n)
{
  size_t names, small = 0;
  const char *const *name = tp__catalog_labels(p->catalog, &names);
  int32_t most = -1, example = -1;
  for (size_t i = 0; i < n; i++)
    if (label[i] > most) most = label[i];
  size_t *count = tp__calloc((size_t)most + 1, sizeof *count, NULL);
  if (count == NULL) return;
  for (size_t i = 0; i < n; i++)
    if (label[i] >= 0) count[label[i]]++;
  for (int32_t c = 0; c <= most; c++) {
    size_t size[TP__SPLIT_COUNT];
    tp__split_sizes(count[c], p->share, size);
    if (count[c] == 0 || size[TP__SPLIT_VAL] > 0) continue;
    if (small++ == 0) example = c;
  }
  if (small > 0)
    tp__warn(
        job->log,
        "%zu class%s too few photos (fewer than 3) to have one in val, for instance class %d%s%s%s",
        small, small == 1 ? " has" : "es have", (int)example, (size_t)example < names ? " (" : "",
        (size_t)example < names ? name[example] : "", (size_t)example < names ? ")" : "");
  free(count);
}

tp_status tp__pack_split(const tp__job *job, struct tp__packing *p, tp_error *err)
{
  int32_t *label = tp__calloc(p->n, sizeof *label, err);
  uint8_t *part = tp__calloc(p->n, sizeof *part, err);
  tp_status status = label != NULL && part != NULL ? TP_OK : TP_ERR_INTERNAL;
  size_t n = 0;
  for (size_t i = 0; status == TP_OK && i < p->n; i++)
    if (p->fault[i] == NULL) label[n++] = tp__catalog_record(p->catalog, i)->label;
  if (status == TP_OK) status = tp__split_make(label, n, p->share, p->options->seed, part, err);
  if (status == TP_OK && p->share[TP__SPLIT_VAL] > 0) warn_small_classes(job, p, label, n);
  for (size_t i = 0, k = 0; status == TP_OK && i < p->n; i++)
    p->part[i] = p->fault[i] == NULL ? part[k++] : TP__SPLIT_COUNT;
  free(label);
  free(part);
  return status;
}
