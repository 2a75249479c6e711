/* error - see base.h */
#include "base.h"

#include <string.h>

const char *tp_status_text(tp_status status)
{
  switch (status) {
#define TP__CASE(name, code, text)                                                                 \
  case name:                                                                                       \
    return text;
    TP_STATUS_MAP(TP__CASE)
#undef TP__CASE
  }
  return "unknown status";
}

const char *tp_version(void)
{
  return TP_VERSION;
}

tp_status tp__fail(tp_error *err, tp_status status, const char *format, ...)
{
  if (err == NULL) return status;
  err->status = status;
  va_list args;
  va_start(args, format);
  vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  return status;
}

tp_status tp__at(tp_error *err, tp_status status, const char *format, ...)
{
  if (err == NULL) return status;
  char fact[sizeof err->text];
  memcpy(fact, err->text, sizeof fact);
  fact[sizeof fact - 1] = '\0';
  err->status = status;
  if (fact[0] == '\0') return status; /* another process tells it (group.h) */
  va_list args;
  va_start(args, format);
  int n = vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  size_t used = n < 0 ? 0 : (size_t)n;
  if (used >= sizeof err->text) used = sizeof err->text - 1;
  snprintf(err->text + used, sizeof err->text - used, ": %s", fact);
  return status;
}

tp_status tp__no_memory(tp_error *err, size_t bytes)
{
  char text[32];
  return tp__fail(err, TP_ERR_INTERNAL, "out of memory: %s more could not be had",
                  tp__bytes_text(text, bytes));
}
