/* testing - what every test file includes first: cmocka with its prerequisites, and the folder of
 * shared data. */
#ifndef TP_TESTING_H
#define TP_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

/* Fails with the error's text. */
#define assert_ok(call)                                                                            \
  do {                                                                                             \
    tp_status assert_ok_ = (call);                                                                 \
    if (assert_ok_ != TP_OK) fail_msg("%s: status %d: %s", #call, (int)assert_ok_, err.text);      \
  } while (0)

/* Fails unless the call fails with that status and every given part is in the error's text. */
#define assert_fails(call, wanted, part)                                                           \
  do {                                                                                             \
    tp_status assert_fails_ = (call);                                                              \
    if (assert_fails_ != (wanted) || strstr(err.text, (part)) == NULL)                             \
      fail_msg("%s: status %d (wanted %d), text \"%s\" (wanted \"%s\" in it)", #call,              \
               (int)assert_fails_, (int)(wanted), err.text, (part));                               \
  } while (0)

/* The folder of shared data (TEPAL_SHARED, else ../shared beside the source tree; the build passes
 * TP_SOURCE_ROOT), or NULL when it is not there: then the test prints "skipped: no ../shared" and
 * calls skip(). */
static inline const char *shared_folder(void)
{
  static char path[1024];
  const char *set = getenv("TEPAL_SHARED");
  snprintf(path, sizeof path, "%s", set != NULL ? set : TP_SOURCE_ROOT "/../shared");
  return tp__is_folder(path) ? path : NULL;
}

#define need_shared()                                                                              \
  do {                                                                                             \
    if (shared_folder() == NULL) {                                                                 \
      print_message("skipped: no ../shared\n");                                                    \
      skip();                                                                                      \
    }                                                                                              \
  } while (0)

#endif
