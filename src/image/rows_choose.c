/* rows_choose - which of the compiled sets this processor can run */
#include "rows.h"

extern const tp__image_kernels tp__image_kernels_baseline;
#ifdef TP__IMAGE_X86
extern const tp__image_kernels tp__image_kernels_avx2, tp__image_kernels_avx512;
#endif

const tp__image_kernels *tp__image_kernels_at(int level)
{
  if (level == 0) return &tp__image_kernels_baseline;
#ifdef TP__IMAGE_X86
  if (level == 1 && __builtin_cpu_supports("avx2")) return &tp__image_kernels_avx2;
  if (level == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return &tp__image_kernels_avx512;
#endif
  return NULL;
}

const tp__image_kernels *tp__image_kernels_best(void)
{
  const tp__image_kernels *best = NULL, *next = NULL;
  for (int level = 0; (next = tp__image_kernels_at(level)) != NULL; level++) best = next;
  return best;
}
