/* net_summary - the table that Keras 3's model.summary(line_length=100) prints, line for line; see
 * net.h
 *
 * Cells break at spaces; a word that is still too long is cut and ends in an ellipsis. All names
 * are ASCII, the frame and the ellipsis are UTF-8.
 */
#include <string.h>

#include "net.h"

enum { COLUMNS = 4, CELL_MAX = 256 };

static const int width[COLUMNS] = {27, 23, 14, 23};

/* A text still to be printed, word by word. */
typedef struct cell {
  char text[CELL_MAX];
  const char *rest;
} cell;

/* ---- frame ---- */

/* One horizontal line: its left end, filling, crossing and right end. */
static tp_status rule(tp__buffer *text, const char *const part[4], tp_error *err)
{
  for (int c = 0; c < COLUMNS; c++) {
    TP__TRY(tp__buffer_printf(text, err, "%s", part[c == 0 ? 0 : 2]));
    for (int i = 0; i < width[c] + 2; i++) TP__TRY(tp__buffer_printf(text, err, "%s", part[1]));
  }
  return tp__buffer_printf(text, err, "%s\n", part[3]);
}

/* ---- cells ---- */

/* Takes as many words as fit into `room` columns; returns their bytes. A single longer word is
 * taken whole. */
static size_t take_line(const char **rest, int room)
{
  const char *start = *rest;
  size_t taken = 0;
  while (start[taken] != '\0') {
    size_t next = taken + strspn(start + taken, " ");
    next += strcspn(start + next, " ");
    if (taken > 0 && next > (size_t)room) break;
    taken = next;
  }
  *rest = start + taken + strspn(start + taken, " ");
  return taken;
}

static tp_status print_cell(tp__buffer *text, cell *c, int room, bool right, tp_error *err)
{
  const char *start = c->rest;
  int n = (int)take_line(&c->rest, room);
  if (n > room) return tp__buffer_printf(text, err, "%.*s…", room - 1, start);
  int pad = room - n;
  return tp__buffer_printf(text, err, "%*s%.*s%*s", right ? pad : 0, "", n, start, right ? 0 : pad,
                           "");
}

static bool any_left(const cell row[COLUMNS])
{
  for (int c = 0; c < COLUMNS; c++)
    if (row[c].rest[0] != '\0') return true;
  return false;
}

/* Prints a row of cells in as many lines as the longest needs. bar: between them. */
static tp_status print_row(tp__buffer *text, cell row[COLUMNS], const char *bar, tp_error *err)
{
  for (int c = 0; c < COLUMNS; c++) row[c].rest = row[c].text;
  do {
    for (int c = 0; c < COLUMNS; c++) {
      TP__TRY(tp__buffer_printf(text, err, "%s ", bar));
      TP__TRY(print_cell(text, &row[c], width[c], c == 2, err));
      TP__TRY(tp__buffer_printf(text, err, " "));
    }
    TP__TRY(tp__buffer_printf(text, err, "%s\n", bar));
  } while (any_left(row));
  return TP_OK;
}

/* ---- content ---- */

/* "4,049,571" */
static char *grouped(int64_t n, char text[32])
{
  char digits[32];
  int length = snprintf(digits, sizeof digits, "%lld", (long long)n);
  char *to = text;
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0) *to++ = ',';
    *to++ = digits[i];
  }
  *to = '\0';
  return text;
}

/* "15.45 MB": binary units, two digits, as Keras. */
static char *memory(int64_t bytes, char text[32])
{
  static const char *const unit[] = {"B", "KB", "MB", "GB", "TB"};
  double value = (double)bytes;
  int u = 0;
  for (; value >= 1024 && u < 4; u++) value /= 1024;
  snprintf(text, 32, "%.2f %s", value, unit[u]);
  return text;
}

static void fill_row(const tp__net *net, const tp__layer *layer, cell row[COLUMNS])
{
  int64_t parameters = 0;
  for (int i = 0; i < layer->n_parameters; i++)
    parameters += (int64_t)tp__shape_elements(&net->parameter[layer->first_parameter + i].shape, 0);
  char shape[96];
  snprintf(row[0].text, CELL_MAX, "%s (%s)", layer->name, layer->class_name);
  snprintf(row[1].text, CELL_MAX, "%s",
           tp__shape_text(&net->graph->node[layer->value].shape, shape));
  grouped(parameters, row[2].text);
  snprintf(row[3].text, CELL_MAX, "-");
  if (layer->inbound[0] < 0) return;
  snprintf(row[3].text, CELL_MAX, "%s[0][0]", net->layer[layer->inbound[0]].name);
  if (layer->inbound[1] < 0) return;
  size_t used = strlen(row[3].text);
  snprintf(row[3].text + used, CELL_MAX - used, ", %s[0][0]", net->layer[layer->inbound[1]].name);
}

static tp_status print_table(const tp__net *net, tp__buffer *text, tp_error *err)
{
  static const char *const top[] = {"┏", "━", "┳", "┓"}, *const under[] = {"┡", "━", "╇", "┩"},
                           *const between[] = {"├", "─", "┼", "┤"},
                           *const bottom[] = {"└", "─", "┴", "┘"};
  cell row[COLUMNS] = {{.text = "Layer (type)"},
                       {.text = "Output Shape"},
                       {.text = "Param #"},
                       {.text = "Connected to"}};
  TP__TRY(rule(text, top, err));
  TP__TRY(print_row(text, row, "┃", err));
  for (int i = 0; i < net->n_layers; i++) {
    TP__TRY(rule(text, i == 0 ? under : between, err));
    fill_row(net, &net->layer[i], row);
    TP__TRY(print_row(text, row, "│", err));
  }
  return rule(text, bottom, err);
}

static tp_status print_totals(const tp__net *net, tp__buffer *text, tp_error *err)
{
  int64_t count[2], bytes[2] = {0}; /* all, trainable */
  tp__net_count(net, &count[0], &count[1]);
  for (int i = 0; i < net->n_parameters; i++) {
    const tp__parameter *p = &net->parameter[i];
    int64_t b = (int64_t)(tp__shape_elements(&p->shape, 0) * tp__dtype_size(p->dtype));
    bytes[0] += b;
    if (tp__net_trains(net, i)) bytes[1] += b;
  }
  char n[3][32], m[3][32];
  return tp__buffer_printf(
      text, err,
      " Total params: %s (%s)\n Trainable params: %s (%s)\n Non-trainable params: %s (%s)\n",
      grouped(count[0], n[0]), memory(bytes[0], m[0]), grouped(count[1], n[1]),
      memory(bytes[1], m[1]), grouped(count[0] - count[1], n[2]),
      memory(bytes[0] - bytes[1], m[2]));
}

tp_status tp__net_summary(const tp__net *net, const tp__model_spec *spec, tp__buffer *text,
                          tp_error *err)
{
  TP__TRY(tp__buffer_printf(text, err, "Model: \"%s\"\n", spec->name));
  TP__TRY(print_table(net, text, err));
  return print_totals(net, text, err);
}
