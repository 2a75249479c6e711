/* data_testing - a scratch folder, files of hex or text, and shards made record by record, for the
 * tests of data. */
#ifndef TP_DATA_TESTING_H
#define TP_DATA_TESTING_H

#include "../testing.h"

#include <dirent.h>
#include <unistd.h>

#include "data/catalog.h"
#include "data/example.h"
#include "data/tfrecord.h"

/* Everything one test needs; made by box_open, freed with all its files by box_close. */
typedef struct box {
  char folder[64];
  tp__arena arena;
  tp__pool *pool;
  tp_error err;
} box;

static inline int box_open(void **state)
{
  box *b = calloc(1, sizeof *b);
  tp_error err;
  strcpy(b->folder, "/tmp/tepal-data-XXXXXX");
  if (mkdtemp(b->folder) == NULL || tp__pool_new(3, &b->pool, &err) != TP_OK) return -1;
  *state = b;
  return 0;
}

static inline void remove_all(const char *folder)
{
  DIR *d = opendir(folder);
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    char *path = tp__format("%s/%s", folder, e->d_name);
    if (unlink(path) != 0) remove_all(path);
    free(path);
  }
  if (d != NULL) closedir(d);
  rmdir(folder);
}

static inline int box_close(void **state)
{
  box *b = *state;
  remove_all(b->folder);
  tp__pool_free(b->pool);
  tp__arena_free(&b->arena);
  free(b);
  return 0;
}

/* A path in the box; its folders are made. Lives as long as the box. */
static inline const char *box_path(box *b, const char *name)
{
  tp_error err;
  char *path = tp__arena_format(&b->arena, "%s/%s", b->folder, name);
  char *slash = strrchr(path, '/');
  *slash = '\0';
  assert_ok(tp__make_folder(path, &err));
  *slash = '/';
  return path;
}

static inline const char *box_file(box *b, const char *name, const void *data, size_t size)
{
  tp_error err;
  const char *path = box_path(b, name);
  assert_ok(tp__file_write(path, data, size, &err));
  return path;
}

static inline const char *box_text(box *b, const char *name, const char *text)
{
  return box_file(b, name, text, strlen(text));
}

/* Bytes of a hex text. */
static inline size_t from_hex(const char *hex, uint8_t *out)
{
  size_t n = strlen(hex) / 2;
  for (size_t i = 0; i < n; i++) {
    unsigned value = 0;
    assert_int_equal(sscanf(hex + 2 * i, "%2x", &value), 1);
    out[i] = (uint8_t)value;
  }
  return n;
}

/* A record's framing around a payload, added to bytes. */
static inline void frame(tp__buffer *bytes, const void *payload, size_t size)
{
  tp_error err;
  char *data = NULL;
  size_t length = 0;
  tp__writer w = {.file = open_memstream(&data, &length)};
  assert_ok(tp__record_write(&w, payload, size, &err));
  fclose(w.file);
  assert_ok(tp__buffer_add(bytes, data, length, &err));
  free(data);
}

/* A record of an example with image bytes, label (-1: none) and id (NULL: none). */
static inline void frame_example(tp__buffer *bytes, const char *image, int64_t label,
                                 const char *id)
{
  tp_error err;
  tp__buffer payload;
  tp__buffer_init(&payload, 1 << 20);
  tp__example_fields fields = {
      .image = (const uint8_t *)image, .image_size = strlen(image), .label = label, .id = id};
  assert_ok(tp__example_pack(&fields, &payload, &err));
  frame(bytes, payload.data, payload.size);
  tp__buffer_free(&payload);
}

/* A shard of `count` examples: images NAME0, NAME1..., labels first, first + 1... */
static inline const char *box_shard(box *b, const char *name, const char *image, int count,
                                    int first)
{
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  for (int i = 0; i < count; i++) {
    char text[64], id[64];
    snprintf(text, sizeof text, "%s%d", image, i);
    snprintf(id, sizeof id, "id-%s%d", image, i);
    frame_example(&bytes, text, first + i, id);
  }
  const char *path = box_file(b, name, bytes.data, bytes.size);
  tp__buffer_free(&bytes);
  return path;
}

/* Opens a catalog of one pattern. */
static inline tp_status open_one(box *b, const char *pattern, tp__catalog_options o,
                                 tp__catalog **catalog)
{
  o.patterns = &pattern;
  o.n_patterns = 1;
  *catalog = NULL;
  return tp__catalog_open(&o, b->pool, NULL, catalog, &b->err);
}

/* The image of an example is that text. */
static inline void assert_image(const tp__catalog *catalog, size_t index, const char *text)
{
  tp_error err;
  tp__buffer bytes;
  tp__buffer_init(&bytes, 1 << 20);
  assert_ok(tp__catalog_read(catalog, index, &bytes, &err));
  assert_int_equal(bytes.size, strlen(text));
  assert_memory_equal(bytes.data, text, bytes.size);
  tp__buffer_free(&bytes);
}

#define box_test(f) cmocka_unit_test_setup_teardown(f, box_open, box_close)

#endif
