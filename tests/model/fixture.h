/* fixture - reads a gzip-compressed text of tests/fixtures; fails the running test when it can't.
 */
#ifndef TP_TEST_FIXTURE_H
#define TP_TEST_FIXTURE_H

#include <zlib.h>

#include "testing.h"

/* Returns: caller frees. */
static inline char *read_fixture(const char *name)
{
  enum { MOST = 1 << 20 };
  char path[1024];
  snprintf(path, sizeof path, "%s/tests/fixtures/%s", TP_SOURCE_ROOT, name);
  gzFile file = gzopen(path, "rb");
  if (file == NULL) fail_msg("%s cannot be opened", path);
  char *text = calloc(MOST, 1);
  assert_non_null(text);
  int n = gzread(file, text, MOST - 1);
  gzclose(file);
  if (n <= 0) fail_msg("%s cannot be read", path);
  return text;
}

#endif
