/* program_cache - compiled programs in a folder, so that the next run starts at once.
 *
 *   key = SHA-256 of all that decides what the compiler makes: module, options, plugin (version,
 *         attributes, size and age of its file), platform, devices, the environment's flags, and on
 *         CPUs the instruction sets
 *
 * An entry is one file, KEY.program: a line that says what it is, the key, the SHA-256 of the
 * program, the program. It is written under another name first. An entry that is not what it says
 * is removed and counts as absent. Nothing here is an error for the caller: without its cache a
 * program is compiled.
 */
#ifndef TP_PROGRAM_CACHE_H
#define TP_PROGRAM_CACHE_H

#include "base/checksum.h"
#include "pjrt_parts.h"

#define TP__PROGRAMS_MAX ((uint64_t)1 << 30) /* bytes of all that is kept */

tp_status tp__program_key(const tp__client *client, const char *text, size_t length,
                          const tp__buffer *options, char key[TP__KEY], tp_error *err) TP_CHECKED;
/* Reads an entry into a buffer and makes it the youngest; false: there is none. */
bool tp__program_read(const char *folder, const char *key, tp__buffer *into);
/* Writes an entry, then removes the oldest others until all are within `limit` bytes. */
void tp__program_write(const char *folder, const char *key, const void *data, size_t size,
                       uint64_t limit);
void tp__program_remove(const char *folder, const char *key);

#endif
