/* bad_records - the list of what max_bad let pass, as a file for people and spreadsheets. */
#ifndef TP_BAD_RECORDS_H
#define TP_BAD_RECORDS_H

#include "catalog.h"

/* Adds a tab-separated line for each: file, record (0-based; -1: the file as a whole), byte,
 * reason. The first call on an empty buffer adds the header line before them; with n = 0 nothing is
 * added. */
tp_status tp__bad_records_print(const tp__bad_record *bad, size_t n, tp__buffer *text,
                                tp_error *err) TP_CHECKED;

#endif
