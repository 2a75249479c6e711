/* split - see split.h */
#include "split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* A decimal number by hand: strtod follows the locale. False when there is none. */
static bool take_number(const char **text, double *value)
{
  const char *p = *text;
  double place = 1;
  bool any = false;
  *value = 0;
  for (; *p >= '0' && *p <= '9' && *value < 1e6; p++, any = true) *value = *value * 10 + (*p - '0');
  if (any && *p == '.')
    for (p++; *p >= '0' && *p <= '9'; p++) *value += (*p - '0') * (place /= 10);
  *text = p;
  return any;
}

tp_status tp__split_parse(const char *text, double share[TP__SPLIT_COUNT], tp_error *err)
{
  double value[TP__SPLIT_COUNT] = {0}, sum = 0;
  const char *p = text;
  bool good = true;
  for (int i = 0; good && i < TP__SPLIT_COUNT; i++) {
    good = take_number(&p, &value[i]);
    sum += value[i];
    if (!good || *p != ',') break;
    p++;
    good = i + 1 < TP__SPLIT_COUNT;
  }
  if (!good || *p != '\0' || fabs(sum - 100) > 1e-6)
    return tp__fail(
        err, TP_ERR_USAGE,
        "split \"%.60s\": wanted per cent of train, val and test that add up to 100, like 80,10,10",
        text);
  memcpy(share, value, sizeof value);
  return TP_OK;
}

void tp__split_sizes(size_t n, const double share[TP__SPLIT_COUNT], size_t size[TP__SPLIT_COUNT])
{
  size_t taken = 0;
  for (int i = TP__SPLIT_VAL; i < TP__SPLIT_COUNT; i++) {
    size[i] = (size_t)((double)n * share[i] / 100 + 0.5);
    if (size[i] == 0 && share[i] > 0 && n >= 3) size[i] = 1;
    if (size[i] > n - taken) size[i] = n - taken;
    taken += size[i];
  }
  size[TP__SPLIT_TRAIN] = n - taken;
  if (share[TP__SPLIT_TRAIN] > 0 && n > 0 &&
      size[TP__SPLIT_TRAIN] == 0) { /* training comes first */
    int from = size[TP__SPLIT_TEST] > size[TP__SPLIT_VAL] ? TP__SPLIT_TEST : TP__SPLIT_VAL;
    size[from]--;
    size[TP__SPLIT_TRAIN] = 1;
  }
  if (share[TP__SPLIT_TRAIN] <= 0) { /* rounding must not send a photo to a part without a share */
    int to = share[TP__SPLIT_VAL] > 0 ? TP__SPLIT_VAL : TP__SPLIT_TEST;
    size[to] += size[TP__SPLIT_TRAIN];
    size[TP__SPLIT_TRAIN] = 0;
  }
}

struct member {
  int32_t label;
  uint32_t index;
};

static int by_label(const void *a, const void *b)
{
  const struct member *x = a, *y = b;
  if (x->label != y->label) return x->label < y->label ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

/* Shuffles the photos of one class and cuts the row in three. */
static void split_class(struct member *m, size_t n, const double share[TP__SPLIT_COUNT],
                        uint64_t seed, uint8_t *part)
{
  tp__key key = tp__key_of(seed, 0, (uint64_t)((int64_t)m[0].label + 1));
  size_t size[TP__SPLIT_COUNT];
  for (size_t i = n; i > 1; i--) {
    size_t j = (size_t)tp__below(key, TP__DRAW_SPLIT, i, i);
    struct member kept = m[i - 1];
    m[i - 1] = m[j];
    m[j] = kept;
  }
  tp__split_sizes(n, share, size);
  for (size_t i = 0; i < n; i++)
    part[m[i].index] = i < size[TP__SPLIT_VAL]                          ? TP__SPLIT_VAL
                       : i < size[TP__SPLIT_VAL] + size[TP__SPLIT_TEST] ? TP__SPLIT_TEST
                                                                        : TP__SPLIT_TRAIN;
}

tp_status tp__split_make(const int32_t *label, size_t n, const double share[TP__SPLIT_COUNT],
                         uint64_t seed, uint8_t *part, tp_error *err)
{
  struct member *m = tp__calloc(n, sizeof *m, err);
  if (m == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < n; i++) m[i] = (struct member){label[i], (uint32_t)i};
  qsort(m, n, sizeof *m, by_label);
  for (size_t i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && m[end].label == m[i].label;) end++;
    split_class(m + i, end - i, share, seed, part);
  }
  free(m);
  return TP_OK;
}
