/* npz - reads numpy's .npz archives in tests: a zip of .npy files, stored or deflated.
 *
 * Made for tests: whatever is wrong (no such file, no such array, another type than asked for)
 * fails the running test with a message, so callers check nothing. Arrays are read when first asked
 * for and stay until npz_close.
 *
 *     npz *z = npz_open(path);
 *     npz_shape shape;
 *     const float *rows = npz_f4(z, "features", &shape);   // shape.size[0] x shape.size[1],
 * row-major
 *     ...
 *     npz_close(z);
 *
 * Format: NEP 1 of numpy (magic, version, header length, a Python dictionary as text, then the
 * values), little-endian, C order. Types: float32, float64, int32, int64, uint8, bool, |S
 * (zero-padded strings), <U (turned into |S).
 */
#ifndef TP_TEST_NPZ_H
#define TP_TEST_NPZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct npz npz;

typedef enum npz_type { NPZ_F4, NPZ_F8, NPZ_I4, NPZ_I8, NPZ_U1, NPZ_BOOL, NPZ_STRING } npz_type;

enum { NPZ_MAX_DIMS = 8 };

typedef struct npz_shape {
  int dims; /* 0 for a scalar */
  size_t size[NPZ_MAX_DIMS];
  size_t count;      /* product of the sizes; 1 for a scalar */
  size_t item_bytes; /* of one value; of one string for NPZ_STRING */
} npz_shape;

npz *npz_open(const char *path);
void npz_close(npz *z); /* takes NULL */

bool npz_has(npz *z, const char *name);

/* The array's values (z keeps them, 16-byte aligned). shape and type may be NULL. */
const void *npz_get(npz *z, const char *name, npz_shape *shape, npz_type *type);

/* The same, failing unless the array has that type. bool and uint8 are both read by npz_u1. */
const float *npz_f4(npz *z, const char *name, npz_shape *shape);
const double *npz_f8(npz *z, const char *name, npz_shape *shape);
const int32_t *npz_i4(npz *z, const char *name, npz_shape *shape);
const int64_t *npz_i8(npz *z, const char *name, npz_shape *shape);
const uint8_t *npz_u1(npz *z, const char *name, npz_shape *shape);

/* The index-th string of an |S array, as a terminated string that z keeps. */
const char *npz_string(npz *z, const char *name, size_t index);

/* The path of a file of the golden numbers: folder TEPAL_GOLDEN, else golden in the folder of
 * shared data. NULL if the file is not there. Static memory, valid until the next call. */
const char *golden_file(const char *name);

#endif
