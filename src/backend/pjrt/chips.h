/* chips - what is publicly known of the accelerators that a plan can be made for.
 *
 * One row is one device as its compiler counts them: a core of a TPU whose cores are devices of
 * their own (v2, v3, v4, 7x), else a whole chip; a whole GPU. Peaks are of dense products. Figures
 * are from the vendors' pages, named in chips.c; only `usable` is what the compiler itself says.
 */
#ifndef TP_CHIPS_H
#define TP_CHIPS_H

#include "base/base.h"

/* Of a GPU, what its compiler asks for. */
typedef struct tp__gpu_parts {
  int major, minor;    /* compute capability */
  int multiprocessors; /* of the product */
  int lanes;           /* float32 units of one */
  int threads;         /* resident on one */
  int shared, shared_block;
  int64_t l2;
  double clock; /* GHz, boost */
} tp__gpu_parts;

typedef struct tp__chip {
  const char *name;  /* "v3", "h200": the beginning of a topology's name */
  const char *title; /* "TPU v3", "NVIDIA H200 SXM" */
  int devices;       /* of one chip */
  int axes;          /* of its topologies: 2 or 3; 0: a GPU */
  bool by_cores;     /* "v3-8" counts cores, "v5e-8" chips */
  uint64_t memory;   /* bytes of one device */
  uint64_t usable;   /* ... that a program may take */
  double bandwidth;  /* of its memory, bytes/s */
  double bf16, f32;  /* FLOP/s: products of bfloat16, and of float32 as the compiler does them */
  tp__gpu_parts gpu;
} tp__chip;

const tp__chip *tp__chips(size_t *count);
/* By the first `length` letters of name; NULL: there is none. */
const tp__chip *tp__chip_find(const char *name, size_t length);
static inline bool tp__chip_is_gpu(const tp__chip *chip)
{
  return chip->axes == 0;
}

#endif
