/* gathering - the tables of a gathered product (tp__gather) in a thread's scratch. */
#ifndef TP_GATHERING_H
#define TP_GATHERING_H

#include "backend/cpu/family.h"

#include <string.h>

typedef struct gathering {
  const float **from; /* [taps][TP__GATHER_ROWS] */
  float **to;         /* [TP__GATHER_ROWS] */
  int *tap;           /* [taps] */
  float *zeros;       /* [length] */
} gathering;

/* Floats, whole lines of the cache. length: of the zeros. */
static inline size_t gathering_size(int taps, long length)
{
  size_t pointers = ((size_t)taps + 1) * TP__GATHER_ROWS * (sizeof(void *) / sizeof(float));
  return pointers + (size_t)tp__pitch(taps) + (size_t)tp__pitch(length);
}

/* Sets the zeros. */
static inline gathering gathering_at(float *scratch, int taps, long length)
{
  gathering g = {.from = (const float **)(void *)scratch};
  g.to = (float **)(void *)(g.from + (size_t)taps * TP__GATHER_ROWS);
  g.tap = (int *)(void *)(g.to + TP__GATHER_ROWS);
  g.zeros = (float *)(void *)(g.tap + tp__pitch(taps));
  memset(g.zeros, 0, (size_t)tp__pitch(length) * sizeof(float));
  return g;
}

#endif
