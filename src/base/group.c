/* group - gathering, summing and agreeing, made of exchanges; see group.h */
#include "group.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL = 4096 /* floats: one exchange of everything is faster than two of parts */ };

tp_status tp__group_lists(tp__group *g, tp_error *err)
{
  size_t n = (size_t)g->size;
  g->give = tp__calloc(n, sizeof *g->give, err);
  g->take = tp__calloc(n, sizeof *g->take, err);
  g->give_size = tp__calloc(n, sizeof *g->give_size, err);
  g->take_size = tp__calloc(n, sizeof *g->take_size, err);
  bool all = g->give != NULL && g->take != NULL && g->give_size != NULL && g->take_size != NULL;
  return all ? TP_OK : TP_ERR_INTERNAL;
}

void tp__group_lists_free(tp__group *g)
{
  free(g->give);
  free(g->take);
  free(g->give_size);
  free(g->take_size);
  free(g->room);
}

void tp__group_free(tp__group *g)
{
  if (g != NULL) g->free(g);
}

tp_status tp__group_patience(double *seconds, tp_error *err)
{
  const char *text = getenv("TEPAL_PROCESS_TIMEOUT");
  char *stop = NULL;
  *seconds = text != NULL ? strtod(text, &stop) : 30;
  if (text == NULL || (stop != text && *stop == '\0' && *seconds >= 3 && *seconds <= 1e6))
    return TP_OK;
  return tp__fail(
      err, TP_ERR_USAGE,
      "environment variable TEPAL_PROCESS_TIMEOUT: \"%s\"; wanted are seconds, 3 or more", text);
}

void tp__group_silence(double seconds, char text[160])
{
  snprintf(text, 160,
           " has not been heard of for %.0f seconds: it was killed, or its machine or the network "
           "is lost; go on with --resume",
           seconds);
}

tp_status tp__group_give_up(tp__group *g, const tp_error *why, tp_error *err)
{
  g->over = true;
  if (err != NULL) *err = *why;
  if (err != NULL && g->rank != 0 && why->status != TP_ERR_DEVICE) err->text[0] = '\0';
  return why->status;
}

static tp_status make_room(tp__group *g, size_t bytes, tp_error *err)
{
  if (bytes <= g->room_size) return TP_OK;
  uint8_t *grown = realloc(g->room, bytes);
  if (grown == NULL) return tp__no_memory(err, bytes);
  g->room = grown;
  g->room_size = bytes;
  return TP_OK;
}

static tp_status exchange(tp__group *g, tp_error *err)
{
  if (g->over) return tp__fail(err, TP_ERR_DEVICE, "the processes do not work together any more");
  return g->exchange(g, g->give, g->give_size, g->take, g->take_size, err);
}

tp_status tp__group_gather(tp__group *g, const void *own, size_t bytes, void *all, tp_error *err)
{
  if (bytes > 0) memmove((uint8_t *)all + (size_t)tp__group_rank(g) * bytes, own, bytes);
  if (tp__group_size(g) == 1) return TP_OK;
  for (int r = 0; r < g->size; r++) {
    g->give[r] = own;
    g->take[r] = (uint8_t *)all + (size_t)r * bytes;
    g->give_size[r] = g->take_size[r] = bytes;
  }
  return exchange(g, err);
}

tp_status tp__group_gather_any(tp__group *g, const void *own, size_t own_bytes, tp__buffer *all,
                               size_t *bytes, tp_error *err)
{
  uint64_t mine = own_bytes;
  size_t sum = 0;
  all->size = 0;
  bytes[0] = own_bytes;
  if (tp__group_size(g) == 1) return tp__buffer_add(all, own, own_bytes, err);
  TP__TRY(make_room(g, (size_t)g->size * sizeof mine, err));
  TP__TRY(tp__group_gather(g, &mine, sizeof mine, g->room, err));
  for (int r = 0; r < g->size; r++) {
    memcpy(&mine, g->room + (size_t)r * sizeof mine, sizeof mine);
    bytes[r] = (size_t)mine;
    sum += (size_t)mine;
  }
  TP__TRY(tp__buffer_reserve(all, sum, err));
  for (int r = 0; r < g->size; r++) {
    if (r == g->rank && own_bytes > 0) memcpy(all->data + all->size, own, own_bytes);
    g->give[r] = own;
    g->give_size[r] = own_bytes;
    g->take[r] = all->data + all->size;
    g->take_size[r] = bytes[r];
    all->size += bytes[r];
  }
  return exchange(g, err);
}

/* out = sum of rows, in their order; row r is at rows + r * n, but for the own one. */
static void add_rows(const tp__group *g, const float *rows, const float *own, size_t n, float *out)
{
  const float *first = g->rank == 0 ? own : rows;
  if (out != first) memmove(out, first, n * sizeof *out);
  for (int r = 1; r < g->size; r++) {
    const float *row = r == g->rank ? own : rows + (size_t)r * n;
    for (size_t i = 0; i < n; i++) out[i] += row[i];
  }
}

