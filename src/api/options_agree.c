/* options_agree - whether processes that train together were given the same options; see options.h
 */
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "options.h"

static uint64_t hash_bytes(const void *value, size_t size)
{
  return tp__hash_bytes(1, value, size);
}

/* Files may lie elsewhere: what is in them is compared by who reads them. */
static uint64_t hash_text(const tp__option_row *row, const char *text)
{
  if (text == NULL) return 0;
  return tp__option_is_path(row, text) ? 1 : tp__hash_add_text(TP__HASH_BEGIN, text);
}

static uint64_t hash_list(const tp__option_row *row, const tp_strings *list)
{
  uint64_t hash = TP__HASH_BEGIN;
  for (size_t i = 0; i < list->count; i++) hash = tp__hash_add(hash, hash_text(row, list->item[i]));
  return hash;
}

static uint64_t hash_field(const tp__option_row *row, const void *field)
{
  switch (row->type) {
  case TP__OPTION_STRING:
    return hash_text(row, *(const char *const *)field);
  case TP__OPTION_STRINGS:
    return row->path ? 0 : hash_list(row, field);
  case TP__OPTION_BOOL:
    return *(const bool *)field;
  case TP__OPTION_INT:
    return hash_bytes(field, sizeof(int));
  case TP__OPTION_INT64:
    return hash_bytes(field, sizeof(int64_t));
  case TP__OPTION_UINT64:
    return hash_bytes(field, sizeof(uint64_t));
  case TP__OPTION_DOUBLE:
    return hash_bytes(field, sizeof(double));
  }
  return 0;
}

tp_status tp__options_agree(tp_options_kind kind, const void *options, tp__group *group,
                            tp_error *err)
{
  enum { MOST = 256 };
  size_t n = 0, size = (size_t)tp__group_size(group);
  const tp__option_row *row = tp__option_rows(kind, &n);
  if (size == 1) return TP_OK;
  uint64_t own[MOST];
  uint64_t *all = tp__calloc(size, sizeof own, err);
  tp_status status = all == NULL || n > MOST ? TP_ERR_INTERNAL : TP_OK;
  for (size_t i = 0; i < MOST; i++)
    own[i] = i < n ? hash_field(&row[i], (const char *)options + row[i].offset) : 0;
  if (status == TP_OK) status = tp__group_gather(group, own, sizeof own, all, err);
  for (size_t i = 0; status == TP_OK && i < n * size; i++) {
    size_t option = i / size, process = i % size;
    if (all[process * MOST + option] == all[option]) continue;
    status = tp__fail(err, TP_ERR_USAGE,
                      "%s: process %zu of %zu was given another value than process 0: all need the "
                      "same options",
                      row[option].option.name, process, size);
  }
  free(all);
  return tp__group_agree(group, status, err);
}
