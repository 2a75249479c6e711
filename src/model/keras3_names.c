/* keras3_names - see keras3_names.h */
#include "keras3_names.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <string.h>

enum { DEPTH_MAX = 8, NAMES_MAX = 4096, CLASS_MAX = 64 };

/* DepthwiseConv2D -> depthwise_conv2d (keras/src/utils/naming.py, to_snake_case). */
static void snake_case(const char *class, char text[2 * CLASS_MAX])
{
  size_t n = 0;
  for (size_t i = 0; class[i] != '\0' && i < CLASS_MAX - 1; i++) {
    unsigned char c = (unsigned char)class[i], next = (unsigned char)class[i + 1];
    if (i > 0 && isupper(c) && (islower(next) || islower((unsigned char)class[i - 1])))
      text[n++] = '_';
    if (isalnum(c) || c == '_') text[n++] = (char)tolower(c);
  }
  text[n] = '\0';
}

static tp_status add(tp__keras3_names *names, const char *path, const char *name, tp_error *err)
{
  if (names->count == NAMES_MAX)
    return tp__fail(err, TP_ERR_DATA, "more than %d layers", NAMES_MAX);
  if (names->count == names->capacity) {
    size_t grown = names->capacity == 0 ? 256 : 2 * names->capacity;
    tp__keras3_name *item = tp__arena_alloc(&names->arena, grown * sizeof *item);
    if (item == NULL) return tp__no_memory(err, grown * sizeof *item);
    if (names->count > 0) memcpy(item, names->item, names->count * sizeof *item);
    names->item = item;
    names->capacity = grown;
  }
  tp__keras3_name n = {path, tp__arena_strdup(&names->arena, name)};
  if (n.name == NULL) return tp__no_memory(err, strlen(name));
  names->item[names->count++] = n;
  return TP_OK;
}

/* The layers' classes in snake case, "" where there is none. */
static const char **classes_of(tp__keras3_names *names, const cJSON *layers)
{
  size_t i = 0;
  const char **snake =
      tp__arena_alloc(&names->arena, (size_t)cJSON_GetArraySize(layers) * sizeof *snake);
  for (const cJSON *l = layers->child; snake != NULL && l != NULL; l = l->next) {
    const cJSON *class = cJSON_GetObjectItem(l, "class_name");
    char text[2 * CLASS_MAX];
    snake_case(cJSON_IsString(class) ? class->valuestring : "", text);
    snake[i] = tp__arena_strdup(&names->arena, text);
    if (snake[i++] == NULL) return NULL;
  }
  return snake;
}

/* The layers of one model's "config"; prefix ends in '/' or is empty. */
static tp_status walk(tp__keras3_names *names, const cJSON *config, const char *prefix, int depth,
                      tp_error *err)
{
  const cJSON *layers = cJSON_GetObjectItem(config, "layers");
  if (!cJSON_IsArray(layers)) return TP_OK;
  if (depth > DEPTH_MAX || cJSON_GetArraySize(layers) > NAMES_MAX)
    return tp__fail(err, TP_ERR_DATA, "too many layers, or nested too deeply");
  const char **snake = classes_of(names, layers);
  if (snake == NULL) return tp__no_memory(err, 0);
  size_t i = 0;
  for (const cJSON *l = layers->child; l != NULL; l = l->next, i++) {
    const cJSON *own = cJSON_GetObjectItem(l, "config"), *name = cJSON_GetObjectItem(own, "name");
    if (*snake[i] == '\0' || !cJSON_IsString(name)) continue;
    int before = 0; /* layers of this class */
    for (size_t k = 0; k < i; k++) before += strcmp(snake[k], snake[i]) == 0;
    char number[16] = "";
    if (before > 0) snprintf(number, sizeof number, "_%d", before);
    const char *path = tp__arena_format(&names->arena, "%slayers/%s%s", prefix, snake[i], number);
    const char *inside = path == NULL ? NULL : tp__arena_format(&names->arena, "%s/", path);
    if (inside == NULL) return tp__no_memory(err, strlen(prefix));
    TP__TRY(add(names, path, name->valuestring, err));
    TP__TRY(walk(names, own, inside, depth + 1, err));
  }
  return TP_OK;
}

tp_status tp__keras3_names_read(tp__keras3_names *names, const char *json, size_t size,
                                tp_error *err)
{
  cJSON *root = cJSON_ParseWithLength(json, size);
  if (root == NULL) return tp__fail(err, TP_ERR_DATA, "config.json is no JSON");
  tp_status status = walk(names, cJSON_GetObjectItem(root, "config"), "", 0, err);
  cJSON_Delete(root);
  return status == TP_OK ? TP_OK : tp__at(err, status, "config.json");
}

const char *tp__keras3_name_at(const tp__keras3_names *names, const char *path)
{
  for (size_t i = 0; names != NULL && i < names->count; i++)
    if (strcmp(names->item[i].path, path) == 0) return names->item[i].name;
  return NULL;
}

void tp__keras3_names_free(tp__keras3_names *names)
{
  tp__arena_free(&names->arena);
  *names = (tp__keras3_names){0};
}
