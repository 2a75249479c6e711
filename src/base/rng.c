/* rng - see rng.h */
#include "rng.h"

#include <math.h>
#include <stdbool.h>

void tp__philox(tp__key key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t out[4])
{
  uint32_t k0 = key.word[0], k1 = key.word[1];
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)0xD2511F53u * c0;
    uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

tp__key tp__key_of(uint64_t seed, uint32_t epoch, uint64_t example)
{
  uint32_t out[4];
  tp__key key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
  tp__philox(key, epoch, (uint32_t)example, (uint32_t)(example >> 32), 0x74657061u, out);
  return (tp__key){{out[0], out[1]}};
}

float tp__uniform(tp__key key, uint32_t draw, uint32_t index)
{
  uint32_t out[4];
  tp__philox(key, index / 4, draw, 0, 0, out);
  return tp__unit_float(out[index % 4]);
}

uint64_t tp__below(tp__key key, uint32_t draw, uint64_t index, uint64_t bound)
{
  uint32_t out[4];
  tp__philox(key, (uint32_t)index, draw, (uint32_t)(index >> 32), 1, out);
  uint64_t word = (uint64_t)out[0] << 32 | out[1];
  __extension__ typedef unsigned __int128 wide;
  return (uint64_t)(((wide)word * bound) >> 64);
}

/* u^(1/alpha) and v^(1/alpha) by their logarithms, which don't underflow: accepted where they add
 * up to 1 or less, the first one's share. */
static bool joehnk(double log_u, double log_v, double alpha, double *beta)
{
  double x = log_u / alpha, y = log_v / alpha, larger = x > y ? x : y;
  *beta = 1 / (1 + exp(y - x));
  return larger + log(exp(x - larger) + exp(y - larger)) <= 0;
}

static bool cheng(double u, double v, double alpha, double *beta)
{
  const double root = sqrt(1 / alpha), sum = 2 * alpha;
  double log_odds = root * (log(u) - log(1 - u)), w = alpha * exp(log_odds), z = u * u * v;
  double r = (alpha + 1 / root) * log_odds - log(4);
  *beta = w / (alpha + w);
  return r + sum * log(sum / (alpha + w)) >= log(z);
}

double tp__beta(tp__key key, uint32_t draw, double alpha)
{
  enum { TRIES = 1000 };              /* each fails half the time at most */
  const double half = 1.0 / 33554432; /* of the step between uniforms: neither 0 nor 1 */
  for (uint32_t i = 0; i < TRIES; i++) {
    double u = (double)tp__uniform(key, draw, 2 * i) + half;
    double v = (double)tp__uniform(key, draw, 2 * i + 1) + half, beta = 0;
    if (alpha > 1 ? cheng(u, v, alpha, &beta) : joehnk(log(u), log(v), alpha, &beta)) return beta;
  }
  return 0.5;
}
