/* pickle_machine - what pickle.c (the stack machine) and pickle_call.c (globals, calls, storages)
 * share. */
#ifndef TP_PICKLE_MACHINE_H
#define TP_PICKLE_MACHINE_H

#include "pickle.h"

typedef struct tp__machine {
  tp__pickle *p;
  const uint8_t *data;
  size_t size, next, at; /* at: the current opcode's byte */
  uint8_t opcode;
  tp__pickle_value **stack, **memo;
  size_t depth, stack_capacity, memo_size, memo_count;
  size_t marks[1000], n_marks;
} tp__machine;

/* Both count against the memory limit; NULL with err set. */
void *tp__pickle_alloc(tp__pickle *p, size_t bytes, tp_error *err);
tp__pickle_value *tp__pickle_new(tp__pickle *p, tp__pickle_kind kind, tp_error *err);
bool tp__pickle_grow(tp__pickle *p, tp__pickle_value ***item, size_t count, size_t *capacity,
                     tp_error *err);

/* "pickle: WHAT (opcode .. at byte ..)" */
tp_status tp__pickle_fault(const tp__machine *m, const char *what, tp_error *err);

/* The next bytes of the program; a little-endian number of 1 to 8 of them. */
tp_status tp__pickle_take(tp__machine *m, size_t size, const uint8_t **bytes,
                          tp_error *err) TP_CHECKED;
tp_status tp__pickle_number(tp__machine *m, int bytes, uint64_t *value, tp_error *err) TP_CHECKED;

/* Push takes NULL for "out of memory, err is set". What lies below the last mark cannot be popped;
 * floor is its height. */
tp_status tp__pickle_push(tp__machine *m, tp__pickle_value *v, tp_error *err) TP_CHECKED;
tp_status tp__pickle_pop(tp__machine *m, tp__pickle_value **v, tp_error *err) TP_CHECKED;
size_t tp__pickle_floor(const tp__machine *m);
tp_status tp__pickle_mark(tp__machine *m, tp_error *err) TP_CHECKED;

/* The values above the last mark; they and the mark are gone from the stack, but lie there until
 * the next push. */
tp_status tp__pickle_marked(tp__machine *m, tp__pickle_value ***item, size_t *count,
                            tp_error *err) TP_CHECKED;

/* The memo: keeps the top of the stack under a number; pushes what is kept. */
tp_status tp__pickle_remember(tp__machine *m, uint64_t index, tp_error *err) TP_CHECKED;
tp_status tp__pickle_recall(tp__machine *m, uint64_t index, tp_error *err) TP_CHECKED;

/* The number of an allowed global, -1 for all others. */
int tp__pickle_global(const char *module, size_t module_size, const char *name, size_t name_size);

/* Does an allowed call. */
tp_status tp__pickle_call(tp__pickle *p, int global, const tp__pickle_value *arguments,
                          tp__pickle_value **result, tp_error *err) TP_CHECKED;

/* The storage of a persistent id ("storage", type, key, place, elements[, view]). */
tp_status tp__pickle_storage(tp__pickle *p, const tp__pickle_value *id, tp__pickle_value **result,
                             tp_error *err) TP_CHECKED;

#endif
