/* weights_tool - prints and rewrites weight files, for the interoperability scripts in
 * tests/interop.
 *
 *   weights_tool list FILE            name, type, shape and a checksum of the bytes, one array a
 * line weights_tool copy FILE OUT        to .safetensors or .h5 (layers in the order of the arrays)
 *   weights_tool lite0 FILE OUT       the same after the translation from PyTorch's names
 */
#include <stdlib.h>
#include <string.h>

#include "model/weights.h"

static void list(const tp__tensors *set)
{
  for (size_t i = 0; i < set->count; i++) {
    const tp__tensor *t = &set->item[i];
    uint64_t sum = 14695981039346656037U; /* FNV-1a */
    const uint8_t *p = t->data;
    for (size_t k = 0; k < tp__tensor_bytes(t); k++) sum = (sum ^ p[k]) * 1099511628211U;
    char shape[96];
    printf("%s %s %s %016llx\n", t->name, tp__dtype_name(t->dtype),
           tp__shape_text(&t->shape, shape), (unsigned long long)sum);
  }
}

/* The layers in the order of their first arrays, into names (room for set->count). */
static size_t layers_of(const tp__tensors *set, char **layer)
{
  size_t n = 0;
  for (size_t i = 0; i < set->count; i++) {
    const char *name = set->item[i].name, *slash = strchr(name, '/');
    char *own = tp__format("%.*s", slash == NULL ? 0 : (int)(slash - name), name);
    size_t k = 0;
    while (own != NULL && k < n && strcmp(layer[k], own) != 0) k++;
    if (k < n || own == NULL)
      free(own);
    else
      layer[n++] = own;
  }
  return n;
}

/* The lines of a text file, into names (room for most). */
static size_t layers_in(const char *path, char **layer, size_t most)
{
  char line[512];
  size_t n = 0;
  FILE *f = fopen(path, "re");
  while (f != NULL && n < most && fgets(line, sizeof line, f) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if ((layer[n] = tp__format("%s", line)) != NULL) n++;
  }
  if (f != NULL) fclose(f);
  return n;
}

static tp_status write_h5(const char *path, const tp__tensors *set, const char *list, tp_error *err)
{
  size_t most = set->count + 4096;
  char **layer = tp__calloc(most, sizeof *layer, err);
  if (layer == NULL) return TP_ERR_INTERNAL;
  size_t n = list == NULL ? layers_of(set, layer) : layers_in(list, layer, most);
  tp_status status = tp__weights_write_h5(path, set, (const char *const *)layer, n, err);
  for (size_t i = 0; i < n; i++) free(layer[i]);
  free(layer);
  return status;
}

static tp_status run(int argc, char **argv, tp__tensors *set, tp__tensors *other, tp_error *err)
{
  const char *format = NULL;
  TP__TRY(tp__weights_read(argv[2], set, &format, NULL, err));
  fprintf(stderr, "%s: %s, %zu arrays\n", argv[2], format, set->count);
  if (argc == 3) {
    list(set);
    return TP_OK;
  }
  if (strcmp(argv[1], "lite0") == 0) {
    TP__TRY(tp__weights_from_torch_lite0(set, other, err));
    set = other;
  }
  return strstr(argv[3], ".h5") != NULL
             ? write_h5(argv[3], set, argc > 4 ? argv[4] : NULL, err)
             : tp__weights_write_safetensors(argv[3], set, "{\"writer\":\"tepal\"}", err);
}

int main(int argc, char **argv)
{
  if (argc < 3 || argc > 5 || (argc == 3) != (strcmp(argv[1], "list") == 0)) {
    fprintf(stderr, "usage: weights_tool list FILE | copy FILE OUT [LAYERS] | lite0 FILE OUT\n");
    return TP_ERR_USAGE;
  }
  tp_error err = {0};
  tp__tensors set = {0}, other = {0};
  tp_status status = run(argc, argv, &set, &other, &err);
  if (status != TP_OK) fprintf(stderr, "%s\n", err.text);
  tp__tensors_free(&set);
  tp__tensors_free(&other);
  return (int)status;
}
