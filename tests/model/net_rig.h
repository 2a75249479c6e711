/* net_rig - a network with its weights on a CPU, and comparison of what it gives with expected
 * arrays; for tests.
 *
 * Whatever fails, fails the running test.
 */
#ifndef TP_TEST_NET_RIG_H
#define TP_TEST_NET_RIG_H

#include "backend/backend.h"
#include "model/net.h"
#include "testing.h"

typedef struct rig {
  tp__pool *pool;
  tp__backend *cpu;
  tp__state *state;
  tp__net *net;
  tp__tensors weights;
} rig;

/* The network for inference, with fresh weights that are still to be replaced. */
rig rig_new(const tp__model_spec *spec);
/* Matches a set of tensors into the weights; every one must be there. */
void rig_match(rig *r, const tp__tensors *file, const char *what);
/* The weights are complete: they go to the device. */
void rig_start(rig *r);
void rig_free(rig *r);

void rig_output(rig *r, const char *name, tp__value value);

/* Runs n pictures; mine[i] receives output i of the graph (free each), size[i] its numbers for one
 * example. */
void rig_run(rig *r, bool reference, const float *pixels, int64_t n, float **mine, size_t *size);

/* Worst of several comparisons, as a share of what is allowed. */
typedef struct worst {
  double share;
  char what[128];
  size_t compared;
} worst;

double largest(const float *x, size_t n); /* absolute value */
void compare(worst *w, const char *what, const float *mine, const float *wanted, size_t n,
             double allowed);
/* Prints the worst; fails unless that many comparisons were made. */
void report(const worst *w, size_t expected);

#endif
