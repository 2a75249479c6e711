/* input_stage - how many pictures a second the image room prepares, and where the time goes.
 *
 * input_stage SHARD...: reads JPEGs out of TFRecord files (found by their start and end markers: no
 * reader is needed for measuring), then measures decoding alone, finishing alone and the whole
 * on one and two threads. Best of several rounds.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "image/image.h"
#include "image/rows.h"

enum { max_pictures = 4096, rounds = 5 };

typedef struct picture {
  const uint8_t *bytes;
  size_t size;
} picture;

typedef enum work { DECODE, FINISH_PLAIN, FINISH_FLIP_ROTATE, FLIP_ROTATE, RESIZE, WORKS } work;
static const char *const work_name[WORKS] = {"decode", "8-bit to float",
                                             "flip + rotate, from pixels", "decode + flip + rotate",
                                             "decode + resize to 160"};

typedef struct job {
  const picture *pictures;
  size_t count;
  work what;
  atomic_size_t next;
  atomic_size_t failed;
} job;

/* Records are whole: length 8, checksum 4, payload, checksum 4. The JPEG is the run from FF D8 FF
 * to the payload's last FF D9. */
static size_t find_pictures(const tp__buffer *file, picture *pictures, size_t room)
{
  size_t count = 0;
  for (size_t at = 0; at + 12 <= file->size && count < room;) {
    uint64_t length;
    memcpy(&length, file->data + at, 8);
    if (length > file->size - at - 12) break;
    const uint8_t *record = file->data + at + 12;
    const uint8_t *begin = memmem(record, length, "\xff\xd8\xff", 3), *end = NULL;
    for (const uint8_t *p = record;
         (p = memmem(p, (size_t)(record + length - p), "\xff\xd9", 2)) != NULL; p += 2)
      end = p + 2;
    if (begin != NULL && end > begin) pictures[count++] = (picture){begin, (size_t)(end - begin)};
    at += 12 + length + 4;
  }
  return count;
}

static tp_status one(work what, const picture *p, size_t index, tp__image_scratch *scratch,
                     float *out, tp_error *err)
{
  static const tp__image_recipe augmented = {
      .height = 192, .width = 192, .flip = true, .rotate = 0.1f};
  static const tp__image_recipe plain = {.height = 192, .width = 192},
                                small = {.height = 160, .width = 160};
  tp__key key = tp__key_of(1, 0, index);
  tp__picture *pic = &scratch->picture;
  switch (what) {
  case DECODE:
    return tp__image_decode(p->bytes, p->size, NULL, pic, err);
  case FINISH_PLAIN:
    return tp__image_finish(&plain, pic->rgb.data, 192, 192, false, key, scratch, out, err);
  case FINISH_FLIP_ROTATE:
    return tp__image_finish(&augmented, pic->rgb.data, 192, 192, true, key, scratch, out, err);
  case FLIP_ROTATE:
    return tp__image_prepare(&augmented, p->bytes, p->size, true, key, scratch, out, err);
  default:
    return tp__image_prepare(&small, p->bytes, p->size, false, key, scratch, out, err);
  }
}

static void *worker(void *arg)
{
  job *j = arg;
  tp__image_scratch scratch = {0};
  float *out = malloc(192 * 192 * 3 * sizeof *out);
  tp_error err = {0};
  if (out == NULL || tp__image_decode(j->pictures[0].bytes, j->pictures[0].size, NULL,
                                      &scratch.picture, &err) != TP_OK)
    atomic_fetch_add(&j->failed, 1);
  for (size_t i; out != NULL && (i = atomic_fetch_add(&j->next, 1)) < j->count;)
    if (one(j->what, &j->pictures[i], i, &scratch, out, &err) != TP_OK)
      atomic_fetch_add(&j->failed, 1);
  free(out);
  tp__image_scratch_free(&scratch);
  return NULL;
}

static double rate(job *j, int threads)
{
  double best = 0;
  for (int round = 0; round < rounds; round++) {
    pthread_t id[64];
    atomic_store(&j->next, 0);
    double start = tp__now();
    for (int t = 0; t < threads; t++) pthread_create(&id[t], NULL, worker, j);
    for (int t = 0; t < threads; t++) pthread_join(id[t], NULL);
    double now = (double)j->count / (tp__now() - start);
    best = now > best ? now : best;
  }
  return best;
}

int main(int argc, char **argv)
{
  picture *pictures = malloc(max_pictures * sizeof *pictures);
  tp__buffer *files = calloc((size_t)argc, sizeof *files);
  size_t count = 0, bytes = 0;
  tp_error err;
  for (int i = 1; i < argc; i++) {
    tp__buffer_init(&files[i], (size_t)1 << 30);
    if (tp__file_read(argv[i], &files[i], &err) != TP_OK) {
      fprintf(stderr, "%s\n", err.text);
      return 3;
    }
    count += find_pictures(&files[i], pictures + count, max_pictures - count);
  }
  for (size_t i = 0; i < count; i++) bytes += pictures[i].size;
  if (count == 0) {
    fprintf(stderr, "usage: input_stage SHARD...   (TFRecord files of 192x192 JPEGs)\n");
    return 2;
  }
  printf("%zu pictures, %.1f KB each, kernels %s\n", count, (double)bytes / (double)count / 1000,
         tp__image_kernels_best()->name);
  for (int w = 0; w < WORKS; w++) {
    printf("%-28s", work_name[w]);
    for (int threads = 1; threads <= 2; threads++) {
      job j = {.pictures = pictures, .count = count, .what = (work)w};
      double r = rate(&j, threads);
      printf("  %d thread%s %8.0f /s (%.0f us)", threads, threads > 1 ? "s" : " ", r,
             1e6 * threads / r);
      if (atomic_load(&j.failed) > 0) printf(" %zu FAILED", atomic_load(&j.failed));
    }
    printf("\n");
  }
  for (int i = 1; i < argc; i++) tp__buffer_free(&files[i]);
  free(files);
  free(pictures);
  return 0;
}
