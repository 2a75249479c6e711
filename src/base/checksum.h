/* checksum - of bytes, and keys: SHA-256 over all that decides an answer, as a name for what is
 * kept of it (OpenSSL's libcrypto); and short hashes, to tell what differs by accident. */
#ifndef TP_CHECKSUM_H
#define TP_CHECKSUM_H

#include "base/base.h"

enum { TP__KEY = 65 }; /* 64 hexadecimal digits and the final zero */

/* Checksum as lower-case hex. algorithm: "SHA256" or "MD5". */
tp_status tp__checksum(const char *algorithm, const void *data, size_t size, char hex[TP__KEY],
                       tp_error *err) TP_CHECKED;

/* FNV-1a, 64 bits; begin with TP__HASH_BEGIN, add bytes or larger values. */
#define TP__HASH_BEGIN UINT64_C(14695981039346656037)
static inline uint64_t tp__hash_add(uint64_t hash, uint64_t value)
{
  return (hash ^ value) * UINT64_C(1099511628211);
}
static inline uint64_t tp__hash_add_text(uint64_t hash, const char *text)
{
  for (; *text != '\0'; text++) hash = tp__hash_add(hash, (uint8_t)*text);
  return hash;
}
/* Of many bytes, eight at a time. */
uint64_t tp__hash_bytes(uint64_t start, const void *data, size_t size);

typedef struct tp__keying tp__keying;

/* NULL: out of memory. Parts are added with their lengths, so that two lists of them never look
 * alike; a part that could not be added makes tp__key_end fail. */
tp__keying *tp__key_begin(void);
void tp__key_add(tp__keying *k, const void *data, size_t size);
void tp__key_add_text(tp__keying *k, const char *text); /* NULL is "" */
/* The plugin: size and age of its file. */
void tp__key_add_file(tp__keying *k, const char *path);
/* What compilers read from the environment. */
void tp__key_add_flags(tp__keying *k);
/* Takes k, which may be NULL. */
tp_status tp__key_end(tp__keying *k, char key[TP__KEY], tp_error *err) TP_CHECKED;

#endif
