/* bad_records - see bad_records.h */
#include "bad_records.h"

tp_status tp__bad_records_print(const tp__bad_record *bad, size_t n, tp__buffer *text,
                                tp_error *err)
{
  if (n > 0 && text->size == 0)
    TP__TRY(tp__buffer_printf(text, err, "file\trecord\tbyte\treason\n"));
  for (size_t i = 0; i < n; i++)
    TP__TRY(tp__buffer_printf(text, err, "%s\t%lld\t%llu\t%s\n", bad[i].file,
                              (long long)bad[i].number, (unsigned long long)bad[i].offset,
                              bad[i].reason));
  return TP_OK;
}
