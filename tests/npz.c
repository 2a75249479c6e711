/* npz - see npz.h */
#include "npz.h"

#include <zip.h>

#include "testing.h"

typedef struct npz_array {
  struct npz_array *next;
  char *name;
  npz_shape shape;
  npz_type type;
  const uint8_t *values;
} npz_array;

struct npz {
  char *path;
  zip_t *zip;
  tp__arena arena;
  npz_array *first;
};

npz *npz_open(const char *path)
{
  int code = 0;
  zip_t *zip = zip_open(path, ZIP_RDONLY, &code);
  if (zip == NULL) fail_msg("%s: cannot be opened as zip (libzip error %d)", path, code);
  npz *z = calloc(1, sizeof *z);
  assert_non_null(z);
  z->path = tp__format("%s", path);
  z->zip = zip;
  return z;
}

void npz_close(npz *z)
{
  if (z == NULL) return;
  zip_discard(z->zip);
  tp__arena_free(&z->arena);
  free(z->path);
  free(z);
}

bool npz_has(npz *z, const char *name)
{
  char *entry = tp__format("%s.npy", name);
  bool has = zip_name_locate(z->zip, entry, 0) >= 0;
  free(entry);
  return has;
}

/* The whole member "name.npy", decompressed; its checksum is tested by libzip. */
static const uint8_t *read_member(npz *z, const char *name, size_t *size)
{
  char *entry = tp__arena_format(&z->arena, "%s.npy", name);
  zip_stat_t stat;
  if (zip_stat(z->zip, entry, 0, &stat) != 0) fail_msg("%s: no array \"%s\"", z->path, name);
  assert_true(stat.size < (zip_uint64_t)1 << 33);
  uint8_t *bytes = tp__arena_alloc(&z->arena, (size_t)stat.size + 16);
  zip_file_t *file = zip_fopen(z->zip, entry, 0);
  assert_non_null(bytes);
  assert_non_null(file);
  zip_int64_t got = zip_fread(file, bytes, stat.size);
  zip_fclose(file);
  if (got != (zip_int64_t)stat.size) fail_msg("%s: \"%s\" is damaged", z->path, name);
  *size = (size_t)stat.size;
  return bytes;
}

/* The text behind 'key': in the header's dictionary. */
static const char *find_key(const char *header, const char *key)
{
  const char *at = strstr(header, key);
  if (at == NULL) fail_msg("npy header without %s: %s", key, header);
  at += strlen(key);
  return at + strspn(at, ": ");
}

/* Returns true for numpy's <U, 4 bytes a character, which the caller turns into |S. */
static bool parse_type(const char *at, npz_array *a)
{
  static const struct {
    char text[8];
    npz_type type;
    size_t bytes;
  } known[] = {{"'<f4'", NPZ_F4, 4}, {"'<f8'", NPZ_F8, 8}, {"'<i4'", NPZ_I4, 4},
               {"'<i8'", NPZ_I8, 8}, {"'|u1'", NPZ_U1, 1}, {"'|b1'", NPZ_BOOL, 1}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strncmp(at, known[i].text, 5) == 0) {
      a->type = known[i].type;
      a->shape.item_bytes = known[i].bytes;
      return false;
    }
  bool wide = strncmp(at, "'<U", 3) == 0;
  if (!wide && strncmp(at, "'|S", 3) != 0) fail_msg("npy type not known: %.12s", at);
  a->type = NPZ_STRING;
  a->shape.item_bytes = strtoul(at + 3, NULL, 10) * (wide ? 4 : 1);
  return wide;
}

static void parse_shape(const char *at, npz_shape *shape)
{
  assert_int_equal(*at, '(');
  at++;
  shape->count = 1;
  while (*at >= '0' && *at <= '9') {
    char *end = NULL;
    assert_true(shape->dims < NPZ_MAX_DIMS);
    shape->size[shape->dims] = strtoul(at, &end, 10);
    assert_true(tp__mul_size(shape->count, shape->size[shape->dims++], &shape->count));
    at = end + strspn(end, ", ");
  }
  assert_int_equal(*at, ')');
}

