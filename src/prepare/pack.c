/* pack - photos from folders, a CSV or shards into shards with a seeded, stratified split
 *
 *   OUT/train/NN-WxH-COUNT.tfrec   image, class, id     OUT/labels.txt        class names, where
 * they are known OUT/val/...  OUT/test/...      the same             OUT/bad-records.tsv   what was
 * left out under max_bad
 *
 * WxH is the size of all pictures; where they differ it is the word "mixed". Pictures keep their
 * bytes, or with image_size are decoded, resized and written as JPEG. Records of a part are in a
 * seeded random order, so that a small shuffle buffer is enough in training. Every picture is
 * decoded once, so that no shard holds one that cannot be read.
 */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/catalog.h"
#include "data/labels.h"
#include "image/image.h"
#include "out_folder.h"
#include "prepare.h"
#include "shards.h"
#include "split.h"

static const char *const part_name[TP__SPLIT_COUNT] = {"train", "val", "test"};

struct hand { /* what one thread needs */
  tp__buffer bytes;
  tp__picture picture;
  tp__image_scratch scratch;
  float *pixels; /* [height,width,3] when resizing */
  uint8_t *rgb;
};

struct packing {
  const tp_pack_options *options;
  tp__catalog *catalog;
  tp__labels labels;
  size_t n;
  int height, width; /* to resize to; 0: bytes are kept */
  bool resize;
  tp__image_recipe recipe;
  struct hand *hand;
  int hands;
  int *found_height, *found_width; /* [n] of the pictures as they are */
  char **fault;                    /* [n] why a picture is left out */
  uint8_t *part;                   /* [n] */
  uint32_t *order;                 /* of the part that is being written */
  double share[TP__SPLIT_COUNT];
  tp__tally tally;
};

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

static tp_status check_options(struct packing *p, tp_error *err)
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
  return TP_OK;
}

/* ---- reading ---- */

static tp_status open_photos(const tp__job *job, struct packing *p, tp_error *err)
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

static tp_status make_room(const tp__job *job, struct packing *p, tp_error *err)
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
    struct hand *h = &p->hand[i];
    tp__buffer_init(&h->bytes, UINT32_MAX);
    if (!p->resize) continue;
    h->pixels = tp__calloc(pixels, 3 * sizeof(float), err);
    h->rgb = tp__calloc(pixels, 3, err);
    if (h->pixels == NULL || h->rgb == NULL) return TP_ERR_INTERNAL;
  }
  return TP_OK;
}

struct checking {
  struct packing *p;
  size_t first;
};

