/* pickle - the stack machine; see pickle.h. The calls are in pickle_call.c. */
#include "pickle.h"

#include <stdlib.h>
#include <string.h>

#include "pickle_machine.h"
#include "weights_formats.h"

enum { STACK_MAX = 1 << 20, MEMO_MAX = 1 << 20 };
static const uint64_t memory_max = UINT64_C(256) << 20;

static tp_status fault(const machine *m, const char *what, tp_error *err)
{
  return tp__fail(err, TP_ERR_DATA, "pickle: %s (opcode 0x%02x at byte %zu)", what, m->opcode,
                  m->at);
}

void *tp__pickle_alloc(tp__pickle *p, size_t bytes, tp_error *err)
{
  void *memory = NULL;
  p->used += bytes;
  if (p->used > memory_max)
    (void)tp__fail(err, TP_ERR_DATA, "pickle: needs more than 256 MB of memory: refused");
  else if ((memory = tp__arena_alloc(&p->arena, bytes)) == NULL)
    (void)tp__no_memory(err, bytes);
  return memory;
}

tp__pickle_value *tp__pickle_new(tp__pickle *p, tp__pickle_kind kind, tp_error *err)
{
  tp__pickle_value *v = tp__pickle_alloc(p, sizeof *v, err);
  if (v != NULL) v->kind = kind;
  return v;
}

/* Room for one more pointer in a list that lives in the arena. */
bool tp__pickle_grow(tp__pickle *p, tp__pickle_value ***item, size_t count, size_t *capacity,
                     tp_error *err)
{
  if (count < *capacity) return true;
  size_t grown = *capacity == 0 ? 8 : *capacity * 2;
  tp__pickle_value **fresh = tp__pickle_alloc(p, grown * sizeof(tp__pickle_value *), err);
  if (fresh == NULL) return false;
  if (count > 0) memcpy(fresh, *item, count * sizeof(tp__pickle_value *));
  *item = fresh;
  *capacity = grown;
  return true;
}

/* ---- bytes, stack, memo ---- */

static tp_status take(machine *m, size_t size, const uint8_t **bytes, tp_error *err)
{
  if (size > m->size - m->next) return fault(m, "ends in the middle of a value: truncated?", err);
  *bytes = m->data + m->next;
  m->next += size;
  return TP_OK;
}

static tp_status take_number(machine *m, int bytes, uint64_t *value, tp_error *err)
{
  const uint8_t *p = NULL;
  TP__TRY(take(m, (size_t)bytes, &p, err));
  *value = 0;
  for (int i = 0; i < bytes; i++) *value |= (uint64_t)p[i] << (8 * i);
  return TP_OK;
}

static tp_status push(machine *m, tp__pickle_value *v, tp_error *err)
{
  if (v == NULL) return err != NULL ? err->status : TP_ERR_INTERNAL;
  if (m->depth == STACK_MAX) return fault(m, "stack of more than a million values", err);
  if (!tp__pickle_grow(m->p, &m->stack, m->depth, &m->stack_capacity, err)) return err->status;
  m->stack[m->depth++] = v;
  return TP_OK;
}

/* The first stack position that may be popped: values below the last mark are out of reach. */
static size_t floor_of(const machine *m)
{
  return m->n_marks > 0 ? m->marks[m->n_marks - 1] : 0;
}

static tp_status pop(machine *m, tp__pickle_value **v, tp_error *err)
{
  if (m->depth <= floor_of(m)) return fault(m, "takes from an empty stack", err);
  *v = m->stack[--m->depth];
  return TP_OK;
}

static tp_status push_mark(machine *m, int unused, tp_error *err)
{
  (void)unused;
  if (m->n_marks == sizeof m->marks / sizeof *m->marks) return fault(m, "nested too deeply", err);
  m->marks[m->n_marks++] = m->depth;
  return TP_OK;
}

/* The values above the last mark; they and the mark are gone from the stack. */
static tp_status pop_marked(machine *m, tp__pickle_value ***item, size_t *count, tp_error *err)
{
  if (m->n_marks == 0) return fault(m, "no mark on the stack", err);
  size_t from = m->marks[--m->n_marks];
  *item = m->stack + from;
  *count = m->depth - from;
  m->depth = from;
  return TP_OK;
}

