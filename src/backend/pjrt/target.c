/* target - see target.h */
#include "target.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { AXES = 3, CHIPS_MAX = 16384, GPUS_MAX = 8 };

static tp_status unknown(const char *name, const char *why, tp_error *err)
{
  size_t n = 0;
  const tp__chip *chip = tp__chips(&n);
  char known[256] = "";
  for (size_t i = 0, at = 0; i < n && at < sizeof known; i++)
    at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i > 0 ? ", " : "", chip[i].name);
  return tp__fail(err, TP_ERR_USAGE,
                  "topology: \"%.60s\" %s; wanted as v3:2x2, v3-8 or v5p:2x2x1 for a TPU slice, as "
                  "h200 or a100:4 for GPUs; known: %s",
                  name, why, known);
}

/* A whole number of 1 to most at *text, which goes behind it; 0: there is none. */
static int read_count(const char **text, int most)
{
  char *end = NULL;
  if (**text < '0' || **text > '9') return 0;
  long n = strtol(*text, &end, 10);
  *text = end;
  return n >= 1 && n <= most ? (int)n : 0;
}

static void write_topology(tp__target *t, const int *side)
{
  int at = snprintf(t->topology, sizeof t->topology, "%s:%dx%d", t->chip->name, side[0], side[1]);
  if (t->chip->axes == AXES)
    snprintf(t->topology + at, sizeof t->topology - (size_t)at, "x%d", side[2]);
  t->devices = side[0] * side[1] * side[2] * t->chip->devices;
}

/* ":2x2x1" */
static bool read_sides(tp__target *t, const char *text)
{
  int side[AXES] = {1, 1, 1}, n = 0, chips = 1;
  do {
    text++;
    if (n == AXES || (side[n] = read_count(&text, CHIPS_MAX)) == 0) return false;
    if (side[n] > CHIPS_MAX / chips) return false;
    chips *= side[n++];
  } while (*text == 'x');
  if (*text != '\0' || n < 2 || n > t->chip->axes) return false; /* v4:2x2 is v4:2x2x1 */
  write_topology(t, side);
  return true;
}

/* "-8": slices are powers of two, as near to a square or cube as there is, the shorter sides first,
 * and the smallest of three axes is flat (2x2x1). */
static bool read_size(tp__target *t, const char *text)
{
  text++;
  int chips = read_count(&text, CHIPS_MAX), side[AXES] = {1, 1, 1}, doublings = 0;
  if (t->chip->by_cores) chips = chips % 2 == 0 ? chips / 2 : 0;
  if (*text != '\0' || chips < 1 || (chips & (chips - 1)) != 0) return false;
  while (1 << doublings < chips) doublings++;
  if (t->chip->axes == AXES && chips < 4) return false;
  int axes = chips == 4 ? 2 : t->chip->axes;
  for (int d = 0; d < doublings; d++) side[axes - 1 - d % axes] *= 2;
  write_topology(t, side);
  return true;
}

/* "" or ":8" */
static bool read_gpus(tp__target *t, const char *text)
{
  t->devices = 1;
  if (*text == ':') {
    text++;
    t->devices = read_count(&text, GPUS_MAX);
  }
  if (*text != '\0' || t->devices == 0) return false;
  snprintf(t->topology, sizeof t->topology, "1x1x%d", t->devices);
  return true;
}

tp_status tp__target_parse(const char *name, tp__target *target, tp_error *err)
{
  char lower[64];
  size_t size = strlen(name);
  *target = (tp__target){0};
  if (size == 0 || size >= sizeof lower) return unknown(name, "is no topology", err);
  for (size_t i = 0; i <= size; i++)
    lower[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] - 'A' + 'a' : name[i]);
  size_t length = strcspn(lower, ":-");
  const char *rest = lower + length;
  bool rented_e = strncmp(lower, "v5litepod-", 10) == 0; /* what v5e is rented as */
  target->chip = rented_e ? tp__chip_find("v5e", 3) : tp__chip_find(lower, length);
  if (target->chip == NULL) return unknown(name, "is of no known chip", err);
  bool good = tp__chip_is_gpu(target->chip) ? read_gpus(target, rest)
              : *rest == ':'                ? read_sides(target, rest)
              : *rest == '-'                ? read_size(target, rest)
                                            : false;
  if (good) return TP_OK;
  return unknown(name,
                 tp__chip_is_gpu(target->chip) ? "has no number of 1 to 8 GPUs"
                                               : "does not say which slice of chips",
                 err);
}

tp_status tp__target_gpu_config(const tp__chip *chip, tp__buffer *text, tp_error *err)
{
  const tp__gpu_parts *g = &chip->gpu;
  TP__TRY(tp__buffer_printf(text, err,
                            "platform_name: \"CUDA\"\n"
                            "device_description_str: \"%s\"\n"
                            "dnn_version_info { major: 9 minor: 10 }\n"
                            "gpu_device_info {\n"
                            "  cuda_compute_capability { major: %d minor: %d }\n"
                            "  core_count: %d\n"
                            "  fpus_per_core: %d\n"
                            "  clock_rate_ghz: %g\n"
                            "  device_memory_size: %llu\n"
                            "  memory_bandwidth: %.0f\n"
                            "  l2_cache_size: %lld\n",
                            chip->title, g->major, g->minor, g->multiprocessors, g->lanes, g->clock,
                            (unsigned long long)chip->memory, chip->bandwidth, (long long)g->l2));
  /* The same for all of these capabilities: warps, blocks, registers. */
  return tp__buffer_printf(text, err,
                           "  shared_memory_per_core: %d\n"
                           "  shared_memory_per_block_optin: %d\n"
                           "  shared_memory_per_block: 49152\n"
                           "  threads_per_core_limit: %d\n"
                           "  threads_per_block_limit: 1024\n"
                           "  threads_per_warp: 32\n"
                           "  registers_per_core_limit: 65536\n"
                           "  registers_per_block_limit: 65536\n"
                           "  block_dim_limit_x: 2147483647\n"
                           "  block_dim_limit_y: 65535\n"
                           "  block_dim_limit_z: 65535\n"
                           "}\n",
                           g->shared, g->shared_block, g->threads);
}
