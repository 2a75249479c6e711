/* pickle - values and opcodes of the restricted unpickler; see pickle.h. Its stack is in
 * pickle_machine.c, the calls it may make in pickle_call.c. */
#include "pickle.h"

#include <string.h>

#include "pickle_machine.h"
#include "weights_formats.h"

static tp_status push_integer(tp__machine *m, tp__pickle_kind kind, int64_t value, tp_error *err)
{
  tp__pickle_value *v = tp__pickle_new(m->p, kind, err);
  if (v != NULL) v->integer = value;
  return tp__pickle_push(m, v, err);
}

static tp_status push_long(tp__machine *m, int unused, tp_error *err)
{
  (void)unused;
  uint64_t size = 0, value = 0;
  const uint8_t *p = NULL;
  TP__TRY(tp__pickle_number(m, 1, &size, err));
  TP__TRY(tp__pickle_take(m, (size_t)size, &p, err));
  if (size > 10) return tp__pickle_fault(m, "an integer of more than 10 bytes", err);
  for (size_t i = 0; i < size && i < 8; i++) value |= (uint64_t)p[i] << (8 * i);
  for (size_t i = (size_t)size; i > 0 && i < 8 && (p[size - 1] & 0x80) != 0; i++)
    value |= (uint64_t)0xff << (8 * i);
  return push_integer(m, TP__PICKLE_INT, (int64_t)value,
                      err); /* only the legacy magic has over 8 */
}

static tp_status push_text(tp__machine *m, int length_bytes, tp_error *err)
{
  uint64_t size = 0;
  const uint8_t *p = NULL;
  TP__TRY(tp__pickle_number(m, length_bytes, &size, err));
  TP__TRY(tp__pickle_take(m, (size_t)size, &p, err));
  tp__pickle_value *v = tp__pickle_new(m->p, TP__PICKLE_TEXT, err);
  if (v != NULL) {
    v->text.data = (const char *)p;
    v->text.size = (size_t)size;
  }
  return tp__pickle_push(m, v, err);
}

static tp_status push_list(tp__machine *m, tp__pickle_kind kind, tp__pickle_value **item,
                           size_t count, tp_error *err)
{
  tp__pickle_value *v = tp__pickle_new(m->p, kind, err);
  if (v != NULL && count > 0) {
    v->list.item = tp__pickle_alloc(m->p, count * sizeof *item, err);
    if (v->list.item == NULL) return err->status;
    memcpy(v->list.item, item, count * sizeof *item);
    v->list.count = v->list.capacity = count;
  }
  return tp__pickle_push(m, v, err);
}

static tp_status push_marked(tp__machine *m, int kind, tp_error *err)
{
  tp__pickle_value **item = NULL;
  size_t count = 0;
  TP__TRY(tp__pickle_marked(m, &item, &count, err));
  if (kind == TP__PICKLE_DICT && count % 2 != 0)
    return tp__pickle_fault(m, "a dict with a key too many", err);
  return push_list(m, (tp__pickle_kind)kind, item, count, err);
}

static tp_status push_small_tuple(tp__machine *m, int size, tp_error *err)
{
  size_t count = (size_t)size;
  if (m->depth - tp__pickle_floor(m) < count)
    return tp__pickle_fault(m, "takes from an empty stack", err);
  m->depth -= count;
  return push_list(m, TP__PICKLE_TUPLE, m->stack + m->depth, count, err);
}

/* Adds values to the list or dict on top of the stack. */
static tp_status extend(tp__machine *m, tp__pickle_kind kind, tp__pickle_value **item, size_t count,
                        tp_error *err)
{
  if (m->depth <= tp__pickle_floor(m) || m->stack[m->depth - 1]->kind != kind ||
      (kind == TP__PICKLE_DICT && count % 2 != 0))
    return tp__pickle_fault(m, "adds to something that is no list or dict", err);
  tp__pickle_value *to = m->stack[m->depth - 1];
  for (size_t i = 0; i < count; i++) {
    if (!tp__pickle_grow(m->p, &to->list.item, to->list.count, &to->list.capacity, err))
      return err->status;
    to->list.item[to->list.count++] = item[i];
  }
  return TP_OK;
}

static tp_status extend_marked(tp__machine *m, int kind, tp_error *err)
{
  tp__pickle_value **item = NULL;
  size_t count = 0;
  TP__TRY(tp__pickle_marked(m, &item, &count, err));
  return extend(m, (tp__pickle_kind)kind, item, count,
                err); /* the popped items still lie above the top */
}

/* One element, or a key and its value. */
static tp_status extend_by_one(tp__machine *m, int kind, tp_error *err)
{
  size_t count = kind == TP__PICKLE_DICT ? 2 : 1;
  if (m->depth - tp__pickle_floor(m) < count)
    return tp__pickle_fault(m, "takes from an empty stack", err);
  m->depth -= count;
  return extend(m, (tp__pickle_kind)kind, m->stack + m->depth, count, err);
}