static tp_status memo_put(machine *m, uint64_t index, tp_error *err)
{
  if (index >= MEMO_MAX) return fault(m, "memo of more than a million values", err);
  if (m->depth <= floor_of(m)) return fault(m, "remembers from an empty stack", err);
  if (index >= m->memo_size) {
    size_t size = m->memo_size == 0 ? 1024 : m->memo_size;
    while (size <= index) size *= 2;
    tp__pickle_value **fresh = tp__pickle_alloc(m->p, size * sizeof(tp__pickle_value *), err);
    if (fresh == NULL) return err->status;
    if (m->memo_size > 0) memcpy(fresh, m->memo, m->memo_size * sizeof(tp__pickle_value *));
    m->memo = fresh;
    m->memo_size = size;
  }
  m->memo_count += m->memo[index] == NULL;
  m->memo[index] = m->stack[m->depth - 1];
  return TP_OK;
}

static tp_status memo_get(machine *m, uint64_t index, tp_error *err)
{
  if (index >= m->memo_size || m->memo[index] == NULL)
    return fault(m, "asks for a value that was not remembered", err);
  return push(m, m->memo[index], err);
}

/* ---- values ---- */

static tp_status push_integer(machine *m, tp__pickle_kind kind, int64_t value, tp_error *err)
{
  tp__pickle_value *v = tp__pickle_new(m->p, kind, err);
  if (v != NULL) v->integer = value;
  return push(m, v, err);
}

static tp_status push_long(machine *m, int unused, tp_error *err)
{
  (void)unused;
  uint64_t size = 0, value = 0;
  const uint8_t *p = NULL;
  TP__TRY(take_number(m, 1, &size, err));
  TP__TRY(take(m, (size_t)size, &p, err));
  if (size > 10) return fault(m, "an integer of more than 10 bytes", err);
  for (size_t i = 0; i < size && i < 8; i++) value |= (uint64_t)p[i] << (8 * i);
  for (size_t i = (size_t)size; i > 0 && i < 8 && (p[size - 1] & 0x80) != 0; i++)
    value |= (uint64_t)0xff << (8 * i);
  return push_integer(m, TP__PICKLE_INT, (int64_t)value,
                      err); /* only the legacy magic has over 8 */
}

static tp_status push_text(machine *m, int length_bytes, tp_error *err)
{
  uint64_t size = 0;
  const uint8_t *p = NULL;
  TP__TRY(take_number(m, length_bytes, &size, err));
  TP__TRY(take(m, (size_t)size, &p, err));
  tp__pickle_value *v = tp__pickle_new(m->p, TP__PICKLE_TEXT, err);
  if (v != NULL) {
    v->text.data = (const char *)p;
    v->text.size = (size_t)size;
  }
  return push(m, v, err);
}

static tp_status push_list(machine *m, tp__pickle_kind kind, tp__pickle_value **item, size_t count,
                           tp_error *err)
{
  tp__pickle_value *v = tp__pickle_new(m->p, kind, err);
  if (v != NULL && count > 0) {
    v->list.item = tp__pickle_alloc(m->p, count * sizeof *item, err);
    if (v->list.item == NULL) return err->status;
    memcpy(v->list.item, item, count * sizeof *item);
    v->list.count = v->list.capacity = count;
  }
  return push(m, v, err);
}

static tp_status push_marked(machine *m, int kind, tp_error *err)
{
  tp__pickle_value **item = NULL;
  size_t count = 0;
  TP__TRY(pop_marked(m, &item, &count, err));
  if (kind == TP__PICKLE_DICT && count % 2 != 0) return fault(m, "a dict with a key too many", err);
  return push_list(m, (tp__pickle_kind)kind, item, count, err);
}

static tp_status push_small_tuple(machine *m, int size, tp_error *err)
{
  size_t count = (size_t)size;
  if (m->depth - floor_of(m) < count) return fault(m, "takes from an empty stack", err);
  m->depth -= count;
  return push_list(m, TP__PICKLE_TUPLE, m->stack + m->depth, count, err);
}

