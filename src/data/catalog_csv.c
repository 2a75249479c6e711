/* catalog_csv - a CSV of path,label as a data set; see catalog_build.h
 *
 * RFC 4180: fields may stand in double quotes, a double quote inside is doubled, a quoted field may
 * hold commas and line ends; lines end in LF or CRLF. A first line `path,label` (or `path`) is a
 * header. A line with a path alone, or an empty label, is an example without label. Relative paths
 * start at the CSV's own folder. The id is the path as written.
 */
#include <string.h>
#include <strings.h>

#include "catalog_build.h"
#include "csv.h"

enum { FIELDS_MAX = 3 }; /* one more than wanted, to notice it */

static const size_t csv_max = (size_t)1 << 30;

static bool is_header(char *const field[FIELDS_MAX], size_t count)
{
  return strcasecmp(field[0], "path") == 0 &&
         (count == 1 || (count == 2 && strcasecmp(field[1], "label") == 0));
}

static tp_status check_line(char *const field[FIELDS_MAX], size_t count, tp_error *err)
{
  if (count > 2)
    return tp__fail(err, TP_ERR_DATA,
                    "%zu fields, path,label are wanted (a path with a comma stands in quotes)",
                    count);
  if (field[0][0] == '\0') return tp__fail(err, TP_ERR_DATA, "the path is empty");
  return TP_OK;
}

static tp_status add_line(tp__build *build, const char *list, size_t line,
                          char *const field[FIELDS_MAX], size_t count, tp_error *err)
{
  tp_status status = check_line(field, count, err);
  if (status != TP_OK) {
    char place[40];
    snprintf(place, sizeof place, "line %zu", line);
    return tp__catalog_skip(build, status, list, place, err);
  }
  tp__arena *arena = &build->catalog->arena;
  bool labelled = count == 2 && field[1][0] != '\0';
  const char *slash = strrchr(list, '/');
  tp__data_file photo = {.list = list, .line = line, .id = tp__arena_strdup(arena, field[0])};
  if (photo.id == NULL) return tp__no_memory(err, 4096);
  photo.path = photo.id[0] == '/' || slash == NULL
                   ? photo.id
                   : tp__arena_format(arena, "%.*s/%s", (int)(slash - list), list, photo.id);
  if (labelled) photo.class_name = tp__arena_strdup(arena, field[1]);
  if (photo.path == NULL || (labelled && photo.class_name == NULL)) return tp__no_memory(err, 4096);
  return tp__catalog_add_photo(build, &photo, err);
}

static tp_status parse(tp__build *build, const char *list, tp__buffer *text, tp_error *err)
{
  tp__csv c = {.at = (char *)text->data, .end = (char *)text->data + text->size, .line = 1};
  if (memchr(c.at, '\0', text->size) != NULL)
    return tp__fail(err, TP_ERR_DATA, "%s: holds a zero byte: this is no text file", list);
  if (text->size >= 3 && memcmp(c.at, "\xef\xbb\xbf", 3) == 0) c.at += 3;
  for (bool first = true; c.at < c.end; first = false) {
    size_t line = c.line, count = 0;
    char *field[FIELDS_MAX];
    tp_status status = tp__csv_line(&c, field, FIELDS_MAX, &count, err);
    if (status != TP_OK) return tp__at(err, status, "%s", list);
    if ((count == 1 && field[0][0] == '\0') || (first && is_header(field, count))) continue;
    TP__TRY(add_line(build, list, line, field, count, err));
  }
  return TP_OK;
}

tp_status tp__catalog_add_csv(tp__build *build, const char *path, tp_error *err)
{
  tp__buffer text;
  tp__buffer_init(&text, csv_max);
  const char *list = tp__arena_strdup(&build->catalog->arena, path);
  size_t before = build->catalog->n_files + build->catalog->n_bad;
  tp_status status = list != NULL ? tp__file_read(path, &text, err) : tp__no_memory(err, 4096);
  if (status == TP_OK) status = tp__buffer_reserve(&text, text.size + 1, err);
  if (status == TP_OK) {
    text.data[text.size] = '\0';
    status = parse(build, list, &text, err);
  }
  if (status == TP_OK && build->catalog->n_files + build->catalog->n_bad == before)
    status = tp__fail(err, TP_ERR_DATA, "%s: lists no photos (lines of path,label)", path);
  tp__buffer_free(&text);
  return status;
}
