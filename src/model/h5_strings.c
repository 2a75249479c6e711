/* h5_strings - see h5_strings.h */
#include "h5_strings.h"

#include <stdlib.h>
#include <string.h>

#include "weights_formats.h"

enum { STRING_MAX = 4096, PARTS_MAX = 1000 };

static tp_status unreadable(const char *name, tp_error *err)
{
  return tp__fail(err, TP_ERR_DATA, "attribute %s cannot be read", name);
}

static tp_status add(tp__h5_strings *into, tp__arena *arena, const char *text, size_t size,
                     tp_error *err)
{
  char *copy = tp__arena_alloc(arena, size + 1);
  if (copy == NULL) return tp__no_memory(err, size);
  memcpy(copy, text, size);
  into->item[into->count++] = copy;
  return TP_OK;
}

/* Room for `more` strings. */
static tp_status grow(tp__h5_strings *s, tp__arena *arena, size_t more, tp_error *err)
{
  if (more + s->count > 4 * (size_t)TP__WEIGHTS_MAX_ARRAYS)
    return tp__fail(err, TP_ERR_DATA, "a list of more than %d names", 4 * TP__WEIGHTS_MAX_ARRAYS);
  const char **item = tp__arena_alloc(arena, (s->count + more) * sizeof *item);
  if (item == NULL) return tp__no_memory(err, more * sizeof *item);
  if (s->count > 0) memcpy(item, s->item, s->count * sizeof *item);
  s->item = item;
  return TP_OK;
}

static tp_status read_variable(hid_t attribute, hid_t type, hid_t space, size_t n, const char *name,
                               tp__h5_strings *into, tp__arena *arena, tp_error *err)
{
  char **text = tp__arena_alloc(arena, n * sizeof *text);
  if (text == NULL) return tp__no_memory(err, n * sizeof *text);
  if (H5Aread(attribute, type, text) < 0) return unreadable(name, err);
  tp_status status = TP_OK;
  for (size_t i = 0; status == TP_OK && i < n; i++) {
    const char *s = text[i] == NULL ? "" : text[i];
    status = add(into, arena, s, strnlen(s, STRING_MAX), err);
  }
  (void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, text);
  return status;
}

static tp_status read_fixed(hid_t attribute, hid_t type, size_t n, const char *name,
                            tp__h5_strings *into, tp__arena *arena, tp_error *err)
{
  size_t size = H5Tget_size(type);
  if (size == 0 || size > STRING_MAX) return unreadable(name, err);
  char *text = tp__calloc(n, size, err);
  if (text == NULL) return TP_ERR_INTERNAL;
  tp_status status = H5Aread(attribute, type, text) < 0 ? unreadable(name, err) : TP_OK;
  bool spaces = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
  for (size_t i = 0; status == TP_OK && i < n; i++) {
    size_t used = strnlen(text + i * size, size);
    while (spaces && used > 0 && text[i * size + used - 1] == ' ') used--;
    status = add(into, arena, text + i * size, used, err);
  }
  free(text);
  return status;
}

/* Reads in the file's own string type, so nothing is converted. */
static tp_status read_open(hid_t attribute, hid_t type, hid_t space, const char *name,
                           tp__h5_strings *into, tp__arena *arena, tp_error *err)
{
  hssize_t n = H5Sget_simple_extent_npoints(space);
  if (n == 0) return TP_OK;
  if (n < 0 || n > 4 * TP__WEIGHTS_MAX_ARRAYS || H5Tget_class(type) != H5T_STRING)
    return unreadable(name, err);
  TP__TRY(grow(into, arena, (size_t)n, err));
  return H5Tis_variable_str(type) > 0
             ? read_variable(attribute, type, space, (size_t)n, name, into, arena, err)
             : read_fixed(attribute, type, (size_t)n, name, into, arena, err);
}

