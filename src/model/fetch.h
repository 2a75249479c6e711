/* fetch - a file from a web address into memory (libcurl). */
#ifndef TP_FETCH_H
#define TP_FETCH_H

#include "base/base.h"

/* Fetches an http or https address into the empty buffer; more than its max is an error. Follows at
 * most 5 redirects, to https only when the address is https. Proxies as curl's environment
 * variables say; SSL_CERT_FILE or CURL_CA_BUNDLE name other certificates. Gives up after 20 s
 * without a connection or 60 s without a byte. Error: TP_ERR_DATA. */
tp_status tp__fetch(const char *url, tp__buffer *into, tp_error *err) TP_CHECKED;

#endif
