/* data_set - from the public data options to catalogs and pipelines: what training, evaluation and
 * prediction share. */
#ifndef TP_DATA_SET_H
#define TP_DATA_SET_H

#include "base/job.h"
#include "data/labels.h"
#include "pipeline/pipeline.h"

/* "192" or "192x160" (height x width). Errors: TP_ERR_USAGE naming the option, here and below. */
tp_status tp__size_parse(const char *option, const char *text, int *height, int *width,
                         tp_error *err) TP_CHECKED;
/* "4G", "512M", "1000000": bytes; decimal units. */
tp_status tp__bytes_parse(const char *option, const char *text, uint64_t *bytes,
                          tp_error *err) TP_CHECKED;
tp_status tp__fill_parse(const char *option, const char *text, tp__fill *fill,
                         tp_error *err) TP_CHECKED;
/* "fast" (TensorFlow's default) or "accurate". */
tp_status tp__dct_parse(const char *text, bool *accurate, tp_error *err) TP_CHECKED;

/* Opens the examples that the patterns name. what: "training set", for messages. names [classes]
 * may be NULL; labels must be below classes (0: not known yet). Errors: those of tp__catalog_open,
 * behind what. */
tp_status tp__data_open(const tp__job *job, const tp_data_options *options,
                        const tp_strings *patterns, const char *what, const char *const *names,
                        int classes, bool need_labels, tp__catalog **catalog,
                        tp_error *err) TP_CHECKED;

/* Largest label + 1. */
int tp__data_classes(const tp__catalog *catalog);

/* Fills the parts of pipeline options that come from the data options: cache, limit, pictures that
 * may be bad. */
tp_status tp__data_pipeline(const tp_data_options *options, const tp__catalog *catalog,
                            tp__pipeline_options *pipeline, tp_error *err) TP_CHECKED;

#endif
