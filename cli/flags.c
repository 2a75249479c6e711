/* flags - the words of the command line; see cli.h
 *
 *   --name value, --name=value, --switch, --no-switch; names with '-' or '_'
 *   an option that takes several values takes all words up to the next flag
 *   -- ends the flags; other words are positional
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

tp_status cli_usage(tp_error *error, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  vsnprintf(error->text, sizeof error->text, format, args);
  va_end(args);
  return error->status = TP_ERR_USAGE;
}

static bool is_flag(const char *word)
{
  return word[0] == '-' && word[1] != '\0' && !(word[1] >= '0' && word[1] <= '9');
}

static bool takes_several(tp_options_kind kind, const char *name)
{
  tp_option o;
  for (size_t i = 0; tp_options_at(kind, i, &o); i++)
    if (strcmp(o.name, name) == 0) return o.value != NULL && strstr(o.value, "...") != NULL;
  return false;
}

/* One flag taken apart. */
struct flag {
  char name[64];
  const char *value; /* after '=', or NULL */
  bool negated;      /* --no-... */
};

static tp_status take_apart(const char *word, struct flag *f, tp_error *error)
{
  const char *name = word + (word[1] == '-' ? 2 : 1), *equals = strchr(name, '=');
  size_t size = equals != NULL ? (size_t)(equals - name) : strlen(name);
  if (word[1] != '-' || size == 0 || size >= sizeof f->name)
    return cli_usage(error, "%s: flags start with two dashes, as --threads", word);
  memcpy(f->name, name, size);
  f->name[size] = '\0';
  for (char *p = f->name; *p != '\0'; p++)
    if (*p == '-') *p = '_';
  f->value = equals != NULL ? equals + 1 : NULL;
  f->negated = strncmp(f->name, "no_", 3) == 0;
  return TP_OK;
}

struct reader {
  const cli_words *words;
  int at; /* the next word */
  int kind;
  void *options;
  cli_flag *extra;
  size_t n_extra;
  cli_common *common;
};

/* "learning_rate" as it is written on the command line. */
static const char *dashed(const char *name, char text[64])
{
  snprintf(text, 64, "%s", name);
  for (char *p = text; *p != '\0'; p++)
    if (*p == '_') *p = '-';
  return text;
}

static tp_status not_empty(const struct flag *f, const char *value, tp_error *error)
{
  if (value == NULL || value[0] != '\0') return TP_OK;
  return cli_usage(error, "--%s: the value is empty: is a variable of the shell not set?",
                   dashed(f->name, (char[64]){0}));
}

/* The value of a flag: behind its '=', or the next word. */
static tp_status value_of(struct reader *r, const struct flag *f, const char **value,
                          tp_error *error)
{
  *value = f->value;
  if (*value != NULL) return not_empty(f, *value, error);
  if (r->at >= r->words->count || is_flag(r->words->word[r->at]))
    return cli_usage(error, "--%s: a value is wanted", dashed(f->name, (char[64]){0}));
  *value = r->words->word[r->at++];
  return not_empty(f, *value, error);
}

static tp_status count_of(struct reader *r, const struct flag *f, const char *all, int *count,
                          tp_error *error)
{
  const char *value = NULL;
  tp_status status = value_of(r, f, &value, error);
  if (status != TP_OK) return status;
  char *end = NULL;
  long n = strtol(value, &end, 10);
  if (end == value || *end != '\0' || n < 0 || n > 1024)
    return cli_usage(error, "--%s: \"%s\" is not a number from 0 (%s) to 1024", f->name, value,
                     all);
  *count = (int)n;
  return TP_OK;
}

/* Those that only look at data, or make them, compute on no device. */
bool cli_takes_device(tp_options_kind kind)
{
  return kind != TP_OPTIONS_INSPECT && kind != TP_OPTIONS_PACK && kind != TP_OPTIONS_DRAW;
}

static tp_status read_common(struct reader *r, const struct flag *f, bool *known, tp_error *error)
{
  cli_common *c = r->common;
  *known = true;
  bool device = cli_takes_device((tp_options_kind)r->kind);
  bool is_switch = strcmp(f->name, "help") == 0 || strcmp(f->name, "quiet") == 0;
  if (is_switch && f->value != NULL) return cli_usage(error, "--%s: takes no value", f->name);
  if (strcmp(f->name, "help") == 0) {
    c->help = true;
  } else if (strcmp(f->name, "quiet") == 0) {
    c->quiet = true;
  } else if (strcmp(f->name, "threads") == 0) {
    return count_of(r, f, "all processors", &c->threads, error);
  } else if (strcmp(f->name, "device") == 0 && device) {
    return value_of(r, f, &c->device, error);
  } else if (strcmp(f->name, "replicas") == 0 && device) {
    return count_of(r, f, "all devices", &c->replicas, error);
  } else {
    *known = false;
  }
  return TP_OK;
}

static tp_status read_extra(struct reader *r, const struct flag *f, bool *known, tp_error *error)
{
  *known = false;
  for (size_t i = 0; i < r->n_extra; i++) {
    if (strcmp(r->extra[i].name, f->name) != 0) continue;
    *known = true;
    if (!r->extra[i].is_switch) return value_of(r, f, &r->extra[i].given, error);
    if (f->value != NULL) return cli_usage(error, "--%s: takes no value", f->name);
    r->extra[i].given = "true";
    return TP_OK;
  }
  return TP_OK;
}

