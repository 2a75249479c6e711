/* catalog_bad - how many bad records may be skipped, and the list of them; see catalog_build.h */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "catalog_build.h"

/* Strictly: digits, or a decimal number up to 100 and a per cent sign. */
tp_status tp__catalog_bad_limit(tp__build *build, tp_error *err)
{
  const char *text = build->options->max_bad;
  build->bad_by_share = false;
  build->bad_allowed = 0;
  if (text == NULL) return TP_OK;
  size_t size = strlen(text), digits = strspn(text, "0123456789");
  bool share = size > 0 && text[size - 1] == '%';
  size_t number = share ? size - 1 : size, used = digits;
  if (share && used > 0 && text[used] == '.') {
    size_t more = strspn(text + used + 1, "0123456789");
    used += more > 0 ? more + 1 : 0;
  }
  /* Read by hand: strtod follows the locale, where the point may be a comma. */
  double value = 0, place = 1;
  for (size_t i = 0; i < used; i++) {
    if (!isdigit((unsigned char)text[i])) continue;
    value = value * 10 + (text[i] - '0');
    if (i > digits) place *= 10;
  }
  value /= place;
  if (digits == 0 || digits > 18 || used != number || size > 40 || (share && value > 100))
    return tp__fail(err, TP_ERR_USAGE,
                    "max_bad \"%.40s\": a number of records (10) or a share (0.5%%) is wanted",
                    text);
  build->bad_by_share = share;
  build->bad_allowed = value;
  return TP_OK;
}

tp_status tp__catalog_skip(tp__build *build, tp_status status, const char *file, const char *place,
                           tp_error *err)
{
  if (status != TP_ERR_DATA || !tp__catalog_may_skip(build)) {
    if (place != NULL) status = tp__at(err, status, "%s", place);
    return tp__at(err, status, "%s", file);
  }
  tp__catalog *c = build->catalog;
  TP__TRY(tp__list_grow(&c->bad, c->n_bad, &c->bad_capacity, sizeof *c->bad, err));
  tp__bad_record *bad = &c->bad[c->n_bad];
  const char *text = err != NULL ? err->text : tp_status_text(status);
  *bad = (tp__bad_record){.number = -1};
  bad->file = tp__arena_strdup(&c->arena, file);
  bad->reason = place != NULL ? tp__arena_format(&c->arena, "%s: %s", place, text)
                              : tp__arena_strdup(&c->arena, text);
  if (bad->file == NULL || bad->reason == NULL) return tp__no_memory(err, 4096);
  c->n_bad++;
  return TP_OK;
}

tp_status tp__catalog_check_bad(const tp__build *build, const tp__log *log, tp_error *err)
{
  const tp__catalog *c = build->catalog;
  if (c->n_bad == 0) return TP_OK;
  double all = (double)c->n_records + (double)c->n_bad;
  double allowed = build->bad_by_share ? all * build->bad_allowed / 100 : build->bad_allowed;
  const tp__bad_record *first = &c->bad[0];
  char where[64] = "";
  if (first->number >= 0)
    snprintf(where, sizeof where, "record %lld at byte %llu: ", (long long)first->number,
             (unsigned long long)first->offset);
  if ((double)c->n_bad > allowed)
    return tp__fail(err, TP_ERR_DATA,
                    "%zu of %.0f records are bad, max_bad %s allows %.0f; first: %s: %s%s",
                    c->n_bad, all, build->options->max_bad, (double)(uint64_t)allowed, first->file,
                    where, first->reason);
  tp__warn(log, "%zu of %.0f records are bad and left out (max_bad %s); first: %s: %s%s", c->n_bad,
           all, build->options->max_bad, first->file, where, first->reason);
  return TP_OK;
}
