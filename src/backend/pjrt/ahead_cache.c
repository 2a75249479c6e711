/* ahead_cache - see ahead_cache.h */
#include "ahead_cache.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pjrt_parts.h"

/* Changes when what is kept, or how it is judged, does. */
static const char form[] = "answer 1";

/* Each part with its length, so that two lists of parts never look alike. */
static bool add(EVP_MD_CTX *hash, const void *data, size_t size)
{
  uint64_t length = size;
  return EVP_DigestUpdate(hash, &length, sizeof length) == 1 &&
         EVP_DigestUpdate(hash, data, size) == 1;
}

static bool add_text(EVP_MD_CTX *hash, const char *text)
{
  return add(hash, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
}

static bool add_machine(EVP_MD_CTX *hash, const tp__ahead *a, int replicas)
{
  const tp__target *t = tp__ahead_target(a);
  struct stat st = {0};
  (void)stat(tp__ahead_plugin(a), &st);
  int64_t number[] = {(int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec,
                      replicas, (int64_t)t->chip->usable};
  return add_text(hash, form) && add_text(hash, t->chip->name) && add_text(hash, t->topology) &&
         add_text(hash, tp__ahead_machine(a)->version) && add(hash, number, sizeof number) &&
         add_text(hash, getenv("XLA_FLAGS")) && add_text(hash, getenv("LIBTPU_INIT_ARGS"));
}

tp_status tp__ahead_key(const tp__ahead *a, const char *text, size_t length, int replicas,
                        char key[TP__PROGRAM_KEY], tp_error *err)
{
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  EVP_MD_CTX *hash = EVP_MD_CTX_new();
  bool good = hash != NULL && EVP_DigestInit_ex(hash, EVP_sha256(), NULL) == 1 &&
              add_machine(hash, a, replicas) && add(hash, text, length) &&
              EVP_DigestFinal_ex(hash, digest, &n) == 1;
  EVP_MD_CTX_free(hash);
  if (!good) return tp__fail(err, TP_ERR_INTERNAL, "a checksum could not be computed");
  for (unsigned i = 0; i < n; i++) snprintf(key + 2 * (size_t)i, 3, "%02x", digest[i]);
  return TP_OK;
}

/* One line of numbers, then why it does not fit. */
bool tp__ahead_recall(const char *folder, const char *key, tp__verdict *v)
{
  tp__buffer file = {0};
  tp__verdict got = {.cached = true};
  tp__executable_info *i = &got.info;
  int fits = 0, end = 0;
  if (!tp__program_read(folder, key, &file)) return false;
  bool whole = tp__buffer_add(&file, "", 1, NULL) == TP_OK;
  const char *text = (const char *)file.data;
  whole = whole &&
          sscanf(text,
                 "%d %lf %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                 " %lf %lf %lf\n%n",
                 &fits, &got.seconds, &got.need, &i->argument_bytes, &i->output_bytes,
                 &i->alias_bytes, &i->temporary_bytes, &i->code_bytes, &i->flops,
                 &i->bytes_accessed, &i->optimal_seconds, &end) == 11 &&
          end > 0;
  if (whole) snprintf(got.why, sizeof got.why, "%s", text + end);
  got.fits = fits == 1;
  tp__buffer_free(&file);
  if (whole) *v = got;
  return whole;
}

void tp__ahead_remember(const char *folder, const char *key, const tp__verdict *v)
{
  const tp__executable_info *i = &v->info;
  char text[1024];
  int n = snprintf(text, sizeof text,
                   "%d %.17g %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                   " %.17g %.17g %.17g\n%s",
                   v->fits, v->seconds, v->need, i->argument_bytes, i->output_bytes, i->alias_bytes,
                   i->temporary_bytes, i->code_bytes, i->flops, i->bytes_accessed,
                   i->optimal_seconds, v->why);
  if (n > 0 && (size_t)n < sizeof text)
    tp__program_write(folder, key, text, (size_t)n, TP__PROGRAMS_MAX);
}
