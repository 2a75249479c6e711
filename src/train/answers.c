/* answers - predict and evaluate a run on data; see answers.h. CSV against CSV is in
 * answers_files.c. */
#include "answers.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/bad_records.h"
#include "data/labels.h"
#include "data_set.h"
#include "ensemble.h"

/* ---- ids ---- */

static int compare_ids(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every record is one line of the answer: an id that is there twice could not be scored. */
static tp_status check_ids(const tp__catalog *catalog, tp_error *err)
{
  size_t n = tp__catalog_count(catalog);
  const char **id = tp__calloc(n, sizeof *id, err);
  if (id == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < n; i++) id[i] = tp__catalog_record(catalog, i)->id;
  qsort(id, n, sizeof *id, compare_ids);
  tp_status status = TP_OK;
  for (size_t i = 1; status == TP_OK && i < n; i++)
    if (strcmp(id[i - 1], id[i]) == 0)
      status =
          tp__fail(err, TP_ERR_DATA,
                   "the id \"%s\" is there more than once: do the patterns name a file twice, or "
                   "overlapping sets?",
                   id[i]);
  free(id);
  return status;
}

/* Records that max_bad let pass have no answer: OUT.bad-records.tsv lists them. */
static tp_status list_bad(const tp__job *job, const tp_predict_options *o,
                          const tp__catalog *catalog, tp_error *err)
{
  size_t n = 0;
  const tp__bad_record *bad = tp__catalog_bad(catalog, &n);
  if (n == 0) return TP_OK;
  tp__buffer text;
  tp__buffer_init(&text, SIZE_MAX);
  char *path = tp__format("%s.bad-records.tsv", strcmp(o->out, "-") == 0 ? "predict" : o->out);
  tp_status status =
      path == NULL ? tp__no_memory(err, 64) : tp__bad_records_print(bad, n, &text, err);
  if (status == TP_OK) status = tp__file_write(path, text.data, text.size, err);
  if (status == TP_OK)
    tp__warn(job->log, "%zu damaged records have no prediction; they are listed in %s", n, path);
  tp__buffer_free(&text);
  free(path);
  return status;
}

/* ---- predict ---- */

/* A CSV field, quoted where it must be (RFC 4180). */
static tp_status write_field(tp__writer *w, const char *text, tp_error *err)
{
  if (strpbrk(text, ",\"\r\n") == NULL) return tp__writer_printf(w, err, "%s", text);
  TP__TRY(tp__writer_printf(w, err, "\""));
  for (const char *p = text; *p != '\0'; p++)
    TP__TRY(tp__writer_printf(w, err, *p == '"' ? "\"\"" : "%c", *p));
  return tp__writer_printf(w, err, "\"");
}

static tp_status write_header(tp__writer *w, const tp_predict_options *o,
                              const tp__ensemble_result *r, tp_error *err)
{
  TP__TRY(write_field(w, o->id_column, err));
  if (!o->probabilities) {
    TP__TRY(tp__writer_printf(w, err, ","));
    TP__TRY(write_field(w, o->label_column, err));
  }
  for (int c = 0; o->probabilities && c < r->classes; c++) {
    TP__TRY(tp__writer_printf(w, err, ","));
    if (o->label_names)
      TP__TRY(write_field(w, r->labels[c], err));
    else
      TP__TRY(tp__writer_printf(w, err, "%d", c));
  }
  return tp__writer_printf(w, err, "\n");
}

static tp_status write_row(tp__writer *w, const tp_predict_options *o, const tp__ensemble_result *r,
                           const char *id, const float *row, tp_error *err)
{
  TP__TRY(write_field(w, id, err));
  if (o->probabilities) {
    for (int c = 0; c < r->classes; c++)
      TP__TRY(tp__writer_printf(w, err, ",%.8g", (double)row[c]));
    return tp__writer_printf(w, err, "\n");
  }
  int label = tp__argmax(row, r->classes);
  if (!o->label_names) return tp__writer_printf(w, err, ",%d\n", label);
  TP__TRY(tp__writer_printf(w, err, ","));
  TP__TRY(write_field(w, r->labels[label], err));
  return tp__writer_printf(w, err, "\n");
}

static tp_status open_out(const tp_predict_options *o, tp__writer *w, tp_error *err)
{
  return strcmp(o->out, "-") == 0 ? tp__writer_stdout(w, err) : tp__writer_open(w, o->out, err);
}

static tp_status write_answers(const tp_predict_options *o, const tp__catalog *catalog,
                               const tp__ensemble_result *r, tp_error *err)
{
  tp__writer w;
  TP__TRY(open_out(o, &w, err));
  tp_status status = write_header(&w, o, r, err);
  for (int64_t i = 0; status == TP_OK && i < r->examples; i++)
    status = write_row(&w, o, r, tp__catalog_record(catalog, (size_t)i)->id,
                       r->probabilities + i * r->classes, err);
  if (status == TP_OK) return tp__writer_commit(&w, err);
  tp__writer_cancel(&w);
  return status;
}

/* The output's folder is tried before the work, not after it. */
static tp_status check_out(const tp_predict_options *o, tp_error *err)
{
  if (o->out == NULL) return tp__fail(err, TP_ERR_USAGE, "out: where should the CSV be written?");
  struct stat st;
  /* A pipe is opened only once. */
  bool special = stat(o->out, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
  if (special) return TP_OK;
  tp__writer w;
  TP__TRY(open_out(o, &w, err));
  tp__writer_cancel(&w);
  return TP_OK;
}

/* The names of a labels file must be those that the network was trained with; a network that knows
 * numbers only gets them. */
static tp_status name_classes(const char *path, tp__labels *given, tp__ensemble_result *r,
                              tp_error *err)
{
  if (path == NULL) return TP_OK;
  tp_status status = tp__labels_read(path, given, err);
  if (status != TP_OK) return tp__at(err, status, "labels");
  if (given->count != (size_t)r->classes)
    return tp__fail(err, TP_ERR_DATA,
                    "labels: %s: has %zu names, the run was trained on %d classes", path,
                    given->count, r->classes);
  for (int c = 0; r->labels != NULL && c < r->classes; c++)
    if (strcmp(given->name[c], r->labels[c]) != 0)
      return tp__fail(err, TP_ERR_DATA,
                      "labels: %s: class %d is \"%s\" there and \"%s\" in the run: leave labels "
                      "out, the run knows its own",
                      path, c, given->name[c], r->labels[c]);
  r->labels = given->name;
  return TP_OK;
}

/* Opens networks and data; all three must be freed also after a failure. */
static tp_status open_both(const tp__job *job, const tp__ensemble_options *e,
                           const tp_strings *inputs, bool need_labels, tp__labels *given,
                           tp__ensemble_result *r, tp__catalog **catalog, tp_error *err)
{
  if (inputs->count == 0) return tp__fail(err, TP_ERR_USAGE, "data: no data were given");
  TP__TRY(tp__ensemble_open(e, r, err));
  TP__TRY(name_classes(e->data->labels, given, r, err));
  return tp__data_open(job, e->data, inputs, "data", need_labels ? r->labels : NULL,
                       need_labels ? r->classes : 0, need_labels, catalog, err);
}

tp_status tp__predict(const tp__job *job, tp__backend *backend, const tp_predict_options *o,
                      tp_error *err)
{
  tp__ensemble_options e = {.runs = o->runs,
                            .data = &o->data,
                            .combine = o->combine,
                            .tta = o->tta,
                            .precision = o->precision,
                            .batch = o->batch};
  tp__labels given = {0};
  tp__ensemble_result r = {0};
  tp__catalog *catalog = NULL;
  tp_status status = check_out(o, err);
  if (status == TP_OK) status = open_both(job, &e, &o->inputs, false, &given, &r, &catalog, err);
  if (status == TP_OK) status = check_ids(catalog, err);
  size_t n = status == TP_OK ? tp__catalog_count(catalog) : 0;
  if (status == TP_OK && o->expect > 0 && (uint64_t)o->expect != n)
    status =
        tp__fail(err, TP_ERR_DATA, "data: %zu records, %lld are expected", n, (long long)o->expect);
  if (status == TP_OK && o->label_names && r.labels == NULL)
    status = tp__fail(err, TP_ERR_USAGE,
                      "label_names: the run was trained without names: it knows numbers only; give "
                      "them with labels");
  if (status == TP_OK) status = tp__ensemble_run(job, backend, &e, catalog, &r, err);
  if (status == TP_OK) status = write_answers(o, catalog, &r, err);
  if (status == TP_OK) status = list_bad(job, o, catalog, err);
  if (status == TP_OK)
    tp__say(job->log, "%zu predictions: %s", n,
            strcmp(o->out, "-") == 0 ? "standard output" : o->out);
  tp__ensemble_free(&r);
  tp__labels_free(&given);
  tp__catalog_free(catalog);
  return status;
}

/* ---- evaluate a run on data ---- */

static tp_status score(const tp__catalog *catalog, const tp__ensemble_result *r,
                       tp_evaluation *evaluation, tp_error *err)
{
  tp__metrics m;
  TP__TRY(tp__metrics_init(&m, r->classes, err));
  for (int64_t i = 0; i < r->examples; i++) {
    const float *row = r->probabilities + i * r->classes;
    int32_t label = tp__catalog_record(catalog, (size_t)i)->label;
    float loss = -logf(row[label] > FLT_MIN ? row[label] : FLT_MIN);
    tp__metrics_add(&m, 1, row, &label, &loss, NULL);
  }
  tp_status status = tp__metrics_evaluation(&m, r->labels, true, evaluation, err);
  tp__metrics_free(&m);
  return status;
}

tp_status tp__evaluate(const tp__job *job, tp__backend *backend, const tp_evaluate_options *o,
                       tp_evaluation *evaluation, tp_error *err)
{
  if (o->predictions != NULL || o->truth != NULL)
    return tp__evaluate_files(job, o, evaluation, err);
  tp__ensemble_options e = {.runs = o->runs,
                            .data = &o->data,
                            .combine = o->combine,
                            .tta = o->tta,
                            .precision = o->precision,
                            .batch = o->batch};
  tp__labels given = {0};
  tp__ensemble_result r = {0};
  tp__catalog *catalog = NULL;
  tp_status status = open_both(job, &e, &o->inputs, true, &given, &r, &catalog, err);
  if (status == TP_OK) status = tp__ensemble_run(job, backend, &e, catalog, &r, err);
  if (status == TP_OK) status = score(catalog, &r, evaluation, err);
  tp__ensemble_free(&r);
  tp__labels_free(&given);
  tp__catalog_free(catalog);
  return status;
}
