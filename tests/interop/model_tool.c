/* model_tool - a network and its weights from the outside, for check_models.py: public functions
 * only.
 *
 *   model_tool NETWORK HEIGHT WIDTH CLASSES WEIGHTS PIXELS ANSWERS [SAVE]
 *
 * PIXELS: raw float32 [n, HEIGHT, WIDTH, 3]; ANSWERS: gets raw float32 [n, CLASSES]; SAVE: gets the
 * weights (.h5 or .safetensors).
 */
#include <stdio.h>
#include <stdlib.h>

#include "tepal.h"

static int number(const char *text)
{
  return (int)strtol(text, NULL, 10);
}

static float *read_floats(const char *path, size_t *count)
{
  enum { MOST = 1 << 26 };
  FILE *f = fopen(path, "rb");
  float *values = malloc(MOST);
  *count =
      f != NULL && values != NULL ? fread(values, sizeof *values, MOST / sizeof *values, f) : 0;
  if (f != NULL) fclose(f);
  return values;
}

static tp_status answer(tp_model *model, char **word, tp_error *error)
{
  int height = 0, width = 0;
  size_t count = 0, classes = (size_t)tp_model_classes(model);
  tp_model_input(model, &height, &width);
  float *pixels = read_floats(word[6], &count);
  size_t n = count / ((size_t)height * (size_t)width * 3);
  float *answers = calloc(n * classes + 1, sizeof *answers);
  tp_status status = pixels == NULL || answers == NULL || n == 0 ? TP_ERR_DATA : TP_OK;
  if (status == TP_OK) status = tp_model_predict(model, pixels, (int64_t)n, answers, error);
  FILE *out = status == TP_OK ? fopen(word[7], "wb") : NULL;
  if (status == TP_OK &&
      (out == NULL || fwrite(answers, sizeof *answers, n * classes, out) != n * classes))
    status = TP_ERR_OUTPUT;
  if (out != NULL && fclose(out) != 0) status = TP_ERR_OUTPUT;
  free(pixels);
  free(answers);
  return status;
}

int main(int argc, char **word)
{
  if (argc < 8 || argc > 9) return TP_ERR_USAGE;
  tp_error error = {0};
  tp_context *context = NULL;
  tp_model *model = NULL;
  tp_status status = tp_context_new(NULL, &context, &error);
  if (status == TP_OK)
    status = tp_model_new(context, word[1], number(word[2]), number(word[3]), number(word[4]),
                          word[5], 1, &model, &error);
  if (status == TP_OK) status = answer(model, word, &error);
  if (status == TP_OK && argc == 9) status = tp_model_save(model, word[8], &error);
  if (status != TP_OK) fprintf(stderr, "%s: %s\n", tp_status_text(status), error.text);
  tp_model_free(model);
  tp_context_free(context);
  return (int)status;
}