static tp_status read_one(hid_t object, const char *name, tp__h5_strings *into, tp__arena *arena,
                          tp_error *err)
{
  hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
  if (attribute < 0) return unreadable(name, err);
  hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
  tp_status status = type < 0 || space < 0
                         ? unreadable(name, err)
                         : read_open(attribute, type, space, name, into, arena, err);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  H5Aclose(attribute);
  return status;
}

bool tp__h5_has_strings(hid_t object, const char *name)
{
  char part[64];
  snprintf(part, sizeof part, "%s0", name);
  return H5Aexists(object, name) > 0 || H5Aexists(object, part) > 0;
}

tp_status tp__h5_read_strings(hid_t object, const char *name, tp__arena *arena,
                              tp__h5_strings *into, tp_error *err)
{
  *into = (tp__h5_strings){0};
  if (H5Aexists(object, name) > 0) return read_one(object, name, into, arena, err);
  for (int i = 0; i < PARTS_MAX; i++) {
    char part[64];
    snprintf(part, sizeof part, "%s%d", name, i);
    if (H5Aexists(object, part) <= 0)
      return i > 0 ? TP_OK : tp__fail(err, TP_ERR_DATA, "attribute %s is missing", name);
    TP__TRY(read_one(object, part, into, arena, err));
  }
  return tp__fail(err, TP_ERR_DATA, "attribute %s has too many parts", name);
}

/* ---- writing ---- */

static tp_status write_attribute(hid_t object, const char *name, hid_t type, hid_t space,
                                 const void *data, tp_error *err)
{
  hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  bool good = attribute >= 0 && (data == NULL || H5Awrite(attribute, type, data) >= 0);
  if (attribute >= 0) H5Aclose(attribute);
  return good ? TP_OK : tp__fail(err, TP_ERR_INTERNAL, "attribute %s could not be written", name);
}

static hid_t fixed_type(size_t size)
{
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, size);
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  return type;
}

tp_status tp__h5_write_string(hid_t object, const char *name, const char *text, tp_error *err)
{
  hid_t type = fixed_type(strlen(text)), space = H5Screate(H5S_SCALAR);
  tp_status status = write_attribute(object, name, type, space, text, err);
  H5Sclose(space);
  H5Tclose(type);
  return status;
}

static size_t longest(const char *const *item, size_t count)
{
  size_t most = 1;
  for (size_t i = 0; i < count; i++)
    if (strlen(item[i]) > most) most = strlen(item[i]);
  return most;
}

static tp_status write_part(hid_t object, const char *name, const char *const *item, size_t count,
                            size_t size, tp_error *err)
{
  char *text = tp__calloc(count, size, err);
  if (text == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < count; i++) memcpy(text + i * size, item[i], strlen(item[i]));
  hsize_t n = count;
  hid_t type = count == 0 ? H5Tcopy(H5T_NATIVE_DOUBLE) : fixed_type(size);
  hid_t space = H5Screate_simple(1, &n, NULL);
  tp_status status = write_attribute(object, name, type, space, count == 0 ? NULL : text, err);
  H5Sclose(space);
  H5Tclose(type);
  free(text);
  return status;
}

tp_status tp__h5_write_strings(hid_t object, const char *name, const char *const *item,
                               size_t count, tp_error *err)
{
  size_t size = longest(item, count), parts = 1;
  if (size > TP__WEIGHTS_MAX_NAME + 16)
    return tp__fail(err, TP_ERR_INTERNAL, "attribute %s: a name of %zu bytes", name, size);
  if (count * size <= TP__H5_ATTRIBUTE_MAX) return write_part(object, name, item, count, size, err);
  while ((count + parts - 1) / parts * size > TP__H5_ATTRIBUTE_MAX) parts++;
  for (size_t i = 0, at = 0; i < parts; i++) {
    size_t n = count / parts + (i < count % parts);
    char part[64];
    snprintf(part, sizeof part, "%s%zu", name, i);
    TP__TRY(write_part(object, part, item + at, n, size, err));
    at += n;
  }
  return TP_OK;
}
