/* picture_cache - examples kept in memory after their first use: encoded bytes, or decoded 8-bit
 * pixels.
 *
 * The need is known before anything is kept (sizes from the catalog, or from every picture's
 * header), said, and held against the limit, so that a cache is whole or refused and never grows.
 * It is one block, filled by whichever thread has read an example first; an example that is being
 * stored by another thread is simply not found yet. Values are the same with and without it.
 */
#ifndef TP_PICTURE_CACHE_H
#define TP_PICTURE_CACHE_H

#include "pipeline.h"

typedef struct tp__picture_cache tp__picture_cache;

/* Errors: TP_ERR_USAGE when the need is over the limit or the free memory. Returns:
 * tp__picture_cache_free. */
tp_status tp__picture_cache_new(const tp__pipeline_options *options, tp__pool *pool,
                                const tp__log *log, tp__picture_cache **cache,
                                tp_error *err) TP_CHECKED;
void tp__picture_cache_free(tp__picture_cache *cache);

/* What is kept of one example, borrowed; NULL when not (yet). The two kinds of cache are never
 * mixed: the one asked for wrongly finds nothing. cache may be NULL. Thread-safe. */
const uint8_t *tp__picture_cache_bytes(const tp__picture_cache *cache, size_t example,
                                       size_t *size);
const uint8_t *tp__picture_cache_pixels(const tp__picture_cache *cache, size_t example, int *height,
                                        int *width);

/* Keeps a copy, if the cache is of that kind and the size is the one foreseen. Thread-safe. */
void tp__picture_cache_put_bytes(tp__picture_cache *cache, size_t example, const tp__buffer *bytes);
void tp__picture_cache_put_pixels(tp__picture_cache *cache, size_t example,
                                  const tp__picture *picture);

#endif
