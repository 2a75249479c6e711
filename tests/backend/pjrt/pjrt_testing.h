/* pjrt_testing - plugins for the tests: those of a Python environment (TEPAL_TEST_PJRT, else
 * .venv-pjrt beside the sources), which `make test-pjrt` makes.
 *
 * Without one a test prints "skipped: ..." and calls skip(); where TEPAL_TEST_PJRT is set, as in
 * `make test`, a missing plugin is a failure. */
#ifndef TP_PJRT_TESTING_H
#define TP_PJRT_TESTING_H

#include <glob.h>

#include "testing.h"

/* Paths inside site-packages. The three on CPUs speak PJRT 0.81, 0.106 and 0.115. */
#define PJRT_CPU_81  "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"
#define PJRT_CPU_106 "fastatomstruct_xla_cpu/libpjrt_cpu.so"
#define PJRT_CPU_115 "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"
#define PJRT_TPU     "libtpu/libtpu.so"
#define PJRT_CUDA    "jax_plugins/xla_cuda13/xla_cuda_plugin.so"

/* The plugin's path, or NULL. */
static inline const char *plugin_file(const char *name)
{
  static char path[4096];
  const char *set = getenv("TEPAL_TEST_PJRT");
  char pattern[4096];
  snprintf(pattern, sizeof pattern, "%s/lib/python3*/site-packages/%s",
           set != NULL ? set : TP_SOURCE_ROOT "/.venv-pjrt", name);
  glob_t found;
  bool there = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;
  if (there) snprintf(path, sizeof path, "%s", found.gl_pathv[0]);
  globfree(&found);
  if (!there && set != NULL) fail_msg("TEPAL_TEST_PJRT is set, but there is no %s", pattern);
  return there ? path : NULL;
}

#define need_plugin(path, name)                                                                    \
  do {                                                                                             \
    if (((path) = plugin_file(name)) == NULL) {                                                    \
      print_message("skipped: no PJRT plugin %s (make test-pjrt gets it)\n", (name));              \
      skip();                                                                                      \
    }                                                                                              \
  } while (0)

#endif
