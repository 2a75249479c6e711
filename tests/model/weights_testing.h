/* weights_testing - what the tests of weight files share: a folder of their own, comparison of
 * sets, reading bytes. */
#ifndef TP_WEIGHTS_TESTING_H
#define TP_WEIGHTS_TESTING_H

#include "testing.h"

#include "model/weights.h"

static char test_folder[] = "/tmp/tepal-weights-XXXXXX";

static inline int make_test_folder(void **state)
{
  (void)state;
  return mkdtemp(test_folder) == NULL;
}

static inline int remove_test_folder(void **state)
{
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", test_folder);
  return system(command);
}

/* A path in the folder; one at a time of eight. */
static inline const char *in_test_folder(const char *name)
{
  static char path[8][256];
  static int next;
  next = (next + 1) % 8;
  snprintf(path[next], sizeof path[next], "%s/%s", test_folder, name);
  return path[next];
}

static inline const char *put_file(const char *name, const void *data, size_t size)
{
  tp_error err;
  const char *path = in_test_folder(name);
  assert_ok(tp__file_write(path, data, size, &err));
  return path;
}

/* Same names (in any order), types, shapes and bytes; tensors of layer `except` (may be NULL) need
 * only be there. */
static inline void assert_same_tensors(const tp__tensors *a, const tp__tensors *b,
                                       const char *except)
{
  assert_int_equal(a->count, b->count);
  for (size_t i = 0; i < a->count; i++) {
    const tp__tensor *x = &a->item[i], *y = tp__tensors_find(b, x->name);
    if (y == NULL) fail_msg("%s is missing", x->name);
    size_t n = except == NULL ? 0 : strlen(except);
    if (x->dtype != y->dtype || !tp__shape_equal(&x->shape, &y->shape))
      fail_msg("%s differs in type or shape", x->name);
    if (n > 0 && strncmp(x->name, except, n) == 0 && x->name[n] == '/') continue;
    if (memcmp(x->data, y->data, tp__tensor_bytes(x)) != 0) fail_msg("%s differs", x->name);
  }
}

/* Adds a tensor of `elements` F32 numbers start, start+1, ... with that shape. */
static inline tp__tensor *add_counting(tp__tensors *set, const char *name, int rank,
                                       const int64_t *dim, float start)
{
  tp_error err;
  tp__tensor *t = NULL;
  tp__shape shape = tp__shape_make(rank, dim);
  assert_ok(tp__tensors_add(set, name, TP__F32, &shape, &t, &err));
  for (size_t i = 0; i < tp__shape_elements(&shape, 0); i++)
    ((float *)t->data)[i] = start + (float)i;
  return t;
}

/* Reading must fail as data with that text, and leave nothing. */
static inline void assert_refused(const char *path, const char *text)
{
  tp_error err = {0};
  tp__tensors set = {0};
  assert_fails(tp__weights_read(path, &set, NULL, NULL, &err), TP_ERR_DATA, text);
  assert_int_equal(set.count, 0);
  assert_null(set.item);
  if (strstr(err.text, path) == NULL) fail_msg("no path in \"%s\"", err.text);
}

#endif
