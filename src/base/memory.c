/* memory - checked allocation, arena, growable buffer; see base.h */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

void *tp__calloc(size_t count, size_t size, tp_error *err)
{
  size_t bytes = SIZE_MAX;
  void *p = NULL;
  if (tp__mul_size(count, size, &bytes)) p = calloc(bytes > 0 ? bytes : 1, 1);
  if (p == NULL) (void)tp__no_memory(err, bytes);
  return p;
}

void *tp__calloc_aligned(size_t count, size_t size, tp_error *err)
{
  size_t bytes = SIZE_MAX;
  void *p = NULL;
  if (tp__mul_size(count, size, &bytes) && bytes < SIZE_MAX - 64)
    p = aligned_alloc(64, (bytes + 63) / 64 * 64 + (bytes == 0 ? 64 : 0));
  if (p == NULL)
    (void)tp__no_memory(err, bytes);
  else
    memset(p, 0, bytes);
  return p;
}

void tp__give_memory_back(void)
{
#ifdef __GLIBC__
  (void)malloc_trim(0);
#endif
}

char *tp__strdup(const char *text, tp_error *err)
{
  size_t size = strlen(text) + 1;
  char *copy = tp__calloc(size, 1, err);
  if (copy != NULL) memcpy(copy, text, size);
  return copy;
}

static char *format_with(char *(*get)(void *where, size_t bytes), void *where, const char *format,
                         va_list args)
{
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (n < 0) return NULL;
  char *text = get(where, (size_t)n + 1);
  if (text != NULL) vsnprintf(text, (size_t)n + 1, format, args);
  return text;
}

static char *get_heap(void *where, size_t bytes)
{
  (void)where;
  return malloc(bytes);
}

static char *get_arena(void *where, size_t bytes)
{
  return tp__arena_alloc(where, bytes);
}

char *tp__format(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  char *text = format_with(get_heap, NULL, format, args);
  va_end(args);
  return text;
}

char *tp__bytes_text(char text[32], uint64_t bytes)
{
  static const char *const unit[] = {"bytes", "KB", "MB", "GB", "TB"};
  double value = (double)bytes;
  int u = 0;
  while (value >= 1000 && u < 4) {
    value /= 1000;
    u++;
  }
  snprintf(text, 32, u == 0 ? "%.0f %s" : value < 10 ? "%.2f %s" : "%.1f %s", value, unit[u]);
  return text;
}

/* ---- arena ---- */

struct tp__arena_block {
  struct tp__arena_block *next;
  size_t used, size;
  _Alignas(16) unsigned char data[];
};

void *tp__arena_alloc(tp__arena *arena, size_t bytes)
{
  if (bytes > SIZE_MAX / 2) return NULL;
  bytes = (bytes + 15) / 16 * 16;
  struct tp__arena_block *b = arena->head;
  if (b == NULL || b->size - b->used < bytes) {
    size_t size = bytes > 16384 ? bytes : 16384;
    b = calloc(1, sizeof *b + size);
    if (b == NULL) return NULL;
    b->size = size;
    b->next = arena->head;
    arena->head = b;
  }
  void *p = b->data + b->used;
  b->used += bytes;
  return p;
}

char *tp__arena_strdup(tp__arena *arena, const char *text)
{
  size_t size = strlen(text) + 1;
  char *copy = tp__arena_alloc(arena, size);
  if (copy != NULL) memcpy(copy, text, size);
  return copy;
}

char *tp__arena_format(tp__arena *arena, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  char *text = format_with(get_arena, arena, format, args);
  va_end(args);
  return text;
}

void tp__arena_free(tp__arena *arena)
{
  struct tp__arena_block *b = arena->head;
  while (b != NULL) {
    struct tp__arena_block *next = b->next;
    free(b);
    b = next;
  }
  arena->head = NULL;
}

/* ---- buffer ---- */

void tp__buffer_init(tp__buffer *buffer, size_t max)
{
  *buffer = (tp__buffer){.max = max};
}

tp_status tp__buffer_reserve(tp__buffer *buffer, size_t capacity, tp_error *err)
{
  if (capacity <= buffer->capacity) return TP_OK;
  if (capacity > buffer->max)
    return tp__fail(err, TP_ERR_DATA, "larger than the limit of %zu bytes", buffer->max);
  size_t grown = buffer->capacity + buffer->capacity / 2;
  if (grown < capacity) grown = capacity;
  if (grown > buffer->max) grown = buffer->max;
  uint8_t *data = realloc(buffer->data, grown);
  if (data == NULL) return tp__no_memory(err, grown);
  buffer->data = data;
  buffer->capacity = grown;
  return TP_OK;
}

tp_status tp__buffer_add(tp__buffer *buffer, const void *data, size_t size, tp_error *err)
{
  if (size == 0) return TP_OK;
  size_t need = 0;
  if (!tp__add_size(buffer->size, size, &need)) return tp__no_memory(err, SIZE_MAX);
  TP__TRY(tp__buffer_reserve(buffer, need, err));
  memcpy(buffer->data + buffer->size, data, size);
  buffer->size = need;
  return TP_OK;
}

tp_status tp__buffer_printf(tp__buffer *buffer, tp_error *err, const char *format, ...)
{
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, again);
  va_end(again);
  tp_status status = n < 0 ? tp__fail(err, TP_ERR_INTERNAL, "text could not be formatted")
                           : tp__buffer_reserve(buffer, buffer->size + (size_t)n + 1, err);
  if (status == TP_OK) {
    vsnprintf((char *)buffer->data + buffer->size, (size_t)n + 1, format, args);
    buffer->size += (size_t)n; /* the terminating zero is there but not counted */
  }
  va_end(args);
  return status;
}

void tp__buffer_free(tp__buffer *buffer)
{
  free(buffer->data);
  *buffer = (tp__buffer){.max = buffer->max};
}
