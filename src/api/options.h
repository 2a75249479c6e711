/* options - one table for flags, recipe lines and fields of the option structs: name, type,
 * default, help.
 *
 * The public functions tp_options_… are here; see tepal.h. The table is options_table.c. Strings
 * that are set from text live in the struct's `memory` until tp_options_free.
 */
#ifndef TP_OPTIONS_H
#define TP_OPTIONS_H

#include "base/base.h"
#include "base/group.h"

typedef enum tp__option_type {
  TP__OPTION_STRING,
  TP__OPTION_STRINGS,
  TP__OPTION_BOOL,
  TP__OPTION_INT,
  TP__OPTION_INT64,
  TP__OPTION_UINT64,
  TP__OPTION_DOUBLE
} tp__option_type;

typedef struct tp__option_row {
  tp_option option; /* what people see */
  tp__option_type type;
  size_t offset; /* of the field in the struct */
  bool path;     /* names a file or pattern: recipes hold it absolute */
} tp__option_row;

const tp__option_row *tp__option_rows(tp_options_kind kind, size_t *count);

/* A number for which "all", -1, may be written. */
bool tp__option_takes_all(const tp__option_row *row);

/* Whether that value of a row names a file: not "imagenet", "none", or "-". */
bool tp__option_is_path(const tp__option_row *row, const char *value);

/* The next value set of any list replaces the list instead of adding to it. */
void tp__options_lists_end(void *options);

/* Writes a recipe.ini with every option's value; atomic. Paths become absolute. */
tp_status tp__options_write(tp_options_kind kind, const void *options, const char *path,
                            tp_error *err) TP_CHECKED;

/* All processes call it: an option, other than where files are, that not all were given alike is
 * TP_ERR_USAGE naming it. */
tp_status tp__options_agree(tp_options_kind kind, const void *options, tp__group *group,
                            tp_error *err) TP_CHECKED;

/* Of n names the one nearest to a misspelt one (edit distance), NULL where none is near. */
const char *tp__nearest(const char *name, const char *const *names, size_t n);

#endif