/* Everyone gets everything and adds it up. */
static tp_status sum_small(tp__group *g, float *data, size_t n, tp_error *err)
{
  TP__TRY(make_room(g, (size_t)g->size * n * sizeof *data, err));
  TP__TRY(tp__group_gather(g, data, n * sizeof *data, g->room, err));
  const float *rows = (const float *)(const void *)g->room;
  add_rows(g, rows, rows + (size_t)g->rank * n, n, data);
  return TP_OK;
}

/* Each process adds up its part of the numbers, then all parts are gathered. */
tp_status tp__group_sum(tp__group *g, float *data, size_t n, tp_error *err)
{
  if (tp__group_size(g) == 1) return TP_OK;
  if (n <= SMALL) return sum_small(g, data, n, err);
  int64_t first, end, from, to;
  tp__group_rows(g->rank, g->size, 1, (int64_t)n, &first, &end);
  size_t part = (size_t)(end - first);
  TP__TRY(make_room(g, ((size_t)g->size + 1) * part * sizeof *data, err));
  float *rows = (float *)(void *)g->room, *total = rows + (size_t)g->size * part;
  for (int r = 0; r < g->size; r++) {
    tp__group_rows(r, g->size, 1, (int64_t)n, &from, &to);
    g->give[r] = data + from;
    g->give_size[r] = (size_t)(to - from) * sizeof *data;
    g->take[r] = rows + (size_t)r * part;
    g->take_size[r] = part * sizeof *data;
  }
  TP__TRY(exchange(g, err));
  add_rows(g, rows, data + first, part, total);
  memcpy(data + first, total, part * sizeof *data);
  for (int r = 0; r < g->size; r++) {
    tp__group_rows(r, g->size, 1, (int64_t)n, &from, &to);
    g->give[r] = total;
    g->give_size[r] = part * sizeof *data;
    g->take[r] = data + from;
    g->take_size[r] = (size_t)(to - from) * sizeof *data;
  }
  return exchange(g, err);
}

/* ---- failures ---- */

struct fate {
  int32_t status, mendable;
  char text[1016];
};

/* The first failure of all becomes this process' own. */
static tp_status take_fate(tp__group *g, struct fate *fate, int first, bool tell, tp_error *err)
{
  tp_status status = (tp_status)fate->status;
  fate->text[sizeof fate->text - 1] = '\0';
  if (!tell)
    (void)tp__fail(err, status, "%s", "");
  else if (first != g->rank)
    (void)tp__fail(err, status, "process %d of %d: %s", first, g->size, fate->text);
  return status;
}

static tp_status judge(tp__group *g, struct fate *all, bool *mendable, tp_error *err)
{
  int first = -1;
  *mendable = true;
  for (int r = g->size - 1; r >= 0; r--) {
    if (all[r].status == TP_OK) continue;
    first = r;
    *mendable = *mendable && all[r].mendable != 0;
  }
  if (first < 0) return TP_OK;
  if (!*mendable) g->agreed = true;
  return take_fate(g, &all[first], first, *mendable || g->rank == 0, err);
}

tp_status tp__group_agree_or_mend(tp__group *g, tp_status status, bool *mendable, tp_error *err)
{
  if (tp__group_size(g) == 1 || g->over || g->agreed) return status;
  tp_error own = {0};
  if (err == NULL) err = &own;
  struct fate mine = {.status = (int32_t)status, .mendable = *mendable};
  if (status != TP_OK) snprintf(mine.text, sizeof mine.text, "%.1015s", err->text);
  struct fate *all = tp__calloc((size_t)g->size, sizeof *all, err);
  if (all == NULL) return TP_ERR_INTERNAL;
  tp_error broken = {0};
  tp_status reached = tp__group_gather(g, &mine, sizeof mine, all, &broken);
  if (reached == TP_OK) {
    status = judge(g, all, mendable, err);
  } else {
    *mendable = false;
    if (status == TP_OK) *err = broken;
    status = status != TP_OK ? status : reached;
  }
  free(all);
  return status;
}

tp_status tp__group_agree(tp__group *g, tp_status status, tp_error *err)
{
  bool mendable = false;
  return tp__group_agree_or_mend(g, status, &mendable, err);
}

void tp__group_fail(tp__group *g, tp_status status, tp_error *err)
{
  if (tp__group_size(g) == 1 || g->over || g->agreed) return;
  g->over = true;
  bool heard = g->fail(g, status, err != NULL ? err->text : "");
  if (heard && g->rank != 0 && err != NULL) err->text[0] = '\0';
}

tp_status tp__group_end(tp__group *g, tp_status status, tp_error *err)
{
  if (tp__group_size(g) == 1) return status;
  if (status == TP_OK || status == TP_STOPPED)
    status = tp__group_agree(g, status, err);
  else
    tp__group_fail(g, status, err);
  g->agreed = false;
  return status;
}