/* 4-byte characters to bytes (the names in our files are ASCII). */
static void narrow(npz *z, npz_array *a)
{
  size_t letters = a->shape.item_bytes / 4, total = a->shape.count * letters;
  uint8_t *text = tp__arena_alloc(&z->arena, total + 1);
  assert_non_null(text);
  for (size_t i = 0; i < total; i++) text[i] = a->values[4 * i];
  a->values = text;
  a->shape.item_bytes = letters;
}

static npz_array *read_array(npz *z, const char *name)
{
  size_t size = 0, need = 0;
  const uint8_t *bytes = read_member(z, name, &size);
  assert_true(size >= 12 && memcmp(bytes, "\x93NUMPY", 6) == 0);
  size_t start = bytes[6] == 1 ? 10 : 12;
  size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
  if (bytes[6] != 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
  assert_true(length <= size - start);
  char *header = tp__arena_alloc(&z->arena, length + 1);
  npz_array *a = tp__arena_alloc(&z->arena, sizeof *a);
  assert_true(header != NULL && a != NULL);
  memcpy(header, bytes + start, length);
  if (strncmp(find_key(header, "'fortran_order'"), "False", 5) != 0)
    fail_msg("%s: \"%s\" is in Fortran order", z->path, name);
  bool wide = parse_type(find_key(header, "'descr'"), a);
  parse_shape(find_key(header, "'shape'"), &a->shape);
  assert_true(tp__mul_size(a->shape.count, a->shape.item_bytes, &need));
  if (need != size - start - length) fail_msg("%s: \"%s\" has the wrong size", z->path, name);
  uint8_t *values = tp__arena_alloc(&z->arena, need + 16);
  assert_non_null(values);
  memcpy(values, bytes + start + length, need);
  a->values = values;
  if (wide) narrow(z, a);
  a->name = tp__arena_strdup(&z->arena, name);
  a->next = z->first;
  z->first = a;
  return a;
}

static const npz_array *find_array(npz *z, const char *name)
{
  for (const npz_array *a = z->first; a != NULL; a = a->next)
    if (strcmp(a->name, name) == 0) return a;
  return read_array(z, name);
}

const void *npz_get(npz *z, const char *name, npz_shape *shape, npz_type *type)
{
  const npz_array *a = find_array(z, name);
  if (shape != NULL) *shape = a->shape;
  if (type != NULL) *type = a->type;
  return a->values;
}

static const void *get_typed(npz *z, const char *name, npz_shape *shape, npz_type wanted)
{
  npz_type type = wanted;
  const void *values = npz_get(z, name, shape, &type);
  if (type != wanted && !(type == NPZ_BOOL && wanted == NPZ_U1))
    fail_msg("%s: \"%s\" has type %d, wanted %d", z->path, name, (int)type, (int)wanted);
  return values;
}

const float *npz_f4(npz *z, const char *name, npz_shape *shape)
{
  return get_typed(z, name, shape, NPZ_F4);
}

const double *npz_f8(npz *z, const char *name, npz_shape *shape)
{
  return get_typed(z, name, shape, NPZ_F8);
}

const int32_t *npz_i4(npz *z, const char *name, npz_shape *shape)
{
  return get_typed(z, name, shape, NPZ_I4);
}

const int64_t *npz_i8(npz *z, const char *name, npz_shape *shape)
{
  return get_typed(z, name, shape, NPZ_I8);
}

const uint8_t *npz_u1(npz *z, const char *name, npz_shape *shape)
{
  return get_typed(z, name, shape, NPZ_U1);
}

const char *npz_string(npz *z, const char *name, size_t index)
{
  npz_shape shape;
  const char *values = get_typed(z, name, &shape, NPZ_STRING);
  assert_true(index < shape.count);
  char *text = tp__arena_alloc(&z->arena, shape.item_bytes + 1);
  assert_non_null(text);
  memcpy(text, values + index * shape.item_bytes, shape.item_bytes);
  return text;
}

const char *golden_file(const char *name)
{
  static char path[2048];
  const char *set = getenv("TEPAL_GOLDEN"), *shared = shared_folder();
  if (set != NULL)
    snprintf(path, sizeof path, "%s/%s", set, name);
  else if (shared != NULL)
    snprintf(path, sizeof path, "%s/golden/%s", shared, name);
  else
    return NULL;
  return tp__is_file(path) ? path : NULL;
}
