/* How many multiply-adds a second this thread makes when nothing waits: what the speed of products
 * is measured against. */
#include "backend/cpu/words.h"

#include "base/base.h"

double TP__FN(peak)(double seconds)
{
  enum { CHAINS = 12, ROUNDS = 20000 };
  volatile float small = 0.001f, sink;
  tp__vec chain[CHAINS];
  TP__EACH(i, CHAINS) chain[i] = tp__all((float)i);
  const double start = tp__thread_cpu();
  double now, flops = 0;
  do {
    const float word = small;
    const tp__vec a = tp__all_words(&word), b = a;
    for (int round = 0; round < ROUNDS; round++) {
      TP__EACH(i, CHAINS) chain[i] = tp__multiply(a, b, chain[i]);
    }
    flops += 2.0 * ROUNDS * CHAINS * TP__V * TP__IN_WORD;
    now = tp__thread_cpu();
  } while (now - start < seconds);
  tp__vec sum = tp__zero();
  TP__EACH(i, CHAINS) sum += chain[i];
  sink = sum[0]; /* a use, so that the loop stays */
  (void)sink;
  return flops / (now - start) * 1e-9;
}
