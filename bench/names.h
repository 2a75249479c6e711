/* names - what a measurement's name says: KIND_NETWORK_SIZE, or KIND_NETWORK_SIZE_bf16.
 *
 *   infer_b0_192  finetune_b0_192_bf16  full_train_resnet50_192  infer_densenet121_224
 *
 * NETWORK is a name of the models table, or b0 to b7 and lite0 for the EfficientNets. Shared by
 * bench_step, bench_profile and bench_end_to_end; the peers (peers/names.py) read the same names.
 */
#ifndef BENCH_NAMES_H
#define BENCH_NAMES_H

#include <stdbool.h>
#include <stdio.h>

enum { BENCH_CLASSES = 104 };

typedef enum bench_kind {
  BENCH_INFER,
  BENCH_FROZEN, /* one step of the head from pixels, without the input */
  BENCH_FINETUNE,
  BENCH_FULL_FROZEN_BN,
  BENCH_FULL,
  BENCH_KINDS
} bench_kind;

typedef struct bench_name {
  bench_kind kind;
  char model[64];
  int size;
  bool bf16; /* products of bfloat16 */
} bench_name;

/* False: no such kind, or no size at the end; the model's name is not looked up. */
bool bench_parse(const char *text, bench_name *name);
/* "infer, frozen_step, ..." for messages. */
void bench_list_kinds(FILE *to);
/* Multiply-adds x 2 of the network's forward pass for one image; 0: no such network. */
double bench_forward_flops(const char *model, int size);
/* How often they count: once, or three times when all layers train. */
int bench_passes(bench_kind kind);

#endif
