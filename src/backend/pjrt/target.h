/* target - the machine that a plan is for, from the name that a person gives it.
 *
 *   "v3:2x2", "v5p:2x2x1"    a TPU slice: chips along each axis, as its compiler takes it
 *   "v3-8", "v5e-8"          the same by the name it is rented under (v2 to v4, v5p, 7x: cores;
 *                            v5e, v6e: chips)
 *   "h200", "a100:8"         so many GPUs of one machine
 */
#ifndef TP_TARGET_H
#define TP_TARGET_H

#include "chips.h"

typedef struct tp__target {
  const tp__chip *chip;
  char topology[64]; /* for the compiler: "v3:2x2"; GPUs: "1x1x8" */
  int devices;       /* of all chips: replicas */
} tp__target;

/* Error: TP_ERR_USAGE with the names that are known. */
tp_status tp__target_parse(const char *name, tp__target *target, tp_error *err) TP_CHECKED;

/* What the compiler for GPUs must know of one: a GpuTargetConfigProto as text. */
tp_status tp__target_gpu_config(const tp__chip *chip, tp__buffer *text, tp_error *err) TP_CHECKED;

#endif
