/* fetch - see fetch.h */
#include "fetch.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

typedef struct sink {
  tp__buffer *into;
  tp_error err;
  bool failed;
} sink;

static size_t take(char *data, size_t size, size_t count, void *user)
{
  sink *s = user;
  s->failed = tp__buffer_add(s->into, data, size * count, &s->err) != TP_OK;
  return s->failed ? 0 : count; /* fewer than given ends the transfer */
}

static void set_options(CURL *curl, const char *url, sink *s, char *reason)
{
  bool secure = strncmp(url, "https:", 6) == 0;
  const char *certificates = getenv("CURL_CA_BUNDLE");
  if (certificates == NULL) certificates = getenv("SSL_CERT_FILE");
  curl_easy_setopt(curl, CURLOPT_URL, url);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, s);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, secure ? "https" : "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 20L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 60L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "tepal/" TP_VERSION);
  if (certificates != NULL) curl_easy_setopt(curl, CURLOPT_CAINFO, certificates);
}

tp_status tp__fetch(const char *url, tp__buffer *into, tp_error *err)
{
  char reason[CURL_ERROR_SIZE] = "";
  sink s = {.into = into};
  CURL *curl = curl_easy_init();
  if (curl == NULL) return tp__fail(err, TP_ERR_INTERNAL, "libcurl could not be started");
  set_options(curl, url, &s, reason);
  CURLcode code = curl_easy_perform(curl);
  curl_easy_cleanup(curl);
  if (code == CURLE_OK) return TP_OK;
  if (s.failed) return tp__fail(err, s.err.status, "%s: %.1500s", url, s.err.text);
  return tp__fail(err, TP_ERR_DATA, "%s could not be fetched: %s", url,
                  reason[0] != '\0' ? reason : curl_easy_strerror(code));
}
