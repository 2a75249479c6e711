/* predict_one - what is on this photo? The five most likely classes, by a trained run.
 *
 *   predict_one RUN PHOTO
 */
#include <stdio.h>
#include <stdlib.h>

#include "tepal.h"

/* The whole file; NULL when it can't be read. Caller frees. */
static char *read_file(const char *path, size_t *size)
{
  enum { MOST = 64 << 20 };
  FILE *f = fopen(path, "rb");
  char *bytes = f != NULL ? malloc(MOST) : NULL;
  *size = bytes != NULL ? fread(bytes, 1, MOST, f) : 0;
  if (f != NULL) fclose(f);
  return bytes;
}

static void print_best(const tp_model *model, float *probability, int rows)
{
  for (int row = 0; row < rows; row++) {
    int best = 0;
    for (int c = 1; c < tp_model_classes(model); c++)
      if (probability[c] > probability[best]) best = c;
    const char *name = tp_model_label(model, best);
    printf("%6.2f %%  %d %s\n", 100 * (double)probability[best], best, name != NULL ? name : "");
    probability[best] = -1; /* taken */
  }
}

static tp_status predict(tp_context *context, const char *run, const char *photo, tp_error *error)
{
  tp_model *model = NULL;
  tp_status status = tp_model_open(context, run, &model, error);
  if (status != TP_OK) return status;
  size_t size = 0, classes = (size_t)tp_model_classes(model);
  char *bytes = read_file(photo, &size);
  float *probability = calloc(classes, sizeof *probability);
  if (bytes == NULL || probability == NULL) {
    snprintf(error->text, sizeof error->text, "%s: can't be read", photo);
    status = TP_ERR_DATA;
  }
  if (status == TP_OK) status = tp_model_predict_image(model, bytes, size, probability, error);
  if (status == TP_OK) print_best(model, probability, classes < 5 ? (int)classes : 5);
  free(probability);
  free(bytes);
  tp_model_free(model);
  return status;
}

int main(int argc, char **word)
{
  if (argc != 3) {
    fprintf(stderr, "usage: predict_one RUN PHOTO\n");
    return TP_ERR_USAGE;
  }
  tp_error error = {0};
  tp_context *context = NULL;
  tp_status status = tp_context_new(NULL, &context, &error);
  if (status == TP_OK) status = predict(context, word[1], word[2], &error);
  if (status != TP_OK) fprintf(stderr, "%s: %s\n", tp_status_text(status), error.text);
  tp_context_free(context);
  return (int)status;
}
