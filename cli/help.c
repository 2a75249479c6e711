/* help - options as --help shows them, errors as they are printed, what was probably meant; see
 * cli.h */
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* ---- options ---- */

/* A text in words, wrapped into the columns from left to width; the cursor stands at left. */
static void print_wrapped(FILE *to, const char *text, int left, int width)
{
  int at = left;
  while (*text != '\0') {
    int word = (int)strcspn(text, " ");
    if (at > left && at + word > width) {
      fprintf(to, "\n%*s", left, "");
      at = left;
    }
    fprintf(to, "%.*s", word, text);
    at += word;
    text += word;
    if (*text != ' ') continue;
    text++;
    if (at + 1 < width) fputc(' ', to);
    at++;
  }
  fputc('\n', to);
}

static void print_option(FILE *to, const tp_option *o, int width)
{
  enum { LEFT = 34 };
  char flag[96], text[256];
  bool on = o->value == NULL && o->initial != NULL && strcmp(o->initial, "true") == 0;
  bool with_default = o->initial != NULL && o->value != NULL;
  int used = snprintf(flag, sizeof flag, "  --%s%s%s%s", on ? "[no-]" : "", o->name,
                      o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
  for (char *p = flag + 2; *p != '\0' && *p != ' '; p++)
    if (*p == '_') *p = '-';
  snprintf(text, sizeof text, "%s%s%s%s", o->help, with_default ? " (" : "",
           with_default ? o->initial : "", with_default ? ")" : "");
  if (used < LEFT)
    fprintf(to, "%-*s", LEFT, flag);
  else
    fprintf(to, "%s\n%*s", flag, LEFT, "");
  print_wrapped(to, text, LEFT, width);
}

void cli_print_options(FILE *to, tp_options_kind kind)
{
  static const tp_option common[] = {
      {"threads", "N", "0", "common", "0: as many as there are processors"},
      {"quiet", NULL, NULL, "common", "warnings and errors only"},
      {"device", "NAME", "auto", "common", "auto, tpu, gpu, cpu, or a PJRT plugin's path"},
      {"replicas", "N", "0", "common", "devices to use; 0: all"},
  };
  const size_t n_common = cli_takes_device(kind) ? 4 : 2;
  enum { WIDEST = 100 };
  int width = cli_columns(fileno(to), WIDEST);
  if (width > WIDEST) width = WIDEST;
  if (width < 60) width = 60;
  tp_option o;
  const char *group = "";
  for (size_t i = 0; tp_options_at(kind, i, &o); i++) {
    if (strcmp(group, o.group) != 0) fprintf(to, "\n%s\n", o.group);
    group = o.group;
    print_option(to, &o, width);
  }
  fprintf(to, "\ncommon\n");
  for (size_t i = 0; i < n_common; i++) print_option(to, &common[i], width);
}

void cli_print_names(FILE *to, const char *const *names, int columns)
{
  enum { WIDEST = 80 };
  for (int at = columns; *names != NULL; names++) {
    int n = (int)strlen(*names) + 1;
    bool next = at + n > WIDEST;
    fprintf(to, next ? "\n %s" : " %s", *names);
    at = next ? n : at + n;
  }
  fputc('\n', to);
}

/* ---- what was meant ---- */

static char plain(char c)
{
  return c == '-' ? '_' : c;
}

/* Edits from one name to another: letters changed, left out, added, or two swapped. */
static int distance(const char *a, const char *b)
{
  enum { MOST = 32 };
  int row[3][MOST + 1], n = (int)strnlen(a, MOST), m = (int)strnlen(b, MOST);
  int *before = row[0], *last = row[1], *now = row[2];
  for (int j = 0; j <= m; j++) last[j] = before[j] = j;
  for (int i = 1; i <= n; i++) {
    now[0] = i;
    for (int j = 1; j <= m; j++) {
      char x = plain(a[i - 1]), y = plain(b[j - 1]);
      int least = last[j - 1] + (x != y);
      if (last[j] + 1 < least) least = last[j] + 1;
      if (now[j - 1] + 1 < least) least = now[j - 1] + 1;
      bool swapped = i > 1 && j > 1 && x == plain(b[j - 2]) && y == plain(a[i - 2]);
      if (swapped && before[j - 2] + 1 < least) least = before[j - 2] + 1;
      now[j] = least;
    }
    int *free_row = before;
    before = last;
    last = now;
    now = free_row;
  }
  return last[m];
}

const char *cli_nearest(const char *word, const char *const *names, size_t count)
{
  const char *best = NULL;
  int least = (int)strlen(word) / 3 + 1;
  for (size_t i = 0; i < count; i++) {
    size_t n = strlen(word);
    int d = distance(word, names[i]);
    /* A name cut short, or a part of it, is near: --fine-tune, --smoothing. */
    if (d > least && n >= 4 && strstr(names[i], word) != NULL) d = least;
    if (d > least || (d == least && best != NULL)) continue;
    least = d;
    best = names[i];
  }
  return best;
}

/* ---- errors ---- */

static bool is_option_name(const char *text, size_t size)
{
  static const char *const other[] = {"replicas",     "topology", "classes", "examples",
                                      "val_examples", "measure",  "patience"};
  tp_option o;
  for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
    if (strlen(other[i]) == size && memcmp(other[i], text, size) == 0) return true;
  for (int kind = TP_OPTIONS_TRAIN; kind <= TP_OPTIONS_DRAW; kind++)
    for (size_t i = 0; tp_options_at((tp_options_kind)kind, i, &o); i++)
      if (strlen(o.name) == size && memcmp(o.name, text, size) == 0) return true;
  return false;
}

void cli_print_error(const char *command, const tp_error *error, tp_status status)
{
  const char *text = error->text;
  size_t name = strcspn(text, ": ");
  fprintf(stderr, "tepal %s: %s", command, status == TP_STOPPED ? "" : "error: ");
  if (text[name] == ':' && is_option_name(text, name)) {
    fputs("--", stderr);
    for (; *text != ':'; text++) fputc(*text == '_' ? '-' : *text, stderr);
  }
  fprintf(stderr, "%s\n", text);
}
