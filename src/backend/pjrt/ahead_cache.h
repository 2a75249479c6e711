/* ahead_cache - answers of compilers for machines that are not here, kept in the folder of compiled
 * programs (program_cache.h), a few hundred bytes each. */
#ifndef TP_AHEAD_CACHE_H
#define TP_AHEAD_CACHE_H

#include "ahead.h"
#include "program_cache.h"

/* Of all that decides the answer: module, replicas, machine, plugin (size and age of its file), the
 * environment's flags. */
tp_status tp__ahead_key(const tp__ahead *ahead, const char *text, size_t length, int replicas,
                        char key[TP__KEY], tp_error *err) TP_CHECKED;
/* False: there is no such answer. */
bool tp__ahead_recall(const char *folder, const char *key, tp__verdict *verdict);
void tp__ahead_remember(const char *folder, const char *key, const tp__verdict *verdict);

#endif
