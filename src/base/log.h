/* log - lines for people go through the context's sink; nothing else in the library prints. */
#ifndef TP_LOG_H
#define TP_LOG_H

#include "base.h"

typedef enum tp__level { TP__INFO, TP__WARNING } tp__level;

typedef struct tp__log {
  void (*line)(void *user, tp__level level,
               const char *text); /* NULL: silent. Text has no line end. */
  void *user;
} tp__log;

void tp__say(const tp__log *log, const char *format, ...) TP_PRINTF(2, 3);
void tp__warn(const tp__log *log, const char *format, ...) TP_PRINTF(2, 3);

#endif
