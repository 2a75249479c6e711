/* csv - comma-separated values as RFC 4180 has them.
 *
 * Fields may stand in double quotes, a double quote inside is doubled, a quoted field may hold
 * commas and line ends; lines end in LF or CRLF.
 */
#ifndef TP_CSV_H
#define TP_CSV_H

#include "base/base.h"

/* A text that is cut into fields in place. */
typedef struct tp__csv {
  char *at, *end; /* *end is a zero byte */
  size_t line;    /* of at, from 1 */
} tp__csv;

/* The next line's fields, zero-terminated in place; those beyond `most` are counted but not kept.
 * Only while at < end. */
tp_status tp__csv_line(tp__csv *csv, char **field, size_t most, size_t *count,
                       tp_error *err) TP_CHECKED;

#endif