static tp_status push_empty(tp__machine *m, int kind, tp_error *err)
{
  return push_list(m, (tp__pickle_kind)kind, NULL, 0, err);
}

static tp_status push_none(tp__machine *m, int kind, tp_error *err)
{
  return tp__pickle_push(m, tp__pickle_new(m->p, (tp__pickle_kind)kind, err), err);
}

static tp_status push_bool(tp__machine *m, int value, tp_error *err)
{
  return push_integer(m, TP__PICKLE_BOOL, value, err);
}

static tp_status mark(tp__machine *m, int unused, tp_error *err)
{
  (void)unused;
  return tp__pickle_mark(m, err);
}

static tp_status drop(tp__machine *m, int unused, tp_error *err)
{
  tp__pickle_value *ignored = NULL;
  (void)unused;
  return tp__pickle_pop(m, &ignored, err);
}

static tp_status memoize(tp__machine *m, int unused, tp_error *err)
{
  (void)unused;
  return tp__pickle_remember(m, m->memo_count, err);
}

/* ---- globals and calls ---- */

static tp_status push_global(tp__machine *m, const char *module, size_t module_size,
                             const char *name, size_t name_size, tp_error *err)
{
  int number = tp__pickle_global(module, module_size, name, name_size);
  char a[80], b[80];
  if (number < 0)
    return tp__fail(
        err, TP_ERR_DATA,
        "wants to run '%s.%s': refused (byte %zu). Only plain tensors are read from a .pth; save "
        "model.state_dict() instead of the model",
        tp__printable(a, module, module_size), tp__printable(b, name, name_size), m->at);
  return push_integer(m, TP__PICKLE_GLOBAL, number, err);
}

static tp_status read_line(tp__machine *m, const char **text, size_t *size, tp_error *err)
{
  const uint8_t *from = m->data + m->next;
  const uint8_t *end = memchr(from, '\n', m->size - m->next);
  if (end == NULL) return tp__pickle_fault(m, "ends in the middle of a name: truncated?", err);
  *text = (const char *)from;
  *size = (size_t)(end - from);
  m->next += *size + 1;
  return TP_OK;
}

static tp_status global_from_lines(tp__machine *m, int unused, tp_error *err)
{
  (void)unused;
  const char *module = NULL, *name = NULL;
  size_t module_size = 0, name_size = 0;
  TP__TRY(read_line(m, &module, &module_size, err));
  TP__TRY(read_line(m, &name, &name_size, err));
  return push_global(m, module, module_size, name, name_size, err);
}

static tp_status global_from_stack(tp__machine *m, int unused, tp_error *err)
{
  (void)unused;
  tp__pickle_value *module = NULL, *name = NULL;
  TP__TRY(tp__pickle_pop(m, &name, err));
  TP__TRY(tp__pickle_pop(m, &module, err));
  if (module->kind != TP__PICKLE_TEXT || name->kind != TP__PICKLE_TEXT)
    return tp__pickle_fault(m, "a global whose name is no text", err);
  return push_global(m, module->text.data, module->text.size, name->text.data, name->text.size,
                     err);
}

static tp_status reduce(tp__machine *m, int unused, tp_error *err)
{
  (void)unused;
  tp__pickle_value *function = NULL, *arguments = NULL, *result = NULL;
  TP__TRY(tp__pickle_pop(m, &arguments, err));
  TP__TRY(tp__pickle_pop(m, &function, err));
  if (function->kind != TP__PICKLE_GLOBAL || arguments->kind != TP__PICKLE_TUPLE)
    return tp__pickle_fault(m, "calls something that is no function", err);
  TP__TRY(tp__pickle_call(m->p, (int)function->integer, arguments, &result, err));
  return tp__pickle_push(m, result, err);
}

/* Only an OrderedDict's own attributes (a state dict's _metadata); they are not needed. */
static tp_status build(tp__machine *m, int unused, tp_error *err)
{
  (void)unused;
  tp__pickle_value *state = NULL;
  TP__TRY(tp__pickle_pop(m, &state, err));
  if (m->depth <= tp__pickle_floor(m) || m->stack[m->depth - 1]->kind != TP__PICKLE_DICT)
    return tp__pickle_fault(m, "sets the state of something that is no dict", err);
  return TP_OK;
}

static tp_status persistent(tp__machine *m, int unused, tp_error *err)
{
  (void)unused;
  tp__pickle_value *id = NULL, *result = NULL;
  TP__TRY(tp__pickle_pop(m, &id, err));
  TP__TRY(tp__pickle_storage(m->p, id, &result, err));
  return tp__pickle_push(m, result, err);
}

/* ---- opcodes ---- */

/* Those that have a number of some bytes behind them. */
static tp_status push_number(tp__machine *m, int bytes, tp_error *err)
{
  uint64_t v = 0;
  TP__TRY(tp__pickle_number(m, bytes, &v, err));
  return push_integer(m, TP__PICKLE_INT, bytes == 4 ? (int32_t)(uint32_t)v : (int64_t)v, err);
}

