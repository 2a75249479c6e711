/* rng - counter-based random numbers: every draw is a function of a key and a counter, there is no
 * state.
 *
 * Philox 4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1,
 * 2, 3", SC 2011). What is drawn for is part of the counter, so that two uses never share numbers.
 */
#ifndef TP_RNG_H
#define TP_RNG_H

#include <stdint.h>

/* The uses of random numbers. The values are part of what "same seed, same run" means: never
 * renumber. */
typedef enum tp__draw_use {
  TP__DRAW_ORDER = 1, /* the order of examples in an epoch */
  TP__DRAW_FLIP = 2,  /* augmentation, one per kind */
  TP__DRAW_ROTATE = 3,
  TP__DRAW_DROPOUT = 4, /* + the index of the dropout layer << 8 */
  TP__DRAW_INIT = 5,    /* initial weights */
  TP__DRAW_SPLIT = 6,   /* stratified split of `pack` */
  TP__DRAW_PICTURE = 7, /* the demo's flowers */
  TP__DRAW_CROP = 8,    /* augmentation again; four for each try */
  TP__DRAW_COLOUR = 9,
  TP__DRAW_MIX = 10, /* how much of the partner; two for each try */
  TP__DRAW_CUT = 11, /* MixUp or CutMix, and where */
} tp__draw_use;

typedef struct tp__key {
  uint32_t word[2];
} tp__key;

/* A key for one purpose in one place: seed with (epoch, example) mixed in, by one Philox block. */
tp__key tp__key_of(uint64_t seed, uint32_t epoch, uint64_t example);

/* Four words for (key, counter). */
void tp__philox(tp__key key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t out[4]);

/* Uniform in [0, 1): the top 24 bits, so that every value is exact in float. */
static inline float tp__unit_float(uint32_t word)
{
  return (float)(word >> 8) * (1.0f / 16777216.0f);
}

/* The index-th uniform of a use under a key: word index % 4 of block index / 4, counter (index / 4,
 * draw, 0, 0). */
float tp__uniform(tp__key key, uint32_t draw, uint32_t index);

/* Beta(alpha, alpha) in [0, 1], 0 < alpha <= 100: the first of the tries 0, 1, ... that is
 * accepted, of uniforms 2i and 2i + 1 of the use. M. D. Joehnk: Metrika 8 (1964); from alpha above
 * 1 on R. C. H. Cheng: "Generating beta variates with nonintegral shape parameters", CACM 21
 * (1978), algorithm BB.
 */
double tp__beta(tp__key key, uint32_t draw, double alpha);

/* A whole number in [0, bound) without bias worth naming (64-bit multiply-shift); bound >= 1. */
uint64_t tp__below(tp__key key, uint32_t draw, uint64_t index, uint64_t bound);

#endif
