/* log - see log.h */
#include "log.h"

static void send(const tp__log *log, tp__level level, const char *format, va_list args)
{
  if (log == NULL || log->line == NULL) return;
  char text[2304];
  vsnprintf(text, sizeof text, format, args);
  log->line(log->user, level, text);
}

void tp__say(const tp__log *log, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  send(log, TP__INFO, format, args);
  va_end(args);
}

void tp__warn(const tp__log *log, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  send(log, TP__WARNING, format, args);
  va_end(args);
}
