/* chips - the table; see chips.h
 *
 * TPUs: cloud.google.com/tpu/docs/v2, v3, v4, v5e, v5p, v6e, tpu7x ("key chip specifications": peak
 * compute, memory, bandwidth of a chip; here divided among its devices). usable: what libtpu 0.0.52
 * calls the available memory when a program does not fit. Products of float32 are single passes of
 * bfloat16 there, as in Keras.
 *
 * GPUs: NVIDIA's data sheets of H200, H100 (SXM5), A100 80 GB (SXM4), L4 and T4 (dense peaks; TF32
 * for float32, which XLA uses where the GPU has it; T4 has neither bfloat16 nor TF32 units: its
 * half-precision peak and its float32 peak), and the table of technical specifications by compute
 * capability in NVIDIA's CUDA C++ programming guide. usable: XLA's allocator takes three quarters
 * of a GPU's memory.
 */
#include "chips.h"

#include <string.h>

#define GIB(n) ((uint64_t)((n) * (double)(1 << 30)))
#define GB(n)  ((uint64_t)(n)*1000000000u)
#define T      1e12
#define KIB    1024
#define MIB    (1024 * 1024)

/* clang-format off */
static const tp__chip table[] = {
  {"v2", "TPU v2", 2, 2, true, GIB(8), GIB(7.48), 0.35 * T, 23 * T, 23 * T, {0}},
  {"v3", "TPU v3", 2, 2, true, GIB(16), GIB(15.48), 0.45 * T, 61.5 * T, 61.5 * T, {0}},
  {"v4", "TPU v4", 2, 3, true, GIB(16), GIB(15.25), 0.6 * T, 137.5 * T, 137.5 * T, {0}},
  {"v5e", "TPU v5e", 1, 2, false, GIB(16), GIB(15.75), 0.819 * T, 197 * T, 197 * T, {0}},
  {"v5p", "TPU v5p", 1, 3, true, GIB(96), GIB(95.73), 2.765 * T, 459 * T, 459 * T, {0}},
  {"v6e", "TPU v6e", 1, 2, false, GIB(32), GIB(31.24), 1.6 * T, 918 * T, 918 * T, {0}},
  {"tpu7x", "TPU7x", 2, 3, true, GIB(96), GIB(94.74), 3.69 * T, 1153.5 * T, 1153.5 * T, {0}},
  {"h200", "NVIDIA H200", 1, 0, false, GB(141), GB(141) / 4 * 3, 4.8 * T, 989 * T, 494 * T,
   {9, 0, 132, 128, 2048, 228 * KIB, 227 * KIB, 50 * MIB, 1.98}},
  {"h100", "NVIDIA H100", 1, 0, false, GB(80), GB(80) / 4 * 3, 3.35 * T, 989 * T, 494 * T,
   {9, 0, 132, 128, 2048, 228 * KIB, 227 * KIB, 50 * MIB, 1.98}},
  {"a100", "NVIDIA A100 80 GB", 1, 0, false, GB(80), GB(80) / 4 * 3, 2.039 * T, 312 * T, 156 * T,
   {8, 0, 108, 64, 2048, 164 * KIB, 163 * KIB, 40 * MIB, 1.41}},
  {"l4", "NVIDIA L4", 1, 0, false, GB(24), GB(24) / 4 * 3, 0.3 * T, 121 * T, 60 * T,
   {8, 9, 58, 128, 1536, 100 * KIB, 99 * KIB, 48 * MIB, 2.04}},
  {"t4", "NVIDIA T4", 1, 0, false, GB(16), GB(16) / 4 * 3, 0.32 * T, 65 * T, 8.1 * T,
   {7, 5, 40, 64, 1024, 64 * KIB, 64 * KIB, 4 * MIB, 1.59}},
};
/* clang-format on */

const tp__chip *tp__chips(size_t *count)
{
  *count = sizeof table / sizeof *table;
  return table;
}

const tp__chip *tp__chip_find(const char *name, size_t length)
{
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strlen(table[i].name) == length && strncmp(table[i].name, name, length) == 0)
      return &table[i];
  return NULL;
}
