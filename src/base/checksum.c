/* checksum - see checksum.h */
#include "checksum.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct tp__keying {
  EVP_MD_CTX *hash;
  bool good;
};

static void to_hex(const unsigned char *digest, unsigned n, char hex[TP__KEY])
{
  for (unsigned i = 0; i < n; i++) snprintf(hex + (size_t)2 * i, 3, "%02x", digest[i]);
}

tp_status tp__checksum(const char *algorithm, const void *data, size_t size, char hex[TP__KEY],
                       tp_error *err)
{
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  const EVP_MD *method = EVP_get_digestbyname(algorithm);
  if (method == NULL || EVP_Digest(data, size, digest, &n, method, NULL) != 1 || n > 32)
    return tp__fail(err, TP_ERR_INTERNAL, "checksum %s could not be computed", algorithm);
  to_hex(digest, n, hex);
  return TP_OK;
}

uint64_t tp__hash_bytes(uint64_t start, const void *data, size_t size)
{
  const uint8_t *p = data;
  uint64_t h = start ^ UINT64_C(0x9E3779B97F4A7C15) ^ size;
  for (; size >= 8; size -= 8, p += 8) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    h = (h ^ word) * UINT64_C(0xFF51AFD7ED558CCD); /* MurmurHash3's mixing constants */
    h ^= h >> 32;
  }
  for (; size > 0; size--) h = (h ^ *p++) * UINT64_C(0xC4CEB9FE1A85EC53);
  return h ^ h >> 29;
}

tp__keying *tp__key_begin(void)
{
  tp__keying *k = calloc(1, sizeof *k);
  if (k == NULL) return NULL;
  k->hash = EVP_MD_CTX_new();
  k->good = k->hash != NULL && EVP_DigestInit_ex(k->hash, EVP_sha256(), NULL) == 1;
  return k;
}

void tp__key_add(tp__keying *k, const void *data, size_t size)
{
  uint64_t length = size;
  if (k == NULL) return;
  k->good = k->good && EVP_DigestUpdate(k->hash, &length, sizeof length) == 1 &&
            EVP_DigestUpdate(k->hash, data, size) == 1;
}

void tp__key_add_text(tp__keying *k, const char *text)
{
  tp__key_add(k, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
}

void tp__key_add_file(tp__keying *k, const char *path)
{
  struct stat st = {0};
  (void)stat(path, &st);
  int64_t file[] = {(int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec};
  tp__key_add(k, file, sizeof file);
}

void tp__key_add_flags(tp__keying *k)
{
  tp__key_add_text(k, getenv("XLA_FLAGS"));
  tp__key_add_text(k, getenv("LIBTPU_INIT_ARGS"));
}

tp_status tp__key_end(tp__keying *k, char key[TP__KEY], tp_error *err)
{
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  bool good = k != NULL && k->good && EVP_DigestFinal_ex(k->hash, digest, &n) == 1;
  if (k != NULL) EVP_MD_CTX_free(k->hash);
  free(k);
  if (!good) return tp__fail(err, TP_ERR_INTERNAL, "a checksum could not be computed");
  to_hex(digest, n, key);
  return TP_OK;
}
