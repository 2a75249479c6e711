/* Which table of kernels this processor gets. Compiled once, for the baseline. */
#include "backend/cpu/kernels.h"

#include <string.h>

#if defined(__x86_64__)
#define TP__X86 1
#else
#define TP__X86 0
#endif

extern const tp__kernels tp__kernels_baseline;
#if TP__X86
extern const tp__kernels tp__kernels_avx2, tp__kernels_avx512;
#ifdef TP__HAS_BF16
extern const tp__kernels tp__kernels_avx512bf16;
#endif

static bool has_avx2(void)
{
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
static bool has_avx512(void)
{
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
#endif
static bool always(void)
{
  return true;
}

/* From the best to the least. */
static const struct {
  const char *name, *needs;
  const tp__kernels *table; /* NULL: not built for this architecture */
  bool (*runs)(void);
} levels[] = {
#if TP__X86
    {"avx512", "AVX-512F, BW, VL and DQ", &tp__kernels_avx512, has_avx512},
    {"avx2", "AVX2 and FMA", &tp__kernels_avx2, has_avx2},
#else
    {"avx512", "an x86-64 processor", NULL, always},
    {"avx2", "an x86-64 processor", NULL, always},
#endif
    {"baseline", "nothing", &tp__kernels_baseline, always},
};
enum { LEVELS = sizeof levels / sizeof levels[0] };

static bool usable(size_t level)
{
  return levels[level].table != NULL && levels[level].runs();
}

tp_status tp__kernels_choose(const char *cap, const tp__kernels **kernels, tp_error *err)
{
  size_t level = 0;
  if (cap != NULL) {
    while (level < LEVELS && strcmp(levels[level].name, cap) != 0) level++;
    if (level == LEVELS)
      return tp__fail(
          err, TP_ERR_DEVICE,
          "no CPU kernels are called \"%s\": choose baseline, avx2 or avx512, or leave the "
          "choice to tepal",
          cap);
    if (!usable(level))
      return tp__fail(err, TP_ERR_DEVICE,
                      "the CPU kernels \"%s\" need %s, which this machine does not have: choose a "
                      "lower level (baseline always runs), or leave the choice to tepal",
                      cap, levels[level].needs);
  }
  while (!usable(level)) level++;
  *kernels = levels[level].table;
  return TP_OK;
}

const tp__kernels *tp__kernels_bf16(const tp__kernels *kernels)
{
#if TP__X86 && defined(TP__HAS_BF16)
  if (kernels == &tp__kernels_avx512 && __builtin_cpu_supports("avx512bf16"))
    return &tp__kernels_avx512bf16;
#endif
  (void)kernels;
  return NULL;
}
