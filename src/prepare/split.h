/* split - which photo goes to training, validation or test: seeded, and the same shares in every
 * class. */
#ifndef TP_SPLIT_H
#define TP_SPLIT_H

#include "base/base.h"

enum { TP__SPLIT_TRAIN, TP__SPLIT_VAL, TP__SPLIT_TEST, TP__SPLIT_COUNT };

/* "80,10,10", "80,20" or "100": per cent, 100 together. Error: TP_ERR_USAGE. */
tp_status tp__split_parse(const char *text, double share[TP__SPLIT_COUNT],
                          tp_error *err) TP_CHECKED;

/* How many of n photos of one class go where: rounded shares, but at least one to each part that
 * has a share, as far as there are three photos or more; then to training what is left. */
void tp__split_sizes(size_t n, const double share[TP__SPLIT_COUNT], size_t size[TP__SPLIT_COUNT]);

/* part[i] of the i-th of n photos, from its label (-1: none; those are a class of their own). A
 * function of its arguments. */
tp_status tp__split_make(const int32_t *label, size_t n, const double share[TP__SPLIT_COUNT],
                         uint64_t seed, uint8_t *part, tp_error *err) TP_CHECKED;

#endif
