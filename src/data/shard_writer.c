/* shard_writer - see shard_writer.h */
#include "shard_writer.h"

#include <stdlib.h>
#include <string.h>

#include "tfrecord.h"

/* "192x224", or "mixed" when the width is 0; at most 32 bytes. */
static const char *size_text(int width, int height, char text[32])
{
  if (width > 0)
    snprintf(text, 32, "%dx%d", width, height);
  else
    snprintf(text, 32, "mixed");
  return text;
}

tp_status tp__shard_writer_open(tp__shard_writer *shard, const char *folder, int index, int width,
                                int height, tp_error *err)
{
  *shard = (tp__shard_writer){.index = index, .width = width, .height = height};
  tp__buffer_init(&shard->payload, (size_t)TP__RECORD_MAX);
  shard->folder = tp__strdup(folder, err);
  char size[32];
  char *path = tp__format("%s/%02d-%s.part", folder, index, size_text(width, height, size));
  tp_status status = TP_ERR_INTERNAL;
  if (shard->folder != NULL && path != NULL)
    status = tp__writer_open(&shard->writer, path, err);
  else
    status = tp__no_memory(err, 4096);
  free(path);
  if (status != TP_OK) tp__shard_writer_cancel(shard);
  return status;
}

tp_status tp__shard_writer_add(tp__shard_writer *shard, const tp__example_fields *example,
                               tp_error *err)
{
  shard->payload.size = 0;
  TP__TRY(tp__example_pack(example, &shard->payload, err));
  TP__TRY(tp__record_write(&shard->writer, shard->payload.data, shard->payload.size, err));
  shard->count++;
  return TP_OK;
}

tp_status tp__shard_writer_commit(tp__shard_writer *shard, char **path, tp_error *err)
{
  tp_status status = TP_OK;
  char *final = NULL;
  if (shard->count > 0) {
    char size[32];
    final =
        tp__format("%s/%02d-%s-%llu.tfrec", shard->folder, shard->index,
                   size_text(shard->width, shard->height, size), (unsigned long long)shard->count);
    status =
        final != NULL ? tp__writer_rename(&shard->writer, final, err) : tp__no_memory(err, 4096);
    if (status == TP_OK) status = tp__writer_commit(&shard->writer, err);
  }
  tp__shard_writer_cancel(shard);
  if (status == TP_OK && path != NULL)
    *path = final;
  else
    free(final);
  return status;
}

void tp__shard_writer_cancel(tp__shard_writer *shard)
{
  tp__writer_cancel(&shard->writer);
  tp__buffer_free(&shard->payload);
  free(shard->folder);
  *shard = (tp__shard_writer){0};
}

bool tp__shard_name_count(const char *path, uint64_t *count)
{
  const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
  char digits[20];
  int end = 0;
  if (sscanf(name, "%*9[0-9]-%*9[0-9]x%*9[0-9]-%18[0-9]%n", digits, &end) != 1) return false;
  *count = strtoull(digits, NULL, 10);
  return strncmp(name + end, ".tfrec", 6) == 0;
}