/* Adds values to the list or dict on top of the stack. */
static tp_status extend(machine *m, tp__pickle_kind kind, tp__pickle_value **item, size_t count,
                        tp_error *err)
{
  if (m->depth <= floor_of(m) || m->stack[m->depth - 1]->kind != kind ||
      (kind == TP__PICKLE_DICT && count % 2 != 0))
    return fault(m, "adds to something that is no list or dict", err);
  tp__pickle_value *to = m->stack[m->depth - 1];
  for (size_t i = 0; i < count; i++) {
    if (!tp__pickle_grow(m->p, &to->list.item, to->list.count, &to->list.capacity, err))
      return err->status;
    to->list.item[to->list.count++] = item[i];
  }
  return TP_OK;
}

static tp_status extend_marked(machine *m, int kind, tp_error *err)
{
  tp__pickle_value **item = NULL;
  size_t count = 0;
  TP__TRY(pop_marked(m, &item, &count, err));
  return extend(m, (tp__pickle_kind)kind, item, count,
                err); /* the popped items still lie above the top */
}

/* One element, or a key and its value. */
static tp_status extend_by_one(machine *m, int kind, tp_error *err)
{
  size_t count = kind == TP__PICKLE_DICT ? 2 : 1;
  if (m->depth - floor_of(m) < count) return fault(m, "takes from an empty stack", err);
  m->depth -= count;
  return extend(m, (tp__pickle_kind)kind, m->stack + m->depth, count, err);
}

static tp_status push_empty(machine *m, int kind, tp_error *err)
{
  return push_list(m, (tp__pickle_kind)kind, NULL, 0, err);
}

static tp_status push_none(machine *m, int kind, tp_error *err)
{
  return push(m, tp__pickle_new(m->p, (tp__pickle_kind)kind, err), err);
}

static tp_status push_bool(machine *m, int value, tp_error *err)
{
  return push_integer(m, TP__PICKLE_BOOL, value, err);
}

static tp_status drop(machine *m, int unused, tp_error *err)
{
  tp__pickle_value *ignored = NULL;
  (void)unused;
  return pop(m, &ignored, err);
}

static tp_status memoize(machine *m, int unused, tp_error *err)
{
  (void)unused;
  return memo_put(m, m->memo_count, err);
}

/* ---- globals and calls ---- */

static tp_status push_global(machine *m, const char *module, size_t module_size, const char *name,
                             size_t name_size, tp_error *err)
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

static tp_status read_line(machine *m, const char **text, size_t *size, tp_error *err)
{
  const uint8_t *from = m->data + m->next;
  const uint8_t *end = memchr(from, '\n', m->size - m->next);
  if (end == NULL) return fault(m, "ends in the middle of a name: truncated?", err);
  *text = (const char *)from;
  *size = (size_t)(end - from);
  m->next += *size + 1;
  return TP_OK;
}

static tp_status global_from_lines(machine *m, int unused, tp_error *err)
{
  (void)unused;
  const char *module = NULL, *name = NULL;
  size_t module_size = 0, name_size = 0;
  TP__TRY(read_line(m, &module, &module_size, err));
  TP__TRY(read_line(m, &name, &name_size, err));
  return push_global(m, module, module_size, name, name_size, err);
}

static tp_status global_from_stack(machine *m, int unused, tp_error *err)
{
  (void)unused;
  tp__pickle_value *module = NULL, *name = NULL;
  TP__TRY(pop(m, &name, err));
  TP__TRY(pop(m, &module, err));
  if (module->kind != TP__PICKLE_TEXT || name->kind != TP__PICKLE_TEXT)
    return fault(m, "a global whose name is no text", err);
  return push_global(m, module->text.data, module->text.size, name->text.data, name->text.size,
                     err);
}

static tp_status reduce(machine *m, int unused, tp_error *err)
{
  (void)unused;
  tp__pickle_value *function = NULL, *arguments = NULL, *result = NULL;
  TP__TRY(pop(m, &arguments, err));
  TP__TRY(pop(m, &function, err));
  if (function->kind != TP__PICKLE_GLOBAL || arguments->kind != TP__PICKLE_TUPLE)
    return fault(m, "calls something that is no function", err);
  TP__TRY(tp__pickle_call(m->p, (int)function->integer, arguments, &result, err));
  return push(m, result, err);
}

