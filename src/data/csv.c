/* csv - see csv.h */
#include "csv.h"

#include <string.h>

static tp_status quoted_field(tp__csv *c, char **field, tp_error *err)
{
  size_t first_line = c->line;
  char *out = *field = ++c->at;
  while (c->at < c->end) {
    if (*c->at == '"' && c->at[1] != '"') break;
    if (*c->at == '"') c->at++;
    c->line += *c->at == '\n';
    *out++ = *c->at++;
  }
  if (c->at >= c->end)
    return tp__fail(err, TP_ERR_DATA, "line %zu: a quote that opens here is never closed",
                    first_line);
  c->at++;
  bool ended = c->at == c->end || *c->at == ',' || *c->at == '\n' ||
               (*c->at == '\r' && (c->at[1] == '\n' || c->at + 1 == c->end));
  *out = '\0'; /* at most where the closing quote stood */
  if (!ended)
    return tp__fail(err, TP_ERR_DATA,
                    "line %zu: text follows a closing quote (a quote inside is written \"\")",
                    c->line);
  return TP_OK;
}

tp_status tp__csv_line(tp__csv *c, char **field, size_t most, size_t *count, tp_error *err)
{
  *count = 0;
  for (;;) {
    char *start = c->at;
    if (*c->at == '"')
      TP__TRY(quoted_field(c, &start, err));
    else
      c->at += strcspn(c->at, ",\r\n");
    while (*c->at == '\r' && c->at[1] != '\n' && c->at + 1 < c->end)
      c->at += 1 + strcspn(c->at + 1, ",\r\n"); /* a lone CR is text */
    char stop = *c->at;
    if (*count < most) field[*count] = start;
    ++*count;
    *c->at = '\0';
    if (stop == '\r' && c->at + 1 < c->end) stop = *++c->at;
    if (c->at < c->end) c->at++;
    if (stop == ',') continue;
    c->line += stop == '\n';
    return TP_OK;
  }
}
