/* inspect - reads a data set once, from end to end, and collects everything that is wrong or worth
 * knowing
 *
 * The catalog is opened so that it lists faults instead of stopping at the first one. Then every
 * picture is looked at, in parallel: format, size, EXIF flag, and with `decode` its pixels. Results
 * lie in a slot per record and are counted in the records' order, so a report does not depend on
 * threads.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "findings.h"
#include "shards.h"

enum { CHUNK = 512 }; /* pictures between two looks at progress and the wish to stop */

tp_status tp__findings_note(tp__findings *f, tp_error *err, const char *format, ...)
{
  if (f->n_notes == f->notes_capacity) {
    size_t capacity = 2 * f->notes_capacity + 16;
    void *note = realloc(f->note, capacity * sizeof *f->note);
    if (note == NULL) return tp__no_memory(err, capacity * sizeof *f->note);
    f->note = note;
    f->notes_capacity = capacity;
  }
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  f->note[f->n_notes] = tp__arena_strdup(&f->arena, text);
  if (f->note[f->n_notes] == NULL) return tp__no_memory(err, sizeof text);
  f->n_notes++;
  return TP_OK;
}

const char *tp__findings_class(const tp__findings *f, int64_t label, char *text, size_t size)
{
  if (label < 0)
    snprintf(text, size, "none");
  else if ((uint64_t)label < f->n_names)
    snprintf(text, size, "%lld (%s)", (long long)label, f->class_name[label]);
  else
    snprintf(text, size, "%lld", (long long)label);
  return text;
}

static void findings_free(tp__findings *f)
{
  tp__catalog_free(f->catalog);
  tp__labels_free(&f->labels);
  tp__arena_free(&f->arena);
  free(f->look);
  free(f->split);
  free(f->split_of);
  free(f->fault);
  free(f->class_count);
  free(f->size);
  free(f->twins);
  free(f->twin);
  free(f->note);
}

/* ---- opening ---- */

/* Warnings of the catalog become notes. The one about skipped records is left out: they are listed
 * one by one. */
static void keep_warning(void *user, tp__level level, const char *text)
{
  if (level == TP__WARNING && strstr(text, "(max_bad ") == NULL)
    (void)!tp__findings_note(user, NULL, "%s", text);
}

static tp_status open_catalog(const tp__job *job, const tp_inspect_options *o, tp__findings *f,
                              tp_error *err)
{
  if (o->inputs.count == 0)
    return tp__fail(err, TP_ERR_USAGE,
                    "no data is given; say what to inspect, for instance 'DIR/*/*.tfrec'");
  if (o->data.labels != NULL) TP__TRY(tp__labels_read(o->data.labels, &f->labels, err));
  tp__log log = {keep_warning, f};
  tp__catalog_options c = {.patterns = o->inputs.item,
                           .n_patterns = o->inputs.count,
                           .image_feature = o->data.image_feature,
                           .class_feature = o->data.class_feature,
                           .id_feature = o->data.id_feature,
                           .labels = f->labels.name,
                           .n_labels = f->labels.count,
                           .label_base = o->data.label_base,
                           .max_bad = "100%"};
  TP__TRY(tp__catalog_open(&c, job->pool, &log, &f->catalog, err));
  f->n = tp__catalog_count(f->catalog);
  f->class_name = tp__catalog_labels(f->catalog, &f->n_names);
  return TP_OK;
}

/* The folder of a shard; of a photo that lies in a folder with the name of its class, the folder
 * above. */
static tp_status folder_of(tp__findings *f, const char *path, int32_t label, const char **folder,
                           tp_error *err)
{
  char *text = tp__arena_strdup(&f->arena, path);
  if (text == NULL) return tp__no_memory(err, strlen(path));
  char *slash = strrchr(text, '/');
  if (slash == NULL) {
    *folder = ".";
    return TP_OK;
  }
  *slash = '\0';
  char *last = strrchr(text, '/');
  if (label >= 0 && (size_t)label < f->n_names && last != NULL &&
      strcmp(last + 1, f->class_name[label]) == 0)
    *last = '\0';
  *folder = text;
  return TP_OK;
}

