/* transfer - see transfer.h */
#include "transfer.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct survey {
  const tp__catalog *catalog;
  const tp__image_recipe *recipe;
  tp__buffer *bytes; /* [threads] */
  _Atomic bool other_size;
};

/* A picture that can't be read now will be complained of when it is its turn. */
static void look(void *arg, size_t index, int worker)
{
  struct survey *s = arg;
  int height = 0, width = 0, orientation = 1;
  tp_error ignored;
  tp__buffer *b = &s->bytes[worker];
  if (atomic_load_explicit(&s->other_size, memory_order_relaxed)) return;
  if (tp__catalog_read(s->catalog, index, b, &ignored) != TP_OK) return;
  if (tp__image_header(b->data, b->size, &height, &width, &orientation, &ignored) != TP_OK) return;
  bool turned = s->recipe->decode.exif_rotate && orientation >= 5;
  if ((turned ? width : height) != s->recipe->height ||
      (turned ? height : width) != s->recipe->width)
    s->other_size = true;
}

static tp_status all_of_size(const tp__job *job, const tp__image_recipe *recipe,
                             const tp__catalog *catalog, bool *all, tp_error *err)
{
  size_t threads = (size_t)tp__pool_threads(job->pool);
  struct survey s = {.catalog = catalog, .recipe = recipe};
  s.bytes = tp__calloc(threads, sizeof *s.bytes, err);
  if (s.bytes == NULL) return TP_ERR_INTERNAL;
  for (size_t i = 0; i < threads; i++) tp__buffer_init(&s.bytes[i], SIZE_MAX);
  tp__pool_for(job->pool, tp__catalog_count(catalog), look, &s);
  for (size_t i = 0; i < threads; i++) tp__buffer_free(&s.bytes[i]);
  free(s.bytes);
  *all = !s.other_size;
  return TP_OK;
}

tp_status tp__transfer_bytes(const char *transfer, const tp__job *job,
                             const tp__pipeline_options *input, const tp__catalog *const catalog[2],
                             bool *bytes, tp_error *err)
{
  *bytes = strcmp(transfer, "uint8") == 0;
  if (*bytes || strcmp(transfer, "float32") == 0) return TP_OK;
  if (strcmp(transfer, "auto") != 0)
    return tp__fail(err, TP_ERR_USAGE,
                    "transfer: \"%s\" is not known; wanted auto, float32 or uint8", transfer);
  if (tp__image_recipe_is_float(&input->recipe) || input->mixup > 0) return TP_OK;
  *bytes = true;
  for (int i = 0; i < 2 && *bytes; i++)
    if (catalog[i] != NULL) TP__TRY(all_of_size(job, &input->recipe, catalog[i], bytes, err));
  return TP_OK;
}

tp_status tp__accumulate_parse(const char *text, int *parts, tp_error *err)
{
  char *end = NULL;
  *parts = 0;
  if (strcmp(text, "auto") == 0) return TP_OK;
  long n = strtol(text, &end, 10);
  if (end == text || *end != '\0' || n < 1 || n > 1024)
    return tp__fail(err, TP_ERR_USAGE, "accumulate: \"%s\" is not auto, nor a number 1 to 1024",
                    text);
  *parts = (int)n;
  return TP_OK;
}
