/* class_weights - see class_weights.h */
#include "class_weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static tp_status balance(const tp__catalog *catalog, int classes, float *weights, tp_error *err)
{
  size_t n = tp__catalog_count(catalog);
  int64_t *count = tp__calloc((size_t)classes, sizeof *count, err);
  if (count == NULL) return TP_ERR_INTERNAL;
  int occurring = 0;
  for (size_t i = 0; i < n; i++) count[tp__catalog_record(catalog, i)->label]++;
  for (int c = 0; c < classes; c++) occurring += count[c] > 0;
  for (int c = 0; c < classes; c++)
    if (count[c] > 0) weights[c] = (float)((double)n / ((double)occurring * (double)count[c]));
  free(count);
  return TP_OK;
}

static tp_status read_table(const char *text, int classes, float *weights, bool *set, tp_error *err)
{
  const char *at = text;
  for (;;) {
    char *end = NULL;
    long class = strtol(at, &end, 10);
    if (end == at || *end != ':')
      return tp__fail(
          err, TP_ERR_USAGE,
          "class_weights: \"%s\" is not known; wanted none, balanced, or CLASS:WEIGHT pairs "
          "as 0:2,5:0.5",
          text);
    if (class < 0 || class >= classes)
      return tp__fail(err, TP_ERR_USAGE, "class_weights: class %ld: the classes are 0...%d", class,
                      classes - 1);
    at = end + 1;
    double weight = strtod(at, &end);
    if (end == at || !(weight >= 0) || !isfinite(weight))
      return tp__fail(err, TP_ERR_USAGE,
                      "class_weights: class %ld: the weight must be a number of 0 or more", class);
    weights[class] = (float)weight;
    set[class] = true;
    if (*end == '\0') return TP_OK;
    if (*end != ',')
      return tp__fail(err, TP_ERR_USAGE, "class_weights: \"%s\": a comma is wanted before \"%s\"",
                      text, end);
    at = end + 1;
  }
}

static void warn_of_missing(const bool *set, int classes, const tp__log *log)
{
  char list[512] = "";
  int missing = 0;
  bool cut = false; /* the list is longer than its text */
  for (int c = 0; c < classes; c++) {
    if (set[c]) continue;
    size_t used = strlen(list);
    if (used < sizeof list - 16)
      snprintf(list + used, sizeof list - used, "%s%d", missing == 0 ? "" : ", ", c);
    else
      cut = true;
    missing++;
  }
  if (missing > 0)
    tp__warn(log, "class_weights: %d of %d classes have no weight and weigh 1: %s%s", missing,
             classes, list, cut ? " ..." : "");
}

tp_status tp__class_weights_make(const char *text, const tp__catalog *catalog, int classes,
                                 const tp__log *log, float *weights, bool *used, tp_error *err)
{
  for (int c = 0; c < classes; c++) weights[c] = 1.0f;
  *used = strcmp(text, "none") != 0;
  if (!*used) return TP_OK;
  if (strcmp(text, "balanced") == 0) return balance(catalog, classes, weights, err);
  bool *set = tp__calloc((size_t)classes, sizeof *set, err);
  if (set == NULL) return TP_ERR_INTERNAL;
  tp_status status = read_table(text, classes, weights, set, err);
  if (status == TP_OK) warn_of_missing(set, classes, log);
  free(set);
  return status;
}
