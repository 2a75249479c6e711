/* data_set - see data_set.h */
#include "data_set.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

tp_status tp__size_parse(const char *option, const char *text, int *height, int *width,
                         tp_error *err)
{
  char *end = NULL;
  long h = strtol(text, &end, 10), w = h;
  bool ok = end != text;
  if (ok && (*end == 'x' || *end == 'X')) {
    const char *second = end + 1;
    w = strtol(second, &end, 10);
    ok = end != second;
  }
  if (!ok || *end != '\0' || h < 1 || w < 1 || h > 16384 || w > 16384)
    return tp__fail(err, TP_ERR_USAGE,
                    "%s: \"%s\" is no size; wanted 192, or HEIGHTxWIDTH as 192x160, each from 1 to "
                    "16384",
                    option, text);
  *height = (int)h;
  *width = (int)w;
  return TP_OK;
}

tp_status tp__bytes_parse(const char *option, const char *text, uint64_t *bytes, tp_error *err)
{
  char *end = NULL;
  double value = strtod(text, &end);
  static const char units[] = "KMGT";
  const char *unit = end != text && *end != '\0' ? strchr(units, *end & ~0x20) : NULL;
  if (unit != NULL && *unit != '\0') {
    value *= pow(1000, (double)(unit - units + 1));
    end++;
    if (*end == 'B' || *end == 'b') end++;
  }
  if (end == text || *end != '\0' || !(value >= 0 && value < 9e18))
    return tp__fail(err, TP_ERR_USAGE, "%s: \"%s\" is no amount of memory; wanted 4G, 512M ...",
                    option, text);
  *bytes = (uint64_t)value;
  return TP_OK;
}

/* The index of text in a list of n words, or an error that lists them. */
static tp_status word_of(const char *option, const char *text, const char *const *word, int n,
                         int *index, tp_error *err)
{
  char all[256] = "";
  for (int i = 0; i < n; i++) {
    if (strcmp(text, word[i]) == 0) {
      *index = i;
      return TP_OK;
    }
    size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s%s",
             i == 0       ? ""
             : i + 1 == n ? " or "
                          : ", ",
             word[i]);
  }
  return tp__fail(err, TP_ERR_USAGE, "%s: \"%s\" is not known; wanted %s", option, text, all);
}

tp_status tp__fill_parse(const char *option, const char *text, tp__fill *fill, tp_error *err)
{
  static const char *const word[] = {"reflect", "constant", "nearest", "wrap"};
  static const tp__fill value[] = {TP__FILL_REFLECT, TP__FILL_CONSTANT, TP__FILL_NEAREST,
                                   TP__FILL_WRAP};
  int i = 0;
  TP__TRY(word_of(option, text, word, 4, &i, err));
  *fill = value[i];
  return TP_OK;
}

tp_status tp__dct_parse(const char *text, bool *accurate, tp_error *err)
{
  static const char *const word[] = {"fast", "accurate"};
  int i = 0;
  TP__TRY(word_of("dct", text, word, 2, &i, err));
  *accurate = i == 1;
  return TP_OK;
}

tp_status tp__data_open(const tp__job *job, const tp_data_options *options,
                        const tp_strings *patterns, const char *what, const char *const *names,
                        int classes, bool need_labels, tp__catalog **catalog, tp_error *err)
{
  tp__catalog_options o = {
      .patterns = patterns->item,
      .n_patterns = patterns->count,
      .image_feature = options->image_feature,
      .class_feature = options->class_feature,
      .id_feature = options->id_feature,
      .labels = names,
      .n_labels = (size_t)classes,
      .label_base = options->label_base,
      .need_labels = need_labels,
      .max_bad = options->max_bad,
  };
  tp_status status = tp__catalog_open(&o, job->pool, job->log, catalog, err);
  if (status != TP_OK) return tp__at(err, status, "%s", what);
  if (tp__catalog_count(*catalog) == 0) {
    tp__catalog_free(*catalog);
    *catalog = NULL;
    return tp__fail(err, TP_ERR_DATA, "%s: holds no examples", what);
  }
  return TP_OK;
}

int tp__data_classes(const tp__catalog *catalog)
{
  int32_t largest = -1;
  for (size_t i = 0; i < tp__catalog_count(catalog); i++) {
    int32_t label = tp__catalog_record(catalog, i)->label;
    if (label > largest) largest = label;
  }
  return largest + 1;
}

tp_status tp__data_pipeline(const tp_data_options *options, const tp__catalog *catalog,
                            tp__pipeline_options *pipeline, tp_error *err)
{
  static const char *const word[] = {"none", "encoded", "pixels"};
  static const tp__cache value[] = {TP__CACHE_NONE, TP__CACHE_ENCODED, TP__CACHE_PIXELS};
  int i = 0;
  TP__TRY(word_of("cache", options->cache, word, 3, &i, err));
  pipeline->cache = value[i];
  TP__TRY(tp__bytes_parse("cache_limit", options->cache_limit, &pipeline->cache_limit, err));
  /* The catalog has checked the text and used its share for damaged records; pictures get the rest.
   */
  size_t bad = 0;
  (void)tp__catalog_bad(catalog, &bad);
  char *end = NULL;
  double allowed = strtod(options->max_bad, &end);
  if (*end == '%') allowed = allowed / 100 * (double)(tp__catalog_count(catalog) + bad);
  pipeline->max_bad_pictures = allowed > (double)bad ? (int64_t)allowed - (int64_t)bad : 0;
  return TP_OK;
}
