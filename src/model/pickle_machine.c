/* pickle_machine - the pickle machine's bytes, stack and memo; see pickle_machine.h */
#include "pickle_machine.h"

#include <string.h>

enum { STACK_MAX = 1 << 20, MEMO_MAX = 1 << 20 };
static const uint64_t memory_max = UINT64_C(256) << 20;

tp_status tp__pickle_fault(const tp__machine *m, const char *what, tp_error *err)
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

tp_status tp__pickle_take(tp__machine *m, size_t size, const uint8_t **bytes, tp_error *err)
{
  if (size > m->size - m->next)
    return tp__pickle_fault(m, "ends in the middle of a value: truncated?", err);
  *bytes = m->data + m->next;
  m->next += size;
  return TP_OK;
}

tp_status tp__pickle_number(tp__machine *m, int bytes, uint64_t *value, tp_error *err)
{
  const uint8_t *p = NULL;
  TP__TRY(tp__pickle_take(m, (size_t)bytes, &p, err));
  *value = 0;
  for (int i = 0; i < bytes; i++) *value |= (uint64_t)p[i] << (8 * i);
  return TP_OK;
}

tp_status tp__pickle_push(tp__machine *m, tp__pickle_value *v, tp_error *err)
{
  if (v == NULL) return err != NULL ? err->status : TP_ERR_INTERNAL;
  if (m->depth == STACK_MAX) return tp__pickle_fault(m, "stack of more than a million values", err);
  if (!tp__pickle_grow(m->p, &m->stack, m->depth, &m->stack_capacity, err)) return err->status;
  m->stack[m->depth++] = v;
  return TP_OK;
}

/* The first stack position that may be popped: values below the last mark are out of reach. */
size_t tp__pickle_floor(const tp__machine *m)
{
  return m->n_marks > 0 ? m->marks[m->n_marks - 1] : 0;
}

tp_status tp__pickle_pop(tp__machine *m, tp__pickle_value **v, tp_error *err)
{
  if (m->depth <= tp__pickle_floor(m)) return tp__pickle_fault(m, "takes from an empty stack", err);
  *v = m->stack[--m->depth];
  return TP_OK;
}

tp_status tp__pickle_mark(tp__machine *m, tp_error *err)
{
  if (m->n_marks == sizeof m->marks / sizeof *m->marks)
    return tp__pickle_fault(m, "nested too deeply", err);
  m->marks[m->n_marks++] = m->depth;
  return TP_OK;
}

/* The values above the last mark; they and the mark are gone from the stack. */
tp_status tp__pickle_marked(tp__machine *m, tp__pickle_value ***item, size_t *count, tp_error *err)
{
  if (m->n_marks == 0) return tp__pickle_fault(m, "no mark on the stack", err);
  size_t from = m->marks[--m->n_marks];
  *item = m->stack + from;
  *count = m->depth - from;
  m->depth = from;
  return TP_OK;
}

tp_status tp__pickle_remember(tp__machine *m, uint64_t index, tp_error *err)
{
  if (index >= MEMO_MAX) return tp__pickle_fault(m, "memo of more than a million values", err);
  if (m->depth <= tp__pickle_floor(m))
    return tp__pickle_fault(m, "remembers from an empty stack", err);
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

tp_status tp__pickle_recall(tp__machine *m, uint64_t index, tp_error *err)
{
  if (index >= m->memo_size || m->memo[index] == NULL)
    return tp__pickle_fault(m, "asks for a value that was not remembered", err);
  return tp__pickle_push(m, m->memo[index], err);
}