static tp_status push_float(tp__machine *m, int bytes, tp_error *err)
{
  uint64_t not_needed = 0;
  TP__TRY(tp__pickle_number(m, bytes, &not_needed, err));
  return push_none(m, TP__PICKLE_FLOAT, err);
}

static tp_status put_numbered(tp__machine *m, int bytes, tp_error *err)
{
  uint64_t index = 0;
  TP__TRY(tp__pickle_number(m, bytes, &index, err));
  return tp__pickle_remember(m, index, err);
}

static tp_status get_numbered(tp__machine *m, int bytes, tp_error *err)
{
  uint64_t index = 0;
  TP__TRY(tp__pickle_number(m, bytes, &index, err));
  return tp__pickle_recall(m, index, err);
}

static tp_status protocol(tp__machine *m, int bytes, tp_error *err)
{
  uint64_t version = 0;
  TP__TRY(tp__pickle_number(m, bytes, &version, err));
  return version <= 5 ? TP_OK : tp__pickle_fault(m, "a protocol newer than 5", err);
}

/* A hint for reading ahead. */
static tp_status frame(tp__machine *m, int bytes, tp_error *err)
{
  uint64_t size = 0;
  return tp__pickle_number(m, bytes, &size, err);
}

static const struct {
  tp_status (*run)(tp__machine *m, int argument, tp_error *err);
  int argument;
} opcodes[256] = {
    /* clang-format off */
    [0x80] = {protocol, 1},          [0x95] = {frame, 8},             ['0'] = {drop, 0},
    ['('] = {mark, 0},
    ['N'] = {push_none, TP__PICKLE_NONE}, [0x88] = {push_bool, 1},    [0x89] = {push_bool, 0},
    ['J'] = {push_number, 4},        ['K'] = {push_number, 1},        ['M'] = {push_number, 2},
    [0x8a] = {push_long, 0},         ['G'] = {push_float, 8},
    ['X'] = {push_text, 4},          [0x8c] = {push_text, 1},
    ['T'] = {push_text, 4},          ['U'] = {push_text, 1},
    [')'] = {push_empty, TP__PICKLE_TUPLE}, ['t'] = {push_marked, TP__PICKLE_TUPLE},
    [0x85] = {push_small_tuple, 1},  [0x86] = {push_small_tuple, 2},
    [0x87] = {push_small_tuple, 3},
    [']'] = {push_empty, TP__PICKLE_LIST},  ['l'] = {push_marked, TP__PICKLE_LIST},
    ['a'] = {extend_by_one, TP__PICKLE_LIST}, ['e'] = {extend_marked, TP__PICKLE_LIST},
    ['}'] = {push_empty, TP__PICKLE_DICT},  ['d'] = {push_marked, TP__PICKLE_DICT},
    ['s'] = {extend_by_one, TP__PICKLE_DICT}, ['u'] = {extend_marked, TP__PICKLE_DICT},
    ['q'] = {put_numbered, 1},       ['r'] = {put_numbered, 4},       [0x94] = {memoize, 0},
    ['h'] = {get_numbered, 1},       ['j'] = {get_numbered, 4},
    ['c'] = {global_from_lines, 0},  [0x93] = {global_from_stack, 0},
    ['R'] = {reduce, 0},             ['b'] = {build, 0},              ['Q'] = {persistent, 0},
    /* clang-format on */
};

tp_status tp__pickle_run(tp__pickle *p, const uint8_t *data, size_t size, size_t *consumed,
                         const tp__pickle_value **result, tp_error *err)
{
  tp_error own;
  if (err == NULL) err = &own;
  tp__machine *m = tp__pickle_alloc(p, sizeof *m, err); /* large: not on the stack */
  if (m == NULL) return err->status;
  m->p = p;
  m->data = data;
  m->size = size;
  for (;;) {
    m->at = m->next;
    if (m->next == size) return tp__pickle_fault(m, "has no end: truncated?", err);
    m->opcode = data[m->next++];
    if (m->opcode == '.') break;
    if (opcodes[m->opcode].run == NULL)
      return tp__pickle_fault(m, "an opcode that is not allowed", err);
    TP__TRY(opcodes[m->opcode].run(m, opcodes[m->opcode].argument, err));
  }
  tp__pickle_value *top = NULL;
  TP__TRY(tp__pickle_pop(m, &top, err));
  *result = top;
  *consumed = m->next;
  return TP_OK;
}

bool tp__pickle_is_text(const tp__pickle_value *v, const char *text)
{
  return v->kind == TP__PICKLE_TEXT && v->text.size == strlen(text) &&
         memcmp(v->text.data, text, v->text.size) == 0;
}

const tp__pickle_value *tp__pickle_get(const tp__pickle_value *v, const char *key)
{
  for (size_t i = 0; v->kind == TP__PICKLE_DICT && i + 1 < v->list.count; i += 2)
    if (tp__pickle_is_text(v->list.item[i], key)) return v->list.item[i + 1];
  return NULL;
}

void tp__pickle_free(tp__pickle *p)
{
  tp__arena_free(&p->arena);
  *p = (tp__pickle){0};
}
