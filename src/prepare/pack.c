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

#include "base/rng.h"
#include "data/bad_records.h"
#include "out_folder.h"
#include "packing.h"

static const char *const part_name[TP__SPLIT_COUNT] = {"train", "val", "test"};

/* ---- writing ---- */

static tp_status resize(struct tp__packing *p, struct tp__pack_hand *h, tp__buffer *bytes,
                        tp_error *err)
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
  struct tp__packing *p = arg;
  struct tp__pack_hand *h = &p->hand[worker];
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
static size_t order_part(struct tp__packing *p, int part)
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
static void common_size(const struct tp__packing *p, size_t n, int *width, int *height)
{
  *width = p->resize ? p->width : p->found_width[p->order[0]];
  *height = p->resize ? p->height : p->found_height[p->order[0]];
  for (size_t i = 1; i < n && !p->resize; i++)
    if (p->found_width[p->order[i]] != *width || p->found_height[p->order[i]] != *height)
      *width = *height = 0;
}

static tp_status write_part(struct tp__packing *p, const tp__out_folder *out, int part,
                            size_t *count, tp_error *err)
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

static tp_status write_labels(const struct tp__packing *p, const tp__out_folder *out, tp_error *err)
{
  size_t n;
  const char *const *name = tp__catalog_labels(p->catalog, &n);
  tp__buffer text;
  tp__buffer_init(&text, SIZE_MAX);
  tp_status status = TP_OK;
  for (size_t i = 0; i < n && status == TP_OK; i++)
    status = tp__buffer_printf(&text, err, "%s\n", name[i]);
  if (status == TP_OK && n > 0) status = tp__out_folder_write(out, "labels.txt", &text, err);
  tp__buffer_free(&text);
  return status;
}

/* One line for each record left out: file, record, byte, reason. *count: how many. */
static tp_status write_bad(const struct tp__packing *p, const tp__out_folder *out, size_t *count,
                           tp_error *err)
{
  tp__buffer text;
  tp__buffer_init(&text, SIZE_MAX);
  const tp__bad_record *bad = tp__catalog_bad(p->catalog, count);
  tp_status status = tp__bad_records_print(bad, *count, &text, err);
  for (size_t i = 0; i < p->n && status == TP_OK; i++) {
    if (p->fault[i] == NULL) continue;
    const tp__record *r = tp__catalog_record(p->catalog, i);
    size_t records;
    tp__bad_record one = {.file = tp__catalog_file(p->catalog, r->file, &records),
                          .number = r->number,
                          .offset = r->offset,
                          .reason = p->fault[i]};
    status = tp__bad_records_print(&one, 1, &text, err);
    ++*count;
  }
  if (status == TP_OK && *count > 0)
    status = tp__out_folder_write(out, "bad-records.tsv", &text, err);
  tp__buffer_free(&text);
  return status;
}

static tp_status write_all(const tp__job *job, struct tp__packing *p, tp__out_folder *out,
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

static void packing_free(struct tp__packing *p)
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
  struct tp__packing p = {.options = options};
  tp__out_folder out = {0};
  tp_status status = tp__pack_read_options(&p, err);
  if (status == TP_OK) status = tp__out_folder_open(&out, options->out, options->overwrite, err);
  if (status == TP_OK) status = tp__pack_open(job, &p, err);
  if (status == TP_OK) status = tp__pack_room(job, &p, err);
  if (status == TP_OK) {
    tp__tally_start(&p.tally, job, "pack", 2 * (int64_t)p.n);
    status = tp__pack_check(job, &p, err);
  }
  if (status == TP_OK) status = tp__pack_split(job, &p, err);
  if (status == TP_OK) status = write_all(job, &p, &out, err);
  tp__out_folder_cancel(&out);
  packing_free(&p);
  return status;
}
