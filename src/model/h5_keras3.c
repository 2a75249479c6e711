/* h5_keras3 - the layout of Keras 3's .weights.h5; see h5_child.h
 *
 * Groups are named after layer classes and numbered in the model's order; in each, "vars" holds
 * datasets 0, 1, ... and the attribute `name`, the layer's name. Nested models nest. Optimizer and
 * random-seed state is left out. (keras/src/saving/saving_lib.py, Keras 3.15.)
 */
#include <string.h>

#include "h5_child.h"
#include "h5_strings.h"
#include "keras3_names.h"

enum { DEPTH_MAX = 32, GROUPS_MAX = 65536 };

/* A class's variables in the order of their numbers; others keep the number as name. */
static tp_status variable_name(const char *class, size_t count, size_t i, char text[32],
                               tp_error *err)
{
  static const struct {
    const char *class, *variable[4];
    size_t least, most;
  } known[] = {
      {"conv2d", {"kernel", "bias"}, 1, 2},
      {"depthwise_conv2d", {"kernel", "bias"}, 1, 2},
      {"dense", {"kernel", "bias"}, 1, 2},
      {"batch_normalization", {"gamma", "beta", "moving_mean", "moving_variance"}, 4, 4},
      {"normalization", {"mean", "variance", "count"}, 3, 3},
  };
  size_t n = strlen(class);
  while (n > 0 && class[n - 1] >= '0' && class[n - 1] <= '9') n--;
  if (n == 0 || class[n - 1] != '_' || n == strlen(class)) n = strlen(class) + 1;
  for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
    if (strlen(known[k].class) != n - 1 || memcmp(class, known[k].class, n - 1) != 0) continue;
    if (count < known[k].least || count > known[k].most)
      return tp__fail(err, TP_ERR_DATA, "holds %zu arrays; a %s layer has %zu", count,
                      known[k].class, known[k].most);
    snprintf(text, 32, "%s", known[k].variable[i]);
    return TP_OK;
  }
  snprintf(text, 32, "%zu", i);
  return TP_OK;
}

/* The layer's name: the attribute, or (older files) what the configuration says about the path. */
static tp_status layer_name(tp__h5_reader *r, hid_t vars, const char *path, const char **name,
                            tp_error *err)
{
  char shown[80];
  tp__h5_strings stored = {0};
  if (H5Aexists(vars, "name") > 0) {
    TP__TRY(tp__h5_read_strings(vars, "name", &r->arena, &stored, err));
    *name = stored.count == 1 ? stored.item[0] : NULL;
  } else {
    *name = tp__keras3_name_at(r->names, path);
  }
  if (*name != NULL) return TP_OK;
  return tp__fail(
      err, TP_ERR_DATA,
      "group %s does not name its layer: saved by an early Keras 3; save the model as .h5, "
      "or as .keras (that lists the names)",
      tp__printable(shown, path, strlen(path)));
}

/* path: of the group that holds vars; class: its last part. */
static tp_status read_vars(tp__h5_reader *r, hid_t vars, const char *path, const char *class,
                           tp_error *err)
{
  size_t count = 0;
  const char *layer = NULL;
  char number[32], variable[32], shown[80];
  for (;; count++) {
    snprintf(number, sizeof number, "%zu", count);
    if (count > TP__WEIGHTS_MAX_ARRAYS || H5Lexists(vars, number, r->group_access) <= 0) break;
  }
  if (count == 0) return TP_OK;
  TP__TRY(layer_name(r, vars, path, &layer, err));
  for (size_t i = 0; i < count; i++) {
    tp_status status = variable_name(class, count, i, variable, err);
    if (status != TP_OK)
      return tp__at(err, status, "layer %s", tp__printable(shown, layer, strlen(layer)));
    const char *name = tp__arena_format(&r->arena, "%s/%s", layer, variable);
    if (name == NULL) return tp__no_memory(err, 0);
    snprintf(number, sizeof number, "%zu", i);
    TP__TRY(tp__h5_send_array(r, vars, number, name, err));
  }
  return TP_OK;
}

typedef struct children {
  tp__h5_reader *r;
  const char **name;
  size_t count, capacity;
} children;

static herr_t collect_child(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
  children *c = user;
  (void)group;
  if (info->type != H5L_TYPE_HARD || strcmp(name, "vars") == 0 || strcmp(name, "optimizer") == 0 ||
      strcmp(name, "seed_generator") == 0)
    return 0;
  if (c->count == c->capacity) {
    c->capacity = c->capacity == 0 ? 64 : c->capacity * 2;
    if (c->capacity > GROUPS_MAX) return -1;
    const char **grown = tp__arena_alloc(&c->r->arena, c->capacity * sizeof *grown);
    if (grown == NULL) return -1;
    if (c->count > 0) memcpy(grown, c->name, c->count * sizeof *grown);
    c->name = grown;
  }
  c->name[c->count] = tp__arena_strdup(&c->r->arena, name);
  return c->name[c->count++] == NULL ? -1 : 0;
}

static tp_status read_object(tp__h5_reader *r, hid_t group, const char *path, int depth,
                             tp_error *err);

static tp_status read_child(tp__h5_reader *r, hid_t group, const char *path, const char *name,
                            int depth, tp_error *err)
{
  const char *part = strcmp(name, TP__H5_OLD_LAYERS) == 0 ? "layers" : name;
  const char *inside = tp__arena_format(&r->arena, "%s%s%s", path, *path == '\0' ? "" : "/", part);
  if (inside == NULL) return tp__no_memory(err, strlen(path));
  hid_t child = H5Oopen(group, name, r->group_access);
  if (child < 0) return tp__fail(err, TP_ERR_DATA, "a group's member is damaged");
  tp_status status = TP_OK;
  if (H5Iget_type(child) == H5I_GROUP) status = read_object(r, child, inside, depth, err);
  H5Oclose(child);
  return status;
}

static tp_status read_object(tp__h5_reader *r, hid_t group, const char *path, int depth,
                             tp_error *err)
{
  children c = {.r = r};
  if (depth > DEPTH_MAX || ++r->groups > GROUPS_MAX)
    return tp__fail(err, TP_ERR_DATA, "too many groups, or nested too deeply");
  const char *slash = strrchr(path, '/'), *class = slash == NULL ? path : slash + 1;
  tp_status status = TP_OK;
  hid_t vars =
      H5Lexists(group, "vars", r->group_access) > 0 ? H5Gopen2(group, "vars", r->group_access) : -1;
  if (vars >= 0) {
    status = read_vars(r, vars, path, class, err);
    H5Gclose(vars);
  }
  if (status == TP_OK && H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, collect_child, &c) < 0)
    status = tp__fail(err, TP_ERR_DATA, "a group's list of members is damaged");
  for (size_t i = 0; status == TP_OK && i < c.count; i++)
    status = read_child(r, group, path, c.name[i], depth + 1, err);
  return status;
}

tp_status tp__h5_read_keras3(tp__h5_reader *r, hid_t root, tp_error *err)
{
  return read_object(r, root, "", 0, err);
}