/* Only an OrderedDict's own attributes (a state dict's _metadata); they are not needed. */
static tp_status build(machine *m, int unused, tp_error *err)
{
  (void)unused;
  tp__pickle_value *state = NULL;
  TP__TRY(pop(m, &state, err));
  if (m->depth <= floor_of(m) || m->stack[m->depth - 1]->kind != TP__PICKLE_DICT)
    return fault(m, "sets the state of something that is no dict", err);
  return TP_OK;
}

static tp_status persistent(machine *m, int unused, tp_error *err)
{
  (void)unused;
  tp__pickle_value *id = NULL, *result = NULL;
  TP__TRY(pop(m, &id, err));
  TP__TRY(tp__pickle_storage(m->p, id, &result, err));
  return push(m, result, err);
}

/* ---- opcodes ---- */

/* Those that have a number of some bytes behind them. */
static tp_status push_number(machine *m, int bytes, tp_error *err)
{
  uint64_t v = 0;
  TP__TRY(take_number(m, bytes, &v, err));
  return push_integer(m, TP__PICKLE_INT, bytes == 4 ? (int32_t)(uint32_t)v : (int64_t)v, err);
}

static tp_status push_float(machine *m, int bytes, tp_error *err)
{
  uint64_t not_needed = 0;
  TP__TRY(take_number(m, bytes, &not_needed, err));
  return push_none(m, TP__PICKLE_FLOAT, err);
}

static tp_status put_numbered(machine *m, int bytes, tp_error *err)
{
  uint64_t index = 0;
  TP__TRY(take_number(m, bytes, &index, err));
  return memo_put(m, index, err);
}

static tp_status get_numbered(machine *m, int bytes, tp_error *err)
{
  uint64_t index = 0;
  TP__TRY(take_number(m, bytes, &index, err));
  return memo_get(m, index, err);
}

static tp_status protocol(machine *m, int bytes, tp_error *err)
{
  uint64_t version = 0;
  TP__TRY(take_number(m, bytes, &version, err));
  return version <= 5 ? TP_OK : fault(m, "a protocol newer than 5", err);
}

/* A hint for reading ahead. */
static tp_status frame(machine *m, int bytes, tp_error *err)
{
  uint64_t size = 0;
  return take_number(m, bytes, &size, err);
}

static const struct {
  tp_status (*run)(machine *m, int argument, tp_error *err);
  int argument;
} opcodes[256] = {
    /* clang-format off */
    [0x80] = {protocol, 1},          [0x95] = {frame, 8},             ['0'] = {drop, 0},
    ['('] = {push_mark, 0},
    ['N'] = {push_none, TP__PICKLE_NONE}, [0x88] = {push_bool, 1},    [0x89] = {push_bool, 0},
    ['J'] = {push_number, 4},        ['K'] = {push_number, 1},        ['M'] = {push_number, 2},
    [0x8a] = {push_long, 0},         ['G'] = {push_float, 8},
    ['X'] = {push_text, 4},          [0x8c] = {push_text, 1},
    ['T'] = {push_text, 4},          ['U'] = {push_text, 1},
    [')'] = {push_empty, TP__PICKLE_TUPLE}, ['t'] = {push_marked, TP__PICKLE_TUPLE},
    [0x85] = {push_small_tuple, 1},  [0x86] = {push_small_tuple, 2},  [0x87] = {push_small_tuple, 3},
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
  machine *m = tp__pickle_alloc(p, sizeof *m, err); /* large: not on the stack */
  if (m == NULL) return err->status;
  m->p = p;
  m->data = data;
  m->size = size;
  for (;;) {
    m->at = m->next;
    if (m->next == size) return fault(m, "has no end: truncated?", err);
    m->opcode = data[m->next++];
    if (m->opcode == '.') break;
    if (opcodes[m->opcode].run == NULL) return fault(m, "an opcode that is not allowed", err);
    TP__TRY(opcodes[m->opcode].run(m, opcodes[m->opcode].argument, err));
  }
  tp__pickle_value *top = NULL;
  TP__TRY(pop(m, &top, err));
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