static void check_photo(void *arg, size_t index, int worker)
{
  struct checking *c = arg;
  struct packing *p = c->p;
  struct hand *h = &p->hand[worker];
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
static size_t pictures_allowed(const struct packing *p)
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

static tp_status check_faults(struct packing *p, tp_error *err)
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

/* Decodes every photo once. */
static tp_status check_photos(const tp__job *job, struct packing *p, tp_error *err)
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
static void warn_small_classes(const tp__job *job, const struct packing *p, const int32_t *label,
                               size_t n)
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

/* part[i] of every good photo; TP__SPLIT_COUNT for those left out. */
static tp_status split_photos(const tp__job *job, struct packing *p, tp_error *err)
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

/* ---- writing ---- */

static tp_status resize(struct packing *p, struct hand *h, tp__buffer *bytes, tp_error *err)
{
  TP__TRY(tp__image_decode(h->bytes.data, h->bytes.size, &p->recipe.decode, &h->picture, err));
  TP__TRY(tp__image_finish(&p->recipe, h->picture.rgb.data, h->picture.height, h->picture.width,
                           false, (tp__key){{0, 0}}, &h->scratch, h->pixels, err));
  size_t values = (size_t)p->height * (size_t)p->width * 3;
  for (size_t i = 0; i < values; i++) {
    float v = h->pixels[i];
    h->rgb[i] = (uint8_t)(v <= 0 ? 0 : v >= 255 ? 255 : v + 0.5f);
  }
  return tp__image_encode_jpeg(h->rgb, p->height, p->width, p->options->quality, bytes, err);
}

static tp_status pack_record(void *arg, size_t item, int worker, tp__buffer *bytes,
                             tp__example_fields *fields, bool *skip, tp_error *err)
{
  (void)skip;
  struct packing *p = arg;
  struct hand *h = &p->hand[worker];
  size_t index = p->order[item];
  const tp__record *r = tp__catalog_record(p->catalog, index);
  fields->label = r->label;
  fields->id = r->id;
  if (!p->resize) return tp__catalog_read(p->catalog, index, bytes, err);
  TP__TRY(tp__catalog_read(p->catalog, index, &h->bytes, err));
  tp_status status = resize(p, h, bytes, err);
  if (status == TP_OK) return TP_OK;
  char where[1024];
  tp__catalog_where(p->catalog, index, where, sizeof where);
  return tp__at(err, status, "%s", where);
}

/* The photos of one part in a seeded random order. */
static size_t order_part(struct packing *p, int part)
{
  size_t n = 0;
  for (size_t i = 0; i < p->n; i++)
    if (p->part[i] == part) p->order[n++] = (uint32_t)i;
  tp__key key = tp__key_of(p->options->seed, 1, (uint64_t)part);
  for (size_t i = n; i > 1; i--) {
    size_t j = (size_t)tp__below(key, TP__DRAW_SPLIT, i, i);
    uint32_t kept = p->order[i - 1];
    p->order[i - 1] = p->order[j];
    p->order[j] = kept;
  }
  return n;
}

/* Size of all pictures of a part; 0 when they differ. */
static void common_size(const struct packing *p, size_t n, int *width, int *height)
{
  *width = p->resize ? p->width : p->found_width[p->order[0]];
  *height = p->resize ? p->height : p->found_height[p->order[0]];
  for (size_t i = 1; i < n && !p->resize; i++)
    if (p->found_width[p->order[i]] != *width || p->found_height[p->order[i]] != *height)
      *width = *height = 0;
}

static tp_status write_part(struct packing *p, const tp__out_folder *out, int part, size_t *count,
                            tp_error *err)
{
  size_t n = *count = order_part(p, part);
  if (n == 0) return TP_OK;
  int width, height;
  common_size(p, n, &width, &height);
  char *folder = tp__out_folder_entry(out, part_name[part], true, err);
  if (folder == NULL) return TP_ERR_OUTPUT;
  size_t per = (size_t)p->options->per_shard;
  tp_status status = tp__write_shards(&p->tally, folder, n, (n + per - 1) / per, width, height,
                                      pack_record, p, err);
  free(folder);
  return status;
}

static tp_status write_text(const tp__out_folder *out, const char *name, const tp__buffer *text,
                            tp_error *err)
{
  char *path = tp__out_folder_entry(out, name, false, err);
  if (path == NULL) return TP_ERR_INTERNAL;
  tp_status status = tp__file_write(path, text->data, text->size, err);
  free(path);
  return status;
}

static tp_status write_labels(const struct packing *p, const tp__out_folder *out, tp_error *err)
{
  size_t n;
  const char *const *name = tp__catalog_labels(p->catalog, &n);
  tp__buffer text;
  tp__buffer_init(&text, SIZE_MAX);
  tp_status status = TP_OK;
  for (size_t i = 0; i < n && status == TP_OK; i++)
    status = tp__buffer_printf(&text, err, "%s\n", name[i]);
  if (status == TP_OK && n > 0) status = write_text(out, "labels.txt", &text, err);
  tp__buffer_free(&text);
  return status;
}

/* One line for each record left out: file, record, byte, reason. *count: how many. */
static tp_status write_bad(const struct packing *p, const tp__out_folder *out, size_t *count,
                           tp_error *err)
{
  tp__buffer text;
  tp__buffer_init(&text, SIZE_MAX);
  const tp__bad_record *bad = tp__catalog_bad(p->catalog, count);
  tp_status status = tp__buffer_printf(&text, err, "file\trecord\tbyte\treason\n");
  for (size_t i = 0; i < *count && status == TP_OK; i++)
    status =
        tp__buffer_printf(&text, err, "%s\t%lld\t%llu\t%s\n", bad[i].file, (long long)bad[i].number,
                          (unsigned long long)bad[i].offset, bad[i].reason);
  for (size_t i = 0; i < p->n && status == TP_OK; i++) {
    if (p->fault[i] == NULL) continue;
    const tp__record *r = tp__catalog_record(p->catalog, i);
    size_t records;
    status = tp__buffer_printf(&text, err, "%s\t%u\t%llu\t%s\n",
                               tp__catalog_file(p->catalog, r->file, &records), r->number,
                               (unsigned long long)r->offset, p->fault[i]);
    ++*count;
  }
  if (status == TP_OK && *count > 0) status = write_text(out, "bad-records.tsv", &text, err);
  tp__buffer_free(&text);
  return status;
}

static tp_status write_all(const tp__job *job, struct packing *p, tp__out_folder *out,
                           tp_error *err)
{
  size_t count[TP__SPLIT_COUNT], bad = 0;
  for (int part = 0; part < TP__SPLIT_COUNT; part++) {
    tp_status status = write_part(p, out, part, &count[part], err);
    if (status != TP_OK) return tp__at(err, status, "%s", part_name[part]);
  }
  TP__TRY(write_labels(p, out, err));
  TP__TRY(write_bad(p, out, &bad, err));
  TP__TRY(tp__out_folder_commit(out, err));
  tp__tally_end(&p->tally);
  tp__say(job->log, "%s: packed %zu photos: train %zu, val %zu, test %zu", p->options->out,
          count[0] + count[1] + count[2], count[0], count[1], count[2]);
  if (bad > 0)
    tp__warn(job->log, "%zu left out, listed in %s/bad-records.tsv", bad, p->options->out);
  return TP_OK;
}

static void packing_free(struct packing *p)
{
  for (int i = 0; p->hand != NULL && i < p->hands; i++) {
    tp__buffer_free(&p->hand[i].bytes);
    tp__buffer_free(&p->hand[i].picture.rgb);
    tp__image_scratch_free(&p->hand[i].scratch);
    free(p->hand[i].pixels);
    free(p->hand[i].rgb);
  }
  for (size_t i = 0; p->fault != NULL && i < p->n; i++) free(p->fault[i]);
  free(p->fault);
  free(p->hand);
  free(p->found_height);
  free(p->found_width);
  free(p->part);
  free(p->order);
  tp__catalog_free(p->catalog);
  tp__labels_free(&p->labels);
}

tp_status tp__pack(const tp__job *job, const tp_pack_options *options, tp_error *err)
{
  struct packing p = {.options = options};
  tp__out_folder out = {0};
  tp_status status = check_options(&p, err);
  if (status == TP_OK) status = tp__out_folder_open(&out, options->out, options->overwrite, err);
  if (status == TP_OK) status = open_photos(job, &p, err);
  if (status == TP_OK) status = make_room(job, &p, err);
  if (status == TP_OK) {
    tp__tally_start(&p.tally, job, "pack", 2 * (int64_t)p.n);
    status = check_photos(job, &p, err);
  }
  if (status == TP_OK) status = split_photos(job, &p, err);
  if (status == TP_OK) status = write_all(job, &p, &out, err);
  tp__out_folder_cancel(&out);
  packing_free(&p);
  return status;
}