static const char *last_part(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static int rank_of(const char *name)
{
  static const char *const first[] = {"train", "val", "test"};
  int rank = 0;
  while (rank < 3 && strncmp(name, first[rank], strlen(first[rank])) != 0) rank++;
  return rank;
}

/* Training, validation, test, then the others as they came. */
static tp_status sort_splits(tp__findings *f, tp_error *err)
{
  tp__split *sorted = tp__calloc(f->n_splits, sizeof *sorted, err);
  uint32_t *place = tp__calloc(f->n_splits, sizeof *place, err);
  size_t n = 0;
  if (sorted != NULL && place != NULL) {
    for (int rank = 0; rank < 4; rank++)
      for (size_t i = 0; i < f->n_splits; i++)
        if (rank_of(last_part(f->split[i].path)) == rank) {
          place[i] = (uint32_t)n;
          sorted[n++] = f->split[i];
        }
    for (size_t i = 0; i < tp__catalog_files(f->catalog); i++)
      f->split_of[i] = place[f->split_of[i]];
    memcpy(f->split, sorted, n * sizeof *sorted);
  }
  bool done = sorted != NULL && place != NULL;
  free(sorted);
  free(place);
  return done ? TP_OK : TP_ERR_INTERNAL;
}

static tp_status find_splits(tp__findings *f, tp_error *err)
{
  size_t files = tp__catalog_files(f->catalog), capacity = 0, record = 0;
  f->split_of = tp__calloc(files, sizeof *f->split_of, err);
  if (f->split_of == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < files; i++) {
    size_t n;
    const char *path = tp__catalog_file(f->catalog, i, &n), *folder = NULL;
    int32_t label = n > 0 ? tp__catalog_record(f->catalog, record)->label : -1;
    record += n;
    TP__TRY(folder_of(f, path, label, &folder, err));
    size_t s = 0;
    while (s < f->n_splits && strcmp(f->split[s].path, folder) != 0) s++;
    if (s == f->n_splits) {
      if (s == capacity) {
        capacity = 2 * capacity + 8;
        void *split = realloc(f->split, capacity * sizeof *f->split);
        if (split == NULL) return tp__no_memory(err, capacity * sizeof *f->split);
        f->split = split;
      }
      f->split[f->n_splits++] = (tp__split){.path = folder, .name = last_part(folder)};
    }
    f->split_of[i] = (uint32_t)s;
    f->split[s].files++;
    f->split[s].records += (int64_t)n;
  }
  for (size_t i = 0; i < f->n_splits; i++)
    for (size_t j = 0; j < f->n_splits; j++)
      if (i != j && strcmp(last_part(f->split[i].path), last_part(f->split[j].path)) == 0)
        f->split[i].name = f->split[i].path;
  return sort_splits(f, err);
}

/* ---- looking ---- */

struct eye { /* of one thread */
  tp__buffer bytes;
  tp__picture picture;
};

struct looking {
  tp__findings *f;
  struct eye *eye;
  size_t first;
  char **fault; /* [CHUNK] texts; owned until they are in the arena */
};

static void look_at(void *arg, size_t index, int worker)
{
  struct looking *l = arg;
  tp__findings *f = l->f;
  struct eye *e = &l->eye[worker];
  tp__look *look = &f->look[l->first + index];
  tp_error err = {0};
  tp__decode_options plain = {0};
  int orientation = 1;
  tp_status status = tp__catalog_read(f->catalog, l->first + index, &e->bytes, &err);
  if (status == TP_OK) {
    look->format = (uint8_t)tp__image_format_of(e->bytes.data, e->bytes.size);
    look->bytes_hash = tp__hash_bytes(0, e->bytes.data, e->bytes.size);
    status = tp__image_header(e->bytes.data, e->bytes.size, &look->height, &look->width,
                              &orientation, &err);
    look->orientation = (uint8_t)orientation;
    if (status != TP_OK) look->height = look->width = 0;
  }
  if (status == TP_OK && f->decode) {
    status = tp__image_decode(e->bytes.data, e->bytes.size, &plain, &e->picture, &err);
    look->decoded = status == TP_OK;
    if (look->decoded)
      look->pixels_hash =
          tp__hash_bytes((uint64_t)e->picture.width, e->picture.rgb.data, e->picture.rgb.size);
  }
  if (status != TP_OK) l->fault[index] = tp__strdup(err.text, NULL);
}

static tp_status add_fault(tp__findings *f, const tp__bad_record *bad, tp_error *err)
{
  if (f->n_faults == f->faults_capacity) {
    size_t capacity = 2 * f->faults_capacity + 16;
    void *fault = realloc(f->fault, capacity * sizeof *f->fault);
    if (fault == NULL) return tp__no_memory(err, capacity * sizeof *f->fault);
    f->fault = fault;
    f->faults_capacity = capacity;
  }
  f->fault[f->n_faults++] = *bad;
  return TP_OK;
}

static tp_status keep_faults(struct looking *l, size_t n, tp_error *err)
{
  tp__findings *f = l->f;
  tp_status status = TP_OK;
  for (size_t i = 0; i < n; i++) {
    if (l->fault[i] == NULL) continue;
    const tp__record *r = tp__catalog_record(f->catalog, l->first + i);
    size_t records;
    const char *file = tp__catalog_file(f->catalog, r->file, &records);
    const char *reason = tp__arena_strdup(&f->arena, l->fault[i]);
    f->look[l->first + i].fault = reason;
    char where[1024];
    tp__catalog_where(f->catalog, l->first + i, where, sizeof where);
    bool photo = strcmp(where, file) == 0; /* the file as a whole */
    tp__bad_record bad = {file, photo ? -1 : (int64_t)r->number, photo ? 0 : r->offset, reason};
    if (status == TP_OK)
      status = reason != NULL ? add_fault(f, &bad, err) : tp__no_memory(err, 256);
    free(l->fault[i]);
    l->fault[i] = NULL;
  }
  return status;
}

static tp_status look_at_all(const tp__job *job, tp__findings *f, tp_error *err)
{
  int threads = tp__pool_threads(job->pool);
  struct looking l = {.f = f};
  tp_status status = TP_ERR_INTERNAL;
  f->look = tp__calloc(f->n, sizeof *f->look, err);
  l.eye = tp__calloc((size_t)threads, sizeof *l.eye, err);
  l.fault = tp__calloc(CHUNK, sizeof *l.fault, err);
  if (f->look != NULL && l.eye != NULL && l.fault != NULL) status = TP_OK;
  for (int i = 0; l.eye != NULL && i < threads; i++) tp__buffer_init(&l.eye[i].bytes, UINT32_MAX);
  tp__tally tally;
  tp__tally_start(&tally, job, "inspect", (int64_t)f->n);
  for (; l.first < f->n && status == TP_OK; l.first += CHUNK) {
    size_t n = f->n - l.first < CHUNK ? f->n - l.first : CHUNK;
    if (tp__job_stopped(job)) status = tp__fail(err, TP_STOPPED, "stopped");
    if (status != TP_OK) break;
    tp__pool_for(job->pool, n, look_at, &l);
    status = keep_faults(&l, n, err);
    tp__tally_add(&tally, (int64_t)n);
  }
  if (status == TP_OK) tp__tally_end(&tally);
  for (int i = 0; l.eye != NULL && i < threads; i++) {
    tp__buffer_free(&l.eye[i].bytes);
    tp__buffer_free(&l.eye[i].picture.rgb);
  }
  free(l.eye);
  free(l.fault);
  return status;
}

/* ---- the job ---- */

static tp_status gather(const tp__job *job, const tp_inspect_options *o, tp__findings *f,
                        tp_error *err)
{
  TP__TRY(open_catalog(job, o, f, err));
  size_t n_bad;
  const tp__bad_record *bad = tp__catalog_bad(f->catalog, &n_bad);
  for (size_t i = 0; i < n_bad; i++) TP__TRY(add_fault(f, &bad[i], err));
  TP__TRY(find_splits(f, err));
  TP__TRY(look_at_all(job, f, err));
  TP__TRY(tp__count_sizes(f, err));
  TP__TRY(tp__count_classes(f, err));
  TP__TRY(tp__find_duplicates(job, f, err));
  TP__TRY(tp__note_classes(f, err));
  TP__TRY(tp__note_ids(f, err));
  if (f->turned > 0)
    TP__TRY(
        tp__findings_note(f, err,
                          "%lld picture%s an EXIF flag that turns it; it is used as stored unless "
                          "--exif-rotate is given",
                          (long long)f->turned, f->turned == 1 ? " has" : "s each have"));
  return TP_OK;
}

tp_status tp__inspect(const tp__job *job, const tp_inspect_options *options,
                      tp_inspection *inspection, tp_error *err)
{
  tp__findings f = {.decode = options->decode};
  char *text = NULL;
  tp_status status = gather(job, options, &f, err);
  if (status == TP_OK) status = tp__report_text(&f, &text, err);
  if (status == TP_OK && options->json != NULL) status = tp__report_json(&f, options->json, err);
  if (status == TP_OK) {
    *inspection = (tp_inspection){.files = (int64_t)tp__catalog_files(f.catalog),
                                  .records = (int64_t)f.n,
                                  .faults = (int64_t)f.n_faults + f.twin_faults,
                                  .text = text};
    text = NULL;
  }
  free(text);
  findings_free(&f);
  return status;
}
