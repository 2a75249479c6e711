/* order - the order of examples in one epoch, worked out on indices before anything is read
 *
 *   shards, shuffled ──> one example in turn from `interleave` of them ──> shuffle buffer ──> order
 *
 * As tf.data's Dataset.interleave(cycle_length, block_length = 1) and Dataset.shuffle(buffer_size)
 * do it, with draws that are a function of (seed, epoch, position) instead of a generator's state.
 * Every draw has its own counter: the shards' order and the buffer use different ranges of it.
 */
#include <stdlib.h>
#include <string.h>

#include "pipeline.h"

/* Counters of the draws for the shards' order start here; those of the buffer are positions in the
 * epoch. */
#define SHARD_DRAWS (UINT64_C(1) << 40)

/* A run of examples that lie in the same shard. */
struct shard {
  uint32_t next, end;
};

static size_t list_shards(const uint32_t *file_of, size_t n, struct shard *shards)
{
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    if (i == 0 || file_of[i] != file_of[i - 1]) shards[count++].next = (uint32_t)i;
    shards[count - 1].end = (uint32_t)(i + 1);
  }
  return count;
}

/* Fisher and Yates, downwards. */
static void shuffle_shards(struct shard *shards, size_t count, tp__key key)
{
  for (size_t i = count; i > 1; i--) {
    size_t j = (size_t)tp__below(key, TP__DRAW_ORDER, SHARD_DRAWS + i, i);
    struct shard kept = shards[i - 1];
    shards[i - 1] = shards[j];
    shards[j] = kept;
  }
}

/* Takes one example in turn from each open shard. A shard that is used up is replaced when its turn
 * comes again. open: room for `width` shards. */
static void interleave_shards(const struct shard *shards, size_t count, struct shard *open,
                              size_t width, uint32_t *stream)
{
  size_t opened = 0, out = 0, idle = 0;
  memset(open, 0, width * sizeof *open);
  for (size_t turn = 0; idle < width; turn = (turn + 1) % width) {
    struct shard *s = &open[turn];
    if (s->next == s->end && opened < count && s->end == 0) *s = shards[opened++];
    if (s->next < s->end) {
      stream[out++] = s->next++;
      idle = 0;
    } else if (s->end != 0 && opened < count) {
      *s = (struct shard){0}; /* its place is filled in the next round */
      idle = 0;
    } else {
      idle++;
    }
  }
}

/* Gives a random one of `size` waiting examples and puts the next of the stream in its place. held:
 * room for size. */
static void shuffle_stream(const uint32_t *stream, size_t n, uint32_t *held, size_t size,
                           tp__key key, uint32_t *order)
{
  memcpy(held, stream, size * sizeof *held);
  size_t in = size, waiting = size;
  for (size_t i = 0; i < n; i++) {
    size_t j = (size_t)tp__below(key, TP__DRAW_ORDER, i, waiting);
    order[i] = held[j];
    held[j] = in < n ? stream[in++] : held[--waiting];
  }
}

tp_status tp__order_make(const uint32_t *file_of, size_t n, int64_t shuffle, int interleave,
                         uint64_t seed, uint32_t epoch, uint32_t *order, tp_error *err)
{
  if (shuffle < -1)
    return tp__fail(err, TP_ERR_USAGE, "shuffle must be -1 or more, not %lld", (long long)shuffle);
  if (interleave < 1)
    return tp__fail(err, TP_ERR_USAGE, "interleave must be 1 or more, not %d", interleave);
  if (n > UINT32_MAX) return tp__fail(err, TP_ERR_USAGE, "more than %u examples", UINT32_MAX);
  if (shuffle == 0) {
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    return TP_OK;
  }
  tp_status status = TP_ERR_INTERNAL;
  size_t size = shuffle < 0 || (uint64_t)shuffle > n ? n : (size_t)shuffle;
  uint32_t *stream = NULL, *held = NULL;
  struct shard *open = NULL, *shards = tp__calloc(n, sizeof *shards, err);
  if (shards == NULL) goto out;
  size_t count = list_shards(file_of, n, shards);
  size_t width = (size_t)interleave < count ? (size_t)interleave : count;
  if ((open = tp__calloc(width, sizeof *open, err)) == NULL) goto out;
  if ((stream = tp__calloc(n, sizeof *stream, err)) == NULL) goto out;
  if ((held = tp__calloc(size, sizeof *held, err)) == NULL) goto out;
  tp__key key = tp__key_of(seed, epoch, 0);
  shuffle_shards(shards, count, key);
  interleave_shards(shards, count, open, width, stream);
  shuffle_stream(stream, n, held, size, key, order);
  status = TP_OK;
out:
  free(held);
  free(stream);
  free(open);
  free(shards);
  return status;
}
