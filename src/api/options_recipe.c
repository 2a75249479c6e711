/* options_recipe - recipe.ini: lines of `name = value`; see options.h
 *
 * A line that starts with # or ; is a comment; [sections] are for the eye. A value is the rest of
 * its
 * line without the white space around it. Where that would not do it is quoted: "...", with \", \\
 * and \n inside.
 */
#include "options.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *trimmed(char *text)
{
  while (isspace((unsigned char)*text)) text++;
  char *end = text + strlen(text);
  while (end > text && isspace((unsigned char)end[-1])) *--end = '\0';
  return text;
}

/* Takes the quotes off a quoted value, in place. */
static tp_status unquote(char *value, tp_error *err)
{
  if (*value != '"') return TP_OK;
  char *to = value;
  const char *at = value + 1;
  for (; *at != '\0' && *at != '"'; at++) {
    if (*at == '\\') {
      at++;
      if (*at != 'n' && *at != '\\' && *at != '"') break;
      *to++ = *at == 'n' ? '\n' : *at;
    } else {
      *to++ = *at;
    }
  }
  if (at[0] != '"' || at[1] != '\0')
    return tp__fail(err, TP_ERR_USAGE,
                    "a quoted value is wanted as \"...\", with \\\", \\\\ and \\n inside");
  *to = '\0';
  return TP_OK;
}

static tp_status read_line(tp_options_kind kind, void *options, char *line, tp_error *err)
{
  line = trimmed(line);
  if (*line == '\0' || *line == '#' || *line == ';' || *line == '[') return TP_OK;
  char *equals = strchr(line, '=');
  if (equals == NULL) return tp__fail(err, TP_ERR_USAGE, "\"%s\": name = value is wanted", line);
  *equals = '\0';
  char *value = trimmed(equals + 1);
  TP__TRY(unquote(value, err));
  return tp_options_set(kind, options, trimmed(line), value, err);
}

tp_status tp_options_read(tp_options_kind kind, void *options, const char *path, tp_error *error)
{
  tp__buffer text;
  tp__buffer_init(&text, 1 << 20);
  tp_status status = tp__file_read(path, &text, error);
  if (status == TP_OK && memchr(text.data, '\0', text.size) != NULL)
    status = tp__fail(error, TP_ERR_USAGE, "%s: is no recipe: it holds zero bytes", path);
  if (status == TP_OK) status = tp__buffer_add(&text, "", 1, error);
  char *at = (char *)text.data;
  if (status == TP_OK && strncmp(at, "\xef\xbb\xbf", 3) == 0) at += 3; /* a byte order mark */
  for (int line = 1; status == TP_OK && at != NULL && *at != '\0'; line++) {
    char *end = strchr(at, '\n');
    if (end != NULL) *end = '\0';
    status = read_line(kind, options, at, error);
    if (status != TP_OK) status = tp__at(error, status, "%s: line %d", path, line);
    at = end == NULL ? NULL : end + 1;
  }
  tp__buffer_free(&text);
  tp__options_lists_end(options); /* a flag after it replaces a list */
  return status;
}

/* True where the plain text of a value would not come back as it is. */
static bool wants_quotes(const char *value)
{
  size_t n = strlen(value);
  return value[0] == '"' || isspace((unsigned char)value[0]) || strpbrk(value, "\n\r") != NULL ||
         (n > 0 && isspace((unsigned char)value[n - 1]));
}

static tp_status write_text(tp__writer *w, const char *value, tp_error *err)
{
  if (!wants_quotes(value)) return tp__writer_printf(w, err, "%s\n", value);
  TP__TRY(tp__writer_printf(w, err, "\""));
  for (const char *at = value; *at != '\0'; at++) {
    if (*at == '\n') {
      TP__TRY(tp__writer_printf(w, err, "\\n"));
      continue;
    }
    TP__TRY(tp__writer_printf(w, err, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at));
  }
  return tp__writer_printf(w, err, "\"\n");
}

bool tp__option_is_path(const tp__option_row *row, const char *value)
{
  static const char *const word[] = {"-", "imagenet", "none"};
  bool path = row->path;
  for (int i = 0; i < 3; i++) path = path && strcmp(value, word[i]) != 0;
  return path;
}

/* Puts the working folder in front of a relative path, so that a recipe works from anywhere. */
static tp_status write_value(tp__writer *w, const tp__option_row *row, const char *value,
                             tp_error *err)
{
  bool relative = tp__option_is_path(row, value) && value[0] != '/' && strstr(value, "://") == NULL;
  char *folder = relative ? getcwd(NULL, 0) : NULL;
  char *absolute = folder != NULL ? tp__format("%s/%s", folder, value) : NULL;
  tp_status status = tp__writer_printf(w, err, "%s = ", row->option.name);
  if (folder != NULL && absolute == NULL) status = tp__no_memory(err, strlen(value));
  if (status == TP_OK) status = write_text(w, absolute != NULL ? absolute : value, err);
  free(absolute);
  free(folder);
  return status;
}

/* The shortest digits that read back as the same number: 0.2, not 0.20000000000000001. */
static tp_status write_double(tp__writer *w, const char *name, double value, tp_error *err)
{
  char text[40];
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  return tp__writer_printf(w, err, "%s = %s\n", name, text);
}

static tp_status write_row(tp__writer *w, const tp__option_row *row, const void *field,
                           tp_error *err)
{
  const char *name = row->option.name;
  switch (row->type) {
  case TP__OPTION_STRING: {
    const char *text = *(const char *const *)field;
    return text == NULL ? TP_OK : write_value(w, row, text, err);
  }
  case TP__OPTION_STRINGS: {
    const tp_strings *list = field;
    for (size_t i = 0; i < list->count; i++) TP__TRY(write_value(w, row, list->item[i], err));
    return TP_OK;
  }
  case TP__OPTION_BOOL:
    return tp__writer_printf(w, err, "%s = %s\n", name, *(const bool *)field ? "true" : "false");
  case TP__OPTION_INT:
    if (tp__option_takes_all(row) && *(const int *)field == -1)
      return tp__writer_printf(w, err, "%s = all\n", name);
    return tp__writer_printf(w, err, "%s = %d\n", name, *(const int *)field);
  case TP__OPTION_INT64:
    return tp__writer_printf(w, err, "%s = %" PRId64 "\n", name, *(const int64_t *)field);
  case TP__OPTION_UINT64:
    return tp__writer_printf(w, err, "%s = %" PRIu64 "\n", name, *(const uint64_t *)field);
  case TP__OPTION_DOUBLE:
    return write_double(w, name, *(const double *)field, err);
  }
  return TP_OK;
}

tp_status tp__options_write(tp_options_kind kind, const void *options, const char *path,
                            tp_error *err)
{
  size_t n = 0;
  const tp__option_row *row = tp__option_rows(kind, &n);
  const char *group = "";
  tp__writer w;
  TP__TRY(tp__writer_open(&w, path, err));
  tp_status status = TP_OK;
  for (size_t i = 0; status == TP_OK && i < n; i++) {
    if (strcmp(group, row[i].option.group) != 0) {
      status = tp__writer_printf(&w, err, "%s[%s]\n", i == 0 ? "" : "\n", row[i].option.group);
      group = row[i].option.group;
    }
    if (status == TP_OK)
      status = write_row(&w, &row[i], (const char *)options + row[i].offset, err);
  }
  if (status == TP_OK) return tp__writer_commit(&w, err);
  tp__writer_cancel(&w);
  return status;
}