/* Whether a name is an option of the command's struct. */
static bool is_option(const struct reader *r, const char *name)
{
  tp_option o;
  for (size_t i = 0; r->options != NULL && tp_options_at((tp_options_kind)r->kind, i, &o); i++)
    if (strcmp(o.name, name) == 0) return true;
  return false;
}

static tp_status no_such_flag(const struct reader *r, const struct flag *f, tp_error *error)
{
  enum { MOST = 128 };
  const char *names[MOST] = {"help", "quiet", "threads", "device", "replicas"};
  size_t n = cli_takes_device((tp_options_kind)r->kind) ? 5 : 3;
  char text[64], other[64];
  tp_option o;
  for (size_t i = 0; i < r->n_extra && n < MOST; i++) names[n++] = r->extra[i].name;
  for (size_t i = 0; r->options != NULL && n < MOST; i++)
    if (tp_options_at((tp_options_kind)r->kind, i, &o))
      names[n++] = o.name;
    else
      break;
  if (f->negated && is_option(r, f->name + 3))
    return cli_usage(error, "--%s: --%s takes a value and has no opposite", dashed(f->name, text),
                     dashed(f->name + 3, other));
  const char *near = cli_nearest(f->name, names, n);
  if (near != NULL)
    return cli_usage(error, "--%s: there is no such flag; is --%s meant?", dashed(f->name, text),
                     dashed(near, other));
  return cli_usage(error, "--%s: there is no such flag here; --help lists them",
                   dashed(f->name, text));
}

static tp_status read_option(struct reader *r, const struct flag *f, tp_error *error)
{
  tp_options_kind kind = (tp_options_kind)r->kind;
  bool off = f->negated && r->options != NULL && tp_options_is_switch(kind, f->name + 3);
  if (!off && !is_option(r, f->name)) return no_such_flag(r, f, error);
  if (r->common->option == NULL) r->common->option = r->words->word[r->at - 1];
  if (off) {
    if (f->value != NULL)
      return cli_usage(error, "--%s: takes no value", dashed(f->name, (char[64]){0}));
    return tp_options_set(kind, r->options, f->name + 3, "false", error);
  }
  if (tp_options_is_switch(kind, f->name))
    return tp_options_set(kind, r->options, f->name, f->value, error);
  const char *value = f->value;
  if (value == NULL && r->at < r->words->count && !is_flag(r->words->word[r->at]))
    value = r->words->word[r->at++];
  tp_status status = not_empty(f, value, error);
  if (status == TP_OK) status = tp_options_set(kind, r->options, f->name, value, error);
  while (status == TP_OK && f->value == NULL && takes_several(kind, f->name) &&
         r->at < r->words->count && !is_flag(r->words->word[r->at])) {
    value = r->words->word[r->at++];
    status = not_empty(f, value, error);
    if (status == TP_OK) status = tp_options_set(kind, r->options, f->name, value, error);
  }
  return status;
}

static tp_status read_flag(struct reader *r, const char *word, tp_error *error)
{
  struct flag f = {0};
  bool known = false;
  if (strcmp(word, "-h") == 0) word = "--help";
  tp_status status = take_apart(word, &f, error);
  if (status == TP_OK) status = read_common(r, &f, &known, error);
  if (status == TP_OK && !known) status = read_extra(r, &f, &known, error);
  if (status == TP_OK && !known) status = read_option(r, &f, error);
  return status;
}

tp_status cli_read(const cli_words *words, int kind, void *options, cli_flag *extra, size_t n_extra,
                   cli_common *common, tp_error *error)
{
  *common = (cli_common){0};
  common->positional = calloc((size_t)words->count + 1, sizeof *common->positional);
  if (common->positional == NULL) return cli_usage(error, "out of memory");
  struct reader r = {.words = words,
                     .kind = kind,
                     .options = options,
                     .extra = extra,
                     .n_extra = n_extra,
                     .common = common};
  tp_status status = TP_OK;
  bool flags_end = false;
  while (status == TP_OK && r.at < words->count) {
    const char *word = words->word[r.at++];
    if (word[0] == '\0')
      status = cli_usage(error, "one of the words is empty: is a variable of the shell not set?");
    else if (!flags_end && strcmp(word, "--") == 0)
      flags_end = true;
    else if (!flags_end && is_flag(word))
      status = read_flag(&r, word, error);
    else
      common->positional[common->n_positional++] = word;
  }
  return status;
}

void cli_common_free(cli_common *common)
{
  free(common->positional);
  *common = (cli_common){0};
}

/* ---- recipes ---- */

/* By its name, so that a folder of photos or a shard is not read as one. */
static bool is_recipe(const char *path)
{
  size_t n = strlen(path);
  return n > 4 && strcmp(path + n - 4, ".ini") == 0;
}

tp_status cli_read_recipe(const cli_words *words, tp_train_options *options, cli_flag *extra,
                          size_t n_extra, cli_common *common, tp_error *error)
{
  if (common->n_positional == 0) return TP_OK;
  const char *recipe = common->positional[0];
  if (common->n_positional > 1)
    return cli_usage(error, "\"%s\": one recipe at most; data are given with --train and --val",
                     common->positional[1]);
  if (!is_recipe(recipe))
    return cli_usage(error, "\"%s\": a recipe.ini is wanted here; data are given with --train",
                     recipe);
  tp_options_free(TP_OPTIONS_TRAIN, options);
  tp_options_default(TP_OPTIONS_TRAIN, options);
  tp_status status = tp_options_read(TP_OPTIONS_TRAIN, options, recipe, error);
  cli_common_free(common);
  if (status != TP_OK) return status;
  return cli_read(words, TP_OPTIONS_TRAIN, options, extra, n_extra, common, error);
}
